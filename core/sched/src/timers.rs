//! Budgets and timers of a tree: which are armed, what is charged when they report.

use crate::desired::{EntityId, Rejected, WallTimer};
use crate::dispatcher::NONE;
use crate::{ClockDomain, Machine};
use horolog_model::TaskId;
use horolog_time::{Instant, Span};

/// No task, and not [`NONE`]: the execution timer must be looked at again.
pub(crate) const STALE: u32 = u32::MAX - 1;

impl Machine {
    /// The tightest budget above the running task, armed anew where it is another than the armed timer counts.
    #[inline(always)]
    pub(crate) fn arm_execution_timer(&mut self, index: usize) {
        let running = self.processors[index].running;
        let tightest = match running {
            NONE => None,
            _ if self.processors[index].is_shallow => {
                self.shallow_budget(index, running).map(|(entity, budget)| (EntityId(entity), budget))
            }
            _ => self.tightest_budget(index, running),
        };
        let processor = &mut self.processors[index];
        match tightest {
            None => processor.execution.disarm(),
            Some((entity, budget)) => processor.execution.arm(entity, budget, running),
        }
    }

    /// The entity above `task` with the least budget left, the innermost of several; an empty budget that a
    /// committed job overdraws has no timer any more. Where a service limits soft tasks, the task itself.
    fn tightest_budget(&self, index: usize, task: u32) -> Option<(EntityId, Span)> {
        let tasks = self.leaves.len() as u32;
        if let Some(budget) = self.watched_budget(index, &self.leaves[task as usize]) {
            return Some((EntityId(task), budget));
        }
        let mut node = self.leaves[task as usize].node;
        let mut tightest: Option<(EntityId, Span)> = None;
        while node != NONE {
            if let Some(supplied) = self.supplied.get(self.supply_of[node as usize] as usize)
                && !supplied.standing.budget.is_zero()
                && tightest.is_none_or(|(_, least)| supplied.standing.budget < least)
            {
                tightest = Some((EntityId(tasks + node), supplied.standing.budget));
            }
            node = self.nodes[node as usize].parent;
        }
        tightest
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

    /// Charges reported execution to every supply above the task that ran.
    pub(crate) fn charge(
        &mut self,
        entity: EntityId,
        generation: u32,
        consumed: Span,
        now: Instant,
        clock: ClockDomain,
    ) -> Result<(), Rejected> {
        let index = self.processor_of(entity, clock)?;
        let processor = &mut self.processors[index];
        let armed = processor.execution.find(entity, generation).ok_or(Rejected::Stale)?;
        let amount = consumed.checked_sub(armed.reported).ok_or(Rejected::Stale)?;
        armed.reported = consumed;
        let leaf = armed.leaf;
        if consumed >= armed.after {
            // Whatever budget there is now, this timer does not count it.
            processor.timed = STALE;
        }
        let first = self.leaves[leaf as usize].node;
        if processor.is_shallow && processor.watch != NONE {
            self.watch_execution(leaf, amount, now);
            return Ok(());
        }
        if processor.is_shallow {
            let supply = self.supply_of[first as usize] as usize;
            if let Some(supplied) = self.supplied.get_mut(supply)
                && supplied.executed(now, amount, processor)
            {
                self.follow_supply(first, now);
            }
            return Ok(());
        }
        self.charge_path(index, first, amount, now);
        if self.processors[index].watch != NONE {
            self.watch_execution(leaf, amount, now);
        }
        Ok(())
    }

    /// Charges every supply from `first` upwards.
    fn charge_path(&mut self, index: usize, first: u32, amount: Span, now: Instant) {
        let mut node = first;
        let mut may_move = false;
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                may_move |= supplied.executed(now, amount, &mut self.processors[index]);
            }
            node = self.nodes[node as usize].parent;
        }
        if may_move {
            self.propagate(first, now);
        }
    }

    /// What a task of a watched processor executed while no timer counted it.
    #[inline(always)]
    pub(crate) fn ran(
        &mut self,
        task: TaskId,
        amount: Span,
        now: Instant,
        clock: ClockDomain,
    ) -> Result<(), Rejected> {
        let leaf = self.leaves.get(task.index()).ok_or(Rejected::Unknown)?;
        let processor = &self.processors[usize::from(leaf.processor)];
        if processor.clock != clock {
            return Err(Rejected::BadTime);
        }
        if processor.watch == NONE {
            return Err(Rejected::Unknown);
        }
        self.watch_execution(task.0, amount, now);
        Ok(())
    }

    pub(crate) fn wall_timer_fired(
        &mut self,
        entity: EntityId,
        generation: u32,
        now: Instant,
        clock: ClockDomain,
    ) -> Result<(), Rejected> {
        let index = self.processor_of(entity, clock)?;
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
    pub(crate) fn processor_of(&self, entity: EntityId, clock: ClockDomain) -> Result<usize, Rejected> {
        let index = match entity.0.checked_sub(self.leaves.len() as u32) {
            None => self.leaves[entity.0 as usize].processor,
            Some(node) => self.nodes.get(node as usize).ok_or(Rejected::Unknown)?.processor,
        };
        if self.processors[usize::from(index)].clock != clock {
            return Err(Rejected::BadTime);
        }
        Ok(usize::from(index))
    }
}
