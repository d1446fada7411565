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
        self.acquire();
        Guard { lock: self }
    }

    /// Gives up what [`Lock::acquire`] took, in the child of a fork too.
    pub(super) fn release(&self) {
        self.holder.store(0, Ordering::Release);
    }

    /// Locks without a guard, for the time of a fork.
    pub(super) fn acquire(&self) {
        let me = std::process::id();
        loop {
            let holder = self.holder.load(Ordering::Relaxed);
            if holder != me
                && self.holder.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                if self.value.load(Ordering::Relaxed).is_null() {
                    self.value.store(Box::into_raw(Box::default()), Ordering::Relaxed);
                }
                return;
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
        self.lock.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_and_the_latest_value() {
        static LOCK: Lock<Vec<u32>> = Lock::new();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                std::thread::spawn(move || {
                    for _ in 0..50 {
                        let mut guard = LOCK.lock();
                        let mut next = guard.get().clone();
                        next.push(number);
                        guard.set(next);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(LOCK.lock().get().len(), 200);
    }

    #[test]
    fn a_lock_held_by_a_thread_that_a_fork_left_behind_is_taken_over() {
        let lock: Lock<u32> = Lock::new();
        lock.lock().set(7);
        // What a child finds when another thread of its parent held the lock: the parent's number.
        lock.holder.store(std::process::id() ^ 1, Ordering::Relaxed);
        assert_eq!(*lock.lock().get(), 7);
        assert_eq!(lock.holder.load(Ordering::Relaxed), 0);
    }
}
