//! Tasks whose body is a command: their jobs come from the kernel's record.

use crate::traces::*;
use horolog_model::{Body, Draft};
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::Class::{CannotTell, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Verdict};

const LATENCY: u64 = 30 * US;

fn program(draft: &mut Draft) {
    draft.tasks[0].body = Some(Body::Command(vec!["./program".to_owned()]));
    draft.platform.release_latency = Some(Span::from_ns(LATENCY));
}

/// A job of "high" that its wake-up released, on an idle processor.
fn woken(time: u64, job: u64, length: u64) -> Vec<Record> {
    let mut records = vec![wakeup(time, 1)];
    records.extend(run(time, 0, job, length));
    records.insert(2, switch(time, 0, 1));
    records.push(switch(time + length, 1, 0));
    records
}

fn jobs(times: &[u64]) -> Vec<Record> {
    let mut records = vec![switch(0, 0, 0)];
    records.extend((0..).zip(times).flat_map(|(job, &time)| woken(time, job, MS)));
    records
}

fn exit(time: u64, status: u64) -> Record {
    Record { value: status, job: NO_JOB, ..at(time, Kind::Exit, 0, NO_JOB, status) }
}

#[test]
fn observed_arrivals_carry_the_machines_delays() {
    // Release latency and time stamps, to either side.
    let slack = LATENCY + 20 * US;
    let early = |by: u64| measured(&long(program), &[], &jobs(&[MS, 11 * MS - by]));
    edge(early, slack, of_job(ModelViolated, Check::Arrival, "high", 1));
    let late = |by: u64| measured(&long(program), &[], &jobs(&[MS, 11 * MS + by]));
    edge(late, slack, of_job(ModelViolated, Check::Arrival, "high", 1));
    // A task of horolog's own keeps its period exactly.
    let own = |draft: &mut Draft| draft.platform.release_latency = Some(Span::from_ns(LATENCY));
    finds(
        &measured(&long(own), &[], &jobs(&[MS, 11 * MS - 1])),
        &[of_job(ModelViolated, Check::Arrival, "high", 1)],
    );
    // A program knows no offset.
    let with_offset = |draft: &mut Draft| {
        program(draft);
        draft.tasks[0].offset = Some(Span::ZERO);
    };
    holds(&measured(&long(with_offset), &[], &jobs(&[7 * MS, 17 * MS])));
}

#[test]
fn without_a_declared_latency_a_wake_up_that_is_a_little_off_cannot_be_told() {
    let undeclared = |draft: &mut Draft| {
        program(draft);
        draft.platform.release_latency = None;
    };
    let found = |at: u64| measured(&long(undeclared), &[], &jobs(&[MS, at]));
    let of = |class| [of_job(class, Check::Arrival, "high", 1)];
    // The tolerance of time stamps is 20 us; a tenth of the period of 10 ms is 1 ms.
    for (off, class) in
        [(20 * US + 1, CannotTell), (20 * US + MS, CannotTell), (20 * US + MS + 1, ModelViolated)]
    {
        finds(&found(11 * MS - off), &of(class));
        finds(&found(11 * MS + off), &of(class));
    }
    holds(&found(11 * MS - 20 * US));
    holds(&found(11 * MS + 20 * US));
    // Nothing is left open where the file declares one.
    let declared = |draft: &mut Draft| {
        program(draft);
        draft.platform.release_latency = Some(Span::ZERO);
    };
    finds(&measured(&long(declared), &[], &jobs(&[MS, 11 * MS + 21 * US])), &of(ModelViolated));
}

#[test]
fn a_late_arrival_while_the_processor_stood_still_is_the_machines() {
    let slack = LATENCY + 20 * US;
    // Late by 4 ms, of which the processor stood still for so much; the rhythm goes on as if nothing had been.
    let stolen = |amount: u64| {
        let mut records = jobs(&[MS, 15 * MS, 21 * MS]);
        let place = records.iter().position(|record| record.time.as_ns() == 15 * MS).expect("the second");
        records.insert(place, kernel(14 * MS, Kind::Steal, amount, 2 * MS));
        let mut found = measured(&long(program), &[], &records);
        found.findings.retain(|one| one.check == Check::Arrival);
        found
    };
    let (least, late) = (4 * MS - slack, |class| [of_job(class, Check::Arrival, "high", 1)]);
    finds(&stolen(least), &late(MachineDisturbed));
    finds(&stolen(least - 1), &late(ModelViolated));
    assert_eq!(numbers(&stolen(least)), (15 * MS, 11 * MS));
    // Or it goes on from where it is, or has left arrivals out.
    for third in [25 * MS, 25 * MS + slack] {
        finds(&measured(&long(program), &[], &jobs(&[MS, 15 * MS, third])), &late(ModelViolated));
    }
    finds(&measured(&long(program), &[], &jobs(&[MS, 35 * MS, 41 * MS])), &late(ModelViolated));
    let expected =
        [of_job(ModelViolated, Check::Arrival, "high", 1), of_job(ModelViolated, Check::Arrival, "high", 2)];
    let mut found = measured(&long(program), &[], &jobs(&[MS, 15 * MS, 25 * MS + slack + 1]));
    found.findings.sort_by_key(|one| one.job);
    finds(&found, &expected);
}

/// A thread of no task.
const FOREIGN: u64 = 9;

/// The first job of "high" gets the processor at 1 ms, loses it to another thread for `taken`, and has executed `executed` in all at its end.
fn kept_away(executed: u64, taken: u64) -> Vec<Record> {
    let mut records = jobs(&[MS]);
    records.truncate(records.len() - 2);
    let end = MS + executed + taken;
    records.extend([
        switch(MS + MS / 2, 1, FOREIGN),
        switch(MS + MS / 2 + taken, FOREIGN, 1),
        Record { value: executed, ..at(end, Kind::Completion, 0, 0, executed) },
        switch(end, 1, 0),
    ]);
    records
}

#[test]
fn a_program_that_another_thread_keeps_beyond_its_next_time_is_not_accused_of_that() {
    // Its first job gets the processor at 1 ms, loses it to another thread for `taken`, and has executed `executed` in all at its end,
    // behind 11 ms; it sleeps then until 21 ms.
    let found = |executed: u64, taken: u64| {
        let mut records = kept_away(executed, taken);
        records.extend(woken(21 * MS, 1, MS));
        let mut found = measured(&long(program), &[], &records);
        found.findings.retain(|one| one.check == Check::Arrival);
        found
    };
    let late = |class| [of_job(class, Check::Arrival, "high", 1)];
    finds(&found(MS, 9 * MS), &late(MachineDisturbed));
    assert!(found(MS, 9 * MS).findings[0].evidence.iter().any(|one| one.what == "foreign threads"));
    // Without the other thread it would have ended just before its next time; or a little later, and nobody can tell.
    finds(&found(10 * MS, MS), &late(MachineDisturbed));
    finds(&found(10 * MS + 1, MS), &late(CannotTell));
    // It was through before its next time, whoever ran meanwhile.
    finds(&found(MS, 9 * MS - 1), &late(ModelViolated));
    // The other thread took no more than a wake-up may be late.
    let slack = LATENCY + 20 * US;
    finds(&found(10 * MS, slack), &late(ModelViolated));
    finds(&found(10 * MS, slack + 1), &late(MachineDisturbed));
}

#[test]
fn a_program_that_is_kept_beyond_its_next_time_may_do_two_jobs_in_one() {
    // The job arrives at 1 ms and its next one at 11 ms; wcet 2 ms, and 5 us are the tolerance of execution.
    let found = |executed: u64, taken: u64| {
        let records = kept_away(executed, taken);
        let mut found = measured(&long(program), &[], &records);
        found.findings.retain(|one| one.check == Check::Execution);
        found
    };
    let beyond = |class| [of_job(class, Check::Execution, "high", 0)];
    finds(&found(2 * MS + 6 * US, 8 * MS), &beyond(CannotTell));
    assert!(found(3 * MS, 8 * MS).findings[0].message.contains("the work of several jobs"));
    // It would have been through before its next time.
    finds(&found(2 * MS + 6 * US, 8 * MS - 1), &beyond(ModelViolated));
    // Two jobs execute no longer than two wcets, three no longer than three.
    finds(&found(4 * MS + 5 * US, 8 * MS), &beyond(CannotTell));
    finds(&found(4 * MS + 5 * US + 1, 8 * MS), &beyond(ModelViolated));
    finds(&found(6 * MS, 14 * MS), &beyond(CannotTell));
    finds(&found(6 * MS, 14 * MS - 1), &beyond(ModelViolated));
    // A task of horolog's own has a job for each time.
    let own = |draft: &mut Draft| draft.platform.release_latency = Some(Span::from_ns(LATENCY));
    let mut records = jobs(&[MS]);
    records.truncate(records.len() - 2);
    records.extend([switch(MS + MS / 2, 1, FOREIGN), switch(10 * MS, FOREIGN, 1)]);
    records.extend([at(13 * MS, Kind::Completion, 0, 0, 3 * MS), switch(13 * MS, 1, 0)]);
    let mut of_own = measured(&long(own), &[], &records);
    of_own.findings.retain(|one| one.check == Check::Execution);
    finds(&of_own, &beyond(ModelViolated));
}

#[test]
fn a_job_that_has_not_ended_may_not_execute_longer_than_its_wcet_either() {
    // On record until 4 ms: the tolerance of execution is 5 us.
    let until = |executed: u64| {
        let mut records = jobs(&[MS]);
        records.truncate(records.len() - 2);
        records.push(kernel(MS + executed, Kind::SoftirqExit, 1, 0));
        measured(&long(program), &[], &records)
    };
    edge(until, 2 * MS + 5 * US, of_job(ModelViolated, Check::Execution, "high", 0));
    let unended = |executed: u64| until(executed).tasks[0].unended_beyond_wcet.map(|one| one.job);
    assert_eq!((unended(2 * MS + 5 * US), unended(2 * MS + 5 * US + 1)), (None, Some(0)));
}

#[test]
fn a_program_that_ends_before_the_run_violates_the_model() {
    let mut records = jobs(&[MS, 11 * MS]);
    records.push(exit(15 * MS, 11));
    let found = measured(&long(program), &[], &records);
    finds(&found, &[(ModelViolated, Check::MissingJob, Some("high"), None)]);
    let message = &found.findings[0].message;
    assert!(message.contains("was killed by SIGSEGV") && message.contains("after 2 jobs"), "{message}");
    // At once, with a status.
    let found = measured(&long(program), &[], &[switch(0, 0, 0), exit(0, 0x0300)]);
    assert_eq!(found.verdict, Verdict::ModelViolated);
    assert!(found.findings[0].message.contains("exited with status 3"), "{:?}", found.findings);
}

#[test]
fn without_the_kernels_record_nothing_of_a_command_is_judged() {
    let other = [run(MS, 1, 0, MS), run(21 * MS, 1, 1, MS)].concat();
    let found = measured(&long(program), &[], &other);
    assert_eq!((found.verdict, found.findings.len()), (Verdict::Unknown, 0));
    assert!(found.notes.iter().any(|note| note.contains("jobs of commands (high)")), "{:?}", found.notes);
    // With it a command without jobs is no command that holds: its later jobs are missing, or it has none to show.
    let mut seen = vec![switch(0, 0, 0)];
    seen.extend(other);
    assert!(!measured(&long(program), &[], &seen).notes.iter().any(|note| note.contains("jobs of commands")));
}

#[test]
fn a_loss_of_the_kernels_records_concerns_jobs_that_were_derived_from_them() {
    let lost = |time| kernel(time, Kind::Lost, 9, 1);
    let mut records = vec![switch(0, 0, 0)];
    records.extend(woken(MS, 0, MS));
    // Its end is lost, and so are three jobs.
    records.extend([wakeup(11 * MS, 1), at(11 * MS, Kind::Release, 0, 1, 11 * MS), switch(11 * MS, 0, 1)]);
    records.extend([at(11 * MS, Kind::Start, 0, 1, 0), lost(40 * MS)]);
    records.extend(woken(51 * MS, 2, MS));
    let found = measured(&long(program), &[], &records);
    assert_eq!(found.findings, []);
    assert_eq!(found.tasks[0].completed, 2);
}

/// "high" leaves within its job in the state of this letter, and comes back 3 ms later.
fn leaves(letter: u8, change: impl Fn(&mut Draft)) -> horolog_verify::Verification {
    let block = Record { task: 0, ..kernel(2 * MS, Kind::KernelBlock, 1, u64::from(letter)) };
    let records = [
        switch(0, 0, 0),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
        switch(MS, 0, 1),
        at(MS, Kind::Start, 0, 0, 0),
        switch(2 * MS, 1, 0),
        block,
        wakeup(5 * MS, 1),
        switch(5 * MS, 0, 1),
        at(5 * MS + 1, Kind::Completion, 0, 0, MS + 1),
        switch(5 * MS + 1, 1, 0),
    ];
    assert_eq!(block.job, NO_JOB);
    assert_ne!(block.task, NO_TASK);
    measured(&long(change), &[], &records)
}

#[test]
fn a_stop_from_outside_is_no_sleep() {
    for letter in [b'S', b'D'] {
        finds(&leaves(letter, program), &[of_job(ModelViolated, Check::SelfSuspension, "high", 0)]);
    }
    for letter in [b'T', b't'] {
        let found = leaves(letter, program);
        finds(&found, &[of_job(MachineDisturbed, Check::SelfSuspension, "high", 0)]);
        assert!(found.findings[0].message.contains("was stopped from outside"), "{:?}", found.findings);
    }
}

/// A sleeping thread that is stopped wakes for a moment, and leaves the processor in that state.
#[test]
fn a_stop_between_jobs_is_told_with_its_length() {
    for (letter, is_stop) in [(b'T', true), (b't', true), (b'S', false)] {
        let leaves =
            |time, letter: u8| Record { task: 0, ..kernel(time, Kind::KernelBlock, 1, u64::from(letter)) };
        let mut records = vec![switch(0, 0, 0)];
        records.extend(woken(MS, 0, MS));
        records.extend([
            wakeup(3 * MS, 1),
            switch(3 * MS, 0, 1),
            switch(3 * MS + 9, 1, 0),
            leaves(3 * MS + 9, letter),
        ]);
        records.extend([
            wakeup(6 * MS, 1),
            switch(6 * MS, 0, 1),
            switch(6 * MS + 9, 1, 0),
            leaves(6 * MS + 9, b'S'),
        ]);
        let found = measured(&long(program), &[], &records);
        if !is_stop {
            assert_eq!(found.findings, []);
            continue;
        }
        finds(&found, &[(MachineDisturbed, Check::SelfSuspension, Some("high"), None)]);
        let message = &found.findings[0].message;
        assert!(message.contains("for 2.999991 ms between its jobs"), "{message}");
    }
}

#[test]
fn a_thread_that_ends_within_its_job_was_not_preempted() {
    let own = |draft: &mut Draft| draft.platform.release_latency = Some(Span::from_ns(LATENCY));
    let block = Record { task: 0, ..kernel(2 * MS, Kind::KernelBlock, 1, u64::from(b'X')) };
    let mut records = vec![switch(0, 0, 0), wakeup(MS, 1)];
    records.extend([at(MS, Kind::Release, 0, 0, MS), switch(MS, 0, 1), at(MS, Kind::Start, 0, 0, 0)]);
    records.extend([switch(2 * MS, 1, 0), block]);
    // Another task has the processor as long as it likes.
    records.extend([wakeup(3 * MS, 2), at(3 * MS, Kind::Release, 1, 0, 3 * MS), switch(3 * MS, 0, 2)]);
    records.extend([at(3 * MS, Kind::Start, 1, 0, 0), at(5 * MS, Kind::Completion, 1, 0, 2 * MS)]);
    records.push(switch(5 * MS, 2, 0));
    finds(&measured(&long(own), &[], &records), &[of_job(ModelViolated, Check::MissingJob, "high", 0)]);
    // Where the other thread ends too, the process did, and any of them may have ended it.
    let mut all = records.clone();
    all.push(Record { task: 1, ..kernel(5 * MS, Kind::KernelBlock, 2, u64::from(b'X')) });
    let found = measured(&long(own), &[], &all);
    finds(&found, &[of_job(CannotTell, Check::MissingJob, "high", 0)]);
    assert!(found.findings[0].message.contains("does not tell what ended it"));
    // So may a loss hide that it did.
    let mut lossy = records.clone();
    lossy.push(kernel(6 * MS, Kind::Lost, 9, 1));
    let found = measured(&long(own), &[], &lossy);
    assert!(found.findings.iter().all(|one| one.class == CannotTell), "{:?}", found.findings);
    // Of a command its exit tells.
    assert_eq!(measured(&long(program), &[], &records).findings, []);
}
