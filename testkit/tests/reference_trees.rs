//! The reference's trees: schedules computed by hand from `docs/decisions/0008-trees-clusters-modes.md`.
#![allow(clippy::panic)] // Helpers of an integration test are tests too.

use horolog_model::{
    Arrival, Capacity, CpuId, Draft, Enforcement, ExecutionTimes, LowPriority, Order, OverrunPolicy, Policy,
    Preemption, Priority, Server, ServerKind, SporadicRules, System, Task,
};
use horolog_testkit::reference::{Job, What, simulate};
use horolog_time::Span;

fn ns(value: u64) -> Span {
    Span::from_ns(value)
}

/// One job of a task: when it arrives, how long it executes.
fn task(name: &str, arrivals: &[u64], wcet: u64) -> Task {
    Task {
        name: name.to_owned(),
        arrival: Arrival::Aperiodic { arrivals: arrivals.iter().map(|&at| ns(at)).collect() },
        deadline: None,
        wcet: ns(wcet),
        bcet: ns(wcet),
        offset: None,
        jitter: ns(0),
        priority: None,
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        promotion: None,
        sections: Vec::new(),
        criticality: None,
        is_soft: false,
        body: None,
    }
}

fn with_priority(priority: i64, task: Task) -> Task {
    Task { priority: Some(Priority::new(priority)), ..task }
}

fn with_deadline(deadline: u64, task: Task) -> Task {
    Task { deadline: Some(ns(deadline)), ..task }
}

fn not_preemptive(task: Task) -> Task {
    Task { preemption: Preemption::NonPreemptive, ..task }
}

fn capacity(budget: u64, period: u64) -> Capacity {
    Capacity { budget: ns(budget), period: ns(period) }
}

fn deferrable(budget: u64, period: u64, priority: i64) -> ServerKind {
    let (capacity, priority) = (capacity(budget, period), Priority::new(priority));
    ServerKind::Deferrable { capacity, priority, low_priority: LowPriority::None }
}

fn polling(budget: u64, period: u64, priority: i64) -> ServerKind {
    let (capacity, priority) = (capacity(budget, period), Priority::new(priority));
    ServerKind::Polling { capacity, priority, low_priority: LowPriority::None }
}

fn node(name: &str, parent: Option<&str>, kind: ServerKind, order: Order, tasks: &[&str]) -> Server {
    let tasks = tasks.iter().map(|&name| name.to_owned()).collect();
    let mut node = Server::new(name, tasks, CpuId(0), kind);
    (node.parent, node.order) = (parent.map(str::to_owned), order);
    node
}

fn system(policy: Policy, tasks: Vec<Task>, servers: Vec<Server>) -> System {
    let draft = Draft { name: "by hand".to_owned(), policy, tasks, servers, ..Draft::default() };
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Who runs from when to when, up to `end`.
fn runs(system: &System, end: u64) -> Vec<(String, u64, u64)> {
    let job = |task: &Task, arrival: u64| Job {
        arrival,
        ready: arrival,
        segments: vec![task.wcet.as_ns()],
        path: Vec::new(),
    };
    let jobs: Vec<Vec<Job>> = system
        .tasks()
        .iter()
        .map(|task| match &task.arrival {
            Arrival::Aperiodic { arrivals } => arrivals.iter().map(|at| job(task, at.as_ns())).collect(),
            _ => Vec::new(),
        })
        .collect();
    let mut runs: Vec<(String, u64, u64)> = Vec::new();
    let mut since = vec![0; jobs.len()];
    for event in simulate(system, &jobs, end).events {
        match event.what {
            What::Start | What::Resume => since[event.task] = event.at,
            _ => runs.push((system.tasks()[event.task].name.clone(), since[event.task], event.at)),
        }
    }
    runs.sort_by_key(|run| run.1);
    runs
}

fn expect(system: &System, end: u64, expected: &[(&str, u64, u64)]) {
    let expected: Vec<(String, u64, u64)> =
        expected.iter().map(|&(name, from, to)| (name.to_owned(), from, to)).collect();
    assert_eq!(runs(system, end), expected);
}

/// The units that a budget paid for.
fn used(system: &System, server: usize, end: u64) -> Vec<u64> {
    let jobs = |task: &Task| match &task.arrival {
        Arrival::Aperiodic { arrivals } => {
            let job = |at: &Span| (at.as_ns(), task.wcet.as_ns());
            arrivals
                .iter()
                .map(job)
                .map(|(at, long)| Job { arrival: at, ready: at, segments: vec![long], path: Vec::new() })
                .collect()
        }
        _ => Vec::new(),
    };
    let jobs: Vec<Vec<Job>> = system.tasks().iter().map(jobs).collect();
    simulate(system, &jobs, end).used[server].clone()
}

#[test]
fn the_inner_budget_ends_first_and_a_sibling_has_the_rest() {
    let tasks =
        vec![task("a", &[0], 6), with_priority(1, task("b", &[0], 5)), with_priority(1, task("c", &[0], 20))];
    let outer = node("outer", None, deferrable(4, 10, 5), Order::FixedPriority, &["b"]);
    let inner = node("inner", Some("outer"), deferrable(2, 5, 3), Order::Fifo, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![outer, inner]);
    // The inner budget is back at 5, but not the outer one.
    expect(
        &system,
        40,
        &[
            ("a", 0, 2),
            ("b", 2, 4),
            ("c", 4, 10),
            ("a", 10, 12),
            ("b", 12, 14),
            ("c", 14, 20),
            ("a", 20, 22),
            ("b", 22, 23),
            ("c", 23, 31),
        ],
    );
}

#[test]
fn the_outer_budget_ends_first_and_what_the_inner_one_has_left_stays() {
    let tasks = vec![task("a", &[0], 5), with_priority(1, task("c", &[0], 9))];
    let outer = node("outer", None, deferrable(2, 6, 5), Order::FixedPriority, &[]);
    let inner = node("inner", Some("outer"), deferrable(3, 20, 3), Order::Fifo, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![inner, outer]);
    // 1 of the inner budget is left at 2; at 7 that is used, while 1 of the outer one is left and nobody there.
    expect(&system, 30, &[("a", 0, 2), ("c", 2, 6), ("a", 6, 7), ("c", 7, 12), ("a", 20, 22)]);
    assert_eq!(used(&system, 1, 30), [0, 1, 6, 20, 21]);
}

#[test]
fn both_budgets_end_at_one_instant() {
    let tasks =
        vec![task("a", &[0], 5), with_priority(1, task("b", &[0], 1)), with_priority(1, task("c", &[0], 20))];
    let outer = node("outer", None, deferrable(3, 8, 5), Order::FixedPriority, &["b"]);
    let inner = node("inner", Some("outer"), deferrable(3, 6, 3), Order::Fifo, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![outer, inner]);
    expect(&system, 40, &[("a", 0, 3), ("c", 3, 8), ("a", 8, 10), ("b", 10, 11), ("c", 11, 26)]);
}

#[test]
fn each_level_keeps_its_own_debt() {
    let tasks =
        vec![with_priority(1, not_preemptive(task("a", &[0, 12], 5))), with_priority(1, task("b", &[0], 3))];
    let outer = node("outer", None, deferrable(2, 6, 5), Order::FixedPriority, &["b"]);
    let inner = node("inner", Some("outer"), deferrable(1, 4, 3), Order::FixedPriority, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![outer, inner]);
    // Outer: -3 at 5, -1 at 6, 1 at 12, 2 at 18 and at 24. Inner: -2 at 4, -3 at 5, -2 at 8, -1 at 12, 0 at 16, 1 at 20.
    expect(&system, 40, &[("a", 0, 5), ("b", 12, 13), ("b", 18, 20), ("a", 24, 29)]);
    assert_eq!(used(&system, 1, 40), [0, 1, 2, 3, 4, 24, 25, 26, 27, 28]);
}

#[test]
fn what_a_child_cannot_use_goes_to_its_sibling_before_it_leaves_the_scheduler() {
    let tasks = vec![
        task("a", &[0], 2),
        task("b", &[1], 4),
        with_priority(4, task("c", &[0], 3)),
        with_priority(5, task("top", &[2], 1)),
    ];
    let plain = ServerKind::Plain { priority: Some(Priority::new(4)) };
    let upper = node("upper", None, plain, Order::FixedPriority, &[]);
    let first = node("first", Some("upper"), deferrable(1, 7, 9), Order::Fifo, &["a"]);
    let second = node("second", Some("upper"), deferrable(2, 5, 8), Order::Fifo, &["b"]);
    let system = system(Policy::FixedPriority, tasks, vec![upper, second, first]);
    // c is upper's equal. At 1 b goes on in a's place: the choice does not move away from upper to an equal. But upper
    // had no demand between a and b, so that it comes behind c once `top` has interrupted it.
    expect(
        &system,
        30,
        &[
            ("a", 0, 1),
            ("b", 1, 2),
            ("top", 2, 3),
            ("c", 3, 6),
            ("b", 6, 7),
            ("a", 7, 8),
            ("b", 8, 9),
            ("b", 10, 11),
        ],
    );
}

#[test]
fn deadlines_inside_a_fixed_priority() {
    let tasks = vec![
        with_deadline(10, task("x", &[0], 3)),
        with_deadline(5, task("y", &[1], 2)),
        with_priority(3, task("z", &[2], 2)),
    ];
    let plain = ServerKind::Plain { priority: Some(Priority::new(2)) };
    let edf = node("edf", None, plain, Order::Edf, &["x", "y"]);
    let system = system(Policy::FixedPriority, tasks, vec![edf]);
    expect(&system, 20, &[("x", 0, 1), ("y", 1, 2), ("z", 2, 4), ("y", 4, 5), ("x", 5, 7)]);
}

#[test]
fn fixed_priorities_inside_a_constant_bandwidth() {
    let tasks = vec![
        with_priority(2, task("high", &[2], 1)),
        with_priority(1, task("low", &[0], 3)),
        with_deadline(7, task("other", &[0], 3)),
    ];
    let kind = ServerKind::ConstantBandwidth { capacity: capacity(2, 6), enforcement: Enforcement::Own };
    let inside = node("inside", None, kind, Order::FixedPriority, &["high", "low"]);
    let system = system(Policy::Edf, tasks, vec![inside]);
    // The server's deadline is 6, before 7; at 2 it is 12, and `high` is not before `low` until 5.
    expect(&system, 20, &[("low", 0, 2), ("other", 2, 5), ("high", 5, 6), ("low", 6, 7)]);
}

#[test]
fn a_scheduler_without_budget_has_the_earliest_deadline_below_it() {
    let tasks = vec![
        with_deadline(20, with_priority(2, task("a", &[0], 2))),
        with_deadline(6, with_priority(1, task("b", &[1], 1))),
        with_deadline(8, task("other", &[0], 4)),
    ];
    let plain = ServerKind::Plain { priority: None };
    let inside = node("inside", None, plain, Order::FixedPriority, &["a", "b"]);
    let system = system(Policy::Edf, tasks, vec![inside]);
    // At 1 b's deadline, 7, makes its scheduler the first, where a is more important than b.
    expect(&system, 20, &[("other", 0, 1), ("a", 1, 3), ("b", 3, 4), ("other", 4, 7)]);
}

#[test]
fn a_poll_that_finds_only_children_without_budget_is_in_vain() {
    let tasks = vec![task("a", &[0], 4), with_priority(1, task("c", &[0], 8))];
    let outer = node("outer", None, polling(3, 6, 5), Order::FixedPriority, &[]);
    let inner = node("inner", Some("outer"), deferrable(1, 8, 3), Order::Fifo, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![inner, outer]);
    // The poll at 6 finds a child without budget. That of 8 waits for the poll at 12, that of 16 for the one at 18.
    expect(&system, 30, &[("a", 0, 1), ("c", 1, 9), ("a", 12, 13), ("a", 18, 19), ("a", 24, 25)]);
}

#[test]
fn a_sporadic_budget_above_comes_back_for_each_stretch() {
    let tasks = vec![task("a", &[0], 4), with_priority(1, task("c", &[0], 20))];
    let sporadic = ServerKind::Sporadic {
        capacity: capacity(3, 7),
        priority: Priority::new(5),
        low_priority: LowPriority::None,
        max_replenishments: 32,
        rules: SporadicRules::Corrected,
    };
    let outer = node("outer", None, sporadic, Order::FixedPriority, &[]);
    let inner = node("inner", Some("outer"), deferrable(1, 3, 3), Order::Fifo, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![inner, outer]);
    // 1 of the outer budget at 0, 3 and 6 each: nothing is left at 7 but what came back, for the demand of 9.
    expect(
        &system,
        12,
        &[("a", 0, 1), ("c", 1, 3), ("a", 3, 4), ("c", 4, 6), ("a", 6, 7), ("c", 7, 9), ("a", 9, 10)],
    );
}

#[test]
fn a_job_that_keeps_the_processor_is_demand_at_every_level_above() {
    let tasks =
        vec![with_priority(1, not_preemptive(task("a", &[0], 3))), with_priority(1, task("b", &[2], 1))];
    let outer = node("outer", None, polling(4, 8, 5), Order::FixedPriority, &["b"]);
    let inner = node("inner", Some("outer"), deferrable(1, 8, 3), Order::FixedPriority, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![inner, outer]);
    // The inner budget ends at 1. The outer one does not find itself without work, and pays for a and b.
    expect(&system, 20, &[("a", 0, 3), ("b", 3, 4)]);
    assert_eq!(used(&system, 1, 20), [0, 1, 2, 3]);
}

#[test]
fn chunks_of_one_time_are_one_chunk() {
    let tasks = vec![with_priority(1, not_preemptive(task("a", &[0, 12, 24, 36, 48], 4)))];
    let sporadic = ServerKind::Sporadic {
        capacity: capacity(3, 12),
        priority: Priority::new(4),
        low_priority: LowPriority::Background,
        max_replenishments: 2,
        rules: SporadicRules::Corrected,
    };
    let only = node("only", None, sporadic, Order::FixedPriority, &["a"]);
    let system = system(Policy::FixedPriority, tasks, vec![only]);
    // (0, 3) is used up: (12, 3), of which unit 3 takes 1: (12, 2), (24, 1). 12 and 13 use 2, which join what comes at 24:
    // (24, 3); 14 and 15 take 2 of it: (24, 1), (36, 2). 24 uses 1: (36, 3), all of which 25, 26 and 27 take: (48, 3).
    let expected: Vec<u64> = [0..4, 12..16, 24..28, 48..52].into_iter().flatten().collect();
    assert_eq!(used(&system, 0, 60), expected);
}
