//! Priorities: larger means more important, and only that comparison exists.

/// A task's priority; larger is more important, as in `SCHED_FIFO`.
///
/// There is no `Ord`: "less" and "greater" read both ways in this field, so the comparison says what it means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Priority(i64);

impl Priority {
    /// The priority with this number.
    #[must_use]
    pub const fn new(number: i64) -> Priority {
        Priority(number)
    }

    /// The number as the system file gives it.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Whether a task of this priority is served before one of `other`.
    #[must_use]
    pub const fn is_more_important_than(self, other: Priority) -> bool {
        self.0 > other.0
    }
}

/// Where the priorities of a fixed-priority system come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum PriorityAssignment {
    /// Each task gives its own.
    #[default]
    Explicit,
    /// The shorter the deadline, the more important.
    DeadlineMonotonic,
    /// The shorter the period, the more important.
    RateMonotonic,
    /// Audsley's optimal assignment by the exact test of the tasks' preemption modes.
    Audsley,
}

impl PriorityAssignment {
    /// The words of the system file.
    pub const WORDS: [&'static str; 3] = ["deadline-monotonic", "rate-monotonic", "audsley"];

    /// The assignment that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<PriorityAssignment> {
        [Self::DeadlineMonotonic, Self::RateMonotonic, Self::Audsley]
            .into_iter()
            .find(|a| a.word() == Some(word))
    }

    /// The word of the system file; `None` for explicit priorities.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Explicit => None,
            Self::DeadlineMonotonic => Some("deadline-monotonic"),
            Self::RateMonotonic => Some("rate-monotonic"),
            Self::Audsley => Some("audsley"),
        }
    }
}
