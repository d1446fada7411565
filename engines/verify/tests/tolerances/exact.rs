//! Simulated traces of systems without costs: nothing is tolerated.

use crate::traces::*;
use horolog_model::{Arrival, Draft, Policy, Preemption, Priority};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use horolog_verify::Check;
use horolog_verify::Class::{BoundViolated, ModelViolated};

/// The second job of "high" arrives at `time`.
fn second_at(time: u64) -> Vec<Record> {
    let mut records = run(0, 0, 0, 200).to_vec();
    records.extend(run(time, 0, 1, 200));
    records
}

#[test]
fn periods() {
    let make = |time| simulated(&short(nothing), &[], &second_at(time));
    let expected = of_job(ModelViolated, Check::Arrival, "high", 1);
    edge(make, 1_000, expected);
    edge_below(make, 1_000, expected);
    assert_eq!(numbers(&make(999)), (999, 1_000));
    // A job that was left out counts, too.
    let skipped = |time| {
        let mut records = run(0, 0, 0, 200).to_vec();
        records.push(at(1_000, Kind::Skip, 0, 1, 1_000));
        records.extend(run(time, 0, 2, 200));
        simulated(&short(nothing), &[], &records)
    };
    edge(skipped, 2_000, of_job(ModelViolated, Check::Arrival, "high", 2));
}

#[test]
fn offsets() {
    let system = short(|draft| draft.tasks[0].offset = Some(Span::from_ns(100)));
    let make = |time| simulated(&system, &[], &run(time, 0, 0, 200));
    let expected = of_job(ModelViolated, Check::Arrival, "high", 0);
    edge(make, 100, expected);
    edge_below(make, 100, expected);
}

#[test]
fn separations() {
    let system = short(|draft| {
        draft.tasks[0].arrival = Arrival::Sporadic { separation: Span::from_ns(1_000) };
    });
    let make = |time| simulated(&system, &[], &second_at(time));
    edge_below(make, 1_000, of_job(ModelViolated, Check::Arrival, "high", 1));
    holds(&make(1_001));
}

#[test]
fn given_instants() {
    let system = short(|draft| {
        let arrivals = vec![Span::from_ns(100), Span::from_ns(700)];
        draft.tasks[0].arrival = Arrival::Aperiodic { arrivals };
    });
    let make = |time| {
        let mut records = run(100, 0, 0, 200).to_vec();
        records.extend(run(time, 0, 1, 200));
        simulated(&system, &[], &records)
    };
    let expected = of_job(ModelViolated, Check::Arrival, "high", 1);
    edge(make, 700, expected);
    edge_below(make, 700, expected);
}

/// A job of "high" that arrived at `arrival` and was released at `time`.
fn released(arrival: u64, time: u64) -> [Record; 3] {
    let [release, start, completion] = run(time, 0, 0, 200);
    [Record { value: arrival, ..release }, start, completion]
}

#[test]
fn releases() {
    let expected = of_job(ModelViolated, Check::Release, "high", 0);
    let late = |change: &dyn Fn(&mut Draft), arrival, limit| {
        let system = short(change);
        edge(|by| simulated(&system, &[], &released(arrival, arrival + by)), limit, expected);
    };
    late(&nothing, 50, 0);
    late(&|draft| draft.tasks[0].jitter = Span::from_ns(30), 50, 30);
    late(&|draft| draft.platform.release_latency = Some(Span::from_ns(7)), 50, 7);
    // Noticed at the next tick after arrival and jitter: 100 after 50 and 30, 200 after 80 and 30.
    let ticked = |draft: &mut Draft| {
        draft.tasks[0].jitter = Span::from_ns(30);
        draft.platform.tick = Some(Span::from_ns(100));
        draft.platform.release_latency = Some(Span::from_ns(7));
    };
    late(&ticked, 50, 57);
    late(&ticked, 70, 37);
    late(&ticked, 71, 136);
    edge_below(|time| simulated(&short(nothing), &[], &released(50, time)), 50, expected);
}

#[test]
fn execution() {
    let make = |length| simulated(&short(nothing), &[], &run(0, 0, 0, length));
    edge(make, 200, of_job(ModelViolated, Check::Execution, "high", 0));
    assert_eq!(numbers(&make(201)), (201, 200));
    let system = short(|draft| draft.tasks[0].bcet = Span::from_ns(150));
    let make = |length| simulated(&system, &[], &run(0, 0, 0, length));
    assert_eq!([150, 149].map(|length| make(length).tasks[0].below_bcet), [0, 1]);
    holds(&make(149));
    assert_eq!(make(149).tasks[0].executed_ns_max, Some(Span::from_ns(149)));
}

#[test]
fn segments_of_a_job() {
    let system = short(|draft| {
        draft.tasks[1].preemption = segments(&[200, 300]);
        draft.tasks[1].bcet = Span::from_ns(2);
    });
    let make = |first: u64, second: u64| {
        let end = first + second;
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(first, Kind::PreemptionPoint, 1, 0, 1),
            at(end, Kind::Completion, 1, 0, end),
        ];
        simulated(&system, &[], &records)
    };
    let expected = of_job(ModelViolated, Check::SegmentExecution, "low", 0);
    edge(|first| make(first, 100), 200, expected);
    edge(|second| make(100, second), 300, expected);
    assert_eq!(numbers(&make(100, 301)), (301, 300));
}

/// "low" holds the bus from 100 on for `held` of its time, "high" in between.
fn holds_the_bus(held: u64) -> [Record; 9] {
    [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(100, Kind::Lock, 1, 0, 0),
        at(200, Kind::Release, 0, 0, 200),
        at(200, Kind::Preempt, 1, 0, 0),
        at(200, Kind::Start, 0, 0, 0),
        at(400, Kind::Completion, 0, 0, 200),
        at(400, Kind::Resume, 1, 0, 0),
        at(300 + held, Kind::Unlock, 1, 0, 0),
    ]
}

#[test]
fn sections_of_a_job() {
    let make = |held: u64| {
        let system = short(|draft| {
            section(draft, 100, 300);
            draft.tasks[0].offset = Some(Span::from_ns(200));
        });
        let mut records = holds_the_bus(held).to_vec();
        records.push(at(700, Kind::Completion, 1, 0, 500));
        simulated(&system, &[], &records)
    };
    edge(make, 300, of_job(ModelViolated, Check::SegmentExecution, "low", 0));
    assert_eq!(numbers(&make(301)), (301, 300));
    // Costs of a window, and of each time that the job gets the processor in its section.
    let make = |held: u64| {
        let system = short(|draft| {
            section(draft, 100, 200);
            draft.tasks[0].offset = Some(Span::from_ns(200));
            draft.platform.context_switch = Some(Span::from_ns(10));
        });
        let mut records = holds_the_bus(held).to_vec();
        records.push(at(700, Kind::Completion, 1, 0, 500));
        simulated(&system, &[], &records)
    };
    edge(make, 200 + 20 + 10, of_job(ModelViolated, Check::SegmentExecution, "low", 0));
}

/// "low" runs from 0, "high" comes at 100, and "low" runs on for `on`.
fn runs_on(on: u64) -> [Record; 8] {
    [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(100, Kind::Release, 0, 0, 100),
        at(100 + on, Kind::Preempt, 1, 0, 0),
        at(100 + on, Kind::Start, 0, 0, 0),
        at(300 + on, Kind::Completion, 0, 0, 200),
        at(300 + on, Kind::Resume, 1, 0, 0),
        at(500 + on, Kind::Completion, 1, 0, 300 + on),
    ]
}

#[test]
fn service_against_the_policy() {
    let make = |on| simulated(&short(nothing), &[], &runs_on(on));
    edge(make, 0, of_job(ModelViolated, Check::PriorityInversion, "high", 0));
    assert_eq!(numbers(&make(1)), (1, 0));
    let edf = short(|draft| {
        draft.policy = Policy::Edf;
        draft.tasks.iter_mut().for_each(|task| task.priority = None);
    });
    let make = |on| simulated(&edf, &[], &runs_on(on));
    edge(make, 0, of_job(ModelViolated, Check::EarliestDeadlineFirst, "high", 0));
    // The same absolute deadline: either may go on.
    let same = short(|draft| {
        draft.policy = Policy::Edf;
        draft.tasks.iter_mut().for_each(|task| task.priority = None);
        draft.tasks[0].deadline = Some(Span::from_ns(1_000));
        draft.tasks[1].deadline = Some(Span::from_ns(1_100));
    });
    holds(&simulated(&same, &[], &runs_on(1)));
}

#[test]
fn equals() {
    let system = short(|draft| draft.tasks[0].priority = Some(Priority::new(1)));
    // Both wait while a third of the same level runs; "high" was released `later` than "low" and goes first.
    let make = |later: u64| {
        let mut records = vec![
            at(100, Kind::Release, 1, 0, 100),
            at(100, Kind::Release, 0, 0, 100),
            at(100 + later, Kind::Start, 0, 0, 0),
            at(300 + later, Kind::Completion, 0, 0, 200),
            at(300 + later, Kind::Start, 1, 0, 0),
            at(400 + later, Kind::Completion, 1, 0, 100),
        ];
        records[1].time = horolog_time::Instant::from_ns(100 + later);
        records[1].value = 100 + later;
        simulated(&system, &[], &records)
    };
    holds(&make(0));
    let found = make(1);
    let order = found.findings.iter().find(|one| one.check == Check::FirstInFirstOut).expect("it is found");
    assert_eq!((order.class, order.task.as_deref(), order.job), (ModelViolated, Some("low"), Some(0)));
    assert!(found.findings.iter().all(|one| one.task.as_deref() == Some("low")), "{:#?}", found.findings);
}

#[test]
fn idling() {
    let make = |idle: u64| {
        let mut records = run(0, 0, 0, 200);
        records[1].time = horolog_time::Instant::from_ns(idle);
        records[2].time = horolog_time::Instant::from_ns(200 + idle);
        simulated(&short(nothing), &[], &records)
    };
    edge(make, 0, of_job(ModelViolated, Check::WorkConservation, "high", 0));
}

/// "low" may not be preempted; it starts at `start` and executes for `length`; "high" comes at 100.
fn blocked(start: u64, length: u64) -> [Record; 6] {
    let mut records = [
        at(start.min(100), Kind::Release, 1, 0, start.min(100)),
        at(start, Kind::Start, 1, 0, 0),
        at(100, Kind::Release, 0, 0, 100),
        at(start + length, Kind::Completion, 1, 0, length),
        at(start + length, Kind::Start, 0, 0, 0),
        at(start + length + 200, Kind::Completion, 0, 0, 200),
    ];
    records.sort_by_key(|record| (record.time, record.kind != Kind::Release));
    records
}

#[test]
fn the_beginning_of_a_non_preemptive_stretch() {
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let make = |start| simulated(&system, &[], &blocked(start, 500));
    // Begun before the more important job came, it may go on; begun with it, it may not.
    edge(make, 99, of_job(ModelViolated, Check::PriorityInversion, "high", 0));
    assert_eq!(make(99).tasks[0].blocking_ns_max, Some(Span::from_ns(499)));
    assert_eq!(make(99).tasks[0].blocking_allowed_ns, Some(Span::from_ns(500)));
}

#[test]
fn blocking() {
    let system = short(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    // 1 ns passed before "high" came: "low" blocks for what is left.
    let execution = of_job(ModelViolated, Check::Execution, "low", 0);
    let make = |length| simulated(&system, &[], &blocked(99, length));
    finds(&make(501), &[execution]);
    finds(&make(502), &[execution, of_job(ModelViolated, Check::Blocking, "high", 0)]);
}

#[test]
fn responses() {
    // "high" waits for nobody; "low" waits for it.
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(200, Kind::Completion, 0, 0, 200),
        at(200, Kind::Start, 1, 0, 0),
        at(700, Kind::Completion, 1, 0, 500),
    ];
    let make =
        |bounds: [u64; 2]| simulated(&short(nothing), &[bound(0, bounds[0]), bound(1, bounds[1])], &records);
    holds(&make([200, 700]));
    finds(&make([199, 700]), &[of_job(BoundViolated, Check::Response, "high", 0)]);
    finds(&make([200, 699]), &[of_job(BoundViolated, Check::Response, "low", 0)]);
    assert_eq!(numbers(&make([200, 699])), (700, 699));
    let held = make([200, 700]);
    assert_eq!(held.tasks[1].margin_ns, Some(Span::ZERO));
    assert_eq!(make([200, 701]).tasks[1].margin_ns, Some(Span::from_ns(1)));
    assert_eq!((make([200, 699]).tasks[1].margin_ns, make([200, 699]).tasks[1].exceeded), (None, 1));
}

#[test]
fn responses_of_jobs_that_are_not_done() {
    let make = |end: u64| {
        let mut verifier = horolog_verify::Verifier::new(
            &short(nothing),
            &[bound(1, 300)],
            &header(&short(nothing), "sim"),
            &horolog_verify::Options::default(),
        )
        .expect("it can be verified");
        verifier.take(&at(100, Kind::Release, 1, 0, 100));
        verifier.take(&at(100, Kind::Start, 1, 0, 0));
        verifier.finish(end, None, Vec::new())
    };
    edge(make, 400, of_job(BoundViolated, Check::Response, "low", 0));
    // The deadline, 2000 after the arrival: late once it has passed.
    assert_eq!([2_100, 2_101].map(|end| make(end).tasks[1].missed), [0, 1]);
}

/// A job of 200 ns that has the processor since 100 and is not done at the end: inside its wcet, and a unit beyond.
#[test]
fn executions_of_jobs_that_are_not_done() {
    let make = |end: u64| {
        let system = short(nothing);
        let header = header(&system, "sim");
        let options = horolog_verify::Options::default();
        let mut verifier = horolog_verify::Verifier::new(&system, &[bound(0, 250)], &header, &options)
            .expect("it can be verified");
        verifier.take(&at(100, Kind::Release, 0, 0, 100));
        verifier.take(&at(100, Kind::Start, 0, 0, 0));
        verifier.finish(end, None, Vec::new())
    };
    edge(make, 300, of_job(ModelViolated, Check::Execution, "high", 0));
    // What it executed too long explains that it is late: no bound is accused.
    let late = make(351);
    assert_eq!((late.bound_violated, late.model_violated), (0, 2), "{:?}", late.findings);
}

/// A job of "low" that ends at `end`, with a miss on record or without, and the one after it. Its deadline is 600.
fn misses(end: u64, miss: Option<u64>) -> horolog_verify::Verification {
    let system = short(|draft| draft.tasks[1].deadline = Some(Span::from_ns(600)));
    let mut records = vec![
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(200, Kind::Completion, 0, 0, 200),
        at(200, Kind::Start, 1, 0, 0),
    ];
    records.extend(miss.map(|deadline| at(deadline, Kind::Miss, 1, 0, deadline)));
    records.push(at(end, Kind::Completion, 1, 0, end - 200));
    records.extend(run(2_000, 1, 1, 100));
    simulated(&system, &[], &records)
}

#[test]
fn deadlines() {
    let expected = of_job(ModelViolated, Check::Deadline, "low", 0);
    edge(|end| misses(end, None), 600, expected);
    edge_below(|end| misses(end, Some(600)), 601, expected);
    assert_eq!([600, 601].map(|end| misses(end, Some(600)).tasks[1].missed), [0, 1]);
    for other in [599, 601] {
        finds(&misses(610, Some(other)), &[of_job(ModelViolated, Check::EventOrder, "low", 0)]);
    }
}

#[test]
fn misses_of_jobs_that_nobody_has_noticed_yet() {
    // Job 1 arrives at 1000, misses its deadline at 1700, and is noticed with the tick at 2000 at the latest.
    let system = short(|draft| {
        draft.platform.tick = Some(Span::from_ns(1_000));
        draft.tasks[0].jitter = Span::from_ns(1);
        draft.tasks[0].deadline = Some(Span::from_ns(700));
    });
    let make = |time: u64, job: u64, deadline: u64| {
        let mut records = run(0, 0, 0, 200).to_vec();
        records.push(at(time, Kind::Miss, 0, job, deadline));
        simulated(&system, &[], &records)
    };
    let expected = of_job(ModelViolated, Check::EventOrder, "high", 1);
    edge(|time| make(time, 1, 1_700), 2_000, expected);
    edge_below(|time| make(time, 1, 1_700), 1_700, expected);
    edge_below(|deadline| make(1_900, 1, deadline), 1_700, expected);
    finds(&make(1_900, 2, 1_700), &[of_job(ModelViolated, Check::EventOrder, "high", 2)]);
}

/// A system whose one task shares its processor with the interrupts of a line.
const LINE: &str = "[system]\nname = \"line\"\n[[task]]\nname = \"high\"\nperiod = \"1000 ns\"\nwcet = \"200 ns\"\npriority = 1\n\
     [[interrupt]]\nname = \"nic\"\nseparation = \"500 ns\"\ncost = \"30 ns\"\n";

#[test]
fn interrupts() {
    let (system, _) = horolog_model::file::read(LINE, "line.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let make = |length: u64| {
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            kernel(50, Kind::InterruptEntry, 0, 0),
            kernel(50 + length, Kind::InterruptExit, 0, 0),
            at(200 + length, Kind::Completion, 0, 0, 200),
        ];
        simulated(&system, &[], &records)
    };
    edge(make, 30, (ModelViolated, Check::Interrupt, None, None));
    assert_eq!(numbers(&make(31)), (31, 30));
}

#[test]
fn processors() {
    let mut records = run(0, 0, 0, 200);
    records[1].cpu = 1;
    finds(&simulated(&short(nothing), &[], &records), &[of_job(ModelViolated, Check::Processor, "high", 0)]);
}
