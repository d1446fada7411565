//! Large systems have an answer.

mod common;

use common::{done, folder};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A system of many tasks: periods from 1 ms to 1 s, evenly by their logarithm, a utilisation of 0.8 in all. Late: with jitter of
/// five periods and deadlines of eight.
fn many(tasks: u64, policy: &str, is_late: bool) -> String {
    let mut text = format!("[system]\nname = \"many\"\npolicy = \"{policy}\"\n");
    if policy == "fixed-priority" {
        text += "priorities = \"deadline-monotonic\"\n";
    }
    let mut state = tasks;
    for task in 0..tasks {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (state >> 40) as f64 / (1_u64 << 24) as f64;
        let period = (1e6 * 1_000_f64.powf(part)) as u64 / 1_000 * 1_000;
        let wcet = (period as f64 * 0.8 / tasks as f64) as u64;
        let _ = writeln!(
            text,
            "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{} ns\"",
            wcet.max(1)
        );
        if is_late {
            let _ = writeln!(text, "jitter = \"{} ns\"\ndeadline = \"{} ns\"", 5 * period, 8 * period);
        }
    }
    text
}

/// A test of the answer; the time is bounded so generously that only another order of growth exceeds it.
#[test]
fn a_thousand_tasks_have_their_answer_under_both_policies() {
    for policy in ["fixed-priority", "edf"] {
        let (_place, file) = folder(&many(1_000, policy, false));
        let begin = Instant::now();
        let found = done(["analyze", &file, "--format", "json"]);
        assert!(begin.elapsed() < Duration::from_secs(60), "{policy}: {:?}", begin.elapsed());
        assert_eq!(found.status, Some(0), "{policy}: {}", found.err);
        let found = found.json();
        assert_eq!(found["schedulable"], "yes", "{policy}");
        let factor = found["processors"][0]["sensitivity"]["scaling_ppb"].as_u64().expect("a factor");
        assert!((1_000_000_000..1_300_000_000).contains(&factor), "{policy}: {factor}");
        let tasks = found["tasks"].as_array().expect("tasks");
        assert!(
            tasks.iter().all(|task| task["exact"] == true && task["response_ns"].is_number()),
            "{policy}"
        );
    }
}

/// Ten times as many, of which some miss: where each task is looked at for each pair of others, this takes minutes.
#[test]
fn ten_thousand_tasks_with_misses_have_their_answer() {
    let (_place, file) = folder(&many(10_000, "fixed-priority", true));
    let begin = Instant::now();
    let found = done(["analyze", &file, "--format", "json"]);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!(found.status, Some(1), "{}", found.err);
    let found = found.json();
    let tasks = found["tasks"].as_array().expect("tasks");
    assert!(tasks.iter().all(|task| task["exact"] == true && task["response_ns"].is_number()));
}
