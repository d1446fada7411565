//! Counts of one task during a run.

use crate::arrivals::Job;
use horolog_time::Span;
use horolog_trace::{ResponseStatistics, TaskOutcome};

/// Counts of one task. Kept behind a lock that only its own thread takes while the run lasts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: TaskOutcome,
    pub(crate) responses: ResponseStatistics,
    /// Jobs whose function returned something other than zero, and the first such value.
    pub(crate) failed: u64,
    pub(crate) first_failure: Option<i32>,
    /// What the reader should know about this task.
    pub(crate) notes: Vec<String>,
}

impl Tally {
    /// Counts a job that finished at `finished` (ns since the start); `horizon` is the end of the run.
    /// Returns whether it missed its deadline.
    pub(crate) fn finished(&mut self, job: &Job, finished: u64, horizon: u64) -> bool {
        self.counts.jobs += 1;
        let in_time = finished <= job.deadline;
        if finished > horizon {
            // The run was over: a miss only if the deadline had passed by then.
            self.counts.unfinished += 1;
            let missed = job.deadline < horizon;
            self.counts.missed += u64::from(missed);
            return missed;
        }
        self.counts.completed += 1;
        self.counts.missed += u64::from(!in_time);
        self.responses.record(Span::from_ns(finished.saturating_sub(job.arrival)));
        !in_time
    }

    /// Counts a job that was released and had not finished by the horizon.
    pub(crate) fn unfinished(&mut self, job: &Job, horizon: u64) {
        self.counts.jobs += 1;
        self.counts.unfinished += 1;
        self.counts.missed += u64::from(job.deadline < horizon);
    }

    /// Counts what the job's function returned.
    pub(crate) fn returned(&mut self, value: i32) {
        if value != 0 {
            self.failed += 1;
            self.first_failure.get_or_insert(value);
        }
    }

    /// The task's outcome.
    pub(crate) fn outcome(&self) -> TaskOutcome {
        let mut outcome = self.counts.clone();
        self.responses.fill(&mut outcome);
        outcome
    }
}
