//! Jobs without an end, and code that panics: what was there stays counted, and the run ends.

mod common;

use common::{deferred, last_cpu, ms, run_bodies_or_skip, run_or_skip, system, task, us};
use horolog_exec::{Executive, RunOptions, RunResult};
use horolog_model::{OverrunPolicy, Task};
use horolog_sys::affinity::{CpuSet, allowed_cpus, set_affinity};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_time::Span;
use horolog_trace::{EndCause, Kind};

/// Burns for ever, unseen.
#[inline(never)]
fn spin_for_ever() {
    let mut word = 1_u64;
    loop {
        word = std::hint::black_box(word.wrapping_mul(3));
    }
}

fn options(span: Span) -> RunOptions {
    let mut options = RunOptions::for_span(span);
    options.grace = ms(200);
    options
}

/// A run of `tasks` in which job `stuck` of the first one never ends.
fn with_endless_job(tasks: Vec<Task>, stuck: u64, options: RunOptions) -> Option<RunResult> {
    let name = tasks[0].name.clone();
    run_bodies_or_skip(Executive::new(system(tasks)).options(options).body(&name, move |job| {
        if job.number() == stuck {
            spin_for_ever();
        }
    }))
}

/// Thirty jobs are released before the end, every 10 ms; number 20 never ends. The deadline of the last falls on the end: it has not
/// passed. So ten are unfinished, and nine of them missed.
#[test]
fn jobs_behind_one_without_an_end_are_unfinished_and_missed() {
    let shadow = || task("endless", 9, ms(10), ms(1));
    let driven = || deferred("endless", 9, ms(10), &[us(500), us(500)]);
    for (who, first) in [("the kernel", shadow()), ("the agent", driven())] {
        let Some(result) = with_endless_job(vec![first], 20, options(ms(300))) else { return };
        let outcome = &result.outcome;
        let endless = &outcome.tasks[0];
        let counts = (endless.jobs, endless.unfinished, endless.jobs - endless.completed);
        assert_eq!(counts, (30, 10, 10), "{who}: {endless:?}");
        // Those before it are late where the machine is.
        assert!((9..=29).contains(&endless.missed), "{who}: {endless:?}");
        let released = result.records.iter().filter(|record| record.kind == Kind::Release).count();
        assert_eq!(released, 30, "{who}");
        assert!(outcome.notes.iter().any(|note| note.contains("left behind")), "{who}: {:?}", outcome.notes);
        assert_eq!(outcome.ended_by, None, "{who}");
    }
}

/// Ten seconds would be allowed; the patience is 100 ms beyond ten times the wcet.
#[test]
fn the_watchdog_ends_a_run_whose_job_does_not_end() {
    let shadow = || task("endless", 9, ms(10), ms(1));
    let driven = || deferred("endless", 9, ms(10), &[us(500), us(500)]);
    for first in [shadow(), driven()] {
        let mut options = options(ms(10_000));
        options.patience = ms(100);
        let other = task("other", 5, ms(50), us(100));
        let Some(result) = with_endless_job(vec![first, other], 3, options) else { return };
        let outcome = &result.outcome;
        let ending = outcome.ended_by.as_ref().expect("it was ended");
        assert_eq!(
            (ending.cause, ending.task.as_deref(), ending.job),
            (EndCause::Stuck, Some("endless"), Some(3))
        );
        assert!(ending.stack.iter().any(|frame| frame.contains("spin_for_ever")), "{ending}");
        assert!(outcome.horizon_ns < ms(10_000) && outcome.horizon_ns >= ms(110), "{ending}");
        assert!(outcome.tasks[0].unfinished >= 1 && outcome.tasks[0].missed >= 1, "{:?}", outcome.tasks[0]);
    }
}

/// A job with a patience that it does not reach is none of the watchdog's business.
#[test]
fn a_long_job_is_not_one_without_an_end() {
    let mut options = options(ms(400));
    options.patience = ms(300);
    let long = system(vec![task("long", 9, ms(400), ms(1))]);
    let executive = Executive::new(long).options(options).body("long", |job| {
        while job.executed() < ms(250) {
            std::hint::black_box(());
        }
    });
    let Some(result) = run_bodies_or_skip(executive) else { return };
    assert_eq!((result.outcome.ended_by, result.outcome.tasks[0].completed), (None, 1));
}

/// The body puts itself above the agent and the watchdog, on the only processor that anybody may use.
#[test]
fn a_job_above_everybody_on_the_only_processor_is_ended_too() {
    let before = allowed_cpus().expect("readable");
    set_affinity(0, &CpuSet::new([last_cpu().0])).expect("fewer are always allowed");
    let mut options = options(ms(20_000));
    options.patience = ms(300);
    let executive =
        Executive::new(system(vec![task("above", 9, ms(10), ms(1)), task("below", 5, ms(50), us(100))]))
            .options(options)
            .body("above", |job| {
                if job.number() == 2 {
                    let _ = set_class(0, Class::Fifo(99));
                    spin_for_ever();
                }
            });
    let result = run_bodies_or_skip(executive);
    set_affinity(0, &before).expect("as before");
    let Some(result) = result else { return };
    let ending = result.outcome.ended_by.as_ref().expect("it was ended");
    assert_eq!((ending.cause, ending.task.as_deref(), ending.job), (EndCause::Stuck, Some("above"), Some(2)));
    assert!(ending.stack.iter().any(|frame| frame.contains("spin_for_ever")), "{ending}");
    assert!(result.outcome.horizon_ns < ms(20_000), "{ending}");
    let above = &result.outcome.tasks[0];
    assert!(above.unfinished >= 1 && above.missed >= above.unfinished - 1, "{above:?}");
}

#[test]
fn a_panic_ends_the_run_and_what_was_before_is_kept() {
    let executive =
        Executive::new(system(vec![task("bad", 9, ms(10), ms(1)), task("good", 5, ms(20), us(100))]))
            .options(options(ms(5_000)))
            .body("bad", |job| assert!(job.number() < 4, "the fifth"));
    let Some(result) = run_bodies_or_skip(executive) else { return };
    let ending = result.outcome.ended_by.as_ref().expect("it was ended");
    assert_eq!((ending.cause, ending.task.as_deref(), ending.job), (EndCause::Crash, Some("bad"), Some(4)));
    assert!(ending.what.contains("panicked: the fifth"), "{ending}");
    let completed =
        result.records.iter().filter(|record| record.kind == Kind::Completion && record.task == 0);
    assert_eq!((completed.count(), result.outcome.tasks[0].completed), (4, 4));
    assert!(result.outcome.tasks[0].unfinished >= 1, "{:?}", result.outcome.tasks[0]);
}

/// Whoever decides, and wherever in a period the run ends: the job that is under way then completes, and is on record.
#[test]
fn the_job_under_way_at_the_end_completes() {
    let shadow = || task("t", 9, ms(10), ms(4));
    let demoted = || Task { overrun: OverrunPolicy::Demote, ..shadow() };
    let driven = || deferred("t", 9, ms(10), &[ms(2), ms(2)]);
    for (who, one) in [("the kernel", shadow()), ("demoted", demoted()), ("the agent", driven())] {
        for end in 30..=40 {
            let Some(result) = run_or_skip(&system(vec![one.clone()]), &options(ms(end))) else { return };
            let counts = &result.outcome.tasks[0];
            let jobs = if end == 30 { 3 } else { 4 };
            assert_eq!(
                (counts.jobs, counts.completed, counts.unfinished),
                (jobs, jobs, 0),
                "{who}, {end} ms"
            );
            let completed = result.records.iter().filter(|record| record.kind == Kind::Completion).count();
            assert_eq!(completed as u64, jobs, "{who}, {end} ms");
            assert!(result.closed_ns <= (end + 10) * 1_000_000 + 20_000_000, "{who}: {}", result.closed_ns);
        }
    }
}

/// A job that is not done when its deadline comes is missed; one whose deadline is beyond the grace is neither met nor missed.
#[test]
fn a_last_job_has_its_deadline_and_no_more_than_the_grace() {
    for (period, missed) in [(ms(20), 1), (ms(10_000), 0)] {
        let one = Task { overrun: OverrunPolicy::Demote, ..task("t", 9, period, ms(4)) };
        let run = Executive::new(system(vec![one])).options(options(ms(5)));
        let Some(result) = run_bodies_or_skip(run.body("t", |job| {
            while !job.is_run_over() {
                std::hint::black_box(0);
            }
        })) else {
            return;
        };
        let counts = &result.outcome.tasks[0];
        assert_eq!((counts.jobs, counts.unfinished, counts.missed), (1, 1, missed), "{period}");
    }
}
