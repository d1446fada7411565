//! What can go wrong with a trace.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a trace could not be written, read or converted.
#[derive(Debug)]
pub struct TraceError {
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Io { doing: String, error: io::Error },
    WriteFailed { error: io::Error, kept: u64, dropped: u64 },
    NotATrace { what: String },
    Unsupported { what: String, remedy: String },
}

impl TraceError {
    /// An input or output error met while `doing` something.
    pub(crate) fn io(doing: impl Into<String>, error: io::Error) -> TraceError {
        TraceError { reason: Reason::Io { doing: doing.into(), error } }
    }

    /// The output failed after `kept` records were written; `dropped` were not.
    pub(crate) fn write_failed(error: io::Error, kept: u64, dropped: u64) -> TraceError {
        TraceError { reason: Reason::WriteFailed { error, kept, dropped } }
    }

    /// The input is no trace, or its head is damaged.
    pub(crate) fn not_a_trace(what: impl Into<String>) -> TraceError {
        TraceError { reason: Reason::NotATrace { what: what.into() } }
    }

    /// The input is well-formed and asks for what this version or machine cannot do.
    pub(crate) fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> TraceError {
        TraceError { reason: Reason::Unsupported { what: what.into(), remedy: remedy.into() } }
    }

    /// The same error, met in the file at `path`.
    pub(crate) fn in_file(mut self, path: &Path) -> TraceError {
        match &mut self.reason {
            Reason::Io { doing: what, .. }
            | Reason::NotATrace { what }
            | Reason::Unsupported { what, .. } => {
                *what = format!("{}: {what}", path.display());
            }
            Reason::WriteFailed { .. } => {}
        }
        self
    }

    /// Whether the input is at fault (exit status 2).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match &self.reason {
            Reason::NotATrace { .. } | Reason::Unsupported { .. } => true,
            Reason::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
            Reason::WriteFailed { .. } => false,
        }
    }

    /// Whether the operating system refused (exit status 3).
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        match &self.reason {
            Reason::Io { error, .. } | Reason::WriteFailed { error, .. } => {
                error.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }

    /// How many records stayed readable and how many were dropped, where writing failed half-way.
    #[must_use]
    pub fn records_kept_and_dropped(&self) -> Option<(u64, u64)> {
        match self.reason {
            Reason::WriteFailed { kept, dropped, .. } => Some((kept, dropped)),
            _ => None,
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Io { doing, error } => write!(f, "{doing}: {error}"),
            Reason::WriteFailed { error, kept, dropped } => write!(
                f,
                "writing the trace: {error}; the first {kept} records are in the file and readable, \
                 {dropped} were dropped"
            ),
            Reason::NotATrace { what } => f.write_str(what),
            Reason::Unsupported { what, remedy } => write!(f, "{what}; {remedy}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Io { error, .. } | Reason::WriteFailed { error, .. } => Some(error),
            _ => None,
        }
    }
}
