//! What goes on on a processor and is judged when it ends.

use crate::result::Check;

/// Something that goes on on a processor and should not, with the job that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ongoing {
    /// Somebody runs although somebody else should.
    Disorder { check: Check, waiting: (usize, u64), running: (usize, u64) },
    /// Nobody runs.
    Idle { waiting: (usize, u64) },
    /// A thread outside the model runs.
    Foreign {
        thread: u64,
        waiting: (usize, u64),
        /// Whether it took the processor from a ready job; else it had it before that was ready.
        took_over: bool,
    },
}
