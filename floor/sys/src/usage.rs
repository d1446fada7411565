//! What the kernel counted for a thread.

/// Counts since the thread began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Times that it gave the processor up by itself.
    pub voluntary_switches: u64,
    /// Times that the kernel took the processor away.
    pub involuntary_switches: u64,
    /// Page faults served without the disk.
    pub minor_faults: u64,
    /// Page faults that had to wait for the disk.
    pub major_faults: u64,
}

/// The counts of the calling thread.
#[must_use]
pub fn of_this_thread() -> Usage {
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable; RUSAGE_THREAD of the calling thread cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    Usage {
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}
