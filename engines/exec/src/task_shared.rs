//! One task during a run.

use crate::announce::announce;
use crate::arrivals::Job;
use crate::boards::Boards;
use crate::control::{Control, SHOULD_YIELD, WATCHED};
use crate::links::{Link, TaskLinks};
use crate::options::{PointVariant, RecordLevel, RunOptions};
use crate::ring::Ring;
use crate::tally::Tally;
use horolog_model::{Body, Border, Preemption, SegmentGraph, System, TaskId};
use horolog_sched::{Allowance, OverrunAction, Progress, Verdict};
use horolog_sys::affinity::current_cpu;
use horolog_sys::clock::{self, ThreadClock};
use horolog_sys::crash::{self, runaway};
use horolog_sys::status::Status;
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What an overrun callback is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun {
    /// The job, counted from 0.
    pub job: u64,
    /// The segment that ran; 0 for a task without segments.
    pub segment: usize,
    /// What the job has executed in all.
    pub executed: Span,
    /// What it exceeds.
    pub verdict: Verdict,
}

/// Called on the task's own thread, at the next preemption point or at the end of the job that overran.
pub type OverrunCallback = Arc<dyn Fn(Overrun) + Send + Sync>;

/// One task during a run.
pub(crate) struct TaskShared {
    pub(crate) id: TaskId,
    pub(crate) name: String,
    pub(crate) cpu: u32,
    /// The kernel serves the thread and may move it to another processor.
    pub(crate) floats: AtomicBool,
    pub(crate) wcet: u64,
    /// Its jobs may be preempted anywhere.
    pub(crate) is_preemptive: bool,
    pub(crate) overrun: OverrunAction,
    pub(crate) allowance: Allowance,
    pub(crate) graph: Option<SegmentGraph>,
    pub(crate) control: Control,
    pub(crate) ring: Arc<Ring>,
    pub(crate) tid: AtomicU32,
    pub(crate) clock: OnceLock<ThreadClock>,
    /// Holds 1 while the thread must stand still in the middle of its code.
    pub(crate) hold: Arc<AtomicU32>,
    /// The kernel's switches out of the thread, from the common start to its end.
    pub(crate) switches: AtomicU64,
    /// What the thread executed from the common start to its end, where the kernel serves the task.
    pub(crate) executed: AtomicU64,
    pub(crate) record: RecordLevel,
    /// What its jobs ask of emulated devices, by what they have executed then.
    pub(crate) requests: Vec<RequestPoint>,
    /// Where its sections begin and end.
    pub(crate) borders: Vec<Border>,
    /// What it hands over and takes.
    pub(crate) links: TaskLinks,
    /// Where a crash of the task's code is noted.
    pub(crate) crash: Arc<crash::Cell>,
    /// How long a job may execute, ns, until it counts as one without an end.
    patience: u64,
    /// Once the run's releases have ended: nothing is left to do.
    pub(crate) is_idle: AtomicBool,
    /// How long its last job may take to complete, at most: its deadline, else its separation.
    pub(crate) completes_within: u64,
    /// The thread has left the task's code for good.
    pub(crate) has_ended: AtomicBool,
    /// Overruns are looked for by timer, though the policy would only count them.
    pub(crate) is_watched_closely: bool,
    /// The job up to which releases are on record, where its own thread or whoever counts its last jobs records them.
    released: AtomicU64,
    /// Somebody counts the jobs that arrived and did not run: its own thread, or whoever leaves it behind.
    is_backlog_counted: AtomicBool,
    tally: Mutex<Tally>,
    assignment: Mutex<Job>,
    callback: Mutex<Option<OverrunCallback>>,
    /// In the comparison's first version, the flag lives in the kernel.
    status: Option<Status>,
}

/// Where a job asks for something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestPoint {
    pub(crate) name: String,
    /// Its place in the file.
    pub(crate) place: usize,
    /// What the job has executed then.
    pub(crate) after: u64,
}

/// A preemption point of a segmented job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// What ended here.
    pub(crate) left: Progress,
    /// What follows.
    pub(crate) entered: usize,
}

impl TaskShared {
    pub(crate) fn new(
        system: &System,
        options: &RunOptions,
        id: TaskId,
        links: &[Arc<Link>],
        boards: &Boards,
    ) -> Result<TaskShared, horolog_sys::Error> {
        let task = system.task(id);
        let asks = options.points == PointVariant::StatusCall && task.segment_graph().is_some();
        let shared = TaskShared {
            id,
            name: task.name.clone(),
            cpu: task.cpu.0,
            floats: AtomicBool::new(false),
            wcet: task.wcet.as_ns(),
            is_preemptive: task.preemption == Preemption::Preemptive,
            overrun: OverrunAction::of(system, &task.overrun),
            allowance: Allowance::of(system, id),
            graph: task.segment_graph().cloned(),
            control: Control::default(),
            ring: boards.rings[id.index()].clone(),
            tid: AtomicU32::new(0),
            clock: OnceLock::new(),
            hold: Arc::default(),
            switches: AtomicU64::new(0),
            executed: AtomicU64::new(0),
            record: options.record,
            requests: Vec::new(),
            borders: system.borders(id),
            links: TaskLinks::new(system, id, links),
            crash: boards.cells[id.index()].clone(),
            patience: patience(options, task.wcet.as_ns(), OverrunAction::of(system, &task.overrun)),
            // A program ends when it likes.
            is_idle: AtomicBool::new(matches!(task.body, Some(Body::Command(_)))),
            completes_within: completes_within(system, id),
            has_ended: AtomicBool::new(false),
            is_watched_closely: options.watch_all
                || (0..system.mode_count()).any(|mode| system.task_in(mode, id).limit.is_some()),
            released: AtomicU64::new(0),
            is_backlog_counted: AtomicBool::new(false),
            tally: Mutex::new(Tally::default()),
            assignment: Mutex::new(Job { number: 0, arrival: 0, ready: 0, deadline: u64::MAX }),
            callback: Mutex::new(None),
            status: if asks { Some(Status::new()?) } else { None },
        };
        // A policy that acts must know which segment runs.
        let acts = shared.overrun != OverrunAction::Count;
        let watched = asks || acts || options.record == RecordLevel::All || options.watch_all;
        if watched && task.segment_graph().is_some() {
            shared.control.attention.store(WATCHED, Ordering::Relaxed);
        }
        Ok(shared)
    }

    /// Whether its jobs have budgets in the machine: its policy acts, or all jobs are watched.
    pub(crate) fn is_enforced(&self) -> bool {
        self.overrun != OverrunAction::Count || self.is_watched_closely
    }

    /// The task's counts.
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the release of a job, whose number is greater than those before.
    pub(crate) fn record_release(&self, job: &Job) {
        self.record(Kind::Release, job.ready, job.number, job.arrival, 0);
        self.released.store(job.number.saturating_add(1), Ordering::Release);
    }

    /// Whether the release of this job is on record.
    pub(crate) fn is_released(&self, job: u64) -> bool {
        job < self.released.load(Ordering::Acquire)
    }

    /// Whether the caller is the first who counts the jobs that did not run, and so the one who does.
    pub(crate) fn may_count_backlog(&self) -> bool {
        !self.is_backlog_counted.swap(true, Ordering::AcqRel)
    }

    /// Hands a job to the task's thread. Nobody has asked it to end.
    pub(crate) fn assign(&self, job: Job) {
        self.control.must_end.store(false, Ordering::Relaxed);
        *self.assignment.lock().unwrap_or_else(PoisonError::into_inner) = job;
    }

    /// The job that was handed over last.
    pub(crate) fn assigned(&self) -> Job {
        *self.assignment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record of this task into its own ring, at `time` ns since the start.
    #[inline(always)]
    pub(crate) fn record(&self, kind: Kind, time: u64, job: u64, value: u64, extra: u64) {
        self.record_in(&self.ring, kind, time, job, value, extra);
    }

    /// Writes a record of this task into the ring of its processor, and tells whoever listens to the executive's triggers.
    #[inline(always)]
    pub(crate) fn record_in(&self, ring: &Ring, kind: Kind, time: u64, job: u64, value: u64, extra: u64) {
        announce(kind, self.id.0, time, job, value, extra);
        if self.record == RecordLevel::Nothing {
            return;
        }
        // Its own thread notes that a job ends: it tells where the thread is, whatever its code did to it.
        let cpu = if kind == Kind::Completion { self.cpu_of_thread() } else { self.cpu };
        ring.push(Record {
            time: Instant::from_ns(time),
            kind,
            cpu: cpu as u16,
            task: self.id.0,
            job,
            value,
            extra,
        });
    }

    /// The processor that the calling thread, this task's own, runs on; the task's where the kernel may choose it.
    fn cpu_of_thread(&self) -> u32 {
        if self.floats.load(Ordering::Relaxed) {
            return self.cpu;
        }
        current_cpu().unwrap_or(self.cpu)
    }

    /// Whether somebody more important waits, by the flag or, in the comparison's first version, by asking.
    pub(crate) fn somebody_waits(&self, attention: u32) -> bool {
        match &self.status {
            Some(status) => status.ask(),
            None => attention & SHOULD_YIELD != 0,
        }
    }

    /// In the comparison's first version, tells the kernel's status too.
    pub(crate) fn show_status(&self, waits: bool) {
        if let Some(status) = &self.status {
            status.set(waits);
        }
    }

    /// The job goes from one segment to the next, `announced` or the only one there is. `None` without segments.
    pub(crate) fn cross(&self, announced: Option<u32>) -> Option<Crossing> {
        let graph = self.graph.as_ref()?;
        let control = &self.control;
        let executed = clock::thread_cpu_ns().saturating_sub(control.cpu_at_start.load(Ordering::Relaxed));
        let segment = control.segment.load(Ordering::Relaxed) as usize;
        let tighter = control.tighter_wcet.load(Ordering::Relaxed);
        let left = Progress {
            segment,
            executed: Span::from_ns(executed),
            before_segment: Span::from_ns(control.executed_before_segment.load(Ordering::Relaxed)),
            tighter_wcet: (tighter != 0).then_some(Span::from_ns(tighter)),
        };
        let entered = self.successor(graph, segment, announced);
        if entered != segment {
            let path = control.path_before_segment.load(Ordering::Relaxed);
            let path = Span::from_ns(path).checked_add(self.allowance.segment_wcet(segment));
            let path = path.unwrap_or(Span::MAX);
            control.path_before_segment.store(path.as_ns(), Ordering::Relaxed);
            control.tighter_wcet.store(self.allowance.tighter_wcet(path, entered).as_ns(), Ordering::Relaxed);
            control.executed_before_segment.store(executed, Ordering::Relaxed);
            control.segment.store(entered as u32, Ordering::Release);
        }
        Some(Crossing { left, entered })
    }

    /// What follows `segment`; the segment itself where it is a last one.
    fn successor(&self, graph: &SegmentGraph, segment: usize, announced: Option<u32>) -> usize {
        let next = graph.segments.get(segment).map_or(&[][..], |segment| &segment.next);
        let fits = announced.map(|a| a as usize).filter(|announced| next.contains(announced));
        match (fits, next) {
            (Some(announced), _) => announced,
            (None, [only]) if announced.is_none() => *only,
            (None, []) => {
                self.tally().extra_points += 1;
                segment
            }
            (None, [first, ..]) => {
                self.tally().unannounced += 1;
                *first
            }
        }
    }

    /// A job begins with the thread's processor time at `cpu`.
    pub(crate) fn begin(&self, job: u64, cpu: u64) {
        self.crash.begin(job, cpu, self.patience);
        self.control.begin(job, cpu);
    }

    /// The code of the present job has ended, having executed so much.
    pub(crate) fn end(&self, executed: u64) {
        self.control.end(executed);
        self.crash.end();
    }

    /// Whether the task's code crashed.
    pub(crate) fn has_crashed(&self) -> bool {
        self.crash.fate().is_some()
    }

    /// What the present job has executed, by its thread's clock, ns; 0 between jobs.
    pub(crate) fn executed_in_job(&self) -> u64 {
        let Some((begun, _)) = self.crash.work() else { return 0 };
        let clock = self.clock.get().and_then(|clock| clock.read_ns());
        clock.map_or(0, |clock| clock.saturating_sub(begun))
    }

    /// Whether its thread executes a job.
    pub(crate) fn is_at_work(&self) -> bool {
        self.crash.piece().is_some()
    }

    /// Whether the present job executes without an end.
    pub(crate) fn is_stuck(&self) -> bool {
        self.crash.work().is_some_and(|(_, patience)| self.executed_in_job() > patience)
    }

    /// Stops the thread for ever, wherever it is in the task's code.
    pub(crate) fn stop_for_good(&self) {
        if self.clock.get().is_some() && !self.has_ended.load(Ordering::Acquire) {
            // One that has ended meanwhile needs no signal.
            let _ = runaway::stop(self.tid.load(Ordering::Acquire), &self.crash);
        }
    }

    /// Keeps the callback for overruns.
    pub(crate) fn on_overrun(&self, callback: OverrunCallback) {
        *self.callback.lock().unwrap_or_else(PoisonError::into_inner) = Some(callback);
    }

    /// Tells the callback, if there is one.
    pub(crate) fn call_back(&self, overrun: Overrun) {
        let callback = self.callback.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(callback) = callback {
            callback(overrun);
        }
    }
}

/// The longest deadline that a job of the task can have; without one, what a job has until the next.
fn completes_within(system: &System, id: TaskId) -> u64 {
    let in_modes = (0..system.mode_count()).filter_map(|mode| system.task_in(mode, id).deadline);
    let task = system.task(id);
    let longest = in_modes.chain(task.deadline).max();
    longest.or(task.separation()).map_or(0, Span::as_ns)
}

/// How much longer than so many times its wcet a job executes until the watchdog ends the run.
const PATIENT_TIMES: u64 = 10;

/// A policy that takes the processor from an overrunning job contains one without an end, too.
fn patience(options: &RunOptions, wcet: u64, overrun: OverrunAction) -> u64 {
    match overrun {
        OverrunAction::Demote | OverrunAction::Stop => u64::MAX,
        _ => wcet.saturating_mul(PATIENT_TIMES).saturating_add(options.patience.as_ns()),
    }
}
