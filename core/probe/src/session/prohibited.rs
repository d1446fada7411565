//! What a program may forbid itself: system calls (seccomp), and the time-stamp counter (`PR_SET_TSC`, strict seccomp).
//!
//! A forbidden call ends the process, and so would our own: the calls that hand the memory of a `fork`'s child over, above
//! all. No call may ask whether calls are forbidden. So the runtime libraries wrap the two functions of the C
//! library by which a program forbids something ([`runtime_library`](crate::runtime_library)), and say here what it did.
//! A filter that was there before the program started is seen in `/proc`: reading a file is what the dynamic linker has done
//! just before.
//!
//! A program may hold several copies of the runtime: its own, linked into it, and a preloaded one, whose wrappers it then
//! calls. All of them keep what is forbidden in one place, that of the copy whose `horolog_trace_prohibited` the dynamic
//! linker finds first.

use core::ffi::{c_int, c_long, c_ulong};
use core::mem::transmute;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use super::budget::{self, Reason};
use super::shared::take_live;

/// How many copies of the runtime may have sessions in one process.
const COPIES: usize = 8;
const VERSION: u32 = 1;

/// What the process has forbidden itself.
#[doc(hidden)]
#[repr(C)]
#[derive(Debug)]
pub struct Prohibited {
    version: u32,
    calls: AtomicBool,
    counter: AtomicBool,
    /// Of each copy that has had a session, the function that ends it: an `extern "C" fn()`.
    ends: [AtomicPtr<()>; COPIES],
}

static OWN: Prohibited = Prohibited {
    version: VERSION,
    calls: AtomicBool::new(false),
    counter: AtomicBool::new(false),
    ends: [const { AtomicPtr::new(core::ptr::null_mut()) }; COPIES],
};

/// The place of all copies; null: [`OWN`].
static COMMON: AtomicPtr<Prohibited> = AtomicPtr::new(core::ptr::null_mut());

fn common() -> &'static Prohibited {
    // SAFETY: null, or a static of a module that stays loaded.
    unsafe { COMMON.load(Acquire).as_ref() }.unwrap_or(&OWN)
}

/// What `horolog_trace_prohibited` gives: this copy's own place.
#[doc(hidden)]
#[must_use]
pub fn own() -> *const Prohibited {
    &raw const OWN
}

/// Finds the place that all copies of the runtime have in common. Called where a copy starts and where it makes a session,
/// before it forbids or needs anything; the first call counts, so that a child of `fork` looks up nothing.
pub(crate) fn join() {
    static JOINED: AtomicBool = AtomicBool::new(false);
    if JOINED.swap(true, AcqRel) {
        return;
    }
    // SAFETY: a look-up by a constant name in the modules of the process; the symbol of this name is a function of this
    // signature, in every version.
    let found = unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"horolog_trace_prohibited".as_ptr());
        if symbol.is_null() {
            return;
        }
        transmute::<*mut libc::c_void, extern "C" fn() -> *const Prohibited>(symbol)()
    };
    // SAFETY: the static of a runtime; its version is its first word in every version.
    if found.is_null() || unsafe { (*found).version } != VERSION {
        return;
    }
    COMMON.store(found.cast_mut(), Release);
    if OWN.calls.load(SeqCst) {
        common().calls.store(true, SeqCst);
    }
}

/// This copy, whose code stays loaded from now on, has sessions.
pub(super) fn enlist() {
    let end = end_session as extern "C" fn() as *mut ();
    let null = core::ptr::null_mut();
    for place in &common().ends {
        match place.compare_exchange(null, end, AcqRel, Acquire) {
            Err(other) if other != end => {}
            _ => return,
        }
    }
}

/// Whether this process, or one that it is a child of, has put a filter of system calls around itself.
pub(crate) fn are_calls() -> bool {
    common().calls.load(Relaxed)
}

/// Whether the time-stamp counter is forbidden to a thread of this process.
pub(super) fn is_counter() -> bool {
    common().counter.load(Relaxed)
}

/// Why a child of `fork` must not begin a session.
pub(super) fn in_child() -> Option<Reason> {
    if is_counter() { Some(Reason::Counter) } else { are_calls().then_some(Reason::Filter) }
}

/// The sessions of all copies end, since stamping an event would end the process.
fn forbid_counter() {
    let common = common();
    if common.counter.swap(true, SeqCst) {
        return;
    }
    for place in &common.ends {
        let end = place.load(Acquire);
        if !end.is_null() {
            // SAFETY: `enlist` stored a function of this signature, whose module stays loaded.
            unsafe { transmute::<*mut (), extern "C" fn()>(end)() };
        }
    }
}

extern "C" fn end_session() {
    if let Some(session) = take_live() {
        session.retire();
        session.give_back();
        budget::of_this_process().count(Reason::Counter);
    }
}

/// How many filters of system calls this process has; before Linux 5.9 whether it has any. 0 where `/proc` is not there. Allocates
/// nothing.
pub(super) fn filters() -> u32 {
    let [filters, is_filtered] = numbers_in_status([b"Seccomp_filters:", b"Seccomp:"]);
    filters.or(is_filtered).unwrap_or(0)
}

/// The numbers behind these names in this process's `/proc/self/status`, units left out; `None` where that cannot be read. Allocates
/// nothing, and takes little of the stack, which a program may never use that far.
pub(super) fn numbers_in_status<const NAMES: usize>(names: [&[u8]; NAMES]) -> [Option<u32>; NAMES] {
    let mut found = [None; NAMES];
    // SAFETY: the path ends with zero.
    let file = unsafe { libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return found;
    }
    let (mut text, mut filled) = ([0_u8; 512], 0);
    loop {
        if filled == text.len() {
            // A longer line than that is none of a number.
            filled = 0;
        }
        let free = &mut text[filled..];
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { libc::read(file, free.as_mut_ptr().cast(), free.len()) };
        let Some(read) = usize::try_from(read).ok().filter(|&read| read > 0) else { break };
        filled += read;
        let end = text[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        for (name, place) in names.iter().zip(&mut found) {
            *place = place.or_else(|| number_in(&text[..end], name));
        }
        text.copy_within(end..filled, 0);
        filled -= end;
    }
    // SAFETY: a descriptor of ours.
    unsafe { libc::close(file) };
    found
}

/// The number behind a name in lines of a `status` file.
fn number_in(status: &[u8], name: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    core::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// A system call without the C library, whose functions the callers of this replace.
#[cfg(target_arch = "x86_64")]
fn call(number: c_long, arguments: [c_ulong; 5]) -> c_long {
    let [a, b, c, d, e] = arguments;
    let result: c_long;
    // SAFETY: what the program asked for, unchanged; the kernel overwrites these registers alone.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = -result as c_int };
        return -1;
    }
    result
}

/// `prctl`, which may forbid system calls or the counter.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[must_use]
pub fn prctl(option: c_int, arguments: [c_ulong; 4]) -> c_int {
    let [a, b, c, d] = arguments;
    let strict = option == libc::PR_SET_SECCOMP && a == libc::SECCOMP_MODE_STRICT as c_ulong;
    if strict || (option == libc::PR_SET_TSC && a == libc::PR_TSC_SIGSEGV as c_ulong) {
        // Before: a signal handler may emit right behind the call.
        forbid_counter();
    }
    let result = call(libc::SYS_prctl, [option as c_ulong, a, b, c, d]);
    if option == libc::PR_SET_SECCOMP && result == 0 {
        common().calls.store(true, SeqCst);
    }
    result as c_int
}

/// `syscall(SYS_seccomp, ...)`, which may forbid system calls.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[must_use]
pub fn seccomp(operation: c_ulong, flags: c_ulong, arguments: c_ulong) -> c_long {
    if operation == libc::SECCOMP_SET_MODE_STRICT as c_ulong && flags == 0 && arguments == 0 {
        forbid_counter();
    }
    let result = call(libc::SYS_seccomp, [operation, flags, arguments, 0, 0]);
    let sets = operation <= libc::SECCOMP_SET_MODE_FILTER as c_ulong;
    if sets && result >= 0 {
        common().calls.store(true, SeqCst);
    }
    result
}

/// What a runtime library exports beside its own. `mlockall`, `prctl` and `syscall` wrap the C library's and do what those
/// do. Of the latter two: nothing else tells, without a system call, that a program has forbidden itself system calls or the time-stamp counter.
#[macro_export]
macro_rules! runtime_library {
    () => {
        /// Asked by gcc's AddressSanitizer, where the program has no options of its own: a library that was preloaded before
        /// it and replaces no function of memory is no reason to end the program.
        #[unsafe(no_mangle)]
        extern "C" fn __asan_default_options() -> *const core::ffi::c_char {
            c"verify_asan_link_order=0".as_ptr()
        }

        /// As the C library's, but for the memory of a session.
        #[unsafe(no_mangle)]
        extern "C" fn mlockall(flags: core::ffi::c_int) -> core::ffi::c_int {
            $crate::__private::locked_memory::mlockall(flags)
        }

        #[cfg(target_arch = "x86_64")]
        mod prohibitions {
            use core::ffi::{c_int, c_long, c_ulong};
            use $crate::__private::prohibited;

            /// Where every copy of the runtime in the process keeps what is forbidden.
            #[unsafe(no_mangle)]
            extern "C" fn horolog_trace_prohibited() -> *const prohibited::Prohibited {
                prohibited::own()
            }

            #[unsafe(no_mangle)]
            extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
                prohibited::prctl(option, [a, b, c, d])
            }

            extern "C" fn by_number(
                _: c_long,
                option: c_int,
                a: c_ulong,
                b: c_ulong,
                c: c_ulong,
                d: c_ulong,
            ) -> c_long {
                c_long::from(prohibited::prctl(option, [a, b, c, d]))
            }

            extern "C" fn seccomp(_: c_long, operation: c_ulong, flags: c_ulong, rest: c_ulong) -> c_long {
                prohibited::seccomp(operation, flags, rest)
            }

            /// As the C library has it: a call may come back twice, or on another stack, so that there may be no frame here.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn syscall() -> c_long {
                core::arch::naked_asm!(
                    "cmp rdi, 317", // seccomp
                    "je {seccomp}",
                    "cmp rdi, 157", // prctl
                    "je {prctl}",
                    "mov rax, rdi",
                    "mov rdi, rsi",
                    "mov rsi, rdx",
                    "mov rdx, rcx",
                    "mov r10, r8",
                    "mov r8, r9",
                    "mov r9, [rsp + 8]",
                    "syscall",
                    "cmp rax, -4095",
                    "jae 2f",
                    "ret",
                    "2:",
                    "neg eax",
                    "push rax",
                    "call __errno_location@PLT",
                    "pop rcx",
                    "mov [rax], ecx",
                    "mov rax, -1",
                    "ret",
                    seccomp = sym seccomp,
                    prctl = sym by_number,
                );
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_where_the_kernel_counts_them() {
        let status = b"Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\nVmLck:\t 12 kB\n";
        let numbers = [b"Seccomp:".as_slice(), b"Seccomp_filters:", b"VmLck:", b"Threads:"];
        assert_eq!(numbers.map(|name| number_in(status, name)), [Some(2), Some(3), Some(12), None]);
        assert_eq!(number_in(b"", b"Seccomp:"), None);
        assert_eq!(number_in(b"VmSize:\t  90 kB\nVmLck:\t  120 kB\n", b"VmLck:"), Some(120));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_functions_give_what_the_kernel_gives() {
        assert_eq!(prctl(libc::PR_GET_SECCOMP, [0; 4]), 0);
        // SAFETY: errno is this thread's own.
        let errno = || unsafe { *libc::__errno_location() };
        assert_eq!((prctl(-1, [0; 4]), errno()), (-1, libc::EINVAL));
        let null = seccomp(libc::SECCOMP_SET_MODE_FILTER as c_ulong, 0, 0);
        assert_eq!((null, errno(), are_calls()), (-1, libc::EFAULT, false));
    }
}
