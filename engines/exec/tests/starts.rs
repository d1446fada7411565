//! When a job starts below the release agent: once its thread has the processor, however early it was chosen.

use horolog_exec::{RunOptions, RunResult};
use horolog_model::{Policy, Preemption, System};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_trace::Kind;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

mod common;
use common::{last_cpu, ms, run_or_skip, system, system_with, task};

/// When a thread between the agent and the tasks has their processor, ms after the common start.
const KEPT: (u64, u64) = (15, 30);

/// Runs the system while such a thread keeps the processor. `None` where this machine does not allow it.
fn kept_from_tasks(system: &System) -> Option<RunResult> {
    let started = Arc::new(OnceLock::new());
    let mut options = RunOptions::for_span(ms(150));
    options.started = Some(started.clone());
    let keeper = std::thread::spawn(move || {
        let begun = std::time::Instant::now();
        while started.get().is_none() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let origin = started.get().map_or(0, |started: &horolog_exec::Started| started.origin_ns);
        set_class(0, Class::Fifo(90)).and_then(|()| set_affinity(0, &CpuSet::new([last_cpu().0])))?;
        let _ = sleep_until(origin + KEPT.0 * 1_000_000);
        while monotonic_ns() < origin + KEPT.1 * 1_000_000 {}
        Ok::<(), horolog_sys::Error>(())
    });
    let result = run_or_skip(system, &options);
    let kept = keeper.join().expect("it ends");
    result.filter(|_| kept.is_ok())
}

/// What happened to the processor, by task, and in ms from the start.
fn told(result: &RunResult) -> Vec<(Kind, u32, u64)> {
    let kinds = [Kind::Start, Kind::Preempt, Kind::Resume, Kind::Completion];
    let records = result.records.iter().filter(|record| kinds.contains(&record.kind));
    records.map(|record| (record.kind, record.task, record.time.as_ns() / 1_000_000)).collect()
}

#[test]
fn a_job_starts_when_its_thread_does_and_is_not_preempted_before() {
    // The long one is chosen at 20 ms and loses that choice to the short one at 22 ms; neither thread has the processor by then.
    let (mut long, mut short) = (task("long", 1, ms(200), ms(5)), task("short", 1, ms(200), ms(2)));
    (long.offset, short.offset) = (Some(ms(20)), Some(ms(22)));
    (long.priority, short.priority, short.deadline) = (None, None, Some(ms(50)));
    let mut draft = system(vec![task("x", 1, ms(100), ms(1))]).to_draft();
    (draft.policy, draft.tasks) = (Policy::Edf, vec![long, short]);
    let Some(result) = kept_from_tasks(&system_with(draft)) else { return };
    let told = told(&result);
    let order: Vec<(Kind, u32)> = told.iter().map(|&(kind, task, _)| (kind, task)).collect();
    let expected = [(Kind::Start, 1), (Kind::Completion, 1), (Kind::Start, 0), (Kind::Completion, 0)];
    assert_eq!(order, expected, "{told:?}");
    assert!(told[0].2 >= KEPT.1, "{told:?}");
    let counts: Vec<u64> = result.outcome.tasks.iter().map(|task| task.preemptions).collect();
    assert_eq!(counts, [0, 0]);
}

#[test]
fn a_job_that_may_not_be_preempted_starts_with_the_choice() {
    let (mut low, mut high) = (task("low", 1, ms(200), ms(5)), task("high", 2, ms(200), ms(2)));
    (low.offset, high.offset) = (Some(ms(20)), Some(ms(22)));
    low.preemption = Preemption::NonPreemptive;
    let Some(result) = kept_from_tasks(&system(vec![low, high])) else { return };
    let told = told(&result);
    let order: Vec<(Kind, u32)> = told.iter().map(|&(kind, task, _)| (kind, task)).collect();
    let expected = [(Kind::Start, 0), (Kind::Completion, 0), (Kind::Start, 1), (Kind::Completion, 1)];
    assert_eq!(order, expected, "{told:?}");
    assert!(told[0].2 < KEPT.1 && told[2].2 >= KEPT.1, "{told:?}");
}
