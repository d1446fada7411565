//! A buffer of records from one producer to the collector: preallocated, wait-free, losses counted.

use horolog_sys::shared_words::SharedWords;
use horolog_time::Instant;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use std::sync::atomic::{AtomicU64, Ordering};

/// One record is five words, so that a torn one is a wrong number at worst and never undefined behaviour.
const WORDS: usize = 5;

// Places of the head's words, each on a cache line of its own.
/// Next slot to write; only the producer stores it.
const TAIL: usize = 0;
/// Next slot to read; only the consumer stores it.
const HEAD: usize = 8;
/// How many records found the ring full, and of how many of these the ring tells; when the first and the last of the others did that. Only the
/// producer stores them.
const LOST: usize = 16;
const TOLD: usize = 17;
const LOST_FROM: usize = 18;
const LOST_TO: usize = 19;
/// No later record of this ring will bear an earlier time.
const FLOOR: usize = 24;
const FIRST: usize = 32;

/// A single-producer, single-consumer ring of records.
///
/// The producer is one thread at a time: a task's own thread, or whoever holds a processor's monitor. The consumer may be in another
/// process: the one that forked the run, which reads what is there also after the run's process is gone.
pub(crate) struct Ring {
    words: SharedWords,
    mask: u64,
}

impl Ring {
    /// A ring of at least `capacity` records, and of as many as tell of a loss and what comes behind it.
    pub(crate) fn new(capacity: usize) -> Result<Ring, horolog_sys::Error> {
        let capacity = capacity.max(4).checked_next_power_of_two().unwrap_or(usize::MAX / WORDS / 2);
        let words = SharedWords::new(capacity.saturating_mul(WORDS).saturating_add(FIRST))?;
        Ok(Ring { words, mask: capacity as u64 - 1 })
    }

    fn slot(&self, number: u64) -> &[AtomicU64] {
        let first = FIRST + (number & self.mask) as usize * WORDS;
        &self.words[first..first + WORDS]
    }

    /// Appends a record, or counts it as lost where the ring is full. Never waits. The first record that finds room again comes after records
    /// that tell from when to when others were lost.
    #[inline]
    pub(crate) fn push(&self, record: Record) {
        let tail = self.words[TAIL].load(Ordering::Relaxed);
        let head = self.words[HEAD].load(Ordering::Acquire);
        let lost = self.words[LOST].load(Ordering::Relaxed);
        if lost == self.words[TOLD].load(Ordering::Relaxed) && tail - head <= self.mask {
            self.write(tail, &record);
            self.words[TAIL].store(tail + 1, Ordering::Release);
        } else {
            self.push_after_a_loss(&record, tail, head);
        }
    }

    #[cold]
    fn push_after_a_loss(&self, record: &Record, tail: u64, head: u64) {
        let untold = self.untold();
        let marks = untold.map_or(0, |stretch| stretch.records().count() as u64);
        let is_full = tail - head + marks > self.mask;
        if is_full {
            if untold.is_none() {
                self.words[LOST_FROM].store(record.time.as_ns(), Ordering::Release);
            }
            self.words[LOST_TO].store(record.time.as_ns(), Ordering::Release);
            self.words[LOST].fetch_add(1, Ordering::Release);
            return;
        }
        let marks = untold.iter().flat_map(|stretch| stretch.records());
        let tail = marks.fold(tail, |tail, mark| {
            self.write(tail, &mark);
            tail + 1
        });
        self.write(tail, record);
        self.words[TAIL].store(tail + 1, Ordering::Release);
        self.words[TOLD].store(self.lost(), Ordering::Release);
    }

    fn write(&self, number: u64, record: &Record) {
        let words = self.slot(number);
        let packed = record.kind as u64 | u64::from(record.cpu) << 8 | u64::from(record.task) << 32;
        words[0].store(record.time.as_ns(), Ordering::Relaxed);
        words[1].store(packed, Ordering::Relaxed);
        words[2].store(record.job, Ordering::Relaxed);
        words[3].store(record.value, Ordering::Relaxed);
        words[4].store(record.extra, Ordering::Relaxed);
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

    /// The losses that no record of the ring tells of yet.
    pub(crate) fn untold(&self) -> Option<Lost> {
        // What is told is in the ring before that is said.
        let told = self.words[TOLD].load(Ordering::Acquire);
        let count = self.lost().checked_sub(told).filter(|&count| count > 0)?;
        let of = |word: usize| self.words[word].load(Ordering::Acquire);
        Some(Lost { count, from: of(LOST_FROM), to: of(LOST_TO) })
    }
}

/// A stretch in which records were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lost {
    pub(crate) count: u64,
    /// When the first of them was, and the last.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Lost {
    /// What tells of it: where it begins, and where it ends.
    pub(crate) fn records(self) -> impl Iterator<Item = Record> {
        let at = |time, value| Record {
            time: Instant::from_ns(time),
            kind: Kind::Lost,
            cpu: 0,
            task: NO_TASK,
            job: NO_JOB,
            value,
            extra: 0,
        };
        let end = (self.count > 1).then(|| at(self.to, 0));
        std::iter::once(at(self.from, self.count)).chain(end)
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

    /// Time, whether it tells of a loss, and of how many.
    fn drained(ring: &Ring) -> Vec<(u64, bool, u64)> {
        let told = |it: Record| (it.time.as_ns(), it.kind == Kind::Lost, it.value);
        std::iter::from_fn(|| ring.pop()).map(told).collect()
    }

    #[test]
    fn a_full_ring_counts_what_it_loses_and_tells_where() {
        let ring = Ring::new(4).expect("memory");
        for time in 0..7 {
            ring.push(record(time));
        }
        assert_eq!((ring.lost(), ring.untold()), (3, Some(Lost { count: 3, from: 4, to: 6 })));
        // One more needs three places: two tell of the loss.
        (0..2).for_each(|time| assert_eq!(ring.pop(), Some(record(time))));
        ring.push(record(7));
        assert_eq!((ring.lost(), ring.untold()), (4, Some(Lost { count: 4, from: 4, to: 7 })));
        assert_eq!(ring.pop(), Some(record(2)));
        ring.push(record(8));
        assert_eq!((ring.lost(), ring.untold()), (4, None));
        let kept = |time| (time, false, 3 * time);
        assert_eq!(drained(&ring), [kept(3), (4, true, 4), (7, true, 0), kept(8)]);
        // A single one has no end of its own.
        (10..15).for_each(|time| ring.push(record(time)));
        assert_eq!(ring.pop(), Some(record(10)));
        assert_eq!(ring.pop(), Some(record(11)));
        ring.push(record(15));
        assert_eq!(drained(&ring), [kept(12), kept(13), (14, true, 1), kept(15)]);
        ring.push(record(16));
        assert_eq!((drained(&ring), ring.lost(), ring.untold()), (vec![kept(16)], 5, None));
    }

    #[test]
    fn two_threads_see_every_record_or_its_loss_whole_and_in_order() {
        const COUNT: u64 = 100_000;
        let ring = Ring::new(64).expect("memory");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for time in 0..COUNT {
                    let before = ring.lost();
                    ring.push(record(time));
                    if ring.lost() != before {
                        std::thread::yield_now();
                    }
                }
            });
            let (mut expected, mut lost, mut end) = (0, 0, None);
            while expected + ring.untold().map_or(0, |stretch| stretch.count) < COUNT {
                match ring.pop() {
                    Some(found) if found.kind == Kind::Lost && found.value > 0 => {
                        assert_eq!((found.time.as_ns(), end), (expected, None));
                        (expected, lost) = (expected + found.value, lost + found.value);
                        end = (found.value > 1).then_some(expected - 1);
                    }
                    Some(found) if found.kind == Kind::Lost => {
                        assert_eq!(Some(found.time.as_ns()), end.take());
                    }
                    Some(found) => {
                        assert_eq!((found, end), (record(expected), None));
                        expected += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
            assert_eq!(lost + ring.untold().map_or(0, |stretch| stretch.count), ring.lost());
        });
    }
}
