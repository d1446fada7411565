//! `horolog run`.

use crate::arguments::{Format, RunArguments, SchedulingClass};
use crate::failure::{Done, Failure, Verdict};
use crate::output::Closed;
use crate::{costs, input, output, progress};
use horolog_analysis::resolve;
use horolog_closed_loop::verdict::{Asked, Closing, Ended, Evidence};
use horolog_closed_loop::{Guard, LoopError, MeasuredRun, measured_run, recorded_run};
use horolog_exec::{Backend, Conflict, Limit, RunOptions, conflicts, load_warnings};
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::Outcome;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const DEFAULT_DURATION: Span = Span::from_ns(10_000_000_000);

pub(crate) fn run(words: &RunArguments) -> Done {
    let (system, source) = input::system(&words.file)?;
    let (system, source_of_costs) = costs::filled(&system, &words.machine)?;
    costs::say(&source_of_costs);
    let system = resolve(&system).map_err(Failure::error)?;
    let mut options = RunOptions::default();
    options.limit =
        if words.forever { Limit::Forever } else { Limit::For(words.duration.unwrap_or(DEFAULT_DURATION)) };
    options.seed = input::seed(words.seed);
    options.best_effort = words.best_effort;
    options.stack = bytes(words.stack);
    options.backend = match words.class {
        SchedulingClass::Fifo => Backend::Fifo,
        SchedulingClass::Deadline => Backend::Deadline,
    };
    options.folder = source.folder().map(std::path::Path::to_path_buf);
    options.output_to_error = words.format == Format::Json;
    options.stop = Some(stop_on_interrupt()?);
    warn_of_load(&system);
    let conflicts = warn_of_conflicts(&system, &options);
    let asked = words.verdict.asked_of_deadlines("run")?;
    let mut attempts = Vec::new();
    loop {
        let run = match attempt(&system, &options, words) {
            Err(error) if error.is_not_permitted() || error.is_crash() || error.is_stopped() => {
                let ended = match () {
                    () if error.is_stopped() => Ended::StoppedBefore(error.to_string()),
                    () if error.is_crash() => Ended::Crashed(error.to_string()),
                    () => Ended::NotPermitted(error.to_string()),
                };
                let closing = closing(&system, None, ended, &asked);
                if words.format == Format::Json {
                    let result = NotRun { schema: Outcome::SCHEMA, system: system.name() };
                    let result = Warned { result: &result, conflicts: &conflicts };
                    output::json(&Closed { result: &result, closing: &closing, attempts: &attempts })?;
                }
                return Ok(Verdict::closed(closing));
            }
            run => run.map_err(Failure::from)?,
        };
        // One without an end ends when it is stopped.
        let of = (!words.forever).then(|| words.duration.unwrap_or(DEFAULT_DURATION));
        let ended = Ended::of_run(&run.outcome, of);
        let closing = closing(&system, Some(&run.outcome), ended, &asked);
        let is_stopped = options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if closing.may_be_retried() && attempts.len() < words.retries as usize && !is_stopped {
            progress::say(format_args!("{closing}\nattempt {}", attempts.len() + 2));
            attempts.push(closing);
            continue;
        }
        match words.format {
            Format::Json => {
                let result = Warned { result: &run.outcome, conflicts: &conflicts };
                output::json(&Closed { result: &result, closing: &closing, attempts: &attempts })?;
            }
            Format::Table => output::outcome(&run.outcome),
        }
        return Ok(Verdict::closed(closing));
    }
}

/// What the JSON holds beside the verdict where nothing was run.
#[derive(Serialize)]
struct NotRun<'a> {
    schema: &'static str,
    system: &'a str,
}

/// A result, and what was in its way before the run.
#[derive(Serialize)]
struct Warned<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    #[serde(skip_serializing_if = "<[Conflict]>::is_empty")]
    conflicts: &'a [Conflict],
}

/// Runs once.
fn attempt(system: &System, options: &RunOptions, words: &RunArguments) -> Result<MeasuredRun, LoopError> {
    let _activity = progress::Activity::start("running");
    match &words.trace {
        Some(folder) if words.forever => {
            let mut told = |why: &str, path: &std::path::Path| {
                progress::say(format_args!("{why}: {}", path.display()));
            };
            recorded_run(system, options, folder, Guard::ThisProgram, &mut told)
        }
        trace => measured_run(system, options, trace.as_deref(), Guard::ThisProgram),
    }
}

fn closing(system: &System, outcome: Option<&Outcome>, ended: Ended, asked: &Asked) -> Closing {
    let evidence = Evidence {
        system,
        proof: None,
        costs: "",
        without_costs: None,
        simulated: None,
        verified: None,
        outcome,
        ended,
        report: None,
    };
    Closing::of(&evidence, asked)
}

/// Says before a run which processors real-time threads may fill.
pub(crate) fn warn_of_load(system: &System) {
    for warning in load_warnings(system) {
        progress::say(format_args!("warning: {warning}"));
    }
}

/// Says before a run who else wants its processors. Where the system cannot be planned there is none; the run says why.
pub(crate) fn warn_of_conflicts(system: &System, options: &RunOptions) -> Vec<Conflict> {
    let found = conflicts(system, options).unwrap_or_default();
    for conflict in &found {
        progress::say(format_args!("warning: {conflict}"));
    }
    found
}

/// A flag that Ctrl-C sets, so that a run ends in order.
pub(crate) fn stop_on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    horolog_sys::signal::set_on_interrupt(&stop).map_err(Failure::not_permitted)?;
    Ok(stop)
}

/// A size as an option; where even its number is beyond this machine, mapping it fails and says so.
pub(crate) fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
