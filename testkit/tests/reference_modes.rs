//! The reference's modes: schedules computed by hand from `docs/decisions/0008-trees-clusters-modes.md`.
#![allow(clippy::panic)] // Helpers of an integration test are tests too.

use horolog_model::{Capacity, CpuId, LowPriority, Priority, ServerKind};
use horolog_model::{
    Draft, LeftOver, Mode, SecondRequest, Server, ServerChange, System, TakesEffect, TaskChange,
};
use horolog_testkit::reference::{What, simulate_modes};
use horolog_time::Span;

fn ns(value: u64) -> Span {
    Span::from_ns(value)
}

/// Tasks as a file gives them, in lines without the heading.
fn tasks(lines: &[&str]) -> Draft {
    let mut text = "[system]\nname = \"by hand\"\n".to_owned();
    for line in lines {
        text += &format!("[[task]]\n{}\n", line.replace("; ", "\n"));
    }
    let read = horolog_model::file::read(&text, "by-hand.toml", &[]);
    read.unwrap_or_else(|errors| panic!("{errors}")).0.to_draft()
}

fn mode(name: &str, at: &[u64]) -> Mode {
    Mode { name: name.to_owned(), at: at.iter().map(|&at| ns(at)).collect(), ..Mode::default() }
}

fn only(names: &[&str], mode: Mode) -> Mode {
    Mode { active: Some(names.iter().map(|&name| name.to_owned()).collect()), ..mode }
}

fn system(draft: Draft, modes: Vec<Mode>) -> System {
    System::new(Draft { modes, ..draft }).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Who runs from when to when, with the job's number, up to `end`; a job that is dropped while it runs has no end.
fn runs(system: &System, end: u64) -> Vec<(String, usize, u64, u64)> {
    let mut runs = Vec::new();
    let mut since = vec![0; system.tasks().len()];
    for event in simulate_modes(system, end).0.events {
        match event.what {
            What::Start | What::Resume => since[event.task] = event.at,
            _ => {
                let name = system.tasks()[event.task].name.clone();
                runs.push((name, event.job, since[event.task], event.at));
            }
        }
    }
    runs.sort_by_key(|run| run.2);
    runs
}

fn expect(system: &System, end: u64, expected: &[(&str, usize, u64, u64)]) {
    let expected: Vec<(String, usize, u64, u64)> =
        expected.iter().map(|&(name, job, from, to)| (name.to_owned(), job, from, to)).collect();
    assert_eq!(runs(system, end), expected);
}

#[test]
fn a_new_period_starts_at_the_change() {
    let draft = tasks(&["name = \"a\"; period = \"10 ns\"; wcet = \"2 ns\"; priority = 1"]);
    let change = TaskChange { task: "a".to_owned(), period: Some(ns(6)), ..TaskChange::default() };
    let fast = Mode { tasks: vec![change], ..mode("fast", &[14]) };
    let system = system(draft, vec![fast]);
    expect(
        &system,
        30,
        &[("a", 0, 0, 2), ("a", 1, 10, 12), ("a", 2, 14, 16), ("a", 3, 20, 22), ("a", 4, 26, 28)],
    );
}

/// `a` is not active from 3 to 9.
fn with_left_over(left_over: LeftOver, preemption: &str) -> System {
    let a = format!(
        "name = \"a\"; period = \"20 ns\"; wcet = \"6 ns\"; priority = 2; preemption = \"{preemption}\""
    );
    let draft = tasks(&[&a, "name = \"b\"; period = \"12 ns\"; wcet = \"3 ns\"; priority = 1"]);
    let less = Mode { left_over, ..only(&["b"], mode("less", &[3])) };
    system(draft, vec![less, mode("again", &[9])])
}

#[test]
fn left_over_jobs_finish() {
    let system = with_left_over(LeftOver::Finish, "preemptive");
    expect(&system, 19, &[("a", 0, 0, 6), ("b", 0, 6, 9), ("a", 1, 9, 15), ("b", 1, 15, 18)]);
}

#[test]
fn left_over_jobs_are_dropped_also_where_they_are_not_preemptible() {
    for preemption in ["preemptive", "non-preemptive"] {
        let system = with_left_over(LeftOver::Drop, preemption);
        expect(&system, 19, &[("b", 0, 3, 6), ("a", 1, 9, 15), ("b", 1, 15, 18)]);
    }
}

#[test]
fn suspended_jobs_wait_for_a_mode_that_activates_their_task() {
    let system = with_left_over(LeftOver::Suspend, "preemptive");
    let expected = [("a", 0, 0, 3), ("b", 0, 3, 6), ("a", 0, 9, 12), ("a", 1, 12, 18), ("b", 1, 18, 21)];
    expect(&system, 22, &expected);
}

#[test]
fn what_ends_at_the_change_has_ended() {
    let draft = tasks(&["name = \"a\"; period = \"20 ns\"; wcet = \"4 ns\"; priority = 1"]);
    let none = Mode { left_over: LeftOver::Drop, ..only(&[], mode("none", &[4])) };
    let system = system(draft, vec![none]);
    expect(&system, 30, &[("a", 0, 0, 4)]);
}

#[test]
fn jobs_of_the_instant_belong_to_the_new_mode() {
    let draft = tasks(&[
        "name = \"a\"; period = \"6 ns\"; wcet = \"2 ns\"; priority = 1",
        "name = \"b\"; period = \"6 ns\"; wcet = \"2 ns\"; priority = 2",
    ]);
    let change =
        TaskChange { task: "a".to_owned(), priority: Some(Priority::new(3)), ..TaskChange::default() };
    let other = Mode { tasks: vec![change], ..mode("other", &[6]) };
    let system = system(draft, vec![other]);
    expect(&system, 11, &[("b", 0, 0, 2), ("a", 0, 2, 4), ("a", 1, 6, 8), ("b", 1, 8, 10)]);
}

fn served(kind: ServerKind, arrival: &str, wcet: u64) -> Draft {
    let mut draft = tasks(&["name = \"keeper\"; arrivals = [\"90 ns\"]; wcet = \"1 ns\"; priority = 1"]);
    let text = format!("name = \"soft\"; arrivals = [\"{arrival}\"]; wcet = \"{wcet} ns\"; priority = 1");
    let mut soft = tasks(&[&text]).tasks;
    soft[0].priority = None;
    draft.tasks.extend(soft);
    draft.servers = vec![Server::new("server", vec!["soft".to_owned()], CpuId(0), kind)];
    draft
}

fn deferrable(budget: u64, period: u64) -> ServerKind {
    let capacity = Capacity { budget: ns(budget), period: ns(period) };
    ServerKind::Deferrable { capacity, priority: Priority::new(2), low_priority: LowPriority::None }
}

fn with_budget(budget: u64, period: u64, mode: Mode) -> Mode {
    let capacity = Some(Capacity { budget: ns(budget), period: ns(period) });
    Mode { servers: vec![ServerChange { server: "server".to_owned(), capacity, table: None }], ..mode }
}

#[test]
fn a_larger_budget_gives_its_difference_at_once() {
    let system = system(served(deferrable(2, 10), "0 ns", 8), vec![with_budget(5, 10, mode("more", &[4]))]);
    expect(&system, 40, &[("soft", 0, 0, 2), ("soft", 0, 4, 7), ("soft", 0, 10, 13)]);
}

#[test]
fn a_smaller_budget_leaves_no_debt() {
    let system = system(served(deferrable(5, 10), "0 ns", 4), vec![with_budget(1, 7, mode("less", &[2]))]);
    // The replenishment of 10 is where it was; the next is 7 later.
    expect(&system, 40, &[("soft", 0, 0, 2), ("soft", 0, 10, 11), ("soft", 0, 17, 18)]);
}

#[test]
fn a_frame_begins_where_a_period_of_its_server_does() {
    let framed = |second_request| Mode {
        takes_effect: TakesEffect::Frame("server".to_owned()),
        second_request,
        ..mode("framed", &[7, 8, 15])
    };
    let changes = |second_request| {
        let system = system(served(deferrable(2, 5), "0 ns", 1), vec![framed(second_request)]);
        simulate_modes(&system, 40).0.changes
    };
    assert_eq!(changes(SecondRequest::Queue), [10, 10, 15]);
    assert_eq!(changes(SecondRequest::Refuse), [10, 15]);
}

#[test]
fn a_mode_waits_until_named_tasks_have_no_job_and_others_wait_behind_it() {
    let draft = tasks(&["name = \"a\"; period = \"20 ns\"; wcet = \"4 ns\"; priority = 1"]);
    let done = Mode { takes_effect: TakesEffect::WhenDone(vec!["a".to_owned()]), ..mode("done", &[2, 21]) };
    let system = system(draft, vec![done, mode("next", &[3])]);
    assert_eq!(simulate_modes(&system, 40).0.changes, [4, 4, 24]);
}
