//! The conformance suite on real threads: the kernel's own record shows the order that the scenarios demand.

use horolog_exec::RunOptions;
use horolog_sys::kernel_trace::{KernelEvent, KernelEventKind, Recorder, RecorderOptions};
use horolog_testkit::conformance::SCENARIOS;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::collections::HashMap;

mod common;
use common::{last_cpu, run_or_skip};

/// Each time a job got the processor, first or again: by the kernel's switches, and by the starts of jobs that follow
/// another of the same task without a switch.
fn switched_in(
    events: &[KernelEvent],
    records: &[Record],
    tasks: &HashMap<u32, u32>,
    origin: u64,
) -> Vec<(u32, u64)> {
    let switches = events.iter().filter_map(|event| {
        let KernelEventKind::Switch { next, .. } = event.kind else { return None };
        let (task, time) = (*tasks.get(&next.tid)?, event.time_ns.checked_sub(origin)?);
        let of_task = |kind| records.iter().filter(move |r| r.kind == kind && r.task == task);
        let completed = of_task(Kind::Completion).filter(|r| r.time.as_ns() < time).count() as u64;
        let released = of_task(Kind::Release).filter(|r| r.time.as_ns() <= time).count() as u64;
        // Waking to go home, or to sleep on, is no job.
        (completed < released).then_some((time, task, completed))
    });
    let starts = records.iter().filter(|r| r.kind == Kind::Start).map(|r| (r.time.as_ns(), r.task, r.job));
    let mut all: Vec<(u64, u32, u64)> = switches.chain(starts).collect();
    all.sort_unstable();
    let mut order: Vec<(u32, u64)> = all.into_iter().map(|(_, task, job)| (task, job)).collect();
    order.dedup();
    order
}

/// The same from horolog's own records, where the kernel cannot be recorded.
fn recorded(records: &[Record]) -> Vec<(u32, u64)> {
    let gets = |record: &&Record| matches!(record.kind, Kind::Start | Kind::Resume);
    records.iter().filter(gets).map(|record| (record.task, record.job)).collect()
}

#[test]
fn real_threads_follow_the_scenarios() {
    let mut skipped = 0;
    for scenario in SCENARIOS.iter().filter(|scenario| !scenario.exact) {
        let text = scenario.system(last_cpu().0);
        let (system, _) = horolog_model::file::read(&text, scenario.name, &[]).expect("a valid system");
        let mut kernel = RecorderOptions::new(vec![last_cpu().0]);
        kernel.interrupts = false;
        let recorder = Recorder::start(&kernel);
        let options = RunOptions::for_span(Span::from_ns(scenario.for_ms * 1_000_000));
        let Some(result) = run_or_skip(&system, &options) else { return };
        let by_kernel = recorder.and_then(Recorder::stop).map(|recording| {
            let tasks =
                result.threads.iter().filter_map(|thread| Some((thread.tid, thread.task?.0))).collect();
            switched_in(&recording.events, &result.records, &tasks, result.origin_ns)
        });
        let resumes = result.records.iter().any(|r| r.kind == Kind::Resume);
        let order = match by_kernel {
            Ok(order) => order,
            // Where the kernel decides, only the kernel knows when a preempted job went on.
            Err(error) if !resumes => {
                println!("SKIPPED: {}: {error}", scenario.name);
                skipped += 1;
                continue;
            }
            Err(_) => recorded(&result.records),
        };
        let named: Vec<(String, u64)> =
            order.iter().map(|&(task, job)| (system.tasks()[task as usize].name.clone(), job)).collect();
        if let Err(difference) = scenario.check(&named) {
            panic!("{difference}\nobserved {named:?}\nrecords {:#?}", result.records);
        }
        for &(task, yields) in scenario.yields {
            let outcome = result.outcome.tasks.iter().find(|outcome| outcome.name == task);
            assert_eq!(outcome.map(|outcome| outcome.yields), Some(yields), "{}", scenario.name);
        }
    }
    println!("{skipped} skipped");
}
