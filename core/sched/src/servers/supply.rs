//! What an inner node gets from above: where its children stand, and for how long they may run.
//!
//! A server, a reserve or a partition is one file that implements [`Supply`]; the machine arms its timers,
//! charges its budget and keeps its node where its supply says: at its priority, at a lower place, or out.

use crate::Doubt;
use horolog_model::Capacity;
use horolog_time::{Instant, Span};
use std::fmt;

/// Where a node stands among the places that it was built with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At its own priority; the only place below an EDF dispatcher.
    High,
    /// At one of its lower places, counted from 0 in the order in which it was built with them.
    Low(u16),
    /// Nowhere: its children are not chosen.
    Out,
}

/// What a server has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Execution that was charged to its budget.
    pub consumed: Span,
    /// How often a budget ran out while work waited.
    pub exhaustions: u64,
    /// How often budget came back.
    pub replenishments: u64,
}

impl Tally {
    /// Adds execution; what one processor executes since time 0 is never more than an instant can say.
    #[inline]
    pub(crate) fn consume(&mut self, amount: Span) {
        self.consumed = self.consumed.checked_add(amount).unwrap_or(Span::MAX);
    }
}

/// The supply of one inner node. Methods run inside an event and must not allocate.
///
/// The machine asks [`Supply::place`], [`Supply::budget`], [`Supply::deadline`] and [`Supply::timer`] again after each
/// call that may change the state.
pub trait Supply: fmt::Debug + Send + Sync {
    /// Where the node stands now. A non-preemptible job that already runs keeps the processor all the same until
    /// it gives it up; what it overdraws is charged, so a budget may be negative.
    fn place(&self) -> Place;

    /// How much the node may still execute before somebody must be told; `None`: no limit, and nothing is charged.
    fn budget(&self) -> Option<Span>;

    /// The next instant at which [`Supply::timer_fired`] wants to be called.
    fn timer(&self) -> Option<Instant>;

    /// The absolute deadline that the node runs under below an EDF dispatcher; `None`: that of its most urgent
    /// child.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The node executed for `amount` since the last call; whether place, deadline or timer may have changed by that, or
    /// only the budget.
    fn executed(&mut self, now: Instant, amount: Span) -> bool;

    /// The wall timer went off.
    fn timer_fired(&mut self, now: Instant);

    /// The node got its first ready child (`true`) or lost its last (`false`).
    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        let _ = (now, backlogged);
    }

    /// Somebody puts the node at another place; a supply that decides by itself does not listen.
    fn lent(&mut self, now: Instant, place: Place) {
        let _ = (now, place);
    }

    /// It has this budget and period from now on. What is used of the old budget is used of the new one; the next replenishment
    /// stays where it is.
    fn change_capacity(&mut self, now: Instant, capacity: Capacity) {
        let _ = (now, capacity);
    }

    /// The start of its period at `now`, or else the next one; `None`: it has no periods.
    fn frame(&self, now: Instant) -> Option<Instant> {
        let _ = now;
        None
    }

    /// More than was told may have been executed until `now`: what is left is in doubt until the rules of the supply say what it is.
    /// What is executed meanwhile may have been charged or not. A supply that execution does not change has nothing to do.
    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        let _ = (now, doubt);
    }

    /// Whether what it has at `now` is known; where it has work, only if its rules have said so already.
    fn is_known(&self, now: Instant) -> bool {
        let _ = now;
        true
    }

    /// It is in doubt, and a record says that it may execute this from `now` on, of budget that has come back just now; zero: that
    /// its budget has run out.
    fn learn(&mut self, now: Instant, budget: Span) {
        let _ = (now, budget);
    }

    /// What it has done so far.
    fn tally(&self) -> Tally {
        Tally::default()
    }

    /// A copy of this supply in its present state.
    fn boxed_clone(&self) -> Box<dyn Supply>;
}

/// What is left of a budget that has become greater by `more`: not below zero, and a debt does not grow.
pub(crate) fn changed(left: i64, more: i64) -> i64 {
    left.saturating_add(more).max(left.min(0))
}

impl Clone for Box<dyn Supply> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}
