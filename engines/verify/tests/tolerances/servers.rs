//! What a server may take from hard tasks, and the order of its jobs.

use crate::traces::*;
use horolog_model::System;
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Class, Verification};

fn served(server: &str, platform: &str) -> System {
    // The kernel serves one task.
    let other = "[[task]]\nname = \"other\"\nseparation = \"50 ms\"\nwcet = \"20 ms\"\n";
    let (other, tasks) = if server == POLLING { (other, "\"soft\", \"other\"") } else { ("", "\"soft\"") };
    let text = format!(
        "[system]\nname = \"served\"\n[platform]\ncpus = 1\n{platform}[[task]]\nname = \"hard\"\nperiod = \"100 ms\"\nwcet = \"20 ms\"\n\
         priority = 1\n[[task]]\nname = \"soft\"\nseparation = \"50 ms\"\nwcet = \"20 ms\"\n{other}\
         [[server]]\nname = \"server\"\ntasks = [{tasks}]\n{server}"
    );
    horolog_model::file::read(&text, "served.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

const POLLING: &str = "kind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
const DEFERRABLE: &str = "kind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
const BELOW: &str = "kind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 1\n";
const KERNEL: &str =
    "kind = \"constant-bandwidth\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\nenforcement = \"kernel\"\n";
const LATENCY: &str = "release_latency = \"30 us\"\n";

/// "soft" has the processor for `length` while "hard" waits; an interrupt takes `interrupted` of it.
fn taken(length: u64, interrupted: u64) -> Vec<Record> {
    let mut records = vec![
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(length, Kind::Completion, 1, 0, length - interrupted),
        at(length, Kind::Start, 0, 0, 0),
        at(length + MS, Kind::Completion, 0, 0, MS),
    ];
    if interrupted > 0 {
        records.insert(3, kernel(US, Kind::InterruptEntry, 36, 0));
        records.insert(4, kernel(US + interrupted, Kind::InterruptExit, 36, 0));
    }
    records
}

/// Whose fault the findings of the check `budget` are, with the server's count.
fn budget(result: &Verification) -> (Vec<Class>, u64) {
    let found = result.findings.iter().filter(|one| one.check == Check::Budget);
    (found.map(|one| one.class).collect(), result.servers[0].exceeded)
}

#[track_caller]
fn limit(make: impl Fn(u64) -> Verification, limit: u64, class: Class) {
    assert_eq!(budget(&make(limit)), (vec![], 0));
    assert_eq!(budget(&make(limit + 1)), (vec![class], 1));
}

#[test]
fn budgets_of_simulated_servers() {
    let of = |server: &str| {
        let system = served(server, "");
        move |length: u64| simulated(&system, &[], &taken(length, 0))
    };
    limit(of(POLLING), MS, ModelViolated);
    limit(of(DEFERRABLE), 2 * MS, ModelViolated);
    limit(of(BELOW), 2 * MS, ModelViolated);
    limit(of(&format!("{KERNEL}enforcement_latency = \"0 ns\"\n")), MS, ModelViolated);
    // A tenth of the window, 0.9 ms, and the latency.
    limit(of(&format!("{KERNEL}enforcement_latency = \"30 us\"\n")), 1_033_333, ModelViolated);
}

#[test]
fn budgets_of_measured_servers() {
    let of = |server: &str, platform: &str| {
        let system = served(server, platform);
        move |length: u64| measured(&system, &[], &taken(length, 0))
    };
    // Two budgets overdrawn by 100 us each, two releases that waited for the agent.
    limit(of(POLLING, ""), MS + 2 * 100 * US + 2 * 20 * US, ModelViolated);
    limit(of(POLLING, LATENCY), MS + 2 * 130 * US + 2 * 50 * US, ModelViolated);
    limit(of(DEFERRABLE, ""), 2 * MS + 2 * 100 * US + 2 * 20 * US, ModelViolated);
    // An interrupt explains what it took.
    let system = served(POLLING, "");
    let make = |length: u64| measured(&system, &[], &taken(length, 40 * US));
    limit(make, MS + 240 * US, MachineDisturbed);
    assert_eq!(budget(&make(MS + 280 * US)).0, [MachineDisturbed]);
    assert_eq!(budget(&make(MS + 280 * US + 1)).0, [ModelViolated]);
}

#[test]
fn budgets_come_back_every_period() {
    // After 10 ms, of which it has used 1, a whole budget more: what counts is the window since it had work.
    let system = served(POLLING, "");
    let make = |second: u64| {
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(MS, Kind::Preempt, 1, 0, 0),
            at(MS, Kind::Start, 0, 0, 0),
            at(10 * MS, Kind::Preempt, 0, 0, 0),
            at(10 * MS, Kind::Resume, 1, 0, 0),
            at(10 * MS + second, Kind::Completion, 1, 0, MS + second),
            at(10 * MS + second, Kind::Resume, 0, 0, 0),
            at(12 * MS + second, Kind::Completion, 0, 0, 11 * MS),
        ];
        simulated(&system, &[], &records)
    };
    limit(make, MS, ModelViolated);
    let server = &make(MS).servers[0];
    assert_eq!(server.interference_ns.as_ns(), 2 * MS);
    assert_eq!(server.period_ns_max.map(|span| span.as_ns()), Some(MS));
    assert_eq!(server.period_allowed_ns.map(|span| span.as_ns()), Some(MS));
}

#[test]
fn a_background_server_takes_nothing() {
    let system = served("kind = \"background\"\n", "");
    let found = simulated(&system, &[], &taken(1, 0));
    let inversion = found.findings.iter().find(|one| one.check == Check::PriorityInversion);
    assert_eq!(inversion.and_then(|one| one.task.as_deref()), Some("hard"), "{:#?}", found.findings);
}

#[test]
fn the_order_of_a_servers_jobs() {
    // "other" comes `later` than "soft", and starts first.
    let make = |later: u64, is_measured: bool| {
        let system = served(POLLING, "");
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(later, Kind::Release, 2, 0, later),
            at(later, Kind::Start, 2, 0, 0),
            at(later + MS, Kind::Completion, 2, 0, MS),
            at(later + MS, Kind::Start, 1, 0, 0),
            at(later + 2 * MS, Kind::Completion, 1, 0, MS),
        ];
        let result = match is_measured {
            true => measured(&system, &[], &records),
            false => simulated(&system, &[], &records),
        };
        let found = result.findings.iter().filter(|one| one.check == Check::FirstInFirstOut);
        found.map(|one| (one.class, one.task.clone(), one.job)).collect::<Vec<_>>()
    };
    let expected = (ModelViolated, Some("other".to_owned()), Some(0));
    for (is_measured, limit) in [(true, 20 * US), (false, 0)] {
        assert_eq!(make(limit, is_measured), []);
        assert_eq!(make(limit + 1, is_measured), std::slice::from_ref(&expected));
    }
}

#[test]
fn costs_of_releases_long_ago_count_for_a_budget() {
    // Every release takes 4 ns from whoever runs. Between two bursts of the server, at 0 and at 10 ms, nothing is pending.
    let server = format!("{KERNEL}enforcement_latency = \"0 ns\"\n");
    let system = served(&server, "timer_interrupt = \"4 ns\"\n");
    let burst = |begin: u64, job: u64, length: u64| {
        let mut records = taken(length, 0);
        for record in &mut records {
            (record.time, record.job) = (horolog_time::Instant::from_ns(record.time.as_ns() + begin), job);
        }
        records
    };
    let make = |second: u64| {
        let records = [burst(0, 0, MS + 17), burst(10 * MS, 1, second)].concat();
        simulated(&system, &[], &records)
    };
    // Both together take 2 ms, 17 ns and what the second has more; a tenth of the window, of 0.9 T and of 16 ns of delay is
    // 2 ms and 2 ns; four releases and two more cost 24 ns.
    limit(make, MS + 9, ModelViolated);
}

#[test]
fn switches_between_jobs_of_one_server_count_for_a_budget() {
    // Two jobs one after the other: two switches for the stretch, one in between, and two of the platform's costs.
    let system = served(POLLING, "context_switch = \"10 ns\"\n");
    let make = |length: u64| {
        let half = MS / 2;
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Release, 2, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(half, Kind::Completion, 1, 0, half),
            at(half, Kind::Start, 2, 0, 0),
            at(length, Kind::Completion, 2, 0, length - half),
            at(length, Kind::Start, 0, 0, 0),
            at(length + MS, Kind::Completion, 0, 0, MS),
        ];
        simulated(&system, &[], &records)
    };
    limit(make, MS + 50, ModelViolated);
}
