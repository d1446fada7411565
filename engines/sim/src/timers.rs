//! Execution and wall timers of machines that are more than flat: what a processor's job has executed since a timer
//! was armed, and when the timers go off.
//!
//! Execution is read off the end of the running segment: what is left of it at `now` is `finish - max(now,
//! kernel_until)`, since the kernel's own time delays `finish` by as much.

use crate::engine::Core;
use crate::lane::{Lane, NEVER, NONE, WATCHED};
use crate::source::Source;
use horolog_model::TaskId;
use horolog_sched::{Event, EventKind, ExecutionTimer, WallTimer};
use horolog_time::{Instant, Span};
use horolog_trace::Sink;

/// The timers of one processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    execution: Option<ExecutionTimer>,
    /// What has executed since the execution timer was armed (without one, since the last report), up to the last look.
    consumed: u64,
    /// What was left of the running segment at the last look.
    left: u64,
    /// Whether something of `consumed` has not been reported.
    is_unreported: bool,
    pub(crate) wall: Option<WallTimer>,
}

/// What is left of the running segment.
#[inline(always)]
fn left(lane: &Lane, now: u64) -> u64 {
    if lane.running == NONE { 0 } else { lane.finish.saturating_sub(now.max(lane.kernel_until)) }
}

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// Reports what has executed, and that the budget is exhausted where it is.
    #[inline(always)]
    pub(crate) fn report_execution<const COUNTED: u8>(&mut self, lane: &mut Lane, now: u64) {
        if !lane.count_execution::<COUNTED>(now) {
            return;
        }
        lane.timers.is_unreported = false;
        match lane.timers.execution {
            Some(timer) => self.report_budget(lane, timer, now),
            None if COUNTED == WATCHED => self.report_ran(lane, now),
            None => {}
        }
    }

    #[inline(always)]
    fn report_ran(&mut self, lane: &mut Lane, now: u64) {
        let amount = Span::from_ns(std::mem::take(&mut lane.timers.consumed));
        if self.machine.is_counting(lane.processor) {
            let kind = EventKind::Ran { task: TaskId(lane.running), amount };
            let taken = self.machine.on(Event::at(Instant::from_ns(now), kind));
            debug_assert_eq!(taken, Ok(()));
        }
    }

    #[inline(never)]
    fn report_budget(&mut self, lane: &mut Lane, timer: ExecutionTimer, now: u64) {
        let ExecutionTimer { entity, generation, after } = timer;
        let consumed = Span::from_ns(lane.timers.consumed);
        let kind = if consumed >= after {
            lane.choice_due = true;
            EventKind::Exhausted { entity, generation, consumed }
        } else {
            EventKind::Executed { entity, generation, consumed }
        };
        let taken = self.machine.on(Event::at(Instant::from_ns(now), kind));
        debug_assert_eq!(taken, Ok(()));
    }

    /// After a choice of `next`: what the job before has executed is reported; takes over the execution timer that the machine
    /// wants.
    #[inline(never)]
    pub(crate) fn replace_execution_timer(&mut self, lane: &mut Lane, next: u32, now: u64) {
        let switches = next != lane.running;
        let execution = self.machine.execution_timer(lane.processor);
        let generation = |timer: Option<ExecutionTimer>| timer.map(|timer| timer.generation);
        let stays = generation(execution) == generation(lane.timers.execution);
        let goes_on = lane.running != NONE && !switches;
        // A committed job that overdraws its budget has no timer any more; what it executes is reported all the same.
        if goes_on && (stays || execution.is_none()) {
            return;
        }
        self.report_execution::<WATCHED>(lane, now);
        lane.timers.begin(if goes_on { left(lane, now) } else { 0 });
        // Also one that stays ends at another time where something came between.
        lane.is_moved = true;
        if !stays {
            lane.timers.execution = execution;
            lane.timers.consumed = 0;
        }
    }

    /// Every wall timer that is due goes off, before anything is chosen. Which one is next may have changed by what came
    /// before at this instant, so the machine is asked, also where none is due.
    #[inline(always)]
    pub(crate) fn fire_wall_timers(&mut self, lane: &mut Lane, now: u64) {
        let wall = self.machine.wall_timer(lane.processor);
        if wall != lane.timers.wall {
            lane.timers.wall = wall;
            lane.is_moved = true;
        }
        if wall.is_some_and(|timer| timer.at.as_ns() <= now) {
            self.fire_due(lane, now);
        }
    }

    #[inline(never)]
    fn fire_due(&mut self, lane: &mut Lane, now: u64) {
        lane.choice_due = true;
        lane.is_moved = true;
        while let Some(timer) = lane.timers.wall.filter(|timer| timer.at.as_ns() <= now) {
            let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
            let taken = self.machine.on(Event::at(Instant::from_ns(now), kind));
            debug_assert_eq!(taken, Ok(()));
            lane.timers.wall = self.machine.wall_timer(lane.processor);
            // A supply of the caller's own that never stops asking ends by the limit of a run.
            self.steps += 1;
            if self.steps >= self.limits.events {
                return;
            }
        }
    }
}

impl Timers {
    /// Whether an execution timer counts.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        self.execution.is_some()
    }

    /// A segment of this length is executed from now on.
    #[inline(always)]
    pub(crate) fn begin(&mut self, length: u64) {
        self.left = length;
    }
}

impl Lane {
    /// Counts what has executed since the last look; whether something has not been reported. What is left of the running
    /// segment changes by nothing else, so there need be no look as long as nobody asks.
    #[inline(always)]
    fn count_execution<const COUNTED: u8>(&mut self, now: u64) -> bool {
        if !(COUNTED == WATCHED && self.is_watched || self.timers.counts()) {
            return false;
        }
        let left = left(self, now);
        let amount = self.timers.left.saturating_sub(left);
        self.timers.left = left;
        self.timers.consumed += amount;
        self.timers.is_unreported |= amount > 0;
        self.timers.is_unreported
    }

    /// Last thing at an instant at which timers or the running job's end have moved: when the next look is due.
    #[inline]
    pub(crate) fn watch_timers<const COUNTED: u8>(&mut self, now: u64) {
        self.is_moved = false;
        self.count_execution::<COUNTED>(now);
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
