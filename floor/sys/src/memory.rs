//! Locked and touched memory, so that no page fault delays a job.

use crate::Error;

/// Keeps every page of this process, present and future, in memory.
///
/// # Errors
/// `EPERM` or `ENOMEM` where the limit on locked memory is too low.
pub fn lock_all() -> Result<(), Error> {
    // SAFETY: the call takes flags and changes no contents.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0 {
        Ok(())
    } else {
        Err(Error::last_os(
            "mlockall(MCL_CURRENT | MCL_FUTURE)",
            "run as root, give the program CAP_IPC_LOCK, or raise the limit (ulimit -l unlimited)",
        ))
    }
}

/// Undoes [`lock_all`].
pub fn unlock_all() {
    // SAFETY: the call takes nothing and changes no contents; it cannot fail in a way that matters.
    unsafe { libc::munlockall() };
}

/// Touches the next `BYTES` below the calling thread's stack pointer, so that they are present.
#[inline(never)]
pub fn touch_stack<const BYTES: usize>() {
    let mut area = [0_u8; BYTES];
    for at in (0..BYTES).step_by(4096) {
        area[at] = 1;
        std::hint::black_box(&mut area[at]);
    }
    std::hint::black_box(&area);
}

/// Page faults of the calling thread so far: minor and major.
#[must_use]
pub fn page_faults() -> (u64, u64) {
    let usage = crate::usage::of_this_thread();
    (usage.minor_faults, usage.major_faults)
}
