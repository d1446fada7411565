//! The installed command in a process of its own: for callers whose own process must not run real-time threads.
//!
//! A run forks, locks memory and takes over signals, which no program with threads of its own can bear. The command does all of it in a
//! process that is made for it, with its guardian, and puts back what it has changed.

use crate::LoopError;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the end of the command is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// What a command has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandOutput {
    /// Its exit status; as a shell has it, 128 and the signal where one ended it.
    pub status: i32,
    /// What it wrote to its standard output.
    pub output: Vec<u8>,
    /// What it wrote to its standard error.
    pub log: Vec<u8>,
}

/// Runs `program` with `words`, `input` being its standard input, and waits for its end.
///
/// Once `stop` is set it is asked to end (SIGTERM), and its end is waited for: it puts back what it has changed. It is asked so, too, when the
/// calling thread ends, however that ends. It has a process group of its own, so a Ctrl-C at the terminal reaches the caller alone.
///
/// # Errors
/// Where it cannot be started, or its output cannot be kept.
pub fn run_installed(
    program: &Path,
    words: &[String],
    input: &str,
    stop: &AtomicBool,
) -> Result<CommandOutput, LoopError> {
    let kept = |error: std::io::Error| LoopError::writing(&std::env::temp_dir(), error);
    let (mut given, output, log) = (file()?, file()?, file()?);
    given.write_all(input.as_bytes()).and_then(|()| given.seek(SeekFrom::Start(0))).map_err(kept)?;
    let mut command = Command::new(program);
    command.args(words).process_group(0).stdin(Stdio::from(given));
    command.stdout(Stdio::from(output.try_clone().map_err(kept)?));
    command.stderr(Stdio::from(log.try_clone().map_err(kept)?));
    horolog_sys::process::end_with_parent(&mut command);
    let mut child = command.spawn().map_err(|error| {
        LoopError::bad_input(format_args!(
            "cannot start {}: {error}\n  = help: install the command, or name it by HOROLOG_COMMAND",
            program.display()
        ))
    })?;
    let mut is_asked = false;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Err(kept(error)),
        }
        if !is_asked && stop.load(Ordering::Relaxed) {
            is_asked = true;
            horolog_sys::process::terminate(child.id());
        }
        std::thread::sleep(LOOK);
    };
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(CommandOutput { status, output: whole(output).map_err(kept)?, log: whole(log).map_err(kept)? })
}

/// A file without a name: unlike a pipe it has no end to wait for that a program of the user's could hold open.
fn file() -> Result<File, LoopError> {
    tempfile::tempfile().map_err(|error| LoopError::writing(&std::env::temp_dir(), error))
}

fn whole(mut file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn shell(script: &str, input: &str, stop: &AtomicBool) -> Result<CommandOutput, LoopError> {
        run_installed(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], input, stop)
    }

    #[test]
    fn what_it_writes_and_how_it_ends_is_kept() {
        let found = shell("cat; echo why >&2; exit 3", "a text\n", &AtomicBool::new(false)).expect("it runs");
        let wanted = CommandOutput { status: 3, output: b"a text\n".to_vec(), log: b"why\n".to_vec() };
        assert_eq!(found, wanted);
        let killed = shell("kill -9 $$", "", &AtomicBool::new(false)).expect("it runs");
        assert_eq!(killed.status, 128 + 9);
        let none = run_installed(Path::new("/none/such"), &[], "", &AtomicBool::new(false));
        assert!(none.expect_err("there is none").to_string().starts_with("cannot start /none/such"));
    }

    #[test]
    fn one_that_is_stopped_ends_in_its_own_way() {
        let stop = Arc::new(AtomicBool::new(false));
        let work = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                shell(
                    "trap 'echo put back; exit 4' TERM; echo begun; while :; do sleep 0.01; done",
                    "",
                    &stop,
                )
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        let found = work.join().expect("it ends").expect("it runs");
        assert_eq!((found.status, found.output), (4, b"begun\nput back\n".to_vec()));
    }

    /// What a kill of the caller does: the thread is gone, and the flag was not set.
    #[test]
    fn one_whose_caller_is_gone_is_asked_to_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let (begun, ended) = (folder.path().join("begun"), folder.path().join("ended"));
        let script = format!(
            "trap 'touch {}; exit' TERM; touch {}; while :; do sleep 0.01; done",
            ended.display(),
            begun.display()
        );
        let until = |path: &Path| {
            (0..2_000).any(|_| {
                std::thread::sleep(Duration::from_millis(5));
                path.exists()
            })
        };
        let spawned = std::thread::spawn(move || {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script]);
            horolog_sys::process::end_with_parent(&mut command);
            let child = command.spawn().expect("it starts");
            assert!(until(&begun), "it begins");
            child
        });
        let mut child = spawned.join().expect("it is started");
        assert!(until(&ended), "it was not asked");
        assert!(child.wait().expect("it ends").success());
    }
}
