//! Modes of a system file in virtual time: schedules computed by hand.

use horolog_model::{
    Capacity, CpuId, Draft, LeftOver, LowPriority, Mode, Priority, SecondRequest, Server, ServerChange,
    ServerKind, System, TakesEffect, TaskChange,
};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};

fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

/// The parts of a system: a task each line.
fn parts(tasks: &[&str]) -> Draft {
    let mut text = "[system]\nname = \"modes\"\n".to_owned();
    for task in tasks {
        text += &format!("[[task]]\n{}\n", task.replace("; ", "\n"));
    }
    let (system, _) =
        horolog_model::file::read(&text, "modes.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    system.to_draft()
}

fn mode(name: &str, at: &[u64]) -> Mode {
    Mode { name: name.to_owned(), at: at.iter().copied().map(ns).collect(), ..Mode::default() }
}

fn run(draft: Draft, until: u64) -> (Vec<Record>, Outcome) {
    let system = System::new(draft).expect("a valid system");
    let options = SimOptions { horizon: Horizon::Time(ns(until)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    let outcome = simulate(&system, &options, &mut records).expect("it simulates");
    assert_eq!(outcome.events, records.len() as u64);
    (records, outcome)
}

/// Instants and tasks of one kind of record.
fn of(records: &[Record], kind: Kind) -> Vec<(u64, u32)> {
    records.iter().filter(|r| r.kind == kind).map(|r| (r.time.as_ns(), r.task)).collect()
}

fn changes(records: &[Record]) -> Vec<(u64, u64)> {
    let changes = records.iter().filter(|r| r.kind == Kind::ModeChange);
    changes.map(|r| (r.time.as_ns(), r.value)).collect()
}

const TWO: [&str; 2] = [
    "name = \"a\"; period = \"10 ns\"; offset = \"0 ns\"; wcet = \"4 ns\"; priority = 2",
    "name = \"b\"; period = \"10 ns\"; offset = \"0 ns\"; wcet = \"5 ns\"; priority = 1",
];

#[test]
fn another_period_starts_at_the_change_and_the_old_job_keeps_its_deadline() {
    let mut draft = parts(&TWO);
    let change = TaskChange {
        task: "b".to_owned(),
        period: Some(ns(7)),
        deadline: Some(ns(7)),
        ..TaskChange::default()
    };
    draft.modes = vec![Mode { tasks: vec![change], ..mode("fast", &[6]) }];
    let (records, outcome) = run(draft, 30);
    assert_eq!(changes(&records), [(6, 1)]);
    let b: Vec<u64> = of(&records, Kind::Release).into_iter().filter(|r| r.1 == 1).map(|r| r.0).collect();
    assert_eq!(b, [0, 6, 13, 20, 27]);
    // The job of 0 ends at 9, by its deadline 10; that of 6 has 9 to 10, 14 to 18 and misses 13, its deadline in the new mode.
    let ends: Vec<u64> =
        of(&records, Kind::Completion).into_iter().filter(|r| r.1 == 1).map(|r| r.0).collect();
    assert_eq!(ends[..2], [9, 18]);
    let misses: Vec<(u64, u64)> =
        records.iter().filter(|r| r.kind == Kind::Miss && r.task == 1).map(|r| (r.job, r.value)).collect();
    assert_eq!(misses[0], (1, 13));
    assert!(outcome.tasks[1].missed > 0);
}

#[test]
fn left_over_jobs_finish_are_dropped_or_wait_for_their_mode() {
    let cases = [
        (LeftOver::Finish, vec![(9, 1), (16, 0), (21, 1)], 0),
        (LeftOver::Drop, vec![(16, 0), (21, 1)], 1),
        (LeftOver::Suspend, vec![(16, 0), (19, 1)], 0),
    ];
    for (left_over, expected, skipped) in cases {
        let mut draft = parts(&TWO);
        // From 6 to 12 b is not active; 2 of its 5 are executed at 6. Back in the base mode both begin anew at 12.
        let without = Mode { active: Some(vec![]), left_over, ..mode("without", &[6]) };
        draft.modes = vec![without, mode("with", &[12])];
        let (records, outcome) = run(draft, 25);
        let ends = of(&records, Kind::Completion);
        assert_eq!(ends[0], (4, 0), "{left_over:?}");
        assert_eq!(ends[1..], expected, "{left_over:?}");
        assert_eq!(changes(&records), [(6, 1), (12, 2)]);
        assert_eq!(outcome.tasks[1].skipped, skipped, "{left_over:?}");
        let dropped = records.iter().filter(|r| r.kind == Kind::Enforcement);
        let dropped: Vec<_> = dropped.map(|r| (r.time.as_ns(), r.task, r.job, r.extra)).collect();
        assert_eq!(dropped, if skipped > 0 { vec![(6, 1, 0, 4)] } else { vec![] });
    }
}

#[test]
fn a_request_waits_for_the_last_job_and_a_second_one_is_queued_or_refused() {
    for (second_request, expected) in
        [(SecondRequest::Queue, vec![(9, 1), (9, 2)]), (SecondRequest::Refuse, vec![(9, 1)])]
    {
        let mut draft = parts(&TWO);
        let done = TakesEffect::WhenDone(vec!["a".to_owned(), "b".to_owned()]);
        draft.modes = vec![
            Mode { takes_effect: done, ..mode("quiet", &[2]) },
            Mode { second_request, ..mode("next", &[5]) },
        ];
        let (records, _) = run(draft, 25);
        assert_eq!(changes(&records), expected, "{second_request:?}");
    }
    // At 9 both are done; the releases of 10 belong to the mode that was asked for at 10 and takes effect then.
    let mut draft = parts(&TWO);
    let done = TakesEffect::WhenDone(vec!["b".to_owned()]);
    draft.modes = vec![Mode { takes_effect: done, active: Some(vec!["b".to_owned()]), ..mode("b", &[10]) }];
    let (records, _) = run(draft, 25);
    assert_eq!(changes(&records), [(10, 1)]);
    let released: Vec<_> = of(&records, Kind::Release).into_iter().filter(|r| r.0 >= 10).collect();
    assert_eq!(released, [(10, 1), (20, 1)]);
}

#[test]
fn a_budget_changes_at_a_frame_and_what_is_used_stays_used() {
    let tasks = [
        "name = \"soft\"; arrivals = [\"0 ns\"]; wcet = \"40 ns\"; priority = 2",
        "name = \"hard\"; period = \"100 ns\"; offset = \"0 ns\"; wcet = \"90 ns\"; priority = 1",
    ];
    let capacity = |budget, period| Capacity { budget: ns(budget), period: ns(period) };
    let schedule = |takes_effect: TakesEffect, budget: u64, period: u64, at: u64| {
        let mut draft = parts(&tasks);
        draft.tasks[0].priority = None;
        let kind = ServerKind::Deferrable {
            capacity: capacity(4, 10),
            priority: Priority::new(9),
            low_priority: LowPriority::None,
        };
        draft.servers = vec![Server::new("s", vec!["soft".to_owned()], CpuId(0), kind)];
        let servers = vec![ServerChange { server: "s".to_owned(), capacity: capacity(budget, period) }];
        draft.modes = vec![Mode { takes_effect, servers, ..mode("other", &[at]) }];
        let (records, _) = run(draft, 60);
        let kinds = [Kind::Start, Kind::Resume, Kind::Preempt, Kind::Completion];
        let soft = records.iter().filter(|r| r.task == 0 && kinds.contains(&r.kind));
        (changes(&records), soft.map(|r| r.time.as_ns()).collect::<Vec<_>>())
    };
    // Asked for at 13, where 3 of 4 are used: at once it has 6 in this period, then 6 every 15 from 20 on.
    assert_eq!(
        schedule(TakesEffect::AtOnce, 6, 15, 13),
        (vec![(13, 1)], vec![0, 4, 10, 16, 20, 26, 35, 41, 50, 56])
    );
    // Less than is used: nothing is left until 20.
    assert_eq!(
        schedule(TakesEffect::AtOnce, 2, 15, 13),
        (vec![(13, 1)], vec![0, 4, 10, 13, 20, 22, 35, 37, 50, 52])
    );
    // At an instant of replenishment that one is of the new budget.
    assert_eq!(schedule(TakesEffect::AtOnce, 2, 15, 20).1, [0, 4, 10, 14, 20, 22, 35, 37, 50, 52]);
    // At the next frame, whose budget is the new one already.
    let frame = || TakesEffect::Frame("s".to_owned());
    let at_the_frame = (vec![(20, 1)], vec![0, 4, 10, 14, 20, 26, 35, 41, 50, 56]);
    assert_eq!(schedule(frame(), 6, 15, 13), at_the_frame);
    assert_eq!(schedule(frame(), 6, 15, 20), at_the_frame);
}

#[test]
fn jobs_of_a_task_that_comes_back_with_another_period_are_left_over_too() {
    let mut draft =
        parts(&["name = \"a\"; period = \"10 ns\"; offset = \"0 ns\"; wcet = \"5 ns\"; priority = 1"]);
    let off = Mode { active: Some(vec![]), left_over: LeftOver::Suspend, ..mode("off", &[3]) };
    let change = TaskChange { task: "a".to_owned(), period: Some(ns(15)), ..TaskChange::default() };
    let slow = Mode { left_over: LeftOver::Drop, tasks: vec![change], ..mode("slow", &[20]) };
    draft.modes = vec![off, slow];
    let (records, _) = run(draft, 30);
    assert_eq!(of(&records, Kind::Completion), [(25, 0)]);
}

#[test]
fn a_sporadic_budget_cut_below_what_is_used_owes_nothing() {
    let mut draft = parts(&["name = \"soft\"; arrivals = [\"20 ns\"]; wcet = \"3 ns\"; priority = 1"]);
    draft.tasks[0].priority = None;
    let capacity = |budget, period| Capacity { budget: ns(budget), period: ns(period) };
    let kind = ServerKind::Sporadic {
        capacity: capacity(3, 8),
        priority: Priority::new(1),
        low_priority: LowPriority::None,
        max_replenishments: 32,
        rules: horolog_model::SporadicRules::Corrected,
    };
    draft.servers = vec![Server::new("s", vec!["soft".to_owned()], CpuId(0), kind)];
    let servers = vec![ServerChange { server: "s".to_owned(), capacity: capacity(1, 7) }];
    draft.modes = vec![Mode { servers, ..mode("less", &[22]) }];
    let (records, _) = run(draft, 40);
    assert_eq!((of(&records, Kind::Resume), of(&records, Kind::Completion)), (vec![(27, 0)], vec![(28, 0)]));
}

#[test]
fn a_period_that_starts_at_a_change_belongs_to_the_new_mode() {
    let mut draft = parts(&["name = \"soft\"; arrivals = [\"88 ns\"]; wcet = \"1 ns\"; priority = 1"]);
    draft.tasks[0].priority = None;
    let capacity = |budget, period| Capacity { budget: ns(budget), period: ns(period) };
    let kind = ServerKind::Polling {
        capacity: capacity(1, 5),
        priority: Priority::new(1),
        low_priority: LowPriority::None,
    };
    draft.servers = vec![Server::new("s", vec!["soft".to_owned()], CpuId(0), kind)];
    let servers = vec![ServerChange { server: "s".to_owned(), capacity: capacity(1, 9) }];
    draft.modes = vec![Mode { servers, ..mode("less", &[0]) }];
    // Polls at 0, 9, 18 ... 90; those of the base mode would go on to 5 and then by 9 to 86 and 95.
    let (records, _) = run(draft, 100);
    assert_eq!(of(&records, Kind::Start), [(90, 0)]);
}
