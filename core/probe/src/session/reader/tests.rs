//! The reader against writers that died at each step of their operation, and against nonsense in the memory.

use super::*;
use crate::session::shared::Shared;
use crate::session::{Options, liveness, prepare};
use core::sync::atomic::Ordering::{AcqRel, SeqCst};

/// A session that no thread writes to by itself, and its reader.
fn session_in_memory(options: &Options) -> (SharedMemory, &'static Shared, Reader) {
    let layout = Layout::of(&options.sizes()).expect("sizes");
    let memory = SharedMemory::create(c"test", layout.total).expect("memory");
    let clock = ClockKind::of_this_machine();
    let shared = Shared::new(&memory, layout, clock, options).expect("maps");
    prepare(shared);
    shared.header().writers_used.store(options.writers, SeqCst);
    shared.header().rings_used.store(options.rings, SeqCst);
    let file = memory.duplicate().expect("a descriptor");
    (memory, shared, Reader::new(file, std::process::id()).expect("a reader"))
}

fn session(options: &Options) -> (&'static Shared, Reader) {
    let (_, shared, reader) = session_in_memory(options);
    (shared, reader)
}

fn small() -> Options {
    Options {
        rings: 2,
        ring_bytes: 4096,
        small_slots: 4,
        large_slots: 4,
        writers: 4,
        events: 8,
        ..Options::default()
    }
}

/// The number of a thread that has ended.
fn dead_thread() -> u32 {
    let tid = std::thread::spawn(horolog_sys::thread::id).join().expect("ends");
    let pid = std::process::id();
    let me = liveness::Process::new(pid, pid, 0);
    while !me.thread_is_dead(tid, 0) {
        std::thread::yield_now();
    }
    tid
}

/// Writes one item as entry `writer` would, up to step `steps` of six.
fn write(shared: &Shared, writer: u32, value: u64, steps: u32) {
    let entry = &shared.writers()[writer as usize];
    let queue = shared.queue(0);
    let mut left = steps;
    let mut step = || {
        left = left.saturating_sub(1);
        left > 0
    };
    entry.sequence.fetch_add(1, Release);
    if !step() || queue.free.fetch_add(u32::MAX, AcqRel) as i32 <= 0 || !step() {
        return;
    }
    let place = queue.written.fetch_add(1, AcqRel) as usize & 3;
    if !step() {
        return;
    }
    queue.markers[place].store(1 | writer << 8, SeqCst);
    if !step() {
        return;
    }
    for (word, content) in [value, crate::ring::record::pack(5, 0, 0, 0)].into_iter().enumerate() {
        // SAFETY: the slot has four words.
        unsafe { (*shared.slot(0, place).add(word)).store(content, Relaxed) };
    }
    queue.finish_write(place, writer);
    if step() {
        entry.sequence.fetch_add(1, Release);
    }
}

fn read(reader: &mut Reader) -> Vec<u64> {
    let mut seen = Vec::new();
    reader.drain(|record| seen.push(record.ticks));
    seen
}

#[test]
fn a_writer_that_died_at_any_step_is_skipped_and_the_count_restored() {
    for died_after in 1..=5 {
        let (shared, mut reader) = session(&small());
        shared.writers()[0].tid.store(horolog_sys::thread::id(), SeqCst);
        shared.writers()[1].tid.store(dead_thread(), SeqCst);
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        for turn in 0..10_u64 {
            write(shared, 0, 10 * turn, 6);
            expected.push(10 * turn);
            if turn == 3 {
                write(shared, 1, 33, died_after);
                expected.extend((died_after == 5).then_some(33));
            }
            write(shared, 0, 10 * turn + 1, 6);
            expected.push(10 * turn + 1);
            seen.extend(read(&mut reader));
        }
        assert_eq!(seen, expected, "died after step {died_after}");
        let dead = u64::from(died_after == 3 || died_after == 4);
        assert_eq!(reader.losses(), Losses { dead_writer: dead, ..Losses::default() });
        assert_eq!(reader.free_slots()[0], 4, "died after step {died_after}");
    }
}

#[test]
fn a_living_writer_holds_the_reader_up_and_nothing_is_given_up() {
    let (shared, mut reader) = session(&small());
    let me = horolog_sys::thread::id();
    shared.writers()[0].tid.store(me, SeqCst);
    shared.writers()[1].tid.store(me, SeqCst);
    write(shared, 0, 1, 4);
    write(shared, 1, 2, 6);
    for _ in 0..3 {
        assert_eq!(read(&mut reader), []);
    }
    assert_eq!(reader.losses().total(), 0);
    shared.slot_is_finished_by(0, 1);
    assert_eq!(read(&mut reader), [1, 2]);
    assert_eq!(reader.free_slots()[0], 4);
}

impl Shared {
    /// What the living writer 0 does once it runs again.
    fn slot_is_finished_by(&self, writer: u32, value: u64) {
        // SAFETY: the slot has four words.
        unsafe {
            (*self.slot(0, 0)).store(value, Relaxed);
            (*self.slot(0, 0).add(1)).store(crate::ring::record::pack(5, 0, 0, 0), Relaxed);
        }
        self.queue(0).finish_write(0, writer);
        self.writers()[writer as usize].sequence.fetch_add(1, Release);
    }
}

#[test]
fn writers_left_behind_by_longjmp_are_skipped_once_they_move_on() {
    let (shared, mut reader) = session(&small());
    let me = horolog_sys::thread::id();
    shared.writers()[0].tid.store(me, SeqCst);
    write(shared, 0, 1, 3); // took `f` and `w`, then jumped away
    assert_eq!(read(&mut reader), []);
    shared.writers()[0].abandoned.fetch_add(1, Release);
    shared.writers()[0].sequence.fetch_add(1, Release);
    write(shared, 0, 2, 6);
    assert_eq!(read(&mut reader), [2]);
    assert_eq!((reader.losses().dead_writer, reader.free_slots()[0]), (1, 4));
    write(shared, 0, 1, 2); // took `f` alone, then jumped away
    shared.writers()[0].abandoned.fetch_add(1, Release);
    shared.writers()[0].sequence.fetch_add(1, Release);
    assert_eq!(reader.free_slots()[0], 3);
    assert_eq!(read(&mut reader), []);
    assert_eq!(reader.free_slots()[0], 4);
}

/// A small generator with the period 2^64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }
}

#[test]
fn nonsense_in_the_memory_is_counted_and_never_more() {
    for mode in [crate::session::Mode::Refuse, crate::session::Mode::Overwrite] {
        let (shared, mut reader) = session(&Options { mode, ..small() });
        let words = shared.layout.total / 8;
        let mut random = Random(42);
        let mut records = 0_u64;
        for round in 0..400 {
            for _ in 0..200 {
                // The header's sizes have been read by now; the rest is hit at random, the controls more often.
                let near = !random.next().is_multiple_of(3);
                let most = if near { shared.layout.rings / 8 } else { words };
                let place = random.next() as usize % most;
                let value = match random.next() % 4 {
                    0 => random.next(),
                    1 => random.next() % 16,
                    2 => u64::MAX - random.next() % 16,
                    _ => crate::ring::record::pack(1, 2, (random.next() % 12) as usize, 3),
                };
                // SAFETY: inside the memory; every word of it is used as an atomic word.
                let word = unsafe { &*core::ptr::from_ref(shared.header()).cast::<AtomicU64>().add(place) };
                word.store(value, Relaxed);
            }
            records +=
                reader.drain(|record| assert!(record.args.len() <= crate::ring::record::MAX_TEXT_WORDS));
            records +=
                reader.snapshot(|record| assert!(record.args.len() <= crate::ring::record::MAX_TEXT_WORDS));
            if round % 40 == 0 {
                let _ =
                    (reader.losses().total(), reader.events(), reader.writers(), reader.is_writer_dead(3));
            }
        }
        assert!(reader.losses().damaged > 0 && records > 0, "{mode:?}: {records} records");
    }
}

#[test]
fn a_memory_that_is_no_session_is_refused() {
    let (memory, shared, _reader) = session_in_memory(&small());
    let header = shared.header();
    let opens = || Reader::new(memory.duplicate().expect("a descriptor"), 1).is_ok();
    assert!(opens());
    for word in [&header.version, &header.header_bytes, &header.rings, &header.ring_bytes, &header.slots[0]] {
        let good = word.load(SeqCst);
        for bad in [0, 7, good + 1, good << 8, u32::MAX] {
            word.store(bad, SeqCst);
            assert!(!opens(), "{bad} instead of {good}");
        }
        word.store(good, SeqCst);
    }
    header.magic.fetch_add(1, SeqCst);
    assert!(!opens());
    let empty = SharedMemory::create(c"test", 4096).expect("memory");
    assert!(Reader::new(empty.duplicate().expect("a descriptor"), 1).is_err());
}

/// Puts records of an event without arguments into a ring, at these ticks.
fn fill(reader: &Reader, ring: usize, ticks: impl Iterator<Item = u64>) {
    let size = reader.layout.sizes.ring_bytes as usize;
    let words: &[AtomicU64] = reader.memory().slice(reader.layout.ring(ring), size / 8).expect("a ring");
    let mut head = reader.ring_controls()[ring].head.load(Relaxed);
    for ticks in ticks {
        for word in [ticks, crate::ring::record::pack(5, 0, 0, 0)] {
            words[head as usize / 8 % words.len()].store(word, Relaxed);
            head += 8;
        }
    }
    reader.ring_controls()[ring].head.store(head, Release);
}

#[test]
fn a_bounded_pass_takes_the_oldest_records_and_says_up_to_when_it_has_all() {
    let (_, mut reader) = session(&Options { ring_bytes: 65_536, ..small() });
    // Far behind each other: 64,000 bytes of the one before the first of the other, and twice around.
    for _ in 0..2 {
        let base = reader.clock.ticks();
        while reader.clock.ticks() < base + 10_000 {}
        fill(&reader, 0, base + 1..base + 4_001);
        fill(&reader, 1, base + 3_001..base + 7_001);
        let (most, mut seen, mut passes) = (16_384, Vec::new(), 0);
        loop {
            let before = seen.len();
            let (count, until) = reader.drain_within(most, |record| seen.push(record.ticks));
            assert_eq!(count as usize, seen.len() - before);
            assert!(count * 16 <= most + LEAST_SHARE, "{count} records in a pass");
            passes += 1;
            // All up to then, and of what is younger no more than a ring's share.
            let upto = seen.iter().filter(|ticks| **ticks <= until).count() as u64;
            let fill = |first: u64| until.saturating_sub(base + first).min(4_000);
            assert_eq!(upto, fill(0) + fill(3_000), "until {until}");
            if until > base + 7_000 {
                break;
            }
            assert!((seen.len() as u64 - upto) * 16 <= most / 4, "{} ahead", seen.len() as u64 - upto);
        }
        assert_eq!(passes, 8, "128,000 bytes in passes of 16,384");
        assert_eq!(seen.len(), 8_000);
    }
    assert_eq!((reader.losses().total(), read(&mut reader)), (0, Vec::new()));
    // No record: all of it is damage, once, and the other ring goes on.
    fill(&reader, 0, 200_000..200_600);
    let words: &[AtomicU64] = reader.memory().slice(reader.layout.ring(0), 8_192).expect("a ring");
    let at = (reader.taken[0] as usize / 8 + 200) % words.len();
    words[at + 1].store(0, Relaxed);
    fill(&reader, 1, 200_000..200_600);
    let mut seen = 0;
    reader.drain_within(1 << 20, |_| seen += 1);
    assert_eq!((seen, reader.losses().damaged), (100 + 600, 1));
}

#[test]
fn rings_that_wait_are_taken_in_the_order_of_their_first_records() {
    let (_, mut reader) = session(&Options { rings: 3, ring_bytes: 65_536, ..small() });
    let base = reader.clock.ticks();
    while reader.clock.ticks() < base + 20_000 {}
    // One thread has filled the second ring, and then the first one; the third is of another thread.
    fill(&reader, 1, base + 1..base + 4_001);
    fill(&reader, 0, base + 4_001..base + 8_001);
    fill(&reader, 2, base + 8_001..base + 8_002);
    let mut seen = Vec::new();
    let (_, until) = reader.drain_within(16_384, |record| seen.push(record.ticks - base));
    // Nothing of a later ring is taken before it is due, and all up to the cut is known to be there.
    assert!(seen.len() >= 1_024 && seen.is_sorted(), "{} records", seen.len());
    assert_eq!((seen[0], until), (1, base + seen.len() as u64));
    for _ in 0..8 {
        reader.drain_within(16_384, |record| seen.push(record.ticks - base));
    }
    assert!(seen.len() == 8_001 && seen.is_sorted(), "{} records", seen.len());
}
