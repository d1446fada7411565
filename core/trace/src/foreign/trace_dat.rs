//! trace.dat, version 6: `trace-cmd record --file-version 6 -C mono -e sched_switch -e sched_wakeup`.
//!
//! Version 7, which newer trace-cmd writes by default, compresses its sections; `trace-cmd convert` turns it into
//! version 6. The layout is in trace-cmd's `trace-cmd.dat.v6(5)`, that of the pages in the kernel's
//! `ring_buffer.h`.

use super::cursor::{Cursor, section};
use super::formats::Formats;
use super::{Event, EventKind, Source};
use crate::TraceError;

/// The first bytes.
pub(super) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

const CONVERT: &str =
    "convert it: trace-cmd convert --file-version 6 --compression none -i trace.dat -o v6.dat";
/// Where the buffers' table begins: one of these ten bytes stands before it.
const FLYRECORD: &[u8; 10] = b"flyrecord\0";
const OPTIONS: &[u8; 10] = b"options  \0";
/// Bits of a page's length: events were lost before it, and their number follows its data.
const LOST: u64 = 1 << 31;
const COUNTED: u64 = 1 << 30;
/// Options of which the trace clock is one.
const OPTION_TRACE_CLOCK: u16 = 7;

/// Reads a trace.dat file.
pub(super) fn read(bytes: &[u8]) -> Result<Source, TraceError> {
    let damaged = || TraceError::not_a_trace("the trace.dat file is damaged or cut off");
    let mut cursor = Cursor::new(bytes);
    cursor.skip(MAGIC.len() as u64).ok_or_else(damaged)?;
    let version = cursor.text().ok_or_else(damaged)?;
    if version != "6" {
        return Err(TraceError::unsupported(
            format!("trace.dat of version {version}; version 6 is read"),
            CONVERT,
        ));
    }
    let big_endian = cursor.u8().ok_or_else(damaged)? != 0;
    let long = cursor.u8().ok_or_else(damaged)?;
    if big_endian || long != 8 {
        return Err(TraceError::unsupported(
            "a trace.dat of a machine that is not 64-bit little-endian",
            "record on x86-64 or arm64",
        ));
    }
    let page = u64::from(cursor.u32().ok_or_else(damaged)?);
    let formats = Formats::read(&mut cursor).ok_or_else(damaged)?;
    if !formats.has_switches() {
        return Err(TraceError::unsupported(
            "the trace.dat file does not describe sched_switch",
            "record with -e sched_switch -e sched_wakeup",
        ));
    }
    // Kernel symbols and printk formats, names of processes.
    for wide in [false, false, true] {
        let size = if wide { cursor.u64() } else { cursor.u32().map(u64::from) };
        size.and_then(|size| cursor.skip(size)).ok_or_else(damaged)?;
    }
    let cpus = cursor.u32().ok_or_else(damaged)?;
    let mut source = Source { clock: "trace.dat".to_owned(), ..Source::default() };
    let buffers = buffers(&mut cursor, cpus, &mut source).ok_or_else(damaged)?;
    let data_at = formats.page_data.unwrap_or(16);
    for (cpu, (offset, size)) in buffers.into_iter().enumerate() {
        let data = section(bytes, offset, size).ok_or_else(damaged)?;
        let page = usize::try_from(page).ok().filter(|page| *page > data_at).ok_or_else(damaged)?;
        for page in data.chunks(page) {
            read_page(page, data_at, cpu as u32, &formats, &mut source);
        }
    }
    Ok(source)
}

/// Offset and size of each processor's pages; the options before them tell the clock.
fn buffers(cursor: &mut Cursor<'_>, cpus: u32, source: &mut Source) -> Option<Vec<(u64, u64)>> {
    let mut mark = cursor.take(10)?;
    if mark == OPTIONS {
        loop {
            let id = cursor.u16()?;
            if id == 0 {
                break;
            }
            let size = cursor.u32()?;
            let body = cursor.take(u64::from(size))?;
            if id == OPTION_TRACE_CLOCK
                && let Some(clock) = chosen_clock(&String::from_utf8_lossy(body))
            {
                source.clock = if clock == "mono" { "CLOCK_MONOTONIC".to_owned() } else { clock };
            }
        }
        mark = cursor.take(10)?;
    }
    if mark != FLYRECORD {
        return None;
    }
    (0..cpus).map(|_| Some((cursor.u64()?, cursor.u64()?))).collect()
}

/// The clock in brackets of a text like `local global [mono]`.
fn chosen_clock(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// One page of the kernel's ring buffer: a time, a length, and entries that count time from it.
fn read_page(page: &[u8], data_at: usize, cpu: u32, formats: &Formats, source: &mut Source) {
    let mut head = Cursor::new(page);
    let (Some(mut time), Some(commit)) = (head.u64(), head.u64()) else { return };
    let length = usize::try_from(commit & 0xf_ffff).unwrap_or(0);
    // The upper bits say whether events were lost before this page, and whether their number follows its data.
    if commit & LOST != 0 {
        let behind = data_at.saturating_add(length);
        let stored = (commit & COUNTED != 0).then(|| page.get(behind..)).flatten();
        let count = stored.and_then(|bytes| Cursor::new(bytes).u64()).unwrap_or(1).max(1);
        source.events.push(Event { time, cpu, kind: EventKind::Lost { count } });
    }
    let Some(data) = page.get(data_at..).map(|data| &data[..length.min(data.len())]) else { return };
    let mut cursor = Cursor::new(data);
    while let Some(word) = cursor.u32() {
        let (kind, delta) = (word & 0x1f, u64::from(word >> 5));
        let size = match kind {
            // Padding to the page's end.
            29 if delta == 0 => return,
            29 | 0 => match cursor.u32() {
                Some(size) if size >= 4 => {
                    time = time.wrapping_add(delta);
                    u64::from(size - 4)
                }
                _ => return,
            },
            // A long step, and an absolute time.
            30 | 31 => {
                let Some(high) = cursor.u32() else { return };
                let whole = (u64::from(high) << 27) | delta;
                time = if kind == 30 { time.wrapping_add(whole) } else { (time & (0x1f << 59)) | whole };
                continue;
            }
            words => {
                time = time.wrapping_add(delta);
                u64::from(words) * 4
            }
        };
        let Some(raw) = cursor.take(size) else { return };
        if kind != 29 {
            source.events.extend(formats.event(time, cpu, raw));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
    const SWITCH: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";
    const WAKEUP: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";
    const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn sized(out: &mut Vec<u8>, text: &[u8]) {
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text);
    }

    fn comm(name: &str) -> [u8; 16] {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        comm
    }

    /// An entry `delta` after the one before.
    fn entry(delta: u32, raw: &[u8]) -> Vec<u8> {
        let head = (raw.len() / 4) as u32 | delta << 5;
        [&head.to_le_bytes()[..], raw].concat()
    }

    fn switch(prev: (&str, u32, u64), next: (&str, u32)) -> Vec<u8> {
        let mut raw = vec![0; 64];
        raw[..2].copy_from_slice(&316_u16.to_le_bytes());
        raw[8..24].copy_from_slice(&comm(prev.0));
        raw[24..28].copy_from_slice(&prev.1.to_le_bytes());
        raw[32..40].copy_from_slice(&prev.2.to_le_bytes());
        raw[40..56].copy_from_slice(&comm(next.0));
        raw[56..60].copy_from_slice(&next.1.to_le_bytes());
        raw
    }

    fn wakeup(thread: (&str, u32)) -> Vec<u8> {
        let mut raw = vec![0; 36];
        raw[..2].copy_from_slice(&318_u16.to_le_bytes());
        raw[8..24].copy_from_slice(&comm(thread.0));
        raw[24..28].copy_from_slice(&thread.1.to_le_bytes());
        raw
    }

    /// A file of one processor with one page. `trace-cmd report` (3.1.6) reads one made like this alike.
    fn file(body: &[u8], version: &[u8]) -> Vec<u8> {
        let mut out = [MAGIC, version, &[0, 8], &4096_u32.to_le_bytes()[..]].concat();
        out.extend_from_slice(b"header_page\0");
        sized(&mut out, PAGE.as_bytes());
        out.extend_from_slice(b"header_event\0");
        sized(&mut out, b"# compressed entry header\n");
        out.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        out.extend_from_slice(b"sched\0");
        out.extend_from_slice(&2_u32.to_le_bytes());
        for (name, id, fields) in [("sched_switch", 316, SWITCH), ("sched_wakeup", 318, WAKEUP)] {
            sized(&mut out, format!("name: {name}\nID: {id}\nformat:\n{COMMON}\n{fields}").as_bytes());
        }
        out.extend_from_slice(&[0; 8]);
        sized(&mut out, b"7 ctl\n");
        out.extend_from_slice(&1_u32.to_le_bytes());
        let clock = b"local global [mono]\0";
        out.extend_from_slice(OPTIONS);
        out.extend_from_slice(&OPTION_TRACE_CLOCK.to_le_bytes());
        out.extend_from_slice(&(clock.len() as u32).to_le_bytes());
        out.extend_from_slice(clock);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(FLYRECORD);
        let at = 4096_u64;
        assert!(out.len() + 16 <= at as usize);
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&4096_u64.to_le_bytes());
        out.resize(at as usize, 0);
        out.extend_from_slice(&1_000_000_000_u64.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(body);
        out.resize(2 * at as usize, 0);
        out
    }

    fn body() -> Vec<u8> {
        let long = 200_000_000_u32;
        let mut body = entry(0, &wakeup(("ctl", 7)));
        body.extend(entry(10_000, &switch(("swapper/0", 0, 0), ("ctl", 7))));
        // A step that does not fit 27 bits.
        body.extend_from_slice(&(30 | (long & 0x7ff_ffff) << 5).to_le_bytes());
        body.extend_from_slice(&(long >> 27).to_le_bytes());
        body.extend(entry(5, &switch(("ctl", 7, 1), ("swapper/0", 0))));
        body
    }

    #[test]
    fn a_page_gives_its_events() {
        let source = read(&file(&body(), b"6\0")).expect("a right file");
        assert_eq!(source.clock, "CLOCK_MONOTONIC");
        let times: Vec<u64> = source.events.iter().map(|event| event.time).collect();
        assert_eq!(times, [1_000_000_000, 1_000_010_000, 1_200_010_005]);
        assert_eq!(
            source.events[0].kind,
            EventKind::Wakeup { thread: 7, comm: "ctl".to_owned(), is_new: false }
        );
        assert!(matches!(
            &source.events[2].kind,
            EventKind::Switch { prev: 7, prev_state: b'S', next: 0, .. }
        ));
    }

    #[test]
    fn a_page_says_that_records_before_it_are_lost_and_how_many() {
        let at = 4096;
        let lengths = body().len() as u64;
        for (flags, count) in [(0, None), (LOST, Some(1)), (LOST | COUNTED, Some(7))] {
            let mut bytes = file(&body(), b"6\0");
            bytes[at + 8..at + 16].copy_from_slice(&(lengths | flags).to_le_bytes());
            let behind = at + 16 + body().len();
            bytes[behind..behind + 8].copy_from_slice(&7_u64.to_le_bytes());
            let source = read(&bytes).expect("a right file");
            let lost = source.events.iter().find_map(|event| match event.kind {
                EventKind::Lost { count } => Some((event.time, event.cpu, count)),
                _ => None,
            });
            assert_eq!(lost, count.map(|count| (1_000_000_000, 0, count)), "{flags:x}");
            assert_eq!(source.lost, 0);
        }
    }

    #[test]
    fn version_7_is_refused_with_the_remedy_and_cuts_are_survived() {
        let error = read(&file(&body(), b"7\0")).expect_err("another version").to_string();
        assert!(error.contains("version 7") && error.contains("trace-cmd convert"), "{error}");
        let whole = file(&body(), b"6\0");
        for cut in 0..whole.len() {
            // An answer or an error, never a panic.
            let _ = read(&whole[..cut]);
        }
    }
}
