//! A run on this machine, with the kernel's own record merged into its trace by time.

use crate::LoopError;
use horolog_exec::{Limit, RunOptions, Started, ThreadInfo, run_into};
use horolog_measure::doctor::identity;
use horolog_measure::kernel_records::KernelRecords;
use horolog_model::System;
use horolog_sys::guardian::{Guardian, GuardianOptions};
use horolog_sys::kernel_trace::{KernelEvent, Recorder, RecorderOptions};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Writer};
use horolog_trace::{Outcome, Record, Sink};
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What a run on this machine came to.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// Counts and response times, with every loss.
    pub outcome: Outcome,
    /// The threads of the run.
    pub threads: Vec<ThreadInfo>,
    /// Who recorded the kernel, and what it cannot see; empty where nothing could.
    pub kernel_record: String,
}

/// Runs the system, writing the merged trace where a path is given. A machine that does not let the kernel be
/// recorded gives a trace without it, and a note that says so.
///
/// # Errors
/// Where the run is not permitted, the system cannot run, user code crashed, or the trace cannot be written.
pub fn measured_run(
    system: &System,
    options: &RunOptions,
    trace: Option<&Path>,
    guard: Guard,
) -> Result<MeasuredRun, LoopError> {
    let guardian = guard.start(system, options)?;
    let run = unguarded_run(system, options, trace);
    let restored = guardian.map(Guardian::finish).transpose();
    let mut run = run?;
    if let Some(restored) = restored? {
        run.outcome.notes.extend(restored.failures.iter().map(|failure| format!("not put back: {failure}")));
    }
    Ok(run)
}

/// Whether a guardian process watches over a run: it ends one that does not end by itself, and puts back what the run
/// has changed, however the run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// The running program knows the guardian's subcommand ([`horolog_sys::guardian::SUBCOMMAND`]).
    ThisProgram,
    /// Nobody watches.
    Nobody,
}

/// How much longer than its horizon a run may take: its start, the end of its last jobs, the end of user code.
const PATIENCE: Span = Span::from_ns(60_000_000_000);

impl Guard {
    fn start(self, system: &System, options: &RunOptions) -> Result<Option<Guardian>, LoopError> {
        if self == Guard::Nobody {
            return Ok(None);
        }
        let deadline = match options.limit {
            Limit::For(span) => span.checked_add(PATIENCE),
            Limit::Forever => None,
        };
        let used: Vec<u32> = system.platform().cpus.iter().map(|cpu| cpu.0).collect();
        let all = 0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let housekeeping = all.filter(|cpu| !used.contains(cpu)).collect();
        let options = GuardianOptions { deadline, housekeeping, ..GuardianOptions::default() };
        Ok(Some(Guardian::start(&options)?))
    }
}

fn unguarded_run(
    system: &System,
    options: &RunOptions,
    trace: Option<&Path>,
) -> Result<MeasuredRun, LoopError> {
    let Some(path) = trace else {
        let result = run_into(system, options, &mut |_| {})?;
        return Ok(MeasuredRun {
            outcome: result.outcome,
            threads: result.threads,
            kernel_record: String::new(),
        });
    };
    // Before the run: a place that cannot be written must not cost a run.
    let file = File::create(path).map_err(|error| LoopError::writing(path, error))?;
    let cpus = system.platform().cpus.iter().map(|cpu| cpu.0).collect();
    let recorder = Recorder::start(&RecorderOptions::new(cpus));
    let (recorder, unrecorded) = match recorder {
        Ok(recorder) => (Some(recorder), None),
        Err(error) => (None, Some(format!("the kernel was not recorded: {error}"))),
    };
    let started = Arc::new(OnceLock::new());
    let mut options = options.clone();
    options.started = Some(Arc::clone(&started));
    let mut merge =
        Merge { system, options: &options, file: Some(file), started, recorder, open: None, failed: None };
    let result = run_into(system, &options, &mut |record| merge.take(record))?;
    let mut run = merge.finish(result.outcome)?;
    run.threads = result.threads;
    run.outcome.notes.extend(unrecorded);
    Ok(run)
}

/// Merges the executive's records with the kernel's, both in time order, into one trace.
struct Merge<'a> {
    system: &'a System,
    options: &'a RunOptions,
    file: Option<File>,
    started: Arc<OnceLock<Started>>,
    recorder: Option<Recorder>,
    open: Option<Open>,
    failed: Option<LoopError>,
}

/// The trace, from the first record on.
struct Open {
    writer: Writer<File>,
    conversion: KernelRecords,
    origin_ns: u64,
    /// The executive's records that may still have kernel records before them.
    waiting: VecDeque<Record>,
    kernel: VecDeque<KernelEvent>,
    last_drain: Instant,
    latest: Instant,
}

/// How often the kernel's record is asked for.
const DRAIN_EVERY: Span = Span::from_ns(20_000_000);

impl Merge<'_> {
    /// Takes the executive's next record.
    fn take(&mut self, record: Record) {
        if self.open.is_none() {
            self.begin();
        }
        let Some(open) = &mut self.open else { return };
        open.waiting.push_back(record);
        open.latest = record.time;
        if record.time.saturating_since(open.last_drain) >= DRAIN_EVERY {
            open.last_drain = record.time;
            if let Some(recorder) = &self.recorder {
                open.kernel.extend(recorder.drain());
            }
            let recorded = self.recorder.is_some();
            open.write_complete(recorded);
        }
    }

    /// Writes the head once the start is known.
    fn begin(&mut self) {
        let (Some(started), Some(file)) = (self.started.get(), self.file.take()) else { return };
        let names = self.system.tasks().iter().map(|task| task.name.clone()).collect();
        let text = horolog_model::file::print(self.system);
        let mut header = Header::measured(text, names, self.options.seed, started.origin_ns);
        if self.options.best_effort {
            header.backend = "linux-best-effort".to_owned();
        }
        if let Limit::For(span) = self.options.limit {
            header.horizon = span;
        }
        header.machine = identity();
        let tasks = started.threads.iter().filter_map(|thread| Some((thread.tid, thread.task?.0)));
        let conversion = KernelRecords::new(started.origin_ns, tasks);
        match Writer::new(file, &header) {
            Ok(writer) => {
                self.open = Some(Open {
                    writer,
                    conversion,
                    origin_ns: started.origin_ns,
                    waiting: VecDeque::new(),
                    kernel: VecDeque::new(),
                    last_drain: Instant::ZERO,
                    latest: Instant::ZERO,
                });
            }
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// Writes what is left and closes the trace.
    fn finish(mut self, mut outcome: Outcome) -> Result<MeasuredRun, LoopError> {
        if self.open.is_none() && self.failed.is_none() {
            // Not a single record: the trace still gets its head.
            self.begin();
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut kernel_record = String::new();
        let Some(mut open) = self.open else {
            return Err(LoopError::bad_input("the run ended before it started; no trace was written"));
        };
        if let Some(recorder) = self.recorder {
            let recording = recorder.stop()?;
            kernel_record = describe(&recording.choice);
            open.kernel.extend(recording.events);
            outcome.events_lost = outcome.events_lost.saturating_add(recording.losses.total());
            if recording.losses.memory > 0 {
                open.writer.lost(open.latest, 0, 1, recording.losses.memory);
            }
        }
        open.write_until(Instant::NEVER);
        let end = Instant::ZERO.checked_add(outcome.horizon_ns).unwrap_or(Instant::NEVER).max(open.latest);
        let footer = open.writer.finish(end)?;
        outcome.events = footer.records;
        outcome.events_lost = outcome.events_lost.max(footer.losses.total());
        Ok(MeasuredRun { outcome, threads: Vec::new(), kernel_record })
    }
}

fn describe(choice: &horolog_sys::kernel_trace::Choice) -> String {
    if choice.unseen.is_empty() {
        return choice.reason.clone();
    }
    format!("{}; not seen: {}", choice.reason, choice.unseen.join(", "))
}

impl Open {
    /// Writes everything that nothing earlier can precede any more.
    fn write_complete(&mut self, recorded: bool) {
        let until = match (recorded, self.kernel.back()) {
            (false, _) => Instant::NEVER,
            (true, None) => return,
            (true, Some(event)) => Instant::from_ns(event.time_ns.saturating_sub(self.origin_ns)),
        };
        self.write_until(until.min(self.latest));
    }

    fn write_until(&mut self, until: Instant) {
        loop {
            let own = self.waiting.front().map(|record| record.time);
            let kernel = self
                .kernel
                .front()
                .map(|event| Instant::from_ns(event.time_ns.saturating_sub(self.origin_ns)));
            match (own, kernel) {
                (Some(own), kernel) if own <= until && kernel.is_none_or(|kernel| own < kernel) => {
                    if let Some(record) = self.waiting.pop_front() {
                        self.writer.record(record);
                    }
                }
                (_, Some(kernel)) if kernel <= until => {
                    if let Some(event) = self.kernel.pop_front() {
                        self.write_kernel(event);
                    }
                }
                _ => return,
            }
        }
    }

    fn write_kernel(&mut self, event: KernelEvent) {
        // Names and records go to the same writer, and the conversion borrows both ways in.
        let writer = std::cell::RefCell::new(&mut self.writer);
        let mut name =
            |tid: u32, comm: &str, task: Option<u32>| writer.borrow_mut().define_thread(tid, comm, task);
        self.conversion.convert(&[event], &mut name, &mut Shared(&writer));
    }
}

/// A writer that the naming of threads uses too.
struct Shared<'a, 'b>(&'a std::cell::RefCell<&'b mut Writer<File>>);

impl Sink for Shared<'_, '_> {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        self.0.borrow_mut().record(record);
    }
}
