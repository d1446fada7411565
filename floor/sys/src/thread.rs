//! Identity of threads.

use crate::Error;

/// The kernel's id of the calling thread.
#[must_use]
pub fn id() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// The calling thread's pointer: it differs from those of all other living threads of this process, and reading it takes one instruction.
#[inline(always)]
#[must_use]
pub fn pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the ABI of x86-64 keeps the thread pointer in the first word of its own block (ELF TLS, variant 2).
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: this register holds the thread pointer and may be read by any program.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem, pure));
    }
    pointer
}

/// Names the calling thread as the kernel's records show it: the first 15 bytes of `name`.
pub fn set_name(name: &str) {
    let mut bytes = [0_u8; 16];
    let mut length = name.len().min(15);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: `bytes` is a string that ends with zero within 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

/// Interrupts a sleep or a system call of the thread `tid` of this process.
///
/// # Errors
/// `ESRCH` where the thread has ended.
pub fn interrupt(tid: u32) -> Result<(), Error> {
    // SAFETY: tgkill takes integers; the signal's handler is installed by `prepare_interrupt`.
    let status = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as i32, interrupt_signal()) };
    if status == 0 { Ok(()) } else { Err(Error::last_os(format!("tgkill of thread {tid}"), "")) }
}

/// Installs the handler that makes [`interrupt`] end a sleep and nothing else.
///
/// # Errors
/// Where the kernel refuses.
pub fn prepare_interrupt() -> Result<(), Error> {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: an all-zero sigaction is valid; the handler does nothing, hence is safe in any context.
    let status = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(interrupt_signal(), &action, std::ptr::null_mut())
    };
    if status == 0 { Ok(()) } else { Err(Error::last_os("sigaction(SIGRTMIN + 5)", "")) }
}

/// A real-time signal that neither the C library nor common programs use.
fn interrupt_signal() -> i32 {
    libc::SIGRTMIN() + 5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Slept, monotonic_ns, sleep_until};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    #[test]
    fn living_threads_have_pointers_of_their_own() {
        let own = pointer();
        let other = std::thread::spawn(pointer).join().expect("it ends");
        assert!(own == pointer() && own != other && own != 0 && other != 0);
    }

    #[test]
    fn an_interrupt_ends_a_sleep() {
        prepare_interrupt().expect("installs");
        let tid = AtomicU32::new(0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tid.store(id(), Ordering::Release);
                while sleep_until(monotonic_ns() + 3_600_000_000_000) != Slept::Interrupted {}
                ended.store(true, Ordering::Release);
            });
            while !ended.load(Ordering::Acquire) {
                if tid.load(Ordering::Acquire) != 0 {
                    // The thread may have ended in between, which is what we wait for.
                    let _ = interrupt(tid.load(Ordering::Acquire));
                }
                // Signals that come without a pause are queued faster than the thread handles them.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
    }
}
