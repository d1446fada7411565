//! Why an analysis gives no result at all. "Not schedulable" and "not known" are results, not errors.

use horolog_model::ModelError;

/// Why an analysis gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct AnalysisError(#[from] Kind);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Kind {
    /// The system asks for something that no test here covers.
    #[error("{at}: outside this test's assumptions: {reason}; {remedy}")]
    OutsideAssumptions {
        /// A dotted path of keys: `task.control.preemption`.
        at: String,
        /// What the test does not cover.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// A number left the range of the arithmetic.
    #[error("{at}: {what} is longer than 2^63 ns (292 years); use smaller values")]
    Overflow {
        /// A dotted path of keys.
        at: String,
        /// Which quantity.
        what: &'static str,
    },
    /// A time is longer than a test takes.
    #[error("{at}: {reason}; keep every time below 2^60 ns (36 years)")]
    TooLong {
        /// A dotted path of keys.
        at: String,
        /// What is too long.
        reason: String,
    },
    /// A changed system broke a rule of the model.
    #[error("{0}")]
    Model(ModelError),
}

impl AnalysisError {
    /// Outside the assumptions of every test that could be asked.
    pub(crate) fn outside(
        at: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> AnalysisError {
        AnalysisError(Kind::OutsideAssumptions {
            at: at.into(),
            reason: reason.into(),
            remedy: remedy.into(),
        })
    }

    /// A number left the range of the arithmetic.
    pub(crate) fn overflow(at: impl Into<String>, what: &'static str) -> AnalysisError {
        AnalysisError(Kind::Overflow { at: at.into(), what })
    }

    /// A time is longer than a test takes.
    pub(crate) fn too_long(at: impl Into<String>, reason: impl Into<String>) -> AnalysisError {
        AnalysisError(Kind::TooLong { at: at.into(), reason: reason.into() })
    }

    /// Whether numbers left the range of a test: it has no answer then, and nothing is wrong with the file.
    pub(crate) fn is_out_of_range(&self) -> bool {
        matches!(self.0, Kind::Overflow { .. } | Kind::TooLong { .. })
    }

    /// The first of the rules that a changed system broke.
    pub(crate) fn model(errors: Vec<ModelError>) -> AnalysisError {
        let first = errors.into_iter().next().unwrap_or_else(|| ModelError {
            at: "system".into(),
            reason: "refused without a reason".into(),
            remedy: "report this".into(),
        });
        AnalysisError(Kind::Model(first))
    }

    /// Whether the system asks for something that no test here covers.
    #[must_use]
    pub fn is_outside_assumptions(&self) -> bool {
        matches!(self.0, Kind::OutsideAssumptions { .. })
    }

    /// Whether the fault lies in the file: the command exits with status 2.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        true
    }
}
