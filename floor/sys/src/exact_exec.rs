//! Programs that the kernel alone executes.
//!
//! Where the kernel does not know a file's format (`ENOEXEC`: it is empty, or made for another processor), the C library's `execvp` has
//! the shell read it as a script. What runs then is not what was asked for, so that here the refusal stays one.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// Where programs are looked for without `PATH`.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// Texts as `execve` takes them: a list of pointers that ends with a null.
struct Words {
    /// Where the pointers lead.
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to the texts beside them, which nothing changes or moves.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn new(words: impl IntoIterator<Item = OsString>) -> Result<Words> {
        let texts = words.into_iter().map(text).collect::<Result<Vec<CString>>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Words { _texts: texts, pointers })
    }
}

fn text(word: OsString) -> Result<CString> {
    CString::new(word.into_vec()).map_err(|_| Error::new(ErrorKind::InvalidInput, "a word has a NUL in it"))
}

/// Has `command` become its program by `execve` alone, with the arguments and the environment that it has now. To be called last.
///
/// # Errors
/// Where a word has a NUL in it.
pub(crate) fn by_the_kernel_alone(command: &mut Command) -> Result<()> {
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_owned);
    let arguments = Words::new(words.collect::<Vec<_>>())?;
    let changed = |name: &OsStr| command.get_envs().any(|(other, _)| other == name);
    let kept = std::env::vars_os().filter(|(name, _)| !changed(name));
    let given = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let variables: Vec<(OsString, OsString)> = kept.chain(given).collect();
    let places = places(command.get_program(), variables.iter().find(|(name, _)| name == "PATH"));
    let files = places.into_iter().map(|file| text(file.into_os_string())).collect::<Result<Vec<_>>>()?;
    let pair = |(name, value): (OsString, OsString)| {
        OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    let environment = Words::new(variables.into_iter().map(pair))?;
    // SAFETY: between fork and exec the closure makes one system call a place and allocates nothing; every list ends with a null.
    unsafe {
        command.pre_exec(move || {
            // Both are captured whole: a pointer alone could not go to another thread.
            let (arguments, environment): (&Words, &Words) = (&arguments, &environment);
            let mut refused = libc::ENOENT;
            for file in &files {
                libc::execve(file.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr());
                match *libc::__errno_location() {
                    libc::ENOENT | libc::ENOTDIR => {}
                    // Another place may have one that may be executed.
                    libc::EACCES => refused = libc::EACCES,
                    other => return Err(Error::from_raw_os_error(other)),
                }
            }
            Err(Error::from_raw_os_error(refused))
        });
    }
    Ok(())
}

/// Where a program may be, in the order of the search: a path is the place itself, a name is looked for in the folders of `PATH`.
fn places(program: &OsStr, path: Option<&(OsString, OsString)>) -> Vec<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.into()];
    }
    let folders = path.map_or(OsStr::new(USUAL_PATH), |(_, folders)| folders);
    std::env::split_paths(folders)
        // An empty folder is the current one.
        .map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder }.join(program))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    fn file(folder: &Path, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, contents).expect("writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its own");
        path
    }

    /// The output of a program, or why it was not started.
    fn run(command: &mut Command) -> std::result::Result<String, Option<i32>> {
        by_the_kernel_alone(command).expect("no NUL");
        let output = command.output().map_err(|error| error.raw_os_error())?;
        Ok(String::from_utf8(output.stdout).expect("text"))
    }

    #[test]
    fn what_the_kernel_does_not_execute_is_refused_and_no_shell_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let written = folder.path().join("written");
        let script = format!("echo ran > {}\n", written.display());
        for (name, contents) in
            [("empty", &b""[..]), ("no-first-line", script.as_bytes()), ("other", b"\x7fELF\x02\x01")]
        {
            let path = file(folder.path(), name, contents, 0o755);
            assert_eq!(run(&mut Command::new(&path)), Err(Some(libc::ENOEXEC)), "{name}");
        }
        assert!(!written.exists(), "a shell read it");
        let script = file(folder.path(), "script", b"#!/bin/sh\necho \"$1 $V\"\n", 0o755);
        let done = run(Command::new(&script).arg("a b").env("V", "c"));
        assert_eq!(done.as_deref(), Ok("a b c\n"));
        let plain = file(folder.path(), "plain", b"#!/bin/sh\n", 0o644);
        assert_eq!(run(&mut Command::new(plain)), Err(Some(libc::EACCES)));
        assert_eq!(run(&mut Command::new("/no/such/program")), Err(Some(libc::ENOENT)));
    }

    #[test]
    fn a_name_is_looked_for_in_the_path_and_one_that_may_be_executed_is_taken() {
        let (first, second) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        file(first.path(), "tool", b"#!/bin/sh\necho first\n", 0o644);
        file(second.path(), "tool", b"#!/bin/sh\necho second\n", 0o755);
        let both = std::env::join_paths([first.path(), second.path()]).expect("a path");
        let of = |name: &str, path: &OsStr| run(Command::new(name).env("PATH", path));
        assert_eq!(of("tool", &both).as_deref(), Ok("second\n"));
        assert_eq!(of("tool", first.path().as_os_str()), Err(Some(libc::EACCES)));
        assert_eq!(of("other", &both), Err(Some(libc::ENOENT)));
        assert_eq!(places(OsStr::new("a"), None), [PathBuf::from("/bin/a"), PathBuf::from("/usr/bin/a")]);
        let path = (OsString::from("PATH"), OsString::from(":/x"));
        assert_eq!(places(OsStr::new("a"), Some(&path)), [PathBuf::from("./a"), PathBuf::from("/x/a")]);
    }

    #[test]
    fn a_variable_that_is_taken_away_is_gone() {
        let done = run(Command::new("sh").args(["-c", "echo \"[$HOME]\""]).env_remove("HOME"));
        assert_eq!(done.as_deref(), Ok("[]\n"));
    }
}
