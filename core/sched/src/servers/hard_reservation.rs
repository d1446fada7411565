//! The kernel's constant bandwidth server (`SCHED_DEADLINE`), above every task: a hard reservation.
//!
//! Budget Q, period T, current budget c, deadline d. Work that arrives at r after the queue was empty, unless the server is
//! throttled: if `d < r` or `c/(d − r) > Q/T`, then `d = r + T` and `c = Q`; else both stay. When c is used up the server
//! is *throttled*: its tasks wait until d, also where nobody else wants the processor. At d, `c = c + Q` and `d = d + T`, as
//! often as it takes for c to be above zero, so what was overdrawn is owed.
//!
//! In a window w it executes at most `min(w, Q·w/T + Q·(1 − Q/T))`: its share, and a whole budget at once. The ⌈w/T⌉·Q of a
//! periodic task is no bound: work that comes soon after a job's early end gets a new budget before the old period is over.
//!
//! Source: `abeni98`; the kernel's `Documentation/scheduler/sched-deadline.rst` and `kernel/sched/deadline.c`, for a deadline
//! that is the period.

use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};

/// The kernel's constant bandwidth server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct HardReservation {
    full: i64,
    period: u64,
    left: i64,
    deadline: u64,
    is_throttled: bool,
    /// Where budget and deadline are in doubt: the latest that the deadline may be, and what was executed towards putting it off.
    doubt: Option<(u64, u64)>,
    tally: Tally,
}

impl HardReservation {
    pub(crate) fn new(capacity: Capacity) -> HardReservation {
        let full = capacity.budget.as_ns() as i64;
        HardReservation {
            full,
            period: capacity.period.as_ns(),
            left: full,
            deadline: 0,
            is_throttled: false,
            doubt: None,
            tally: Tally::default(),
        }
    }

    /// Whether deadline and budget are worth keeping at `now`.
    fn keeps(&self, now: u64) -> bool {
        let Some(until) = self.deadline.checked_sub(now) else { return false };
        let left = u128::from(self.left.max(0).unsigned_abs());
        left * u128::from(self.period) <= u128::from(until) * u128::from(self.full.unsigned_abs())
    }

    fn replenish(&mut self) {
        let owed = self.left.min(0).unsigned_abs();
        let periods = owed / self.full.unsigned_abs() + 1;
        self.left = self.left.saturating_add(self.full.saturating_mul(periods as i64));
        self.deadline = self.deadline.saturating_add(self.period.saturating_mul(periods));
        self.is_throttled = false;
        self.tally.replenishments += 1;
    }
}

impl Supply for HardReservation {
    fn place(&self) -> Place {
        if self.is_throttled { Place::Out } else { Place::High }
    }

    fn budget(&self) -> Option<Span> {
        self.doubt.is_none().then(|| Span::from_ns(self.left.max(0).unsigned_abs()))
    }

    fn timer(&self) -> Option<Instant> {
        self.is_throttled.then(|| Instant::from_ns(self.deadline))
    }

    /// Before that of every task.
    fn deadline(&self) -> Option<Instant> {
        Some(Instant::from_ns(0))
    }

    fn executed(&mut self, now: Instant, amount: Span) -> bool {
        if let Some((latest, used)) = &mut self.doubt {
            *used = used.saturating_add(amount.as_ns());
            let full = self.full.unsigned_abs();
            *latest = latest.saturating_add((*used / full).saturating_mul(self.period));
            *used %= full;
            return false;
        }
        self.tally.consume(amount);
        self.left = self.left.saturating_sub_unsigned(amount.as_ns());
        if self.left > 0 || self.is_throttled {
            return false;
        }
        self.tally.exhaustions += 1;
        self.is_throttled = true;
        if self.deadline <= now.as_ns() {
            self.replenish();
        }
        true
    }

    fn timer_fired(&mut self, now: Instant) {
        if self.is_throttled && self.deadline <= now.as_ns() {
            self.replenish();
        }
    }

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        if let Some((latest, _)) = &mut self.doubt
            && backlogged
        {
            if now.as_ns() <= *latest {
                *latest = (*latest).max(now.as_ns().saturating_add(self.period.saturating_mul(2)));
                return;
            }
            (self.doubt, self.deadline) = (None, 0);
        }
        if backlogged && !self.is_throttled && !self.keeps(now.as_ns()) {
            self.deadline = now.as_ns().saturating_add(self.period);
            self.tally.replenishments += u64::from(self.left < self.full);
            self.left = self.full;
        }
    }

    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        let before = self.doubt.map_or(0, |(latest, _)| latest);
        let latest = self.deadline.max(before).max(now.as_ns().saturating_add(self.period));
        // What is throttled is given a budget more when its deadline passes.
        let put_off = doubt.budgets(self.full).saturating_add(1).saturating_mul(self.period);
        self.doubt = Some((latest.saturating_add(put_off), 0));
        self.is_throttled = false;
    }

    /// Once its deadline must have passed without work: the next work gets a new one, whatever is left.
    fn is_known(&self, now: Instant) -> bool {
        self.doubt.is_none_or(|(latest, _)| now.as_ns() > latest)
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn server() -> HardReservation {
        HardReservation::new(Capacity { budget: Span::from_ns(2), period: Span::from_ns(10) })
    }

    #[test]
    fn without_budget_it_waits_for_its_deadline_and_pays_what_it_overdrew() {
        let mut server = server();
        server.demand_changed(at(3), true);
        assert!(!server.executed(at(4), Span::from_ns(1)));
        assert!(server.executed(at(6), Span::from_ns(2)));
        assert_eq!(
            (server.place(), server.timer(), server.budget()),
            (Place::Out, Some(at(13)), Some(Span::ZERO))
        );
        server.timer_fired(at(13));
        assert_eq!(
            (server.place(), server.timer(), server.budget()),
            (Place::High, None, Some(Span::from_ns(1)))
        );
        // Five are owed at 14: three periods later one of them is left.
        assert!(server.executed(at(14), Span::from_ns(6)));
        assert_eq!(server.timer(), Some(at(23)));
        server.timer_fired(at(23));
        assert_eq!((server.budget(), server.deadline), (Some(Span::from_ns(1)), 53));
        assert_eq!((server.tally().exhaustions, server.tally().consumed), (2, Span::from_ns(9)));
    }

    #[test]
    fn work_that_comes_early_keeps_deadline_and_budget_where_they_are_no_more_than_its_share() {
        let mut server = server();
        server.demand_changed(at(0), true);
        server.executed(at(1), Span::from_ns(1));
        // 1 until 10 is above the share at 6, and not at 5.
        let mut early = server.clone();
        early.demand_changed(at(5), true);
        assert_eq!((early.budget(), early.deadline), (Some(Span::from_ns(1)), 10));
        server.demand_changed(at(6), true);
        assert_eq!((server.budget(), server.deadline), (Some(Span::from_ns(2)), 16));
        // Throttled, it waits for its deadline, whenever work comes.
        early.executed(at(6), Span::from_ns(1));
        early.demand_changed(at(9), true);
        assert_eq!((early.place(), early.timer()), (Place::Out, Some(at(10))));
    }
}
