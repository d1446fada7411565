//! `horolog simulate`.

use super::several;
use crate::arguments::{Delay, Execution, FileArguments, SimulateArguments};
use crate::failure::{Done, Failure};
use crate::results::{Judged, Results};
use crate::{costs, input, output, progress};
use horolog_analysis::resolve;
use horolog_closed_loop::verdict::{Answer, Closing, Ended, Evidence, Question};
use horolog_closed_loop::{replayed_run, simulated_run};
use horolog_model::pattern::ReleasePattern;
use horolog_model::{SegmentId, Source, System};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, PathChoice, Replay, SimOptions};
use horolog_time::Span;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) fn run(words: &SimulateArguments) -> Done {
    let of_one = [("--trace", words.trace.is_some()), ("--replay", words.replay.is_some())];
    let results = Results::new(&words.format, words.files.files.len());
    several::each(&words.files, &of_one, results, |file, results| one(file, words, results))
}

/// One file: prints its result and returns its verdict.
fn one(file: &FileArguments, words: &SimulateArguments, results: &mut Results) -> Result<Closing, Failure> {
    let (system, file) = input::system(file)?;
    let (system, source_of_costs) =
        costs::filled_on_request(&system, &words.machine, "a simulation has no machine")?;
    costs::say(&source_of_costs);
    let system = resolve(&system).map_err(Failure::bad_input)?;
    if let Some(pattern) = &words.replay {
        return replay(&system, &file, pattern, words, results);
    }
    let horizon = match (words.horizon, words.jobs) {
        (Some(span), _) => Horizon::Time(span),
        (None, Some(jobs)) => Horizon::Jobs(jobs),
        (None, None) => Horizon::Default,
    };
    let mut options = SimOptions {
        horizon,
        execution: match words.execution {
            Execution::Modelled => ExecutionChoice::AsModelled,
            Execution::Wcet => ExecutionChoice::Wcet,
            Execution::Bcet => ExecutionChoice::Bcet,
            Execution::Uniform => ExecutionChoice::Uniform,
        },
        jitter: delay(words.jitter),
        latency: delay(words.latency),
        sporadic_extra: words.sporadic_extra.unwrap_or(Span::ZERO),
        path: path(&system, &words.path)?,
        ..SimOptions::default()
    };
    let asked = words.verdict.asked_of_deadlines("simulate")?;
    // Last: a drawn seed is told, and nothing before may have failed.
    options.seed = input::seed(words.seed, options.draws(&system));
    let activity = progress::Activity::start("simulating");
    let outcome = simulated_run(&system, &options, words.trace.as_deref()).map_err(Failure::from)?;
    drop(activity);
    let evidence = Evidence {
        system: &system,
        proof: None,
        costs: "",
        without_costs: None,
        simulated: None,
        verified: None,
        outcome: Some(&outcome),
        ended: Ended::Whole,
        report: None,
    };
    let closing = Closing::of(&evidence, &asked);
    let judged = Judged { source: &file, result: &outcome, closing: &closing, attempts: &[] };
    results.add(&judged, || output::outcome(&outcome))?;
    Ok(closing)
}

fn delay(word: Delay) -> DelayChoice {
    match word {
        Delay::Uniform => DelayChoice::Uniform,
        Delay::None => DelayChoice::None,
        Delay::Max => DelayChoice::Max,
    }
}

/// The ways of `--path`; whether the graph has them the simulator checks.
fn path(system: &System, words: &[String]) -> Result<PathChoice, Failure> {
    match words {
        [] => return Ok(PathChoice::Longest),
        [word] if word == "longest" => return Ok(PathChoice::Longest),
        [word] if word == "random" => return Ok(PathChoice::Random),
        _ => {}
    }
    let refuse =
        |word: &str, reason: String| Failure::bad_input(format_args!("error: --path {word}: {reason}"));
    let mut given = BTreeMap::new();
    for word in words {
        let Some((name, segments)) = word.split_once('=') else {
            let reason =
                "write `longest`, `random` or TASK=SEGMENT,SEGMENT (each task's own may be given again)";
            return Err(refuse(word, reason.to_owned()));
        };
        let Some(id) = system.find_task(name) else {
            return Err(refuse(word, format!("there is no task `{name}`")));
        };
        let Some(graph) = system.task(id).segment_graph() else {
            return Err(refuse(word, format!("the task `{name}` has no segments")));
        };
        let mut path: Vec<SegmentId> = Vec::new();
        for segment in segments.split(',').map(str::trim) {
            let Some(index) = graph.segments.iter().position(|known| known.name == segment) else {
                return Err(refuse(word, format!("the task `{name}` has no segment `{segment}`")));
            };
            path.push(index);
        }
        given.insert(id, path);
    }
    Ok(PathChoice::Given(given))
}

/// Runs a release pattern; it holds where its witness does what the pattern promised.
fn replay(
    system: &System,
    file: &Source,
    path: &Path,
    words: &SimulateArguments,
    results: &mut Results,
) -> Result<Closing, Failure> {
    let remedy = "write it with `horolog analyze FILE --counterexample OUT`, and leave it as it is";
    let pattern: ReleasePattern = input::json(path, remedy)?;
    let run = replayed_run(system, &pattern, words.trace.as_deref()).map_err(Failure::from)?;
    let closing = closing_of_replay(system, &pattern, &run);
    let judged = Judged { source: file, result: &run.outcome, closing: &closing, attempts: &[] };
    results.add(&judged, || output::outcome(&run.outcome))?;
    Ok(closing)
}

/// A pattern's witness decides; without one all hard tasks do.
fn closing_of_replay(system: &System, pattern: &ReleasePattern, run: &Replay) -> Closing {
    let Some(witness) = &run.witness else {
        let hard = run.outcome.tasks.iter().filter(|task| !task.is_soft && task.missed > 0);
        let missed: Vec<String> = hard.map(|task| format!("{} {}", task.name, task.missed)).collect();
        return match missed.as_slice() {
            [] if run.outcome.tasks.iter().all(|task| task.completed == 0) => {
                Closing::one(Question::Deadlines, Answer::Undecided, "no job was done".to_owned())
            }
            [] => Closing::one(Question::Deadlines, Answer::Yes, "no deadline missed".to_owned()),
            _ => Closing::one(Question::Deadlines, Answer::No, format!("missed: {}", missed.join(", "))),
        };
    };
    let word = if witness.missed { "misses its deadline" } else { "meets its deadline" };
    let (is_promised, promise) = promise(system, pattern, witness.as_promised);
    let text = format!("the witness {word}, response {}, {promise}", output::optional(witness.response));
    let answer = match (witness.missed, is_promised) {
        (false, true) => Answer::Yes,
        (false, false) if promise.starts_with("not decided") => Answer::Undecided,
        _ => Answer::No,
    };
    Closing::one(Question::Deadlines, answer, text)
}

/// Whether the witness did what the pattern promised, and in words. A pattern promises nothing of another system than its own.
fn promise(system: &System, pattern: &ReleasePattern, as_promised: Option<bool>) -> (bool, &'static str) {
    let is_own = pattern.system_digest.as_ref().map(|digest| *digest == system.digest());
    match (is_own, as_promised) {
        (Some(false), _) => (
            false,
            "not decided: the pattern was made for another system, so it promises nothing of this one",
        ),
        (_, Some(false)) => (false, "NOT as the pattern promised"),
        (_, None) => (false, "not decided: the pattern promises no response time"),
        (None, Some(true)) => {
            (false, "not decided: this response was promised, but the pattern does not say for which system")
        }
        (Some(true), Some(true)) => (true, "as the pattern promised"),
    }
}
