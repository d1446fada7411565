//! Attached processes.

use crate::affinity::CpuSet;
use crate::fixed_priority::{Class, set_class_inherited};
use crate::{Error, affinity, clock, guardian};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};

/// A process that runs in a class of its own on chosen processors. Dropping it ends it.
#[derive(Debug)]
pub struct Attached {
    child: Child,
    /// The guardian of this program ends it, and what it has started, where this program cannot.
    _kept: guardian::Program,
}

impl Attached {
    /// Starts `command` (a program and its arguments) in `folder`. It, and what it starts, has the class and the
    /// processors from its first instruction on, and is killed when the calling thread ends.
    ///
    /// # Errors
    /// Where the program cannot be started or the class is not permitted.
    pub fn start(
        command: &[String],
        folder: Option<&Path>,
        cpus: &CpuSet,
        class: Class,
    ) -> Result<Attached, Error> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Error::bad_input("command", "it is empty", "give a program and its arguments"));
        };
        let mut prepared = Command::new(program);
        prepared.args(arguments);
        if let Some(folder) = folder {
            prepared.current_dir(folder);
        }
        let cpus = cpus.clone();
        let refused = |error: Error| std::io::Error::from_raw_os_error(error.errno().unwrap_or(libc::EINVAL));
        // SAFETY: between fork and exec the closure makes system calls and, on success, allocates nothing; where a
        // call fails it builds an error, which may allocate: the child has copied a consistent heap, since the
        // parent forks from a thread that holds no allocator lock.
        unsafe {
            prepared.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                affinity::set_affinity(0, &cpus).map_err(refused)?;
                set_class_inherited(0, class).map_err(refused)
            });
        }
        let spawned = guardian::spawn_exactly(&mut prepared);
        let (child, kept) = spawned.map_err(|error| not_started(program, class, &error))?;
        Ok(Attached { child, _kept: kept })
    }

    /// The process's id, which is the thread id of its first thread.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether its first thread waits right now.
    #[must_use]
    pub fn waits(&self) -> bool {
        // The state follows the name, which is in brackets and may hold anything.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }

    /// The status with which it ended, as `wait` gives it, if it has.
    pub fn status(&mut self) -> Option<i32> {
        self.child.try_wait().ok().flatten().map(ExitStatusExt::into_raw)
    }

    /// Asks it to end, if it has not.
    pub fn ask_to_end(&mut self) {
        if self.status().is_none() {
            terminate(self.child.id());
        }
    }

    /// Kills it where it has not ended by `limit`, ns of the monotonic clock.
    pub fn end_by(&mut self, limit: u64) {
        while clock::monotonic_ns() < limit {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            let _ = clock::sleep_until(clock::monotonic_ns() + 2_000_000);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask_to_end();
            self.end_by(clock::monotonic_ns().saturating_add(100_000_000));
        }
    }
}

/// Why a program did not start, and what to do.
fn not_started(program: &str, class: Class, error: &std::io::Error) -> Error {
    let call = format!("starting `{program}`");
    let errno = error.raw_os_error().unwrap_or(0);
    let remedy = match errno {
        libc::ENOEXEC => {
            let why = "the kernel does not execute such a file: it is empty, made for another processor, or a script without `#!` and its \
                       interpreter in the first line";
            let remedy =
                "give a program that was built for this machine, or put `#!/bin/sh` at the top of the script";
            return Error::bad_input(call, why, remedy);
        }
        libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP => {
            "give the path of a program that is there (from the system file's folder), or a name that is in PATH; of a script, its \
             interpreter has to be there, too"
        }
        libc::EACCES | libc::EISDIR => "give a program that this user may execute (`chmod +x`)",
        libc::E2BIG => "give fewer or shorter arguments",
        libc::ETXTBSY => "let whoever writes the program's file close it first",
        libc::EPERM if class != Class::Normal => {
            return Error::io(call, error, "check the privilege for its class: `horolog doctor --for run`");
        }
        _ => return Error::io(call, error, "check the program, and the limits of processes and memory"),
    };
    Error::bad_input(call, error.to_string(), remedy)
}

/// Asks a child process that has not been waited for to end (SIGTERM).
pub fn terminate(child: u32) {
    // SAFETY: kill takes integers; the worst that a wrong one does is a refusal or a signal.
    unsafe { libc::kill(child as i32, libc::SIGTERM) };
}

/// Sends a signal to a child process that has not been waited for.
pub fn send(child: u32, signal: i32) {
    // SAFETY: as in `terminate`.
    unsafe { libc::kill(child as i32, signal) };
}

/// Has `command`'s process killed when the calling thread ends, however it ends.
pub fn die_with_parent(command: &mut Command) {
    signal_at_end_of_parent(command, libc::SIGKILL);
}

/// Has `command`'s process asked to end (SIGTERM) when the calling thread ends, however it ends.
pub fn end_with_parent(command: &mut Command) {
    signal_at_end_of_parent(command, libc::SIGTERM);
}

fn signal_at_end_of_parent(command: &mut Command, signal: i32) {
    // SAFETY: between fork and exec the closure makes one system call.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        });
    }
}

/// Whether a program file gives capabilities to whoever starts it.
#[must_use]
pub fn has_file_capabilities(file: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(file.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: both names are NUL-terminated; without room for a value the call tells only its length.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::allowed_cpus;

    #[test]
    fn a_process_runs_where_it_is_told_and_ends() {
        let cpus = allowed_cpus().expect("affinity is readable");
        let last = CpuSet::new(cpus.as_slice().last().copied());
        let command = ["sleep".to_owned(), "3600".to_owned()];
        let mut attached = Attached::start(&command, None, &last, Class::Normal).expect("sleep is a program");
        let status = std::fs::read_to_string(format!("/proc/{}/status", attached.id())).expect("it runs");
        let wanted = format!("Cpus_allowed_list:\t{}", last.as_slice()[0]);
        assert!(status.contains(&wanted), "{status}");
        assert_eq!(attached.status(), None);
        for _ in 0..1_000 {
            if attached.waits() {
                break;
            }
            let _ = clock::sleep_until(clock::monotonic_ns() + 5_000_000);
        }
        assert!(attached.waits(), "it sleeps for an hour");
        attached.ask_to_end();
        attached.end_by(clock::monotonic_ns() + 1_000_000_000);
        assert_eq!(attached.status(), Some(libc::SIGTERM));
        assert!(!attached.waits());
        let missing = ["/no/such/program".to_owned()];
        assert!(Attached::start(&missing, None, &last, Class::Normal).is_err());
    }
}
