//! Which systems to draw.

use horolog_model::{Policy, Preemption};
use horolog_time::Span;

/// Which systems to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The policies, at least one.
    pub policies: Vec<Policy>,
    /// The preemption modes by their words, at least one; `deferred` is left out under EDF.
    pub preemptions: Vec<&'static str>,
    /// At most so many tasks, at least 1.
    pub max_tasks: u64,
    /// At most so many processors, at least 1.
    pub max_cpus: u64,
    /// Periods are from 1 ns to this.
    pub max_period: Span,
    /// Every wcet is at most this share of the period divided by the number of tasks, in parts per million, and
    /// at least 1 ns.
    pub load_ppm: u64,
    /// At most so many segments of a deferred task, at least 1.
    pub max_segments: u64,
    /// Whether segments may branch.
    pub branches: bool,
    /// Whether tasks may be sporadic.
    pub sporadic: bool,
    /// Whether tasks may be aperiodic.
    pub aperiodic: bool,
    /// Whether tasks may have offsets.
    pub offsets: bool,
    /// Whether tasks may have release jitter.
    pub jitter: bool,
    /// Whether deadlines may differ from the period; above it too.
    pub deadlines: bool,
    /// Whether bcets may lie below the wcets.
    pub short_bcets: bool,
    /// Whether tasks may share a priority.
    pub equal_priorities: bool,
    /// Whether an assignment may give the priorities.
    pub assignments: bool,
    /// At most so many interferences.
    pub max_interferences: u64,
    /// Whether servers may serve some of the tasks.
    pub servers: bool,
    /// Whether the platform may have a tick, costs and a release latency.
    pub costs: bool,
    /// Whether tasks may have bodies, overrun policies and execution times of every kind.
    pub bodies: bool,
    /// Whether names and durations may be odd: dots, quotes, other scripts; up to 2^64 - 1 ns.
    pub extremes: bool,
}

impl Shape {
    /// Everything that the model allows, servers apart.
    #[must_use]
    pub fn everything() -> Shape {
        Shape {
            policies: vec![Policy::FixedPriority, Policy::Edf],
            preemptions: Preemption::WORDS.to_vec(),
            max_tasks: 6,
            max_cpus: 4,
            max_period: Span::from_ns(1_000_000_000),
            load_ppm: 1_500_000,
            max_segments: 6,
            branches: true,
            sporadic: true,
            aperiodic: true,
            offsets: true,
            jitter: true,
            deadlines: true,
            short_bcets: true,
            equal_priorities: true,
            assignments: true,
            max_interferences: 3,
            servers: false,
            costs: true,
            bodies: true,
            extremes: true,
        }
    }

    /// Everything that the model allows, and servers on half of the processors.
    #[must_use]
    pub fn with_servers() -> Shape {
        Shape { servers: true, ..Shape::everything() }
    }

    /// Small integers on one processor, for exhaustive oracles: at most three periodic tasks with periods up to
    /// 12 ns and distinct explicit priorities; neither costs, jitter, offsets nor interferences.
    #[must_use]
    pub fn small() -> Shape {
        Shape {
            policies: vec![Policy::FixedPriority],
            preemptions: Preemption::WORDS.to_vec(),
            max_tasks: 3,
            max_cpus: 1,
            max_period: Span::from_ns(12),
            load_ppm: 1_200_000,
            max_segments: 3,
            branches: true,
            sporadic: false,
            aperiodic: false,
            offsets: false,
            jitter: false,
            deadlines: true,
            short_bcets: false,
            equal_priorities: false,
            assignments: false,
            max_interferences: 0,
            servers: false,
            costs: false,
            bodies: false,
            extremes: false,
        }
    }
}
