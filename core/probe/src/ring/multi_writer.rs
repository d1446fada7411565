//! The wait-free buffer with any number of writers and one reader.
//!
//! Source: Brandenburg and Anderson, *Feather-Trace: A Light-Weight Event Tracing Toolkit*, OSPERT 2007, section 4. The
//! operation sequences are theirs:
//!
//! ```text
//! start_write:  if fetch_add(f, -1) <= 0 { fetch_add(f, +1); fetch_add(e, +1); fail }
//!               i = fetch_add(w, +1) mod n; marker[i] = BUSY; slot i
//! finish_write: marker[i] = READY
//! read:         if f == n: nothing; i = r mod n; if marker[i] != READY: nothing
//!               copy slot i; marker[i] = FREE; r += 1; fetch_add(f, +1)
//! ```
//!
//! Every call is a fixed number of steps: two locked instructions for a slot, three for a failure.
//!
//! # Differences
//! `e` has 64 bits, so that a loss is never forgotten by wrapping; the paper's has 32. The paper relies on the order of
//! stores that x86 keeps; here READY and the final `f` are stored with release order and the marker is loaded with
//! acquire order, so that the proof holds on every machine. BUSY and READY carry the number of the writer.

use super::word::{Wide, Word};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use horolog_sys::Error;

/// Marker of a slot that nobody holds.
pub const FREE: u32 = 0;
/// Marker of a slot that a writer holds.
pub const BUSY: u32 = 1;
/// Marker of a slot whose item waits for the reader.
pub const READY: u32 = 2;
/// The bits of a marker that hold its state; the writer's number stands above them.
pub const STATE: u32 = 0xff;

/// Refuses a number of slots that does not divide 2^32: the wrapping counters `r` and `w` would then skip slots at the
/// wrap.
///
/// # Errors
/// Bad input unless `slots` is a power of two from 1 to 2^24.
pub fn check_slots(slots: u32) -> Result<(), Error> {
    if slots.is_power_of_two() && slots <= 1 << 24 {
        return Ok(());
    }
    Err(Error::bad_input(
        format!("a buffer of {slots} slots"),
        "the number of slots must divide 2^32, so that its counters may wrap",
        "give a power of two of at most 16777216",
    ))
}

/// The words of one buffer; what the slots hold is the business of whoever has been given one.
#[derive(Debug)]
pub struct MultiWriter<'a, W, E> {
    /// `f`: how many slots are free, a signed number that dips below zero while failing writers overlap.
    pub free: &'a W,
    /// `w`: how many slots were given to writers, modulo 2^32.
    pub written: &'a W,
    /// `e`: how many writes failed.
    pub failed: &'a E,
    /// One marker a slot.
    pub markers: &'a [W],
}

impl<W, E> Clone for MultiWriter<'_, W, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, E> Copy for MultiWriter<'_, W, E> {}

impl<W: Word, E: Wide> MultiWriter<'_, W, E> {
    /// Sets the counters of a buffer that nobody uses yet. `start` is the first value of `r` and `w`.
    pub fn reset(&self, start: u32) {
        for marker in self.markers {
            marker.store(FREE, Relaxed);
        }
        self.written.store(start, Relaxed);
        self.failed.store(0, Relaxed);
        self.free.store(self.markers.len() as u32, Release);
    }

    /// As [`MultiWriter::reset`] from 0 on, for memory that is all zero: the markers say FREE already, and their pages
    /// need not exist yet.
    pub fn begin(&self) {
        self.free.store(self.markers.len() as u32, Release);
    }

    /// The place of count `count` (`r` or `w`) among the slots.
    #[inline(always)]
    fn place(&self, count: u32) -> usize {
        count as usize & (self.markers.len() - 1)
    }

    /// Takes a slot for `writer`, or counts a failure.
    #[inline(always)]
    pub fn start_write(&self, writer: u32) -> Option<usize> {
        // Acquire: a free slot that the reader gave back must not be written before the reader has copied it.
        // Release: the store that says "in an operation" must be visible to whoever sees the changed counters.
        if self.free.add(u32::MAX, AcqRel) as i32 <= 0 {
            self.give_up();
            return None;
        }
        let place = self.place(self.written.add(1, AcqRel));
        self.markers[place].store(BUSY | writer << 8, Relaxed);
        Some(place)
    }

    #[cold]
    fn give_up(&self) {
        self.free.add(1, AcqRel);
        self.failed.add(1, Relaxed);
    }

    /// Hands the slot to the reader.
    #[inline(always)]
    pub fn finish_write(&self, place: usize, writer: u32) {
        self.markers[place].store(READY | writer << 8, Release);
    }

    /// What the reader finds at its count `read`.
    pub fn look(&self, read: u32) -> Found {
        if self.free.load(Acquire) == self.markers.len() as u32 {
            return Found::Nothing;
        }
        let place = self.place(read);
        let marker = self.markers[place].load(Acquire);
        if marker & STATE == READY {
            return Found::Item { place, writer: marker >> 8 };
        }
        // Acquire: whoever took the slot has said before that it is in an operation.
        if self.written.load(Acquire) == read { Found::Nothing } else { Found::Unfinished { place } }
    }

    /// Gives the slot at count `read` back to the writers; the reader's next count is returned.
    pub fn release(&self, read: u32) -> u32 {
        self.markers[self.place(read)].store(FREE, Relaxed);
        self.free.add(1, Release);
        read.wrapping_add(1)
    }

    /// How many slots `f` says too few are free, given that no writer was in an operation while `f` and `w` were read:
    /// what writers took that died between taking `f` and taking `w`.
    #[must_use]
    pub fn deficit(&self, free: u32, written: u32, read: u32) -> u32 {
        let taken = written.wrapping_sub(read);
        let should = (self.markers.len() as u32).wrapping_sub(taken);
        let deficit = should.wrapping_sub(free);
        if deficit <= self.markers.len() as u32 { deficit } else { 0 }
    }
}

/// What a reader found at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No writer has taken the slot.
    Nothing,
    /// A writer has taken the slot and not finished it.
    Unfinished {
        /// The slot.
        place: usize,
    },
    /// A finished item.
    Item {
        /// The slot.
        place: usize,
        /// Who wrote it, as the marker says.
        writer: u32,
    },
}
