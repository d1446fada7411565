//! A lock that a fork in its middle does not leave locked in the child.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Mutual exclusion among the threads of one process. A child process, whose parent's other thread may have held it at
/// the fork and does not exist there, takes it over: the value is only ever replaced, by one store, so that the child
/// finds the old one or the new.
pub(super) struct Lock<T> {
    /// The process whose thread holds it, or 0.
    holder: AtomicU32,
    /// From a box, or null: the default.
    value: AtomicPtr<T>,
}

impl<T: Default> Lock<T> {
    pub(super) const fn new() -> Lock<T> {
        Lock { holder: AtomicU32::new(0), value: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Waits in steps of 50 us: switching is rare, and never on a traced path.
    pub(super) fn lock(&self) -> Guard<'_, T> {
        let me = std::process::id();
        loop {
            let holder = self.holder.load(Ordering::Relaxed);
            if holder != me
                && self.holder.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                if self.value.load(Ordering::Relaxed).is_null() {
                    self.value.store(Box::into_raw(Box::default()), Ordering::Relaxed);
                }
                return Guard { lock: self };
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
}

pub(super) struct Guard<'a, T: Default> {
    lock: &'a Lock<T>,
}

impl<T: Default> Guard<'_, T> {
    pub(super) fn get(&self) -> &T {
        // SAFETY: `lock` stored a box's pointer, and only `set`, which needs the guard whole, frees one.
        unsafe { &*self.lock.value.load(Ordering::Relaxed) }
    }

    pub(super) fn set(&mut self, value: T) {
        let old = self.lock.value.swap(Box::into_raw(Box::new(value)), Ordering::AcqRel);
        // SAFETY: `old` came from a box, and nothing refers to it: `get` borrows the guard.
        drop(unsafe { Box::from_raw(old) });
    }
}

impl<T: Default> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.holder.store(0, Ordering::Release);
    }
}
