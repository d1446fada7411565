//! Whether a thread of a traced process still exists.

use super::service::SOCKET;
use super::shared::{stack_start, start_time};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// When process `pid` began, in clock ticks since boot; `None` where it does not exist.
#[must_use]
pub fn process_start(pid: u32) -> Option<u64> {
    start_time(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Where the stack of the program that process `pid` runs begins: `exec` gives it another place. `None` where the kernel does not
/// tell.
#[must_use]
pub fn program_stack(pid: u32) -> Option<u64> {
    stack_start(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).filter(|stack| *stack != 0)
}

/// The living children of process `pid`'s first thread; none where the kernel does not tell.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let lives = |pid: &u32| std::fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| !is_over(&stat));
    list.split_whitespace().filter_map(|word| word.parse().ok()).filter(lives).collect()
}

/// The living processes, begun after process `first`, whose environment sends them to the recorder at `socket`: what its
/// command has started, recorded or not. One that is just becoming another program counts, too: it has no environment for a
/// moment.
#[must_use]
pub fn sent_to(socket: &Path, first: u32) -> Vec<u32> {
    let mut wanted = format!("{SOCKET}=").into_bytes();
    wanted.extend_from_slice(socket.as_os_str().as_bytes());
    let is_later = later_than(first);
    let folder = std::fs::read_dir("/proc").into_iter().flatten();
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_sent = |pid: &u32| match std::fs::read(format!("/proc/{pid}/environ")) {
        // The kernel's own threads and those that have ended have no program.
        Ok(environment) if environment.is_empty() => std::fs::read_link(format!("/proc/{pid}/exe")).is_ok(),
        Ok(environment) => environment.split(|byte| *byte == 0).any(|variable| variable == wanted),
        Err(_) => false,
    };
    numbers.filter(|pid| is_later(*pid)).filter(is_sent).collect()
}

/// Which numbers the kernel may have given after `first`: the greater ones, or any where it has begun anew since.
fn later_than(first: u32) -> impl Fn(u32) -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last = load.split_whitespace().last().and_then(|word| word.parse::<u32>().ok());
    let began_anew = last.is_none_or(|last| last < first);
    move |pid| pid > first || (began_anew && pid != first)
}

/// A process that is being traced, as its reader sees it.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number in the reader's own namespace.
    pid: u32,
    /// Its number in its own namespace.
    own_pid: u32,
    start: u64,
    /// Where the stack of its program begins; 0: not known.
    stack: u64,
}

/// What has become of a traced process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It runs.
    Runs,
    /// It runs another program by now (`exec`).
    RunsAnother,
    /// It is gone, a zombie without threads, or its number was taken by a later process.
    Ended,
}

impl Process {
    /// The process `pid`, which calls itself `own_pid`; it began at `start`.
    #[must_use]
    pub fn new(pid: u32, own_pid: u32, start: u64) -> Process {
        Process { pid, own_pid, start, stack: 0 }
    }

    /// The process that has this number now; `None` where there is none, or it has ended and its parent has not asked for its
    /// status yet.
    #[must_use]
    pub fn running(pid: u32) -> Option<Process> {
        Some(Process::new(pid, pid, process_start(pid)?)).filter(|process| !process.is_dead())
    }

    /// The same while it runs the program whose stack begins at `stack`; 0: not known.
    pub(super) fn of_program(self, stack: u64) -> Process {
        Process { stack, ..self }
    }

    /// Its number in the reader's own namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it numbers its threads in a namespace of its own.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.pid != self.own_pid
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.state() == State::Ended
    }

    /// What has become of it.
    #[must_use]
    pub fn state(&self) -> State {
        let Ok(stat) = std::fs::read(format!("/proc/{}/stat", self.pid)) else { return State::Ended };
        if start_time(&stat).is_some_and(|start| self.start != 0 && start != self.start) {
            return State::Ended;
        }
        // The first thread may have ended while others run: then the process is a zombie and lives.
        if is_over(&stat) {
            let ended = self.threads().all(|tid| self.thread_is_over(tid, 0));
            return if ended { State::Ended } else { State::Runs };
        }
        let is_another = |stack| self.stack != 0 && stack != 0 && stack != self.stack;
        if stack_start(&stat).is_some_and(is_another) { State::RunsAnother } else { State::Runs }
    }

    /// Whether the thread that calls itself `tid`, begun at `start` (0: not known), can never run again.
    #[must_use]
    pub fn thread_is_dead(&self, tid: u32, start: u64) -> bool {
        if !self.is_foreign() {
            return self.thread_is_over(tid, start);
        }
        // Numbers differ between namespaces: ask each thread what it calls itself.
        let known = self.threads().find(|outer| self.inner_number(*outer) == Some(tid));
        known.is_none_or(|outer| self.thread_is_over(outer, start))
    }

    /// When the living thread `tid` began, in clock ticks since boot; `None` where it has ended, or has its number in a
    /// namespace of its own.
    #[must_use]
    pub fn thread_start(&self, tid: u32) -> Option<u64> {
        if self.is_foreign() {
            return None;
        }
        let stat = std::fs::read(format!("/proc/{}/task/{tid}/stat", self.pid)).ok()?;
        (!is_over(&stat)).then(|| start_time(&stat)).flatten()
    }

    fn threads(&self) -> impl Iterator<Item = u32> {
        let folder = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }

    fn inner_number(&self, tid: u32) -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{}/task/{tid}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        line.split_whitespace().last()?.parse().ok()
    }

    fn thread_is_over(&self, tid: u32, start: u64) -> bool {
        let Ok(stat) = std::fs::read(format!("/proc/{}/task/{tid}/stat", self.pid)) else { return true };
        is_over(&stat) || start_time(&stat).is_some_and(|found| start != 0 && found != start)
    }
}

/// Whether a `stat` file speaks of a thread that has ended: zombie or dead.
fn is_over(stat: &[u8]) -> bool {
    let close = stat.iter().rposition(|byte| *byte == b')');
    let state = close.and_then(|close| stat.get(close + 2));
    matches!(state, Some(b'Z' | b'X' | b'x'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_ended() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        let process = Process::running(child.id()).expect("it runs");
        assert!(!process.is_dead());
        drop(child.stdin.take());
        let stat = format!("/proc/{}/stat", child.id());
        while !std::fs::read(&stat).is_ok_and(|stat| is_over(&stat)) {
            std::thread::yield_now();
        }
        assert!(process.is_dead() && Process::running(child.id()).is_none());
        child.wait().expect("it has ended");
        assert!(process.is_dead() && Process::running(child.id()).is_none());
    }

    #[test]
    fn processes_are_found_by_the_recorder_to_which_they_are_sent() {
        let start = |socket: &str| {
            let mut command = std::process::Command::new("sleep");
            let child = command.arg("100").env(SOCKET, socket).spawn().expect("sleep");
            // One that is still becoming `sleep` has no environment, and counts.
            let environment = format!("/proc/{}/environ", child.id());
            while std::fs::read(&environment).is_ok_and(|environment| environment.is_empty()) {
                std::thread::yield_now();
            }
            child
        };
        let mut all = [start("/none/a"), start("/none/ab"), start("/none/a")];
        let ids = all.each_ref().map(std::process::Child::id);
        let found = |first| {
            let found = sent_to(Path::new("/none/a"), first);
            ids.map(|id| found.contains(&id))
        };
        // Where the numbers began anew meanwhile, all are looked at.
        if ids[0] < ids[2] {
            assert_eq!(found(ids[0]), [false, false, true]);
        }
        assert_eq!(found(1), [true, false, true]);
        all[2].kill().expect("it runs");
        all[2].wait().expect("it has ended");
        assert_eq!(found(1), [true, false, false]);
        for child in &mut all[..2] {
            child.kill().expect("it runs");
            child.wait().expect("it has ended");
        }
    }

    #[test]
    fn threads_live_until_they_end() {
        let pid = std::process::id();
        let me = Process::new(pid, pid, process_start(pid).expect("we exist"));
        assert!(!me.is_dead());
        let same = me.clone().of_program(super::super::shared::start_of_stack());
        assert_eq!(same.state(), State::Runs);
        assert_eq!(program_stack(pid), Some(super::super::shared::start_of_stack()));
        assert_eq!(me.clone().of_program(4096).state(), State::RunsAnother);
        let tid = horolog_sys::thread::id();
        let start = me.thread_start(tid).expect("we exist");
        assert!(!me.thread_is_dead(tid, start));
        assert!(!me.thread_is_dead(tid, 0));
        assert!(me.thread_is_dead(tid, start + 1), "a later thread with the same number");
        let ended = std::thread::spawn(horolog_sys::thread::id).join().expect("ends");
        while !me.thread_is_dead(ended, 0) {
            std::thread::yield_now(); // join returns a little before the kernel has forgotten the thread
        }
        assert!(Process::new(pid, pid, 1).is_dead(), "a later process with the same number");
        assert!(!Process::new(pid, pid + 1, 0).thread_is_dead(tid, start), "numbers of its own namespace");
    }
}
