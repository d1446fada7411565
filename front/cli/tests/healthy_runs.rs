//! Healthy runs on real threads: no job is accused, and none diverges from the scheduling machine. Seven of each system, and by
//! hand two hundred, which take minutes:
//!
//! ```text
//! HOROLOG_COMMAND=target/release/horolog cargo test -p horolog --test healthy_runs -- --ignored --nocapture
//! ```
//!
//! `HOROLOG_COMMAND` is the command to try (the one that was built with the tests), `HOROLOG_RUNS` how many runs of each system.

use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::fixed_priority::{Class, set_class};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

mod common;

use common::real_time;

/// Three systems on this processor: fixed priorities that the kernel keeps, deadlines and a server that the agent does.
fn systems(cpu: u32) -> [(&'static str, String); 3] {
    let platform = format!(
        "[platform]\ncpus = [{cpu}]\nrelease_latency = \"100 us\"\ncontext_switch = \"3 us\"\ntimer_interrupt = \"5 us\"\n"
    );
    let task = |name: &str, period: &str, wcet: &str, spin: &str, more: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\n{period}\nwcet = \"{wcet}\"\nbody = {{ spin = \"{spin}\" }}\n{more}\n"
        )
    };
    let file = |name: &str, policy: &str, rest: &str| {
        format!("[system]\nname = \"{name}\"\n{policy}{platform}{rest}")
    };
    let three = |fast: &str, middle: &str, slow: &str| {
        task("fast", "period = \"2 ms\"", "500 us", "300 us", fast)
            + &task("middle", "period = \"5 ms\"", "1500 us", "1 ms", middle)
            + &task("slow", "period = \"20 ms\"", "5 ms", "4 ms", slow)
    };
    let priorities = three("priority = 30", "priority = 20", "priority = 10");
    let served = task("fast", "period = \"2 ms\"", "500 us", "300 us", "priority = 30")
        + &task("slow", "period = \"20 ms\"", "5 ms", "4 ms", "priority = 10")
        + &task("soft", "separation = \"7 ms\"", "2 ms", "1 ms", "")
        + "[[server]]\nname = \"events\"\nkind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 20\n\
           tasks = [\"soft\"]\n";
    [
        ("fixed-priority", file("fixed-priority", "", &priorities)),
        ("edf", file("edf", "policy = \"edf\"\n", &three("", "", ""))),
        ("server", file("server", "", &served)),
    ]
}

fn horolog(words: &[&str]) -> std::process::Output {
    let command =
        std::env::var("HOROLOG_COMMAND").unwrap_or_else(|_| env!("CARGO_BIN_EXE_horolog").to_owned());
    Command::new(command).args(words).output().expect("horolog starts")
}

/// What `verify` says of a run; `None` where the machine does not allow it.
fn run(folder: &Path, file: &str, seed: u64) -> Option<Value> {
    let trace = folder.join("run.hrt");
    let trace = trace.to_str().expect("a readable path");
    let ran =
        horolog(&["run", file, "--for", "300 ms", "--trace", trace, "--seed", &seed.to_string(), "--quiet"]);
    if ran.status.code() == Some(3) {
        println!("SKIPPED: {}", String::from_utf8_lossy(&ran.stderr));
        return None;
    }
    let found = horolog(&["verify", file, trace, "--format", "json"]);
    let found: Value = serde_json::from_slice(&found.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&found.stderr)));
    for finding in found["findings"].as_array().into_iter().flatten() {
        if finding["check"] == "divergence" || finding["class"] != "machine-disturbed" {
            println!("{}", finding["message"]);
        }
    }
    Some(found)
}

/// Median, 99 of 100, longest.
fn spread(mut spans: Vec<u64>) -> String {
    spans.sort_unstable();
    let at = |share: usize| spans.get((spans.len() * share / 100).min(spans.len().saturating_sub(1)));
    let text = |share| {
        at(share).map_or_else(|| "none".to_owned(), |&ns| horolog_time::Span::from_ns(ns).to_string())
    };
    format!("p50 {}, p99 {}, at most {}", text(50), text(99), text(100))
}

#[test]
fn healthy_runs_accuse_nobody() {
    healthy(7);
}

#[test]
#[ignore = "two hundred runs of each system: minutes"]
fn two_hundred_healthy_runs_accuse_nobody() {
    healthy(std::env::var("HOROLOG_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(200));
}

/// Runs each system so often. A disturbed machine may make jobs late; that is nobody's fault.
fn healthy(runs: u64) {
    let Some(_alone) = real_time() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let cpu = std::thread::available_parallelism().map_or(0, |count| count.get() as u32 - 1);
    let (mut divergences, mut accusations) = (0, 0);
    for (name, text) in systems(cpu) {
        let file = folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, text).expect("it can be written");
        let file = file.to_str().expect("a readable path");
        let mut found = Vec::new();
        for seed in 1..=runs {
            let Some(verification) = run(folder.path(), file, seed) else { return };
            let processor = verification["processors"][0].clone();
            assert_eq!(processor["compared"], true, "{processor}");
            found.push(processor);
            for class in ["model_violated", "bound_violated", "schedule_differs"] {
                accusations += verification[class].as_u64().expect("a count");
            }
        }
        let number = |processor: &Value, key: &str| processor[key].as_u64().unwrap_or(0);
        let sum = |key: &str| found.iter().map(|processor| number(processor, key)).sum::<u64>();
        let all = |key: &str| spread(found.iter().map(|processor| number(processor, key)).collect());
        println!(
            "{name}: {} runs, {} divergences, {} disturbed, {} short; longest short of a run: {}; not judged of a run: {}",
            found.len(),
            sum("divergences"),
            sum("disturbed"),
            sum("short"),
            all("short_ns_max"),
            all("not_judged_ns")
        );
        divergences += sum("divergences");
    }
    if (divergences, accusations) == (0, 0) {
        return;
    }
    let longest = longest_stop(cpu);
    if longest >= MOST_STOPPED {
        println!(
            "SKIPPED: CPU {cpu} stood still for {longest:?} while a real-time thread read the clock: its host stops it"
        );
        return;
    }
    panic!(
        "{divergences} divergences and {accusations} accusations; the processor stood still for {longest:?} at most"
    );
}

/// No interrupt takes so long; a host that stops the processor does.
const MOST_STOPPED: Duration = Duration::from_millis(1);

/// How long a real-time thread that does nothing but read the clock was kept from it at most, in 200 turns of 10 ms.
fn longest_stop(cpu: u32) -> Duration {
    let watch = move || {
        let is_set = set_affinity(0, &CpuSet::new([cpu])).and_then(|()| set_class(0, Class::Fifo(98)));
        is_set.expect("it was allowed to the runs");
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            let begin = Instant::now();
            let mut last = begin;
            while begin.elapsed() < Duration::from_millis(10) {
                let now = Instant::now();
                longest = longest.max(now - last);
                last = now;
            }
            // Real-time threads may not take a processor whole.
            std::thread::sleep(Duration::from_millis(5));
        }
        longest
    };
    std::thread::spawn(watch).join().expect("it ends")
}
