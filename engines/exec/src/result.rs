//! What a run came to.

use crate::bands;
use horolog_model::TaskId;
use horolog_trace::{Outcome, Record};

/// What a run came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunResult {
    /// Counts and response times per task.
    pub outcome: Outcome,
    /// What happened, in time order; empty where the caller gave a sink of its own.
    pub records: Vec<Record>,
    /// The common start (offset 0 of every task) on `CLOCK_MONOTONIC`, ns; the records' origin.
    pub origin_ns: u64,
    /// The threads of the run, for telling the kernel's switches apart.
    pub threads: Vec<ThreadInfo>,
    /// When the run was over, ns since the common start: jobs that had arrived by its horizon were let to complete until then.
    pub closed_ns: u64,
    /// What happened at its spin locks; all zero where user code ran in a process of its own.
    pub spin_locks: SpinLockCounts,
}

/// What happened at the spin locks of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpinLockCounts {
    /// Requests that waited.
    pub waits: u64,
    /// How often the agent of another processor was woken, since the lock came to a job that was preempted.
    pub wake_ups: u64,
}

/// One thread or process of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// The kernel's id.
    pub tid: u32,
    /// The name that the kernel's records show.
    pub name: String,
    /// Whose it is; `None` for the release agents and the collector.
    pub task: Option<TaskId>,
    /// The processor that it is pinned to, if any.
    pub cpu: Option<u32>,
    /// Its `SCHED_FIFO` priority at the start, 0 for normal scheduling.
    pub fifo_priority: u8,
}

impl ThreadInfo {
    /// The `SCHED_FIFO` priorities that the run itself gives the thread below the one at the start: where it waits for a driven processor, and
    /// where its job is demoted.
    pub fn lower_priorities(&self) -> impl Iterator<Item = u8> {
        let lower = [bands::WAIT, bands::DEMOTED];
        lower.into_iter().filter(|&band| band < self.fifo_priority)
    }
}

/// What is known when all threads are ready and the start is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The common start on `CLOCK_MONOTONIC`, ns; the records' origin.
    pub origin_ns: u64,
    /// The threads of the run.
    pub threads: Vec<ThreadInfo>,
}
