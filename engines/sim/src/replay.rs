//! [`replay`]: a system under a release pattern, such as the witness of an analysis that says "misses".

use crate::engine::{End, Engine};
use crate::error::{Reason, SimError};
use crate::hand_on::{self, HandOn, Taker};
use crate::limits::Limits;
use crate::patterned::Patterned;
use crate::simulate::{check_range, outcome};
use horolog_model::System;
use horolog_model::pattern::ReleasePattern;
use horolog_sched::Machine;
use horolog_time::Span;
use horolog_trace::{NullSink, Outcome, Sink};

/// How far a replay may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayOptions {
    /// The replay stops after so many events and says so in its notes.
    pub max_events: u64,
    /// The most jobs of one task that may wait.
    pub max_backlog: u32,
}

impl Default for ReplayOptions {
    /// 10^8 events: as far as a witness may lie.
    fn default() -> ReplayOptions {
        ReplayOptions { max_events: 100_000_000, max_backlog: 1 << 24 }
    }
}

/// What a replay came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// As for a simulation.
    pub outcome: Outcome,
    /// What became of the job that the pattern is about.
    pub witness: Option<WitnessResult>,
}

/// What became of the job that a pattern is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WitnessResult {
    /// Its response time; `None`: it did not finish.
    pub response: Option<Span>,
    /// Whether its deadline passed before it finished.
    pub missed: bool,
    /// Whether the response is the one that the pattern promised; `None` where it promised none.
    pub as_promised: Option<bool>,
}

/// Runs a checked, resolved system under a release pattern. It ends when the pattern's witness has finished, or at
/// `until_ns`. Costs of the platform are charged as in [`crate::simulate`].
///
/// # Errors
/// Where the pattern leaves the model (each reason names the task), and as for [`crate::simulate`].
///
/// ```
/// use horolog_model::pattern::{ReleasePattern, TaskPattern, Witness};
/// use horolog_sim::{ReplayOptions, replay};
/// use horolog_time::Span;
/// let text = r#"
/// [system]
/// name = "too much"
/// [[task]]
/// name = "fast"
/// period = "5 ns"
/// wcet = "3 ns"
/// priority = 2
/// [[task]]
/// name = "slow"
/// period = "7 ns"
/// wcet = "4 ns"
/// priority = 1
/// "#;
/// let (system, _) = horolog_model::file::read(text, "example.toml", &[]).expect("a valid file");
/// let pattern = ReleasePattern::new("too much", Span::from_ns(100))
///     .task(TaskPattern::periodic("fast", Span::ZERO))
///     .task(TaskPattern::periodic("slow", Span::ZERO))
///     .witness(Witness { task: "slow".into(), job: 0, response_ns: Some(Span::from_ns(10)) });
/// let run = replay(&system, &pattern, &ReplayOptions::default(), &mut horolog_trace::NullSink)?;
/// let witness = run.witness.expect("the pattern has one");
/// assert!(witness.missed && witness.as_promised == Some(true));
/// # Ok::<(), horolog_sim::SimError>(())
/// ```
pub fn replay<K: Sink>(
    system: &System,
    pattern: &ReleasePattern,
    options: &ReplayOptions,
    sink: &mut K,
) -> Result<Replay, SimError> {
    hand_on::to(sink, |taker| replay_to(system, pattern, options, taker))
}

fn replay_to(
    system: &System,
    pattern: &ReleasePattern,
    options: &ReplayOptions,
    taker: Taker<'_>,
) -> Result<Replay, SimError> {
    match taker {
        Some(take) => run(system, pattern, options, &mut HandOn(take)),
        None => run(system, pattern, options, &mut NullSink),
    }
}

fn run<K: Sink>(
    system: &System,
    pattern: &ReleasePattern,
    options: &ReplayOptions,
    sink: &mut K,
) -> Result<Replay, SimError> {
    check_range(system, pattern.until_ns.as_ns())?;
    if let Some(mode) = system.modes().first() {
        let reason = "a pattern lists jobs by the tasks' own rhythm, which modes change".to_owned();
        return Err(Reason::Pattern { at: format!("mode {}", mode.name), reason }.into());
    }
    let machine = Machine::new(system)?;
    let source = Patterned::new(system, pattern)?;
    let watched = match &pattern.witness {
        None => None,
        Some(witness) => match system.tasks().iter().position(|task| task.name == witness.task) {
            Some(task) => Some((task as u32, witness.job)),
            None => {
                let reason = "the system has no such task".to_owned();
                return Err(Reason::Pattern { at: format!("witness {}", witness.task), reason }.into());
            }
        },
    };
    let until = pattern.until_ns.as_ns();
    let (events, backlog) = (options.max_events, options.max_backlog);
    let limits = Limits { until, jobs: u64::MAX, events, backlog, watched, stop: None };
    let mut engine = Engine::new(system, machine, source, sink, limits);
    let (end, at) = engine.run()?;
    let witness = watched.map(|(task, job)| {
        let deadline = system.tasks()[task as usize].deadline;
        let response = engine.core.watched_response.map(Span::from_ns);
        let missed = match (response, deadline) {
            (_, None) => false,
            (Some(response), Some(deadline)) => response > deadline,
            (None, Some(deadline)) => engine
                .core
                .arrival_of(task, job)
                .is_some_and(|arrival| at.saturating_sub(arrival) >= deadline.as_ns()),
        };
        let promised = pattern.witness.as_ref().and_then(|witness| witness.response_ns);
        WitnessResult { response, missed, as_promised: promised.map(|promised| response == Some(promised)) }
    });
    let mut notes = Vec::new();
    if end == End::Events {
        notes.push(format!("stopped at {} after {} events", Span::from_ns(at), engine.core.events));
    }
    let horizon = if end == End::NothingLeft { until } else { at };
    Ok(Replay { outcome: outcome(system, 0, horizon, engine, notes), witness })
}
