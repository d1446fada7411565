//! Read-write locks.

use crate::class;
use crate::wrapper::{export, giving, taking};

const fn read(_: usize) -> u64 {
    class::READ
}

const fn write(_: usize) -> u64 {
    class::WRITE
}

taking!(rdlock(lock), RDLOCK, read);
taking!(tryrdlock(lock), TRYRDLOCK, read);
taking!(timedrdlock(lock, until), TIMEDRDLOCK, read);
taking!(clockrdlock(lock, clock, until), CLOCKRDLOCK, read);
taking!(wrlock(lock), WRLOCK, write);
taking!(trywrlock(lock), TRYWRLOCK, write);
taking!(timedwrlock(lock, until), TIMEDWRLOCK, write);
taking!(clockwrlock(lock, clock, until), CLOCKWRLOCK, write);
// Which of the two it ends is not in the call: whoever reads the trace knows it from the acquisition.
giving!(unlock, RWLOCK_UNLOCK, read);

export!(rdlock(1): pthread_rwlock_rdlock __pthread_rwlock_rdlock);
export!(tryrdlock(1): pthread_rwlock_tryrdlock __pthread_rwlock_tryrdlock);
export!(timedrdlock(2): pthread_rwlock_timedrdlock);
export!(clockrdlock(3): pthread_rwlock_clockrdlock);
export!(wrlock(1): pthread_rwlock_wrlock __pthread_rwlock_wrlock);
export!(trywrlock(1): pthread_rwlock_trywrlock __pthread_rwlock_trywrlock);
export!(timedwrlock(2): pthread_rwlock_timedwrlock);
export!(clockwrlock(3): pthread_rwlock_clockwrlock);
export!(unlock(1): pthread_rwlock_unlock __pthread_rwlock_unlock);
