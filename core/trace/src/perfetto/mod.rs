//! Export to Perfetto's protobuf format, for <https://ui.perfetto.dev>.
//!
//! One track a task (slices while a job has the processor; instants for releases, misses, deadlines, preemption
//! points), one a processor (slices named after the task), in measured traces one more a processor for the kernel's
//! switches and one for interrupts, and a counter of lost records. Events of user programs stand on their threads'
//! tracks, grouped by process, with their arguments: `x/begin` and `x/end` as a slice, `x/counter` as a counter of its
//! process, all others as instants; events whose argument `flow` (at the end `flow_end`) has the same number are joined by
//! arrows. Packets are written one by one, or some thousand at once in a compressed one, so that memory does not grow with
//! the trace.

pub mod messages;
mod user;
#[cfg(test)]
mod user_tests;

use crate::file::{Header, Thread};
use crate::{Kind, NO_JOB, NO_TASK, Record, TraceError};
use horolog_time::Instant;
use messages::{
    COUNTER, CounterDescriptor, DebugAnnotation, EXPLICIT_ORDER, INSTANT, SLICE_BEGIN, SLICE_END,
    STATE_CLEARED, TracePacket, TrackDescriptor, TrackEvent,
};
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::Write;

/// The track that all others are children of.
const ROOT: u64 = 1;
/// The counter of lost records.
const LOSSES: u64 = 2;
/// Tasks' tracks begin here.
const TASKS: u64 = 1 << 32;
/// Processors' tracks begin here: for each what runs, the kernel's threads, interrupts.
const PROCESSORS: u64 = 2 << 32;
/// Everything comes from one writer.
const SEQUENCE: u32 = 1;

/// What has a slice open on a processor's tracks.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    task: Option<u32>,
    thread: bool,
    interrupts: u32,
}

/// Writes a trace in Perfetto's format; hand it every record, then [`Exporter::finish`].
#[derive(Debug)]
pub struct Exporter<W: Write> {
    output: W,
    tasks: Vec<String>,
    /// What a simulation's interrupts and softirqs are called.
    names: BTreeMap<String, String>,
    origin: u64,
    threads: Vec<Thread>,
    /// Per task, whether a slice is open on its track.
    running: Vec<bool>,
    cpus: BTreeMap<u16, Open>,
    users: user::Tracks,
    lost: u64,
    latest: Instant,
    buffer: Vec<u8>,
    /// Packets that wait to be compressed; `None`: they are written as they are.
    waiting: Option<Vec<u8>>,
}

/// A compressed packet holds at least so many bytes of packets.
const COMPRESSED_AT_ONCE: usize = 256 << 10;

impl<W: Write> Exporter<W> {
    /// Writes the tasks' tracks.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn new(output: W, header: &Header) -> Result<Exporter<W>, TraceError> {
        Exporter::begin(output, header, false)
    }

    /// The same with compressed packets, which are a fifth as long; Perfetto reads them as well.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn compressed(output: W, header: &Header) -> Result<Exporter<W>, TraceError> {
        Exporter::begin(output, header, true)
    }

    fn begin(output: W, header: &Header, compresses: bool) -> Result<Exporter<W>, TraceError> {
        let mut exporter = Exporter {
            output,
            tasks: header.tasks.clone(),
            names: header.machine.clone(),
            origin: header.origin_ns,
            threads: Vec::new(),
            running: vec![false; header.tasks.len()],
            cpus: BTreeMap::new(),
            users: user::Tracks::default(),
            lost: 0,
            latest: Instant::ZERO,
            buffer: Vec::new(),
            waiting: compresses.then(Vec::new),
        };
        let root = TrackDescriptor {
            uuid: Some(ROOT),
            name: Some(format!("horolog ({})", header.backend)),
            child_ordering: Some(EXPLICIT_ORDER),
            ..TrackDescriptor::default()
        };
        exporter.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(STATE_CLEARED),
            track_descriptor: Some(root),
            ..TracePacket::default()
        })?;
        for index in 0..header.tasks.len() {
            let name = header.tasks[index].clone();
            exporter.track(TASKS + index as u64, name, 1_000 + index as i32, None)?;
        }
        let unit = CounterDescriptor { unit_name: Some("records".to_owned()) };
        exporter.track(LOSSES, "lost records".to_owned(), i32::MAX, Some(unit))?;
        Ok(exporter)
    }

    /// The threads that kernel records name by number.
    pub fn set_threads(&mut self, threads: &[Thread]) {
        self.threads = threads.to_vec();
    }

    /// How many threads are known.
    #[must_use]
    pub fn threads_known(&self) -> usize {
        self.threads.len()
    }

    /// Writes what a record says.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn take(&mut self, record: &Record) -> Result<(), TraceError> {
        self.latest = self.latest.max(record.time);
        if !self.cpus.contains_key(&record.cpu) {
            self.processor_tracks(record.cpu)?;
        }
        match record.kind {
            Kind::Start | Kind::Resume => self.begin_job(record),
            Kind::Preempt | Kind::Yield | Kind::Suspend | Kind::Completion => self.end(record),
            Kind::KernelSwitch => self.switch(record),
            Kind::InterruptEntry | Kind::SoftirqEntry => self.enter_interrupt(record),
            Kind::InterruptExit | Kind::SoftirqExit => self.leave_interrupt(record),
            Kind::Lost => {
                self.lost = self.lost.saturating_add(record.value);
                let value = i64::try_from(self.lost).unwrap_or(i64::MAX);
                self.event(
                    record.time,
                    TrackEvent {
                        r#type: Some(COUNTER),
                        track_uuid: Some(LOSSES),
                        counter_value: Some(value),
                        ..TrackEvent::default()
                    },
                )
            }
            _ => self.instant(record),
        }
    }

    /// Closes what is open and writes out.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn finish(mut self, end: Instant) -> Result<W, TraceError> {
        let end = end.max(self.latest);
        for task in 0..self.running.len() {
            if self.running[task] {
                self.slice_end(end, TASKS + task as u64)?;
            }
        }
        for track in self.users.still_open() {
            self.slice_end(end, track)?;
        }
        for (cpu, open) in std::mem::take(&mut self.cpus) {
            let [runs, threads, interrupts] = tracks_of(cpu);
            if open.task.is_some() {
                self.slice_end(end, runs)?;
            }
            if open.thread {
                self.slice_end(end, threads)?;
            }
            for _ in 0..open.interrupts {
                self.slice_end(end, interrupts)?;
            }
        }
        self.compress()?;
        self.output.flush().map_err(|error| TraceError::io("writing the Perfetto trace", error))?;
        Ok(self.output)
    }

    fn processor_tracks(&mut self, cpu: u16) -> Result<(), TraceError> {
        self.cpus.insert(cpu, Open::default());
        let rank = 3 * i32::from(cpu);
        let names = [format!("CPU {cpu}"), format!("CPU {cpu} threads"), format!("CPU {cpu} interrupts")];
        for ((place, name), uuid) in names.into_iter().enumerate().zip(tracks_of(cpu)) {
            self.track(uuid, name, rank.saturating_add(place as i32 + 1_000_000), None)?;
        }
        Ok(())
    }

    fn begin_job(&mut self, record: &Record) -> Result<(), TraceError> {
        let Some(name) = self.tasks.get(record.task as usize).cloned() else { return Ok(()) };
        let task = record.task as usize;
        // A record that was lost leaves a slice open: it ends where the next one begins.
        if self.running[task] {
            self.slice_end(record.time, TASKS + task as u64)?;
        }
        self.running[task] = true;
        let job = format!("{name} #{}", record.job);
        self.slice_begin(record, TASKS + task as u64, job.clone())?;
        self.end_on_processor(record.cpu, record.time)?;
        self.cpus.entry(record.cpu).or_default().task = Some(record.task);
        self.slice_begin(record, tracks_of(record.cpu)[0], job)
    }

    fn end(&mut self, record: &Record) -> Result<(), TraceError> {
        let task = record.task as usize;
        if self.running.get(task).copied().unwrap_or(false) {
            self.running[task] = false;
            self.slice_end(record.time, TASKS + task as u64)?;
        }
        if self.cpus.get(&record.cpu).is_some_and(|open| open.task == Some(record.task)) {
            self.end_on_processor(record.cpu, record.time)?;
        }
        Ok(())
    }

    fn end_on_processor(&mut self, cpu: u16, time: Instant) -> Result<(), TraceError> {
        if self.cpus.entry(cpu).or_default().task.take().is_some() {
            self.slice_end(time, tracks_of(cpu)[0])?;
        }
        Ok(())
    }

    fn switch(&mut self, record: &Record) -> Result<(), TraceError> {
        let track = tracks_of(record.cpu)[1];
        let open = self.cpus.entry(record.cpu).or_default();
        if std::mem::take(&mut open.thread) {
            self.slice_end(record.time, track)?;
        }
        let thread = usize::try_from(record.extra).ok().and_then(|id| self.threads.get(id));
        // Idle time is shown as nothing.
        if thread.is_some_and(|thread| thread.tid == 0) {
            return Ok(());
        }
        let name = thread.map_or_else(|| format!("thread #{}", record.extra), |thread| thread.comm.clone());
        self.cpus.entry(record.cpu).or_default().thread = true;
        self.slice_begin(record, track, name)
    }

    fn enter_interrupt(&mut self, record: &Record) -> Result<(), TraceError> {
        self.cpus.entry(record.cpu).or_default().interrupts += 1;
        let name = match record.kind {
            Kind::SoftirqEntry => format!("softirq {}", record.value),
            _ if record.extra == 0 => format!("interrupt {}", record.value),
            _ => format!("vector {}", record.value),
        };
        let name = self.names.get(&name).cloned().unwrap_or(name);
        self.slice_begin(record, tracks_of(record.cpu)[2], name)
    }

    fn leave_interrupt(&mut self, record: &Record) -> Result<(), TraceError> {
        let open = self.cpus.entry(record.cpu).or_default();
        // An exit whose entry lies before the trace ends nothing.
        let Some(left) = open.interrupts.checked_sub(1) else { return Ok(()) };
        open.interrupts = left;
        self.slice_end(record.time, tracks_of(record.cpu)[2])
    }

    fn instant(&mut self, record: &Record) -> Result<(), TraceError> {
        let track = if (record.task as usize) < self.tasks.len() {
            TASKS + u64::from(record.task)
        } else {
            tracks_of(record.cpu)[0]
        };
        let event =
            TrackEvent { r#type: Some(INSTANT), ..named(record, track, record.kind.name().to_owned()) };
        self.event(record.time, event)
    }

    fn slice_begin(&mut self, record: &Record, track: u64, name: String) -> Result<(), TraceError> {
        self.event(record.time, TrackEvent { r#type: Some(SLICE_BEGIN), ..named(record, track, name) })
    }

    fn slice_end(&mut self, time: Instant, track: u64) -> Result<(), TraceError> {
        let event = TrackEvent { r#type: Some(SLICE_END), track_uuid: Some(track), ..TrackEvent::default() };
        self.event(time, event)
    }

    fn track(
        &mut self,
        uuid: u64,
        name: String,
        rank: i32,
        counter: Option<CounterDescriptor>,
    ) -> Result<(), TraceError> {
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(ROOT),
            counter,
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        };
        self.descriptor(track)
    }

    fn descriptor(&mut self, track: TrackDescriptor) -> Result<(), TraceError> {
        self.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    fn event(&mut self, time: Instant, event: TrackEvent) -> Result<(), TraceError> {
        self.packet(&TracePacket {
            // A hostile time beyond 2^64 stays at the end rather than wrapping to the beginning.
            timestamp: Some(self.origin.saturating_add(time.as_ns())),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// Writes one packet as the field `packet` of a `Trace`.
    fn packet(&mut self, packet: &TracePacket) -> Result<(), TraceError> {
        self.buffer.clear();
        prost::encoding::message::encode(1, packet, &mut self.buffer);
        match &mut self.waiting {
            Some(waiting) => {
                waiting.extend_from_slice(&self.buffer);
                if waiting.len() < COMPRESSED_AT_ONCE { Ok(()) } else { self.compress() }
            }
            None => self.write(),
        }
    }

    /// Writes what waits as one compressed packet.
    fn compress(&mut self) -> Result<(), TraceError> {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| !waiting.is_empty()) else {
            return Ok(());
        };
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let compressed = encoder.write_all(waiting).and_then(|()| encoder.finish());
        let compressed =
            compressed.map_err(|error| TraceError::io("compressing the Perfetto trace", error))?;
        waiting.clear();
        self.buffer.clear();
        let packet = TracePacket { compressed_packets: Some(compressed), ..TracePacket::default() };
        prost::encoding::message::encode(1, &packet, &mut self.buffer);
        self.write()
    }

    fn write(&mut self) -> Result<(), TraceError> {
        self.output
            .write_all(&self.buffer)
            .map_err(|error| TraceError::io("writing the Perfetto trace", error))
    }
}

/// A processor's tracks: what runs, the kernel's threads, interrupts.
fn tracks_of(cpu: u16) -> [u64; 3] {
    let first = PROCESSORS + 3 * u64::from(cpu);
    [first, first + 1, first + 2]
}

/// An event with a record's numbers.
fn named(record: &Record, track: u64, name: String) -> TrackEvent {
    let number = |name: &str, value: u64| DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    };
    let mut annotations = Vec::new();
    if record.task != NO_TASK && record.job != NO_JOB {
        annotations.push(number("job", record.job));
    }
    if record.value != 0 {
        annotations.push(number("value", record.value));
    }
    TrackEvent {
        debug_annotations: annotations,
        track_uuid: Some(track),
        categories: vec![record.kind.name().to_owned()],
        name: Some(name),
        ..TrackEvent::default()
    }
}

/// Reads back what [`Exporter`] wrote; for tests and for looking at files.
///
/// # Errors
/// Where the bytes are no such message.
pub fn decode(bytes: &[u8]) -> Result<messages::Trace, TraceError> {
    messages::Trace::decode(bytes)
        .map_err(|error| TraceError::not_a_trace(format!("not a Perfetto trace: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Span;

    fn record(time: u64, kind: Kind, task: u32, job: u64, value: u64) -> Record {
        Record { time: Instant::from_ns(time), kind, cpu: 1, task, job, value, extra: 0 }
    }

    fn exported(records: &[Record]) -> messages::Trace {
        let mut header =
            Header::simulated(String::new(), vec!["a".to_owned(), "b".to_owned()], 0, Span::ZERO);
        header.origin_ns = 1_000;
        let mut exporter = Exporter::new(Vec::new(), &header).expect("memory");
        exporter.set_threads(&[Thread {
            id: 0,
            tid: 0,
            comm: "swapper/1".to_owned(),
            task: None,
            process: None,
        }]);
        for record in records {
            exporter.take(record).expect("memory");
        }
        decode(&exporter.finish(Instant::from_ns(100)).expect("memory")).expect("what was written")
    }

    #[test]
    fn slices_and_instants_stand_on_their_tracks() {
        let trace = exported(&[
            record(5, Kind::Release, 0, 0, 4),
            record(6, Kind::Start, 0, 0, 0),
            record(7, Kind::Preempt, 0, 0, 0),
            record(7, Kind::Start, 1, 0, 0),
            record(9, Kind::Completion, 1, 0, 2),
            record(9, Kind::Resume, 0, 0, 0),
            record(20, Kind::Lost, NO_TASK, NO_JOB, 7),
        ]);
        let names: Vec<String> =
            trace.packet.iter().filter_map(|p| p.track_descriptor.as_ref()?.name.clone()).collect();
        for name in ["horolog (sim)", "a", "b", "CPU 1", "lost records"] {
            assert!(names.iter().any(|n| n == name), "{name}");
        }
        let events = |kind: i32, track: u64| -> Vec<u64> {
            let wanted = trace.packet.iter().filter(|packet| {
                packet
                    .track_event
                    .as_ref()
                    .is_some_and(|e| e.r#type == Some(kind) && e.track_uuid == Some(track))
            });
            wanted.filter_map(|packet| packet.timestamp).collect()
        };
        assert_eq!(events(INSTANT, TASKS), [1_005]);
        assert_eq!(events(SLICE_BEGIN, TASKS), [1_006, 1_009]);
        // The last slice is closed at the end.
        assert_eq!(events(SLICE_END, TASKS), [1_007, 1_100]);
        assert_eq!(events(SLICE_BEGIN, tracks_of(1)[0]), [1_006, 1_007, 1_009]);
        assert_eq!(events(SLICE_END, tracks_of(1)[0]), [1_007, 1_009, 1_100]);
        let counter = trace.packet.iter().find_map(|p| p.track_event.as_ref()?.counter_value);
        assert_eq!(counter, Some(7));
    }

    #[test]
    fn every_slice_that_begins_ends() {
        let kernel =
            |time: u64, kind: Kind, extra: u64| Record { extra, ..record(time, kind, NO_TASK, NO_JOB, 3) };
        let trace = exported(&[
            kernel(1, Kind::InterruptExit, 0),
            kernel(2, Kind::KernelSwitch, 4),
            kernel(3, Kind::InterruptEntry, 1),
            kernel(4, Kind::SoftirqEntry, 0),
            record(5, Kind::Start, 0, 0, 0),
            record(6, Kind::Start, 0, 1, 0),
            record(7, Kind::Completion, 9, 0, 0),
        ]);
        let mut open: BTreeMap<u64, i64> = BTreeMap::new();
        for event in trace.packet.iter().filter_map(|packet| packet.track_event.as_ref()) {
            let depth = open.entry(event.track_uuid.expect("a track")).or_default();
            *depth +=
                i64::from(event.r#type == Some(SLICE_BEGIN)) - i64::from(event.r#type == Some(SLICE_END));
            assert!(*depth >= 0);
        }
        assert!(open.values().all(|depth| *depth == 0));
    }
}
