//! The trigger macros: a site, its table entry and the descriptor of its event.
//!
//! On x86-64 a site is seven bytes, of which a disabled one executes the first two:
//!
//! ```text
//! L0: EB 05        jmp short L1        enabled: EB 00
//!     E9 rel32     jmp cold            the compiler's own block: evaluates the arguments and calls
//! L1:
//! ```
//!
//! Written as bytes, since an assembler would shorten the second jump. Elsewhere, and with the feature `portable`, a site
//! is a relaxed load of a flag in the descriptor and a branch.

/// A trigger that records: `trigger!("name", arguments…)` with none to ten arguments.
///
/// Disabled (as every site is at first) it costs one jump; the arguments are evaluated only while it is enabled, each
/// time anew, inside a closure: they may not `return`, `?` or `.await`. An argument is a `bool`, an integer of at most 64 bits, a float or a raw pointer; anything else, or an
/// eleventh, does not compile. Names are shared: `name` switches every site that bears it
/// ([`switching::apply`](crate::switching::apply)). May be used anywhere, signal handlers included; in a crate that denies
/// `unsafe_code` too, but not in one that forbids it, since the site is inline assembly.
///
/// ```
/// use horolog_probe::{switching, trigger};
/// fn enqueue(length: usize) {
///     trigger!("queue/enqueue", length, length > 8);
/// }
/// enqueue(3);
/// let switched = switching::apply("queue/*", true).unwrap();
/// assert_eq!((switched.events, switched.sites), (1, 1));
/// enqueue(4);
/// switching::apply("queue/*", false).unwrap();
/// ```
///
/// ```compile_fail
/// horolog_probe::trigger!("text", "no text");
/// ```
///
/// ```compile_fail
/// horolog_probe::trigger!("eleven", 1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, 10_u8, 11_u8);
/// ```
#[macro_export]
macro_rules! trigger {
    ($name:literal $(, $argument:expr)* $(,)?) => {{
        $crate::__event!(HOROLOG_EVENT, $name, ($($argument),*));
        #[inline(always)]
        fn horolog_site<A: $crate::Arguments>(arguments: impl FnOnce() -> A) {
            $crate::__site!(HOROLOG_EVENT, A, {
                // SAFETY: the event has as many arguments, since both were counted from them.
                #[allow(unsafe_code, unused_unsafe)]
                unsafe { $crate::Arguments::emit(arguments(), &HOROLOG_EVENT) }
            });
        }
        horolog_site(|| ($($argument,)*));
    }};
}

/// A trigger that calls a function of yours: `trigger_callback!("name", function, arguments…)`. The function is a
/// `fn(&Event, &[u64])` (or a closure that captures nothing); it gets one word an argument and may check an invariant.
///
/// ```
/// use horolog_probe::{Event, switching, trigger_callback};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// static DEEPEST: AtomicU64 = AtomicU64::new(0);
/// fn depth_is_bounded(_: &Event, words: &[u64]) {
///     assert!(words[0] <= 4, "nested {} deep", words[0]);
///     DEEPEST.fetch_max(words[0], Ordering::Relaxed);
/// }
/// fn nest(depth: u32) {
///     trigger_callback!("nest/depth", depth_is_bounded, depth);
/// }
/// nest(9);
/// switching::apply("nest/depth", true).unwrap();
/// nest(3);
/// assert_eq!(DEEPEST.load(Ordering::Relaxed), 3);
/// ```
#[macro_export]
macro_rules! trigger_callback {
    ($name:literal, $callback:expr $(, $argument:expr)* $(,)?) => {{
        $crate::__event!(HOROLOG_EVENT, $name, ($($argument),*));
        const HOROLOG_CALLBACK: fn(&$crate::Event, &[u64]) = $callback;
        #[inline(always)]
        fn horolog_site<A: $crate::Arguments>(arguments: impl FnOnce() -> A) {
            $crate::__site!(HOROLOG_EVENT, A, {
                $crate::Arguments::call(arguments(), &HOROLOG_EVENT, HOROLOG_CALLBACK);
            });
        }
        horolog_site(|| ($($argument,)*));
    }};
}

/// The descriptor of a trigger.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($event:ident, $name:literal, ($($argument:expr),*)) => {
        static $event: $crate::Event = $crate::Event::of_sites(
            {
                const NAME: &::core::ffi::CStr =
                    match ::core::ffi::CStr::from_bytes_with_nul(::core::concat!($name, "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => ::core::panic!("the name of an event holds no NUL"),
                    };
                const { ::core::assert!(!NAME.is_empty(), "an event has a name") };
                NAME
            },
            <[()]>::len(&[$($crate::__unit!($argument)),*]),
        );
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unit {
    ($argument:expr) => {
        ()
    };
}

/// The site itself: seven bytes and an entry on x86-64.
#[doc(hidden)]
#[macro_export]
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
macro_rules! __site {
    ($event:ident, $arguments:ident, $cold:block) => {
        // SAFETY: the bytes jump over the second jump, or, enabled, take it to the compiler's own block; no register,
        // flag or memory is touched. The entry is constant data in another section.
        #[allow(unsafe_code)]
        unsafe {
            ::core::arch::asm!(
                "77:",
                ".byte 0xEB, 5, 0xE9",
                ".long {cold} - . - 4",
                ".pushsection horolog_sites,\"aR?\",@progbits",
                ".balign 4",
                "78: .long 77b - 78b",
                ".long {event} - .",
                ".byte 5, 7",
                ".short 1",
                ".long {types}",
                ".popsection",
                $crate::__note!(),
                cold = label $cold,
                event = sym $event,
                types = const <$arguments as $crate::Arguments>::TYPES,
                options(nomem, nostack, preserves_flags)
            );
        }
    };
}

/// The site itself: a flag in the descriptor, and an entry whose size of code is 0.
#[doc(hidden)]
#[macro_export]
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
macro_rules! __site {
    ($event:ident, $arguments:ident, $cold:block) => {
        // SAFETY: nothing is executed. The entry is constant data in another section.
        #[allow(unsafe_code)]
        unsafe {
            ::core::arch::asm!(
                ".pushsection horolog_sites,\"aR?\",%progbits",
                ".balign 4",
                ".long 0",
                ".long {event} - .",
                ".byte 0, 0",
                ".short 1",
                ".long {types}",
                ".popsection",
                $crate::__note!(),
                event = sym $event,
                types = const <$arguments as $crate::Arguments>::TYPES,
                options(nomem, nostack, preserves_flags)
            );
        }
        if $event.is_enabled() {
            $crate::__private::cold();
            $cold
        }
    };
}

/// The note by which a module's table is found in memory, stripped or not: once an assembly.
#[doc(hidden)]
#[macro_export]
macro_rules! __note {
    () => {
        ".ifndef .Lhorolog_note\n\
         .set .Lhorolog_note, 1\n\
         .pushsection .note.horolog,\"aGR\",%note,horolog_module,comdat\n\
         .balign 4\n\
         .long 8, 16, 1\n\
         .asciz \"horolog\"\n\
         .hidden __start_horolog_sites\n\
         .hidden __stop_horolog_sites\n\
         .long __start_horolog_sites - .\n\
         .long __stop_horolog_sites - .\n\
         .long 0\n\
         .long 1\n\
         .popsection\n\
         .endif"
    };
}

/// Marks a block as unlikely.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn cold() {}
