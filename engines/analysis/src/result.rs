//! What an analysis answers: `horolog.analysis/1`.

use crate::remedies::{Remedy, Sensitivity};
use horolog_model::CpuId;
use horolog_model::pattern::ReleasePattern;
use horolog_time::Span;
use serde::Serialize;

/// What stands for the name of a test where no test knows the task.
pub const NO_TEST: &str = "none";

/// Whether a task meets its deadline in every run that the model allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Proven: every job of every run meets its deadline.
    Meets,
    /// Proven: some run that the model allows misses, or comes as close to a miss as one likes and no closer
    /// bound exists (a supremum above the deadline).
    Misses,
    /// Neither is proven.
    Unknown,
}

/// Whether every task meets its deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedulable {
    /// Every task meets.
    Yes,
    /// Some task misses.
    No,
    /// No task is known to miss, and not every task is known to meet.
    Unknown,
}

impl Schedulable {
    /// The answer for a set from those of its members.
    #[must_use]
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Schedulable {
        let mut all = Schedulable::Yes;
        for verdict in verdicts {
            match verdict {
                Verdict::Misses => return Schedulable::No,
                Verdict::Unknown => all = Schedulable::Unknown,
                Verdict::Meets => {}
            }
        }
        all
    }
}

/// What one test says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TestResult {
    /// The test's name, as `fp-preemptive`.
    pub test: &'static str,
    /// Its answer.
    pub verdict: Verdict,
    /// Its bound on the response time, `None` where it gives none.
    #[serde(rename = "response_ns")]
    pub response: Option<Span>,
    /// Whether the bound is the least one (or, without a bound, whether the answer is necessary and sufficient).
    pub exact: bool,
    /// A key of `docs/references.bib`.
    pub source: &'static str,
    /// A restriction or the reason of an unknown, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a miss can be seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum MissWitness {
    /// `simulate --replay` runs this into the miss.
    Pattern {
        /// The pattern.
        pattern: ReleasePattern,
    },
    /// Runs come as close to the least upper bound as one likes, but in whole nanoseconds none exceeds the deadline; or, with fixed offsets, none does
    /// where equals that are released at one instant run in the order of the file.
    SupremumOnly,
    /// A miss takes more than 10^8 events, or a longer search than the options allow.
    TooFarToReplay,
}

/// The answer for one task: that of its best applicable test, and all the others.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskVerdict {
    /// The task's name.
    pub name: String,
    /// Its processor.
    #[serde(serialize_with = "cpu_number")]
    pub cpu: CpuId,
    /// The server that serves it: then its deadline is soft, and its verdict is `meets` or `unknown` and does not
    /// count in [`Analysis::schedulable`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_by: Option<String>,
    /// Whether it meets its deadline.
    pub verdict: Verdict,
    /// The best bound on its response time from the nominal arrival, `None` where no test gives one.
    #[serde(rename = "response_ns")]
    pub response: Option<Span>,
    /// With mixed criticality: the bound for jobs that no change of the mode meets.
    #[serde(rename = "low_mode_response_ns", skip_serializing_if = "Option::is_none")]
    pub low_mode: Option<Span>,
    /// Its relative deadline, `None` for an aperiodic task without one.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
    /// The test that gave verdict and bound; `none` where no test knows the system.
    pub test: &'static str,
    /// Whether the bound is the least upper bound; without a bound, whether the verdict is proved either way: a miss by
    /// overload is.
    pub exact: bool,
    /// A key of `docs/references.bib`; empty where there is no test.
    pub source: &'static str,
    /// Longest time that a less important task may hold the processor against it; `None` where no test knows.
    #[serde(rename = "blocking_ns")]
    pub blocking: Option<Span>,
    /// The longest non-preemptive segment that it may have without more blocking to more important tasks than there
    /// is already; `None` where no task is more important, and under EDF.
    #[serde(rename = "allowed_segment_ns")]
    pub allowed_segment: Option<Span>,
    /// Every test that applies, the deciding one first.
    pub tests: Vec<TestResult>,
    /// Of a task that misses: how it can be seen, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<MissWitness>,
    /// How much the wcet can grow with every task of the processor still meeting; `None` where they do not all meet,
    /// or it was not asked for.
    #[serde(rename = "slack_ns", skip_serializing_if = "Option::is_none")]
    pub slack: Option<Span>,
    /// For a task that is not proven to meet: single changes with which it would be. Empty where none was asked for
    /// or none helps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

impl TaskVerdict {
    /// The verdict of the best of `tests`: a proof of either kind before none, exact before sufficient, then the
    /// lower bound; a test outside whose assumptions the task lies comes last. `None` where there is no test.
    #[must_use]
    pub fn best_of(
        name: String,
        cpu: CpuId,
        deadline: Option<Span>,
        blocking: Span,
        mut tests: Vec<TestResult>,
    ) -> Option<TaskVerdict> {
        tests.sort_by_key(|t| {
            let bound = t.response.unwrap_or(Span::MAX);
            // Of those that prove nothing, one that was applied says more.
            let is_applied = !t.note.as_deref().is_some_and(|note| note.starts_with("not applied"));
            (t.verdict == Verdict::Unknown, t.response.is_none(), !is_applied, !t.exact, bound)
        });
        let best = tests.first()?;
        Some(TaskVerdict {
            name,
            cpu,
            served_by: None,
            verdict: best.verdict,
            response: best.response,
            low_mode: None,
            deadline,
            test: best.test,
            exact: best.exact,
            source: best.source,
            blocking: Some(blocking),
            allowed_segment: None,
            tests,
            witness: None,
            slack: None,
            remedies: Vec::new(),
        })
    }
}

impl TaskVerdict {
    /// Takes back a proof that rests on something that is not proven.
    pub(crate) fn withdraw(&mut self, why: &str) {
        (self.verdict, self.exact, self.response) = (Verdict::Unknown, false, None);
        for test in &mut self.tests {
            if test.verdict == Verdict::Meets {
                (test.verdict, test.exact, test.response) = (Verdict::Unknown, false, None);
                test.note = Some(why.to_owned());
            }
        }
    }

    /// Takes over the proof of a miss from another verdict about the same task, without its bound.
    pub(crate) fn take_over(&mut self, other: &TaskVerdict, why: &str) {
        (self.verdict, self.test, self.source) = (other.verdict, other.test, other.source);
        (self.response, self.exact) = (None, false);
        if let Some(test) = other.tests.first() {
            let note = Some(why.to_owned());
            self.tests.insert(0, TestResult { response: None, exact: false, note, ..test.clone() });
        }
    }
}

/// The answer for a whole system.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// `horolog.analysis/1`.
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// Long-run share of the busiest processor that tasks and interference ask for, for display; decisions are
    /// taken on exact numbers. `None` where no test knows the system.
    pub utilisation: Option<f64>,
    /// Whether every task meets that no server serves, and every device with a hard deadline.
    pub schedulable: Schedulable,
    /// One answer a task, in the order of the file.
    pub tasks: Vec<TaskVerdict>,
    /// One answer a server, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerVerdict>,
    /// One answer a device, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceVerdict>,
    /// Tests that answer for a whole processor at once.
    pub processors: Vec<ProcessorVerdict>,
    /// Why something is not proved, in words, where one value of the file is the reason: with another one it would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What a reader should know about the results, in words.
    pub notes: Vec<String>,
}

/// Tests that answer for a whole processor at once.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProcessorVerdict {
    /// Which processor.
    #[serde(serialize_with = "cpu_number")]
    pub cpu: CpuId,
    /// The cluster of which it is the first processor: then all else is about the whole cluster, and a share is that of each of its processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Long-run share that tasks and interference ask for.
    pub utilisation: f64,
    /// Set tests, without bounds on single tasks.
    pub tests: Vec<TestResult>,
    /// Utilisation, exact.
    pub utilisation_exact: Utilisation,
    /// How far from the edge of schedulability; `None` where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
}

/// Σ C/T of the tasks with their costs, interrupts and interference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Utilisation {
    /// The reduced fraction as text, `"43/100"`; `None` for more than a thousand terms.
    pub exact: Option<String>,
    /// Parts per billion, rounded up; `None` beyond 64 bits.
    pub ppb: Option<u64>,
}

/// What can be said of a device's events.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceVerdict {
    /// The device's name.
    pub name: String,
    /// Its processor.
    #[serde(serialize_with = "cpu_number")]
    pub cpu: CpuId,
    /// The word of the system file.
    pub service: &'static str,
    /// Whether every event is worked off by the deadline: `meets` or `unknown`.
    pub verdict: Verdict,
    /// Whether the deadline is only a wish, or there is none: then the verdict does not count in
    /// [`Analysis::schedulable`].
    pub soft: bool,
    /// A bound on the time from an event to when it is worked off, for events that are not lost.
    #[serde(rename = "response_ns")]
    pub response: Option<Span>,
    /// The deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
    /// Whether no event is lost for certain: as many as can come within the bound fit into the ring.
    pub keeps_all: bool,
    /// The test that gave the bound.
    pub test: &'static str,
    /// A key of `docs/references.bib`.
    pub source: &'static str,
    /// The reason of an unknown, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a server may be and what it promises.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ServerVerdict {
    /// The server's name.
    pub name: String,
    /// Its processor.
    #[serde(serialize_with = "cpu_number")]
    pub cpu: CpuId,
    /// The word of the system file.
    pub kind: &'static str,
    /// Its capacity, where it has one.
    #[serde(rename = "budget_ns", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// Its replenishment period, where it has one.
    #[serde(rename = "period_ns", skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// Whether its whole capacity is certain to be served in each period, where it has one: what the response bounds of
    /// its tasks rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<bool>,
    /// In a tree of schedulers: the time within which the whole capacity is served, from when it is there and work is.
    #[serde(rename = "completion_ns", skip_serializing_if = "Option::is_none")]
    pub completion: Option<Span>,
    /// The largest capacity for its period with which every task below it meets its deadline; `None` where it has
    /// none, or none is safe, or none was found (the note says which).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_budget: Option<LargestBudget>,
    /// What dual priority and slack stealing rest on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub promotions: Vec<PromotionTime>,
    /// What a reader should know, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The largest safe capacity of a server for a period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LargestBudget {
    /// In whole nanoseconds, rounded down: what a file can say.
    #[serde(rename = "budget_ns")]
    pub budget: Span,
    /// The exact ratio in nanoseconds as text, `"16000000/5"`; `None` where only whole nanoseconds were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact_ns: Option<String>,
    /// The task that binds it, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// How much the given budget can grow, or has to shrink (below zero).
    #[serde(rename = "headroom_ns")]
    pub headroom: i64,
}

/// What dual priority and slack stealing rest on, for one hard task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PromotionTime {
    /// The task's name.
    pub task: String,
    /// Its response time under plain fixed priorities.
    #[serde(rename = "response_ns")]
    pub response: Span,
    /// D − R, after its arrival: when dual priority promotes its job at the latest. `None` where R is above D.
    #[serde(rename = "promotion_ns")]
    pub promotion: Option<Span>,
    /// How long soft work can execute at once when all tasks are released together, by slack stealing's estimate.
    #[serde(rename = "slack_ns", skip_serializing_if = "Option::is_none")]
    pub slack: Option<Span>,
}

fn cpu_number<S: serde::Serializer>(cpu: &CpuId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(cpu.0)
}
