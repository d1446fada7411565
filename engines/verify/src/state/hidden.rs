//! What the kernel's record of one processor hides.

use crate::state::ongoing::Ongoing;
use crate::state::spans::Spans;

/// Why it is not known who has had a processor since its last switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// A switch is missing.
    Told,
    /// The oldest job of a task ran then, by its own stamp.
    Own { task: usize, at: u64 },
}

/// What the kernel's record of one processor hides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hidden {
    pub(crate) doubt: Option<Doubt>,
    /// The thread that the last switch gave it to.
    pub(crate) given_to: Option<u64>,
    /// The thread that woke since and is taken for the one that has it, and when.
    pub(crate) presumed: Option<(u64, u64)>,
    /// What the order of jobs looked like while that was in doubt, with its begin and end.
    pub(crate) unsure: Vec<(Ongoing, u64, u64)>,
    pub(crate) stretches: Spans,
    pub(crate) count: u64,
    pub(crate) total: u64,
}

impl Hidden {
    /// How much of `from..to` is hidden.
    pub(crate) fn within(&self, from: u64, to: u64) -> u64 {
        self.stretches.within(from, to)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.doubt.is_some()
    }

    /// Records were lost: the next switch follows from nothing.
    pub(crate) fn forget(&mut self) {
        (self.doubt, self.given_to, self.presumed) = (None, None, None);
        self.unsure.clear();
    }

    pub(crate) fn keep(&mut self, what: Ongoing, (since, end): (u64, u64)) {
        self.unsure.push((what, since, end));
    }
}
