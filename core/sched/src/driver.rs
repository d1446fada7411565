//! The one pump between the machine and a world: virtual time, real threads, or a recorded trace.
//!
//! An instant is a sequence of rounds. A round goes through its phases over all processors where something is due: what was
//! executed until then and what ends (completions, preemption points, suspensions); mode changes; timers that are due, what
//! arrives (releases, wakes), timers that these have made due; and then the choices. A world is asked for each phase and tells
//! through [`Tell`]; it carries the choices out. What a round causes at its own instant, as a job of no length does, is
//! the next round. Everything that is counted between two events stays
//! here: how much the running job may still execute, what of it the machine has not been told, which timer is next.
//!
//! - A world may put off the choice ([`World::ready_at`]): the instants between are told in order all the same.
//! - Time never goes back: what comes late is told at the last instant that was told.
//! - Execution is told as an amount; that a budget has run out is the machine's conclusion. How an amount is split or merged
//!   between two other events makes no difference, so reports that nothing depends on are left out.
//! - A timer that asks for an instant that it was already called at is not called again at that instant.

use crate::dispatcher::NONE;
use crate::mode_requests::ModeRequests;
use crate::pump::{Group, NEVER, Pump, choose_together};
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

    /// The task whose job the machine wants to have the processor, whoever has it.
    #[inline]
    #[must_use]
    pub fn wanted(&self, place: usize) -> Option<TaskId> {
        self.machine.running(self.pumps[place].processor)
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

    /// Lets everything happen on all processors that is due before `until`, round by round: what ends on any of them; mode
    /// changes; timers and what arrives; then each is decided once, the processors of a cluster together. In each phase processors come
    /// in their order. What a round causes at the same instant is the next round. Modes change as they were asked for.
    ///
    /// # Errors
    /// What the world gives.
    pub fn run_all<W: Worlds>(&mut self, worlds: &mut W, until: u64) -> Result<Reached, W::Error> {
        loop {
            let mode_at = self.modes.next_at();
            if !self.modes.waits_for_jobs() {
                let reached = self.run_in_mode(worlds, until.min(mode_at))?;
                if reached.is_ended || mode_at >= until {
                    return Ok(reached);
                }
            }
            let last = self.pumps.iter().map(|pump| pump.last).max().unwrap_or(0);
            let next = self.ask_when_next(worlds);
            if mode_at >= until && next >= until {
                return Ok(Reached { last, next, is_ended: false });
            }
            let now = next.min(mode_at).max(last);
            if !self.round::<W, true>(worlds, now)? {
                return Ok(Reached { last: now, next, is_ended: true });
            }
        }
    }

    /// As [`Driver::run_all`], while no mode can change before `until`.
    fn run_in_mode<W: Worlds>(&mut self, worlds: &mut W, until: u64) -> Result<Reached, W::Error> {
        if self.pumps.len() == 1 && self.groups.is_empty() {
            // There is nobody else's phase to wait for.
            return self.run(&mut worlds.one(0), 0, until);
        }
        let mut last = self.pumps.iter().map(|pump| pump.last).max().unwrap_or(0);
        self.ask_when_next(worlds);
        loop {
            // The processor on which something happens next, the first of several, and whether there are several.
            let (mut next, mut place, mut several) = (NEVER, 0, false);
            for (index, pump) in self.pumps.iter().enumerate() {
                several = (several & (pump.next_at >= next)) | (pump.next_at == next);
                place = if pump.next_at < next { index } else { place };
                next = next.min(pump.next_at);
            }
            if next >= until {
                return Ok(Reached { last, next, is_ended: false });
            }
            let is_alone = !several && next > last && self.pumps[place].group == NONE;
            last = next.max(last);
            let goes_on = if is_alone {
                self.step_alone(&mut worlds.one(place), place, last)?
            } else {
                self.round::<W, false>(worlds, last)?
            };
            if !goes_on {
                return Ok(Reached { last, next, is_ended: true });
            }
        }
    }

    /// A round in which something is due on one processor alone: no phase waits for another processor's.
    #[inline(always)]
    fn step_alone<W: World>(&mut self, world: &mut W, place: usize, now: u64) -> Result<bool, W::Error> {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        if pump.has_timers {
            pump.step::<W, true>(machine, world, now)?;
        } else {
            pump.step::<W, false>(machine, world, now)?;
        }
        pump.next_at = pump.next_here(world);
        Ok(world.goes_on(now))
    }

    /// When something happens next on each processor; the processors of a cluster are due together.
    fn ask_when_next<W: Worlds>(&mut self, worlds: &mut W) -> u64 {
        for (place, pump) in self.pumps.iter_mut().enumerate() {
            pump.next_at = pump.next_here(&worlds.one(place));
        }
        self.groups.iter().for_each(|group| group.share_next(&mut self.pumps));
        self.pumps.iter().fold(NEVER, |next, pump| next.min(pump.next_at))
    }

    /// One round of the instant `now` on all processors where something is due, on all where the mode may change; whether the world
    /// goes on.
    fn round<W: Worlds, const MODES: bool>(&mut self, worlds: &mut W, now: u64) -> Result<bool, W::Error> {
        for (place, pump) in self.pumps.iter_mut().enumerate() {
            pump.is_in_round = MODES | (pump.next_at <= now);
            if pump.is_in_round {
                let mut world = worlds.one(place);
                if MODES {
                    pump.report(&mut self.machine, &mut world, now);
                }
                pump.ends_here(&mut self.machine, &mut world, now)?;
            }
        }
        if MODES {
            self.take_modes(worlds, now);
        }
        for (place, pump) in self.pumps.iter_mut().enumerate().filter(|(_, pump)| pump.is_in_round) {
            pump.arrives_here(&mut self.machine, &mut worlds.one(place), now)?;
        }
        for group in &self.groups {
            if self.pumps[group.places[0]].is_in_round {
                choose_together(&mut self.machine, &mut self.pumps, group, worlds, now);
            }
        }
        let mut goes_on = true;
        for (place, pump) in self.pumps.iter_mut().enumerate().filter(|(_, pump)| pump.is_in_round) {
            let mut world = worlds.one(place);
            pump.is_chosen_here(&mut self.machine, &mut world, now);
            goes_on &= world.goes_on(now);
        }
        self.groups.iter().for_each(|group| group.share_next(&mut self.pumps));
        Ok(goes_on)
    }

    /// Changes to every mode that takes effect at `now`.
    fn take_modes<W: Worlds>(&mut self, worlds: &mut W, now: u64) {
        loop {
            let Self { machine, modes, .. } = &mut *self;
            let effect = |mode| machine.mode_effect(mode, Instant::from_ns(now));
            let Some(mode) = modes.take(now, effect, |mode| machine.refuses_second(mode)) else { return };
            let before = self.machine.mode();
            let told = self.machine.on(Event::at(Instant::from_ns(now), EventKind::ModeChange { mode }));
            debug_assert_eq!(told, Ok(()));
            for place in 0..self.pumps.len() {
                let change = ModeChange { before, mode, is_first: place == 0, machine: &self.machine };
                worlds.one(place).mode_changed(now, change);
                self.pumps[place].follow_machine(&self.machine);
            }
        }
    }

    /// The mode changes on a processor whose driver has no other, where a [`crate::ModeSequence`] says so. What ends at this instant
    /// is told before; what arrives then is told later, in the new mode.
    ///
    /// # Errors
    /// What the world gives.
    pub fn change_mode<W: World>(
        &mut self,
        world: &mut W,
        place: usize,
        now: u64,
        mode: u32,
    ) -> Result<(), W::Error> {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        let now = now.max(pump.last);
        pump.report(machine, world, now);
        pump.ends_here(machine, world, now)?;
        let before = machine.mode();
        let told = machine.on(Event::at(Instant::from_ns(now), EventKind::ModeChange { mode }));
        debug_assert_eq!(told, Ok(()));
        world.mode_changed(now, ModeChange { before, mode, is_first: true, machine });
        pump.follow_machine(machine);
        Ok(())
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
