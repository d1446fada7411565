//! A test program that starts itself again: as the run that is killed, and as that run's guardian.
//!
//! Each role is an ignored test, told by a variable that it is meant; without that variable it does nothing.

// Each test program uses some of it.
#![allow(dead_code, unused_imports)]

mod control_group;

pub(crate) use control_group::{ControlGroup, remove_left_over};

use horolog_sys::guardian::{GuardianOptions, Restored, restore, serve};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
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

/// A process that is ended with the test, also where the test fails: it would hold the test's output open.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a process of another number.
pub(crate) fn kill(id: u32) {
    let id = rustix::process::Pid::from_raw(id as i32).expect("a process has a number");
    rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("it is there");
}

/// Waits until something is so; whether it came.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        if Instant::now() >= end {
            return false;
        }
        sleep(Duration::from_millis(2));
    }
    true
}

/// A journal of a run that has ended, with these entries.
pub(crate) fn journal_of_an_ended_run(directory: &Path, entries: &str) -> PathBuf {
    let mut run = Command::new("true").spawn().expect("a program that ends at once");
    let id = run.id();
    run.wait().expect("it ends");
    let journals = directory.join("journals");
    fs::DirBuilder::new().mode(0o700).recursive(true).create(&journals).expect("a folder");
    let journal = journals.join("1-1-0.journal");
    fs::write(&journal, format!("horolog-journal/1 {id} 1\n{entries}")).expect("a journal");
    journal
}

/// Undoes a journal. A child that another test starts at this moment holds its lock until it runs its own program.
pub(crate) fn restore_soon(journal: &Path) -> Restored {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match restore(journal) {
            Ok(restored) => return restored,
            Err(error) if error.to_string().contains("holds it") && Instant::now() < end => {
                sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}
