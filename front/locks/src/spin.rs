//! Spinlocks of user space.

use crate::class;
use crate::wrapper::{export, giving, taking};

const fn spin(_: usize) -> u64 {
    class::SPIN
}

taking!(lock(lock), SPIN_LOCK, spin);
taking!(trylock(lock), SPIN_TRYLOCK, spin);
giving!(unlock, SPIN_UNLOCK, spin);

export!(lock(1): pthread_spin_lock);
export!(trylock(1): pthread_spin_trylock);
export!(unlock(1): pthread_spin_unlock);
