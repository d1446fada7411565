//! Starting a program whose locks get protocols, and waiting for its end.

use super::LockRules;
use crate::preload;
use horolog_probe::lock_protocol::{Counts, RULES, TABLE, Table};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::guardian::{Folder, spawn};
use horolog_sys::process::terminate;
use horolog_sys::start_state;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often the program's end is looked for, ns.
const ROUND_NS: u64 = 5_000_000;
/// SIGTERM.
const TERMINATE: usize = 15;

/// A program that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What came of the rules, in all processes that it started.
    pub counts: Counts,
}

/// Runs a command to its end, its locks under these rules. A SIGTERM that `signal` tells is handed on; one from the keyboard the
/// program gets itself.
///
/// # Errors
/// Where the library is missing, or the program cannot be started.
pub fn run(mut command: Command, rules: &LockRules, signal: &AtomicUsize) -> Result<Finished, Error> {
    let preload = preload::variable(&[preload::find_library(preload::LOCKS_LIBRARY, None)?])?;
    let folder = Folder::for_socket()?;
    let path = folder.path().join("table");
    let io =
        |error: std::io::Error| Error::io(format!("writing {}", path.display()), &error, "free some space");
    std::fs::write(&path, Table::empty()).map_err(io)?;
    // A program that changes its user counts in the same file, where it may look into the folder.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).map_err(io)?;
    command.env("LD_PRELOAD", preload).env(RULES, rules.to_words()).env(TABLE, &path);
    start_state::pass_on(&mut command);
    let (mut child, program) = spawn(&mut command).map_err(|error| {
        let program = format!("`{}`", command.get_program().to_string_lossy());
        Error::io(format!("starting {program}"), &error, "check its name and permissions")
    })?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Err(Error::io("waiting for the program", &error, "")),
        }
        if signal.swap(0, Ordering::Relaxed) == TERMINATE {
            terminate(child.id());
        }
        let _ = sleep_until(monotonic_ns() + ROUND_NS);
    };
    // What it has started may go on.
    program.leave();
    let counts = Counts::of(&std::fs::read(&path).map_err(io)?);
    Ok(Finished { status, counts })
}
