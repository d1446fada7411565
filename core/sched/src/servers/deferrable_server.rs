//! The deferrable server: its budget waits for work until the period ends, and is full again at the start of the next.
//!
//! At every multiple of the period the budget becomes full, whatever was left (what was overdrawn is owed); between,
//! it is kept while the server idles. A server that uses its budget at the end of one period and again at the start
//! of the next takes it twice back to back: in a window w at most `⌈(w + T − C)/T⌉·C` (budget C, period T).
//!
//! Sources: `lehoczky87`, `strosnider95`.

use crate::servers::doubt::Missing;
use crate::servers::period::Period;
use crate::servers::supply::changed;
use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};

/// A deferrable server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct DeferrableServer {
    full: i64,
    left: i64,
    missing: Missing,
    period: Period,
    /// Where it stands without budget.
    without: Place,
    backlogged: bool,
    tally: Tally,
}

impl DeferrableServer {
    pub(crate) fn new(capacity: Capacity, origin: Instant, without: Place) -> DeferrableServer {
        let full = capacity.budget.as_ns() as i64;
        DeferrableServer {
            full,
            left: full,
            missing: Missing::default(),
            period: Period::new(capacity.period, origin),
            without,
            backlogged: false,
            tally: Tally::default(),
        }
    }

    fn refill(&mut self, now: Instant) {
        let periods = self.period.reach(now);
        self.fill(periods);
    }

    /// So many periods have begun, each with its budget: a debt takes as many of them as it is worth.
    fn fill(&mut self, periods: u64) {
        if periods > 0 && (self.left < self.full || self.missing.is_some()) {
            let (full, given) = (self.full, i64::try_from(periods).unwrap_or(i64::MAX));
            let given = full.saturating_mul(given);
            self.missing.apply(&mut self.left, |left| left.min(0).saturating_add(given).min(full));
            self.tally.replenishments += 1;
        }
    }
}

impl Supply for DeferrableServer {
    #[inline]
    fn place(&self) -> Place {
        if self.left > 0 { Place::High } else { self.without }
    }

    fn budget(&self) -> Option<Span> {
        (self.left > 0 && !self.missing.is_some()).then(|| Span::from_ns(self.left.unsigned_abs()))
    }

    fn timer(&self) -> Option<Instant> {
        // Without work the next arrival finds out how many periods have passed.
        self.backlogged.then(|| self.period.next())
    }

    fn executed(&mut self, _: Instant, amount: Span) -> bool {
        if self.missing.is_some() {
            self.missing.executed(self.left, amount);
            return false;
        }
        let had_budget = self.left > 0;
        self.tally.consume(amount);
        self.left = self.left.saturating_sub_unsigned(amount.as_ns());
        let is_exhausted = had_budget && self.left <= 0;
        self.tally.exhaustions += u64::from(is_exhausted);
        is_exhausted
    }

    fn timer_fired(&mut self, now: Instant) {
        self.refill(now);
    }

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        self.backlogged = backlogged;
        if backlogged {
            self.refill(now);
        }
    }

    fn change_capacity(&mut self, now: Instant, capacity: Capacity) {
        let periods = self.period.reach_before(now);
        self.fill(periods);
        self.period.change(now, capacity.period);
        let full = capacity.budget.as_ns() as i64;
        let more = full - std::mem::replace(&mut self.full, full);
        self.left = changed(self.left, more);
    }

    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        self.refill(now);
        self.missing.doubt(self.left, doubt);
    }

    /// At the start of a period it is full, unless more was overdrawn.
    fn is_known(&self, now: Instant) -> bool {
        let mut later = self.clone();
        later.refill(now);
        !later.missing.is_some()
    }

    fn learn(&mut self, now: Instant, budget: Span) {
        self.refill(now);
        self.missing.learn(&mut self.left, budget);
    }

    fn frame(&self, now: Instant) -> Option<Instant> {
        Some(self.period.at_or_after(now))
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}
