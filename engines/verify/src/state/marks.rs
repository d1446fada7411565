//! What is at places in a job's execution.

/// A place in a job's execution: after so much of what it had the processor for, without interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// What is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A preemption point, what may be executed at most since the one before, and the segment that follows where the job's budget hangs on it,
    /// else [`horolog_sched::ANY_SEGMENT`].
    Point {
        limit: Limit,
        next: u32,
    },
    Lock(u32),
    /// And for how long it may hold it.
    Unlock {
        resource: u32,
        most: u64,
    },
    /// It slept for so long.
    Sleep(u64),
    /// It slept for so long, and nobody else got the processor.
    Keep(u64),
    /// It was stopped for so long from outside.
    Stop(u64),
    /// From here on it kept the processor against the policy, or from later on: it is known to have done so from this place on.
    Hold(u64),
    /// Not any more.
    Free,
}

/// How long a stretch between two preemption points may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub(crate) most: u64,
    /// Whether points may lie in it that are not on record: what is longer has passed one then, and is not cut off.
    pub(crate) has_points: bool,
}

/// Nobody asks for a preemption point.
pub(crate) const NO_LIMIT: Limit = Limit { most: u64::MAX, has_points: false };
