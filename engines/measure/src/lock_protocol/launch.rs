//! Starting a program whose locks get protocols, and waiting for its end.

use super::LockRules;
use crate::preload;
use horolog_probe::lock_protocol::{Counts, RULES, TABLE, Table};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::guardian::{Folder, spawn};
use horolog_sys::process::send;
use horolog_sys::signal::Sent;
use horolog_sys::start_state;
use std::fs::{File, Permissions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// How often the program's end is looked for, ns.
const ROUND_NS: u64 = 5_000_000;

/// A program that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What came of the rules, in all processes that it started.
    pub counts: Counts,
}

/// Runs a command to its end, its locks under these rules. What `signals` has is handed on.
///
/// # Errors
/// Where the library is missing, or the program cannot be started.
pub fn run(mut command: Command, rules: &LockRules, signals: &Sent) -> Result<Finished, Error> {
    let preload = preload::variable(&[preload::find_library(preload::LOCKS_LIBRARY, None)?])?;
    let folder = Folder::create()?;
    let (path, mut table) = table_in(folder.path())?;
    command.env("LD_PRELOAD", preload).env(RULES, rules.to_words()).env(TABLE, &path);
    start_state::pass_on(&mut command);
    let (mut child, program) = spawn(&mut command).map_err(|error| {
        let program = format!("`{}`", command.get_program().to_string_lossy());
        Error::io(format!("starting {program}"), &error, "check its name and permissions")
    })?;
    let status = end_of(&mut child, signals)?;
    // What it has started may go on.
    program.leave();
    // Of the open file: the program may have removed the folder.
    let mut bytes = Vec::new();
    table
        .rewind()
        .and_then(|()| table.read_to_end(&mut bytes))
        .map_err(|error| Error::io(format!("reading {}", path.display()), &error, ""))?;
    Ok(Finished { status, counts: Counts::of(&bytes) })
}

/// Waits for the end of the program, and hands signals on.
fn end_of(child: &mut Child, signals: &Sent) -> Result<ExitStatus, Error> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(Error::io("waiting for the program", &error, "")),
        }
        signals.take().into_iter().for_each(|signal| send(child.id(), signal));
        let _ = sleep_until(monotonic_ns() + ROUND_NS);
    }
}

/// A table that the program's processes reach also as other users: who knows its name may pass through the folder, and
/// nobody can list it.
fn table_in(folder: &Path) -> Result<(PathBuf, File), Error> {
    let mut name = [0_u8; 16];
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Error::io(format!("writing {path}"), &error, "free some space")
    };
    let random = Path::new("/dev/urandom");
    File::open(random).and_then(|mut file| file.read_exact(&mut name)).map_err(io(random))?;
    let path = folder.join(format!("table-{:032x}", u128::from_le_bytes(name)));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).map_err(io(&path))?;
    file.write_all(&Table::empty()).map_err(io(&path))?;
    file.set_permissions(Permissions::from_mode(0o666)).map_err(io(&path))?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o711)).map_err(io(folder))?;
    Ok((path, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_that_a_process_sends_reaches_the_program() {
        let signals = horolog_sys::signal::sent_by_processes().expect("handlers");
        let script = "n=0; for s in HUP INT QUIT TERM; do trap \"n=\\$((n+1)); echo $s\" $s; done; echo ready; \
                      while [ $n -lt 5 ]; do sleep 0.02; done; exit 9";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
        let mut line = move || lines.next().expect("a line").expect("text");
        assert_eq!(line(), "ready");
        let sender = std::thread::spawn(move || {
            // The second of a kind, too.
            for (signal, name) in [(1, "HUP"), (2, "INT"), (3, "QUIT"), (15, "TERM"), (2, "INT")] {
                send(std::process::id(), signal);
                assert_eq!(line(), name);
            }
        });
        let status = end_of(&mut child, &signals).expect("it ends");
        sender.join().expect("all told");
        assert_eq!(status.code(), Some(9));
    }

    #[test]
    fn other_users_reach_a_table_whose_name_they_are_told_and_cannot_find_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, mut file) = table_in(folder.path()).expect("a table");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&path)), (0o711, 0o666));
        let (other, _) = table_in(folder.path()).expect("another");
        assert_ne!(path, other);
        // What is gone by name is read all the same.
        std::fs::remove_file(&path).expect("removed");
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read");
        assert_eq!(bytes, Table::empty());
    }
}
