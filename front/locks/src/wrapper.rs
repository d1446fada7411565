//! What all wrappers have in common.

/// Exports naked functions that append their return address to the arguments and go on in a body. The frame of the
/// caller is not touched, so that the body returns, and a cancellation unwinds, straight into it. Their signatures stay
/// empty: a naked function reads no arguments, it leaves them where they are.
macro_rules! entries {
    ($body:ident, $x86:literal, $arm:literal: $($export:ident)+) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $export() -> core::ffi::c_int {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {body}", body = sym $body);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(concat!("mov ", $arm, ", x30"), "b {body}", body = sym $body);
        }
    )+};
}

/// The entries of a body by its number of arguments.
macro_rules! export {
    ($body:ident (1): $($export:ident)+) => { $crate::wrapper::entries!($body, "rsi", "x1": $($export)+); };
    ($body:ident (2): $($export:ident)+) => { $crate::wrapper::entries!($body, "rdx", "x2": $($export)+); };
    ($body:ident (3): $($export:ident)+) => { $crate::wrapper::entries!($body, "rcx", "x3": $($export)+); };
    ($body:ident (4): $($export:ident)+) => { $crate::wrapper::entries!($body, "r8", "x4": $($export)+); };
}

/// Calls the real function with these words, or returns [`crate::real::ABSENT`].
macro_rules! call {
    ($real:expr, $($argument:expr),+) => {{
        let address = $real.address();
        if address.is_null() {
            $crate::real::ABSENT
        } else {
            type Function = unsafe extern "C-unwind" fn($($crate::wrapper::word!($argument)),+) -> core::ffi::c_int;
            // SAFETY: the C library's function of this name takes so many words of integer class and yields an int; the
            // words are those that our caller meant for it.
            unsafe { core::mem::transmute::<*mut core::ffi::c_void, Function>(address)($($argument),+) }
        }
    }};
}

macro_rules! word {
    ($argument:expr) => {
        usize
    };
}

/// A pattern for an argument that is not read.
macro_rules! unread {
    ($argument:ident) => {
        _
    };
}

/// A body that takes a lock: request, call, outcome. `$class` makes the class word of a lock; `$before` and `$after` give it
/// its protocol, and `$own` may take it in place of the real function.
macro_rules! taking {
    ($body:ident ($lock:ident $(, $more:ident)*), $real:ident, $class:expr) => {
        $crate::wrapper::taking!(
            $body($lock $(, $more)*), $real, $class, |_, _| false, |_ $(, $crate::wrapper::unread!($more))*| None, |_, _, outcome| outcome
        );
    };
    ($body:ident ($lock:ident $(, $more:ident)*), $real:ident, $class:expr, $before:expr, $own:expr, $after:expr) => {
        unsafe extern "C-unwind" fn $body($lock: usize, $($more: usize,)* site: usize) -> core::ffi::c_int {
            let before: fn(usize, usize) -> bool = $before;
            let after: fn(bool, usize, core::ffi::c_int) -> core::ffi::c_int = $after;
            let was_raised = before($lock, site);
            $crate::events::acquire($lock, $class, site);
            let own: fn(usize $(, $crate::wrapper::word!($more))*) -> Option<core::ffi::c_int> = $own;
            let outcome = match own($lock $(, $more)*) {
                Some(outcome) => outcome,
                None => $crate::wrapper::call!($crate::real::$real, $lock $(, $more)*),
            };
            let outcome = after(was_raised, $lock, outcome);
            if outcome == 0 || outcome == libc::EOWNERDEAD {
                $crate::events::acquired($lock, $class, site);
            } else {
                $crate::events::refused($lock, $class, site, outcome);
            }
            outcome
        }
    };
}

/// A body that gives a lock up. `$unlocked` makes of the outcome what the program gets.
macro_rules! giving {
    ($body:ident, $real:ident, $class:expr) => {
        $crate::wrapper::giving!($body, $real, $class, |_, _, outcome| outcome);
    };
    ($body:ident, $real:ident, $class:expr, $unlocked:expr) => {
        unsafe extern "C-unwind" fn $body(lock: usize, site: usize) -> core::ffi::c_int {
            $crate::events::release(lock, $class, site);
            let unlocked: fn(usize, usize, core::ffi::c_int) -> core::ffi::c_int = $unlocked;
            unlocked(lock, site, $crate::wrapper::call!($crate::real::$real, lock))
        }
    };
}

pub(crate) use {call, entries, export, giving, taking, unread, word};
