//! Why a run ended before its time.

use horolog_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EndCause {
    /// User code crashed: a fatal signal on its own thread, or a panic.
    Crash,
    /// User code ended the program: `exit`, `_exit`, the end of its main thread.
    Exit,
    /// User code replaced the program by another: `exec`.
    Exec,
    /// The program was killed by a signal that no code of it could handle.
    Killed,
    /// A job executed without an end, until the watchdog ended the run.
    Stuck,
}

/// Who ended a run before its time, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// What ended it.
    pub cause: EndCause,
    /// The task whose code did; null where it is not known.
    pub task: Option<String>,
    /// The job that ran, counted from 0; null outside all jobs, and where it is not known.
    pub job: Option<u64>,
    /// When, since the common start; of a process that ended by itself, its last record: the last sign of life.
    pub at_ns: Span,
    /// What happened, in words.
    pub what: String,
    /// The functions that were being executed, the innermost first, as far as they could be found.
    pub stack: Vec<String>,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(task) = &self.task {
            write!(f, "task {task}, ")?;
            match self.job {
                Some(job) => write!(f, "job {job}: ")?,
                None => f.write_str("outside its jobs: ")?,
            }
        }
        f.write_str(&self.what)?;
        if !self.stack.is_empty() {
            write!(f, "; in {}", self.stack.join(", called by "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_and_what() {
        let mut ending = Ending {
            cause: EndCause::Stuck,
            task: Some("control".into()),
            job: Some(3),
            at_ns: Span::from_ns(1),
            what: "it did not end".into(),
            stack: vec!["inner (a.so)".into(), "outer (a.so)".into()],
        };
        assert_eq!(
            ending.to_string(),
            "task control, job 3: it did not end; in inner (a.so), called by outer (a.so)"
        );
        (ending.job, ending.stack) = (None, Vec::new());
        assert_eq!(ending.to_string(), "task control, outside its jobs: it did not end");
        ending.task = None;
        assert_eq!(ending.to_string(), "it did not end");
        assert_eq!(serde_json::to_value(EndCause::Stuck).expect("JSON"), "stuck");
    }
}
