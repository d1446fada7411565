//! `horolog run`.

use crate::arguments::{Format, RunArguments, SchedulingClass};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output, progress};
use horolog_analysis::resolve;
use horolog_closed_loop::{Guard, measured_run, recorded_run};
use horolog_exec::{Backend, Limit, RunOptions, load_warnings};
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::Outcome;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const DEFAULT_DURATION: Span = Span::from_ns(10_000_000_000);

pub(crate) fn run(words: &RunArguments) -> Done {
    let (system, source) = input::system(&words.file)?;
    let system = resolve(&system).map_err(Failure::error)?;
    let mut options = RunOptions::default();
    options.limit =
        if words.forever { Limit::Forever } else { Limit::For(words.duration.unwrap_or(DEFAULT_DURATION)) };
    options.seed = input::seed(words.seed);
    options.best_effort = words.best_effort;
    options.backend = match words.class {
        SchedulingClass::Fifo => Backend::Fifo,
        SchedulingClass::Deadline => Backend::Deadline,
    };
    options.folder = source.folder().map(std::path::Path::to_path_buf);
    options.output_to_error = words.format == Format::Json;
    options.stop = Some(stop_on_interrupt()?);
    warn_of_load(&system);
    let activity = progress::Activity::start("running");
    let run = match &words.trace {
        Some(folder) if words.forever => {
            let mut told = |why: &str, path: &std::path::Path| {
                progress::say(format_args!("{why}: {}", path.display()));
            };
            recorded_run(&system, &options, folder, Guard::ThisProgram, &mut told)
        }
        trace => measured_run(&system, &options, trace.as_deref(), Guard::ThisProgram),
    }
    .map_err(Failure::from)?;
    drop(activity);
    match words.format {
        Format::Json => output::json(&run.outcome)?,
        Format::Table => output::outcome(&run.outcome),
    }
    say_what_ended(&run.outcome);
    let in_time = run.outcome.tasks.iter().all(|task| task.is_soft || task.missed == 0);
    Ok(Verdict::of(in_time && run.outcome.ended_by.is_none()))
}

/// Says what ended a run before its time.
pub(crate) fn say_what_ended(outcome: &Outcome) {
    if let Some(ending) = &outcome.ended_by {
        progress::say(format_args!("the run ended before its time: {ending}"));
    }
}

/// Says before a run which processors real-time threads may fill.
pub(crate) fn warn_of_load(system: &System) {
    for warning in load_warnings(system) {
        progress::say(format_args!("warning: {warning}"));
    }
}

/// A flag that Ctrl-C sets, so that a run ends in order.
pub(crate) fn stop_on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    horolog_sys::signal::set_on_interrupt(&stop).map_err(Failure::not_permitted)?;
    Ok(stop)
}
