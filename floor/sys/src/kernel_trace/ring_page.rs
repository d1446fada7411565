//! One page of the tracefs ring buffer, as `trace_pipe_raw` yields it.
//!
//! A page is a header (`events/header_page`: time stamp, length with flags) and entries of one 32-bit word each plus
//! data: the low 5 bits say how long, the upper 27 how many ns after the entry before.

use crate::event_format::{EventFormat, Field};
use crate::{Error, kernel_fs::KernelFs};

/// Where the parts of a page lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: usize,
}

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the length word: events were lost before this page, and how many stands behind the data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// A delta has 27 bits in an entry's word and 32 more behind it.
const DELTA_BITS: u32 = 27;
/// The bits of an absolute time stamp; the upper ones are those of the time before.
const STAMP_BITS: u32 = 59;

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry<'a> {
    /// Records were lost before this page: how many, 1 where the kernel does not say.
    Lost { time_ns: u64, count: u64 },
    /// One tracepoint record.
    Record { time_ns: u64, data: &'a [u8] },
}

impl PageLayout {
    /// Reads the layout from tracefs.
    pub(super) fn read(tracefs: &KernelFs) -> Result<PageLayout, Error> {
        PageLayout::parse(&tracefs.read("events/header_page")?)
            .ok_or_else(|| Error::unexpected("read(tracefs/events/header_page)", "no page layout", ""))
    }

    fn parse(text: &str) -> Option<PageLayout> {
        // The file has no number, which the parser of formats asks for.
        let format = EventFormat::parse("header_page", &format!("ID: 0\n{text}"))?;
        Some(PageLayout {
            timestamp: format.field("timestamp").ok()?,
            commit: format.field("commit").ok()?,
            data: format.field("data").ok()?.offset(),
        })
    }

    /// Hands over the entries of one page; stops at the first that does not make sense.
    pub(super) fn entries<'a>(&self, page: &'a [u8], each: &mut impl FnMut(Entry<'a>)) -> Option<()> {
        let mut time_ns = self.timestamp.integer(page)? as u64;
        let commit = self.commit.integer(page)? as u64;
        let length = (commit & (MISSED_STORED - 1)) as usize;
        let end = self.data.checked_add(length)?;
        let data = page.get(self.data..end)?;
        if commit & MISSED != 0 {
            let stored = page.get(end..end.checked_add(8)?).filter(|_| commit & MISSED_STORED != 0);
            let count =
                stored.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?))).unwrap_or(1);
            each(Entry::Lost { time_ns, count });
        }
        let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let mut at = 0;
        while at < data.len() {
            let head = word(at)?;
            // The kernel's bit fields begin at the low end on little-endian machines and at the high end on others.
            let (kind, delta) = if cfg!(target_endian = "little") {
                (head & 0x1f, u64::from(head >> 5))
            } else {
                (head >> 27, u64::from(head & 0x07ff_ffff))
            };
            match kind {
                PADDING if delta == 0 => return Some(()),
                PADDING => {
                    time_ns = time_ns.wrapping_add(delta);
                    at = at.checked_add(4)?.checked_add(word(at + 4)? as usize)?;
                }
                TIME_EXTEND | TIME_STAMP => {
                    let long = (u64::from(word(at + 4)?) << DELTA_BITS) + delta;
                    time_ns = if kind == TIME_EXTEND {
                        time_ns.wrapping_add(long)
                    } else {
                        (time_ns & !((1 << STAMP_BITS) - 1)) | long
                    };
                    at += 8;
                }
                short => {
                    time_ns = time_ns.wrapping_add(delta);
                    let (start, length) = if short == 0 {
                        (at + 8, (word(at + 4)? as usize).checked_sub(4)?)
                    } else {
                        (at + 4, short as usize * 4)
                    };
                    let stop = start.checked_add(length)?;
                    each(Entry::Record { time_ns, data: data.get(start..stop)? });
                    at = stop.next_multiple_of(4);
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        let word = if cfg!(target_endian = "little") { kind | (delta << 5) } else { (kind << 27) | delta };
        word.to_ne_bytes()
    }

    fn page(time: u64, flags: u64, data: &[&[u8]], behind: &[u8]) -> Vec<u8> {
        let data = data.concat();
        [&time.to_ne_bytes()[..], &(data.len() as u64 | flags).to_ne_bytes(), &data, behind].concat()
    }

    fn read(page: &[u8]) -> (Vec<Entry<'_>>, bool) {
        let mut entries = Vec::new();
        let whole =
            PageLayout::parse(HEADER).unwrap().entries(page, &mut |entry| entries.push(entry)).is_some();
        (entries, whole)
    }

    #[test]
    fn short_and_long_entries_and_times() {
        let page = page(
            1_000,
            0,
            &[
                &head(1, 5),
                b"abcd",
                &head(TIME_EXTEND, 1),
                &1_u32.to_ne_bytes(),
                &head(0, 2),
                &10_u32.to_ne_bytes(),
                b"efghij\0\0",
                &head(PADDING, 0),
                &[0; 8],
            ],
            &[],
        );
        let (entries, whole) = read(&page);
        assert!(whole);
        let long = 1_005 + (1 << 27) + 1 + 2;
        let expected = [
            Entry::Record { time_ns: 1_005, data: b"abcd" },
            Entry::Record { time_ns: long, data: b"efghij" },
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn an_absolute_stamp_replaces_the_low_bits() {
        let page = page(7, 0, &[&head(TIME_STAMP, 9), &2_u32.to_ne_bytes(), &head(1, 1), b"abcd"], &[]);
        assert_eq!(read(&page).0, [Entry::Record { time_ns: (2 << 27) + 9 + 1, data: b"abcd" }]);
    }

    #[test]
    fn losses_are_counted_where_the_kernel_says_how_many() {
        let stored = page(7, MISSED | MISSED_STORED, &[&head(1, 1), b"abcd"], &42_u64.to_ne_bytes());
        assert_eq!(read(&stored).0[0], Entry::Lost { time_ns: 7, count: 42 });
        let unknown = page(7, MISSED, &[&head(1, 1), b"abcd"], &[]);
        assert_eq!(read(&unknown).0[0], Entry::Lost { time_ns: 7, count: 1 });
    }

    #[test]
    fn a_cut_page_never_panics() {
        let whole =
            page(1, MISSED | MISSED_STORED, &[&head(0, 2), &12_u32.to_ne_bytes(), b"efghijkl"], &[1; 8]);
        for length in 0..whole.len() {
            let _ = read(&whole[..length]);
        }
        let wild = page(1, 0, &[&head(0, 2), &u32::MAX.to_ne_bytes()], &[]);
        assert!(!read(&wild).1);
        let negative = page(1, 0, &[&head(0, 2), &3_u32.to_ne_bytes()], &[]);
        assert!(!read(&negative).1);
    }
}
