//! Why a trace could not be verified.

use horolog_time::{Instant, Span};
use horolog_trace::TraceError;

/// Why a trace could not be verified at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct VerifyError(#[from] Reason);

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    Input(String),
    #[error(transparent)]
    Trace(TraceError),
    #[error("the verification was stopped at {0}")]
    Stopped(Span),
}

impl VerifyError {
    pub(crate) fn input(message: impl Into<String>) -> VerifyError {
        VerifyError(Reason::Input(message.into()))
    }

    /// Whether the input is at fault (exit status 2).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match &self.0 {
            Reason::Input(_) => true,
            Reason::Trace(error) => error.is_bad_input(),
            Reason::Stopped(_) => false,
        }
    }

    pub(crate) fn stopped(at: Instant) -> VerifyError {
        VerifyError(Reason::Stopped(Span::from_ns(at.as_ns())))
    }

    /// Whether another thread stopped it.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self.0, Reason::Stopped(_))
    }

    /// Whether the operating system refused (exit status 3).
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        matches!(&self.0, Reason::Trace(error) if error.is_not_permitted())
    }
}

impl From<TraceError> for VerifyError {
    fn from(error: TraceError) -> VerifyError {
        VerifyError(Reason::Trace(error))
    }
}
