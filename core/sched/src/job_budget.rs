//! Budgets of jobs: what a job may execute, and what happens when it has and goes on (decision 0010).

use crate::desired::ProcessorIndex;
use crate::dispatcher::{NONE, NodePolicy};
use crate::leaf::Leaf;
use crate::{Machine, Rejected};
use horolog_model::{OverrunPolicy, TaskId};
use horolog_time::Instant;

/// What is left of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// So many ns; above zero.
    Left(u64),
    /// Nothing, and so many ns were executed beyond it.
    Empty { debt: u64 },
}

/// The budget of a task's oldest job.
#[derive(Clone, Debug)]
pub(crate) struct JobBudget {
    full: u64,
    limit: Limit,
    action: OverrunPolicy,
    /// Whether the action was taken for this job.
    has_acted: bool,
    /// Whether the next release does not take place.
    skips: bool,
    /// Whether no release does.
    pub(crate) is_stopped: bool,
    /// Where the job stands at the lowest place: whether it could be preempted before.
    lowered: Option<bool>,
}

impl JobBudget {
    /// `full` is above zero.
    pub(crate) fn new(full: u64, action: OverrunPolicy) -> JobBudget {
        let limit = Limit::Left(full);
        JobBudget { full, limit, action, has_acted: false, skips: false, is_stopped: false, lowered: None }
    }

    pub(crate) fn charge(&mut self, amount: u64) {
        self.limit = match self.limit {
            Limit::Left(left) if amount < left => Limit::Left(left - amount),
            Limit::Left(left) => Limit::Empty { debt: amount - left },
            Limit::Empty { debt } => Limit::Empty { debt: debt.saturating_add(amount) },
        };
    }

    /// What may be executed until it is used up; `None`: it is.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.limit {
            Limit::Left(left) => Some(left),
            Limit::Empty { .. } => None,
        }
    }

    fn is_overrun(&self) -> bool {
        matches!(self.limit, Limit::Empty { .. }) && !self.has_acted
    }
}

/// Whether a task with this policy needs a place below every task.
pub(crate) fn may_be_lowered(action: OverrunPolicy) -> bool {
    action == OverrunPolicy::Demote
}

impl Machine {
    /// The budget of a task's oldest job, where it has one.
    pub(crate) fn job_budget(&mut self, task: TaskId) -> Option<&mut JobBudget> {
        let index = self.leaves[task.index()].budget;
        self.budgets.get_mut(index as usize)
    }

    /// Whether any job of this processor has a budget.
    pub(crate) fn has_job_budgets(&self, processor: ProcessorIndex) -> bool {
        self.leaves.iter().any(|leaf| leaf.processor == processor.0 && leaf.budget != NONE)
    }

    /// Acts upon the running job where it has used up its budget; whose, and what was done.
    pub(crate) fn act_on_overrun(
        &mut self,
        processor: ProcessorIndex,
        now: Instant,
    ) -> Option<(TaskId, OverrunPolicy)> {
        let running = self.processors[usize::from(processor.0)].running;
        let leaf = self.leaves.get(running as usize)?;
        let budget = self.budgets.get_mut(leaf.budget as usize).filter(|budget| budget.is_overrun())?;
        budget.has_acted = true;
        let (task, action) = (TaskId(running), budget.action);
        match action {
            OverrunPolicy::Skip => {
                budget.skips = true;
                self.leaves[task.index()].active = false;
            }
            OverrunPolicy::Demote => self.lower(task),
            OverrunPolicy::Stop => {
                budget.is_stopped = true;
                let leaf = &mut self.leaves[task.index()];
                leaf.active = false;
                // Those that wait are gone, too.
                leaf.backlog.clear();
                leaf.jobs = 1;
                self.processors[usize::from(processor.0)].leave();
                self.end_job(task, now);
            }
            OverrunPolicy::Drop => {
                self.processors[usize::from(processor.0)].leave();
                self.end_job(task, now);
            }
            _ => {}
        }
        Some((task, action))
    }

    /// The running job stands below every task from now on.
    fn lower(&mut self, task: TaskId) {
        let leaf = &mut self.leaves[task.index()];
        let was_preemptible = std::mem::replace(&mut leaf.preemptible, true);
        self.processors[usize::from(leaf.processor)].committed = false;
        if let Some(budget) = self.budgets.get_mut(leaf.budget as usize) {
            budget.lowered = Some(was_preemptible);
        }
        let node = &mut self.nodes[leaf.node as usize];
        if node.policy == NodePolicy::Edf {
            node.keys[leaf.position as usize].urgency = u64::MAX;
        } else {
            self.move_leaf(task.0, true);
        }
    }

    /// The oldest job of a task with a budget is gone: the next one has all of it, and stands at its own place.
    pub(crate) fn refill(&mut self, task: TaskId) {
        let Some(budget) = self.job_budget(task) else { return };
        (budget.limit, budget.has_acted) = (Limit::Left(budget.full), false);
        if let Some(was_preemptible) = budget.lowered.take() {
            self.leaves[task.index()].preemptible = was_preemptible;
            self.move_leaf(task.0, false);
        }
    }

    /// A release that does not take place: the mode does not want it, or a job before has overrun.
    #[cold]
    pub(crate) fn refuse_release(&mut self, task: TaskId) -> Result<(), Rejected> {
        let is_active = self.modes[self.mode as usize].tasks[task.index()].active;
        if let Some(budget) = self.job_budget(task)
            && is_active
            && std::mem::take(&mut budget.skips)
        {
            let is_stopped = budget.is_stopped;
            self.leaves[task.index()].active = !is_stopped;
        }
        Err(Rejected::Inactive)
    }

    /// Whether a task that a mode activates releases jobs.
    pub(crate) fn is_held(leaf: &Leaf, budgets: &[JobBudget]) -> bool {
        budgets.get(leaf.budget as usize).is_some_and(|budget| budget.is_stopped || budget.skips)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up_at_its_last_unit() {
        let mut budget = JobBudget::new(5, OverrunPolicy::Count);
        budget.charge(4);
        assert_eq!((budget.left(), budget.is_overrun()), (Some(1), false));
        budget.charge(1);
        assert_eq!(
            (budget.limit, budget.left(), budget.is_overrun()),
            (Limit::Empty { debt: 0 }, None, true)
        );
        budget.charge(2);
        assert_eq!(budget.limit, Limit::Empty { debt: 2 });
    }
}
