//! The reader of a session, in the same or another process.
//!
//! Everything in the memory may have been written by a hostile process: sizes are checked once and kept here, counters
//! are checked at every use, and nothing read from the memory is used as an address. Work in one pass is bounded by the
//! sizes.

mod proof;
#[cfg(test)]
mod tests;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;

use crate::about;
use crate::clock::ClockKind;
use crate::ring::layout::{
    EventEntry, Header, Layout, MAGIC, MOST_BYTES, QueueControl, SLOT_BYTES, Sizes, VERSION, WriterEntry,
};
use crate::ring::memory::Memory;
use crate::ring::multi_writer::{Found, MultiWriter};
use crate::ring::per_thread::{ENDED, RingControl, Span, UNUSED, between, copy_overwriting};
use crate::ring::record::{HEAD_WORDS, Head, MAX_WORDS};
use crate::session::liveness::Process;
use crate::session::shared::Cause;
use horolog_sys::Error;
use horolog_sys::shared_memory::{Mapping, SharedMemory};
use proof::Suspicion;

/// One event as it stands in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Ticks of the session's clock.
    pub ticks: u64,
    /// The event's number.
    pub event: u32,
    /// The processor.
    pub cpu: u16,
    /// [`crate::ring::record::NESTED`], [`crate::ring::record::SHARED`], [`crate::ring::record::TEXTS`].
    pub flags: u8,
    /// The writer's entry; the same entry belongs to different threads at different times.
    pub writer: u32,
    /// The thread, as it calls itself; 0 where its entry is empty.
    pub tid: u32,
    /// The words of the arguments: at most ten, and those of texts (`ring::record`).
    pub args: &'a [u64],
}

/// Events lost, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Losses {
    /// A thread's own ring was full.
    pub ring_full: u64,
    /// A multi-writer buffer was full.
    pub shared_full: u64,
    /// No entry for one more writer was left.
    pub no_writer: u64,
    /// A writer died, or left by `longjmp`, in the middle of a record.
    pub dead_writer: u64,
    /// No number for one more event was left.
    pub no_event: u64,
    /// Emitted by this process while it had no session, before this one began: no part of this trace, hence not in
    /// [`Losses::total`].
    pub no_session: u64,
    /// Records, or places for them, that made no sense.
    pub damaged: u64,
}

impl Losses {
    /// All that this session should have held and does not.
    #[must_use]
    pub fn total(&self) -> u64 {
        [self.ring_full, self.shared_full, self.no_writer, self.dead_writer, self.no_event, self.damaged]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// A thread that writes into the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterInfo {
    /// Its entry.
    pub number: u32,
    /// The thread, as it calls itself.
    pub tid: u32,
    /// When it began, in clock ticks since boot; 0: not known.
    pub start_time: u64,
    /// Whether it has ended, or left its entry behind.
    pub gone: bool,
    /// Whether it has a ring of its own.
    pub has_ring: bool,
}

/// An event of the session's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// Its number, as records bear it.
    pub id: u32,
    /// Its name; a byte that is not UTF-8 is written as `\\xNN`.
    pub name: String,
    /// One letter an argument.
    pub types: String,
    /// The name and the unit of each argument, either of them empty where there is none; nothing at all where none is named.
    pub fields: Vec<(String, String)>,
}

/// Reads a session.
#[derive(Debug)]
pub struct Reader {
    // Field order: the mapping is dropped last.
    process: Process,
    clock: ClockKind,
    overwrites: bool,
    layout: Layout,
    /// Bytes taken from each ring.
    taken: Vec<u64>,
    /// Up to which ticks [`Reader::drain_within`] has taken what each ring holds.
    read_to: Vec<u64>,
    /// `r` of each multi-writer buffer.
    read: [u32; 2],
    suspicions: [Option<Suspicion>; 2],
    /// Operations left in the middle, seen so far: `f` may be too small.
    repairs_due: [bool; 2],
    abandoned_seen: u64,
    /// Threads that may still be looked up in this pass: a hostile process names as many as it likes.
    lookups: core::cell::Cell<u32>,
    first_lookup: usize,
    /// Passes in a row at which `f` was smaller than `r` and `w` say.
    short: [u32; 2],
    damaged: u64,
    dead_slots: u64,
    copied: Vec<u64>,
    /// Overwriting sessions: what came through the multi-writer buffers since the last snapshot, newest last.
    held: std::collections::VecDeque<HeldRecord>,
    mapping: Mapping,
}

/// What was taken from a ring.
#[derive(Clone, Copy, Debug)]
struct Taken {
    count: u64,
    bytes: u64,
    /// Where more is left in it: the ticks of the last record that was taken.
    cut_at: Option<u64>,
}

/// As many bytes of a ring are taken at once at least.
const LEAST_SHARE: u64 = 4096;

/// How many threads one pass looks up at most.
const LOOKUPS: u32 = 256;

/// The same where each look-up reads a file of every thread of the process.
const FOREIGN_LOOKUPS: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct HeldRecord {
    words: [u64; MAX_WORDS],
    writer: u32,
    tid: u32,
}

impl HeldRecord {
    /// The words of the record, or all of them where it claims more than there are.
    fn record(&self) -> &[u64] {
        let words = Head::unpack(0, self.words[1]).words().unwrap_or(usize::MAX - HEAD_WORDS);
        self.words.get(..HEAD_WORDS + words).unwrap_or(&self.words)
    }
}

impl Reader {
    /// A reader of the session in `file`, which came from process `pid` (as the caller's own namespace numbers it).
    ///
    /// # Errors
    /// Bad input where the file is not sealed or does not hold a session of this version.
    pub fn new(file: OwnedFd, pid: u32) -> Result<Reader, Error> {
        let memory = SharedMemory::from_file(file)?;
        let length = memory.length();
        if !(size_of::<Header>()..=MOST_BYTES).contains(&length) {
            return Err(refused("its size"));
        }
        // What the process has not touched must not come to be because it is looked at.
        let mapping = memory.map_lazily()?;
        // SAFETY: the mapping is readable, writable, aligned to pages, and lives as long as the reader; its size is
        // sealed; this process reaches it through atomic words alone.
        let words = unsafe { Memory::new(mapping.base(), mapping.length()) };
        let header: &Header = words.one(0).ok_or_else(|| refused("its size"))?;
        let layout = check(header, length)?;
        let clock = ClockKind::from_number(header.clock.load(Relaxed)).ok_or_else(|| refused("its clock"))?;
        let own_pid = header.pid.load(Relaxed);
        let start = header.process_start.load(Relaxed);
        Ok(Reader {
            process: Process::new(pid, own_pid, start),
            clock,
            overwrites: header.overwrites.load(Relaxed) != 0,
            taken: vec![0; layout.sizes.rings as usize],
            read_to: vec![0; layout.sizes.rings as usize],
            read: [0; 2],
            suspicions: [None, None],
            repairs_due: [false; 2],
            abandoned_seen: 0,
            lookups: core::cell::Cell::new(LOOKUPS),
            first_lookup: 0,
            short: [0; 2],
            damaged: 0,
            dead_slots: 0,
            copied: Vec::new(),
            held: std::collections::VecDeque::new(),
            layout,
            mapping,
        }
        .at_present())
    }

    /// Continues where an earlier reader stopped.
    fn at_present(mut self) -> Reader {
        let mut taken = std::mem::take(&mut self.taken);
        let used = (self.header().rings_used.load(Acquire) as usize).min(taken.len());
        for (control, taken) in self.ring_controls().iter().zip(&mut taken).take(used) {
            *taken = control.tail.load(Relaxed);
        }
        self.taken = taken;
        let header = self.header();
        self.read = [0, 1].map(|class| header.read[class].load(Relaxed));
        self
    }

    fn memory(&self) -> Memory<'_> {
        // SAFETY: as in `new`.
        unsafe { Memory::new(self.mapping.base(), self.mapping.length()) }
    }

    fn header(&self) -> &Header {
        self.memory().one(0).expect("checked when the reader was made")
    }

    /// How many rings were ever taken: the others are not looked at.
    fn rings_used(&self) -> usize {
        (self.header().rings_used.load(Acquire) as usize).min(self.taken.len())
    }

    /// The entries that were ever taken.
    fn used_entries(&self) -> &[WriterEntry] {
        let used = self.header().writers_used.load(Acquire).min(self.layout.sizes.writers);
        self.memory().slice(self.layout.writers, used as usize).expect("checked when the reader was made")
    }

    /// Bytes of rings that the process has taken from what all may have; no more than it has room for.
    #[must_use]
    pub fn claimed(&self) -> u64 {
        let sizes = self.layout.sizes;
        self.header().claimed.load(Relaxed).min(u64::from(sizes.rings) * u64::from(sizes.ring_bytes))
    }

    fn ring_controls(&self) -> &[RingControl] {
        let count = self.layout.sizes.rings as usize;
        self.memory().slice(self.layout.ring_controls, count).expect("checked when the reader was made")
    }

    fn writer_entries(&self) -> &[WriterEntry] {
        let count = self.layout.sizes.writers as usize;
        self.memory().slice(self.layout.writers, count).expect("checked when the reader was made")
    }

    fn queue(&self, class: usize) -> MultiWriter<'_, AtomicU32, AtomicU64> {
        let at = self.layout.queues[class];
        let memory = self.memory();
        let control: &QueueControl = memory.one(at.control).expect("checked when the reader was made");
        let markers = memory.slice(at.markers, self.layout.sizes.slots[class] as usize);
        MultiWriter {
            free: &control.free,
            written: &control.written,
            failed: &control.failed,
            markers: markers.expect("checked when the reader was made"),
        }
    }

    /// The same for the program whose stack begins at `stack`; 0: not known.
    pub(super) fn of_program(mut self, stack: u64) -> Reader {
        self.process = self.process.of_program(stack);
        self
    }

    /// The process that writes.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What the ticks of its records count.
    #[must_use]
    pub fn clock(&self) -> ClockKind {
        self.clock
    }

    /// Whether its rings overwrite: then [`Reader::snapshot`] gives their records, and [`Reader::drain`] none.
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.overwrites
    }

    /// The sizes of its buffers.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.layout.sizes
    }

    /// How often a snapshot was asked for.
    #[must_use]
    pub fn snapshots_requested(&self) -> u64 {
        self.header().snapshot.load(Acquire)
    }

    /// Hands every finished record to `sink`: those of one ring in the order of their thread, the rings one after the
    /// other, then the multi-writer buffers. Returns how many there were. Also returns rings and entries of threads that
    /// have ended, and gives up the slots of writers that are proven dead.
    pub fn drain(&mut self, mut sink: impl FnMut(RawRecord<'_>)) -> u64 {
        self.lookups.set(if self.process.is_foreign() { FOREIGN_LOOKUPS } else { LOOKUPS });
        let gone = self.find_gone();
        let mut count = 0;
        if !self.overwrites {
            for (ring, head) in self.rings_in_order() {
                count += self.drain_ring(ring, head, u64::MAX, &mut sink).count;
            }
        }
        count += self.drain_queues(&gone, &mut sink);
        count
    }

    /// As [`Reader::drain`], but takes about `most` bytes of the rings, always from the one whose records are oldest: no
    /// ring is ahead of another by more than its share. Records of different rings, also of one thread, come in no order.
    /// Returns how many there were, and up to which ticks nothing is left in a ring.
    ///
    /// At most `most` bytes are taken, and 4 KiB more of each ring.
    pub fn drain_within(&mut self, most: u64, mut sink: impl FnMut(RawRecord<'_>)) -> (u64, u64) {
        self.lookups.set(if self.process.is_foreign() { FOREIGN_LOOKUPS } else { LOOKUPS });
        let gone = self.find_gone();
        let now = self.clock.ticks();
        let (mut count, mut room) = (0, most);
        if !self.overwrites {
            let rings = self.rings_in_order();
            let share = (most / 2 / rings.len().max(1) as u64).max(LEAST_SHARE);
            // A ring that waits since the last pass holds nothing before its first record.
            for &(ring, head) in &rings {
                if let Some(first) = self.first_ticks(ring, head) {
                    self.read_to[ring] = self.read_to[ring].max(first.saturating_sub(1).min(now));
                }
            }
            let behind = |read_to, order, ring, head| Reverse((read_to, order, ring, head));
            let mut waiting: BinaryHeap<_> = (rings.into_iter().enumerate())
                .map(|(order, (ring, head))| behind(self.read_to[ring], order, ring, head))
                .collect();
            while room > 0
                && let Some(Reverse((_, order, ring, head))) = waiting.pop()
            {
                let taken = self.drain_ring(ring, head, share, &mut sink);
                count += taken.count;
                room = room.saturating_sub(taken.bytes);
                // Whatever a damaged one claims, the others are not held up by it.
                self.read_to[ring] = taken.cut_at.map_or(now, |ticks| ticks.min(now));
                if taken.cut_at.is_some() {
                    waiting.push(behind(self.read_to[ring], order, ring, head));
                }
            }
        }
        count += self.drain_queues(&gone, &mut sink);
        (count, self.read_to[..self.rings_used()].iter().copied().min().unwrap_or(now))
    }

    /// Whether nothing is left in the buffers and no record in them is unfinished: where its process has ended, nothing more
    /// will come.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let rings = self.ring_controls().iter().zip(&self.taken).take(self.rings_used());
        let mut are_taken = rings.map(|(control, taken)| control.head.load(Acquire) == *taken);
        (self.overwrites || are_taken.all(|is_taken| is_taken))
            && (0..2).all(|class| self.queue(class).written.load(Acquire) == self.read[class])
    }

    /// Takes what is in the multi-writer buffers, and returns what belongs to threads that have `gone`.
    fn drain_queues(&mut self, gone: &[usize], mut sink: &mut impl FnMut(RawRecord<'_>)) -> u64 {
        let (mut count, mut emptied) = (0, true);
        for class in 0..2 {
            let (records, empty) = self.drain_queue(class, &mut sink);
            count += records;
            emptied &= empty;
        }
        self.repair();
        self.free(gone, emptied);
        count
    }

    /// The rings and up to where to read each, so that the records of a thread that goes from ring to ring come in its
    /// order. Newer rings are looked at first: what their thread wrote before, into an older one, is there when that is
    /// looked at. One that changed hands meanwhile waits for the next pass. Older rings are read first.
    fn rings_in_order(&self) -> Vec<(usize, u64)> {
        let controls = &self.ring_controls()[..self.rings_used()];
        let mut rings: Vec<(u64, usize)> =
            controls.iter().enumerate().map(|(ring, control)| (control.since.load(Acquire), ring)).collect();
        rings.sort_unstable();
        let mut found: Vec<(usize, u64)> = rings
            .into_iter()
            .rev()
            .filter_map(|(since, ring)| {
                let head = controls[ring].head.load(Acquire);
                (controls[ring].since.load(Acquire) == since).then_some((ring, head))
            })
            .collect();
        found.reverse();
        found
    }

    /// Takes whole records out of a ring, about `most` bytes of them.
    fn drain_ring(
        &mut self,
        ring: usize,
        head: u64,
        most: u64,
        sink: &mut impl FnMut(RawRecord<'_>),
    ) -> Taken {
        let size = u64::from(self.layout.sizes.ring_bytes);
        let taken = self.taken[ring];
        let mut copied = std::mem::take(&mut self.copied);
        copied.clear();
        let control = &self.ring_controls()[ring];
        let (to, damaged) = match between(taken, head, size) {
            Some(span) if span.bytes() > most => {
                self.copy(ring, Span { from: span.from, to: span.from + most / 8 * 8 }, &mut copied);
                match whole(&copied) {
                    // A damaged one, or one record longer than that: all of it.
                    0 => {
                        copied.clear();
                        self.copy(ring, span, &mut copied);
                        (span.to, 0)
                    }
                    words => {
                        copied.truncate(words);
                        (span.from + words as u64 * 8, 0)
                    }
                }
            }
            Some(span) => {
                self.copy(ring, span, &mut copied);
                (span.to, 0)
            }
            None => (head, 1),
        };
        control.tail.store(to, Release);
        // The ring changes hands only when it is empty, and only by us: this is the thread of every record copied.
        let (writer, tid) = (control.owner.load(Relaxed) >> 8, control.tid.load(Relaxed));
        let ended = control.owner.load(Acquire);
        // Who has given the ring up writes nothing more into it: what it holds is known, and read.
        if ended & 0xff == ENDED && control.head.load(Acquire) == to {
            let _ = control.owner.compare_exchange(ended, UNUSED | ended & !0xff, Release, Relaxed);
        }
        let mut last = 0;
        let (count, torn) = parse(&copied, writer, tid, &mut |record| {
            last = record.ticks;
            sink(record);
        });
        let bytes = copied.len() as u64 * 8;
        self.copied = copied;
        self.taken[ring] = to;
        self.damaged += damaged + torn;
        Taken { count, bytes, cut_at: (to != head).then_some(last) }
    }

    /// When the first record that a ring holds was written, as it says; `None` for an empty ring.
    fn first_ticks(&self, ring: usize, head: u64) -> Option<u64> {
        let (taken, size) = (self.taken[ring], self.layout.sizes.ring_bytes as usize);
        let words: &[AtomicU64] = self.memory().slice(self.layout.ring(ring), size / 8)?;
        (taken != head).then(|| words[(taken / 8) as usize & (words.len() - 1)].load(Relaxed))
    }

    /// Copies the words of a ring between two counts.
    fn copy(&self, ring: usize, span: Span, copied: &mut Vec<u64>) {
        let size = self.layout.sizes.ring_bytes as usize;
        let words: &[AtomicU64] =
            self.memory().slice(self.layout.ring(ring), size / 8).expect("checked when the reader was made");
        let length = (span.bytes() / 8) as usize;
        let first = (span.from / 8) as usize & (words.len() - 1);
        let before_end = length.min(words.len() - first);
        copied.extend(words[first..first + before_end].iter().map(|word| word.load(Relaxed)));
        copied.extend(words[..length - before_end].iter().map(|word| word.load(Relaxed)));
    }

    /// The thread that has entry `number`; 0: none.
    fn thread_of(&self, number: u32) -> u32 {
        self.writer_entries().get(number as usize).map_or(0, |entry| entry.tid.load(Relaxed))
    }

    fn drain_queue(&mut self, class: usize, mut sink: &mut impl FnMut(RawRecord<'_>)) -> (u64, bool) {
        let (mut count, slots) = (0, self.layout.sizes.slots[class]);
        let written = self.queue(class).written.load(Acquire);
        for _ in 0..slots {
            match self.queue(class).look(self.read[class]) {
                Found::Nothing => break,
                Found::Item { place, writer } => {
                    let held = self.read_slot(class, place, writer);
                    self.release(class);
                    if self.overwrites {
                        self.hold(held, class);
                    } else {
                        let (good, torn) = parse(held.record(), held.writer, held.tid, &mut sink);
                        count += good;
                        self.damaged += torn;
                    }
                }
                Found::Unfinished { .. } => {
                    if !self.is_left_behind(class) {
                        return (count, false);
                    }
                    self.dead_slots += 1;
                    self.repairs_due[class] = true;
                    self.header().lost[Cause::DeadWriter as usize].store(self.dead_slots, Relaxed);
                    self.release(class);
                }
            }
        }
        // Whatever was written before this pass has been read, unless an unfinished slot stands in between.
        (count, self.read[class].wrapping_sub(written) as i32 >= 0)
    }

    /// Gives the slot at the reader's place back.
    fn release(&mut self, class: usize) {
        let next = self.queue(class).release(self.read[class]);
        self.read[class] = next;
        self.suspicions[class] = None;
        self.header().read[class].store(next, Relaxed);
    }

    fn read_slot(&self, class: usize, place: usize, writer: u32) -> HeldRecord {
        let bytes = SLOT_BYTES[class];
        let at = self.layout.queues[class].slots + place * bytes;
        let slot: &[AtomicU64] =
            self.memory().slice(at, bytes / 8).expect("checked when the reader was made");
        let mut words = [0; MAX_WORDS];
        for (word, from) in words.iter_mut().zip(slot) {
            *word = from.load(Relaxed);
        }
        // A claim of more arguments than the slot holds is damage, which `parse` finds by the count.
        if Head::unpack(0, words[1]).words().is_none_or(|count| count > bytes / 8 - HEAD_WORDS) {
            words[1] |= 0xff << 48;
        }
        HeldRecord { words, writer, tid: self.thread_of(writer) }
    }

    fn hold(&mut self, record: HeldRecord, class: usize) {
        if self.held.len() >= self.layout.sizes.slots[class] as usize {
            self.held.pop_front();
        }
        self.held.push_back(record);
    }

    /// Hands what the overwriting rings hold to `sink`, oldest first in each, without taking it; then what came through
    /// the multi-writer buffers since the last snapshot, which is taken. Returns how many records there were.
    pub fn snapshot(&mut self, mut sink: impl FnMut(RawRecord<'_>)) -> u64 {
        self.drain(|_| {});
        let mut count = 0;
        for ring in 0..self.rings_used() {
            count += self.snapshot_ring(ring, &mut sink);
        }
        for record in std::mem::take(&mut self.held) {
            let (good, torn) = parse(record.record(), record.writer, record.tid, &mut sink);
            count += good;
            self.damaged += torn;
        }
        count
    }

    fn snapshot_ring(&mut self, ring: usize, sink: &mut impl FnMut(RawRecord<'_>)) -> u64 {
        let size = u64::from(self.layout.sizes.ring_bytes);
        let mut copied = std::mem::take(&mut self.copied);
        copied.clear();
        let control = &self.ring_controls()[ring];
        let (writer, tid) = (control.owner.load(Relaxed) >> 8, control.tid.load(Acquire));
        let seen = copy_overwriting(&control.head, &control.oldest, size, |span| {
            self.copy(ring, span, &mut copied);
        });
        if control.tid.load(Acquire) != tid {
            copied.clear(); // another thread has just taken the ring; the next snapshot shows what it writes
        }
        let (count, torn) = match seen {
            Some((_, bad)) => {
                let skipped = (bad / 8) as usize;
                parse(copied.get(skipped..).unwrap_or(&[]), writer, tid, sink)
            }
            None => (0, 1),
        };
        self.copied = copied;
        self.damaged += torn;
        count
    }

    /// Events lost so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let lost = |cause: Cause| self.header().lost[cause as usize].load(Relaxed);
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        Losses {
            ring_full: sum(&mut self.ring_controls()[..self.rings_used()]
                .iter()
                .map(|control| control.lost.load(Relaxed))),
            shared_full: sum(&mut (0..2).map(|class| self.queue(class).failed.load(Relaxed))),
            no_writer: lost(Cause::NoWriter),
            dead_writer: self.dead_slots,
            no_event: lost(Cause::NoEventNumber),
            no_session: lost(Cause::NoSession),
            damaged: self.damaged,
        }
    }

    /// How many times a thread found no ring left and took to the multi-writer buffers; no loss.
    #[must_use]
    pub fn threads_without_ring(&self) -> u64 {
        self.header().lost[Cause::WithoutRing as usize].load(Relaxed)
    }

    /// How many slots of the two multi-writer buffers are free at this moment; below zero while writers fail.
    #[must_use]
    pub fn free_slots(&self) -> [i32; 2] {
        [0, 1].map(|class| self.queue(class).free.load(Relaxed) as i32)
    }

    /// The events that have a number in this session.
    #[must_use]
    pub fn events(&self) -> Vec<EventInfo> {
        let declared = self.header().declared.load(Acquire).min(self.layout.sizes.events);
        (0..declared).filter_map(|place| self.event(place + 1)).collect()
    }

    /// The event with number `id`, once it has been declared.
    #[must_use]
    pub fn event(&self, id: u32) -> Option<EventInfo> {
        let entries: &[EventEntry] =
            self.memory().slice(self.layout.events, self.layout.sizes.events as usize)?;
        let entry = entries.get(id.checked_sub(1)? as usize)?;
        (entry.state.load(Acquire) == 2).then(|| {
            let types = text(&entry.types);
            let fields = about::split(&text(&entry.fields), types.len());
            EventInfo { id, name: text(&entry.name), types, fields }
        })
    }

    /// The threads that have an entry.
    #[must_use]
    pub fn writers(&self) -> Vec<WriterInfo> {
        let entries = self.used_entries().iter().enumerate();
        entries.filter_map(|(number, entry)| WriterInfo::of(number as u32, entry)).collect()
    }

    /// Whether the thread that has entry `number` can never write again.
    #[must_use]
    pub fn is_writer_dead(&self, number: u32) -> bool {
        let info = self.writer_entries().get(number as usize).and_then(|e| WriterInfo::of(number, e));
        info.is_none_or(|info| info.gone || self.process.thread_is_dead(info.tid, info.start_time))
    }
}

impl WriterInfo {
    fn of(number: u32, entry: &WriterEntry) -> Option<WriterInfo> {
        let tid = entry.tid.load(Acquire);
        (tid != 0).then(|| WriterInfo {
            number,
            tid,
            start_time: entry.start_time.load(Relaxed),
            gone: entry.gone.load(Acquire) != 0,
            has_ring: entry.ring.load(Relaxed) != 0,
        })
    }
}

/// How many of `words` are whole records; 0 where what follows them is no record.
fn whole(words: &[u64]) -> usize {
    let mut at = 0;
    while let Some(&[ticks, packed]) = words.get(at..at + HEAD_WORDS) {
        let head = Head::unpack(ticks, packed);
        let Some(arguments) = head.words().filter(|_| head.event != 0) else { return 0 };
        if at + HEAD_WORDS + arguments > words.len() {
            break;
        }
        at += HEAD_WORDS + arguments;
    }
    at
}

/// Hands the records in `words` on; how many there were, and 1 where something made no sense.
fn parse(words: &[u64], writer: u32, tid: u32, sink: &mut impl FnMut(RawRecord<'_>)) -> (u64, u64) {
    let (mut at, mut count) = (0, 0);
    while let Some(&[ticks, packed]) = words.get(at..at + HEAD_WORDS) {
        let head = Head::unpack(ticks, packed);
        let Some(arguments) = head.words().filter(|_| head.event != 0) else { return (count, 1) };
        let Some(args) = words.get(at + HEAD_WORDS..at + HEAD_WORDS + arguments) else { return (count, 1) };
        sink(RawRecord { ticks, event: head.event, cpu: head.cpu, flags: head.flags, writer, tid, args });
        count += 1;
        at += HEAD_WORDS + arguments;
    }
    (count, u64::from(at != words.len()))
}

/// A text of a directory entry, up to its first zero.
fn text(words: &[AtomicU64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    about::lossless(&bytes[..length])
}

fn refused(what: &str) -> Error {
    Error::bad_input(
        "the memory of a session",
        format!("{what} is wrong"),
        "the sender is not horolog of this version",
    )
}

fn check(header: &Header, length: usize) -> Result<Layout, Error> {
    if header.magic.load(Acquire) != MAGIC {
        return Err(refused("its first word"));
    }
    if header.version.load(Relaxed) != VERSION
        || header.header_bytes.load(Relaxed) as usize != size_of::<Header>()
    {
        return Err(refused("its version"));
    }
    let layout = Layout::of(&Sizes {
        rings: header.rings.load(Relaxed),
        ring_bytes: header.ring_bytes.load(Relaxed),
        slots: [header.slots[0].load(Relaxed), header.slots[1].load(Relaxed)],
        writers: header.writers.load(Relaxed),
        events: header.events.load(Relaxed),
    })?;
    if layout.total != length || header.total_bytes.load(Relaxed) != length as u64 {
        return Err(refused("its size"));
    }
    Ok(layout)
}
