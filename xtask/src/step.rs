//! Running one step and remembering how it went.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The root of the checkout.
pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_path_buf()
}

/// Whether a program can be found.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}

/// Runs a command, showing its output; `true` where it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What one step came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) succeeded: bool,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) took: Duration,
    /// How long each of the test programs of this step ran, in their order.
    pub(crate) programs: Vec<(String, f64)>,
    /// Lines `SKIPPED: …` that the tests printed.
    pub(crate) skipped: Vec<String>,
    /// Tests that failed beside others and passed alone.
    pub(crate) flaky: Vec<String>,
    /// The last lines that it printed, for the summary of a failure.
    pub(crate) tail: VecDeque<String>,
}

/// How many lines of a failed step the summary repeats.
const TAIL_LINES: usize = 40;

impl Outcome {
    /// Of a step that has not done anything yet.
    pub(crate) fn new(name: &str) -> Outcome {
        Outcome {
            name: name.to_owned(),
            succeeded: false,
            passed: 0,
            failed: 0,
            took: Duration::ZERO,
            programs: Vec::new(),
            skipped: Vec::new(),
            flaky: Vec::new(),
            tail: VecDeque::new(),
        }
    }
}

/// Runs a step, passing its output on while counting tests and skips in it.
pub(crate) fn run(name: &str, command: &mut Command) -> Outcome {
    run_read(name, command, |_| ())
}

/// As [`run`], handing each line on.
pub(crate) fn run_read(name: &str, command: &mut Command, mut take: impl FnMut(&str)) -> Outcome {
    println!("\n== {name}");
    let mut outcome = Outcome::new(name);
    let start = Instant::now();
    // One pipe for both streams keeps their order.
    let (reader, writer) = match std::io::pipe() {
        Ok(pair) => pair,
        Err(error) => {
            println!("cannot make a pipe: {error}");
            return outcome;
        }
    };
    let spawned = writer
        .try_clone()
        .and_then(|second| command.stdin(Stdio::null()).stdout(writer).stderr(second).spawn());
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            println!("cannot start: {error}");
            return outcome;
        }
    };
    // The command still holds the pipe's writing ends; give them up, or the reading never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        println!("{line}");
        count(&line, &mut outcome);
        take(&line);
        if outcome.tail.len() == TAIL_LINES {
            outcome.tail.pop_front();
        }
        outcome.tail.push_back(line);
    }
    outcome.succeeded = child.wait().is_ok_and(|status| status.success());
    outcome.took = start.elapsed();
    println!("-- {name}: {} s", outcome.took.as_secs());
    outcome
}

/// Adds what a test runner's line says.
fn count(line: &str, outcome: &mut Outcome) {
    count_time(line, outcome);
    if let Some(at) = line.find("SKIPPED: ") {
        outcome.skipped.push(line[at + 9..].trim().to_owned());
    }
    let before = |word: &str| -> u64 {
        line.split(&[' ', ',', ';'][..])
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .windows(2)
            .find(|pair| pair[1] == word)
            .and_then(|pair| pair[0].trim_start_matches('=').parse().ok())
            .unwrap_or(0)
    };
    if line.starts_with("test result:") || (line.contains(" passed") && line.contains(" in ")) {
        outcome.passed += before("passed");
        outcome.failed += before("failed");
    } else if let Some(number) = line.strip_prefix("# pass ").or_else(|| line.strip_prefix("ℹ pass ")) {
        outcome.passed += number.trim().parse::<u64>().unwrap_or(0);
    } else if let Some(number) = line.strip_prefix("# fail ").or_else(|| line.strip_prefix("ℹ fail ")) {
        outcome.failed += number.trim().parse::<u64>().unwrap_or(0);
    }
}

/// Adds how long a test program ran: cargo names it, and its own last line has the time.
fn count_time(line: &str, outcome: &mut Outcome) {
    if let Some(name) = line.trim_start().strip_prefix("Running ") {
        outcome.programs.push((name.to_owned(), 0.0));
    } else if let Some((_, time)) = line.split_once("; finished in ")
        && let Ok(seconds) = time.trim_end_matches('s').parse()
        && let Some(last) = outcome.programs.last_mut()
    {
        last.1 = seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_runners_print() {
        let mut outcome = Outcome::new("");
        count("test result: ok. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out", &mut outcome);
        count("=========== 4 passed, 2 failed in 0.12s ===========", &mut outcome);
        count("# pass 5", &mut outcome);
        count("ℹ fail 1", &mut outcome);
        count("  SKIPPED: no SCHED_FIFO here", &mut outcome);
        assert_eq!((outcome.passed, outcome.failed), (12, 4));
        assert_eq!(outcome.skipped, ["no SCHED_FIFO here"]);
    }

    #[test]
    fn a_program_has_the_time_of_its_own_last_line() {
        let mut outcome = Outcome::new("");
        count("     Running tests/one.rs (target/debug/deps/one-1)", &mut outcome);
        count(
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s",
            &mut outcome,
        );
        count("     Running tests/two.rs (target/debug/deps/two-2)", &mut outcome);
        let wanted = [
            ("tests/one.rs (target/debug/deps/one-1)", 1.25),
            ("tests/two.rs (target/debug/deps/two-2)", 0.0),
        ];
        assert_eq!(outcome.programs, wanted.map(|(name, time)| (name.to_owned(), time)));
    }
}
