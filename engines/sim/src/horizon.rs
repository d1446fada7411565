//! How long a simulation runs where nobody says.

use horolog_model::System;
use horolog_time::Span;

const LIMIT: Span = Span::from_ns(60_000_000_000);
const FALLBACK: Span = Span::from_ns(10_000_000_000);

/// The hyperperiod of the periodic and sporadic tasks plus the largest offset where that is below 60 s, else 10 s;
/// also 10 s where no task has a period or the hyperperiod is beyond u64.
pub fn default_horizon(system: &System) -> Span {
    let offset = system.tasks().iter().filter_map(|task| task.offset).max().unwrap_or(Span::ZERO);
    match system.hyperperiod().and_then(|hyperperiod| hyperperiod.checked_add(offset)) {
        Some(horizon) if horizon < LIMIT => horizon,
        _ => FALLBACK,
    }
}
