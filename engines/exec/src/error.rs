//! Why a run did not happen, or ended early.

use std::fmt;

/// Why a run did not happen or ended early; opaque, with predicates.
#[derive(Debug)]
pub struct ExecError {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotPermitted,
    BadInput,
    Crashed,
    Stopped,
    Machine,
}

impl ExecError {
    /// Whether this machine, or this user, does not allow the run (exit status 3); the message has the remedy.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        self.kind == Kind::NotPermitted
    }

    /// Whether the system asks for something that no run can do (exit status 2).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        self.kind == Kind::BadInput
    }

    /// Whether user code crashed: the message names the task and the job.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        self.kind == Kind::Crashed
    }

    /// Whether the caller's flag ended it before the start.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }

    pub(crate) fn stopped(message: impl Into<String>) -> ExecError {
        ExecError { kind: Kind::Stopped, message: message.into() }
    }

    pub(crate) fn bad_input(message: impl Into<String>) -> ExecError {
        ExecError { kind: Kind::BadInput, message: message.into() }
    }

    pub(crate) fn crashed(message: impl Into<String>) -> ExecError {
        ExecError { kind: Kind::Crashed, message: message.into() }
    }

    pub(crate) fn machine(message: impl Into<String>) -> ExecError {
        ExecError { kind: Kind::Machine, message: message.into() }
    }

    /// As a message to another process.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::NotPermitted => b'p',
            Kind::BadInput => b'b',
            Kind::Crashed => b'c',
            Kind::Stopped => b's',
            Kind::Machine => b'm',
        };
        [&[kind], self.message.as_bytes()].concat()
    }

    /// What [`ExecError::encode`] made.
    pub(crate) fn decode(text: &[u8]) -> ExecError {
        let (kind, message) = text.split_first().unwrap_or((&b'm', b""));
        let kind = match kind {
            b'p' => Kind::NotPermitted,
            b'b' => Kind::BadInput,
            b'c' => Kind::Crashed,
            b's' => Kind::Stopped,
            _ => Kind::Machine,
        };
        ExecError { kind, message: String::from_utf8_lossy(message).into_owned() }
    }

    /// The same error with what it is about before it.
    pub(crate) fn within(self, what: &str) -> ExecError {
        ExecError { kind: self.kind, message: format!("{what}: {}", self.message) }
    }

    pub(crate) fn in_task(self, task: &str) -> ExecError {
        ExecError { kind: self.kind, message: format!("task {task}: {}", self.message) }
    }
}

impl From<horolog_sys::Error> for ExecError {
    fn from(error: horolog_sys::Error) -> ExecError {
        let kind = if error.is_not_permitted() {
            Kind::NotPermitted
        } else if error.is_bad_input() {
            Kind::BadInput
        } else {
            Kind::Machine
        };
        ExecError { kind, message: error.to_string() }
    }
}

impl From<horolog_model::ModelError> for ExecError {
    fn from(error: horolog_model::ModelError) -> ExecError {
        ExecError::bad_input(error.to_string())
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExecError {}
