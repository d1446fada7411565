//! The words of glibc's `pthread_mutex_t`: part of its ABI, since the static initialisers write them.
//!
//! glibc reads bits 0 to 9 of the kind and ignores the others. The library marks a mutex there as decided, so that a mutex
//! that is initialised anew is a new one, wherever it lies, and no table has to know when memory is given back.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};

/// What is decided about a mutex stays until it is initialised again.
pub(super) const DECIDED: c_int = 1 << 30;
/// The protocol is this library's, not the program's own.
pub(super) const GIVEN: c_int = 1 << 29;
/// Its owner ended without an unlock, and a thread waited: it stays locked.
const ABANDONED: c_int = 1 << 28;
/// `PTHREAD_MUTEX_PRIO_INHERIT_NP`.
pub(super) const INHERIT: c_int = 32;
/// `PTHREAD_MUTEX_PRIO_PROTECT_NP`.
pub(super) const PROTECT: c_int = 64;
/// The process-shared bit, which robust mutexes have as well.
pub(super) const SHARED: c_int = 128;
/// Type, and the word that elision is not wanted.
pub(super) const KNOWN: c_int = 3 | 512;
/// The place of a ceiling.
const CEILING_AT: u32 = 16;
const CEILING: c_int = 0x7f;

const LOCK: usize = 0;
const COUNT: usize = 4;
const OWNER: usize = 8;
const USERS: usize = 12;
const KIND: usize = 16;

/// The mutex at an address that the program handed to a function of mutexes.
#[derive(Clone, Copy)]
pub(super) struct Mutex(pub(super) usize);

impl Mutex {
    fn word(self, offset: usize) -> &'static AtomicI32 {
        // SAFETY: the program calls a function that takes an initialised mutex of 40 aligned bytes at this address, which
        // lives as long as this call; the C library reads and writes the same words by atomic instructions. The reference
        // does not leave the expression that asks for it.
        unsafe { &*((self.0 + offset) as *const AtomicI32) }
    }

    pub(super) fn kind(self) -> c_int {
        self.word(KIND).load(Ordering::Acquire)
    }

    /// The kind becomes `new`, or is told where it was not `seen` any more.
    pub(super) fn set_kind(self, seen: c_int, new: c_int) -> Result<(), c_int> {
        self.word(KIND).compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    /// Whether no thread holds it or waits with it on a condition variable.
    pub(super) fn is_free(self) -> bool {
        [LOCK, OWNER, USERS].into_iter().all(|offset| self.word(offset).load(Ordering::Relaxed) == 0)
    }

    pub(super) fn owner(self) -> c_int {
        self.word(OWNER).load(Ordering::Relaxed)
    }

    pub(super) fn lock_word(self) -> c_int {
        self.word(LOCK).load(Ordering::Relaxed)
    }

    pub(super) fn lock_address(self) -> *mut c_int {
        self.word(LOCK).as_ptr()
    }

    /// What the C library notes of a thread that has got it under inheritance.
    pub(super) fn take(self, thread: c_int) {
        self.word(COUNT).store(1, Ordering::Relaxed);
        self.word(OWNER).store(thread, Ordering::Relaxed);
        self.word(USERS).fetch_add(1, Ordering::Relaxed);
    }

    /// Its owner ended without an unlock: nobody gets it any more.
    pub(super) fn abandon(self) {
        self.word(KIND).fetch_or(ABANDONED, Ordering::AcqRel);
    }

    /// Gives it up for an owner that is another process's thread.
    pub(super) fn give_up(self) {
        self.word(OWNER).store(0, Ordering::Relaxed);
        self.word(USERS).store(0, Ordering::Relaxed);
        self.word(LOCK).store(0, Ordering::Release);
    }
}

/// A kind with this ceiling and inheritance below it.
pub(super) fn with_ceiling(kind: c_int, ceiling: u8) -> c_int {
    with_inheritance(kind) | c_int::from(ceiling) << CEILING_AT
}

/// A kind with inheritance.
pub(super) fn with_inheritance(kind: c_int) -> c_int {
    kind | INHERIT | DECIDED | GIVEN
}

/// Whether a kind has its protocol from this library.
pub(super) fn is_given(kind: c_int) -> bool {
    // A mutex that is destroyed has all bits.
    kind >= 0 && kind & GIVEN != 0
}

/// The ceiling of a kind; 0: none.
pub(super) fn ceiling(kind: c_int) -> c_int {
    // A mutex that is destroyed has all bits.
    if kind < 0 { 0 } else { kind >> CEILING_AT & CEILING }
}

/// Whether this library gave it inheritance, and it is of a type whose unlock asks for no owner by itself.
pub(super) fn is_normal_under_protocol(kind: c_int) -> bool {
    let is_plain = [libc::PTHREAD_MUTEX_NORMAL, 3].contains(&(kind & 3));
    is_given(kind) && is_plain
}

/// Whether this library gave it inheritance, and it checks for errors.
pub(super) fn is_checking_under_protocol(kind: c_int) -> bool {
    is_given(kind) && kind & 3 == libc::PTHREAD_MUTEX_ERRORCHECK
}

/// Whether its owner ended without an unlock.
pub(super) fn is_abandoned(kind: c_int) -> bool {
    is_given(kind) && kind & ABANDONED != 0
}

/// Whether its holder may ask for it again without a wait: recursive, or checking for errors.
pub(super) fn knows_its_owner(kind: c_int) -> bool {
    [libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_ERRORCHECK].contains(&(kind & 3))
}
