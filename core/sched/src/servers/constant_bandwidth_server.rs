//! The constant bandwidth server: under EDF, a deadline that is put off by one period whenever the budget is used up.
//!
//! Budget Q, period T, current budget c, deadline d. When work arrives at r after the queue was empty: if `c ≥ (d −
//! r)·Q/T`, then `d = r + T` and `c = Q`; else both stay. When c is used up: `c = Q` and `d = d + T`, at once, so the
//! server never waits. Whatever its tasks demand, it takes at most `Q/T` of the processor as far as EDF's demand
//! goes, so a set of tasks and servers is schedulable if their shares sum to at most 1.
//!
//! Source: `abeni98`.

use crate::servers::supply::changed;
use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};

/// A constant bandwidth server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct ConstantBandwidthServer {
    full: i64,
    period: u64,
    left: i64,
    deadline: u64,
    /// Where budget and deadline are in doubt: the latest that the deadline may be, and what was executed towards putting it off.
    doubt: Option<(u64, u64)>,
    tally: Tally,
}

impl ConstantBandwidthServer {
    pub(crate) fn new(capacity: Capacity) -> ConstantBandwidthServer {
        let full = capacity.budget.as_ns() as i64;
        ConstantBandwidthServer {
            full,
            period: capacity.period.as_ns(),
            left: full,
            deadline: 0,
            doubt: None,
            tally: Tally::default(),
        }
    }

    /// Without budget the deadline moves, and the budget is full again; whether that was so.
    fn put_off(&mut self) -> bool {
        let is_exhausted = self.left <= 0;
        if is_exhausted {
            // A late executive may have used more than one budget.
            let periods = self.left.unsigned_abs() / self.full.unsigned_abs() + 1;
            self.left = self.left.saturating_add(self.full.saturating_mul(periods as i64));
            self.deadline = self.deadline.saturating_add(self.period.saturating_mul(periods));
            self.tally.exhaustions += periods;
            self.tally.replenishments += periods;
        }
        is_exhausted
    }

    /// Whether what is left until the deadline is more than the server's share of that time.
    fn is_too_much(&self, now: u64) -> bool {
        let until = u128::from(self.deadline.saturating_sub(now));
        u128::from(self.left.unsigned_abs()) * u128::from(self.period)
            >= until * u128::from(self.full.unsigned_abs())
    }
}

impl Supply for ConstantBandwidthServer {
    fn place(&self) -> Place {
        Place::High
    }

    fn budget(&self) -> Option<Span> {
        self.doubt.is_none().then(|| Span::from_ns(self.left.unsigned_abs()))
    }

    fn timer(&self) -> Option<Instant> {
        None
    }

    fn deadline(&self) -> Option<Instant> {
        Some(Instant::from_ns(self.deadline))
    }

    fn executed(&mut self, _: Instant, amount: Span) -> bool {
        if let Some((latest, used)) = &mut self.doubt {
            *used = used.saturating_add(amount.as_ns());
            let full = self.full.unsigned_abs();
            *latest = latest.saturating_add((*used / full).saturating_mul(self.period));
            *used %= full;
            return false;
        }
        self.tally.consume(amount);
        self.left = self.left.saturating_sub_unsigned(amount.as_ns());
        self.put_off()
    }

    fn timer_fired(&mut self, _: Instant) {}

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        if let Some((latest, _)) = &mut self.doubt
            && backlogged
        {
            if now.as_ns() < *latest {
                *latest = (*latest).max(now.as_ns().saturating_add(self.period));
                return;
            }
            // What is left is more than its share of no time.
            (self.doubt, self.deadline) = (None, now.as_ns());
        }
        if backlogged && self.is_too_much(now.as_ns()) {
            self.deadline = now.as_ns().saturating_add(self.period);
            self.tally.replenishments += u64::from(self.left < self.full);
            self.left = self.full;
        }
    }

    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        let before = self.doubt.map_or(0, |(latest, _)| latest);
        let latest = self.deadline.max(before).max(now.as_ns().saturating_add(self.period));
        let put_off = doubt.budgets(self.full).saturating_mul(self.period);
        self.doubt = Some((latest.saturating_add(put_off), 0));
    }

    /// Once its deadline must have passed without work: the next work gets a new one, whatever is left.
    fn is_known(&self, now: Instant) -> bool {
        self.doubt.is_none_or(|(latest, _)| now.as_ns() >= latest)
    }

    /// Work has come and got a new deadline.
    fn learn(&mut self, now: Instant, budget: Span) {
        if budget.as_ns() == self.full.unsigned_abs() {
            (self.doubt, self.left) = (None, self.full);
            self.deadline = now.as_ns().saturating_add(self.period);
        }
    }

    fn change_capacity(&mut self, _: Instant, capacity: Capacity) {
        self.period = capacity.period.as_ns();
        let full = capacity.budget.as_ns() as i64;
        let more = full - std::mem::replace(&mut self.full, full);
        self.left = changed(self.left, more);
        self.put_off();
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}
