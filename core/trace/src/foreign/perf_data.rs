//! perf.data: `perf record -a -e sched:sched_switch,sched:sched_wakeup -k CLOCK_MONOTONIC`.
//!
//! The file's layout is in the kernel's `tools/perf/Documentation/perf.data-file-format.txt`, that of samples in
//! `perf_event_open(2)`.

use super::cursor::{Cursor, section};
use super::formats::Formats;
use super::{Event, EventKind, Source};
use crate::TraceError;

/// The first bytes.
pub(super) const MAGIC: &[u8; 8] = b"PERFILE2";

const FEATURE_TRACING_DATA: u32 = 1;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;
const CLOCK_MONOTONIC: i32 = 1;
const USE_CLOCKID: u64 = 1 << 25;

/// Every record that is no sample ends like one (`sample_id_all`).
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// What a sample holds; the same for all events of a file that `perf record` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SampleType {
    bits: u64,
    /// Whether records that are no samples say when and where they were written.
    is_everywhere: bool,
}

impl SampleType {
    const IP: u64 = 1;
    const TID: u64 = 1 << 1;
    const TIME: u64 = 1 << 2;
    const ADDR: u64 = 1 << 3;
    const READ: u64 = 1 << 4;
    const CALLCHAIN: u64 = 1 << 5;
    const ID: u64 = 1 << 6;
    const CPU: u64 = 1 << 7;
    const PERIOD: u64 = 1 << 8;
    const STREAM_ID: u64 = 1 << 9;
    const RAW: u64 = 1 << 10;
    const IDENTIFIER: u64 = 1 << 16;

    fn has(self, bit: u64) -> bool {
        self.bits & bit != 0
    }

    /// Time and processor of a record that is no sample, from its end.
    fn place(self, body: &[u8]) -> Option<(u64, u32)> {
        if !self.is_everywhere || !self.has(Self::TIME) || !self.has(Self::CPU) {
            return None;
        }
        let length = |bits: &[u64]| bits.iter().filter(|bit| self.has(**bit)).count() * 8;
        let whole = length(&[Self::TID, Self::TIME, Self::ID, Self::STREAM_ID, Self::CPU, Self::IDENTIFIER]);
        let mut cursor = Cursor::new(body.get(body.len().checked_sub(whole)?..)?);
        cursor.skip(length(&[Self::TID]) as u64)?;
        let time = cursor.u64()?;
        cursor.skip(length(&[Self::ID, Self::STREAM_ID]) as u64)?;
        Some((time, cursor.u32()?))
    }

    /// Time, processor and raw data of a sample; `None` where it is damaged.
    fn split(self, body: &[u8]) -> Option<(u64, u32, &[u8])> {
        let mut cursor = Cursor::new(body);
        for bit in [Self::IDENTIFIER, Self::IP, Self::TID] {
            if self.has(bit) {
                cursor.skip(8)?;
            }
        }
        let time = if self.has(Self::TIME) { cursor.u64()? } else { 0 };
        for bit in [Self::ADDR, Self::ID, Self::STREAM_ID] {
            if self.has(bit) {
                cursor.skip(8)?;
            }
        }
        let mut cpu = 0;
        if self.has(Self::CPU) {
            cpu = cursor.u32()?;
            cursor.skip(4)?;
        }
        if self.has(Self::PERIOD) {
            cursor.skip(8)?;
        }
        if self.has(Self::CALLCHAIN) {
            let frames = cursor.u64()?;
            cursor.skip(frames.checked_mul(8)?)?;
        }
        if !self.has(Self::RAW) {
            return None;
        }
        let size = cursor.u32()?;
        Some((time, cpu, cursor.take(u64::from(size))?))
    }
}

/// Reads a perf.data file.
pub(super) fn read(bytes: &[u8]) -> Result<Source, TraceError> {
    let damaged = || TraceError::not_a_trace("the perf.data file is damaged or cut off");
    let mut head = Cursor::new(bytes);
    head.skip(16).ok_or_else(damaged)?;
    let attribute_size = head.u64().ok_or_else(damaged)?;
    let mut sections = [(0, 0); 3];
    for place in &mut sections {
        *place = (head.u64().ok_or_else(damaged)?, head.u64().ok_or_else(damaged)?);
    }
    let [(attributes_at, attributes_size), (data_at, data_size), _] = sections;
    let features = [head.u64(), head.u64(), head.u64(), head.u64()];
    let features = features.map(Option::unwrap_or_default);
    if data_size == 0 {
        return Err(TraceError::unsupported(
            "the perf.data file has no data: perf did not finish it, or it was piped",
            "let perf record end by itself or with one Ctrl-C, and write into a file",
        ));
    }
    let attributes = section(bytes, attributes_at, attributes_size).ok_or_else(damaged)?;
    let (sample_type, monotonic) = attribute(attributes, attribute_size).ok_or_else(damaged)?;
    let data = section(bytes, data_at, data_size).ok_or_else(damaged)?;
    let formats = data_at
        .checked_add(data_size)
        .and_then(|at| tracing_data(bytes, at, features))
        .filter(Formats::has_switches)
        .ok_or_else(|| {
            TraceError::unsupported(
                "the perf.data file has no sched_switch tracepoint",
                "record with `perf record -a -e sched:sched_switch,sched:sched_wakeup -k CLOCK_MONOTONIC`",
            )
        })?;
    let mut source =
        Source { clock: if monotonic { "CLOCK_MONOTONIC" } else { "perf" }.to_owned(), ..Source::default() };
    records(data, sample_type, &formats, &mut source)?;
    Ok(source)
}

/// Sample type of the first event, and whether it is stamped by CLOCK_MONOTONIC.
fn attribute(bytes: &[u8], size: u64) -> Option<(SampleType, bool)> {
    let first = section(bytes, 0, size)?;
    let mut cursor = Cursor::new(first);
    cursor.skip(24)?;
    let bits = cursor.u64()?;
    cursor.skip(8)?;
    let flags = cursor.u64()?;
    let sample_type = SampleType { bits, is_everywhere: flags & SAMPLE_ID_ALL != 0 };
    cursor.skip(44)?;
    let clock = cursor.u32().map(u32::cast_signed);
    // A group's counter values have a length of their own; perf record does not ask for them here.
    if sample_type.has(SampleType::READ) {
        return None;
    }
    Some((sample_type, flags & USE_CLOCKID != 0 && clock == Some(CLOCK_MONOTONIC)))
}

/// The kernel's formats: behind the data, one section for each feature that is set, in the order of their bits.
fn tracing_data(bytes: &[u8], at: u64, features: [u64; 4]) -> Option<Formats> {
    let set = |bit: u32| features[bit as usize / 64] >> (bit % 64) & 1 == 1;
    if !set(FEATURE_TRACING_DATA) {
        return None;
    }
    let before = (0..FEATURE_TRACING_DATA).filter(|bit| set(*bit)).count() as u64;
    let mut table = Cursor::new(section(bytes, at.checked_add(before * 16)?, 16)?);
    let (offset, size) = (table.u64()?, table.u64()?);
    let mut cursor = Cursor::new(section(bytes, offset, size)?);
    if cursor.take(10)? != b"\x17\x08\x44tracing" {
        return None;
    }
    let _version = cursor.text()?;
    // Byte order, size of long, page size.
    if cursor.u8()? != 0 {
        return None;
    }
    cursor.skip(5)?;
    Formats::read(&mut cursor)
}

fn records(
    data: &[u8],
    sample_type: SampleType,
    formats: &Formats,
    source: &mut Source,
) -> Result<(), TraceError> {
    let mut cursor = Cursor::new(data);
    while !cursor.is_at_end() {
        let at = cursor.position();
        let (Some(kind), Some(_misc), Some(size)) = (cursor.u32(), cursor.u16(), cursor.u16()) else {
            source.notes.push(format!("the data is cut off at byte {at} of its section"));
            return Ok(());
        };
        let Some(body) = u64::from(size).checked_sub(8).and_then(|length| cursor.take(length)) else {
            source.notes.push(format!("a record at byte {at} of the data is damaged: the rest was not read"));
            return Ok(());
        };
        match kind {
            RECORD_SAMPLE => {
                if let Some((time, cpu, raw)) = sample_type.split(body) {
                    source.events.extend(formats.event(time, cpu, raw));
                }
            }
            RECORD_LOST | RECORD_LOST_SAMPLES => {
                // The first one names an event before the number.
                let number = if kind == RECORD_LOST { 8 } else { 0 };
                let count = Cursor::new(&body[body.len().min(number)..]).u64().unwrap_or(0);
                match sample_type.place(body).filter(|_| kind == RECORD_LOST) {
                    Some((time, cpu)) => {
                        source.events.push(Event { time, cpu, kind: EventKind::Lost { count } })
                    }
                    None => source.lost = source.lost.saturating_add(count),
                }
            }
            RECORD_COMPRESSED | RECORD_COMPRESSED2 => {
                return Err(TraceError::unsupported("the perf.data file is compressed", "record without -z"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_stands_where_the_record_of_it_says() {
        let bits =
            SampleType::TID | SampleType::TIME | SampleType::CPU | SampleType::IDENTIFIER | SampleType::RAW;
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        // Event, number; thread, time, processor, identifier.
        let body = words(&[55, 12, 0x0700_0000_0007, 4_000, 3, 55]);
        let record = |kind: u32, body: &[u8]| {
            let head = [&kind.to_le_bytes()[..], &[0, 0], &(8 + body.len() as u16).to_le_bytes()].concat();
            [head, body.to_vec()].concat()
        };
        let read = |kind: u32, body: &[u8], is_everywhere: bool| {
            let mut source = Source::default();
            let sample_type = SampleType { bits, is_everywhere };
            records(&record(kind, body), sample_type, &Formats::default(), &mut source).expect("no sample");
            (source.events, source.lost)
        };
        let lost = Event { time: 4_000, cpu: 3, kind: EventKind::Lost { count: 12 } };
        assert_eq!(read(RECORD_LOST, &body, true), (vec![lost], 0));
        // The file does not say where.
        assert_eq!(read(RECORD_LOST, &body[..16], false), (vec![], 12));
        assert_eq!(read(RECORD_LOST, &body[..16], true), (vec![], 12));
        assert_eq!(read(RECORD_LOST_SAMPLES, &body[8..], true), (vec![], 12));
    }
}
