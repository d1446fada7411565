//! Small traces by hand, each with one thing wrong, and what verification makes of it.

use horolog_model::{
    Arrival, Cpus, Draft, Policy, Preemption, Priority, Segment, SegmentGraph, System, Task, TaskId,
};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Reader, Thread, Writer};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, Sink};
use horolog_verify::{Bound, Check, Class, Options, Verdict, Verification, Verifier, verify, verify_records};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn task(name: &str, period: u64, wcet: u64, priority: i64) -> Task {
    let arrival = Arrival::Periodic { period: Span::from_ns(period) };
    Task {
        bcet: Span::from_ns(1),
        priority: Some(Priority::new(priority)),
        ..Task::new(name, arrival, Span::from_ns(wcet))
    }
}

fn draft(tasks: Vec<Task>) -> Draft {
    let mut draft = Draft { name: "scenario".to_owned(), tasks, ..Draft::default() };
    draft.platform.cpus = Cpus::Count(1);
    draft
}

fn system(tasks: Vec<Task>) -> System {
    System::new(draft(tasks)).expect("a right system")
}

/// "high": 2 ms of every 10; "low": 5 ms of every 20.
fn two() -> Vec<Task> {
    vec![task("high", 10 * MS, 2 * MS, 2), task("low", 20 * MS, 5 * MS, 1)]
}

fn bound(task: u32, response: u64) -> Bound {
    Bound {
        task: TaskId(task),
        response: Span::from_ns(response),
        test: "fp-preemptive".to_owned(),
        exact: true,
    }
}

/// The exact response times of [`two`].
fn bounds() -> Vec<Bound> {
    vec![bound(0, 2 * MS), bound(1, 7 * MS)]
}

fn at(time: u64, kind: Kind, task: u32, job: u64, value: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task, job, value, extra: 0 }
}

fn kernel(time: u64, kind: Kind, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
}

fn header(system: &System, backend: &str) -> Header {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    header
}

fn simulated(system: &System, bounds: &[Bound], records: &[Record]) -> Verification {
    verify_records(system, bounds, &header(system, "sim"), records, &Options::default())
        .expect("it can be verified")
}

fn classes(verification: &Verification) -> Vec<(Class, Check)> {
    verification.groups.iter().map(|group| (group.class, group.check)).collect()
}

fn run(time: u64, task: u32, job: u64, length: u64) -> [Record; 3] {
    [
        at(time, Kind::Release, task, job, time),
        at(time, Kind::Start, task, job, 0),
        at(time + length, Kind::Completion, task, job, length),
    ]
}

/// One hyperperiod of [`two`], as a simulator records it.
fn good() -> Vec<Record> {
    let mut records = vec![
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(2 * MS, Kind::Completion, 0, 0, 2 * MS),
        at(2 * MS, Kind::Start, 1, 0, 0),
        at(7 * MS, Kind::Completion, 1, 0, 5 * MS),
    ];
    records.extend(run(10 * MS, 0, 1, 2 * MS));
    records
}

#[test]
fn a_right_trace_has_no_findings() {
    let system = system(two());
    let result = simulated(&system, &bounds(), &good());
    assert_eq!(result.findings, []);
    assert_eq!(result.verdict, Verdict::Holds);
    assert_eq!(result.exit_code(true), 0);
    assert!(result.complete);
    assert_eq!(result.tasks[1].response_ns_max, Some(Span::from_ns(7 * MS)));
    assert_eq!(result.tasks[1].margin_ns, Some(Span::ZERO));
    assert_eq!((result.tasks[0].jobs, result.tasks[0].completed), (2, 2));
    let applied = |check| result.checks.iter().find(|count| count.check == check).unwrap().applied;
    for check in
        [Check::Response, Check::Arrival, Check::Execution, Check::PriorityInversion, Check::EventOrder]
    {
        assert!(applied(check) > 0, "{check:?}");
    }
}

#[test]
fn a_wrong_wcet_is_a_violated_model_and_its_effects_are_attributed() {
    let system = system(two());
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        // 3 ms where the file says 2.
        at(3 * MS, Kind::Completion, 0, 0, 3 * MS),
        at(3 * MS, Kind::Start, 1, 0, 0),
        at(8 * MS, Kind::Completion, 1, 0, 5 * MS),
    ];
    let result = simulated(&system, &bounds(), &records);
    assert_eq!(result.verdict, Verdict::ModelViolated);
    assert_eq!(
        classes(&result),
        [
            (Class::ModelViolated, Check::Execution),
            (Class::ModelViolated, Check::Response),
            (Class::ModelViolated, Check::Response)
        ]
    );
    assert_eq!((result.tasks[1].exceeded, result.tasks[1].exceeded_by_model), (1, 1));
    assert_eq!(result.bound_violated, 0);
    assert_eq!(result.exit_code(false), 1);
    let overrun = result.findings.iter().find(|finding| finding.check == Check::Execution).unwrap();
    assert_eq!(
        (overrun.observed_ns, overrun.allowed_ns),
        (Some(Span::from_ns(3 * MS)), Some(Span::from_ns(2 * MS)))
    );
    assert!(
        overrun.message.contains("high job 0 executed for 3 ms, its wcet is 2 ms"),
        "{}",
        overrun.message
    );
}

#[test]
fn a_wrong_bound_is_a_violated_bound() {
    let system = system(two());
    let mut options = Options::default();
    options.bound_override = vec![(TaskId(1), Span::from_ns(6 * MS))];
    let result = verify_records(&system, &bounds(), &header(&system, "sim"), &good(), &options).unwrap();
    assert_eq!(classes(&result), [(Class::BoundViolated, Check::Response)]);
    assert_eq!(result.verdict, Verdict::BoundViolated);
    assert_eq!(result.exit_code(false), 1);
    assert!(result.findings[0].message.contains("(override) is 6 ms"), "{}", result.findings[0].message);
}

#[test]
fn a_small_overrun_does_not_excuse_a_wrong_bound() {
    let system = system(two());
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(2 * MS + 10, Kind::Completion, 0, 0, 2 * MS + 10),
        at(2 * MS + 10, Kind::Start, 1, 0, 0),
        at(7 * MS + 10, Kind::Completion, 1, 0, 5 * MS),
    ];
    let wrong = [bound(0, 3 * MS), bound(1, 6 * MS)];
    let result = simulated(&system, &wrong, &records);
    assert_eq!(
        classes(&result),
        [(Class::ModelViolated, Check::Execution), (Class::BoundViolated, Check::Response)]
    );
    let right = [bound(0, 3 * MS), bound(1, 7 * MS)];
    let result = simulated(&system, &right, &records);
    assert_eq!(
        classes(&result),
        [(Class::ModelViolated, Check::Execution), (Class::ModelViolated, Check::Response)]
    );
}

/// Threads: idle, the two tasks', a foreign one, horolog's agent.
fn threads() -> Vec<Thread> {
    let thread = |id, tid, comm: &str, task| Thread { id, tid, comm: comm.to_owned(), task, process: None };
    vec![
        thread(0, 0, "swapper/0", None),
        thread(1, 11, "high", Some(0)),
        thread(2, 12, "low", Some(1)),
        thread(3, 13, "burst", None),
        thread(4, 14, "horolog-agent", None),
    ]
}

fn measured(system: &System, bounds: &[Bound], records: &[Record], options: &Options) -> Verification {
    let mut header = header(system, "linux");
    header.clock = "CLOCK_MONOTONIC".to_owned();
    let mut verifier = Verifier::new(system, bounds, &header, options).expect("it can be verified");
    verifier.set_threads(&threads());
    records.iter().for_each(|record| verifier.record(*record));
    verifier.finish(0, None, Vec::new())
}

/// [`good`] as the kernel saw it, with `burst` in the middle of the low job, for `taken`.
fn with_burst(taken: u64) -> Vec<Record> {
    vec![
        kernel(0, Kind::KernelWakeup, 1, 0),
        kernel(0, Kind::KernelWakeup, 2, 0),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        kernel(3 * US, Kind::KernelSwitch, 0, 1),
        at(4 * US, Kind::Start, 0, 0, 0),
        at(1900 * US, Kind::Completion, 0, 0, 1890 * US),
        kernel(1905 * US, Kind::KernelSwitch, 1, 2),
        at(1906 * US, Kind::Start, 1, 0, 0),
        kernel(4000 * US, Kind::KernelSwitch, 2, 3),
        kernel(4000 * US + taken, Kind::KernelSwitch, 3, 2),
        at(6700 * US + taken, Kind::Completion, 1, 0, 4790 * US),
        kernel(6705 * US + taken, Kind::KernelSwitch, 2, 0),
    ]
}

#[test]
fn a_foreign_burst_is_a_disturbed_machine() {
    let system = system(two());
    let result = measured(&system, &bounds(), &with_burst(MS), &Options::default());
    assert_eq!(
        classes(&result),
        [(Class::MachineDisturbed, Check::Response), (Class::MachineDisturbed, Check::ForeignThread)]
    );
    assert_eq!(result.verdict, Verdict::MachineDisturbed);
    assert_eq!((result.exit_code(false), result.exit_code(true)), (0, 1));
    assert_eq!(result.tasks[1].exceeded_by_disturbance, 1);
    let foreign = result.findings.iter().find(|finding| finding.check == Check::ForeignThread).unwrap();
    assert_eq!(foreign.observed_ns, Some(Span::from_ns(MS)));
    assert!(foreign.message.contains("burst (thread 13)"), "{}", foreign.message);
    let late = result.findings.iter().find(|finding| finding.check == Check::Response).unwrap();
    assert!(late.evidence.iter().any(|e| e.what == "foreign threads" && e.amount_ns == Span::from_ns(MS)));
}

#[test]
fn nobody_is_blamed_for_the_time_before_a_switch_that_the_kernel_hid() {
    let system = system(two());
    // The way back from "burst" is not on record; the recorder places the doubt behind the last switch.
    let records: Vec<Record> = with_burst(0)
        .into_iter()
        .map(|record| match record.kind {
            Kind::KernelSwitch if record.value == 3 => {
                Record { kind: Kind::Lost, value: 1, extra: 2, ..record }
            }
            _ => record,
        })
        .collect();
    let result = measured(&system, &bounds(), &records, &Options::default());
    assert_eq!(classes(&result), []);
    assert_eq!(result.losses.total(), 1);
    // The jobs are judged all the same.
    assert_eq!(result.tasks.iter().map(|task| task.completed).sum::<u64>(), 2);
}

#[test]
fn a_foreign_thread_is_named_where_the_kernel_hid_the_switch_out_of_the_idle_task() {
    let system = system(two());
    let mut records = with_burst(0);
    records.retain(|record| record.time < at(4000 * US, Kind::Release, 0, 0, 0).time);
    records.extend([
        at(6700 * US, Kind::Completion, 1, 0, 4790 * US),
        kernel(6705 * US, Kind::KernelSwitch, 2, 0),
        // "burst" wakes on the idle processor; that it got it is not on record.
        kernel(9 * MS, Kind::KernelWakeup, 3, 0),
        at(10 * MS, Kind::Release, 0, 1, 10 * MS),
        kernel(10 * MS, Kind::KernelWakeup, 1, 0),
        Record { kind: Kind::Lost, value: 1, extra: 2, ..kernel(13 * MS, Kind::KernelSwitch, 3, 1) },
        kernel(13 * MS, Kind::KernelSwitch, 3, 1),
        at(13 * MS, Kind::Start, 0, 1, 0),
        at(14 * MS, Kind::Completion, 0, 1, MS),
        kernel(14 * MS, Kind::KernelSwitch, 1, 0),
    ]);
    let result = measured(&system, &bounds(), &records, &Options::default());
    let foreign = result.findings.iter().find(|finding| finding.check == Check::ForeignThread).unwrap();
    assert!(foreign.message.contains("burst (thread 13)"), "{}", foreign.message);
    assert_eq!(result.verdict, Verdict::MachineDisturbed);
}

#[test]
fn a_disturbance_does_not_excuse_a_bound_that_falls_without_it() {
    let system = system(two());
    let mut options = Options::default();
    // Undisturbed the low job answers after about 6.7 ms.
    options.bound_override = vec![(TaskId(1), Span::from_ns(6 * MS))];
    let result = measured(&system, &bounds(), &with_burst(MS), &options);
    assert!(classes(&result).contains(&(Class::BoundViolated, Check::Response)));
    options.bound_override = vec![(TaskId(1), Span::from_ns(6_750 * US))];
    let result = measured(&system, &bounds(), &with_burst(MS), &options);
    assert_eq!(result.bound_violated, 0);
}

#[test]
fn a_measured_overrun_is_told_from_interrupts() {
    let system = system(two());
    let job = |interrupted: u64| {
        let mut records = vec![
            kernel(0, Kind::KernelSwitch, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
        ];
        if interrupted > 0 {
            records.push(kernel(MS, Kind::InterruptEntry, 36, 0));
            records.push(kernel(MS + interrupted, Kind::InterruptExit, 36, 0));
        }
        records.push(at(2 * MS + 300 * US, Kind::Completion, 0, 0, 2 * MS + 300 * US));
        records.push(kernel(2 * MS + 310 * US, Kind::KernelSwitch, 1, 0));
        records
    };
    let result = measured(&system, &[], &job(0), &Options::default());
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::Execution)]);
    let result = measured(&system, &[], &job(310 * US), &Options::default());
    assert_eq!(
        classes(&result),
        [(Class::MachineDisturbed, Check::Execution), (Class::MachineDisturbed, Check::Interrupt)]
    );
    let result = measured(&system, &[], &job(100 * US), &Options::default());
    assert!(classes(&result).contains(&(Class::ModelViolated, Check::Execution)));
}

#[test]
fn stolen_time_that_is_accounted_late_still_counts() {
    let system = system(two());
    let mut records = vec![
        kernel(0, Kind::KernelSwitch, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(5 * MS, Kind::Completion, 0, 0, 5 * MS),
        kernel(5 * MS, Kind::KernelSwitch, 1, 0),
    ];
    let result = measured(&system, &bounds(), &records, &Options::default());
    assert_eq!(result.verdict, Verdict::ModelViolated);
    // 4 ms within the last 50, seen 40 ms after the job.
    records.push(kernel(45 * MS, Kind::Steal, 4 * MS, 50 * MS));
    let result = measured(&system, &bounds(), &records, &Options::default());
    // The job may have executed for as little as 1 ms: whether it was late by itself cannot be told.
    assert_eq!(
        classes(&result),
        [
            (Class::MachineDisturbed, Check::Execution),
            (Class::MachineDisturbed, Check::Steal),
            (Class::CannotTell, Check::Response)
        ]
    );
}

#[test]
fn a_late_release_is_a_disturbance_and_explains_the_response() {
    let system = system(two());
    let records = [
        kernel(0, Kind::KernelSwitch, 0, 0),
        kernel(500 * US, Kind::KernelWakeup, 1, 0),
        kernel(502 * US, Kind::KernelSwitch, 0, 1),
        at(505 * US, Kind::Release, 0, 0, 0),
        at(505 * US, Kind::Start, 0, 0, 0),
        at(2_400 * US, Kind::Completion, 0, 0, 1_890 * US),
    ];
    let result = measured(&system, &bounds(), &records, &Options::default());
    assert_eq!(
        classes(&result),
        [(Class::MachineDisturbed, Check::Release), (Class::MachineDisturbed, Check::Response)]
    );
    assert_eq!(result.tasks[0].release_latency_ns_max, Some(Span::from_ns(500 * US)));
    let mut draft = draft(two());
    draft.platform.release_latency = Some(Span::from_ns(500 * US));
    let system = System::new(draft).unwrap();
    let result = measured(&system, &[bound(0, 2_500 * US)], &records, &Options::default());
    assert_eq!(result.findings, []);
}

#[test]
fn a_late_switch_is_the_machines_and_running_on_is_not() {
    let system = system(two());
    // The low job runs; the high thread wakes at 10 ms.
    let until = |switch: u64, completes: bool| {
        let mut records = vec![
            kernel(5 * MS, Kind::KernelSwitch, 0, 2),
            at(5 * MS, Kind::Release, 1, 0, 5 * MS),
            at(5 * MS, Kind::Start, 1, 0, 0),
            kernel(8 * MS, Kind::KernelWakeup, 1, 0),
            at(8 * MS, Kind::Release, 0, 0, 8 * MS),
        ];
        if completes {
            records.push(at(switch, Kind::Completion, 1, 0, switch - 5 * MS));
        }
        records.extend([
            kernel(switch, Kind::KernelSwitch, 2, 1),
            at(switch, Kind::Start, 0, 0, 0),
            at(switch + MS, Kind::Completion, 0, 0, MS),
            kernel(switch + MS, Kind::KernelSwitch, 1, 2),
        ]);
        records
    };
    let found = |records: &[Record]| classes(&measured(&system, &[], records, &Options::default()));
    assert_eq!(found(&until(8 * MS + 15 * US, false)), []);
    assert_eq!(found(&until(8 * MS + 60 * US, false)), [(Class::MachineDisturbed, Check::PriorityInversion)]);
    assert_eq!(found(&until(9 * MS, false)), [(Class::MachineDisturbed, Check::PriorityInversion)]);
    assert_eq!(found(&until(9 * MS, true)), [(Class::ModelViolated, Check::PriorityInversion)]);
}

#[test]
fn a_release_on_record_before_its_wakeup_is_noticed_with_it() {
    let system = system(two());
    // As the executive records it: the release with its nominal arrival, the wake-up when the timer went off.
    let records = |late: u64| {
        vec![
            kernel(0, Kind::KernelSwitch, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(MS, Kind::Release, 0, 0, MS),
            kernel(MS + late, Kind::KernelWakeup, 1, 0),
            kernel(MS + late + 5 * US, Kind::KernelSwitch, 2, 1),
            at(MS + late + 6 * US, Kind::Start, 0, 0, 0),
            at(2 * MS + late, Kind::Completion, 0, 0, 990 * US),
            kernel(2 * MS + late, Kind::KernelSwitch, 1, 2),
        ]
    };
    let run = |late: u64| measured(&system, &[], &records(late), &Options::default());
    assert_eq!(run(10 * US).findings, []);
    let late = run(300 * US);
    assert_eq!(classes(&late), [(Class::MachineDisturbed, Check::Release)]);
    assert_eq!(late.tasks[0].release_latency_ns_max, Some(Span::from_ns(300 * US)));
}

#[test]
fn waiting_for_more_important_jobs_is_no_lateness() {
    let system = system(two());
    // Without wake-ups on record the low thread notes its release when it first runs.
    let records = [
        kernel(0, Kind::KernelSwitch, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(US, Kind::Start, 0, 0, 0),
        at(1900 * US, Kind::Completion, 0, 0, 1890 * US),
        kernel(1905 * US, Kind::KernelSwitch, 1, 2),
        at(1906 * US, Kind::Release, 1, 0, 0),
        at(1906 * US, Kind::Start, 1, 0, 0),
        at(6700 * US, Kind::Completion, 1, 0, 4790 * US),
        kernel(6705 * US, Kind::KernelSwitch, 2, 0),
    ];
    let result = measured(&system, &bounds(), &records, &Options::default());
    assert_eq!(result.findings, []);
}

#[test]
fn sleeping_within_a_job_is_a_violated_model() {
    let system = system(two());
    let records = [
        kernel(0, Kind::KernelSwitch, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        kernel(MS, Kind::KernelSwitch, 1, 0),
        kernel(3 * MS, Kind::KernelWakeup, 1, 0),
        kernel(3 * MS, Kind::KernelSwitch, 0, 1),
        at(4 * MS, Kind::Completion, 0, 0, 2 * MS),
        kernel(4 * MS, Kind::KernelSwitch, 1, 0),
    ];
    let result = measured(&system, &bounds(), &records, &Options::default());
    assert_eq!(result.verdict, Verdict::ModelViolated);
    assert!(classes(&result).contains(&(Class::ModelViolated, Check::SelfSuspension)));
}

#[test]
fn a_priority_inversion_is_found() {
    let system = system(two());
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(3 * MS, Kind::Release, 0, 0, 3 * MS),
        at(5 * MS, Kind::Completion, 1, 0, 5 * MS),
        at(5 * MS, Kind::Start, 0, 0, 0),
        at(7 * MS, Kind::Completion, 0, 0, 2 * MS),
    ];
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::PriorityInversion)]);
    assert_eq!(result.findings[0].observed_ns, Some(Span::from_ns(2 * MS)));
}

fn deferred() -> Vec<Task> {
    let mut tasks = two();
    let segment = |name: &str, wcet: u64, next: &[usize]| Segment {
        name: name.to_owned(),
        bcet: Span::from_ns(1),
        wcet: Span::from_ns(wcet),
        next: next.to_vec(),
    };
    let segments = vec![
        segment("scan", MS, &[1, 2]),
        segment("full", 3 * MS, &[3]),
        segment("crop", MS, &[3]),
        segment("merge", MS, &[]),
    ];
    tasks[1].preemption = Preemption::Deferred(SegmentGraph { segments });
    tasks[1].bcet = Span::from_ns(3);
    tasks
}

fn point(time: u64, job: u64, next: u64, waiting: u64) -> Record {
    Record { extra: waiting, ..at(time, Kind::PreemptionPoint, 1, job, next) }
}

#[test]
fn deferred_preemption_is_no_inversion_and_blocking_is_measured() {
    let system = system(deferred());
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        point(MS, 0, 1, 0),
        at(2 * MS, Kind::Release, 0, 0, 2 * MS),
        point(4 * MS, 0, 3, 1),
        at(4 * MS, Kind::Yield, 1, 0, 0),
        at(4 * MS, Kind::Start, 0, 0, 0),
        at(6 * MS, Kind::Completion, 0, 0, 2 * MS),
        at(6 * MS, Kind::Resume, 1, 0, 0),
        at(7 * MS, Kind::Completion, 1, 0, 5 * MS),
    ];
    let result = simulated(&system, &[], &records);
    assert_eq!(result.findings, []);
    assert_eq!(result.tasks[0].blocking_ns_max, Some(Span::from_ns(2 * MS)));
    assert_eq!(result.tasks[0].blocking_allowed_ns, Some(Span::from_ns(3 * MS)));
}

#[test]
fn passing_a_point_while_somebody_waits_is_an_inversion() {
    let system = system(deferred());
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        point(MS, 0, 1, 0),
        at(2 * MS, Kind::Release, 0, 0, 2 * MS),
        point(4 * MS, 0, 3, 1),
        at(5 * MS, Kind::Completion, 1, 0, 5 * MS),
        at(5 * MS, Kind::Start, 0, 0, 0),
        at(7 * MS, Kind::Completion, 0, 0, 2 * MS),
    ];
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::PriorityInversion)]);
    assert_eq!(result.findings[0].observed_ns, Some(Span::from_ns(MS)));
}

#[test]
fn branches_and_segments_are_held_to_the_graph() {
    let system = system(deferred());
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        // From scan to merge at once, and merge takes 2 ms where 1 is allowed.
        point(MS, 0, 3, 0),
        at(3 * MS, Kind::Completion, 1, 0, 3 * MS),
        at(20 * MS, Kind::Release, 1, 1, 20 * MS),
        at(20 * MS, Kind::Start, 1, 1, 0),
        // Ends in scan.
        at(21 * MS, Kind::Completion, 1, 1, MS),
    ];
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::Branch)]);
    assert_eq!(result.groups[0].count, 2);
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        point(2 * MS, 0, 2, 0),
        point(3 * MS, 0, 3, 0),
        at(4 * MS, Kind::Completion, 1, 0, 4 * MS),
    ];
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::SegmentExecution)]);
}

#[test]
fn a_non_preemptive_job_may_not_be_preempted() {
    let mut tasks = two();
    tasks[1].preemption = Preemption::NonPreemptive;
    let system = system(tasks);
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(MS, Kind::Release, 0, 0, MS),
        at(MS, Kind::Preempt, 1, 0, 0),
        at(MS, Kind::Start, 0, 0, 0),
        at(3 * MS, Kind::Completion, 0, 0, 2 * MS),
        at(3 * MS, Kind::Resume, 1, 0, 0),
        at(7 * MS, Kind::Completion, 1, 0, 5 * MS),
    ];
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::NonPreemption)]);
}

#[test]
fn equals_are_served_in_the_order_of_release() {
    let mut tasks = two();
    tasks[0].priority = Some(Priority::new(1));
    let system = system(tasks);
    let mut records = run(0, 0, 0, 2 * MS).to_vec();
    records.insert(2, at(MS, Kind::Release, 1, 0, MS));
    records.extend([at(2 * MS, Kind::Start, 1, 0, 0), at(7 * MS, Kind::Completion, 1, 0, 5 * MS)]);
    assert_eq!(simulated(&system, &[], &records).findings, []);
    let wrong = [
        at(0, Kind::Release, 1, 0, 0),
        at(MS, Kind::Release, 0, 0, MS),
        at(MS, Kind::Start, 0, 0, 0),
        at(3 * MS, Kind::Completion, 0, 0, 2 * MS),
        at(3 * MS, Kind::Start, 1, 0, 0),
        at(8 * MS, Kind::Completion, 1, 0, 5 * MS),
    ];
    let result = simulated(&system, &[], &wrong);
    let found = classes(&result);
    assert!(found.contains(&(Class::ModelViolated, Check::FirstInFirstOut)), "{found:?}");
    assert!(found.contains(&(Class::ModelViolated, Check::WorkConservation)), "{found:?}");
}

#[test]
fn edf_serves_the_earliest_deadline() {
    let mut parts = draft(two());
    parts.policy = Policy::Edf;
    parts.tasks.iter_mut().for_each(|task| task.priority = None);
    let system = System::new(parts).unwrap();
    assert_eq!(simulated(&system, &[], &good()).findings, []);
    let wrong = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(5 * MS, Kind::Completion, 1, 0, 5 * MS),
        at(5 * MS, Kind::Start, 0, 0, 0),
        at(7 * MS, Kind::Completion, 0, 0, 2 * MS),
    ];
    let result = simulated(&system, &[], &wrong);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::EarliestDeadlineFirst)]);
    // Deadline 10 ms after 7 ms of work: nothing was late.
    assert_eq!(result.tasks[0].missed, 0);
}

#[test]
fn arrivals_are_held_to_the_period() {
    let system = system(two());
    let mut records = run(0, 0, 0, 2 * MS).to_vec();
    records.extend(run(9 * MS, 0, 1, 2 * MS));
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::Arrival)]);
    assert!(result.findings[0].message.contains("1 ms too early"), "{}", result.findings[0].message);
    let mut late = run(0, 0, 0, MS).to_vec();
    late.push(at(11 * MS, Kind::Release, 0, 1, 10 * MS));
    late.push(at(11 * MS, Kind::Start, 0, 1, 0));
    late.push(at(12 * MS, Kind::Completion, 0, 1, MS));
    let result = simulated(&system, &[], &late);
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::Release)]);
}

#[test]
fn impossible_orders_are_found() {
    let system = system(two());
    for (records, part) in [
        (vec![at(0, Kind::Start, 0, 0, 0)], "no pending job"),
        (vec![at(0, Kind::Release, 0, 0, 0), at(0, Kind::Completion, 0, 0, MS)], "has not started"),
        (vec![at(0, Kind::Release, 0, 0, 0), at(10 * MS, Kind::Release, 0, 2, 10 * MS)], "job 1 comes next"),
        (vec![at(0, Kind::Release, 7, 0, 0)], "which the system does not have"),
        (vec![at(5, Kind::Release, 0, 0, 5), at(4, Kind::Start, 0, 0, 0)], "before the previous"),
    ] {
        let result = simulated(&system, &[], &records);
        let found = result.findings.iter().any(|f| f.check == Check::EventOrder && f.message.contains(part));
        assert!(found, "{part}: {:?}", result.findings);
    }
}

#[test]
fn a_miss_is_on_record_for_exactly_the_late_jobs() {
    let mut tasks = two();
    tasks[1].deadline = Some(Span::from_ns(5 * MS));
    let system = system(tasks);
    let late = |missed: bool| {
        let mut records = good();
        if missed {
            records.insert(5, at(5 * MS, Kind::Miss, 1, 0, 5 * MS));
        }
        records.extend([
            at(20 * MS, Kind::Release, 0, 2, 20 * MS),
            at(20 * MS, Kind::Release, 1, 1, 20 * MS),
            at(20 * MS, Kind::Start, 0, 2, 0),
            at(21 * MS, Kind::Completion, 0, 2, MS),
            at(21 * MS, Kind::Start, 1, 1, 0),
            at(22 * MS, Kind::Completion, 1, 1, MS),
        ]);
        records
    };
    let result = simulated(&system, &[], &late(true));
    assert_eq!((result.findings.len(), result.tasks[1].missed), (0, 1));
    let result = simulated(&system, &[], &late(false));
    assert_eq!(classes(&result), [(Class::ModelViolated, Check::Deadline)]);
}

#[test]
fn a_job_that_is_not_done_in_time_exceeds_its_bound_too() {
    let system = system(two());
    let mut records = vec![at(0, Kind::Release, 0, 0, 0), at(0, Kind::Start, 0, 0, 0)];
    records.push(at(5 * MS, Kind::Release, 1, 0, 5 * MS));
    let result = simulated(&system, &bounds(), &records);
    assert!(result.findings.iter().any(|f| f.check == Check::Response && f.job == Some(0)));
}

#[test]
fn losses_and_damage_are_part_of_the_verdict() {
    let system = system(two());
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header(&system, "sim")).unwrap();
    good().into_iter().take(3).for_each(|record| writer.record(record));
    writer.lost(Instant::from_ns(5 * MS), 0, 0, 17);
    run(10 * MS, 0, 1, 2 * MS).into_iter().for_each(|record| writer.record(record));
    writer.finish(Instant::from_ns(20 * MS)).unwrap();
    let result =
        verify(&system, &bounds(), &mut Reader::new(bytes.as_slice()).unwrap(), &Options::default()).unwrap();
    assert_eq!(result.findings, []);
    assert!(!result.complete && result.losses.horolog == 17);
    assert_eq!((result.exit_code(false), result.exit_code(true)), (0, 1));
    assert!(result.notes.iter().any(|note| note.contains("17 records were lost")));

    bytes.truncate(bytes.len() - 40);
    let result =
        verify(&system, &bounds(), &mut Reader::new(bytes.as_slice()).unwrap(), &Options::default()).unwrap();
    assert!(!result.complete && result.damage.is_some());
}

#[test]
fn a_trace_of_other_tasks_is_refused() {
    let one = system(vec![task("other", MS, US, 1)]);
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, &header(&one, "sim")).unwrap().finish(Instant::ZERO).unwrap();
    let error = verify(&system(two()), &[], &mut Reader::new(bytes.as_slice()).unwrap(), &Options::default())
        .unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("other tasks"), "{error}");
}

/// A job of "low" that executes 8.9 ms instead of 5 by the thread's clock, with timer interrupts as given.
fn with_ticks(ticks: &[u64]) -> Verification {
    let system = system(two());
    let mut header = header(&system, "linux");
    header.machine.insert("tick_hz".to_owned(), "250".to_owned());
    let mut records = vec![
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(9 * MS, Kind::Completion, 1, 0, 9 * MS - 100 * US),
    ];
    for tick in ticks {
        records.push(kernel(*tick, Kind::InterruptEntry, 236, 1));
        records.push(kernel(*tick + 2 * US, Kind::InterruptExit, 236, 1));
    }
    records.sort_by_key(|record| record.time);
    verify_records(&system, &[bound(0, 2 * MS), bound(1, 20 * MS)], &header, &records, &Options::default())
        .expect("it can be verified")
}

#[test]
fn a_late_tick_shows_that_the_machine_stood_still() {
    // The tick of 4 ms comes, that of 8 ms comes at 8: the job itself executed too long.
    let in_time = with_ticks(&[MS, 5 * MS, 9 * MS - 10 * US]);
    assert!(classes(&in_time).contains(&(Class::ModelViolated, Check::Execution)), "{in_time:?}");
    // No tick between 1 ms and 9 ms: 4 ms of the 8 the processor did not run.
    let late = with_ticks(&[MS, 9 * MS - 10 * US]);
    assert_eq!(late.model_violated, 0, "{late:?}");
    assert!(classes(&late).contains(&(Class::MachineDisturbed, Check::Steal)), "{late:?}");
}

/// 200 jobs of a lone task of 2 ms; the first `over` of them execute `excess` longer.
fn with_excess(over: u64, excess: u64, machine: &str) -> Verification {
    let system = system(vec![task("lone", 10 * MS, 2 * MS, 1)]);
    let mut header = header(&system, "linux");
    header.machine.insert("tick_hz".to_owned(), "250".to_owned());
    header.machine.insert("virtual".to_owned(), machine.to_owned());
    let length = |job| 2 * MS + if job < over { excess } else { 0 };
    let records: Vec<Record> = (0..200).flat_map(|job| run(job * 10 * MS, 0, job, length(job))).collect();
    verify_records(&system, &[bound(0, 9 * MS)], &header, &records, &Options::default())
        .expect("it can be verified")
}

#[test]
fn a_pause_that_leaves_no_trace_is_rare_and_short_and_of_a_virtual_machine() {
    let verdict = |over, excess, machine: &str| with_excess(over, excess, machine).verdict;
    assert_eq!(verdict(2, 900 * US, "yes"), Verdict::MachineDisturbed);
    assert_eq!(verdict(3, 900 * US, "yes"), Verdict::ModelViolated, "too often");
    assert_eq!(verdict(2, 1_100 * US, "yes"), Verdict::Unknown, "between two ticks");
    assert_eq!(verdict(3, 1_100 * US, "yes"), Verdict::ModelViolated, "too often");
    assert_eq!(
        verdict(2, 5_000 * US + 5_001, "yes"),
        Verdict::ModelViolated,
        "longer than any that makes no tick late"
    );
    assert_eq!(verdict(2, 1_100 * US, "no sign of it"), Verdict::ModelViolated, "real hardware");
    assert_eq!(verdict(2, 900 * US, "no sign of it"), Verdict::ModelViolated, "real hardware");
    assert_eq!(with_excess(2, 900 * US, "yes").machine_disturbed, 2);
}
