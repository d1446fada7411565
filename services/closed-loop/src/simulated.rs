//! A simulated run, with its trace on disk.

use crate::LoopError;
use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, default_horizon, simulate};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Writer};
use horolog_trace::{NullSink, Outcome};
use std::path::Path;

/// Simulates a system whose priorities are resolved; writes the trace where a path is given.
///
/// # Errors
/// Where the system cannot be simulated or the trace cannot be written.
pub fn simulated_run(
    system: &System,
    options: &SimOptions,
    trace: Option<&Path>,
) -> Result<Outcome, LoopError> {
    let Some(path) = trace else {
        return Ok(simulate(system, options, &mut NullSink)?);
    };
    let horizon = match options.horizon {
        Horizon::Time(span) => span,
        Horizon::Default => default_horizon(system),
        Horizon::Jobs(_) => Span::ZERO,
    };
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(horolog_model::file::print(system), names, options.seed, horizon);
    let mut writer = Writer::create(path, &header)?;
    let outcome = simulate(system, options, &mut writer)?;
    writer.finish(Instant::ZERO.checked_add(outcome.horizon_ns).unwrap_or(Instant::NEVER))?;
    Ok(outcome)
}
