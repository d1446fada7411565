//! How the reader proves that a writer will never finish its slot, and what it sets right then.
//!
//! A writer's sequence is odd while it is inside an operation on a multi-writer buffer, and never goes back. Let slot r
//! be taken (w != r) and not READY. Its taker made its sequence odd before it took w (release, read with acquire
//! together with w), so it is among the writers in flight that the reader then collects, or it has finished meanwhile.
//! Once each of those has a new sequence or is dead, and the slot is still not READY, no living writer can own it: a
//! writer that finished stored READY before its new sequence (release), which the reader has read (acquire).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{LOOKUPS, Reader};
use crate::ring::multi_writer::Found;
use crate::ring::per_thread::UNUSED;

/// A slot that a writer took and did not finish, with those who may own it.
#[derive(Clone, Debug)]
pub(super) struct Suspicion {
    /// Entries with their odd sequences.
    in_flight: Vec<(usize, u64)>,
}

/// How often in one pass the reader looks for a moment at which no writer is in an operation.
const LOOKS_FOR_QUIET: u32 = 16;

/// After so many passes with too small an `f` the reader looks for writers that died.
const SUSPICIOUS_PASSES: u32 = 3;

impl Reader {
    fn in_flight(&self) -> Vec<(usize, u64)> {
        let sequences = self.used_entries().iter().map(|entry| entry.sequence.load(Acquire)).enumerate();
        sequences.filter(|(_, sequence)| sequence & 1 == 1).collect()
    }

    /// Whether the unfinished slot at the reader's place has no living owner.
    pub(super) fn is_left_behind(&mut self, class: usize) -> bool {
        let mut suspicion = match self.suspicions[class].take() {
            Some(suspicion) => suspicion,
            None => Suspicion { in_flight: self.in_flight() },
        };
        while let Some((number, sequence)) = suspicion.in_flight.last().copied() {
            let moved = self.writer_entries()[number].sequence.load(Acquire) != sequence;
            if !moved && !self.is_over(number) {
                break;
            }
            suspicion.in_flight.pop();
        }
        let left = suspicion.in_flight.is_empty()
            && matches!(self.queue(class).look(self.read[class]), Found::Unfinished { .. });
        self.suspicions[class] = Some(suspicion);
        left
    }

    /// Whether no thread will ever run in entry `number` again: its thread is dead, or nobody has it. `false` also where
    /// too many threads were looked up in this pass; a later one asks again.
    fn is_over(&self, number: usize) -> bool {
        let entry = &self.writer_entries()[number];
        let tid = entry.tid.load(Acquire);
        // A thread that ends by itself makes its sequence even first; `gone` with an odd one was left by a dead thread.
        if tid == 0 || entry.gone.load(Acquire) != 0 {
            return true;
        }
        let Some(left) = self.lookups.get().checked_sub(1) else { return false };
        self.lookups.set(left);
        self.process.thread_is_dead(tid, entry.start_time.load(Relaxed))
    }

    /// Restores `f` after a writer died, or left, between taking `f` and taking `w`: only at a moment at which no living
    /// writer was in an operation. All sequences are read, then `f` and `w`, then all sequences again; if all were even
    /// (or their writers dead) and none changed, no operation was under way while `f` and `w` were read, so that
    /// `f = n - (w - r)` must hold.
    pub(super) fn repair(&mut self) {
        let mut abandoned = 0_u64;
        for entry in self.used_entries() {
            abandoned = abandoned.wrapping_add(entry.abandoned.load(Relaxed));
        }
        if abandoned != self.abandoned_seen {
            self.abandoned_seen = abandoned;
            self.repairs_due = [true; 2];
        }
        for class in 0..2 {
            // Writers in the middle make `f` look too small for a moment; one that died there, for ever.
            let queue = self.queue(class);
            let seen = queue.deficit(queue.free.load(Acquire), queue.written.load(Acquire), self.read[class]);
            self.short[class] = if seen == 0 { 0 } else { self.short[class].saturating_add(1) };
            self.repairs_due[class] |= self.short[class] >= SUSPICIOUS_PASSES;
            if self.repairs_due[class] && (0..LOOKS_FOR_QUIET).any(|_| self.repair_once(class)) {
                self.repairs_due[class] = false;
            }
        }
    }

    fn repair_once(&self, class: usize) -> bool {
        let sequences =
            || -> Vec<u64> { self.used_entries().iter().map(|entry| entry.sequence.load(Acquire)).collect() };
        let before = sequences();
        let busy = |(number, sequence): (usize, &u64)| sequence & 1 == 1 && !self.is_over(number);
        if before.iter().enumerate().any(busy) {
            return false;
        }
        let queue = self.queue(class);
        let (free, written) = (queue.free.load(Acquire), queue.written.load(Acquire));
        if sequences() != before {
            return false;
        }
        let deficit = queue.deficit(free, written, self.read[class]);
        queue.free.fetch_add(deficit, Release);
        true
    }

    /// Entries whose threads can never write again. Threads that never said so are looked up only while the buffers
    /// need their entries: when an operation of theirs is in the way, or when few entries are left.
    pub(super) fn find_gone(&mut self) -> Vec<usize> {
        let mut taken: Vec<usize> = self.taken_entries().collect();
        self.note_starts(&taken);
        if !taken.is_empty() {
            // Not always from the first: a pass looks up only so many.
            self.first_lookup = (self.first_lookup + LOOKUPS as usize / 2) % taken.len();
            taken.rotate_left(self.first_lookup);
        }
        let scarce = taken.len() * 4 >= self.writer_entries().len() * 3;
        let rings = self.ring_controls()[..self.rings_used()]
            .iter()
            .filter(|ring| ring.owner.load(Relaxed) & 0xff != UNUSED)
            .count();
        let scarce = scarce || rings * 4 >= self.ring_controls().len() * 3;
        let gone = |number: &usize| {
            let entry = &self.writer_entries()[*number];
            entry.gone.load(Acquire) != 0 || (scarce && self.is_over(*number))
        };
        taken.into_iter().filter(gone).collect()
    }

    /// Notes when the threads with new entries began, so that a later thread of the same number is not taken for them.
    fn note_starts(&self, taken: &[usize]) {
        for entry in taken.iter().map(|number| &self.writer_entries()[*number]) {
            if entry.start_time.load(Relaxed) != 0 || self.process.is_foreign() {
                continue;
            }
            let Some(left) = self.lookups.get().checked_sub(1) else { return };
            self.lookups.set(left);
            if let Some(start) = self.process.thread_start(entry.tid.load(Acquire)) {
                entry.start_time.store(start, Relaxed);
            }
        }
    }

    fn taken_entries(&self) -> impl Iterator<Item = usize> {
        let entries = self.used_entries().iter().enumerate();
        entries.filter(|(_, entry)| entry.tid.load(Acquire) != 0).map(|(number, _)| number)
    }

    /// Returns the rings of ended threads to the pool once they are drained, and their entries once nothing of theirs
    /// can be left in the multi-writer buffers (`emptied`).
    pub(super) fn free(&mut self, gone: &[usize], emptied: bool) {
        for number in gone.iter().copied() {
            let entry = &self.writer_entries()[number];
            let ring = entry.ring.load(Acquire).checked_sub(1).map(|ring| ring as usize);
            if let Some(ring) = ring.filter(|ring| *ring < self.taken.len())
                && !self.free_ring(ring, number)
            {
                continue;
            }
            if !emptied {
                continue;
            }
            let entry = &self.writer_entries()[number];
            if entry.sequence.load(Relaxed) & 1 == 1 {
                // Its writer died inside an operation; the next one begins outside.
                entry.sequence.fetch_add(1, Release);
                self.repairs_due = [true; 2];
            }
            let entry = &self.writer_entries()[number];
            entry.ring.store(0, Relaxed);
            entry.start_time.store(0, Relaxed);
            entry.generation.fetch_add(1, Relaxed);
            entry.gone.store(0, Relaxed);
            entry.tid.store(0, Release);
        }
    }

    /// Returns a ring to the pool; `false` where it still holds records.
    fn free_ring(&self, ring: usize, number: usize) -> bool {
        let control = &self.ring_controls()[ring];
        let owner = control.owner.load(Acquire);
        if owner & 0xff == UNUSED || (owner >> 8) as usize != number {
            return true;
        }
        if !self.overwrites && control.head.load(Acquire) != self.taken[ring] {
            return false;
        }
        // The number stays, so that a snapshot still names the writer of what stands in the ring.
        control.owner.store(UNUSED | owner & !0xff, Release);
        true
    }
}
