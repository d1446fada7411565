//! Why a step could not be carried out.

use horolog_model::ModelError;
#[cfg(feature = "run")]
use horolog_sys::UNWRITABLE;
use std::fmt;
use std::path::Path;

#[cfg(not(feature = "run"))]
const UNWRITABLE: &str = "its folder must be there, let you write, and have room; or give another path";

/// Why a step of the loop could not be carried out; opaque, with predicates.
#[derive(Debug)]
pub struct LoopError {
    kind: Kind,
    message: String,
    /// The value of the system that is at fault, where one is.
    fault: Option<Box<ModelError>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    BadInput,
    NotPermitted,
    Crashed,
    Stopped,
}

impl LoopError {
    /// Bad input: exit status 2.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        self.kind == Kind::BadInput
    }

    /// This machine does not allow it: exit status 3; the message has the remedy.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        self.kind == Kind::NotPermitted
    }

    /// User code crashed: exit status 1; the message names the task and the job.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        self.kind == Kind::Crashed
    }

    /// The caller's flag ended it before there was a result: nothing is decided.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }

    /// The value of the system that is at fault, with what is wrong and what to do.
    #[must_use]
    pub fn fault(&self) -> Option<&ModelError> {
        self.fault.as_deref()
    }

    pub(crate) fn stopped(message: impl fmt::Display) -> LoopError {
        LoopError { kind: Kind::Stopped, message: message.to_string(), fault: None }
    }

    pub(crate) fn bad_input(message: impl fmt::Display) -> LoopError {
        LoopError { kind: Kind::BadInput, message: message.to_string(), fault: None }
    }

    pub(crate) fn writing(path: &Path, error: impl fmt::Display) -> LoopError {
        LoopError::bad_input(format_args!("cannot write {}: {error}\n  = help: {UNWRITABLE}", path.display()))
    }
}

impl fmt::Display for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoopError {}

#[cfg(feature = "run")]
impl From<horolog_exec::ExecError> for LoopError {
    fn from(error: horolog_exec::ExecError) -> LoopError {
        let kind = if error.is_bad_input() {
            Kind::BadInput
        } else if error.is_crash() {
            Kind::Crashed
        } else if error.is_stopped() {
            Kind::Stopped
        } else {
            Kind::NotPermitted
        };
        let fault = error.fault().cloned().map(Box::new);
        LoopError { kind, message: error.to_string(), fault }
    }
}

#[cfg(feature = "run")]
impl From<horolog_sys::Error> for LoopError {
    fn from(error: horolog_sys::Error) -> LoopError {
        let kind = if error.is_bad_input() { Kind::BadInput } else { Kind::NotPermitted };
        LoopError { kind, message: error.to_string(), fault: None }
    }
}

impl From<horolog_analysis::AnalysisError> for LoopError {
    fn from(error: horolog_analysis::AnalysisError) -> LoopError {
        LoopError::bad_input(error)
    }
}

impl From<horolog_sim::SimError> for LoopError {
    fn from(error: horolog_sim::SimError) -> LoopError {
        if error.is_stop() { LoopError::stopped(error) } else { LoopError::bad_input(error) }
    }
}

impl From<horolog_trace::TraceError> for LoopError {
    fn from(error: horolog_trace::TraceError) -> LoopError {
        if error.is_not_permitted() {
            return LoopError::bad_input(format_args!("{error}\n  = help: {UNWRITABLE}"));
        }
        LoopError::bad_input(error)
    }
}

impl From<horolog_verify::VerifyError> for LoopError {
    fn from(error: horolog_verify::VerifyError) -> LoopError {
        if error.is_stop() { LoopError::stopped(error) } else { LoopError::bad_input(error) }
    }
}

impl From<horolog_report::ReportError> for LoopError {
    fn from(error: horolog_report::ReportError) -> LoopError {
        LoopError::bad_input(error)
    }
}
