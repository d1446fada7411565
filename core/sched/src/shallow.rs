//! The quick way for a processor whose tree is *shallow*: one dispatcher, and below it tasks and first-in-first-out nodes of
//! tasks. Every processor with servers of a system file is.
//!
//! The dispatcher's ready set then holds a bit a task and a bit a server, at the place where that server stands now, so
//! that choosing is one search as on a flat processor. Within a server nobody displaces the running job. So its place
//! changes only where it gets its first ready child or loses its last, and where its supply says so.

use crate::dispatcher::NONE;
use crate::leaf::JobOrder;
use crate::{Machine, NodePolicy};
use horolog_model::TaskId;
use horolog_time::{Instant, Span};

impl Machine {
    /// A first job becomes ready on a processor that is not flat.
    #[inline]
    pub(crate) fn enter(&mut self, task: TaskId, order: JobOrder, now: Instant) {
        if self.leaves[task.index()].rank != NONE {
            self.watch_release(task, Instant::from_ns(order.deadline), now);
        }
        let leaf = &self.leaves[task.index()];
        let (node, position) = (leaf.node, leaf.position);
        let is_shallow = self.processors[usize::from(leaf.processor)].is_shallow;
        let dispatcher = &mut self.nodes[node as usize];
        let was_ready = !dispatcher.ready.is_empty();
        dispatcher.keys[position as usize] = dispatcher.key(order.deadline, order.released, order.sequence);
        dispatcher.ready.insert(position);
        if !(is_shallow && (was_ready || dispatcher.parent == NONE)) {
            self.propagate(node, now);
        }
    }

    /// The oldest job of `task` has left `node`, whose ready set is up to date.
    #[inline]
    pub(crate) fn left(&mut self, task: TaskId, node: u32, now: Instant) {
        let leaf = &self.leaves[task.index()];
        let is_shallow = self.processors[usize::from(leaf.processor)].is_shallow;
        if leaf.rank != NONE {
            self.watch_completion(task, now);
        }
        let dispatcher = &self.nodes[node as usize];
        if !(is_shallow && (!dispatcher.ready.is_empty() || dispatcher.parent == NONE)) {
            self.propagate(node, now);
        }
    }

    /// The choice in a shallow tree; the timers are up to date after it. Whether one of them may be another than before.
    #[inline]
    pub(crate) fn choose_shallow(&mut self, index: usize) -> bool {
        let processor = &mut self.processors[index];
        let before = processor.running;
        let root = &self.nodes[processor.root as usize];
        let best = root.best().unwrap_or(NONE);
        let mut should_yield = false;
        let stays = before != NONE && {
            let leaf = &self.leaves[before as usize];
            let is_hard = leaf.node == processor.root;
            let own = if is_hard { leaf.position } else { self.nodes[leaf.node as usize].position };
            // Where it still stands in the order, somebody is the best.
            own == best || (root.ready.contains(own) && !root.displaces(best, own))
        };
        if stays {
            processor.committed = !self.leaves[before as usize].preemptible;
        } else if processor.committed {
            should_yield = best != NONE;
        } else if best == NONE {
            // The running job's server stands nowhere and nobody else is ready.
            processor.running = NONE;
        } else {
            let entity = root.layout.children[best as usize];
            let task = match entity.checked_sub(self.leaves.len() as u32) {
                None => entity,
                // A server stands in the order only with a ready child.
                Some(node) => {
                    let server = &self.nodes[node as usize];
                    server.best().map_or(NONE, |first| server.layout.children[first as usize])
                }
            };
            processor.run(task, self.leaves[task as usize].position, &self.leaves);
        }
        processor.flag(should_yield);
        let running = processor.running;
        // Between two hard tasks nothing is counted, unless a service watches.
        let counts = running != processor.timed
            && (processor.armed[0].is_some()
                || processor.watch != NONE
                || running != NONE && self.leaves[running as usize].node != processor.root);
        let changes = counts || processor.wall_is_stale;
        processor.timed = running;
        processor.has_changed = false;
        if changes {
            self.arm_execution_timer(index);
            self.arm_wall_timer(index);
        }
        changes
    }

    /// What limits a running task of a shallow tree: its server, or where a service watches itself.
    #[inline]
    pub(crate) fn shallow_budget(&self, index: usize, task: u32) -> Option<(u32, Span)> {
        if let Some(budget) = self.watched_budget(index, task) {
            return Some((task, budget));
        }
        let node = self.leaves[task as usize].node;
        let supplied = self.supplied.get(self.supply_of[node as usize] as usize)?;
        let budget = supplied.supply.budget().filter(|budget| !budget.is_zero())?;
        Some((self.leaves.len() as u32 + node, budget))
    }

    /// Finds out which processors are shallow.
    pub(crate) fn find_shallow(&mut self) {
        for processor in &mut self.processors {
            processor.is_shallow = self.supply_of[processor.root as usize] == NONE;
        }
        for node in &self.nodes {
            let processor = &mut self.processors[usize::from(node.processor)];
            let is_below_root = node.parent == processor.root && node.policy == NodePolicy::Fifo;
            processor.is_shallow &= node.parent == NONE || is_below_root;
        }
    }
}
