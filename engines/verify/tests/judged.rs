//! Which jobs count as judged, with one job inside and one outside of each rule.

use horolog_model::{Arrival, Cpus, Draft, Priority, System, Task, TaskId};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Options, TaskVerification, Verdict, Verification, Verifier};

const MS: u64 = 1_000_000;

fn task(name: &str, period: u64, wcet: u64, priority: i64) -> Task {
    let arrival = Arrival::Periodic { period: Span::from_ns(period) };
    Task {
        bcet: Span::from_ns(1),
        priority: Some(Priority::new(priority)),
        ..Task::new(name, arrival, Span::from_ns(wcet))
    }
}

fn one() -> System {
    let mut draft = Draft { name: "judged".to_owned(), ..Draft::default() };
    draft.tasks = vec![task("high", 10 * MS, 2 * MS, 2)];
    draft.platform.cpus = Cpus::Count(1);
    System::new(draft).expect("a right system")
}

fn at(time: u64, kind: Kind, job: u64, value: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task: 0, job, value, extra: 0 }
}

fn of_machine(time: u64, kind: Kind, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
}

/// Job `number` of a task that has 2 ms of every 10.
fn job(number: u64) -> Vec<Record> {
    let time = number * 10 * MS;
    vec![
        at(time, Kind::Release, number, time),
        at(time, Kind::Start, number, 0),
        at(time + 2 * MS, Kind::Completion, number, 2 * MS),
    ]
}

fn verified(system: &System, bounds: &[Bound], backend: &str, records: &[Record], end: u64) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    let mut verifier = Verifier::new(system, bounds, &header, &Options::default()).expect("it is known");
    records.iter().for_each(|record| verifier.take(record));
    verifier.finish(end, None, Vec::new())
}

fn counts(task: &TaskVerification) -> (u64, u64, Vec<(&str, u64)>) {
    (task.released, task.judged, task.unjudged.iter().map(|one| (one.reason.as_str(), one.jobs)).collect())
}

#[test]
fn whole_jobs_are_judged_and_one_that_is_due_and_not_done_is_not() {
    let mut records: Vec<Record> = (0..3).flat_map(job).collect();
    let result = verified(&one(), &[], "sim", &records, 29 * MS);
    assert_eq!(counts(&result.tasks[0]), (3, 3, vec![]));
    // The third one does not end: its deadline is at 30 ms.
    records.pop();
    let result = verified(&one(), &[], "sim", &records, 30 * MS);
    assert_eq!(counts(&result.tasks[0]), (2, 2, vec![]), "it is not due yet");
    let result = verified(&one(), &[], "sim", &records, 30 * MS + 1);
    assert_eq!((result.tasks[0].judged, result.tasks[0].missed), (2, 1));
    assert!(counts(&result.tasks[0]).2.contains(&("not done at the end", 1)));
}

#[test]
fn jobs_that_the_clock_released_and_no_record_shows_are_not_judged() {
    let records: Vec<Record> = (0..3).flat_map(job).collect();
    let result = verified(&one(), &[], "sim", &records, 60 * MS);
    assert_eq!(counts(&result.tasks[0]), (6, 3, vec![("no record", 3)]));
}

/// Jobs 0 and 1, then `lost` jobs in a loss, then two more.
fn with_loss(lost: u64) -> Verification {
    let next = 2 + lost;
    let mut records: Vec<Record> = (0..2).flat_map(job).collect();
    records.push(of_machine(next * 10 * MS - MS, Kind::Lost, 3 * lost.max(1), 0));
    records.extend((next..next + 2).flat_map(job));
    verified(&one(), &[], "sim", &records, (next + 2) * 10 * MS - MS)
}

#[test]
fn jobs_in_a_lost_stretch_count_as_released_and_not_judged() {
    // The first one after it may have waited for one that no record shows; it starts, so for the next one all is known.
    assert_eq!(counts(&with_loss(0).tasks[0]), (4, 3, vec![("records lost", 1)]));
    assert_eq!(counts(&with_loss(1).tasks[0]), (5, 3, vec![("records lost", 2)]));
    assert_eq!(counts(&with_loss(7).tasks[0]), (11, 3, vec![("records lost", 8)]));
}

#[test]
fn a_job_that_was_under_way_at_a_loss_is_not_judged() {
    let mut records: Vec<Record> = (0..2).flat_map(job).collect();
    records.pop();
    records.push(of_machine(15 * MS, Kind::Lost, 1, 0));
    records.extend((2..4).flat_map(job));
    let result = verified(&one(), &[], "sim", &records, 39 * MS);
    assert_eq!(counts(&result.tasks[0]), (4, 2, vec![("records lost", 2)]));
}

#[test]
fn a_job_with_impossible_records_is_not_judged() {
    let mut records: Vec<Record> = (0..3).flat_map(job).collect();
    records.insert(4, at(10 * MS, Kind::Preempt, 1, 0));
    let result = verified(&one(), &[], "sim", &records, 29 * MS);
    assert_eq!(counts(&result.tasks[0]), (3, 2, vec![("the schedule differs", 1)]));
}

#[test]
fn of_a_late_job_with_a_loss_in_its_window_the_cause_cannot_be_told() {
    let mut records: Vec<Record> = (0..2).flat_map(job).collect();
    records.push(of_machine(19 * MS, Kind::Lost, 1, 0));
    records.extend((2..3).flat_map(job));
    let bound = |response| Bound {
        task: TaskId(0),
        response: Span::from_ns(response),
        test: "t".to_owned(),
        exact: true,
    };
    let result = verified(&one(), &[bound(2 * MS)], "sim", &records, 29 * MS);
    assert_eq!((result.bound_violated, result.cannot_tell), (0, 0));
    let result = verified(&one(), &[bound(2 * MS - 1)], "sim", &records, 29 * MS);
    assert_eq!((result.bound_violated, result.cannot_tell), (2, 1));
    // Without the first two only the last one is left.
    let result = verified(&one(), &[bound(2 * MS - 1)], "sim", &records[6..], 29 * MS);
    assert_eq!((result.bound_violated, result.cannot_tell), (0, 1));
    assert_eq!((result.verdict, result.exit_code(false)), (Verdict::Unknown, 1));
}
