//! Models of both buffers: loom runs every interleaving that the memory model allows, up to a bound of preemptions, so
//! that a missing release or acquire (hazard d) shows as a race.

use super::multi_writer::{Found, MultiWriter};
use super::per_thread::{Span, copy_overwriting, fits, overwrite, published};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::thread;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A multi-writer buffer whose items are cells that loom watches for races.
struct Shared {
    free: AtomicU32,
    written: AtomicU32,
    failed: AtomicU64,
    markers: Vec<AtomicU32>,
    items: Vec<UnsafeCell<u64>>,
    /// One writer's sequence: odd inside an operation.
    sequence: AtomicU64,
}

impl Shared {
    fn new(slots: usize) -> Shared {
        let shared = Shared {
            free: AtomicU32::new(0),
            written: AtomicU32::new(0),
            failed: AtomicU64::new(0),
            markers: (0..slots).map(|_| AtomicU32::new(0)).collect(),
            items: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
            sequence: AtomicU64::new(0),
        };
        shared.queue().reset(0);
        shared
    }

    fn queue(&self) -> MultiWriter<'_, AtomicU32, AtomicU64> {
        MultiWriter { free: &self.free, written: &self.written, failed: &self.failed, markers: &self.markers }
    }

    fn write(&self, value: u64) -> bool {
        let Some(place) = self.queue().start_write(1) else { return false };
        // SAFETY: the slot is this thread's; loom checks that.
        self.items[place].with_mut(|item| unsafe { *item = value });
        self.queue().finish_write(place, 1);
        true
    }

    fn read(&self, r: &mut u32) -> Option<u64> {
        let Found::Item { place, .. } = self.queue().look(*r) else { return None };
        // SAFETY: the slot is the reader's; loom checks that.
        let value = self.items[place].with(|item| unsafe { *item });
        *r = self.queue().release(*r);
        Some(value)
    }
}

#[test]
fn two_writers_and_a_reader_never_share_a_slot() {
    explore(|| {
        let shared = Arc::new(Shared::new(1));
        let writers: Vec<_> = [1, 2]
            .map(|value| {
                let shared = shared.clone();
                thread::spawn(move || u64::from(shared.write(value)))
            })
            .into();
        let (mut r, mut read) = (0, 0);
        for _ in 0..2 {
            read += u64::from(shared.read(&mut r).is_some());
        }
        let accepted: u64 = writers.into_iter().map(|writer| writer.join().expect("ends")).sum();
        while shared.read(&mut r).is_some() {
            read += 1;
        }
        assert_eq!(read, accepted);
        assert_eq!(read + shared.failed.load(Relaxed), 2);
        assert_eq!(shared.free.load(Relaxed), 1);
    });
}

#[test]
fn one_writer_uses_a_slot_again_only_after_it_was_read() {
    explore(|| {
        let shared = Arc::new(Shared::new(1));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || (1..=3).filter(|value| shared.write(*value)).count())
        };
        let (mut r, mut last, mut read) = (0, 0, 0);
        for _ in 0..3 {
            if let Some(value) = shared.read(&mut r) {
                assert!(value > last);
                last = value;
                read += 1;
            }
        }
        let accepted = writer.join().expect("ends");
        while shared.read(&mut r).is_some() {
            read += 1;
        }
        assert_eq!(read, accepted);
    });
}

/// The reader's proof: once the taker's sequence has moved on, its slot is READY in the reader's eyes. A writer that
/// leaves the slot unfinished and moves on (`longjmp`) is found out, one that finishes never is.
#[test]
fn a_sequence_that_moved_on_shows_a_finished_slot_as_ready() {
    for finishes in [true, false] {
        explore(move || {
            let shared = Arc::new(Shared::new(2));
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.sequence.store(1, Relaxed);
                    let place = shared.queue().start_write(1).expect("the buffer is empty");
                    if finishes {
                        shared.queue().finish_write(place, 1);
                    }
                    shared.sequence.store(2, Release);
                })
            };
            let mut left_behind = false;
            if matches!(shared.queue().look(0), Found::Unfinished { .. }) {
                // The taker made its sequence odd before it took the slot.
                let seen = shared.sequence.load(Acquire);
                assert!(seen >= 1);
                let moved_on = seen == 2 || shared.sequence.load(Acquire) == 2;
                left_behind = moved_on && matches!(shared.queue().look(0), Found::Unfinished { .. });
            }
            assert!(!(left_behind && finishes), "a finished slot was given up");
            writer.join().expect("ends");
            assert_eq!(matches!(shared.queue().look(0), Found::Unfinished { .. }), !finishes);
        });
    }
}

/// The reader's repair: where the sequence was even before and unchanged after, `f` and `w` belong together.
#[test]
fn counters_read_at_a_quiet_moment_belong_together() {
    explore(|| {
        let shared = Arc::new(Shared::new(2));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.sequence.store(1, Relaxed);
                shared.write(7);
                shared.sequence.store(2, Release);
            })
        };
        let before = shared.sequence.load(Acquire);
        let (free, written) = (shared.free.load(Acquire), shared.written.load(Acquire));
        if before & 1 == 0 && shared.sequence.load(Acquire) == before {
            assert_eq!(shared.queue().deficit(free, written, 0), 0, "f {free}, w {written}");
        }
        writer.join().expect("ends");
    });
}

const SIZE: u64 = 4;

/// A per-thread ring of four one-word records (units of one instead of eight bytes).
struct Ring {
    head: AtomicU64,
    tail: AtomicU64,
    items: Vec<UnsafeCell<u64>>,
}

#[test]
fn a_ring_hands_over_whole_records_and_reuses_only_what_was_read() {
    explore(|| {
        let ring = Arc::new(Ring {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            items: (0..2).map(|_| UnsafeCell::new(0)).collect(),
        });
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || {
                let (mut head, mut lost) = (0, 0);
                for value in 1..=3 {
                    if fits(head, 8, ring.tail.load(Acquire), 16) {
                        // SAFETY: there is room; loom checks that the reader is done with it.
                        ring.items[(head / 8) as usize & 1].with_mut(|item| unsafe { *item = value });
                        head += 8;
                        ring.head.store(head, Release);
                    } else {
                        lost += 1;
                    }
                }
                lost
            })
        };
        let (mut taken, mut seen) = (0, Vec::new());
        let mut drain = |seen: &mut Vec<u64>| {
            let span = published(&ring.head, taken, 16).expect("the count makes sense");
            for at in (span.from..span.to).step_by(8) {
                // SAFETY: published; loom checks that the producer is done with it.
                seen.push(ring.items[(at / 8) as usize & 1].with(|item| unsafe { *item }));
            }
            taken = span.to;
            ring.tail.store(taken, Release);
        };
        drain(&mut seen);
        drain(&mut seen);
        let lost = producer.join().expect("ends");
        drain(&mut seen);
        assert_eq!(seen.len() + lost, 3);
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    });
}

/// An overwriting ring: whatever the reader keeps of its copy was not overwritten while it copied.
#[test]
fn a_snapshot_keeps_nothing_that_was_overwritten() {
    explore(|| {
        let ring = Arc::new((
            AtomicU64::new(0), // head
            AtomicU64::new(0), // oldest
            (0..SIZE / 2).map(|_| AtomicU64::new(0)).collect::<Vec<_>>(),
        ));
        let size = 8 * SIZE / 2;
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut head = 0;
                for _ in 0..4 {
                    overwrite(&ring.1, head, 8, size, |_| 8);
                    // Each record holds its own count.
                    ring.2[(head / 8) as usize & 1].store(head, Relaxed);
                    head += 8;
                    ring.0.store(head, Release);
                }
            })
        };
        let mut copied = Vec::new();
        let seen = copy_overwriting(&ring.0, &ring.1, size, |span: Span| {
            for at in (span.from..span.to).step_by(8) {
                copied.push((at, ring.2[(at / 8) as usize & 1].load(Relaxed)));
            }
        });
        if let Some((span, bad)) = seen {
            for (at, value) in copied {
                assert!(at - span.from < bad || value == at, "record {at} holds {value}");
            }
        }
        producer.join().expect("ends");
    });
}
