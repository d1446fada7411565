//! Polling and deferrable servers: a full budget at every multiple of the period.

use super::super::order::{Place, number};
use super::{Ran, Rules};
use horolog_model::{Capacity, LowPriority, Priority};

/// A polling or a deferrable server.
pub(super) struct Polled {
    full: u64,
    period: u64,
    high: Place,
    low: Option<Place>,
    /// Whether budget that finds no work is lost.
    loses: bool,
    budget: u64,
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

impl Rules for Polled {
    fn empties(&mut self, _now: u64) {
        if self.loses {
            self.budget = 0;
        }
    }

    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        let is_due = now.is_multiple_of(self.period);
        if is_due {
            self.budget = self.full;
        }
        is_due
    }

    fn settles(&mut self, _now: u64, has_work: bool) {
        if self.loses && !has_work {
            self.budget = 0;
        }
    }

    fn unit(&mut self, _now: u64, ran: Ran, _has_work: bool) -> bool {
        let is_charged = matches!(ran, Ran::Server(_)) && self.budget > 0;
        self.budget -= u64::from(is_charged);
        is_charged
    }

    fn place(&self, _now: u64) -> Option<Place> {
        if self.budget > 0 { Some(self.high) } else { self.low }
    }
}
