//! Golden facts of servers and slack policies that a simulation shows exactly.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, NullSink, Outcome, Record};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

fn golden<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name);
    let text = std::fs::read_to_string(&path).expect("the golden file is there");
    toml::from_str(&text).expect("the golden file is well formed")
}

fn system(text: &str) -> System {
    match horolog_model::file::read(text, "golden", &[]) {
        Ok((system, _)) => horolog_testkit::resolved(&system),
        Err(errors) => panic!("{errors}"),
    }
}

fn span(text: &str) -> Span {
    text.parse().expect("a duration")
}

fn run(system: &System, until: Span) -> Outcome {
    let options = SimOptions { horizon: Horizon::Time(until), ..SimOptions::default() };
    simulate(system, &options, &mut NullSink).expect("it simulates")
}

#[derive(Deserialize)]
struct Responses {
    system: String,
    until: String,
    policy: Vec<Policy>,
}

#[derive(Deserialize)]
struct Policy {
    name: String,
    server: String,
    responses: Vec<String>,
    ratio: u64,
}

#[test]
fn soft_responses_under_every_policy() {
    let golden: Responses = golden("aperiodic-responses.toml");
    let mut background = None;
    for policy in &golden.policy {
        let system = system(&format!("{}{}", golden.system, policy.server));
        let outcome = run(&system, span(&golden.until));
        let (hard, soft) = outcome.tasks.split_at(3);
        let found: Vec<Span> =
            soft.iter().map(|task| task.response_ns_max.expect("it has finished")).collect();
        let expected: Vec<Span> = policy.responses.iter().map(|response| span(response)).collect();
        assert_eq!(found, expected, "{}", policy.name);
        assert!(hard.iter().all(|task| task.missed == 0 && task.unfinished == 0), "{}", policy.name);
        let sum: u64 = found.iter().map(|response| response.as_ns()).sum();
        let background = *background.get_or_insert(sum);
        assert_eq!((sum * 200 / background).div_ceil(2), policy.ratio, "{}", policy.name);
    }
}

#[derive(Deserialize)]
struct Defect {
    system: String,
    until: String,
    rules: Vec<Rules>,
}

#[derive(Deserialize)]
struct Rules {
    name: String,
    response: String,
    missed: u64,
}

#[test]
fn posix_replenishes_too_early_and_the_corrected_rules_do_not() {
    let golden: Defect = golden("sporadic-server-defect.toml");
    for rules in &golden.rules {
        let system = system(&format!("{}rules = \"{}\"\n", golden.system, rules.name));
        let outcome = run(&system, span(&golden.until));
        let lo = &outcome.tasks[1];
        assert_eq!(lo.response_ns_max, Some(span(&rules.response)), "{}", rules.name);
        assert_eq!(lo.missed, rules.missed, "{}", rules.name);
    }
}

#[derive(Deserialize)]
struct Drivers {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    system: String,
    ends: BTreeMap<String, String>,
}

#[test]
fn drivers_below_servers() {
    let golden: Drivers = golden("driver-servers.toml");
    for case in &golden.case {
        let system = system(&case.system);
        let mut records: Vec<Record> = Vec::new();
        let options = SimOptions { horizon: Horizon::Time(span("60 ms")), ..SimOptions::default() };
        simulate(&system, &options, &mut records).expect("it simulates");
        for (task, end) in &case.ends {
            let id = system.find_task(task).expect("there is such a task").0;
            let found = records.iter().find(|r| r.kind == Kind::Completion && r.task == id && r.job == 0);
            let found = found.map(|record| Span::from_ns(record.time.as_ns()));
            assert_eq!(found, Some(span(end)), "{}: {task}", case.name);
        }
    }
}

/// Fact 9 of the load bounds: a sporadic server (1, 10) at the top under a flood takes 1 in every 10 and never more than
/// its refined bound; what it does is told in records.
#[test]
fn a_sporadic_server_under_a_flood() {
    let arrivals: Vec<String> = (0..400).map(|i| format!("\"{} us\"", i * 170)).collect();
    let text = format!(
        "[system]\nname = \"flood\"\n[[task]]\nname = \"packet\"\narrivals = [{}]\nwcet = \"300 us\"\n[[server]]\nname = \
         \"ss\"\nkind = \"sporadic\"\ntasks = [\"packet\"]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = \
         1\nlow_priority = \"none\"\n",
        arrivals.join(", ")
    );
    let system = system(&text);
    let mut records: Vec<Record> = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(span("100 ms")), ..SimOptions::default() };
    let outcome = simulate(&system, &options, &mut records).expect("it simulates");
    let server = &outcome.servers[0];
    assert_eq!((server.consumed_ns, server.exhaustions, server.replenishments), (Some(span("10 ms")), 10, 9));
    let mut since = None;
    let mut stretches = Vec::new();
    for record in &records {
        match record.kind {
            Kind::Start | Kind::Resume => since = Some(record.time.as_ns()),
            Kind::Preempt | Kind::Completion => {
                stretches.extend(since.take().map(|since| (since, record.time.as_ns())))
            }
            _ => {}
        }
    }
    let (budget, period) = (1_000_000, 10_000_000);
    for &(from, _) in &stretches {
        for window in (0..50_000_000_u64).step_by(330_000) {
            let within = |&(start, end): &(u64, u64)| end.min(from + window).saturating_sub(start.max(from));
            let taken: u64 = stretches.iter().map(within).sum();
            assert!(taken <= window / period * budget + budget.min(window % period), "{from} {window}");
        }
    }
    let count = |kind| records.iter().filter(|record| record.kind == kind).count() as u64;
    assert_eq!(count(Kind::BudgetExhausted), server.exhaustions);
    assert_eq!(count(Kind::BudgetReplenished), server.replenishments);
    let first = records.iter().find(|record| record.kind == Kind::BudgetExhausted).expect("it runs out");
    assert_eq!((first.time.as_ns(), first.value, first.extra), (1_000_000, 0, 1_000_000));
}

#[test]
fn promotions_and_slack_are_recorded() {
    let golden: Responses = golden("aperiodic-responses.toml");
    let records = |kind: &str, first: &str| {
        let tasks = golden.system.replace("wcet = \"5 ms\"", first);
        let system = system(&format!("{tasks}kind = \"{kind}\"\n"));
        let mut records: Vec<Record> = Vec::new();
        let options = SimOptions { horizon: Horizon::Time(span("40 ms")), ..SimOptions::default() };
        let outcome = simulate(&system, &options, &mut records).expect("it simulates");
        assert_eq!(outcome.events, records.len() as u64);
        records
    };
    // Without self gain the third task is promoted at 24 = 40 - R.
    let promotions: Vec<(u64, u32, u64)> = records("dual-priority", "wcet = \"5 ms\"")
        .iter()
        .filter(|record| record.kind == Kind::Promotion)
        .map(|record| (record.time.as_ns() / 1_000_000, record.task, record.job))
        .collect();
    assert!(promotions.contains(&(24, 2, 0)), "{promotions:?}");
    // A job of 25 at 3 finds a slack of 12: it goes on below the hard tasks from 15, and above again when one of them has
    // completed and left some.
    let slack: Vec<(u64, u64)> = records("slack-stealing", "wcet = \"25 ms\"")
        .iter()
        .filter(|record| record.kind == Kind::SlackChange)
        .map(|record| (record.time.as_ns() / 1_000_000, record.extra))
        .collect();
    assert_eq!(slack.first(), Some(&(15, 0)), "{slack:?}");
    assert!(slack.windows(2).all(|pair| pair[0].1 != pair[1].1) && slack.len() > 1, "{slack:?}");
}

#[derive(Deserialize)]
struct ConstantBandwidth {
    case: Vec<Traced>,
}

#[derive(Deserialize)]
struct Traced {
    name: String,
    system: String,
    until: String,
    ends: BTreeMap<String, Vec<String>>,
    exhausted: Vec<String>,
}

#[test]
fn a_constant_bandwidth_server_postpones_its_deadline() {
    let golden: ConstantBandwidth = golden("constant-bandwidth.toml");
    for case in &golden.case {
        let system = system(&case.system);
        let mut records: Vec<Record> = Vec::new();
        let options = SimOptions { horizon: Horizon::Time(span(&case.until)), ..SimOptions::default() };
        let outcome = simulate(&system, &options, &mut records).expect("it simulates");
        let at = |kind: Kind, task: Option<u32>| -> Vec<Span> {
            let records = records.iter().filter(|r| r.kind == kind && task.is_none_or(|task| r.task == task));
            records.map(|record| Span::from_ns(record.time.as_ns())).collect()
        };
        for (task, ends) in &case.ends {
            let id = system.find_task(task).expect("there is such a task").0;
            let expected: Vec<Span> = ends.iter().map(|end| span(end)).collect();
            assert_eq!(at(Kind::Completion, Some(id)), expected, "{}: {task}", case.name);
        }
        let expected: Vec<Span> = case.exhausted.iter().map(|at| span(at)).collect();
        assert_eq!(at(Kind::BudgetExhausted, None), expected, "{}", case.name);
        assert!(outcome.tasks.iter().all(|task| task.missed == 0), "{}", case.name);
    }
}

/// Without its server the job that overruns takes the hard task's deadline away.
#[test]
fn without_a_server_nothing_isolates() {
    let golden: ConstantBandwidth = golden("constant-bandwidth.toml");
    let case = golden.case.iter().find(|case| case.name == "isolation").expect("the case is there");
    let (tasks, _) = case.system.split_once("[[server]]").expect("it has a server");
    let system = system(
        &format!("{tasks}deadline = \"20 ms\"\n").replace("arrivals = [\"0 ms\"]", "separation = \"40 ms\""),
    );
    let outcome = run(&system, span(&case.until));
    // [0, 5] hard, [5, 25] the job of 20 with the deadline 20, which the second hard job shares and does not displace.
    assert_eq!(outcome.tasks[0].response_ns_max, Some(span("20 ms")), "{outcome:?}");
    assert!(outcome.tasks[0].missed > 0, "{outcome:?}");
}
