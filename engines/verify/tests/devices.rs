//! Closed devices: what they do in a simulation is what the machine beside them does, and a trace that deviates is found.

use horolog_model::System;
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate, traced};
use horolog_testkit::Random;
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, LossCause, NO_JOB, NO_TASK, Record};
use horolog_verify::{Check, Finding, Options, Verification, verify_records};
use std::fmt::Write;

fn read(text: &str) -> System {
    horolog_model::file::read(text, "devices.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}")).0
}

/// Some tasks that wait for a disk; times are a few nanoseconds, so that instants coincide.
fn drawn(seed: u64, index: u64) -> System {
    let mut random = Random::of_item(seed, index);
    let mut text = "[system]\nname = \"asks\"\n".to_owned();
    let tasks = random.between(2, 5);
    for task in 0..tasks {
        let (period, wcet) = (random.between(20, 60), random.between(1, 5));
        let priority = random.between(1, 4);
        let _ = write!(
            text,
            "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\ndeadline = \"900 ns\"\nwcet = \"{wcet} ns\"\n\
             priority = {priority}\n"
        );
        for request in 0..random.between(1, 2) {
            let after = random.between(0, wcet);
            let _ = write!(
                text,
                "[[request]]\nname = \"r{task}-{request}\"\ntask = \"t{task}\"\ndevice = \"disk\"\nafter = \"{after} ns\"\n"
            );
        }
    }
    let interrupt = random.below(2) == 0;
    if interrupt {
        text += "[[interrupt]]\nname = \"sda\"\nseparation = \"1 ns\"\ncost = \"1 ns\"\n";
    }
    let service = match random.below(4) {
        0 => "service = \"interrupt\"\n".to_owned(),
        1 => "service = \"softirq\"\n".to_owned(),
        _ => format!("service = \"thread\"\npriority = {}\n", random.between(1, 6)),
    };
    let order = if random.below(2) == 0 { "fifo" } else { "fixed-priority" };
    let _ = write!(
        text,
        "[[device]]\nname = \"disk\"\nclass = \"closed\"\n{service}separation = \"1 ns\"\nlatency = \"{} ns\"\n\
         cost = \"1 ns\"\nslots = {}\norder = \"{order}\"\n",
        random.between(1, 12),
        random.between(1, 3)
    );
    if interrupt {
        text += "interrupt = \"sda\"\n";
    }
    read(&text)
}

fn records(system: &System, until: u64) -> Vec<Record> {
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(until)),
        max_backlog: 10_000,
        jitter: DelayChoice::None,
        latency: DelayChoice::None,
        execution: ExecutionChoice::Wcet,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    records
}

fn verified(system: &System, records: &[Record]) -> Verification {
    let companion = traced(system).expect("it can be simulated");
    let header = Header::simulated(String::new(), Vec::new(), 0, Span::ZERO).of_companion(system, &companion);
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

fn of_devices(result: &Verification) -> Vec<&Finding> {
    result.findings.iter().filter(|finding| finding.check == Check::Device).collect()
}

fn applied(result: &Verification) -> u64 {
    result.checks.iter().find(|count| count.check == Check::Device).map_or(0, |count| count.applied)
}

#[test]
fn simulated_devices_have_no_findings() {
    let mut checks = 0;
    for index in 0..600 {
        let system = drawn(7, index);
        let records = records(&system, 1_000);
        let result = verified(&system, &records);
        let text = || horolog_model::file::print(&system);
        assert!(of_devices(&result).is_empty(), "{index}: {:#?}\n{}", of_devices(&result), text());
        checks += applied(&result);
    }
    assert!(checks > 50_000, "{checks}");
}

/// Two tasks ask while the disk works for a third; the more important asks last.
fn three(slots: u32, order: &str, service: &str) -> System {
    let mut text = format!(
        "[system]\nname = \"three\"\n[[device]]\nname = \"disk\"\nclass = \"closed\"\n{service}\nseparation = \"1 ns\"\n\
         latency = \"100 ns\"\ncost = \"1 ns\"\nslots = {slots}\norder = \"{order}\"\n"
    );
    for (name, offset, priority) in [("a", 0, 1), ("b", 10, 2), ("c", 20, 3)] {
        let _ = write!(
            text,
            "[[task]]\nname = \"{name}\"\nperiod = \"10 us\"\noffset = \"{offset} ns\"\nwcet = \"4 ns\"\npriority = {priority}\n\
             [[request]]\nname = \"{name}\"\ntask = \"{name}\"\ndevice = \"disk\"\nafter = \"2 ns\"\n"
        );
    }
    read(&text)
}

const THREAD: &str = "service = \"thread\"\npriority = 9";

/// The tasks in the order in which they are woken, each with the instant.
fn wakes(records: &[Record]) -> Vec<(u32, u64)> {
    let wakes = records.iter().filter(|record| record.kind == Kind::Wake);
    wakes.map(|record| (record.task, record.time.as_ns())).collect()
}

#[test]
fn order_and_slots_are_what_the_file_says() {
    // Asked at 2, 12 and 22; each event costs 1 more.
    let run = |slots, order| wakes(&records(&three(slots, order, THREAD), 9_000));
    assert_eq!(run(1, "fifo"), [(0, 103), (1, 203), (2, 303)]);
    assert_eq!(run(1, "fixed-priority"), [(0, 103), (2, 203), (1, 303)]);
    assert_eq!(run(2, "fifo"), [(0, 103), (1, 113), (2, 203)]);
    assert_eq!(run(3, "fixed-priority"), [(0, 103), (1, 113), (2, 123)]);
}

#[test]
fn another_order_and_another_number_of_slots_are_found() {
    for service in [THREAD, "service = \"interrupt\""] {
        let clean = records(&three(1, "fifo", service), 9_000);
        assert!(of_devices(&verified(&three(1, "fifo", service), &clean)).is_empty());
        let other = verified(&three(1, "fixed-priority", service), &clean);
        assert!(!of_devices(&other).is_empty(), "{service}");
        // Two slots give answers earlier than one can.
        let two = records(&three(2, "fifo", service), 9_000);
        assert!(!of_devices(&verified(&three(1, "fifo", service), &two)).is_empty(), "{service}");
    }
    // One slot where there are two: idle while a request waits. Only events of a thread tell the very instant.
    let clean = records(&three(1, "fifo", THREAD), 9_000);
    assert!(!of_devices(&verified(&three(2, "fifo", THREAD), &clean)).is_empty());
}

#[test]
fn one_nanosecond_is_found() {
    let system = three(1, "fifo", THREAD);
    let clean = records(&system, 9_000);
    let thread = |record: &Record| record.kind == Kind::Release && record.task == 3;
    for place in clean.iter().enumerate().filter(|(_, record)| thread(record)).map(|(place, _)| place) {
        for value in [clean[place].value - 1, clean[place].value + 1] {
            let mut wrong = clean.clone();
            wrong[place].value = value;
            assert_eq!(of_devices(&verified(&system, &wrong)).len(), 1, "{value}");
        }
    }
    // Without a thread on record: a wake right when the device is done, and right before.
    let system = three(1, "fifo", "service = \"interrupt\"");
    let clean = records(&system, 9_000);
    let wake = clean.iter().position(|record| record.kind == Kind::Wake).expect("somebody waits");
    for (at, count) in [(102, 0), (101, 1)] {
        let mut early = clean.clone();
        early[wake].time = Instant::from_ns(at);
        early.sort_by_key(|record| record.time);
        let result = verified(&system, &early);
        assert_eq!(of_devices(&result).len(), count, "{at}: {:#?}", result.findings);
    }
}

#[test]
fn what_is_not_on_record_is_not_judged_and_says_so() {
    let system = three(1, "fifo", THREAD);
    let mut lossy = records(&system, 9_000);
    let number = lossy[2];
    lossy.insert(
        3,
        Record {
            kind: Kind::Lost,
            task: NO_TASK,
            job: NO_JOB,
            value: 1,
            extra: LossCause::Horolog as u64,
            ..number
        },
    );
    let release = lossy.iter_mut().find(|record| record.kind == Kind::Release && record.task == 3);
    release.expect("the thread's").value += 1;
    let result = verified(&system, &lossy);
    assert!(of_devices(&result).is_empty(), "{:#?}", result.findings);
    assert!(
        result.notes.iter().any(|note| note.contains("device disk: not judged any more")),
        "{:?}",
        result.notes
    );

    let mut draft = system.to_draft();
    draft.requests[0].mode = horolog_model::RequestMode::Asynchronous;
    let system = System::new(draft).expect("valid");
    let result = verified(&system, &records(&system, 9_000));
    assert_eq!((of_devices(&result).len(), applied(&result)), (0, 0));
    assert!(result.notes.iter().any(|note| note.contains("not waited for")), "{:?}", result.notes);
}
