//! One run, simulated or measured.

use crate::Timeline;
use horolog_time::{Instant, Span};
use horolog_trace::{DeviceOutcome, Outcome, RequestOutcome, ResponseStatistics, ServerOutcome, TaskOutcome};
use serde::Serialize;

/// Where a run's records come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// From the simulator, in virtual time.
    #[default]
    Simulated,
    /// From a machine.
    Measured,
}

impl RunKind {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RunKind::Simulated => "simulated",
            RunKind::Measured => "measured",
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// Where its records come from.
    pub kind: RunKind,
    /// The back end (`sim`, `linux`, `linux-best-effort`).
    pub backend: String,
    /// The seed of everything drawn by chance.
    pub seed: u64,
    /// How long jobs were released.
    pub horizon_ns: Span,
    /// The instant that is zero on the page's time axis (the trace header's start instant), on the clock of
    /// the records. Findings of the run use the same clock.
    pub start_ns: Instant,
    /// How many events there were.
    pub events: u64,
    /// How many were lost, of every kind.
    pub events_lost: u64,
    /// What the jobs of each task came to, in the order of [`crate::ReportData::tasks`].
    pub tasks: Vec<RunTask>,
    /// What each server and scheduler did.
    pub servers: Vec<ServerOutcome>,
    /// What each device did.
    pub devices: Vec<DeviceOutcome>,
    /// What came of each request.
    pub requests: Vec<RequestOutcome>,
    /// The timeline.
    pub timeline: Option<Timeline>,
    /// What the reader must know to read the numbers right.
    pub notes: Vec<String>,
}

impl Run {
    /// A run from its outcome and, where there is one, its timeline; `statistics` are the response times of
    /// each task, in the order of the outcome (the builder's [`crate::TimelineBuilder::statistics`], for one).
    #[must_use]
    pub fn new(
        kind: RunKind,
        start: Instant,
        outcome: &Outcome,
        statistics: &[ResponseStatistics],
        timeline: Option<Timeline>,
    ) -> Run {
        let tasks =
            outcome.tasks.iter().enumerate().map(|(i, task)| RunTask::new(task, statistics.get(i))).collect();
        Run {
            kind,
            backend: outcome.backend.clone(),
            seed: outcome.seed,
            horizon_ns: outcome.horizon_ns,
            start_ns: start,
            events: outcome.events,
            events_lost: outcome.events_lost,
            tasks,
            servers: outcome.servers.clone(),
            devices: outcome.devices.clone(),
            requests: outcome.requests.clone(),
            timeline,
            notes: outcome.notes.clone(),
        }
    }
}

/// What the jobs of one task came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunTask {
    /// Counts and response times.
    #[serde(flatten)]
    pub outcome: TaskOutcome,
    /// The distribution of response times, ascending; empty where it was not kept.
    pub histogram: Vec<HistogramBucket>,
    /// How many of the released jobs were judged; `None`: not known.
    pub judged: Option<Judged>,
}

/// Of the jobs that were released, those that were judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Judged {
    /// By the clock, on record or not.
    pub released: u64,
    /// With whole records, by which the rules give the schedule that was seen.
    pub judged: u64,
}

/// One bucket: its lower edge in nanoseconds and how many response times fell into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HistogramBucket(pub u64, pub u64);

impl RunTask {
    /// From an outcome and, where it was kept, the distribution.
    #[must_use]
    pub fn new(outcome: &TaskOutcome, statistics: Option<&ResponseStatistics>) -> RunTask {
        let histogram = statistics.map(buckets).unwrap_or_default();
        RunTask { outcome: outcome.clone(), histogram, judged: None }
    }
}

/// The recorded buckets of a histogram.
fn buckets(statistics: &ResponseStatistics) -> Vec<HistogramBucket> {
    let histogram = statistics.histogram();
    histogram
        .iter_recorded()
        .map(|step| {
            HistogramBucket(histogram.lowest_equivalent(step.value_iterated_to()), step.count_at_value())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_response_in_its_bucket() {
        let mut statistics = ResponseStatistics::default();
        for ns in [1_000_000, 1_000_100, 2_000_000, 2_000_000] {
            statistics.record(Span::from_ns(ns));
        }
        let task = RunTask::new(&TaskOutcome::default(), Some(&statistics));
        assert_eq!(task.histogram.iter().map(|b| b.1).sum::<u64>(), 4);
        let last = task.histogram.last().unwrap();
        assert!(last.0 <= 2_000_000 && last.0 > 1_997_000, "{last:?}");
        assert_eq!(last.1, 2);
        assert!(task.histogram.is_sorted_by_key(|b| b.0));
    }
}
