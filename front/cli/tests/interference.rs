//! `horolog measure interference`: probe, fit, an entry, and an analysis that uses it.

mod common;

use common::{Done, done, folder, horolog, inside, real_time, signal, start, wait_for};
use std::fs;

/// Few and short windows: what is tested is the way, not the figures.
const SHORT: [&str; 8] =
    ["measure", "interference", "--lengths", "100us..2ms", "--points", "4", "--stretches", "30"];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().copied().chain(more.iter().copied()).collect()
}

const SYSTEM: &str = r#"
[system]
name = "below a load"
policy = "fixed-priority"
[platform]
cpus = [1]
[[task]]
name = "control"
period = "100 ms"
wcet = "1 ms"
priority = 10
"#;

#[test]
fn a_measured_entry_makes_the_analysis_count_the_load() {
    let Some(_alone) = real_time() else { return };
    let (folder, file) = folder(SYSTEM);
    let entry = inside(&folder, "entry.toml");
    let words = ["--cpu", "1", "--name", "stress", "--statistic", "p95", "--out", &entry, "--format", "json"];
    let load = ["--settle", "50ms", "--", "sh", "-c", "while :; do :; done"];
    let measure = || done(short(&[&words[..], &load[..]].concat()));
    // A virtual machine's host may fill whole windows; then there is no bound, and the command says so.
    let mut measured = measure();
    for _ in 0..5 {
        if measured.no_panic().status == Some(1) {
            measured = measure();
        }
    }
    assert_eq!(measured.no_panic().status, Some(0), "{measured:?}");
    let json = measured.json();
    assert_eq!(json["schema"], "horolog.interference/1");
    assert_eq!(json["phases"].as_array().map(Vec::len), Some(2));
    for phase in json["phases"].as_array().expect("phases") {
        assert_eq!(phase["lengths"].as_array().map(Vec::len), Some(4));
        let stretches = phase["stretches"].as_u64().zip(phase["held_back"].as_u64());
        assert_eq!(stretches.map(|(counted, left_out)| counted + left_out), Some(30));
    }
    // The idle machine's timer interrupts alone are a load.
    let fits = json["fits"].as_array().expect("fits");
    assert!(fits.iter().any(|fit| fit["statistic"] == "p95" && fit["baseline"] == "included"), "{json}");

    let alone = done(["analyze", &file, "--format", "json"]).json();
    let text = fs::read_to_string(&file).expect("readable") + &fs::read_to_string(&entry).expect("written");
    fs::write(&file, text).expect("writable");
    let below = done(["analyze", &file, "--format", "json"]).json();
    let response = |json: &serde_json::Value| json["tasks"][0]["response_ns"].as_u64().expect("a bound");
    assert_eq!(response(&alone), 1_000_000);
    assert!(response(&below) > 1_000_000, "{below}");
}

#[test]
fn a_killed_measurement_goes_on_where_it_was() {
    let Some(_alone) = real_time() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let trials = inside(&folder, "trials.jsonl");
    let words = ["--cpu", "1", "--only", "idle", "--trials", &trials];
    let long = [&["measure", "interference", "--lengths", "100us..2ms", "--stretches", "100000"], &words[..]];
    let lines = || fs::read_to_string(&trials).unwrap_or_default().lines().count();
    let running = start(&mut horolog(long.concat().into_iter().chain(["--points", "4"])));
    wait_for("four stretches", || lines() > 4);
    signal(running.id(), "KILL");
    let _ = common::end(running);
    let kept = lines();
    let again = done(short(&words));
    assert!(again.no_panic().status.is_some_and(|status| status < 2), "{again:?}");
    assert!(lines() >= kept.saturating_sub(1), "{kept} lines were kept");
    // As many as were asked are there already: nothing is measured again.
    let text = fs::read(&trials).expect("readable");
    let json = done(short(&[&words[..], &["--format", "json"]].concat())).json();
    assert_eq!(fs::read(&trials).expect("readable"), text);
    assert!(json["phases"][0]["stretches"].as_u64() >= Some(4), "{json}");

    let other = [&words[..], &["--priority", "40"]].concat();
    let refused = done(short(&other));
    assert_eq!(refused.no_panic().status, Some(2));
    assert!(refused.err.contains("another priority (50, asked 40)"), "{refused:?}");
    assert_eq!(fs::read(&trials).expect("readable"), text);
}

#[test]
fn a_load_that_ends_and_bad_words_are_refused() {
    let refuse = |words: &[&str], part: &str| {
        let refused = done(short(words));
        assert_eq!(refused.no_panic().status, Some(2), "{refused:?}");
        assert!(refused.err.contains(part), "{refused:?}");
    };
    refuse(&["--priority", "99"], "give 1 to 98");
    refuse(&["--threshold", "90us"], "half the shortest window");
    let refused = done(["measure", "interference", "--lengths", "5ms"]);
    assert!(refused.no_panic().status == Some(2) && refused.err.contains("two durations"), "{refused:?}");
    let Some(_alone) = real_time() else { return };
    refuse(&["--cpu", "1", "--only", "load", "--", "true"], "it ended before the measurement did");
    refuse(&["--cpu", "1", "--only", "load", "--", "/no/such/program"], "starting `/no/such/program`");
}

#[test]
fn a_load_is_ended_with_all_that_it_has_started() {
    let Some(_alone) = real_time() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let child = inside(&folder, "child");
    let script = format!("sleep 1000 & echo $! > '{child}'; wait");
    let words = ["--cpu", "1", "--only", "load", "--settle", "50ms", "--", "sh", "-c", &script];
    let measured: Done = done(short(&words));
    assert!(measured.no_panic().status.is_some_and(|status| status < 2), "{measured:?}");
    let process = fs::read_to_string(child).expect("it was started").trim().to_owned();
    wait_for("the end of what the load has started", || !common::is_alive(&process));
}
