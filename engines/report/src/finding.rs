//! What `verify` found, as plain data.

use horolog_time::{Instant, Span};
use serde::Serialize;

/// Whose fault a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingClass {
    /// A task or the machine file broke an assumption.
    ModelViolated,
    /// The assumptions held and the bound did not.
    BoundViolated,
    /// The kernel's own record shows something that the model does not have.
    MachineDisturbed,
    /// The schedule on record is not the one that its demands give by the system's rules.
    ScheduleDiffers,
    /// What is on record does not tell which of the others it is.
    CannotTell,
    /// None of these: told for completeness (a divergence, a loss).
    Note,
}

/// One finding, with its place on the timeline where it has one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Whose fault.
    pub class: FindingClass,
    /// What kind, in two or three words ("wcet exceeded", "foreign thread", "interrupt").
    pub kind: String,
    /// What happened, in a sentence with numbers.
    pub text: String,
    /// The run, as an index into [`crate::ReportData::runs`].
    pub run: Option<usize>,
    /// The task, as an index into [`crate::ReportData::tasks`].
    pub task: Option<u32>,
    /// The job.
    pub job: Option<u64>,
    /// The processor.
    pub cpu: Option<u32>,
    /// When it began, on the clock of the run's records.
    pub time_ns: Option<Instant>,
    /// How long it lasted.
    pub length_ns: Option<Span>,
    /// The group that it belongs to, as an index into [`crate::ReportData::groups`].
    pub group: Option<usize>,
    /// How many findings this row stands for; at least 1.
    pub count: u64,
}

/// How often one check found one thing, with the findings that are not listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FindingGroup {
    /// Whose fault.
    pub class: FindingClass,
    /// What kind, in two or three words.
    pub kind: String,
    /// Which task, thread or interrupt.
    pub subject: String,
    /// The run, as an index into [`crate::ReportData::runs`].
    pub run: usize,
    /// How often.
    pub count: u64,
    /// The greatest excess over what is allowed.
    pub worst_excess_ns: Span,
}

impl Finding {
    /// A finding without a place.
    #[must_use]
    pub fn new(class: FindingClass, kind: impl Into<String>, text: impl Into<String>) -> Finding {
        Finding {
            class,
            kind: kind.into(),
            text: text.into(),
            run: None,
            task: None,
            job: None,
            cpu: None,
            time_ns: None,
            length_ns: None,
            group: None,
            count: 1,
        }
    }
}
