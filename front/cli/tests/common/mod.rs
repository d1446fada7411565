//! What the end-to-end tests share.
#![allow(dead_code, unreachable_pub)]

pub mod lies;
pub mod narrow;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The command.
pub const HOROLOG: &str = env!("CARGO_BIN_EXE_horolog");

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The command with these words, in the repository's root, where nobody waits for input.
pub fn horolog<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(HOROLOG);
    command.args(words).current_dir(root()).stdin(Stdio::null());
    // A profile of the machine that runs the tests must not change what they prove.
    command.env("XDG_STATE_HOME", root().join("target/no-machine-profile"));
    command
}

/// Runs the command to its end.
pub fn done<'a>(words: impl IntoIterator<Item = &'a str>) -> Done {
    Done::of(&mut horolog(words))
}

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(command: &mut Command) -> Done {
        command.output().expect("the command starts").into()
    }

    /// The result as JSON; what stands on stdout is nothing but that.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{self:?}"))
    }

    pub fn no_panic(&self) -> &Done {
        assert!(!self.err.contains("panicked") && self.status.is_some_and(|status| status < 5), "{self:?}");
        self
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Done {
        Done {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

static ALONE: Mutex<()> = Mutex::new(());

/// Until it is dropped no other test of this program that asks for it runs.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One real run at a time; `None`, said aloud, where SCHED_FIFO is not allowed or there is no CPU 1.
pub fn real_time() -> Option<MutexGuard<'static, ()>> {
    let alone = alone();
    let doctor = done(["doctor", "--format", "json"]).json();
    let facts = doctor["facts"].as_array().expect("facts");
    let fact = facts.iter().find(|fact| fact["name"] == "sched-fifo").expect("the fact sched-fifo");
    if fact["state"] != "yes" {
        println!("SKIPPED: SCHED_FIFO is not allowed: {}", fact["detail"]);
        return None;
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIPPED: one CPU only");
        return None;
    }
    Some(alone)
}

/// Three tasks on CPU 1 whose costs are given, so that no run measures them first. Names are this test's own.
pub const SYSTEM: &str = r#"
[system]
name = "end to end"
policy = "fixed-priority"
[platform]
cpus = [1]
context_switch = "20 us"
timer_interrupt = "50 us"
release_latency = "2 ms"
[[task]]
name = "e2e-fast"
period = "20 ms"
wcet = "2 ms"
bcet = "10 us"
priority = 90
body = { spin = "1 ms" }
[[task]]
name = "e2e-slow"
period = "50 ms"
wcet = "6 ms"
bcet = "10 us"
priority = 50
body = { spin = "4 ms" }
"#;

/// One task whose wcet leaves room for what a virtual machine's host takes unseen: only what a test does on purpose
/// breaks an assumption or a bound of it.
pub const PATIENT: &str = r#"
[system]
name = "patient"
policy = "fixed-priority"
[platform]
cpus = [1]
context_switch = "20 us"
timer_interrupt = "50 us"
release_latency = "9 ms"
[[task]]
name = "e2e-patient"
period = "60 ms"
wcet = "40 ms"
bcet = "10 us"
priority = 90
body = { spin = "4 ms" }
"#;

/// A folder with [`SYSTEM`], or another text, as `system.toml`.
pub fn folder(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("system.toml");
    std::fs::write(&file, text).expect("writable");
    let file = file.to_str().expect("a name in UTF-8").to_owned();
    (folder, file)
}

pub fn inside(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("a name in UTF-8").to_owned()
}

/// Waits until a condition holds; a test that waits for what never comes fails after a minute.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited in vain for {what}");
}

/// Waits until a thread of the process, or of one that it forked, bears this name, which the tasks of a run do.
pub fn wait_for_thread(process: u32, name: &str) {
    wait_for(&format!("the thread {name}"), || process_of_thread(process, name).is_some());
}

/// The process, this one or a child of it, that has a thread of this name: a run has a process of its own.
pub fn process_of_thread(process: u32, name: &str) -> Option<u32> {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let threads = |process: u32| {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        tasks.map(|task| task.path()).collect::<Vec<_>>()
    };
    let children = threads(process).into_iter().map(|task| read(task.join("children")));
    let children: Vec<u32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    let bears =
        |process: &u32| threads(*process).into_iter().any(|task| read(task.join("comm")).trim() == name);
    std::iter::once(process).chain(children).find(bears)
}

/// The living guardian of a command.
pub fn guardian_of(command: u32) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{command}/task")).ok()?.flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|line| line.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().find(|child| {
        let is_guardian = std::fs::read_to_string(format!("/proc/{child}/comm"))
            .is_ok_and(|comm| comm == "horolog-guard\n");
        is_guardian && is_alive(&child.to_string())
    })
}

/// Sends a signal.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().expect("kill starts");
    assert!(sent.success());
}

/// A started command; a test that fails does not leave it running.
pub struct Running(Option<Child>);

impl Running {
    pub fn id(&self) -> u32 {
        self.0.as_ref().expect("it runs").id()
    }

    /// Nobody reads its results.
    pub fn close_stdout(&mut self) {
        drop(self.0.as_mut().expect("it runs").stdout.take());
    }

    /// Nobody reads its messages.
    pub fn close_stderr(&mut self) {
        drop(self.0.as_mut().expect("it runs").stderr.take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the command with its output in pipes.
pub fn start(command: &mut Command) -> Running {
    Running(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")))
}

/// Waits for a started command.
pub fn end(mut running: Running) -> Done {
    running.0.take().expect("it runs").wait_with_output().expect("the command ends").into()
}

/// Whether a process is there and no zombie.
pub fn is_alive(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// What runs that keep their journals in this folder have not put back yet: entries of journals (a run that is killed before
/// its guardian is armed leaves one without any) and names of namespaces.
pub fn not_put_back(folder: &str) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let changes = |path: PathBuf| match path.extension().and_then(std::ffi::OsStr::to_str) {
        // The first line tells whose it is.
        Some("journal") => {
            std::fs::read_to_string(path).map_or(0, |text| text.lines().count().saturating_sub(1))
        }
        _ => 1,
    };
    entries.flatten().map(|entry| changes(entry.path())).sum()
}
