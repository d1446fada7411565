//! A total bandwidth server: each job gets a deadline when it is released, and competes by it.

use super::super::order::Place;
use super::Rules;
use horolog_model::Capacity;

pub(super) struct TotalBandwidth {
    capacity: Capacity,
    /// d of the job before; 0 before the first.
    before: u64,
}

impl TotalBandwidth {
    pub(super) fn new(capacity: Capacity) -> TotalBandwidth {
        TotalBandwidth { capacity, before: 0 }
    }
}

impl Rules for TotalBandwidth {
    fn deadline_of_job(&mut self, now: u64, wcet: u64) -> Option<u64> {
        // The least d with (d - max(r, d before)) Q >= C T.
        let start = if self.before > now { self.before } else { now };
        let (budget, period) = (self.capacity.budget.as_ns(), self.capacity.period.as_ns());
        let mut length = 0;
        while length * budget < wcet * period {
            length += 1;
        }
        self.before = start + length;
        Some(self.before)
    }

    fn changes(&mut self, _now: u64, capacity: Capacity) {
        self.capacity = capacity;
    }

    fn place(&self, _now: u64) -> Option<Place> {
        // By the deadlines of its jobs.
        Some(Place::BACKGROUND)
    }
}
