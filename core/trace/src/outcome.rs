//! What a simulated or measured run came to: the JSON result `horolog.outcome/1`.

use crate::Ending;
use hdrhistogram::Histogram;
use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Always `horolog.outcome/1`.
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// `sim`, `linux`, or `linux-best-effort`.
    pub backend: String,
    /// The seed of everything drawn by chance.
    pub seed: u64,
    /// How long jobs were released.
    pub horizon_ns: Span,
    /// How many events there were.
    pub events: u64,
    /// How many were lost, of every kind.
    pub events_lost: u64,
    /// Per task, in the order of the file.
    pub tasks: Vec<TaskOutcome>,
    /// Per server, in the order of the file; left out where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerOutcome>,
    /// Each change of the mode, the first thousand of them; left out where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeOutcome>,
    /// What scheduling itself took on each processor of a real run; left out where nothing was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overhead: Vec<Overhead>,
    /// Per interrupt, in the order of the file; left out where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptOutcome>,
    /// Per device, in the order of the file; left out where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceOutcome>,
    /// Per request, in the order of the file; left out where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestOutcome>,
    /// What ended the run before its time; left out where it ran to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Ending>,
    /// What the reader must know to read the numbers right ("offsets taken as 0", …).
    pub notes: Vec<String>,
}

/// One change of the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeOutcome {
    /// The mode that it brought.
    pub mode: String,
    /// When it was asked for.
    pub requested_ns: Span,
    /// Who asked: `request` (the file or a program) or `overrun`.
    pub by: &'static str,
    /// When it took effect; in a run, on the first processor.
    pub changed_ns: Span,
    /// How many jobs of the mode before went on, or could not be ended at once.
    pub left_over: u64,
    /// When the last of them was gone; `None`: not before the next change, or the end.
    pub ended_ns: Option<Span>,
}

impl ModeOutcome {
    /// How many changes an outcome lists.
    pub const MOST: usize = 1000;
    /// The words of [`ModeOutcome::by`].
    pub const BY: [&'static str; 3] = ["request", "overrun", "mode"];
}

/// What scheduling itself took on one processor during a real run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overhead {
    /// Which processor.
    pub cpu: u32,
    /// How often the scheduling machine was told something and asked who runs: by the release agent or by a task's own
    /// thread. 0 where the kernel alone decides.
    pub passes: u64,
    /// What these passes took in all, the system calls that carry out the decisions included, wake-ups and the kernel's
    /// switches not.
    pub total_ns: Span,
    /// The longest of them.
    pub longest_ns: Span,
    /// The kernel's context switches out of the threads of the tasks and of the agent, from the common start on.
    pub context_switches: u64,
}

impl Overhead {
    /// What one pass took in the mean, ns; `None` without any.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.passes > 0).then(|| self.total_ns.as_ns() as f64 / self.passes as f64)
    }
}

impl Outcome {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.outcome/1";

    /// An outcome without an event: of this system, made in this way (`sim`, `linux`, …), with jobs released until `horizon`.
    #[must_use]
    pub fn empty(system: &str, backend: &str, seed: u64, horizon: Span) -> Self {
        Self {
            schema: Self::SCHEMA,
            system: system.to_owned(),
            backend: backend.to_owned(),
            seed,
            horizon_ns: horizon,
            events: 0,
            events_lost: 0,
            tasks: Vec::new(),
            servers: Vec::new(),
            modes: Vec::new(),
            overhead: Vec::new(),
            interrupts: Vec::new(),
            devices: Vec::new(),
            requests: Vec::new(),
            ended_by: None,
            notes: Vec::new(),
        }
    }
}

/// What one server came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerOutcome {
    /// The server's name.
    pub name: String,
    /// Its kind, as in the system file; `no budget` of a scheduler without one.
    pub kind: &'static str,
    /// How a `[[scheduler]]` orders its children, as in the system file; left out of a `[[server]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
    /// What its tasks executed on its budget; of a slack policy, above hard tasks; null of what has neither.
    pub consumed_ns: Option<Span>,
    /// How often its budget was used up; of slack stealing, the slack.
    pub exhaustions: u64,
    /// How often budget came back; of slack stealing, slack.
    pub replenishments: u64,
    /// How exactly a real run kept the budget; null in a simulation, which is exact, and of servers without a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
}

/// How exactly a real run kept a server's budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Enforcement {
    /// What tells that a budget is used up.
    pub method: &'static str,
    /// How often the threads' clocks showed that all of a budget was executed. `exhaustions` counts by the scheduling machine's rules,
    /// for instance not where budget came back at the same instant.
    pub exhausted: u64,
    /// How much more than the budget was executed, median; null without any.
    pub overshoot_ns_p50: Option<Span>,
    /// 99th percentile.
    pub overshoot_ns_p99: Option<Span>,
    /// The most.
    pub overshoot_ns_max: Option<Span>,
    /// Of the processor over the whole run, what was charged to the budget.
    pub share: f64,
    /// Budget divided by period.
    pub allowed_share: f64,
}

impl Enforcement {
    /// Sums up the overshoot of every budget that was used up, and `consumed` over `elapsed`.
    #[must_use]
    pub fn new(
        method: &'static str,
        overshoots: &ResponseStatistics,
        (consumed, elapsed): (Span, Span),
        (budget, period): (Span, Span),
    ) -> Enforcement {
        let share = |part: Span, whole: Span| part.as_ns() as f64 / whole.as_ns().max(1) as f64;
        Enforcement {
            method,
            exhausted: overshoots.count(),
            overshoot_ns_p50: overshoots.percentile(50.0),
            overshoot_ns_p99: overshoots.percentile(99.0),
            overshoot_ns_max: overshoots.max(),
            share: share(consumed, elapsed),
            allowed_share: share(budget, period),
        }
    }
}

/// How long something took, over all that finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseSummary {
    /// The least; null where nothing finished.
    pub response_ns_min: Option<Span>,
    /// The mean.
    pub response_ns_mean: Option<f64>,
    /// The median (nearest rank, three significant digits).
    pub response_ns_p50: Option<Span>,
    /// The 99.9th percentile (nearest rank, three significant digits).
    pub response_ns_p99_9: Option<Span>,
    /// The greatest.
    pub response_ns_max: Option<Span>,
}

/// What one interrupt came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterruptOutcome {
    /// The interrupt's name.
    pub name: String,
    /// How often its devices had something to tell.
    pub causes: u64,
    /// How often its handler executed.
    pub taken: u64,
    /// What the handler executed in all.
    pub executed_ns: Span,
}

/// What one device's events came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceOutcome {
    /// The device's name.
    pub name: String,
    /// Where its events are worked off.
    pub service: &'static str,
    /// Whether its deadline is only a wish.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_soft: bool,
    /// Events before the horizon.
    pub events: u64,
    /// Events that were worked off.
    pub served: u64,
    /// Events that found the ring full.
    pub dropped: u64,
    /// Events that admission control refused.
    pub refused: u64,
    /// Events that wait at the horizon.
    pub waiting: u64,
    /// Events whose deadline passed before they were worked off.
    pub missed: u64,
    /// Of those served, by the background thread of the softirqs.
    pub in_background: u64,
    /// What its events executed in all, admission control included.
    pub executed_ns: Span,
    /// The longest that an answer of the device was there before its processor learned of it: zero in a simulation.
    pub late_ns_max: Span,
    /// From when an event occurred until it was worked off.
    #[serde(flatten)]
    pub response: ResponseSummary,
}

/// What one request came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestOutcome {
    /// The request's name.
    pub name: String,
    /// How often the task asked.
    pub asked: u64,
    /// How often it was answered.
    pub answered: u64,
    /// Answers that came after their deadline, or not before it at the horizon.
    pub missed: u64,
    /// What the device's events for this task executed in all: what an accounting by client charges the task.
    pub charged_ns: Span,
    /// From when it asked until the answer was there.
    #[serde(flatten)]
    pub response: ResponseSummary,
}

/// What one task's jobs came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// The task's name.
    pub name: String,
    /// Whether a server serves it, or its file says so: its deadline, if it has one, is soft.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_soft: bool,
    /// Jobs released before the horizon.
    pub jobs: u64,
    /// Jobs that finished.
    pub completed: u64,
    /// Jobs whose deadline passed before they finished.
    pub missed: u64,
    /// Jobs not finished at the horizon.
    pub unfinished: u64,
    /// Least response time; null without a finished job.
    pub response_ns_min: Option<Span>,
    /// Mean response time.
    pub response_ns_mean: Option<f64>,
    /// Median response time (nearest rank, three significant digits).
    pub response_ns_p50: Option<Span>,
    /// 99.9th percentile (nearest rank, three significant digits).
    pub response_ns_p99_9: Option<Span>,
    /// Greatest response time.
    pub response_ns_max: Option<Span>,
    /// Times that a ready job lost the processor involuntarily.
    pub preemptions: u64,
    /// Times that a job gave way at a preemption point.
    pub yields: u64,
    /// Times that the task got a processor after another task or idle.
    pub switch_ins: u64,
    /// Waits that returned at once because the next release had passed.
    pub vain_waits: u64,
    /// Jobs that executed longer than their wcet.
    pub overruns: u64,
    /// Releases that the overrun policy or a mode left out, and jobs that one of them dropped; they do not count in `jobs`.
    pub skipped: u64,
    /// Jobs whose code returned another value than 0: they failed. Left out where none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Calls of its code that named nothing of the file: no resource, link, request or mode. Left out where none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_names: u64,
    /// Locks by a job that held the resource already: they change nothing. Left out where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub locked_twice: u64,
    /// Unlocks by a job that did not hold the resource: they do nothing. Left out where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlocked_unheld: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands a reference
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The value with the fewest digits from `least` to `most`; of several the greatest.
fn roundest(least: u64, most: u64) -> u64 {
    let powers = std::iter::successors(Some(10_000_000_000_000_000_000_u64), |power| Some(power / 10));
    powers.take(20).map(|power| most / power * power).find(|&value| value >= least).unwrap_or(most)
}

/// Response times of one task: exact minimum, mean and maximum, and a histogram for percentiles.
#[derive(Clone, Debug)]
pub struct ResponseStatistics {
    histogram: Histogram<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for ResponseStatistics {
    fn default() -> Self {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are valid");
        histogram.auto(true);
        ResponseStatistics { histogram, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl ResponseStatistics {
    /// Adds one response time.
    #[inline]
    pub fn record(&mut self, response: Span) {
        let ns = response.as_ns();
        // The histogram grows by itself; where memory for that cannot even be addressed, the last bucket takes it.
        if self.histogram.record(ns).is_err() {
            self.histogram.saturating_record(ns);
        }
        self.count += 1;
        self.sum += u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// The statistics of responses counted in the buckets of this histogram's own resolution: a value of each
    /// bucket and how many fell into it, and the exact sum, minimum and maximum.
    pub(crate) fn from_buckets(
        buckets: impl Iterator<Item = (Span, u64)>,
        sum: u128,
        min: Span,
        max: Span,
    ) -> ResponseStatistics {
        let mut statistics =
            ResponseStatistics { sum, min: min.as_ns(), max: max.as_ns(), ..Default::default() };
        for (value, count) in buckets {
            if statistics.histogram.record_n(value.as_ns(), count).is_err() {
                statistics.histogram.saturating_record_n(value.as_ns(), count);
            }
            statistics.count += count;
        }
        statistics
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least.
    #[must_use]
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(Span::from_ns(self.min))
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(Span::from_ns(self.max))
    }

    /// The mean, in nanoseconds.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The nearest-rank percentile, to three significant digits: of its bucket the value with the fewest digits, so that
    /// 2 ms are not shown as 2.001 ms. It is never below the minimum or above the maximum, and exact where it is one of them.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Span> {
        let rank = (percent / 100.0 * self.count as f64).ceil();
        if rank <= 1.0 {
            return self.min();
        }
        if rank >= self.count as f64 {
            return self.max();
        }
        (self.count > 0).then(|| {
            let most = self.histogram.value_at_quantile(percent / 100.0);
            let least = self.histogram.lowest_equivalent(most).max(self.min);
            Span::from_ns(roundest(least.min(self.max), most.min(self.max)))
        })
    }

    /// The histogram, for plots.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Minimum, mean, percentiles and maximum.
    #[must_use]
    pub fn summary(&self) -> ResponseSummary {
        ResponseSummary {
            response_ns_min: self.min(),
            response_ns_mean: self.mean(),
            response_ns_p50: self.percentile(50.0),
            response_ns_p99_9: self.percentile(99.9),
            response_ns_max: self.max(),
        }
    }

    /// Writes minimum, mean, percentiles and maximum into a task's outcome.
    pub fn fill(&self, outcome: &mut TaskOutcome) {
        outcome.response_ns_min = self.min();
        outcome.response_ns_mean = self.mean();
        outcome.response_ns_p50 = self.percentile(50.0);
        outcome.response_ns_p99_9 = self.percentile(99.9);
        outcome.response_ns_max = self.max();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(ns: impl IntoIterator<Item = u64>) -> ResponseStatistics {
        let mut statistics = ResponseStatistics::default();
        ns.into_iter().for_each(|ns| statistics.record(Span::from_ns(ns)));
        statistics
    }

    #[test]
    fn a_percentile_is_the_roundest_value_of_its_bucket() {
        // 2 ms lie in the bucket from 1,999,872 to 2,000,895 ns.
        let exact = statistics([1_000_000, 2_000_000, 2_000_000, 2_000_000, 5_000_000]);
        assert_eq!(exact.percentile(50.0), Some(Span::from_ns(2_000_000)));
        assert_eq!(statistics([0, 7, 9_000_000]).percentile(50.0), Some(Span::from_ns(7)));
        // Within what was measured, even where the bucket reaches further.
        let alone = statistics([1_999_999]);
        assert_eq!(alone.percentile(50.0), Some(Span::from_ns(1_999_999)));
        let least = statistics([2_000_001, 2_000_001, 5_000_000]);
        assert_eq!(least.percentile(50.0), Some(Span::from_ns(2_000_800)));
        let most = statistics([1, 1_999_999, 1_999_999]);
        assert_eq!(most.percentile(50.0), Some(Span::from_ns(1_999_900)));
        // The first and the last are known exactly.
        assert_eq!(most.percentile(99.9), Some(Span::from_ns(1_999_999)));
        assert_eq!(least.percentile(33.0), Some(Span::from_ns(2_000_001)));
        assert_eq!(statistics([]).percentile(50.0), None);
    }

    #[test]
    fn the_roundest_value_lies_between_the_ends() {
        for (least, most, value) in [
            (0, 3, 0),
            (1, 3, 3),
            (99, 101, 100),
            (999, 999, 999),
            (1_234, 1_259, 1_250),
            (u64::MAX - 1, u64::MAX, u64::MAX),
            (1, u64::MAX, 10_000_000_000_000_000_000),
        ] {
            assert_eq!(roundest(least, most), value, "{least} to {most}");
        }
    }
}
