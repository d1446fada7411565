//! When a server has served an amount of work for certain.

use super::{Above, NoAnswer};
use crate::utilisation;

/// The rules by which a server gives its capacity to the jobs in its queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    /// Looks at its queue once a period and loses what it does not need then.
    Polling,
    /// Keeps its capacity to the end of the period.
    Deferrable,
    /// Gets back what it executed, a period after it began to.
    Sporadic {
        /// Whether pending replenishments may be merged, because their number is bounded: an earlier one then waits
        /// for a later one.
        merges: bool,
    },
    /// Exchanges its capacity with tasks below it, at most as fast as time passes.
    PriorityExchange,
    /// The kernel's constant bandwidth server: without capacity it waits for its deadline, a period after it was set.
    HardReservation {
        /// How much of a capacity may be overdrawn, and is then owed, ns.
        overdrawn: u64,
    },
    /// Under earliest deadline first: every C_s of work gets a deadline T_s later than the last.
    ConstantBandwidth,
    /// Under earliest deadline first: every job has its own deadline, and asks for the time up to it.
    TotalBandwidth,
}

impl Service {
    /// The longest time for which a job that finds the queue empty may find no capacity either.
    #[must_use]
    pub fn longest_wait(self, capacity: u64, period: u64) -> u64 {
        match self {
            // It comes just after the server looked, or when the last replenishments wait for the last of them.
            Self::Polling | Self::Sporadic { merges: true } => period,
            // Capacity goes no faster than time, so at the earliest C_s after it came.
            Self::Deferrable | Self::PriorityExchange | Self::Sporadic { merges: false } => {
                period.saturating_sub(capacity)
            }
            // A period that began with e owed has only what is left of the budgets that make up for it, and may be overdrawn
            // by e itself.
            Self::HardReservation { overdrawn } => {
                let periods = overdrawn.checked_div(capacity).unwrap_or(0).saturating_add(1);
                period.saturating_sub(capacity).saturating_mul(periods)
            }
            Self::ConstantBandwidth | Self::TotalBandwidth => 0,
        }
    }

    /// Whether its work is done by deadlines of its own.
    #[must_use]
    pub const fn has_deadlines(self) -> bool {
        matches!(self, Self::ConstantBandwidth | Self::TotalBandwidth)
    }

    /// What a server may owe when a job finds its queue empty, ns.
    #[must_use]
    pub const fn overdrawn(self) -> u64 {
        match self {
            Self::HardReservation { overdrawn } => overdrawn,
            _ => 0,
        }
    }
}

/// What serves a queue: when an amount of work is done that was there from the start of a backlog.
pub trait Serve {
    /// The latest time, counted from when the queue stopped being empty, at which the first `work` ns are done.
    ///
    /// # Errors
    /// Where there is no such time.
    fn finish(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer>;

    /// The latest time at which the server owes nothing more for `work` ns that came since then: jobs that come later
    /// start anew.
    ///
    /// # Errors
    /// As [`Serve::finish`].
    fn settled(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        self.finish(work, effort)
    }

    /// Whether these shares c/t are more in all than the processor gives here in the long run.
    fn is_exceeded_by(&self, asked: &[(u64, u64)]) -> bool;
}

/// A server with its place: all that may keep it from executing.
#[derive(Clone, Debug)]
pub struct Supply<'a> {
    service: Service,
    capacity: u64,
    period: u64,
    above: &'a Above,
    lateness: u64,
}

impl<'a> Supply<'a> {
    /// A server whose whole capacity is certain to be served within each period.
    ///
    /// Under fixed priorities that is checked here: `above.finish(C_s) ≤ T_s`. A constant or total bandwidth server is taken
    /// to belong to a set of tasks and servers that passed a test of earliest deadline first.
    ///
    /// # Errors
    /// [`NoAnswer::NotGuaranteed`] otherwise; [`NoAnswer::Effort`].
    pub fn new(
        service: Service,
        capacity: u64,
        period: u64,
        above: &'a Above,
        effort: &mut u64,
    ) -> Result<Supply<'a>, NoAnswer> {
        let supply = Supply { service, capacity, period, above, lateness: 0 };
        if capacity == 0 || capacity > period {
            return Err(NoAnswer::NotGuaranteed);
        }
        if !service.has_deadlines() {
            match above.finish(u128::from(capacity), effort) {
                Ok(done) if done <= u128::from(period) => {}
                Ok(_) | Err(NoAnswer::TooLarge) => return Err(NoAnswer::NotGuaranteed),
                Err(other) => return Err(other),
            }
        }
        Ok(supply)
    }

    /// The same server where a piece can be this late after its deadline, ns: a constant bandwidth server beside jobs
    /// that are not preemptive, or below loads.
    #[must_use]
    pub fn with_lateness(self, lateness: u64) -> Supply<'a> {
        Supply { lateness, ..self }
    }
}

impl Serve for Supply<'_> {
    /// With n = ⌈work/C_s⌉ and R the response time at the server's place:
    /// `wait + (n − 1)·T_s + R(work − (n − 1)·C_s)`, the wait being [`Service::longest_wait`]; for the constant
    /// bandwidth server `n·T_s`, the deadline of the last piece; for the total bandwidth server the work itself, which is the time
    /// up to the last deadline ([`crate::server::QueuedTask`] with `⌈C·T_s/C_s⌉` for a job).
    ///
    /// What a hard reservation may owe is work ahead.
    ///
    /// Least upper bound for a server on top; else sufficient, since the last piece and the wait need not both have
    /// their worst case. Source: `bernat99`, `abeni98`; see `docs/concepts/server-analysis.md` for the reasons.
    fn finish(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        if work == 0 {
            return Ok(0);
        }
        if self.service == Service::TotalBandwidth {
            return work.checked_add(u128::from(self.lateness)).ok_or(NoAnswer::TooLarge);
        }
        let (capacity, period) = (u128::from(self.capacity), u128::from(self.period));
        let work = work + u128::from(self.service.overdrawn());
        let pieces = work.div_ceil(capacity);
        let full = (pieces - 1).checked_mul(period).ok_or(NoAnswer::TooLarge)?;
        if self.service == Service::ConstantBandwidth {
            return full.checked_add(period + u128::from(self.lateness)).ok_or(NoAnswer::TooLarge);
        }
        let wait = u128::from(self.service.longest_wait(self.capacity, self.period));
        let rest = self.above.finish(work - (pieces - 1) * capacity, effort)?;
        full.checked_add(wait + rest).ok_or(NoAnswer::TooLarge)
    }

    fn settled(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        match self.service {
            // The deadline after this one counts from the release alone.
            Service::TotalBandwidth => return Ok(work),
            Service::ConstantBandwidth => {}
            _ => return self.finish(work, effort),
        }
        // A job that comes when the deadline d and the capacity c left satisfy c/C_s ≥ (d − t)/T_s gets a new deadline.
        let scaled = work.checked_mul(u128::from(self.period)).ok_or(NoAnswer::TooLarge)?;
        Ok(scaled.div_ceil(u128::from(self.capacity)))
    }

    fn is_exceeded_by(&self, asked: &[(u64, u64)]) -> bool {
        let whole = match self.service {
            Service::TotalBandwidth => (1, 1),
            _ => (self.capacity, self.period),
        };
        utilisation::compare_with(asked.iter().copied(), whole).is_gt()
    }
}

impl Serve for Above {
    /// Background service: the work gets what the loads above leave.
    fn finish(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        Above::finish(self, work, effort)
    }

    fn is_exceeded_by(&self, asked: &[(u64, u64)]) -> bool {
        utilisation::compare_with_one(asked.iter().copied().chain(self.shares())).is_gt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Retention;

    fn finish(service: Service, work: u128) -> u128 {
        let above = Above::default();
        let effort = &mut 1_000_000;
        Supply::new(service, 2, 10, &above, effort).unwrap().finish(work, effort).unwrap()
    }

    #[test]
    fn on_top_a_job_waits_and_then_gets_its_capacity_every_period() {
        // C_s = 2, T_s = 10; work of 1, 2, 3 and 4.
        let of = |service| [1, 2, 3, 4].map(|work| finish(service, work));
        assert_eq!(of(Service::Polling), [11, 12, 21, 22]);
        assert_eq!(of(Service::Deferrable), [9, 10, 19, 20]);
        assert_eq!(of(Service::Sporadic { merges: false }), [9, 10, 19, 20]);
        assert_eq!(of(Service::Sporadic { merges: true }), [11, 12, 21, 22]);
        assert_eq!(of(Service::PriorityExchange), [9, 10, 19, 20]);
        assert_eq!(of(Service::ConstantBandwidth), [10, 10, 20, 20]);
        assert_eq!(of(Service::HardReservation { overdrawn: 0 }), [9, 10, 19, 20]);
        // 3 are owed: 1 is left of two budgets, which are used up 4 before their deadline's 20, or less.
        assert_eq!(of(Service::HardReservation { overdrawn: 3 }), [28, 37, 38, 47]);
    }

    #[test]
    fn work_above_delays_the_last_piece_and_may_take_the_guarantee_away() {
        let effort = &mut 1_000_000;
        let above = Above { loads: vec![Retention::AsPeriodic.load(4, 8)], ..Above::default() };
        let supply = Supply::new(Service::Deferrable, 2, 10, &above, effort).unwrap();
        assert_eq!(supply.finish(3, effort), Ok(8 + 10 + 5));
        assert_eq!(
            Supply::new(Service::Deferrable, 5, 10, &above, effort).unwrap_err(),
            NoAnswer::NotGuaranteed
        );
    }
}
