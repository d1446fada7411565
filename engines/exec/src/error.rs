//! Why a run did not happen, or ended early.

use horolog_model::ModelError;
use std::fmt;

/// Why a run did not happen or ended early; opaque, with predicates.
#[derive(Debug)]
pub struct ExecError {
    kind: Kind,
    message: String,
    /// The value of the system that is at fault, where one is.
    fault: Option<Box<ModelError>>,
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

    /// The value of the system that is at fault, with what is wrong and what to do.
    #[must_use]
    pub fn fault(&self) -> Option<&ModelError> {
        self.fault.as_deref()
    }

    fn new(kind: Kind, message: impl Into<String>) -> ExecError {
        ExecError { kind, message: message.into(), fault: None }
    }

    /// A value of the system asks for what no run can do.
    pub(crate) fn at(
        at: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ExecError {
        ModelError { at: at.into(), reason: reason.into(), remedy: remedy.into() }.into()
    }

    pub(crate) fn stopped(message: impl Into<String>) -> ExecError {
        ExecError::new(Kind::Stopped, message)
    }

    pub(crate) fn bad_input(message: impl Into<String>) -> ExecError {
        ExecError::new(Kind::BadInput, message)
    }

    pub(crate) fn crashed(message: impl Into<String>) -> ExecError {
        ExecError::new(Kind::Crashed, message)
    }

    pub(crate) fn machine(message: impl Into<String>) -> ExecError {
        ExecError::new(Kind::Machine, message)
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
        let of_fault = |fault: &ModelError| format!("\0{}\0{}\0{}", fault.at, fault.reason, fault.remedy);
        let fault = self.fault().map_or_else(String::new, of_fault);
        [&[kind], self.message.as_bytes(), fault.as_bytes()].concat()
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
        let text = String::from_utf8_lossy(message);
        let mut parts = text.split('\0').map(str::to_owned);
        let message = parts.next().unwrap_or_default();
        let fault = match (parts.next(), parts.next(), parts.next()) {
            (Some(at), Some(reason), Some(remedy)) => Some(Box::new(ModelError { at, reason, remedy })),
            _ => None,
        };
        ExecError { kind, message, fault }
    }

    /// The same error with what it is about before it.
    pub(crate) fn within(self, what: &str) -> ExecError {
        ExecError { message: format!("{what}: {}", self.message), ..self }
    }

    pub(crate) fn in_task(self, task: &str) -> ExecError {
        ExecError { message: format!("task {task}: {}", self.message), ..self }
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
        ExecError::new(kind, error.to_string())
    }
}

impl From<ModelError> for ExecError {
    fn from(error: ModelError) -> ExecError {
        let message = error.to_string();
        ExecError { fault: Some(Box::new(error)), ..ExecError::bad_input(message) }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExecError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the process of a run says reaches the one that started it whole, with and without a value at fault.
    #[test]
    fn a_message_to_another_process_reads_back() {
        for error in
            [ExecError::bad_input("one: two"), ExecError::at("task.a.body.init", "it failed", "mend it")]
        {
            let read = ExecError::decode(&error.encode());
            assert_eq!((read.kind, &read.message, read.fault()), (error.kind, &error.message, error.fault()));
        }
        let empty = ExecError::decode(b"");
        assert!(empty.kind == Kind::Machine && empty.message.is_empty() && empty.fault().is_none());
    }
}
