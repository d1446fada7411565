//! What a trace comes to: counts, response times, execution intervals, and the outcome recomputed.

use crate::file::Header;
use crate::{Kind, NO_TASK, Outcome, Record, ResponseStatistics, TaskOutcome};
use horolog_time::{Instant, Span};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// A stretch of time in which a job had a processor, as its own records tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Interval {
    /// Whose.
    pub task: u32,
    /// Which of its jobs.
    pub job: u64,
    /// Where.
    pub cpu: u16,
    /// From when.
    #[serde(rename = "from_ns")]
    pub from: Instant,
    /// Until when.
    #[serde(rename = "to_ns")]
    pub to: Instant,
}

/// Turns starts, preemptions, resumptions, yields and completions into [`Interval`]s, one at a time and in
/// constant memory.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// Per task, the job that has the processor.
    open: Vec<Option<Interval>>,
}

impl Intervals {
    /// Takes the next record; the interval that it closes, if any.
    pub fn take(&mut self, record: &Record) -> Option<Interval> {
        if record.task == NO_TASK || record.task as usize > 1 << 20 {
            return None;
        }
        let task = record.task as usize;
        match record.kind {
            Kind::Start | Kind::Resume => {
                if self.open.len() <= task {
                    self.open.resize(task + 1, None);
                }
                self.open[task] = Some(Interval {
                    task: record.task,
                    job: record.job,
                    cpu: record.cpu,
                    from: record.time,
                    to: record.time,
                });
                None
            }
            Kind::Preempt | Kind::Yield | Kind::Suspend | Kind::Completion => {
                let open = self.open.get_mut(task)?.take()?;
                (open.job == record.job).then_some(Interval { to: record.time.max(open.from), ..open })
            }
            _ => None,
        }
    }

    /// The intervals that were not closed, up to `end`.
    #[must_use]
    pub fn finish(self, end: Instant) -> Vec<Interval> {
        self.open.into_iter().flatten().map(|open| Interval { to: end.max(open.from), ..open }).collect()
    }
}

/// One task's pending jobs and counts.
#[derive(Clone, Debug, Default)]
struct TaskCounts {
    outcome: TaskOutcome,
    responses: ResponseStatistics,
    /// Number and arrival of jobs that are not finished.
    pending: VecDeque<(u64, Instant)>,
    /// When a job was preempted last, and which.
    preempted: Option<(Instant, u64)>,
}

/// One processor: who had it last, and whether it was idle since.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessorCounts {
    last: Option<u32>,
    pending: u64,
    time: Instant,
}

/// Counts over records, one after the other, in memory that does not grow with the trace (but with the jobs that
/// wait in an overloaded system).
///
/// [`Statistics::outcome`] gives what the run itself reported; where they differ one of the two is wrong.
#[derive(Clone, Debug)]
pub struct Statistics {
    header: Header,
    tasks: Vec<TaskCounts>,
    cpus: BTreeMap<u16, ProcessorCounts>,
    counts: BTreeMap<&'static str, u64>,
    events: u64,
    lost: u64,
    end: Instant,
}

impl Statistics {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(header: &Header) -> Statistics {
        let counts = |name: &String| TaskCounts {
            outcome: TaskOutcome { name: name.clone(), ..TaskOutcome::default() },
            ..TaskCounts::default()
        };
        Statistics {
            tasks: header.tasks.iter().map(counts).collect(),
            header: header.clone(),
            cpus: BTreeMap::new(),
            counts: BTreeMap::new(),
            events: 0,
            lost: 0,
            end: Instant::ZERO,
        }
    }

    /// Counts the next record.
    pub fn take(&mut self, record: &Record) {
        *self.counts.entry(record.kind.name()).or_default() += 1;
        self.end = self.end.max(record.time);
        match record.kind {
            Kind::Lost => self.lost = self.lost.saturating_add(record.value),
            // The run's own events; the kernel's are beside them.
            kind if is_of_run(kind) => self.events += 1,
            _ => {}
        }
        let Some(task) = self.tasks.get_mut(record.task as usize) else { return };
        let outcome = &mut task.outcome;
        match record.kind {
            Kind::Release => {
                outcome.jobs += 1;
                task.pending.push_back((record.job, Instant::from_ns(record.value)));
                self.pending_changes(record, 1);
            }
            Kind::Start | Kind::Resume => self.switch_in(record),
            Kind::Completion => {
                outcome.completed += 1;
                let place = task.pending.iter().position(|(job, _)| *job == record.job);
                if let Some((_, arrival)) = place.and_then(|place| task.pending.remove(place)) {
                    task.responses.record(record.time.saturating_since(arrival));
                    self.pending_changes(record, -1);
                }
            }
            Kind::Suspend => self.pending_changes(record, -1),
            Kind::Wake => self.pending_changes(record, 1),
            Kind::Preempt => {
                outcome.preemptions += 1;
                task.preempted = Some((record.time, record.job));
                // A section that begins here in the same instant finds the processor as it was left.
                self.cpus.entry(record.cpu).or_default().time = record.time;
            }
            // Its section has ended on another processor, which it leaves: nothing more important came.
            Kind::Unlock if task.preempted.take() == Some((record.time, record.job)) => {
                outcome.preemptions = outcome.preemptions.saturating_sub(1);
            }
            Kind::Yield => outcome.yields += 1,
            Kind::Miss => outcome.missed += 1,
            Kind::Overrun => outcome.overruns += 1,
            Kind::VainWait => outcome.vain_waits += 1,
            Kind::Skip => outcome.skipped += 1,
            _ => {}
        }
    }

    /// How many records of each kind there are.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// The time of the last record.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// The response times of a task's finished jobs.
    #[must_use]
    pub fn responses(&self, task: usize) -> Option<&ResponseStatistics> {
        self.tasks.get(task).map(|task| &task.responses)
    }

    /// The outcome, recomputed from the records. Jobs that arrived but were never noticed as released before the
    /// end have no record and do not count.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let tasks = self.tasks.iter().map(|task| {
            let mut outcome = task.outcome.clone();
            outcome.unfinished = outcome.jobs.saturating_sub(outcome.completed);
            task.responses.fill(&mut outcome);
            outcome
        });
        let horizon = if self.header.horizon.is_zero() {
            self.end.saturating_since(self.header.start)
        } else {
            self.header.horizon
        };
        let system = system_name(&self.header.system);
        Outcome {
            events: self.events,
            events_lost: self.lost,
            tasks: tasks.collect(),
            ..Outcome::empty(&system, &self.header.backend, self.header.seed, horizon)
        }
    }

    /// A processor is given up to idle where time passes with nothing pending; whoever comes then switches in.
    fn pass_time(&mut self, record: &Record) -> &mut ProcessorCounts {
        let cpu = self.cpus.entry(record.cpu).or_default();
        if record.time > cpu.time {
            if cpu.pending == 0 {
                cpu.last = None;
            }
            cpu.time = record.time;
        }
        cpu
    }

    fn pending_changes(&mut self, record: &Record, by: i64) {
        let cpu = self.pass_time(record);
        cpu.pending = cpu.pending.saturating_add_signed(by);
    }

    fn switch_in(&mut self, record: &Record) {
        let cpu = self.pass_time(record);
        let switched = cpu.last != Some(record.task);
        cpu.last = Some(record.task);
        if let Some(task) = self.tasks.get_mut(record.task as usize) {
            task.outcome.switch_ins += u64::from(switched);
        }
    }
}

/// Whether a record is of what the run itself did, not of the kernel, of a program's own events, or of losses.
fn is_of_run(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::KernelSwitch
            | Kind::KernelWakeup
            | Kind::InterruptEntry
            | Kind::InterruptExit
            | Kind::SoftirqEntry
            | Kind::SoftirqExit
            | Kind::Steal
            | Kind::KernelBlock
            | Kind::KernelStarve
            | Kind::KernelClass
            | Kind::User
            | Kind::Lost
    )
}

/// The name that a normalised system file gives, without parsing it: this room cannot depend on the file's.
fn system_name(file: &str) -> String {
    let line = file
        .lines()
        .map(str::trim)
        .find_map(|line| line.strip_prefix("name")?.trim_start().strip_prefix('='));
    line.map(|value| value.trim().trim_matches('"').to_owned()).unwrap_or_default()
}

/// How far apart two spans are, for results: positive where `b` is longer.
pub(crate) fn signed_difference(a: Option<Span>, b: Option<Span>) -> Option<i128> {
    Some(i128::from(b?.as_ns()) - i128::from(a?.as_ns()))
}
