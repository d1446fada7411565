//! What the threads of one run share.

use crate::ring::Ring;
use crate::tally::Tally;
use crate::{ExecError, RecordLevel};
use horolog_model::{OverrunPolicy, SegmentGraph, TaskId};
use horolog_sys::{clock, futex};
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Somebody more important waits for the task's next preemption point.
pub(crate) const SHOULD_YIELD: u32 = 1;
/// Every preemption point reports: it is recorded or watched.
pub(crate) const WATCHED: u32 = 2;

/// The words of one task that its job reads at preemption points; a cache line pair of its own, so that no other
/// task's writes slow the idle preemption point down.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Zero while a preemption point has nothing to do: one load, one branch.
    pub(crate) attention: AtomicU32,
    /// The job should end at its next opportunity.
    pub(crate) must_end: AtomicBool,
    /// A grant to run: the thread sleeps on it while it has none.
    pub(crate) gate: AtomicU32,
    /// The job that runs, plus one; zero between jobs.
    pub(crate) job: AtomicU64,
    /// The thread's processor time at the job's start.
    pub(crate) cpu_at_start: AtomicU64,
    /// What the job had executed when its segment began.
    pub(crate) executed_before_segment: AtomicU64,
    /// The segment that runs.
    pub(crate) segment: AtomicU32,
    /// The tightest bound on the job's execution time known so far; zero: the task's wcet.
    pub(crate) tighter_wcet: AtomicU64,
}

/// One task during a run.
pub(crate) struct TaskShared {
    pub(crate) id: TaskId,
    pub(crate) name: String,
    pub(crate) cpu: u32,
    pub(crate) wcet: u64,
    pub(crate) overrun: OverrunPolicy,
    pub(crate) graph: Option<SegmentGraph>,
    pub(crate) control: Control,
    pub(crate) ring: Arc<Ring>,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) tid: AtomicU32,
    pub(crate) clock: Mutex<Option<clock::ThreadClock>>,
    pub(crate) record: RecordLevel,
}

impl TaskShared {
    /// The task's counts.
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record of this task into its own ring, at `time` ns since the start.
    #[inline]
    pub(crate) fn record(&self, kind: Kind, time: u64, job: u64, value: u64, extra: u64) {
        if self.record == RecordLevel::Nothing {
            return;
        }
        self.ring.push(self.make_record(kind, time, job, value, extra));
    }

    /// A record of this task.
    pub(crate) fn make_record(&self, kind: Kind, time: u64, job: u64, value: u64, extra: u64) -> Record {
        Record {
            time: Instant::from_ns(time),
            kind,
            cpu: self.cpu as u16,
            task: self.id.0,
            job,
            value,
            extra,
        }
    }
}

/// What all threads of one run share.
#[derive(Default)]
pub(crate) struct RunShared {
    ready: AtomicU32,
    started: AtomicU32,
    start_ns: AtomicU64,
    /// The run is over: sleepers go home, bodies that look end early.
    stopping: AtomicBool,
    /// Threads that have not ended yet.
    pub(crate) alive: AtomicU32,
    /// The end of the run, ns since the start.
    horizon: AtomicU64,
    failure: Mutex<Option<ExecError>>,
}

impl RunShared {
    pub(crate) fn new(horizon: u64) -> RunShared {
        let shared = RunShared::default();
        shared.horizon.store(horizon, Ordering::Relaxed);
        shared
    }

    /// Reports this thread ready and waits for the common start; its instant on `CLOCK_MONOTONIC`, or `None`
    /// where the run was called off.
    pub(crate) fn wait_for_start(&self) -> Option<u64> {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&self.ready, 1);
        while self.started.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&self.started, 0, u64::MAX);
        }
        (!self.is_stopping()).then(|| self.start_ns.load(Ordering::Acquire))
    }

    /// Waits until `count` threads are ready, or one failed.
    pub(crate) fn wait_until_ready(&self, count: u32) {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if ready >= count || self.has_failed() {
                return;
            }
            let _ = futex::wait(&self.ready, ready, clock::monotonic_ns() + 10_000_000);
        }
    }

    /// Lets all threads go at `start_ns`.
    pub(crate) fn start(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Release);
        self.started.store(1, Ordering::Release);
        let _ = futex::wake(&self.started, u32::MAX);
    }

    /// Ends the run `now` ns after the start, or calls it off before.
    pub(crate) fn stop(&self, now: u64) {
        self.horizon.fetch_min(now, Ordering::AcqRel);
        self.stopping.store(true, Ordering::Release);
        if self.started.load(Ordering::Acquire) == 0 {
            self.start(0);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn stopping(&self) -> &AtomicBool {
        &self.stopping
    }

    pub(crate) fn horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// Keeps the first failure.
    pub(crate) fn fail(&self, error: ExecError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take_failure(&self) -> Option<ExecError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
