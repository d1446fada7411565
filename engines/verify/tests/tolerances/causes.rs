//! What explains a late answer: by how much, in which window, and whose fault it is then.

use crate::traces::*;
use horolog_model::{Draft, Preemption};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{BoundViolated, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Class, Verification};

/// Whose fault the late answers are.
fn responses(result: &Verification) -> Vec<Class> {
    classes(result, Check::Response)
}

#[test]
fn an_arrival_too_early() {
    let mut records = run(0, 0, 0, 200).to_vec();
    records.insert(2, at(100, Kind::Release, 0, 1, 100));
    records.extend([at(200, Kind::Start, 0, 1, 0), at(400, Kind::Completion, 0, 1, 200)]);
    // Alone it would have answered after 200.
    let result = simulated(&short(nothing), &[bound(0, 200)], &records);
    finds(
        &result,
        &[
            of_job(ModelViolated, Check::Arrival, "high", 1),
            of_job(ModelViolated, Check::Response, "high", 1),
        ],
    );
    assert_eq!((result.tasks[0].exceeded, result.tasks[0].exceeded_by_model), (1, 1));
    assert_eq!(responses(&simulated(&short(nothing), &[bound(0, 199)], &records)), [BoundViolated; 2]);
}

/// "low" arrives at 500 and executes for 500 and `more`; if it is not done at 1000, "high" comes in between.
fn slips_in(more: u64) -> Vec<Record> {
    let mut records = run(0, 0, 0, 200).to_vec();
    records.extend([at(500, Kind::Release, 1, 0, 500), at(500, Kind::Start, 1, 0, 0)]);
    if more > 0 {
        records.extend([
            at(1_000, Kind::Release, 0, 1, 1_000),
            at(1_000, Kind::Preempt, 1, 0, 0),
            at(1_000, Kind::Start, 0, 1, 0),
            at(1_200, Kind::Completion, 0, 1, 200),
            at(1_200, Kind::Resume, 1, 0, 0),
            at(1_200 + more, Kind::Completion, 1, 0, 500 + more),
        ]);
    } else {
        records.push(at(1_000, Kind::Completion, 1, 0, 500));
    }
    records
}

#[test]
fn a_small_overrun_lets_a_whole_preemption_slip_in() {
    let make = |more, most| responses(&simulated(&short(nothing), &[bound(1, most)], &slips_in(more)));
    assert_eq!(make(0, 500), []);
    assert_eq!(make(1, 500), [ModelViolated]);
    assert_eq!(make(1, 499), [BoundViolated]);
}

#[test]
fn costs_are_no_excuse_in_a_simulation() {
    let system = short(|draft| draft.platform.context_switch = Some(Span::from_ns(10)));
    let make = |length: u64, most: u64| {
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(20, Kind::Start, 0, 0, 0),
            at(20 + length, Kind::Completion, 0, 0, length),
        ];
        responses(&simulated(&system, &[bound(0, most)], &records))
    };
    assert_eq!(make(200, 220), []);
    assert_eq!(make(200, 219), [BoundViolated]);
    // A broken wcet explains it, also where its replay without costs is in time.
    assert_eq!(make(201, 220), [ModelViolated]);
}

#[test]
fn jobs_that_are_not_done() {
    // "high" executed 300 too long; "low" waits for it and is not done at 701.
    let make = |most: u64| {
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            at(500, Kind::Completion, 0, 0, 500),
            at(500, Kind::Start, 1, 0, 0),
            at(701, Kind::PreemptionPoint, 1, 0, 0),
        ];
        responses(&simulated(&short(nothing), &[bound(1, most)], &records))
    };
    assert_eq!(make(701), []);
    assert_eq!(make(700), [ModelViolated]);
    assert_eq!(make(699), [BoundViolated], "without the overrun it could answer after 700");
}

#[test]
fn a_stretch_that_was_under_way() {
    // "low" may not be preempted, starts 1 before "high" comes and executes for 500 and `more`.
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let make = |more: u64, most: u64| {
        let end = 599 + more;
        let records = [
            at(99, Kind::Release, 1, 0, 99),
            at(99, Kind::Start, 1, 0, 0),
            at(100, Kind::Release, 0, 0, 100),
            at(end, Kind::Completion, 1, 0, 500 + more),
            at(end, Kind::Start, 0, 0, 0),
            at(end + 200, Kind::Completion, 0, 0, 200),
        ];
        responses(&simulated(&system, &[bound(0, most)], &records))
    };
    assert_eq!(make(0, 699), []);
    assert_eq!(make(0, 698), [BoundViolated]);
    assert_eq!(make(1, 699), [ModelViolated]);
    assert_eq!(make(1, 698), [BoundViolated]);
}

/// "high" loses the processor to horolog's agent, is interrupted before and in it, and answers late.
fn with_agent(change: impl Fn(&mut Draft), agent: u64) -> Vec<(String, u64)> {
    let back = 700 * US + agent;
    let records = [
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        kernel(100 * US, Kind::InterruptEntry, 36, 0),
        kernel(110 * US, Kind::InterruptExit, 36, 0),
        switch(700 * US, 1, 4),
        kernel(705 * US, Kind::InterruptEntry, 36, 0),
        kernel(712 * US, Kind::InterruptExit, 36, 0),
        switch(back, 4, 1),
        at(back + 800 * US, Kind::Completion, 0, 0, 1500 * US),
        switch(back + 800 * US, 1, 0),
    ];
    let result = measured(&long(change), &[bound(0, 1_500 * US)], &records);
    finds(&result, &[of_job(MachineDisturbed, Check::Response, "high", 0)]);
    let evidence = result.findings[0].evidence.iter();
    evidence.map(|one| (one.what.clone(), one.amount_ns.as_ns())).collect()
}

#[test]
fn own_threads_and_interrupts_beyond_their_costs() {
    let what = "interrupts and horolog's own threads".to_owned();
    // The agent with the interrupt in it, and the interrupt before.
    assert_eq!(with_agent(nothing, 60 * US), [(what.clone(), 70 * US)]);
    // Two switches and an interrupt for the one release are in the bound.
    let costly = |draft: &mut Draft| {
        draft.platform.context_switch = Some(Span::from_ns(3 * US));
        draft.platform.timer_interrupt = Some(Span::from_ns(US));
    };
    assert_eq!(with_agent(costly, 60 * US), [(what, 63 * US)]);
}

#[test]
fn blocking_that_an_interrupt_explains() {
    // "low" has the processor for 5 ms, the interrupt and `more`, from the release of "high" on.
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let make = |more: u64| {
        let (from, end) = (100 * US, 5_140 * US + more);
        let records = [
            switch(0, 0, 0),
            wakeup(from, 2),
            at(from, Kind::Release, 1, 0, from),
            switch(from, 0, 2),
            at(from, Kind::Start, 1, 0, 0),
            wakeup(from, 1),
            at(from, Kind::Release, 0, 0, from),
            kernel(MS, Kind::InterruptEntry, 36, 0),
            kernel(MS + 40 * US, Kind::InterruptExit, 36, 0),
            at(end, Kind::Completion, 1, 0, 5 * MS + more),
            switch(end, 2, 1),
            at(end, Kind::Start, 0, 0, 0),
            at(end + MS, Kind::Completion, 0, 0, MS),
        ];
        measured(&system, &[], &records)
    };
    let blocking = |class| of_job(class, Check::Blocking, "high", 0);
    turns(make, 0, blocking(MachineDisturbed), blocking(ModelViolated));
}

#[test]
fn segments_that_an_interrupt_explains() {
    let system = long(|draft| {
        draft.tasks[1].preemption = segments(&[2 * MS, 3 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let make = |first: u64| {
        let end = first + MS;
        let records = [
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            kernel(MS, Kind::InterruptEntry, 36, 0),
            kernel(MS + 40 * US, Kind::InterruptExit, 36, 0),
            at(first, Kind::PreemptionPoint, 1, 0, 1),
            at(end, Kind::Completion, 1, 0, end - 40 * US),
            switch(end, 2, 0),
        ];
        measured(&system, &[], &records)
    };
    let segment = |class| of_job(class, Check::SegmentExecution, "low", 0);
    edge(make, 2 * MS + 25 * US, segment(MachineDisturbed));
    turns(make, 2 * MS + 65 * US, segment(MachineDisturbed), segment(ModelViolated));
}

#[test]
fn of_two_tasks_beyond_their_wcet_only_the_one_that_is_excused() {
    let system = long(nothing);
    let mut head = header(&system, "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    head.machine.insert("virtual".to_owned(), "yes".to_owned());
    let mut records = run(0, 0, 0, 3 * MS).to_vec();
    records.extend(run(4 * MS, 1, 0, 10 * MS + 1));
    let result = recorded(&system, &[], &records, &head);
    finds(
        &result,
        &[
            of_job(MachineDisturbed, Check::Execution, "high", 0),
            of_job(ModelViolated, Check::Execution, "low", 0),
        ],
    );
    assert_eq!((result.model_violated, result.machine_disturbed), (1, 1));
}
