//! Budgets and timers of a tree: which are armed, what is charged when they report.

use crate::desired::{EntityId, Rejected, WallTimer};
use crate::dispatcher::NONE;
use crate::{ClockDomain, Machine};
use horolog_time::{Instant, Span};

/// No task, and not [`NONE`]: the execution timer must be looked at again.
pub(crate) const STALE: u32 = u32::MAX - 1;

/// An execution timer that is armed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    pub(crate) entity: EntityId,
    pub(crate) generation: u32,
    pub(crate) after: Span,
    /// What of it has been reported and charged.
    pub(crate) reported: Span,
    /// The task that runs on it.
    pub(crate) leaf: u32,
}

impl Machine {
    /// The tightest budget above the running task, armed anew where it is another than the armed timer counts.
    #[inline]
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
        let Some((entity, budget)) = tightest else {
            if processor.armed[0].is_some() {
                processor.armed = [None, processor.armed[0]];
            }
            return;
        };
        let stands = processor.armed[0].is_some_and(|armed| {
            armed.entity == entity
                && armed.leaf == running
                && (armed.after.checked_sub(armed.reported) == Some(budget)
                    || (armed.after == Span::MAX && budget == Span::MAX))
        });
        if !stands {
            processor.timer_generation = processor.timer_generation.wrapping_add(1);
            let generation = processor.timer_generation;
            let armed = Armed { entity, generation, after: budget, reported: Span::ZERO, leaf: running };
            processor.armed = [Some(armed), processor.armed[0].or(processor.armed[1])];
        }
    }

    /// The entity above `task` with the least budget left, the innermost of several; an empty budget that a
    /// committed job overdraws has no timer any more. Where a service watches, the task itself.
    fn tightest_budget(&self, index: usize, task: u32) -> Option<(EntityId, Span)> {
        let tasks = self.leaves.len() as u32;
        if let Some(budget) = self.watched_budget(index, task) {
            return Some((EntityId(task), budget));
        }
        let mut node = self.leaves[task as usize].node;
        let mut tightest: Option<(EntityId, Span)> = None;
        while node != NONE {
            if let Some(supplied) = self.supplied.get(self.supply_of[node as usize] as usize)
                && let Some(budget) = supplied.standing.budget
                && !budget.is_zero()
                && tightest.is_none_or(|(_, least)| budget < least)
            {
                tightest = Some((EntityId(tasks + node), budget));
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

    pub(crate) fn earliest_wall_timer(&mut self, index: usize) -> Option<WallTimer> {
        let tasks = self.leaves.len() as u32;
        let mut earliest: Option<WallTimer> = self.watch_timer(index);
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
        let is_meant = |armed: &Armed| armed.entity == entity && armed.generation == generation;
        let armed = match &mut processor.armed {
            [Some(armed), _] if is_meant(armed) => armed,
            [_, Some(armed)] if is_meant(armed) => armed,
            _ => return Err(Rejected::Stale),
        };
        let amount = consumed.checked_sub(armed.reported).ok_or(Rejected::Stale)?;
        armed.reported = consumed;
        let leaf = armed.leaf;
        if consumed >= armed.after {
            // Whatever budget there is now, this timer does not count it.
            processor.timed = STALE;
        }
        let is_shallow = processor.is_shallow;
        if is_shallow && processor.watch != NONE {
            self.watch_execution(index, leaf, amount, now);
            return Ok(());
        }
        let first = self.leaves[leaf as usize].node;
        let mut node = first;
        let mut may_move = false;
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                may_move |= supplied.executed(now, amount, &mut self.processors[index]);
            }
            node = if is_shallow { NONE } else { self.nodes[node as usize].parent };
        }
        if may_move {
            self.follow_supply(first, now);
        }
        if !is_shallow {
            self.watch_execution(index, leaf, amount, now);
        }
        Ok(())
    }

    /// The supply of `node`, or of one above it, may want it elsewhere.
    fn follow_supply(&mut self, node: u32, now: Instant) {
        let dispatcher = &self.nodes[node as usize];
        if self.processors[usize::from(dispatcher.processor)].is_shallow {
            let some_ready = !dispatcher.ready.is_empty();
            self.stand(node, some_ready, now);
        } else {
            self.propagate(node, now);
        }
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
            self.follow_supply(node, now);
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
