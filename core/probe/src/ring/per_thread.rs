//! The buffer of one thread: one producer, one reader, no locked instruction.
//!
//! Counters are bytes since the beginning and never wrap in practice (2^64 bytes). The producer alone stores `head` and
//! `oldest`, the reader alone stores `tail`. A record is written whole before `head` is stored with release order, so
//! the reader never sees a part of one, and a producer that dies inside an emission leaves nothing behind.

use super::word::Wide;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// What a ring's producer and reader share; two cache lines, one for each.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RingControl {
    /// Bytes published; stored by the producer.
    pub head: AtomicU64,
    /// Overwriting rings: the first byte that still stands; stored by the producer.
    pub oldest: AtomicU64,
    /// Records that found the ring full; stored by the producer.
    pub lost: AtomicU64,
    /// [`UNUSED`], [`OWNED`] or [`ENDED`]; above the lowest byte the number of the writer.
    pub owner: AtomicU32,
    /// The thread that has, or last had, the ring; stored before its first record.
    pub tid: AtomicU32,
    /// Grows from each taking of a ring to the next in the process; stored before the first record.
    pub since: AtomicU64,
    reserved: [u32; 6],
    /// Bytes taken; stored by the reader.
    pub tail: AtomicU64,
    reserved_for_reader: [u64; 7],
}

/// A ring that no thread has.
pub const UNUSED: u32 = 0;
/// A ring that a thread has.
pub const OWNED: u32 = 1;
/// A ring whose thread has ended; the reader returns it to the pool.
pub const ENDED: u32 = 2;

/// Whether a record of `bytes` fits at `head` where the reader has taken everything before `tail` of `size` bytes.
#[inline(always)]
#[must_use]
pub fn fits(head: u64, bytes: u64, tail: u64, size: u64) -> bool {
    head.wrapping_add(bytes).wrapping_sub(tail) <= size
}

/// Makes room in an overwriting ring: pushes `oldest` over whole records until `bytes` fit at `head`. At most one step
/// for every 16 bytes, since no record is shorter. `length_at` gives the length of the record that starts at a count.
/// Returns the new `oldest`.
pub fn overwrite<W: Wide>(
    oldest: &W,
    head: u64,
    bytes: u64,
    size: u64,
    length_at: impl Fn(u64) -> u64,
) -> u64 {
    let mut first = oldest.load(Relaxed);
    while !fits(head, bytes, first, size) {
        first += length_at(first);
    }
    oldest.store(first, Relaxed);
    // The reader that sees a word of the new record must also see that the old one is gone.
    W::fence(Release);
    first
}

/// The counts between which a reader of a ring finds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub from: u64,
    /// The byte after the last.
    pub to: u64,
}

impl Span {
    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.to.wrapping_sub(self.from)
    }
}

/// What stands in a ring of `size` bytes whose reader has taken everything before `taken`: `None` where the producer's
/// count makes no sense.
#[must_use]
pub fn published<W: Wide>(head: &W, taken: u64, size: u64) -> Option<Span> {
    between(taken, head.load(Acquire), size)
}

/// What stands between the two counts of a ring of `size` bytes: `None` where they make no sense.
#[must_use]
pub fn between(taken: u64, to: u64, size: u64) -> Option<Span> {
    let waiting = to.wrapping_sub(taken);
    (waiting <= size && waiting.is_multiple_of(8)).then_some(Span { from: taken, to })
}

/// Copies what an overwriting ring holds, and says how many bytes at the beginning of the copy are not good: they were
/// overwritten while they were copied.
pub fn copy_overwriting<W: Wide>(
    head: &W,
    oldest: &W,
    size: u64,
    mut copy: impl FnMut(Span),
) -> Option<(Span, u64)> {
    let from = oldest.load(Acquire);
    let span = published(head, from, size)?;
    copy(span);
    W::fence(Acquire);
    let good = oldest.load(Relaxed);
    Some((span, good.wrapping_sub(from).min(span.bytes())))
}
