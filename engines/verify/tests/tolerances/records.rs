//! What single records mean: orders that no job can have, losses, who has the processor.

use crate::traces::*;
use horolog_model::Preemption;
use horolog_time::Span;
use horolog_trace::{Kind, NO_TASK, Record};
use horolog_verify::Check;
use horolog_verify::Class::{BoundViolated, MachineDisturbed, ModelViolated};

#[test]
fn records_that_do_not_fit_a_jobs_state() {
    let release = at(0, Kind::Release, 0, 0, 0);
    let start = at(0, Kind::Start, 0, 0, 0);
    let preempt = at(100, Kind::Preempt, 0, 0, 0);
    let of = |kind| at(100, kind, 0, 0, 0);
    for (records, part) in [
        (vec![release, of(Kind::Preempt)], "ready and has not started"),
        (vec![release, of(Kind::Resume)], "ready and has not started"),
        (vec![release, of(Kind::Yield)], "ready and has not started"),
        (vec![release, of(Kind::PreemptionPoint)], "ready and has not started"),
        (vec![release, of(Kind::Completion)], "ready and has not started"),
        (vec![release, of(Kind::Wake)], "ready and has not started"),
        (vec![release, of(Kind::Suspend)], "ready and has not started"),
        (vec![release, start, of(Kind::Start)], "running"),
        (vec![release, start, of(Kind::Resume)], "running"),
        (vec![release, start, preempt, of(Kind::Completion)], "preempted"),
        (vec![release, start, preempt, of(Kind::Preempt)], "preempted"),
        (vec![release, start, of(Kind::Yield), of(Kind::Preempt)], "waiting at a preemption point"),
        (vec![release, start, of(Kind::Suspend), of(Kind::Resume)], "waiting for a device"),
    ] {
        let last = records[records.len() - 1].kind;
        let result = simulated(&short(nothing), &[], &records);
        let order = result.findings.iter().filter(|one| one.check == Check::EventOrder);
        let said: Vec<_> = order.map(|one| one.message.clone()).collect();
        let expected = format!("{} of high job 0: the job is {part}", last.name());
        assert_eq!(said, [expected], "{:#?}", result.findings);
    }
}

#[test]
fn a_change_of_mode_is_no_record_of_a_job() {
    let mut records = run(0, 0, 0, 200).to_vec();
    records.push(Record { task: NO_TASK, ..at(300, Kind::ModeChange, 0, 0, 1) });
    let result = simulated(&short(nothing), &[], &records);
    let said: Vec<&str> = result.findings.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(said, ["mode-change of trace job 0: the system has no modes"]);
}

#[test]
fn what_a_loss_makes_unknown() {
    let make = |source: u64| {
        let mut records = run(0, 0, 0, 200).to_vec();
        records.push(at(500, Kind::Release, 1, 0, 500));
        records.push(Record { extra: source, ..kernel(500, Kind::Lost, 17, 0) });
        records.extend(run(1_234, 0, 5, 200));
        simulated(&short(nothing), &[], &records)
    };
    // Jobs were lost: numbers and arrivals begin anew, and nobody waits.
    let result = make(0);
    assert_eq!(result.findings, []);
    assert!(!result.complete);
    assert_eq!((result.losses.horolog, result.exit_code(false), result.exit_code(true)), (17, 0, 1));
    // The kernel's records do not concern jobs.
    let result = make(1);
    let has = |check| result.findings.iter().any(|one| one.check == check && one.job == Some(5));
    assert!(has(Check::Arrival) && has(Check::EventOrder), "{:#?}", result.findings);
    assert_eq!(result.losses.kernel, 17);
}

#[test]
fn one_group_lists_twenty_findings_and_counts_all() {
    let records: Vec<Record> = (0..25).flat_map(|job| run(job * 1_000, 0, job, 201)).collect();
    let result = simulated(&short(nothing), &[], &records);
    assert_eq!((result.findings.len(), result.groups[0].count, result.model_violated), (20, 25, 25));
    assert_eq!(result.groups[0].worst_excess_ns, Span::from_ns(1));
    assert_eq!(result.groups[0].total_excess_ns, Span::from_ns(25));
}

#[test]
fn records_out_of_order() {
    let said = |backend: &str, late: u64| {
        let system = short(nothing);
        let mut records = run(0, 0, 0, 200).to_vec();
        records.push(wakeup(late, 3));
        let result = recorded(&system, &[], &records, &header(&system, backend));
        let notes =
            result.notes.iter().filter(|note| note.contains("1 records came after later ones")).count();
        (notes, result.findings.iter().filter(|one| one.check == Check::EventOrder).count())
    };
    assert_eq!([said("linux", 200), said("linux", 199)], [(0, 0), (1, 0)]);
    assert_eq!([said("sim", 200), said("sim", 199)], [(0, 0), (0, 1)]);
}

#[test]
fn a_job_that_lost_the_processor_where_it_may_not() {
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let make = |is_pending: bool| {
        let mut records =
            vec![switch(0, 0, 2), at(0, Kind::Release, 1, 0, 0), at(0, Kind::Start, 1, 0, 0), wakeup(MS, 1)];
        if is_pending {
            records.push(at(MS, Kind::Release, 0, 0, MS));
        }
        records.push(switch(MS, 2, 1));
        measured(&system, &[], &records)
    };
    finds(&make(true), &[of_job(ModelViolated, Check::NonPreemption, "low", 0)]);
    holds(&make(false));
}

/// `thread` has the processor of "high" for 1 ms; the switch to it names `task`.
fn taken_by(thread: u64, task: u32) -> horolog_verify::Verification {
    let records = [
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        Record { task, ..switch(MS, 1, thread) },
        switch(2 * MS, thread, 1),
        at(3 * MS, Kind::Completion, 0, 0, 2 * MS),
        switch(3 * MS, 1, 0),
    ];
    measured(&long(nothing), &[], &records)
}

#[test]
fn who_takes_the_processor() {
    let foreign = of_job(MachineDisturbed, Check::ForeignThread, "high", 0);
    for (thread, comm) in [(3, "burst"), (5, "stray"), (99, "?")] {
        let result = taken_by(thread, NO_TASK);
        finds(&result, &[foreign]);
        assert!(result.findings[0].message.starts_with(comm), "{}", result.findings[0].message);
    }
    // Horolog's own threads are the machine's cost.
    holds(&taken_by(4, NO_TASK));
    // The number of a task that the system does not have says nothing.
    finds(&taken_by(3, 2), &[foreign]);
}

#[test]
fn who_has_the_processor_at_the_beginning_is_not_known() {
    let records = [
        wakeup(0, 3),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
        switch(2 * MS, 3, 1),
        at(2 * MS, Kind::Start, 0, 0, 0),
        at(3 * MS, Kind::Completion, 0, 0, MS),
    ];
    holds(&measured(&long(nothing), &[], &records));
}

#[test]
fn sleeping_within_a_job_is_one_finding() {
    let records = [
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        switch(MS, 1, 0),
        wakeup(3 * MS, 1),
        switch(3 * MS, 0, 1),
        at(4 * MS, Kind::Completion, 0, 0, 2 * MS),
        switch(4 * MS, 1, 0),
    ];
    let result = measured(&long(nothing), &[], &records);
    finds(&result, &[of_job(ModelViolated, Check::SelfSuspension, "high", 0)]);
    assert_eq!(numbers(&result), (2 * MS, 0));
    // It answered after 4 ms: without its sleep after 2.
    let late = |bound_ns: u64| {
        let result = measured(&long(nothing), &[bound(0, bound_ns)], &records);
        let late = result.findings.iter().find(|one| one.check == Check::Response);
        late.map(|one| one.class)
    };
    assert_eq!(late(4 * MS), None);
    assert_eq!(late(4 * MS - 1), Some(ModelViolated));
    assert_eq!(late(2 * MS), Some(ModelViolated));
    assert_eq!(late(2 * MS - 1), Some(BoundViolated));
}

/// A job whose thread nobody wakes any more is told with what it slept for. What fell asleep when the run was over is none, nor what
/// a loss may have woken.
#[test]
fn sleeping_for_ever_within_a_job_is_told() {
    let asleep = |letter: u8, horizon: u64, is_lossy: bool| {
        let mut records = vec![
            switch(0, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            switch(MS, 1, 0),
            Record { task: 0, ..kernel(MS, Kind::KernelBlock, 1, u64::from(letter)) },
        ];
        records.extend(is_lossy.then(|| kernel(2 * MS, Kind::Lost, 1, 0)));
        records.push(wakeup(9 * MS, 3));
        let system = long(nothing);
        let mut head = header(&system, "linux");
        head.horizon = Span::from_ns(horizon);
        let result = recorded(&system, &[], &records, &head);
        let slept = result.findings.iter().filter(|one| one.check == Check::SelfSuspension);
        slept.map(|one| (one.class, one.message.clone())).collect::<Vec<_>>()
    };
    let slept = (ModelViolated, "high job 0 slept for 8 ms until the trace ended".to_owned());
    assert_eq!(asleep(b'S', 0, false), std::slice::from_ref(&slept));
    assert_eq!(asleep(b'D', MS + 1, false), [slept]);
    assert_eq!(asleep(b'S', MS, false), []);
    assert_eq!(asleep(b'S', 0, true), []);
    let stopped =
        "high job 0 was stopped from outside (SIGSTOP or a debugger) for 8 ms until the trace ended";
    assert_eq!(asleep(b'T', 0, false), [(MachineDisturbed, stopped.to_owned())]);
}

#[test]
fn interrupts_have_names() {
    let name = |entry: Kind, exit: Kind, number: u64, purpose: u64| {
        let records = [
            switch(0, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            kernel(MS, entry, number, purpose),
            kernel(MS + 60 * US, exit, number, purpose),
            at(2 * MS, Kind::Completion, 0, 0, 2 * MS),
        ];
        let result = measured(&long(nothing), &[], &records);
        finds(&result, &[of_job(MachineDisturbed, Check::Interrupt, "high", 0)]);
        result.groups[0].subject.clone()
    };
    let interrupt = |purpose| name(Kind::InterruptEntry, Kind::InterruptExit, 36, purpose);
    assert_eq!(interrupt(0), "interrupt 36");
    assert_eq!(interrupt(1), "the local timer");
    assert_eq!(interrupt(2), "the reschedule interrupt");
    assert_eq!([interrupt(3), interrupt(4)], ["the function-call interrupt"; 2]);
    assert_eq!(interrupt(5), "the deferred-work interrupt");
    assert_eq!(interrupt(6), "processor vector 36");
    assert_eq!(name(Kind::SoftirqEntry, Kind::SoftirqExit, 3, 0), "softirq 3");
}
