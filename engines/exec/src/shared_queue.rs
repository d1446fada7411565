//! The queue of a spin lock for readers and writers across processors, in one word (decision 0023): who holds it, and who comes then.
//!
//! Of each processor one job at most waits for or holds a spin lock, so the queue holds processors, five bits each, the first in the lowest
//! bits: four for the processor, one for whether its job reads. Its first holds the lock, and where that one reads so do those that
//! read right behind it. To join and to leave are one exchange each, as in [`crate::spin_queue`], and what is said there of marks holds here, too.

use crate::spin_queue::Word;
use std::sync::atomic::AtomicU64;

const BITS: u32 = 5;
const MASK: u64 = (1 << BITS) - 1;
const READS: u64 = 1 << (BITS - 1);

/// So many processors may share such a lock: as many places as a word has.
pub(crate) const MOST: usize = (u64::BITS / BITS) as usize;

/// Where a request joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Behind all others.
    TaskFair,
    /// One that reads joins those that read behind the first writer of the queue, before all other writers.
    PhaseFair,
}

/// The queue of one lock.
#[derive(Debug)]
pub(crate) struct SharedQueue<W = AtomicU64> {
    word: W,
    order: Order,
}

fn places(queue: u64) -> u32 {
    (u64::BITS - queue.leading_zeros()).div_ceil(BITS)
}

fn at(queue: u64, place: u32) -> u64 {
    (queue >> (BITS * place)) & MASK
}

/// How many of a queue hold the lock.
fn holders(queue: u64) -> u32 {
    let places = places(queue);
    let readers = (0..places).take_while(|&place| at(queue, place) & READS != 0).count() as u32;
    readers.max(u32::from(places > 0))
}

/// The queue with a place more.
fn insert(queue: u64, place: u32, one: u64) -> u64 {
    let low = (1_u64 << (BITS * place)) - 1;
    // A queue of all places but one leaves room: each processor is in it once.
    (queue & low) | (one << (BITS * place)) | ((queue & !low) << BITS)
}

/// The queue with a place less.
fn remove(queue: u64, place: u32) -> u64 {
    let low = (1_u64 << (BITS * place)) - 1;
    (queue & low) | ((queue >> BITS) & !low)
}

fn place_of(queue: u64, who: u64) -> Option<u32> {
    (0..places(queue)).find(|&place| at(queue, place) & !READS == who)
}

impl<W: Word> SharedQueue<W> {
    pub(crate) fn new(order: Order) -> SharedQueue<W> {
        SharedQueue { word: W::new(0), order }
    }

    /// Joins; whether it holds the lock at once. `who` is from 1 to [`MOST`], and not in the queue.
    pub(crate) fn join(&self, who: u64, reads: bool) -> bool {
        loop {
            let queue = self.word.load();
            let all = places(queue);
            let place = match self.order {
                Order::PhaseFair if reads => {
                    let writer = (0..all).find(|&place| at(queue, place) & READS == 0);
                    let behind = writer.map_or(all, |writer| writer + 1);
                    (behind..all).find(|&place| at(queue, place) & READS == 0).unwrap_or(all)
                }
                _ => all,
            };
            let new = insert(queue, place, if reads { who | READS } else { who });
            if self.word.replace(queue, new) {
                return place < holders(new);
            }
        }
    }

    /// Whether a processor's job holds the lock.
    #[inline]
    pub(crate) fn has_turn(&self, who: u64) -> bool {
        let queue = self.word.load();
        place_of(queue, who).is_some_and(|place| place < holders(queue))
    }

    /// A processor's job leaves; the bits of those that hold the lock since then.
    pub(crate) fn leave(&self, who: u64) -> u64 {
        loop {
            let queue = self.word.load();
            let Some(place) = place_of(queue, who) else { return 0 };
            let left = remove(queue, place);
            if self.word.replace(queue, left) {
                let held = holders(queue) - u32::from(place < holders(queue));
                return (held..holders(left)).fold(0, |all, place| all | 1 << (at(left, place) & !READS));
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

    fn bits(all: &[u64]) -> u64 {
        all.iter().fold(0, |bits, who| bits | 1 << who)
    }

    #[test]
    fn readers_hold_it_together_to_the_last_place() {
        for order in [Order::TaskFair, Order::PhaseFair] {
            let queue: SharedQueue = SharedQueue::new(order);
            for who in 1..=MOST as u64 {
                assert!(!queue.has_turn(who) && queue.join(who, true) && queue.has_turn(who));
            }
            for who in (1..=MOST as u64).rev() {
                assert_eq!((queue.leave(who), queue.has_turn(who)), (0, false));
            }
            for who in 1..=MOST as u64 {
                assert_eq!((queue.join(who, false), queue.has_turn(who)), (who == 1, who == 1));
            }
            for who in 2..=MOST as u64 {
                assert_eq!(queue.leave(who - 1), bits(&[who]));
            }
            assert_eq!((queue.leave(MOST as u64), queue.leave(3)), (0, 0));
        }
    }

    #[test]
    fn phases_alternate_or_all_keep_their_places() {
        for (order, second) in [(Order::PhaseFair, bits(&[2, 4])), (Order::TaskFair, bits(&[2]))] {
            let queue: SharedQueue = SharedQueue::new(order);
            assert!(
                queue.join(1, false) && !queue.join(2, true) && !queue.join(3, false) && !queue.join(4, true)
            );
            assert_eq!(queue.leave(1), second);
            // A phase of readers is on, and a writer waits for it.
            assert!(!queue.join(5, true) && !queue.join(6, false));
            if order == Order::PhaseFair {
                assert_eq!((queue.leave(4), queue.leave(2)), (0, bits(&[3])));
                assert_eq!((queue.leave(3), queue.leave(5)), (bits(&[5]), bits(&[6])));
            } else {
                assert_eq!((queue.leave(2), queue.leave(3)), (bits(&[3]), bits(&[4, 5])));
                assert_eq!((queue.leave(5), queue.leave(4)), (0, bits(&[6])));
            }
            assert_eq!(queue.leave(6), 0);
        }
    }

    /// Who writes is alone. A third processor, which reads, holds the lock at first and lets go of it meanwhile.
    #[test]
    fn a_writer_is_alone() {
        for order in [Order::TaskFair, Order::PhaseFair] {
            loom::model(move || {
                let queue = Arc::new(SharedQueue::<la::AtomicU64>::new(order));
                let guarded = Arc::new(loom::cell::UnsafeCell::new(()));
                assert!(queue.join(3, true));
                let writer = {
                    let (queue, guarded) = (queue.clone(), guarded.clone());
                    thread::spawn(move || {
                        if !queue.join(2, false) {
                            while !queue.has_turn(2) {
                                thread::yield_now();
                            }
                        }
                        // Loom reports another one that looks meanwhile.
                        guarded.with_mut(|_| ());
                        let _ = queue.leave(2);
                    })
                };
                guarded.with(|_| ());
                let _ = queue.leave(3);
                if !queue.join(1, true) {
                    while !queue.has_turn(1) {
                        thread::yield_now();
                    }
                }
                guarded.with(|_| ());
                let _ = queue.leave(1);
                writer.join().expect("it ends");
                assert_eq!(Word::load(&queue.word), 0);
            });
        }
    }
}
