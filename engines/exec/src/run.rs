//! A run from its plan to its outcome.

use crate::boards::Boards;
use crate::body::{Bodies, ThreadsBefore};
use crate::collect::Collector;
use crate::early::{Early, What};
use crate::locks::Locks;
use crate::modes::Modes;
use crate::outcome::outcome_of;
use crate::plan::Plan;
use crate::processes::Processes;
use crate::result::{RunResult, Started, ThreadInfo};
use crate::shared::RunShared;
use crate::task_shared::TaskShared;
use crate::threads::{Setup, Threads};
use crate::watchdog::Watchdog;
use crate::{ExecError, Limit, RunOptions, bands};
use horolog_model::{Companion, System};
use horolog_sys::affinity::{allowed_cpus, set_affinity};
use horolog_sys::clock;
use horolog_sys::fixed_priority::{Class, may_use_fifo};
use horolog_sys::idle_latency::ShallowIdle;
use horolog_sys::{crash, memory, thread};
use horolog_trace::Record;
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
    let boards = Boards::new(&companion.system, &plan, options)?;
    let mut collector = Collector::new(boards.in_order());
    let mut here = Here { collector: &mut collector, out };
    let mut result = Run { file: system, companion: &companion, options, plan: &plan, boards: &boards }
        .whole(bodies, &mut here)?;
    result.outcome.events = collector.finish(out);
    result.outcome.events_lost = collector.lost();
    if collector.late() > 0 {
        result.outcome.notes.push(format!("{} records came out of order", collector.late()));
    }
    Ok(result)
}

/// Who waits for a run's threads.
pub(crate) trait Attendant {
    /// The start is set.
    fn started(&mut self, _: &Started) {}

    /// A moment has passed.
    fn turn(&mut self);

    /// Whether the run is to end now.
    fn wants_end(&self) -> bool {
        false
    }
}

/// Collects the records in the run's own process.
struct Here<'a> {
    collector: &'a mut Collector,
    out: &'a mut dyn FnMut(Record),
}

impl Attendant for Here<'_> {
    fn turn(&mut self) {
        self.collector.turn(self.out);
    }
}

/// What a run is made of.
pub(crate) struct Run<'a> {
    /// As the file has it.
    pub(crate) file: &'a System,
    pub(crate) companion: &'a Companion,
    pub(crate) options: &'a RunOptions,
    pub(crate) plan: &'a Plan,
    pub(crate) boards: &'a Boards,
}

impl Run<'_> {
    /// From the process's preparation to the outcome. The records are left in the rings.
    pub(crate) fn whole(
        &self,
        bodies: &mut Bodies,
        attendant: &mut dyn Attendant,
    ) -> Result<RunResult, ExecError> {
        let is_memory_locked = prepare_process(self.options)?;
        let before = allowed_cpus()?;
        set_affinity(0, &self.plan.housekeeping)?;
        let threads_before = ThreadsBefore::now();
        let mut result = self.planned(bodies, is_memory_locked, attendant);
        let own: Vec<u32> =
            result.iter().flat_map(|result| &result.threads).map(|thread| thread.tid).collect();
        let kept = bodies.unload(&threads_before, &own);
        if let Ok(result) = &mut result {
            result.outcome.notes.extend(kept);
        }
        set_affinity(0, &before)?;
        memory::unlock_all();
        result
    }

    fn planned(
        &self,
        bodies: &mut Bodies,
        is_memory_locked: bool,
        attendant: &mut dyn Attendant,
    ) -> Result<RunResult, ExecError> {
        let Run { file, companion, options, plan, boards } = *self;
        let horizon = match options.limit {
            Limit::For(span) => span.as_ns(),
            Limit::Forever => u64::MAX,
        };
        let (modes, locks) = (Modes::of(&companion.system)?, Locks::of(&companion.system));
        let run = Arc::new(RunShared::new(horizon, is_memory_locked, modes, locks));
        let _crashes = crash::Guard::new()?;
        let _awake = ShallowIdle::ask();
        let setup = Setup { system: &companion.system, file, companion, options, plan, run: &run, boards };
        let mut threads = setup.start(bodies)?;
        run.wait_until_ready(threads.count(), || threads.crashed().is_some());
        let checked = check_start(&run, &threads).and_then(|()| setup.attach(&mut threads));
        let watchdog = match checked.and_then(|()| Watchdog::start(&run, &threads.tasks, options)) {
            Ok(watchdog) => watchdog,
            Err(failure) => {
                run.stop(0);
                threads.join(&run, options);
                return Err(failure);
            }
        };
        // Far enough ahead that every thread sleeps by then.
        let origin_ns = clock::monotonic_ns() + 20_000_000;
        let started = Started { origin_ns, threads: thread_infos(plan, &threads) };
        attendant.started(&started);
        if let Some(cell) = &options.started {
            // A cell that a former run has filled keeps its value; the caller gives each run its own.
            let _ = cell.set(started.clone());
        }
        let kicks: Vec<_> = threads.agents.iter().map(|agent| (agent.cpu, agent.kick.clone())).collect();
        run.locks.spin.kick_these(&kicks);
        run.locks.queued.kick_these(&kicks);
        if let Some(modes) = &run.modes {
            modes.kick_these(kicks);
        }
        run.start(origin_ns);
        let mut processes = std::mem::take(&mut threads.processes);
        attend(&run, options, (&threads, &mut processes), attendant);
        // The programs first: one that executes without an end keeps the processor from the threads below it, which are to end now.
        let of_programs = processes.end();
        let left_behind = threads.join(&run, options);
        watchdog.end();
        note_crash(&run, &threads);
        let mut notes = setup.count_left_behind(&threads, &left_behind);
        notes.extend(of_programs);
        notes.extend(crashed_forks(&threads));
        notes.extend(end_agents(&threads));
        if let Some(failure) = run.take_failure() {
            return Err(failure);
        }
        let mut outcome = outcome_of((file, &companion.system), options, plan, &run, &threads);
        outcome.ended_by = run.early().map(|early| {
            let task = &threads.tasks[early.task];
            early.ending(&task.name, &task.crash)
        });
        outcome.notes.extend(notes);
        let closed_ns = run.closed();
        let (records, threads, spin_locks) = (Vec::new(), started.threads, run.locks.spin.counts());
        Ok(RunResult { outcome, records, origin_ns, threads, closed_ns, spin_locks })
    }
}

/// Which tasks have forked processes that crashed in their code.
fn crashed_forks(threads: &Threads) -> Vec<String> {
    let note = |task: &Arc<TaskShared>| {
        let (count, signal) = task.crash.crashed_forks()?;
        let (name, signal) = (&task.name, crash::signal_name(signal));
        Some(match count {
            1 => format!("task {name}: a process that its code had forked crashed: {signal}"),
            _ => format!(
                "task {name}: {count} processes that its code had forked crashed, the last one: {signal}"
            ),
        })
    };
    threads.tasks.iter().filter_map(note).collect()
}

/// Privileges and locked memory, before any thread exists. Whether memory is locked.
fn prepare_process(options: &RunOptions) -> Result<bool, ExecError> {
    thread::prepare_interrupt()?;
    if options.best_effort {
        // Memory is locked where it may be; the notes of the outcome say that nothing is promised.
        return Ok(memory::lock_all().is_ok());
    }
    may_use_fifo(bands::WATCHDOG)?;
    memory::lock_all()?;
    Ok(true)
}

/// Whether every thread is ready. A crash before the start is an error: there is no run that it could have ended.
fn check_start(run: &RunShared, threads: &Threads) -> Result<(), ExecError> {
    note_crash(run, threads);
    if let Some(early) = run.early() {
        let task = &threads.tasks[early.task];
        return Err(ExecError::crashed(early.ending(&task.name, &task.crash).to_string()));
    }
    run.take_failure().map_or(Ok(()), Err)
}

/// A crash ends the run.
fn note_crash(run: &RunShared, threads: &Threads) {
    if let Some(task) = threads.crashed() {
        run.end_early(Early { task, at_ns: run.now().unwrap_or(0), what: What::Fate });
    }
}

/// Waits until the run is over, then says so.
fn attend(
    run: &RunShared,
    options: &RunOptions,
    (threads, processes): (&Threads, &mut Processes),
    attendant: &mut dyn Attendant,
) {
    const TURN_NS: u64 = 5_000_000;
    loop {
        let since_start = run.now().unwrap_or(0);
        note_crash(run, threads);
        let asked = options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Acquire));
        processes.look(since_start.min(run.horizon()));
        let early = run.has_failed() || run.has_ended_early();
        let is_cut = asked || attendant.wants_end();
        if is_cut || early || since_start >= run.horizon() {
            run.end_releases(since_start);
            if !early {
                threads.wake_for_last_jobs(is_cut);
                let_complete(run, options, (threads, processes), attendant);
            }
            run.stop(run.now().unwrap_or(0));
            return;
        }
        attendant.turn();
        let left = run.horizon() - since_start;
        let _ = clock::sleep_until(clock::monotonic_ns().saturating_add(left.min(TURN_NS)));
    }
}

/// Jobs that have arrived by the horizon may complete: each has its whole deadline, and no more than the grace.
fn let_complete(
    run: &RunShared,
    options: &RunOptions,
    (threads, processes): (&Threads, &mut Processes),
    attendant: &mut dyn Attendant,
) {
    const TURN_NS: u64 = 500_000;
    let horizon = run.horizon();
    loop {
        let now = run.now().unwrap_or(0);
        note_crash(run, threads);
        processes.look(horizon);
        let is_open = |task: &Arc<TaskShared>| {
            let within = task.completes_within.min(options.grace.as_ns());
            !task.is_idle.load(Ordering::Acquire) && now <= horizon.saturating_add(within)
        };
        if run.has_failed() || run.has_ended_early() || !threads.tasks.iter().any(is_open) {
            return;
        }
        attendant.turn();
        let _ = clock::sleep_until(clock::monotonic_ns().saturating_add(TURN_NS));
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
