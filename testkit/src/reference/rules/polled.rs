//! Polling and deferrable servers: a full budget at every multiple of the period.

use super::super::order::{Place, number};
use super::Rules;
use horolog_model::{Capacity, LowPriority, Priority};

/// A polling or a deferrable server.
pub(super) struct Polled {
    full: u64,
    period: u64,
    /// When the last period started.
    last: Option<u64>,
    /// When the next period starts.
    next: u64,
    high: Place,
    low: Option<Place>,
    /// Whether budget that finds no work is lost.
    loses: bool,
    /// Below zero: what was overdrawn and is owed.
    budget: i64,
    /// Whether the rest of this period's budget is lost.
    has_lost: bool,
    /// Whether nobody has work.
    is_idle: bool,
}

impl Polled {
    pub(super) fn new(capacity: Capacity, priority: Priority, low: LowPriority, loses: bool) -> Polled {
        Polled {
            full: capacity.budget.as_ns(),
            period: capacity.period.as_ns(),
            last: None,
            next: 0,
            high: Place::priority(number(priority)),
            low: Place::low(low),
            loses,
            budget: 0,
            has_lost: false,
            is_idle: true,
        }
    }
}

impl Polled {
    /// The budget comes back where a period starts; whether one does.
    fn fill_up(&mut self, now: u64) -> bool {
        let is_due = now == self.next;
        if is_due {
            (self.last, self.next) = (Some(now), now + self.period);
            self.has_lost = false;
            self.budget = self.full as i64 + self.budget.min(0);
        }
        is_due
    }

    /// Without work a polling server loses what it had before this instant.
    fn lose_if_idle(&mut self, now: u64) {
        if self.loses && self.is_idle && self.last != Some(now) {
            self.lose();
        }
    }

    /// What is left is gone; what is owed is not.
    fn lose(&mut self) {
        self.budget = self.budget.min(0);
        self.has_lost = true;
    }
}

impl Rules for Polled {
    fn empties(&mut self, now: u64) {
        // At the instant of a poll somebody else may still come.
        self.is_idle = true;
        self.lose_if_idle(now);
    }

    fn arrives(&mut self, now: u64) {
        self.lose_if_idle(now);
        self.is_idle = false;
        // Who comes at the instant of a poll finds it, whatever comes first.
        self.fill_up(now);
    }

    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        self.fill_up(now)
    }

    fn settles(&mut self, _now: u64, has_work: bool) {
        if self.loses && !has_work {
            self.lose();
        }
    }

    fn starts_period(&self, now: u64) -> bool {
        now == self.next || self.last == Some(now)
    }

    fn changes(&mut self, now: u64, capacity: Capacity) {
        let more = capacity.budget.as_ns() as i64 - self.full as i64;
        (self.full, self.period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        if self.last == Some(now) {
            self.next = now + self.period;
        }
        if !self.has_lost {
            self.budget = (self.budget + more).max(self.budget.min(0));
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
