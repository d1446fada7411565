//! What a task's jobs execute.

mod spin;

pub(crate) use spin::{Spin, Spinner};

use crate::Job;

/// User code of one task: [`TaskBody::job`] is called once a job, on the task's own thread.
///
/// A closure `FnMut(&mut Job<'_>)` is a body without `start` and `finish`.
pub trait TaskBody: Send {
    /// Called once on the task's thread before the common start, at normal priority.
    ///
    /// # Errors
    /// A text that says why the task cannot run: the run is called off.
    fn start(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// One job. A return value other than 0 counts as a failed job.
    fn job(&mut self, job: &mut Job<'_>) -> i32;

    /// Called once after the last job.
    fn finish(&mut self) {}
}

impl<F: FnMut(&mut Job<'_>) + Send> TaskBody for F {
    fn job(&mut self, job: &mut Job<'_>) -> i32 {
        self(job);
        0
    }
}
