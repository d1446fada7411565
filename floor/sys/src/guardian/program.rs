//! The guardian of the whole program: for what is made deep inside it, and for its watchdog.
//!
//! A program that knows the guardian's subcommand says so at its start ([`guard_program`]). Its guardian is started when
//! the first thing is made that could be left over, and ended by [`finish_program`]. In other programs (Python, tests) nobody
//! guards; what they leave is found by its name ([`super::Mark`]).

use super::journal::Entry;
use super::{Guardian, GuardianOptions, Kept, Mark, Restored};
use crate::{Error, exact_exec};
use horolog_time::Span;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether this program has a guardian, and the guardian once it is needed.
#[derive(Debug, Default)]
struct State {
    options: Option<GuardianOptions>,
    guardian: Option<Guardian>,
}

static STATE: Mutex<State> = Mutex::new(State { options: None, guardian: None });

fn lock() -> MutexGuard<'static, State> {
    // The state is consistent between any two statements, so a panicked holder spoils nothing.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state while this process is copied: no other thread holds it then, so the copy can use its own.
#[must_use]
pub(crate) struct Held(MutexGuard<'static, State>);

/// Holds the state across a `fork`.
pub(crate) fn hold() -> Held {
    Held(lock())
}

impl Held {
    /// In the child: the guardian is the parent's. The child gets one of its own once it needs one.
    pub(crate) fn leave_to_the_parent(mut self) {
        std::mem::forget(self.0.guardian.take());
    }
}

/// Says how the guardian of this program is started, once one is needed.
pub fn guard_program(options: GuardianOptions) {
    lock().options = Some(options);
}

/// Puts everything back and ends the guardian; `None` where none was needed.
///
/// # Errors
/// As [`Guardian::finish`].
pub fn finish_program() -> Option<Result<Restored, Error>> {
    let guardian = lock().guardian.take();
    guardian.map(Guardian::finish)
}

/// Does something with the program's guardian, which is started where it does not run yet; `None` where there is none.
fn with<T>(act: impl FnOnce(&mut Guardian) -> T) -> Result<Option<T>, Error> {
    let mut state = lock();
    let State { options, guardian } = &mut *state;
    let Some(options) = options else { return Ok(None) };
    if guardian.is_none() {
        *guardian = Some(Guardian::start(options)?);
    }
    Ok(guardian.as_mut().map(act))
}

fn note(entry: &Entry) -> Result<(), Error> {
    with(|guardian| guardian.note(entry))?.unwrap_or(Ok(()))
}

/// Notes an instance of tracefs that is to be made.
pub(crate) fn note_instance(mark: Mark) -> Result<(), Error> {
    note(&Entry::Instance { mark })
}

/// A mark for a process that is forked now: it, what it starts, and what that starts end with this program, however that ends.
pub(crate) fn note_fork() -> Result<Mark, Error> {
    let mark = Mark::fresh()?;
    note(&Entry::EndMarked { mark })?;
    Ok(mark)
}

/// Notes a folder that is to be made.
pub(super) fn note_folder(path: &Path) -> Result<(), Error> {
    note(&Entry::RemoveFolder { path: path.to_owned() })
}

/// Starts a child process that ends with this program, however that ends ([`Guardian::spawn`]).
///
/// # Errors
/// As [`Guardian::spawn`], or where the guardian cannot be started.
pub fn spawn(command: &mut Command) -> std::io::Result<(Child, Program)> {
    spawn_after(command, |_| Ok(()))
}

/// The same, of a program that the kernel executes: no shell reads a file whose format the kernel does not know.
///
/// # Errors
/// As [`spawn`]; `ENOEXEC` for such a file.
pub fn spawn_exactly(command: &mut Command) -> std::io::Result<(Child, Program)> {
    spawn_after(command, exact_exec::by_the_kernel_alone)
}

fn spawn_after(
    command: &mut Command,
    last: fn(&mut Command) -> std::io::Result<()>,
) -> std::io::Result<(Child, Program)> {
    let spawned = with(|guardian| guardian.spawn_after(command, last));
    match spawned.map_err(|error| std::io::Error::other(error.to_string()))? {
        Some(spawned) => {
            let (child, kept) = spawned?.apart();
            Ok((child, Program { kept: Some(kept) }))
        }
        None => {
            last(command)?;
            Ok((command.spawn()?, Program { kept: None }))
        }
    }
}

/// The same, and waits for its end: its status, and what it wrote into the pipes that it was given.
///
/// # Errors
/// As [`spawn`].
pub fn run(command: &mut Command) -> std::io::Result<Output> {
    spawn(command)?.0.wait_with_output()
}

/// A program that was started and ends with this one.
#[derive(Debug)]
pub struct Program {
    kept: Option<Kept>,
}

impl Program {
    /// It is not watched any more: what it has started may go on.
    pub fn leave(self) {
        let Some(kept) = self.kept else { return };
        if let Some(guardian) = &mut lock().guardian {
            // Where that cannot be noted, what it started is ended with this program.
            let _ = guardian.leave(&kept);
        }
    }
}

/// The watchdog of a part of this program; dropping it calls the watchdog off.
#[derive(Debug)]
pub struct Watch {
    is_set: bool,
}

/// Has this program ended where the returned value is still there after `deadline` (`None`: never). The guardian moves to the
/// `housekeeping` CPUs; where none are named it stays where it is.
///
/// # Errors
/// Where the guardian cannot be started.
pub fn watch_program(deadline: Option<Span>, housekeeping: &[u32]) -> Result<Watch, Error> {
    let at = deadline.map(|after| crate::clock::monotonic_ns().saturating_add(after.as_ns()));
    let is_set = with(|guardian| {
        guardian.set_housekeeping(housekeeping);
        guardian.set_deadline(at);
    })?;
    Ok(Watch { is_set: is_set.is_some() })
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let (true, Some(guardian)) = (self.is_set, &lock().guardian) {
            guardian.set_deadline(None);
        }
    }
}
