//! `horolog run`.

use crate::arguments::{FileArguments, RunArguments, SchedulingClass};
use crate::failure::{Done, Failure, Verdict};
use crate::results::{Judged, tell};
use crate::{costs, input, output, progress};
use horolog_analysis::resolve;
use horolog_closed_loop::verdict::{Asked, Closing, Ended, Evidence};
use horolog_closed_loop::{Guard, LoopError, MeasuredRun, measured_run, now, recorded_run};
use horolog_exec::{
    ArrivalPattern, Backend, Conflict, Limit, RunOptions, conflicts, library_faults, load_warnings,
};
use horolog_model::{Arrival, Cpus, Source, System, Task};
use horolog_time::Span;
use horolog_trace::Outcome;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const DEFAULT_DURATION: Span = Span::from_ns(10_000_000_000);

pub(crate) fn run(words: &RunArguments) -> Done {
    let file = match (&words.locks, &words.file) {
        (Some(rules), _) => return super::run_locks::run(rules, words),
        (None, Some(file)) => FileArguments { file: file.clone(), overrides: words.overrides.clone() },
        (None, None) => return Err(Failure::usage("no system file")),
    };
    let (system, source) = input::system(&file)?;
    let (system, source_of_costs) = costs::filled(&system, &words.machine)?;
    costs::say(&source_of_costs);
    let system = resolve(&system).map_err(Failure::bad_input)?;
    let mut options = RunOptions::default();
    options.limit =
        if words.forever { Limit::Forever } else { Limit::For(words.duration.unwrap_or(DEFAULT_DURATION)) };
    options.sporadic_extra = words.sporadic_extra.unwrap_or(Span::ZERO);
    options.seed = input::seed(words.seed, run_draws(&system, &options));
    options.best_effort = words.best_effort;
    options.stack = bytes(words.stack);
    options.backend = match words.class {
        SchedulingClass::Fifo => Backend::Fifo,
        SchedulingClass::Deadline => Backend::Deadline,
    };
    options.folder = source.folder().map(std::path::Path::to_path_buf);
    options.output_to_error = words.format.is_for_programs();
    look_at_libraries(&system, &source)?;
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
                let result = NotRun { schema: Outcome::SCHEMA, system: system.name() };
                let result = Warned { result: &result, conflicts: &conflicts };
                let judged =
                    Judged { source: &source, result: &result, closing: &closing, attempts: &attempts };
                tell(&words.format, &judged, || {})?;
                progress::begin_a_line(&system);
                return Ok(Verdict::closed(closing));
            }
            run => run.map_err(|error| Failure::of_run(error, &source))?,
        };
        // One without an end ends when it is stopped.
        let of = (!words.forever).then(|| words.duration.unwrap_or(DEFAULT_DURATION));
        let ended = Ended::of_run(&run.outcome, of);
        let closing = closing(&system, Some(&run.outcome), ended, &asked);
        let is_stopped = options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if closing.may_be_retried() && attempts.len() < words.retries as usize && !is_stopped {
            progress::begin_a_line(&system);
            progress::say(format_args!("{closing}\nattempt {}", attempts.len() + 2));
            attempts.push(closing);
            continue;
        }
        let result = Warned { result: &run.outcome, conflicts: &conflicts };
        let judged = Judged { source: &source, result: &result, closing: &closing, attempts: &attempts };
        tell(&words.format, &judged, || output::outcome(&run.outcome))?;
        progress::begin_a_line(&system);
        return Ok(Verdict::closed(closing));
    }
}

/// Whether a run of this system draws anything by chance.
pub(crate) fn run_draws(system: &System, options: &RunOptions) -> bool {
    let is_sporadic = |task: &Task| matches!(task.arrival, Arrival::Sporadic { .. });
    options.arrivals == ArrivalPattern::Random
        || !options.sporadic_extra.is_zero() && system.tasks().iter().any(is_sporadic)
        || system.devices().iter().any(|device| !device.spread.is_zero())
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
    if words.forever {
        return endless(system, options, words.trace.as_deref());
    }
    let _activity = progress::Activity::start("running");
    measured_run(system, options, words.trace.as_deref(), Guard::ThisProgram)
}

/// Runs until it is stopped, with a log of what happens and when.
fn endless(system: &System, options: &RunOptions, folder: Option<&Path>) -> Result<MeasuredRun, LoopError> {
    let signal = horolog_sys::signal::last_interrupt()?;
    // One for the recorder, one for the log.
    let (asked, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    horolog_sys::signal::set_on_user_signal(&asked)?;
    horolog_sys::signal::set_on_user_signal(&heard)?;
    let dumps = folder.map_or_else(String::new, |folder| format!(", dumps go to {}", folder.display()));
    let tasks = output::count(system.tasks().len() as u64, "task");
    log(format_args!("start: {} with {tasks}, until it is stopped{dumps}", system.name()));
    let has_ended = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| tell_of_signals(&signal, &heard, folder.is_some(), &has_ended));
        let run = match folder {
            Some(folder) => {
                let mut told = |why: &str, path: Option<&Path>| match path {
                    Some(path) => log(format_args!("dump: {why}: {}", path.display())),
                    None => log(format_args!(
                        "dump: {why}: not written, since this run has written as many as one may"
                    )),
                };
                recorded_run(system, options, folder, Guard::ThisProgram, &asked, &mut told)
            }
            None => measured_run(system, options, None, Guard::ThisProgram),
        };
        has_ended.store(true, Ordering::Release);
        run
    });
    match &run {
        Ok(run) => {
            let outcome = &run.outcome;
            let (jobs, missed) = outcome
                .tasks
                .iter()
                .fold((0, 0), |(jobs, missed), task| (jobs + task.jobs, missed + task.missed));
            let early = outcome.ended_by.as_ref().map_or_else(String::new, |ending| format!("; {ending}"));
            let length = output::span(outcome.horizon_ns);
            log(format_args!("end: after {length}, {jobs} jobs, {missed} deadlines missed{early}"));
        }
        Err(error) => log(format_args!("end: {error}")),
    }
    run
}

/// Waits for a signal that ends the run, and tells of it; also of each that asks for a dump.
fn tell_of_signals(signal: &AtomicUsize, heard: &AtomicBool, keeps_dumps: bool, has_ended: &AtomicBool) {
    while signal.load(Ordering::Relaxed) == 0 {
        if heard.swap(false, Ordering::Relaxed) {
            log(match keeps_dumps {
                true => "signal: SIGUSR1, a dump follows within some seconds",
                false => "signal: SIGUSR1, and no dump is kept: give a folder for dumps (`--trace FOLDER`)",
            });
        }
        if has_ended.load(Ordering::Acquire) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    log(format_args!("signal: {}, the run ends", horolog_sys::signal::name(signal.load(Ordering::Relaxed))));
}

/// A line of the log, behind its time.
fn log(line: impl std::fmt::Display) {
    progress::say(format_args!("{} {line}", now()));
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

/// Refuses a file whose libraries are none, or lack a function that it names.
pub(crate) fn look_at_libraries(system: &System, source: &Source) -> Result<(), Failure> {
    // A file that counts its processors is never run.
    let faults = match system.platform().cpus {
        Cpus::Listed(_) => library_faults(system, source.folder()),
        _ => Vec::new(),
    };
    if faults.is_empty() { Ok(()) } else { Err(Failure::diagnostics(source.diagnostics(&faults))) }
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
