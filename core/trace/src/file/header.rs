//! The head and the foot of a trace file.

use super::numbers::{Numbers, other_file};
use crate::{Ending, EventDefinition, Kind, LossCause, escape};
use horolog_model::{Companion, System};
use horolog_time::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands at the head of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Always [`Header::SCHEMA`].
    pub schema: String,
    /// The normalised system file, as `horolog check` prints it; empty for a foreign trace.
    pub system: String,
    /// `sim`, `linux`, `linux-best-effort`, `session` (a recording of programs, without a system), or `foreign`.
    pub backend: String,
    /// The seed of everything drawn by chance.
    pub seed: u64,
    /// The clock of all times: `virtual`, or `CLOCK_MONOTONIC`.
    pub clock: String,
    /// The trace's origin on that clock: add it to a record's time.
    pub origin_ns: u64,
    /// Offset 0 of every task, since the origin.
    #[serde(rename = "start_ns")]
    pub start: Instant,
    /// How long after the start jobs were released.
    #[serde(rename = "horizon_ns")]
    pub horizon: Span,
    /// What the machine was (CPU, kernel, isolation, …).
    pub machine: BTreeMap<String, String>,
    /// The tasks' names in the order of [`horolog_model::TaskId`].
    pub tasks: Vec<String>,
    /// What the numbers in records stand for. `None`: there are the tasks of the file alone, and every other section is
    /// numbered in its order (a foreign trace, and every one that an older version wrote).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// Who contributed records, in words ("user events of processes under `./server`", …); empty before format 1.1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// How far a time may be from `clock` at most, as known at the beginning; the foot has the last word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// `CLOCK_REALTIME` at the origin, where known: for comparison with other logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_ns: Option<u64>,
}

impl Header {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.trace/1";

    /// The header of a simulated run: virtual time from 0.
    #[must_use]
    pub fn simulated(system: String, tasks: Vec<String>, seed: u64, horizon: Span) -> Header {
        Header {
            schema: Header::SCHEMA.to_owned(),
            system,
            backend: "sim".to_owned(),
            seed,
            clock: "virtual".to_owned(),
            origin_ns: 0,
            start: Instant::ZERO,
            horizon,
            machine: BTreeMap::new(),
            tasks,
            numbers: None,
            sources: Vec::new(),
            clock_error_ns: None,
            realtime_ns: None,
        }
    }

    /// The header of a run on this machine: `CLOCK_MONOTONIC` from `origin_ns`.
    #[must_use]
    pub fn measured(system: String, tasks: Vec<String>, seed: u64, origin_ns: u64) -> Header {
        Header {
            backend: "linux".to_owned(),
            clock: "CLOCK_MONOTONIC".to_owned(),
            origin_ns,
            ..Header::simulated(system, tasks, seed, Span::ZERO)
        }
    }

    /// The header of a recording of programs without a system file: `CLOCK_MONOTONIC` from `origin_ns`.
    #[must_use]
    pub fn session(origin_ns: u64) -> Header {
        Header { backend: "session".to_owned(), ..Header::measured(String::new(), Vec::new(), 0, origin_ns) }
    }

    /// This header, of records about a companion of `system`: its tasks are named, and every number is explained.
    #[must_use]
    pub fn of_companion(mut self, system: &System, companion: &Companion) -> Header {
        self.tasks = companion.system.tasks().iter().map(|task| task.name.clone()).collect();
        let mut numbers = Numbers::of(system, companion);
        if !self.is_simulated() {
            (numbers.interrupts, numbers.devices) = Default::default();
        }
        self.numbers = Some(numbers);
        self
    }

    /// The system whose tasks the records number: those of `system`, and the threads of its drivers that the head names.
    ///
    /// # Errors
    /// In words, where the trace is of another system, or does not say which threads it numbers.
    pub fn companion(&self, system: &System) -> Result<Companion, String> {
        if let Some(numbers) = &self.numbers {
            let companion = numbers.companion(system)?;
            let names: Vec<String> = companion.system.tasks().iter().map(|task| task.name.clone()).collect();
            // Readers that do not know numbers go by the names.
            return if self.tasks.is_empty() || self.tasks == names {
                Ok(companion)
            } else {
                Err(other_file("task", &self.tasks, &names))
            };
        }
        let own: Vec<String> = system.tasks().iter().map(|task| task.name.clone()).collect();
        if self.tasks == own {
            return Companion::without_threads(system).map_err(|error| error.to_string());
        }
        if self.tasks.starts_with(&own) && !system.devices().is_empty() {
            let more = self.tasks[own.len()..].join(", ");
            return Err(format!(
                "the trace numbers more than the tasks of the file ({more}) and does not say what these are: an older version \
                 wrote it; record it again"
            ));
        }
        Err(other_file("task", &self.tasks, &own))
    }

    /// Whether the run was simulated, so that its records are exact.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.backend == "sim"
    }
}

/// A thread that kernel records speak of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Thread {
    /// The number by which records name it, counted from 0.
    pub id: u64,
    /// The kernel's number.
    pub tid: u32,
    /// The kernel's name of it.
    pub comm: String,
    /// The task that it serves.
    pub task: Option<u32>,
    /// The process that it belongs to, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
}

impl Thread {
    /// Its name and number for people; one whose name was not known in time is called by its number.
    #[must_use]
    pub fn named(&self) -> String {
        if self.comm.is_empty() {
            format!("thread {}", self.tid)
        } else {
            format!("{} ({})", self.comm, self.tid)
        }
    }
}

/// Records lost, by who lost them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Losses {
    /// Lost by horolog's own buffers.
    pub horolog: u64,
    /// Lost by the kernel's buffers.
    pub kernel: u64,
    /// Lost by sources that this version does not know.
    pub other: u64,
}

impl Losses {
    /// Counts `count` records lost by `source`, as [`Kind::Lost`] numbers it.
    pub fn add(&mut self, source: u64, count: u64) {
        let place = match LossCause::from_number(source) {
            Some(LossCause::Kernel) => &mut self.kernel,
            None | Some(LossCause::HiddenSwitch) => &mut self.other,
            Some(_) => &mut self.horolog,
        };
        *place = place.saturating_add(count);
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.horolog.saturating_add(self.kernel).saturating_add(self.other)
    }
}

/// Where a block begins and the time of its first record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockPlace {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Its number, counted from 0.
    pub block: u64,
    /// The time of its first record.
    #[serde(rename = "first_ns")]
    pub first: Instant,
}

/// What stands at the foot of a trace that was finished.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Footer {
    /// When recording ended, since the origin.
    #[serde(rename = "end_ns")]
    pub end: Instant,
    /// When releases ended in a run: no job that arrives from then on is released, and those that are under way complete. `None` where
    /// it is not known: in older and other traces, and where user code ended the run.
    #[serde(rename = "releases_end_ns", default, skip_serializing_if = "Option::is_none")]
    pub releases_end: Option<Instant>,
    /// Who ended a run before its time, and how; `None` where it went on to the end that was meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Ending>,
    /// How many records there are.
    pub records: u64,
    /// How many of each kind, by [`Kind::name`].
    pub counts: BTreeMap<String, u64>,
    /// Records lost.
    pub losses: Losses,
    /// The same by cause ([`LossCause::name`], `other` for causes of a newer version).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub causes: BTreeMap<String, u64>,
    /// How far a time may be from the header's clock at most, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// Every event of user programs that was defined, by its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventDefinition>,
    /// Every thread that was named.
    pub threads: Vec<Thread>,
    /// Of threads by the kernel's number: how often they got or left a processor with which of the kernel's priorities (below 0:
    /// `SCHED_DEADLINE`; 0 to 98: real-time, the highest first; from 100: ordinary). In recordings of programs with the kernel's record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub priorities: BTreeMap<u32, BTreeMap<i32, u64>>,
    /// Places to seek to, in the order of the file; not every block has one.
    pub index: Vec<BlockPlace>,
}

impl Footer {
    /// Names come from recorded programs: nothing in them is obeyed by a terminal.
    pub(super) fn escape_names(&mut self) {
        let comms = self.threads.iter_mut().map(|thread| &mut thread.comm);
        let events = self.events.iter_mut().flat_map(|event| {
            std::iter::once(&mut event.name).chain(&mut event.names).chain(&mut event.units)
        });
        comms.chain(events).for_each(|name| *name = escape(std::mem::take(name)));
    }

    /// How many records of `kind` there are.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts.get(kind.name()).copied().unwrap_or(0)
    }
}
