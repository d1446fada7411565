//! A simulated run, with its trace on disk.

use crate::LoopError;
use horolog_model::pattern::ReleasePattern;
use horolog_model::{Companion, System};
use horolog_sim::{Horizon, Replay, ReplayOptions, SimOptions, default_horizon, replay, simulate, traced};
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
    let header = header_of(system, options)?;
    let mut writer = Writer::create(path, &header)?;
    let outcome = simulate(system, options, &mut writer)?;
    writer.finish(Instant::ZERO.checked_add(outcome.horizon_ns).unwrap_or(Instant::NEVER))?;
    Ok(outcome)
}

/// The head of the trace of a simulation.
pub(crate) fn header_of(system: &System, options: &SimOptions) -> Result<Header, LoopError> {
    let horizon = match options.horizon {
        Horizon::Time(span) => span,
        Horizon::Default => default_horizon(system),
        Horizon::Jobs(_) => Span::ZERO,
    };
    let text = horolog_model::file::print(system);
    let header = Header::simulated(text, Vec::new(), options.seed, horizon);
    let mut header = header.of_companion(system, &traced(system)?);
    header.machine.extend(numbered(system));
    Ok(header)
}

/// What the numbers of interrupts and softirqs in the records stand for.
fn numbered(system: &System) -> impl Iterator<Item = (String, String)> + '_ {
    let interrupts = system.interrupts().iter().map(|interrupt| &interrupt.name);
    let devices = system.devices().iter().map(|device| &device.name);
    // Behind the interrupts come devices that are served in one of their own.
    let handlers = interrupts.chain(devices.clone()).enumerate();
    let handlers =
        handlers.map(|(number, name)| (format!("interrupt {number}"), format!("interrupt {name}")));
    let softirqs =
        devices.enumerate().map(|(number, name)| (format!("softirq {number}"), format!("softirq {name}")));
    handlers.chain(softirqs)
}

/// Replays a release pattern; writes the trace where a path is given.
///
/// # Errors
/// Where the pattern leaves the model or the trace cannot be written.
pub fn replayed_run(
    system: &System,
    pattern: &ReleasePattern,
    trace: Option<&Path>,
) -> Result<Replay, LoopError> {
    let options = ReplayOptions::default();
    let Some(path) = trace else {
        return Ok(replay(system, pattern, &options, &mut NullSink)?);
    };
    let tasks =
        Companion::without_threads(system).map_err(|error| LoopError::bad_input(error.to_string()))?;
    let header = Header::simulated(horolog_model::file::print(system), Vec::new(), 0, pattern.until_ns);
    let mut header = header.of_companion(system, &tasks);
    header.start = Instant::from_ns(pattern.start_ns.as_ns());
    header.machine.insert("releases".to_owned(), "pattern".to_owned());
    let mut writer = Writer::create(path, &header)?;
    let run = replay(system, pattern, &options, &mut writer)?;
    writer.finish(Instant::ZERO.checked_add(run.outcome.horizon_ns).unwrap_or(Instant::NEVER))?;
    Ok(run)
}
