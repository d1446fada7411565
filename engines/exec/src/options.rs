//! What a caller chooses about a run.

use crate::Started;
use horolog_time::Span;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// How long jobs are released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// This long after the common start.
    For(Span),
    /// Until [`RunOptions::stop`] is set.
    Forever,
}

/// Who schedules plain fixed-priority tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Backend {
    /// `SCHED_FIFO`: directly where the kernel's rules are the model's, else through the release agent.
    #[default]
    Fifo,
    /// `SCHED_DEADLINE`, where the machine and the system admit it; else as `Fifo`, with the reason in the notes.
    Deadline,
}

/// When jobs of sporadic and jittered tasks arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ArrivalPattern {
    /// As densely as the model allows: sporadic tasks at their separation, no jitter added to the machine's own.
    #[default]
    Dense,
    /// Sporadic tasks up to one separation later than they might; jitter drawn uniformly from zero to the model's.
    /// Both from the seed.
    Random,
}

/// Which records a run writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecordLevel {
    /// Everything; idle preemption points too, which then cost two clock readings each.
    #[default]
    All,
    /// Everything but idle preemption points, which then cost one load and one branch.
    NoIdlePoints,
    /// Nothing but the counts of the outcome.
    Nothing,
}

/// How a non-preemptive job keeps more important tasks out; for the comparison of the thesis's variants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NonPreemptiveVariant {
    /// A flag in the release agent: no system call a job.
    #[default]
    Flag,
    /// Raise the thread above all for the job: two system calls a job.
    RaisePriority,
    /// Suspend and resume each of the N more important tasks: 2 N system calls a job; arrivals in between escape.
    SuspendHigher,
}

/// How a preemption point learns whether somebody waits; for the comparison of the thesis's versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PointVariant {
    /// Load a flag in the task's own memory (the thesis's second version).
    #[default]
    Flag,
    /// Ask by a system call each time (the thesis's first version).
    StatusCall,
}

/// Of each stack, so many bytes are locked where nothing else is asked for.
pub const DEFAULT_STACK: usize = 128 << 10;

/// What a caller chooses about a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOptions {
    /// How long jobs are released.
    pub limit: Limit,
    /// The seed of everything drawn by chance.
    pub seed: u64,
    /// Run under normal scheduling where the privilege for real-time classes is missing, and say so.
    pub best_effort: bool,
    /// Who schedules.
    pub backend: Backend,
    /// When jobs arrive.
    pub arrivals: ArrivalPattern,
    /// Sporadic jobs come a separation and up to so much more apart, drawn uniformly.
    pub sporadic_extra: Span,
    /// Which records are written.
    pub record: RecordLevel,
    /// How many records one thread's buffer holds at most before it loses some; one whose task can fill less in a second holds less.
    pub ring_capacity: usize,
    /// How many bytes of each thread's stack are locked in memory; deeper calls work, with page faults.
    pub stack: usize,
    /// The folder from which relative paths of libraries and commands count.
    pub folder: Option<PathBuf>,
    /// Ends the run early once it is set.
    pub stop: Option<Arc<AtomicBool>>,
    /// How long a started job may take to end once the run is over; a task that takes longer is left behind.
    pub grace: Span,
    /// A job that has executed for so long beyond ten times its wcet has no end: the run is ended. Tasks whose overrun policy takes the
    /// processor away are left out.
    pub patience: Span,
    /// Where the run has a process of its own, what user code writes to its standard output goes to its standard error.
    pub output_to_error: bool,
    /// How non-preemptive jobs are built.
    pub non_preemptive: NonPreemptiveVariant,
    /// How preemption points are built.
    pub points: PointVariant,
    /// Look for overruns of every task of an agent's processor by timer, even where the policy only counts them;
    /// else only for tasks whose policy acts.
    pub watch_all: bool,
    /// Filled in once all threads are ready, before the first record: what a trace's head and the merging with
    /// the kernel's record need.
    pub started: Option<Arc<OnceLock<Started>>>,
}

impl RunOptions {
    /// Jobs for `span`, everything else by default.
    #[must_use]
    pub fn for_span(span: Span) -> RunOptions {
        RunOptions { limit: Limit::For(span), ..RunOptions::default() }
    }
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            limit: Limit::For(Span::from_ns(1_000_000_000)),
            seed: 1,
            best_effort: false,
            backend: Backend::default(),
            arrivals: ArrivalPattern::default(),
            sporadic_extra: Span::ZERO,
            record: RecordLevel::default(),
            ring_capacity: 1 << 14,
            stack: DEFAULT_STACK,
            folder: None,
            stop: None,
            grace: Span::from_ns(2_000_000_000),
            patience: Span::from_ns(2_000_000_000),
            output_to_error: false,
            non_preemptive: NonPreemptiveVariant::default(),
            points: PointVariant::default(),
            watch_all: false,
            started: None,
        }
    }
}
