//! A run in a process of its own, so that user code that ends the program does not end what records it.
//!
//! The process is forked before the run has a thread. Rings and cells lie in memory that both share, and the parent collects: whatever
//! ends the child (`exit`, `_exit`, `exec`, a signal that cannot be handled), every record up to then is there. Messages tell the parent
//! the start, and in the end the outcome. Where that does not come, the counts are made from the records.

use crate::boards::{Boards, LOADS, MAKES_READY};
use crate::body::Bodies;
use crate::collect::Collector;
use crate::early::{Early, What};
use crate::outcome::blank;
use crate::overdue::Overdue;
use crate::plan::Plan;
use crate::reckon::Reckoning;
use crate::run::{Attendant, Run};
use crate::{ExecError, Limit, RunOptions, RunResult, SpinLockCounts, Started, ThreadInfo};
use horolog_model::{Body, Companion, System, TaskId};
use horolog_sys::affinity::{allowed_cpus, set_affinity};
use horolog_sys::clock;
use horolog_sys::forked::{self, Forked, Messages};
use horolog_sys::shared_words::SharedWords;
use horolog_sys::{crash, memory};
use horolog_time::{Instant, Span};
use horolog_trace::{EndCause, Ending, Outcome, Record};
use serde::{Deserialize, Serialize};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

// Words that both processes share.
const GO: usize = 0;
const STOP: usize = 1;

/// How much longer than its horizon and its grace the process may take to end: the end of user code, the counting.
const PATIENCE_NS: u64 = 10_000_000_000;

/// How long libraries and their `init` may take before the start.
const START_NS: u64 = 120_000_000_000;
/// How long a process that has closed its descriptors may take to have ended.
const LAST_MOMENTS_NS: u64 = 200_000_000;
/// How long the parent waits for a message between two looks at the rings.
const TURN_MS: i32 = 5;
/// How long the C library's streams may take to be written at the end.
const FLUSH_NS: u64 = 500_000_000;

/// What the child says first.
const STARTED: u8 = b's';
/// What it says last, one of the two.
const ENDED: u8 = b'e';
const FAILED: u8 = b'f';

/// A thread as it is sent: its id, name, task, processor and band.
type Thread = (u32, String, Option<u32>, Option<u32>, u8);

/// The start, as it is sent.
#[derive(Serialize, Deserialize)]
struct Start {
    origin_ns: u64,
    threads: Vec<Thread>,
}

/// What is heard of a run in its own process.
#[derive(Clone, PartialEq, Debug)]
pub enum Heard {
    /// The next record.
    Record(Record),
    /// No further record bears an earlier time.
    Until(Instant),
    /// The deadline of a job passed long ago, and no record tells of it: the job does not come back, or its thread gets no processor. With
    /// the records that are there already and come later in their order.
    Overdue(Vec<Record>),
}

impl Heard {
    /// The record, where it is one.
    #[must_use]
    pub fn record(self) -> Option<Record> {
        match self {
            Heard::Record(record) => Some(record),
            Heard::Until(_) | Heard::Overdue(_) => None,
        }
    }
}

/// A run that waits in its own process until [`Apart::run_into`] lets it go.
pub struct Apart<'a> {
    system: &'a System,
    options: RunOptions,
    companion: Companion,
    plan: Plan,
    boards: Boards,
    words: Arc<SharedWords>,
    process: Forked,
    /// What the kernel calls the process; it changes where the process becomes another program.
    name: String,
    forked_at: u64,
}

impl<'a> Apart<'a> {
    /// Forks the process. Bodies come from the system alone.
    ///
    /// # Errors
    /// As [`crate::run`], as far as the plan tells; and where the kernel allows no further process.
    pub fn fork(system: &'a System, options: &RunOptions) -> Result<Apart<'a>, ExecError> {
        let companion = Companion::emulated(system)?;
        let plan = Plan::new(system, &companion.system, options)?;
        let boards = Boards::new(&companion.system, &plan, options)?;
        let words = Arc::new(SharedWords::new(2)?);
        let process = forked::fork(|messages| {
            let run = Run { file: system, companion: &companion, options, plan: &plan, boards: &boards };
            child(&run, &words, messages);
        })?;
        let (options, forked_at) = (options.clone(), clock::monotonic_ns());
        let name = name_of(&process);
        Ok(Apart { system, options, companion, plan, boards, words, process, name, forked_at })
    }

    /// Runs, and tells `hear` of every record in time order; `started` is filled in before the first.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn run_into(
        mut self,
        started: &OnceLock<Started>,
        hear: &mut dyn FnMut(Heard),
    ) -> Result<RunResult, ExecError> {
        let before = allowed_cpus()?;
        set_affinity(0, &self.plan.housekeeping)?;
        self.words[GO].store(1, Ordering::Release);
        let mut result = self.attend(started, hear);
        let left = self.process.end_all();
        if let (Ok(result), 1..) = (&mut result, left) {
            let note = match left {
                1 => "a process that its bodies had started outlived the run and was ended".to_owned(),
                _ => format!("{left} processes that its bodies had started outlived the run and were ended"),
            };
            result.outcome.notes.push(note);
        }
        set_affinity(0, &before)?;
        result
    }

    fn attend(
        &mut self,
        started: &OnceLock<Started>,
        hear: &mut dyn FnMut(Heard),
    ) -> Result<RunResult, ExecError> {
        let mut collector = Collector::new(self.boards.in_order());
        let mut reckoning = Reckoning::new(&self.companion.system);
        let mut overdue = Overdue::new(&self.companion.system);
        let mut start: Option<Started> = None;
        let mut limit = u64::MAX;
        let last = loop {
            let closed = self.process.is_closed() || self.process.ended().is_some();
            let mut last = None;
            for message in self.process.receive(TURN_MS) {
                match message.split_first() {
                    Some((&STARTED, text)) => {
                        let told = Started::decode(text)?;
                        // A cell that a former run has filled keeps its value; the caller gives each run its own.
                        let _ = started.set(told.clone());
                        start = Some(told);
                    }
                    Some((&kind, text)) => last = Some((kind, text.to_vec())),
                    None => {}
                }
            }
            if let Some(start) = &start {
                let until = collector.turn(&mut |record| {
                    reckoning.take(&record);
                    hear(Heard::Record(record));
                });
                let now = clock::monotonic_ns().saturating_sub(start.origin_ns);
                hear(Heard::Until(Instant::from_ns(until.min(now))));
                let shown =
                    |place: usize| (self.boards.cells[place].piece(), self.boards.rings[place].floor());
                if overdue.look(now, shown) {
                    hear(Heard::Overdue(collector.held()));
                }
            }
            if last.is_some() || closed {
                break last;
            }
            if self.is_overdue(start.as_ref(), &mut limit) {
                break None;
            }
        };
        if let Some((FAILED, text)) = &last {
            return Err(ExecError::decode(text));
        }
        let noticed_at = clock::monotonic_ns();
        let Some(start) = start else {
            let (cause, mut what) = self.how_it_ended();
            if cause == EndCause::Stuck {
                let waited_for = self.waited_for();
                if self.is_asked_to_end() {
                    return Err(ExecError::stopped(format!("stopped before the start: {waited_for}")));
                }
                what = format!("{waited_for}, and the run's process was killed");
            }
            let ending = self.ending(cause, what, 0, &reckoning);
            return Err(ExecError::crashed(format!("before the start: {ending}")));
        };
        collector.finish(&mut |record| {
            reckoning.take(&record);
            hear(Heard::Record(record));
        });
        let mut untold = Vec::new();
        let (closed_ns, mut outcome) = match &last {
            Some((_, text)) => decode_outcome(text)?,
            None => {
                let at = noticed_at.saturating_sub(start.origin_ns);
                let outcome = self.reckon(at, &mut reckoning, &mut |record| untold.push(record));
                (outcome.horizon_ns.as_ns(), outcome)
            }
        };
        // They come task by task.
        untold.sort_by_key(|record| record.time);
        outcome.events = collector.written() + untold.len() as u64;
        untold.into_iter().for_each(|record| hear(Heard::Record(record)));
        outcome.events_lost = collector.lost();
        if collector.late() > 0 {
            outcome.notes.push(format!("{} records came out of order", collector.late()));
        }
        let Started { origin_ns, threads } = start;
        let (records, spin_locks) = (Vec::new(), SpinLockCounts::default());
        Ok(RunResult { outcome, records, origin_ns, threads, closed_ns, spin_locks })
    }

    /// Whose code has not returned that is called before the start, in words.
    fn waited_for(&self) -> String {
        let tasks = self.companion.system.tasks().iter().zip(self.boards.stages.iter());
        let stuck: Vec<String> = tasks
            .filter_map(|(task, stage)| match (stage.load(Ordering::Acquire), &task.body) {
                (LOADS, Some(Body::Library { library, .. })) => {
                    Some(format!("a constructor of {library} (task {})", task.name))
                }
                (MAKES_READY, Some(Body::Library { library, init, .. })) => {
                    let init = init.as_deref().unwrap_or("init");
                    Some(format!("`{init}` of {library} (task {})", task.name))
                }
                _ => None,
            })
            .collect();
        match stuck.as_slice() {
            [] => "its threads were not ready".to_owned(),
            _ => format!("{} did not return", stuck.join(", ")),
        }
    }

    fn is_asked_to_end(&self) -> bool {
        self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Acquire))
    }

    /// Passes on that the run is to end, and says whether its process has not ended in the time that it has for that: from its horizon,
    /// from being asked, or from a crash on, in `limit`.
    fn is_overdue(&self, start: Option<&Started>, limit: &mut u64) -> bool {
        let now = clock::monotonic_ns();
        // Before the start nothing has to be brought to an end.
        let patience = if start.is_some() { PATIENCE_NS } else { 0 };
        let grace = self.options.grace.as_ns();
        let after_crash = grace.saturating_add(patience);
        // Last jobs are let to complete for a grace, and then have one to end.
        let allowed = if start.is_some() { after_crash.saturating_add(grace) } else { after_crash };
        if start.is_none() {
            *limit = (*limit).min(self.forked_at.saturating_add(START_NS));
        }
        let asked = self.is_asked_to_end();
        if asked {
            self.words[STOP].store(1, Ordering::Release);
        }
        if self.boards.cells.iter().any(|cell| cell.fate().is_some()) {
            *limit = (*limit).min(now.saturating_add(after_crash));
        }
        if asked {
            *limit = (*limit).min(now.saturating_add(allowed));
        }
        if let (Limit::For(span), Some(start)) = (self.options.limit, start) {
            let end = start.origin_ns.saturating_add(span.as_ns());
            *limit = (*limit).min(end.saturating_add(allowed));
        }
        now > *limit
    }

    /// The outcome of a process that is gone, which was noticed at `noticed` ns.
    fn reckon(&mut self, noticed: u64, reckoning: &mut Reckoning, out: &mut dyn FnMut(Record)) -> Outcome {
        let (cause, what) = self.how_it_ended();
        let at = match cause {
            // It was there, and was killed because of that.
            EndCause::Stuck => noticed.max(reckoning.end.as_ns()),
            // When it ended is not known: a process that is killed may be long in dying, and none of its jobs could end meanwhile. Its last
            // record is the last sign of life.
            _ => reckoning.end.as_ns(),
        };
        // No job is released after the time that the run was to take, however long its process took to end.
        let at = match self.options.limit {
            Limit::For(span) => at.min(span.as_ns()),
            Limit::Forever => at,
        };
        let ended_by = self.ending(cause, what, at, reckoning);
        let mut outcome = blank(self.system, &self.options, &self.plan, at);
        let tasks = reckoning.finish((&self.companion.system, &self.options), at, out);
        let count = self.system.tasks().len();
        let named = self.system.task_ids().zip(self.system.tasks()).zip(tasks);
        outcome.tasks = named
            .take(count)
            .map(|((id, task), mut counts)| {
                counts.name.clone_from(&task.name);
                counts.is_soft = self.system.is_served(id);
                counts
            })
            .collect();
        outcome.notes.push(format!(
            "{ended_by}: the counts are those of its records; the totals of servers, modes and devices, and what jobs returned, are lost"
        ));
        outcome.ended_by = Some(ended_by);
        outcome
    }

    /// Who ended the process: the task that its cell says; without one, the task whose job was begun last, which is said.
    fn ending(&self, cause: EndCause, what: String, at: u64, reckoning: &Reckoning) -> Ending {
        let cells = &self.boards.cells;
        let name = |place: usize| self.companion.system.tasks()[place].name.clone();
        if let Some(place) = cells.iter().position(|cell| cell.fate().is_some()) {
            let mut told =
                Early { task: place, at_ns: at, what: What::Fate }.ending(&name(place), &cells[place]);
            told.what = if told.cause == EndCause::Exit {
                format!("its code called exit: {what}")
            } else {
                told.what
            };
            return told;
        }
        let at_ns = Span::from_ns(at);
        let (begun, why) = match cause {
            EndCause::Killed => (None, ""),
            // Any job under way may have done it.
            EndCause::Exec => (self.only_job(), ""),
            _ => match (self.only_job(), reckoning.last_begun()) {
                (Some(only), _) => (Some(only), "; that job was the only one under way"),
                (None, Some(last)) => {
                    (Some(last), "; that job was begun last, and which one did it is not known")
                }
                (None, None) => (None, "; no job was under way"),
            },
        };
        let (task, job) = begun.map_or((None, None), |(place, job)| (Some(name(place)), Some(job)));
        Ending { cause, task, job, at_ns, what: what + why, stack: Vec::new() }
    }

    /// The job that is under way, where there is one alone.
    fn only_job(&self) -> Option<(usize, u64)> {
        let cells = self.boards.cells.iter().enumerate();
        let mut begun = cells.filter_map(|(place, cell)| Some((place, cell.piece()?)));
        let first = begun.next();
        first.filter(|_| begun.next().is_none())
    }

    /// In words. A process that is still there has become another program, or does not end: it is killed.
    fn how_it_ended(&mut self) -> (EndCause, String) {
        // The other program may be short: what it is called is known until its end is taken.
        let became = self.became();
        if self.process.is_closed() {
            // Its descriptors are closed a little before it has ended.
            let limit = clock::monotonic_ns() + LAST_MOMENTS_NS;
            while self.process.ended().is_none() && clock::monotonic_ns() < limit {
                let _ = clock::sleep_until(clock::monotonic_ns() + 1_000_000);
            }
        }
        let whose = if self.only_job().is_none() { " (not known by which task)" } else { "" };
        if let Some(status) = self.process.ended() {
            let (cause, how) = described(status);
            return match became {
                Some(program) => {
                    let what =
                        format!("the run's process became another program, {program}, which {how}{whose}");
                    (EndCause::Exec, what)
                }
                None => (cause, format!("the run's process {how}")),
            };
        }
        let became = self.became().or(became);
        self.process.kill();
        match became {
            Some(program) if self.process.is_closed() => {
                (EndCause::Exec, format!("the run's process became another program, {program}{whose}"))
            }
            _ if self.process.is_closed() => {
                let what = "the run's process closed the descriptors that the run needs, and was killed";
                (EndCause::Killed, what.to_owned())
            }
            _ => (EndCause::Stuck, "the run's process did not end, and was killed".to_owned()),
        }
    }

    /// Which program the process is now, where it is another one: its file, or of one that has ended its name.
    fn became(&self) -> Option<String> {
        match std::fs::read_link(format!("/proc/{}/exe", self.process.id())) {
            Ok(program) => {
                let is_own = std::env::current_exe().is_ok_and(|own| own == program);
                (!is_own).then(|| program.display().to_string())
            }
            Err(_) => Some(name_of(&self.process)).filter(|name| !name.is_empty() && *name != self.name),
        }
    }
}

/// What the kernel calls a process; empty where it is gone.
fn name_of(process: &Forked) -> String {
    let name = std::fs::read(format!("/proc/{}/comm", process.id())).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

fn described(status: ExitStatus) -> (EndCause, String) {
    match (status.code(), status.signal()) {
        (Some(code), _) => (EndCause::Exit, format!("exited with status {code}")),
        (None, Some(signal)) => {
            let name = crash::signal_name(signal);
            let name = if name == "a signal" { format!("signal {signal}") } else { name.to_owned() };
            (EndCause::Killed, format!("was killed by {name}"))
        }
        (None, None) => (EndCause::Killed, "ended".to_owned()),
    }
}

/// Waits for the parent's word, then runs.
fn child(run: &Run<'_>, words: &Arc<SharedWords>, mut messages: Messages) {
    while words[GO].load(Ordering::Acquire) == 0 {
        let _ = clock::sleep_until(clock::monotonic_ns() + 200_000);
    }
    if run.options.output_to_error {
        forked::standard_output_to_error();
    }
    crash::note_exits();
    memory::one_heap();
    let mut attendant = Told { words, messages: &mut messages };
    let result = run.whole(&mut Bodies::default(), &mut attendant);
    forked::flush_c_streams(FLUSH_NS);
    let (kind, text) = match result {
        Ok(result) => (ENDED, serde_json::to_vec(&(result.closed_ns, &result.outcome)).unwrap_or_default()),
        Err(error) => (FAILED, error.encode()),
    };
    messages.send(&[&[kind][..], &text].concat());
}

/// The child's end of the messages.
struct Told<'a> {
    words: &'a SharedWords,
    messages: &'a mut Messages,
}

impl Attendant for Told<'_> {
    fn started(&mut self, started: &Started) {
        let of_thread = |thread: &ThreadInfo| {
            let task = thread.task.map(|task| task.0);
            (thread.tid, thread.name.clone(), task, thread.cpu, thread.fifo_priority)
        };
        let start =
            Start { origin_ns: started.origin_ns, threads: started.threads.iter().map(of_thread).collect() };
        let text = serde_json::to_vec(&start).unwrap_or_default();
        self.messages.send(&[&[STARTED][..], &text].concat());
    }

    fn turn(&mut self) {}

    fn wants_end(&self) -> bool {
        self.words[STOP].load(Ordering::Acquire) != 0
    }
}

impl Started {
    fn decode(text: &[u8]) -> Result<Started, ExecError> {
        let start: Start = serde_json::from_slice(text)
            .map_err(|error| ExecError::machine(format!("the start of the run's process: {error}")))?;
        let threads = start.threads.into_iter().map(|(tid, name, task, cpu, fifo_priority)| ThreadInfo {
            tid,
            name,
            task: task.map(TaskId),
            cpu,
            fifo_priority,
        });
        Ok(Started { origin_ns: start.origin_ns, threads: threads.collect() })
    }
}

/// When the run was over, and its outcome. An outcome's words for kinds and methods live as long as the program, so its text does, too: once a run.
fn decode_outcome(text: &[u8]) -> Result<(u64, Outcome), ExecError> {
    let text: &'static [u8] = Box::leak(text.to_vec().into_boxed_slice());
    serde_json::from_slice(text)
        .map_err(|error| ExecError::machine(format!("the outcome of the run's process: {error}")))
}
