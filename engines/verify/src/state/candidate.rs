//! A job with an open question.

use crate::state::stretches::Stretch;

/// Something that is too long, and whose cause is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    Execution {
        executed: u64,
        wcet: u64,
        interrupted: u64,
        /// When the job arrived.
        arrived: u64,
        /// Whether it had ended by then.
        finished: bool,
    },
    /// A job had the processor for this much longer than it executed.
    Gap {
        gap: u64,
    },
    /// An observed arrival that came this much too late.
    Arrival {
        late: u64,
        expected: u64,
        /// When the job before ended.
        done_at: u64,
    },
    Blocking {
        blocked: u64,
        allowed: u64,
    },
    Response {
        response: u64,
        bound: u64,
        finished: bool,
    },
    /// A value of this link was published too late.
    Late {
        response: u64,
        deadline: u64,
        link: usize,
    },
    Divergence {
        stretch: Stretch,
        allowed: u64,
        was_late: bool,
    },
}

/// A job with an open question, and the window in which its cause lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) task: usize,
    pub(crate) cpu: usize,
    pub(crate) job: u64,
    pub(crate) arrival: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) blocker: Option<(usize, u64)>,
    pub(crate) question: Question,
}
