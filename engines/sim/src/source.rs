//! Where jobs come from: drawn from the model, or given by a pattern.

/// One job to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NextJob {
    /// Its nominal arrival.
    pub(crate) arrival: u64,
    /// When it is noticed: ready for the scheduler. Never earlier than the task's job before.
    pub(crate) notice: u64,
}

/// Produces the jobs of every task, each task in order. Only one job of a task is in execution at a time.
pub(crate) trait Source {
    /// The next job of a task; `None`: there are no more.
    fn next_job(&mut self, task: usize) -> Option<NextJob>;

    /// The jobs of a task begin anew with an arrival at `at`, so far apart from then on.
    fn restart(&mut self, task: usize, at: u64, separation: u64);

    /// Starts the oldest job of a task: how long its first segment executes.
    fn begin(&mut self, task: usize) -> u64;

    /// The oldest job of a task is dropped before it has begun.
    fn pass_over(&mut self, task: usize);

    /// The oldest job of a task is dropped after it has begun.
    fn abandon(&mut self, task: usize);

    /// The segment that follows the one just executed, and how long it executes; `None`: the job is done.
    fn advance(&mut self, task: usize) -> Option<(u32, u64)>;
}
