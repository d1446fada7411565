//! A task: when its jobs arrive, how long they execute, by when they must be done.

use crate::{Body, CpuId, ExecutionTimes, Priority, Section, SegmentGraph};
use horolog_time::Span;

/// When a task's jobs arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Arrival {
    /// One every `period`, exactly.
    Periodic {
        /// Time between arrivals, above zero.
        period: Span,
    },
    /// At least `separation` apart.
    Sporadic {
        /// Least time between arrivals, above zero.
        separation: Span,
    },
    /// At these instants after the start, ascending, at least one.
    Aperiodic {
        /// The instants.
        arrivals: Vec<Span>,
    },
}

/// Whether and where a job may be preempted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Preemption {
    /// Anywhere.
    #[default]
    Preemptive,
    /// Nowhere: a started job runs to its end.
    NonPreemptive,
    /// Only at the preemption points between segments.
    Deferred(SegmentGraph),
}

/// What happens to a job that executes longer than its wcet (decision 0010).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OverrunPolicy {
    /// Count it and let it run.
    #[default]
    Count,
    /// End the job where its code allows (at its next preemption point, or its end) and skip the next release.
    Skip,
    /// Let the rest of the job run below every task.
    Demote,
    /// Stop the task.
    Stop,
    /// End the job there, without completing. In a simulation alone: nobody can end a thread's job from outside.
    Drop,
    /// Let it run, and ask for the mode of this name.
    Mode(String),
}

impl OverrunPolicy {
    /// The words of the system file.
    pub const WORDS: [&'static str; 5] = ["count", "skip", "demote", "stop", "drop"];

    /// The word of the system file; `None` for a mode, which the file gives in a table.
    #[must_use]
    pub const fn word(&self) -> Option<&'static str> {
        match self {
            Self::Count => Some("count"),
            Self::Skip => Some("skip"),
            Self::Demote => Some("demote"),
            Self::Stop => Some("stop"),
            Self::Drop => Some("drop"),
            Self::Mode(_) => None,
        }
    }

    /// The policy that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<OverrunPolicy> {
        let all = [Self::Count, Self::Skip, Self::Demote, Self::Stop, Self::Drop];
        all.into_iter().find(|policy| policy.word() == Some(word))
    }
}

/// How much depends on a task, and with it how far its worst case is trusted (decision 0021).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Criticality {
    /// Its jobs may be given up while a more critical task executes beyond its `wcet`.
    Low,
    /// Its deadlines hold in every mode, with this longer worst case beside the `wcet`.
    High {
        /// The worst-case execution time of a job for which everything is believed, at least the `wcet`.
        wcet: Span,
        /// Under EDF: the relative deadline by which its jobs are ordered until the mode holds that its overruns ask for. It is no
        /// deadline that could be missed. `None`: not resolved yet, or its own deadline.
        virtual_deadline: Option<Span>,
    },
}

impl Criticality {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["high", "low"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::High { .. } => "high",
            Self::Low => "low",
        }
    }
}

/// One task.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Its name, unique within the system.
    pub name: String,
    /// When its jobs arrive.
    pub arrival: Arrival,
    /// Relative deadline; given for every periodic and sporadic task (the default is the period), `None` only for
    /// aperiodic and for served tasks without one. That of a served task is soft.
    pub deadline: Option<Span>,
    /// Worst-case execution time of a job, above zero; for deferred tasks the longest path.
    pub wcet: Span,
    /// How much depends on it; `None`: the file has one level alone.
    pub criticality: Option<Criticality>,
    /// Best-case execution time, at most the wcet.
    pub bcet: Span,
    /// Arrival of the first job after the start; `None`: any phase.
    pub offset: Option<Span>,
    /// Under dual priority: how long after its arrival a hard job goes before the soft ones. `None`: not resolved yet, or there
    /// is no safe time.
    pub promotion: Option<Span>,
    /// Release jitter: how late after its arrival a job may become ready.
    pub jitter: Span,
    /// `None` under EDF, for a served task, or before [`crate::System::with_explicit_priorities`] resolved an assignment.
    pub priority: Option<Priority>,
    /// The processor that it runs on.
    pub cpu: CpuId,
    /// Whether and where a job may be preempted.
    pub preemption: Preemption,
    /// What happens at an overrun.
    pub overrun: OverrunPolicy,
    /// How long jobs execute in a simulation.
    pub execution: ExecutionTimes,
    /// Where its jobs hold resources.
    pub sections: Vec<Section>,
    /// Whether its deadline is only a wish (`constraint = "soft"`): it is analysed and measured as every task, and counts in no
    /// verdict and no exit status.
    pub is_soft: bool,
    /// What a run executes; `None`: spin for the wcet's 90 percent.
    pub body: Option<Body>,
}

impl Preemption {
    /// The words of the system file.
    pub const WORDS: [&'static str; 3] = ["preemptive", "non-preemptive", "deferred"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Preemptive => "preemptive",
            Self::NonPreemptive => "non-preemptive",
            Self::Deferred(_) => "deferred",
        }
    }
}

impl Task {
    /// A preemptive task with all else as it is where the file says nothing: deadline the period, best case the wcet, no
    /// offset, jitter or priority, on CPU 0.
    #[must_use]
    pub fn new(name: &str, arrival: Arrival, wcet: Span) -> Self {
        let mut task = Self {
            name: name.to_owned(),
            arrival,
            deadline: None,
            wcet,
            criticality: None,
            bcet: wcet,
            offset: None,
            promotion: None,
            jitter: Span::ZERO,
            priority: None,
            cpu: CpuId(0),
            preemption: Preemption::Preemptive,
            overrun: OverrunPolicy::Count,
            execution: ExecutionTimes::Wcet,
            sections: Vec::new(),
            is_soft: false,
            body: None,
        };
        task.deadline = task.separation();
        task
    }

    /// The period or least separation; `None` for aperiodic tasks.
    #[must_use]
    pub fn separation(&self) -> Option<Span> {
        match self.arrival {
            Arrival::Periodic { period } => Some(period),
            Arrival::Sporadic { separation } => Some(separation),
            Arrival::Aperiodic { .. } => None,
        }
    }

    /// The segment graph of a deferred task.
    #[must_use]
    pub fn segment_graph(&self) -> Option<&SegmentGraph> {
        match &self.preemption {
            Preemption::Deferred(graph) => Some(graph),
            _ => None,
        }
    }

    /// The longest that a job executes in any mode: the high wcet of a task of high criticality, and else the wcet.
    pub fn wcet_of_any_mode(&self) -> Span {
        match self.criticality {
            Some(Criticality::High { wcet, .. }) => wcet,
            _ => self.wcet,
        }
    }

    /// The relative deadline that orders its jobs under EDF until the mode holds that its overruns ask for, where that is not its own.
    pub fn virtual_deadline(&self) -> Option<Span> {
        match self.criticality {
            Some(Criticality::High { virtual_deadline, .. }) => virtual_deadline,
            _ => None,
        }
    }

    /// Whether a job, or one of its segments, may execute longer than its wcet in a simulation.
    #[must_use]
    pub fn may_exceed(&self) -> bool {
        self.execution.may_exceed(self.wcet, self.segment_graph())
    }

    /// Whether a started job keeps the processor until it gives it up itself.
    #[must_use]
    pub fn is_non_preemptive_between_points(&self) -> bool {
        !matches!(self.preemption, Preemption::Preemptive)
    }
}
