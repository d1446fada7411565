//! Resources in the simulation: schedules computed by hand from `docs/decisions/0009-locks-and-links.md`.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

fn system(policy: &str, parts: &str) -> System {
    let text = format!("[system]\nname = \"locks\"\npolicy = \"{policy}\"\n{parts}");
    let (system, _) = horolog_model::file::read(&text, "locks.toml", &[]).expect("a valid file");
    system
}

fn task(name: &str, arrivals: &[u64], wcet: u64, rest: &str, sections: &[(u64, u64)]) -> String {
    let arrivals: Vec<String> = arrivals.iter().map(|at| format!("\"{at} ns\"")).collect();
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\narrivals = [{}]\nwcet = \"{wcet} ns\"\n{rest}\n",
        arrivals.join(", ")
    );
    for (from, length) in sections {
        text += &format!(
            "[[task.section]]\nresource = \"bus\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
        );
    }
    text
}

fn bus(at_exhaustion: &str) -> String {
    format!("[[resource]]\nname = \"bus\"\nat_exhaustion = \"{at_exhaustion}\"\n")
}

/// Who has the processor, from when to when.
type Stretch = (String, u64, u64);
/// When whose job locks or unlocks.
type Held = (u64, String, Kind);

/// Who has the processor from when to when, and every lock and unlock, until `end`.
fn schedule(system: &System, end: u64) -> (Vec<Stretch>, Vec<Held>) {
    let mut records: Vec<Record> = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(end)), ..SimOptions::default() };
    simulate(system, &options, &mut records).expect("it runs");
    let name = |record: &Record| system.tasks()[record.task as usize].name.clone();
    let (mut runs, mut locks, mut since) = (Vec::new(), Vec::new(), 0);
    for record in &records {
        let at = record.time.as_ns();
        match record.kind {
            Kind::Start | Kind::Resume => since = at,
            Kind::Preempt | Kind::Yield | Kind::Suspend | Kind::Completion if at > since => {
                runs.push((name(record), since, at));
            }
            Kind::Lock | Kind::Unlock => locks.push((at, name(record), record.kind)),
            _ => {}
        }
    }
    (runs, locks)
}

fn expect(system: &System, end: u64, runs: &[(&str, u64, u64)], locks: &[(u64, &str, Kind)]) {
    let runs: Vec<_> = runs.iter().map(|&(name, from, to)| (name.to_owned(), from, to)).collect();
    let locks: Vec<_> = locks.iter().map(|&(at, name, kind)| (at, name.to_owned(), kind)).collect();
    assert_eq!(schedule(system, end), (runs, locks));
}

use Kind::{Lock, Unlock};

#[test]
fn a_holder_stands_at_the_ceiling_under_fixed_priorities() {
    let tasks = |section: &[(u64, u64)]| {
        task("low", &[0], 5, "priority = 1", section)
            + &task("middle", &[2], 2, "priority = 2", &[])
            + &task("high", &[3], 2, "priority = 3", &[(0, 1)])
            + &task("higher", &[3], 1, "priority = 4", &[])
    };
    // What uses nothing and is more important than every user goes before; `middle` and `high` wait for the section alone.
    expect(
        &system("fixed-priority", &(tasks(&[(1, 3)]) + &bus("finish"))),
        20,
        &[("low", 0, 3), ("higher", 3, 4), ("low", 4, 5), ("high", 5, 7), ("middle", 7, 9), ("low", 9, 10)],
        &[(1, "low", Lock), (5, "low", Unlock), (5, "high", Lock), (6, "high", Unlock)],
    );
    // One unit shorter, the section is over before `higher` comes, and `high` goes before.
    expect(
        &system("fixed-priority", &(tasks(&[(1, 2)]) + &bus("finish"))),
        20,
        &[("low", 0, 3), ("higher", 3, 4), ("high", 4, 6), ("middle", 6, 8), ("low", 8, 10)],
        &[(1, "low", Lock), (3, "low", Unlock), (4, "high", Lock), (5, "high", Unlock)],
    );
}

#[test]
fn who_has_not_begun_waits_for_the_ceiling_under_edf() {
    let tasks = |level: u64| {
        task("long", &[0], 6, "deadline = \"10 ns\"", &[(1, 3)])
            + &task("user", &[9, 2], 1, "deadline = \"4 ns\"", &[(0, 1)]).replace("\"9 ns\", ", "")
            + &task("other", &[2], 1, &format!("deadline = \"{level} ns\""), &[])
    };
    // The ceiling is 4. A level as high waits, also of a task that uses nothing.
    expect(
        &system("edf", &(tasks(4) + &bus("finish"))),
        20,
        &[("long", 0, 4), ("user", 4, 5), ("other", 5, 6), ("long", 6, 8)],
        &[(1, "long", Lock), (4, "long", Unlock), (4, "user", Lock), (5, "user", Unlock)],
    );
    // One unit higher does not.
    expect(
        &system("edf", &(tasks(3) + &bus("finish"))),
        20,
        &[("long", 0, 2), ("other", 2, 3), ("long", 3, 5), ("user", 5, 6), ("long", 6, 8)],
        &[(1, "long", Lock), (5, "long", Unlock), (5, "user", Lock), (6, "user", Unlock)],
    );
}

#[test]
fn a_budget_ends_inside_a_section() {
    let parts = |at_exhaustion: &str| {
        let server = "[[server]]\nname = \"s\"\nkind = \"deferrable\"\nbudget = \"2 ns\"\nperiod = \"10 ns\"\npriority = 3\nlow_priority = \"none\"\ntasks = [\"soft\"]\n";
        task("soft", &[0, 5], 4, "", &[(1, 3)])
            + &task("hard", &[1], 3, "priority = 2\ndeadline = \"50 ns\"", &[(0, 1)])
            + server
            + &bus(at_exhaustion)
    };
    // Two units of debt are what the next period brings.
    expect(
        &system("fixed-priority", &parts("finish")),
        26,
        &[("soft", 0, 4), ("hard", 4, 7), ("soft", 20, 24)],
        &[
            (1, "soft", Lock),
            (4, "soft", Unlock),
            (4, "hard", Lock),
            (5, "hard", Unlock),
            (21, "soft", Lock),
            (24, "soft", Unlock),
        ],
    );
    // The second job locks in the period of the third unit and waits for its budget again.
    expect(
        &system("fixed-priority", &parts("wait")),
        34,
        &[("soft", 0, 2), ("soft", 10, 12), ("hard", 12, 15), ("soft", 20, 22), ("soft", 30, 32)],
        &[
            (1, "soft", Lock),
            (12, "soft", Unlock),
            (12, "hard", Lock),
            (13, "hard", Unlock),
            (21, "soft", Lock),
            (32, "soft", Unlock),
        ],
    );
}

#[test]
fn a_server_whose_tasks_alone_use_a_resource_holds_nobody_up() {
    let parts = task("first", &[0], 4, "priority = 1", &[(1, 2)])
        + &task("second", &[2], 2, "priority = 2", &[(0, 1)])
        + &task("beside", &[2], 1, "priority = 6", &[])
        + "[[scheduler]]\nname = \"reserve\"\norder = \"fixed-priority\"\npriority = 5\ntasks = [\"first\", \"second\"]\n"
        + &bus("finish");
    expect(
        &system("fixed-priority", &parts),
        20,
        &[("first", 0, 2), ("beside", 2, 3), ("first", 3, 4), ("second", 4, 6), ("first", 6, 7)],
        &[(1, "first", Lock), (4, "first", Unlock), (4, "second", Lock), (5, "second", Unlock)],
    );
}
