//! What the machines cut and what their control allows: one unit inside and one outside of each.

use crate::traces::*;
use horolog_model::{Access, Arrival, Draft, Preemption, Resource, Section, System};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use horolog_verify::Check;
use horolog_verify::Class::{
    self, BoundViolated, CannotTell, MachineDisturbed, ModelViolated, ScheduleDiffers,
};

/// Whose fault the late answers of a task are.
fn of(task: u32, most: u64, system: &System, records: &[Record]) -> Vec<Class> {
    classes(&simulated(system, &[bound(task, most)], records), Check::Response)
}

/// The same in a run, with the tasks that the first one names.
fn of_run(task: u32, most: u64, system: &System, records: &[Record]) -> Vec<(Class, String)> {
    let result = measured(system, &[bound(task, most)], records);
    let late = result.findings.into_iter().filter(|one| one.check == Check::Response);
    late.map(|one| (one.class, one.message)).collect()
}

fn class_of_run(task: u32, most: u64, system: &System, records: &[Record]) -> Vec<Class> {
    of_run(task, most, system, records).into_iter().map(|(class, _)| class).collect()
}

#[test]
fn an_execution_is_cut_above_its_wcet() {
    let make = |more: u64, most| of(1, most, &short(nothing), &run(0, 1, 0, 500 + more));
    assert_eq!(make(0, 500), []);
    assert_eq!(make(0, 499), [BoundViolated]);
    assert_eq!(make(1, 500), [ModelViolated]);
    assert_eq!(make(1, 499), [BoundViolated]);
}

#[test]
fn a_measured_execution_is_cut_above_its_wcet_and_the_reading_of_the_clock() {
    let make = |more: u64, most: u64| {
        let end = 5 * MS + more;
        let mut records = vec![switch(0, 0, 2)];
        records.extend(run(0, 1, 0, end));
        records.push(switch(end, 2, 0));
        class_of_run(1, most, &long(nothing), &records)
    };
    assert_eq!(make(5 * US, 5 * MS + 5 * US), []);
    // Within the reading of the clock nothing says that it executed longer than its wcet, nor that it did not.
    assert_eq!(make(5 * US, 5 * MS), [CannotTell]);
    assert_eq!(make(5 * US + 1, 5 * MS), [ModelViolated]);
    assert_eq!(make(5 * US, 5 * MS - 1), [BoundViolated]);
    assert_eq!(make(5 * US + 1, 5 * MS - 1), [BoundViolated]);
}

#[test]
fn an_arrival_is_moved_to_the_separation() {
    // "low" from 500 for 500; "high" comes again at `second`.
    let system = short(|draft| {
        draft.tasks[0].arrival = Arrival::Sporadic { separation: Span::from_ns(1_000) };
    });
    let make = |second: u64, most| {
        let mut records = run(0, 0, 0, 200).to_vec();
        records.extend([at(500, Kind::Release, 1, 0, 500), at(500, Kind::Start, 1, 0, 0)]);
        if second < 1_000 {
            records.extend([
                at(second, Kind::Release, 0, 1, second),
                at(second, Kind::Preempt, 1, 0, 0),
                at(second, Kind::Start, 0, 1, 0),
                at(second + 200, Kind::Completion, 0, 1, 200),
                at(second + 200, Kind::Resume, 1, 0, 0),
                at(1_200, Kind::Completion, 1, 0, 500),
            ]);
        } else {
            records.push(at(1_000, Kind::Completion, 1, 0, 500));
            records.extend(run(second, 0, 1, 200));
        }
        of(1, most, &system, &records)
    };
    assert_eq!(make(1_000, 500), []);
    assert_eq!(make(1_000, 499), [BoundViolated]);
    assert_eq!(make(999, 500), [ModelViolated]);
    assert_eq!(make(999, 499), [BoundViolated]);
}

#[test]
fn a_section_is_cut_above_its_length() {
    // "low" holds the resource for 100 and `more`; "high", which uses it, comes at 50.
    let system = short(|draft| {
        draft.resources.push(Resource { name: "bus".to_owned(), ..Resource::default() });
        for (task, length) in [(0, 10), (1, 100)] {
            let (from, length) = (Span::ZERO, Span::from_ns(length));
            draft.tasks[task].sections.push(Section {
                resource: "bus".to_owned(),
                from,
                length,
                access: Access::Write,
            });
        }
    });
    let make = |more: u64, most| {
        let free = 100 + more;
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(0, Kind::Lock, 1, 0, 0),
            at(50, Kind::Release, 0, 0, 50),
            at(free, Kind::Unlock, 1, 0, 0),
            at(free, Kind::Preempt, 1, 0, 0),
            at(free, Kind::Start, 0, 0, 0),
            at(free, Kind::Lock, 0, 0, 0),
            at(free + 10, Kind::Unlock, 0, 0, 0),
            at(free + 200, Kind::Completion, 0, 0, 200),
            at(free + 200, Kind::Resume, 1, 0, 0),
            at(700, Kind::Completion, 1, 0, 500),
        ];
        of(0, most, &system, &records)
    };
    assert_eq!(make(0, 250), []);
    assert_eq!(make(0, 249), [BoundViolated]);
    assert_eq!(make(1, 250), [ModelViolated]);
    assert_eq!(make(1, 249), [BoundViolated]);
}

#[test]
fn a_segment_is_cut_above_its_wcet() {
    // "low" may be preempted after 200, and is after 200 and `more`, when "high" has come at 100.
    let system = short(|draft| {
        draft.tasks[1].preemption = segments(&[200, 300]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let make = |more: u64, most| {
        let point = 200 + more;
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(100, Kind::Release, 0, 0, 100),
            at(point, Kind::PreemptionPoint, 1, 0, 1),
            at(point, Kind::Yield, 1, 0, 0),
            at(point, Kind::Start, 0, 0, 0),
            at(point + 200, Kind::Completion, 0, 0, 200),
            at(point + 200, Kind::Resume, 1, 0, 0),
            at(point + 500, Kind::Completion, 1, 0, point + 300),
        ];
        of(0, most, &system, &records)
    };
    assert_eq!(make(0, 300), []);
    assert_eq!(make(0, 299), [BoundViolated]);
    assert_eq!(make(1, 300), [ModelViolated]);
    assert_eq!(make(1, 299), [BoundViolated]);
}

/// "low" sleeps for so long in its middle, alone on its processor.
fn asleep(length: u64) -> Vec<Record> {
    let end = 5 * MS + length;
    let mut records = vec![switch(0, 0, 2), at(0, Kind::Release, 1, 0, 0), at(0, Kind::Start, 1, 0, 0)];
    if length > 0 {
        records.push(Record { task: 1, ..kernel(MS, Kind::KernelBlock, 2, u64::from(b'S')) });
        records.extend([switch(MS, 2, 0), wakeup(MS + length, 2), switch(MS + length, 0, 2)]);
    }
    records.extend([at(end, Kind::Completion, 1, 0, 5 * MS), switch(end, 2, 0)]);
    records
}

#[test]
fn a_sleep_is_cut_to_nothing() {
    let make = |length, most| class_of_run(1, most, &long(nothing), &asleep(length));
    assert_eq!(make(0, 5 * MS), []);
    assert_eq!(make(1, 5 * MS), [ModelViolated]);
    assert_eq!(make(1, 5 * MS - 1), [BoundViolated]);
}

#[test]
fn a_release_is_as_late_as_the_latency_allows() {
    // "high" is noticed so late, and executes for its wcet.
    let system = long(|draft| draft.platform.release_latency = Some(Span::from_ns(30 * US)));
    let make = |late: u64, most: u64| {
        let (ready, end) = (late, 2 * MS + late);
        let records = [
            switch(0, 0, 0),
            wakeup(ready, 1),
            switch(ready, 0, 1),
            at(ready, Kind::Release, 0, 0, 0),
            at(ready, Kind::Start, 0, 0, 0),
            at(end, Kind::Completion, 0, 0, 2 * MS),
            switch(end, 1, 0),
        ];
        class_of_run(0, most, &system, &records)
    };
    let most = 2 * MS + 30 * US;
    assert_eq!(make(30 * US, most), []);
    assert_eq!(make(30 * US, most - 1), [BoundViolated]);
    // Up to the time stamps' tolerance nothing says that the machine was later than it may be.
    assert_eq!(make(30 * US + 1, most), [CannotTell]);
    assert_eq!(make(50 * US, most), [CannotTell]);
    assert_eq!(make(50 * US + 1, most), [MachineDisturbed]);
    assert_eq!(make(50 * US + 1, most - 1), [BoundViolated]);
}

#[test]
fn the_control_allows_costs_and_time_stamps_and_a_millisecond() {
    // "high" is ready at 1 ms, and the processor idles for so long.
    let make = |idle: u64| {
        let start = MS + idle;
        let records = [
            switch(0, 0, 0),
            wakeup(MS, 1),
            at(MS, Kind::Release, 0, 0, MS),
            switch(start, 0, 1),
            at(start, Kind::Start, 0, 0, 0),
            at(start + MS, Kind::Completion, 0, 0, MS),
            switch(start + MS, 1, 0),
        ];
        class_of_run(0, MS, &long(nothing), &records)
    };
    assert_eq!(make(0), []);
    // Whoever starts up to 1.02 ms after he was ready was ready then; beyond, his end may differ by 1.04 ms.
    for idle in [1_020 * US, 1_020 * US + 1, 1_040 * US] {
        assert_eq!(make(idle), [MachineDisturbed], "{idle}");
    }
    assert_eq!(make(1_040 * US + 1), [CannotTell]);
}

#[test]
fn the_control_of_a_simulation_allows_its_costs_alone() {
    // "high" comes `late` and the processor idles before.
    let make = |cost: u64, idle: u64| {
        let system = short(|draft| draft.platform.context_switch = Some(Span::from_ns(cost)));
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(idle, Kind::Start, 0, 0, 0),
            at(idle + 200, Kind::Completion, 0, 0, 200),
        ];
        of(0, 199, &system, &records)
    };
    assert_eq!(make(0, 0), [BoundViolated]);
    assert_eq!(make(0, 1), [ScheduleDiffers]);
    assert_eq!(make(5, 10), [BoundViolated]);
    assert_eq!(make(5, 11), [ScheduleDiffers]);
}

#[test]
fn whoever_keeps_the_processor_is_named_for_those_who_wait() {
    let make = |on, completes, most| of_run(0, most, &long(nothing), &running_on(0, on, completes));
    assert_eq!(make(20 * US, false, MS + 20 * US), []);
    for (completes, most) in [(false, 1_020 * US), (true, 120 * US)] {
        // A kernel that takes the processor late disturbs.
        let [(class, _)] = &make(most, completes, MS)[..] else { panic!("one late job") };
        assert_eq!(*class, MachineDisturbed, "{completes}");
        let found = make(most + 1, completes, MS);
        let [(class, message)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(*class, ModelViolated, "{completes}: {message}");
        assert!(message.contains("without the broken assumptions of low the bound"), "{message}");
    }
    // Three milliseconds, as a body that makes itself non-preemptible.
    let found = make(3 * MS, false, MS);
    assert!(matches!(&found[..], [(ModelViolated, message)] if message.contains("low")), "{found:?}");
    // Without it "high" would have answered after what it executed.
    assert_eq!(make(3 * MS, false, MS - 1)[0].0, BoundViolated);
}

#[test]
fn a_thread_outside_the_model_excuses_no_missing_preemption_point() {
    // "low" keeps "high" waiting for 4 ms in one stretch of at most 3, and "burst" had the processor for 2 ms before.
    let system = long(|draft: &mut Draft| {
        draft.tasks[1].preemption = segments(&[3 * MS, 2 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let make = |on: u64| {
        let (wake, end) = (4 * MS, 4 * MS + on);
        let records = [
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            switch(MS, 2, 3),
            switch(3 * MS, 3, 2),
            wakeup(wake, 1),
            at(wake, Kind::Release, 0, 0, wake),
            at(end, Kind::Completion, 1, 0, end - 2 * MS),
            switch(end, 2, 1),
            at(end, Kind::Start, 0, 0, 0),
            at(end + MS, Kind::Completion, 0, 0, MS),
            switch(end + MS, 1, 0),
        ];
        classes(&measured(&system, &[], &records), Check::Blocking)
    };
    assert_eq!(make(3 * MS + 25 * US), []);
    assert_eq!(make(3 * MS + 25 * US + 1), [ModelViolated]);
}

/// Beside a resource, which "high" uses: "low", of two segments of 3 and 2 ms, keeps "high" waiting for so long, passes no point and ends.
fn without_a_point(on: u64, most: u64) -> horolog_verify::Verification {
    let system = long(|draft: &mut Draft| {
        draft.tasks[1].preemption = segments(&[3 * MS, 2 * MS]);
        draft.tasks[1].bcet = Span::from_ns(2);
        draft.resources.push(Resource { name: "bus".to_owned(), ..Resource::default() });
        let (from, length) = (Span::ZERO, Span::from_ns(US));
        draft.tasks[0].sections.push(Section {
            resource: "bus".to_owned(),
            from,
            length,
            access: Access::Write,
        });
    });
    let (wake, end) = (MS, MS + on);
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        wakeup(wake, 1),
        at(wake, Kind::Release, 0, 0, wake),
        at(end, Kind::Completion, 1, 0, end),
        switch(end, 2, 1),
        at(end, Kind::Start, 0, 0, 0),
        at(end + MS, Kind::Completion, 0, 0, MS),
        switch(end + MS, 1, 0),
    ];
    measured(&system, &[bound(0, most)], &records)
}

#[test]
fn a_missing_preemption_point_beside_resources_is_the_models_too() {
    let found = |on| classes(&without_a_point(on, 10 * MS), Check::PriorityInversion);
    assert_eq!(found(3 * MS + 20 * US), []);
    assert_eq!(found(3 * MS + 20 * US + 1), [MachineDisturbed]);
    assert_eq!(found(3 * MS + 120 * US), [MachineDisturbed]);
    assert_eq!(found(3 * MS + 120 * US + 1), [ModelViolated]);
    let result = without_a_point(4 * MS, 4 * MS);
    assert_eq!(classes(&result, Check::Response), [ModelViolated]);
    let late = result.findings.iter().find(|one| one.check == Check::Response).expect("it is late");
    assert!(late.message.contains("without the broken assumptions of low"), "{}", late.message);
    // With a point after 3 ms it would have begun at 3.
    assert_eq!(classes(&without_a_point(4 * MS, 3 * MS), Check::Response), [ModelViolated]);
    assert_eq!(classes(&without_a_point(4 * MS, 3 * MS - 1), Check::Response), [BoundViolated]);
}

#[test]
fn a_stretch_without_preemption_that_is_too_long_is_cut() {
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    // The same as a wcet: what may not be preempted is the whole job.
    let make = |more: u64, most: u64| {
        let end = 5 * MS + more;
        let records = [
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            wakeup(MS, 1),
            at(MS, Kind::Release, 0, 0, MS),
            at(end, Kind::Completion, 1, 0, end),
            switch(end, 2, 1),
            at(end, Kind::Start, 0, 0, 0),
            at(end + MS, Kind::Completion, 0, 0, MS),
            switch(end + MS, 1, 0),
        ];
        class_of_run(0, most, &system, &records)
    };
    assert_eq!(make(5 * US, 5 * MS), [CannotTell]);
    assert_eq!(make(5 * US + 1, 5 * MS), [ModelViolated]);
    assert_eq!(make(5 * US + 1, 5 * MS - 1), [BoundViolated]);
}
