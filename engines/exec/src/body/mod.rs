//! What a task's jobs execute.

mod library;
mod loaded;
mod spin;

use crate::{ExecError, Job, RunOptions};
use horolog_model::{Body, System, TaskId};
use library::LibraryBody;
pub(crate) use library::place;
use loaded::Loaded;
pub(crate) use loaded::ThreadsBefore;
use spin::{Spin, Spinner};
use std::collections::HashMap;

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

    /// What the reader of the outcome should know of this code; asked once after [`TaskBody::finish`].
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: FnMut(&mut Job<'_>) + Send> TaskBody for F {
    fn job(&mut self, job: &mut Job<'_>) -> i32 {
        self(job);
        0
    }
}

/// Where the bodies of a run come from.
#[derive(Default)]
pub(crate) struct Bodies {
    /// Those that the caller brings, by the task's name.
    pub(crate) given: HashMap<String, Box<dyn TaskBody>>,
    spinner: Option<Spinner>,
    /// The libraries of the others.
    loaded: Loaded,
}

impl Bodies {
    /// Unloads the libraries, once the run's own threads have ended, unless others of this process may execute their code; then says so.
    /// `own` are threads of the run itself: a crashed one sleeps for ever.
    pub(crate) fn unload(&mut self, before: &ThreadsBefore, own: &[u32]) -> Option<String> {
        std::mem::take(&mut self.loaded).unload(before, own)
    }

    /// The body of task `id`.
    pub(crate) fn of(
        &mut self,
        system: &System,
        id: TaskId,
        options: &RunOptions,
    ) -> Result<Box<dyn TaskBody>, ExecError> {
        let task = system.task(id);
        if let Some(given) = self.given.remove(&task.name) {
            return Ok(given);
        }
        match &task.body {
            None | Some(Body::Spin(_)) => {
                let spinner = *self.spinner.get_or_insert_with(Spinner::calibrate);
                Ok(Box::new(Spin::of(task, spinner)?))
            }
            Some(body) => match LibraryBody::open(body, options) {
                Some(opened) => {
                    let opened = opened.map_err(|error| error.in_task(&task.name))?;
                    self.loaded.add(opened.code());
                    Ok(Box::new(opened))
                }
                None => {
                    Err(ExecError::bad_input(format!("task {}: no thread can run such a body", task.name)))
                }
            },
        }
    }
}
