//! Small systems, records and what is expected of them.

use horolog_model::{
    Access, Arrival, Cpus, Draft, Preemption, Priority, Resource, Section, Segment, SegmentGraph, System,
    Task, TaskId,
};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Thread};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Check, Class, Options, Verdict, Verification, Verifier, verify_records};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn task(name: &str, period: u64, wcet: u64, priority: i64) -> Task {
    let arrival = Arrival::Periodic { period: Span::from_ns(period) };
    Task {
        bcet: Span::from_ns(1),
        priority: Some(Priority::new(priority)),
        ..Task::new(name, arrival, Span::from_ns(wcet))
    }
}

/// "high": 200 ns of every 1000; "low": 500 ns of every 2000; with what `change` alters.
pub(crate) fn short(change: impl Fn(&mut Draft)) -> System {
    built(vec![task("high", 1_000, 200, 2), task("low", 2_000, 500, 1)], change)
}

/// "high": 2 ms of every 10; "low": 5 ms of every 20; with what `change` alters.
pub(crate) fn long(change: impl Fn(&mut Draft)) -> System {
    built(vec![task("high", 10 * MS, 2 * MS, 2), task("low", 20 * MS, 5 * MS, 1)], change)
}

pub(crate) fn nothing(_: &mut Draft) {}

/// The classes of what a check found.
pub(crate) fn classes(result: &Verification, check: Check) -> Vec<Class> {
    result.findings.iter().filter(|one| one.check == check).map(|one| one.class).collect()
}

/// "low" has the processor when "high" arrives at 8 ms and is noticed `late`, and for `on` more; then it ends, or loses it.
pub(crate) fn running_on(late: u64, on: u64, completes: bool) -> Vec<Record> {
    let (wake, take) = (8 * MS + late, 8 * MS + late + on);
    let mut records = vec![
        switch(5 * MS, 0, 2),
        at(5 * MS, Kind::Release, 1, 0, 5 * MS),
        at(5 * MS, Kind::Start, 1, 0, 0),
        wakeup(wake, 1),
        at(wake, Kind::Release, 0, 0, 8 * MS),
    ];
    if completes {
        records.push(at(take, Kind::Completion, 1, 0, take - 5 * MS));
    }
    records.extend([
        switch(take, 2, 1),
        at(take, Kind::Start, 0, 0, 0),
        at(take + MS, Kind::Completion, 0, 0, MS),
        switch(take + MS, 1, 2),
    ]);
    records
}

fn built(tasks: Vec<Task>, change: impl Fn(&mut Draft)) -> System {
    let mut draft = Draft { name: "edges".to_owned(), tasks, ..Draft::default() };
    draft.platform.cpus = Cpus::Count(1);
    change(&mut draft);
    System::new(draft).expect("a right system")
}

/// Segments one after the other.
pub(crate) fn segments(lengths: &[u64]) -> Preemption {
    let segment = |(index, length): (usize, &u64)| Segment {
        name: format!("s{index}"),
        bcet: Span::from_ns(1),
        wcet: Span::from_ns(*length),
        next: if index + 1 < lengths.len() { vec![index + 1] } else { Vec::new() },
    };
    Preemption::Deferred(SegmentGraph { segments: lengths.iter().enumerate().map(segment).collect() })
}

/// "low" holds a resource for `length` once it has executed `from`; nobody else uses it.
pub(crate) fn section(draft: &mut Draft, from: u64, length: u64) {
    draft.resources.push(Resource { name: "bus".to_owned(), ..Resource::default() });
    let (from, length) = (Span::from_ns(from), Span::from_ns(length));
    draft.tasks[1].sections.push(Section { resource: "bus".to_owned(), from, length, access: Access::Write });
}

pub(crate) fn bound(task: u32, response: u64) -> Bound {
    Bound { task: TaskId(task), response: Span::from_ns(response), test: "by hand".to_owned(), exact: true }
}

pub(crate) fn at(time: u64, kind: Kind, task: u32, job: u64, value: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task, job, value, extra: 0 }
}

pub(crate) fn kernel(time: u64, kind: Kind, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
}

/// Threads: 0 idle, 1 and 2 the tasks', 3 a foreign one, 4 horolog's agent, 5 and 6 of tasks that are none.
pub(crate) fn switch(time: u64, from: u64, to: u64) -> Record {
    kernel(time, Kind::KernelSwitch, from, to)
}

pub(crate) fn wakeup(time: u64, thread: u64) -> Record {
    kernel(time, Kind::KernelWakeup, thread, 0)
}

/// A job that arrives, starts and ends without anybody else.
pub(crate) fn run(time: u64, task: u32, job: u64, length: u64) -> [Record; 3] {
    [
        at(time, Kind::Release, task, job, time),
        at(time, Kind::Start, task, job, 0),
        at(time + length, Kind::Completion, task, job, length),
    ]
}

pub(crate) fn header(system: &System, backend: &str) -> Header {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    header
}

pub(crate) fn simulated(system: &System, bounds: &[Bound], records: &[Record]) -> Verification {
    verify_records(system, bounds, &header(system, "sim"), records, &Options::default())
        .expect("it can be verified")
}

pub(crate) fn measured(system: &System, bounds: &[Bound], records: &[Record]) -> Verification {
    recorded(system, bounds, records, &header(system, "linux"))
}

pub(crate) fn recorded(
    system: &System,
    bounds: &[Bound],
    records: &[Record],
    header: &Header,
) -> Verification {
    let thread = |id: u32, comm: &str, task| Thread {
        id: id.into(),
        tid: id,
        comm: comm.to_owned(),
        task,
        process: None,
    };
    let mut verifier =
        Verifier::new(system, bounds, header, &Options::default()).expect("it can be verified");
    verifier.set_threads(&[
        thread(0, "swapper/0", None),
        thread(1, "high", Some(0)),
        thread(2, "low", Some(1)),
        thread(3, "burst", None),
        thread(4, "horolog-agent", None),
        thread(5, "stray", Some(7)),
        thread(6, "verge", Some(2)),
    ]);
    records.iter().for_each(|record| verifier.take(record));
    verifier.finish(0, None, Vec::new())
}

/// A finding: whose fault, by which check, on which task and job.
pub(crate) type Expected<'a> = (Class, Check, Option<&'a str>, Option<u64>);

pub(crate) fn of_job<'a>(class: Class, check: Check, task: &'a str, job: u64) -> Expected<'a> {
    (class, check, Some(task), Some(job))
}

#[track_caller]
pub(crate) fn holds(result: &Verification) {
    assert_eq!(result.findings, []);
    assert_eq!(result.verdict, Verdict::Holds);
}

#[track_caller]
pub(crate) fn finds(result: &Verification, expected: &[Expected<'_>]) {
    let found: Vec<Expected<'_>> =
        result.findings.iter().map(|one| (one.class, one.check, one.task.as_deref(), one.job)).collect();
    assert_eq!(found, expected, "{:#?}", result.findings);
    assert_ne!(result.verdict, Verdict::Holds);
}

/// The quantity may be `limit`; one unit more is the one finding `expected`.
#[track_caller]
pub(crate) fn edge(make: impl Fn(u64) -> Verification, limit: u64, expected: Expected<'_>) {
    let inside = make(limit);
    assert_eq!(inside.findings, [], "at the limit");
    assert_eq!(inside.verdict, Verdict::Holds);
    finds(&make(limit + 1), &[expected]);
}

/// The quantity has to be at least `least`; one unit less is the one finding `expected`.
#[track_caller]
pub(crate) fn edge_below(make: impl Fn(u64) -> Verification, least: u64, expected: Expected<'_>) {
    edge(|over| make(2 * least - over), least, expected);
}

/// At `limit` the first finding, one unit more the second.
#[track_caller]
pub(crate) fn turns(
    make: impl Fn(u64) -> Verification,
    limit: u64,
    first: Expected<'_>,
    second: Expected<'_>,
) {
    finds(&make(limit), &[first]);
    finds(&make(limit + 1), &[second]);
}

/// What the one finding says that it saw and what was allowed.
#[track_caller]
pub(crate) fn numbers(result: &Verification) -> (u64, u64) {
    let [one] = result.findings.as_slice() else { panic!("{:#?}", result.findings) };
    let number = |span: Option<Span>| span.expect("it has numbers").as_ns();
    (number(one.observed_ns), number(one.allowed_ns))
}
