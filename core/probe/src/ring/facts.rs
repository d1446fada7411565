//! The acceptance facts 4 to 7 of Feather-Trace's buffer, and its hazards (a) to (e), on a heap of our own: no system
//! call, so that Miri runs them too.

use super::multi_writer::{BUSY, FREE, Found, MultiWriter, READY, STATE, check_slots};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// A buffer of two-word items on the heap.
struct Heap {
    free: AtomicU32,
    written: AtomicU32,
    failed: AtomicU64,
    markers: Vec<AtomicU32>,
    slots: Vec<[AtomicU64; 2]>,
}

impl Heap {
    fn new(slots: usize, start: u32) -> Heap {
        let heap = Heap {
            free: AtomicU32::new(0),
            written: AtomicU32::new(0),
            failed: AtomicU64::new(0),
            markers: (0..slots).map(|_| AtomicU32::new(77)).collect(),
            slots: (0..slots).map(|_| Default::default()).collect(),
        };
        heap.queue().reset(start);
        heap
    }

    fn queue(&self) -> MultiWriter<'_, AtomicU32, AtomicU64> {
        MultiWriter { free: &self.free, written: &self.written, failed: &self.failed, markers: &self.markers }
    }

    fn write(&self, writer: u32, value: u64) -> bool {
        let Some(place) = self.queue().start_write(writer) else { return false };
        self.slots[place][0].store(value, Relaxed);
        self.slots[place][1].store(!value, Relaxed);
        self.queue().finish_write(place, writer);
        true
    }

    /// The paper's `read`: the item at `r`, which then moves on.
    fn read(&self, r: &mut u32) -> Option<(u32, u64)> {
        let Found::Item { place, writer } = self.queue().look(*r) else { return None };
        let [value, check] = [0, 1].map(|word| self.slots[place][word].load(Relaxed));
        assert_eq!(check, !value, "an item is never torn");
        *r = self.queue().release(*r);
        Some((writer, value))
    }

    fn free(&self) -> i32 {
        self.free.load(Relaxed) as i32
    }

    fn states(&self) -> Vec<u32> {
        self.markers.iter().map(|marker| marker.load(Relaxed) & STATE).collect()
    }
}

#[test]
fn fact_4_the_number_of_slots_must_divide_two_to_the_32() {
    let refused = check_slots(3).expect_err("3 does not divide 2^32");
    assert!(refused.is_bad_input() && refused.to_string().contains("divide 2^32"), "{refused}");
    assert!(check_slots(4).is_ok());
}

#[test]
fn fact_5_the_operation_sequence_of_figure_2_and_on() {
    let heap = Heap::new(4, 0);
    let (queue, mut r) = (heap.queue(), 0);
    assert_eq!([queue.start_write(1), queue.start_write(1)], [Some(0), Some(1)]);
    queue.finish_write(0, 1);
    assert_eq!((heap.free(), heap.written.load(Relaxed), r), (2, 2, 0));
    assert_eq!(heap.states(), [READY, BUSY, FREE, FREE]);
    assert!(heap.read_any(&mut r));
    assert_eq!((heap.free(), r), (3, 1));
    assert!(!heap.read_any(&mut r));
    assert_eq!([(); 3].map(|()| queue.start_write(1)), [Some(2), Some(3), Some(0)]);
    assert_eq!((heap.free(), heap.written.load(Relaxed)), (0, 5));
    assert_eq!(queue.start_write(1), None);
    assert_eq!((heap.failed.load(Relaxed), heap.free()), (1, 0));
    queue.finish_write(2, 1);
    queue.finish_write(3, 1);
    assert!(!heap.read_any(&mut r));
    queue.finish_write(1, 1);
    assert_eq!([(); 4].map(|()| heap.read_any(&mut r)), [true, true, true, false]);
    assert_eq!((heap.free(), heap.written.load(Relaxed), r, heap.failed.load(Relaxed)), (3, 5, 4, 1));
}

impl Heap {
    /// `read` for items whose words do not matter.
    fn read_any(&self, r: &mut u32) -> bool {
        let found = matches!(self.queue().look(*r), Found::Item { .. });
        if found {
            *r = self.queue().release(*r);
        }
        found
    }
}

#[test]
fn fact_6_counters_wrap_without_breaking_the_order() {
    let start = u32::MAX - 1;
    let heap = Heap::new(4, start);
    let mut r = start;
    let mut places = Vec::new();
    for value in 0..9 {
        assert!(matches!(heap.queue().look(r), Found::Nothing));
        places.push((heap.written.load(Relaxed) & 3) as usize);
        assert!(heap.write(3, value));
        assert_eq!(heap.read(&mut r), Some((3, value)));
    }
    assert_eq!(places, [2, 3, 0, 1, 2, 3, 0, 1, 2]);
    assert_eq!((r, heap.written.load(Relaxed)), (7, 7));
    // The same with the buffer full across the wrap.
    let heap = Heap::new(4, start);
    assert_eq!([0, 1, 2, 3, 4].map(|value| heap.write(1, value)), [true, true, true, true, false]);
    let mut r = start;
    assert_eq!([(); 4].map(|()| heap.read(&mut r)), [0, 1, 2, 3].map(|value| Some((1, value))));
    assert_eq!((heap.free(), heap.read(&mut r)), (4, None));
}

#[test]
fn fact_7_every_item_is_read_once_whole_or_counted() {
    let (writers, each) = if cfg!(miri) { (2, 200) } else { (4, 50_000) };
    let heap = Heap::new(64, u32::MAX - 500);
    let mut r = u32::MAX - 500;
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); writers];
    let mut accepted = 0;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..writers as u64)
            .map(|writer| {
                let heap = &heap;
                scope.spawn(move || {
                    (0..each).filter(|value| heap.write(writer as u32, writer << 32 | value)).count() as u64
                })
            })
            .collect();
        loop {
            let over = handles.iter().all(|handle| handle.is_finished());
            while let Some((writer, value)) = heap.read(&mut r) {
                assert_eq!(u64::from(writer), value >> 32);
                seen[writer as usize].push(value & 0xffff_ffff);
            }
            if over {
                break;
            }
            std::thread::yield_now();
        }
        for handle in handles {
            accepted += handle.join().expect("a writer ends");
        }
    });
    let read: usize = seen.iter().map(Vec::len).sum();
    assert_eq!(read as u64, accepted);
    assert_eq!(read as u64 + heap.failed.load(Relaxed), writers as u64 * each);
    for values in &seen {
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "each writer's own order, none twice");
    }
    assert_eq!(heap.free(), 64);
}

#[test]
fn hazard_a_free_dips_below_zero_while_failing_writers_overlap_and_a_failure_is_counted() {
    let heap = Heap::new(2, 0);
    assert!(heap.write(1, 1) && heap.write(1, 2));
    // Two writers between their first and second step, as if they had been preempted there.
    assert_eq!(heap.free.fetch_add(u32::MAX, Relaxed) as i32, 0);
    assert_eq!(heap.free.fetch_add(u32::MAX, Relaxed) as i32, -1);
    assert_eq!(heap.free(), -2);
    let mut r = 0;
    assert_eq!(heap.read(&mut r), Some((1, 1)));
    // A slot is free, but the writers in between hide it: this failure is spurious, and counted like any other.
    assert_eq!(heap.free(), -1);
    assert!(!heap.write(2, 3));
    assert_eq!((heap.failed.load(Relaxed), heap.free()), (1, -1));
    heap.free.fetch_add(2, Relaxed);
    assert!(heap.write(2, 3));
    assert_eq!([heap.read(&mut r), heap.read(&mut r), heap.read(&mut r)], [Some((1, 2)), Some((2, 3)), None]);
}

#[test]
fn hazard_b_the_reader_waits_for_an_unfinished_slot_and_then_keeps_the_order() {
    let heap = Heap::new(4, 0);
    let first = heap.queue().start_write(1).expect("a slot");
    assert!(heap.write(2, 22) && heap.write(2, 23));
    let mut r = 0;
    assert_eq!(heap.queue().look(r), Found::Unfinished { place: first });
    assert_eq!(heap.read(&mut r), None);
    heap.slots[first][0].store(11, Relaxed);
    heap.slots[first][1].store(!11, Relaxed);
    heap.queue().finish_write(first, 1);
    assert_eq!([(); 3].map(|()| heap.read(&mut r)), [Some((1, 11)), Some((2, 22)), Some((2, 23))]);
}

#[test]
fn hazard_c_a_granted_slot_is_always_free() {
    let (writers, each) = if cfg!(miri) { (2, 100) } else { (3, 30_000) };
    let heap = Heap::new(8, 0);
    let running = AtomicU32::new(writers);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (heap, running) = (&heap, &running);
            scope.spawn(move || {
                for value in 0..each {
                    // `start_write` by its steps, with a look at the marker between them.
                    if heap.free.fetch_add(u32::MAX, core::sync::atomic::Ordering::AcqRel) as i32 <= 0 {
                        heap.free.fetch_add(1, core::sync::atomic::Ordering::AcqRel);
                        continue;
                    }
                    let place = heap.written.fetch_add(1, core::sync::atomic::Ordering::AcqRel) as usize & 7;
                    let before = heap.markers[place].swap(BUSY, Acquire);
                    assert_eq!(before & STATE, FREE, "slot {place} was granted while in use");
                    heap.slots[place][0].store(value, Relaxed);
                    heap.slots[place][1].store(!value, Relaxed);
                    heap.queue().finish_write(place, writer);
                }
                running.fetch_sub(1, Release);
            });
        }
        let mut r = 0;
        while running.load(Acquire) > 0 {
            while heap.read(&mut r).is_some() {}
            std::thread::yield_now();
        }
    });
}

// Hazard (d), the order on machines other than x86, is what the models in `model.rs` explore; hazard (e), a writer killed
// in the middle, is `tests/crash.rs`, and its arithmetic is here.
#[test]
fn hazard_e_the_deficit_of_writers_that_died_is_exact() {
    let heap = Heap::new(8, u32::MAX);
    let mut r = u32::MAX;
    assert!(heap.write(1, 1) && heap.write(1, 2) && heap.write(1, 3));
    heap.read(&mut r);
    let deficit = || heap.queue().deficit(heap.free.load(Relaxed), heap.written.load(Relaxed), r);
    assert_eq!(deficit(), 0);
    heap.free.fetch_sub(2, Relaxed); // two writers died after they took `f`
    assert_eq!(deficit(), 2);
    heap.free.fetch_add(deficit(), Relaxed);
    assert_eq!((deficit(), heap.free()), (0, 6));
    heap.free.fetch_add(100, Relaxed); // nonsense is left alone, never made worse
    assert_eq!(deficit(), 0);
}
