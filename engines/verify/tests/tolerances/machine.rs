//! What the kernel's records say of the machine: who has a processor, interrupts in interrupts, ticks, stolen time, losses.

use crate::traces::*;
use horolog_model::{Cpus, Preemption, Priority};
use horolog_time::Span;
use horolog_trace::{Kind, NO_TASK, Record};
use horolog_verify::Class::{MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Verification};

/// Observed and allowed of every finding of this check.
fn amounts(result: &Verification, check: Check) -> Vec<(u64, u64)> {
    let number = |span: Option<Span>| span.expect("it has numbers").as_ns();
    let found = result.findings.iter().filter(|one| one.check == check);
    found.map(|one| (number(one.observed_ns), number(one.allowed_ns))).collect()
}

/// A job of "high" from 0 to `end` that executes for `executed`, with `between` in its time.
fn beside(end: u64, executed: u64, between: &[Record]) -> Vec<Record> {
    let mut records = vec![switch(0, 0, 1), at(0, Kind::Release, 0, 0, 0), at(0, Kind::Start, 0, 0, 0)];
    records.extend(between);
    records.extend([at(end, Kind::Completion, 0, 0, executed), switch(end, 1, 0)]);
    records
}

#[test]
fn a_processor_without_tasks_is_nobodys_concern() {
    let system = long(|draft| draft.platform.cpus = Cpus::Count(2));
    let steal = |cpu| Record { cpu, ..kernel(MS, Kind::Steal, 500 * US, 500 * US) };
    let result = measured(&system, &[], &beside(2 * MS, MS, &[steal(1)]));
    assert_eq!(amounts(&result, Check::Steal), []);
    let result = measured(&system, &[], &beside(2 * MS, MS, &[steal(0)]));
    assert_eq!(amounts(&result, Check::Steal), [(500 * US, 0)]);
}

#[test]
fn a_switch_on_record_leaves_nothing_to_presume() {
    // "burst" wakes on the idle processor and is switched to; then the kernel hides a switch.
    let records = [
        switch(0, 0, 0),
        wakeup(MS, 3),
        switch(MS, 0, 3),
        wakeup(2 * MS, 1),
        at(2 * MS, Kind::Release, 0, 0, 2 * MS),
        Record { extra: 2, ..kernel(5 * MS, Kind::Lost, 1, 0) },
        switch(5 * MS, 3, 1),
        at(5 * MS, Kind::Start, 0, 0, 0),
        at(6 * MS, Kind::Completion, 0, 0, MS),
        switch(6 * MS, 1, 0),
    ];
    let result = measured(&long(nothing), &[], &records);
    assert_eq!(amounts(&result, Check::ForeignThread), []);
}

#[test]
fn the_time_before_a_hidden_switch_is_no_evidence() {
    // "burst" had the processor from 1 ms on; how long is not known.
    let late = |hidden: bool| {
        let mut records = beside(3 * MS, 2 * MS, &[switch(MS, 1, 3), switch(2 * MS, 3, 1)]);
        if hidden {
            records.insert(4, Record { extra: 2, ..kernel(2 * MS, Kind::Lost, 1, 0) });
        }
        let result = measured(&long(nothing), &[bound(0, 2 * MS)], &records);
        let late = result.findings.iter().find(|one| one.check == Check::Response).expect("it is late");
        late.evidence.iter().map(|one| (one.what.clone(), one.amount_ns.as_ns())).collect::<Vec<_>>()
    };
    assert_eq!(late(false), [("foreign threads".to_owned(), MS)]);
    assert_eq!(late(true), [("hidden switches".to_owned(), MS)]);
}

#[test]
fn a_switch_may_name_a_task_whose_thread_is_not_known() {
    let mut records = beside(2 * MS, 2 * MS, &[]);
    records[0] = Record { task: 0, ..switch(0, 0, 99) };
    holds(&measured(&long(nothing), &[], &records));
}

#[test]
fn interrupts_in_interrupts_are_one() {
    let make = |length: u64| {
        let between = [
            kernel(MS, Kind::InterruptEntry, 36, 0),
            kernel(MS + 10 * US, Kind::SoftirqEntry, 3, 0),
            kernel(MS + 20 * US, Kind::InterruptEntry, 37, 0),
            kernel(MS + 30 * US, Kind::InterruptExit, 37, 0),
            kernel(MS + 40 * US, Kind::SoftirqExit, 3, 0),
            kernel(MS + length, Kind::InterruptExit, 36, 0),
        ];
        measured(&long(nothing), &[], &beside(2 * MS, 2 * MS, &between))
    };
    edge(make, 50 * US, of_job(MachineDisturbed, Check::Interrupt, "high", 0));
    assert!(make(51 * US).findings[0].message.starts_with("interrupt 36 took"));
}

#[test]
fn real_time_threads_that_the_kernel_held_back() {
    let starved = kernel(MS, Kind::KernelStarve, 700 * US, 1);
    let result = measured(&long(nothing), &[], &beside(2 * MS, 2 * MS, &[starved]));
    finds(&result, &[(MachineDisturbed, Check::Starvation, None, None)]);
    assert_eq!(amounts(&result, Check::Starvation), [(700 * US, 0)]);
    let message = &result.findings[0].message;
    assert!(message.contains("held the real-time thread high back for 700 us"), "{message}");
    let applied = result.checks.iter().find(|one| one.check == Check::Starvation).map(|one| one.applied);
    assert_eq!(applied, Some(1));
}

/// A job of "low" over 8 ms with ticks of 250 Hz at 1 ms and `gap` later, and other records.
fn ticking(gap: u64, others: &[Record]) -> Verification {
    let system = long(|draft| draft.tasks[1].wcet = Span::from_ns(9 * MS));
    let mut head = header(&system, "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    let mut records = vec![
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(8 * MS, Kind::Completion, 1, 0, 8 * MS),
        switch(8 * MS, 2, 0),
    ];
    for tick in [MS, MS + gap] {
        records.push(kernel(tick, Kind::InterruptEntry, 236, 1));
        records.push(kernel(tick + US, Kind::InterruptExit, 236, 1));
    }
    records.extend(others);
    records.sort_by_key(|record| record.time);
    recorded(&system, &[], &records, &head)
}

#[test]
fn time_that_a_late_tick_shows_is_not_stolen_twice() {
    // The tick of 5 ms comes at 6 and a bit.
    let late = MS + 1;
    let steal = |time, amount, window| kernel(time, Kind::Steal, amount, window);
    // Accounted before it came.
    let result = ticking(5 * MS + 1, &[steal(5_500 * US, 400 * US, 400 * US)]);
    assert_eq!(amounts(&result, Check::Steal), [(400 * US, 0), (late - 400 * US, 0)]);
    // Of what is accounted later, what the tick has not shown yet.
    let result = ticking(5 * MS + 1, &[steal(8 * MS, 1_500 * US, 5 * MS)]);
    assert_eq!(amounts(&result, Check::Steal), [(late, 0), (1_500 * US - late, 0)]);
}

#[test]
fn another_interrupt_is_no_tick() {
    for (entry, exit) in
        [(Kind::InterruptEntry, Kind::InterruptExit), (Kind::SoftirqEntry, Kind::SoftirqExit)]
    {
        for purpose in [0, 1] {
            if (entry, purpose) == (Kind::InterruptEntry, 1) {
                continue;
            }
            let other = [kernel(3 * MS, entry, 36, purpose), kernel(3 * MS + US, exit, 36, purpose)];
            let result = ticking(5 * MS + 1, &other);
            assert_eq!(amounts(&result, Check::Steal), [(MS + 1, 0)], "{entry:?} {purpose}");
        }
    }
}

#[test]
fn what_ran_until_a_loss_of_the_kernels_records_counts() {
    // The thread had the processor until the loss; its own clock says less.
    let lost = Record { extra: 1, ..kernel(1_500 * US, Kind::Lost, 17, 0) };
    let result = measured(&long(nothing), &[], &beside(2 * MS, MS, &[lost]));
    finds(&result, &[of_job(MachineDisturbed, Check::Gap, "high", 0)]);
    assert_eq!(amounts(&result, Check::Gap), [(1_500 * US, MS)]);
}

#[test]
fn an_interrupt_that_a_loss_cut_in_two_is_not_judged() {
    for source in [1, 2] {
        let between = [
            kernel(500 * US, Kind::InterruptEntry, 36, 0),
            Record { extra: source, ..kernel(600 * US, Kind::Lost, 1, 0) },
            kernel(1_500 * US, Kind::InterruptExit, 37, 0),
        ];
        let result = measured(&long(nothing), &[], &beside(2 * MS, 2 * MS, &between));
        assert_eq!(amounts(&result, Check::Interrupt), [], "{source}");
        let result = measured(&long(nothing), &[], &beside(2 * MS, 2 * MS, &between[1..]));
        assert_eq!(amounts(&result, Check::Interrupt), [], "{source}");
    }
}

/// "high", "mid" and "low" without the kernel's records.
fn unseen(records: &[Record]) -> Verification {
    let system = long(|draft| {
        draft.tasks[0].priority = Some(Priority::new(3));
        draft.tasks.push(task("mid", 10 * MS, 2 * MS, 2));
    });
    measured(&system, &[], records)
}

#[test]
fn without_the_kernels_records_the_job_that_was_preempted_last_goes_on() {
    let mut records = vec![
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(MS, Kind::Release, 2, 0, MS),
        at(MS, Kind::Start, 2, 0, 0),
        at(2 * MS, Kind::Release, 0, 0, 2 * MS),
        at(2 * MS, Kind::Start, 0, 0, 0),
        at(3 * MS, Kind::Completion, 0, 0, MS),
        at(4 * MS, Kind::Completion, 2, 0, 2 * MS),
    ];
    // "mid" goes on at 3 ms, "low" at 4.
    let mut right = records.clone();
    right.push(at(8 * MS, Kind::Completion, 1, 0, 5 * MS));
    holds(&unseen(&right));
    // "low" goes on although "mid" waits from 11 to 13.
    records.extend([
        at(11 * MS, Kind::Release, 2, 1, 11 * MS),
        at(13 * MS, Kind::Completion, 1, 0, 5 * MS),
        at(13 * MS, Kind::Start, 2, 1, 0),
        at(14 * MS, Kind::Completion, 2, 1, MS),
    ]);
    finds(&unseen(&records), &[of_job(ModelViolated, Check::PriorityInversion, "mid", 1)]);
}

#[test]
fn nobody_runs_after_a_preemption_without_a_successor() {
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(100, Kind::Preempt, 1, 0, 0),
        at(200, Kind::Resume, 1, 0, 0),
        at(300, Kind::Completion, 1, 0, 200),
    ];
    let result = simulated(&short(nothing), &[], &records);
    finds(&result, &[of_job(ModelViolated, Check::WorkConservation, "low", 0)]);
    assert_eq!(numbers(&result), (100, 0));
}

/// "low", which may not be preempted, is put below every task at 100 and preempted at 150.
fn demoted(preemption: &Preemption, preempted: u64) -> Verification {
    let system = short(|draft| draft.tasks[1].preemption = preemption.clone());
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        Record { extra: 2, ..at(100, Kind::Enforcement, 1, 0, 0) },
        at(150, Kind::Release, 0, 0, 150),
        at(preempted, Kind::Preempt, 1, 0, 0),
        at(preempted, Kind::Start, 0, 0, 0),
        at(preempted + 200, Kind::Completion, 0, 0, 200),
        at(preempted + 200, Kind::Resume, 1, 0, 0),
        at(preempted + 250, Kind::Completion, 1, 0, 200),
    ];
    simulated(&system, &[], &records)
}

#[test]
fn a_job_below_every_task_may_be_preempted_and_has_to_be() {
    for preemption in [Preemption::NonPreemptive, Preemption::Preemptive] {
        edge(|at| demoted(&preemption, at), 150, of_job(ModelViolated, Check::PriorityInversion, "high", 0));
    }
    // Whoever was the most important is so no more.
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        Record { extra: 2, ..at(100, Kind::Enforcement, 0, 0, 0) },
        at(150, Kind::Preempt, 0, 0, 0),
        at(150, Kind::Start, 1, 0, 0),
        at(650, Kind::Completion, 1, 0, 500),
        at(650, Kind::Resume, 0, 0, 0),
        at(700, Kind::Completion, 0, 0, 200),
    ];
    let result = simulated(&short(nothing), &[], &records);
    finds(&result, &[of_job(ModelViolated, Check::PriorityInversion, "low", 0)]);
    assert_eq!(numbers(&result), (50, 0));
}

#[test]
fn a_job_that_starts_twice_keeps_what_it_executed() {
    let system = short(|draft| {
        draft.tasks[1].preemption = segments(&[200, 300]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(100, Kind::Start, 1, 0, 0),
        at(201, Kind::PreemptionPoint, 1, 0, 1),
        at(301, Kind::Completion, 1, 0, 301),
    ];
    let result = simulated(&system, &[], &records);
    finds(
        &result,
        &[
            of_job(ModelViolated, Check::EventOrder, "low", 0),
            of_job(ModelViolated, Check::SegmentExecution, "low", 0),
        ],
    );
}

#[test]
fn without_the_kernels_switches_a_segments_time_is_not_known() {
    let system = long(|draft| {
        draft.tasks[1].preemption = segments(&[2 * MS, 3 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(3 * MS, Kind::PreemptionPoint, 1, 0, 1),
        at(6 * MS, Kind::Completion, 1, 0, 4 * MS),
    ];
    holds(&measured(&system, &[], &records));
    let mut seen = records.to_vec();
    seen.insert(0, switch(0, 0, 2));
    let result = measured(&system, &[], &seen);
    assert_eq!(amounts(&result, Check::SegmentExecution), [(3 * MS, 2 * MS)]);
}

#[test]
fn what_the_reader_must_know() {
    let notes = |records: &[Record]| {
        let system = long(|draft| draft.platform.release_latency = Some(Span::from_ns(10 * US)));
        measured(&system, &[], records).notes
    };
    assert_eq!(notes(&beside(2 * MS, 2 * MS, &[])), [""; 0]);
    let unseen = notes(&run(0, 0, 0, MS));
    assert!(
        unseen.len() == 1 && unseen[0].starts_with("the trace holds no records of the kernel"),
        "{unseen:?}"
    );
    assert_eq!(simulated(&long(nothing), &[], &run(0, 0, 0, MS)).notes, [""; 0]);
    let undeclared = measured(&long(nothing), &[], &beside(2 * MS, 2 * MS, &[])).notes;
    assert!(undeclared.len() == 1 && undeclared[0].starts_with("the file declares no release_latency"));
}

#[test]
fn a_job_whose_points_are_not_all_on_record_is_noted() {
    let system = long(|draft| {
        draft.platform.release_latency = Some(Span::from_ns(10 * US));
        draft.tasks[1].preemption = segments(&[2 * MS, 3 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(4 * MS, Kind::Completion, 1, 0, 4 * MS),
        switch(4 * MS, 2, 0),
    ];
    let result = measured(&system, &[], &records);
    holds(&result);
    assert!(result.notes[0].starts_with("1 jobs have preemption points that are not on record"));
}

#[test]
fn excused_excesses_join_those_that_were_the_machines() {
    // Of three jobs the first is interrupted, the second executes too long, the third comes too early.
    let mut head = header(&long(nothing), "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    head.machine.insert("virtual".to_owned(), "yes".to_owned());
    let excesses = |first: u64, second: u64| {
        let interrupt =
            [kernel(MS, Kind::InterruptEntry, 36, 0), kernel(MS + 40 * US, Kind::InterruptExit, 36, 0)];
        let mut records = beside(2 * MS + first, 2 * MS + first, &interrupt);
        for (job, begin, length) in [(1, 10 * MS, 2 * MS + second), (2, 19 * MS, MS)] {
            records.extend([switch(begin, 0, 1)]);
            records.extend(run(begin, 0, job, length));
            records.push(switch(begin + length, 1, 0));
        }
        recorded(&long(nothing), &[], &records, &head)
    };
    for (first, second) in [(30 * US, 60 * US), (40 * US, 20 * US)] {
        let result = excesses(first, second);
        let disturbed = of_job(MachineDisturbed, Check::Execution, "high", 0);
        let found: Vec<_> =
            result.findings.iter().map(|one| (one.class, one.check, one.task.as_deref(), one.job)).collect();
        let early = of_job(ModelViolated, Check::Arrival, "high", 2);
        assert_eq!(found, [disturbed, of_job(MachineDisturbed, Check::Execution, "high", 1), early]);
        let group = result.groups.iter().find(|group| group.check == Check::Execution).expect("a group");
        assert_eq!((group.count, group.worst_excess_ns.as_ns()), (2, first.max(second)));
        assert_eq!(group.total_excess_ns.as_ns(), first + second);
        assert_eq!((result.model_violated, result.machine_disturbed), (1, 2));
    }
}

#[test]
fn which_errors_are_the_inputs_fault() {
    use horolog_trace::TraceError;
    use horolog_trace::file::Reader;
    let of_file = |path: &str| {
        let error: TraceError = Reader::open(std::path::Path::new(path)).expect_err("it cannot be opened");
        horolog_verify::VerifyError::from(error)
    };
    assert!(of_file("/nowhere/at/all").is_bad_input());
    // A folder is no file that could be read.
    let folder = of_file("/");
    assert!(!folder.is_bad_input() && !folder.is_not_permitted(), "{folder}");
}

#[test]
fn a_task_number_just_beyond_the_last_is_none() {
    let records = [
        wakeup(0, 6),
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        Record { task: NO_TASK, ..switch(MS, 1, 6) },
        switch(2 * MS, 6, 1),
        at(3 * MS, Kind::Completion, 0, 0, 2 * MS),
        switch(3 * MS, 1, 0),
    ];
    let result = measured(&long(nothing), &[], &records);
    finds(&result, &[of_job(MachineDisturbed, Check::ForeignThread, "high", 0)]);
}

/// Of what lasts, a finding tells the beginning and the end, whichever of them it was noticed at.
#[test]
fn a_disturbance_has_its_beginning_and_its_end() {
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        switch(MS, 2, 3),
        switch(2 * MS, 3, 2),
        kernel(3 * MS, Kind::InterruptEntry, 9, 0),
        kernel(3 * MS + 500 * US, Kind::InterruptExit, 9, 0),
        kernel(5 * MS, Kind::Steal, 100 * US, 300 * US),
        at(6 * MS, Kind::Completion, 1, 0, 4 * MS),
        switch(6 * MS, 2, 0),
    ];
    let result = measured(&long(nothing), &[], &records);
    let during = |check: Check| {
        let found = result.findings.iter().find(|one| one.check == check).expect("it is found");
        (found.from_ns.as_ns(), found.to_ns.as_ns())
    };
    assert_eq!(during(Check::ForeignThread), (MS, 2 * MS));
    assert_eq!(during(Check::Interrupt), (3 * MS, 3 * MS + 500 * US));
    assert_eq!(during(Check::Steal), (5 * MS - 300 * US, 5 * MS));
}
