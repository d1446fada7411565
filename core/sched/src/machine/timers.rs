//! Budgets and timers of a tree: how much may be executed, what is charged when it has been.

use crate::Machine;
use crate::desired::{EntityId, Rejected, WallTimer};
use crate::machine::dispatcher::NONE;
use crate::machine::job_budget::JobBudget;
use horolog_model::TaskId;
use horolog_time::{Instant, Span};

/// No task, and not [`NONE`]: what the running one may execute must be looked at again.
pub(crate) const STALE: u32 = u32::MAX - 1;

impl Machine {
    /// How much a task may execute from now on until the machine must be told: the tightest budget above it, or what the
    /// service of its processor leaves it. `None`: no limit, also where a committed job overdraws an empty budget.
    ///
    /// # Panics
    /// Where there is no such task.
    #[must_use]
    pub fn allowance(&self, task: TaskId) -> Option<Span> {
        let leaf = &self.leaves[task.index()];
        let processor = &self.processors[usize::from(leaf.processor)];
        let own = self.budgets.get(leaf.budget as usize).and_then(JobBudget::left).map(Span::from_ns);
        let and_own = |budget: Option<Span>| match (budget, own) {
            (Some(budget), Some(own)) => Some(budget.min(own)),
            (budget, own) => budget.or(own),
        };
        if let Some(budget) = self.watched_budget(usize::from(leaf.processor), leaf) {
            return and_own(Some(budget));
        }
        if processor.is_shallow {
            return and_own(self.budget_of(leaf.node));
        }
        let mut node = leaf.node;
        let mut tightest = own;
        while node != NONE {
            if let Some(budget) = self.budget_of(node) {
                tightest = Some(tightest.map_or(budget, |least| least.min(budget)));
            }
            node = self.nodes[node as usize].parent;
        }
        tightest
    }

    /// What is left of a node's budget, where it has one that is not empty.
    #[inline(always)]
    fn budget_of(&self, node: u32) -> Option<Span> {
        let supplied = self.supplied.get(self.supply_of[node as usize] as usize)?;
        let budget = supplied.standing.budget;
        (!budget.is_zero()).then_some(budget)
    }

    /// The earliest wall timer of the processor's nodes and its service.
    #[inline]
    pub(crate) fn arm_wall_timer(&mut self, index: usize) {
        if self.processors[index].wall_is_stale {
            self.processors[index].wall = self.earliest_wall_timer(index);
            self.processors[index].wall_is_stale = false;
        }
    }

    #[inline]
    pub(crate) fn earliest_wall_timer(&mut self, index: usize) -> Option<WallTimer> {
        let tasks = self.leaves.len() as u32;
        let is_watched = self.processors[index].watch != NONE;
        let mut earliest = if is_watched { self.watch_timer(index) } else { None };
        if !self.tables.is_empty() {
            earliest = self.table_timer(index);
        }
        for supplied in &mut self.supplied[self.processors[index].supplies.clone()] {
            let at = supplied.standing.timer;
            if at != supplied.timer {
                supplied.timer = at;
                supplied.generation = supplied.generation.wrapping_add(1);
            }
            if let Some(at) = at
                && earliest.is_none_or(|timer| at < timer.at)
            {
                let entity = EntityId(tasks + supplied.node);
                earliest = Some(WallTimer { entity, at, generation: supplied.generation });
            }
        }
        earliest
    }

    /// Charges every supply from `first` upwards.
    fn charge_path(&mut self, index: usize, first: u32, amount: Span, now: Instant) {
        let mut node = first;
        let mut may_move = false;
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize)
                && supplied.pays
            {
                may_move |= supplied.executed(now, amount, &mut self.processors[index]);
            }
            node = self.nodes[node as usize].parent;
        }
        if may_move {
            self.propagate(first, now);
        }
    }

    /// A task has executed: every budget above it is charged, and the service of its processor is told.
    #[inline(always)]
    pub(crate) fn ran(&mut self, task: TaskId, amount: Span, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get(task.index()).ok_or(Rejected::Unknown)?;
        let (index, node) = (usize::from(leaf.processor), leaf.node);
        let processor = &mut self.processors[index];
        if amount.is_zero() {
            return Ok(());
        }
        if !processor.is_shallow {
            if let Some(budget) = self.job_budget(task) {
                budget.charge(amount.as_ns());
            }
            self.charge_path(index, node, amount, now);
        } else if processor.watch == NONE
            && let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize)
            && supplied.pays
            && supplied.executed(now, amount, processor)
        {
            self.follow_supply(node, now);
        }
        if self.processors[index].watch != NONE && self.processors[index].is_counting {
            self.watch_execution(task.0, amount, now);
        }
        Ok(())
    }

    pub(crate) fn wall_timer_fired(
        &mut self,
        entity: EntityId,
        generation: u32,
        now: Instant,
    ) -> Result<(), Rejected> {
        if let Some(table) = self.table_of_entity(entity) {
            return self.table_timer_fired(table, generation, now);
        }
        let index = self.processor_of(entity)?;
        let node = entity.0.checked_sub(self.leaves.len() as u32).ok_or(Rejected::Unknown)?;
        if self.processors[index].root == node && self.processors[index].watch != NONE {
            return self.watch_timer_fired(index, generation, now);
        }
        let supplied =
            self.supplied.get_mut(self.supply_of[node as usize] as usize).ok_or(Rejected::Unknown)?;
        if supplied.generation != generation || supplied.timer.is_none() {
            return Err(Rejected::Stale);
        }
        if supplied.fired(now, &mut self.processors[index]) {
            if self.processors[index].is_shallow {
                self.follow_supply(node, now);
            } else {
                self.propagate(node, now);
            }
        }
        Ok(())
    }

    /// The processor of a task or node.
    pub(crate) fn processor_of(&self, entity: EntityId) -> Result<usize, Rejected> {
        let index = match entity.0.checked_sub(self.leaves.len() as u32) {
            None => self.leaves[entity.0 as usize].processor,
            Some(node) => self.nodes.get(node as usize).ok_or(Rejected::Unknown)?.processor,
        };
        Ok(usize::from(index))
    }
}
