//! Interrupts, softirqs, polling, threads and budgets of drivers, and the published scenarios with them.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_model::System;
use horolog_sim::{ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, NullSink, Outcome, Record};
use serde::Deserialize;
use std::collections::BTreeMap;

fn system(text: &str) -> System {
    match horolog_model::file::read(text, "test", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}\n{text}"),
    }
}

fn span(text: &str) -> Span {
    text.parse().unwrap()
}

fn us(us: u64) -> Option<Span> {
    Span::from_us(us)
}

fn options(until: &str) -> SimOptions {
    SimOptions { horizon: Horizon::Time(span(until)), ..SimOptions::default() }
}

fn run(text: &str, until: &str) -> Outcome {
    simulate(&system(text), &options(until), &mut NullSink).unwrap()
}

fn traced(text: &str, until: &str) -> Vec<Record> {
    let mut records = Vec::new();
    simulate(&system(text), &options(until), &mut records).unwrap();
    records
}

const TASK: &str =
    "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\npriority = 50\n";

fn interrupt(keys: &str) -> String {
    format!("[[interrupt]]\nname = \"eth0\"\nseparation = \"10 us\"\ncost = \"4 us\"\n{keys}\n")
}

fn device(keys: &str) -> String {
    format!("[[device]]\nname = \"net\"\nseparation = \"10 us\"\ncost = \"6 us\"\n{keys}\n")
}

#[test]
fn interrupts_preempt_everything() {
    // The critical instant of the analysis: 16 668 us without throttling, 10 004 us with a poller below the task.
    let outcome = run(&format!("{TASK}{}", interrupt("")), "100 ms");
    assert_eq!(outcome.tasks[0].response_ns_max, us(16_668));
    let napi = format!(
        "{TASK}{}{}",
        interrupt("throttling = \"napi\""),
        device("interrupt = \"eth0\"\nservice = \"thread\"\npriority = 1")
    );
    assert_eq!(run(&napi, "100 ms").tasks[0].response_ns_max, us(10_004));
    let moderated = interrupt("throttling = \"moderated\"\ninterval = \"100 us\"");
    let outcome = run(&format!("{TASK}{moderated}"), "100 ms");
    assert_eq!(outcome.tasks[0].response_ns_max, us(10_420));
    assert_eq!((outcome.interrupts[0].taken, outcome.interrupts[0].causes), (1_000, 10_000));
}

#[test]
fn each_service_has_its_place() {
    let slow = |keys: &str| {
        let device = "[[device]]\nname = \"d\"\nseparation = \"1 ms\"\ncost = \"100 us\"\n";
        run(&format!("{TASK}{device}{keys}\n"), "100 ms")
    };
    for (keys, response) in [
        ("service = \"interrupt\"", 11_200),
        ("service = \"softirq\"", 11_200),
        ("service = \"thread\"\npriority = 51", 11_200),
        ("service = \"thread\"\npriority = 49", 10_000),
        ("service = \"thread\"\nrule = \"open\"\nusers = [\"t\"]\npriority = 60", 11_200),
    ] {
        let outcome = slow(keys);
        assert_eq!(outcome.tasks[0].response_ns_max, us(response), "{keys}");
        let device = &outcome.devices[0];
        assert_eq!((device.events, device.served, device.dropped), (100, 100, 0), "{keys}");
    }
    let below = slow("service = \"thread\"\npriority = 1\nring = 4\ndeadline = \"5 ms\"");
    let device = &below.devices[0];
    // Four wait behind the task; those that come until it ends, its end included, are lost. The first waits longest.
    assert_eq!((device.dropped, device.response.response_ns_max), (7, us(10_100)));
    assert_eq!(device.missed, 4);
}

#[test]
fn rounds_are_limited_and_the_rest_goes_to_the_background() {
    // Events come faster than they are worked off: after ten rounds of one event the rest waits for idle time.
    let flood = |rounds: u32| {
        let text = format!(
            "{TASK}{}{}",
            interrupt("throttling = \"napi\""),
            device(&format!(
                "interrupt = \"eth0\"\nservice = \"softirq\"\nrounds = {rounds}\npoll_budget = 1\nring = 64\ncost_x"
            ))
        );
        run(&text.replace("cost = \"6 us\"", "cost = \"20 us\"").replace("\ncost_x", ""), "100 ms")
    };
    let few = flood(10);
    // One interrupt, ten events, then the task; what is left is done below it.
    assert_eq!(few.tasks[0].response_ns_max, us(10_000 + 4 + 10 * 20));
    let device = &few.devices[0];
    assert!(device.in_background > 1_000 && device.dropped > 1_000, "{device:?}");
    assert_eq!(device.events, device.served + device.dropped + device.waiting);
    let many = flood(100);
    assert_eq!(many.tasks[0].response_ns_max, us(10_000 + 4 + 100 * 20));
}

#[test]
fn a_napi_device_interrupts_a_more_important_job_once() {
    for rate in [1_000, 10_000, 100_000, 1_000_000] {
        let text = format!(
            "{TASK}[[interrupt]]\nname = \"eth0\"\nrate = {rate}\ncost = \"1 us\"\nthrottling = \"napi\"\n\
             [[device]]\nname = \"net\"\ninterrupt = \"eth0\"\nrate = {rate}\nspread = \"3 us\"\ncost = \"2 us\"\n\
             service = \"thread\"\npriority = 1\n"
        );
        let records = traced(&text, "1 s");
        let (mut inside, mut count, mut most) = (false, 0, 0);
        for record in &records {
            match (record.kind, record.task) {
                (Kind::Start, 0) => (inside, count) = (true, 0),
                (Kind::Completion, 0) => (inside, most) = (false, most.max(count)),
                (Kind::InterruptEntry, _) => count += u32::from(inside),
                _ => {}
            }
        }
        assert!(most <= 1, "{most} interrupts at {rate} packets a second");
        assert!(records.iter().any(|record| record.kind == Kind::InterruptEntry));
    }
}

#[derive(Deserialize)]
struct Golden {
    backlog: Backlog,
    budgets: Budgets,
    predictability: Predictability,
}

#[derive(Deserialize)]
struct Backlog {
    system: String,
    reader: String,
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    keys: String,
    delivered: String,
}

#[derive(Deserialize)]
struct Budgets {
    system: String,
    second: String,
    kinds: Vec<String>,
    shared: String,
    separate: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Predictability {
    system: String,
    task: String,
    first_runs_its_wcet: String,
    first_runs_its_bcet: String,
}

fn golden() -> Golden {
    let path = format!("{}/../../golden/driver-scenarios.toml", env!("CARGO_MANIFEST_DIR"));
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn backlog_inversion() {
    let golden = golden().backlog;
    for rule in &golden.rule {
        let text = format!("{}{}", golden.system, rule.keys);
        let system = system(&text);
        let mut records: Vec<Record> = Vec::new();
        simulate(&system, &options("100 ms"), &mut records).unwrap();
        let reader = system.find_task(&golden.reader).unwrap().0;
        let woken = records.iter().find(|r| r.kind == Kind::Wake && r.task == reader).unwrap();
        assert_eq!(woken.time.as_ns(), span(&rule.delivered).as_ns(), "{}", rule.keys);
    }
}

#[test]
fn shared_and_separate_budgets() {
    let golden = golden().budgets;
    for kind in &golden.kinds {
        let begins = |server: &str| {
            let more = if server == "second" { golden.second.as_str() } else { "" };
            let text = format!("{}{more}", golden.system);
            let text = text.replace("\"@kind\"", &format!("\"{kind}\"")).replace('@', server);
            let system = system(&text);
            let mut records: Vec<Record> = Vec::new();
            simulate(&system, &options("100 ms"), &mut records).unwrap();
            // Behind the only task come the threads of the devices.
            let disk = records.iter().find(|r| r.kind == Kind::Start && r.task == 2).unwrap();
            Span::from_ns(disk.time.as_ns())
        };
        assert!(begins("first") >= span(&golden.shared), "{kind}");
        assert_eq!(begins("second"), span(&golden.separate[kind]), "{kind}");
    }
}

#[test]
fn lost_predictability() {
    let golden = golden().predictability;
    let system = system(&golden.system);
    let task = system.find_task(&golden.task).unwrap().index();
    let response = |execution| {
        let options = SimOptions { execution, ..options("100 ms") };
        simulate(&system, &options, &mut NullSink).unwrap().tasks[task].response_ns_max
    };
    assert_eq!(response(ExecutionChoice::Wcet), Some(span(&golden.first_runs_its_wcet)));
    assert_eq!(response(ExecutionChoice::Bcet), Some(span(&golden.first_runs_its_bcet)));
}

#[test]
fn the_same_seed_gives_the_same_records() {
    let text = format!(
        "{TASK}{}{}",
        interrupt("throttling = \"napi\""),
        device("interrupt = \"eth0\"\nservice = \"softirq\"\nspread = \"40 us\"\nleast_cost = \"2 us\"")
    );
    let (one, again) = (traced(&text, "50 ms"), traced(&text, "50 ms"));
    assert!(one.len() > 1_000 && one == again);
    let system = system(&text);
    let other = SimOptions { seed: 2, ..options("50 ms") };
    let mut records: Vec<Record> = Vec::new();
    simulate(&system, &other, &mut records).unwrap();
    assert_ne!(one, records);
}
