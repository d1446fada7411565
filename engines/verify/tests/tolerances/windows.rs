//! Which window explains a late answer, and how its jobs would have run without what went wrong in it.

use crate::traces::*;
use horolog_model::{Preemption, Priority, System};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{BoundViolated, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Verification};

/// What the first late answer's window held.
fn evidence(result: &Verification) -> Vec<(String, u64)> {
    let late = result.findings.iter().find(|one| one.check == Check::Response).expect("a late answer");
    late.evidence.iter().map(|one| (one.what.clone(), one.amount_ns.as_ns())).collect()
}

const FOREIGN: &str = "foreign threads";
const COSTS: &str = "interrupts and horolog's own threads";

#[test]
fn an_arrival_too_late_explains_nothing() {
    // "high" should come at 1000 and comes at 1100, behind a job that may not be preempted.
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let mut records = run(0, 0, 0, 200).to_vec();
    records.extend([
        at(1_050, Kind::Release, 1, 0, 1_050),
        at(1_050, Kind::Start, 1, 0, 0),
        at(1_100, Kind::Release, 0, 1, 1_100),
        at(1_550, Kind::Completion, 1, 0, 500),
        at(1_550, Kind::Start, 0, 1, 0),
        at(1_750, Kind::Completion, 0, 1, 200),
    ]);
    let result = simulated(&system, &[bound(0, 649)], &records);
    let expected =
        [of_job(ModelViolated, Check::Arrival, "high", 1), of_job(BoundViolated, Check::Response, "high", 1)];
    finds(&result, &expected);
}

/// "low" in two segments of at most `wcets`, which take `first` and `second`; "high" comes at `high`.
fn in_segments(wcets: [u64; 2], first: u64, second: u64, high: Option<u64>) -> (System, Vec<Record>) {
    let system = short(|draft| {
        draft.tasks[1].preemption = segments(&wcets);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let mut records = vec![
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(first, Kind::PreemptionPoint, 1, 0, 1),
    ];
    let mut end = first;
    if let Some(high) = high {
        records.insert(2, at(high, Kind::Release, 0, 0, high));
        records.extend([
            at(first, Kind::Yield, 1, 0, 0),
            at(first, Kind::Start, 0, 0, 0),
            at(first + 200, Kind::Completion, 0, 0, 200),
            at(first + 200, Kind::Resume, 1, 0, 0),
        ]);
        end += 200;
    }
    records.push(at(end + second, Kind::Completion, 1, 0, first + second));
    (system, records)
}

#[test]
fn a_segment_too_long_explains_its_own_jobs_late_answer() {
    let make = |first, second, most| {
        let (system, records) = in_segments([200, 300], first, second, None);
        let result = simulated(&system, &[bound(1, most)], &records);
        assert_eq!(classes(&result, Check::SegmentExecution), [ModelViolated]);
        classes(&result, Check::Response)
    };
    // Of 250 and 250 the first may take 200.
    assert_eq!(make(250, 250, 450), [ModelViolated]);
    assert_eq!(make(250, 250, 449), [BoundViolated]);
    // The other segments count whole.
    assert_eq!(make(201, 299, 499), [ModelViolated]);
    assert_eq!(make(201, 299, 498), [BoundViolated]);
}

#[test]
fn a_segment_too_long_explains_the_late_answer_of_whom_it_kept_waiting() {
    // "high" comes at 1 and waits for a segment of 350 that may take 300.
    let (system, records) = in_segments([300, 200], 350, 150, Some(1));
    let result = simulated(&system, &[bound(0, 500)], &records);
    assert_eq!(classes(&result, Check::SegmentExecution), [ModelViolated]);
    assert_eq!(classes(&result, Check::Blocking), [ModelViolated]);
    assert_eq!(classes(&result, Check::Response), [ModelViolated]);
    // Without the excess it would have answered after 499.
    let result = simulated(&system, &[bound(0, 498)], &records);
    assert_eq!(classes(&result, Check::Response), [BoundViolated]);
}

#[test]
fn a_segment_too_long_of_a_measured_job_explains_it_too() {
    let system = long(|draft| {
        draft.tasks[1].preemption = segments(&[3 * MS, 2 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
        at(4 * MS, Kind::PreemptionPoint, 1, 0, 1),
        at(4 * MS, Kind::Yield, 1, 0, 0),
        switch(4 * MS, 2, 1),
        at(4 * MS, Kind::Start, 0, 0, 0),
        at(6 * MS, Kind::Completion, 0, 0, 2 * MS),
        switch(6 * MS, 1, 2),
        at(6 * MS, Kind::Resume, 1, 0, 0),
        at(7 * MS, Kind::Completion, 1, 0, 5 * MS),
        switch(7 * MS, 2, 0),
    ];
    let result = measured(&system, &[bound(0, 4_500 * US)], &records);
    assert_eq!(classes(&result, Check::SegmentExecution), [ModelViolated]);
    assert_eq!(classes(&result, Check::Response), [ModelViolated]);
}

#[test]
fn blocking_that_an_execution_beyond_the_wcet_explains_to_the_nanosecond() {
    // "low" may not be preempted and has the processor for 510 of its 500, all of it before "high".
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let records = [
        at(100, Kind::Release, 1, 0, 100),
        at(100, Kind::Start, 1, 0, 0),
        at(100, Kind::Release, 0, 0, 100),
        at(610, Kind::Completion, 1, 0, 510),
        at(610, Kind::Start, 0, 0, 0),
        at(810, Kind::Completion, 0, 0, 200),
    ];
    // The release stands behind the start of its instant, so that nothing was done against the policy.
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result, Check::PriorityInversion), [ModelViolated]);
    let mut records = records;
    records[0] = at(99, Kind::Release, 1, 0, 99);
    records[1] = at(99, Kind::Start, 1, 0, 0);
    // From 99 to 610 with 511, of which "high" waited for 510: ten beyond the 500 and eleven beyond the wcet.
    records[3] = at(610, Kind::Completion, 1, 0, 510);
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result, Check::Blocking), [ModelViolated]);
}

#[test]
fn blocking_that_an_interrupt_and_an_overrun_explain_together() {
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    // "low" executes 60 us too long by its own clock; an interrupt takes 40 us.
    let make = |end: u64| {
        let from = 100 * US;
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
            at(end, Kind::Completion, 1, 0, 5_060 * US),
            switch(end, 2, 1),
            at(end, Kind::Start, 0, 0, 0),
            at(end + MS, Kind::Completion, 0, 0, MS),
        ];
        classes(&measured(&system, &[], &records), Check::Blocking)
    };
    assert_eq!(make(5_160 * US), [ModelViolated]);
    assert_eq!(make(5_200 * US), [MachineDisturbed]);
    // Nothing else explains it: the task that had the processor did not give it up.
    assert_eq!(make(5_200 * US + 1), [ModelViolated]);
}

/// "high" beside a server.
fn beside() -> System {
    let text = "[system]\nname = \"served\"\n[platform]\ncpus = 1\n[[task]]\nname = \"high\"\nperiod = \"100 ms\"\nwcet = \"2 \
                ms\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"50 ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \
                \"server\"\ntasks = [\"soft\"]\nkind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
    horolog_model::file::read(text, "served.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// "high" beside a server executes for 2 ms and `over`, and "burst" takes 1 ms of its time.
fn beside_a_server(over: u64, most: u64) -> Verification {
    measured(&beside(), &[bound(0, most)], &with_burst(2 * MS + over, MS))
}

/// A job of task 0 that executes for `executed` from 0 on; "burst" takes the processor for `taken` in between.
fn with_burst(executed: u64, taken: u64) -> Vec<Record> {
    let end = executed + taken;
    vec![
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        switch(MS, 1, 3),
        switch(MS + taken, 3, 1),
        at(end, Kind::Completion, 0, 0, executed),
        switch(end, 1, 0),
    ]
}

#[test]
fn beside_soft_jobs_amounts_decide() {
    // What soft jobs took is not known well enough to schedule the window again.
    let class = |over, most| classes(&beside_a_server(over, most), Check::Response);
    assert_eq!(class(0, 3 * MS), []);
    assert_eq!(class(0, 2 * MS), [MachineDisturbed]);
    assert_eq!(class(0, 2 * MS - 1), [BoundViolated]);
    // 60 us beyond the wcet, and 1 ms of "burst".
    assert_eq!(class(60 * US, 2 * MS + 60 * US), [MachineDisturbed]);
    assert_eq!(class(60 * US, 2 * MS + 60 * US - 1), [ModelViolated]);
    assert_eq!(class(60 * US, 2 * MS), [ModelViolated]);
    assert_eq!(class(60 * US, 2 * MS - 1), [BoundViolated]);
}

#[test]
fn what_soft_jobs_took_is_no_disturbance() {
    // The soft job has its budget of 1 ms first; "burst" takes half a millisecond of "high".
    let class = |most: u64| {
        let system = beside();
        let mut records = vec![
            Record { task: 1, ..switch(0, 0, 2) },
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(MS, Kind::Completion, 1, 0, MS),
            switch(MS, 2, 1),
            at(MS, Kind::Start, 0, 0, 0),
            switch(2 * MS, 1, 3),
            switch(2_500 * US, 3, 1),
            at(3_500 * US, Kind::Completion, 0, 0, 2 * MS),
        ];
        records.push(switch(3_500 * US, 1, 0));
        classes(&measured(&system, &[bound(0, most)], &records), Check::Response)
    };
    assert_eq!(class(3 * MS), [MachineDisturbed]);
    // With the soft job's budget before it, it would have been late without "burst", too.
    assert_eq!(class(3 * MS - 1), [BoundViolated]);
    assert_eq!(class(2 * MS), [BoundViolated]);
    assert_eq!(class(2 * MS - 1), [BoundViolated], "it executed for longer");
}

#[test]
fn without_soft_jobs_the_window_is_scheduled_again() {
    let class = |over, most| {
        let records = with_burst(2 * MS + over, 100 * US);
        classes(&measured(&long(nothing), &[bound(0, most)], &records), Check::Response)
    };
    // Without "burst" it would have answered after what it executed.
    assert_eq!(class(60 * US, 2 * MS + 60 * US), [MachineDisturbed]);
    assert_eq!(class(60 * US, 2 * MS + 60 * US - 1), [ModelViolated]);
    assert_eq!(class(60 * US, 2 * MS - 1), [BoundViolated]);
    // What the reading of the clock adds breaks no assumption.
    assert_eq!(class(4 * US, 2 * MS + 2 * US), [MachineDisturbed]);
}

#[test]
fn a_measured_stretch_beyond_its_wcet_explains_the_answer_of_whom_it_kept_waiting() {
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let make = |most: u64| {
        let end = 5_060 * US;
        let records = [
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            wakeup(MS, 1),
            at(MS, Kind::Release, 0, 0, MS),
            at(end, Kind::Completion, 1, 0, end),
            switch(end, 2, 1),
            at(end, Kind::Start, 0, 0, 0),
            at(end + 2 * MS, Kind::Completion, 0, 0, 2 * MS),
            switch(end + 2 * MS, 1, 0),
        ];
        classes(&measured(&system, &[bound(0, most)], &records), Check::Response)
    };
    assert_eq!(make(6 * MS + 60 * US), []);
    assert_eq!(make(6 * MS), [ModelViolated]);
    assert_eq!(make(6 * MS - 1), [BoundViolated]);
}

#[test]
fn a_measured_job_in_stretches_counts_as_long_as_it_executed() {
    // "low" may not be preempted and executes 60 us too long.
    let alone = |preemption: &Preemption, between: &[Record], end: u64, executed: u64, most: u64| {
        let system = long(|draft| {
            draft.tasks[1].preemption = preemption.clone();
            draft.tasks[1].bcet = Span::from_ns(2);
        });
        let mut records = vec![switch(0, 0, 2), at(0, Kind::Release, 1, 0, 0), at(0, Kind::Start, 1, 0, 0)];
        records.extend(between);
        records.extend([at(end, Kind::Completion, 1, 0, executed), switch(end, 2, 0)]);
        classes(&measured(&system, &[bound(1, most)], &records), Check::Response)
    };
    let whole = |most| alone(&Preemption::NonPreemptive, &[], 5_060 * US, 5_060 * US, most);
    assert_eq!(whole(5 * MS), [ModelViolated]);
    assert_eq!(whole(5 * MS - 1), [BoundViolated]);
    // Of two segments, which had the processor for 2 and 3 ms, it executed 4.5 ms: an interrupt took the rest.
    let between = [
        at(2 * MS, Kind::PreemptionPoint, 1, 0, 1),
        kernel(3 * MS, Kind::InterruptEntry, 36, 0),
        kernel(3_500 * US, Kind::InterruptExit, 36, 0),
    ];
    let parts = |most| alone(&segments(&[2 * MS, 3 * MS]), &between, 5 * MS, 4_500 * US, most);
    assert_eq!(parts(4_500 * US), [MachineDisturbed]);
    assert_eq!(parts(4_500 * US - 1), [BoundViolated]);
}

#[test]
fn of_two_equals_each_answers_for_itself() {
    // "low" was released while "high", its equal, ran, and ends after it.
    let system = long(|draft| draft.tasks[0].priority = Some(Priority::new(1)));
    let mut records = with_burst(2 * MS, MS);
    records.insert(3, at(500 * US, Kind::Release, 1, 0, 500 * US));
    records.insert(3, wakeup(500 * US, 2));
    let end = 3 * MS;
    records.pop();
    records.extend([
        switch(end, 1, 2),
        at(end, Kind::Start, 1, 0, 0),
        at(end + 5 * MS, Kind::Completion, 1, 0, 5 * MS),
        switch(end + 5 * MS, 2, 0),
    ]);
    let class = |most| classes(&measured(&system, &[bound(0, most)], &records), Check::Response);
    assert_eq!(class(2 * MS), [MachineDisturbed]);
    assert_eq!(class(2 * MS - 1), [BoundViolated]);
}

#[test]
fn a_stretch_that_was_under_way_is_part_of_the_window() {
    // An interrupt makes the stretch longer before "high" comes.
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let (from, end) = (100 * US, 5_040 * US);
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        kernel(50 * US, Kind::InterruptEntry, 36, 0),
        kernel(90 * US, Kind::InterruptExit, 36, 0),
        wakeup(from, 1),
        at(from, Kind::Release, 0, 0, from),
        at(end, Kind::Completion, 1, 0, 5 * MS),
        switch(end, 2, 1),
        at(end, Kind::Start, 0, 0, 0),
        at(end + MS, Kind::Completion, 0, 0, MS),
        switch(end + MS, 1, 0),
    ];
    let result = measured(&system, &[bound(0, 5_930 * US)], &records);
    finds(&result, &[of_job(MachineDisturbed, Check::Response, "high", 0)]);
    assert_eq!(evidence(&result), [(COSTS.to_owned(), 40 * US)]);
}

#[test]
fn a_window_ends_when_its_level_has_nothing_to_do() {
    // An interrupt in the first job of "high" explains nothing of the second, though "low" is pending all the time.
    let records = [
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        kernel(100 * US, Kind::InterruptEntry, 36, 0),
        kernel(140 * US, Kind::InterruptExit, 36, 0),
        at(MS, Kind::Completion, 0, 0, MS),
        switch(MS, 1, 2),
        at(MS, Kind::Start, 1, 0, 0),
        wakeup(10 * MS, 1),
        at(10 * MS, Kind::Release, 0, 1, 10 * MS),
        switch(10 * MS, 2, 1),
        at(10 * MS, Kind::Preempt, 1, 0, 0),
        at(10 * MS, Kind::Start, 0, 1, 0),
        switch(11 * MS, 1, 3),
        switch(12 * MS, 3, 1),
        at(13 * MS, Kind::Completion, 0, 1, 2 * MS),
        switch(13 * MS, 1, 2),
    ];
    let result = measured(&long(nothing), &[bound(0, 2 * MS)], &records);
    assert_eq!(evidence(&result), [(FOREIGN.to_owned(), MS)]);
}

#[test]
fn the_window_of_a_late_release_reaches_into_the_one_before() {
    // "high" from 3 ms, "mid" behind it from 5 to 7; "low" arrives at 6 and is noticed at 7.2, which is too late.
    let system = long(|draft| {
        draft.tasks[0].priority = Some(Priority::new(3));
        draft.tasks.push(task("mid", 10 * MS, 2 * MS, 2));
    });
    let class = |most: u64| {
        let late = 7_200 * US;
        let records = [
            switch(3 * MS, 0, 1),
            at(3 * MS, Kind::Release, 0, 0, 3 * MS),
            at(3 * MS, Kind::Start, 0, 0, 0),
            at(3_500 * US, Kind::Release, 2, 0, 3_500 * US),
            at(5 * MS, Kind::Completion, 0, 0, 2 * MS),
            Record { task: 2, ..switch(5 * MS, 1, 99) },
            at(5 * MS, Kind::Start, 2, 0, 0),
            at(7 * MS, Kind::Completion, 2, 0, 2 * MS),
            switch(7 * MS, 99, 0),
            wakeup(late, 2),
            at(late, Kind::Release, 1, 0, 6 * MS),
            switch(late, 0, 2),
            at(late, Kind::Start, 1, 0, 0),
            at(late + 5 * MS, Kind::Completion, 1, 0, 5 * MS),
            switch(late + 5 * MS, 2, 0),
        ];
        classes(&measured(&system, &[bound(1, most)], &records), Check::Response)
    };
    // Noticed in time it would have begun at 7 ms.
    assert_eq!(class(6 * MS), [MachineDisturbed]);
    assert_eq!(class(6 * MS - 1), [BoundViolated]);
}

#[test]
fn idling_beyond_what_is_allowed_is_evidence() {
    // The processor idles for 120 us, 20 of which the time stamps leave open.
    let records = [
        switch(0, 0, 0),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
        switch(MS + 120 * US, 0, 1),
        at(MS + 120 * US, Kind::Start, 0, 0, 0),
        at(2 * MS + 120 * US, Kind::Completion, 0, 0, MS),
        switch(2 * MS + 120 * US, 1, 0),
    ];
    let result = measured(&long(nothing), &[bound(0, MS)], &records);
    assert_eq!(evidence(&result), [("idle although ready".to_owned(), 100 * US)]);
}

#[test]
fn running_on_beside_an_interrupt() {
    // "low" runs on to its end for `on`, and an interrupt takes 200 us of that.
    let make = |on: u64| {
        let mut records = running_on(0, on, true);
        records.insert(5, kernel(8 * MS + 10 * US, Kind::InterruptEntry, 36, 0));
        records.insert(6, kernel(8 * MS + 210 * US, Kind::InterruptExit, 36, 0));
        classes(&measured(&long(nothing), &[], &records), Check::PriorityInversion)
    };
    assert_eq!(make(220 * US), [MachineDisturbed]);
    assert_eq!(make(220 * US + 1), [ModelViolated]);
}

#[test]
fn blocking_counts_also_where_nobody_may_block() {
    let result = simulated(&short(nothing), &[], &run(0, 1, 0, 500));
    assert_eq!(result.tasks[1].blocking_allowed_ns, Some(Span::ZERO));
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let result = simulated(&system, &[], &run(0, 1, 0, 500));
    let allowed: Vec<_> = result.tasks.iter().map(|task| task.blocking_allowed_ns).collect();
    assert_eq!(allowed, [Some(Span::from_ns(500)), Some(Span::ZERO)]);
}

#[test]
fn each_check_says_how_often_it_was_applied() {
    // Two jobs of "high", the second of which is not done.
    let mut records = run(0, 0, 0, 200).to_vec();
    records.extend([at(1_000, Kind::Release, 0, 1, 1_000), at(1_000, Kind::Start, 0, 1, 0)]);
    records.push(Record { time: Instant::from_ns(1_100), ..wakeup(1_100, 3) });
    let result = simulated(&short(nothing), &[bound(0, 200)], &records);
    let applied: Vec<(Check, u64)> =
        result.checks.iter().map(|one| (one.check, one.applied)).filter(|one| one.1 > 0).collect();
    let expected = [
        (Check::EventOrder, 5),
        (Check::Arrival, 2),
        (Check::Release, 2),
        (Check::Execution, 1),
        (Check::Processor, 5),
        (Check::PriorityInversion, 2),
        (Check::Blocking, 1),
        (Check::Response, 2),
        (Check::Deadline, 1),
    ];
    for (check, times) in expected {
        assert!(applied.contains(&(check, times)), "{check:?} {times}: {applied:?}");
    }
}
