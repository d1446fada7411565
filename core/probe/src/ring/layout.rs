//! Where everything stands in the memory of a session.

use super::memory::Shared;
use super::multi_writer::check_slots;
use super::per_thread::RingControl;
use core::sync::atomic::{AtomicU32, AtomicU64};
use horolog_sys::Error;

/// Offsets that a page may be mapped at.
pub const PAGE: usize = 4096;
/// The first eight bytes of a session.
pub const MAGIC: u64 = u64::from_le_bytes(*b"horolog\x01");
/// The version of this layout.
pub const VERSION: u32 = 4;
/// Bytes of a slot of the two multi-writer buffers: up to two arguments, up to ten.
pub const SLOT_BYTES: [usize; 2] = [32, 96];
/// Bytes that an event's name may have.
pub const NAME_BYTES: usize = 192;
/// Bytes that an event's types may have.
pub const TYPES_BYTES: usize = 16;
/// Bytes that the names and units of an event's arguments may have.
pub const FIELDS_BYTES: usize = crate::about::FIELDS_BYTES;
/// The largest memory that a session may ask for, and that a reader maps.
pub const MOST_BYTES: usize = 1 << 36;

/// The sizes that decide the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// How many threads may have a ring of their own.
    pub rings: u32,
    /// Bytes of each: a power of two of at least a page.
    pub ring_bytes: u32,
    /// Slots of the multi-writer buffers, 32 and 96 bytes each: powers of two.
    pub slots: [u32; 2],
    /// How many threads may write.
    pub writers: u32,
    /// How many events may have a number.
    pub events: u32,
}

/// What one process writes at the beginning, and what a reader checks before it believes any of it.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Size of this structure.
    pub header_bytes: AtomicU32,
    /// Size of the whole memory.
    pub total_bytes: AtomicU64,
    /// As [`Sizes::rings`].
    pub rings: AtomicU32,
    /// As [`Sizes::ring_bytes`].
    pub ring_bytes: AtomicU32,
    /// As [`Sizes::slots`].
    pub slots: [AtomicU32; 2],
    /// As [`Sizes::writers`].
    pub writers: AtomicU32,
    /// As [`Sizes::events`].
    pub events: AtomicU32,
    /// 0: a full ring refuses; 1: it overwrites the oldest.
    pub overwrites: AtomicU32,
    /// 0: `CLOCK_MONOTONIC` in ns; 1: time-stamp counter.
    pub clock: AtomicU32,
    /// The process, as it calls itself.
    pub pid: AtomicU32,
    /// How many entries of the directory are in use or being filled.
    pub declared: AtomicU32,
    /// When the process began, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub process_start: AtomicU64,
    /// Increases whenever a snapshot is asked for.
    pub snapshot: AtomicU64,
    /// `r` of the multi-writer buffers, for a later reader; stored by the reader.
    pub read: [AtomicU32; 2],
    /// Losses by cause that belong to no buffer: see `Cause`.
    pub lost: [AtomicU64; 5],
    /// How many writers' entries were ever taken: the others are not looked at, so that their pages need not exist.
    pub writers_used: AtomicU32,
    /// How many rings were ever taken; only grows.
    pub rings_used: AtomicU32,
    /// Bytes of rings that this session took from what all sessions may have.
    pub claimed: AtomicU64,
}

/// One event of the directory.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct EventEntry {
    /// 0 free, 1 being filled, 2 complete.
    pub state: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// The name's bytes, ended by zero.
    pub name: [AtomicU64; NAME_BYTES / 8],
    /// One letter an argument, ended by zero.
    pub types: [AtomicU64; TYPES_BYTES / 8],
    /// What the arguments are called: `length[B],socket`, ended by zero.
    pub fields: [AtomicU64; FIELDS_BYTES / 8],
}

impl EventEntry {
    /// An entry that is free.
    #[must_use]
    pub const fn empty() -> EventEntry {
        EventEntry {
            state: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            name: [const { AtomicU64::new(0) }; NAME_BYTES / 8],
            types: [const { AtomicU64::new(0) }; TYPES_BYTES / 8],
            fields: [const { AtomicU64::new(0) }; FIELDS_BYTES / 8],
        }
    }
}

/// One writer.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct WriterEntry {
    /// Odd while the writer is inside an operation on a multi-writer buffer. Never set back, whoever the writer is.
    pub sequence: AtomicU64,
    /// The thread that has the entry; 0: nobody.
    pub tid: AtomicU32,
    /// 0: in use; 1: the thread has ended, or a later thread of the same number found the entry left behind.
    pub gone: AtomicU32,
    /// When the thread began, in clock ticks since boot (`/proc/PID/task/TID/stat`, field 22); 0: not known.
    pub start_time: AtomicU64,
    /// Counts the owners that the entry has had.
    pub generation: AtomicU32,
    /// The number of its ring plus 1; 0: none.
    pub ring: AtomicU32,
    /// Operations that were left by `longjmp` or cancellation.
    pub abandoned: AtomicU64,
}

/// The counters of one multi-writer buffer, each in a cache line of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct QueueControl {
    /// `f`.
    pub free: AtomicU32,
    pad: [AtomicU32; 31],
    /// `w`.
    pub written: AtomicU32,
    pad2: [AtomicU32; 31],
    /// `e`.
    pub failed: AtomicU64,
    pad3: [AtomicU64; 15],
}

// SAFETY: atomic integers alone.
unsafe impl Shared for Header {}
// SAFETY: atomic integers alone.
unsafe impl Shared for EventEntry {}
// SAFETY: atomic integers alone.
unsafe impl Shared for WriterEntry {}
// SAFETY: atomic integers alone.
unsafe impl Shared for QueueControl {}

/// Offsets of the parts, all from the beginning of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The sizes that led to it.
    pub sizes: Sizes,
    /// The directory of events.
    pub events: usize,
    /// The writers.
    pub writers: usize,
    /// The rings' controls.
    pub ring_controls: usize,
    /// The multi-writer buffers: control, markers, slots of each.
    pub queues: [Queue; 2],
    /// The rings' data, each a whole number of pages.
    pub rings: usize,
    /// Everything.
    pub total: usize,
}

/// Offsets of one multi-writer buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its counters.
    pub control: usize,
    /// Its markers.
    pub markers: usize,
    /// Its slots.
    pub slots: usize,
}

impl Layout {
    /// The layout for `sizes`.
    ///
    /// # Errors
    /// Bad input, with the size that is at fault.
    pub fn of(sizes: &Sizes) -> Result<Layout, Error> {
        check(sizes)?;
        let mut next = size_of::<Header>();
        let mut part = |bytes: usize, align: usize| {
            let at = next.next_multiple_of(align);
            next = at + bytes;
            at
        };
        // The first page has room for seven events; the counters share one with the first rings' controls.
        let events = part(sizes.events as usize * size_of::<EventEntry>(), 128);
        let writers = part(sizes.writers as usize * size_of::<WriterEntry>(), 128);
        let controls = [0, 1].map(|_| part(size_of::<QueueControl>(), 128));
        let ring_controls = part(sizes.rings as usize * size_of::<RingControl>(), 128);
        let mut queue = |class: usize| {
            let slots = sizes.slots[class] as usize;
            Queue {
                control: controls[class],
                markers: part(slots * 4, 128),
                slots: part(slots * SLOT_BYTES[class], 128),
            }
        };
        let queues = [queue(0), queue(1)];
        let rings = part(sizes.rings as usize * sizes.ring_bytes as usize, PAGE);
        let total = next.next_multiple_of(PAGE);
        Ok(Layout { sizes: *sizes, events, writers, ring_controls, queues, rings, total })
    }

    /// Where the data of ring `ring` begin.
    #[must_use]
    pub fn ring(&self, ring: usize) -> usize {
        self.rings + ring * self.sizes.ring_bytes as usize
    }
}

fn check(sizes: &Sizes) -> Result<(), Error> {
    let bad = |what: String, remedy: &str| Err(Error::bad_input(what, "out of range", remedy));
    if !sizes.ring_bytes.is_power_of_two() || (sizes.ring_bytes as usize) < PAGE || sizes.ring_bytes > 1 << 30
    {
        return bad(
            format!("a ring of {} bytes", sizes.ring_bytes),
            "give a power of two from 4 KiB to 1 GiB",
        );
    }
    if sizes.rings > 4096 {
        return bad(format!("{} rings", sizes.rings), "give at most 4096");
    }
    if sizes.writers == 0 || sizes.writers > 1 << 16 {
        return bad(format!("{} writers", sizes.writers), "give 1 to 65536");
    }
    if sizes.events == 0 || sizes.events > 1 << 16 {
        return bad(format!("{} events", sizes.events), "give 1 to 65536");
    }
    sizes.slots.iter().try_for_each(|slots| check_slots(*slots))?;
    let most = u64::from(sizes.rings) * u64::from(sizes.ring_bytes);
    if most > MOST_BYTES as u64 / 2 {
        return bad(
            format!("{} rings of {} bytes", sizes.rings, sizes.ring_bytes),
            "ask for less than 32 GiB",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { rings: 3, ring_bytes: 4096, slots: [4, 8], writers: 5, events: 7 };

    #[test]
    fn parts_do_not_overlap_and_rings_begin_at_pages() {
        let layout = Layout::of(&SIZES).expect("fits");
        let [small, large] = layout.queues;
        let starts = [
            (0, size_of::<Header>()),
            (layout.events, 7 * 512),
            (layout.writers, 5 * 128),
            (small.control, size_of::<QueueControl>()),
            (large.control, size_of::<QueueControl>()),
            (layout.ring_controls, 3 * size_of::<RingControl>()),
            (small.markers, 16),
            (small.slots, 4 * 32),
            (large.markers, 32),
            (large.slots, 8 * 96),
            (layout.rings, 3 * 4096),
            (layout.total, 0),
        ];
        for pair in starts.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{starts:?}");
        }
        assert!(layout.rings.is_multiple_of(PAGE) && layout.total.is_multiple_of(PAGE));
        assert!(layout.events + 7 * 512 <= PAGE, "the events of locks fit into the first page");
    }

    #[test]
    fn a_session_that_has_no_event_yet_takes_two_pages() {
        let sizes = crate::session::Options::recorded().sizes();
        let layout = Layout::of(&sizes).expect("fits");
        let page_of = |at: usize| at / PAGE;
        assert_eq!(page_of(layout.queues[0].control), page_of(layout.ring_controls));
        assert_eq!(page_of(layout.queues[1].control), page_of(layout.ring_controls));
    }

    #[test]
    fn the_number_of_slots_must_divide_two_to_the_32() {
        assert!(check_slots(3).is_err());
        assert!(check_slots(0).is_err());
        assert!(check_slots(4).is_ok());
        assert!(Layout::of(&Sizes { slots: [3, 4], ..SIZES }).is_err());
        assert!(Layout::of(&Sizes { ring_bytes: 4095, ..SIZES }).is_err());
        assert!(Layout::of(&Sizes { ring_bytes: 2048, ..SIZES }).is_err());
    }

    #[test]
    fn entries_have_the_sizes_that_the_documentation_states() {
        assert_eq!((size_of::<EventEntry>(), size_of::<WriterEntry>()), (512, 128));
        assert_eq!((size_of::<RingControl>(), size_of::<QueueControl>()), (128, 384));
        assert_eq!(core::mem::offset_of!(RingControl, tail), 64);
    }
}
