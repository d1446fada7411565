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

mod doubt;
mod instant;
pub(crate) mod mode_notes;
pub(crate) mod pump;
pub(crate) mod tell;
mod withdraw;
pub(crate) mod withdrawn;
pub(crate) mod world;

pub use tell::Tell;
pub use withdrawn::{Cause, Withdrawn};
pub use world::{Choice, ModeChange, Reached, World, Worlds};

use crate::driver::instant::choose_together;
use crate::driver::mode_notes::ModeNotes;
use crate::driver::pump::{Group, NEVER, Pump};
use crate::machine::dispatcher::NONE;
use crate::mode_requests::ModeRequests;
use crate::{Event, EventKind, Machine, ProcessorIndex};
use horolog_model::{System, TaskId};
use horolog_time::Instant;

/// The pump between a [`Machine`] and a [`World`].
#[derive(Clone, Debug)]
pub struct Driver {
    pub(crate) machine: Machine,
    pub(crate) pumps: Vec<Pump>,
    groups: Vec<Group>,
    modes: ModeRequests,
    /// Whether any of the processors may have timers or budgets.
    has_timers: bool,
    /// Whether a job's budget may ask for a mode at its end, so that the mode may change at any instant.
    asks_for_modes: bool,
    /// Whether processors hand locks to each other, so that nothing is known of one alone.
    crosses: bool,
    /// Whether sections may execute on other processors than their jobs'.
    moves: bool,
    /// What is still to be told of the last change; `None` where there is one mode alone.
    mode_notes: Option<Box<ModeNotes>>,
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
        let here: Vec<ProcessorIndex> = pumps.iter().map(|pump| pump.processor).collect();
        let (asks_for_modes, mode_notes) = (machine.asks_for_modes(), ModeNotes::of(&machine, &here));
        let (modes, has_timers) = (ModeRequests::new(system), pumps.iter().any(|pump| pump.has_timers));
        let (crosses, moves) = (machine.hands_on(), machine.moves_sections());
        Driver { machine, pumps, groups, modes, has_timers, asks_for_modes, crosses, moves, mode_notes }
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The place of the processor that a task belongs to.
    #[must_use]
    pub fn place_of(&self, task: TaskId) -> Option<usize> {
        let processor = self.machine.home_of(task);
        self.pumps.iter().position(|pump| pump.processor == processor)
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
            if !self.watches_modes() {
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
            if !self.round::<W, true, true>(worlds, now)? {
                return Ok(Reached { last: now, next, is_ended: true });
            }
        }
    }

    /// Whether every instant is one at which the mode may change, or something of a change is to be told.
    fn watches_modes(&self) -> bool {
        let has_more_to_tell = self.mode_notes.as_ref().is_some_and(|notes| notes.is_open());
        self.modes.waits_for_jobs() || self.asks_for_modes || has_more_to_tell
    }

    /// As [`Driver::run_all`], while no mode can change before `until`.
    fn run_in_mode<W: Worlds>(&mut self, worlds: &mut W, until: u64) -> Result<Reached, W::Error> {
        if self.pumps.len() == 1 && self.groups.is_empty() && !self.crosses {
            // There is nobody else's phase to wait for.
            return self.run(&mut worlds.one(0), 0, until);
        }
        let mut last = self.pumps.iter().map(|pump| pump.last).max().unwrap_or(0);
        self.ask_when_next(worlds);
        loop {
            // The processor on which something happens next, the first of several, and when something does on another one.
            let (mut next, mut place, mut second) = (NEVER, 0, NEVER);
            for (index, pump) in self.pumps.iter().enumerate() {
                second = second.min(next.max(pump.next_at));
                place = if pump.next_at < next { index } else { place };
                next = next.min(pump.next_at);
            }
            if next >= until {
                return Ok(Reached { last, next, is_ended: false });
            }
            if next < second && next > last && self.pumps[place].group == NONE && !self.crosses {
                // No phase waits for another processor's until then.
                let reached = self.run(&mut worlds.one(place), place, second.min(until))?;
                last = reached.last;
                if reached.is_ended {
                    return Ok(reached);
                }
                self.pumps[place].next_at = reached.next;
                continue;
            }
            last = next.max(last);
            let goes_on = if self.has_timers {
                self.round::<W, false, true>(worlds, last)?
            } else {
                self.round::<W, false, false>(worlds, last)?
            };
            if !goes_on {
                return Ok(Reached { last, next, is_ended: true });
            }
        }
    }

    /// When something happens next on each processor; the processors of a cluster are due together.
    fn ask_when_next<W: Worlds>(&mut self, worlds: &mut W) -> u64 {
        for (place, pump) in self.pumps.iter_mut().enumerate() {
            pump.next_at = pump.next_here::<_, true>(&worlds.one(place));
        }
        self.groups.iter().for_each(|group| group.share_next(&mut self.pumps));
        self.pumps.iter().fold(NEVER, |next, pump| next.min(pump.next_at))
    }

    /// One round of the instant `now` on all processors where something is due, on all where the mode may change; whether the world
    /// goes on. Without `TIMERS` no processor has any.
    #[inline(never)]
    fn round<W: Worlds, const MODES: bool, const TIMERS: bool>(
        &mut self,
        worlds: &mut W,
        now: u64,
    ) -> Result<bool, W::Error> {
        for (place, pump) in self.pumps.iter_mut().enumerate() {
            pump.is_in_round = MODES | (pump.next_at <= now);
            if pump.is_in_round {
                let mut world = worlds.one(place);
                if MODES {
                    pump.report(&mut self.machine, &mut world, now);
                }
                pump.ends_here::<_, TIMERS>(&mut self.machine, &mut world, now)?;
            }
        }
        if self.moves {
            self.deliver_ends::<W, TIMERS>(worlds, now)?;
        }
        if self.crosses {
            self.deliver_grants::<W, TIMERS>(worlds, now)?;
        }
        if MODES {
            self.tell_end(&mut worlds.one(0), now);
            self.take_modes(worlds, now);
        }
        for (place, pump) in self.pumps.iter_mut().enumerate().filter(|(_, pump)| pump.is_in_round) {
            pump.arrives_here::<_, TIMERS>(&mut self.machine, &mut worlds.one(place), now)?;
        }
        for group in &self.groups {
            if self.pumps[group.places[0]].is_in_round {
                choose_together(&mut self.machine, &mut self.pumps, group, worlds, now);
            }
        }
        let mut goes_on = true;
        for (place, pump) in self.pumps.iter_mut().enumerate().filter(|(_, pump)| pump.is_in_round) {
            let mut world = worlds.one(place);
            pump.is_chosen_here::<_, TIMERS>(&mut self.machine, &mut world, now);
            goes_on &= world.goes_on(now);
        }
        if self.moves {
            worlds.place_sections(now);
            self.ask_when_next(worlds);
        }
        for place in 0..if MODES { self.pumps.len() } else { 0 } {
            self.tell_dispatch(&mut worlds.one(place), place, now);
        }
        self.groups.iter().for_each(|group| group.share_next(&mut self.pumps));
        Ok(goes_on)
    }

    /// Tells the processors of jobs whose sections have ended elsewhere in this round.
    fn deliver_ends<W: Worlds, const TIMERS: bool>(
        &mut self,
        worlds: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        while let Some(task) = worlds.take_end() {
            let Some(place) = self.place_of(task) else { continue };
            let (machine, pump) = (&mut self.machine, &mut self.pumps[place]);
            if !std::mem::replace(&mut pump.is_in_round, true) {
                pump.ends_here::<_, TIMERS>(machine, &mut worlds.one(place), now)?;
            }
            worlds.one(place).ended_elsewhere(&mut Tell { machine, pump, now }, task)?;
        }
        Ok(())
    }

    /// Tells the processors of jobs that have been granted a lock by what ended in this round.
    fn deliver_grants<W: Worlds, const TIMERS: bool>(
        &mut self,
        worlds: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        while let Some(grant) = worlds.take_grant() {
            let Some(place) = self.place_of(grant.task) else { continue };
            let (machine, pump) = (&mut self.machine, &mut self.pumps[place]);
            if !std::mem::replace(&mut pump.is_in_round, true) {
                pump.ends_here::<_, TIMERS>(machine, &mut worlds.one(place), now)?;
            }
            if !machine.executes_elsewhere(grant.resource) {
                let told = Tell { machine, pump, now }.lock(grant.task, grant.resource);
                debug_assert_eq!(told, Ok(true));
            }
            worlds.one(place).granted(now, grant);
        }
        Ok(())
    }

    /// Changes to every mode that takes effect at `now`.
    fn take_modes<W: Worlds>(&mut self, worlds: &mut W, now: u64) {
        for pump in self.pumps.iter_mut().filter(|pump| pump.asks_for != NONE) {
            self.modes.add_by_overrun(now, std::mem::replace(&mut pump.asks_for, NONE));
        }
        loop {
            let Self { machine, modes, .. } = &mut *self;
            let effect = |mode| machine.mode_effect(mode, Instant::from_ns(now));
            let Some(request) = modes.take(now, machine.mode(), effect, |mode| machine.refuses_second(mode))
            else {
                return;
            };
            let (before, mode) = (self.machine.mode(), request.mode);
            let told = self.machine.on(Event::at(Instant::from_ns(now), EventKind::ModeChange { mode }));
            debug_assert_eq!(told, Ok(()));
            let left_over = self.mode_notes.as_mut().map_or(0, |notes| notes.begin(&self.machine, before));
            for place in 0..self.pumps.len() {
                let is_first = place == 0;
                let request = Some(request);
                let change =
                    ModeChange { before, mode, request, left_over, is_first, machine: &self.machine };
                worlds.one(place).mode_changed(now, change);
                self.pumps[place].follow_machine(&self.machine);
            }
            self.tell_end(&mut worlds.one(0), now);
        }
    }

    /// Tells that the mode before has ended, where it has.
    fn tell_end<W: World>(&mut self, world: &mut W, now: u64) {
        if let Some(note) = self.mode_notes.as_mut().and_then(|notes| notes.end(&self.machine)) {
            world.note(now, note);
        }
    }

    /// Tells who has the processor for the first time in the mode, where a choice was made at `now`.
    fn tell_dispatch<W: World>(&mut self, world: &mut W, place: usize, now: u64) {
        let (pump, Some(notes)) = (&self.pumps[place], &mut self.mode_notes) else { return };
        if !pump.is_due && pump.running != NONE {
            notes.dispatched(&self.machine, TaskId(pump.running), |note| world.note(now, note));
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
        let now = now.max(self.pumps[place].last);
        self.pumps[place].report(&mut self.machine, world, now);
        self.pumps[place].ends_here::<_, true>(&mut self.machine, world, now)?;
        self.tell_end(world, now);
        let Self { machine, pumps, mode_notes, .. } = &mut *self;
        let before = machine.mode();
        let told = machine.on(Event::at(Instant::from_ns(now), EventKind::ModeChange { mode }));
        debug_assert_eq!(told, Ok(()));
        let left_over = mode_notes.as_mut().map_or(0, |notes| notes.begin(machine, before));
        let (request, is_first) = (None, true);
        world.mode_changed(now, ModeChange { before, mode, request, left_over, is_first, machine });
        pumps[place].follow_machine(machine);
        self.tell_end(world, now);
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
        let next = self.pumps[place].next_here::<_, true>(world);
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
        let now = now.max(self.pumps[place].last);
        self.tell_end(world, now);
        let pump = &mut self.pumps[place];
        pump.last = now;
        if pump.has_timers {
            pump.take_notes(&self.machine, world, now);
            pump.settle::<W, true>(&mut self.machine, world, now);
            pump.look_again(world, now);
        } else {
            pump.settle::<W, false>(&mut self.machine, world, now);
        }
        self.tell_dispatch(world, place, now);
    }

    /// Tells the machine what was executed on a processor until `now`.
    pub fn report<W: World>(&mut self, world: &mut W, place: usize, now: u64) {
        self.pumps[place].report(&mut self.machine, world, now);
    }
}
