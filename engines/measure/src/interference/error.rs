//! Why a measurement of interference could not be made.

use super::store::StoreError;
use horolog_sys::Error;

/// Why a measurement of interference could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterferenceError {
    /// The machine or the caller's values.
    #[error(transparent)]
    System(#[from] Error),
    /// The file of trials.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl InterferenceError {
    /// Whether this machine does not allow it.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        matches!(self, InterferenceError::System(error) if error.is_not_permitted())
    }
}
