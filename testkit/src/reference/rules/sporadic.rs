//! The sporadic server with the corrected rules: chunks of budget, each with its time (Stanovich and others 2010).

use super::super::order::Place;
use super::Rules;
use horolog_model::Capacity;

/// Part of the budget, and from when on it may be used.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    at: u64,
    amount: u64,
}

/// A corrected sporadic server.
pub(super) struct Sporadic {
    period: u64,
    high: Place,
    low: Option<Place>,
    most: usize,
    /// In the order of their times. Their amounts sum to the whole budget.
    chunks: Vec<Chunk>,
    /// What is used of the first one.
    used: u64,
    /// Chunks up to this instant have come.
    come_until: u64,
}

impl Sporadic {
    pub(super) fn new(capacity: Capacity, high: Place, low: Option<Place>, most: u32) -> Sporadic {
        let whole = Chunk { at: 0, amount: capacity.budget.as_ns() };
        let period = capacity.period.as_ns();
        Sporadic { period, high, low, most: most as usize, chunks: vec![whole], used: 0, come_until: 0 }
    }

    /// Chunks of one time are one chunk.
    fn add(&mut self, chunk: Chunk) {
        match self.chunks.iter_mut().find(|other| other.at == chunk.at) {
            Some(other) => other.amount += chunk.amount,
            None => self.chunks.push(chunk),
        }
        self.chunks.sort_by_key(|chunk| chunk.at);
    }
}

impl Rules for Sporadic {
    fn arrives(&mut self, now: u64) {
        self.come_until = now;
        let come: u64 = self.chunks.iter().filter(|chunk| chunk.at <= now).map(|chunk| chunk.amount).sum();
        self.chunks.retain(|chunk| chunk.at > now);
        if come > 0 {
            self.chunks.insert(0, Chunk { at: now, amount: come });
        }
    }

    fn empties(&mut self, _now: u64) {
        if self.used == 0 {
            return;
        }
        let first = self.chunks.remove(0);
        // What comes back together with another chunk is no further one.
        let joins = self.chunks.iter().any(|chunk| chunk.at == first.at + self.period);
        let is_full = self.chunks.len() + usize::from(!joins) >= self.most;
        let (used, rest) = (self.used, first.amount - self.used);
        let comes_back = Chunk { at: first.at + self.period, amount: used };
        self.used = 0;
        if is_full {
            self.add(comes_back);
            self.chunks[0].amount += rest;
        } else {
            self.chunks.insert(0, Chunk { at: first.at, amount: rest });
            self.add(comes_back);
        }
    }

    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        self.come_until = now;
        self.chunks.iter().any(|chunk| chunk.at == now)
    }

    fn charge(&mut self, now: u64) {
        // An overrun uses up the next chunk, whose time has not come.
        self.used += 1;
        if self.used == self.chunks[0].amount {
            let first = self.chunks.remove(0);
            self.used = 0;
            self.add(Chunk { at: first.at + self.period, amount: first.amount });
            // Execution is charged at the end of its unit; what has come by then is there.
            self.come_until = now + 1;
        }
    }

    fn changes(&mut self, now: u64, capacity: Capacity) {
        let (before, after): (u64, u64) =
            (self.chunks.iter().map(|chunk| chunk.amount).sum(), capacity.budget.as_ns());
        self.period = capacity.period.as_ns();
        if let Some(last) = self.chunks.last_mut() {
            last.amount += after.saturating_sub(before);
        }
        let mut less = before.saturating_sub(after);
        for chunk in self.chunks.iter_mut().rev() {
            let cut = less.min(chunk.amount);
            (chunk.amount, less) = (chunk.amount - cut, less - cut);
        }
        self.chunks.retain(|chunk| chunk.amount > 0);
        if self.used >= self.chunks[0].amount {
            let first = self.chunks.remove(0);
            self.used = 0;
            self.add(Chunk { at: first.at + self.period, amount: first.amount });
            self.come_until = now;
        }
    }

    fn is_at_its_own(&self) -> bool {
        self.chunks[0].at <= self.come_until
    }

    fn place(&self, _now: u64) -> Option<Place> {
        if self.is_at_its_own() { Some(self.high) } else { self.low }
    }
}
