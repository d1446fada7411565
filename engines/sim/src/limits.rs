//! What ends a run: a horizon, a number of jobs or events, or another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many events, or instants, lie between two looks at who wants an end: some milliseconds.
const LOOK_EVERY: u64 = 1 << 16;

/// Where a run ends.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The horizon; the end of time where only jobs count.
    pub(crate) until: u64,
    pub(crate) jobs: u64,
    pub(crate) events: u64,
    pub(crate) backlog: u32,
    /// The run also ends when this job of this task has finished.
    pub(crate) watched: Option<(u32, u64)>,
    /// Set by another thread that wants an end.
    pub(crate) stop: Option<Arc<AtomicBool>>,
}

impl Limits {
    /// Whether another thread wants an end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// When all of this is looked at again, in events or instants.
    pub(crate) fn look_after(&self, passed: u64) -> u64 {
        passed.saturating_add(LOOK_EVERY).min(self.events)
    }
}
