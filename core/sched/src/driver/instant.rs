//! One instant of a processor, phase by phase.

use super::pump::{Group, NEVER, Pump};
use crate::machine::dispatcher::NONE;
use crate::{Choice, Event, EventKind, Machine, OverrunAction, Reached, Tell, World, Worlds};
use horolog_time::Instant;

/// One choice for all processors of a cluster. A processor that the kernel has keeps its job until it is ready, and is asked
/// about again then.
pub(crate) fn choose_together<W: Worlds>(
    machine: &mut Machine,
    pumps: &mut [Pump],
    group: &Group,
    worlds: &mut W,
    now: u64,
) {
    let places = &group.places;
    let mut is_ready = |place: usize| worlds.one(place).ready_at() <= now;
    if !places.iter().any(|&place| pumps[place].is_due) {
        return;
    }
    if !places.iter().any(|&place| is_ready(place)) {
        places.iter().for_each(|&place| pumps[place].is_due = true);
        return;
    }
    machine.choose_in_cluster(group.cluster, |ordinal| {
        places.get(ordinal).is_some_and(|&place| is_ready(place))
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
}

impl Pump {
    #[inline(never)]
    pub(crate) fn run<W: World, const TIMED: bool>(
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
        if self.is_due & self.withdrawal.now.is_none() {
            next = next.min(world.ready_at().max(self.last));
        }
        next
    }

    #[inline(always)]
    pub(crate) fn next_here<W: World, const TIMERS: bool>(&self, world: &W) -> u64 {
        if TIMERS && self.has_timers { self.next::<W, true>(world) } else { self.next::<W, false>(world) }
    }

    /// One instant.
    #[inline(always)]
    pub(crate) fn step<W: World, const TIMED: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        self.ends::<W, TIMED>(machine, world, now)?;
        self.arrives::<W, TIMED>(machine, world, now)?;
        self.is_chosen::<W, TIMED>(machine, world, now);
        Ok(())
    }

    /// The first phase: what was executed, and what ends.
    #[inline(always)]
    fn ends<W: World, const TIMED: bool>(
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
        if TIMED && self.has_budgets {
            self.act_on_overrun(machine, world, now);
        }
        Ok(())
    }

    /// Whoever has used up his budget and has not ended is acted upon.
    #[inline(never)]
    fn act_on_overrun<W: World>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        let Some((task, action)) = machine.act_on_overrun(self.processor, Instant::from_ns(now)) else {
            return;
        };
        self.is_due = true;
        if machine.running(self.processor) != Some(task) {
            (self.running, self.is_counted, self.allowance) = (NONE, false, NEVER);
        }
        if let OverrunAction::AskFor(mode) = action {
            self.asks_for = mode;
        }
        world.overran(now, task, action);
    }

    /// The second phase: timers, and what arrives.
    #[inline(always)]
    fn arrives<W: World, const TIMED: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        if TIMED {
            self.fire(machine, world, now);
        }
        world.arrive(&mut Tell { machine, pump: self, now })?;
        if TIMED {
            // What arrived may have asked for a timer that is due.
            self.fire(machine, world, now);
            self.take_notes(machine, world, now);
        }
        Ok(())
    }

    /// The last phase: the choice, where one is due, and when something is due next.
    #[inline(always)]
    fn is_chosen<W: World, const TIMED: bool>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        if self.is_due && self.withdrawal.now.is_none() && world.ready_at() <= now {
            self.settle::<W, TIMED>(machine, world, now);
        }
        if TIMED {
            self.look_again(world, now);
        }
    }

    /// The first phase of a round of several processors, some of which may have timers where `TIMERS`.
    #[inline(always)]
    pub(crate) fn ends_here<W: World, const TIMERS: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        if TIMERS && self.has_timers {
            self.ends::<W, true>(machine, world, now)
        } else {
            self.ends::<W, false>(machine, world, now)
        }
    }

    /// The second phase of a round of several processors.
    #[inline(always)]
    pub(crate) fn arrives_here<W: World, const TIMERS: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) -> Result<(), W::Error> {
        if TIMERS && self.has_timers {
            self.arrives::<W, true>(machine, world, now)
        } else {
            self.arrives::<W, false>(machine, world, now)
        }
    }

    /// The last phase of a round of several processors. Those of a cluster have been chosen for.
    #[inline(always)]
    pub(crate) fn is_chosen_here<W: World, const TIMERS: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) {
        if TIMERS && self.has_timers {
            self.is_chosen::<W, true>(machine, world, now);
        } else if self.group == NONE {
            self.is_chosen::<W, false>(machine, world, now);
        }
        self.next_at = self.next_here::<W, TIMERS>(world);
    }

    /// Takes over what was executed, as far as it has not been told.
    #[inline(always)]
    fn count<W: World>(&mut self, world: &mut W, now: u64) {
        self.take_amount(world.executed(now, self.allowance));
    }

    /// Tells the machine what was executed.
    #[inline(always)]
    pub(crate) fn report<W: World>(&mut self, machine: &mut Machine, world: &mut W, now: u64) {
        if self.is_counted {
            self.count(world, now);
            self.tell_untold(machine, now);
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
        self.leave_refused_timer(now);
    }

    #[inline(always)]
    fn leave_refused_timer(&mut self, now: u64) {
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
        if machine.wall_is_stale(self.processor) {
            self.ask_for_wall_timer(machine, now);
        }
        while let Some(timer) = self.wall.filter(|timer| timer.at.as_ns() <= now) {
            let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
            let told = machine.on(Event::at(Instant::from_ns(now), kind));
            debug_assert_eq!(told, Ok(()));
            self.is_due = true;
            let next = machine.wall_timer(self.processor);
            if next.is_some_and(|next| next.entity == timer.entity && next.at <= timer.at) {
                self.refused = Some((timer.entity, now));
            }
            self.wall = next;
            self.leave_refused_timer(now);
            if !world.called_timer() {
                return;
            }
        }
    }

    #[inline(always)]
    pub(crate) fn take_notes<W: World>(&mut self, machine: &Machine, world: &mut W, now: u64) {
        if !machine.has_changed(self.processor) {
            return;
        }
        let changes = machine.budget_changes(self.processor);
        if W::NOTES || self.noted.has_promotions() {
            self.noted.tell(machine, changes, |note| world.note(now, note));
        } else {
            world.noted(self.noted.count(changes));
        }
    }

    /// Asks the machine who runs, and has it carried out.
    #[inline(always)]
    pub(crate) fn settle<W: World, const TIMED: bool>(
        &mut self,
        machine: &mut Machine,
        world: &mut W,
        now: u64,
    ) {
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

    /// Last thing at an instant: when a budget is used up or a timer due next.
    #[inline(always)]
    pub(crate) fn look_again<W: World>(&mut self, world: &mut W, now: u64) {
        self.look_at = self.wall.map_or(NEVER, |timer| timer.at.as_ns().max(now));
        if self.allowance != NEVER {
            self.count(world, now);
            let end = now.max(world.ready_at()).saturating_add(self.allowance);
            self.look_at = self.look_at.min(end);
        }
    }
}
