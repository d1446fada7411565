//! What the result counts: jobs set aside and judged, jobs that a loss hides, applications of a check, blocking, evidence.

use crate::traces::*;
use horolog_model::{Arrival, Cpus, Preemption};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Options, Verification};

fn applied(result: &Verification, check: Check) -> u64 {
    result.checks.iter().find(|one| one.check == check).map_or(0, |one| one.applied)
}

/// Judged jobs of a task, and how many were not since another schedule is on record.
fn judged(result: &Verification, task: usize) -> (u64, u64) {
    let one = &result.tasks[task];
    let differs = one.unjudged.iter().filter(|one| one.reason == "the schedule differs").map(|one| one.jobs);
    (one.judged, differs.sum())
}

fn evidence(result: &Verification, check: Check) -> Vec<(String, u64)> {
    let found = result.findings.iter().find(|one| one.check == check).expect("it is found");
    found.evidence.iter().map(|one| (one.what.clone(), one.amount_ns.as_ns())).collect()
}

/// Nobody less important than "low" can keep it waiting, nor can a job that may be preempted anywhere.
#[test]
fn without_stretches_no_blocking_is_allowed() {
    for cpus in [1, 2] {
        let system = short(|draft| draft.platform.cpus = Cpus::Count(cpus));
        let result = simulated(&system, &[], &run(0, 0, 0, 200));
        let allowed: Vec<_> = result.tasks.iter().map(|task| task.blocking_allowed_ns).collect();
        assert_eq!(allowed, [Some(Span::ZERO); 2]);
    }
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let result = simulated(&system, &[], &run(0, 0, 0, 200));
    let allowed: Vec<_> = result.tasks.iter().map(|task| task.blocking_allowed_ns).collect();
    assert_eq!(allowed, [Some(Span::from_ns(500)), Some(Span::ZERO)]);
}

/// The overrun policy asks a job to end: that it then executes less than the bcet shows nothing wrong of the bcet.
#[test]
fn a_job_that_was_asked_to_end_is_not_held_to_the_bcet() {
    let system = long(|draft| draft.tasks[0].bcet = Span::from_ns(MS));
    let make = |is_asked: bool, length: u64| {
        let mut records = run(0, 0, 0, length).to_vec();
        if is_asked {
            records.insert(2, Record { extra: 1, ..at(length / 2, Kind::Enforcement, 0, 0, 0) });
        }
        measured(&system, &[], &records).tasks[0].below_bcet
    };
    assert_eq!((make(false, MS), make(false, MS - 1)), (0, 1));
    assert_eq!((make(true, MS), make(true, MS - 1)), (0, 0));
}

/// Another application that falls silent: each period without a job is one of which there is no record.
#[test]
fn periods_without_a_job_at_the_end_of_a_foreign_trace_are_not_judged() {
    let system = long(|draft| {
        draft.tasks[0].arrival = Arrival::Periodic { period: Span::from_ns(10 * MS) };
        draft.tasks[0].jitter = Span::from_ns(2 * MS);
        draft.platform.release_latency = Some(Span::ZERO);
    });
    let counted = |end: u64| {
        let mut records: Vec<Record> = (0..3).flat_map(|job| run((1 + job) * 10 * MS, 0, job, MS)).collect();
        records.push(wakeup(end, 3));
        let found = recorded(&system, &[], &records, &header(&system, "foreign"));
        let silent =
            found.tasks[0].unjudged.iter().filter(|one| one.reason == "no record").map(|one| one.jobs);
        assert_eq!(found.findings, []);
        (found.tasks[0].released, silent.sum::<u64>())
    };
    let late = 42 * MS + Options::default().tolerance.stamping.as_ns();
    assert_eq!([late, late + 1].map(counted), [(3, 0), (4, 1)]);
    assert_eq!([late + 10 * MS, late + 10 * MS + 1].map(counted), [(4, 1), (5, 2)]);
    assert_eq!(counted(late + 990 * MS), (102, 99));
}

/// What of a job that is under way at the end its thread has executed is held against its wcet, and counts as that.
#[test]
fn a_job_that_is_under_way_at_the_end_is_one_application() {
    let mut records = vec![switch(0, 0, 1)];
    records.extend(&run(0, 0, 0, MS)[..2]);
    records.push(kernel(MS, Kind::SoftirqExit, 1, 0));
    assert_eq!(applied(&measured(&long(nothing), &[], &records), Check::Execution), 1);
    // Without the kernel's record it is not known.
    assert_eq!(applied(&measured(&long(nothing), &[], &records[1..]), Check::Execution), 0);
}

/// Evidence is what was there; what took no time is none.
#[test]
fn an_execution_that_nothing_explains_has_no_evidence() {
    let executed = 2 * MS + 5 * US + 1;
    let alone = measured(&long(nothing), &[], &run(0, 0, 0, executed));
    finds(&alone, &[of_job(ModelViolated, Check::Execution, "high", 0)]);
    assert_eq!(evidence(&alone, Check::Execution), []);
    let mut records = run(0, 0, 0, executed).to_vec();
    records.insert(2, kernel(MS, Kind::InterruptEntry, 36, 0));
    records.insert(3, kernel(MS + 40 * US, Kind::InterruptExit, 36, 0));
    let beside = measured(&long(nothing), &[], &records);
    finds(&beside, &[of_job(MachineDisturbed, Check::Execution, "high", 0)]);
    assert_eq!(evidence(&beside, Check::Execution), [("interrupts".to_owned(), 40 * US)]);
}

/// Who runs and who waits against the policy has no schedule of the system's rules; where the kernel was late, both have.
#[test]
fn both_jobs_of_an_inversion_are_set_aside_unless_it_is_the_machines() {
    let make = |until: u64| {
        [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(100, Kind::Release, 0, 0, 100),
            at(until, Kind::Preempt, 1, 0, 0),
            at(until, Kind::Start, 0, 0, 0),
            at(until + 200, Kind::Completion, 0, 0, 200),
            at(until + 200, Kind::Resume, 1, 0, 0),
            at(until + 300, Kind::Completion, 1, 0, until + 100),
        ]
    };
    let result = simulated(&short(nothing), &[], &make(100));
    assert_eq!([judged(&result, 0), judged(&result, 1)], [(1, 0); 2]);
    let result = simulated(&short(nothing), &[], &make(101));
    assert_eq!([judged(&result, 0), judged(&result, 1)], [(0, 1); 2]);
    // 20 us are allowed and 100 more are the machine's.
    let late = |by: u64| {
        let mut records = make(100).to_vec();
        for (place, record) in records.iter_mut().enumerate() {
            let time = [0, 0, MS, MS + by, MS + by, 2 * MS + by, 2 * MS + by, 3 * MS][place];
            record.time = horolog_time::Instant::from_ns(time);
        }
        (records[2].value, records[5].value, records[7].value) = (MS, MS, 2 * MS);
        let result = measured(&long(nothing), &[], &records);
        [judged(&result, 0), judged(&result, 1)]
    };
    assert_eq!(late(120 * US), [(1, 0); 2]);
}

/// Of a task of which nothing is seen after a loss, the jobs count that the clock has released since the last one.
#[test]
fn jobs_between_the_last_one_and_a_loss_count_as_lost() {
    let mut records = run(0, 0, 0, 200).to_vec();
    records.extend(run(1_000, 0, 1, 200));
    // Four are due by 5,000; the one that is due there and those behind it are missing.
    records.push(kernel(5_000, Kind::Lost, 9, 0));
    records.push(kernel(9_500, Kind::KernelWakeup, 3, 0));
    let system = short(nothing);
    let mut verifier = horolog_verify::Verifier::new(
        &system,
        &[],
        &header(&system, "sim"),
        &horolog_verify::Options::default(),
    )
    .expect("it can be verified");
    records.iter().for_each(|record| verifier.take(record));
    let result = verifier.finish(9_500, None, Vec::new());
    let high = &result.tasks[0];
    let unjudged: Vec<_> = high.unjudged.iter().map(|one| (one.reason.as_str(), one.jobs)).collect();
    assert_eq!((high.released, high.judged, unjudged), (10, 2, vec![("records lost", 4), ("no record", 4)]));
}

/// After a loss nobody is known to hold a resource: whoever locks it next takes it from nobody.
#[test]
fn a_resource_has_no_holder_after_a_loss() {
    let system = short(|draft| section(draft, 10, 20));
    let locks = |time: u64, job: u64| {
        let of = |after: u64, kind| at(time + after, kind, 1, job, 0);
        let [release, start, end] = run(time, 1, job, 500);
        [release, start, of(10, Kind::Lock), of(30, Kind::Unlock), end]
    };
    let mut records = locks(0, 0)[..3].to_vec();
    records.push(kernel(20, Kind::Lost, 2, 0));
    records.extend(locks(2_000, 1));
    assert_eq!(simulated(&system, &[], &records).findings, []);
    // Nor is it known how much a job had executed when it locked.
    let place = records.len() - 3;
    records[place].time = horolog_time::Instant::from_ns(2_011);
    assert_eq!(simulated(&system, &[], &records).findings, []);
    finds(
        &simulated(&system, &[], &[&locks(0, 0)[..], &records[4..]].concat()),
        &[of_job(ModelViolated, Check::Resource, "low", 1)],
    );
}

/// A job that its policy, or a mode, has dropped has the processor no more, and its busy window is over.
#[test]
fn a_dropped_job_leaves_the_processor_and_its_window() {
    let dropped = |from: u64| Record { extra: 4, ..at(from, Kind::Enforcement, 0, 0, 0) };
    let make = |next: u64| {
        let mut records = run(0, 0, 0, 200)[..2].to_vec();
        records.insert(1, at(0, Kind::Release, 1, 0, 0));
        records.push(dropped(200));
        records.push(at(next, Kind::Start, 1, 0, 0));
        records.push(at(next + 100, Kind::Completion, 1, 0, 100));
        simulated(&short(nothing), &[], &records)
    };
    assert_eq!(make(200).findings, []);
    finds(&make(201), &[of_job(ModelViolated, Check::WorkConservation, "low", 0)]);
    // Ready too late, dropped, and the next one beyond its bound: that one's window holds nothing that explains it.
    let mut records = run(100, 0, 0, 200)[..2].to_vec();
    records[0].value = 0;
    records.push(dropped(300));
    records.extend(run(1_000, 0, 1, 200));
    let result = simulated(&short(nothing), &[bound(0, 199)], &records);
    assert_eq!(evidence(&result, Check::Response), []);
}

/// Jobs count from number 0 on, also where the first ones are in a loss.
#[test]
fn jobs_before_the_first_one_seen_count_as_lost() {
    let make = |number: u64| {
        let mut records = vec![kernel(500, Kind::Lost, 9, 0)];
        records.extend(run(number * 1_000, 0, number, 200));
        let high = simulated(&short(nothing), &[], &records).tasks[0].clone();
        (high.released, high.unjudged.iter().map(|one| one.jobs).sum::<u64>())
    };
    // The first one that is seen after a loss may have waited for one that is not.
    assert_eq!([make(1), make(3)], [(2, 2), (4, 4)]);
}

/// The findings of a class are those of that class.
#[test]
fn findings_are_told_apart_by_class() {
    let mut records = run(0, 0, 0, 2 * MS + 6 * US).to_vec();
    records.push(kernel(5 * MS, Kind::Steal, MS, MS));
    let result = measured(&long(nothing), &[], &records);
    let of = |class| result.of_class(class).map(|one| one.check).collect::<Vec<_>>();
    assert_eq!((of(ModelViolated), of(MachineDisturbed)), (vec![Check::Execution], vec![Check::Steal]));
}

/// The horizon of a simulation says when jobs are released: what happens to them later is judged as what happens before.
#[test]
fn a_simulated_trace_is_judged_beyond_its_horizon() {
    let system = short(nothing);
    let mut head = header(&system, "sim");
    head.horizon = Span::from_ns(1_000);
    let make = |start: u64| {
        let records = [
            at(1_000, Kind::Release, 0, 0, 1_000),
            at(start, Kind::Start, 0, 0, 0),
            at(1_300, Kind::Completion, 0, 0, 1_300 - start),
        ];
        let result = recorded(&system, &[], &records, &head);
        result.findings.iter().filter(|one| one.check == Check::WorkConservation).count()
    };
    assert_eq!((make(1_000), make(1_001)), (0, 1));
}

/// A note speaks of pauses of the host where one was seen, and of none where none was.
#[test]
fn a_healthy_run_on_a_virtual_machine_has_no_note_of_pauses() {
    let system = long(nothing);
    let mut head = header(&system, "linux");
    head.machine.insert("virtual".to_owned(), "yes".to_owned());
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    let result = recorded(&system, &[], &run(0, 0, 0, MS), &head);
    assert!(!result.notes.iter().any(|note| note.contains("blamed on the host")), "{:?}", result.notes);
}

/// Promotions are of dual priority alone: without it the more important job waits, whatever is told of another one.
#[test]
fn a_promotion_without_two_bands_lifts_nobody() {
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Promotion, 1, 0, 0),
        at(50, Kind::Start, 0, 0, 0),
        at(250, Kind::Completion, 0, 0, 200),
        at(250, Kind::Start, 1, 0, 0),
        at(750, Kind::Completion, 1, 0, 500),
    ];
    let result = simulated(&short(nothing), &[], &records);
    finds(&result, &[of_job(ModelViolated, Check::WorkConservation, "high", 0)]);
}
