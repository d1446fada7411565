//! Traces of applications that horolog did not run: perf.data, trace.dat, and horolog's own recordings of programs.
//!
//! The kernel's switches and wake-ups are read from the file (own parsers: no perf or trace-cmd is needed) and a
//! [`Mapping`] says which thread is which task. From them jobs are derived: a wake-up releases one, the first
//! switch to the thread starts it, a switch away while it could run on preempts it, and the switch with which it
//! sleeps completes it. So a job is what a thread does between two sleeps; one that sleeps in the middle of its
//! job looks like two.
//!
//! Some kernels hide single switches from every recorder, which shows where the thread that leaves a processor is not
//! the one that came last. Such a gap is a [`Kind::Lost`](crate::Kind::Lost) of source 2, and time in it counts as
//! nobody's execution; a job whose end lies in it has lost its completion (source 1).
//!
//! Arrivals are wake-ups as observed, machine delays included; `verify` knows that from the backend `foreign`.

mod cursor;
mod formats;
mod jobs;
mod mapping;
mod perf_data;
mod recording;
mod trace_dat;

pub use mapping::{Mapping, Selector};
pub use recording::is_recording;

use crate::file::{Damage, Footer, Header, Reader, Thread, Writer};
use crate::kernel_priority::{Noted, Seen};
use crate::{Record, Sink, TraceError};
use horolog_time::{Instant, Span};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// What happened, as the kernel's tracepoints tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, ns on the file's clock.
    pub time: u64,
    /// On which processor; for a wake-up the one that the thread will run on.
    pub cpu: u32,
    /// What.
    pub kind: EventKind,
}

/// What a foreign file tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A processor went from one thread to another.
    Switch {
        /// Who had it.
        prev: u32,
        /// Its short name.
        prev_comm: String,
        /// The kernel's priority number: below 0 SCHED_DEADLINE, 0 to 98 real-time (99 - priority), above ordinary.
        prev_prio: Option<i32>,
        /// The kernel's letter of its state; `R` where it could have run on.
        prev_state: u8,
        /// Who has it now.
        next: u32,
        /// Its short name.
        next_comm: String,
        /// Its kernel priority number.
        next_prio: Option<i32>,
    },
    /// A thread became ready.
    Wakeup {
        /// Which.
        thread: u32,
        /// Its short name.
        comm: String,
        /// Whether it has just been made (`sched_wakeup_new`).
        is_new: bool,
    },
    /// Records of this processor are missing between its event before and this instant.
    Lost {
        /// How many.
        count: u64,
    },
    /// A thread enters a system call (`raw_syscalls:sys_enter`).
    Call {
        /// Which thread.
        thread: u32,
        /// Which call, by the recording machine's number.
        number: i64,
        /// Its first argument.
        argument: u64,
    },
    /// A thread, not an interrupt, starts a high-resolution timer (`timer:hrtimer_start`).
    Timer {
        /// Which thread.
        thread: u32,
        /// Which timer.
        timer: u64,
        /// Its earliest expiry, ns on the timer's own clock.
        expires: u64,
        /// Whether it was asked for as an instant.
        absolute: bool,
    },
}

/// What a foreign file tells of the whole machine, in the order of time.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The clock of its times: `CLOCK_MONOTONIC`, or the recorder's own.
    pub clock: String,
    /// What happened.
    pub events: Vec<Event>,
    /// Records that the recorder lost without saying where; those of [`EventKind::Lost`] come on top.
    pub lost: u64,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// Whether a file begins like a perf.data or trace.dat file.
#[must_use]
pub fn is_foreign(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(perf_data::MAGIC) || first_bytes.starts_with(trace_dat::MAGIC)
}

/// Reads what a perf.data or trace.dat file tells of all threads, without making jobs of it.
///
/// # Errors
/// Where the file cannot be read, is neither, or lacks `sched_switch`.
pub fn activity(path: impl AsRef<Path>) -> Result<Activity, TraceError> {
    let path = path.as_ref();
    let bytes =
        std::fs::read(path).map_err(|error| TraceError::io(format!("reading {}", path.display()), error))?;
    let source = source(&bytes).map_err(|error| error.in_file(path))?;
    Ok(Activity { clock: source.clock, events: source.events, lost: source.lost, notes: source.notes })
}

/// The events of a file, in the order of time.
fn source(bytes: &[u8]) -> Result<Source, TraceError> {
    let mut source = if bytes.starts_with(perf_data::MAGIC) {
        perf_data::read(bytes)?
    } else if bytes.starts_with(trace_dat::MAGIC) {
        trace_dat::read(bytes)?
    } else {
        match Reader::new(bytes) {
            Ok(mut reader) if is_recording(&reader) => recording::read(&mut reader)?,
            _ => {
                return Err(TraceError::not_a_trace(
                    "neither perf.data nor trace.dat, nor a recording of horolog: it begins as none of these",
                ));
            }
        }
    };
    // Each processor has its own buffer; a stable sort merges them.
    source.events.sort_by_key(|event| event.time);
    Ok(source)
}

/// What a foreign file holds.
#[derive(Clone, Debug, Default)]
struct Source {
    clock: String,
    events: Vec<Event>,
    lost: u64,
    notes: Vec<String>,
    /// Of the machine, as a head has it.
    machine: BTreeMap<String, String>,
    /// From where on it cannot be read.
    damage: Option<Damage>,
    /// With which priorities threads were seen, by the kernel's number of the thread.
    priorities: BTreeMap<u32, Seen>,
}

/// An imported trace.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// Its header; times count from the first event.
    pub header: Header,
    /// The threads that its records name.
    pub threads: Vec<Thread>,
    /// Its records in the order of time.
    pub records: Vec<Record>,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// With which priorities its threads were seen, by the kernel's number of the thread; without those of which nothing is told.
    pub priorities: BTreeMap<u32, Seen>,
    /// From where on the file could not be read.
    pub damage: Option<Damage>,
}

impl Foreign {
    /// Writes it as a trace of horolog's own format.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn write<W: Write>(&self, output: W) -> Result<Footer, TraceError> {
        let mut writer = Writer::new(output, &self.header)?;
        for thread in &self.threads {
            writer.define_thread(thread.tid, &thread.comm, thread.task);
        }
        for record in &self.records {
            writer.record(*record);
        }
        writer.finish(self.records.last().map_or(Instant::ZERO, |record| record.time))
    }
}

/// Imports a perf.data or trace.dat file, or a recording of horolog.
///
/// # Errors
/// Where the file cannot be read, is neither, lacks `sched_switch`, or no thread in it is mapped to a task.
pub fn import(
    path: impl AsRef<Path>,
    system: &str,
    tasks: &[String],
    mapping: &Mapping,
) -> Result<Foreign, TraceError> {
    let path = path.as_ref();
    let bytes =
        std::fs::read(path).map_err(|error| TraceError::io(format!("reading {}", path.display()), error))?;
    import_bytes(&bytes, system, tasks, mapping)
}

/// Imports the bytes of such a file.
///
/// # Errors
/// As [`import`].
pub fn import_bytes(
    bytes: &[u8],
    system: &str,
    tasks: &[String],
    mapping: &Mapping,
) -> Result<Foreign, TraceError> {
    let source = source(bytes)?;
    let origin = source.events.first().map_or(0, |event| event.time);
    let derived = jobs::derive(&source.events, origin, source.lost, mapping);
    if derived.tasks_seen == 0 {
        return Err(TraceError::unsupported(
            format!(
                "none of the {} threads in the trace is mapped to a task (busiest: {})",
                derived.threads.len(),
                derived.busiest.join(", ")
            ),
            "map threads with TASK=COMM or TASK=tid:NUMBER",
        ));
    }
    let mut header = Header::simulated(system.to_owned(), tasks.to_vec(), 0, Span::ZERO);
    "foreign".clone_into(&mut header.backend);
    header.clock = source.clock;
    header.origin_ns = origin;
    header.machine = source.machine;
    let mut notes = source.notes;
    notes
        .push("arrivals are wake-ups as observed; a job is what a thread does between two sleeps".to_owned());
    let mut noted: BTreeMap<u32, Noted> = BTreeMap::new();
    for event in &source.events {
        if let EventKind::Switch { next, next_prio: Some(prio), .. } = event.kind {
            noted.entry(next).or_default().note(prio, usize::MAX);
        }
    }
    let mut priorities = source.priorities;
    priorities.extend(noted.into_iter().map(|(tid, noted)| (tid, noted.seen())));
    let (threads, records, damage) = (derived.threads, derived.records, source.damage);
    Ok(Foreign { header, threads, records, notes, priorities, damage })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), which in 0..2_usize) {
            let mut file = if which == 0 { perf_data::MAGIC.to_vec() } else { trace_dat::MAGIC.to_vec() };
            file.extend_from_slice(&bytes);
            let tasks = ["a".to_owned()];
            prop_assert!(import_bytes(&file, "", &tasks, &Mapping::by_name(&tasks)).is_err());
        }
    }

    #[test]
    fn other_files_are_refused() {
        let error = import_bytes(b"hello", "", &[], &Mapping::default()).expect_err("no trace");
        assert!(error.is_bad_input() && error.to_string().contains("neither"), "{error}");
    }
}
