//! The sporadic server by the letter of POSIX (`SCHED_SPORADIC`), with its defects: for comparison.
//!
//! One activation time and one capacity: when the server gets its high priority (work arrives, or a replenishment lifts
//! it), the time is kept as its *activation time*; when its queue runs out or its capacity ends, everything that it used
//! since then comes back one period after the activation time. A capacity that would be negative becomes zero, one
//! above the budget becomes the budget. With `max_replenishments` of them pending it stands at its low priority.
//!
//! Two defects follow. A replenishment that comes *while the server is active* is used under the older activation time,
//! so what it gives comes back too early; and an overrun is forgotten in the capacity but handed back in the
//! replenishment, so that the budget grows. `docs/concepts/servers.md` shows a deadline missed by the first.
//!
//! Sources: `posix08`; for the defects `stanovich10`.

use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};
use std::collections::VecDeque;

/// A literal POSIX sporadic server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct PosixSporadicServer {
    budget: i64,
    period: u64,
    capacity: i64,
    activation: u64,
    /// What it used since the activation.
    used: i64,
    /// When and how much; never more than it has room for.
    pending: VecDeque<(u64, i64)>,
    max_pending: usize,
    without: Place,
    backlogged: bool,
    /// Whether it has its high priority.
    high: bool,
    /// Where it is in doubt: when everything has come back, if nothing is used from now on.
    back_at: Option<u64>,
    tally: Tally,
}

impl PosixSporadicServer {
    pub(crate) fn new(capacity: Capacity, max_replenishments: u32, without: Place) -> PosixSporadicServer {
        let max_pending = max_replenishments.max(1) as usize;
        let budget = capacity.budget.as_ns() as i64;
        PosixSporadicServer {
            budget,
            period: capacity.period.as_ns(),
            capacity: budget,
            activation: 0,
            used: 0,
            pending: VecDeque::with_capacity(max_pending + 1),
            max_pending,
            without,
            backlogged: false,
            high: true,
            back_at: None,
            tally: Tally::default(),
        }
    }

    fn lift(&mut self, now: u64) {
        self.high = self.capacity > 0 && self.pending.len() < self.max_pending;
        if self.high {
            self.activation = now;
            self.used = 0;
        }
    }

    fn schedule(&mut self, now: u64) {
        if self.used == 0 {
            return;
        }
        let at = self.activation.saturating_add(self.period);
        let amount = std::mem::take(&mut self.used);
        if at < now {
            self.replenish(amount);
        } else {
            self.pending.push_back((at, amount));
        }
    }

    fn replenish(&mut self, amount: i64) {
        self.capacity = (self.capacity + amount).min(self.budget);
        self.tally.replenishments += 1;
    }

    fn replenish_due(&mut self, now: u64) {
        let mut any = false;
        while let Some(&(_, amount)) = self.pending.front().filter(|&&(at, _)| at <= now) {
            self.pending.pop_front();
            self.replenish(amount);
            any = true;
        }
        if any && self.backlogged && !self.high {
            self.lift(now);
        }
    }
}

impl Supply for PosixSporadicServer {
    fn place(&self) -> Place {
        if self.high { Place::High } else { self.without }
    }

    fn budget(&self) -> Option<Span> {
        (self.high && self.back_at.is_none()).then(|| Span::from_ns(self.capacity.unsigned_abs()))
    }

    fn timer(&self) -> Option<Instant> {
        // Without work nobody sees when it comes back.
        let due = self.pending.front().filter(|_| self.backlogged);
        due.map(|&(at, _)| Instant::from_ns(at))
    }

    fn executed(&mut self, now: Instant, amount: Span) -> bool {
        if let Some(back_at) = &mut self.back_at {
            *back_at = (*back_at).max(now.as_ns().saturating_add(self.period));
            return false;
        }
        if !self.high {
            return false;
        }
        self.tally.consume(amount);
        self.used = self.used.saturating_add_unsigned(amount.as_ns());
        self.capacity = self.capacity.saturating_sub_unsigned(amount.as_ns()).max(0);
        let is_exhausted = self.capacity == 0;
        if is_exhausted {
            self.tally.exhaustions += 1;
            self.high = false;
            self.schedule(now.as_ns());
            // One that was due at once may have lifted it.
            if self.capacity > 0 {
                self.lift(now.as_ns());
            }
        }
        is_exhausted
    }

    fn timer_fired(&mut self, now: Instant) {
        self.replenish_due(now.as_ns());
    }

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        if let Some(back_at) = self.back_at {
            self.backlogged = backlogged;
            if !backlogged || now.as_ns() < back_at {
                return;
            }
            self.back_at = None;
        }
        if backlogged {
            self.replenish_due(now.as_ns());
            self.backlogged = true;
            self.lift(now.as_ns());
            return;
        }
        self.backlogged = false;
        if self.high {
            self.schedule(now.as_ns());
        }
    }

    fn doubt(&mut self, now: Instant, _: Doubt) {
        let back_at = now.as_ns().saturating_add(self.period);
        self.back_at = Some(self.back_at.unwrap_or(0).max(back_at));
        self.pending.clear();
        (self.capacity, self.used, self.high) = (self.budget, 0, true);
    }

    /// Without work, once everything must have come back; an overdraw is forgotten.
    fn is_known(&self, now: Instant) -> bool {
        self.back_at.is_none_or(|back_at| !self.backlogged && now.as_ns() >= back_at)
    }

    fn change_capacity(&mut self, now: Instant, capacity: Capacity) {
        self.period = capacity.period.as_ns();
        let budget = capacity.budget.as_ns() as i64;
        let more = budget - std::mem::replace(&mut self.budget, budget);
        // It knows no debts.
        self.capacity = (self.capacity + more).clamp(0, budget);
        if self.high && self.capacity == 0 {
            self.high = false;
            self.schedule(now.as_ns());
        } else if self.backlogged && !self.high {
            self.lift(now.as_ns());
        }
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_makes_the_budget_grow() {
        let capacity = Capacity { budget: Span::from_ns(4), period: Span::from_ns(100) };
        let mut server = PosixSporadicServer::new(capacity, 8, Place::Out);
        // Three times it uses 1 and is charged 1, then it overruns what is left by 3.
        for start in [0, 10, 20] {
            server.demand_changed(Instant::from_ns(start), true);
            server.executed(Instant::from_ns(start + 1), Span::from_ns(1));
            server.demand_changed(Instant::from_ns(start + 1), false);
        }
        server.demand_changed(Instant::from_ns(30), true);
        server.executed(Instant::from_ns(34), Span::from_ns(4));
        let pending: i64 = server.pending.iter().map(|&(_, amount)| amount).sum();
        assert_eq!(server.capacity + pending, 7, "a budget of 4 has become 7");
    }
}
