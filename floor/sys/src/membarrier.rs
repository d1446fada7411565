//! Making every thread of this process pass a barrier: what has to follow a change of its code, and what interrupts it.

use crate::Error;

const REGISTER_SYNC_CORE: libc::c_int = 1 << 6;
const SYNC_CORE: libc::c_int = 1 << 5;
const REGISTER_EXPEDITED: libc::c_int = 1 << 4;
const EXPEDITED: libc::c_int = 1 << 3;

/// Returns once every thread of this process that runs has passed a core-serialising instruction, so that none executes
/// instruction bytes that it fetched before: `membarrier(PRIVATE_EXPEDITED_SYNC_CORE)`. Threads that do not run pass
/// one on their way back to user space. Other processes are not reached.
///
/// # Errors
/// Where the kernel or a filter refuses the call.
pub fn sync_core() -> Result<(), Error> {
    if membarrier(SYNC_CORE) == 0 {
        return Ok(());
    }
    // EPERM means that this address space has not registered yet: the first time, and after exec.
    if membarrier(REGISTER_SYNC_CORE) == 0 && membarrier(SYNC_CORE) == 0 {
        return Ok(());
    }
    Err(Error::last_os(
        "membarrier(PRIVATE_EXPEDITED_SYNC_CORE)",
        "needs Linux 4.16 or newer, and a seccomp filter that lets it pass",
    ))
}

/// Interrupts every other CPU on which a thread of this process runs now, and returns once they have all answered:
/// `membarrier(PRIVATE_EXPEDITED)`, an inter-processor interrupt that calls a function of the kernel and nothing more.
///
/// # Errors
/// Where the kernel or a filter refuses the call.
pub fn interrupt_our_cpus() -> Result<(), Error> {
    let registered = || membarrier(REGISTER_EXPEDITED) == 0;
    if membarrier(EXPEDITED) == 0 || (registered() && membarrier(EXPEDITED) == 0) {
        return Ok(());
    }
    Err(Error::last_os(
        "membarrier(PRIVATE_EXPEDITED)",
        "needs Linux 4.14 or newer, and a seccomp filter that lets it pass",
    ))
}

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes no pointer and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_by_itself_and_may_be_repeated() {
        for _ in 0..3 {
            sync_core().expect("this kernel has membarrier");
            interrupt_our_cpus().expect("this kernel has membarrier");
        }
    }
}
