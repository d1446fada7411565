//! What an analysis may be asked for.

use horolog_time::Span;

/// What an analysis may be asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Evaluations of a demand function that one task may cost before its answer is `unknown`. Every test is
    /// bounded by it, so that no input hangs.
    pub effort: u64,
    /// The resolution of the integer-time test: every time of the model must be a multiple of it.
    pub resolution: Span,
    /// Whether to search the scaling factor, slack and remedies too ([`crate::sensitivity`]): some hundred times the
    /// work of the verdicts alone.
    pub sensitivity: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { effort: 5_000_000, resolution: Span::from_ns(1), sensitivity: false }
    }
}
