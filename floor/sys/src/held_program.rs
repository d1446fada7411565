//! A program that is started and held before its first instruction, until somebody lets it go.

use crate::Error;
use crate::guardian;
use std::io::{Read as _, pipe};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;

/// A child process that has not become its program yet.
#[derive(Debug)]
pub struct HeldProgram {
    id: u32,
    let_go: std::io::PipeWriter,
    starting: JoinHandle<std::io::Result<(Child, guardian::Program)>>,
}

impl HeldProgram {
    /// Forks a child that waits. Dropping the result ends it.
    ///
    /// # Errors
    /// Where no process can be made.
    pub fn start(mut command: Command) -> Result<HeldProgram, Error> {
        let refused =
            |error: &std::io::Error| Error::io("fork", error, "raise the limits of processes and files");
        let (mut told, tell) = pipe().map_err(|error| refused(&error))?;
        let (wait, let_go) = pipe().map_err(|error| refused(&error))?;
        let (tell_fd, wait_fd, let_go_fd) = (tell.as_raw_fd(), wait.as_raw_fd(), let_go.as_raw_fd());
        // SAFETY: between fork and exec the closure makes system calls alone and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                let own = libc::getpid().to_ne_bytes();
                // The copy of the end that lets go: else its close by the parent would never be seen.
                libc::close(let_go_fd);
                if libc::write(tell_fd, own.as_ptr().cast(), own.len()) != own.len() as isize {
                    return Err(std::io::Error::from_raw_os_error(libc::EPIPE));
                }
                let mut word = [0_u8];
                loop {
                    match libc::read(wait_fd, word.as_mut_ptr().cast(), 1) {
                        1 => return Ok(()),
                        0 => return Err(std::io::Error::from_raw_os_error(libc::ECANCELED)),
                        _ if *libc::__errno_location() == libc::EINTR => {}
                        _ => return Err(std::io::Error::from_raw_os_error(libc::EIO)),
                    }
                }
            });
        }
        let starting = std::thread::spawn(move || {
            let started = guardian::spawn(&mut command);
            // Both ends belong to the child until here.
            drop((tell, wait));
            started
        });
        let mut own = [0_u8; 4];
        match told.read_exact(&mut own) {
            Ok(()) => Ok(HeldProgram { id: u32::from_ne_bytes(own), let_go, starting }),
            Err(error) => {
                let started = starting.join().ok().and_then(Result::err);
                Err(refused(&started.unwrap_or(error)))
            }
        }
    }

    /// Its process, which is also its first thread.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Lets it become its program.
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub fn let_go(self) -> std::io::Result<RunningProgram> {
        use std::io::Write as _;
        let HeldProgram { mut let_go, starting, .. } = self;
        // Where the child has ended already, the start says why.
        let _ = let_go.write_all(&[1]);
        drop(let_go);
        let started = starting.join().map_err(|_| std::io::Error::other("the starting thread panicked"))?;
        let (child, kept) = started?;
        Ok(RunningProgram { child, kept })
    }
}

/// The program at work.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    kept: guardian::Program,
}

impl RunningProgram {
    /// How it ended, if it has.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so its number is its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// It has ended by itself: what it has started may go on.
    pub fn leave(self) {
        self.kept.leave();
    }
}

/// The exit status that a shell gives for how a program ended: its own, or 128 and the signal.
#[must_use]
pub fn shell_status(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255);
    u8::try_from(code).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_waits_until_it_is_let_go() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        let held = HeldProgram::start(command).expect("starts");
        let name = std::fs::read_to_string(format!("/proc/{}/comm", held.id())).expect("it lives");
        assert_ne!(name.trim(), "sh", "it is not its program yet");
        let mut running = held.let_go().expect("a program");
        let status = loop {
            if let Some(status) = running.ended().expect("waits") {
                break status;
            }
            std::thread::yield_now();
        };
        assert_eq!(shell_status(status), 7);
        running.leave();
    }

    #[test]
    fn what_is_no_program_is_told_when_it_is_let_go() {
        let held = HeldProgram::start(Command::new("/no/such/program")).expect("forks");
        let error = held.let_go().expect_err("no program");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_program_that_is_dropped_before_never_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ran");
        let mut command = Command::new("touch");
        command.arg(&path);
        let held = HeldProgram::start(command).expect("forks");
        let (id, HeldProgram { let_go, starting, .. }) = (held.id(), held);
        drop(let_go);
        assert!(starting.join().expect("no panic").is_err());
        assert!(!path.exists() && guardian::Life::of(id).is_none());
    }
}
