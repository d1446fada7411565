//! Why there is no outcome.

use horolog_model::ModelError;

/// Why a simulation did not run to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct SimError(Reason);

impl From<Reason> for SimError {
    fn from(reason: Reason) -> SimError {
        SimError(reason)
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("{0}")]
    Model(#[from] ModelError),
    #[error("{what} may end after 2^64 - 1 ns (584 years); use a shorter horizon")]
    TooFar { what: String },
    #[error(
        "task {task}: more than {limit} jobs wait at {at}; the system is overloaded, use a shorter horizon or allow a longer backlog"
    )]
    Backlog { task: String, limit: u32, at: String },
    #[error("release pattern, {at}: {reason}")]
    Pattern { at: String, reason: String },
    #[error("option `{option}`: {reason}")]
    Option { option: &'static str, reason: String },
    #[error("the simulation was stopped at {at}")]
    Stopped { at: String },
}

impl SimError {
    /// Whether the input (the system, an option, a pattern) asks for something that cannot be simulated.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        !self.is_overload() && !self.is_stop()
    }

    /// Whether the backlog of an overloaded task outgrew the limit.
    #[must_use]
    pub fn is_overload(&self) -> bool {
        matches!(self.0, Reason::Backlog { .. })
    }

    /// Whether another thread stopped it.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self.0, Reason::Stopped { .. })
    }
}

impl From<ModelError> for SimError {
    fn from(error: ModelError) -> SimError {
        SimError(Reason::Model(error))
    }
}
