//! Events of user programs in Perfetto's format, as a reader resolves them.

use super::messages::*;
use super::*;
use crate::event::text_words;
use crate::{EventDefinition, UserEvent};
use std::io::Read as _;

/// An event with its time, its track and its names written out.
#[derive(Clone, Debug)]
struct Shown {
    time: u64,
    track: u64,
    kind: i32,
    name: String,
    event: TrackEvent,
}

#[derive(Default)]
struct Sequence {
    track: u64,
    time: u64,
    names: BTreeMap<u64, String>,
    arguments: BTreeMap<u64, String>,
}

/// What is in the packets, compressed ones included.
fn packets(bytes: &[u8]) -> Vec<TracePacket> {
    let unpacked = decode(bytes).expect("what was written").packet.into_iter().flat_map(|packet| {
        let Some(compressed) = &packet.compressed_packets else { return vec![packet] };
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(compressed.as_slice()).read_to_end(&mut plain).expect("a zlib stream");
        decode(&plain).expect("packets").packet
    });
    unpacked.collect()
}

fn shown(packets: &[TracePacket]) -> Vec<Shown> {
    let mut sequences: BTreeMap<u32, Sequence> = BTreeMap::new();
    let mut all = Vec::new();
    for packet in packets {
        let sequence = sequences.entry(packet.trusted_packet_sequence_id.expect("a sequence")).or_default();
        if let Some(defaults) = &packet.trace_packet_defaults {
            assert_eq!(packet.sequence_flags, Some(STATE_CLEARED));
            assert_eq!(defaults.timestamp_clock_id, Some(STEP_CLOCK));
            sequence.track =
                defaults.track_event_defaults.as_ref().and_then(|d| d.track_uuid).expect("a track");
        }
        for clock in packet.clock_snapshot.iter().flat_map(|snapshot| &snapshot.clocks) {
            sequence.time = clock.timestamp.expect("a time");
        }
        if let Some(data) = &packet.interned_data {
            let put = |known: &mut BTreeMap<u64, String>, new: &[Interned]| {
                known.extend(
                    new.iter().map(|text| (text.iid.expect("a number"), text.name.clone().expect("a text"))),
                );
            };
            put(&mut sequence.names, &data.event_names);
            put(&mut sequence.arguments, &data.debug_annotation_names);
        }
        let Some(mut event) = packet.track_event.clone() else { continue };
        let time = packet.timestamp.expect("a time");
        let is_step = sequence.track != 0 && packet.timestamp_clock_id.is_none();
        if is_step {
            sequence.time += time;
        }
        for annotation in &mut event.debug_annotations {
            if let Some(iid) = annotation.name_iid {
                annotation.name = Some(sequence.arguments[&iid].clone());
            }
        }
        let name =
            event.name_iid.map(|iid| sequence.names[&iid].clone()).or(event.name.clone()).unwrap_or_default();
        all.push(Shown {
            time: if is_step { sequence.time } else { time },
            track: event.track_uuid.unwrap_or(sequence.track),
            kind: event.r#type.unwrap_or(0),
            name,
            event,
        });
    }
    all
}

fn thread(id: u64, tid: u32, process: Option<u32>) -> Thread {
    Thread { id, tid, comm: format!("thread {tid}"), task: None, process }
}

fn user(time: u64, event: usize, thread: u64) -> Record {
    Record {
        time: Instant::from_ns(time),
        kind: Kind::User,
        cpu: 1,
        task: NO_TASK,
        job: NO_JOB,
        value: event as u64,
        extra: thread,
    }
}

fn export(
    compressed: bool,
    events: &[EventDefinition],
    threads: &[Thread],
    records: &[(Record, Vec<u64>)],
) -> Vec<u8> {
    let header = Header::session(1_000);
    let exporter = if compressed {
        Exporter::compressed(Vec::new(), &header)
    } else {
        Exporter::new(Vec::new(), &header)
    };
    let mut exporter = exporter.expect("memory");
    for (record, words) in records {
        let (definition, thread) = (&events[record.value as usize], threads.get(record.extra as usize));
        exporter.take_user(&UserEvent { record: *record, definition, thread, words }).expect("memory");
    }
    exporter.finish(Instant::from_ns(50)).expect("memory")
}

#[test]
fn user_events_are_on_their_threads_tracks() {
    let threads = [thread(0, 77, Some(70)), thread(1, 88, None)];
    let events = ["job/begin", "job/end", "net/packet"]
        .map(|name| EventDefinition::new(name, "pi", &["at", "n"]).expect("a definition"));
    let records = [(5, 0, 0), (6, 2, 1), (7, 0, 0), (8, 1, 0), (9, 1, 1), (10, 2, 0), (9, 2, 0), (12, 2, 0)];
    let words = vec![0x40, (-3_i64).cast_unsigned()];
    let records = records.map(|(time, event, thread)| (user(time, event, thread), words.clone()));
    let packets = packets(&export(false, &events, &threads, &records));
    let descriptors: Vec<_> = packets.iter().filter_map(|p| p.track_descriptor.as_ref()).collect();
    let worker = descriptors.iter().find(|d| d.thread.is_some()).expect("a thread's track");
    let described = worker.thread.as_ref().expect("a thread");
    assert_eq!(
        (described.pid, described.tid, described.thread_name.as_deref()),
        (Some(70), Some(77), Some("thread 77"))
    );
    assert!(descriptors.iter().any(|d| d.process.as_ref().is_some_and(|process| process.pid == Some(70))));
    let shown = shown(&packets);
    let on_worker: Vec<_> = shown
        .iter()
        .filter(|shown| Some(shown.track) == worker.uuid)
        .map(|shown| (shown.time, shown.kind, shown.name.as_str()))
        .collect();
    let expected = [
        (1_005, SLICE_BEGIN, "job"),
        (1_007, SLICE_BEGIN, "job"),
        (1_008, SLICE_END, ""),
        (1_010, INSTANT, "net/packet"),
        // It came late, and has its true time all the same.
        (1_009, INSTANT, "net/packet"),
        (1_012, INSTANT, "net/packet"),
        (1_050, SLICE_END, ""),
    ];
    assert_eq!(on_worker, expected);
    // An end without a beginning is shown as what it is.
    assert!(shown.iter().any(|shown| shown.name == "job/end"));
    let packet = shown.iter().find(|shown| shown.name == "net/packet").expect("an instant");
    let annotations = &packet.event.debug_annotations;
    assert_eq!((annotations[0].name.as_deref(), annotations[0].pointer_value), (Some("at"), Some(0x40)));
    assert_eq!((annotations[1].name.as_deref(), annotations[1].int_value), (Some("n"), Some(-3)));
}

#[test]
fn counters_flows_units_and_texts() {
    let events = [
        EventDefinition::new("queue/length/counter", "u", &["value"])
            .unwrap()
            .with_units(&["items"])
            .unwrap(),
        EventDefinition::new("load/counter", "f", &[]).unwrap(),
        EventDefinition::new("send", "us", &["flow", "to"]).unwrap(),
        EventDefinition::new("receive", "iu", &["flow_end", "size"]).unwrap().with_units(&["", "B"]).unwrap(),
    ];
    let threads = [thread(0, 71, Some(70)), thread(1, 72, Some(70)), thread(2, 81, Some(80))];
    let records = [
        (user(1, 0, 0), vec![3]),
        (user(2, 0, 1), vec![u64::MAX]),
        (user(3, 0, 2), vec![5]),
        (user(4, 1, 0), vec![0.5_f64.to_bits()]),
        (user(5, 2, 0), [vec![9], text_words(b"you")].concat()),
        (user(6, 3, 1), vec![9, 4096]),
    ];
    let packets = packets(&export(false, &events, &threads, &records));
    let shown = shown(&packets);
    let tracks: Vec<u64> = shown[..4].iter().map(|shown| shown.track).collect();
    // One counter a process and name.
    assert!(tracks[0] == tracks[1] && tracks[0] != tracks[2] && tracks[0] != tracks[3]);
    let described =
        packets.iter().filter_map(|p| p.track_descriptor.as_ref()).find(|d| d.uuid == Some(tracks[0]));
    let described = described.expect("a counter's track");
    assert_eq!(described.name.as_deref(), Some("queue/length"));
    assert_eq!(described.counter.as_ref().and_then(|c| c.unit_name.as_deref()), Some("items"));
    assert_eq!((shown[0].kind, shown[0].event.counter_value), (COUNTER, Some(3)));
    assert_eq!(shown[1].event.double_counter_value, Some(u64::MAX as f64));
    assert_eq!(shown[3].event.double_counter_value, Some(0.5));
    assert_eq!(
        (&shown[4].event.flow_ids[..], &shown[5].event.terminating_flow_ids[..]),
        (&[9][..], &[9][..])
    );
    assert!(shown[5].event.flow_ids.is_empty());
    assert_eq!(shown[4].event.debug_annotations[1].string_value.as_deref(), Some("you"));
    assert_eq!(shown[5].event.debug_annotations[1].name.as_deref(), Some("size [B]"));
}

#[test]
fn the_end_of_a_slice_has_its_arguments_and_flows() {
    let events = [
        EventDefinition::new("job/begin", "uu", &["n", "flow"]).unwrap(),
        EventDefinition::new("job/end", "iuu", &["result", "n", "flow_end"]).unwrap(),
    ];
    let records = [
        (user(1, 0, 0), vec![3, 9]),
        (user(2, 1, 0), vec![(-1_i64).cast_unsigned(), 4, 9]),
        (user(3, 0, 0), vec![5, 10]),
    ];
    let packets = packets(&export(false, &events, &[thread(0, 71, Some(70))], &records));
    let shown = shown(&packets);
    let (begin, end, still_open) = (&shown[0].event, &shown[1].event, &shown[3]);
    assert_eq!((shown[1].kind, end.name_iid, end.name.as_deref()), (SLICE_END, None, None));
    let named = |event: &TrackEvent| -> Vec<_> {
        let all = event.debug_annotations.iter();
        all.map(|a| (a.name.clone().expect("a name"), a.int_value, a.uint_value)).collect()
    };
    assert_eq!(named(begin), [("n".to_owned(), None, Some(3)), ("flow".to_owned(), None, Some(9))]);
    let expected = [("result", Some(-1), None), ("n (end)", None, Some(4)), ("flow_end", None, Some(9))];
    assert_eq!(named(end), expected.map(|(name, signed, unsigned)| (name.to_owned(), signed, unsigned)));
    assert_eq!((&begin.flow_ids[..], &end.terminating_flow_ids[..]), (&[9][..], &[9][..]));
    assert!(begin.terminating_flow_ids.is_empty() && end.flow_ids.is_empty());
    assert_eq!((still_open.kind, named(&still_open.event).len()), (SLICE_END, 0), "ended with the trace");
}

/// Bytes an event of two arguments, as four threads emit them every few microseconds.
fn bytes_an_event(compressed: bool) -> f64 {
    const EVENTS: usize = 20_000;
    let events = [EventDefinition::new("net/packet", "uu", &["length", "socket"]).unwrap()];
    let threads = [0, 1, 2, 3].map(|id| thread(id, 70 + id as u32, Some(70)));
    let mut noise = 1_u64;
    let mut time = 0;
    let records: Vec<_> = (0..EVENTS)
        .map(|_| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            time += 1_000 + (noise >> 56);
            (user(time, 0, (noise >> 40) & 3), vec![64 + (noise >> 54), (noise >> 50) & 15])
        })
        .collect();
    let written = export(compressed, &events, &threads, &records);
    let read = packets(&written);
    assert_eq!(shown(&read).len(), EVENTS);
    assert_eq!(shown(&read).last().map(|shown| shown.time), Some(1_000 + time));
    written.len() as f64 / EVENTS as f64
}

#[test]
fn an_event_of_two_arguments_takes_at_most_32_bytes_and_12_compressed() {
    let (plain, compressed) = (bytes_an_event(false), bytes_an_event(true));
    println!("{plain:.1} bytes an event of two arguments, {compressed:.1} compressed");
    assert!(plain <= 32.0, "{plain}");
    assert!(compressed <= 12.0, "{compressed}");
}
