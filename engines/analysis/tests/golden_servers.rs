//! The published and recomputed facts of servers and slack.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::server::promotion::promotions;
use horolog_analysis::server::slack::{SlackState, least_slack, slack};
use horolog_analysis::server::{HardTask, Retention, largest_capacity, victims};
use horolog_time::Span;
use num_rational::Ratio;
use toml::{Table, Value};

fn golden(name: &str) -> Table {
    let path = format!("{}/../../golden/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn integer(value: &Value) -> u64 {
    u64::try_from(value.as_integer().unwrap()).unwrap()
}

fn integers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(integer).collect()
}

fn fraction(value: &Value) -> Ratio<u128> {
    let parts = integers(value);
    Ratio::new(u128::from(parts[0]), u128::from(parts[1]))
}

fn tasks(value: &Value) -> Vec<HardTask> {
    let task = |row: &Value| {
        let (wcet, period) = (Span::from_ns(integer(&row[0])), Span::from_ns(integer(&row[1])));
        HardTask { wcet, period, deadline: period }
    };
    value.as_array().unwrap().iter().map(task).collect()
}

#[test]
fn promotion_times_and_slack() {
    let facts = &golden("aperiodic-sizes")["promotion"];
    let tasks = tasks(&facts["tasks"]);
    let found = promotions(&tasks, &mut 100_000).unwrap();
    let responses: Vec<u64> = found.iter().map(|p| p.response.as_ns()).collect();
    assert_eq!(responses, integers(&facts["response"]));
    let times: Vec<u64> = found.iter().map(|p| p.promotion.unwrap().as_ns()).collect();
    assert_eq!(times, integers(&facts["promotion"]));
    let start: Vec<SlackState> = tasks.iter().map(|&t| SlackState::released(t)).collect();
    let slacks: Vec<u64> = (0..start.len()).map(|i| slack(&start, i).unwrap()).collect();
    assert_eq!(slacks, integers(&facts["slack-at-release"]));
    assert_eq!(least_slack(&start), slacks.into_iter().min());
}

#[test]
fn largest_capacities() {
    for case in golden("aperiodic-sizes")["capacity"].as_array().unwrap() {
        let (set, period) = (victims(&tasks(&case["tasks"])), integer(&case["period"]));
        let largest = |kind| largest_capacity(&set, kind, period, &mut 1_000_000).unwrap().unwrap().exact;
        let (deferrable, sporadic) = (largest(Retention::Deferrable), largest(Retention::AsPeriodic));
        assert_eq!(deferrable, fraction(&case["deferrable"]));
        assert_eq!(sporadic, fraction(&case["sporadic"]));
        assert!(deferrable <= sporadic);
    }
}
