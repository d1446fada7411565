//! Who goes before whom.

use horolog_model::{LowPriority, Priority};

/// A place in the order of a processor: the band, the importance within it, and whether it goes before those of the
/// same importance. Greater is more important.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    band: i8,
    importance: i128,
    before: bool,
}

impl Place {
    /// The kernel's server, above everything.
    pub(super) const KERNELS: Place = Place { band: 4, importance: 0, before: false };
    /// Nothing goes before it.
    pub(super) const FIRST: Place = Place { band: 5, importance: 0, before: false };
    /// Soft jobs above every hard task, or between promoted and waiting ones.
    pub(super) const SOFT: Place = Place { band: 2, importance: 0, before: false };
    /// Below every task.
    pub(super) const BACKGROUND: Place = Place { band: 0, importance: 0, before: false };

    /// A fixed priority.
    pub(super) fn priority(priority: i64) -> Place {
        Place { band: 1, importance: i128::from(priority), before: false }
    }

    /// Before those of this fixed priority.
    pub(super) fn before(priority: i64) -> Place {
        Place { before: true, ..Place::priority(priority) }
    }

    /// Before all that stand here.
    pub(super) fn before_equals(self) -> Place {
        Place { before: true, ..self }
    }

    /// A fixed priority among promoted hard jobs.
    pub(super) fn promoted(priority: i64) -> Place {
        Place { band: 3, ..Place::priority(priority) }
    }

    /// A deadline; none at all comes last.
    pub(super) fn deadline(deadline: Option<u64>) -> Place {
        match deadline {
            Some(at) => Place { band: 1, importance: -i128::from(at), before: false },
            None => Place::BACKGROUND,
        }
    }

    /// Where a server goes on without budget.
    pub(super) fn low(low: LowPriority) -> Option<Place> {
        match low {
            LowPriority::None => None,
            LowPriority::At(priority) => Some(Place::priority(number(priority))),
            _ => Some(Place::BACKGROUND),
        }
    }
}

/// The number of a priority.
pub(super) fn number(priority: Priority) -> i64 {
    priority.number()
}
