//! Virtual time as a world of the driver of `sched`: the processors of a simulation, and the run to its end.

use crate::engine::{Core, End};
use crate::error::Reason;
use crate::lane::{Lane, NONE};
use crate::source::Source;
use horolog_model::TaskId;
use horolog_sched::{Choice, Driver, Grant, ModeChange, Note, OverrunAction, Tell, World, Worlds};
use horolog_time::Span;
use horolog_trace::Sink;

/// One processor of a simulation without drivers.
pub(crate) struct Simulated<'w, 'a, S, K> {
    core: &'w mut Core<'a, S, K>,
    lane: &'w mut Lane,
}

impl<S: Source, K: Sink> World for Simulated<'_, '_, S, K> {
    type Error = Reason;
    const NOTES: bool = K::ACTIVE;

    #[inline(always)]
    fn next(&self) -> u64 {
        self.lane.next_time()
    }

    #[inline(always)]
    fn ready_at(&self) -> u64 {
        self.lane.kernel_until
    }

    #[inline(always)]
    fn ends(&self, now: u64) -> bool {
        (self.lane.finish == now) | (self.lane.next_interrupt <= now)
    }

    #[inline(always)]
    fn executed(&mut self, now: u64, _: u64) -> u64 {
        self.lane.executed(now)
    }

    #[inline(always)]
    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Reason> {
        let now = tell.now();
        if self.lane.finish == now {
            self.core.segment_ends(tell, self.lane, now);
        }
        if self.lane.next_interrupt <= now {
            self.lane.serve_interrupts(now);
        }
        Ok(())
    }

    #[inline(always)]
    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Reason> {
        let now = tell.now();
        self.core.release_due(tell, self.lane, now)
    }

    fn mode_changed(&mut self, now: u64, change: ModeChange<'_>) {
        self.core.mode_changed(self.lane, now, change);
    }

    fn overran(&mut self, now: u64, task: TaskId, action: OverrunAction) {
        self.core.overran(self.lane, now, task.0, action);
    }

    fn granted(&mut self, now: u64, grant: Grant) {
        self.core.granted(self.lane, now, grant);
    }

    fn ended_elsewhere(&mut self, tell: &mut Tell<'_>, task: TaskId) -> Result<(), Reason> {
        self.core.ended_elsewhere(tell, self.lane, task.0);
        Ok(())
    }

    #[inline(always)]
    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        let next = choice.task.map_or(NONE, |task| task.0);
        self.core.carry_out(self.lane, next, now);
    }

    fn note(&mut self, now: u64, note: Note) {
        self.core.note(self.lane, now, note);
    }

    #[inline(always)]
    fn noted(&mut self, count: u64) {
        self.core.events += count;
    }

    fn called_timer(&mut self) -> bool {
        self.core.called_timer()
    }

    #[inline(always)]
    fn goes_on(&mut self, now: u64) -> bool {
        self.core.goes_on(now)
    }
}

/// The processors of a simulation without drivers.
pub(crate) struct Simulation<'w, 'a, S, K> {
    pub(crate) core: &'w mut Core<'a, S, K>,
    pub(crate) lanes: &'w mut [Lane],
}

impl<'a, S: Source, K: Sink> Worlds for Simulation<'_, 'a, S, K> {
    type Error = Reason;
    type One<'o>
        = Simulated<'o, 'a, S, K>
    where
        Self: 'o;

    fn take_grant(&mut self) -> Option<Grant> {
        self.core.take_grant()
    }

    fn take_end(&mut self) -> Option<TaskId> {
        self.core.take_end()
    }

    fn place_sections(&mut self, now: u64) {
        self.core.place_sections(self.lanes, now);
    }

    #[inline(always)]
    fn one(&mut self, place: usize) -> Simulated<'_, 'a, S, K> {
        Simulated { core: self.core, lane: &mut self.lanes[place] }
    }
}

/// What a run needs of a world beside what its driver needs.
pub(crate) trait Run: Worlds<Error = Reason> {
    /// The horizon.
    fn until(&self) -> u64;

    /// How the run ended after the instant `now`, if it did.
    fn end_after(&mut self, now: u64) -> Option<(End, u64)>;

    /// What ends exactly at the horizon has ended.
    fn ends_with_horizon(&mut self, place: usize, tell: &mut Tell<'_>) -> Result<(), Reason>;

    fn places(&self) -> usize;
}

impl<S: Source, K: Sink> Run for Simulation<'_, '_, S, K> {
    fn until(&self) -> u64 {
        self.core.limits.until
    }

    fn end_after(&mut self, now: u64) -> Option<(End, u64)> {
        self.core.end_after(now)
    }

    fn ends_with_horizon(&mut self, place: usize, tell: &mut Tell<'_>) -> Result<(), Reason> {
        let (lane, now) = (&mut self.lanes[place], tell.now());
        if lane.finish == now {
            self.core.segment_ends(tell, lane, now);
        }
        Ok(())
    }

    fn places(&self) -> usize {
        self.lanes.len()
    }
}

/// Runs to the end; returns how and when it ended.
pub(crate) fn run<W: Run>(driver: &mut Driver, world: &mut W) -> Result<(End, u64), Reason> {
    let until = world.until();
    let reached = driver.run_all(world, until)?;
    let end = match world.end_after(reached.last) {
        Some((End::Stopped, at)) if reached.is_ended => {
            return Err(Reason::Stopped { at: Span::from_ns(at).to_string() });
        }
        Some(end) if reached.is_ended => end,
        _ if reached.next == u64::MAX => (End::NothingLeft, reached.last),
        _ => (End::Horizon, until),
    };
    for place in 0..world.places() {
        driver.report(&mut world.one(place), place, end.1);
    }
    for place in (0..world.places()).filter(|_| end.0 == End::Horizon) {
        world.ends_with_horizon(place, &mut driver.tell(place, end.1))?;
    }
    while let Some(task) = world.take_end() {
        if let Some(place) = driver.place_of(task) {
            world.one(place).ended_elsewhere(&mut driver.tell(place, end.1), task)?;
        }
    }
    Ok(end)
}
