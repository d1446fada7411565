//! User events in the file, from outside.

use super::varint;
use super::*;
use crate::event::{EventDefinition, Value, text_words};
use crate::{Kind, LossCause, NO_JOB, NO_TASK, Record, Sink};
use horolog_time::{Instant, Span};
use proptest::prelude::*;
use std::io::Cursor;

fn user(time: u64, cpu: u16, event: u64, thread: u64) -> Record {
    Record {
        time: Instant::from_ns(time),
        kind: Kind::User,
        cpu,
        task: NO_TASK,
        job: NO_JOB,
        value: event,
        extra: thread,
    }
}

fn start(time: u64) -> Record {
    Record { time: Instant::from_ns(time), kind: Kind::Start, cpu: 1, task: 0, job: 3, value: 0, extra: 0 }
}

/// One step of a trace: a user event with its words, or a record of another kind.
#[derive(Clone, Debug)]
enum Step {
    User(Record, Vec<u64>),
    Other(Record),
}

fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0..300_u64,
        any::<u64>(),
        any::<f64>().prop_map(f64::to_bits),
        (-9..9_i64).prop_map(i64::cast_unsigned)
    ]
}

/// Events by their letters, then steps that keep to them.
fn any_trace() -> impl Strategy<Value = (Vec<String>, Vec<Step>)> {
    prop::collection::vec("[buifps]{0,10}", 1..6).prop_flat_map(|types| {
        let step = (
            0..types.len(),
            any::<u64>(),
            any::<u16>(),
            0..5_u64,
            any::<bool>(),
            prop::collection::vec(any_word(), 10),
        );
        let known = types.clone();
        let steps = step.prop_map(move |(event, time, cpu, thread, is_user, mut words)| {
            let texts = known[event].bytes().zip(&words).map(|(letter, word)| match letter {
                b's' => text_words(&word.to_ne_bytes().repeat((*word % 40) as usize)),
                _ => vec![*word],
            });
            words = texts.flatten().collect();
            if is_user {
                Step::User(user(time, cpu, event as u64, thread), words)
            } else {
                Step::Other(start(time))
            }
        });
        (Just(types), prop::collection::vec(steps, 0..200))
    })
}

fn write(types: &[String], steps: &[Step]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Header::session(5)).unwrap();
    for (number, types) in types.iter().enumerate() {
        let event = EventDefinition::new(&format!("event/{number}"), types, &[]).unwrap();
        assert_eq!(writer.define_event(&event), number as u64);
    }
    for step in steps {
        match step {
            Step::User(record, words) => writer.user(*record, words),
            Step::Other(record) => writer.record(*record),
        }
    }
    writer.finish(Instant::from_ns(9)).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn user_events_read_back_among_others((types, steps) in any_trace()) {
        let bytes = write(&types, &steps);
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        for step in &steps {
            let record = reader.next_record().unwrap();
            match step {
                Step::User(written, words) => {
                    prop_assert_eq!(&record, written);
                    prop_assert_eq!(reader.arguments(), &words[..]);
                    let event = reader.user_event(&record).unwrap();
                    prop_assert_eq!(event.name(), format!("event/{}", record.value));
                }
                Step::Other(written) => {
                    prop_assert_eq!(&record, written);
                    prop_assert!(reader.arguments().is_empty() && reader.user_event(&record).is_none());
                }
            }
        }
        prop_assert!(reader.next_record().is_none() && reader.damage().is_none());
        let footer = reader.footer().unwrap();
        prop_assert_eq!(footer.events.len(), types.len());
        prop_assert_eq!(footer.losses.total(), 0);
    }

    /// What a reader of version 1.0 does: whatever has a kind that it does not know has its length behind the tag.
    #[test]
    fn an_old_reader_that_skips_user_entries_reads_all_others((types, steps) in any_trace()) {
        let whole = write(&types, &steps);
        let head = layout::head(&Header::session(5)).unwrap().len();
        let payload = layout::u32_at(&whole, head + 4) as usize;
        let body = &whole[head + layout::BLOCK_HEADER..][..payload];
        let (kept, entries) = without_user_entries(body, &whole);
        let block = layout::BlockHeader {
            payload: kept.len() as u32,
            entries,
            first: Instant::from_ns(layout::u64_at(&whole, head + 12)),
            losses: 0,
        };
        let mut old = whole[..head].to_vec();
        old.extend_from_slice(&block.encode(&kept));
        old.extend_from_slice(&kept);
        let back: Vec<Record> = Reader::new(old.as_slice()).unwrap().collect();
        let others = steps.iter().filter_map(|step| match step {
            Step::Other(record) => Some(*record),
            Step::User(..) => None,
        });
        prop_assert_eq!(back, others.collect::<Vec<_>>());
    }

    #[test]
    fn hostile_user_entries_are_survived(
        entries in prop::collection::vec((59..64_u8, prop::collection::vec(any::<u8>(), 0..60)), 0..30),
        users in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..30),
    ) {
        let mut payload = Vec::new();
        let mut count = 0;
        let mut push = |kind: u8, body: &[u8]| {
            payload.extend_from_slice(&[kind, ((body.len() as u8) << 1) | 1]);
            payload.extend_from_slice(body);
            count += 1;
        };
        // Two real definitions, so that bodies get as far as their arguments.
        for (number, types) in ["bu", "ifp", "sus"].into_iter().enumerate() {
            let entry = user::encode_definition(number as u64, &EventDefinition::new("e", types, &[]).unwrap());
            push(entry[0], &entry[2..]);
        }
        entries.iter().for_each(|(kind, body)| push(*kind, body));
        users.iter().for_each(|body| push(Kind::User as u8, body));
        let head = layout::BlockHeader {
            payload: payload.len() as u32, entries: count, first: Instant::from_ns(7), losses: 0,
        };
        let mut bytes = layout::head(&Header::session(5)).unwrap();
        bytes.extend_from_slice(&head.encode(&payload));
        bytes.extend_from_slice(&payload);
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let mut read = 0;
        while let Some(record) = reader.next_record() {
            read += 1;
            prop_assert!(reader.user_event(&record).is_some());
        }
        let texts = entries.iter().filter(|(kind, _)| *kind == user::TEXTS_ENTRY).count();
        prop_assert!(read <= users.len() + texts && reader.damage().is_some());
    }
}

/// The payload without what a reader of version 1.0 does not know, and how many entries are left. Known ones are
/// stepped over by comparing with what this version reads.
fn without_user_entries(body: &[u8], whole: &[u8]) -> (Vec<u8>, u32) {
    let mut padded = body.to_vec();
    padded.resize(body.len() + codec::PADDING, 0);
    let header = Reader::new(whole).unwrap();
    let mut state = codec::State::new(header.header().tasks.len());
    state.start_block(0);
    let (mut kept, mut entries, mut at) = (Vec::new(), 0, 0);
    while at < body.len() {
        let kind = body[at] & 63;
        let next = if [49, 61, 62, 63].contains(&kind) {
            let (length, start) = varint::get(&padded, at + 1).unwrap();
            start + length as usize
        } else {
            let (_, next) = codec::decode(&padded, at, body.len(), &mut state).unwrap();
            kept.extend_from_slice(&body[at..next]);
            entries += 1;
            next
        };
        at = next;
    }
    (kept, entries)
}

#[test]
fn an_event_takes_few_bytes() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Header::session(0)).unwrap();
    let event = EventDefinition::new("lock/acquired", "pu", &["lock", "depth"]).unwrap();
    let number = writer.define_event(&event);
    for step in 0..100_000_u64 {
        let word = 0x7f12_3456_0000 + step % 5 * 64;
        writer.user(user(step * 900, 0, number, 0), &[word, step % 3]);
    }
    writer.finish(Instant::from_ns(9)).unwrap();
    let each = bytes.len() as f64 / 100_000.0;
    assert!(each < 9.0, "{each}");
}

#[test]
fn processes_definitions_and_the_clock_error_stand_in_band_and_in_the_foot() {
    let mut bytes = Vec::new();
    let mut header = Header::session(5);
    header.sources = vec!["user events".to_owned()];
    header.clock_error_ns = Some(900);
    let mut writer = Writer::new(&mut bytes, &header).unwrap();
    let thread = writer.define_thread_of(70, 77, "worker", None);
    let packet = EventDefinition::new("net/packet", "up", &["length", "socket"]).unwrap();
    let number = writer.define_event(&packet);
    writer.user(user(10, 1, number, thread), &[1500, 0x7f00]);
    writer.lost(Instant::from_ns(11), 0, LossCause::ThreadRing as u64, 4);
    writer.lost(Instant::from_ns(11), 0, LossCause::HiddenSwitch as u64, 1);
    writer.lost(Instant::from_ns(11), 0, 77, 2);
    writer.set_clock_error(250);
    writer.set_releases_end(Instant::from_ns(8));
    let footer = writer.finish(Instant::from_ns(12)).unwrap();
    assert_eq!(footer.releases_end, Some(Instant::from_ns(8)));
    let mut whole = Reader::new(bytes.as_slice()).unwrap();
    whole.by_ref().for_each(drop);
    assert_eq!(whole.footer(), Some(&footer));
    assert_eq!(footer.losses, Losses { horolog: 4, kernel: 0, other: 3 });
    assert_eq!(footer.clock_error_ns, Some(250));

    // Without the foot, and so from what stands in band.
    let mut reader = Reader::new(&bytes[..bytes.len() - 20]).unwrap();
    assert_eq!(reader.header(), &header);
    let record = reader.next_record().unwrap();
    let event = reader.user_event(&record).unwrap();
    assert_eq!(event.to_string(), "net/packet(length=1500, socket=0x7f00)");
    assert_eq!(event.value(0), Some(Value::Unsigned(1500)));
    let thread = event.thread.unwrap();
    assert_eq!((thread.tid, thread.process), (77, Some(70)));
    reader.by_ref().for_each(drop);
    let causes: Vec<_> = reader.loss_causes().iter().map(|(cause, count)| (*cause, *count)).collect();
    assert_eq!(causes, [("hidden-switch", 1), ("other", 2), ("thread-ring", 4)]);
    let stated: Vec<_> = footer.causes.iter().map(|(cause, count)| (cause.as_str(), *count)).collect();
    assert_eq!(stated, causes);
}

#[test]
fn an_event_that_cannot_be_written_is_a_loss_and_not_nothing() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Header::session(5)).unwrap();
    let number = writer.define_event(&EventDefinition::new("x", "u", &[]).unwrap());
    writer.user(user(1, 0, number, 0), &[]);
    writer.record(user(1, 0, number, 0));
    writer.user(user(1, 0, number + 1, 0), &[1]);
    writer.user(user(1, 0, number, 0), &[1]);
    let footer = writer.finish(Instant::from_ns(2)).unwrap();
    assert_eq!((footer.count(Kind::Lost), footer.count(Kind::User), footer.losses.horolog), (3, 1, 3));
}

#[test]
fn seeking_keeps_the_definitions() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Header::session(5)).unwrap();
    let number = writer.define_event(&EventDefinition::new("x", "u", &["n"]).unwrap());
    for step in 0..50_000_u64 {
        writer.user(user(step * 10, 0, number, 0), &[step]);
    }
    writer.finish(Instant::from_ns(2)).unwrap();
    let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
    reader.seek(Instant::from_ns(400_005)).unwrap();
    let record = reader.next_record().unwrap();
    assert_eq!(reader.user_event(&record).unwrap().to_string(), "x(n=40001)");
}

/// A record that comes late may be the first of a block: the blocks begin in order all the same, and its time is its own.
#[test]
fn late_records_at_the_edges_of_blocks_read_back() {
    for is_user in [true, false] {
        let mut bytes = Vec::new();
        let mut writer =
            Writer::new(&mut bytes, &Header::simulated(String::new(), Vec::new(), 0, Span::ZERO)).unwrap();
        let number = writer.define_event(&EventDefinition::new("tick", "u", &[]).unwrap());
        // Every third record is late, by more and more.
        let times: Vec<u64> =
            (0..60_000).map(|at| if at % 3 == 2 { 1_000_000 - at } else { 1_000_000 + at }).collect();
        for time in &times {
            match is_user {
                true => writer.user(user(*time, 0, number, 1), &[u64::MAX - time]),
                false => writer.record(start(*time)),
            }
        }
        writer.finish(Instant::from_ns(2_000_000)).unwrap();
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let mut read = Vec::new();
        while let Some(record) = reader.next_record() {
            read.push(record.time.as_ns());
        }
        assert!(reader.damage().is_none(), "{:?}", reader.damage());
        assert_eq!(read, times);
        assert!(reader.footer().unwrap().index.len() > 3);
    }
}

#[test]
fn names_units_and_texts_read_back_and_an_older_reader_skips_the_texts() {
    let open =
        EventDefinition::new("file/open", "su", &["path", "size"]).unwrap().with_units(&["", "B"]).unwrap();
    let plain = EventDefinition::new("tick", "u", &["n"]).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        Writer::new(&mut bytes, &Header::simulated(String::new(), Vec::new(), 0, Span::ZERO)).unwrap();
    let (with_text, without) = (writer.define_event(&open), writer.define_event(&plain));
    let words = [text_words(&[b'x'; 300]), vec![4096]].concat();
    writer.user(user(1, 3, without, 2), &[5]);
    writer.user(user(9, 4, with_text, 3), &words);
    // Counts from the event before the text: an older reader, which skips that one, reads the same.
    writer.user(user(11, 3, without, 2), &[6]);
    writer.finish(Instant::from_ns(12)).unwrap();
    let shown = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes).unwrap();
        let mut shown = Vec::new();
        while let Some(record) = reader.next_record() {
            let event = reader.user_event(&record).unwrap();
            shown.push(format!("{} {} {event}", record.time.as_ns(), record.cpu));
        }
        assert!(reader.damage().is_none(), "{:?}", reader.damage());
        (shown, reader.unknown_entries(), reader.footer().unwrap().events.clone())
    };
    let (all, unknown, events) = shown(&bytes);
    let text = format!("9 4 file/open(path=\"{}…\", size=4096 B)", "x".repeat(256));
    assert_eq!(
        (all.as_slice(), unknown),
        (&["1 3 tick(n=5)".to_owned(), text, "11 3 tick(n=6)".to_owned()][..], 0)
    );
    assert_eq!(events, [open, plain]);
    // The tag of the text event becomes one that this version does not know either.
    let head = layout::head(&Header::simulated(String::new(), Vec::new(), 0, Span::ZERO)).unwrap().len();
    let length = layout::u32_at(&bytes, head + 4) as usize;
    let (before, rest) = bytes.split_at(head);
    let mut block = rest[..layout::BLOCK_HEADER + length].to_vec();
    let at = block.windows(3).position(|window| window == [b'x'; 3]).unwrap();
    let tag = block[..at].iter().rposition(|byte| *byte == user::TEXTS_ENTRY).unwrap();
    block[tag] = 31;
    let found = layout::BlockHeader::decode(block[..layout::BLOCK_HEADER].try_into().unwrap()).unwrap();
    let header = found.encode(&block[layout::BLOCK_HEADER..]);
    block[..layout::BLOCK_HEADER].copy_from_slice(&header);
    let older = [before, &block, &rest[block.len()..]].concat();
    let (left, unknown, _) = shown(&older);
    assert_eq!(
        (left.as_slice(), unknown),
        (&["1 3 tick(n=5)".to_owned(), "11 3 tick(n=6)".to_owned()][..], 1)
    );
}

#[test]
fn names_that_a_terminal_would_obey_are_escaped() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Header::session(5)).unwrap();
    let event = EventDefinition::new("a\x1b[2J", "u", &["n\n"]).unwrap().with_units(&["\u{9b}"]).unwrap();
    let number = writer.define_event(&event);
    let thread = writer.define_thread(7, "w\u{202e}k", None);
    writer.user(user(6, 0, number, thread), &[1]);
    writer.finish(Instant::from_ns(2)).unwrap();
    let escaped = |reader: &Reader<Cursor<&[u8]>>| {
        assert_eq!(reader.events()[0].name, r"a\x1b[2J");
        assert_eq!(
            (reader.events()[0].label(0), reader.threads()[0].comm.as_str()),
            (r"n\x0a [\u{9b}]".to_owned(), r"w\u{202e}k")
        );
    };
    let mut reader = Reader::new(Cursor::new(&bytes[..])).unwrap();
    assert!(reader.next_record().is_some());
    escaped(&reader);
    // And where they come from the foot.
    let mut reader = Reader::new(Cursor::new(&bytes[..])).unwrap();
    reader.load_footer().unwrap();
    escaped(&reader);
}

#[test]
fn letters_of_a_newer_version_are_plain_words() {
    let definition = EventDefinition {
        name: "new".to_owned(),
        types: "qu".to_owned(),
        names: Vec::new(),
        units: Vec::new(),
    };
    let mut bytes = Vec::new();
    let mut writer =
        Writer::new(&mut bytes, &Header::simulated(String::new(), Vec::new(), 0, Span::ZERO)).unwrap();
    let number = writer.define_event(&definition);
    writer.user(user(1, 0, number, 0), &[3, 4]);
    writer.finish(Instant::from_ns(2)).unwrap();
    let mut reader = Reader::new(bytes.as_slice()).unwrap();
    let record = reader.next_record().unwrap();
    assert_eq!(reader.user_event(&record).unwrap().to_string(), "new(3, 4)");
}

/// The trace's next file has the names that its records need, under numbers of its own, whatever kind refers to them.
#[test]
fn a_successor_names_what_its_records_refer_to() {
    let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
    let header = Header::session(0);
    let mut writer = Writer::new(&mut first, &header).unwrap();
    let threads: Vec<u64> =
        (0..6).map(|tid| writer.define_thread_of(70, 100 + tid, &format!("t{tid}"), Some(tid))).collect();
    let [idle, packet] = [("idle", ""), ("packet", "us")].map(|(name, types)| {
        let names: Vec<String> = types.chars().map(|letter| letter.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let units = vec!["B"; names.len()];
        let event = EventDefinition::new(name, types, &names).unwrap();
        writer.define_event(&if units.is_empty() { event } else { event.with_units(&units).unwrap() })
    });
    writer.user(user(1, 0, idle, threads[0]), &[]);
    // Where the next one cannot be begun, this one goes on.
    assert!(writer.successor(Disk, &header).is_err());
    writer.user(user(2, 0, idle, threads[1]), &[]);
    let mut next = writer.successor(&mut second, &header).unwrap();
    assert_eq!(writer.finish(Instant::from_ns(3)).unwrap().threads.len(), 6);

    let kernel = |time, kind, value, extra| Record { kind, value, ..user(time, 1, 0, extra) };
    let mut text = vec![5];
    text.extend(text_words(b"hello"));
    next.user(user(10, 0, packet, threads[4]), &text);
    next.record(kernel(11, Kind::KernelSwitch, threads[4], threads[2]));
    next.record(kernel(12, Kind::KernelWakeup, threads[1], 3));
    next.record(kernel(13, Kind::KernelStarve, 999, threads[5]));
    next.rename_thread(threads[1], "renamed");
    // A new one; one that no record refers to; one that was never defined.
    let late = next.define_thread(200, "late", None);
    next.define_thread(201, "silent", None);
    next.record(kernel(14, Kind::KernelBlock, late, u64::from(b'S')));
    next.record(kernel(15, Kind::KernelWakeup, 77, 3));
    let mut last = next.successor(&mut third, &header).unwrap();
    let foot = next.finish(Instant::from_ns(20)).unwrap();
    last.record(kernel(21, Kind::KernelClass, threads[1], 1));
    last.user(user(22, 0, idle, late), &[]);
    last.finish(Instant::from_ns(30)).unwrap();

    // Without the foot as with it.
    for cut in [0, 20] {
        let mut reader = Reader::new(&second[..second.len() - cut]).unwrap();
        let record = reader.next_record().unwrap();
        let event = reader.user_event(&record).unwrap();
        assert_eq!(event.to_string(), "packet(u=5 B, s=\"hello\" B)");
        let rest: Vec<Record> = reader.by_ref().collect();
        let tid = |number: u64| reader.threads().get(number as usize).map(|thread| thread.tid);
        assert_eq!((record.task, tid(record.extra)), (4, Some(104)));
        let referred: Vec<_> = rest.iter().map(|record| (tid(record.value), tid(record.extra))).collect();
        assert_eq!(referred[0], (Some(104), Some(102)));
        assert_eq!((referred[1].0, rest[1].extra), (Some(101), 3));
        assert_eq!((rest[2].value, referred[2].1), (999, Some(105)));
        assert_eq!((referred[3].0, rest[3].extra), (Some(200), u64::from(b'S')));
        assert_eq!(referred[4].0, None);
        let processes: Vec<_> = reader.threads().iter().map(|thread| thread.process).collect();
        assert_eq!(processes, [Some(70), Some(70), Some(70), Some(70), None]);
        assert_eq!(reader.unknown_entries(), 0);
    }
    assert_eq!(foot.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!((foot.threads[2].comm.as_str(), foot.events.len()), ("renamed", 1));
    let mut reader = Reader::new(third.as_slice()).unwrap();
    reader.by_ref().for_each(drop);
    let names: Vec<&str> = reader.threads().iter().map(|thread| thread.comm.as_str()).collect();
    assert_eq!((names, reader.events().len()), (vec!["renamed", "late"], 1));
}

/// Each file of a recording counts for itself, and only the first 16 priorities of a thread.
#[test]
fn the_foot_tells_priorities_of_threads() {
    let header = Header::simulated(String::new(), Vec::new(), 0, Span::ZERO);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut writer = Writer::new(&mut first, &header).unwrap();
    let empty = writer.bytes_of_foot();
    for (tid, priority) in [(7, 120), (7, 29), (7, 29), (8, -1), (10, 29), (10, 120), (10, 29), (10, 120)] {
        writer.note_priority(tid, priority);
    }
    for priority in 0..20 {
        writer.note_priority(9, priority);
    }
    writer.note_priority(9, 3);
    let room = writer.bytes_of_foot() - empty;
    let mut next = writer.successor(&mut second, &header).unwrap();
    writer.finish(Instant::from_ns(1)).unwrap();
    next.note_priority(7, 29);
    next.finish(Instant::from_ns(2)).unwrap();
    let read = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes).unwrap();
        reader.by_ref().for_each(drop);
        reader.footer().unwrap().priorities.clone()
    };
    let found = read(&first);
    // What a thread was before it was a real-time one, and what it is at its end, does not count.
    assert_eq!(found[&7], [(29, 2)].into());
    assert_eq!(found[&10], [(29, 2), (120, 1)].into());
    assert_eq!(found[&8], [(-1, 1)].into());
    assert_eq!(found[&9], (0..16).map(|priority| (priority, if priority == 3 { 2 } else { 1 })).collect());
    assert!(room >= serde_json::to_string(&found).unwrap().len() as u64);
    assert_eq!(read(&second), [(7, [(29, 1)].into())].into());
}

/// Takes nothing.
struct Disk;

impl std::io::Write for Disk {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("full"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
