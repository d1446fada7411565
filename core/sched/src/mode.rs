//! Modes: which tasks release jobs, and at which priority they run.

use horolog_model::Priority;

/// A mode of the system. Mode 0 is the system as its file gives it, with every task active; others are added
/// with [`crate::MachineBuilder::mode`].
///
/// A mode change is an event. From that instant on, releases of tasks that the new mode does not activate are
/// rejected ([`crate::Rejected::Inactive`]); jobs already released finish, at the priorities of the new mode. A
/// non-preemptible job keeps the processor until it gives it up, whatever its new priority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeSpec {
    /// One entry for each task of the system, in its order.
    pub tasks: Vec<TaskMode>,
}

/// A task in one mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskMode {
    /// Whether its releases are accepted.
    pub active: bool,
    /// Its priority in this mode, also for the left-over jobs of an inactive task; `None`: that of the system.
    pub priority: Option<Priority>,
}

/// A mode as the machine keeps it: everything that a change needs, prepared.
#[derive(Clone, Debug)]
pub(crate) struct Mode {
    pub(crate) active: Vec<bool>,
    /// The layout of every dispatcher.
    pub(crate) layouts: Vec<crate::dispatcher::Layout>,
}
