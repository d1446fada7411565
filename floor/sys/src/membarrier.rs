//! Making every thread of this process execute a serialising instruction: what has to follow a change of its code.

use crate::Error;

const REGISTER_SYNC_CORE: libc::c_int = 1 << 6;
const SYNC_CORE: libc::c_int = 1 << 5;

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
        }
    }
}
