//! How many releases the machine noticed, and how many of them later than its latency allows.

use horolog_model::{Arrival, CpuId, Cpus, Draft, Preemption, Priority, System, Task};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Thread};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, Sink};
use horolog_verify::{Check, Class, Options, Verification, Verifier};

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
    verified_of(&two(), records)
}

fn verified_of(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = "linux".to_owned();
    header.clock = "CLOCK_MONOTONIC".to_owned();
    let mut verifier = Verifier::new(system, &[], &header, &Options::default()).expect("it is known");
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

/// The agent serves tasks that cannot be preempted: the record of a release has the instant at which the job was ready, and the timer
/// interrupt by which the agent notices it comes when it comes.
#[test]
fn a_late_timer_interrupt_is_a_finding_where_a_job_missed_behind_it() {
    const LOCAL_TIMER: u64 = 1;
    let mut draft = two().to_draft();
    draft.tasks.iter_mut().for_each(|task| task.preemption = Preemption::NonPreemptive);
    let system = System::new(draft).expect("a right system");
    let found = |timer: u64, end: u64| {
        let records = [
            kernel(0, Kind::KernelSwitch, 0, 0),
            at(MS, Kind::Release, 0, 0, MS),
            kernel(timer, Kind::InterruptEntry, 236, LOCAL_TIMER),
            kernel(timer + US, Kind::InterruptExit, 236, LOCAL_TIMER),
            kernel(timer + 2 * US, Kind::KernelSwitch, 0, 1),
            at(timer + 3 * US, Kind::Start, 0, 0, 0),
            at(end, Kind::Completion, 0, 0, end - timer - 3 * US),
            kernel(end, Kind::KernelSwitch, 1, 0),
        ];
        let found = verified_of(&system, &records);
        let findings = found.findings.iter().filter(|finding| finding.check == Check::Divergence);
        findings.map(|finding| (finding.class, finding.message.clone())).collect::<Vec<_>>()
    };
    let late = "the timer interrupt that releases high job 0 came 8.5 ms late on CPU 0, 80 us are allowed";
    let at_timer = 9 * MS + 500 * US;
    assert_eq!(found(at_timer, 11 * MS + 1), [(Class::MachineDisturbed, late.to_owned())]);
    assert_eq!(found(at_timer, 11 * MS), [], "in time");
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
