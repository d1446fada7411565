//! `cargo xtask test`: every test there is, one after the other, and one closing line that counts them.

use crate::environment::{Environment, prepare};
use crate::retry::{Failures, settle};
use crate::step::{self, Outcome};
use std::path::Path;
use std::process::{Command, ExitCode};

/// What the Rust tests are built with.
const FEATURES: [&str; 2] = ["--features", "horolog/parquet"];

/// Every Rust test; the failed ones once more, alone.
fn rust_tests(root: &Path) -> Outcome {
    let cargo = |words: &[String]| {
        let mut command = Command::new("cargo");
        // Colours would stand between the words that are read.
        command.args(words).current_dir(root).env("CARGO_TERM_COLOR", "never");
        command
    };
    let mut words = vec!["test", "--workspace"];
    words.extend(FEATURES);
    words.extend(["--no-fail-fast", "--", "--nocapture"]);
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let mut failures = Failures::default();
    let mut outcome = step::run_read("Rust tests, all formats switched on", &mut cargo(&words), |line| {
        failures.take(line);
    });
    if outcome.succeeded {
        return outcome;
    }
    let Some(targets) = failures.targets() else { return outcome };
    let again = targets.iter().map(|target| {
        let mut failures = Failures::default();
        let name = format!("once more, alone: {}", target.names().join(", "));
        let outcome = step::run_read(&name, &mut cargo(&target.words(&FEATURES)), |line| failures.take(line));
        (target.clone(), outcome, failures)
    });
    let again: Vec<_> = again.collect();
    settle(&mut outcome, &again);
    outcome
}

/// Runs everything; `quick` leaves out the benches, the browser and the Python tests.
fn run_steps(root: &Path, environment: &Environment, quick: bool) -> Vec<Outcome> {
    let cargo = |words: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(words).current_dir(root);
        command
    };
    let mut outcomes = vec![
        step::run("formatting", &mut cargo(&["fmt", "--all", "--check"])),
        step::run(
            "lints",
            &mut cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--features",
                "horolog/parquet",
                "--",
                "-D",
                "warnings",
            ]),
        ),
        step::run("the command (release build)", &mut cargo(&["build", "--release"])),
        rust_tests(root),
    ];
    if quick {
        return outcomes;
    }
    outcomes.push(step::run(
        "benches build",
        &mut cargo(&["check", "--manifest-path", "bench/Cargo.toml", "--benches"]),
    ));
    if environment.node {
        let mut npm = Command::new("npm");
        outcomes.push(step::run(
            "viewer: types, units, freshness, browser",
            npm.args(["test"]).current_dir(root.join("viewer")),
        ));
    }
    if let Some(python) = &environment.python {
        let mut pytest = Command::new(python);
        pytest.args(["-m", "pytest", "-q", "-rs", "tests/python"]).current_dir(root);
        // The tests above have built it with all formats.
        pytest.env("HOROLOG_BIN", root.join("target/debug/horolog"));
        outcomes.push(step::run("Python: published schemas read our files", &mut pytest));
    }
    outcomes
}

/// The verb.
pub(crate) fn run(root: &Path, quick: bool) -> ExitCode {
    let environment = prepare(root);
    let outcomes = run_steps(root, &environment, quick);
    let mut skipped: Vec<&str> = environment.missing().iter().map(String::as_str).collect();
    println!("\n== summary");
    for outcome in &outcomes {
        let word = if outcome.succeeded { "ok" } else { "FAILED" };
        println!("{word:>6}  {} ({} passed, {} failed)", outcome.name, outcome.passed, outcome.failed);
        skipped.extend(outcome.skipped.iter().map(String::as_str));
    }
    for reason in &skipped {
        println!("SKIPPED: {reason}");
    }
    let flaky: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.flaky).collect();
    for name in &flaky {
        println!("FLAKY: {name} (failed beside other tests, passed alone)");
    }
    let passed: u64 = outcomes.iter().map(|o| o.passed).sum();
    let broken = outcomes.iter().filter(|o| !o.succeeded).count() as u64;
    let failed: u64 = outcomes.iter().map(|o| o.failed).sum::<u64>().max(broken);
    println!("{passed} passed, {failed} failed, {} skipped, {} flaky", skipped.len(), flaky.len());
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
