//! Mutexes of POSIX and of C11 (whose `mtx_t` holds a `pthread_mutex_t`).

use crate::class;
use crate::protocol::{acquire, after, attempt, before, tried, unlocked};
use crate::wrapper::{export, giving, taking};
use core::ffi::c_int;

/// The kind word of glibc's `pthread_mutex_t`: part of its ABI, since the static initialisers write it.
const KIND_OFFSET: usize = 16;

/// Class word of the mutex at this address.
pub(crate) fn mutex_class(mutex: usize) -> u64 {
    // SAFETY: the program handed the address to a function that takes an initialised mutex of 40 bytes; the real function
    // reads the same word. Volatile, since another thread may be initialising it in a broken program.
    let kind = unsafe { ((mutex + KIND_OFFSET) as *const c_int).read_volatile() };
    let flag = |mask: c_int, flag: u64| if kind & mask == 0 { 0 } else { flag };
    let recursive = if kind & 3 == libc::PTHREAD_MUTEX_RECURSIVE { class::RECURSIVE } else { 0 };
    class::MUTEX
        | recursive
        | flag(16, class::ROBUST)
        | flag(32, class::PRIORITY_INHERITANCE)
        | flag(64, class::PRIORITY_CEILING)
        | flag(128, class::PROCESS_SHARED)
}

/// The result of C11 for one of POSIX, as glibc's `threads.h` numbers them.
fn c11(outcome: c_int) -> c_int {
    match outcome {
        0 => 0,
        libc::EBUSY => 1,
        libc::ENOMEM => 3,
        libc::ETIMEDOUT => 4,
        _ => 2,
    }
}

taking!(lock(mutex), MUTEX_LOCK, mutex_class, before, |mutex| acquire(mutex, None), after);
taking!(trylock(mutex), MUTEX_TRYLOCK, mutex_class, before, attempt, tried);
taking!(
    timedlock(mutex, until),
    MUTEX_TIMEDLOCK,
    mutex_class,
    before,
    |mutex, until| acquire(mutex, Some((libc::CLOCK_REALTIME, until))),
    after
);
taking!(
    clocklock(mutex, clock, until),
    MUTEX_CLOCKLOCK,
    mutex_class,
    before,
    // An int in a register: its upper half is anything.
    |mutex, clock, until| acquire(mutex, Some((clock as c_int, until))),
    after
);
giving!(unlock, MUTEX_UNLOCK, mutex_class, unlocked);
taking!(c11_lock(mutex), MTX_LOCK, mutex_class, before, |mutex| acquire(mutex, None).map(c11), after);
taking!(c11_trylock(mutex), MTX_TRYLOCK, mutex_class, before, |mutex| attempt(mutex).map(c11), after);
taking!(
    c11_timedlock(mutex, until),
    MTX_TIMEDLOCK,
    mutex_class,
    before,
    |mutex, until| acquire(mutex, Some((libc::CLOCK_REALTIME, until))).map(c11),
    after
);
giving!(c11_unlock, MTX_UNLOCK, mutex_class, unlocked);

// The names with underscores are glibc's own, to which old libraries are linked.
export!(lock(1): pthread_mutex_lock __pthread_mutex_lock);
export!(trylock(1): pthread_mutex_trylock __pthread_mutex_trylock);
export!(timedlock(2): pthread_mutex_timedlock);
export!(clocklock(3): pthread_mutex_clocklock);
export!(unlock(1): pthread_mutex_unlock __pthread_mutex_unlock);
export!(c11_lock(1): mtx_lock);
export!(c11_trylock(1): mtx_trylock);
export!(c11_timedlock(2): mtx_timedlock);
export!(c11_unlock(1): mtx_unlock);
