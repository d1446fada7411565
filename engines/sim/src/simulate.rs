//! [`simulate`]: a system in virtual time.

use crate::drawn::Drawn;
use crate::engine::{Change, End, Engine};
use crate::error::{Reason, SimError};
use crate::hand_on::{self, HandOn, Taker};
use crate::horizon::{default_horizon, listed_after};
use crate::limits::Limits;
use crate::options::{DelayChoice, Horizon, SimOptions};
use crate::source::Source;
use horolog_model::System;
use horolog_sched::{Machine, MachineBuilder};
use horolog_time::Span;
use horolog_trace::{ModeOutcome, NullSink, Outcome, ServerOutcome, Sink, TaskOutcome};

/// The horizon of a run that ends by jobs: 292 years, so that no sum of times wraps.
const FAR: u64 = u64::MAX / 2;

/// Simulates a checked system whose priorities are resolved, and hands every record to `sink`.
///
/// The same system, options and version give the same records. Without a trace ([`horolog_trace::NullSink`])
/// records are not even built. Memory does not depend on the horizon, except for the jobs that wait in an
/// overloaded system.
///
/// # Errors
/// Where the machine refuses the system, an option does not fit it, times near 2^64 ns would wrap, or the backlog
/// of an overloaded task exceeds [`SimOptions::max_backlog`].
pub fn simulate<K: Sink>(system: &System, options: &SimOptions, sink: &mut K) -> Result<Outcome, SimError> {
    hand_on::to(sink, |taker| simulate_to(system, options, taker))
}

fn simulate_to(system: &System, options: &SimOptions, taker: Taker<'_>) -> Result<Outcome, SimError> {
    if crate::concerns(system) {
        return match taker {
            Some(take) => crate::drivers::run(system, options, &mut HandOn(take)),
            None => crate::drivers::run(system, options, &mut NullSink),
        };
    }
    simulate_machine_to(system, MachineBuilder::new(system).job_budgets().build()?, options, taker)
}

/// Like [`simulate`], with a machine of this system that need not be flat: a tree with servers, budgets and reserves,
/// built with [`horolog_sched::MachineBuilder`]. Execution timers count what jobs execute, not what the kernel takes.
///
/// # Errors
/// As for [`simulate`]. A machine of another system, with fewer tasks or processors, panics.
pub fn simulate_machine<K: Sink>(
    system: &System,
    machine: Machine,
    options: &SimOptions,
    sink: &mut K,
) -> Result<Outcome, SimError> {
    hand_on::to(sink, |taker| simulate_machine_to(system, machine, options, taker))
}

fn simulate_machine_to(
    system: &System,
    machine: Machine,
    options: &SimOptions,
    taker: Taker<'_>,
) -> Result<Outcome, SimError> {
    match taker {
        Some(take) => run(system, machine, options, &mut HandOn(take)),
        None => run(system, machine, options, &mut NullSink),
    }
}

fn run<K: Sink>(
    system: &System,
    machine: Machine,
    options: &SimOptions,
    sink: &mut K,
) -> Result<Outcome, SimError> {
    let mut notes = Vec::new();
    let limits = limits(system, options, &mut notes)?;
    let until = limits.until;
    let source = Drawn::new(system, options)?;
    note_assumptions(system, options, &mut notes);
    let changes = mode_changes(&machine, options)?;
    let mut engine = Engine::new(system, machine, source, sink, limits);
    changes.into_iter().for_each(|(at, mode)| engine.driver.request_mode(at, mode));
    let (end, at) = engine.run()?;
    note_end(end, at, options, engine.core.events, &mut notes);
    let horizon = if end == End::NothingLeft && until < FAR { until } else { at };
    Ok(outcome(system, options.seed, horizon, engine, notes))
}

/// Why a run ended otherwise than it was asked to.
pub(crate) fn note_end(end: End, at: u64, options: &SimOptions, events: u64, notes: &mut Vec<String>) {
    match end {
        End::Events => notes.push(format!("stopped at {} after {events} events", Span::from_ns(at))),
        End::Horizon if matches!(options.horizon, Horizon::Jobs(_)) => {
            notes.push("stopped after 292 years before so many jobs had finished".to_owned());
        }
        End::NothingLeft if matches!(options.horizon, Horizon::Jobs(_)) => {
            notes.push("nothing was left to do before so many jobs had finished".to_owned());
        }
        _ => {}
    }
}

pub(crate) fn limits(
    system: &System,
    options: &SimOptions,
    notes: &mut Vec<String>,
) -> Result<Limits, Reason> {
    let (until, jobs) = match options.horizon {
        Horizon::Time(span) => (span.as_ns(), u64::MAX),
        Horizon::Jobs(jobs) => (FAR, jobs),
        Horizon::Default => {
            let horizon = default_horizon(system);
            notes.push(format!(
                "horizon {horizon} (the hyperperiod plus the largest offset below 60 s, else 10 s)"
            ));
            match listed_after(system, horizon) {
                0 => {}
                1 => notes.push("1 listed arrival lies after the horizon".to_owned()),
                left => notes.push(format!("{left} listed arrivals lie after the horizon")),
            }
            (horizon.as_ns(), u64::MAX)
        }
    };
    check_range(system, until)?;
    let events = options.max_events;
    Ok(Limits {
        until,
        jobs,
        events,
        backlog: options.max_backlog,
        watched: None,
        stop: options.stop.clone(),
    })
}

/// The mode changes that the options ask for.
pub(crate) fn mode_changes(machine: &Machine, options: &SimOptions) -> Result<Vec<(u64, u32)>, Reason> {
    let refuse = |reason: &str| Reason::Option { option: "modes", reason: reason.to_owned() };
    if options.modes.windows(2).any(|pair| pair[1].0 < pair[0].0) {
        return Err(refuse("mode changes come in the order of their times"));
    }
    if options.modes.iter().any(|&(_, mode)| mode >= machine.modes()) {
        return Err(refuse("the machine has no such mode"));
    }
    Ok(options.modes.iter().map(|&(at, mode)| (at.as_ns(), mode)).collect())
}

/// Refuses systems in which some sum of times could leave u64 before the horizon.
pub(crate) fn check_range(system: &System, until: u64) -> Result<(), Reason> {
    let switch = system.platform().context_switch_cost();
    for task in system.tasks() {
        // A job arrives and starts before the horizon. Releases beyond u64 lie after it and never happen.
        let end = task.wcet.checked_add(switch).and_then(|span| span.as_ns().checked_add(until));
        let deadline = task.deadline.unwrap_or(Span::ZERO).as_ns().checked_add(until);
        if end.is_none() || deadline.is_none() {
            return Err(Reason::TooFar { what: format!("a job of task {}", task.name) });
        }
    }
    Ok(())
}

/// What the reader must know to read the numbers right.
pub(crate) fn note_assumptions(system: &System, options: &SimOptions, notes: &mut Vec<String>) {
    let free: Vec<&str> = system
        .tasks()
        .iter()
        .filter(|task| task.offset.is_none() && task.separation().is_some())
        .map(|task| task.name.as_str())
        .collect();
    if !free.is_empty() {
        notes.push(format!("no offset given, taken as 0: {}", free.join(", ")));
    }
    if options.jitter == DelayChoice::None && system.tasks().iter().any(|task| !task.jitter.is_zero()) {
        notes.push("no release jitter is taken".to_owned());
    }
    for load in system.interferences() {
        let busy = u128::from(load.period.as_ns()) * u128::from(load.utilisation_ppb) / 1_000_000_000;
        let busy = Span::from_ns(busy as u64);
        notes.push(format!("interference {}: {busy} at every multiple of {}", load.name, load.period));
    }
}

pub(crate) fn outcome<S: Source, K: Sink>(
    system: &System,
    seed: u64,
    horizon: u64,
    mut engine: Engine<'_, S, K>,
    notes: Vec<String>,
) -> Outcome {
    engine.book_unfinished(horizon);
    let tasks = system.task_ids().zip(&engine.core.tasks).map(|(id, run)| {
        let mut outcome = TaskOutcome {
            name: system.task(id).name.clone(),
            is_soft: system.is_soft(id),
            jobs: run.jobs,
            completed: run.completed,
            missed: run.missed,
            unfinished: run.jobs - run.completed,
            preemptions: run.preemptions,
            yields: run.yields,
            switch_ins: run.switch_ins,
            vain_waits: run.vain_waits,
            skipped: run.skipped,
            overruns: run.overruns,
            ..TaskOutcome::default()
        };
        run.responses.statistics().fill(&mut outcome);
        outcome
    });
    Outcome {
        events: engine.core.events,
        tasks: tasks.collect(),
        servers: server_outcomes(system, engine.driver.machine()),
        modes: engine.core.changes.iter().map(|change| mode_outcome(system, change)).collect(),
        notes,
        ..Outcome::empty(system.name(), "sim", seed, Span::from_ns(horizon))
    }
}

fn mode_outcome(system: &System, change: &Change) -> ModeOutcome {
    ModeOutcome {
        mode: system.mode_name(change.request.mode).to_owned(),
        requested_ns: Span::from_ns(change.request.at),
        by: ModeOutcome::BY[change.request.by as usize],
        changed_ns: Span::from_ns(change.at),
        left_over: change.left_over.into(),
        ended_ns: change.ended.map(Span::from_ns),
    }
}

/// What each server did, as its machine counted.
fn server_outcomes(system: &System, machine: &Machine) -> Vec<ServerOutcome> {
    let outcome = |(id, server): (horolog_model::ServerId, &horolog_model::Server)| {
        let tally = machine.tally(id);
        ServerOutcome {
            name: server.name.clone(),
            kind: server.kind_word(),
            order: server.is_scheduler().then(|| server.order.word()),
            consumed_ns: server.kind.counts_execution().then_some(tally.consumed),
            exhaustions: tally.exhaustions,
            replenishments: tally.replenishments,
            enforcement: None,
        }
    };
    system.server_ids().zip(system.servers()).map(outcome).collect()
}
