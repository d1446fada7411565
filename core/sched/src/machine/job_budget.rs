//! Budgets of jobs and of their segments: what a job may execute, and what happens when it has and goes on (decision 0010).

use crate::desired::ProcessorIndex;
use crate::machine::dispatcher::{NONE, NodePolicy};
use crate::machine::leaf::Leaf;
use crate::{Allowance, Machine, Progress, Rejected};
use horolog_model::{OverrunPolicy, System, TaskId};
use horolog_time::{Instant, Span};

/// What the machine does about a job that has used up its budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverrunAction {
    /// Nothing: the job goes on.
    Count,
    /// The job goes on, and the next release of its task does not take place.
    Skip,
    /// The rest of the job stands below every task.
    Demote,
    /// The job ends, and its task releases no more.
    Stop,
    /// The job ends.
    Drop,
    /// The job goes on, and this mode is asked for.
    AskFor(u32),
}

impl OverrunAction {
    /// What a task's policy says.
    #[must_use]
    pub fn of(system: &System, policy: &OverrunPolicy) -> OverrunAction {
        match policy {
            OverrunPolicy::Skip => OverrunAction::Skip,
            OverrunPolicy::Demote => OverrunAction::Demote,
            OverrunPolicy::Stop => OverrunAction::Stop,
            OverrunPolicy::Drop => OverrunAction::Drop,
            OverrunPolicy::Mode(name) => {
                system.find_mode(name).map_or(OverrunAction::Count, OverrunAction::AskFor)
            }
            _ => OverrunAction::Count,
        }
    }

    /// Whether the job cannot go on at its place.
    const fn takes_the_processor(self) -> bool {
        matches!(self, OverrunAction::Demote | OverrunAction::Stop | OverrunAction::Drop)
    }

    /// Its number in an `Enforcement` record.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            OverrunAction::Count => 0,
            OverrunAction::Skip => 1,
            OverrunAction::Demote => 2,
            OverrunAction::Stop => 3,
            OverrunAction::Drop => 4,
            OverrunAction::AskFor(_) => 5,
        }
    }
}

/// What is left of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// So many ns; above zero.
    Left(u64),
    /// Nothing, and so many ns were executed beyond it.
    Empty { debt: u64 },
}

/// The budget of a task's oldest job and of the segment that it is in.
#[derive(Clone, Debug)]
pub(crate) struct JobBudget {
    allowance: Allowance,
    progress: Progress,
    /// The worst cases of the segments before the present one.
    path: Span,
    /// What may be executed until the policy acts.
    limit: Limit,
    /// Whether the world tells how far the job is, and it is not charged.
    is_told: bool,
    /// What of the segment's wcet was left when that was told last: the next segment may have a smaller budget, and begin untold.
    of_segment: u64,
    action: OverrunAction,
    /// What the present mode leaves to a job, ns; whoever has executed it ends.
    of_mode: u64,
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
    pub(crate) fn new(allowance: Allowance, action: OverrunAction, is_told: bool) -> JobBudget {
        let mut budget = JobBudget {
            allowance,
            progress: Progress::default(),
            path: Span::ZERO,
            limit: Limit::Empty { debt: 0 },
            is_told,
            of_segment: 0,
            action,
            of_mode: u64::MAX,
            has_acted: false,
            skips: false,
            is_stopped: false,
            lowered: None,
        };
        budget.fill();
        budget
    }

    /// The next job of the task has all of it.
    fn fill(&mut self) {
        (self.progress, self.path, self.has_acted) = (Progress::default(), Span::ZERO, false);
        self.fill_segment();
    }

    /// The job begins a segment, having executed all that was charged.
    pub(crate) fn enter(&mut self, segment: u32) {
        let left = self.allowance.segment_wcet(self.progress.segment);
        self.path = self.path.checked_add(left).unwrap_or(Span::MAX);
        let segment = segment as usize;
        let executed = self.progress.executed;
        let tighter_wcet = Some(self.allowance.tighter_wcet(self.path, segment));
        self.progress = Progress { segment, executed, before_segment: executed, tighter_wcet };
        self.fill_segment();
    }

    /// So far the job is.
    fn take(&mut self, progress: Progress) {
        self.progress = progress;
        self.fill_segment();
    }

    fn fill_segment(&mut self) {
        let executed = self.progress.executed.as_ns();
        if self.is_told {
            let own = executed.saturating_sub(self.progress.before_segment.as_ns());
            let wcet = self.allowance.segment_wcet(self.progress.segment).as_ns();
            self.of_segment = wcet.saturating_sub(own);
        }
        // Where the policy has acted the job goes on, up to what the mode leaves to it.
        let acts_at = match (self.has_acted, self.of_mode) {
            (true, of_mode) if of_mode < u64::MAX => of_mode,
            (_, of_mode) => self.allowance.acts_at(self.progress).as_ns().min(of_mode),
        };
        self.limit = match acts_at.checked_sub(executed) {
            None | Some(0) => Limit::Empty { debt: executed - acts_at },
            Some(left) => Limit::Left(left),
        };
    }

    pub(crate) fn charge(&mut self, amount: u64) {
        if self.is_told {
            return;
        }
        let executed = self.progress.executed.checked_add(Span::from_ns(amount));
        self.progress.executed = executed.unwrap_or(Span::MAX);
        self.limit = match self.limit {
            Limit::Left(left) if amount < left => Limit::Left(left - amount),
            Limit::Left(left) => Limit::Empty { debt: amount - left },
            Limit::Empty { debt } => Limit::Empty { debt: debt.saturating_add(amount) },
        };
    }

    /// What may be executed until the policy acts, or it must be told how far the job is; `None`: it has acted, or does at this
    /// instant.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.limit {
            Limit::Left(left) if self.of_segment > 0 => Some(left.min(self.of_segment)),
            Limit::Left(left) => Some(left),
            Limit::Empty { .. } if self.is_spent() => Some(0),
            Limit::Empty { .. } => None,
        }
    }

    fn is_overrun(&self) -> bool {
        matches!(self.limit, Limit::Empty { .. }) && (!self.has_acted || self.is_spent())
    }

    /// What a job may execute in the mode that begins.
    pub(crate) fn limit_to(&mut self, limit: Option<Span>) {
        let of_mode = limit.map_or(u64::MAX, Span::as_ns);
        if self.of_mode != of_mode {
            self.of_mode = of_mode;
            self.fill_segment();
        }
    }

    /// Whether the job has executed what the mode leaves to it.
    pub(crate) fn is_spent(&self) -> bool {
        self.progress.executed.as_ns() >= self.of_mode
    }
}

/// Whether a task with this policy needs a place below every task.
pub(crate) fn may_be_lowered(policy: &OverrunPolicy) -> bool {
    *policy == OverrunPolicy::Demote
}

impl Machine {
    /// The budget of a task's oldest job, where it has one.
    pub(crate) fn job_budget(&mut self, task: TaskId) -> Option<&mut JobBudget> {
        let index = self.leaves[task.index()].budget;
        self.budgets.get_mut(index as usize)
    }

    /// Whether the end of some job's budget asks for a mode.
    pub(crate) fn asks_for_modes(&self) -> bool {
        self.budgets.iter().any(|budget| matches!(budget.action, OverrunAction::AskFor(_)))
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
    ) -> Option<(TaskId, OverrunAction)> {
        let running = self.processors[usize::from(processor.0)].running;
        let leaf = self.leaves.get(running as usize)?;
        let budget = self.budgets.get_mut(leaf.budget as usize).filter(|budget| budget.is_overrun())?;
        if leaf.holds > 0 && budget.action.takes_the_processor() {
            // Others may wait for what it holds: it goes on until it has unlocked all.
            return None;
        }
        budget.has_acted = true;
        let ends = if self.keeps_begun { OverrunAction::Demote } else { OverrunAction::Drop };
        let (task, action) = (TaskId(running), if budget.is_spent() { ends } else { budget.action });
        match action {
            OverrunAction::Skip => {
                budget.skips = true;
                self.leaves[task.index()].active = false;
            }
            OverrunAction::Demote if self.keeps_begun => self.take_out(task, now),
            OverrunAction::Demote => self.lower(task),
            OverrunAction::Stop => {
                budget.is_stopped = true;
                let leaf = &mut self.leaves[task.index()];
                leaf.active = false;
                // Those that wait are gone, too.
                leaf.backlog.clear();
                leaf.jobs = 1;
                if self.keeps_begun {
                    self.take_out(task, now);
                } else {
                    self.processors[usize::from(processor.0)].leave();
                    self.end_job(task, now);
                }
            }
            OverrunAction::Drop => {
                self.processors[usize::from(processor.0)].leave();
                self.end_job(task, now);
            }
            OverrunAction::Count | OverrunAction::AskFor(_) => {}
        }
        Some((task, action))
    }

    /// The running job leaves the order, as one that has suspended itself: its thread goes on below every task.
    fn take_out(&mut self, task: TaskId, now: Instant) {
        let told = self.block(task, now);
        debug_assert_eq!(told, Ok(()));
    }

    /// How far the oldest job of a task is, by its thread's own clock.
    pub(crate) fn progress(&mut self, task: TaskId, progress: Progress) {
        if let Some(budget) = self.job_budget(task) {
            budget.take(progress);
        }
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
        budget.fill();
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
        let mut budget = JobBudget::new(Allowance::of_whole(5), OverrunAction::Count, false);
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
