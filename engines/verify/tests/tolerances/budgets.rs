//! The windows in which a server's budget is judged: where they begin, what is allowed in them, how far back they reach.

use crate::traces::*;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use horolog_verify::Class::ModelViolated;
use horolog_verify::{Check, Verification};

/// "hard" of priority 1, "soft" behind a server of 1 ms every 10, and more.
fn served(server: &str, more: &str) -> System {
    let text = format!(
        "[system]\nname = \"served\"\n[platform]\ncpus = 2\n[[task]]\nname = \"hard\"\nperiod = \"1 s\"\nwcet = \"900 \
         ms\"\npriority = 1\ncpu = 0\n[[task]]\nname = \"soft\"\nseparation = \"1 ms\"\nwcet = \"20 ms\"\ncpu = 0\n{more}[[server]]\nname = \
         \"server\"\ncpu = 0\ntasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\n{server}"
    );
    horolog_model::file::read(&text, "served.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

const POLLING: &str = "kind = \"polling\"\npriority = 2\n";
const DEFERRABLE: &str = "kind = \"deferrable\"\npriority = 2\n";
const BELOW: &str = "kind = \"polling\"\npriority = 1\n";

/// "hard" is pending from `since` on; "soft" has the processor in these stretches, each a job of its own that comes
/// `early` before it begins.
fn stretches(since: u64, early: u64, stretches: &[(u64, u64)]) -> Vec<Record> {
    let mut records = vec![at(since, Kind::Release, 0, 0, since), at(since, Kind::Start, 0, 0, 0)];
    for (job, &(from, to)) in (0..).zip(stretches) {
        records.extend([
            at(from - early, Kind::Release, 1, job, from - early),
            at(from, Kind::Preempt, 0, 0, 0),
            at(from, Kind::Start, 1, job, 0),
            at(to, Kind::Completion, 1, job, to - from),
            at(to, Kind::Resume, 0, 0, 0),
        ]);
    }
    records
}

/// Observed and allowed of the findings of the check `budget`.
fn budgets(result: &Verification) -> Vec<(u64, u64)> {
    let found = result.findings.iter().filter(|one| one.check == Check::Budget);
    let number = |span: Option<Span>| span.expect("it has numbers").as_ns();
    found.map(|one| (number(one.observed_ns), number(one.allowed_ns))).collect()
}

#[track_caller]
fn limit(system: &System, make: impl Fn(u64) -> Vec<Record>, limit: u64) {
    assert_eq!(budgets(&simulated(system, &[], &make(limit))), []);
    assert_eq!(budgets(&simulated(system, &[], &make(limit + 1))).len(), 1);
}

#[test]
fn a_window_begins_when_work_comes() {
    // Nothing was asked for before 50 ms, so nothing was saved.
    let of = |length| stretches(50 * MS, 0, &[(50 * MS, 50 * MS + length)]);
    limit(&served(POLLING, ""), of, MS);
    // Work that waits since 0 has two budgets when it gets the processor at 9 ms.
    let of = |length| stretches(0, 9 * MS, &[(9 * MS, 9 * MS + length)]);
    limit(&served(POLLING, ""), of, 2 * MS);
}

#[test]
fn what_may_hold_a_server_up() {
    let hard = |preemption: &str, cpu: u32| {
        format!(
            "[[task]]\nname = \"other\"\nperiod = \"1 s\"\nwcet = \"1 ms\"\npriority = 0\ncpu = {cpu}\npreemption = \
             \"{preemption}\"\n"
        )
    };
    let interrupt = |cpu: u32| {
        format!("[[interrupt]]\nname = \"nic\"\nseparation = \"1 ms\"\ncost = \"1 us\"\ncpu = {cpu}\n")
    };
    let of = |length| stretches(0, 0, &[(0, length)]);
    for (more, most) in [
        (hard("preemptive", 0), MS),
        (hard("non-preemptive", 0), 2 * MS),
        (hard("non-preemptive", 1), MS),
        (interrupt(0), 2 * MS),
        (interrupt(1), MS),
    ] {
        let system = served(POLLING, &more);
        assert_eq!(budgets(&simulated(&system, &[], &of(most))), [], "{more}");
        let found = simulated(&system, &[], &of(most + 1));
        assert_eq!(budgets(&found), [(most + 1, most)], "{more}");
    }
}

#[test]
fn the_worst_window_is_told() {
    // The second stretch alone takes 4 ms too much; with the first one before it less.
    let records = stretches(0, 0, &[(0, 1_500 * US), (50 * MS, 55 * MS)]);
    let result = simulated(&served(POLLING, ""), &[], &records);
    assert_eq!(budgets(&result), [(1_500 * US, MS), (5 * MS, MS)]);
    // Both excesses count, also where the last stretch is right.
    let records = stretches(0, 0, &[(0, 2 * MS), (50 * MS, 51 * MS)]);
    let result = simulated(&served(POLLING, ""), &[], &records);
    assert_eq!((budgets(&result), result.servers[0].exceeded), (vec![(2 * MS, MS)], 1));
}

#[test]
fn the_most_in_a_period_holds_a_part_of_the_stretch_before() {
    let most = |all: &[(u64, u64)]| {
        let result = simulated(&served(DEFERRABLE, ""), &[], &stretches(0, 0, all));
        assert_eq!(budgets(&result), []);
        result.servers[0].period_ns_max.map(Span::as_ns)
    };
    assert_eq!(most(&[]), Some(0));
    assert_eq!(most(&[(0, MS)]), Some(MS));
    // From 0.5 to 10.5 ms.
    assert_eq!(most(&[(0, MS), (9_500 * US, 10_500 * US)]), Some(1_500 * US));
    assert_eq!(most(&[(0, MS), (11 * MS, 12 * MS)]), Some(MS));
}

#[test]
fn windows_reach_back_over_two_hundred_and_fifty_six_stretches() {
    // Each takes a little more than its budget; after so many it is more than the one that may come back to back.
    let found = |over: u64, count: u64| {
        let all: Vec<(u64, u64)> = (0..count).map(|n| (n * 10 * MS, n * 10 * MS + MS + over)).collect();
        budgets(&simulated(&served(BELOW, ""), &[], &stretches(0, 0, &all))).len()
    };
    // A 255th and a half of a budget each, then a 256th and a half.
    assert_eq!(found(3_914, 256), 1);
    assert_eq!(found(3_899, 400), 0);
}

#[test]
fn soft_jobs_below_a_hard_one_may_not_run_before_it() {
    let system =
        served(BELOW, "[[task]]\nname = \"top\"\nperiod = \"1 s\"\nwcet = \"1 ms\"\npriority = 2\ncpu = 0\n");
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(100, Kind::Release, 2, 0, 100),
        at(101, Kind::Preempt, 1, 0, 0),
        at(101, Kind::Start, 2, 0, 0),
        at(201, Kind::Completion, 2, 0, 100),
    ];
    let result = simulated(&system, &[], &records);
    let found: Vec<_> = result.findings.iter().filter(|one| one.check == Check::PriorityInversion).collect();
    assert_eq!(found.len(), 1, "{:#?}", result.findings);
    assert_eq!((found[0].class, found[0].task.as_deref()), (ModelViolated, Some("top")));
    assert_eq!(found[0].observed_ns, Some(Span::from_ns(1)));
}

#[test]
fn under_dual_priority_only_promoted_jobs_are_held_to_their_order() {
    let text = "[system]\nname = \"dual\"\n[[task]]\nname = \"low\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\n\
                [[task]]\nname = \"high\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 2\n[[task]]\nname = \
                \"soft\"\nseparation = \"1 ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\nkind = \
                \"dual-priority\"\n";
    let (system, _) =
        horolog_model::file::read(text, "dual.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let system = horolog_testkit::resolved(&system);
    let found = |promoted: bool| {
        let mut records = vec![
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            at(MS, Kind::Completion, 0, 0, MS),
            at(MS, Kind::Start, 1, 0, 0),
            at(2 * MS, Kind::Completion, 1, 0, MS),
        ];
        if promoted {
            records.insert(3, at(400 * US, Kind::Promotion, 1, 0, 0));
        }
        let result = simulated(&system, &[], &records);
        let found = result.findings.iter().filter(|one| one.check == Check::PriorityInversion);
        found.map(|one| (one.task.clone(), one.observed_ns)).collect::<Vec<_>>()
    };
    assert_eq!(found(false), []);
    // From its promotion on "high" is certainly more important.
    assert_eq!(found(true), [(Some("high".to_owned()), Some(Span::from_ns(600 * US)))]);
}

#[test]
fn among_promoted_jobs_the_priorities_decide_whoever_else_waits() {
    let hard = |name: &str, priority: u32| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = {priority}\n")
    };
    let text = format!(
        "[system]\nname = \"dual\"\n{}{}{}[[task]]\nname = \"soft\"\nseparation = \"1 ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \
         \"server\"\ntasks = [\"soft\"]\nkind = \"dual-priority\"\n",
        hard("low", 1),
        hard("mid", 2),
        hard("high", 3)
    );
    let (system, _) =
        horolog_model::file::read(&text, "dual.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let system = horolog_testkit::resolved(&system);
    // All are pending from 0 on, "low" and "mid" are promoted, "low" runs and "high" waits below both.
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Release, 2, 0, 0),
        at(0, Kind::Promotion, 0, 0, 0),
        at(0, Kind::Promotion, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(MS, Kind::Completion, 0, 0, MS),
        at(MS, Kind::Start, 1, 0, 0),
        at(2 * MS, Kind::Completion, 1, 0, MS),
    ];
    let result = simulated(&system, &[], &records);
    let found: Vec<_> = result.findings.iter().filter(|one| one.check == Check::PriorityInversion).collect();
    assert_eq!(found.len(), 1, "{:#?}", result.findings);
    assert_eq!((found[0].task.as_deref(), found[0].observed_ns), (Some("mid"), Some(Span::from_ns(MS))));
}

#[test]
fn of_two_servers_each_remembers_the_releases_of_its_own_windows() {
    // Every release may take 4 ns from whoever runs. "second" begins to serve long after "server".
    let text = "[system]\nname = \"two\"\n[platform]\ncpus = 1\ntimer_interrupt = \"4 ns\"\n[[task]]\nname = \"hard\"\nperiod = \"5 \
                ms\"\nwcet = \"1 ms\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"1 ms\"\nwcet = \"20 \
                ms\"\n[[task]]\nname = \"late\"\nseparation = \"1 ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \"server\"\ntasks = \
                [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\nkind = \"deferrable\"\npriority = 3\n[[server]]\nname = \
                \"second\"\ntasks = [\"late\"]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\nkind = \"deferrable\"\npriority = 2\n";
    let (system, _) =
        horolog_model::file::read(text, "two.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let burst = |records: &mut Vec<Record>, task: u32, job: u64, hard: u64, begin: u64, length: u64| {
        let end = begin + length;
        records.extend([
            at(begin, Kind::Release, 0, hard, begin),
            at(begin, Kind::Release, task, job, begin),
            at(begin, Kind::Start, task, job, 0),
            at(end, Kind::Completion, task, job, length),
            at(end, Kind::Start, 0, hard, 0),
            at(end + MS, Kind::Completion, 0, hard, MS),
        ]);
    };
    // Windows of 5.9 ms hold three budgets at the most; the releases at 0 and at 5 ms, and two more, cost 24 ns together.
    let make = |over: u64| {
        let mut records = Vec::new();
        burst(&mut records, 1, 0, 0, 0, 1_100 * US);
        burst(&mut records, 2, 0, 1, 5 * MS, 100 * US);
        burst(&mut records, 1, 1, 2, 10 * MS, 1_900 * US + over);
        simulated(&system, &[], &records)
    };
    let first = (0..200).find(|&over| !budgets(&make(over)).is_empty());
    // Six releases before the end, and two, at 4 ns.
    assert_eq!(first, Some(4 * 8 + 1));
}
