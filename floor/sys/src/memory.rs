//! Locked and touched memory, so that no page fault delays a job.

use crate::Error;
use crate::machine::Capability;
use crate::rights;

/// The remedy for a limit on locked memory that is too low.
pub const LOCKED_MEMORY_REMEDY: &str = concat!(
    "run as root, or with CAP_IPC_LOCK: `",
    crate::setcap_command!(),
    "`; or raise the limit `memlock unlimited` in /etc/security/limits.d (a unit: LimitMEMLOCK=infinity)"
);

/// Keeps every page of this process, present and future, in memory.
///
/// # Errors
/// `EPERM` or `ENOMEM` where the limit on locked memory is too low.
pub fn lock_all() -> Result<(), Error> {
    // SAFETY: the call takes flags and changes no contents.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0 {
        Ok(())
    } else {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM);
        let call = "mlockall(MCL_CURRENT | MCL_FUTURE)".to_owned();
        Err(rights::refused(("locked memory", Capability::IpcLock), call, errno, LOCKED_MEMORY_REMEDY))
    }
}

/// Tries [`lock_all`] and undoes it.
///
/// # Errors
/// As [`lock_all`].
pub fn may_lock_all() -> Result<(), Error> {
    let tried = lock_all();
    unlock_all();
    tried
}

/// Undoes [`lock_all`].
pub fn unlock_all() {
    // SAFETY: the call takes nothing and changes no contents; it cannot fail in a way that matters.
    unsafe { libc::munlockall() };
}

/// From now on the allocator keeps what is freed, up to a gigabyte at the end of each of its heaps, instead of giving it back
/// to the kernel and having it zeroed page by page when it is wanted again. For work that allocates and frees the same
/// hundreds of kilobytes over and over. Only glibc's allocator knows this; it is a wish.
pub fn keep_freed() {
    #[cfg(target_env = "gnu")]
    {
        const MOST: libc::c_int = 1 << 30;
        // The largest that glibc accepts on 64 bits; from this size on each piece is a mapping of its own.
        const MAPPED: libc::c_int = 32 << 20;
        // SAFETY: the calls take two numbers, are thread-safe, and change no contents.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, MOST);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        }
    }
}

/// From now on all threads take their memory from one heap. The C library reserves 64 MiB of addresses for each further heap, and
/// a process that locks its memory locks these, too. For a process whose threads do not allocate while it matters; there is no way
/// back. Only glibc's allocator knows this.
pub fn one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes two numbers, is thread-safe, and changes no contents.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Bytes of memory that this machine has; 0 where the kernel does not say.
#[must_use]
pub fn total_bytes() -> u64 {
    // SAFETY: the calls take a constant.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page).unwrap_or(0))
}

/// Page faults of the calling thread so far: minor and major.
#[must_use]
pub fn page_faults() -> (u64, u64) {
    let usage = crate::usage::of_this_thread();
    (usage.minor_faults, usage.major_faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own, whose heap is nobody else's.
    #[cfg(target_env = "gnu")]
    #[test]
    fn what_is_freed_is_not_asked_of_the_kernel_again() {
        keep_freed();
        std::thread::spawn(|| {
            let some = || std::hint::black_box(vec![1_u8; 1 << 20]);
            drop(some());
            let (before, _) = page_faults();
            (0..50).for_each(|_| drop(some()));
            let (after, _) = page_faults();
            // 256 pages each time, if they were given back.
            assert!(after - before < 50 * 256 / 4, "{before} {after}");
        })
        .join()
        .unwrap();
    }
}
