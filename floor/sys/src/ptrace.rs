//! Stopping every thread of another process for a moment.

use crate::{Error, clock};
use std::fs;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A process that cannot be confused with a later one of the same number.
#[derive(Debug)]
pub struct PidFd {
    pid: i32,
    descriptor: OwnedFd,
}

impl PidFd {
    /// Of the process `pid`.
    ///
    /// # Errors
    /// Where there is none.
    pub fn open(pid: i32) -> Result<PidFd, Error> {
        // SAFETY: the call takes numbers and gives a new descriptor or -1.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if descriptor < 0 {
            return Err(Error::last_os(format!("pidfd_open({pid})"), "there is no such process"));
        }
        // SAFETY: the descriptor is new and ours.
        Ok(PidFd { pid, descriptor: unsafe { OwnedFd::from_raw_fd(descriptor as i32) } })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it still runs. What was opened under its number while this is still true belongs to it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry; no waiting.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 0 }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A process all of whose threads stand still; they go on when this is dropped, and when this process ends in whatever way,
/// since the kernel releases what a tracer leaves behind.
#[derive(Debug)]
pub struct Stopped {
    threads: Vec<Thread>,
    since_ns: u64,
    /// Only the thread that attached may detach.
    here: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Thread {
    id: i32,
    stopped: bool,
    /// A signal that was about to be delivered when it stopped; delivered when it goes on.
    signal: i32,
}

impl Stopped {
    /// Stops every thread of the process, those included that start meanwhile; waits at most `patience_ns` for threads that
    /// do not stop (uninterruptible sleep).
    ///
    /// # Errors
    /// Where tracing it is not permitted, another tracer has it, or a thread does not stop in time: then all go on.
    pub fn all_threads(pid: &PidFd, patience_ns: u64) -> Result<Stopped, Error> {
        let since_ns = clock::monotonic_ns();
        let limit = since_ns.saturating_add(patience_ns);
        let mut stopped = Stopped { threads: Vec::new(), since_ns, here: PhantomData };
        // A thread that runs may start another: until a whole look at the list finds none that is new.
        loop {
            let known = stopped.threads.len();
            for id in threads_of(pid.pid)? {
                if !stopped.threads.iter().any(|thread| thread.id == id) {
                    stopped.attach(pid.pid, id)?;
                }
            }
            if stopped.threads.len() == known {
                break;
            }
            stopped.wait(limit)?;
        }
        if stopped.threads.is_empty() || !pid.is_alive() {
            let call = format!("ptrace({})", pid.pid);
            return Err(Error::os(call, libc::ESRCH, "the process has ended"));
        }
        Ok(stopped)
    }

    fn attach(&mut self, pid: i32, id: i32) -> Result<(), Error> {
        if request(libc::PTRACE_SEIZE, id, 0) != 0 {
            let error = Error::last_os(format!("ptrace(PTRACE_SEIZE, {id})"), remedy(pid));
            // It has ended meanwhile, or is the leader of a process that left it behind.
            if error.errno() == Some(libc::ESRCH)
                || state(pid, id).is_none_or(|state| matches!(state, 'Z' | 'X'))
            {
                return Ok(());
            }
            return Err(error);
        }
        self.threads.push(Thread { id, stopped: false, signal: 0 });
        request(libc::PTRACE_INTERRUPT, id, 0);
        Ok(())
    }

    fn wait(&mut self, limit: u64) -> Result<(), Error> {
        loop {
            let mut ended = Vec::new();
            for thread in self.threads.iter_mut().filter(|thread| !thread.stopped) {
                let mut status = 0;
                // SAFETY: waits for one thread that this one traces, without blocking.
                let found =
                    unsafe { libc::waitpid(thread.id, &raw mut status, libc::__WALL | libc::WNOHANG) };
                if found == thread.id && libc::WIFSTOPPED(status) {
                    thread.stopped = true;
                    // An event stop is ours or a group stop; another is a signal on its way.
                    if status >> 16 == 0 {
                        thread.signal = libc::WSTOPSIG(status);
                    }
                } else if found == thread.id || found < 0 {
                    ended.push(thread.id);
                }
            }
            self.threads.retain(|thread| !ended.contains(&thread.id));
            let Some(running) = self.threads.iter().find(|thread| !thread.stopped) else { return Ok(()) };
            if clock::monotonic_ns() >= limit {
                return Err(Error::os(
                    format!("waiting for thread {} to stop", running.id),
                    libc::ETIMEDOUT,
                    "it sleeps in the kernel and cannot be interrupted: try again",
                ));
            }
            let _ = clock::sleep_until(clock::monotonic_ns() + 50_000);
        }
    }

    /// How many threads stand still.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Lets them go on; how long the process stood still, in ns: from before the first was asked to stop until after the
    /// last was let go.
    #[must_use]
    pub fn release(mut self) -> u64 {
        self.detach();
        clock::monotonic_ns().saturating_sub(self.since_ns)
    }

    fn detach(&mut self) {
        for thread in self.threads.drain(..) {
            if !thread.stopped {
                // Detaching needs a stop; this one is on its way, or the thread ends.
                let mut status = 0;
                // SAFETY: as in `wait`, blocking: the thread was asked to stop.
                let found =
                    unsafe { libc::waitpid(thread.id, &raw mut status, libc::__WALL | libc::WNOHANG) };
                if found != thread.id {
                    // The kernel lets it go when this process ends; until then it stops once it returns from its sleep.
                    leave_to_reaper(thread.id);
                    continue;
                }
            }
            request(libc::PTRACE_DETACH, thread.id, thread.signal as usize);
        }
    }
}

/// Waits a while for a thread that would not stop in time, and lets it go.
fn leave_to_reaper(id: i32) {
    let limit = clock::monotonic_ns().saturating_add(200_000_000);
    while clock::monotonic_ns() < limit {
        let mut status = 0;
        // SAFETY: as in `Stopped::wait`.
        if unsafe { libc::waitpid(id, &raw mut status, libc::__WALL | libc::WNOHANG) } != 0 {
            request(libc::PTRACE_DETACH, id, 0);
            return;
        }
        let _ = clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.detach();
    }
}

fn request(request: libc::c_uint, id: i32, data: usize) -> libc::c_long {
    // SAFETY: the requests used here read and write no memory of this process.
    unsafe { libc::ptrace(request, id, std::ptr::null_mut::<libc::c_void>(), data as *mut libc::c_void) }
}

fn threads_of(pid: i32) -> Result<Vec<i32>, Error> {
    let path = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&path).map_err(|error| Error::io(format!("open({path})"), &error, ""))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The letter of a thread's state.
fn state(pid: i32, id: i32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{id}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// What to do where tracing is refused.
#[must_use]
pub fn remedy(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u32>().ok()
    };
    if let Some(tracer) = field("TracerPid:").filter(|&tracer| tracer != 0) {
        return format!("process {tracer} (a debugger?) traces it already: end that first");
    }
    // SAFETY: the call takes and changes nothing.
    let me = unsafe { libc::geteuid() };
    if field("Uid:").is_some_and(|owner| owner != me && me != 0) {
        return "it belongs to another user: run as that user, or as root".to_owned();
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "1" => "run as root, give horolog CAP_SYS_PTRACE, or: sysctl kernel.yama.ptrace_scope=0".to_owned(),
        "2" => "run as root, or give horolog CAP_SYS_PTRACE (kernel.yama.ptrace_scope is 2)".to_owned(),
        "3" => {
            "kernel.yama.ptrace_scope is 3: tracing is off until the next start; use a runtime in the program"
                .to_owned()
        }
        _ => {
            "run as root, or give horolog CAP_SYS_PTRACE; in a container, start it with --cap-add SYS_PTRACE"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("60").spawn().expect("sleep is a program")
    }

    #[test]
    fn a_process_stands_still_and_goes_on() {
        let mut child = sleeper();
        let pid = PidFd::open(child.id() as i32).expect("it runs");
        let stopped = match Stopped::all_threads(&pid, 2_000_000_000) {
            Ok(stopped) => stopped,
            Err(error) if error.is_not_permitted() => {
                println!("SKIPPED: {error}");
                child.kill().expect("it is ours");
                child.wait().expect("it is ours");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(stopped.threads(), 1);
        assert_eq!(state(pid.pid(), pid.pid()), Some('t'), "stopped by a tracer");
        assert!(stopped.release() > 0);
        for _ in 0..1000 {
            if state(pid.pid(), pid.pid()) == Some('S') {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(state(pid.pid(), pid.pid()), Some('S'), "it sleeps on");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert!(!pid.is_alive());
        assert!(Stopped::all_threads(&pid, 1_000_000).is_err());
    }
}
