//! Why there is no page.

use std::path::PathBuf;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReportError(#[from] Reason);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("the report's data does not serialise: {0}")]
    Serialise(#[from] serde_json::Error),
    #[error("cannot write the report to {path}: {source}; choose another place with --out")]
    Write { path: PathBuf, source: std::io::Error },
}

impl ReportError {
    /// Whether the page was made but could not be stored.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self.0, Reason::Write { .. })
    }
}
