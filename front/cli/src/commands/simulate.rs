//! `horolog simulate`.

use crate::arguments::{Format, SimulateArguments};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output, progress};
use horolog_analysis::resolve_priorities;
use horolog_closed_loop::simulated_run;
use horolog_sim::{Horizon, SimOptions};

pub(crate) fn run(words: &SimulateArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let system = resolve_priorities(&system).map_err(Failure::bad_input)?;
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
    Ok(Verdict::of(outcome.tasks.iter().all(|task| task.missed == 0)))
}
