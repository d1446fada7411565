//! How jobs wait within themselves, and what others see of it.

use super::{CpuModel, CpuTask};
use crate::arrival_curve::ArrivalCurve;

/// How the jobs of one task wait.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// When its execution comes, as others see it.
    pub(crate) seen: ArrivalCurve,
    /// What a job executes, context switches included, ns.
    pub(crate) execution: u64,
    /// Its requests, each with the longest time until its answer, ns; `None`: nothing bounds it.
    pub(crate) answers: Vec<(String, Option<u64>)>,
}

impl Waiting {
    /// How long the answers take together; `None` where one has no bound.
    pub(crate) fn total(&self) -> Option<u64> {
        self.answers.iter().try_fold(0_u64, |sum, (_, answer)| sum.checked_add((*answer)?))
    }
}

impl CpuTask {
    /// Whether a job may wait, and come back behind its equals.
    pub(crate) fn may_wait(&self) -> bool {
        self.waiting.is_some() || self.lock_waits > 0
    }

    /// How often a job suspends itself.
    pub(crate) fn suspensions(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.answers.len() as u64)
    }

    /// How often a job gets the processor at most where no other task is more important.
    pub(crate) fn turns(&self) -> u64 {
        self.suspensions() + self.lock_waits + 1
    }

    /// When its execution comes and how much, as others see it.
    pub(crate) fn seen(&self) -> (&ArrivalCurve, u64) {
        match &self.waiting {
            Some(waiting) => (&waiting.seen, waiting.execution),
            None => (&self.arrival, self.wcet),
        }
    }

    /// Whether it waits for something that nothing bounds.
    pub(crate) fn waits_unbounded(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.total().is_none())
    }
}

/// Whether a task of the processor waits for a device.
pub(crate) fn has_waits(cpu: &CpuModel) -> bool {
    cpu.tasks.iter().any(|task| task.waiting.is_some())
}
