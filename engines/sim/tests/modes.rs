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
        let servers = vec![ServerChange {
            server: "s".to_owned(),
            capacity: Some(capacity(budget, period)),
            table: None,
        }];
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
    let servers = vec![ServerChange { server: "s".to_owned(), capacity: Some(capacity(1, 7)), table: None }];
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
    let servers = vec![ServerChange { server: "s".to_owned(), capacity: Some(capacity(1, 9)), table: None }];
    draft.modes = vec![Mode { servers, ..mode("less", &[0]) }];
    // Polls at 0, 9, 18 ... 90; those of the base mode would go on to 5 and then by 9 to 86 and 95.
    let (records, _) = run(draft, 100);
    assert_eq!(of(&records, Kind::Start), [(90, 0)]);
}

/// "a" takes 3 of every 10, and its jobs what is listed; "b" is below it. What `mode` says of the mode comes behind.
fn asking(jobs: &str, mode: &str) -> Draft {
    let text = format!(
        "[system]\nname = \"asking\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"3 ns\"\n\
         bcet = \"1 ns\"\npriority = 2\nexecution = {{ jobs = [{jobs}] }}\noverrun = {{ mode = \"degraded\" }}\n[[task]]\n\
         name = \"b\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"6 ns\"\npriority = 1\n[[mode]]\n\
         name = \"degraded\"\nactive = [\"a\"]\n{mode}\n"
    );
    let (system, _) =
        horolog_model::file::read(&text, "asking.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    system.to_draft()
}

/// When jobs asked for a mode, and which of them.
fn asked(records: &[Record]) -> Vec<(u64, u32, u64)> {
    let asked = records.iter().filter(|r| r.kind == Kind::Enforcement && r.extra == 5);
    asked.map(|r| (r.time.as_ns(), r.task, r.job)).collect()
}

#[test]
fn a_job_asks_for_a_mode_when_it_has_executed_its_wcet_and_goes_on() {
    // At its wcet and below it a job asks for nothing.
    let (records, _) = run(asking("\"3 ns\", \"2 ns\"", ""), 40);
    assert_eq!((asked(&records), changes(&records)), (vec![], vec![]));
    // One unit more, and the mode changes at the very instant; the job has the processor to its end.
    let (records, outcome) = run(asking("\"3 ns\", \"4 ns\", \"5 ns\"", ""), 60);
    assert_eq!(asked(&records), [(13, 0, 1), (23, 0, 2), (43, 0, 4), (53, 0, 5)]);
    // In the mode that it asks for already it asks for nothing.
    assert_eq!(changes(&records), [(13, 1)]);
    assert_eq!(of(&records, Kind::Completion), [(3, 0), (9, 1), (14, 0), (25, 0), (33, 0), (44, 0), (55, 0)]);
    assert_eq!(of(&records, Kind::Preempt), []);
    assert_eq!(outcome.tasks[0].overruns, 4);
}

/// What waits already is not asked for again; a request follows the rules of its mode.
#[test]
fn a_request_by_an_overrun_waits_as_any_other() {
    let waits = "takes_effect = { when_done = [\"b\"] }";
    // "b" has 4 to 10 and ends at 10, when the next job of "a" comes, which asks at 13 in the mode.
    let (records, _) = run(asking("\"4 ns\"", waits), 40);
    assert_eq!(asked(&records), [(3, 0, 0), (13, 0, 1), (23, 0, 2), (33, 0, 3)]);
    assert_eq!(changes(&records), [(10, 1)]);
    // Beside a request of the file for the same instant: that one comes first. Back in the base mode it asks again.
    let mut draft = asking("\"4 ns\"", "");
    draft.modes.push(mode("normal", &[13, 20]));
    let (records, _) = run(draft, 40);
    assert_eq!(changes(&records), [(3, 1), (13, 2), (13, 1), (20, 2), (23, 1)]);
    // A mode that waits for nobody else is refused beside one that waits.
    let mut draft = asking("\"4 ns\"", "second_request = \"refuse\"");
    let waits = TakesEffect::WhenDone(vec!["b".to_owned()]);
    draft.modes.push(Mode { takes_effect: waits, ..mode("normal", &[1]) });
    let (records, _) = run(draft, 20);
    assert_eq!(changes(&records), [(10, 2), (13, 1)]);
}

#[test]
fn the_mode_says_what_becomes_of_the_job_that_asked() {
    let mode = "left_over = \"drop\"\n[[mode.task]]\nname = \"a\"\nperiod = \"16 ns\"";
    let (records, outcome) = run(asking("\"5 ns\", \"3 ns\"", mode), 20);
    // Dropped at 3, and the first job of the mode comes at the change; jobs of "b" are gone, too.
    assert_eq!(changes(&records), [(3, 1)]);
    assert_eq!(of(&records, Kind::Completion), [(6, 0)]);
    assert_eq!((outcome.tasks[0].skipped, outcome.tasks[1].skipped), (1, 1));
}

/// Of two processors the lower one asks first, and each change finds what the one before has left.
#[test]
fn two_processors_ask_at_one_instant_in_their_order() {
    let task = |name: &str, cpu: u32, mode: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"3 ns\"\npriority = 1\ncpu = {cpu}\n\
             execution = {{ jobs = [\"4 ns\"] }}\noverrun = {{ mode = \"{mode}\" }}\n"
        )
    };
    let tasks = task("b", 1, "second") + &task("a", 0, "first");
    let text = format!(
        "[system]\nname = \"two\"\n[platform]\ncpus = [0, 1]\n{tasks}[[mode]]\nname = \"first\"\n[[mode]]\nname = \"second\"\n"
    );
    let (system, _) = horolog_model::file::read(&text, "two.toml", &[]).expect("valid");
    let (records, _) = run(system.to_draft(), 30);
    assert_eq!(changes(&records), [(3, 1), (3, 2), (23, 1), (23, 2)]);
}

/// Ends of modes: when, which one, and the mode that goes on.
fn ended(records: &[Record]) -> Vec<(u64, u64, u64)> {
    let ends = records.iter().filter(|r| r.kind == Kind::ModeEnd);
    ends.map(|r| (r.time.as_ns(), r.value, r.extra)).collect()
}

/// First dispatches: when, the task or the server (as `extra` has it), and the mode.
fn dispatched(records: &[Record]) -> Vec<(u64, u32, u64, u64)> {
    let first = records.iter().filter(|r| r.kind == Kind::FirstDispatch);
    first.map(|r| (r.time.as_ns(), r.task, r.extra, r.value)).collect()
}

#[test]
fn the_mode_before_ends_with_its_last_left_over_job() {
    let less = |left_over, at: &[u64]| {
        let mut draft = parts(&TWO);
        draft.modes = vec![Mode { active: Some(vec!["a".to_owned()]), left_over, ..mode("less", at) }];
        draft
    };
    // "b" has 4 to 9: at 6 its job is left over, and "a" is dispatched next at 10.
    let (records, outcome) = run(less(LeftOver::Finish, &[6]), 25);
    assert_eq!(ended(&records), [(9, 0, 1)]);
    assert_eq!(dispatched(&records), [(10, 0, 0, 1)]);
    let change = &outcome.modes[0];
    assert_eq!((change.mode.as_str(), change.by, change.left_over), ("less", "request", 1));
    assert_eq!((change.requested_ns, change.changed_ns, change.ended_ns), (ns(6), ns(6), Some(ns(9))));
    // At the very end of the job there is nothing left, nor is there after it is dropped or suspended.
    assert_eq!(ended(&run(less(LeftOver::Finish, &[9]), 25).0), [(9, 0, 1)]);
    assert_eq!(ended(&run(less(LeftOver::Drop, &[6]), 25).0), [(6, 0, 1)]);
    assert_eq!(ended(&run(less(LeftOver::Suspend, &[6]), 25).0), [(6, 0, 1)]);
    // One unit before it the job is left over for one unit.
    assert_eq!(ended(&run(less(LeftOver::Finish, &[8]), 25).0), [(9, 0, 1)]);
    // A job that runs on into a mode that has its task as it was is dispatched there at the change.
    let (records, _) = run(less(LeftOver::Finish, &[2]), 25);
    assert_eq!((dispatched(&records), ended(&records)), (vec![(2, 0, 0, 1)], vec![(9, 0, 1)]));
}

/// What is left of a mode when another change comes is told with that change.
#[test]
fn a_second_change_takes_over_what_is_left() {
    let mut draft = parts(&TWO);
    let less = Mode { active: Some(vec!["a".to_owned()]), ..mode("less", &[6]) };
    draft.modes = vec![less, Mode { active: Some(Vec::new()), ..mode("nothing", &[7]) }, mode("all", &[20])];
    let (records, outcome) = run(draft, 26);
    assert_eq!(changes(&records), [(6, 1), (7, 2), (20, 3)]);
    assert_eq!(ended(&records), [(9, 1, 2), (20, 2, 3)]);
    let ends: Vec<Option<Span>> = outcome.modes.iter().map(|change| change.ended_ns).collect();
    assert_eq!(ends, [None, Some(ns(9)), Some(ns(20))]);
    // Of a mode without tasks nothing is dispatched; then each once, though both have more jobs.
    assert_eq!(dispatched(&records), [(20, 0, 0, 3), (24, 1, 0, 3)]);
}

/// A job of a task that restarts is left over beside the first one of the mode, which is dispatched behind it; the server above it too.
#[test]
fn a_left_over_job_is_no_dispatch_in_the_mode() {
    let mut draft = parts(&[
        "name = \"a\"; period = \"40 ns\"; offset = \"0 ns\"; wcet = \"2 ns\"; priority = 1",
        "name = \"soft\"; period = \"20 ns\"; offset = \"0 ns\"; wcet = \"6 ns\"; priority = 2",
    ]);
    let text = "[system]\nname = \"x\"\n[[task]]\nname = \"soft\"\nperiod = \"20 ns\"\nwcet = \"6 ns\"\n[[server]]\nname = \"s\"\n\
                kind = \"deferrable\"\ntasks = [\"soft\"]\nbudget = \"8 ns\"\nperiod = \"20 ns\"\npriority = 5\n";
    draft.servers = horolog_model::file::read(text, "x", &[]).expect("valid").0.to_draft().servers;
    (draft.tasks[1].deadline, draft.tasks[1].priority) = (None, None);
    let change = TaskChange { task: "soft".to_owned(), period: Some(ns(30)), ..TaskChange::default() };
    draft.modes = vec![Mode { tasks: vec![change], ..mode("slow", &[4]) }];
    let (records, _) = run(draft, 20);
    assert_eq!(ended(&records), [(6, 0, 1)]);
    // The job of 4 gets the server's last 2 from 6 on.
    let all = dispatched(&records);
    assert_eq!(all[..2], [(6, 1, 0, 1), (6, horolog_trace::NO_TASK, 1, 1)]);
    assert_eq!((all[2].1, all.len()), (0, 3));
}

#[test]
fn no_pattern_is_taken_for_a_system_with_modes() {
    use horolog_model::pattern::ReleasePattern;
    let mut draft = parts(&TWO);
    let pattern = ReleasePattern::new("modes", ns(20));
    let options = horolog_sim::ReplayOptions::default();
    let plain = System::new(draft.clone()).expect("a valid system");
    assert!(horolog_sim::replay(&plain, &pattern, &options, &mut horolog_trace::NullSink).is_err());
    draft.modes = vec![mode("other", &[5])];
    let system = System::new(draft).expect("a valid system");
    let refused = horolog_sim::replay(&system, &pattern, &options, &mut horolog_trace::NullSink);
    let words = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(words.contains("mode other") && words.contains("modes change"), "{words}");
}

/// A device of which nothing comes within the horizon.
const IDLE_DEVICE: &str = "[[device]]\nname = \"idle\"\nservice = \"interrupt\"\nseparation = \"5 ms\"\ncost = \"1 ns\"\narrivals = [\"900 ms\"]\n";

/// The arrivals of each task: `(instant, task)`.
fn arrivals_of(text: &str, until: u64) -> Vec<(u64, u32)> {
    let (system, _) =
        horolog_model::file::read(text, "modes.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    of(&run(system.to_draft(), until).0, Kind::Release)
}

#[test]
fn beside_a_device_a_mode_gives_its_period_and_its_tasks() {
    let tasks = "[system]\nname = \"modes\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"2 ns\"\npriority = 5\n\
                 [[task]]\nname = \"b\"\nperiod = \"20 ns\"\nwcet = \"1 ns\"\npriority = 2\n";
    let slower = format!(
        "{tasks}[[mode]]\nname = \"slow\"\nat = [\"10 ns\"]\n[[mode.task]]\nname = \"a\"\nperiod = \"30 ns\"\n"
    );
    let absent = format!(
        "{tasks}[[mode]]\nname = \"m\"\nat = [\"15 ns\"]\nactive = [\"b\"]\n[[mode]]\nname = \"back\"\nat = [\"33 ns\"]\n"
    );
    let by_hand: [(&str, &[(u64, u32)]); 2] = [
        (&slower, &[(0, 0), (0, 1), (10, 0), (20, 1), (40, 0), (40, 1)]),
        (&absent, &[(0, 0), (0, 1), (10, 0), (20, 1), (33, 0), (40, 1), (43, 0), (53, 0)]),
    ];
    for (text, expected) in by_hand {
        let mut found = arrivals_of(text, 60);
        found.sort_unstable();
        assert_eq!(found, expected);
        let mut beside = arrivals_of(&format!("{text}{IDLE_DEVICE}"), 60);
        beside.sort_unstable();
        assert_eq!(beside, expected, "beside a device");
    }
}
