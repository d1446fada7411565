//! Runs the test programs with one fault switched on after the other.

use super::build::Program;
use super::schema::{LOOK, MOST_LOOKED_AT};
use crate::left_behind;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
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

/// Comparisons of many systems take fewer than in a run of the tests alone: with the reference simulator, of each kind, and of
/// bounds with simulated responses.
const FEWER: [(&str, &str); 2] = [("HOROLOG_REFERENCE_SYSTEMS", "60"), ("HOROLOG_BOUNDS_SYSTEMS", "150")];

/// One test of a program, or all of them where it cannot be taken apart.
#[derive(Clone, Debug)]
struct Test {
    /// `None`: all.
    name: Option<String>,
    took: Duration,
    /// The faults that it comes by; `None`: any.
    reached: Option<BTreeSet<u32>>,
}

impl Test {
    /// A test that does not come by a fault runs as it does without.
    fn can_notice(&self, number: u32) -> bool {
        number >= MOST_LOOKED_AT || self.reached.as_ref().is_none_or(|reached| reached.contains(&number))
    }
}

/// What is run at once.
#[derive(Clone, Debug)]
pub(super) struct Group {
    program: Program,
    tests: Vec<Test>,
}

/// Tests shorter than this are run together with the others of their program.
const SHORT: Duration = Duration::from_millis(60);

impl Group {
    /// How long its tests take one after the other.
    pub(super) fn took(&self) -> Duration {
        self.tests.iter().map(|test| test.took).sum()
    }

    pub(super) fn name(&self) -> String {
        let program = self.program.path.file_name().unwrap_or_default().to_string_lossy();
        match self.tests.as_slice() {
            [Test { name: Some(name), .. }] => format!("{program} {name}"),
            tests => format!("{program} ({} tests)", tests.len()),
        }
    }
}

/// Runs every test without a fault, which must pass; the fastest first. Tests of real processes and threads stay together:
/// what they come by is not the same each time.
pub(super) fn baseline(programs: &[Program], is_real: bool) -> Result<Vec<Group>, String> {
    let mut groups = Vec::new();
    for program in programs {
        let names = if is_real { Vec::new() } else { tests_of(program) };
        let mut short = Vec::new();
        for name in names {
            let test = alone(program, Some(name))?;
            if test.took < SHORT {
                short.push(test);
            } else {
                groups.push(Group { program: program.clone(), tests: vec![test] });
            }
        }
        if is_real {
            short.push(alone(program, None)?);
        }
        if !short.is_empty() {
            groups.push(Group { program: program.clone(), tests: short });
        }
    }
    groups.sort_by_key(Group::took);
    Ok(groups)
}

/// The names of a program's tests.
fn tests_of(program: &Program) -> Vec<String> {
    let mut command = Command::new(&program.path);
    let listed = command.args(["--list", "--format", "terse"]).current_dir(&program.folder).output();
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Runs one test, or all, without a fault.
fn alone(program: &Program, name: Option<String>) -> Result<Test, String> {
    let file = std::env::temp_dir().join(format!("horolog-reached-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let begin = Instant::now();
    let look = name.is_some().then_some(file.as_path());
    let names: Vec<&str> = name.iter().map(String::as_str).collect();
    let verdict = judge_one(program, &names, LOOK, look, Duration::from_secs(900));
    if verdict != Verdict::Survived {
        return Err(format!("{} {names:?} without a fault: {verdict:?}", program.path.display()));
    }
    let took = begin.elapsed();
    let numbers = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let reached = look.map(|_| numbers.lines().filter_map(|line| line.parse().ok()).collect());
    Ok(Test { name, took, reached })
}

/// Judges the faults, `jobs` at once. `is_real`: the tests run real processes and threads, which other load on the machine
/// may fail, so that a failure counts when it comes a second time. After `minutes` no further fault is begun: those judged by
/// then are the first of the sample, which is in no order. `note` is told each verdict at once.
pub(super) fn judge(
    groups: &[Group],
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
                    let verdict = judge_all(groups, number, is_real);
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

fn judge_all(groups: &[Group], number: u32, is_real: bool) -> Verdict {
    for Group { program, tests } in groups {
        let tests: Vec<&Test> = tests.iter().filter(|test| test.can_notice(number)).collect();
        if tests.is_empty() {
            continue;
        }
        let took: Duration = tests.iter().map(|test| test.took).sum();
        let names: Vec<&str> = tests.iter().filter_map(|test| test.name.as_deref()).collect();
        let limit = took * 6 + Duration::from_secs(if is_real { 20 } else { 6 });
        let mut verdict = judge_one(program, &names, number, None, limit);
        if is_real && verdict != Verdict::Survived {
            verdict = judge_one(program, &names, number, None, limit);
        }
        if verdict != Verdict::Survived {
            return verdict;
        }
    }
    Verdict::Survived
}

/// Runs these tests of a program; all of them where none is named. `look`: where to note the faults that are come by. It is over with the first test that fails: the others may wait for what the fault keeps from coming.
fn judge_one(
    program: &Program,
    names: &[&str],
    number: u32,
    look: Option<&Path>,
    limit: Duration,
) -> Verdict {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let mark = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(format!("{FOLDER}{mark}"));
    std::fs::create_dir(&folder).unwrap_or_else(|error| stop(&format!("{}: {error}", folder.display())));
    let mut command = Command::new("prlimit");
    command.arg(MEMORY).arg(&program.path).current_dir(&program.folder);
    command.env("HOROLOG_MUTANT", number.to_string()).env("RUST_BACKTRACE", "0").envs(FEWER);
    command.env(MARK, &mark).env("TMPDIR", &folder);
    if !names.is_empty() {
        command.arg("--exact").args(names);
    }
    command.env_remove("HOROLOG_MUTANTS_REACHED");
    if let Some(look) = look {
        command.env("HOROLOG_MUTANTS_REACHED", look);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| stop(&format!("prlimit: {error}")));
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
    left_behind::end_all(MARK, |value| value == mark);
    let _ = child.kill();
    let _ = child.wait();
    left_behind::remove_folder(&folder);
    verdict
}

/// The variable by which the processes of one program are found.
const MARK: &str = "HOROLOG_MUTANT_RUN";
/// How the names of their folders for temporary files begin.
const FOLDER: &str = "horolog-mutant-";

/// Removes what runs left that were ended themselves.
pub(super) fn clean_up() {
    left_behind::end_orphans(MARK, FOLDER);
}

/// Ends the run without a verdict on what could not be run; `--resume` goes on with it.
fn stop(error: &str) -> ! {
    eprintln!("error: {error}");
    std::process::exit(1)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_run_where_it_may_come_by_the_fault() {
        let test = |reached: Option<&[u32]>| Test {
            name: None,
            took: Duration::ZERO,
            reached: reached.map(|numbers| numbers.iter().copied().collect()),
        };
        assert!(
            test(None).can_notice(5) && test(Some(&[5])).can_notice(5) && !test(Some(&[4])).can_notice(5)
        );
        // Nobody looked for those.
        assert!(test(Some(&[])).can_notice(MOST_LOOKED_AT));
    }

    #[test]
    fn a_program_that_is_ended_early_leaves_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("horolog-judge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        let (path, word) = (folder.join("program"), folder.join("word"));
        let run = |script: &str, limit| {
            let text = format!(
                "#!/bin/sh\nWORD={}\necho > \"$TMPDIR/file\"; echo \"$TMPDIR\" > {}-2\n{script}\n",
                word.display(),
                word.display()
            );
            std::fs::write(&path, text).expect("a program");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
            let program = Program { path: path.clone(), folder: folder.clone() };
            let verdict = judge_one(&program, &[], 1, None, limit);
            let files = std::fs::read_to_string(folder.join("word-2")).expect("it had a folder");
            assert!(!Path::new(files.trim()).exists(), "{files}");
            verdict
        };
        let second = Duration::from_secs(1);
        assert_eq!(run("exit 0", 20 * second), Verdict::Survived);
        assert_eq!(run("exit 1", 20 * second), Verdict::Noticed);
        // What it started is in a session of its own, and it waits for that after a failure.
        let script = "setsid sh -c 'echo $$ > word; exec sleep 600' & echo 'test a ... FAILED'; wait";
        assert_eq!(run(&format!("cd {}; {script}", folder.display()), 20 * second), Verdict::Noticed);
        let id = std::fs::read_to_string(&word).unwrap_or_default().trim().parse().ok();
        assert_eq!(id.and_then(left_behind::born), None, "{id:?}");
        for script in ["pids", "freezer"].into_iter().filter_map(left_behind::tests::in_a_group) {
            assert_eq!(run(&script, second), Verdict::TooLong);
            let group = std::fs::read_to_string(&word).expect("the program made a group");
            assert!(!Path::new(group.trim()).exists(), "{group}");
        }
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
