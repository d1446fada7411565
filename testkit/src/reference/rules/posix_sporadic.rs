//! The sporadic server by the letter of POSIX: one capacity, one activation time.

use super::super::order::Place;
use super::Rules;
use horolog_model::Capacity;

/// A sporadic server of POSIX.
pub(super) struct PosixSporadic {
    full: u64,
    period: u64,
    high: Place,
    low: Option<Place>,
    most: usize,
    capacity: u64,
    /// Since when it serves at its priority; `None` while it does not.
    activation: Option<u64>,
    /// What was used since.
    used: u64,
    /// (when, how much) comes back.
    waiting: Vec<(u64, u64)>,
}

impl PosixSporadic {
    pub(super) fn new(capacity: Capacity, high: Place, low: Option<Place>, most: u32) -> PosixSporadic {
        let full = capacity.budget.as_ns();
        PosixSporadic {
            full,
            period: capacity.period.as_ns(),
            high,
            low,
            most: most as usize,
            capacity: full,
            activation: None,
            used: 0,
            waiting: Vec::new(),
        }
    }

    fn activate(&mut self, now: u64) {
        if self.capacity > 0 && self.waiting.len() < self.most {
            (self.activation, self.used) = (Some(now), 0);
        }
    }

    fn stop(&mut self) {
        if let Some(activation) = self.activation.take()
            && self.used > 0
        {
            self.waiting.push((activation + self.period, self.used));
        }
        self.used = 0;
    }
}

impl Rules for PosixSporadic {
    fn arrives(&mut self, now: u64) {
        self.activate(now);
    }

    fn empties(&mut self, _now: u64) {
        self.stop();
    }

    fn timers(&mut self, now: u64, has_work: bool) -> bool {
        let due: u64 = self.waiting.iter().filter(|(at, _)| *at <= now).map(|(_, amount)| amount).sum();
        self.waiting.retain(|(at, _)| *at > now);
        self.capacity = (self.capacity + due).min(self.full);
        if due > 0 && has_work && self.activation.is_none() {
            self.activate(now);
        }
        due > 0
    }

    fn charge(&mut self, now: u64) {
        self.capacity -= 1;
        self.used += 1;
        if self.capacity == 0 {
            self.stop();
            // What should have come back before comes back at once.
            let end = now + 1;
            if self.waiting.iter().any(|(at, _)| *at < end) {
                self.timers(end, true);
            }
        }
    }

    fn knows_debt(&self) -> bool {
        false
    }

    fn is_at_its_own(&self) -> bool {
        self.activation.is_some()
    }

    fn place(&self, _now: u64) -> Option<Place> {
        if self.is_at_its_own() { Some(self.high) } else { self.low }
    }
}
