//! Everything that the page shows, as plain data.

use crate::{Closing, DeviceRow, Finding, FindingGroup, Packed, Reached, Run, RunKind, ServerRow, Verdict};
use horolog_time::Span;
use serde::Serialize;

/// Everything that the page shows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportData {
    /// The system's name.
    pub system: String,
    /// The policy in words ("fixed priority").
    pub policy: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The closing line, as the contract has it; `None`: the page shows the verdict's sentence alone.
    pub closing: Option<Closing>,
    /// The tasks in the order of the file.
    pub tasks: Vec<TaskRow>,
    /// The servers and schedulers in the order of the file.
    pub servers: Vec<ServerRow>,
    /// The devices in the order of the file.
    pub devices: Vec<DeviceRow>,
    /// The runs, simulated first.
    pub runs: Vec<Run>,
    /// What `verify` found, the gravest first.
    pub findings: Vec<Finding>,
    /// The findings by what they are due to, with those that are not listed.
    pub groups: Vec<FindingGroup>,
    /// How many further findings were left out of the list.
    pub findings_omitted: u64,
    /// Quick facts: utilisation, how far every wcet is from the edge, slack.
    pub facts: Vec<Fact>,
    /// How to repeat it.
    pub provenance: Provenance,
    /// The normalised system file.
    pub system_file: String,
    /// What the reader must know to read the numbers right.
    pub notes: Vec<String>,
    /// The JSON of the contract, for whoever saves it from the page; `None`: the page offers none.
    pub json: Option<Packed>,
}

impl ReportData {
    /// How far the measured responses went, by the tables.
    #[must_use]
    pub fn reached(&self) -> Reached {
        let measured = self.runs.iter().filter(|run| run.kind == RunKind::Measured);
        let rows = measured.flat_map(|run| self.tasks.iter().zip(&run.tasks));
        rows.map(|(task, seen)| {
            let above = |limit: Option<Span>| {
                limit.is_some_and(|limit| seen.outcome.response_ns_max.is_some_and(|most| most > limit))
            };
            if above(task.deadline_ns) || seen.outcome.missed > 0 {
                Reached::AboveADeadline
            } else if above(task.bound_ns) {
                Reached::AboveABound
            } else {
                Reached::WithinBounds
            }
        })
        .max()
        .unwrap_or_default()
    }
}

/// What the analysis says about one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskVerdict {
    /// The deadline is proved to hold.
    Meets,
    /// The deadline is proved not to hold.
    Misses,
    /// No test decides.
    #[default]
    Unknown,
}

impl TaskVerdict {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TaskVerdict::Meets => "meets",
            TaskVerdict::Misses => "misses",
            TaskVerdict::Unknown => "unknown",
        }
    }
}

/// What is proved of a task on a machine that costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FreeProof {
    /// What the analysis says.
    pub verdict: TaskVerdict,
    /// The bound of the response time.
    pub bound_ns: Option<Span>,
}

/// One task: what it is, and what was proved.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskRow {
    /// Its name.
    pub name: String,
    /// The processor.
    pub cpu: u32,
    /// Its priority, larger is more important; `None` under EDF.
    pub priority: Option<i64>,
    /// Its preemption mode in words ("preemptive", "deferred, 3 segments").
    pub preemption: String,
    /// Period or least separation.
    pub period_ns: Option<Span>,
    /// Worst-case execution time.
    pub wcet_ns: Span,
    /// Relative deadline.
    pub deadline_ns: Option<Span>,
    /// What the analysis says.
    pub verdict: TaskVerdict,
    /// The bound of the response time.
    pub bound_ns: Option<Span>,
    /// The same without the machine's costs, where that was asked, too.
    pub without_costs: Option<FreeProof>,
    /// Whether the bound is the least upper bound.
    pub exact: bool,
    /// The test's name.
    pub test: String,
    /// The test's source (key of the bibliography).
    pub source: String,
    /// How much the wcet may grow with every deadline still met.
    pub slack_ns: Option<Span>,
    /// Where the time goes (`analyze --explain`), plain text.
    pub explain: String,
}

/// One quick fact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Its name ("Utilisation").
    pub name: String,
    /// Its value with unit ("0.43").
    pub value: String,
    /// What it means or where it comes from; may be empty.
    pub note: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl Into<String>, note: impl Into<String>) -> Fact {
        Fact { name: name.into(), value: value.into(), note: note.into() }
    }
}

/// How to repeat it: the command, the versions, the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Provenance {
    /// The exact command, as one would type it.
    pub command: String,
    /// When the report was made, as text with its time zone.
    pub created: String,
    /// Name and version of each program that took part.
    pub versions: Vec<(String, String)>,
    /// Facts of the machine: kernel, CPU model, preemption model, …
    pub machine: Vec<(String, String)>,
}
