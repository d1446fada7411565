//! A processor that is withdrawn for a while: something outside the order has it.

use super::pump::{NEVER, Pump};
use super::withdrawn::{Cause, Withdrawn};
use crate::machine::dispatcher::NONE;
use crate::{Driver, World};

impl Driver {
    /// From `now` on the processor at `place`, which is none of a cluster, is withdrawn: nothing is charged, and no choice is made
    /// unless [`Driver::settle`] asks for it. Timers go off. A second withdrawal without a return goes on with another cause.
    pub fn withdraw<W: World>(&mut self, world: &mut W, place: usize, now: u64, cause: Cause) {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        let now = now.max(pump.last);
        if pump.withdrawal.now.is_none() {
            pump.report(machine, world, now);
            (pump.is_counted, pump.allowance) = (false, NEVER);
        }
        pump.withdrawal.total = pump.withdrawal.total(now);
        pump.withdrawal.now = Some((cause, now));
        pump.goes_on_at(world, now);
    }

    /// The processor is given back to whom it was taken from: what was executed meanwhile is nobody's.
    pub fn give_back<W: World>(&mut self, world: &mut W, place: usize, now: u64) {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        let now = now.max(pump.last);
        if pump.withdrawal.now.is_none() {
            return;
        }
        pump.withdrawal.total = pump.withdrawal.total(now);
        pump.withdrawal.now = None;
        if pump.running != NONE {
            let _ = world.executed(now, NEVER);
            pump.hand_over(machine, pump.running);
        }
        pump.goes_on_at(world, now);
    }

    /// Why a processor is withdrawn.
    #[must_use]
    pub fn is_withdrawn(&self, place: usize) -> Option<Cause> {
        self.pumps[place].withdrawal.now.map(|(cause, _)| cause)
    }

    /// For how long a processor was withdrawn until `now`.
    #[must_use]
    pub fn withdrawn(&self, place: usize, now: u64) -> Withdrawn {
        self.pumps[place].withdrawal.total(now)
    }
}

impl Pump {
    fn goes_on_at<W: World>(&mut self, world: &mut W, now: u64) {
        self.last = now;
        if self.has_timers {
            self.look_again(world, now);
        }
    }
}
