//! Time that something outside the model takes, above all tasks.

use crate::CpuId;
use horolog_time::Span;

/// A measured load above all tasks of one processor, as the hyperbolic load bound of (utilisation, period):
/// in any window of length Δ it takes at most `min(Δ, u·(Δ + p − e))` with `e = u·p`.
#[derive(Clone, PartialEq, Debug)]
pub struct Interference {
    /// Its name, unique among interferences.
    pub name: String,
    /// The processor that it takes time from.
    pub cpu: CpuId,
    /// The long-run share u, above 0 and at most 1, in parts per billion, so that decisions stay exact.
    pub utilisation_ppb: u64,
    /// The period p of the bound.
    pub period: Span,
}
