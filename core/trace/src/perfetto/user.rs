//! Events of user programs: instants, slices, counters and flows on their threads' tracks.
//!
//! Each thread is a sequence of packets of its own, so that its events leave out their track, count their time from the
//! event before and name their texts by number.

use super::messages::{
    COUNTER, Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation, INSTANT, Interned, InternedData,
    ProcessDescriptor, SLICE_BEGIN, SLICE_END, STATE_CLEARED, STATE_NEEDED, STEP_CLOCK, TRACE_CLOCK,
    ThreadDescriptor, TracePacket, TracePacketDefaults, TrackDescriptor, TrackEvent, TrackEventDefaults,
};
use super::{Exporter, ROOT, SEQUENCE};
use crate::file::Thread;
use crate::{TraceError, UserEvent, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Threads' tracks begin here.
const THREADS: u64 = 3 << 32;
/// Processes' tracks begin here.
const PROCESSES: u64 = 4 << 32;
/// Counters' tracks begin here.
const COUNTERS: u64 = 5 << 32;
/// How deep slices nest on one thread; deeper ones are shown as instants.
const DEPTH: usize = 256;
/// The most texts that a sequence numbers; beyond, names are in their events.
const MOST_TEXTS: usize = 1 << 16;

/// The threads, processes and counters that have a track.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    threads: BTreeMap<u64, Sequence>,
    processes: BTreeSet<u32>,
    /// By process (or thread, where that is not known) and name.
    counters: BTreeMap<(u64, String), u64>,
}

/// What the packets of one thread count from.
#[derive(Debug, Default)]
struct Sequence {
    id: u32,
    /// The slices that are open, with what the arguments of their beginnings are called.
    open: Vec<(String, Vec<String>)>,
    /// The time of the last packet.
    time: u64,
    begun: bool,
    names: BTreeMap<String, u64>,
    arguments: BTreeMap<String, u64>,
}

impl Sequence {
    /// The number of `text`, and its definition where it is new; `None` where there are too many.
    fn intern(known: &mut BTreeMap<String, u64>, text: &str, new: &mut Vec<Interned>) -> Option<u64> {
        if let Some(number) = known.get(text) {
            return Some(*number);
        }
        let number = known.len() as u64 + 1;
        if known.len() == MOST_TEXTS {
            return None;
        }
        known.insert(text.to_owned(), number);
        new.push(Interned { iid: Some(number), name: Some(text.to_owned()) });
        Some(number)
    }
}

impl Tracks {
    /// The track of every slice that is still open, and none any more.
    pub(super) fn still_open(&mut self) -> Vec<u64> {
        let open = std::mem::take(&mut self.threads).into_iter();
        open.flat_map(|(thread, sequence)| {
            std::iter::repeat_n(THREADS.wrapping_add(thread), sequence.open.len())
        })
        .collect()
    }
}

impl<W: Write> Exporter<W> {
    /// Writes what a user event says.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn take_user(&mut self, event: &UserEvent<'_>) -> Result<(), TraceError> {
        self.latest = self.latest.max(event.record.time);
        let thread = event.record.extra;
        if !self.users.threads.contains_key(&thread) {
            self.thread_track(thread, event.thread)?;
        }
        if let Some(counter) = event.name().strip_suffix("/counter")
            && let Some(value) = event.value(0).filter(|value| !matches!(value, Value::Text(_)))
        {
            return self.counter(event, counter, value);
        }
        let sequence = self.users.threads.entry(thread).or_default();
        if let Some(subject) = event.name().strip_suffix("/end") {
            // Only the innermost slice can end; everything else is shown as what it is.
            if let Some((_, labels)) = sequence.open.pop_if(|(innermost, _)| innermost == subject) {
                let end = TrackEvent { r#type: Some(SLICE_END), ..TrackEvent::default() };
                return self.put(event, end, Says::End(&labels));
            }
        }
        let begins = event.name().strip_suffix("/begin").filter(|_| sequence.open.len() < DEPTH);
        if let Some(subject) = begins {
            let labels = (0..event.arguments().count()).map(|place| event.definition.label(place));
            sequence.open.push((subject.to_owned(), labels.collect()));
        }
        let r#type = Some(if begins.is_some() { SLICE_BEGIN } else { INSTANT });
        let name = begins.unwrap_or(event.name());
        self.put(event, TrackEvent { r#type, ..TrackEvent::default() }, Says::Name(name))
    }

    fn counter(&mut self, event: &UserEvent<'_>, name: &str, value: Value<'_>) -> Result<(), TraceError> {
        let process = event.thread.and_then(|thread| thread.process);
        let owner = process
            .map_or(THREADS.wrapping_add(event.record.extra), |process| PROCESSES + u64::from(process));
        let key = (owner, name.to_owned());
        let track = match self.users.counters.get(&key) {
            Some(track) => *track,
            None => {
                let track = COUNTERS + self.users.counters.len() as u64;
                self.users.counters.insert(key, track);
                self.descriptor(TrackDescriptor {
                    uuid: Some(track),
                    name: Some(name.to_owned()),
                    parent_uuid: Some(owner),
                    counter: Some(CounterDescriptor {
                        unit_name: event.definition.unit(0).map(str::to_owned),
                    }),
                    ..TrackDescriptor::default()
                })?;
                track
            }
        };
        let mut counter =
            TrackEvent { r#type: Some(COUNTER), track_uuid: Some(track), ..TrackEvent::default() };
        match value {
            Value::Float(value) => counter.double_counter_value = Some(value),
            Value::Signed(value) => counter.counter_value = Some(value),
            value => match value.as_number() {
                // Beyond what a signed number holds.
                number if number >= i64::MAX as f64 => counter.double_counter_value = Some(number),
                _ => counter.counter_value = event.words.first().map(|word| word.cast_signed()),
            },
        }
        self.put(event, counter, Says::Value)
    }

    /// Writes an event into its thread's sequence.
    fn put(
        &mut self,
        event: &UserEvent<'_>,
        mut track: TrackEvent,
        says: Says<'_>,
    ) -> Result<(), TraceError> {
        let time = self.origin.saturating_add(event.record.time.as_ns());
        let thread = event.record.extra;
        let sequence = self.users.threads.entry(thread).or_default();
        let id = Some(sequence.id);
        if !sequence.begun {
            (sequence.begun, sequence.time) = (true, time);
            let clock = |clock_id, is_incremental| Clock {
                clock_id: Some(clock_id),
                timestamp: Some(time),
                is_incremental,
            };
            let begins = TracePacket {
                trusted_packet_sequence_id: id,
                sequence_flags: Some(STATE_CLEARED),
                trace_packet_defaults: Some(TracePacketDefaults {
                    track_event_defaults: Some(TrackEventDefaults {
                        track_uuid: Some(THREADS.wrapping_add(thread)),
                    }),
                    timestamp_clock_id: Some(STEP_CLOCK),
                }),
                clock_snapshot: Some(ClockSnapshot {
                    clocks: vec![clock(TRACE_CLOCK, None), clock(STEP_CLOCK, Some(true))],
                }),
                ..TracePacket::default()
            };
            self.packet(&begins)?;
        }
        let sequence = self.users.threads.entry(thread).or_default();
        let mut new = InternedData::default();
        match says {
            Says::Name(name) => {
                track.name_iid = Sequence::intern(&mut sequence.names, name, &mut new.event_names);
                track.name = track.name_iid.is_none().then(|| name.to_owned());
                arguments(event, &[], sequence, &mut new, &mut track);
            }
            Says::End(labels) => arguments(event, labels, sequence, &mut new, &mut track),
            Says::Value => {}
        }
        let is_new = new != InternedData::default();
        // What comes late has its time on the trace's clock, since a step never goes back.
        let step = time.checked_sub(sequence.time);
        sequence.time = sequence.time.max(time);
        self.packet(&TracePacket {
            timestamp: Some(step.unwrap_or(time)),
            timestamp_clock_id: step.is_none().then_some(TRACE_CLOCK),
            trusted_packet_sequence_id: id,
            sequence_flags: Some(STATE_NEEDED),
            interned_data: is_new.then_some(new),
            track_event: Some(track),
            ..TracePacket::default()
        })
    }

    fn thread_track(&mut self, id: u64, thread: Option<&Thread>) -> Result<(), TraceError> {
        let sequence = Sequence { id: SEQUENCE + 1 + self.users.threads.len() as u32, ..Sequence::default() };
        self.users.threads.insert(id, sequence);
        let uuid = Some(THREADS.wrapping_add(id));
        let Some((thread, process)) = thread.and_then(|thread| Some((thread, thread.process?))) else {
            let name = thread.map_or(format!("thread #{id}"), Thread::named);
            let parent_uuid = Some(ROOT);
            return self.descriptor(TrackDescriptor {
                uuid,
                name: Some(name),
                parent_uuid,
                ..TrackDescriptor::default()
            });
        };
        let pid = Some(process.cast_signed());
        if self.users.processes.insert(process) {
            // A process is called like its first thread, the one that the viewer lists first.
            let process_name = (thread.tid == process).then(|| thread.comm.clone());
            self.descriptor(TrackDescriptor {
                uuid: Some(PROCESSES + u64::from(process)),
                process: Some(ProcessDescriptor { pid, process_name }),
                ..TrackDescriptor::default()
            })?;
        }
        let described = ThreadDescriptor {
            pid,
            tid: Some(thread.tid.cast_signed()),
            thread_name: Some(thread.comm.clone()),
        };
        self.descriptor(TrackDescriptor {
            uuid,
            parent_uuid: Some(PROCESSES + u64::from(process)),
            thread: Some(described),
            ..TrackDescriptor::default()
        })
    }
}

/// What an event says besides its type.
#[derive(Clone, Copy, Debug)]
enum Says<'a> {
    /// Its name and its arguments.
    Name(&'a str),
    /// Its arguments, which join those of the slice's beginning with these labels.
    End(&'a [String]),
    /// The value of a counter.
    Value,
}

/// Gives an event its arguments, and the flows that they name. One that is called as one of the slice's beginning would take
/// its place.
fn arguments(
    event: &UserEvent<'_>,
    beginning: &[String],
    sequence: &mut Sequence,
    new: &mut InternedData,
    track: &mut TrackEvent,
) {
    for (place, (name, value)) in event.arguments().enumerate() {
        let mut label = event.definition.label(place);
        if beginning.contains(&label) {
            label.push_str(" (end)");
        }
        let mut annotation = DebugAnnotation {
            name_iid: Sequence::intern(&mut sequence.arguments, &label, &mut new.debug_annotation_names),
            ..DebugAnnotation::default()
        };
        annotation.name = annotation.name_iid.is_none().then_some(label);
        match value {
            Value::Bool(value) => annotation.bool_value = Some(value),
            Value::Unsigned(value) => annotation.uint_value = Some(value),
            Value::Signed(value) => annotation.int_value = Some(value),
            Value::Float(value) => annotation.double_value = Some(value),
            Value::Address(value) => annotation.pointer_value = Some(value),
            Value::Text(text) => annotation.string_value = Some(text.to_string()),
        }
        track.debug_annotations.push(annotation);
        let flow = match value {
            Value::Unsigned(value) | Value::Address(value) => value,
            Value::Signed(value) => value.cast_unsigned(),
            Value::Bool(_) | Value::Float(_) | Value::Text(_) => continue,
        };
        match name {
            Some("flow") => track.flow_ids.push(flow),
            Some("flow_end") => track.terminating_flow_ids.push(flow),
            _ => {}
        }
    }
}
