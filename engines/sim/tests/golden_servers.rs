//! Golden facts of servers and slack policies that a simulation shows exactly.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{NullSink, Outcome};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

fn golden<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name);
    let text = std::fs::read_to_string(&path).expect("the golden file is there");
    toml::from_str(&text).expect("the golden file is well formed")
}

fn system(text: &str) -> System {
    match horolog_model::file::read(text, "golden", &[]) {
        Ok((system, _)) => system,
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
