//! Execution and wall timers of machines that are more than flat: what a processor's job has executed since a timer
//! was armed, and when the timers go off.
//!
//! Execution is read off the end of the running segment: what is left of it at `now` is `finish - max(now,
//! kernel_until)`, since the kernel's own time delays `finish` by as much.

use crate::engine::Core;
use crate::lane::{Lane, NEVER, NONE};
use crate::source::Source;
use horolog_sched::{Event, EventKind, ExecutionTimer, WallTimer};
use horolog_time::{Instant, Span};
use horolog_trace::Sink;

/// The timers of one processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    execution: Option<ExecutionTimer>,
    /// What has executed since the execution timer was armed, up to the last look.
    consumed: u64,
    /// What was left of the running segment at the last look.
    left: u64,
    /// Whether something of `consumed` has not been reported.
    is_unreported: bool,
    wall: Option<WallTimer>,
}

/// What is left of the running segment.
#[inline(always)]
fn left(lane: &Lane, now: u64) -> u64 {
    if lane.running == NONE { 0 } else { lane.finish.saturating_sub(now.max(lane.kernel_until)) }
}

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// Reports what has executed, and that the budget is exhausted where it is.
    #[inline]
    pub(crate) fn report_execution(&mut self, lane: &mut Lane, now: u64) {
        lane.count_execution(now);
        let Some(timer) = lane.timers.execution else { return };
        if !std::mem::take(&mut lane.timers.is_unreported) {
            return;
        }
        let (entity, generation) = (timer.entity, timer.generation);
        let consumed = Span::from_ns(lane.timers.consumed);
        let kind = if consumed >= timer.after {
            lane.choice_due = true;
            EventKind::Exhausted { entity, generation, consumed }
        } else {
            EventKind::Executed { entity, generation, consumed }
        };
        let taken = self.machine.on(Event::at(Instant::from_ns(now), kind));
        debug_assert_eq!(taken, Ok(()));
    }

    /// After a choice of `next`: takes over the timers that the machine wants; what the one before has counted is reported.
    #[inline]
    pub(crate) fn replace_timers(&mut self, lane: &mut Lane, next: u32, now: u64) {
        let (execution, wall) = self.machine.timers(lane.processor);
        lane.timers.wall = wall;
        lane.is_moved = true;
        let generation = |timer: Option<ExecutionTimer>| timer.map(|timer| timer.generation);
        if generation(execution) == generation(lane.timers.execution) {
            return;
        }
        // A committed job that overdraws its budget has no timer any more; what it executes is reported all the same.
        let goes_on = lane.running != NONE && next == lane.running;
        if execution.is_some() || !goes_on {
            self.report_execution(lane, now);
            lane.timers.execution = execution;
            (lane.timers.consumed, lane.timers.left) = (0, 0);
        }
    }

    /// In the release phase: the wall timer, if it is due.
    pub(crate) fn fire_wall_timer(&mut self, lane: &mut Lane, now: u64) {
        let Some(timer) = lane.timers.wall.take_if(|timer| timer.at.as_ns() <= now) else { return };
        let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
        let taken = self.machine.on(Event::at(Instant::from_ns(now), kind));
        debug_assert_eq!(taken, Ok(()));
        lane.choice_due = true;
    }
}

impl Timers {
    /// Whether an execution timer counts.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        self.execution.is_some()
    }
}

impl Lane {
    /// What has executed since the last look. What is left of the running segment changes by nothing else, so there need be
    /// no look as long as nobody asks; a segment that begins has more left than the one before when it ended.
    #[inline(always)]
    fn count_execution(&mut self, now: u64) {
        if self.timers.execution.is_none() {
            return;
        }
        let left = left(self, now);
        let amount = self.timers.left.saturating_sub(left);
        self.timers.left = left;
        self.timers.consumed += amount;
        self.timers.is_unreported |= amount > 0;
    }

    /// Last thing at an instant at which timers or the running job's end have moved: when the next look is due.
    #[inline]
    pub(crate) fn watch_timers(&mut self, now: u64) {
        self.is_moved = false;
        self.count_execution(now);
        let budget = self.timers.execution.map_or(NEVER, |timer| {
            let rest = timer.after.as_ns().saturating_sub(self.timers.consumed);
            if self.running == NONE || rest == 0 {
                NEVER
            } else {
                now.max(self.kernel_until).saturating_add(rest)
            }
        });
        let wall = self.timers.wall.map_or(NEVER, |timer| timer.at.as_ns().max(now));
        let interrupt = self.interrupts.iter().map(|interrupt| interrupt.next).min().unwrap_or(NEVER);
        self.next_interrupt = budget.min(wall).min(interrupt);
    }
}
