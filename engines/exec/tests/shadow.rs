//! Plain fixed-priority tasks on real threads: counts and order of logical events, never wall-clock maxima.

use horolog_exec::RunOptions;
use horolog_model::{Arrival, Body, Cpus};
use horolog_trace::{Kind, Record};

mod common;
use common::{ms, run_or_skip, system, system_with, task, us};

#[test]
fn periodic_jobs_are_all_released_and_completed() {
    let system = system(vec![task("fast", 10, ms(10), us(500)), task("slow", 5, ms(40), ms(4))]);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(400))) else { return };
    let fast = &result.outcome.tasks[0];
    let slow = &result.outcome.tasks[1];
    assert_eq!((fast.jobs, slow.jobs), (40, 10));
    assert_eq!(fast.completed + fast.unfinished, 40);
    assert!(slow.switch_ins >= slow.jobs / 2, "{slow:?}");
    assert_eq!(result.outcome.backend, "linux");
    assert_eq!(result.outcome.events_lost, 0);
    check_order(&result.records);
}

/// Records come in time order, and each job is released, started and completed in that order.
fn check_order(records: &[Record]) {
    assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time));
    let tasks = records.iter().map(|record| record.task).max().unwrap_or(0);
    for task in 0..=tasks {
        let mut last = None;
        for record in records.iter().filter(|record| record.task == task) {
            match record.kind {
                Kind::Start => {
                    assert_eq!(last, record.job.checked_sub(1).map(|before| (Kind::Completion, before)))
                }
                Kind::Completion => assert_eq!(last, Some((Kind::Start, record.job))),
                _ => continue,
            }
            last = Some((record.kind, record.job));
        }
    }
}

#[test]
fn aperiodic_arrivals_come_as_written_and_no_more() {
    let mut burst = task("burst", 10, ms(10), us(200));
    burst.arrival = Arrival::Aperiodic { arrivals: vec![ms(3), ms(3), ms(20)] };
    burst.deadline = None;
    burst.offset = None;
    let Some(result) = run_or_skip(&system(vec![burst]), &RunOptions::for_span(ms(60))) else { return };
    let outcome = &result.outcome.tasks[0];
    assert_eq!((outcome.jobs, outcome.completed, outcome.missed), (3, 3, 0));
    // The second job had arrived when the first one ended.
    assert!(outcome.vain_waits >= 1, "{outcome:?}");
    let releases: Vec<u64> =
        result.records.iter().filter(|r| r.kind == Kind::Release).map(|r| r.value / 1_000_000).collect();
    assert_eq!(releases, [3, 3, 20]);
}

#[test]
fn a_tick_delays_readiness_and_not_arrival() {
    let mut draft = system(vec![task("slow", 10, ms(15), us(200))]).to_draft();
    draft.platform.tick = Some(ms(10));
    let Some(result) = run_or_skip(&system_with(draft), &RunOptions::for_span(ms(50))) else { return };
    let releases: Vec<(u64, u64)> = result
        .records
        .iter()
        .filter(|r| r.kind == Kind::Release)
        .map(|r| (r.value / 1_000_000, r.time.as_ns() / 1_000_000))
        .collect();
    assert_eq!(releases, [(0, 0), (15, 20), (30, 30), (45, 50)]);
}

#[test]
fn an_overloaded_task_is_counted_and_never_skips_a_job() {
    let mut heavy = task("heavy", 10, ms(4), ms(4));
    heavy.wcet = ms(4);
    heavy.body = Some(Body::Spin(horolog_model::SpinTarget::Total(ms(6))));
    let Some(result) = run_or_skip(&system(vec![heavy]), &RunOptions::for_span(ms(60))) else { return };
    let outcome = &result.outcome.tasks[0];
    assert_eq!(outcome.jobs, 15);
    assert_eq!(outcome.completed + outcome.unfinished, 15);
    assert!(outcome.missed > 0 && outcome.vain_waits > 0 && outcome.unfinished > 0, "{outcome:?}");
    // The job that the end of the run cut short may have stayed below its wcet.
    assert!(
        outcome.completed <= outcome.overruns && outcome.overruns <= outcome.completed + 1,
        "{outcome:?}"
    );
}

#[test]
fn a_set_stop_flag_ends_a_run_without_limit() {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut options = RunOptions::for_span(ms(1));
    options.limit = horolog_exec::Limit::Forever;
    options.stop = Some(stop.clone());
    let started = std::sync::Arc::new(std::sync::OnceLock::new());
    options.started = Some(started.clone());
    let system = system(vec![task("rare", 10, ms(3_600_000), us(200))]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Without the privilege the run never starts, and ends by itself.
            for _ in 0..100 {
                std::thread::sleep(std::time::Duration::from_millis(100));
                if started.get().is_some() {
                    break;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
            stop.store(true, std::sync::atomic::Ordering::Release);
        });
        let Some(result) = run_or_skip(&system, &options) else { return };
        assert_eq!(result.outcome.tasks[0].jobs, 1);
        assert_eq!(result.outcome.tasks[0].completed, 1);
    });
}

#[test]
fn what_cannot_run_is_bad_input_with_a_remedy() {
    let mut draft = system(vec![task("a", 1, ms(10), ms(1))]).to_draft();
    draft.platform.cpus = Cpus::Count(1 + common::last_cpu().0);
    let error = horolog_exec::run(&system_with(draft), &RunOptions::for_span(ms(1))).expect_err("a count");
    assert!(error.is_bad_input(), "{error}");
    assert!(error.to_string().contains("list the numbers"), "{error}");
    let mut draft = system(vec![task("a", 1, ms(10), ms(1))]).to_draft();
    draft.platform.cpus = Cpus::Listed(vec![horolog_model::CpuId(8_191)]);
    draft.tasks[0].cpu = horolog_model::CpuId(8_191);
    let error = horolog_exec::run(&system_with(draft), &RunOptions::for_span(ms(1))).expect_err("no cpu");
    assert!(error.is_bad_input(), "{error}");
}

#[test]
fn best_effort_says_so() {
    let mut options = RunOptions::for_span(ms(50));
    options.best_effort = true;
    let result =
        horolog_exec::run(&system(vec![task("a", 1, ms(10), us(200))]), &options).expect("needs nothing");
    assert_eq!(result.outcome.backend, "linux-best-effort");
    assert!(result.outcome.notes[0].contains("best effort"));
    assert_eq!(result.outcome.tasks[0].jobs, 5);
    assert_eq!(result.threads[0].fifo_priority, 0);
}
