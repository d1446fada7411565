//! A processor that is withdrawn for a while: something outside the order has it.

use crate::dispatcher::NONE;
use crate::pump::{NEVER, Pump};
use crate::{Driver, World};

/// Who has a processor that is withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// An interrupt or a softirq.
    Interrupt,
    /// A thread outside the model.
    Foreign,
    /// The platform's own work: a switch, the release agent.
    Cost,
}

impl Cause {
    const COUNT: usize = 3;
}

/// For how long a processor was withdrawn so far, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Withdrawn([u64; Cause::COUNT]);

impl Withdrawn {
    /// In nanoseconds.
    #[must_use]
    pub fn by(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// What came on top since `before`.
    #[must_use]
    pub fn since(&self, before: Withdrawn) -> Withdrawn {
        let mut more = *self;
        for (now, then) in more.0.iter_mut().zip(before.0) {
            *now = now.saturating_sub(then);
        }
        more
    }
}

/// What is kept of it between two events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Withdrawal {
    /// Why, and since when.
    pub(crate) now: Option<(Cause, u64)>,
    total: Withdrawn,
}

impl Withdrawal {
    fn total(&self, now: u64) -> Withdrawn {
        let mut total = self.total;
        if let Some((cause, since)) = self.now {
            let so_far = &mut total.0[cause as usize];
            *so_far = so_far.saturating_add(now.saturating_sub(since));
        }
        total
    }
}

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
