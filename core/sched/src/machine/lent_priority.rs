//! A node whose place somebody lends it: the thread of a driver, at the priority of those who wait for its device.
//!
//! Budgets play no part. The driver of the machine says with [`crate::EventKind::Lend`] where the node stands from now on.
//! Source: `zhang06` (process-aware interrupt scheduling); `baker07`, section 6.

use crate::{Place, Supply};
use horolog_time::{Instant, Span};

/// The supply of a node that stands where it was last put.
///
/// ```
/// use horolog_sched::{LentPriority, Place, Supply};
/// use horolog_time::Instant;
/// let mut lent = LentPriority::new(Place::Low(1));
/// lent.lent(Instant::from_ns(5), Place::High);
/// assert_eq!(lent.place(), Place::High);
/// ```
#[derive(Clone, Debug)]
pub struct LentPriority {
    place: Place,
}

impl LentPriority {
    /// Starts at this place.
    #[must_use]
    pub const fn new(place: Place) -> LentPriority {
        LentPriority { place }
    }
}

impl Supply for LentPriority {
    fn place(&self) -> Place {
        self.place
    }

    fn budget(&self) -> Option<Span> {
        None
    }

    fn timer(&self) -> Option<Instant> {
        None
    }

    fn executed(&mut self, _: Instant, _: Span) -> bool {
        false
    }

    fn timer_fired(&mut self, _: Instant) {}

    fn lent(&mut self, _: Instant, place: Place) {
        self.place = place;
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}
