//! Starts the threads of a run, collects what they record, and ends it.

use crate::arrivals::Arrivals;
use crate::body::{Spin, Spinner, TaskBody};
use crate::collect::Collector;
use crate::plan::Plan;
use crate::result::{RunResult, Started, ThreadInfo};
use crate::ring::Ring;
use crate::shared::{Control, RunShared, TaskShared};
use crate::tally::Tally;
use crate::{ExecError, Limit, RunOptions, bands, direct};
use horolog_model::{Body, System, TaskId};
use horolog_sys::affinity::{CpuSet, allowed_cpus, set_affinity};
use horolog_sys::clock::{self, ThreadClock};
use horolog_sys::fixed_priority::{Class, may_use_fifo, set_class};
use horolog_sys::{memory, thread, usage};
use horolog_time::Span;
use horolog_trace::{Outcome, Record};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

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
    let plan = Plan::new(system, options)?;
    prepare_process(options)?;
    let before = allowed_cpus()?;
    set_affinity(0, &plan.housekeeping)?;
    let result = run_planned(system, options, &plan, out);
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
    system: &System,
    options: &RunOptions,
    plan: &Plan,
    out: &mut dyn FnMut(Record),
) -> Result<RunResult, ExecError> {
    let horizon = match options.limit {
        Limit::For(span) => span.as_ns(),
        Limit::Forever => u64::MAX,
    };
    let run = Arc::new(RunShared::new(horizon));
    let tasks: Vec<Arc<TaskShared>> =
        (0..system.tasks().len()).map(|index| Arc::new(task_shared(system, plan, options, index))).collect();
    let threads = start_threads(system, options, plan, &run, &tasks)?;
    run.wait_until_ready(threads.len() as u32);
    if let Some(failure) = run.take_failure() {
        run.stop(0);
        join(threads, &run, &tasks, options);
        return Err(failure);
    }
    // Far enough ahead that every thread sleeps by then.
    let origin_ns = clock::monotonic_ns() + 20_000_000;
    if let Some(started) = &options.started {
        // A cell that a former run has filled keeps its value; the caller gives each run its own.
        let _ = started.set(Started { origin_ns, threads: thread_infos(plan, &tasks) });
    }
    run.start(origin_ns);
    let mut collector = Collector::new(tasks.iter().map(|task| task.ring.clone()).collect());
    collect(&run, options, origin_ns, &mut collector, out);
    let left_behind = join(threads, &run, &tasks, options);
    let events = collector.finish(out);
    if let Some(failure) = run.take_failure() {
        return Err(failure);
    }
    let mut outcome = outcome_of(system, options, plan, &run, &tasks);
    outcome.events = events;
    outcome.events_lost = collector.lost();
    outcome.notes.extend(left_behind);
    let threads = thread_infos(plan, &tasks);
    Ok(RunResult { outcome, records: Vec::new(), origin_ns, threads })
}

fn task_shared(system: &System, plan: &Plan, options: &RunOptions, index: usize) -> TaskShared {
    let task = &system.tasks()[index];
    let _ = plan;
    TaskShared {
        id: TaskId(index as u32),
        name: task.name.clone(),
        cpu: task.cpu.0,
        wcet: task.wcet.as_ns(),
        overrun: task.overrun,
        graph: task.segment_graph().cloned(),
        control: Control::default(),
        ring: Arc::new(Ring::new(options.ring_capacity)),
        tally: Mutex::new(Tally::default()),
        tid: AtomicU32::new(0),
        clock: Mutex::new(None),
        record: options.record,
    }
}

fn start_threads(
    system: &System,
    options: &RunOptions,
    plan: &Plan,
    run: &Arc<RunShared>,
    tasks: &[Arc<TaskShared>],
) -> Result<Vec<JoinHandle<()>>, ExecError> {
    let spinner = Spinner::calibrate();
    let tick = system.platform().tick.map(Span::as_ns);
    let mut handles = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let model = &system.tasks()[index];
        let mut body: Box<dyn TaskBody> = match &model.body {
            None | Some(Body::Spin(_)) => Box::new(Spin::of(model, spinner)?),
            Some(_) => {
                return Err(ExecError::bad_input(format!("task {}: this body cannot run yet", task.name)));
            }
        };
        let mut arrivals = Arrivals::new(model, index, tick, options.arrivals, options.seed);
        let (run, task, class) = (run.clone(), task.clone(), plan.classes[index]);
        run.alive.fetch_add(1, Ordering::AcqRel);
        let spawned = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
            match prepare_thread(&task, class) {
                Ok(()) => {
                    if let Some(start) = run.wait_for_start() {
                        direct::run_jobs(&task, &run, start, &mut arrivals, body.as_mut());
                        let usage = usage::of_this_thread();
                        let mut tally = task.tally();
                        tally.counts.preemptions = usage.involuntary_switches;
                        tally.counts.switch_ins = usage.involuntary_switches + usage.voluntary_switches;
                    }
                }
                Err(error) => run.fail(error.in_task(&task.name)),
            }
            run.alive.fetch_sub(1, Ordering::AcqRel);
        });
        handles.push(spawned.map_err(|error| {
            ExecError::machine(format!("starting the thread of task {}: {error}", tasks[index].name))
        })?);
    }
    Ok(handles)
}

/// Pins, names and raises the calling thread, and touches its stack.
fn prepare_thread(task: &TaskShared, class: Class) -> Result<(), ExecError> {
    task.tid.store(thread::id(), Ordering::Release);
    *task.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(ThreadClock::of_this_thread());
    thread::set_name(&task.name);
    set_affinity(0, &CpuSet::new([task.cpu]))?;
    memory::touch_stack::<{ 256 << 10 }>();
    if class == Class::Normal {
        clock::remove_timer_slack()?;
    }
    set_class(0, class)?;
    Ok(())
}

/// Drains the rings until the run is over, then says so.
fn collect(
    run: &RunShared,
    options: &RunOptions,
    origin_ns: u64,
    collector: &mut Collector,
    out: &mut dyn FnMut(Record),
) {
    const TURN_NS: u64 = 5_000_000;
    loop {
        let now = clock::monotonic_ns();
        let since_start = now.saturating_sub(origin_ns);
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

/// Waits for the threads to end, waking those that sleep; those that do not end in time are named and left.
fn join(
    threads: Vec<JoinHandle<()>>,
    run: &RunShared,
    tasks: &[Arc<TaskShared>],
    options: &RunOptions,
) -> Vec<String> {
    let limit = clock::monotonic_ns().saturating_add(options.grace.as_ns());
    while run.alive.load(Ordering::Acquire) > 0 && clock::monotonic_ns() < limit {
        for task in tasks {
            let tid = task.tid.load(Ordering::Acquire);
            if tid != 0 {
                // A thread that has ended meanwhile is what we wait for.
                let _ = thread::interrupt(tid);
            }
        }
        let _ = clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
    let mut left_behind = Vec::new();
    for (handle, task) in threads.into_iter().zip(tasks) {
        if handle.is_finished() || run.alive.load(Ordering::Acquire) == 0 {
            if handle.join().is_err() {
                run.fail(ExecError::crashed(format!("task {}: its thread panicked", task.name)));
            }
        } else {
            left_behind.push(format!("task {}: its last job did not end and was left behind", task.name));
        }
    }
    left_behind
}

fn outcome_of(
    system: &System,
    options: &RunOptions,
    plan: &Plan,
    run: &RunShared,
    tasks: &[Arc<TaskShared>],
) -> Outcome {
    let mut notes = plan.notes.clone();
    for task in tasks {
        let tally = task.tally();
        notes.extend(tally.notes.iter().map(|note| format!("task {}: {note}", task.name)));
        if let Some(value) = tally.first_failure {
            notes.push(format!("task {}: {} jobs failed, the first with {value}", task.name, tally.failed));
        }
    }
    if options.best_effort {
        notes.insert(0, "best effort: normal scheduling, so nothing about response times is promised".into());
    }
    Outcome {
        schema: Outcome::SCHEMA,
        system: system.name().to_owned(),
        backend: if options.best_effort { "linux-best-effort" } else { "linux" }.to_owned(),
        seed: options.seed,
        horizon_ns: Span::from_ns(run.horizon()),
        events: 0,
        events_lost: 0,
        tasks: tasks
            .iter()
            .map(|task| {
                let mut outcome = task.tally().outcome();
                outcome.name.clone_from(&task.name);
                outcome
            })
            .collect(),
        notes,
    }
}

fn thread_infos(plan: &Plan, tasks: &[Arc<TaskShared>]) -> Vec<ThreadInfo> {
    tasks
        .iter()
        .map(|task| ThreadInfo {
            tid: task.tid.load(Ordering::Acquire),
            name: task.name.chars().take(15).collect(),
            task: Some(task.id),
            cpu: Some(task.cpu),
            fifo_priority: match plan.classes[task.id.index()] {
                Class::Fifo(priority) => priority,
                _ => 0,
            },
        })
        .collect()
}
