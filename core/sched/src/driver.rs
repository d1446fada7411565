//! The one pump between the machine and a world: virtual time, real threads, or a recorded trace.
//!
//! An instant goes through its phases: what was executed until then, what ends (completions, preemption points, suspensions),
//! timers that are due, what arrives (releases, wakes), timers that these have made due, and then the choice. A world is asked
//! for each phase and tells through [`Tell`]; it carries the choice out. Everything that is counted between two events stays
//! here: how much the running job may still execute, what of it the machine has not been told, which timer is next.
//!
//! - A world may put off the choice ([`World::ready_at`]): the instants between are told in order all the same.
//! - Time never goes back: what comes late is told at the last instant that was told.
//! - Execution is told as an amount; that a budget has run out is the machine's conclusion. How an amount is split or merged
//!   between two other events makes no difference, so reports that nothing depends on are left out.
//! - A timer that asks for an instant that it was already called at is not called again at that instant.

use crate::dispatcher::NONE;
use crate::mode_requests::ModeRequests;
use crate::pump::{Group, NEVER, Pump, step_together};
use crate::{Event, EventKind, Machine, ModeChange, ProcessorIndex, Reached, Tell, World, Worlds};
use horolog_model::{System, TaskId};
use horolog_time::Instant;

/// The pump between a [`Machine`] and a [`World`].
#[derive(Clone, Debug)]
pub struct Driver {
    machine: Machine,
    pumps: Vec<Pump>,
    groups: Vec<Group>,
    modes: ModeRequests,
}

impl Driver {
    /// The driver of some processors of a machine of this system, in this order.
    #[must_use]
    pub fn new(
        machine: Machine,
        system: &System,
        processors: impl Iterator<Item = ProcessorIndex>,
    ) -> Driver {
        let pump = |processor| Pump::new(&machine, system, processor);
        let mut pumps: Vec<Pump> = processors.map(pump).collect();
        let groups = (0..machine.clusters()).map(|cluster| {
            let place = |&index: &u16| pumps.iter().position(|pump| pump.processor.0 == index);
            Group { cluster, places: machine.processors_of(cluster).iter().filter_map(place).collect() }
        });
        let groups: Vec<Group> = groups.collect();
        for (number, group) in groups.iter().enumerate() {
            for &place in &group.places {
                pumps[place].group = number as u32;
            }
        }
        Driver { machine, pumps, groups, modes: ModeRequests::new(system) }
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether a choice is due on a processor.
    ///
    /// # Panics
    /// Where the driver has no such processor; so do the other methods.
    #[must_use]
    pub fn is_due(&self, place: usize) -> bool {
        self.pumps[place].is_due
    }

    /// The task that has the processor, as far as the machine was told.
    #[must_use]
    pub fn running(&self, place: usize) -> Option<TaskId> {
        let running = self.pumps[place].running;
        (running != NONE).then_some(TaskId(running))
    }

    /// When the next wall timer goes off; `u64::MAX`: never.
    #[inline]
    #[must_use]
    pub fn wall_at(&self, place: usize) -> u64 {
        self.pumps[place].wall.map_or(NEVER, |timer| timer.at.as_ns())
    }

    /// What the running job may execute, from what was told last on, until its budget is used up; `u64::MAX`: there is no limit.
    #[must_use]
    pub fn allowance(&self, place: usize) -> u64 {
        self.pumps[place].allowance
    }

    /// What was executed and has not been told to the machine, since nothing depended on it.
    #[must_use]
    pub fn untold(&self, place: usize) -> u64 {
        self.pumps[place].untold
    }

    /// Lets everything happen on the processor at `place` that is due before `until`. It ends early where the world says so. The
    /// processor is none of a cluster.
    ///
    /// # Errors
    /// What the world gives.
    pub fn run<W: World>(&mut self, world: &mut W, place: usize, until: u64) -> Result<Reached, W::Error> {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        if pump.has_timers {
            pump.run::<W, true>(machine, world, until)
        } else {
            pump.run::<W, false>(machine, world, until)
        }
    }

    /// Asks for a mode at an instant, behind what was asked for at the same instant before.
    pub fn request_mode(&mut self, at: u64, mode: u32) {
        self.modes.add(at, mode);
    }

    /// How many requests for modes were refused since another one waited.
    #[must_use]
    pub fn refused_modes(&self) -> u64 {
        self.modes.refused()
    }

    /// Lets everything happen on all processors that is due before `until`, by time, then in the order of processors. The
    /// processors of a cluster go through the phases of an instant together, and are decided together. Modes change as they were
    /// asked for.
    ///
    /// # Errors
    /// What the world gives.
    pub fn run_all<W: Worlds>(&mut self, worlds: &mut W, until: u64) -> Result<Reached, W::Error> {
        loop {
            let mode_at = self.modes.next_at();
            let (reached, has_changed) = if self.modes.waits_for_jobs() {
                self.run_until_done(worlds, until.min(mode_at))?
            } else {
                (self.run_in_mode(worlds, until.min(mode_at))?, false)
            };
            if reached.is_ended || (!has_changed && until <= mode_at) {
                return Ok(reached);
            }
            if !has_changed {
                self.end_everywhere(worlds, mode_at)?;
                self.take_modes(worlds, mode_at);
            }
        }
    }

    /// As [`Driver::run_all`], with nothing asked for before `until`.
    fn run_in_mode<W: Worlds>(&mut self, worlds: &mut W, until: u64) -> Result<Reached, W::Error> {
        if let [_] = self.pumps.as_slice() {
            return self.run(&mut worlds.one(0), 0, until);
        }
        let Self { machine, pumps, groups, .. } = self;
        let mut last = pumps.iter().map(|pump| pump.last).max().unwrap_or(0);
        for (place, pump) in pumps.iter_mut().enumerate() {
            pump.next_at = pump.next_here(&worlds.one(place));
        }
        loop {
            // The processor on which something happens next, the first of several.
            let (mut next, mut place) = (NEVER, 0);
            for (index, pump) in pumps.iter().enumerate() {
                place = if pump.next_at < next { index } else { place };
                next = next.min(pump.next_at);
            }
            if next >= until {
                return Ok(Reached { last, next, is_ended: false });
            }
            last = next.max(last);
            if let Some(group) = groups.get(pumps[place].group as usize) {
                step_together(machine, pumps, group, worlds, last)?;
                if !worlds.one(place).goes_on(last) {
                    return Ok(Reached { last, next, is_ended: true });
                }
                continue;
            }
            let (pump, mut world) = (&mut pumps[place], worlds.one(place));
            if pump.has_timers {
                pump.step::<W::One<'_>, true>(machine, &mut world, last)?;
            } else {
                pump.step::<W::One<'_>, false>(machine, &mut world, last)?;
            }
            // What happens on one processor changes nothing on another.
            pump.next_at = pump.next_here(&world);
            if !world.goes_on(last) {
                return Ok(Reached { last, next, is_ended: true });
            }
        }
    }

    /// As [`Driver::run_in_mode`], until the mode changes because jobs are done: at each instant what ends on any processor comes
    /// before all else.
    fn run_until_done<W: Worlds>(&mut self, worlds: &mut W, until: u64) -> Result<(Reached, bool), W::Error> {
        loop {
            let nexts = self.pumps.iter().enumerate().map(|(place, pump)| pump.next_here(&worlds.one(place)));
            let next = nexts.min().unwrap_or(NEVER);
            let last = self.pumps.iter().map(|pump| pump.last).max().unwrap_or(0);
            if next >= until {
                return Ok((Reached { last, next, is_ended: false }, false));
            }
            let now = next.max(last);
            self.end_everywhere(worlds, now)?;
            let mut has_changed = self.take_modes(worlds, now);
            let reached = self.run_in_mode(worlds, now.saturating_add(1))?;
            // A job of no length may have ended in a further round.
            has_changed = has_changed || self.take_modes(worlds, now);
            if reached.is_ended || has_changed {
                return Ok((reached, has_changed));
            }
        }
    }

    /// What was executed until `now` and what ends then is told on every processor.
    fn end_everywhere<W: Worlds>(&mut self, worlds: &mut W, now: u64) -> Result<(), W::Error> {
        for (place, pump) in self.pumps.iter_mut().enumerate() {
            let mut world = worlds.one(place);
            pump.report(&mut self.machine, &mut world, now);
            pump.last = now.max(pump.last);
            world.complete(&mut Tell { machine: &mut self.machine, pump, now })?;
        }
        Ok(())
    }

    /// Changes to every mode that takes effect at `now`; whether there was one.
    fn take_modes<W: Worlds>(&mut self, worlds: &mut W, now: u64) -> bool {
        let mut has_changed = false;
        while let Some(mode) = self.modes.take(&self.machine, now) {
            has_changed = true;
            let before = self.machine.mode();
            let told = self.machine.on(Event::at(Instant::from_ns(now), EventKind::ModeChange { mode }));
            debug_assert_eq!(told, Ok(()));
            for place in 0..self.pumps.len() {
                let change = ModeChange { before, mode, is_first: place == 0, machine: &self.machine };
                worlds.one(place).mode_changed(now, change);
                self.pumps[place].follow_machine(&self.machine);
            }
        }
        has_changed
    }

    /// The next instant of a processor, where there is one before `until`: when it was.
    ///
    /// # Errors
    /// What the world gives.
    pub fn run_once<W: World>(
        &mut self,
        world: &mut W,
        place: usize,
        until: u64,
    ) -> Result<Option<u64>, W::Error> {
        let next = self.pumps[place].next_here(world);
        if next >= until {
            return Ok(None);
        }
        self.instant(world, place, next)?;
        Ok(Some(self.pumps[place].last))
    }

    /// The instant `now` of a processor, or the last one that was told where that is later.
    ///
    /// # Errors
    /// What the world gives.
    #[inline]
    pub fn instant<W: World>(&mut self, world: &mut W, place: usize, now: u64) -> Result<(), W::Error> {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        let now = now.max(pump.last);
        if pump.has_timers {
            pump.step::<W, true>(machine, world, now)
        } else {
            pump.step::<W, false>(machine, world, now)
        }
    }

    /// Tells what happens on a processor beside the phases of an instant: no time passes between, and nothing is chosen.
    #[must_use]
    pub fn tell(&mut self, place: usize, now: u64) -> Tell<'_> {
        let pump = &mut self.pumps[place];
        let now = now.max(pump.last);
        pump.last = now;
        Tell { machine: &mut self.machine, pump, now }
    }

    /// Makes the choice now, whether one is due or not.
    pub fn settle<W: World>(&mut self, world: &mut W, place: usize, now: u64) {
        let pump = &mut self.pumps[place];
        let now = now.max(pump.last);
        pump.last = now;
        if pump.has_timers {
            pump.take_notes(&self.machine, world, now);
            pump.settle::<W, true>(&mut self.machine, world, now);
            pump.look_again(world, now);
        } else {
            pump.settle::<W, false>(&mut self.machine, world, now);
        }
    }

    /// Tells the machine what was executed on a processor until `now`.
    pub fn report<W: World>(&mut self, world: &mut W, place: usize, now: u64) {
        self.pumps[place].report(&mut self.machine, world, now);
    }
}
