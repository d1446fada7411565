//! The shared memory as words: every access is checked against its bounds and atomic.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// A range of memory that this process may read and write as long as the value lives, and that other threads and
/// processes may change at any moment. All access goes through atomic words, so that a word changed under the reader's
/// eyes is a wrong number at worst.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    base: *mut u8,
    length: usize,
    lives: core::marker::PhantomData<&'a AtomicU64>,
}

// SAFETY: all access is by atomic words.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    /// A view of `length` bytes at `base`.
    ///
    /// # Safety
    /// The range is mapped readable and writable, aligned to 128 bytes, and stays so for `'a`; nobody in this process
    /// touches it but through atomic words.
    #[must_use]
    pub unsafe fn new(base: *mut u8, length: usize) -> Memory<'a> {
        assert!(base.addr().is_multiple_of(128), "the memory is aligned to cache lines");
        Memory { base, length, lives: core::marker::PhantomData }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// `count` values of type `T` from `offset` on; `None` outside the memory or at an offset that `T` does not allow.
    #[must_use]
    pub fn slice<T: Shared>(&self, offset: usize, count: usize) -> Option<&'a [T]> {
        let bytes = count.checked_mul(size_of::<T>())?;
        let inside = offset.checked_add(bytes)? <= self.length;
        if !inside || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: the range lies inside the memory, is aligned as `T` needs it (the base is aligned to 128, the most
        // that a `Shared` type asks), every bit pattern is a valid `T`, and `T` is made of atomic words alone.
        Some(unsafe { core::slice::from_raw_parts(self.base.add(offset).cast::<T>(), count) })
    }

    /// One value.
    #[must_use]
    pub fn one<T: Shared>(&self, offset: usize) -> Option<&'a T> {
        self.slice(offset, 1)?.first()
    }
}

/// Types that may stand in shared memory.
///
/// # Safety
/// Made of atomic integers (and unread padding) alone, for which every bit pattern is valid; aligned to at most 128.
pub unsafe trait Shared {}

// SAFETY: atomic integers.
unsafe impl Shared for AtomicU32 {}
// SAFETY: atomic integers.
unsafe impl Shared for AtomicU64 {}
// SAFETY: atomic integers and padding that nobody reads.
unsafe impl Shared for super::per_thread::RingControl {}
