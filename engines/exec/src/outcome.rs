//! The counts of a run's threads.

use crate::RunOptions;
use crate::modes::Modes;
use crate::plan::Plan;
use crate::shared::RunShared;
use crate::threads::Threads;
use horolog_model::{ServerId, System};
use horolog_time::Span;
use horolog_trace::{
    DeviceOutcome, Enforcement, Outcome, Overhead, RequestOutcome, ResponseStatistics, ServerOutcome,
};
use std::sync::atomic::Ordering;

/// The outcome as far as anybody knows it before a thread has run.
pub(crate) fn blank(system: &System, options: &RunOptions, plan: &Plan, horizon: u64) -> Outcome {
    let mut notes = plan.notes.clone();
    if options.best_effort {
        notes.insert(0, "best effort: normal scheduling, so nothing about response times is promised".into());
    }
    let backend = if options.best_effort { "linux-best-effort" } else { "linux" };
    Outcome { notes, ..Outcome::empty(system.name(), backend, options.seed, Span::from_ns(horizon)) }
}

/// The counts of all threads, once they have ended or are left behind.
pub(crate) fn outcome_of(
    (system, companion): (&System, &System),
    options: &RunOptions,
    plan: &Plan,
    run: &RunShared,
    threads: &Threads,
) -> Outcome {
    let mut outcome = blank(system, options, plan, run.horizon());
    for task in &threads.tasks {
        outcome.notes.extend(task.tally().notes(&task.name, run.is_memory_locked()));
    }
    outcome.notes.extend(run.modes.iter().flat_map(Modes::notes));
    let of_task = |task: &std::sync::Arc<crate::task_shared::TaskShared>| {
        let mut outcome = task.tally().outcome();
        outcome.name.clone_from(&task.name);
        outcome.is_soft = system.is_soft(task.id);
        outcome
    };
    outcome.tasks = threads.tasks.iter().take(system.tasks().len()).map(of_task).collect();
    outcome.servers = server_outcomes(companion, run, threads);
    outcome.modes = run.modes.as_ref().map_or_else(Vec::new, Modes::outcomes);
    outcome.overhead = overheads(plan, threads);
    (outcome.devices, outcome.requests) = device_outcomes(system, run, threads);
    outcome
}

/// What each server did, in the order of the file.
fn server_outcomes(system: &System, run: &RunShared, threads: &Threads) -> Vec<ServerOutcome> {
    let mut outcomes = Vec::with_capacity(system.servers().len());
    for agent in &threads.agents {
        if let Some(mut driver) = agent.driver_after_run() {
            outcomes.extend(driver.server_outcomes(system, run.closed()));
        }
    }
    outcomes.extend(kernel_served(system, run, threads));
    outcomes.sort_by_key(|(id, _)| *id);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The counts of the emulated devices and their requests, in the order of the file.
fn device_outcomes(
    system: &System,
    run: &RunShared,
    threads: &Threads,
) -> (Vec<DeviceOutcome>, Vec<RequestOutcome>) {
    let (mut devices, mut requests) = (Vec::new(), Vec::new());
    for agent in &threads.agents {
        if let Some(driver) = agent.driver_after_run() {
            let (of_devices, of_requests) = driver.threads.device_outcomes(system, run.horizon());
            devices.extend(of_devices);
            requests.extend(of_requests);
        }
    }
    devices.sort_by_key(|(place, _)| *place);
    requests.sort_by_key(|(place, _)| *place);
    (devices.into_iter().map(|(_, it)| it).collect(), requests.into_iter().map(|(_, it)| it).collect())
}

/// The counts of the kernel's servers: what their threads executed is all that the kernel tells.
fn kernel_served(system: &System, run: &RunShared, threads: &Threads) -> Vec<(ServerId, ServerOutcome)> {
    let mut outcomes = Vec::new();
    for (id, server) in
        system.server_ids().zip(system.servers()).filter(|(_, server)| server.kind.is_kernels())
    {
        let mine = threads.tasks.iter().filter(|task| system.server_of(task.id) == Some(id));
        let consumed = Span::from_ns(mine.map(|task| task.executed.load(Ordering::Acquire)).sum());
        let enforcement = server.kind.capacity().map(|capacity| {
            let elapsed = Span::from_ns(run.closed());
            let untold = ResponseStatistics::default();
            Enforcement::new(
                "SCHED_DEADLINE",
                &untold,
                (consumed, elapsed),
                (capacity.budget, capacity.period),
            )
        });
        let (name, kind) = (server.name.clone(), server.kind.word());
        outcomes.push((
            id,
            ServerOutcome {
                name,
                kind,
                consumed_ns: Some(consumed),
                enforcement,
                ..ServerOutcome::default()
            },
        ));
    }
    outcomes
}

/// What scheduling took on each processor.
fn overheads(plan: &Plan, threads: &Threads) -> Vec<Overhead> {
    let of_cpu = |cpu: u32| {
        let agent = threads.agents.iter().find(|agent| agent.cpu == cpu);
        let passes =
            agent.and_then(|agent| Some(agent.driver_after_run()?.threads.passes)).unwrap_or_default();
        let of_tasks = threads.tasks.iter().filter(|task| task.cpu == cpu);
        let of_agent = agent.map_or(0, |agent| agent.switches.load(Ordering::Acquire));
        let switches = of_tasks.map(|task| task.switches.load(Ordering::Acquire)).sum::<u64>() + of_agent;
        passes.overhead(cpu, switches)
    };
    let mut cpus: Vec<u32> = plan.cpus.iter().map(|cpu| cpu.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus.into_iter().map(of_cpu).collect()
}
