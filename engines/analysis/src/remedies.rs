//! What a search for sensitivity answers: the scaling factor of a processor, and changes that help.

use horolog_model::{CpuId, System, TaskId};
use horolog_time::Span;
use serde::Serialize;

/// What would make a task meet its deadline by its own test, all else unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Remedy {
    /// A wcet of at most this.
    Wcet {
        /// The largest that passes.
        at_most_ns: Span,
    },
    /// A deadline of at least this.
    Deadline {
        /// The smallest that passes.
        at_least_ns: Span,
    },
    /// A period (or separation) of at least this.
    Period {
        /// The smallest that passes.
        at_least_ns: Span,
    },
    /// No non-preemptive stretch of other tasks longer than this.
    Blocking {
        /// The longest that passes.
        at_most_ns: Span,
        /// The tasks with a longer one: split their segments there, or make them preemptive.
        tasks: Vec<String>,
    },
    /// No section of these tasks that holds a resource longer than this; what they execute stays the same.
    Section {
        /// The longest that passes.
        at_most_ns: Span,
        /// The tasks with a longer one, all of which have to be shortened.
        tasks: Vec<String>,
    },
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wcet { at_most_ns } => write!(f, "a wcet of at most {at_most_ns} passes"),
            Self::Deadline { at_least_ns } => write!(f, "a deadline of at least {at_least_ns} passes"),
            Self::Period { at_least_ns } => write!(f, "a period of at least {at_least_ns} passes"),
            Self::Blocking { at_most_ns, tasks } if at_most_ns.is_zero() => {
                write!(f, "it passes with {} preemptive", tasks.join(", "))
            }
            Self::Blocking { at_most_ns, tasks } => {
                write!(f, "it passes with no segment of {} longer than {at_most_ns}", tasks.join(", "))
            }
            Self::Section { at_most_ns, tasks } => {
                write!(f, "it passes with no section of {} longer than {at_most_ns}", tasks.join(", "))
            }
        }
    }
}

/// A change of one task with which every hard deadline of its processor is proved to hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Help {
    /// The task to change.
    pub task: String,
    /// The change.
    #[serde(flatten)]
    pub change: Remedy,
}

impl std::fmt::Display for Help {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.change {
            Remedy::Wcet { at_most_ns } => write!(f, "a wcet of at most {at_most_ns} for {}", self.task),
            Remedy::Deadline { at_least_ns } => {
                write!(f, "a deadline of at least {at_least_ns} for {}", self.task)
            }
            Remedy::Period { at_least_ns } => {
                write!(f, "a period of at least {at_least_ns} for {}", self.task)
            }
            Remedy::Blocking { at_most_ns, tasks } if at_most_ns.is_zero() => {
                write!(f, "{} preemptive", tasks.join(", "))
            }
            Remedy::Blocking { at_most_ns, tasks } => {
                write!(f, "no segment of {} longer than {at_most_ns}", tasks.join(", "))
            }
            Remedy::Section { at_most_ns, tasks } => {
                write!(f, "no section of {} longer than {at_most_ns}", tasks.join(", "))
            }
        }
    }
}

/// What the scaling factor of a processor is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scaled {
    /// `wcet`, or `wcet and section` where tasks have some: these are scaled, too.
    pub what: &'static str,
    /// Whose deadlines are kept: `deadline`, or `hard deadline` where servers serve tasks, whose deadlines are left out.
    pub whose: &'static str,
    /// Whether deadlines of soft tasks are among them.
    pub has_soft: bool,
    /// Whose wcets stay as they are: ` but those of served tasks`, or nothing.
    pub but: &'static str,
}

impl Scaled {
    /// What it is about on this processor.
    #[must_use]
    pub fn of(system: &System, cpu: CpuId) -> Scaled {
        let tasks = || system.tasks_on(cpu);
        let is_served = |id: TaskId| system.server_of(id).is_some();
        let (whose, but) = match tasks().any(|(id, _)| is_served(id)) {
            true => ("hard deadline", " but those of served tasks"),
            false => ("deadline", ""),
        };
        Scaled {
            what: if tasks().any(|(_, task)| !task.sections.is_empty()) {
                "wcet and section"
            } else {
                "wcet"
            },
            whose,
            but,
            has_soft: tasks().any(|(id, _)| system.is_soft(id) && !is_served(id)),
        }
    }
}

/// How far one processor is from the edge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sensitivity {
    /// The largest scaling factor of all wcets with which every task meets, in parts per billion (1 000 000 000: as
    /// they are); `None` where not even the least passes, no task has a deadline, or the work allowed ran out.
    pub scaling_ppb: Option<u64>,
    /// Single changes with which every hard deadline of the processor is proved to hold, each tried; empty where they hold already, or
    /// none was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helps: Vec<Help>,
    /// What is missing or careful here, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
