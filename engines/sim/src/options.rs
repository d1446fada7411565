//! What a simulation may choose where the model leaves a range.

use horolog_model::{ExecutionTimes, SegmentId, System, Task, TaskId};
use horolog_time::Span;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a simulation runs.
///
/// ```
/// use horolog_sim::{Horizon, SimOptions};
/// use horolog_time::Span;
/// let second = Span::from_ms(1_000).expect("it fits");
/// let options = SimOptions { horizon: Horizon::Time(second), seed: 7, ..SimOptions::default() };
/// assert_eq!(options.max_events, u64::MAX);
/// ```
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// When it ends.
    pub horizon: Horizon,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// How long jobs execute.
    pub execution: ExecutionChoice,
    /// How much of their release jitter jobs take.
    pub jitter: DelayChoice,
    /// How much of the platform's release latency releases take.
    pub latency: DelayChoice,
    /// Sporadic jobs arrive a separation apart, plus up to this much, drawn uniformly.
    pub sporadic_extra: Span,
    /// Which way jobs take through their segment graphs.
    pub path: PathChoice,
    /// Mode changes: when, and to which mode of the machine; in order. For machines that were built with modes.
    pub modes: Vec<(Span, u32)>,
    /// The run stops after so many events, or instants with nothing but interrupts, and says so in its notes.
    pub max_events: u64,
    /// The most jobs of one task that may wait; one more is an error, so that an overloaded system cannot eat
    /// the memory.
    pub max_backlog: u32,
    /// Another thread that sets it ends the simulation soon, with an error.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions {
            horizon: Horizon::Default,
            seed: 1,
            execution: ExecutionChoice::AsModelled,
            jitter: DelayChoice::Uniform,
            latency: DelayChoice::Uniform,
            sporadic_extra: Span::ZERO,
            path: PathChoice::Longest,
            modes: Vec::new(),
            max_events: u64::MAX,
            max_backlog: 1 << 24,
            stop: None,
        }
    }
}

impl SimOptions {
    /// Whether anything of this system is drawn by chance, so that the seed matters.
    #[must_use]
    pub fn draws(&self, system: &System) -> bool {
        let has_latency = !system.platform().release_latency_bound().is_zero();
        let has_drivers = !system.devices().is_empty() || !system.interrupts().is_empty();
        let is_sporadic = |task: &Task| matches!(task.arrival, horolog_model::Arrival::Sporadic { .. });
        let has_extra = has_drivers || system.tasks().iter().any(is_sporadic);
        let of_devices = system
            .devices()
            .iter()
            .any(|device| !device.spread.is_zero() || device.least_cost != device.cost);
        (self.latency == DelayChoice::Uniform && has_latency)
            || (!self.sporadic_extra.is_zero() && has_extra)
            || of_devices
            || system.tasks().iter().any(|task| self.draws_of(task))
    }

    /// Whether jitter, execution or the path of this task is drawn.
    fn draws_of(&self, task: &Task) -> bool {
        let graph = task.segment_graph();
        let is_jittered = self.jitter == DelayChoice::Uniform && !task.jitter.is_zero();
        let branches = graph.is_some_and(|graph| graph.segments.iter().any(|segment| segment.next.len() > 1));
        let varies = task.bcet < task.wcet
            || graph.is_some_and(|graph| graph.segments.iter().any(|segment| segment.bcet < segment.wcet));
        let is_execution_drawn = match (self.execution, &task.execution) {
            (ExecutionChoice::Wcet | ExecutionChoice::Bcet, _) => false,
            (ExecutionChoice::Uniform, _) | (_, ExecutionTimes::Uniform) => varies,
            (_, ExecutionTimes::Samples(samples)) => samples.len() > 1,
            _ => false,
        };
        is_jittered || is_execution_drawn || (self.path == PathChoice::Random && branches)
    }
}

/// When a simulation ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Horizon {
    /// The hyperperiod plus the largest offset where that is below 60 s, else 10 s; longer for listed arrivals: see
    /// [`crate::default_horizon`].
    #[default]
    Default,
    /// After this time. Jobs that arrive before it count; jobs that finish exactly then are finished.
    Time(Span),
    /// When so many jobs have finished, or nothing is left to do.
    Jobs(u64),
}

/// How long jobs execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExecutionChoice {
    /// As each task of the model says.
    #[default]
    AsModelled,
    /// Every job, or segment, its wcet.
    Wcet,
    /// Every job, or segment, its bcet.
    Bcet,
    /// Every job, or segment, drawn uniformly from bcet to wcet.
    Uniform,
}

/// How much of an allowed delay is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayChoice {
    /// Drawn uniformly from zero to all of it, ends included.
    #[default]
    Uniform,
    /// None of it.
    None,
    /// All of it.
    Max,
}

/// Which way jobs take through a segment graph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PathChoice {
    /// The one with the greatest wcet; of several, the one with the smallest indices.
    #[default]
    Longest,
    /// At each branch a successor drawn uniformly.
    Random,
    /// These tasks always take these paths; the others the longest.
    Given(BTreeMap<TaskId, Vec<SegmentId>>),
}
