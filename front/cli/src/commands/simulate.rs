//! `horolog simulate`.

use crate::arguments::{Format, SimulateArguments};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output, progress};
use horolog_analysis::resolve_priorities;
use horolog_closed_loop::{replayed_run, simulated_run};
use horolog_model::System;
use horolog_model::pattern::ReleasePattern;
use horolog_sim::{Horizon, SimOptions};
use horolog_trace::Outcome;
use std::path::Path;

pub(crate) fn run(words: &SimulateArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let system = resolve_priorities(&system).map_err(Failure::error)?;
    if let Some(pattern) = &words.replay {
        return replay(&system, pattern, words);
    }
    let horizon = match (words.horizon, words.jobs) {
        (Some(span), _) => Horizon::Time(span),
        (None, Some(jobs)) => Horizon::Jobs(jobs),
        (None, None) => Horizon::Default,
    };
    let options = SimOptions { horizon, seed: input::seed(words.seed), ..SimOptions::default() };
    let activity = progress::Activity::start("simulating");
    let outcome = simulated_run(&system, &options, words.trace.as_deref()).map_err(Failure::from)?;
    drop(activity);
    match words.format {
        Format::Json => output::json(&outcome)?,
        Format::Table => output::outcome(&outcome),
    }
    Ok(Verdict::of(holds(&outcome, &system)))
}

/// Whether no deadline that counts was missed, of a task, a device or a request.
fn holds(outcome: &Outcome, system: &System) -> bool {
    let tasks = outcome.tasks.iter().all(|task| task.is_soft || task.missed == 0);
    let devices = outcome.devices.iter().all(|device| device.is_soft || device.missed == 0);
    let requests = outcome.requests.iter().zip(system.requests());
    tasks && devices && requests.into_iter().all(|(found, file)| file.deadline.is_none() || found.missed == 0)
}

/// Runs a release pattern; it holds where its witness does what the pattern promised.
fn replay(system: &System, path: &Path, words: &SimulateArguments) -> Done {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    let pattern: ReleasePattern = serde_json::from_str(&text)
        .map_err(|error| Failure::bad_input(format_args!("error: {}: {error}", path.display())))?;
    let run = replayed_run(system, &pattern, words.trace.as_deref()).map_err(Failure::from)?;
    match words.format {
        Format::Json => output::json(&run.outcome)?,
        Format::Table => output::outcome(&run.outcome),
    }
    let Some(witness) = run.witness else {
        return Ok(Verdict::of(run.outcome.tasks.iter().all(|task| task.is_soft || task.missed == 0)));
    };
    let word = if witness.missed { "misses its deadline" } else { "meets its deadline" };
    let promise = if witness.as_promised { "as the pattern promised" } else { "NOT as the pattern promised" };
    progress::say(format_args!(
        "the witness {word}, response {}, {promise}",
        output::optional(witness.response)
    ));
    Ok(Verdict::of(!witness.missed && witness.as_promised))
}
