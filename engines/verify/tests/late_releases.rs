//! How many releases the machine noticed, and how many of them later than its latency allows.

use horolog_model::{Arrival, CpuId, Cpus, Draft, Preemption, Priority, System, Task};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Thread};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, Sink};
use horolog_verify::{Options, Verification, Verifier};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn task(name: &str, priority: i64) -> Task {
    Task {
        name: name.to_owned(),
        arrival: Arrival::Periodic { period: Span::from_ns(10 * MS) },
        deadline: Some(Span::from_ns(10 * MS)),
        wcet: Span::from_ns(2 * MS),
        bcet: Span::from_ns(1),
        offset: None,
        jitter: Span::ZERO,
        priority: Some(Priority::new(priority)),
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: horolog_model::OverrunPolicy::Count,
        execution: horolog_model::ExecutionTimes::Wcet,
        promotion: None,
        sections: Vec::new(),
        criticality: None,
        is_soft: false,
        body: None,
    }
}

/// Two tasks of 10 ms on a processor that may notice a release 60 us late.
fn two() -> System {
    let mut draft = Draft { name: "late".to_owned(), ..Draft::default() };
    draft.tasks = vec![task("high", 2), task("low", 1)];
    draft.platform.cpus = Cpus::Count(1);
    draft.platform.release_latency = Some(Span::from_ns(60 * US));
    System::new(draft).expect("a right system")
}

fn at(time: u64, kind: Kind, task: u32, job: u64, value: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task, job, value, extra: 0 }
}

fn kernel(time: u64, kind: Kind, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
}

fn verified(records: &[Record]) -> Verification {
    let system = two();
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = "linux".to_owned();
    header.clock = "CLOCK_MONOTONIC".to_owned();
    let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("it is known");
    let thread = |tid: u32, comm: &str, task| Thread {
        id: tid.into(),
        tid,
        comm: comm.to_owned(),
        task,
        process: None,
    };
    verifier.set_threads(&[
        thread(0, "swapper/0", None),
        thread(1, "high", Some(0)),
        thread(2, "low", Some(1)),
    ]);
    records.iter().for_each(|record| verifier.record(*record));
    verifier.finish(0, None, Vec::new())
}

/// Of both tasks: releases that were noticed, and late ones.
fn counts(found: &Verification) -> [(u64, u64); 2] {
    [0, 1].map(|task| (found.tasks[task].releases_noticed, found.tasks[task].releases_late))
}

#[test]
fn a_release_is_late_from_the_first_nanosecond_beyond_the_latency_and_counts_once() {
    // On record before the wake-up or with it: a job has one release.
    let records = |late: u64, before: bool| {
        let recorded = if before { MS } else { MS + late + US };
        let mut records = vec![
            kernel(0, Kind::KernelSwitch, 0, 0),
            kernel(MS + late, Kind::KernelWakeup, 1, 0),
            kernel(MS + late + US, Kind::KernelSwitch, 0, 1),
            at(MS + late + US, Kind::Start, 0, 0, 0),
            at(2 * MS + late, Kind::Completion, 0, 0, 990 * US),
            kernel(2 * MS + late, Kind::KernelSwitch, 1, 0),
        ];
        records.insert(if before { 1 } else { 3 }, at(recorded, Kind::Release, 0, 0, MS));
        records
    };
    for before in [false, true] {
        let found = |late: u64| counts(&verified(&records(late, before)))[0];
        assert_eq!((found(60 * US), found(60 * US + 1)), ((1, 0), (1, 1)), "{before}");
    }
}

#[test]
fn one_stall_of_the_machine_is_one_late_release() {
    // Both arrive while the processor takes no interrupt until `end`, the second one at `second`.
    let stall = |end: u64, second: u64| {
        let ready = end.max(second);
        let records = [
            at(end, Kind::Release, 0, 0, MS),
            at(ready + 70 * US, Kind::Release, 1, 0, second),
            at(ready + 70 * US, Kind::Start, 0, 0, 0),
            at(end + MS, Kind::Completion, 0, 0, MS),
            at(end + MS, Kind::Start, 1, 0, 0),
            at(end + 2 * MS, Kind::Completion, 1, 0, MS),
        ];
        counts(&verified(&records))
    };
    let end = MS + 500 * US;
    assert_eq!(stall(end, MS), [(1, 1), (1, 0)]);
    assert_eq!(stall(end, end - 1), [(1, 1), (1, 0)]);
    assert_eq!(stall(end, end), [(1, 1), (1, 1)]);
}
