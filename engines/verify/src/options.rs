//! What a caller chooses about a verification.

use horolog_model::TaskId;
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A bound to be checked, as plain data: the analysis is judged, so nothing of it is used here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Whose.
    pub task: TaskId,
    /// The bound on every response time, counted from the nominal arrival.
    pub response: Span,
    /// The test that it comes from.
    pub test: String,
    /// Whether it is the least upper bound.
    pub exact: bool,
}

/// What a caller chooses about a verification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How many findings of one group are listed; all are counted.
    pub listed_per_group: usize,
    /// Replaces the bounds of these tasks: for tests that a wrong bound is caught, and for nothing else.
    pub bound_override: Vec<(TaskId, Span)>,
    /// What a measured trace may deviate from the model beyond the platform's costs. A simulated trace may not
    /// deviate at all.
    pub tolerance: Tolerance,
    /// What else speaks against a yes: without a finding the verdict is unknown, and these are the first notes.
    pub doubts: Vec<String>,
    /// Why a program was not served as the file says, where it was not: these are notes likewise, and no finding accuses anybody then.
    pub served_otherwise: Vec<String>,
    /// Another thread that sets it ends the verification soon, with an error.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Options {
    /// The usual ones, with the bounds of these tasks replaced.
    #[must_use]
    pub fn with_bounds(bound_override: Vec<(TaskId, Span)>) -> Options {
        Options { bound_override, ..Options::default() }
    }

    /// Whether another thread wants an end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// What speaks against a yes.
    pub(crate) fn all_doubts(&self) -> impl Iterator<Item = String> {
        self.served_otherwise.iter().chain(&self.doubts).cloned()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listed_per_group: 20,
            bound_override: Vec::new(),
            tolerance: Tolerance::default(),
            doubts: Vec::new(),
            served_otherwise: Vec::new(),
            stop: None,
        }
    }
}

/// What a measured trace may deviate from the model without a finding. It never excuses a bound: response times
/// are compared as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tolerance {
    /// Between two records of the same thing by different clocks or observers: the time between an event and its
    /// time stamp.
    pub stamping: Span,
    /// What reading a thread's clock at a job's begin and end adds to its execution time.
    pub execution: Span,
    /// How long the kernel may take to switch to a ready job before a less important one that runs on counts as
    /// service against the policy. What is beyond the platform's costs is a disturbance before that.
    pub dispatch: Span,
    /// How long an interrupt may last without being a finding of its own, beyond the model's cost of one.
    pub interrupt: Span,
    /// By how much a server's budget may be overdrawn each time, beyond the release latency.
    pub budget: Span,
    /// How long after an event its evidence may still come: stolen time is accounted by sampling.
    pub evidence_delay: Span,
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance {
            stamping: Span::from_ns(20_000),
            execution: Span::from_ns(5_000),
            dispatch: Span::from_ns(100_000),
            interrupt: Span::from_ns(50_000),
            budget: Span::from_ns(100_000),
            evidence_delay: Span::from_ns(250_000_000),
        }
    }
}
