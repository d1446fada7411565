//! The polling server: its budget is for what waits when a period starts; what it does not use at once is gone.
//!
//! At every multiple of the period the budget becomes full if work waits, else empty; it becomes empty, too, when
//! the queue runs out. An arrival at the instant of a poll is seen by it. Interference on less important tasks: at
//! most that of a periodic task (budget, period).
//!
//! Source: `lehoczky87`.

use crate::servers::doubt::Missing;
use crate::servers::period::Period;
use crate::servers::supply::changed;
use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};

/// A polling server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct PollingServer {
    full: i64,
    left: i64,
    missing: Missing,
    /// Whether what is left is of the budget of this period: it was given at its start, and the queue has not run out since.
    has_polled: bool,
    period: Period,
    /// Where it stands without budget.
    without: Place,
    backlogged: bool,
    tally: Tally,
}

impl PollingServer {
    pub(crate) fn new(capacity: Capacity, origin: Instant, without: Place) -> PollingServer {
        PollingServer {
            full: capacity.budget.as_ns() as i64,
            left: 0,
            missing: Missing::default(),
            has_polled: false,
            period: Period::new(capacity.period, origin),
            without,
            backlogged: false,
            tally: Tally::default(),
        }
    }

    /// So many polls have found nobody: their budget is lost, but for what pays a debt.
    fn poll_in_vain(&mut self, polls: u64) {
        if self.left < 0 || self.missing.is_some() {
            let given = self.full.saturating_mul(i64::try_from(polls).unwrap_or(i64::MAX));
            let pays = |left: i64| if left < 0 { left.saturating_add(given).min(0) } else { left };
            self.missing.apply(&mut self.left, pays);
        }
    }

    /// Without work the budget of a poll before `now` is lost; that of a poll at `now` is for whoever still comes.
    fn lose_before(&mut self, now: Instant) {
        if !self.backlogged && !self.period.starts_at(now) {
            self.missing.apply(&mut self.left, |left| left.min(0));
            self.has_polled = false;
        }
    }

    /// The polls before `now` at which nobody was there.
    fn catch_up(&mut self, now: Instant) {
        if !self.backlogged {
            self.lose_before(now);
            let polls = self.period.reach_before(now);
            self.poll_in_vain(polls);
        }
    }

    fn poll(&mut self) {
        // What was overdrawn is owed.
        let full = self.full;
        self.missing.apply(&mut self.left, |left| left.min(0) + full);
        self.has_polled = true;
        self.tally.replenishments += 1;
    }
}

impl Supply for PollingServer {
    fn place(&self) -> Place {
        if self.left > 0 { Place::High } else { self.without }
    }

    fn budget(&self) -> Option<Span> {
        (self.left > 0 && !self.missing.is_some()).then(|| Span::from_ns(self.left.unsigned_abs()))
    }

    fn timer(&self) -> Option<Instant> {
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
        // Whoever has no work now polls in vain: what arrives at this very instant still finds the poll, by its demand.
        if self.backlogged {
            let polls = self.period.reach(now);
            self.poll_in_vain(polls.saturating_sub(1));
            if polls > 0 {
                self.poll();
            }
        }
    }

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        if !backlogged {
            self.backlogged = false;
            self.lose_before(now);
            return;
        }
        self.lose_before(now);
        self.backlogged = true;
        let polls = self.period.reach(now);
        if !self.period.starts_at(now) {
            self.poll_in_vain(polls);
        } else if !self.has_polled {
            self.poll_in_vain(polls.saturating_sub(1));
            self.poll();
        }
    }

    fn change_capacity(&mut self, now: Instant, capacity: Capacity) {
        self.lose_before(now);
        let polls = self.period.reach_before(now);
        self.poll_in_vain(polls);
        self.period.change(now, capacity.period);
        let full = capacity.budget.as_ns() as i64;
        let more = full - std::mem::replace(&mut self.full, full);
        if self.has_polled {
            self.left = changed(self.left, more);
        }
    }

    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        self.catch_up(now);
        self.missing.doubt(self.left, doubt);
    }

    /// Without work it has nothing; of what was overdrawn each poll pays a budget.
    fn is_known(&self, now: Instant) -> bool {
        let mut later = self.clone();
        later.catch_up(now);
        !later.missing.is_some()
    }

    fn learn(&mut self, now: Instant, budget: Span) {
        self.catch_up(now);
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
