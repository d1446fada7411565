//! What switching costs others where a budget comes back in parts, or moves its node between two places: systems that exceeded the bounds of
//! before, each with the longest response that the simulation shows.

use super::ns;
use horolog_analysis::{Options, Verdict, analyze};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_trace::NullSink;

fn check(name: &str, task: &str, shown: u64) {
    let path = format!("{}/tests/tree_bounds/switching/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (system, _) = horolog_model::file::read(&text, &path, &[]).unwrap();
    let analysis = analyze(&system, &Options::default()).unwrap();
    let options =
        SimOptions { horizon: Horizon::Time(ns(50_000)), max_backlog: 10_000, ..SimOptions::default() };
    let outcome = simulate(&horolog_testkit::resolved(&system), &options, &mut NullSink).unwrap();
    for (verdict, run) in analysis.tasks.iter().zip(&outcome.tasks) {
        let Some(largest) = run.response_ns_max else { continue };
        if verdict.name == task {
            assert_eq!(largest, ns(shown), "{name}: what {task} shows");
        }
        if verdict.verdict == Verdict::Meets {
            assert!(run.missed == 0, "{name}: {} misses", verdict.name);
        }
        for test in &verdict.tests {
            let Some(bound) = test.response else { continue };
            assert!(largest <= bound, "{name}: {} ({}) {largest} above {bound}", verdict.name, test.test);
        }
    }
}

#[test]
fn a_sporadic_budget_comes_back_in_many_parts() {
    check("sporadic-reserve", "low", 423);
    check("sporadic-server", "low", 423);
}

#[test]
fn a_budget_that_lifts_its_node_preempts_what_is_between_its_places() {
    check("soft-above", "low", 338);
    check("firm-in-plain", "low", 338);
    check("server-above", "low", 338);
}

#[test]
fn a_deadline_that_is_put_off_preempts() {
    check("bandwidths", "low", 403);
    check("bandwidths-of-the-root", "soft", 383);
    check("bandwidths-in-a-budget", "low", 389);
}

#[test]
fn what_is_left_of_a_bandwidth_is_a_stretch_of_its_own() {
    check("kept-piece", "h", 88);
    check("kept-piece-in-a-tree", "h", 70);
}

#[test]
fn a_budget_does_not_limit_jobs_that_take_no_time() {
    check("empty-jobs", "h", 250);
    check("empty-jobs-edf", "h", 278);
    check("empty-jobs-in-a-tree", "h", 250);
}

#[test]
fn events_of_a_device_below_a_server_may_take_less_than_their_cost() {
    check("refused-events", "h", 250);
    check("short-events", "h", 170);
}
