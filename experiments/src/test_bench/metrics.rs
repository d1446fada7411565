//! The metrics of one run, computed from its trace.

use super::application::Application;
use horolog_trace::{Kind, NO_TASK, Record, Sink};
use serde::{Deserialize, Serialize};

/// What one run came to.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Metrics {
    /// The sum of the response times of the soft jobs that finished. Integers alone are kept, since a journal gives them back
    /// as they were.
    pub(crate) response_sum_ns: u128,
    /// Times that a task got the processor after another task or idle, from the critical instant to the hyperperiod.
    pub(crate) switches: u64,
    /// Soft jobs that arrived, and those of them that never finished.
    pub(crate) soft_jobs: u64,
    pub(crate) unfinished: u64,
    /// Hard jobs that finished, and deadlines that they missed.
    pub(crate) hard_jobs: u64,
    pub(crate) missed: u64,
    /// A budgeted policy had no budget: it was the background.
    pub(crate) no_budget: bool,
    /// The server's budget and its period; 0 where it has none.
    #[serde(default)]
    pub(crate) budget_ns: u64,
    #[serde(default)]
    pub(crate) budget_period_ns: u64,
    /// Records that the run lost.
    #[serde(default)]
    pub(crate) lost: u64,
    /// What the scheduler took, where it was measured.
    pub(crate) scheduler: Option<Scheduler>,
}

impl Metrics {
    /// Mean response time of the soft jobs, ns; `None` where none finished.
    pub(crate) fn response_ns(&self) -> Option<f64> {
        let finished = self.soft_jobs - self.unfinished;
        (finished > 0).then(|| self.response_sum_ns as f64 / finished as f64)
    }
}

/// The scheduler's own time in a real run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Scheduler {
    /// How often it ran.
    pub(crate) interruptions: u64,
    /// What it took in all.
    pub(crate) total_ns: u64,
    /// How long the run was: it goes on past the hyperperiod until the soft jobs are done.
    pub(crate) span_ns: u64,
}

impl Scheduler {
    /// The mean time of one interruption, ns.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.interruptions > 0).then(|| self.total_ns as f64 / self.interruptions as f64)
    }

    /// What it took in one hyperperiod, ns: its share of the run times the hyperperiod.
    pub(crate) fn per_hyperperiod_ns(&self, hyperperiod: u64) -> Option<f64> {
        let share = self.total_ns as f64 / self.span_ns as f64;
        (self.span_ns > 0).then_some(share * hyperperiod as f64)
    }
}

/// Listens to a run and counts.
pub(crate) struct Meter<'a> {
    application: &'a Application,
    hard_tasks: u32,
    /// Who had the processor last, and when it was done, if it was.
    last: u32,
    done_at: Option<u64>,
    /// Shorter gaps behind a completion are no idle time, but the executive's own.
    gap: u64,
    metrics: Metrics,
}

impl<'a> Meter<'a> {
    /// A meter of runs of this application; `gap_ns`: what may pass between two jobs of one task on a processor that is
    /// never idle in between, 0 in virtual time.
    pub(crate) fn new(application: &'a Application, gap_ns: u64) -> Meter<'a> {
        let soft_jobs = application.soft.iter().map(|task| task.arrivals.len() as u64).sum();
        Meter {
            application,
            hard_tasks: application.hard.len() as u32,
            last: NO_TASK,
            done_at: None,
            gap: gap_ns,
            metrics: Metrics { soft_jobs, unfinished: soft_jobs, ..Metrics::default() },
        }
    }

    /// Soft jobs that have not finished.
    pub(crate) fn unfinished(&self) -> u64 {
        self.metrics.unfinished
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.metrics
    }

    fn gets_processor(&mut self, task: u32, now: u64) {
        let was_idle = self.done_at.is_some_and(|done| now > done + self.gap);
        if (task != self.last || was_idle) && now < self.application.hyperperiod {
            self.metrics.switches += 1;
        }
        self.last = task;
        self.done_at = None;
    }

    fn completes(&mut self, record: &Record) {
        let now = record.time.as_ns();
        if record.task == self.last {
            self.done_at = Some(now);
        }
        let Some(soft) = record.task.checked_sub(self.hard_tasks) else {
            self.metrics.hard_jobs += 1;
            return;
        };
        let task = self.application.soft.get(soft as usize);
        if let Some(arrival) = task.and_then(|task| task.arrivals.get(record.job as usize)) {
            self.metrics.response_sum_ns += u128::from(now.saturating_sub(*arrival));
            self.metrics.unfinished -= 1;
        }
    }
}

impl Sink for Meter<'_> {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        match record.kind {
            Kind::Start | Kind::Resume => self.gets_processor(record.task, record.time.as_ns()),
            Kind::Completion => self.completes(&record),
            Kind::Miss if record.task < self.hard_tasks => self.metrics.missed += 1,
            _ => {}
        }
    }
}
