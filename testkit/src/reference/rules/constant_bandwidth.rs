//! Constant bandwidth servers: by a deadline of their own, or as the kernel keeps them.

use super::super::order::Place;
use super::Rules;
use horolog_model::Capacity;

/// A constant bandwidth server under EDF: its deadline is put off when its budget is used up.
pub(super) struct ConstantBandwidth {
    full: u64,
    period: u64,
    budget: u64,
    deadline: u64,
}

impl ConstantBandwidth {
    pub(super) fn new(capacity: Capacity) -> ConstantBandwidth {
        let (full, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        ConstantBandwidth { full, period, budget: full, deadline: 0 }
    }
}

impl ConstantBandwidth {
    /// A budget that is used up is there again, for a later deadline.
    fn put_off(&mut self) {
        if self.budget == 0 {
            self.budget = self.full;
            self.deadline += self.period;
        }
    }
}

impl Rules for ConstantBandwidth {
    fn arrives(&mut self, now: u64) {
        // c >= (d - r) C / T, without division.
        if self.budget * self.period >= self.deadline.saturating_sub(now) * self.full {
            (self.deadline, self.budget) = (now + self.period, self.full);
        }
    }

    fn charge(&mut self, _now: u64) {
        self.budget -= 1;
        self.put_off();
    }

    fn changes(&mut self, _now: u64, capacity: Capacity) {
        let full = capacity.budget.as_ns();
        self.budget = (self.budget + full).saturating_sub(self.full);
        (self.full, self.period) = (full, capacity.period.as_ns());
        self.put_off();
    }

    fn is_at_its_own(&self) -> bool {
        true
    }

    fn deadline(&self) -> Option<u64> {
        Some(self.deadline)
    }

    fn place(&self, _now: u64) -> Option<Place> {
        Some(Place::deadline(Some(self.deadline)))
    }
}

/// A constant bandwidth server that the kernel keeps, above every task: without budget it waits for its deadline.
pub(super) struct KernelsReservation {
    full: u64,
    period: u64,
    budget: u64,
    deadline: u64,
}

impl KernelsReservation {
    pub(super) fn new(capacity: Capacity) -> KernelsReservation {
        let (full, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        KernelsReservation { full, period, budget: full, deadline: 0 }
    }
}

impl Rules for KernelsReservation {
    fn arrives(&mut self, now: u64) {
        let left = self.deadline.saturating_sub(now);
        if self.deadline < now || self.budget * self.period > left * self.full {
            (self.deadline, self.budget) = (now + self.period, self.full);
        }
    }

    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        let is_due = self.budget == 0 && self.deadline <= now;
        if is_due {
            (self.deadline, self.budget) = (self.deadline + self.period, self.full);
        }
        is_due
    }

    fn charge(&mut self, _now: u64) {
        self.budget -= 1;
    }

    fn is_at_its_own(&self) -> bool {
        self.budget > 0
    }

    fn place(&self, _now: u64) -> Option<Place> {
        (self.budget > 0).then_some(Place::KERNELS)
    }
}
