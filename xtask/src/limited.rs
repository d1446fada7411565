//! `cargo xtask limited SECONDS PROGRAM ARGUMENTS…`: runs a test program and ends it, with all that it started, when
//! it takes too long.
//!
//! Cargo starts each test program through this verb (its setting `target.….runner`). A test that hangs, or that leaves a
//! process behind which holds the output open or spins at a real-time priority, would otherwise stop the whole run without
//! a word. Processes of a test program are found by a variable of their environment, so also those that have left its
//! group and lost their parent.

use crate::left_behind::{end_all, processes};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The variable that marks the processes of one test program.
const MARK: &str = "HOROLOG_TEST_PROGRAM";
/// How long processes of a test program may go on after it: a guardian still puts things back.
const AFTERWARDS: Duration = Duration::from_secs(15);
/// The exit status of a program that took too long, as `timeout` has it.
const TOO_LONG: u8 = 124;

/// The verb.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let [seconds, program, arguments @ ..] = words else { return ExitCode::from(2) };
    let Ok(seconds) = seconds.parse::<u64>() else { return ExitCode::from(2) };
    limited(Duration::from_secs(seconds), AFTERWARDS, program, arguments)
}

/// Runs the program for at most `limit`, and has what it started end at most `afterwards` later.
fn limited(limit: Duration, afterwards: Duration, program: &str, arguments: &[&str]) -> ExitCode {
    let mark = fresh_mark();
    let spawned = Command::new(program).args(arguments).env(MARK, &mark).stdin(Stdio::null()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot start {program}: {error}");
            return ExitCode::from(127);
        }
    };
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            _ => break None,
        }
    };
    let mut left = processes(MARK, |value| value == mark);
    if status.is_some() {
        let end = Instant::now() + afterwards;
        while !left.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
            left = processes(MARK, |value| value == mark);
        }
    }
    for (id, words) in &left {
        eprintln!("ended process {id} of this test program: {words}");
    }
    end_all(MARK, |value| value == mark);
    let _ = child.wait();
    match status.map(|status| status.code()) {
        None => {
            eprintln!("error: {program} was ended: it took longer than {limit:?}");
            ExitCode::from(TOO_LONG)
        }
        Some(Some(0)) if !left.is_empty() => {
            eprintln!("error: {program} left {} processes behind", left.len());
            ExitCode::from(1)
        }
        // Above 128 as a shell tells an end by a signal.
        Some(code) => ExitCode::from(u8::try_from(code.unwrap_or(128)).unwrap_or(1)),
    }
}

/// A mark that no other living process has.
fn fresh_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{}", std::process::id(), now.as_nanos(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left_behind::tests::in_a_group;
    use std::fs;

    /// How the verb ends, as text: an [`ExitCode`] cannot be compared.
    fn ends(words: &[&str]) -> String {
        let [seconds, program, arguments @ ..] = words else { panic!("seconds and a program") };
        let limit = Duration::from_secs(seconds.parse().expect("seconds"));
        format!("{:?}", limited(limit, Duration::from_secs(3), program, arguments))
    }

    fn code(status: u8) -> String {
        format!("{:?}", ExitCode::from(status))
    }

    #[test]
    fn the_programs_own_end_is_handed_on() {
        assert_eq!(ends(&["20", "true"]), code(0));
        assert_eq!(ends(&["20", "sh", "-c", "exit 7"]), code(7));
        assert_eq!(ends(&["20", "sh", "-c", "kill -SEGV $$"]), code(128));
        assert_eq!(ends(&["20", "/no/such/program"]), code(127));
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_that_it_started() {
        let folder = std::env::temp_dir().join(format!("horolog-limited-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let file = folder.join("ids");
        // A child in a session of its own, whose parent ends: no group and no parent leads to it.
        let script = format!("setsid sh -c 'echo $$ > {}; exec sleep 600' & sleep 600", file.display());
        let before = Instant::now();
        assert_eq!(ends(&["1", "sh", "-c", &script]), code(TOO_LONG));
        assert!(before.elapsed() < Duration::from_secs(30), "{:?}", before.elapsed());
        let id: u32 =
            fs::read_to_string(&file).expect("the child wrote it").trim().parse().expect("a number");
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        assert!(!words.starts_with(b"sleep"), "the child lives on");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_program_that_is_ended_leaves_no_control_group() {
        for script in ["pids", "freezer"].into_iter().filter_map(in_a_group) {
            let word = std::env::temp_dir().join(format!("horolog-limited-group-{}", std::process::id()));
            let script = format!("WORD={}; {script}", word.display());
            assert_eq!(ends(&["1", "sh", "-c", &script]), code(TOO_LONG));
            let group = fs::read_to_string(&word).expect("the program made a group");
            assert!(!std::path::Path::new(group.trim()).exists(), "{group}");
            let _ = fs::remove_file(word);
        }
    }

    #[test]
    fn a_program_that_leaves_a_process_behind_has_failed_and_one_that_ends_in_time_has_not() {
        assert_eq!(ends(&["20", "sh", "-c", "setsid sleep 1 & exit 0"]), code(0));
        assert_eq!(ends(&["20", "sh", "-c", "setsid sleep 600 & exit 0"]), code(1));
    }
}
