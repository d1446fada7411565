//! The quick way for a processor whose tree is *shallow*: one dispatcher, and below it tasks and first-in-first-out nodes of
//! tasks. Every processor with servers of a system file is.
//!
//! The dispatcher's ready set then holds a bit a task and a bit a server, at the place where that server stands now, and
//! [`crate::machine::dispatcher::Dispatcher::heads`] says who runs for each bit: the task, or the server's first. So the choice is
//! one search, as on a flat processor, and the running job stands where its server stands. Within a server nobody
//! displaces the running job: it is the server's first until it leaves. So its place changes only where the server gets
//! its first ready child or loses its last, and where its supply says so.

use crate::machine::dispatcher::NONE;
use crate::machine::leaf::JobOrder;
use crate::{Machine, NodePolicy, Place, TimerChanges};
use horolog_model::TaskId;
use horolog_time::Instant;

impl Machine {
    /// A first job becomes ready that is not direct ([`crate::machine::leaf::Leaf::is_direct`]).
    #[inline]
    pub(crate) fn enter(&mut self, task: TaskId, order: JobOrder, now: Instant) {
        let is_ranked = self.leaves[task.index()].rank != NONE;
        if is_ranked {
            self.watch_release(task, Instant::from_ns(order.deadline), now);
        }
        let leaf = &mut self.leaves[task.index()];
        leaf.deadline = order.deadline;
        let (node, position) = (leaf.node, leaf.position);
        let is_shallow = self.processors[usize::from(leaf.processor)].is_shallow;
        let dispatcher = &mut self.nodes[node as usize];
        dispatcher.keys[position as usize] = dispatcher.key(order.deadline, order.released, order.sequence);
        if is_ranked && is_shallow {
            // A hard task stands below the root.
            dispatcher.ready.insert(position);
        } else {
            self.arrived(task, now);
        }
    }

    /// A task whose key is up to date becomes ready.
    #[inline]
    pub(crate) fn arrived(&mut self, task: TaskId, now: Instant) {
        let leaf = &self.leaves[task.index()];
        let (node, position) = (leaf.node, leaf.position);
        let dispatcher = &mut self.nodes[node as usize];
        let was_ready = !dispatcher.ready.is_empty();
        dispatcher.ready.insert(position);
        if !self.processors[usize::from(leaf.processor)].is_shallow {
            self.propagate(node, now);
        } else if dispatcher.parent != NONE && !was_ready {
            dispatcher.head = task.0;
            self.stand(node, true, now);
        }
    }

    /// The oldest job of `task` has completed and left `node`, whose ready set is up to date.
    #[inline]
    pub(crate) fn left(&mut self, task: TaskId, node: u32, now: Instant) {
        let leaf = &self.leaves[task.index()];
        let is_shallow = self.processors[usize::from(leaf.processor)].is_shallow;
        let is_ranked = leaf.rank != NONE;
        if is_ranked {
            self.watch_completion(task, now);
        }
        // A hard task stands below the root.
        if !(is_ranked && is_shallow) {
            self.parted(node, now);
        }
    }

    /// The running job has left `node`, whose ready set and keys are up to date.
    #[inline]
    pub(crate) fn parted(&mut self, node: u32, now: Instant) {
        let dispatcher = &mut self.nodes[node as usize];
        if !self.processors[usize::from(dispatcher.processor)].is_shallow {
            self.propagate(node, now);
            return;
        }
        if dispatcher.parent == NONE {
            return;
        }
        let Some(first) = dispatcher.best() else {
            self.stand(node, false, now);
            return;
        };
        let head = dispatcher.layout.children[first as usize];
        dispatcher.head = head;
        let (parent, position) = (dispatcher.parent, dispatcher.position);
        self.nodes[parent as usize].heads[position as usize] = head;
    }

    /// After anything may have changed below a server of a shallow tree.
    pub(crate) fn look_at_server(&mut self, node: u32, now: Instant) {
        if self.nodes[node as usize].parent != NONE {
            self.parted(node, now);
            let some_ready = !self.nodes[node as usize].ready.is_empty();
            self.stand(node, some_ready, now);
        }
    }

    /// Puts a server of a shallow tree where its supply wants it, which is told whether it has ready children.
    #[inline(always)]
    pub(crate) fn stand(&mut self, node: u32, some_ready: bool, now: Instant) {
        let dispatcher = &self.nodes[node as usize];
        let (parent, processor) = (dispatcher.parent, usize::from(dispatcher.processor));
        let mut place = Place::High;
        let mut deadline = None;
        if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
            supplied.demand(some_ready, now, &mut self.processors[processor]);
            (place, deadline) = (supplied.standing.place, supplied.standing.deadline);
        } else if self.processors[processor].watch != NONE {
            place = self.watch_soft_demand(self.processors[processor].watch as usize, some_ready, now);
        }
        self.set_ready(node, parent, if some_ready { place } else { Place::Out }, deadline, now);
    }

    /// The supply of a server of a shallow tree may want it elsewhere.
    #[inline(always)]
    pub(crate) fn follow_supply(&mut self, node: u32, now: Instant) {
        let dispatcher = &self.nodes[node as usize];
        let supply = self.supply_of[node as usize] as usize;
        if let Some(supplied) = self.supplied.get(supply).filter(|_| !dispatcher.ready.is_empty()) {
            let (place, deadline) = (supplied.standing.place, supplied.standing.deadline);
            self.set_ready(node, dispatcher.parent, place, deadline, now);
        }
    }

    /// The choice in a shallow tree. Whether a timer may be another than before: [`Machine::look_at_timers`].
    #[inline(always)]
    pub(crate) fn choose_shallow(&mut self, index: usize) {
        let processor = &mut self.processors[index];
        let own = processor.running_position;
        let root = &self.nodes[processor.root as usize];
        let mut should_yield = false;
        // A root has the system's policy, and so no time table.
        match root.best_by_order() {
            Some(best) if processor.running == NONE => {
                processor.run(root.heads[best as usize], best, &mut self.leaves);
            }
            Some(best) => {
                // A running job whose server stands nowhere has no place.
                let displaced = best != own && (own == NONE || root.displaces(best, own));
                if displaced && processor.committed {
                    should_yield = true;
                } else if displaced {
                    processor.run(root.heads[best as usize], best, &mut self.leaves);
                } else {
                    // At a preemption point with nobody more important: on with the next segment.
                    processor.committed = !self.leaves[processor.running as usize].preemptible;
                }
            }
            // The running job's server stands nowhere and nobody else is ready.
            None if !processor.committed => processor.running = NONE,
            None => should_yield = processor.running != NONE,
        }
        processor.flag(should_yield);
    }

    /// After the choice in a shallow tree: brings the timers up to date; which of them may be others than before.
    #[inline(always)]
    pub(crate) fn look_at_timers(&mut self, index: usize) -> TimerChanges {
        let processor = &mut self.processors[index];
        let running = processor.running;
        processor.has_changed = false;
        // Between two hard tasks nothing is counted.
        let is_served = self.leaves.get(running as usize).is_some_and(|leaf| leaf.node != processor.root);
        let allowance = (running != processor.timed) & is_served;
        let wall = processor.wall_is_stale | std::mem::take(&mut processor.wall_is_new);
        processor.timed = running;
        if allowance {
            let is_kept = processor.committed & (processor.paying == running);
            processor.paying = running;
            let node = self.leaves[running as usize].node as usize;
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node] as usize) {
                supplied.chosen(is_kept);
            }
        }
        if wall {
            self.arm_wall_timer(index);
        }
        TimerChanges { allowance, wall }
    }

    /// Finds out which processors are shallow, and which tasks are direct.
    pub(crate) fn find_shallow(&mut self) {
        for processor in &mut self.processors {
            processor.is_shallow =
                self.supply_of[processor.root as usize] == NONE && processor.cluster == NONE;
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let processor = &mut self.processors[usize::from(node.processor)];
            let is_below_root = node.parent == processor.root && node.policy == NodePolicy::Fifo;
            // A queue that competes by its jobs' deadlines moves whenever one of them comes or goes.
            let is_edf = self.nodes[processor.root as usize].policy == NodePolicy::Edf;
            let has_deadline = node.is_background || self.supply_of[index] != NONE;
            processor.is_shallow &= node.parent == NONE || (is_below_root && (!is_edf || has_deadline));
        }
        // On threads nothing of a job's budget concerns the order.
        let is_ordered = !self.keeps_begun;
        for leaf in self.leaves.iter().filter(|leaf| is_ordered && leaf.budget != NONE) {
            self.processors[usize::from(leaf.processor)].is_shallow = false;
        }
        for leaf in self.leaves.iter().filter(|leaf| leaf.uses_resources) {
            self.processors[usize::from(leaf.processor)].is_shallow = false;
        }
        for leaf in &mut self.leaves {
            let processor = &self.processors[usize::from(leaf.processor)];
            let watch = self.watches.get(processor.watch as usize);
            let is_listened_to = watch.is_some_and(|watch| watch.service.wants_jobs());
            let is_alone = !is_listened_to && leaf.budget == NONE;
            leaf.is_direct = processor.is_shallow && leaf.node == processor.root && is_alone;
            leaf.is_limited = leaf.budget != NONE || (watch.is_some() && leaf.rank == NONE);
            let mut node = leaf.node;
            while node != NONE && !leaf.is_limited {
                leaf.is_limited = self.supply_of[node as usize] != NONE;
                node = self.nodes[node as usize].parent;
            }
            leaf.is_counted = leaf.is_limited || watch.is_some();
        }
        self.refresh_heads();
    }

    /// After positions have changed: who runs for each of them, and where the running job stands, in shallow trees.
    pub(crate) fn refresh_heads(&mut self) {
        for index in 0..self.processors.len() {
            let root = self.processors[index].root as usize;
            if !self.processors[index].is_shallow {
                continue;
            }
            let Self { nodes, leaves, .. } = self;
            let root_node = &mut nodes[root];
            root_node.heads.clone_from(&root_node.layout.children);
            for position in 0..nodes[root].heads.len() {
                let entity = nodes[root].heads[position] as usize;
                if let Some(server) = entity.checked_sub(leaves.len()) {
                    nodes[root].heads[position] = nodes[server].head;
                }
            }
            let running = leaves.get(self.processors[index].running as usize);
            if let Some(leaf) = running.filter(|leaf| leaf.node as usize != root) {
                let position = nodes[leaf.node as usize].position;
                let stands = nodes[root].ready.contains(position);
                self.processors[index].running_position = if stands { position } else { NONE };
            }
        }
    }
}
