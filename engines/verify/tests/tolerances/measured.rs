//! Measured traces: what time stamps, clocks and the kernel's ways leave open, and nothing else.

use crate::traces::*;
use horolog_model::{Access, CpuId, Draft, Interference, Preemption, Priority, Resource, Section};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{CannotTell, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Options, Verification};

fn latency(ns: u64) -> impl Fn(&mut Draft) {
    move |draft| draft.platform.release_latency = Some(Span::from_ns(ns))
}

fn load(ppb: u64, period: u64) -> Interference {
    Interference {
        name: "load".to_owned(),
        cpu: CpuId(0),
        utilisation_ppb: ppb,
        period: Span::from_ns(period),
    }
}

#[test]
fn the_tolerances_are_the_documented_ones() {
    let tolerance = Options::default().tolerance;
    let all = [
        tolerance.stamping,
        tolerance.execution,
        tolerance.dispatch,
        tolerance.interrupt,
        tolerance.budget,
        tolerance.evidence_delay,
    ];
    assert_eq!(all.map(Span::as_ns), [20_000, 5_000, 100_000, 50_000, 100_000, 250_000_000]);
}

/// The thread of "high" wakes `late` after its arrival at `arrival`, and gets the idle processor at once.
fn woken(arrival: u64, late: u64) -> Vec<Record> {
    let time = arrival + late;
    vec![
        switch(0, 0, 0),
        wakeup(time, 1),
        switch(time, 0, 1),
        at(time, Kind::Release, 0, 0, arrival),
        at(time, Kind::Start, 0, 0, 0),
        at(time + MS, Kind::Completion, 0, 0, MS),
        switch(time + MS, 1, 0),
    ]
}

#[test]
fn releases() {
    let expected = of_job(MachineDisturbed, Check::Release, "high", 0);
    let late = |change: &dyn Fn(&mut Draft), limit| {
        let system = long(change);
        edge(|late| measured(&system, &[], &woken(MS, late)), limit, expected);
    };
    late(&nothing, 20 * US);
    late(&latency(30 * US), 50 * US);
    let jitter = |draft: &mut Draft| {
        draft.tasks[0].jitter = Span::from_ns(7 * US);
        draft.platform.release_latency = Some(Span::from_ns(30 * US));
    };
    late(&jitter, 57 * US);
    let found = measured(&long(jitter), &[], &woken(MS, 57 * US + 1));
    assert_eq!(numbers(&found), (57 * US + 1, 37 * US));
    assert_eq!(found.tasks[0].release_latency_ns_max, Some(Span::from_ns(57 * US + 1)));
    // Before its arrival by more than the time stamps leave open.
    let early = |by: u64| {
        let mut records = woken(MS - by, 0);
        records[3].value = MS;
        measured(&long(nothing), &[], &records)
    };
    edge(early, 20 * US, of_job(ModelViolated, Check::Release, "high", 0));
}

#[test]
fn releases_that_are_noticed_after_their_record() {
    // As the executive records it: the release with its nominal arrival, the wake-up when the timer went off.
    let make = |late: u64| {
        let mut records = woken(0, MS + late);
        records[3] = at(MS, Kind::Release, 0, 0, MS);
        records.swap(1, 3);
        records.swap(2, 3);
        let system = long(latency(30 * US));
        measured(&system, &[], &records)
    };
    edge(make, 50 * US, of_job(MachineDisturbed, Check::Release, "high", 0));
}

#[test]
fn waiting_for_more_important_jobs_is_no_lateness_and_the_rest_is() {
    // "low" notes its release when it first runs; "high" had the processor for 1 ms.
    let make = |late: u64| {
        let records = [
            switch(0, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            at(MS, Kind::Completion, 0, 0, MS),
            switch(MS, 1, 0),
            switch(MS + late, 0, 2),
            at(MS + late, Kind::Release, 1, 0, 0),
            at(MS + late, Kind::Start, 1, 0, 0),
            at(2 * MS, Kind::Completion, 1, 0, MS - late),
            switch(2 * MS, 2, 0),
        ];
        measured(&long(nothing), &[], &records)
    };
    edge(make, 20 * US, of_job(MachineDisturbed, Check::Release, "low", 0));
}

/// "low" runs; "high" arrives at 8 ms, wakes `late` after that, and gets the processor `on` later; "low" ends with
/// that, if `completes`.
fn switched(change: impl Fn(&mut Draft), late: u64, on: u64, completes: bool) -> Verification {
    measured(&long(change), &[], &running_on(late, on, completes))
}

#[test]
fn switches_to_a_more_important_job() {
    let disturbed = of_job(MachineDisturbed, Check::PriorityInversion, "high", 0);
    edge(|on| switched(nothing, 0, on, false), 20 * US, disturbed);
    edge(|on| switched(latency(30 * US), 0, on, false), 50 * US, disturbed);
    // Where the less important job ran on to its end, the policy was not kept; a little is the machine's.
    let violated = of_job(ModelViolated, Check::PriorityInversion, "high", 0);
    edge(|on| switched(latency(30 * US), 0, on, true), 50 * US, disturbed);
    turns(|on| switched(latency(30 * US), 0, on, true), 150 * US, disturbed, violated);
}

/// Jobs that are under way at the horizon complete behind it, in the order of before.
#[test]
fn the_order_is_judged_behind_the_horizon() {
    let system = long(nothing);
    for horizon in [8 * MS + 1, 8 * MS + 10 * US, 20 * MS] {
        let mut head = header(&system, "linux");
        head.horizon = Span::from_ns(horizon);
        let make = |on| {
            let result = recorded(&system, &[], &running_on(0, on, false), &head);
            let of_order = result.findings.iter().filter(|one| one.check == Check::PriorityInversion);
            of_order.map(|one| (one.class, one.observed_ns)).collect::<Vec<_>>()
        };
        assert_eq!(make(20 * US), [], "{horizon}");
        let length = Some(Span::from_ns(20 * US + 1));
        assert_eq!(make(20 * US + 1), [(MachineDisturbed, length)], "{horizon}");
    }
}

/// The point that a job must have come to moves with an interrupt that goes on.
#[test]
fn a_preemption_point_is_not_due_within_an_interrupt() {
    let system = long(|draft| {
        // With sections no blocking is allowed for, and the order alone tells of a point that does not come.
        draft.resources.push(Resource { name: "bus".to_owned(), ..Resource::default() });
        let (from, length) = (Span::ZERO, Span::from_ns(US));
        draft.tasks[0].sections.push(Section {
            resource: "bus".to_owned(),
            from,
            length,
            access: Access::Write,
        });
        draft.tasks[1].preemption = segments(&[2 * MS, 3 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let begun = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
    ];
    // Due at 4 ms; the interrupt begins right before that and takes a millisecond.
    let make = |on: u64| {
        let mut records = begun.to_vec();
        let end = 5 * MS + on;
        records.extend([
            kernel(4 * MS - 1, Kind::InterruptEntry, 9, 0),
            kernel(5 * MS - 1, Kind::InterruptExit, 9, 0),
            at(end, Kind::Completion, 1, 0, end - MS),
            switch(end, 2, 1),
            at(end, Kind::Start, 0, 0, 0),
            at(end + MS, Kind::Completion, 0, 0, MS),
            switch(end + MS, 1, 0),
        ]);
        let result = measured(&system, &[], &records);
        let of_order = result.findings.iter().filter(|one| one.check == Check::PriorityInversion);
        of_order.count()
    };
    assert_eq!((make(20 * US), make(20 * US + 1)), (0, 1));
    // The verifier does not recurse for each of them, however many there are and however long they last.
    let mut records = begun.to_vec();
    records.extend((0..1_000_000).map(|place| kernel(4 * MS - 1 + place, Kind::InterruptEntry, 9, 0)));
    records.push(kernel(5_000 * MS, Kind::InterruptExit, 9, 0));
    let result = measured(&system, &[], &records);
    assert_eq!(result.records, 1_000_000 + 6);
    assert!(result.findings.iter().all(|one| one.check != Check::PriorityInversion), "{:?}", result.findings);
}

#[test]
fn a_kernel_is_not_so_late_by_itself() {
    // The less important job loses the processor in the end, a millisecond beyond what is allowed: it was not to be preempted.
    let disturbed = of_job(MachineDisturbed, Check::PriorityInversion, "high", 0);
    let violated = of_job(ModelViolated, Check::PriorityInversion, "high", 0);
    turns(|on| switched(latency(30 * US), 0, on, false), 1_050 * US, disturbed, violated);
    let found = switched(latency(30 * US), 0, 1_050 * US + 1, false);
    assert_eq!(found.groups[0].subject, "low", "who runs on is named");
    assert_eq!(switched(latency(30 * US), 0, 1_050 * US, false).groups[0].subject, "high");
}

#[test]
fn a_job_that_passes_no_preemption_point() {
    let system = long(|draft| {
        draft.tasks[1].preemption = segments(&[2 * MS, 3 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    // "low" begins 1 ms before "high" comes, and keeps the processor to its end. The thread of "high" wakes at its arrival, or once it may run.
    let make = |woken: bool, on: u64| {
        let records = [
            switch(0, 0, 0),
            wakeup(9 * MS, 2),
            at(9 * MS, Kind::Release, 1, 0, 9 * MS),
            switch(9 * MS, 0, 2),
            at(9 * MS, Kind::Start, 1, 0, 0),
            wakeup(10 * MS, if woken { 1 } else { 4 }),
            at(10 * MS, Kind::Release, 0, 0, 10 * MS),
            at(10 * MS + on, Kind::Completion, 1, 0, MS + on),
            at(10 * MS + on, Kind::Start, 0, 0, 0),
            wakeup(10 * MS + on, 1),
            switch(10 * MS + on, 2, 1),
            at(11 * MS + on, Kind::Completion, 0, 0, MS),
            switch(11 * MS + on, 1, 0),
        ];
        measured(&system, &[bound(0, 4 * MS)], &records)
    };
    for woken in [true, false] {
        let found = make(woken, 3 * MS + 25 * US);
        assert!(found.findings.iter().all(|one| one.check != Check::Blocking), "{:#?}", found.findings);
        let found = make(woken, 3 * MS + 25 * US + 1);
        let classes: Vec<_> = found.findings.iter().map(|one| (one.check, one.class)).collect();
        let expected = [(Check::Blocking, ModelViolated), (Check::Response, ModelViolated)];
        assert_eq!(classes, expected, "{:#?}", found.findings);
        assert!(found.groups.iter().any(|group| group.subject == "low"), "{:#?}", found.groups);
    }
}

#[test]
fn a_job_that_sleeps_keeps_no_other_from_the_processor() {
    let sleeps = Record { task: 0, ..kernel(MS, Kind::KernelBlock, 1, u64::from(b'S')) };
    let records = [
        switch(0, 0, 1),
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        switch(MS, 1, 2),
        sleeps,
        at(MS, Kind::Start, 1, 0, 0),
        wakeup(5 * MS, 1),
        switch(5 * MS, 2, 1),
        at(6 * MS, Kind::Completion, 0, 0, 2 * MS),
        switch(6 * MS, 1, 2),
        at(7 * MS, Kind::Completion, 1, 0, 5 * MS),
        switch(7 * MS, 2, 0),
    ];
    finds(
        &measured(&long(nothing), &[], &records),
        &[of_job(ModelViolated, Check::SelfSuspension, "high", 0)],
    );
}

#[test]
fn the_release_latency_is_allowed_once() {
    // What the release took of it is gone for the switch; the time stamps' tolerance is left.
    let disturbed = of_job(MachineDisturbed, Check::PriorityInversion, "high", 0);
    edge(|on| switched(latency(30 * US), 10 * US, on, false), 40 * US, disturbed);
    edge(|on| switched(latency(30 * US), 30 * US, on, false), 20 * US, disturbed);
    // Jitter is no latency: a job that jitter delayed has all of it left.
    let jitter = |draft: &mut Draft| {
        draft.tasks[0].jitter = Span::from_ns(7 * US);
        draft.platform.release_latency = Some(Span::from_ns(30 * US));
    };
    edge(|on| switched(jitter, 7 * US, on, false), 50 * US, disturbed);
    edge(|on| switched(jitter, 8 * US, on, false), 49 * US, disturbed);
    // Beyond it the release is found, and the switch has the tolerance still.
    let late = of_job(MachineDisturbed, Check::Release, "high", 0);
    finds(&switched(latency(30 * US), 51 * US, 20 * US, false), &[late]);
    // The same for an idle processor and for a thread outside the model.
    let taken = |thread: u64, on: u64| {
        let mut records = woken(MS, 30 * US);
        records[0] = switch(0, 0, thread);
        records.swap(2, 3);
        for record in &mut records[3..] {
            record.time = Instant::from_ns(record.time.as_ns() + on);
        }
        records[3].value = thread;
        measured(&long(latency(30 * US)), &[], &records)
    };
    edge(|on| taken(0, on), 20 * US, of_job(MachineDisturbed, Check::Gap, "high", 0));
    edge(|on| taken(3, on), 20 * US, of_job(MachineDisturbed, Check::ForeignThread, "high", 0));
}

#[test]
fn idling() {
    let make = |on: u64| {
        let mut records = woken(MS, 0);
        records.swap(2, 3);
        for record in &mut records[3..] {
            record.time = Instant::from_ns(record.time.as_ns() + on);
        }
        measured(&long(latency(30 * US)), &[], &records)
    };
    edge(make, 50 * US, of_job(MachineDisturbed, Check::Gap, "high", 0));
}

/// "high" has the processor for 2 ms and `more`, and executes as long; of that `interrupted` in an interrupt.
fn executed(more: u64, interrupted: u64, stolen: Option<(u64, u64)>) -> Vec<Record> {
    let end = 2 * MS + more;
    let mut records = vec![switch(0, 0, 1), at(0, Kind::Release, 0, 0, 0), at(0, Kind::Start, 0, 0, 0)];
    if interrupted > 0 {
        records.push(kernel(MS, Kind::InterruptEntry, 36, 0));
        records.push(kernel(MS + interrupted, Kind::InterruptExit, 36, 0));
    }
    records.push(at(end, Kind::Completion, 0, 0, end));
    records.push(switch(end, 1, 0));
    records.extend(stolen.map(|(time, amount)| kernel(time, Kind::Steal, amount, time)));
    records
}

#[test]
fn execution() {
    let violated = of_job(ModelViolated, Check::Execution, "high", 0);
    let disturbed = of_job(MachineDisturbed, Check::Execution, "high", 0);
    let make = |more| measured(&long(nothing), &[], &executed(more, 0, None));
    edge(make, 5 * US, violated);
    assert_eq!(numbers(&make(5 * US + 1)), (2 * MS + 5 * US + 1, 2 * MS));
    // Interrupts explain what they took, and the reading of the clock the rest.
    let make = |more| measured(&long(nothing), &[], &executed(more, 40 * US, None));
    edge(make, 5 * US, disturbed);
    turns(make, 45 * US, disturbed, violated);
}

#[test]
fn stolen_time_explains_execution() {
    let classes = |more: u64, amount| {
        let records = executed(more, 0, Some((3 * MS, amount)));
        let result = measured(&long(nothing), &[], &records);
        let execution = result.findings.iter().filter(|one| one.check == Check::Execution);
        execution.map(|one| one.class).collect::<Vec<_>>()
    };
    assert_eq!(classes(45 * US, 40 * US), [MachineDisturbed]);
    assert_eq!(classes(45 * US + 1, 40 * US), [ModelViolated]);
}

#[test]
fn evidence_that_comes_late() {
    // The job ends at 2.1 ms. Until 250 ms later its evidence may come, whatever is on record in between.
    let classes = |time: u64, between: Option<u64>| {
        let mut records = executed(100 * US, 0, None);
        records.extend(between.map(|time| wakeup(time, 3)));
        records.push(kernel(time, Kind::Steal, 200 * US, time));
        let result = measured(&long(nothing), &[], &records);
        let execution = result.findings.iter().filter(|one| one.check == Check::Execution);
        execution.map(|one| one.class).collect::<Vec<_>>()
    };
    let last = 252 * MS + 100 * US;
    for between in [None, Some(last)] {
        assert_eq!(classes(last, between), [MachineDisturbed], "{between:?}");
        assert_eq!(classes(last + 1, between), [ModelViolated], "{between:?}");
    }
}

#[test]
fn interrupts() {
    let expected = of_job(MachineDisturbed, Check::Interrupt, "high", 0);
    let make =
        |change: &dyn Fn(&mut Draft), length: u64| measured(&long(change), &[], &executed(0, length, None));
    edge(|length| make(&nothing, length), 50 * US, expected);
    let costly = |draft: &mut Draft| draft.platform.timer_interrupt = Some(Span::from_ns(3 * US));
    edge(|length| make(&costly, length), 53 * US, expected);
    // Half of every 20 us: of an interrupt of 110 us, (110 + 10) / 2.
    let loaded = |draft: &mut Draft| draft.interferences.push(load(500_000_000, 20 * US));
    edge(|length| make(&loaded, length), 110 * US, expected);
}

#[test]
fn gaps() {
    let make = |change: &dyn Fn(&mut Draft), gap: u64| {
        let mut records = executed(0, 0, None);
        records[3].value -= gap;
        measured(&long(change), &[], &records)
    };
    let expected = of_job(MachineDisturbed, Check::Gap, "high", 0);
    edge(|gap| make(&nothing, gap), 20 * US, expected);
    let costly = |draft: &mut Draft| draft.platform.context_switch = Some(Span::from_ns(2 * US));
    edge(|gap| make(&costly, gap), 22 * US, expected);
}

/// "high" and "low" are equals. "high" was released `later` than "low", and goes first.
fn overtaken(later: u64) -> Verification {
    let system = long(|draft| draft.tasks[0].priority = Some(Priority::new(1)));
    let records = [
        wakeup(0, 2),
        at(0, Kind::Release, 1, 0, 0),
        wakeup(later, 1),
        at(later, Kind::Release, 0, 0, later),
        switch(later, 0, 1),
        at(later, Kind::Start, 0, 0, 0),
        at(later + MS, Kind::Completion, 0, 0, MS),
        switch(later + MS, 1, 2),
        at(later + MS, Kind::Start, 1, 0, 0),
        at(later + 2 * MS, Kind::Completion, 1, 0, MS),
        switch(later + 2 * MS, 2, 0),
    ];
    measured(&system, &[], &records)
}

#[test]
fn equals() {
    edge(overtaken, 20 * US, of_job(ModelViolated, Check::FirstInFirstOut, "low", 0));
}

/// "low" may not be preempted. It starts `after` the release of "high" at 100 us and executes for `length`.
fn blocked(after: u64, length: u64) -> Verification {
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let (high, start) = (100 * US, 100 * US + after);
    let mut records = vec![
        switch(0, 0, 0),
        wakeup(high, 2),
        at(high, Kind::Release, 1, 0, high),
        wakeup(high, 1),
        at(high, Kind::Release, 0, 0, high),
        switch(start, 0, 2),
        at(start, Kind::Start, 1, 0, 0),
        at(start + length, Kind::Completion, 1, 0, length.min(5 * MS)),
        switch(start + length, 2, 1),
        at(start + length, Kind::Start, 0, 0, 0),
        at(start + length + MS, Kind::Completion, 0, 0, MS),
    ];
    records.sort_by_key(|record| record.time);
    measured(&system, &[], &records)
}

#[test]
fn the_beginning_of_a_non_preemptive_stretch() {
    edge(|after| blocked(after, MS), 20 * US - 1, of_job(ModelViolated, Check::PriorityInversion, "high", 0));
}

#[test]
fn blocking() {
    // Time stamps and the reading of the clock may show more than the longest stretch.
    let found = |length: u64| {
        let result = blocked(0, length);
        let blocking = result.findings.iter().filter(|one| one.check == Check::Blocking);
        blocking.map(|one| (one.class, one.task.clone(), one.job)).collect::<Vec<_>>()
    };
    assert_eq!(found(5 * MS + 25 * US), []);
    let outside = found(5 * MS + 25 * US + 1);
    // It had the processor for longer than it executed: another thread may have had it unseen.
    assert_eq!(outside, [(CannotTell, Some("high".to_owned()), Some(0))]);
}

#[test]
fn segments_of_a_job() {
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
            at(first, Kind::PreemptionPoint, 1, 0, 1),
            at(end, Kind::Completion, 1, 0, end),
            switch(end, 2, 0),
        ];
        measured(&system, &[], &records)
    };
    let limit = 2 * MS + 25 * US;
    holds(&make(limit));
    finds(&make(limit + 1), &[of_job(ModelViolated, Check::SegmentExecution, "low", 0)]);
}

#[test]
fn sections_of_a_job() {
    let system = long(|draft| section(draft, MS, 2 * MS));
    // "high" may come in between, by which "low" gets the processor once more.
    let make = |held: u64, is_preempted: bool| {
        let mut records = vec![
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(MS, Kind::Lock, 1, 0, 0),
        ];
        let mut end = MS + held;
        if is_preempted {
            records.extend([
                wakeup(2 * MS, 1),
                at(2 * MS, Kind::Release, 0, 0, 2 * MS),
                at(2 * MS, Kind::Preempt, 1, 0, 0),
                switch(2 * MS, 2, 1),
                at(2 * MS, Kind::Start, 0, 0, 0),
                at(3 * MS, Kind::Completion, 0, 0, MS),
                at(3 * MS, Kind::Resume, 1, 0, 0),
                switch(3 * MS, 1, 2),
            ]);
            end += MS;
        }
        records.extend([
            at(end, Kind::Unlock, 1, 0, 0),
            at(end + MS, Kind::Completion, 1, 0, held + 2 * MS),
            switch(end + MS, 2, 0),
        ]);
        measured(&system, &[], &records)
    };
    let beyond = of_job(ModelViolated, Check::SegmentExecution, "low", 0);
    let limit = 2 * MS + 25 * US;
    holds(&make(limit, false));
    finds(&make(limit + 1, false), &[beyond]);
    holds(&make(limit + 20 * US, true));
    finds(&make(limit + 20 * US + 1, true), &[beyond]);
}

#[test]
fn threads_outside_the_model() {
    // "burst" takes the processor from "high" for `length`.
    let make = |change: &dyn Fn(&mut Draft), length: u64| {
        let records = [
            switch(0, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            switch(MS, 1, 3),
            switch(MS + length, 3, 1),
            at(2 * MS + length, Kind::Completion, 0, 0, 2 * MS),
            switch(2 * MS + length, 1, 0),
        ];
        measured(&long(change), &[], &records)
    };
    let expected = of_job(MachineDisturbed, Check::ForeignThread, "high", 0);
    edge(|length| make(&nothing, length), 0, expected);
    // The file declares a tenth of every millisecond: of 100 us all, of w the tenth of w + 0.9 ms.
    let loaded = |draft: &mut Draft| draft.interferences.push(load(100_000_000, MS));
    edge(|length| make(&loaded, length), 100 * US, expected);
    // Until it is switched away it may have the latency of a release.
    edge(|length| had(&nothing, length), 20 * US, expected);
    edge(|length| had(&latency(30 * US), length), 50 * US, expected);
}

/// "burst" has the processor when "high" is released, and for `length` more.
fn had(change: &dyn Fn(&mut Draft), length: u64) -> Verification {
    let mut records = woken(MS, 0);
    records[0] = switch(0, 0, 3);
    records.swap(2, 3);
    for record in &mut records[3..] {
        record.time = Instant::from_ns(record.time.as_ns() + length);
    }
    records[3].value = 3;
    measured(&long(change), &[], &records)
}

#[test]
fn the_tick() {
    // 250 Hz: a tick that comes more than a quarter of 4 ms late shows that the machine stood still.
    let system = long(|draft| draft.tasks[1].wcet = Span::from_ns(9 * MS));
    let mut head = header(&system, "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    let make = |gap: u64| {
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
        records.sort_by_key(|record| record.time);
        recorded(&system, &[], &records, &head)
    };
    edge(make, 5 * MS, (MachineDisturbed, Check::Steal, None, None));
    assert_eq!(numbers(&make(5 * MS + 1)), (MS + 1, 0));
}

#[test]
fn pauses_of_a_virtual_machine_that_leave_no_trace() {
    let system = long(nothing);
    let mut head = header(&system, "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    head.machine.insert("virtual".to_owned(), "yes".to_owned());
    let make = |more| recorded(&system, &[], &executed(more, 0, None), &head);
    let disturbed = of_job(MachineDisturbed, Check::Execution, "high", 0);
    let doubtful = of_job(CannotTell, Check::Execution, "high", 0);
    turns(make, MS, disturbed, doubtful);
    // The longest pause that makes no tick late: it begins behind one, and ends a quarter behind the next.
    turns(make, 5 * MS, doubtful, of_job(ModelViolated, Check::Execution, "high", 0));
}

/// Eighty jobs of "high" and forty of "low", of which the first ones execute a millisecond too long, and stolen time that is on record when none
/// of them has the processor.
#[test]
fn pauses_of_a_virtual_machine_that_its_hypervisor_accounts_for() {
    let system = long(nothing);
    let classes_of = |is_virtual: &str, too_long: [u64; 2], stolen: u64| {
        let mut head = header(&system, "linux");
        head.machine.insert("tick_hz".to_owned(), "250".to_owned());
        head.machine.insert("virtual".to_owned(), is_virtual.to_owned());
        let length = |job: u64, most: u64, too_long: u64| if job < too_long { most + MS } else { MS };
        let high = (0..80).flat_map(|job| run(10 * job * MS, 0, job, length(job, 2 * MS, too_long[0])));
        let low = (0..40).flat_map(|job| {
            let [mut release, start, end] =
                run(20 * job * MS + 4 * MS, 1, job, length(job, 5 * MS, too_long[1]));
            (release.time, release.value) = (Instant::from_ns(20 * job * MS), 20 * job * MS);
            [release, start, end]
        });
        let mut records: Vec<Record> = high.chain(low).collect();
        records.sort_by_key(|record| record.time);
        records.extend((stolen > 0).then(|| kernel(799 * MS, Kind::Steal, stolen, stolen)));
        classes(&recorded(&system, &[], &records, &head), Check::Execution)
    };
    let four = |class| vec![class; 4];
    // Four in eighty, and no more in all than was taken.
    assert_eq!(classes_of("yes", [4, 0], 4 * MS), four(CannotTell));
    assert_eq!(classes_of("yes", [4, 0], 4 * MS - 1), four(ModelViolated));
    assert_eq!(classes_of("yes", [5, 0], 5 * MS), vec![ModelViolated; 5]);
    assert_eq!(classes_of("no", [4, 0], 4 * MS), four(ModelViolated));
    assert_eq!(classes_of("yes", [4, 0], 0), four(ModelViolated));
    assert_eq!(classes_of("yes", [1, 0], 0), [MachineDisturbed]);
    // What was taken is taken once, from all tasks of the processor.
    assert_eq!(classes_of("yes", [2, 2], 4 * MS), four(CannotTell));
    assert_eq!(classes_of("yes", [2, 2], 4 * MS - 1), four(ModelViolated));
}

#[test]
fn bounds_are_compared_as_they_are() {
    let make = |response| measured(&long(nothing), &[bound(0, response)], &woken(0, 0));
    holds(&make(MS));
    let found = make(MS - 1);
    finds(&found, &[of_job(horolog_verify::Class::BoundViolated, Check::Response, "high", 0)]);
}

/// Two jobs of "high", whose thread gets the processor in the class `changed` in the first, and as it was given in the second.
fn in_another_class(changed: u64, back: bool, backend: &str) -> Verification {
    let system = long(nothing);
    let class =
        |time: u64, extra: u64| Record { extra, ..at(time, Kind::KernelClass, 0, horolog_trace::NO_JOB, 1) };
    let mut records = vec![switch(0, 0, 1), class(0, changed)];
    records.extend(run(0, 0, 0, MS));
    records.push(switch(MS, 1, 0));
    records.push(switch(10 * MS, 0, 1));
    if back {
        records.push(class(10 * MS, 0));
    }
    records.extend(run(10 * MS, 0, 1, MS));
    records.push(switch(11 * MS, 1, 0));
    recorded(&system, &[], &records, &header(&system, backend))
}

#[test]
fn a_job_whose_thread_is_no_real_time_one() {
    let of = |job| of_job(ModelViolated, Check::RealTime, "high", job);
    for (changed, what) in
        [(1, "is not real-time any more"), (2, "has a lower priority than the run gave it")]
    {
        finds(&in_another_class(changed, true, "linux"), &[of(0)]);
        finds(&in_another_class(changed, false, "linux"), &[of(0), of(1)]);
        assert!(in_another_class(changed, true, "linux").findings[0].message.contains(what));
        // Where nothing was promised nothing is asked.
        holds(&in_another_class(changed, false, "linux-best-effort"));
    }
    holds(&in_another_class(0, false, "linux"));
}

#[test]
fn a_task_that_runs_before_one_that_has_lowered_itself_is_not_accused() {
    let recorded_by = |class: Option<u64>, backend: &str| {
        let system = long(nothing);
        let mut records = vec![switch(0, 0, 1), at(0, Kind::Release, 0, 0, 0), at(0, Kind::Start, 0, 0, 0)];
        records.extend([at(0, Kind::Release, 1, 0, 0), switch(MS / 2, 1, 2)]);
        records.extend(
            class.map(|extra| Record { extra, ..at(MS / 2, Kind::KernelClass, 0, horolog_trace::NO_JOB, 1) }),
        );
        records.extend([at(MS / 2, Kind::Start, 1, 0, 0), at(3 * MS, Kind::Completion, 1, 0, 5 * MS / 2)]);
        records.extend([
            switch(3 * MS, 2, 1),
            at(7 * MS / 2, Kind::Completion, 0, 0, MS),
            switch(7 * MS / 2, 1, 0),
        ]);
        recorded(&system, &[bound(0, 2 * MS)], &records, &header(&system, backend))
    };
    let found = |class| recorded_by(class, "linux");
    let accused = |found: &Verification, name: &str| {
        found.groups.iter().any(|group| group.class == ModelViolated && group.subject == name)
    };
    // A best-effort run gives no class, so that none is the task's own.
    let of = |class| recorded_by(class, "linux-best-effort").groups;
    assert_eq!(of(Some(1)), of(None));
    assert!(accused(&found(None), "low"), "{:?}", found(None).findings);
    for class in [1, 2] {
        let found = found(Some(class));
        assert!(!accused(&found, "low") && accused(&found, "high"), "{:?}", found.findings);
        let late = found.findings.iter().find(|one| one.check == Check::Response).expect("it is late");
        assert!(late.class == ModelViolated && late.message.contains("assumptions of high"), "{late:?}");
    }
}
