//! Running a system with code of one's own.

use crate::body::{Bodies, TaskBody};
use crate::run::run_bodies;
use crate::{ExecError, Job, RunOptions, RunResult};
use horolog_model::System;
use horolog_trace::Record;

/// A system, and the code of its tasks.
///
/// ```no_run
/// use horolog_exec::{Executive, RunOptions};
/// use horolog_time::Span;
/// # let text = "";
/// let (system, _) = horolog_model::file::read(text, "system.toml", &[]).expect("a valid file");
/// let mut position = 0;
/// let result = Executive::new(system)
///     .options(RunOptions::for_span(Span::from_ns(1_000_000_000)))
///     .body("control", move |job| {
///         position += 1;
///         if job.should_yield() {
///             job.preemption_point(true);
///         }
///     })
///     .run()
///     .expect("this machine allows it");
/// println!("{} deadlines missed", result.outcome.tasks[0].missed);
/// ```
pub struct Executive {
    system: System,
    options: RunOptions,
    bodies: Bodies,
    unknown: Option<String>,
}

impl Executive {
    /// An executive for `system`; tasks without a body given here run what the system says.
    #[must_use]
    pub fn new(system: System) -> Executive {
        Executive { system, options: RunOptions::default(), bodies: Bodies::default(), unknown: None }
    }

    /// Chooses how to run.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Executive {
        self.options = options;
        self
    }

    /// Gives the task `task` a function that is called once a job.
    #[must_use]
    pub fn body(self, task: &str, body: impl FnMut(&mut Job<'_>) + Send + 'static) -> Executive {
        self.task_body(task, body)
    }

    /// Gives the task `task` a body with a start and an end.
    #[must_use]
    pub fn task_body(mut self, task: &str, body: impl TaskBody + 'static) -> Executive {
        if self.system.tasks().iter().any(|known| known.name == task) {
            self.bodies.given.insert(task.to_owned(), Box::new(body));
        } else {
            self.unknown.get_or_insert(task.to_owned());
        }
        self
    }

    /// Runs, and keeps all records in memory.
    ///
    /// # Errors
    /// As [`crate::run`]; also where a body was given for a task that the system does not have.
    pub fn run(self) -> Result<RunResult, ExecError> {
        let mut records = Vec::new();
        let mut result = self.run_into(&mut |record| records.push(record))?;
        result.records = records;
        Ok(result)
    }

    /// Runs, and hands every record in time order to `out`.
    ///
    /// # Errors
    /// As [`Executive::run`].
    pub fn run_into(mut self, out: &mut dyn FnMut(Record)) -> Result<RunResult, ExecError> {
        if let Some(unknown) = self.unknown {
            return Err(ExecError::bad_input(format!(
                "a body was given for task {unknown}, which the system lacks"
            )));
        }
        run_bodies(&self.system, &self.options, &mut self.bodies, out)
    }
}
