//! What a certificate says: `horolog.certificate/1`.

use serde::{Deserialize, Serialize};

/// Proofs of verdicts about one system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Always [`Certificate::SCHEMA`].
    pub schema: String,
    /// The system's name.
    pub system: String,
    /// What is claimed, task by task. A task whose verdict is unknown has no claim.
    pub claims: Vec<Claim>,
}

impl Certificate {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.certificate/1";
}

/// One task's verdict and its proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The task's name.
    pub task: String,
    /// The verdict.
    pub verdict: Proven,
    /// Why it holds.
    pub proof: Proof,
}

/// A verdict that can be proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proven {
    /// Every job meets its deadline.
    Meets,
    /// Some run misses, or its least upper bound lies above the deadline.
    Misses,
}

/// Why a verdict holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Proof {
    /// A response time under fixed priorities.
    FixedPriority(FixedPriorityProof),
    /// Every window of the processor holds the work that is due in it, under EDF: every task of it meets.
    EdfWindows(EdfWindowsProof),
    /// One job's deadline is missed under EDF.
    EdfMiss(EdfMissProof),
    /// Together these tasks, all at least as important as the claim's (under EDF any of the processor), ask for more than the whole processor.
    Overload {
        /// Their names, in the order of the file.
        tasks: Vec<String>,
    },
}

/// A bound on a response time under fixed priorities.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedPriorityProof {
    /// The bound: the largest response of all `jobs`.
    pub bound_ns: u64,
    /// Whether it is the least upper bound. A miss needs that.
    pub least: bool,
    /// How far jobs must be looked at.
    pub horizon: Horizon,
    /// Every job within the horizon that could be the worst, by rising readiness, each with all its endings.
    pub jobs: Vec<JobProof>,
}

/// How far jobs must be looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "rule")]
pub enum Horizon {
    /// To the end of the busy period: the last of these iterates of the level's demand, from 1, which is its own
    /// demand.
    BusyPeriod {
        /// The iterates, ns.
        iterates: Vec<u64>,
    },
    /// The level's utilisation is exactly 1 and the busy period never ends: responses repeat after this.
    Repeats {
        /// The least common multiple of the level's separations, ns.
        hyperperiod_ns: u64,
    },
}

/// One job, with one way that it can end. Times count from the start of the busy period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobProof {
    /// When it becomes ready, after its full jitter.
    pub ready_ns: u64,
    /// Its work before its last segment; a preemptive job's whole work.
    pub before_ns: u64,
    /// Its last segment; 0 for a preemptive job.
    pub last_ns: u64,
    /// The iterates that lead to the start of its last segment (a preemptive job's end), from the work that is
    /// there whatever arrives later. The last is its own demand.
    pub start_iterates: Vec<u64>,
    /// The iterates from that start to its end, which only interrupts and interference delay; empty for a
    /// preemptive job.
    pub finish_iterates: Vec<u64>,
}

/// The processor demand criterion, window by window from the longest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdfWindowsProof {
    /// Longer windows than this need no look, but for those that a non-preemptive job may block.
    pub horizon_ns: u64,
    /// Why.
    pub rule: EdfHorizonRule,
    /// Windows with what they need, from the longest on. Between one entry's need and the entry itself every window
    /// is proved by it; below the last one's need no window holds a deadline.
    pub windows: Vec<EdfWindow>,
}

/// Why windows beyond a horizon need no look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdfHorizonRule {
    /// Utilisation is below 1, and from the horizon on the straight line above the demand is below the window.
    LinearBound,
    /// The horizon holds all the work that can be released in it: no busy period is longer.
    BusyPeriod,
    /// Utilisation is exactly 1, and the horizon spans a hyperperiod of the demand's pattern.
    Hyperperiod,
}

/// One window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdfWindow {
    /// Its length.
    pub window_ns: u64,
    /// A time that holds the work due in the window, what may block it, and what is above all tasks in that time; at
    /// most the window.
    pub needed_ns: u64,
}

/// A job that misses, in the busy period that is worst for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdfMissProof {
    /// Its deadline, from the start of the busy period.
    pub deadline_at_ns: u64,
    /// The task whose non-preemptive job has just begun.
    pub blocker: Option<String>,
    /// The iterates towards its end (a non-preemptive job's start), from the work that is there whatever arrives
    /// later; the last proves the miss. Empty where the job's own release jitter and wcet alone exceed the deadline.
    pub iterates: Vec<u64>,
}
