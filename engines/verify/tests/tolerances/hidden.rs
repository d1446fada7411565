//! Switches that the kernel's record hides: each evidence with one trace that is one unit inside its tolerance, all of it judged, and with one that is
//! one unit outside, whose job is not judged.

use crate::traces::*;
use horolog_model::{CpuId, Cpus};
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Class, Verification};

const S: u64 = 20 * US;
const E: u64 = 5 * US;

fn told(time: u64) -> Record {
    Record { extra: 2, ..kernel(time, Kind::Lost, 1, 0) }
}

/// Judged jobs of a task, those with a hidden switch, and hidden stretches of its processor with their length.
fn counts(result: &Verification, task: usize) -> (u64, u64, u64, u64) {
    let one = &result.tasks[task];
    let hidden = one.unjudged.iter().filter(|one| one.reason == "hidden switch").map(|one| one.jobs).sum();
    let of =
        |which: fn(&horolog_verify::ProcessorVerification) -> u64| result.processors.iter().map(which).sum();
    (one.judged, hidden, of(|cpu| cpu.hidden_switches), of(|cpu| cpu.hidden_ns.as_ns()))
}

/// A job of "high" from 1 ms on that executes for 1 ms, between switches of the idle task.
fn job(more: &[Record]) -> Vec<Record> {
    let mut records = vec![
        switch(0, 0, 0),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
        switch(MS, 0, 1),
        at(MS, Kind::Start, 0, 0, 0),
        at(2 * MS, Kind::Completion, 0, 0, MS),
        switch(2 * MS, 1, 0),
    ];
    records.extend(more);
    records.sort_by_key(|record| record.time);
    records
}

fn verified(records: &[Record]) -> Verification {
    measured(&long(nothing), &[], records)
}

#[test]
fn a_switch_from_another_thread_than_had_come() {
    assert_eq!(counts(&verified(&job(&[])), 0), (1, 0, 0, 0));
    // Foreign threads change before the job: its busy window holds so much of the stretch.
    let make = |until: u64| {
        let mut records = job(&[]);
        records[0] = switch(0, 0, 4);
        records.insert(1, switch(500 * US, 3, 4));
        records[4] = switch(MS + until, if until > 0 { 3 } else { 4 }, 1);
        records[5].time = records[4].time;
        records.sort_by_key(|record| record.time);
        verified(&records)
    };
    assert_eq!(counts(&make(0), 0), (1, 0, 1, 500 * US));
    assert_eq!(counts(&make(S), 0), (1, 0, 2, MS + S));
    assert_eq!(counts(&make(S + 1), 0), (0, 1, 2, MS + S + 1));
}

#[test]
fn a_hidden_switch_that_the_recorder_tells_of() {
    // Within the job: from the switch to it on.
    let records = job(&[switch(1_500 * US, 3, 1)]);
    let mut records: Vec<Record> = records;
    records.insert(4, told(MS));
    let result = verified(&records);
    assert_eq!(counts(&result, 0), (0, 1, 1, 500 * US));
    assert_eq!(result.findings, []);
    // Behind it, and none of the job's concern.
    let mut behind = job(&[switch(9 * MS, 3, 0)]);
    behind.push(behind[behind.len() - 1]);
    let place = behind.len() - 2;
    behind.insert(place, told(2 * MS));
    assert_eq!(counts(&verified(&behind), 0).1, 0);
}

#[test]
fn the_idle_processor_goes_to_the_thread_that_wakes_and_leaves_it() {
    // The switch from the idle task to "high" is hidden, and told of at the idle task's beginning.
    let mut records = job(&[]);
    records.remove(3);
    records.insert(1, told(0));
    let result = verified(&records);
    assert_eq!(counts(&result, 0), (1, 0, 0, 0));
    holds(&result);
    // Another thread leaves than woke: nothing is known since the switch to the idle task.
    let mut records = job(&[]);
    (records[3], records[6]) = (told(0), switch(2 * MS, 3, 0));
    records.sort_by_key(|record| record.time);
    assert_eq!(counts(&verified(&records), 0), (0, 1, 1, 2 * MS));
}

#[test]
fn a_real_time_thread_takes_the_processor_when_it_wakes() {
    // From "burst" an unseen thread got it, and from that one the job's thread, whose switch is hidden.
    let make = |woken: u64| {
        let mut records = job(&[]);
        (records[0], records[1], records[3]) = (switch(0, 0, 3), wakeup(MS + woken, 1), told(0));
        records.sort_by_key(|record| record.time);
        verified(&records)
    };
    assert_eq!(counts(&make(0), 0), (1, 0, 1, MS));
    assert_eq!(counts(&make(S), 0).1, 0);
    assert_eq!(counts(&make(S + 1), 0).1, 1);
}

#[test]
fn an_order_of_jobs_in_doubt_is_judged_once_it_is_explained() {
    // "low" wakes first on the idle processor, and runs on while "high" is ready.
    let make = |leaves: u64| {
        let records = [
            switch(0, 0, 0),
            told(0),
            wakeup(MS, 2),
            at(MS, Kind::Release, 1, 0, MS),
            at(MS, Kind::Start, 1, 0, 0),
            wakeup(2 * MS, 1),
            at(2 * MS, Kind::Release, 0, 0, 2 * MS),
            at(4 * MS, Kind::Completion, 1, 0, 3 * MS),
            switch(4 * MS, leaves, 1),
            at(4 * MS, Kind::Start, 0, 0, 0),
            at(5 * MS, Kind::Completion, 0, 0, MS),
            switch(5 * MS, 1, 0),
        ];
        verified(&records)
    };
    let result = make(2);
    assert!(result.model_violated > 0, "{:#?}", result.findings);
    assert_eq!(counts(&result, 0).2, 0);
    let result = make(3);
    assert_eq!((result.model_violated, result.machine_disturbed), (0, 0), "{:#?}", result.findings);
    assert_eq!((counts(&result, 0).1, counts(&result, 1).1), (1, 1));
}

#[test]
fn a_job_that_ends_where_another_one_has_the_processor() {
    // The kernel's record gives the processor to "burst" so long before the job's end.
    let make = |before: u64| {
        let mut records = job(&[]);
        records[6] = switch(2 * MS - before, 1, 3);
        records.push(switch(5 * MS, 3, 0));
        records.sort_by_key(|record| record.time);
        verified(&records)
    };
    assert_eq!(counts(&make(S), 0), (1, 0, 0, 0));
    assert_eq!(counts(&make(S + 1), 0), (0, 1, 1, 3 * MS + S + 1));
    // Or it gets it back so long after.
    let make = |after: u64| {
        let mut records = job(&[switch(1_500 * US, 1, 3), switch(2 * MS + after, 3, 1)]);
        records.retain(|record| record.kind != Kind::KernelSwitch || record.time.as_ns() != 2 * MS);
        let end = records.iter_mut().find(|record| record.kind == Kind::Completion).expect("it ends");
        end.value = 500 * US;
        records.push(switch(5 * MS, 1, 0));
        verified(&records)
    };
    assert_eq!(counts(&make(S), 0), (1, 0, 0, 0));
    assert_eq!(counts(&make(S + 1), 0), (0, 1, 1, 500 * US + S + 1));
}

#[test]
fn a_job_that_executed_longer_than_it_had_the_processor() {
    let make = |executed: u64| {
        let mut records = job(&[]);
        records[5].value = executed;
        verified(&records)
    };
    // It got the processor once.
    assert_eq!(counts(&make(MS + 2 * S + E), 0), (1, 0, 0, 0));
    let result = make(MS + 2 * S + E + 1);
    assert_eq!(counts(&result, 0), (0, 1, 1, MS));
    assert_eq!(result.findings, []);
}

#[test]
fn a_job_that_had_the_processor_longer_than_it_executed() {
    let make = |executed: u64, stolen: u64| {
        let mut records = job(&[]);
        records[5].value = executed;
        if stolen > 0 {
            records.push(kernel(3 * MS, Kind::Steal, stolen, 3 * MS));
        }
        verified(&records)
    };
    assert_eq!(counts(&make(MS - S, 0), 0), (1, 0, 0, 0));
    assert_eq!(counts(&make(MS - S - 1, 0), 0), (0, 1, 1, MS));
    assert_eq!(counts(&make(MS - S - 100 * US, 100 * US), 0), (1, 0, 0, 0));
    assert_eq!(counts(&make(MS - S - 100 * US - 1, 100 * US), 0), (0, 1, 1, MS));
}

#[test]
fn a_thread_on_two_processors() {
    let system = long(|draft| {
        draft.platform.cpus = Cpus::Count(2);
        draft.tasks[1].cpu = CpuId(1);
    });
    let make = |goes: bool| {
        let mut records = job(&[]);
        if goes {
            // The thread that has processor 0 gets the other one.
            records.push(Record { cpu: 1, ..switch(1_400 * US, 0, 1) });
            records.sort_by_key(|record| record.time);
        }
        measured(&system, &[], &records)
    };
    assert_eq!(counts(&make(false), 0), (1, 0, 0, 0));
    let result = make(true);
    // That it was there is a finding, however much of its way is hidden.
    assert_eq!(counts(&result, 0).0, 0);
    assert!(result.processors[0].hidden_switches + result.processors[1].hidden_switches > 0, "{result:?}");
    let found: Vec<Check> = result.findings.iter().map(|one| one.check).collect();
    assert_eq!(found, [Check::Processor]);
}

#[test]
fn a_foreign_thread_that_woke_on_an_idle_processor_and_does_not_leave_it() {
    let make = |before: u64| {
        let mut records = job(&[]);
        records.insert(1, wakeup(MS - before, 3));
        verified(&records)
    };
    assert_eq!(counts(&make(S), 0), (1, 0, 0, 0));
    // It is hidden before the job, of whose window it takes nothing.
    assert_eq!(counts(&make(S + 1), 0), (1, 0, 1, S + 1));
}

#[test]
fn no_bound_is_accused_where_a_switch_is_hidden() {
    // The job answers after 1 ms, which is 1 ns more than its bound, and a nanosecond of its window is hidden or none.
    let make = |hidden: u64| {
        let mut records = job(&[]);
        records[0] = switch(0, 0, 4);
        records[3] = switch(MS + hidden, if hidden > 0 { 3 } else { 4 }, 1);
        measured(&long(nothing), &[bound(0, MS - 1)], &records)
    };
    let classes = |result: &Verification| result.findings.iter().map(|one| one.class).collect::<Vec<_>>();
    assert_eq!(classes(&make(0)), [Class::BoundViolated]);
    assert_eq!(classes(&make(1)), [Class::CannotTell]);
    assert!(make(1).findings[0].evidence.iter().any(|one| one.what == "hidden switches"));
}
