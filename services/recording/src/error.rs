//! Why a recording could not be made.

use horolog_sys::UNWRITABLE;
use std::fmt;
use std::path::Path;

/// Why a recording could not be made; opaque, with predicates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordingError {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    BadInput,
    NotPermitted,
    Stopped,
}

impl RecordingError {
    pub(crate) fn bad_input(message: impl fmt::Display) -> RecordingError {
        RecordingError { kind: Kind::BadInput, message: message.to_string() }
    }

    pub(crate) fn not_permitted(message: impl fmt::Display) -> RecordingError {
        RecordingError { kind: Kind::NotPermitted, message: message.to_string() }
    }

    /// A file that cannot be made or opened.
    pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> RecordingError {
        RecordingError::bad_input(format_args!(
            "creating {}: {error}\n  = help: {UNWRITABLE}",
            path.display()
        ))
    }

    /// A signal came before anything was started: nothing is, and no file is written.
    pub(crate) fn stopped() -> RecordingError {
        let message = "stopped by a signal before it was done".to_owned();
        RecordingError { kind: Kind::Stopped, message }
    }

    /// Bad input: exit status 2.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        self.kind == Kind::BadInput
    }

    /// A signal came before anything was started, and no file was written: exit status 4.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }

    /// This machine, or the program that is to be traced, does not allow it: exit status 3; the message has the remedy.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        self.kind == Kind::NotPermitted
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RecordingError {}

impl From<horolog_sys::Error> for RecordingError {
    fn from(error: horolog_sys::Error) -> RecordingError {
        if error.is_bad_input() {
            RecordingError::bad_input(error)
        } else {
            RecordingError::not_permitted(error)
        }
    }
}

/// Traces are only written here. A file that cannot be written is bad input, also where its folder is closed to this user.
impl From<horolog_trace::TraceError> for RecordingError {
    fn from(error: horolog_trace::TraceError) -> RecordingError {
        RecordingError::bad_input(format_args!("{error}\n  = help: {UNWRITABLE}"))
    }
}
