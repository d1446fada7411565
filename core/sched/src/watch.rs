//! A processor's service at work: what it is told, and how its answers move tasks and the soft node.

use crate::any_service::AnyService;
use crate::desired::{EntityId, Rejected, WallTimer};
use crate::dispatcher::NONE;
use crate::{Machine, Place};
use horolog_model::TaskId;
use horolog_time::{Instant, Span};

/// The service of one processor.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) service: AnyService,
    pub(crate) processor: u16,
    /// The node of the soft tasks.
    pub(crate) soft_node: u32,
    /// The hard tasks by rank, each with its relative deadline.
    pub(crate) tasks: Vec<(u32, Span)>,
    pub(crate) backlogged: bool,
    /// Where the soft node was put last.
    pub(crate) place: Place,
    /// How often budget had run out or come back at the last look.
    pub(crate) changes: u64,
    pub(crate) timer: Option<Instant>,
    pub(crate) generation: u32,
}

impl Machine {
    /// The watch whose soft node this is.
    #[inline]
    pub(crate) fn watch_of_soft(&self, node: u32) -> Option<usize> {
        let processor = &self.processors[usize::from(self.nodes[node as usize].processor)];
        let watch = self.watches.get(processor.watch as usize)?;
        (watch.soft_node == node).then_some(processor.watch as usize)
    }

    /// The rank of a task, and the watch on its processor.
    #[inline]
    fn ranked(&self, task: TaskId) -> Option<(usize, usize)> {
        let leaf = &self.leaves[task.index()];
        if leaf.rank == NONE {
            return None;
        }
        Some((self.processors[usize::from(leaf.processor)].watch as usize, leaf.rank as usize))
    }

    #[inline]
    pub(crate) fn watch_release(&mut self, task: TaskId, deadline: Instant, now: Instant) {
        let Some((watch, rank)) = self.ranked(task) else { return };
        let relative = self.watches[watch].tasks[rank].1;
        // A driver that gives no deadline gives no arrival either: then it is now.
        let arrival = Some(deadline).filter(|&at| at != Instant::NEVER);
        let arrival = arrival.and_then(|at| at.checked_sub(relative)).unwrap_or(now).min(now);
        self.watches[watch].service.released(now, rank, arrival);
        let low = self.watches[watch].service.is_low(rank);
        self.move_leaf(task.0, low);
        self.follow(watch, now);
    }

    #[inline]
    pub(crate) fn watch_completion(&mut self, task: TaskId, now: Instant) {
        let Some((watch, rank)) = self.ranked(task) else { return };
        self.watches[watch].service.completed(now, rank);
        let low = self.watches[watch].service.is_low(rank);
        self.move_leaf(task.0, low);
        self.follow(watch, now);
    }

    #[inline]
    pub(crate) fn watch_execution(&mut self, index: usize, task: u32, amount: Span, now: Instant) {
        let watch = self.processors[index].watch as usize;
        if watch >= self.watches.len() {
            return;
        }
        let rank = self.leaves[task as usize].rank;
        let rank = (rank != NONE).then_some(rank as usize);
        self.watches[watch].service.executed(now, rank, amount);
        self.follow(watch, now);
    }

    /// Tells the service whether there is soft work; where the soft node stands then.
    pub(crate) fn watch_soft_demand(&mut self, watch: usize, some_ready: bool, now: Instant) -> Place {
        let state = &mut self.watches[watch];
        if state.backlogged != some_ready {
            state.backlogged = some_ready;
            state.service.soft_demand(now, some_ready);
            let processor = &mut self.processors[usize::from(state.processor)];
            (processor.wall_is_stale, processor.has_changed) = (true, true);
        }
        let state = &mut self.watches[watch];
        let place = state.service.soft_place();
        state.place = if some_ready { place } else { Place::Out };
        place
    }

    pub(crate) fn watch_timer_fired(
        &mut self,
        index: usize,
        generation: u32,
        now: Instant,
    ) -> Result<(), Rejected> {
        let watch = self.processors[index].watch as usize;
        let state = &mut self.watches[watch];
        if state.generation != generation || state.timer.is_none() {
            return Err(Rejected::Stale);
        }
        state.timer = None;
        state.service.timer_fired(now);
        self.processors[index].wall_is_stale = true;
        self.follow(watch, now);
        Ok(())
    }

    /// The service's wall timer, which goes by the processor's root.
    pub(crate) fn watch_timer(&mut self, index: usize) -> Option<WallTimer> {
        let processor = &self.processors[index];
        let watch = self.watches.get_mut(processor.watch as usize)?;
        let at = watch.service.timer();
        if at != watch.timer {
            watch.timer = at;
            watch.generation = watch.generation.wrapping_add(1);
        }
        let entity = EntityId(self.leaves.len() as u32 + processor.root);
        at.map(|at| WallTimer { entity, at, generation: watch.generation })
    }

    /// How long a task may run before its service must be told: without limit, execution is counted all the same.
    #[inline]
    pub(crate) fn watched_budget(&self, index: usize, task: u32) -> Option<Span> {
        let watch = self.watches.get(self.processors[index].watch as usize)?;
        let is_soft = self.leaves[task as usize].rank == NONE;
        let budget = if is_soft { watch.service.soft_budget() } else { None };
        Some(budget.unwrap_or(Span::MAX))
    }

    /// Moves the tasks and the soft node to where the service wants them.
    #[inline]
    fn follow(&mut self, watch: usize, now: Instant) {
        while let Some(rank) = self.watches[watch].service.moved() {
            let low = self.watches[watch].service.is_low(rank);
            self.move_leaf(self.watches[watch].tasks[rank].0, low);
        }
        let state = &mut self.watches[watch];
        let place = if state.backlogged { state.service.soft_place() } else { Place::Out };
        let tally = state.service.tally();
        let changes = tally.exhaustions.wrapping_add(tally.replenishments);
        let has_changed = std::mem::replace(&mut state.changes, changes) != changes;
        let is_elsewhere = std::mem::replace(&mut state.place, place) != place;
        let is_later = state.service.timer() != state.timer;
        let (node, processor) = (state.soft_node, &mut self.processors[usize::from(state.processor)]);
        processor.wall_is_stale |= is_later;
        processor.has_changed |= has_changed;
        if is_elsewhere {
            let parent = self.nodes[node as usize].parent;
            self.set_ready(node, parent, place, None, now);
        }
    }
}
