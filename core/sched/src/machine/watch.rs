//! A processor's service at work: what it is told, and how its answers move tasks and the soft node.

use crate::desired::{EntityId, Rejected, WallTimer};
use crate::machine::Processor;
use crate::machine::dispatcher::NONE;
use crate::machine::leaf::Leaf;
use crate::machine::timers::STALE;
use crate::servers::any_service::{Answer, AnyService};
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

    /// A job of a task that has a rank was released.
    #[inline]
    pub(crate) fn watch_release(&mut self, task: TaskId, deadline: Instant, now: Instant) {
        let leaf = &self.leaves[task.index()];
        if leaf.rank == NONE {
            return;
        }
        let (watch, rank) = (self.processors[usize::from(leaf.processor)].watch as usize, leaf.rank as usize);
        let state = &mut self.watches[watch];
        let relative = state.tasks[rank].1;
        // A driver that gives no deadline gives no arrival either: then it is now.
        let arrival = Some(deadline).filter(|&at| at != Instant::NEVER);
        let arrival = arrival.and_then(|at| at.checked_sub(relative)).unwrap_or(now).min(now);
        let (answer, low) = state.service.released(now, rank, arrival);
        self.move_leaf(task.0, low);
        self.follow(watch, answer, now);
    }

    /// A job of a task that has a rank has completed.
    #[inline]
    pub(crate) fn watch_completion(&mut self, task: TaskId, now: Instant) {
        let leaf = &self.leaves[task.index()];
        if leaf.rank == NONE {
            return;
        }
        let (watch, rank) = (self.processors[usize::from(leaf.processor)].watch as usize, leaf.rank as usize);
        let (answer, low) = self.watches[watch].service.completed(now, rank);
        self.move_leaf(task.0, low);
        self.follow(watch, answer, now);
    }

    /// A task of a watched processor has executed.
    #[inline(always)]
    pub(crate) fn watch_execution(&mut self, task: u32, amount: Span, now: Instant) {
        let leaf = &self.leaves[task as usize];
        let watch = self.processors[usize::from(leaf.processor)].watch as usize;
        let rank = (leaf.rank != NONE).then_some(leaf.rank as usize);
        let index = usize::from(leaf.processor);
        let answer = self.watches[watch].service.executed(now, rank, amount);
        if rank.is_none() {
            // Its allowance has changed.
            self.processors[index].timed = STALE;
        }
        self.follow(watch, answer, now);
    }

    /// Tells the service whether there is soft work; where the soft node stands then.
    pub(crate) fn watch_soft_demand(&mut self, watch: usize, some_ready: bool, now: Instant) -> Place {
        let state = &mut self.watches[watch];
        let mut place = state.service.soft_place();
        if state.backlogged != some_ready {
            state.backlogged = some_ready;
            let answer = state.service.soft_demand(now, some_ready);
            place = answer.soft_place;
            state.note(answer, &mut self.processors[usize::from(state.processor)]);
        }
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
        let answer = state.service.timer_fired(now);
        while let Some(rank) = self.watches[watch].service.moved() {
            let low = self.watches[watch].service.is_low(rank);
            self.move_leaf(self.watches[watch].tasks[rank].0, low);
        }
        // The budget of whoever runs may be another one.
        let processor = &mut self.processors[index];
        (processor.wall_is_stale, processor.timed) = (true, STALE);
        self.follow(watch, answer, now);
        Ok(())
    }

    /// The service's wall timer, which goes by the processor's root.
    #[inline]
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

    /// How long a soft task of a watched processor may run before its service must be told.
    #[inline]
    pub(crate) fn watched_budget(&self, index: usize, leaf: &Leaf) -> Option<Span> {
        let watch = self.watches.get(self.processors[index].watch as usize)?;
        if leaf.rank == NONE { watch.service.soft_budget().filter(|budget| !budget.is_zero()) } else { None }
    }

    /// Moves the soft node to where the service wants it.
    #[inline(always)]
    fn follow(&mut self, watch: usize, answer: Answer, now: Instant) {
        let state = &mut self.watches[watch];
        state.note(answer, &mut self.processors[usize::from(state.processor)]);
        let place = if state.backlogged { answer.soft_place } else { Place::Out };
        if place != state.place {
            state.place = place;
            let node = state.soft_node;
            self.move_soft(node, place, now);
        }
    }

    #[inline(never)]
    fn move_soft(&mut self, node: u32, place: Place, now: Instant) {
        self.set_ready(node, self.nodes[node as usize].parent, place, None, now);
    }
}

impl Watch {
    #[inline]
    fn note(&mut self, answer: Answer, processor: &mut Processor) {
        processor.wall_is_stale |= answer.timer != self.timer;
        processor.count_changes(answer.changes.wrapping_sub(self.changes));
        processor.is_counting = answer.counts;
        self.changes = answer.changes;
    }
}
