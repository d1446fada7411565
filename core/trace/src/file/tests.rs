//! The format from outside: round trips, cuts, damage, hostile bytes.

use super::*;
use crate::{Kind, NO_JOB, NO_TASK, Record, Sink};
use horolog_time::{Instant, Span};
use proptest::prelude::*;
use std::io::{self, Cursor, Write};

fn header(tasks: usize) -> Header {
    let names = (0..tasks).map(|n| format!("task {n}")).collect();
    Header::simulated("[system]\nname = \"x\"\n".to_owned(), names, 7, Span::from_ns(1_000_000))
}

fn write(records: &[Record], tasks: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header(tasks)).unwrap();
    for record in records {
        writer.record(*record);
    }
    writer.finish(Instant::from_ns(9)).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> (Vec<Record>, Reader<&[u8]>) {
    let mut reader = Reader::new(bytes).unwrap();
    let records = reader.by_ref().collect();
    (records, reader)
}

/// Two tasks as a simulator records them: `jobs` jobs each.
fn typical(jobs: u64) -> Vec<Record> {
    let mut records = Vec::new();
    for job in 0..jobs {
        for task in 0..2_u32 {
            let begin = job * 10_000_000 + u64::from(task) * 3_000_000;
            let mut push = |time: u64, kind: Kind, value: u64| {
                records.push(Record {
                    time: Instant::from_ns(time),
                    kind,
                    cpu: 1,
                    task,
                    job,
                    value,
                    extra: 0,
                });
            };
            push(begin, Kind::Release, begin);
            push(begin + 1_000, Kind::Start, 0);
            push(begin + 2_000_000, Kind::Completion, 1_999_000);
        }
    }
    records
}

fn any_record() -> impl Strategy<Value = Record> {
    let number = prop_oneof![Just(0_u64), Just(u64::MAX), 0..300_u64, any::<u64>()];
    (
        prop::sample::select(Kind::ALL.into_iter().filter(|kind| *kind != Kind::User).collect::<Vec<_>>()),
        number.clone(),
        prop_oneof![0..4_u16, any::<u16>()],
        prop_oneof![Just(NO_TASK), 0..6_u32, any::<u32>()],
        prop_oneof![Just(NO_JOB), 0..6_u64, any::<u64>()],
        number.clone(),
        number,
    )
        .prop_map(|(kind, time, cpu, task, job, value, extra)| Record {
            time: Instant::from_ns(time),
            kind,
            cpu,
            task,
            job,
            value,
            extra,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_is_written_reads_back(records in prop::collection::vec(any_record(), 0..200), tasks in 0..8_usize) {
        let bytes = write(&records, tasks);
        let (back, reader) = read(&bytes);
        prop_assert_eq!(back, records.clone());
        prop_assert!(reader.damage().is_none());
        let footer = reader.footer().unwrap();
        prop_assert_eq!(footer.records, records.len() as u64);
        for kind in Kind::ALL {
            prop_assert_eq!(footer.count(kind), records.iter().filter(|r| r.kind == kind).count() as u64);
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(mut reader) = Reader::new(bytes.as_slice()) {
            reader.by_ref().for_each(drop);
        }
        let mut framed = write(&[], 1);
        framed.truncate(framed.len() - 16);
        framed.extend_from_slice(&bytes);
        let (_, reader) = read(&framed);
        prop_assert!(reader.footer().is_some() || reader.damage().is_some());
    }

    #[test]
    fn a_changed_byte_is_noticed_and_survived(at in 0..10_000_usize, change in 1..=255_u8) {
        let records = typical(100);
        let mut bytes = write(&records, 2);
        let at = at % bytes.len();
        bytes[at] ^= change;
        let Ok(mut reader) = Reader::new(bytes.as_slice()) else { return Ok(()) };
        let back: Vec<Record> = reader.by_ref().collect();
        prop_assert_eq!(&records[..back.len()], &back[..]);
        // The end mark behind the foot and the minor version carry no checksum and lose no record.
        let harmless = at >= bytes.len() - 16 || (10..12).contains(&at);
        prop_assert!(reader.damage().is_some() || harmless);
    }

    #[test]
    fn hostile_payloads_with_right_checksums_are_survived(
        payload in prop::collection::vec(any::<u8>(), 0..300),
        entries in 0..400_u32,
        first in any::<u64>(),
    ) {
        let mut bytes = layout::head(&header(2)).unwrap();
        let head = layout::BlockHeader {
            payload: payload.len() as u32, entries, first: Instant::from_ns(first), losses: 0,
        };
        bytes.extend_from_slice(&head.encode(&payload));
        bytes.extend_from_slice(&payload);
        let (records, reader) = read(&bytes);
        prop_assert!(records.len() <= payload.len());
        prop_assert!(reader.damage().is_some());
    }

    #[test]
    fn seeking_finds_the_first_record_at_or_after(time in 0..60_000_000_000_u64) {
        let records = typical(5_000);
        let bytes = write(&records, 2);
        let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
        reader.seek(Instant::from_ns(time)).unwrap();
        let expected = records.iter().filter(|r| r.time >= Instant::from_ns(time));
        prop_assert!(reader.eq(expected.copied()));
    }
}

#[test]
fn a_typical_record_takes_six_to_eight_bytes() {
    let records = typical(10_000);
    let bytes = write(&records, 2);
    let each = bytes.len() as f64 / records.len() as f64;
    assert!(each < 8.0, "{each}");
}

#[test]
fn every_cut_is_readable_up_to_the_last_whole_block() {
    let records = typical(4_000);
    let whole = write(&records, 2);
    let head = layout::head(&header(2)).unwrap().len();
    let mut cut = head;
    let mut most = 0;
    while cut < whole.len() {
        let (back, reader) = read(&whole[..cut]);
        assert_eq!(back, records[..back.len()]);
        // Only the end mark may be missing without harm.
        assert!(reader.damage().is_some() || cut >= whole.len() - 16, "cut at {cut}");
        assert!(back.len() >= most);
        most = back.len();
        cut += 997;
    }
    let (back, reader) = read(&whole[..whole.len() - 17]);
    assert_eq!(back.len(), records.len());
    assert!(reader.damage().unwrap().reason.contains("foot"));
}

#[test]
fn damage_names_its_block_and_place() {
    let records = typical(8_000);
    let mut bytes = write(&records, 2);
    let (_, reader) = read(&bytes);
    let place = reader.footer().unwrap().index[1];
    assert_eq!(&bytes[place.offset as usize..][..4], b"HBLK");
    bytes[place.offset as usize + 100] ^= 1;
    let (back, reader) = read(&bytes);
    assert!(!back.is_empty() && back.len() < records.len());
    let damage = reader.damage().unwrap();
    assert_eq!((damage.offset, damage.block), (place.offset, 1));
    assert!(damage.to_string().contains("checksum"), "{damage}");
}

#[test]
fn kinds_of_a_newer_version_are_skipped_and_counted() {
    let mut payload = vec![60, 0b111, 1, 2, 3];
    // Kind 61 with an empty body, then a start of task 0, job 0, no time later.
    payload.extend_from_slice(&[61, 0b1, Kind::Start as u8, 0b1, 0b11, 0b1]);
    let head = layout::BlockHeader {
        payload: payload.len() as u32,
        entries: 3,
        first: Instant::from_ns(40),
        losses: 0,
    };
    let mut bytes = layout::head(&header(1)).unwrap();
    bytes[10] = 9;
    bytes.extend_from_slice(&head.encode(&payload));
    bytes.extend_from_slice(&payload);
    let (records, reader) = read(&bytes);
    assert_eq!(reader.minor_version(), 9);
    assert_eq!(reader.unknown_entries(), 2);
    let start =
        Record { time: Instant::from_ns(40), kind: Kind::Start, cpu: 0, task: 0, job: 0, value: 0, extra: 0 };
    assert_eq!(records, [start]);
}

#[test]
fn a_block_without_entries_is_passed_over() {
    let mut bytes = layout::head(&header(1)).unwrap();
    let mut head = layout::BlockHeader { payload: 0, entries: 0, first: Instant::ZERO, losses: 0 };
    bytes.extend_from_slice(&head.encode(&[]));
    let (records, reader) = read(&bytes);
    assert!(records.is_empty() && reader.damage().unwrap().reason.contains("cut off"));
    // Bytes that no entry takes are damage.
    head.payload = 3;
    let at = bytes.len();
    bytes.extend_from_slice(&head.encode(&[1, 2, 3]));
    bytes.extend_from_slice(&[1, 2, 3]);
    let (_, reader) = read(&bytes);
    assert!(reader.damage().unwrap().offset > at as u64);
}

#[test]
fn other_files_and_versions_are_refused_with_the_reason() {
    let error = Reader::new(&b"[system]\nname = 1 and more text"[..]).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("not a horolog trace"));
    let mut bytes = write(&[], 1);
    bytes[8] = 2;
    let error = Reader::new(bytes.as_slice()).unwrap_err();
    assert!(error.to_string().contains("format 2.2"), "{error}");
}

#[test]
fn threads_and_losses_read_back() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header(1)).unwrap();
    let idle = writer.define_thread(0, "swapper/1", None);
    let control = writer.define_thread(4711, "control", Some(0));
    writer.record(Record {
        time: Instant::from_ns(5),
        kind: Kind::KernelSwitch,
        cpu: 1,
        task: 0,
        job: 3,
        value: idle,
        extra: control,
    });
    // The program has named its thread meanwhile; a thread that is not there has no name.
    writer.rename_thread(control, "servo");
    writer.rename_thread(7, "nobody");
    writer.lost(Instant::from_ns(6), 1, 0, 10);
    writer.lost(Instant::from_ns(7), 1, 1, 5);
    let footer = writer.finish(Instant::from_ns(9)).unwrap();
    assert_eq!(footer.losses, Losses { horolog: 10, kernel: 5, other: 0 });
    let (records, reader) = read(&bytes);
    assert_eq!(records[0].extra, 1);
    assert_eq!(reader.losses(), footer.losses);
    assert_eq!(reader.lost(), 15);
    let thread = &reader.threads()[1];
    assert_eq!((thread.tid, thread.comm.as_str(), thread.task), (4711, "servo", Some(0)));
    assert_eq!((reader.threads().len(), reader.threads()[0].comm.as_str()), (2, "swapper/1"));
}

/// Takes so many bytes, then is full.
struct Disk<'a> {
    bytes: &'a mut Vec<u8>,
    room: usize,
}

impl Write for Disk<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.room - self.bytes.len();
        if room == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let taken = room.min(data.len());
        self.bytes.extend_from_slice(&data[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    let records = typical(40_000);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Disk { bytes: &mut bytes, room: 300_000 }, &header(2)).unwrap();
    for record in &records {
        writer.record(*record);
    }
    assert_eq!(writer.records(), records.len() as u64);
    let error = writer.finish(Instant::from_ns(1)).unwrap_err();
    let (kept, dropped) = error.records_kept_and_dropped().unwrap();
    assert_eq!(kept + dropped, records.len() as u64);
    let (back, reader) = read(&bytes);
    assert_eq!(back.len() as u64, kept);
    assert!(kept > 30_000 && reader.damage().is_some());
    assert_eq!(back, records[..back.len()]);
}

#[test]
fn the_index_stays_bounded_and_right() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header(1)).unwrap();
    let mut time = 0;
    for block in 0..10_000_u64 {
        for step in 0..2 {
            time = block * 10 + step;
            writer.record(Record {
                time: Instant::from_ns(time),
                kind: Kind::Start,
                cpu: 0,
                task: 0,
                job: block,
                value: 0,
                extra: 0,
            });
        }
        writer.flush().unwrap();
    }
    let footer = writer.finish(Instant::from_ns(time)).unwrap();
    assert!(footer.index.len() <= 4096 && footer.index.len() >= 2048, "{}", footer.index.len());
    for place in &footer.index {
        assert_eq!(place.first.as_ns(), place.block * 10);
        assert_eq!(&bytes[place.offset as usize..][..4], b"HBLK");
    }
    let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
    reader.seek(Instant::from_ns(54_322)).unwrap();
    assert_eq!(reader.next().unwrap().time.as_ns(), 54_330);
}

/// The blocks of a trace, and what stands before and behind them.
fn parts(bytes: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>, Vec<u8>) {
    let at = |magic: &[u8], from: usize| {
        bytes[from..].windows(4).position(|four| four == magic).map(|it| it + from)
    };
    let (first, foot) = (at(b"HBLK", 0).unwrap(), at(b"HFTR", 0).unwrap());
    let mut blocks = Vec::new();
    let mut from = first;
    while from < foot {
        let payload = u32::from_le_bytes(bytes[from + 4..from + 8].try_into().unwrap()) as usize;
        let to = from + 32 + payload;
        blocks.push(bytes[from..to].to_vec());
        from = to;
    }
    assert_eq!(from, foot);
    (bytes[..first].to_vec(), blocks, bytes[foot..].to_vec())
}

#[test]
fn blocks_that_are_taken_out_put_in_or_exchanged_are_noticed() {
    let bytes = write(&typical(30_000), 2);
    let (head, blocks, foot) = parts(&bytes);
    assert!(blocks.len() > 3, "{}", blocks.len());
    let damage = |blocks: Vec<&Vec<u8>>| {
        let middle: Vec<u8> = blocks.into_iter().flatten().copied().collect();
        read(&[head.clone(), middle, foot.clone()].concat()).1.damage().cloned()
    };
    assert_eq!(damage(blocks.iter().collect()), None);
    assert!(damage(Vec::new()).unwrap().is_hole);
    for place in 0..blocks.len() {
        let without = blocks.iter().enumerate().filter(|&(other, _)| other != place);
        assert!(damage(without.map(|(_, block)| block).collect()).unwrap().is_hole, "{place}");
        let mut twice: Vec<&Vec<u8>> = blocks.iter().collect();
        twice.insert(place, &blocks[place]);
        assert!(damage(twice).unwrap().is_hole, "{place}");
    }
    let mut exchanged: Vec<&Vec<u8>> = blocks.iter().collect();
    exchanged.swap(1, 2);
    assert!(damage(exchanged).unwrap().is_hole);
    // One byte too few at the very end is a cut.
    let cut = read(&bytes[..bytes.len() - 1]).1.damage().cloned().unwrap();
    assert!(!cut.is_hole && cut.reason.contains("cut off"), "{cut}");
}
