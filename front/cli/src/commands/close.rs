//! `horolog loop`.

use crate::arguments::LoopArguments;
use crate::commands::run::{
    bytes, look_at_libraries, run_draws, stop_on_interrupt, warn_of_conflicts, warn_of_load,
};
use crate::commands::verify;
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::results::{Judged, tell};
use crate::{costs, input, output, progress};
use horolog_closed_loop::verdict::{Closing, Question};
use horolog_closed_loop::{
    Guard, LoopOptions, LoopResult, MachineChoice, Stage, close, keep_loop_inputs, override_bounds, prepare,
};
use horolog_exec::{Conflict, RunOptions};
use horolog_sim::SimOptions;
use horolog_time::Span;
use horolog_trace::DeviceOutcome;
use serde_json::json;
use std::path::PathBuf;

const DEFAULT_DURATION: Span = Span::from_ns(10_000_000_000);

pub(crate) fn run(words: &LoopArguments) -> Done {
    let profile = match &words.machine.machine {
        Some(MachineChoice::File(profile)) => Some(profile),
        _ => None,
    };
    let is_changed = !words.file.overrides.is_empty();
    keep_loop_inputs(&words.file.file, is_changed, profile.map(PathBuf::as_path), &words.out)
        .map_err(Failure::from)?;
    let (system, source) = input::system(&words.file)?;
    let duration = words.duration.unwrap_or(DEFAULT_DURATION);
    look_at_libraries(&system, &source)?;
    let sporadic_extra = words.sporadic_extra.unwrap_or(Span::ZERO);
    let mut planned = RunOptions::default();
    (planned.best_effort, planned.sporadic_extra) = (words.best_effort, sporadic_extra);
    let simulation = SimOptions { sporadic_extra, ..SimOptions::default() };
    let draws = simulation.draws(&system) || run_draws(&system, &planned);
    let options = LoopOptions {
        duration,
        out: words.out.clone(),
        folder: source.folder().map(std::path::Path::to_path_buf),
        machine: words.machine.machine.clone().unwrap_or_default(),
        best_effort: words.best_effort,
        stack: bytes(words.stack),
        sporadic_extra,
        seed: input::seed(words.seed, draws),
        bound_override: override_bounds(&system, &words.bound_overrides).map_err(Failure::from)?,
        command: std::env::args().collect::<Vec<_>>().join(" "),
        guard: Guard::ThisProgram,
        output_to_error: words.format.is_for_programs(),
        stop: Some(stop_on_interrupt()?),
        asked: words.verdict.asked(&Question::ALL),
    };
    warn_of_load(&system);
    let conflicts = warn_of_conflicts(&system, &planned);
    let mut attempts = Vec::new();
    let activity = progress::Activity::start("closing the loop");
    let mut show = |stage, detail: &str| activity.now(&describe(stage, detail, duration));
    let priced = match prepare(&system, &options, &mut show) {
        Err(error) if error.is_stopped() => {
            drop(activity);
            let closing = Closing::undecided(&options.asked, error.to_string());
            let nothing = json!({ "schema": "horolog.loop/1", "system": system.name() });
            let judged = Judged { source: &source, result: &nothing, closing: &closing, attempts: &attempts };
            tell(&words.format, &judged, || {})?;
            return Ok(Verdict::closed(closing));
        }
        priced => priced.map_err(Failure::from)?,
    };
    let (system, costs) = priced;
    let mut begun = Some(activity);
    loop {
        let activity =
            begun.take().unwrap_or_else(|| progress::Activity::start("closing the loop once more"));
        let mut show = |stage, detail: &str| activity.now(&describe(stage, detail, duration));
        let result = close(&system, costs.clone(), &options, &mut show);
        drop(activity);
        let result = result.map_err(|error| Failure::of_run(error, &source))?;
        let closing = result.closing.clone();
        if closing.may_be_retried() && attempts.len() < words.retries as usize && !options.is_stopped() {
            progress::begin_a_line(&system);
            progress::say(format_args!("{closing}\nattempt {}", attempts.len() + 2));
            attempts.push(closing);
            continue;
        }
        let all = json(&result, &conflicts);
        let judged = Judged { source: &source, result: &all, closing: &closing, attempts: &attempts };
        tell(&words.format, &judged, || print(&result))?;
        progress::begin_a_line(&system);
        return Ok(Verdict::closed(closing));
    }
}

fn json(result: &LoopResult, conflicts: &[Conflict]) -> serde_json::Value {
    let mut all = json!(result.document());
    if !conflicts.is_empty() {
        all["conflicts"] = json!(conflicts);
    }
    all
}

fn describe(stage: Stage, detail: &str, duration: Span) -> String {
    let what = match stage {
        Stage::Measure => "measuring this machine's costs",
        Stage::Prove => "proving",
        Stage::Simulate => "simulating",
        Stage::Run => return format!("running on this machine for {duration}"),
        Stage::Verify => "verifying the record against the proof",
        Stage::Report => "writing the report",
    };
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

/// A device that a run leaves to the machine has no measured values.
fn print_devices(result: &LoopResult) {
    let devices = &result.proof.analysis.devices;
    if devices.is_empty() {
        return;
    }
    let head = ["device", "proof", "bound", "simulated max", "measured max", "deadline", "missed"];
    let mut rows = output::table(&head, 2);
    let measured = result.measured.as_ref().map_or(&[][..], |run| &run.outcome.devices);
    for device in devices {
        let is_it = |one: &&DeviceOutcome| one.name == device.name;
        let (simulated, measured) =
            (result.simulated.devices.iter().find(is_it), measured.iter().find(is_it));
        let longest =
            |one: Option<&DeviceOutcome>| output::optional(one.and_then(|one| one.response.response_ns_max));
        rows.add_row([
            device.name.clone(),
            format!("{:?}", device.verdict).to_lowercase(),
            output::optional(device.response),
            longest(simulated),
            longest(measured),
            output::optional(device.deadline),
            measured.map_or_else(|| "-".to_owned(), |one| one.missed.to_string()),
        ]);
    }
    output::print(&rows);
}

fn print(result: &LoopResult) {
    costs::print(&result.proof.costs);
    let without_costs = result.proof.without_costs.as_deref();
    let mut head = vec!["task", "proof", "bound"];
    head.extend(without_costs.map(|_| "without costs"));
    head.extend(["simulated max", "measured p99.9", "measured max", "deadline", "missed"]);
    let mut rows = output::table(&head, 2);
    for (index, task) in result.proof.analysis.tasks.iter().enumerate() {
        let measured = result.measured.as_ref().and_then(|run| run.outcome.tasks.get(index));
        let mut row = vec![
            task.name.clone(),
            format!("{:?}", task.verdict).to_lowercase(),
            output::optional(task.response),
        ];
        row.extend(
            without_costs
                .map(|without| output::optional(without.tasks.get(index).and_then(|task| task.response))),
        );
        row.extend([
            output::optional(result.simulated.tasks.get(index).and_then(|task| task.response_ns_max)),
            output::optional(measured.and_then(|task| task.response_ns_p99_9)),
            output::optional(measured.and_then(|task| task.response_ns_max)),
            output::optional(task.deadline),
            measured.map_or_else(|| "-".to_owned(), |task| task.missed.to_string()),
        ]);
        rows.add_row(row);
    }
    output::print(&rows);
    print_devices(result);
    if let Some(without) = without_costs {
        costs::print_without(&result.proof.analysis, without);
    }
    let outcome = result.measured.as_ref().map_or(&result.simulated, |run| &run.outcome);
    output::servers(&outcome.servers);
    if result.simulated_verified.exit_code(true) != 0 {
        // The simulation alone makes the loop fail then.
        verify::print_findings(&result.simulated_verified);
        output::notes(&result.simulated_verified.notes);
    }
    if let Some(found) = &result.verified {
        verify::print(found);
    }
    output::notes(&result.proof.analysis.reasons);
    output::notes(&result.notes);
    outln!("report: {}", result.report.display());
}
