//! Words that a process shares with the processes that it forks: what one of them has written outlives it.

use crate::Error;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Zeroed words in a mapping of their own, which a child of `fork` shares. Dropping it unmaps it in this process alone.
///
/// ```
/// use std::sync::atomic::Ordering;
/// let words = horolog_sys::shared_words::SharedWords::new(8).expect("some memory");
/// words[7].store(1, Ordering::Relaxed);
/// assert_eq!(words.iter().map(|word| word.load(Ordering::Relaxed)).sum::<u64>(), 1);
/// ```
#[derive(Debug)]
pub struct SharedWords {
    first: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the words are atomics, which any thread may use; only this value unmaps them.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// `count` words, all zero.
    ///
    /// # Errors
    /// Where the kernel has no memory for them.
    pub fn new(count: usize) -> Result<SharedWords, Error> {
        let refused = || Error::last_os(format!("mmap of {count} shared words"), "free some memory");
        let bytes = count.max(1).checked_mul(size_of::<AtomicU64>()).ok_or_else(refused)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping; no existing one is touched.
        let first = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0)
        };
        if first == libc::MAP_FAILED {
            return Err(refused());
        }
        let first = NonNull::new(first.cast::<AtomicU64>()).ok_or_else(refused)?;
        Ok(SharedWords { first, count: count.max(1) })
    }

    /// How many bytes its mapping takes, whole pages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.count * size_of::<AtomicU64>()).next_multiple_of(4096)
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `count` zeroed words, is aligned to a page, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}
