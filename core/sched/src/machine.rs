//! The machine's door: [`Machine::on`] takes events, [`Machine::decide`] answers with desired state.

use crate::Event;
use horolog_model::{System, TaskId};
use horolog_time::{Instant, Span};

/// A node of the tree: a task's leaf or an inner node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntityId(pub u32);

/// The place of a processor in [`horolog_model::Cpus::iter`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessorIndex(pub u16);

/// "Tell me after `after` of execution of `entity`."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecutionTimer {
    /// Whose execution counts.
    pub entity: EntityId,
    /// How much from now on.
    pub after: Span,
    /// To be handed back in `Exhausted`.
    pub generation: u32,
}

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
    /// The next execution timer of this processor, if any.
    pub execution_timer: Option<ExecutionTimer>,
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
    /// No such task, entity, segment or mode.
    #[error("no such task, entity, segment or mode")]
    Unknown,
    /// The task is not active in this mode: the release is dropped.
    #[error("the task is not active in this mode")]
    Inactive,
}

/// The scheduling machine of one system.
#[derive(Clone, Debug)]
pub struct Machine {
    _system: (),
}

impl Machine {
    /// The machine of a checked system whose priorities are resolved.
    ///
    /// # Errors
    /// Where the system asks for something that no policy here does, with the remedy.
    pub fn new(system: &System) -> Result<Machine, horolog_model::ModelError> {
        let _ = system;
        Ok(Machine { _system: () })
    }

    /// Takes one event. Events of one instant come in the order of their [`crate::Phase`].
    ///
    /// # Errors
    /// Where the event does not fit the state; nothing has changed then.
    #[inline]
    pub fn on(&mut self, event: Event) -> Result<(), Rejected> {
        let _ = event;
        Ok(())
    }

    /// What the processor should look like now.
    #[inline]
    pub fn decide(&mut self, processor: ProcessorIndex) -> Desired {
        let _ = processor;
        Desired::default()
    }
}
