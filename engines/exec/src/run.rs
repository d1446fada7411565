//! A run from its plan to its outcome.

use crate::body::Bodies;
use crate::collect::Collector;
use crate::locks::Locks;
use crate::modes::Modes;
use crate::plan::Plan;
use crate::result::{RunResult, Started, ThreadInfo};
use crate::shared::RunShared;
use crate::threads::{Setup, Threads};
use crate::{ExecError, Limit, RunOptions, bands};
use horolog_model::{Companion, ServerId, System};
use horolog_sys::affinity::{allowed_cpus, set_affinity};
use horolog_sys::clock;
use horolog_sys::fixed_priority::{Class, may_use_fifo};
use horolog_sys::idle_latency::ShallowIdle;
use horolog_sys::{crash, memory, thread};
use horolog_time::Span;
use horolog_trace::{
    DeviceOutcome, Enforcement, Outcome, Overhead, Record, RequestOutcome, ResponseStatistics, ServerOutcome,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs `system` on this machine and keeps all records in memory.
///
/// # Errors
/// [`ExecError::is_not_permitted`] where the machine refuses (and [`RunOptions::best_effort`] is off),
/// [`ExecError::is_bad_input`] where the system cannot run, [`ExecError::is_crash`] where user code crashed.
pub fn run(system: &System, options: &RunOptions) -> Result<RunResult, ExecError> {
    let mut records = Vec::new();
    let mut result = run_into(system, options, &mut |record| records.push(record))?;
    result.records = records;
    Ok(result)
}

/// Runs `system` on this machine and hands every record, in time order, to `out` while it runs.
///
/// # Errors
/// As [`run`].
pub fn run_into(
    system: &System,
    options: &RunOptions,
    out: &mut dyn FnMut(Record),
) -> Result<RunResult, ExecError> {
    run_bodies(system, options, &mut Bodies::default(), out)
}

/// Runs `system` with the bodies that the caller brings; the others come from the system.
pub(crate) fn run_bodies(
    system: &System,
    options: &RunOptions,
    bodies: &mut Bodies,
    out: &mut dyn FnMut(Record),
) -> Result<RunResult, ExecError> {
    let companion = Companion::emulated(system)?;
    let plan = Plan::new(system, &companion.system, options)?;
    prepare_process(options)?;
    let before = allowed_cpus()?;
    set_affinity(0, &plan.housekeeping)?;
    let result = run_planned((system, &companion), options, &plan, bodies, out);
    set_affinity(0, &before)?;
    memory::unlock_all();
    result
}

/// Privileges and locked memory, before any thread exists.
fn prepare_process(options: &RunOptions) -> Result<(), ExecError> {
    thread::prepare_interrupt()?;
    if options.best_effort {
        // Memory is locked where it may be; the notes of the outcome say that nothing is promised.
        let _ = memory::lock_all();
        return Ok(());
    }
    may_use_fifo(bands::AGENT)?;
    memory::lock_all()?;
    Ok(())
}

fn run_planned(
    (file, companion): (&System, &Companion),
    options: &RunOptions,
    plan: &Plan,
    bodies: &mut Bodies,
    out: &mut dyn FnMut(Record),
) -> Result<RunResult, ExecError> {
    let horizon = match options.limit {
        Limit::For(span) => span.as_ns(),
        Limit::Forever => u64::MAX,
    };
    let run = Arc::new(RunShared::new(horizon, Modes::of(&companion.system)?, Locks::of(&companion.system)));
    let _crashes = crash::Guard::new()?;
    let _awake = ShallowIdle::ask();
    let setup = Setup { system: &companion.system, file, companion, options, plan, run: &run };
    let mut threads = setup.start(bodies)?;
    run.wait_until_ready(threads.count(), || threads.crashed().is_some());
    if let Err(failure) = check_start(&run, &threads).and_then(|()| setup.attach(&mut threads)) {
        run.stop(0);
        threads.join(&run, options);
        return Err(failure);
    }
    // Far enough ahead that every thread sleeps by then.
    let origin_ns = clock::monotonic_ns() + 20_000_000;
    if let Some(started) = &options.started {
        // A cell that a former run has filled keeps its value; the caller gives each run its own.
        let _ = started.set(Started { origin_ns, threads: thread_infos(plan, &threads) });
    }
    let infos = thread_infos(plan, &threads);
    if let Some(modes) = &run.modes {
        modes.kick_these(threads.agents.iter().map(|agent| (agent.cpu, agent.kick.clone())).collect());
    }
    run.start(origin_ns);
    // A processor's ring before those of its tasks: see `Collector::turn`.
    let rings = threads.cpu_rings.iter().cloned().chain(threads.tasks.iter().map(|task| task.ring.clone()));
    let mut collector = Collector::new(rings.collect());
    let watch = || threads.crashed();
    collect(&run, options, origin_ns, &mut collector, &watch, out);
    let mut notes = threads.join(&run, options);
    notes.extend(threads.detach());
    if let Some(crash) = threads.crashed() {
        // Also one after the last job, in the body's end.
        run.fail(ExecError::crashed(crash));
    }
    notes.extend(end_agents(&threads));
    let events = collector.finish(out);
    if let Some(failure) = run.take_failure() {
        return Err(failure);
    }
    let mut outcome = outcome_of((file, &companion.system), options, plan, &run, &threads);
    outcome.events = events;
    outcome.events_lost = collector.lost();
    if collector.late() > 0 {
        notes.push(format!("{} records came out of order", collector.late()));
    }
    outcome.notes.extend(notes);
    Ok(RunResult { outcome, records: Vec::new(), origin_ns, threads: infos })
}

/// Whether every thread is ready.
fn check_start(run: &RunShared, threads: &Threads) -> Result<(), ExecError> {
    if let Some(crash) = threads.crashed() {
        return Err(ExecError::crashed(crash));
    }
    run.take_failure().map_or(Ok(()), Err)
}

/// Drains the rings until the run is over, then says so.
fn collect(
    run: &RunShared,
    options: &RunOptions,
    origin_ns: u64,
    collector: &mut Collector,
    crashed: &dyn Fn() -> Option<String>,
    out: &mut dyn FnMut(Record),
) {
    const TURN_NS: u64 = 5_000_000;
    loop {
        let now = clock::monotonic_ns();
        let since_start = now.saturating_sub(origin_ns);
        if let Some(crash) = crashed() {
            run.fail(ExecError::crashed(crash));
        }
        let stop = options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Acquire));
        if stop || run.has_failed() || since_start >= run.horizon() {
            run.stop(since_start);
            return;
        }
        collector.turn(out);
        let end = origin_ns.saturating_add(run.horizon());
        let _ = clock::sleep_until(end.min(now + TURN_NS));
    }
}

/// Counts what the agents' tasks have not finished, and says what went unusually.
fn end_agents(threads: &Threads) -> Vec<String> {
    let mut notes = Vec::new();
    for agent in &threads.agents {
        let Some(mut driver) = agent.driver_after_run() else {
            notes.push(format!("cpu {}: its unfinished jobs could not be counted", agent.cpu));
            continue;
        };
        driver.count_unfinished();
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("cpu {}: {count} {what}", agent.cpu));
            }
        };
        note(
            driver.threads.rejected,
            "events came from a thread that was not meant to run (its job slept on its own)",
        );
        note(driver.threads.refused, "changes of a scheduling class were refused by the kernel");
        note(agent.contended(), "times a thread had to wait for the monitor");
    }
    notes
}

fn outcome_of(
    (system, companion): (&System, &System),
    options: &RunOptions,
    plan: &Plan,
    run: &RunShared,
    threads: &Threads,
) -> Outcome {
    let mut notes = plan.notes.clone();
    if options.best_effort {
        notes.insert(0, "best effort: normal scheduling, so nothing about response times is promised".into());
    }
    for task in &threads.tasks {
        notes.extend(task.tally().notes(&task.name));
    }
    notes.extend(run.modes.iter().flat_map(Modes::notes));
    let (devices, requests) = device_outcomes(system, run, threads);
    Outcome {
        schema: Outcome::SCHEMA,
        system: system.name().to_owned(),
        backend: if options.best_effort { "linux-best-effort" } else { "linux" }.to_owned(),
        seed: options.seed,
        horizon_ns: Span::from_ns(run.horizon()),
        events: 0,
        events_lost: 0,
        tasks: threads
            .tasks
            .iter()
            .take(system.tasks().len())
            .map(|task| {
                let mut outcome = task.tally().outcome();
                outcome.name.clone_from(&task.name);
                outcome.is_soft = system.is_served(task.id);
                outcome
            })
            .collect(),
        servers: server_outcomes(companion, run, threads),
        modes: run.modes.as_ref().map_or_else(Vec::new, Modes::outcomes),
        overhead: overheads(plan, threads),
        interrupts: Vec::new(),
        devices,
        requests,
        notes,
    }
}

/// What each server did, in the order of the file.
fn server_outcomes(system: &System, run: &RunShared, threads: &Threads) -> Vec<ServerOutcome> {
    let mut outcomes = Vec::with_capacity(system.servers().len());
    for agent in &threads.agents {
        if let Some(mut driver) = agent.driver_after_run() {
            outcomes.extend(driver.server_outcomes(system, run.horizon()));
        }
    }
    outcomes.extend(kernel_served(system, run, threads));
    outcomes.sort_by_key(|(id, _)| *id);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// What the emulated devices and their requests came to, in the order of the file.
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

/// What the kernel's servers came to: what their threads executed is all that it tells.
fn kernel_served(system: &System, run: &RunShared, threads: &Threads) -> Vec<(ServerId, ServerOutcome)> {
    let mut outcomes = Vec::new();
    for (id, server) in
        system.server_ids().zip(system.servers()).filter(|(_, server)| server.kind.is_kernels())
    {
        let mine = threads.tasks.iter().filter(|task| system.server_of(task.id) == Some(id));
        let consumed = Span::from_ns(mine.map(|task| task.executed.load(Ordering::Acquire)).sum());
        let enforcement = server.kind.capacity().map(|capacity| {
            let elapsed = Span::from_ns(run.horizon());
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

fn thread_infos(plan: &Plan, threads: &Threads) -> Vec<ThreadInfo> {
    let band = |class: Class| if let Class::Fifo(priority) = class { priority } else { 0 };
    let agent_band = plan.classes.iter().any(|&class| class != Class::Normal).then_some(bands::AGENT);
    let tasks = threads.tasks.iter().map(|task| ThreadInfo {
        tid: task.tid.load(Ordering::Acquire),
        name: shown_name(&task.name),
        task: Some(task.id),
        cpu: plan.reservations[task.id.index()].is_none().then_some(task.cpu),
        fifo_priority: band(plan.classes[task.id.index()]),
    });
    let agents = threads.agents.iter().map(|agent| ThreadInfo {
        tid: agent.tid.load(Ordering::Acquire),
        name: format!("horolog/{}", agent.cpu),
        task: None,
        cpu: Some(agent.cpu),
        fifo_priority: agent_band.unwrap_or(0),
    });
    tasks.chain(agents).collect()
}

/// The name as the kernel shows it: at most 15 bytes.
fn shown_name(name: &str) -> String {
    let mut end = name.len().min(15);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}
