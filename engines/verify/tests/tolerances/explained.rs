//! What explains a late answer, and what the kernel's record of a processor means once a part of it is missing.

use crate::traces::*;
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{BoundViolated, CannotTell, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Options, Verification, Verifier};

fn evidence(result: &Verification, check: Check) -> Vec<(String, u64)> {
    let found = result.findings.iter().find(|one| one.check == check).expect("it is found");
    found.evidence.iter().map(|one| (one.what.clone(), one.amount_ns.as_ns())).collect()
}

/// Stolen time is evidence of the machine's doing, and named.
#[test]
fn stolen_time_explains_a_late_answer() {
    let mut records = run(0, 0, 0, 2 * MS).to_vec();
    records[2].time = Instant::from_ns(3 * MS);
    records.insert(2, kernel(2 * MS, Kind::Steal, MS, 2 * MS));
    let result = measured(&long(nothing), &[bound(0, 2 * MS)], &records);
    let late: Vec<_> = result.findings.iter().filter(|one| one.check == Check::Response).collect();
    assert_eq!((late.len(), late[0].class), (1, MachineDisturbed));
    assert_eq!(evidence(&result, Check::Response), [("steal".to_owned(), MS)]);
}

/// A simulated job that is ready later than the file allows explains its own late answer by as much.
#[test]
fn a_late_release_explains_a_late_answer() {
    let make = |late: u64| {
        let mut records = run(late, 0, 0, 200).to_vec();
        records[0].value = 0;
        simulated(&short(nothing), &[bound(0, 200)], &records)
    };
    holds(&make(0));
    let result = make(1);
    finds(
        &result,
        &[
            of_job(ModelViolated, Check::Release, "high", 0),
            of_job(ModelViolated, Check::Response, "high", 0),
        ],
    );
    assert_eq!(evidence(&result, Check::Response), [("late releases".to_owned(), 1)]);
}

/// Releases are noticed at the ticks since the trace's origin, whenever that is.
#[test]
fn ticks_count_from_the_start_of_the_trace() {
    let system = short(|draft| {
        draft.platform.tick = Some(Span::from_ns(100));
        draft.tasks[0].offset = Some(Span::from_ns(30));
    });
    let make = |after: u64| {
        let mut head = header(&system, "sim");
        head.start = Instant::from_ns(1_000);
        let mut records = run(1_000 + after, 0, 0, 200).to_vec();
        records[0].value = 1_030;
        recorded(&system, &[], &records, &head)
    };
    holds(&make(100));
    finds(&make(101), &[of_job(ModelViolated, Check::Release, "high", 0)]);
}

/// No switch happens within an interrupt: one whose end is missing is over with the next switch.
#[test]
fn an_interrupt_whose_end_is_lost_is_over_with_a_switch() {
    let make = |length: u64| {
        let records = [
            switch(0, 0, 0),
            kernel(MS / 2, Kind::InterruptEntry, 36, 0),
            switch(MS, 0, 1),
            at(MS, Kind::Release, 0, 0, MS),
            at(MS, Kind::Start, 0, 0, 0),
            kernel(2 * MS, Kind::InterruptEntry, 37, 0),
            kernel(2 * MS + length, Kind::InterruptExit, 37, 0),
            at(3 * MS, Kind::Completion, 0, 0, 2 * MS),
            switch(3 * MS, 1, 0),
        ];
        measured(&long(nothing), &[], &records)
    };
    edge(make, 50 * US, of_job(MachineDisturbed, Check::Interrupt, "high", 0));
}

/// After a loss a task that has not started a job may have one that nobody saw, until the processor is idle: a switch to another
/// thread tells nothing of that.
#[test]
fn only_the_idle_thread_tells_that_no_job_is_left() {
    let make = |between: u64| {
        let job = |time: u64, number: u64, before: u64| {
            let mut records = vec![wakeup(time, 2), switch(time, before, 2)];
            records.extend(run(time, 1, number, MS));
            records
        };
        let mut records = vec![switch(0, 0, 0), kernel(MS, Kind::Lost, 5, 0)];
        records.extend(job(2 * MS, 0, 3));
        records.push(switch(3 * MS, 2, between));
        records.extend(job(22 * MS, 1, between));
        records.push(switch(23 * MS, 2, between));
        let result = measured(&long(nothing), &[], &records);
        (result.tasks[1].judged, result.tasks[1].unjudged.iter().map(|one| one.jobs).sum::<u64>())
    };
    assert_eq!((make(3), make(0)), ((0, 2), (1, 1)));
}

/// A job that sleeps before its end is found also where the switch to its thread is hidden and its wake-up tells of it.
#[test]
fn a_sleep_is_found_after_a_hidden_switch() {
    let make = |is_hidden: bool| {
        let mut records = vec![switch(0, 0, 3), wakeup(MS, 1), at(MS, Kind::Release, 0, 0, MS)];
        if is_hidden {
            records.insert(1, Record { extra: 2, ..kernel(0, Kind::Lost, 1, 0) });
        } else {
            records.push(switch(MS, 3, 1));
        }
        records.push(at(MS, Kind::Start, 0, 0, 0));
        records.extend([switch(2 * MS, 1, 0), wakeup(2_500 * US, 1), switch(2_500 * US, 0, 1)]);
        records.extend([at(3 * MS, Kind::Completion, 0, 0, 1_500 * US), switch(3 * MS, 1, 0)]);
        let result = measured(&long(nothing), &[], &records);
        let found = result.findings.iter().filter(|one| one.check == Check::SelfSuspension);
        found.map(|one| one.observed_ns).collect::<Vec<_>>()
    };
    let slept = vec![Some(Span::from_ns(500 * US))];
    assert_eq!((make(false), make(true)), (slept.clone(), slept));
}

/// A note says which servers no window judges, and none of others.
#[test]
fn servers_that_promise_no_window_are_named_in_a_note() {
    let has_note = |server: &str| {
        let text = format!(
            "[system]\nname = \"s\"\n[[task]]\nname = \"hard\"\nperiod = \"100 ns\"\nwcet = \"20 ns\"\npriority = 1\n[[task]]\nname = \
             \"soft\"\nseparation = \"50 ns\"\nwcet = \"20 ns\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\n{server}"
        );
        let (system, _) = horolog_model::file::read(&text, "s.toml", &[]).expect("a valid file");
        let result = simulated(&system, &[], &run(0, 0, 0, 20));
        result.notes.iter().any(|note| note.contains("judged by the bounds of the hard tasks"))
    };
    assert!(has_note("kind = \"background\"\n"));
    assert!(!has_note("kind = \"polling\"\nbudget = \"10 ns\"\nperiod = \"100 ns\"\npriority = 2\n"));
}

/// Time without a job says nothing of who should have run: a tenth is a tenth of the time in which jobs were ready.
#[test]
fn in_a_tree_idle_time_makes_up_for_nothing_that_was_not_judged() {
    let text = "[system]\nname = \"tree\"\n[[task]]\nname = \"a\"\nseparation = \"1 us\"\nwcet = \"100 ns\"\npriority = 1\n\
                [[scheduler]]\nname = \"v\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\nbudget = \"500 ns\"\nperiod = \"1 us\"\n\
                priority = 5\nlow_priority = \"none\"\ntasks = [\"a\"]\n";
    let (system, _) = horolog_model::file::read(text, "tree.toml", &[]).expect("a valid file");
    let make = |unknown: u64| {
        let mut records = run(0, 0, 0, 100).to_vec();
        records.push(kernel(10_000, Kind::Lost, 1, 0));
        records.push(wakeup(10_000 + unknown, 3));
        let head = header(&system, "sim");
        let mut verifier = Verifier::new(&system, &[], &head, &Options::default()).expect("it is known");
        records.iter().for_each(|record| verifier.take(record));
        let result = verifier.finish(0, None, Vec::new());
        assert_eq!(result.findings, []);
        result.notes.iter().any(|note| note.contains("was not judged for"))
    };
    assert_eq!((make(10), make(11)), (false, true));
}

/// The most that was taken in one period of a scheduler holds the period in which that was too much.
#[test]
fn the_most_of_a_period_is_that_of_the_one_that_was_too_much() {
    let text = "[system]\nname = \"tree\"\n[[task]]\nname = \"a\"\nseparation = \"1 us\"\nwcet = \"200 ns\"\npriority = 1\n\
                [[scheduler]]\nname = \"v\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\nbudget = \"100 ns\"\nperiod = \"1 us\"\n\
                priority = 5\nlow_priority = \"none\"\ntasks = [\"a\"]\n";
    let (system, _) = horolog_model::file::read(text, "tree.toml", &[]).expect("a valid file");
    for taken in [100, 101] {
        let server = simulated(&system, &[], &run(0, 0, 0, taken)).servers[0].clone();
        assert_eq!((server.period_ns_max, server.exceeded), (Some(Span::from_ns(taken)), taken - 100));
    }
}

/// A job that is under way when the trace ends has not answered yet.
#[test]
fn a_late_answer_is_told_as_given_or_not_given() {
    let said = |is_done: bool| {
        let mut records = run(0, 0, 0, 200).to_vec();
        if !is_done {
            records[2] = wakeup(200, 3);
        }
        let result = simulated(&short(nothing), &[bound(0, 199)], &records);
        result.findings.iter().find(|one| one.check == Check::Response).expect("it is late").message.clone()
    };
    assert!(said(true).starts_with("high job 0 responded after 200 ns"), "{}", said(true));
    assert!(said(false).starts_with("high job 0 is not done after 200 ns"), "{}", said(false));
}

/// Interrupts, stolen time, what the thread's clock leaves out and the tolerances explain a segment together, each as much as it is.
#[test]
fn all_that_explains_a_segment_is_added_up() {
    let system = long(|draft| {
        draft.tasks[1].preemption = segments(&[2 * MS, 3 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let (interrupt, steal, gap, slack) = (40 * US, 30 * US, 10 * US, 25 * US);
    let make = |is_virtual: &str, over: u64| {
        let point = 2 * MS + over;
        let end = point + MS;
        let records = [
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            kernel(MS, Kind::InterruptEntry, 36, 0),
            kernel(MS + interrupt, Kind::InterruptExit, 36, 0),
            kernel(1_500 * US, Kind::Steal, steal, steal),
            at(point, Kind::PreemptionPoint, 1, 0, 1),
            at(end, Kind::Completion, 1, 0, end - interrupt - gap),
            switch(end, 2, 0),
        ];
        let mut head = header(&system, "linux");
        head.machine.insert("virtual".to_owned(), is_virtual.to_owned());
        let result = recorded(&system, &[], &records, &head);
        let found = result.findings.iter().filter(|one| one.check == Check::SegmentExecution);
        found.map(|one| one.class).collect::<Vec<_>>()
    };
    let all = slack + interrupt + steal + gap;
    for is_virtual in ["yes", "no"] {
        assert_eq!(make(is_virtual, slack), []);
        assert_eq!(make(is_virtual, slack + 1), [MachineDisturbed]);
        assert_eq!(make(is_virtual, all), [MachineDisturbed]);
        assert_eq!(make(is_virtual, all + gap / 32 + 1), [ModelViolated]);
    }
    // There the gap itself may be wrong by a 32nd.
    assert_eq!((make("yes", all + 1), make("yes", all + gap / 32)), (vec![CannotTell], vec![CannotTell]));
    assert_eq!(make("no", all + 1), [ModelViolated]);
}

/// What the order of jobs looked like in doubt is never judged once a loss has made it unknown.
#[test]
fn an_order_in_doubt_is_not_judged_after_a_loss() {
    let make = |is_lost: bool| {
        let lost = |time, source| Record { extra: source, ..kernel(time, Kind::Lost, 1, 0) };
        let mut records = vec![
            switch(0, 0, 0),
            lost(0, 2),
            wakeup(MS, 2),
            at(MS, Kind::Release, 1, 0, MS),
            at(MS, Kind::Start, 1, 0, 0),
            wakeup(2 * MS, 1),
            at(2 * MS, Kind::Release, 0, 0, 2 * MS),
            at(4 * MS, Kind::Completion, 1, 0, 3 * MS),
            switch(4 * MS, 2, 1),
            at(4 * MS, Kind::Start, 0, 0, 0),
            at(5 * MS, Kind::Completion, 0, 0, MS),
            switch(5 * MS, 1, 0),
        ];
        // What "low" did against the policy is over before that.
        records.insert(8, wakeup(4 * MS, 3));
        records[9].time = Instant::from_ns(4 * MS + 10 * US);
        records.insert(9, wakeup(4 * MS + 5 * US, 3));
        if is_lost {
            records.insert(10, lost(4 * MS + 6 * US, 1));
        }
        let result = measured(&long(nothing), &[], &records);
        result.findings.iter().filter(|one| one.check == Check::PriorityInversion).count()
    };
    assert_eq!((make(false), make(true)), (1, 0));
}

fn with_a_mode() -> horolog_model::System {
    let text = "[system]\nname = \"modes\"\n[platform]\ncpus = 1\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = \
                2\n[[mode]]\nname = \"fast\"\nat = [\"15 ms\"]\n[[mode.task]]\nname = \"a\"\nperiod = \"5 ms\"\n";
    horolog_model::file::read(text, "modes.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// A job of 1 ms, and the change to the mode at 15 ms from which on "a" arrives, with other records between.
fn changing(between: &[Record]) -> Verification {
    let of_machine = |kind, value, extra| kernel(15 * MS, kind, value, extra);
    let mut records = run(0, 0, 0, MS).to_vec();
    records.extend(run(10 * MS, 0, 1, MS));
    records.extend([of_machine(Kind::ModeChange, 1, 0), of_machine(Kind::ModeEnd, 0, 1)]);
    records.extend(between);
    records.extend(run(15 * MS, 0, 2, MS));
    measured(&with_a_mode(), &[], &records)
}

/// In a run the first dispatch in a mode is told by whoever decides, before the job itself says that it starts.
#[test]
fn a_run_tells_of_a_first_dispatch_before_the_job_does() {
    let dispatch = |mode| at(15 * MS, Kind::FirstDispatch, 0, 2, mode);
    assert_eq!(changing(&[dispatch(1)]).findings, []);
    assert_eq!(changing(&[dispatch(0)]).findings.len(), 1);
}

/// A release that had arrived before a mode changed, and was not noticed before that, is none of the mode's arrivals.
#[test]
fn an_arrival_that_a_mode_has_overtaken_keeps_no_pattern() {
    let skip = |arrival| Record { job: horolog_trace::NO_JOB, ..at(15 * MS, Kind::Skip, 0, 0, arrival) };
    assert_eq!(changing(&[]).findings, []);
    assert_eq!(changing(&[skip(15 * MS - 1)]).findings, []);
    // One of the mode's own is.
    assert_eq!(changing(&[skip(15 * MS)]).findings.len(), 1);
}

/// What interrupts added to an execution is no broken assumption. The sleep is one, and without it the job would have been in time, whatever
/// else happened.
#[test]
fn an_execution_that_interrupts_explain_breaks_nothing_of_its_window() {
    let (end, next) = (5_140 * US, 10 * MS);
    let mut records = vec![
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        // It sleeps for 100 us, which makes it late by itself where less than 5.1 ms are allowed.
        switch(MS, 2, 0),
        wakeup(1_100 * US, 2),
        switch(1_100 * US, 0, 2),
        kernel(2 * MS, Kind::InterruptEntry, 36, 0),
        kernel(2 * MS + 40 * US, Kind::InterruptExit, 36, 0),
        at(end, Kind::Completion, 1, 0, 5_040 * US),
        switch(end, 2, 0),
        wakeup(next, 1),
    ];
    records.extend(run(next, 0, 0, MS));
    records.insert(12, switch(next, 0, 1));
    records.push(switch(next + MS, 1, 0));
    let late = |most: u64| {
        let result = measured(&long(nothing), &[bound(1, most)], &records);
        let found = result.findings.iter().find(|one| one.check == Check::Response);
        found.map(|one| one.class)
    };
    assert_eq!(late(5_140 * US), None);
    assert_eq!(late(5_100 * US), Some(ModelViolated));
    assert_eq!(late(5_040 * US), Some(ModelViolated));
    // Only without both.
    assert_eq!(late(5_040 * US - 1), Some(ModelViolated));
    assert_eq!(late(5 * MS), Some(ModelViolated));
    assert_eq!(late(5 * MS - 1), Some(BoundViolated));
}

/// Of the first switch on record nobody knows who had the processor before: it shows no hidden one.
#[test]
fn nothing_is_hidden_before_the_first_switch() {
    let mut records = vec![wakeup(100, 3), switch(200, 3, 0), switch(300, 0, 1)];
    records.extend(run(300, 0, 0, 200));
    records.push(switch(500, 1, 0));
    for backend in ["sim", "linux"] {
        let system = short(nothing);
        let result = recorded(&system, &[], &records, &header(&system, backend));
        assert_eq!(result.processors[0].hidden_switches, 0, "{backend}");
    }
}

/// An arrival that is too early is that, or cannot be told where the file declares no release latency.
#[test]
fn an_early_arrival_of_another_application_is_never_the_machines() {
    let system = long(nothing);
    let mut options = Options::default();
    options.tolerance.stamping = Span::ZERO;
    let make = |second: u64| {
        let mut verifier = Verifier::new(&system, &[], &header(&system, "foreign"), &options).expect("known");
        let tick = [(0, Kind::InterruptEntry), (0, Kind::InterruptExit)];
        let tick = tick.map(|(time, kind)| kernel(time, kind, 236, 1));
        let records = [&tick[..], &run(0, 0, 0, MS), &run(second, 0, 1, MS)].concat();
        records.iter().for_each(|record| verifier.take(record));
        let result = verifier.finish(0, None, Vec::new());
        let found = result.findings.iter().filter(|one| one.check == Check::Arrival);
        found.map(|one| one.class).collect::<Vec<_>>()
    };
    assert_eq!((make(10 * MS), make(10 * MS - 1)), (vec![], vec![CannotTell]));
    assert_eq!((make(9 * MS), make(9 * MS - 1)), (vec![CannotTell], vec![ModelViolated]));
}

/// A tick that comes late shows how long the processor stood still; what was stolen before the tick was due is not that.
#[test]
fn time_stolen_before_a_tick_was_due_made_it_no_later() {
    let system = long(|draft| draft.tasks[1].wcet = Span::from_ns(9 * MS));
    let mut head = header(&system, "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    let stolen = |time: u64| {
        let tick = |time, kind| kernel(time, kind, 236, 1);
        let mut records = vec![
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            tick(MS, Kind::InterruptEntry),
            tick(MS + US, Kind::InterruptExit),
            // It is due at 5 ms.
            tick(7 * MS, Kind::InterruptEntry),
            tick(7 * MS + US, Kind::InterruptExit),
            at(8 * MS, Kind::Completion, 1, 0, 8 * MS),
            switch(8 * MS, 2, 0),
        ];
        let place = records.partition_point(|record| record.time.as_ns() < time);
        records.insert(place, kernel(time, Kind::Steal, MS, MS));
        let result = recorded(&system, &[], &records, &head);
        let found = result.findings.iter().filter(|one| one.check == Check::Steal);
        found.map(|one| one.observed_ns.map_or(0, Span::as_ns)).collect::<Vec<_>>()
    };
    assert_eq!(stolen(3 * MS), [MS, 2 * MS]);
    assert_eq!(stolen(6_500 * US), [MS, MS]);
}

/// A thread that the trace's table does not have is named so.
#[test]
fn a_thread_that_is_not_known_has_no_name_and_no_number() {
    let mut records = vec![switch(0, 0, 1)];
    records.extend(run(0, 0, 0, 2 * MS));
    records.splice(3..3, [switch(MS, 1, 99), switch(MS + 500 * US, 99, 1)]);
    let result = measured(&long(nothing), &[], &records);
    let found = result.findings.iter().find(|one| one.check == Check::ForeignThread).expect("it took it");
    assert!(found.message.starts_with("? (thread 0) had CPU 0 for 500 us"), "{}", found.message);
}

/// Why a scheduler's budget is not held against what it took is told as it is.
#[test]
fn a_note_says_why_a_budget_of_a_tree_is_not_judged() {
    let note = |kind: &str| {
        let text = format!(
            "[system]\nname = \"tree\"\n[[task]]\nname = \"a\"\nseparation = \"1 us\"\nwcet = \"200 ns\"\npriority = 1\n\
             [[scheduler]]\nname = \"v\"\norder = \"fixed-priority\"\nkind = \"{kind}\"\nbudget = \"100 ns\"\nperiod = \"1 us\"\n\
             priority = 5\nlow_priority = \"background\"\ntasks = [\"a\"]\n"
        );
        let (system, _) = horolog_model::file::read(&text, "tree.toml", &[]).expect("a valid file");
        let notes = simulated(&system, &[], &run(0, 0, 0, 100)).notes;
        notes.into_iter().find(|note| note.contains("was not held against its budget"))
    };
    let polling = "scheduler v: what it took was not held against its budget: without work its budget goes without a record, and it \
                   goes on at its low place";
    assert_eq!((note("polling"), note("deferrable")), (Some(polling.to_owned()), None));
}

/// A job comes to wait for a resource only while it has the processor.
#[test]
fn only_a_running_job_waits_for_a_resource() {
    let system = short(|draft| {
        section(draft, 10, 20);
        let of_high = horolog_model::Section { from: Span::from_ns(5), ..draft.tasks[1].sections[0].clone() };
        draft.tasks[0].sections.push(of_high);
    });
    let make = |starts: bool| {
        let mut records = vec![
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(10, Kind::Lock, 1, 0, 0),
            at(15, Kind::Release, 0, 0, 15),
        ];
        if starts {
            records.extend([at(15, Kind::Preempt, 1, 0, 0), at(15, Kind::Start, 0, 0, 0)]);
        }
        records.push(Record { extra: 1, ..at(20, Kind::Suspend, 0, 0, 0) });
        let result = simulated(&system, &[], &records);
        let found = result.findings.iter().filter(|one| one.check == Check::EventOrder);
        found.map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(make(true), Vec::<String>::new());
    assert_eq!(make(false), ["suspend of high job 0: the job is ready and has not started"]);
}

/// Jobs that a mode makes equals are served in the order of their release: whoever gets the processor from that instant on may not have
/// come later, and whoever has it goes on.
#[test]
fn whoever_gets_the_processor_as_a_mode_begins_is_judged_by_it() {
    let text = "[system]\nname = \"modes\"\n[platform]\ncpus = 1\n\
                [[task]]\nname = \"top\"\nperiod = \"9 us\"\nwcet = \"100 ns\"\npriority = 9\n\
                [[task]]\nname = \"first\"\nperiod = \"9 us\"\nwcet = \"100 ns\"\npriority = 1\n\
                [[task]]\nname = \"later\"\nperiod = \"9 us\"\nwcet = \"100 ns\"\npriority = 2\n\
                [[mode]]\nname = \"even\"\nat = [\"500 ns\"]\n[[mode.task]]\nname = \"later\"\npriority = 1\n";
    let (system, _) =
        horolog_model::file::read(text, "modes.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let make = |until: u64| {
        let mut records = vec![
            at(400, Kind::Release, 0, 0, 400),
            at(400, Kind::Start, 0, 0, 0),
            at(410, Kind::Release, 1, 0, 410),
            at(420, Kind::Release, 2, 0, 420),
            kernel(500, Kind::ModeChange, 1, 0),
            at(until, Kind::Completion, 0, 0, until - 400),
            at(until, Kind::Start, 2, 0, 0),
            at(until + 100, Kind::Completion, 2, 0, 100),
            at(until + 100, Kind::Start, 1, 0, 0),
            at(until + 200, Kind::Completion, 1, 0, 100),
        ];
        records.sort_by_key(|record| record.time);
        let result = simulated(&system, &[], &records);
        result.findings.iter().filter(|one| one.check == Check::FirstInFirstOut).count()
    };
    assert_eq!((make(499), make(500)), (0, 1));
}

/// Without the kernel's record it is not known what kept a job from its processor: no cause is named.
#[test]
fn where_no_disturbance_is_on_record_none_is_blamed() {
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(2 * MS, Kind::Start, 0, 0, 0),
        at(3 * MS, Kind::Completion, 0, 0, MS),
    ];
    let late = |most: u64| {
        let result = measured(&long(nothing), &[bound(0, most)], &records);
        let found = result.findings.iter().find(|one| one.check == Check::Response);
        found.map(|one| one.class)
    };
    assert_eq!(late(3 * MS), None);
    assert_eq!(late(3 * MS - 1), Some(CannotTell));
    assert_eq!(late(MS), Some(CannotTell));
}
