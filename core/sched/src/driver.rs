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
use crate::note::Noted;
use crate::{EntityId, Event, EventKind, Machine, Note, Place, ProcessorIndex, Rejected, WallTimer};
use horolog_model::{System, TaskId};
use horolog_time::{Instant, Span};

/// Never.
const NEVER: u64 = u64::MAX;

/// What a processor should do from now on.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The task whose oldest job should run; `None`: idle.
    pub task: Option<TaskId>,
    machine: &'a Machine,
    processor: ProcessorIndex,
}

impl Choice<'_> {
    /// Whether somebody more important waits for the running job's next preemption point.
    #[must_use]
    pub fn should_yield(&self) -> bool {
        self.machine.flag(self.processor).0
    }

    /// Counts the changes of [`Choice::should_yield`], so that a stale flag is told from a fresh one.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.machine.flag(self.processor).1
    }
}

/// One processor that a driver drives; times are nanoseconds of the world's clock.
pub trait World {
    /// Why a run may end early.
    type Error;

    /// Whether it takes notes one by one; where not, they are only counted ([`World::noted`]).
    const NOTES: bool = true;

    /// When something happens next by the world's own doing; `u64::MAX`: never.
    fn next(&self) -> u64;

    /// From when on the processor can be given to another job; a choice that is due waits until then.
    fn ready_at(&self) -> u64;

    /// Whether the running job gets to its end or to a preemption point at `now`, or is held up: what it has executed is told
    /// before.
    fn ends(&self, now: u64) -> bool;

    /// What the job that has the processor has executed since this was asked last or it got the processor. `allowance` is what
    /// it might execute since then until its budget is used up, `u64::MAX` without a limit.
    fn executed(&mut self, now: u64, allowance: u64) -> u64;

    /// Tells what ends at `now`.
    ///
    /// # Errors
    /// Where the run cannot go on.
    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Self::Error>;

    /// Tells what arrives at `now`, after the timers of this instant.
    ///
    /// # Errors
    /// Where the run cannot go on.
    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Self::Error>;

    /// The mode has changed: what ended at `now` has been told, what arrives has not.
    fn mode_changed(&mut self, now: u64, change: ModeChange<'_>) {
        let _ = (now, change);
    }

    /// Carries the choice out: the processor is given to the chosen job.
    fn carry_out(&mut self, now: u64, choice: Choice<'_>);

    /// Takes a note, before the choice of its instant.
    fn note(&mut self, now: u64, note: Note);

    /// So many notes were not taken one by one.
    fn noted(&mut self, count: u64) {
        let _ = count;
    }

    /// A timer was called; whether another one that is due may be called at this instant.
    fn called_timer(&mut self) -> bool {
        true
    }

    /// Everything of an instant was told; whether the run goes on.
    fn goes_on(&mut self, now: u64) -> bool;
}

/// A change of the mode.
#[derive(Clone, Copy, Debug)]
pub struct ModeChange<'a> {
    /// The mode before.
    pub before: u32,
    /// The mode from now on.
    pub mode: u32,
    /// Whether this is the first processor that is told of it.
    pub is_first: bool,
    /// The machine after the change, to look at: a task of which it has no jobs has none left.
    pub machine: &'a Machine,
}

/// The processors of a driver that has several, each a world of its own.
pub trait Worlds {
    /// Why a run may end early.
    type Error;

    /// One of them.
    type One<'a>: World<Error = Self::Error>
    where
        Self: 'a;

    /// A processor, by its place among those that the driver was made with.
    fn one(&mut self, place: usize) -> Self::One<'_>;
}

/// How far a run came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The last instant that was looked at.
    pub last: u64,
    /// When something happens next; `u64::MAX`: never.
    pub next: u64,
    /// Whether the world ended it.
    pub is_ended: bool,
}

/// What is kept of one processor between two events.
#[derive(Clone, Debug)]
struct Pump {
    processor: ProcessorIndex,
    /// Whose job has the processor; [`NONE`]: nobody's.
    running: u32,
    /// Whether what it executes is told to the machine.
    is_counted: bool,
    /// What was executed and has not been told.
    untold: u64,
    /// What may be executed until the machine must be told; [`NEVER`]: no limit. Zero until the next choice.
    allowance: u64,
    wall: Option<WallTimer>,
    /// A timer that asked for the instant at which it was called already, and that instant.
    refused: Option<(EntityId, u64)>,
    /// When a budget is used up or a timer is due.
    look_at: u64,
    /// Whether a choice is due.
    is_due: bool,
    /// Whether the machine may want timers or count execution here.
    has_timers: bool,
    /// Whether execution is told at every instant, or only where the machine must know.
    tells_always: bool,
    last: u64,
    /// When something happens next here, while several processors run.
    next_at: u64,
    /// Which of the driver's groups it belongs to; [`NONE`]: it is decided alone.
    group: u32,
    noted: Noted,
}

/// The processors of a cluster: decided together.
#[derive(Clone, Debug)]
struct Group {
    cluster: usize,
    /// Their places in the driver, in the order of the cluster's processors.
    places: Box<[usize]>,
}

/// The pump between a [`Machine`] and a [`World`].
#[derive(Clone, Debug)]
pub struct Driver {
    machine: Machine,
    pumps: Vec<Pump>,
    groups: Vec<Group>,
    modes: ModeRequests,
}

/// How a world tells what happens on one processor at one instant.
#[derive(Debug)]
pub struct Tell<'a> {
    machine: &'a mut Machine,
    pump: &'a mut Pump,
    now: u64,
}

impl Driver {
    /// The driver of some processors of a machine of this system, in this order.
    #[must_use]
    pub fn new(
        machine: Machine,
        system: &System,
        processors: impl Iterator<Item = ProcessorIndex>,
    ) -> Driver {
        let pump = |processor: ProcessorIndex| {
            let has_timers = machine.may_want_timers(processor);
            Pump {
                processor,
                running: NONE,
                is_counted: false,
                untold: 0,
                allowance: NEVER,
                wall: None,
                refused: None,
                look_at: NEVER,
                // The first answer tells which timers are wanted before anything is released.
                is_due: has_timers,
                has_timers,
                tells_always: machine.wants_every_report(processor),
                last: 0,
                next_at: NEVER,
                group: NONE,
                noted: Noted::new(system, processor),
            }
        };
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

/// One round of an instant on the processors of a cluster: what ends on any of them, what arrives on any of them, and one choice
/// for all. A processor that the kernel has keeps its job until it is ready, and is asked about again then.
fn step_together<W: Worlds>(
    machine: &mut Machine,
    pumps: &mut [Pump],
    group: &Group,
    worlds: &mut W,
    now: u64,
) -> Result<(), W::Error> {
    for &place in &group.places {
        let pump = &mut pumps[place];
        pump.last = now;
        worlds.one(place).complete(&mut Tell { machine, pump, now })?;
    }
    for &place in &group.places {
        let pump = &mut pumps[place];
        worlds.one(place).arrive(&mut Tell { machine, pump, now })?;
    }
    let mut is_due = false;
    let mut is_possible = false;
    for &place in &group.places {
        is_due |= pumps[place].is_due;
        is_possible |= worlds.one(place).ready_at() <= now;
    }
    if is_due && is_possible {
        let places = &group.places;
        machine.choose_in_cluster(group.cluster, |index| {
            let place = places.iter().find(|&&place| pumps[place].processor.0 == index);
            place.is_some_and(|&place| worlds.one(place).ready_at() <= now)
        });
        for &place in places {
            let (pump, mut world) = (&mut pumps[place], worlds.one(place));
            pump.is_due = world.ready_at() > now;
            if !pump.is_due {
                let task = machine.running(pump.processor);
                pump.running = task.map_or(NONE, |task| task.0);
                world.carry_out(now, Choice { task, machine, processor: pump.processor });
            }
        }
    } else if is_due {
        for &place in &group.places {
            pumps[place].is_due = true;
        }
    }
    for &place in &group.places {
        pumps[place].next_at = pumps[place].next_here(&worlds.one(place));
    }
    Ok(())
}

impl Pump {
    /// A job may have lost its processor, and any budget may be another.
    fn follow_machine(&mut self, machine: &Machine) {
        self.is_due = true;
        if self.running != NONE && machine.running(self.processor) != Some(TaskId(self.running)) {
            self.running = NONE;
            self.is_counted = false;
            self.allowance = NEVER;
        }
        self.wall = None;
    }

    #[inline(never)]
    fn run<W: World, const TIMED: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        until: u64,
    ) -> Result<Reached, W::Error> {
        let mut last = self.last;
        loop {
            let next = self.next::<W, TIMED>(world);
            if next >= until {
                return Ok(Reached { last, next, is_ended: false });
            }
            last = next.max(last);
            self.step::<W, TIMED>(machine, world, last)?;
            if !world.goes_on(last) {
                return Ok(Reached { last, next, is_ended: true });
            }
        }
    }

    /// When something happens next.
    #[inline(always)]
    fn next<W: World, const TIMED: bool>(&self, world: &W) -> u64 {
        let mut next = world.next();
        if TIMED {
            next = next.min(self.look_at);
        }
        if self.is_due {
            next = next.min(world.ready_at().max(self.last));
        }
        next
    }

    fn next_here<W: World>(&self, world: &W) -> u64 {
        if self.has_timers { self.next::<W, true>(world) } else { self.next::<W, false>(world) }
    }

    /// One instant.
    #[inline(always)]
    fn step<W: World, const TIMED: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        self.last = now;
        if TIMED && (self.look_at <= now || self.tells_always || world.ends(now)) {
            self.report(machine, world, now);
        }
        world.complete(&mut Tell { machine, pump: self, now })?;
        if TIMED {
            self.fire(machine, world, now);
        }
        world.arrive(&mut Tell { machine, pump: self, now })?;
        if TIMED {
            // What arrived may have asked for a timer that is due.
            self.fire(machine, world, now);
            self.take_notes(machine, world, now);
        }
        if self.is_due && world.ready_at() <= now {
            self.settle::<W, TIMED>(machine, world, now);
        }
        if TIMED {
            self.look_again(world, now);
        }
        Ok(())
    }

    /// Takes over what was executed, as far as it has not been told.
    #[inline(always)]
    fn count<W: World>(&mut self, world: &mut W, now: u64) {
        self.take_amount(world.executed(now, self.allowance));
    }

    #[inline(always)]
    fn take_amount(&mut self, amount: u64) {
        self.untold += amount;
        if self.allowance != NEVER {
            self.allowance = self.allowance.saturating_sub(amount);
        }
    }

    #[inline(never)]
    fn tell_amount(&mut self, machine: &mut Machine, amount: u64, now: u64) {
        self.take_amount(amount);
        self.tell_untold(machine, now);
    }

    /// Tells the machine what was executed.
    #[inline(always)]
    fn report<W: World>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        if self.is_counted {
            self.count(world, now);
            self.tell_untold(machine, now);
        }
    }

    #[inline]
    fn tell_untold(&mut self, machine: &mut Machine, now: u64) {
        let amount = std::mem::take(&mut self.untold);
        if amount > 0 {
            let kind = EventKind::Ran { task: TaskId(self.running), amount: Span::from_ns(amount) };
            let told = machine.on(Event::at(Instant::from_ns(now), kind));
            debug_assert_eq!(told, Ok(()));
            self.is_due |= self.allowance == 0;
        }
    }

    /// Every wall timer that is due goes off, before anything is chosen. Which one is next may have changed by what came
    /// before at this instant.
    #[inline(always)]
    fn fire<W: World>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        if machine.wall_is_stale(self.processor) {
            self.ask_for_wall_timer(machine, now);
        }
        if self.wall.is_some_and(|timer| timer.at.as_ns() <= now) {
            self.fire_due(machine, world, now);
        }
    }

    /// Takes over the next wall timer, unless it was refused at this very instant.
    #[inline(always)]
    fn ask_for_wall_timer(&mut self, machine: &mut Machine, now: u64) {
        self.wall = machine.wall_timer(self.processor);
        if let Some(timer) = self.wall
            && timer.at.as_ns() <= now
            && self.refused == Some((timer.entity, now))
        {
            self.wall = None;
        }
    }

    #[inline(never)]
    fn fire_due<W: World>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        self.report(machine, world, now);
        self.ask_for_wall_timer(machine, now);
        while let Some(timer) = self.wall.filter(|timer| timer.at.as_ns() <= now) {
            let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
            let told = machine.on(Event::at(Instant::from_ns(now), kind));
            debug_assert_eq!(told, Ok(()));
            self.is_due = true;
            let next = machine.wall_timer(self.processor);
            if next.is_some_and(|next| next.entity == timer.entity && next.at <= timer.at) {
                self.refused = Some((timer.entity, now));
            }
            self.ask_for_wall_timer(machine, now);
            if !world.called_timer() {
                return;
            }
        }
    }

    #[inline(always)]
    fn take_notes<W: World>(&mut self, machine: &Machine, world: &mut W, now: u64) {
        if !machine.has_changed(self.processor) {
            return;
        }
        if W::NOTES || self.noted.has_promotions() {
            self.noted.tell(machine, |note| world.note(now, note));
        } else {
            world.noted(self.noted.count(machine.budget_changes(self.processor)));
        }
    }

    /// Asks the machine who runs, and has it carried out.
    #[inline(always)]
    fn settle<W: World, const TIMED: bool>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        self.is_due = false;
        let (task, changes) = machine.choose(self.processor);
        let next = task.map_or(NONE, |task| task.0);
        if TIMED {
            if changes.wall {
                self.ask_for_wall_timer(machine, now);
            }
            if next != self.running {
                self.report(machine, world, now);
                // The end of a budget that was used up just now was part of this choice.
                self.hand_over(machine, next);
            } else if (changes.allowance | (self.allowance == 0)) & self.is_counted {
                let allowance = task.and_then(|task| machine.allowance(task));
                self.allowance = allowance.map_or(NEVER, |budget| budget.as_ns().saturating_sub(self.untold));
            }
        } else {
            self.running = next;
        }
        world.carry_out(now, Choice { task, machine, processor: self.processor });
    }

    /// From now on another job has the processor, or none.
    #[inline(always)]
    fn hand_over(&mut self, machine: &Machine, next: u32) {
        self.running = next;
        self.untold = 0;
        self.is_counted = next != NONE && machine.is_counted(TaskId(next));
        self.allowance = NEVER;
        if self.is_counted
            && let Some(budget) = machine.allowance(TaskId(next))
        {
            self.allowance = budget.as_ns();
        }
    }

    /// Last thing at an instant: when a budget is used up or a timer due next.
    #[inline(always)]
    fn look_again<W: World>(&mut self, world: &mut W, now: u64) {
        self.look_at = self.wall.map_or(NEVER, |timer| timer.at.as_ns().max(now));
        if self.allowance != NEVER {
            self.count(world, now);
            let end = now.max(world.ready_at()).saturating_add(self.allowance);
            self.look_at = self.look_at.min(end);
        }
    }
}

impl Tell<'_> {
    /// The instant.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.machine
    }

    /// Whose job has the processor, as far as was told.
    #[must_use]
    pub fn running(&self) -> Option<TaskId> {
        (self.pump.running != NONE).then_some(TaskId(self.pump.running))
    }

    #[inline(always)]
    fn on(&mut self, kind: EventKind) -> Result<(), Rejected> {
        let told = self.machine.on(Event::at(Instant::from_ns(self.now), kind));
        self.pump.is_due |= told.is_ok();
        told
    }

    /// The running job of `task` has left the processor.
    #[inline(always)]
    fn left(&mut self, task: TaskId) {
        if self.pump.running == task.0 {
            self.pump.running = NONE;
            self.pump.is_counted = false;
            self.pump.allowance = NEVER;
        }
    }

    /// The job of `task` is done.
    ///
    /// # Errors
    /// As [`Machine::on`]; so do the other methods.
    #[inline(always)]
    pub fn completion(&mut self, task: TaskId) -> Result<(), Rejected> {
        self.on(EventKind::Completion { task })?;
        self.left(task);
        Ok(())
    }

    /// The job of `task` suspends itself.
    pub fn block(&mut self, task: TaskId) -> Result<(), Rejected> {
        self.on(EventKind::Block { task })?;
        self.left(task);
        Ok(())
    }

    /// The job of `task` is at a preemption point and gives way if somebody more important waits; `next` is its next segment, or
    /// [`crate::ANY_SEGMENT`].
    #[inline(always)]
    pub fn preemption_point(&mut self, task: TaskId, next: u32) -> Result<(), Rejected> {
        self.on(EventKind::PreemptionPoint { task, willing: true, next })
    }

    /// The job of `task` switches its own preemptibility.
    pub fn set_preemptible(&mut self, task: TaskId, preemptible: bool) -> Result<(), Rejected> {
        self.on(EventKind::SetPreemptible { task, preemptible })
    }

    /// A job of `task` is ready. `executed` says what the running job has executed since the world was asked last; it is called
    /// where the release may change a budget.
    #[inline(always)]
    pub fn release(
        &mut self,
        task: TaskId,
        deadline: Instant,
        executed: impl FnOnce(u64) -> u64,
    ) -> Result<(), Rejected> {
        if self.pump.is_counted && self.machine.is_served(task) {
            self.pump.tell_amount(self.machine, executed(self.pump.allowance), self.now);
        }
        self.on(EventKind::Release { task, deadline })
    }

    /// A job of `task` that suspended itself is ready again.
    pub fn wake(&mut self, task: TaskId) -> Result<(), Rejected> {
        self.on(EventKind::Wake { task })
    }

    /// A node stands at another place from now on.
    pub fn lend(&mut self, entity: EntityId, place: Place) -> Result<(), Rejected> {
        self.on(EventKind::Lend { entity, place })
    }

    /// Something has changed that the machine does not see: it is asked who runs.
    pub fn choice_is_due(&mut self) {
        self.pump.is_due = true;
    }

    /// Who really has the processor from now on, where that is not whom the machine chose. Execution is charged to him.
    pub fn took(&mut self, task: Option<TaskId>) {
        self.pump.hand_over(self.machine, task.map_or(NONE, |task| task.0));
    }
}
