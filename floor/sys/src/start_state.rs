//! What this process was started with and its language's runtime changes before `main`: ignored signals, the signal mask, and closed standard
//! streams. A program that is started in its name gets it as it was.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals that were ignored, and that were blocked, bit by bit: signal 1 is the lowest.
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Which of the descriptors 0 to 2 were closed.
static CLOSED: AtomicU64 = AtomicU64::new(0);

const SIGNALS: i32 = 64;

/// Called by the dynamic linker before `main`, and so before the runtime opens what is closed and ignores SIGPIPE.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// The kernel's own form: the C library's calls leave out the two signals that it uses itself.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

static IGNORES: KernelAction = KernelAction { handler: libc::SIG_IGN, flags: 0, restorer: 0, mask: 0 };
/// Bytes of a set of signals.
const SET: usize = 8;

/// Asks for what happens at a signal, or sets it.
///
/// # Safety
/// What is set may be set between fork and exec.
unsafe fn action(signal: i32, new: *const KernelAction, old: *mut KernelAction) -> bool {
    // SAFETY: both point to such a struct, or are null.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, SET) == 0 }
}

extern "C" fn note() {
    // SAFETY: the calls only fill what is theirs, or ask.
    unsafe {
        let mut blocked = 0_u64;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            std::ptr::null::<u64>(),
            &raw mut blocked,
            SET,
        );
        BLOCKED.store(blocked, Ordering::Relaxed);
        for signal in 1..=SIGNALS {
            let mut found = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
            if action(signal, std::ptr::null(), &raw mut found) && found.handler == libc::SIG_IGN {
                IGNORED.fetch_or(bit(signal), Ordering::Relaxed);
            }
        }
        for stream in 0..3 {
            if libc::fcntl(stream, libc::F_GETFD) == -1 {
                CLOSED.fetch_or(1 << stream, Ordering::Relaxed);
            }
        }
    }
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Has `command` started with the ignored and blocked signals and the closed standard streams with which this process was. Its standard
/// streams have to be those of this process.
pub fn pass_on(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes system calls that may be made there.
    unsafe {
        command.pre_exec(|| {
            let (ignored, blocked) = (IGNORED.load(Ordering::Relaxed), BLOCKED.load(Ordering::Relaxed));
            for signal in (1..=SIGNALS).filter(|&signal| ignored & bit(signal) != 0) {
                action(signal, &raw const IGNORES, std::ptr::null_mut());
            }
            let set = &raw const blocked;
            libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, set, std::ptr::null_mut::<u64>(), SET);
            let closed = CLOSED.load(Ordering::Relaxed);
            for stream in (0..3).filter(|stream| closed & (1 << stream) != 0) {
                libc::close(stream);
            }
            Ok(())
        });
    }
}
