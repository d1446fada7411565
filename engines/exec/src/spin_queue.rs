//! The queue of a spin lock across processors, in one word: whose turn it is, and who comes then.
//!
//! Of each processor one job at most waits for or holds a spin lock (decision 0018), so the queue holds processors, four bits each, the
//! first in the lowest bits. To join is one exchange, and so is to leave: there is no moment in which a processor has a place and
//! nobody knows which.
//!
//! Who waits may be preempted and does not see its turn come. So whoever preempts it leaves a mark and *then* looks at the queue; and who
//! hands a turn on leaves the queue and *then* looks for the mark. A fence stands between the two on either side, so at least one sees the
//! other.

use std::sync::atomic::{AtomicU64, Ordering};

/// The operations that the queue needs of a word of memory; loom's words have the same.
pub(crate) trait Word {
    fn new(value: u64) -> Self;
    fn load(&self) -> u64;
    /// Stores `new` where the word holds `current`; whether it did.
    fn replace(&self, current: u64, new: u64) -> bool;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> AtomicU64 {
        AtomicU64::new(value)
    }

    #[inline]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Acquire)
    }

    #[inline]
    fn replace(&self, current: u64, new: u64) -> bool {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

const BITS: u32 = 4;
const MASK: u64 = (1 << BITS) - 1;

/// So many processors may share a spin lock: as many numbers above zero as four bits have, and as many places as a word has.
pub(crate) const MOST: usize = MASK as usize;

/// The queue of one lock.
#[derive(Debug)]
pub(crate) struct SpinQueue<W = AtomicU64> {
    word: W,
}

impl<W: Word> SpinQueue<W> {
    pub(crate) fn new() -> SpinQueue<W> {
        SpinQueue { word: W::new(0) }
    }

    /// Joins behind all others; whether it is its turn at once. `who` is from 1 to [`MOST`], and not in the queue.
    #[inline]
    pub(crate) fn join(&self, who: u64) -> bool {
        loop {
            let queue = self.word.load();
            let places = u64::BITS - queue.leading_zeros();
            let shift = places.div_ceil(BITS) * BITS;
            if self.word.replace(queue, queue | (who << shift)) {
                return queue == 0;
            }
        }
    }

    /// Joins where no job has the lock or waits for it, and has it then; whether it did.
    #[inline]
    pub(crate) fn join_if_free(&self, who: u64) -> bool {
        self.word.replace(0, who)
    }

    /// Leaves without a turn. `false` where it is its turn already: then it stays.
    pub(crate) fn withdraw(&self, who: u64) -> bool {
        loop {
            let queue = self.word.load();
            if queue & MASK == who {
                return false;
            }
            let mut places = (0..u64::BITS).step_by(BITS as usize);
            let Some(shift) = places.find(|&shift| (queue >> shift) & MASK == who) else { return true };
            let before = queue & ((1 << shift) - 1);
            // The last place of the word has nothing behind it.
            let behind = queue.checked_shr(shift + BITS).unwrap_or(0) << shift;
            if self.word.replace(queue, before | behind) {
                return true;
            }
        }
    }

    /// Whose turn it is; 0: nobody's.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.word.load() & MASK
    }

    /// The first one leaves; whose turn it is then, 0: nobody's.
    #[inline]
    pub(crate) fn leave(&self) -> u64 {
        loop {
            let queue = self.word.load();
            if self.word.replace(queue, queue >> BITS) {
                return (queue >> BITS) & MASK;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic as la;
    use loom::thread;

    impl Word for la::AtomicU64 {
        fn new(value: u64) -> la::AtomicU64 {
            la::AtomicU64::new(value)
        }

        fn load(&self) -> u64 {
            la::AtomicU64::load(self, Ordering::Acquire)
        }

        fn replace(&self, current: u64, new: u64) -> bool {
            self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
    }

    #[test]
    fn first_in_first_out_to_the_last_place() {
        let queue: SpinQueue = SpinQueue::new();
        assert_eq!(queue.first(), 0);
        for who in 1..=MOST as u64 {
            assert_eq!((queue.join(who), queue.first()), (who == 1, 1));
        }
        for who in 2..=MOST as u64 {
            assert_eq!((queue.leave(), queue.first()), (who, who));
        }
        assert_eq!((queue.leave(), queue.first()), (0, 0));
        assert!(queue.join(7) && !queue.join(2));
        assert_eq!((queue.leave(), queue.leave()), (2, 0));
    }

    #[test]
    fn who_withdraws_leaves_the_others_in_their_order() {
        let queue: SpinQueue = SpinQueue::new();
        assert!(queue.withdraw(3) && queue.join_if_free(4) && !queue.join_if_free(3));
        for who in [1, 9, 15, 2] {
            assert!(!queue.join(who));
        }
        assert!(!queue.withdraw(4), "it has its turn");
        assert!(queue.withdraw(9) && queue.withdraw(9) && queue.withdraw(2));
        assert_eq!((queue.leave(), queue.leave(), queue.leave()), (1, 15, 0));
        // To the last place.
        (1..=MOST as u64).for_each(|who| _ = queue.join(who));
        assert!(queue.withdraw(MOST as u64) && queue.withdraw(2) && !queue.withdraw(1));
        for who in 3..MOST as u64 {
            assert_eq!(queue.leave(), who);
        }
        assert_eq!(queue.leave(), 0);
    }

    /// A job that waits is preempted while the lock is handed on: it has it, or somebody behind it has, and never both.
    #[test]
    fn who_withdraws_has_the_lock_or_the_next_one_has_it() {
        loom::model(|| {
            let queue = Arc::new(SpinQueue::<la::AtomicU64>::new());
            assert!(queue.join(1) && !queue.join(2) && !queue.join(3));
            let holder = {
                let queue = queue.clone();
                thread::spawn(move || queue.leave())
            };
            let is_away = queue.withdraw(2);
            let next = holder.join().expect("it ends");
            assert_eq!(queue.first(), if is_away { 3 } else { 2 });
            assert!(is_away || next == 2);
            // Told that it was handed the lock, it may have left the queue no more.
            assert!(next == 3 || !is_away);
        });
    }

    /// A lock that two others want, each holding what it guards alone.
    #[test]
    fn one_holds_it_at_a_time() {
        loom::model(|| {
            let queue = Arc::new(SpinQueue::<la::AtomicU64>::new());
            let guarded = Arc::new(loom::cell::UnsafeCell::new(()));
            let mut threads = Vec::new();
            for who in 1..=2 {
                let (queue, guarded) = (queue.clone(), guarded.clone());
                threads.push(thread::spawn(move || {
                    if !queue.join(who) {
                        while queue.first() != who {
                            thread::yield_now();
                        }
                    }
                    // Loom reports two threads that have it at once.
                    guarded.with_mut(|_| ());
                    let _ = queue.leave();
                }));
            }
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            assert_eq!(queue.first(), 0);
        });
    }

    /// Processor 2 waits and is preempted while the lock is handed to it: its agent learns of it, by its own look or by a kick.
    #[test]
    fn a_turn_that_comes_to_a_preempted_job_is_noticed() {
        loom::model(|| {
            let queue = Arc::new(SpinQueue::<la::AtomicU64>::new());
            let preempted = Arc::new(la::AtomicU64::new(0));
            let kicked = Arc::new(la::AtomicU64::new(0));
            assert!(queue.join(1) && !queue.join(2));
            let holder = {
                let (queue, preempted, kicked) = (queue.clone(), preempted.clone(), kicked.clone());
                thread::spawn(move || {
                    assert_eq!(queue.leave(), 2);
                    la::fence(Ordering::SeqCst);
                    if preempted.load(Ordering::SeqCst) != 0 {
                        kicked.store(1, Ordering::SeqCst);
                    }
                })
            };
            preempted.swap(1, Ordering::SeqCst);
            la::fence(Ordering::SeqCst);
            let has_seen = queue.first() == 2;
            holder.join().expect("it ends");
            assert!(has_seen || kicked.load(Ordering::SeqCst) == 1);
        });
    }
}
