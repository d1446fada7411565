//! What an inner node gets from above: when its children may run, and for how long.
//!
//! A server, a reserve or a partition is one file that implements [`Supply`]; the machine arms its timers,
//! charges its budget and keeps its node out of the tree while it is not eligible.

use horolog_time::{Instant, Span};
use std::fmt;

/// The supply of one inner node. Methods run inside an event and must not allocate.
///
/// The machine asks [`Supply::is_eligible`], [`Supply::budget`], [`Supply::deadline`] and [`Supply::timer`] again
/// after each call that changes the state.
pub trait Supply: fmt::Debug + Send + Sync {
    /// Whether the node's children may be chosen now. A non-preemptible job that already runs keeps the
    /// processor all the same until it gives it up; what it overdraws is charged, so a budget may be negative.
    fn is_eligible(&self) -> bool;

    /// How much the node may still execute before somebody must be told; `None`: no limit.
    fn budget(&self) -> Option<Span>;

    /// The next instant at which [`Supply::timer_fired`] wants to be called.
    fn timer(&self) -> Option<Instant>;

    /// The absolute deadline that the node runs under below an EDF dispatcher; `None`: that of its most urgent
    /// child.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The node executed for `amount` since the last call.
    fn executed(&mut self, now: Instant, amount: Span);

    /// The wall timer went off.
    fn timer_fired(&mut self, now: Instant);

    /// The node got its first ready child (`true`) or lost its last (`false`).
    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        let _ = (now, backlogged);
    }

    /// A copy of this supply in its present state.
    fn boxed_clone(&self) -> Box<dyn Supply>;
}

impl Clone for Box<dyn Supply> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}
