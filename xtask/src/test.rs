//! `cargo xtask test`: every test there is, one after the other, and one closing line that counts them.

use crate::environment::{Environment, prepare};
use crate::step::{self, Outcome};
use std::path::Path;
use std::process::{Command, ExitCode};

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
        step::run(
            "Rust tests, all formats switched on",
            &mut cargo(&[
                "test",
                "--workspace",
                "--features",
                "horolog/parquet",
                "--no-fail-fast",
                "--",
                "--nocapture",
            ]),
        ),
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
    let passed: u64 = outcomes.iter().map(|o| o.passed).sum();
    let broken = outcomes.iter().filter(|o| !o.succeeded).count() as u64;
    let failed: u64 = outcomes.iter().map(|o| o.failed).sum::<u64>().max(broken);
    println!("{passed} passed, {failed} failed, {} skipped", skipped.len());
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
