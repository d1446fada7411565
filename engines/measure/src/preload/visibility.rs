//! Which programs a preloaded library cannot look into.

use horolog_sys::Error;
use object::{Object, ObjectSection};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a preloaded library does not reach a program, or why its locks stay unseen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Obstacle {
    /// Statically linked: no dynamic linker that would load the library.
    Static,
    /// For another processor or word size than the library.
    OtherArchitecture,
    /// Linked with another C library than glibc, for which the library is made.
    OtherLibc,
    /// Set-user-id, set-group-id or with file capabilities: the dynamic linker then ignores `LD_PRELOAD`.
    Privileged,
    /// Contains the Go runtime, whose locks are its own (some cgo code may still lock through the C library).
    Go,
    /// Contains Rust code, whose `std::sync` locks are futexes of its own (C code inside is seen).
    Rust,
}

impl Obstacle {
    /// Whether nothing at all can be seen, rather than a part.
    #[must_use]
    pub const fn is_total(self) -> bool {
        !matches!(self, Obstacle::Go | Obstacle::Rust)
    }

    /// The reason in words.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Obstacle::Static => "it is statically linked, so that no library can be preloaded",
            Obstacle::OtherArchitecture => {
                "it is built for another processor or word size than the libraries that horolog preloads"
            }
            Obstacle::OtherLibc => "its C library is not glibc, for which the preloaded libraries are made",
            Obstacle::Privileged => {
                "it changes its privileges when it starts, so that the dynamic linker ignores LD_PRELOAD; \
                 run a copy without those bits"
            }
            Obstacle::Go => "it contains the Go runtime, whose locks do not go through the C library",
            Obstacle::Rust => "it contains Rust code, whose std::sync locks do not go through the C library",
        }
    }
}

/// What was found out about a program before it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visibility {
    /// The file that was looked at: for a script its interpreter.
    pub file: PathBuf,
    /// What stands in the way.
    pub obstacles: Vec<Obstacle>,
}

impl Visibility {
    /// The reason why nothing can be seen, if so.
    #[must_use]
    pub fn blind(&self) -> Option<Obstacle> {
        self.obstacles.iter().copied().find(|obstacle| obstacle.is_total())
    }
}

/// Looks at the program that `command` would start; `None` where there is no such file, which starting it will tell.
#[must_use]
pub fn visibility(command: &str) -> Option<Visibility> {
    let mut file = find_program(command)?;
    // A script's interpreter may be a script.
    for _ in 0..4 {
        let bytes = std::fs::read(&file).ok()?;
        match interpreter(&bytes) {
            Some(next) => file = find_program(&next)?,
            None => {
                let mut obstacles = of_file(&bytes);
                if is_privileged(&file) {
                    obstacles.push(Obstacle::Privileged);
                }
                return Some(Visibility { file, obstacles });
            }
        }
    }
    None
}

/// The file that a shell would start for `command`: as it stands where it has a slash, else the first in `PATH`.
#[must_use]
pub fn find_program(command: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|path| is_program(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(|file| is_program(file))
}

/// Why there is no program to start, with the folders of `PATH` into which this user may not look: it may lie there.
#[must_use]
pub fn no_such_program(command: &str) -> Error {
    if let Ok(facts) = Path::new(command).metadata()
        && command.contains('/')
    {
        return match facts.is_dir() {
            true => Error::bad_input(command, "it is a folder", "name a program in it"),
            false => {
                Error::bad_input(command, "it may not be executed", "chmod +x, or name its interpreter first")
            }
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let closed: Vec<String> = std::env::split_paths(&path)
        .filter(|_| !command.contains('/'))
        .filter(|folder| {
            let looked = folder.join(command).metadata();
            looked.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        })
        .map(|folder| folder.display().to_string())
        .collect();
    let remedy = match closed[..] {
        [] => "check the name and PATH".to_owned(),
        _ => format!("check the name; of PATH you may not look into {}", closed.join(", ")),
    };
    Error::bad_input(command, "there is no such program", remedy)
}

/// The program that runs a script; `#!/usr/bin/env python3` is run by `python3`.
fn interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line.get(..line.len().min(255))?).into_owned();
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let is_env = Path::new(first).file_name().is_some_and(|name| name == "env");
    let second = words.find(|word| is_env && !word.starts_with('-') && !word.contains('='));
    Some(second.unwrap_or(first).to_owned())
}

fn of_file(bytes: &[u8]) -> Vec<Obstacle> {
    let Ok(file) = object::File::parse(bytes) else { return vec![Obstacle::OtherArchitecture] };
    let own = if cfg!(target_arch = "x86_64") {
        object::Architecture::X86_64
    } else {
        object::Architecture::Aarch64
    };
    if file.architecture() != own || !file.is_64() {
        return vec![Obstacle::OtherArchitecture];
    }
    let mut obstacles = Vec::new();
    match file.section_by_name(".interp").and_then(|section| section.data().ok()) {
        None => obstacles.push(Obstacle::Static),
        Some(linker) if contains(linker, b"musl") => obstacles.push(Obstacle::OtherLibc),
        Some(_) => {}
    }
    if file.section_by_name(".go.buildinfo").is_some() || file.section_by_name(".note.go.buildid").is_some() {
        obstacles.push(Obstacle::Go);
    }
    // Messages of Rust's standard library name its source files by the compiler's commit.
    if file
        .section_by_name(".rodata")
        .and_then(|s| s.data().ok())
        .is_some_and(|data| contains(data, b"/rustc/"))
    {
        obstacles.push(Obstacle::Rust);
    }
    obstacles
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn is_privileged(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    let Ok(own) = std::fs::metadata("/proc/self") else { return false };
    let mode = metadata.permissions().mode();
    (own.uid() != 0 && horolog_sys::process::has_file_capabilities(file))
        || (mode & 0o4000 != 0 && metadata.uid() != own.uid())
        || (mode & 0o2010 == 0o2010 && metadata.gid() != own.gid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreter() {
        assert_eq!(interpreter(b"#!/bin/sh -e\nexit"), Some("/bin/sh".to_owned()));
        assert_eq!(interpreter(b"#! /usr/bin/env -S A=1 python3 -u\n"), Some("python3".to_owned()));
        assert_eq!(interpreter(b"\x7fELF"), None);
        assert_eq!(interpreter(b"#!"), None);
    }

    #[test]
    fn a_dynamic_program_is_seen_and_this_rust_program_in_part() {
        let shell = visibility("sh").expect("a shell");
        assert_eq!((shell.blind(), shell.obstacles.as_slice()), (None, &[][..]));
        let own = std::env::current_exe().expect("a program");
        let own = visibility(&own.to_string_lossy()).expect("this program");
        assert_eq!((own.blind(), own.obstacles.as_slice()), (None, &[Obstacle::Rust][..]));
        assert_eq!(visibility("no-such-program"), None);
    }

    #[test]
    fn a_static_program_and_a_text_are_not_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("text");
        std::fs::write(&text, "no program").expect("writable");
        assert_eq!(visibility(&text.to_string_lossy()), None, "it is not executable");
        assert!(no_such_program(&text.to_string_lossy()).to_string().contains("may not be executed"));
        assert!(no_such_program("/").to_string().contains("it is a folder"));
        assert!(no_such_program("/no/such").to_string().contains("there is no such program"));
        std::fs::set_permissions(&text, PermissionsExt::from_mode(0o755)).expect("ours");
        let found = visibility(&text.to_string_lossy()).expect("a file");
        assert_eq!(found.blind(), Some(Obstacle::OtherArchitecture));
        let (source, program) = (folder.path().join("empty.c"), folder.path().join("empty"));
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("writable");
        let compiled =
            std::process::Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).status();
        if !compiled.is_ok_and(|status| status.success()) {
            println!("SKIPPED: a static program: no C compiler or no static C library");
            return;
        }
        let found = visibility(&program.to_string_lossy()).expect("a file");
        assert_eq!(found.blind(), Some(Obstacle::Static));
    }
}
