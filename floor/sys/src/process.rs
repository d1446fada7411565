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
    name: String,
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
        let (child, kept) = guardian::spawn(&mut prepared).map_err(|error| {
            let of_program = [
                libc::ENOENT,
                libc::EACCES,
                libc::ENOEXEC,
                libc::ENOTDIR,
                libc::E2BIG,
                libc::ENAMETOOLONG,
                libc::ELOOP,
                libc::EISDIR,
            ];
            if error.raw_os_error().is_some_and(|number| of_program.contains(&number)) {
                let why = format!("`{program}` cannot be started: {error}");
                return Error::bad_input("command", &why, "give the path of a program that may be executed, and no more arguments than the kernel takes");
            }
            Error::io(
                format!("starting `{program}`"),
                &error,
                "check the path, and the privilege for its class",
            )
        })?;
        Ok(Attached { child, name: program.clone(), _kept: kept })
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

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| format!("`{}` ended: {status}", self.name))
    }

    /// Asks it to end, and kills it `patience_ns` later.
    pub fn end(&mut self, patience_ns: u64) {
        // SAFETY: the child has not been waited for, so its id is its own.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let limit = clock::monotonic_ns().saturating_add(patience_ns);
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
            self.end(100_000_000);
        }
    }
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
        assert_eq!((attached.ended(), attached.status()), (None, None));
        for _ in 0..1_000 {
            if attached.waits() {
                break;
            }
            let _ = clock::sleep_until(clock::monotonic_ns() + 5_000_000);
        }
        assert!(attached.waits(), "it sleeps for an hour");
        attached.end(1_000_000_000);
        assert!(attached.ended().is_some());
        assert_eq!(attached.status(), Some(libc::SIGTERM));
        assert!(!attached.waits());
        let missing = ["/no/such/program".to_owned()];
        assert!(Attached::start(&missing, None, &last, Class::Normal).is_err());
    }
}
