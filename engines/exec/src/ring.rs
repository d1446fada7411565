//! A buffer of records from one producer to the collector: preallocated, wait-free, losses counted.

use horolog_sys::shared_words::SharedWords;
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use std::sync::atomic::{AtomicU64, Ordering};

/// One record is five words, so that a torn one is a wrong number at worst and never undefined behaviour.
const WORDS: usize = 5;

// Places of the head's words, each on a cache line of its own.
/// Next slot to write; only the producer stores it.
const TAIL: usize = 0;
/// Next slot to read; only the consumer stores it.
const HEAD: usize = 8;
/// How many records found the ring full, and when the first of those did that the consumer has not seen yet.
const LOST: usize = 16;
const LOST_SINCE: usize = 17;
/// No later record of this ring will bear an earlier time.
const FLOOR: usize = 24;
/// How many losses the consumer has seen; only the consumer stores it.
const SEEN: usize = 32;
const FIRST: usize = 40;

/// A single-producer, single-consumer ring of records.
///
/// The producer is one thread at a time: a task's own thread, or whoever holds a processor's monitor. The consumer may be in another
/// process: the one that forked the run, which reads what is there also after the run's process is gone.
pub(crate) struct Ring {
    words: SharedWords,
    mask: u64,
}

impl Ring {
    /// A ring of at least `capacity` records.
    pub(crate) fn new(capacity: usize) -> Result<Ring, horolog_sys::Error> {
        let capacity = capacity.max(2).checked_next_power_of_two().unwrap_or(usize::MAX / WORDS / 2);
        let words = SharedWords::new(capacity.saturating_mul(WORDS).saturating_add(FIRST))?;
        Ok(Ring { words, mask: capacity as u64 - 1 })
    }

    fn slot(&self, number: u64) -> &[AtomicU64] {
        let first = FIRST + (number & self.mask) as usize * WORDS;
        &self.words[first..first + WORDS]
    }

    /// Appends a record, or counts it as lost where the ring is full. Never waits.
    #[inline]
    pub(crate) fn push(&self, record: Record) {
        let tail = self.words[TAIL].load(Ordering::Relaxed);
        let head = self.words[HEAD].load(Ordering::Acquire);
        if tail - head > self.mask {
            let lost = self.lost();
            if self.words[SEEN].load(Ordering::Acquire) == lost {
                self.words[LOST_SINCE].store(record.time.as_ns(), Ordering::Relaxed);
            }
            self.words[LOST].store(lost + 1, Ordering::Release);
            return;
        }
        let words = self.slot(tail);
        let packed = record.kind as u64 | u64::from(record.cpu) << 8 | u64::from(record.task) << 32;
        words[0].store(record.time.as_ns(), Ordering::Relaxed);
        words[1].store(packed, Ordering::Relaxed);
        words[2].store(record.job, Ordering::Relaxed);
        words[3].store(record.value, Ordering::Relaxed);
        words[4].store(record.extra, Ordering::Relaxed);
        self.words[TAIL].store(tail + 1, Ordering::Release);
    }

    /// Takes the oldest record; only the collector calls this.
    pub(crate) fn pop(&self) -> Option<Record> {
        let head = self.words[HEAD].load(Ordering::Relaxed);
        if head == self.words[TAIL].load(Ordering::Acquire) {
            return None;
        }
        let words = self.slot(head);
        let packed = words[1].load(Ordering::Relaxed);
        let record = Record {
            time: Instant::from_ns(words[0].load(Ordering::Relaxed)),
            kind: Kind::from_number(packed as u8).unwrap_or(Kind::Lost),
            cpu: (packed >> 8) as u16,
            task: (packed >> 32) as u32,
            job: words[2].load(Ordering::Relaxed),
            value: words[3].load(Ordering::Relaxed),
            extra: words[4].load(Ordering::Relaxed),
        };
        self.words[HEAD].store(head + 1, Ordering::Release);
        Some(record)
    }

    /// Promises that no later record of this ring bears a time before `time`; `u64::MAX` while none can come.
    #[inline]
    pub(crate) fn promise(&self, time: u64) {
        self.words[FLOOR].store(time, Ordering::Release);
    }

    /// The promise of [`Ring::promise`].
    pub(crate) fn floor(&self) -> u64 {
        self.words[FLOOR].load(Ordering::Acquire)
    }

    /// How many records found the ring full.
    pub(crate) fn lost(&self) -> u64 {
        self.words[LOST].load(Ordering::Acquire)
    }

    /// How many records found the ring full since this was asked last, and when the first of them did, or earlier; only the collector
    /// calls this.
    pub(crate) fn take_lost(&self) -> Option<(u64, u64)> {
        let (lost, seen) = (self.lost(), self.words[SEEN].load(Ordering::Relaxed));
        if lost == seen {
            return None;
        }
        let since = self.words[LOST_SINCE].load(Ordering::Relaxed);
        self.words[SEEN].store(lost, Ordering::Release);
        Some((lost - seen, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64) -> Record {
        Record {
            time: Instant::from_ns(time),
            kind: Kind::Completion,
            cpu: 3,
            task: 77,
            job: time * 2,
            value: time * 3,
            extra: time * 5,
        }
    }

    #[test]
    fn a_full_ring_counts_what_it_loses() {
        let ring = Ring::new(4).expect("memory");
        for time in 0..6 {
            ring.push(record(time));
        }
        assert_eq!((ring.lost(), ring.take_lost(), ring.take_lost()), (2, Some((2, 4)), None));
        ring.push(record(7));
        ring.push(record(8));
        assert_eq!((ring.lost(), ring.take_lost()), (4, Some((2, 7))));
        for time in 0..4 {
            assert_eq!(ring.pop(), Some(record(time)));
        }
        assert_eq!(ring.pop(), None);
        ring.push(record(9));
        assert_eq!(ring.pop(), Some(record(9)));
    }

    #[test]
    fn two_threads_see_every_record_whole_and_in_order() {
        const COUNT: u64 = 100_000;
        let ring = Ring::new(64).expect("memory");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut time = 0;
                while time < COUNT {
                    let before = ring.lost();
                    ring.push(record(time));
                    if ring.lost() == before {
                        time += 1;
                    } else {
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < COUNT {
                match ring.pop() {
                    Some(found) => {
                        assert_eq!(found, record(expected));
                        expected += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}
