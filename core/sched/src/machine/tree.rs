//! What only deeper trees need: readiness that travels upwards, places, the choice along a path, modes.

use crate::desired::{EntityId, Rejected};
use crate::machine::Processor;
use crate::machine::dispatcher::{Dispatcher, Key, NONE, NodePolicy};
use crate::machine::leaf::Leaf;
use crate::{Machine, Place};
use horolog_time::Instant;

/// Whether a job below `node` keeps the processor until it gives it up, whatever its budgets: as long as it runs there is demand.
pub(crate) fn keeps(processor: &Processor, node: u32, leaves: &[Leaf], nodes: &[Dispatcher]) -> bool {
    let running = leaves.get(processor.running as usize).filter(|_| processor.committed);
    let mut above = running.map_or(NONE, |leaf| leaf.node);
    while above != NONE && above != node {
        above = nodes[above as usize].parent;
    }
    above == node
}

impl Machine {
    /// Tells the dispatchers above `node` whether it has something to run.
    #[inline(always)]
    pub(crate) fn propagate(&mut self, node: u32, now: Instant) {
        // Most often the root of the processor, which nobody stands above.
        if self.nodes[node as usize].parent != NONE || self.supply_of[node as usize] != NONE {
            self.propagate_up(node, now);
        }
    }

    fn propagate_up(&mut self, mut node: u32, now: Instant) {
        while node != NONE {
            node = self.tell_parent(node, now);
        }
    }

    /// Looks at everything below the root of a processor anew, from below: what has changed together leaves no gap in demand.
    pub(crate) fn look_at_all(&mut self, index: usize, now: Instant) {
        let upwards = std::mem::take(&mut self.upwards);
        for &node in &upwards {
            if usize::from(self.nodes[node as usize].processor) != index {
                continue;
            }
            if self.processors[index].is_shallow {
                self.look_at_server(node, now);
            } else {
                self.tell_parent(node, now);
            }
        }
        self.upwards = upwards;
    }

    /// Tells the dispatcher above `node` whether that has something to run; which one that is.
    #[inline(always)]
    fn tell_parent(&mut self, node: u32, now: Instant) -> u32 {
        let dispatcher = &self.nodes[node as usize];
        let (parent, processor) = (dispatcher.parent, usize::from(dispatcher.processor));
        let some_ready = dispatcher.could_run();
        let mut place = Place::High;
        let mut deadline = None;
        // A job that keeps the processor runs: what stands above it does not leave its order meanwhile.
        let is_kept = !some_ready && keeps(&self.processors[processor], node, &self.leaves, &self.nodes);
        if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
            supplied.demand(some_ready | is_kept, now, &mut self.processors[processor]);
            (place, deadline) = (supplied.standing.place, supplied.standing.deadline);
        } else if let Some(watch) = self.watch_of_soft(node) {
            place = self.watch_soft_demand(watch, some_ready, now);
        }
        if parent != NONE {
            if place != Place::High && self.goes_on_in_debt(node) {
                place = Place::High;
            }
            let stays = some_ready | is_kept;
            self.set_ready(node, parent, if stays { place } else { Place::Out }, deadline, now);
        }
        parent
    }

    /// Enters `node` into its parent's order at its place, or takes it out. A node that changes its place goes to the end
    /// of its new level.
    #[inline(always)]
    pub(crate) fn set_ready(
        &mut self,
        node: u32,
        parent: u32,
        place: Place,
        deadline: Option<Instant>,
        now: Instant,
    ) {
        let is_edf = self.nodes[parent as usize].policy == NodePolicy::Edf;
        let urgency = if is_edf && place != Place::Out { self.urgency(node, deadline) } else { 0 };
        let child = &mut self.nodes[node as usize];
        let processor = &mut self.processors[usize::from(child.processor)];
        // In a shallow tree the running job stands where its server stands.
        let runs = self.leaves.get(processor.running as usize).is_some_and(|leaf| leaf.node == node);
        let moves = runs && processor.is_shallow;
        let (old, head) = (child.position, child.head);
        let index = match place {
            Place::High => 0,
            Place::Low(index) => usize::from(index) + 1,
            Place::Out => {
                processor.running_position = if moves { NONE } else { processor.running_position };
                self.nodes[parent as usize].ready.remove(old);
                return;
            }
        };
        let position = child.positions[index];
        (child.position, child.place) = (position, index as u16);
        processor.running_position = if moves { position } else { processor.running_position };
        let key = Key { urgency, tie: if is_edf { now.as_ns() } else { processor.sequence } };
        let above = &mut self.nodes[parent as usize];
        if position != old {
            above.ready.remove(old);
        }
        if !above.ready.contains(position) {
            processor.sequence += 1;
            above.keys[position as usize] = key;
            above.heads[position as usize] = head;
            above.ready.insert(position);
        } else if is_edf {
            above.keys[position as usize].urgency = key.urgency;
        }
    }

    /// What orders a node below an EDF dispatcher: its own deadline, or the earliest below it.
    fn urgency(&self, node: u32, deadline: Option<Instant>) -> u64 {
        let dispatcher = &self.nodes[node as usize];
        if let Some(deadline) = deadline {
            return deadline.as_ns();
        }
        if dispatcher.is_background {
            return u64::MAX;
        }
        if dispatcher.policy == NodePolicy::Edf {
            return dispatcher.best().map_or(u64::MAX, |best| dispatcher.keys[best as usize].urgency);
        }
        let mut earliest = u64::MAX;
        // Of a table's children only the one whose window it is could run.
        let (from, to) = match (dispatcher.policy, dispatcher.current) {
            (NodePolicy::Table, NONE) => return earliest,
            (NodePolicy::Table, current) => (current, current + 1),
            _ => (0, dispatcher.layout.children.len() as u32),
        };
        dispatcher.ready.for_each_in(from, to, |position| {
            let entity = dispatcher.layout.children[position as usize] as usize;
            let below = match entity.checked_sub(self.leaves.len()) {
                None => self.leaves[entity].deadline,
                Some(child) => {
                    let supplied = self.supplied.get(self.supply_of[child] as usize);
                    self.urgency(child as u32, supplied.and_then(|supplied| supplied.standing.deadline))
                }
            };
            earliest = earliest.min(below);
        });
        earliest
    }

    /// Puts a node at another place.
    pub(crate) fn lend(&mut self, entity: EntityId, place: Place, now: Instant) -> Result<(), Rejected> {
        let index = self.processor_of(entity)?;
        let node = entity.0.checked_sub(self.leaves.len() as u32).ok_or(Rejected::Unknown)?;
        let places = self.nodes[node as usize].positions.len();
        if matches!(place, Place::Low(low) if usize::from(low) + 1 >= places) {
            return Err(Rejected::Unknown);
        }
        let supplied =
            self.supplied.get_mut(self.supply_of[node as usize] as usize).ok_or(Rejected::Unknown)?;
        supplied.lent(now, place, &mut self.processors[index]);
        self.propagate(node, now);
        Ok(())
    }

    /// Puts a task at its high or its low place; its key and its readiness travel with it.
    pub(crate) fn move_leaf(&mut self, task: u32, low: bool) {
        let leaf = &mut self.leaves[task as usize];
        if leaf.is_low == low {
            return;
        }
        leaf.is_low = low;
        self.processors[usize::from(leaf.processor)].has_changed = true;
        let (old, new) = (leaf.position, leaf.positions[usize::from(low)]);
        if old == new {
            return;
        }
        leaf.position = new;
        let processor = &mut self.processors[usize::from(leaf.processor)];
        if processor.running == task {
            processor.running_position = new;
        }
        let node = &mut self.nodes[leaf.node as usize];
        node.keys[new as usize] = node.keys[old as usize];
        if node.ready.contains(old) {
            node.ready.remove(old);
            node.ready.insert(new);
        }
    }

    /// The choice in a tree: who should run, whether he waits for a committed job, and the timers.
    pub(crate) fn choose_in_tree(&mut self, index: usize) {
        let is_held = self.processors[index].held > 0;
        let candidate = if is_held { self.pick_while_held(index) } else { self.pick(index) };
        let processor = &mut self.processors[index];
        let mut should_yield = false;
        if candidate == processor.running && candidate != NONE {
            processor.committed = !self.leaves[candidate as usize].preemptible;
        } else if processor.committed {
            // It has lost its place: to whom waits, or, without budget, to nobody.
            should_yield = true;
        } else if candidate != NONE {
            let position = self.leaves[candidate as usize].position;
            processor.run(candidate, position, &mut self.leaves);
        } else {
            // The running job's node has lost its supply and nobody else is ready.
            processor.running = NONE;
        }
        processor.flag(should_yield);
        processor.has_changed = false;
        self.find_who_pays(index);
        self.arm_wall_timer(index);
    }

    /// Every budget above the running job pays where its node stands at its own place.
    fn find_who_pays(&mut self, index: usize) {
        let processor = &mut self.processors[index];
        let is_kept = processor.committed & (processor.paying == processor.running);
        processor.paying = processor.running;
        let running = self.leaves.get(processor.running as usize);
        // Who goes on in debt pays at every level that is empty.
        let in_debt = running.is_some_and(|leaf| leaf.finishes > 0);
        let mut node = running.map_or(NONE, |leaf| leaf.node);
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                supplied.chosen(is_kept);
                supplied.pays |= in_debt && supplied.standing.place != Place::High;
            }
            node = self.nodes[node as usize].parent;
        }
    }

    /// The most important ready task, where the running one wins every tie; [`NONE`] if there is none.
    #[inline(always)]
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
    #[inline(always)]
    pub(crate) fn position_on_path(&self, task: u32, node: u32) -> u32 {
        let leaf = &self.leaves[task as usize];
        let (mut position, mut above) = (leaf.position, leaf.node);
        while above != node {
            position = self.nodes[above as usize].position;
            above = self.nodes[above as usize].parent;
        }
        position
    }

    #[inline(always)]
    pub(crate) fn is_supplied(&self, node: u32) -> bool {
        let supplied = self.supplied.get(self.supply_of[node as usize] as usize);
        supplied.is_none_or(|supplied| supplied.standing.place != Place::Out)
    }

    /// Tells every entity where it stands.
    pub(crate) fn refresh_positions(&mut self) {
        let tasks = self.leaves.len();
        for index in 0..self.nodes.len() {
            for position in 0..self.nodes[index].layout.children.len() {
                let layout = &self.nodes[index].layout;
                let entity = layout.children[position] as usize;
                let place = usize::from(layout.places[position]);
                if entity >= tasks {
                    self.nodes[entity - tasks].positions[place] = position as u32;
                } else if place == 0 {
                    self.leaves[entity].positions = [position as u32; 2];
                } else {
                    self.leaves[entity].positions[1] = position as u32;
                }
            }
        }
        for leaf in &mut self.leaves {
            leaf.position = leaf.positions[usize::from(leaf.is_low)];
        }
        for node in &mut self.nodes {
            node.position = node.positions.get(usize::from(node.place)).copied().unwrap_or(0);
        }
        for processor in &mut self.processors {
            if let Some(leaf) = self.leaves.get(processor.running as usize) {
                processor.running_position = leaf.position;
            }
        }
    }
}

impl crate::machine::dispatcher::Dispatcher {
    /// Takes over the spare keys and bits, and the layout, without allocating: their sizes never change.
    pub(crate) fn adopt(&mut self, layout: &crate::machine::dispatcher::Layout) {
        std::mem::swap(&mut self.keys, &mut self.spare_keys);
        std::mem::swap(&mut self.ready, &mut self.spare_ready);
        self.layout.children.clone_from(&layout.children);
        self.layout.places.clone_from(&layout.places);
        self.layout.level_end.clone_from(&layout.level_end);
    }

    /// Makes room for the children of this layout.
    pub(crate) fn prepare(&mut self, layout: &crate::machine::dispatcher::Layout) {
        let size = layout.children.len();
        self.heads = vec![NONE; size];
        self.keys = vec![Key::default(); size];
        self.spare_keys = vec![Key::default(); size];
        self.ready = crate::machine::ready_set::ReadySet::new(size);
        self.spare_ready = crate::machine::ready_set::ReadySet::new(size);
        self.layout = layout.clone();
    }
}
