//! `horolog loop` on tasks that share a resource: each protocol does what it says; the ceiling holds on real threads under fixed priorities, under EDF, and with the
//! holder in a server whose budget ends inside its section.

mod common;

use common::{done, folder, inside, real_time};
use horolog_model::System;
use horolog_trace::file::Reader;
use horolog_trace::{Kind, Record};
use serde_json::Value;

const HEAD: &str = r#"
[system]
name = "shared"
policy = "POLICY"
[platform]
cpus = [1]
context_switch = "20 us"
timer_interrupt = "50 us"
release_latency = "300 us"
[[resource]]
name = "bus"
"#;

fn task(name: &str, period: u64, wcet: u64, place: &str, section: Option<(u64, u64)>) -> String {
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\nperiod = \"{period} ms\"\nwcet = \"{wcet} ms\"\nbcet = \"10 us\"\n{place}\n"
    );
    if let Some((from, length)) = section {
        text += &format!(
            "[[task.section]]\nresource = \"bus\"\nfrom = \"{from} ms\"\nlength = \"{length} ms\"\n"
        );
    }
    text
}

/// The long section of `low` lies across releases of the others.
fn three(policy: &str) -> String {
    let place = |priority: u32, deadline: u64| match policy {
        "edf" => format!("deadline = \"{deadline} ms\""),
        _ => format!("priority = {priority}"),
    };
    HEAD.replace("POLICY", policy)
        + &task("low", 60, 20, &place(1, 60), Some((2, 14)))
        + &task("middle", 25, 2, &place(2, 25), None)
        + &task("high", 17, 2, &place(3, 17), Some((0, 1)))
}

fn records(file: &str, text: &str) -> (System, Vec<Record>) {
    let (system, _) = horolog_model::file::read(text, "file", &[]).expect("valid");
    let mut reader = Reader::open(std::path::Path::new(file)).expect("a trace");
    let mut records: Vec<Record> = reader.by_ref().collect();
    // Threads and the agent write rings of their own.
    records.sort_by_key(|record| record.time);
    (system, records)
}

/// How often a run that the host disturbed is tried again.
const TRIES: usize = 4;

/// Runs a file through the loop, whose verification finds nothing against the model; its records. Where the host disturbed every run the
/// last one may have late jobs whose cause cannot be told, and has nothing worse.
fn looped(text: &str) -> (System, Vec<Record>) {
    let mut verification = Value::Null;
    for attempt in 1..=TRIES {
        let (place, file) = folder(text);
        let out = inside(&place, "out");
        let ended = done(["loop", &file, "--for", "2s", "--out", &out, "--seed", "1", "--format", "json"]);
        // Without a proof the answer says why; with one, how blocking is bounded.
        let result = ended.no_panic().json();
        let is_proved = result["analysis"]["schedulable"] == "yes";
        // A run that the host disturbed is not decided, whatever was proved.
        let may_end = [Some(1), Some(4), Some(if is_proved { 0 } else { 4 })];
        assert!(may_end.contains(&ended.status), "{ended:?}");
        let told = match is_proved {
            true if text.contains("fslm") => {
                "spin locks: a job waits for one section of each other processor"
            }
            true if text.contains("inheritance") => "under inheritance a section of each less important task",
            true if text.contains("original") => "under the original ceiling one section",
            true => "sections block under the immediate ceiling",
            false => "resource.bus",
        };
        assert!(result["analysis"]["notes"].to_string().contains(told), "{:#}", result["analysis"]);
        verification = result["verification"].clone();
        let groups = verification["groups"].as_array().expect("groups");
        let is_open = |group: &Value| attempt == TRIES && group["class"] == "cannot-tell";
        if groups.iter().all(|group| group["class"] == "machine-disturbed" || is_open(group)) {
            let checks = verification["checks"].as_array().expect("checks");
            let applied = |name: &str| {
                let check = checks.iter().find(|one| one["check"] == name);
                check.and_then(|one| one["applied"].as_u64()).unwrap_or(0)
            };
            assert!(applied("resource") > 100 && applied("divergence") > 100, "{verification:#}");
            assert_eq!(verification["processors"][0]["compared"], true, "{verification:#}");
            return records(&inside(&place, "out/run.trace"), text);
        }
    }
    panic!("{verification:#}");
}

/// Sections of a task: from when to when.
fn sections(system: &System, records: &[Record], name: &str) -> Vec<(u64, u64)> {
    let task = system.find_task(name).expect("a task").0;
    let of = |kind: Kind| records.iter().filter(move |it| it.kind == kind && it.task == task);
    let ends: Vec<u64> = of(Kind::Unlock).map(|it| it.time.as_ns()).collect();
    let begins = of(Kind::Lock).map(|it| it.time.as_ns());
    begins.zip(ends).collect()
}

/// How often the job of a task got the processor within these stretches, from their beginning to 20 us before their end.
fn begun_within(
    system: &System,
    records: &[Record],
    name: &str,
    within: &[(u64, u64)],
    kinds: &[Kind],
) -> usize {
    let task = system.find_task(name).expect("a task").0;
    let is_in = |at: u64| within.iter().any(|&(from, to)| from < at && at < to);
    records.iter().filter(|it| it.task == task && kinds.contains(&it.kind) && is_in(it.time.as_ns())).count()
}

/// A planner on one CPU holds the bus when a logger on another one asks for it, and an urgent task comes there while the logger spins.
fn spinning(priority: &str) -> String {
    let head = HEAD.replace("POLICY", "fixed-priority").replace("cpus = [1]", "cpus = [0, 1]");
    let on = |cpu: u32, priority: u32, offset: u32| {
        format!("cpu = {cpu}\npriority = {priority}\noffset = \"{offset} ms\"")
    };
    head.replace("name = \"bus\"", "name = \"bus\"\nprotocol = \"fslm\"")
        + &format!("[[spin_priority]]\ncpu = 1\npriority = {priority}\n")
        + &task("planner", 20, 7, &on(0, 5, 0), Some((1, 4)))
        + &task("urgent", 20, 3, &on(1, 9, 3), None)
        + &task("logger", 40, 4, &on(1, 3, 2), Some((0, 2)))
}

#[test]
fn spin_locks_hold_across_processors() {
    let Some(_alone) = real_time() else { return };
    for (priority, lets_run) in [("\"ceiling\"", true), ("\"highest\"", false)] {
        let (system, records) = looped(&spinning(priority));
        let of = |name: &str| system.find_task(name).expect("a task").0;
        let (mut waits, mut spins, mut meanwhile) = (false, 0, 0);
        for record in &records {
            match record.kind {
                Kind::Spin if record.task == of("logger") => (waits, spins) = (true, spins + 1),
                Kind::Lock if record.task == of("logger") => waits = false,
                Kind::Start if record.task == of("urgent") => meanwhile += u64::from(waits),
                _ => {}
            }
        }
        assert!(spins > 20, "{priority}: {spins}");
        assert_eq!(meanwhile > 10, lets_run, "{priority}: {meanwhile} of {spins}");
        let held = sections(&system, &records, "logger");
        let begun = begun_within(&system, &records, "urgent", &held, &[Kind::Start, Kind::Resume]);
        assert_eq!(begun, 0, "{priority}");
    }
}

/// `high` asks for the bus while `low` holds it, and `middle` and `urgent`, which use nothing, come within the section.
fn inverted(protocol: &str) -> String {
    let at = |priority: u32, offset: u32| format!("priority = {priority}\noffset = \"{offset} ms\"");
    HEAD.replace("POLICY", "fixed-priority")
        .replace("name = \"bus\"", &format!("name = \"bus\"\nprotocol = \"{protocol}\""))
        + &task("low", 40, 10, &at(1, 0), Some((1, 7)))
        + &task("high", 40, 3, &at(5, 4), Some((1, 1)))
        + &task("middle", 40, 6, &at(3, 6), None)
        + &task("urgent", 40, 1, &at(9, 7), None)
}

#[test]
fn protocols_of_one_processor_hold() {
    let Some(_alone) = real_time() else { return };
    for protocol in ["none", "inheritance", "original-ceiling", "non-preemptive"] {
        let (system, records) = looped(&inverted(protocol));
        let held = sections(&system, &records, "low");
        assert!(held.len() >= 40, "{protocol}: {} sections", held.len());
        let high = system.find_task("high").expect("a task").0;
        let waits = records.iter().filter(|it| it.task == high && it.kind == Kind::Suspend).count();
        assert_eq!(waits >= 40, protocol != "non-preemptive", "{protocol}: {waits} waits");
        let begun = |name: &str| begun_within(&system, &records, name, &held, &[Kind::Start]);
        let (high, middle, urgent) = (begun("high"), begun("middle"), begun("urgent"));
        // Who waits had the processor first; what is more important goes first but for `non-preemptive`.
        match protocol {
            "none" => assert!(high >= 40 && middle >= 40 && urgent >= 40, "{high} {middle} {urgent}"),
            "inheritance" | "original-ceiling" => {
                assert!(high >= 40 && middle == 0 && urgent >= 40, "{high} {middle} {urgent}")
            }
            _ => assert_eq!((high, middle, urgent), (0, 0, 0)),
        }
    }
}

#[test]
fn the_ceiling_holds_under_fixed_priorities_and_edf() {
    let Some(_alone) = real_time() else { return };
    for policy in ["fixed-priority", "edf"] {
        let (system, records) = looped(&three(policy));
        let held = sections(&system, &records, "low");
        assert!(held.len() >= 25, "{policy}: {} sections", held.len());
        // Whoever is below the ceiling and has not begun waits; without the resource all three would preempt.
        let released =
            ["middle", "high"].map(|name| begun_within(&system, &records, name, &held, &[Kind::Release]));
        assert!(released.iter().all(|&count| count >= 10), "{policy}: {released:?} releases within sections");
        for name in ["middle", "high"] {
            let begun = begun_within(&system, &records, name, &held, &[Kind::Start]);
            assert_eq!(begun, 0, "{policy}: jobs of `{name}` began within sections of `low`");
        }
        // Nobody ever waits for the resource itself, and locks and unlocks alternate.
        assert!(records.iter().all(|it| it.kind != Kind::Suspend), "{policy}");
        let mut holder = None;
        for record in records.iter().filter(|it| matches!(it.kind, Kind::Lock | Kind::Unlock)) {
            match record.kind {
                Kind::Lock => assert_eq!(holder.replace(record.task), None, "{policy}: {record:?}"),
                _ => assert_eq!(holder.take(), Some(record.task), "{policy}: {record:?}"),
            }
        }
        // Right behind a section whoever waited begins.
        let starts =
            |from: u64, to: u64| begun_within(&system, &records, "high", &[(from, to)], &[Kind::Start]);
        let after = held.iter().filter(|&&(_, to)| starts(to, to + 5_000_000) > 0).count();
        assert!(after >= 10, "{policy}: {after}");
    }
}

#[test]
fn a_budget_that_ends_inside_a_section_is_overdrawn_or_waited_for() {
    let Some(_alone) = real_time() else { return };
    let server = "[[server]]\nname = \"reserve\"\nkind = \"deferrable\"\nbudget = \"4 ms\"\nperiod = \"20 ms\"\npriority = 9\nlow_priority = \"none\"\ntasks = [\"served\"]\n";
    let text = |at_exhaustion: &str| {
        HEAD.replace("POLICY", "fixed-priority")
            .replace("name = \"bus\"", &format!("name = \"bus\"\nat_exhaustion = \"{at_exhaustion}\""))
            + &task("served", 60, 12, "body = { spin = \"9 ms\" }", Some((1, 7)))
            + &task("user", 15, 2, "priority = 3", Some((0, 1)))
            + server
    };
    // It goes on in debt: its section is one stretch, and whoever uses the resource never waits for it.
    let (system, records) = looped(&text("finish"));
    let held = sections(&system, &records, "served");
    assert!(held.len() >= 20, "{} sections", held.len());
    assert_eq!(begun_within(&system, &records, "user", &held, &[Kind::Start]), 0);
    assert!(records.iter().all(|it| it.kind != Kind::Suspend));
    let served = system.find_task("served").expect("a task").0;
    let is_within = |at: u64| held.iter().any(|&(from, to)| from < at && at < to);
    let preempted = records.iter().filter(|it| it.task == served && it.kind == Kind::Preempt);
    assert_eq!(preempted.filter(|it| is_within(it.time.as_ns())).count(), 0);
    // It waits for budget, and whoever uses the resource meanwhile waits for it and gets it where it is let go.
    let (system, records) = looped(&text("wait"));
    let held = sections(&system, &records, "served");
    let user = system.find_task("user").expect("a task").0;
    let of_user = |kind: Kind| records.iter().filter(|it| it.task == user && it.kind == kind).count();
    assert!(of_user(Kind::Suspend) >= 10, "{} waits", of_user(Kind::Suspend));
    assert!(of_user(Kind::Wake).abs_diff(of_user(Kind::Suspend)) <= 1);
    assert!(held.iter().filter(|(from, to)| to - from > 12_000_000).count() >= 10, "{held:?}");
}
