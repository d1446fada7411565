//! A test program that starts itself again: as the run that is killed, and as that run's guardian.
//!
//! Each role is an ignored test, told by a variable that it is meant; without that variable it does nothing.

use horolog_sys::guardian::{GuardianOptions, serve};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The folder of a run, which makes a role of an ignored test.
pub(crate) const DIRECTORY: &str = "HOROLOG_TEST_DIRECTORY";
/// What the run is to do.
pub(crate) const SCENARIO: &str = "HOROLOG_TEST_SCENARIO";

#[test]
#[ignore = "a role that the other tests start"]
fn guardian() {
    if std::env::var_os(DIRECTORY).is_some() {
        std::process::exit(serve());
    }
}

/// The folder and the scenario of this process, where it is a run.
pub(crate) fn scenario() -> Option<(PathBuf, String)> {
    let directory = std::env::var_os(DIRECTORY).map(PathBuf::from)?;
    Some((directory, std::env::var(SCENARIO).expect("a run has a scenario")))
}

/// What makes this program take a role.
pub(crate) fn role(name: &str) -> [&str; 4] {
    ["--exact", name, "--ignored", "--nocapture"]
}

/// A guardian with its journals in `directory/journals`; the role is told by `env`, since this process need not have one.
pub(crate) fn guardian_options(directory: &Path) -> GuardianOptions {
    let mut arguments = vec![format!("{DIRECTORY}={}", directory.display()).into()];
    arguments.push(std::env::current_exe().expect("this program has a path").into_os_string());
    arguments.extend(role("roles::guardian").map(Into::into));
    GuardianOptions {
        program: PathBuf::from("/usr/bin/env"),
        arguments,
        directory: Some(directory.join("journals")),
        ..GuardianOptions::default()
    }
}

/// Starts the ignored test `role_run` of this program with a scenario.
pub(crate) fn start_run(directory: &Path, scenario: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(role("role_run"))
        .env(DIRECTORY, directory)
        .env(SCENARIO, scenario)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program starts again")
}

/// Ends this process as `kill -9` does.
pub(crate) fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("SIGKILL cannot be survived")
}

/// Waits until the guardian has removed its journal.
pub(crate) fn wait_for_guardian(directory: &Path) {
    let end = Instant::now() + Duration::from_secs(20);
    let is_journal = |entry: fs::DirEntry| entry.path().extension().is_some_and(|end| end == "journal");
    while fs::read_dir(directory.join("journals")).is_ok_and(|entries| entries.flatten().any(is_journal)) {
        assert!(Instant::now() < end, "the guardian is still not done");
        sleep(Duration::from_millis(5));
    }
}
