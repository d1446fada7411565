//! What only deeper trees need: readiness that travels upwards, budgets, timers, the choice along a path.

use crate::desired::{Desired, EntityId, ExecutionTimer, Rejected, WallTimer};
use crate::dispatcher::{Key, NONE, NodePolicy};
use crate::{ClockDomain, Machine, Supply};
use horolog_model::TaskId;
use horolog_time::{Instant, Span};

/// A node with a supply.
#[derive(Clone, Debug)]
pub(crate) struct SuppliedNode {
    pub(crate) node: u32,
    pub(crate) supply: Box<dyn Supply>,
    /// Whether the supply was last told that the node has ready children.
    pub(crate) backlogged: bool,
    /// The wall timer that is armed.
    pub(crate) timer: Option<Instant>,
    pub(crate) generation: u32,
}

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
    /// Tells the dispatchers above `node` whether it has something to run.
    pub(crate) fn propagate(&mut self, mut node: u32, now: Instant) {
        loop {
            let some_ready = self.nodes[node as usize].ready.lowest().is_some();
            let mut eligible = true;
            let mut deadline = None;
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                if supplied.backlogged != some_ready {
                    supplied.backlogged = some_ready;
                    supplied.supply.demand_changed(now, some_ready);
                }
                eligible = supplied.supply.is_eligible();
                deadline = supplied.supply.deadline();
            }
            let parent = self.nodes[node as usize].parent;
            if parent == NONE {
                return;
            }
            self.set_ready(node, parent, some_ready && eligible, deadline, now);
            node = parent;
        }
    }

    /// Enters `node` into its parent's order, or takes it out.
    fn set_ready(&mut self, node: u32, parent: u32, ready: bool, deadline: Option<Instant>, now: Instant) {
        let child = &self.nodes[node as usize];
        let position = child.position;
        let urgency = match (deadline, child.policy, child.best()) {
            (Some(deadline), _, _) => deadline.as_ns(),
            (None, NodePolicy::Edf, Some(best)) => child.keys[best as usize].urgency,
            _ => Instant::NEVER.as_ns(),
        };
        let processor = &mut self.processors[child.processor as usize];
        let above = &mut self.nodes[parent as usize];
        if !ready {
            above.ready.remove(position);
            return;
        }
        if !above.ready.contains(position) {
            above.keys[position as usize] = above.key(urgency, now.as_ns(), processor.sequence);
            processor.sequence += 1;
            above.ready.insert(position);
        } else if above.policy == NodePolicy::Edf {
            above.keys[position as usize].urgency = urgency;
        }
    }

    /// The choice in a tree: who should run, whether he waits for a committed job, and the timers.
    pub(crate) fn decide_tree(&mut self, index: usize) -> Desired {
        let candidate = self.pick(index);
        let processor = &mut self.processors[index];
        let mut should_yield = false;
        if candidate == processor.running && candidate != NONE {
            processor.committed = !self.leaves[candidate as usize].preemptible;
        } else if processor.committed {
            should_yield = candidate != NONE;
        } else if candidate != NONE {
            let position = self.leaves[candidate as usize].position;
            processor.run(candidate, position, &self.leaves);
        } else {
            // The running job's node has lost its supply and nobody else is ready.
            processor.running = NONE;
        }
        processor.flag(should_yield);
        let (running, generation) = (processor.running, processor.generation);
        Desired {
            running: (running != NONE).then_some(TaskId(running)),
            should_yield,
            generation,
            execution_timer: self.arm_execution_timer(index),
            wall_timer: self.arm_wall_timer(index),
        }
    }

    /// The most important ready task, where the running one wins every tie; [`NONE`] if there is none.
    fn pick(&self, index: usize) -> u32 {
        let processor = &self.processors[index];
        let tasks = self.leaves.len() as u32;
        let mut node = processor.root;
        if !self.is_supplied(node) {
            return NONE;
        }
        let mut on_path = processor.running != NONE;
        loop {
            let dispatcher = &self.nodes[node as usize];
            let Some(mut best) = dispatcher.best() else { return NONE };
            if on_path {
                let own = self.position_on_path(processor.running, node);
                on_path = dispatcher.ready.contains(own) && (best == own || !dispatcher.displaces(best, own));
                best = if on_path { own } else { best };
            }
            let entity = dispatcher.layout.children[best as usize];
            if entity < tasks {
                return entity;
            }
            node = entity - tasks;
        }
    }

    /// Where the path from `node` down to `task` goes: a position in `node`.
    fn position_on_path(&self, task: u32, node: u32) -> u32 {
        let leaf = &self.leaves[task as usize];
        let (mut position, mut above) = (leaf.position, leaf.node);
        while above != node {
            position = self.nodes[above as usize].position;
            above = self.nodes[above as usize].parent;
        }
        position
    }

    fn is_supplied(&self, node: u32) -> bool {
        self.supplied.get(self.supply_of[node as usize] as usize).is_none_or(|s| s.supply.is_eligible())
    }

    /// The tightest budget above the running task, armed anew where it is another than the armed timer counts.
    fn arm_execution_timer(&mut self, index: usize) -> Option<ExecutionTimer> {
        let running = self.processors[index].running;
        let tightest = if running == NONE { None } else { self.tightest_budget(running) };
        let processor = &mut self.processors[index];
        let Some((entity, budget)) = tightest else {
            if processor.armed[0].is_some() {
                processor.armed = [None, processor.armed[0]];
            }
            return None;
        };
        let stands = processor.armed[0].is_some_and(|armed| {
            armed.entity == entity
                && armed.leaf == running
                && armed.after.checked_sub(armed.reported) == Some(budget)
        });
        if !stands {
            processor.timer_generation = processor.timer_generation.wrapping_add(1);
            let generation = processor.timer_generation;
            let armed = Armed { entity, generation, after: budget, reported: Span::ZERO, leaf: running };
            processor.armed = [Some(armed), processor.armed[0].or(processor.armed[1])];
        }
        processor.armed[0].map(|armed| ExecutionTimer {
            entity: armed.entity,
            after: armed.after,
            generation: armed.generation,
        })
    }

    /// The entity above `task` with the least budget left, the innermost of several; an empty budget that a
    /// committed job overdraws has no timer any more.
    fn tightest_budget(&self, task: u32) -> Option<(EntityId, Span)> {
        let tasks = self.leaves.len() as u32;
        let mut node = self.leaves[task as usize].node;
        let mut tightest: Option<(EntityId, Span)> = None;
        while node != NONE {
            if let Some(supplied) = self.supplied.get(self.supply_of[node as usize] as usize)
                && let Some(budget) = supplied.supply.budget()
                && !budget.is_zero()
                && tightest.is_none_or(|(_, least)| budget < least)
            {
                tightest = Some((EntityId(tasks + node), budget));
            }
            node = self.nodes[node as usize].parent;
        }
        tightest
    }

    /// The earliest wall timer of the processor's nodes.
    fn arm_wall_timer(&mut self, index: usize) -> Option<WallTimer> {
        let tasks = self.leaves.len() as u32;
        let mut earliest: Option<WallTimer> = None;
        for supplied in &mut self.supplied {
            if usize::from(self.nodes[supplied.node as usize].processor) != index {
                continue;
            }
            let at = supplied.supply.timer();
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
        let index = self.processor_of_node(entity, clock)?;
        let processor = &mut self.processors[index];
        let armed = processor
            .armed
            .iter_mut()
            .flatten()
            .find(|armed| armed.entity == entity && armed.generation == generation)
            .ok_or(Rejected::Stale)?;
        let amount = consumed.checked_sub(armed.reported).ok_or(Rejected::Stale)?;
        armed.reported = consumed;
        let first = self.leaves[armed.leaf as usize].node;
        let mut node = first;
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                supplied.supply.executed(now, amount);
            }
            node = self.nodes[node as usize].parent;
        }
        self.propagate(first, now);
        Ok(())
    }

    pub(crate) fn wall_timer_fired(
        &mut self,
        entity: EntityId,
        generation: u32,
        now: Instant,
        clock: ClockDomain,
    ) -> Result<(), Rejected> {
        self.processor_of_node(entity, clock)?;
        let node = entity.0 - self.leaves.len() as u32;
        let supplied =
            self.supplied.get_mut(self.supply_of[node as usize] as usize).ok_or(Rejected::Unknown)?;
        if supplied.generation != generation || supplied.timer.is_none() {
            return Err(Rejected::Stale);
        }
        supplied.timer = None;
        supplied.supply.timer_fired(now);
        self.propagate(node, now);
        Ok(())
    }

    fn processor_of_node(&self, entity: EntityId, clock: ClockDomain) -> Result<usize, Rejected> {
        let node = entity.0.checked_sub(self.leaves.len() as u32).ok_or(Rejected::Unknown)?;
        let index = usize::from(self.nodes.get(node as usize).ok_or(Rejected::Unknown)?.processor);
        if self.processors[index].clock != clock {
            return Err(Rejected::BadTime);
        }
        Ok(index)
    }

    /// Puts every child where the new mode wants it; its readiness and its key travel with it.
    pub(crate) fn change_mode(&mut self, mode: u32) -> Result<(), Rejected> {
        let spec = self.modes.get(mode as usize).ok_or(Rejected::Unknown)?;
        let tasks = self.leaves.len();
        self.mode = mode;
        for (leaf, &active) in self.leaves.iter_mut().zip(&spec.active) {
            leaf.active = active;
        }
        for (index, layout) in spec.layouts.iter().enumerate() {
            self.nodes[index].spare_ready.clear();
            for (position, &entity) in layout.children.iter().enumerate() {
                let entity = entity as usize;
                let old = if entity < tasks {
                    self.leaves[entity].position
                } else {
                    self.nodes[entity - tasks].position
                };
                let node = &mut self.nodes[index];
                node.spare_keys[position] = node.keys[old as usize];
                if node.ready.contains(old) {
                    node.spare_ready.insert(position as u32);
                }
            }
            self.nodes[index].adopt(layout);
        }
        self.refresh_positions();
        Ok(())
    }

    /// Tells every entity where it stands.
    pub(crate) fn refresh_positions(&mut self) {
        let tasks = self.leaves.len();
        for index in 0..self.nodes.len() {
            for position in 0..self.nodes[index].layout.children.len() {
                let entity = self.nodes[index].layout.children[position] as usize;
                if entity < tasks {
                    self.leaves[entity].position = position as u32;
                } else {
                    self.nodes[entity - tasks].position = position as u32;
                }
            }
        }
        for processor in &mut self.processors {
            if let Some(leaf) = self.leaves.get(processor.running as usize) {
                processor.running_position = leaf.position;
            }
        }
    }
}

impl crate::dispatcher::Dispatcher {
    /// Takes over the spare keys and bits, and the layout, without allocating: their sizes never change.
    fn adopt(&mut self, layout: &crate::dispatcher::Layout) {
        std::mem::swap(&mut self.keys, &mut self.spare_keys);
        std::mem::swap(&mut self.ready, &mut self.spare_ready);
        self.layout.children.clone_from(&layout.children);
        self.layout.level_end.clone_from(&layout.level_end);
    }

    /// Makes room for the children of this layout.
    pub(crate) fn prepare(&mut self, layout: &crate::dispatcher::Layout) {
        let size = layout.children.len();
        self.keys = vec![Key::default(); size];
        self.spare_keys = vec![Key::default(); size];
        self.ready = crate::ready_set::ReadySet::new(size);
        self.spare_ready = crate::ready_set::ReadySet::new(size);
        self.layout = layout.clone();
    }
}
