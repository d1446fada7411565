//! Runs the test programs with one fault switched on after the other.

use super::build::Program;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What became of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A test failed.
    Noticed,
    /// A test took far longer than without the fault.
    TooLong,
    /// Every test passed.
    Survived,
}

/// The memory that a faulty program may take: some grow without end.
const MEMORY: &str = "--as=8589934592";

/// The comparison with the reference simulator takes fewer systems of each kind than in a run of the tests alone.
const FEWER: (&str, &str) = ("HOROLOG_REFERENCE_SYSTEMS", "60");

/// Runs every program without a fault, which must pass; the programs with their times, the fastest first within each
/// group of a package.
pub(super) fn baseline(programs: &[Program]) -> Result<Vec<(Program, Duration)>, String> {
    let mut timed = Vec::new();
    for program in programs {
        let begin = Instant::now();
        match judge_one(program, 0, Duration::from_secs(900)) {
            Verdict::Survived => timed.push((program.clone(), begin.elapsed())),
            verdict => return Err(format!("{} without a fault: {verdict:?}", program.path.display())),
        }
    }
    let first = timed.first().map(|(program, _)| program.folder.clone());
    timed.sort_by_key(|(program, took)| (Some(&program.folder) != first.as_ref(), *took));
    Ok(timed)
}

/// Judges the faults, `jobs` at once. `is_real`: the tests run real processes and threads, which other load on the machine
/// may fail, so that a failure counts when it comes a second time. After `minutes` no further fault is begun: those judged by
/// then are the first of the sample, which is in no order. `note` is told each verdict at once.
pub(super) fn judge(
    programs: &[(Program, Duration)],
    faults: &[u32],
    jobs: usize,
    is_real: bool,
    minutes: Option<u64>,
    note: &(dyn Fn(u32, Verdict) + Sync),
) -> BTreeMap<u32, Verdict> {
    let end = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(&number) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if end.is_some_and(|end| Instant::now() >= end) {
                        return;
                    }
                    let verdict = judge_all(programs, number, is_real);
                    note(number, verdict);
                    let mut verdicts = verdicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    verdicts.insert(number, verdict);
                    if verdicts.len() % 20 == 0 {
                        let survived = verdicts.values().filter(|&&one| one == Verdict::Survived).count();
                        println!("  {} of {} judged, {survived} survived", verdicts.len(), faults.len());
                    }
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn judge_all(programs: &[(Program, Duration)], number: u32, is_real: bool) -> Verdict {
    for (program, took) in programs {
        let limit = *took * 6 + Duration::from_secs(if is_real { 20 } else { 10 });
        let mut verdict = judge_one(program, number, limit);
        if is_real && verdict != Verdict::Survived {
            verdict = judge_one(program, number, limit);
        }
        if verdict != Verdict::Survived {
            return verdict;
        }
    }
    Verdict::Survived
}

/// Runs one program. It is over with the first test that fails: the others may wait for what the fault keeps from coming.
fn judge_one(program: &Program, number: u32, limit: Duration) -> Verdict {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let mark = format!("{MARK}={}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let mut command = Command::new("prlimit");
    command.arg(MEMORY).arg(&program.path).current_dir(&program.folder);
    command.env("HOROLOG_MUTANT", number.to_string()).env("RUST_BACKTRACE", "0").env(FEWER.0, FEWER.1);
    command.env(MARK, &mark[MARK.len() + 1..]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let Ok(mut child) = command.spawn() else { return Verdict::TooLong };
    let has_failed = child.stdout.take().map(watch).unwrap_or_default();
    let end = Instant::now() + limit;
    let verdict = loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break Verdict::Survived,
            Ok(Some(_)) => break Verdict::Noticed,
            Ok(None) if has_failed.load(Ordering::Relaxed) => break Verdict::Noticed,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(3)),
            _ => break Verdict::TooLong,
        }
    };
    // Itself, and what it left behind: a guardian with a fault may stay for ever, at the top priority.
    let mut ids = marked(&mark);
    if !matches!(child.try_wait(), Ok(Some(_))) {
        ids.push(format!("-{}", child.id()));
    }
    if !ids.is_empty() {
        let _ = Command::new("kill").args(["-KILL", "--"]).args(&ids).stderr(Stdio::null()).status();
    }
    let _ = child.wait();
    verdict
}

/// The variable by which the processes of one program are found.
const MARK: &str = "HOROLOG_MUTANT_RUN";

/// Becomes true when a test has failed.
fn watch(output: ChildStdout) -> Arc<AtomicBool> {
    let has_failed = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&has_failed);
    std::thread::spawn(move || {
        // Other words than lines of text may come from a program with a fault; the exit status tells the rest.
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if line.starts_with(b"test ") && line.ends_with(b"FAILED") {
                told.store(true, Ordering::Relaxed);
            }
        }
    });
    has_failed
}

/// The processes that have this variable.
fn marked(mark: &str) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|id| {
            let variables = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables.split(|&byte| byte == 0).any(|one| one == mark.as_bytes())
        })
        .collect()
}
