//! Places in the order of a fixed-priority dispatcher.

use horolog_model::Priority;

/// A place in the order of a fixed-priority dispatcher: a band, a priority within it, and for servers that stand
/// between two tasks a place just above that priority.
///
/// ```
/// use horolog_model::Priority;
/// use horolog_sched::Level;
/// let five = Priority::new(5);
/// assert!(Level::at(Priority::new(6)) > Level::just_above(five));
/// assert!(Level::just_above(five) > Level::at(five));
/// assert!(Level::at(Priority::new(i64::MIN)) > Level::BACKGROUND);
/// assert!(Level::promoted(five) > Level::at(Priority::new(9)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Level {
    band: i8,
    priority: i64,
    half: u8,
}

impl Level {
    /// Below every priority.
    pub const BACKGROUND: Level = Level { band: -1, priority: 0, half: 0 };

    /// That of a priority.
    #[must_use]
    pub const fn at(priority: Priority) -> Level {
        Level { band: 0, priority: priority.number(), half: 0 }
    }

    /// More important than this priority, less than any greater one.
    #[must_use]
    pub const fn just_above(priority: Priority) -> Level {
        Level { band: 0, priority: priority.number(), half: 1 }
    }

    /// Above every priority, among themselves in the order of these.
    #[must_use]
    pub const fn promoted(priority: Priority) -> Level {
        Level { band: 2, priority: priority.number(), half: 0 }
    }

    /// Above every priority, below whoever is promoted.
    pub const ABOVE_ALL: Level = Level { band: 1, priority: 0, half: 0 };
}
