//! What the machine answers: how one processor should look from now on.

use horolog_model::TaskId;
use horolog_time::{Instant, Span};

/// A node of the tree: a task's leaf (numbered as the task), a processor's root, or an inner node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntityId(pub u32);

/// The place of a processor in [`horolog_model::Cpus::iter`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessorIndex(pub u16);

/// "Tell me at `at`."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallTimer {
    /// Who asked.
    pub entity: EntityId,
    /// When.
    pub at: Instant,
    /// To be handed back in `Timer`.
    pub generation: u32,
}

/// What of a processor may be another than after the decision before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimerChanges {
    /// [`crate::Machine::allowance`] of whoever runs.
    pub allowance: bool,
    /// [`crate::Machine::wall_timer`].
    pub wall: bool,
}

/// What one processor should look like from now on. Carrying out the same desired state twice changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Desired {
    /// The task whose oldest job should run; `None`: idle.
    pub running: Option<TaskId>,
    /// Whether somebody more important waits for the running job's next preemption point.
    pub should_yield: bool,
    /// Counts the changes of `should_yield`, so that a stale flag is told from a fresh one.
    pub generation: u32,
    /// How much the running task may execute from now on until the machine must be told; `None`: no limit.
    pub allowance: Option<Span>,
    /// The next wall timer of this processor, if any.
    pub wall_timer: Option<WallTimer>,
}

/// Why an event was ignored. A driver's bug or a race that it must tolerate; the machine's state is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// The timer was armed again or cancelled since.
    #[error("stale timer generation")]
    Stale,
    /// The task is not the one that runs on its processor.
    #[error("the task does not run")]
    NotRunning,
    /// The task is not suspended.
    #[error("the task is not suspended")]
    NotBlocked,
    /// The job holds the resource already.
    #[error("the job holds the resource already")]
    Held,
    /// The job does not hold the resource.
    #[error("the job does not hold the resource")]
    NotHeld,
    /// No such task, entity, segment, resource or mode.
    #[error("no such task, entity, segment, resource or mode")]
    Unknown,
    /// The announced segment does not follow the present one, or the task has no preemption points.
    #[error("the announced segment does not follow the present one")]
    IllegalSegment,
    /// The task is not active in this mode: the release is dropped.
    #[error("the task is not active in this mode")]
    Inactive,
    /// The event was observed before it occurred.
    #[error("the event was observed before it occurred")]
    BadTime,
}
