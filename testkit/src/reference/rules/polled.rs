//! Polling and deferrable servers: a full budget at every multiple of the period.

use super::super::order::{Place, number};
use super::Rules;
use horolog_model::{Capacity, LowPriority, Priority};

/// A polling or a deferrable server.
pub(super) struct Polled {
    full: u64,
    period: u64,
    high: Place,
    low: Option<Place>,
    /// Whether budget that finds no work is lost.
    loses: bool,
    /// Below zero: what was overdrawn and is owed.
    budget: i64,
}

impl Polled {
    pub(super) fn new(capacity: Capacity, priority: Priority, low: LowPriority, loses: bool) -> Polled {
        Polled {
            full: capacity.budget.as_ns(),
            period: capacity.period.as_ns(),
            high: Place::priority(number(priority)),
            low: Place::low(low),
            loses,
            budget: 0,
        }
    }
}

impl Polled {
    /// What is left is gone; what is owed is not.
    fn lose(&mut self) {
        self.budget = self.budget.min(0);
    }
}

impl Rules for Polled {
    fn empties(&mut self, _now: u64) {
        if self.loses {
            self.lose();
        }
    }

    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        let is_due = now.is_multiple_of(self.period);
        if is_due {
            self.budget = self.full as i64 + self.budget.min(0);
        }
        is_due
    }

    fn settles(&mut self, _now: u64, has_work: bool) {
        if self.loses && !has_work {
            self.lose();
        }
    }

    fn charge(&mut self, _now: u64) {
        self.budget -= 1;
    }

    fn is_at_its_own(&self) -> bool {
        self.budget > 0
    }

    fn place(&self, _now: u64) -> Option<Place> {
        if self.budget > 0 { Some(self.high) } else { self.low }
    }
}
