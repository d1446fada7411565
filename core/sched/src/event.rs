//! What the machine is told.

use crate::{EntityId, Place};
use horolog_model::TaskId;
use horolog_time::{Instant, Span};

/// One event, with the time when it occurred and the time when it was observed. A machine lives in one clock: whoever couples
/// machines of different clocks converts before the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When it happened.
    pub occurred: Instant,
    /// When the driver noticed it; never earlier.
    pub observed: Instant,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// An event observed at the very instant when it occurred.
    #[inline(always)]
    #[must_use]
    pub fn at(time: Instant, kind: EventKind) -> Event {
        Event { occurred: time, observed: time, kind }
    }
}

/// Stands for the segment that follows where the driver does not know which: idle preemption points of a real
/// run cost one load and a branch, so nobody counts the segments there.
pub const ANY_SEGMENT: u32 = u32::MAX;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The oldest job of `task`, which has begun, finished.
    Completion {
        /// Whose.
        task: TaskId,
    },
    /// The running job of `task` reached a preemption point and announces its next segment.
    PreemptionPoint {
        /// Whose.
        task: TaskId,
        /// Whether it gives way if somebody more important waits. Where not, it only asks (an optional
        /// preemption point): nothing changes, and the answer is [`crate::Desired::should_yield`].
        willing: bool,
        /// The segment that follows, or [`ANY_SEGMENT`]; not looked at where it only asks.
        next: u32,
    },
    /// The oldest job of `task`, which has begun, suspends itself.
    Block {
        /// Whose.
        task: TaskId,
    },
    /// The oldest job of `task`, which has begun, locks a resource; where another job holds it, it is suspended until it gets it. Of a spin
    /// lock: it holds it from now on.
    Lock {
        /// Whose.
        task: TaskId,
        /// Which resource of the system.
        resource: u32,
    },
    /// The running job of `task` waits for a spin lock: it stands at the priority at which jobs spin for it, until `Lock` says that
    /// it holds it.
    Spin {
        /// Whose.
        task: TaskId,
        /// Which resource of the system.
        resource: u32,
    },
    /// The oldest job of `task` unlocks a resource that it holds.
    Unlock {
        /// Whose.
        task: TaskId,
        /// Which resource of the system.
        resource: u32,
    },
    /// What the job of `task` has executed since this was told last. Told before the job completes or suspends itself, before
    /// a wall timer, when its budget is used up, and before every release of a served task. That a budget has run out is the
    /// machine's conclusion, and how reports between two other events are split makes no difference.
    Ran {
        /// Whose.
        task: TaskId,
        /// How much.
        amount: Span,
    },
    /// A job of `task` arrived and is ready. Releases of one instant come in the order of their tasks' ids.
    Release {
        /// Whose.
        task: TaskId,
        /// Its absolute deadline, [`Instant::NEVER`] where it has none.
        deadline: Instant,
    },
    /// A suspended job of `task` is ready again.
    Wake {
        /// Whose.
        task: TaskId,
    },
    /// A wall timer went off.
    Timer {
        /// Whose.
        entity: EntityId,
        /// The generation that the timer was armed with.
        generation: u32,
    },
    /// The running job of `task` switches its own preemptibility.
    SetPreemptible {
        /// Whose.
        task: TaskId,
        /// From now on.
        preemptible: bool,
    },
    /// A node stands at another place from now on, where its supply listens ([`crate::LentPriority`]).
    Lend {
        /// The node.
        entity: EntityId,
        /// One of the places that it was built with.
        place: Place,
    },
    /// The system changes its mode.
    ModeChange {
        /// The new mode, an index into the modes that the machine was built with.
        mode: u32,
    },
}

/// The order of things at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Jobs end, reach preemption points, block; budgets run out.
    Complete,
    /// Outputs of ended jobs become visible.
    Publish,
    /// Jobs arrive, sleepers wake, timers go off, modes change.
    Release,
    /// Inputs of arrived jobs are read.
    Latch,
    /// The machine is asked who runs.
    Choose,
}

impl EventKind {
    /// The phase of this event at its instant.
    #[inline]
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self {
            Self::Completion { .. }
            | Self::PreemptionPoint { .. }
            | Self::Block { .. }
            | Self::Lock { .. }
            | Self::Spin { .. }
            | Self::Unlock { .. }
            | Self::SetPreemptible { .. }
            | Self::Ran { .. } => Phase::Complete,
            Self::Release { .. }
            | Self::Wake { .. }
            | Self::Timer { .. }
            | Self::Lend { .. }
            | Self::ModeChange { .. } => Phase::Release,
        }
    }
}
