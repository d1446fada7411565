//! Deferred, non-preemptive, equal-priority and EDF tasks on real threads, through the release agent.

use horolog_exec::{RunOptions, RunResult};
use horolog_model::{Body, OverrunPolicy, Policy, Preemption, SpinTarget, System, Task};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

mod common;
use common::{deferred, ms, run_or_skip, system, system_with, task, us};

fn non_preemptive(name: &str, priority: i64, period: Span, wcet: Span) -> Task {
    let mut task = task(name, priority, period, wcet);
    task.preemption = Preemption::NonPreemptive;
    task
}

/// The order in which jobs get and give up the processor: (kind, task, job).
fn order(records: &[Record]) -> Vec<(Kind, u32, u64)> {
    let kinds = [Kind::Start, Kind::Preempt, Kind::Resume, Kind::Yield, Kind::Completion];
    records.iter().filter(|r| kinds.contains(&r.kind)).map(|r| (r.kind, r.task, r.job)).collect()
}

/// What the simulator says about the same system.
fn simulated(system: &System, span: Span) -> Vec<(Kind, u32, u64)> {
    let options = horolog_sim::SimOptions {
        horizon: horolog_sim::Horizon::Time(span),
        jitter: horolog_sim::DelayChoice::None,
        latency: horolog_sim::DelayChoice::None,
        ..horolog_sim::SimOptions::default()
    };
    let mut records = Vec::new();
    horolog_sim::simulate(system, &options, &mut records).expect("simulates");
    order(&records)
}

fn run_for(system: &System, span: Span) -> Option<RunResult> {
    let result = run_or_skip(system, &RunOptions::for_span(span))?;
    println!("{:?}", result.outcome.notes);
    assert!(result.records.windows(2).all(|pair| pair[0].time <= pair[1].time));
    Some(result)
}

fn check_against_simulator(system: &System, span: Span) {
    let Some(result) = run_for(system, span) else { return };
    assert_eq!(order(&result.records), simulated(system, span));
    for task in &result.outcome.tasks {
        assert_eq!((task.unfinished, task.jobs), (0, task.completed), "{task:?}");
    }
}

/// Scales every execution time so that a disturbed machine cannot change the order: jobs end long before anything
/// else happens.
fn with_spin(mut task: Task, percent: u32) -> Task {
    task.body = Some(Body::Spin(SpinTarget::Fraction(percent * 10_000)));
    task
}

#[test]
fn non_preemptive_jobs_run_through() {
    let high = task("high", 2, ms(40), ms(2));
    let mut low = non_preemptive("low", 1, ms(80), ms(30));
    low.offset = Some(ms(30));
    let system = system(vec![high, with_spin(low, 95)]);
    check_against_simulator(&system, ms(400));
}

#[test]
fn deferred_jobs_give_way_at_their_points_only() {
    let high = task("high", 2, ms(50), ms(3));
    // Every point lies at least 15 ms away from the next arrival, so that a pause of the host changes no order.
    let mut low = deferred("low", 1, ms(200), &[ms(25), ms(35), ms(10)]);
    low.offset = Some(ms(10));
    let system = system(vec![high, with_spin(low, 95)]);
    let Some(result) = run_for(&system, ms(600)) else { return };
    assert_eq!(order(&result.records), simulated(&system, ms(600)));
    let low = &result.outcome.tasks[1];
    assert!(low.yields >= 1 && low.preemptions == 0, "{low:?}");
    let points = result.records.iter().filter(|r| r.kind == Kind::PreemptionPoint).count();
    assert_eq!(points as u64, 2 * low.jobs);
}

#[test]
fn preemptive_equals_run_first_in_first_out() {
    let mut second = task("second", 1, ms(100), ms(20));
    second.offset = Some(ms(5));
    let first = task("first", 1, ms(100), ms(20));
    check_against_simulator(&system(vec![first, second]), ms(300));
}

#[test]
fn edf_follows_the_deadlines() {
    let mut long = task("long", 0, ms(100), ms(30));
    let mut short = task("short", 0, ms(50), ms(5));
    let mut late = task("late", 0, ms(100), ms(10));
    late.deadline = Some(ms(200));
    short.offset = Some(ms(10));
    long.priority = None;
    short.priority = None;
    late.priority = None;
    let mut draft = system(vec![task("x", 1, ms(100), ms(1))]).to_draft();
    draft.policy = Policy::Edf;
    draft.tasks = vec![long, short, late];
    check_against_simulator(&system_with(draft), ms(400));
}

#[test]
fn an_overrun_is_demoted_below_the_others() {
    let mut greedy = task("greedy", 9, ms(100), ms(10));
    greedy.body = Some(Body::Spin(SpinTarget::Total(ms(40))));
    greedy.overrun = OverrunPolicy::Demote;
    let mut victim = task("victim", 1, ms(100), ms(10));
    victim.offset = Some(ms(5));
    let Some(result) = run_for(&system(vec![greedy, victim]), ms(290)) else { return };
    let order: Vec<(Kind, u32)> = result
        .records
        .iter()
        .filter(|r| matches!(r.kind, Kind::Enforcement | Kind::Completion))
        .map(|r| (r.kind, r.task))
        .collect();
    let each = [(Kind::Enforcement, 0), (Kind::Completion, 1), (Kind::Completion, 0)];
    assert_eq!(order, [each, each, each].concat());
    assert_eq!(result.outcome.tasks[0].overruns, 3);
}

#[test]
fn a_stopped_task_releases_no_more() {
    let mut greedy = task("greedy", 9, ms(50), ms(5));
    greedy.body = Some(Body::Spin(SpinTarget::Total(ms(5_000))));
    greedy.overrun = OverrunPolicy::Stop;
    let mut victim = task("victim", 1, ms(50), ms(5));
    victim.offset = Some(ms(3));
    let Some(result) = run_for(&system(vec![greedy, victim]), ms(240)) else { return };
    let (greedy, victim) = (&result.outcome.tasks[0], &result.outcome.tasks[1]);
    assert_eq!((victim.completed, victim.jobs), (5, 5), "{victim:?}");
    assert_eq!(greedy.jobs, 1, "{greedy:?}");
    assert!(greedy.skipped >= 3, "{greedy:?}");
}

#[test]
fn a_skipping_task_drops_the_release_after_an_overrun() {
    let mut low = deferred("low", 1, ms(100), &[ms(5), ms(5), ms(5)]);
    low.body = Some(Body::Spin(SpinTarget::PerSegment(vec![ms(3), ms(20), ms(3)])));
    low.overrun = OverrunPolicy::Skip;
    let Some(result) = run_for(&system(vec![low]), ms(390)) else { return };
    let low = &result.outcome.tasks[0];
    // Jobs 0 and 2 run and end at the point after the long segment; 1 and 3 are dropped.
    assert_eq!((low.jobs, low.completed, low.skipped), (2, 2, 2), "{low:?}");
    let ended: Vec<u64> =
        result.records.iter().filter(|r| r.kind == Kind::Completion).map(|r| r.job).collect();
    assert_eq!(ended, [0, 2]);
    assert!(result.records.iter().any(|r| r.kind == Kind::Overrun && r.extra == 2));
}

#[test]
fn an_idle_agent_releases_on_the_tick() {
    let mut draft = system(vec![non_preemptive("n", 1, ms(15), us(200))]).to_draft();
    draft.platform.tick = Some(ms(10));
    let Some(result) = run_for(&system_with(draft), ms(49)) else { return };
    let releases: Vec<u64> = result
        .records
        .iter()
        .filter(|r| r.kind == Kind::Release)
        .map(|r| r.time.as_ns() / 1_000_000)
        .collect();
    assert_eq!(releases, [0, 20, 30, 50]);
}

#[test]
fn best_effort_drives_the_same_machine() {
    let high = task("high", 2, ms(40), ms(1));
    let low = deferred("low", 1, ms(80), &[ms(3), ms(3)]);
    let mut options = RunOptions::for_span(ms(300));
    options.best_effort = true;
    let result = horolog_exec::run(&system(vec![high, low]), &options).expect("needs nothing");
    println!("{:#?}", result.outcome);
    assert_eq!((result.outcome.tasks[0].jobs, result.outcome.tasks[1].jobs), (8, 4));
    assert!(result.outcome.tasks.iter().all(|task| task.completed + task.unfinished == task.jobs));
}

#[test]
fn each_processor_has_its_own_mode() {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let [first, .., last] = allowed.as_slice() else {
        println!("SKIPPED: only one processor");
        return;
    };
    let (first, last) = (horolog_model::CpuId(*first), horolog_model::CpuId(*last));
    let mut plain = task("plain", 5, ms(20), ms(1));
    plain.cpu = first;
    let mut cut = deferred("cut", 1, ms(100), &[ms(10), ms(10)]);
    cut.cpu = last;
    let mut urgent = task("urgent", 9, ms(100), ms(2));
    urgent.offset = Some(ms(4));
    urgent.cpu = last;
    let mut draft = system(vec![task("x", 1, ms(100), ms(1))]).to_draft();
    draft.platform.cpus = horolog_model::Cpus::Listed(vec![first, last]);
    draft.tasks = vec![plain, cut, urgent];
    let Some(result) = run_for(&system_with(draft), ms(290)) else { return };
    let jobs: Vec<u64> = result.outcome.tasks.iter().map(|task| task.jobs).collect();
    assert_eq!(jobs, [15, 3, 3]);
    assert_eq!(result.outcome.tasks[1].yields, 3);
    let agents: Vec<Option<u32>> =
        result.threads.iter().filter(|thread| thread.task.is_none()).map(|thread| thread.cpu).collect();
    assert_eq!(agents, [Some(last.0)]);
    assert!(result.outcome.notes.iter().any(|note| note.contains("housekeeping")));
}

#[test]
fn overruns_are_told_to_the_code_and_tell_whom_they_harm() {
    let mut low = deferred("low", 1, ms(100), &[ms(5), ms(5), ms(5)]);
    low.body = Some(Body::Spin(SpinTarget::PerSegment(vec![ms(4), ms(8), ms(1)])));
    let high = task("high", 9, ms(100), ms(1));
    let Some(result) = run_for(&system(vec![high, low]), ms(190)) else { return };
    // The segment is too long, and blocks the high task for longer than analysed; the job is not too long.
    let overruns: Vec<(u64, u64)> = result
        .records
        .iter()
        .filter(|record| record.kind == Kind::Overrun)
        .map(|record| (record.job, record.extra))
        .collect();
    assert_eq!(overruns, [(0, 2), (1, 2)]);
    assert_eq!(result.outcome.tasks[1].overruns, 0);
    let said = |text: &str| result.outcome.notes.iter().any(|note| note.contains(text));
    assert!(
        said("2 segments executed longer") && said("2 segments blocked more important"),
        "{:?}",
        result.outcome.notes
    );
}

#[test]
fn a_callback_hears_of_each_overrun_once() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let _alone = common::alone();
    let heard = Arc::new(AtomicU64::new(0));
    let hearing = heard.clone();
    let run = horolog_exec::Executive::new(system(vec![deferred("low", 1, ms(50), &[ms(2), ms(2)])]))
        .options(RunOptions::for_span(ms(145)))
        .body("low", move |job| {
            if job.number() == 0 {
                let heard = hearing.clone();
                job.on_overrun(move |overrun| {
                    assert!(overrun.verdict.job_overrun || overrun.verdict.job_overrun_certain);
                    heard.fetch_add(1, Ordering::Relaxed);
                });
            }
            while job.executed() < ms(6) {}
            job.preemption_point(true);
            while job.executed() < ms(8) {}
        })
        .run();
    match run {
        Err(error) if error.is_not_permitted() => println!("SKIPPED: {error}"),
        result => {
            let jobs = result.expect("runs").outcome.tasks[0].completed;
            assert_eq!((jobs, heard.load(Ordering::Relaxed)), (3, 3));
        }
    }
}
