//! `cargo xtask test`: every test there is, one after the other, and one closing line that counts them.

use crate::environment::{Environment, prepare};
use crate::retry::{Failures, settle};
use crate::step::{self, Outcome};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How long one test program may take. The longest takes some two minutes on two processors with nothing else to do.
const LIMIT_S: u64 = 600;

/// How long the viewer's tests and the Python tests may take, each.
const STEP_LIMIT_S: u64 = 900;

/// A copy of this program that the build of the tests does not touch.
fn copy_of_this_program(root: &Path) -> Option<PathBuf> {
    let copy = root.join("target/xtask-runner");
    fs::copy(std::env::current_exe().ok()?, &copy).ok()?;
    Some(copy)
}

/// A command that runs `program` with a limit.
fn limited(copy: Option<&Path>, program: &Path) -> Command {
    let Some(copy) = copy else { return Command::new(program) };
    let mut command = Command::new(copy);
    command.arg("limited").arg(STEP_LIMIT_S.to_string()).arg(program);
    command
}

/// The setting that has cargo start each test program with a limit.
fn runner(copy: Option<&Path>) -> Option<(String, String)> {
    let copy = copy?;
    // Cargo splits the value at blanks; without the limit the tests still run.
    let path = copy.to_str().filter(|path| !path.contains(char::is_whitespace))?;
    let target = format!("{}_unknown_linux_gnu", std::env::consts::ARCH).to_uppercase();
    Some((format!("CARGO_TARGET_{target}_RUNNER"), format!("{path} limited {LIMIT_S}")))
}

/// Every Rust test; the failed ones once more, alone.
fn rust_tests(root: &Path, copy: Option<&Path>) -> Outcome {
    let runner = runner(copy);
    let cargo = |words: &[String]| {
        let mut command = Command::new("cargo");
        // Colours would stand between the words that are read.
        command.args(words).current_dir(root).env("CARGO_TERM_COLOR", "never");
        command.envs(runner.clone());
        command
    };
    let words = ["test", "--workspace", "--no-fail-fast", "--", "--nocapture"].map(str::to_owned);
    let mut failures = Failures::default();
    let mut outcome = step::run_read("Rust tests", &mut cargo(&words), |line| {
        failures.take(line);
    });
    if outcome.succeeded {
        return outcome;
    }
    let Some(targets) = failures.targets() else { return outcome };
    let again = targets.iter().map(|target| {
        let mut failures = Failures::default();
        let name = format!("once more, alone: {}", target.names().join(", "));
        let outcome = step::run_read(&name, &mut cargo(&target.words()), |line| failures.take(line));
        (target.clone(), outcome, failures)
    });
    let again: Vec<_> = again.collect();
    settle(&mut outcome, &again);
    outcome
}

/// Runs everything; `quick` leaves out the benches, the browser and the Python tests.
fn run_steps(root: &Path, environment: &Environment, quick: bool, missing: &mut Vec<String>) -> Vec<Outcome> {
    let cargo = |words: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(words).current_dir(root);
        command
    };
    let copy = copy_of_this_program(root);
    let copy = copy.as_deref();
    let mut outcomes = vec![
        step::run("formatting", &mut cargo(&["fmt", "--all", "--check"])),
        step::run("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
        step::run("the command (release build)", &mut cargo(&["build", "--release"])),
        rust_tests(root, copy),
    ];
    if quick {
        return outcomes;
    }
    outcomes.push(step::run("packages: installed, used, removed", &mut cargo(&["xtask", "try-package"])));
    outcomes.push(step::run("documents: site, links, search", &mut cargo(&["xtask", "site"])));
    outcomes.push(step::run(
        "benches build",
        &mut cargo(&["check", "--manifest-path", "bench/Cargo.toml", "--benches"]),
    ));
    if environment.node {
        let mut npm = limited(copy, Path::new("npm"));
        outcomes.push(step::run(
            "viewer: types, units, freshness, browser",
            npm.args(["test"]).current_dir(root.join("viewer")),
        ));
    }
    if let Some(python) = &environment.python {
        let mut pytest = limited(copy, python);
        pytest.args(["-m", "pytest", "-q", "-rs", "tests/python"]).current_dir(root);
        // The tests above have built it.
        pytest.env("HOROLOG_BIN", root.join("target/debug/horolog"));
        outcomes.push(step::run("Python: published schemas read our files", &mut pytest));
    }
    outcomes.extend(crate::python::steps(root, missing));
    outcomes.extend(crate::gallery::steps(root, missing));
    outcomes
}

/// How many of the slowest test programs the summary names.
const SLOWEST: usize = 10;

/// Where the time of the tests goes: to run them, and the rest, which is to build them.
fn print_slowest(outcomes: &[Outcome]) {
    let mut programs: Vec<&(String, f64)> = outcomes.iter().flat_map(|outcome| &outcome.programs).collect();
    let whole: f64 = programs.iter().map(|(_, seconds)| seconds).sum();
    programs.sort_by(|a, b| b.1.total_cmp(&a.1));
    println!("{} Rust test programs ran for {whole:.0} s; the slowest:", programs.len());
    for (name, seconds) in programs.iter().take(SLOWEST) {
        println!("{seconds:>8.1} s  {name}");
    }
}

/// The verb.
pub(crate) fn run(root: &Path, quick: bool) -> ExitCode {
    let start = Instant::now();
    let environment = prepare(root);
    let mut missing = Vec::new();
    let outcomes = run_steps(root, &environment, quick, &mut missing);
    let mut skipped: Vec<&str> = environment.missing().iter().chain(&missing).map(String::as_str).collect();
    println!("\n== summary");
    print_slowest(&outcomes);
    for outcome in &outcomes {
        let word = if outcome.succeeded { "ok" } else { "FAILED" };
        let (name, seconds) = (&outcome.name, outcome.took.as_secs());
        println!("{word:>6}  {seconds:>5} s  {name} ({} passed, {} failed)", outcome.passed, outcome.failed);
        skipped.extend(outcome.skipped.iter().map(String::as_str));
    }
    for reason in &skipped {
        println!("SKIPPED: {reason}");
    }
    let flaky: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.flaky).collect();
    for name in &flaky {
        println!("FLAKY: {name} (failed beside other tests, passed alone)");
    }
    // A log is often cut in its middle: what failed is repeated where it ends.
    for outcome in outcomes.iter().filter(|outcome| !outcome.succeeded) {
        println!("\n== FAILED: {}, its last lines", outcome.name);
        outcome.tail.iter().for_each(|line| println!("{line}"));
    }
    let passed: u64 = outcomes.iter().map(|o| o.passed).sum();
    let broken = outcomes.iter().filter(|o| !o.succeeded).count() as u64;
    let failed: u64 = outcomes.iter().map(|o| o.failed).sum::<u64>().max(broken);
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let (skipped, flaky) = (skipped.len(), flaky.len());
    println!("{passed} passed, {failed} failed, {skipped} skipped, {flaky} flaky, in {minutes:.1} minutes");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
