//! Modes: what the simulator does is what verification expects, whatever changes; what a mode does not allow is found.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, NO_TASK, Record};
use horolog_verify::{Check, Class, Options, Verdict, Verification, verify_records};

const END: u64 = 400;

fn simulated(system: &System, end: u64) -> Option<Vec<Record>> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(end)), ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).ok()?;
    Some(records)
}

fn verified(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

/// So many drawn systems with modes, beside servers and below trees, each with its simulated trace.
fn drawn(kind: Drawn, count: u64) -> impl Iterator<Item = (System, Vec<Record>)> {
    (0..count).filter_map(move |index| {
        let system = short_system(17, index, kind, END);
        let records = simulated(&system, END)?;
        let changes = records.iter().any(|record| record.kind == Kind::ModeChange);
        changes.then_some((system, records))
    })
}

#[test]
fn simulated_modes_have_no_findings() {
    for kind in [Drawn::Modes, Drawn::TreeModes] {
        let mut count = 0;
        for (system, records) in drawn(kind, 4_000) {
            let result = verified(&system, &records);
            let text = || horolog_model::file::print(&system);
            assert_eq!(result.findings, [], "{:#?}\n{}", result.notes, text());
            assert!(matches!(result.verdict, Verdict::Holds | Verdict::Unknown), "{:?}", result.notes);
            assert!(!result.notes.iter().any(|note| note.contains("up to where")), "{:?}", result.notes);
            count += 1;
        }
        println!("{count} systems");
        assert!(count > 500, "{count}");
    }
}

/// A control task whose period a mode shortens, a camera that it drops, and a server whose budget it halves.
const MOVING: &str = r#"
[system]
name = "moving"
policy = "fixed-priority"
[[task]]
name = "control"
period = "100 ns"
wcet = "10 ns"
priority = 90
[[task]]
name = "camera"
period = "300 ns"
wcet = "80 ns"
priority = 20
[[task]]
name = "commands"
arrivals = ["150 ns", "550 ns", "950 ns", "1350 ns"]
wcet = "30 ns"
[[task]]
name = "log"
period = "400 ns"
wcet = "20 ns"
priority = 10
[[server]]
name = "radio"
kind = "deferrable"
tasks = ["commands"]
budget = "20 ns"
period = "100 ns"
priority = 50
low_priority = "none"
[[mode]]
name = "moving"
at = ["410 ns"]
active = ["control", "commands", "log"]
takes_effect = { frame = "radio" }
left_over = "suspend"
[[mode.task]]
name = "control"
period = "50 ns"
deadline = "40 ns"
[[mode.task]]
name = "log"
priority = 95
[[mode.server]]
name = "radio"
budget = "10 ns"
period = "100 ns"
[[mode]]
name = "standing"
at = ["1200 ns"]
"#;

fn moving(overrides: &[&str]) -> System {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let read = horolog_model::file::read(MOVING, "moving.toml", &overrides);
    read.unwrap_or_else(|errors| panic!("{errors}")).0
}

fn found(result: &Verification) -> Vec<(Class, Check, String)> {
    result.findings.iter().map(|it| (it.class, it.check, it.message.clone())).collect()
}

#[test]
fn a_trace_is_judged_by_the_modes_of_its_file() {
    let system = moving(&[]);
    let records = simulated(&system, 1_600).expect("it is simulated");
    let right = verified(&system, &records);
    assert_eq!((right.verdict, found(&right)), (Verdict::Holds, Vec::new()), "{:?}", right.notes);
    // The same trace against a file that differs in one thing of the mode.
    for (change, check, said) in [
        (
            "mode.moving.task.control.period=\"51 ns\"",
            Check::Arrival,
            "control job 6 arrived at 550 ns, 1 ns too early",
        ),
        (
            "mode.moving.task.control.period=\"49 ns\"",
            Check::Arrival,
            "control job 6 arrived at 550 ns, 1 ns too late",
        ),
        ("mode.moving.active=[\"control\", \"commands\"]", Check::Arrival, "which does not activate it"),
        ("mode.moving.task.log.priority=15", Check::PriorityInversion, "control job"),
        ("mode.moving.server.radio.budget=\"9 ns\"", Check::ServerDecision, "its server has no budget"),
        ("mode.moving.server.radio.budget=\"11 ns\"", Check::ServerDecision, "its budget ended too early"),
        ("mode.moving.at=[\"501 ns\"]", Check::EventOrder, "moving"),
        ("mode.moving.takes_effect=\"at-once\"", Check::EventOrder, "takes effect at 410 ns by the file"),
        ("mode.standing.at=[\"1201 ns\"]", Check::EventOrder, "no request of the file takes effect here"),
        ("mode.standing.at=[\"1199 ns\"]", Check::EventOrder, "takes effect at 1.199 us by the file"),
    ] {
        let result = verified(&moving(&[change]), &records);
        let found = found(&result);
        let is_it = |(class, of, text): &(Class, Check, String)| {
            *class == Class::ModelViolated && *of == check && text.contains(said)
        };
        assert!(found.iter().any(is_it), "{change}: {found:#?}");
        assert_eq!(result.verdict, Verdict::ModelViolated, "{change}");
    }
}

#[test]
fn jobs_keep_the_deadline_of_their_release() {
    let system = moving(&["task.camera.deadline=\"290 ns\"", "task.camera.wcet=\"230 ns\""]);
    let records = simulated(&system, 1_600).expect("it is simulated");
    assert_eq!(found(&verified(&system, &records)), []);
    // One unit beyond each deadline is a miss that has to be on record, also of the job that a mode has suspended.
    let mut misses = 0;
    for (place, miss) in records.iter().enumerate().filter(|(_, record)| record.kind == Kind::Miss) {
        let ends_later = |record: &Record| {
            record.kind == Kind::Completion && record.task == miss.task && record.job > miss.job
        };
        if !records[place..].iter().any(ends_later) {
            // Its record could still come.
            continue;
        }
        let without: Vec<Record> = records.iter().filter(|&other| other != miss).copied().collect();
        let result = verified(&system, &without);
        let is_it = |(_, check, text): &(Class, Check, String)| {
            *check == Check::Deadline && text.contains("no miss is on record")
        };
        assert!(found(&result).iter().any(is_it), "{miss:?}");
        misses += 1;
    }
    assert!(misses > 0);
}

#[test]
fn what_a_mode_does_not_allow_is_found() {
    let system = moving(&[]);
    let records = simulated(&system, 1_600).expect("it is simulated");
    let changed = |change: &dyn Fn(&mut Vec<Record>)| {
        let mut records = records.clone();
        change(&mut records);
        found(&verified(&system, &records))
    };
    let at = |records: &[Record]| {
        records.iter().position(|record| record.kind == Kind::ModeChange).expect("a change")
    };
    // A change that is left out, comes twice, or is to no mode.
    let said = changed(&|records| _ = records.remove(at(records)));
    assert!(
        said.iter()
            .any(|(_, _, text)| text.contains("takes effect at 500 ns by the file, and no record says so")),
        "{said:#?}"
    );
    let said = changed(&|records| records.insert(at(records), records[at(records)]));
    assert!(
        said.iter().any(|(_, _, text)| text.contains("no request of the file takes effect here")),
        "{said:#?}"
    );
    let place = at(&records);
    let said = changed(&|records| records[place].value = 3);
    assert!(said.iter().any(|(_, _, text)| text.contains("there is no mode 3")), "{said:#?}");
    // A job of a task that is not active.
    let release = Record {
        kind: Kind::Release,
        task: 1,
        job: 2,
        value: 600,
        time: Instant::from_ns(600),
        cpu: 0,
        extra: 0,
    };
    let said = changed(&|records| {
        let place = records.partition_point(|record| record.time < release.time);
        records.insert(place, release);
    });
    let is_it = |(_, _, text): &(Class, Check, String)| {
        text == "camera job 2 was released in mode moving, which does not activate it"
    };
    assert!(said.iter().any(is_it), "{said:#?}");
    // A file without modes knows no change.
    let flat =
        System::new(horolog_model::Draft { modes: Vec::new(), ..system.to_draft() }).expect("a valid system");
    let records = [Record {
        time: Instant::from_ns(5),
        kind: Kind::ModeChange,
        cpu: 0,
        task: NO_TASK,
        job: 0,
        value: 1,
        extra: 0,
    }];
    let said = found(&verified(&flat, &records));
    assert!(said.iter().any(|(_, _, text)| text.contains("the system has no modes")), "{said:#?}");
}
