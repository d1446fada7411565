//! The alternatives that the comparison needs, the optional back end, and a machine that refuses.

use horolog_exec::{Backend, Executive, NonPreemptiveVariant, PointVariant, RunOptions};
use horolog_model::{Policy, Preemption, SegmentGraph};
use horolog_trace::Kind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod common;
use common::{ms, run_or_skip, system, system_with, task};

/// High priority jobs that would preempt the low one in its middle; the low one says when it runs.
fn intruder(variant: NonPreemptiveVariant, preemption: Preemption) -> Option<(u64, u64)> {
    let mut low = task("low", 1, ms(100), ms(30));
    low.preemption = preemption;
    let mut high = task("high", 9, ms(100), ms(2));
    high.offset = Some(ms(10));
    let system = system(vec![high, low]);
    let mut options = RunOptions::for_span(ms(380));
    options.non_preemptive = variant;
    // The probe of the thesis: set while the low job must not be interrupted.
    let inside = Arc::new(AtomicU64::new(0));
    let seen = Arc::new(AtomicU64::new(0));
    let ran = Arc::new(AtomicU64::new(0));
    let (inside_high, seen_high, ran_high) = (inside.clone(), seen.clone(), ran.clone());
    let run = Executive::new(system)
        .options(options)
        .body("high", move |_| {
            ran_high.fetch_add(1, Ordering::Relaxed);
            seen_high.fetch_add(inside_high.load(Ordering::Relaxed), Ordering::Relaxed);
        })
        .body("low", move |job| {
            inside.store(1, Ordering::Relaxed);
            while job.executed() < ms(25) && !job.must_end() {}
            inside.store(0, Ordering::Relaxed);
        })
        .run();
    match run {
        Ok(_) => Some((ran.load(Ordering::Relaxed), seen.load(Ordering::Relaxed))),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_variant_keeps_more_important_tasks_out() {
    let _alone = common::alone();
    for variant in
        [NonPreemptiveVariant::Flag, NonPreemptiveVariant::RaisePriority, NonPreemptiveVariant::SuspendHigher]
    {
        let Some((ran, inside)) = intruder(variant, Preemption::NonPreemptive) else { return };
        assert!(ran >= 3 && inside == 0, "{variant:?}: {ran} ran, {inside} inside");
    }
    // The same probe must fail where the low task is preemptive, or it proves nothing.
    let Some((_, inside)) = intruder(NonPreemptiveVariant::Flag, Preemption::Preemptive) else { return };
    assert!(inside >= 3, "{inside}");
}

#[test]
fn points_that_ask_the_kernel_yield_all_the_same() {
    let mut low = task("low", 1, ms(200), ms(60));
    low.preemption = Preemption::Deferred(SegmentGraph::sequence(&[ms(20), ms(20), ms(20)]));
    let mut high = task("high", 9, ms(200), ms(2));
    high.offset = Some(ms(5));
    let mut options = RunOptions::for_span(ms(390));
    options.points = PointVariant::StatusCall;
    let Some(result) = run_or_skip(&system(vec![high, low]), &options) else { return };
    assert_eq!(result.outcome.tasks[1].yields, 2, "{:?}", result.outcome.tasks[1]);
    assert_eq!(result.outcome.tasks[1].preemptions, 0);
}

#[test]
fn the_kernels_own_edf_runs_an_edf_system_or_says_why_not() {
    let tasks = |deadline| {
        let mut tasks = vec![task("a", 0, ms(20), ms(2)), task("b", 0, ms(50), ms(5))];
        for task in &mut tasks {
            task.priority = None;
        }
        tasks[1].deadline = Some(deadline);
        tasks
    };
    let mut options = RunOptions::for_span(ms(195));
    options.backend = Backend::Deadline;
    for (deadline, admitted) in [(ms(40), true), (ms(60), false)] {
        let mut draft = system(vec![task("x", 1, ms(100), ms(1))]).to_draft();
        draft.policy = Policy::Edf;
        draft.tasks = tasks(deadline);
        let Some(result) = run_or_skip(&system_with(draft), &options) else { return };
        println!("{:?}", result.outcome.notes);
        assert_eq!((result.outcome.tasks[0].jobs, result.outcome.tasks[1].jobs), (10, 4));
        let note = result.outcome.notes.iter().find(|note| note.contains("SCHED_DEADLINE")).expect("says so");
        if !admitted {
            assert!(note.contains("is not used") && note.contains("longer than its period"), "{note}");
        }
        let releases = result.records.iter().filter(|record| record.kind == Kind::Release).count();
        assert_eq!(releases, 14);
    }
}
