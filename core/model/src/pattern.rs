//! A release pattern: exactly when each task's jobs arrive and become ready, how long they execute and which
//! path they take. The JSON form is `horolog.pattern/1`.
//!
//! An analysis that says "misses" hands one out as its witness; `sim::replay` runs it. The pattern is symbolic
//! (a task's jobs follow one rule each), so that a witness 10^8 events long is a few lines of text. It is plain
//! data: `sim::replay` checks it against the system and refuses one that leaves the model (jobs closer than the
//! separation, a job readier than its arrival or later than its jitter allows, an execution above the wcet).

use crate::SegmentId;
use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// When every task's jobs arrive and what they execute. All times count from the origin of the replay.
///
/// ```
/// use horolog_model::pattern::{ReleasePattern, TaskPattern, Witness};
/// use horolog_time::Span;
/// // The camera starts a non-preemptive segment 1 ns before the control task's critical instant.
/// let pattern = ReleasePattern::new("two loops", Span::from_ns(10_001))
///     .task(TaskPattern::periodic("control", Span::from_ns(1)))
///     .task(TaskPattern::periodic("camera", Span::ZERO))
///     .witness(Witness { task: "control".into(), job: 0, response_ns: None });
/// assert_eq!(pattern.tasks.len(), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleasePattern {
    /// Always [`ReleasePattern::SCHEMA`].
    pub schema: String,
    /// The system's name; only for the reader.
    pub system: String,
    /// [`crate::System::digest`] of the system, as its file says it, that the pattern was made for; `None`: not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_digest: Option<String>,
    /// How long to replay. Jobs that arrive before it are released; a job unfinished at it counts as missed
    /// only if its deadline is not after it.
    pub until_ns: Span,
    /// The instant of the replay's time axis at which the system starts. It matters to tasks with an `offset`
    /// alone: their first arrival must be `start_ns + offset`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_ns: Span,
    /// One entry for each task that releases jobs, named as in the system. A task without one releases none.
    pub tasks: Vec<TaskPattern>,
    /// The job that is said to miss its deadline, if the pattern is a witness. The replay ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
}

/// The job that a pattern is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// Its task's name.
    pub task: String,
    /// Which of the task's jobs in this pattern, from 0.
    pub job: u64,
    /// The response time that it must show, where the analysis knows it exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Span>,
}

/// The jobs of one task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskPattern {
    /// The task's name.
    pub task: String,
    /// When its jobs arrive and become ready.
    pub arrivals: PatternArrivals,
    /// How long its jobs execute; in an explicit list the jobs may say otherwise.
    #[serde(default)]
    pub execution: PatternExecution,
    /// The path that its jobs take through a segment graph; `None`: the longest (of several, the one whose
    /// segments have the smallest indices).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<SegmentId>>,
}

/// When a task's jobs arrive and become ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "rule")]
pub enum PatternArrivals {
    /// Job k (from 0) arrives at `first_ns + k · separation` (the task's period or separation) and becomes
    /// ready at the later of its arrival and `ready_from_ns`.
    ///
    /// The worst case with release jitter J around a critical instant t is `first_ns = t - J`,
    /// `ready_from_ns = t`: the first job is as late as it may be, the following ones come as early as they may.
    Periodic {
        /// Nominal arrival of job 0, from which its response time and deadline count.
        first_ns: Span,
        /// No job is ready before this.
        #[serde(default, skip_serializing_if = "is_zero")]
        ready_from_ns: Span,
        /// Only so many jobs (sporadic tasks); `None`: until the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jobs: Option<u64>,
    },
    /// These jobs and no others.
    Explicit {
        /// In the order of their arrivals.
        jobs: Vec<PatternJob>,
    },
}

/// One job of an explicit list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternJob {
    /// Nominal arrival.
    pub arrival_ns: Span,
    /// How much later the job becomes ready; at most the release jitter (and the platform's release latency).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ns: Span,
    /// What it executes, one value a segment on its path (one in all without segments); `None`: the task's rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ns: Option<Vec<Span>>,
    /// Its path through the segment graph; `None`: the task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<SegmentId>>,
}

/// How long the jobs of a task execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatternExecution {
    /// Every job, or segment, its wcet.
    #[default]
    Wcet,
    /// Every job, or segment, its bcet.
    Bcet,
}

impl ReleasePattern {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.pattern/1";

    /// A pattern without tasks, to add some with [`ReleasePattern::task`].
    #[must_use]
    pub fn new(system: &str, until_ns: Span) -> ReleasePattern {
        ReleasePattern {
            schema: Self::SCHEMA.to_owned(),
            system: system.to_owned(),
            system_digest: None,
            until_ns,
            start_ns: Span::ZERO,
            tasks: Vec::new(),
            witness: None,
        }
    }

    /// Adds a task's jobs.
    #[must_use]
    pub fn task(mut self, task: TaskPattern) -> ReleasePattern {
        self.tasks.push(task);
        self
    }

    /// Says which job the pattern is about.
    #[must_use]
    pub fn witness(mut self, witness: Witness) -> ReleasePattern {
        self.witness = Some(witness);
        self
    }
}

impl TaskPattern {
    /// Jobs from `first_ns` on, one every period or separation, each ready at its arrival, executing its wcet
    /// on the longest path.
    #[must_use]
    pub fn periodic(task: &str, first_ns: Span) -> TaskPattern {
        TaskPattern::late(task, first_ns, Span::ZERO)
    }

    /// Like [`TaskPattern::periodic`], with no job ready before `ready_from_ns`: release jitter at its worst.
    #[must_use]
    pub fn late(task: &str, first_ns: Span, ready_from_ns: Span) -> TaskPattern {
        TaskPattern {
            task: task.to_owned(),
            arrivals: PatternArrivals::Periodic { first_ns, ready_from_ns, jobs: None },
            execution: PatternExecution::Wcet,
            path: None,
        }
    }

    /// These jobs, each ready at its arrival plus its delay.
    #[must_use]
    pub fn explicit(task: &str, jobs: Vec<PatternJob>) -> TaskPattern {
        TaskPattern {
            task: task.to_owned(),
            arrivals: PatternArrivals::Explicit { jobs },
            execution: PatternExecution::Wcet,
            path: None,
        }
    }

    /// The same jobs on this path through the segment graph.
    #[must_use]
    pub fn on_path(mut self, path: Vec<SegmentId>) -> TaskPattern {
        self.path = Some(path);
        self
    }
}

/// Serde hands a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(span: &Span) -> bool {
    span.as_ns() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reads_back_to_the_same_pattern() {
        let job = PatternJob {
            arrival_ns: Span::from_ns(7),
            execution_ns: Some(vec![Span::from_ns(3)]),
            ..Default::default()
        };
        let pattern = ReleasePattern::new("s", Span::from_ns(100))
            .task(TaskPattern::late("a", Span::from_ns(3), Span::from_ns(5)).on_path(vec![0, 2]))
            .task(TaskPattern::explicit("b", vec![job]))
            .witness(Witness { task: "a".into(), job: 4, response_ns: Some(Span::from_ns(9)) });
        let text = serde_json::to_string(&pattern).expect("a pattern is plain data");
        assert!(text.contains(r#""schema":"horolog.pattern/1""#), "{text}");
        assert!(text.contains(r#"{"rule":"periodic","first_ns":3,"ready_from_ns":5}"#), "{text}");
        assert_eq!(serde_json::from_str::<ReleasePattern>(&text).expect("it was just printed"), pattern);
    }
}
