//! Libraries that are preloaded into traced programs: where they lie, how the dynamic linker is told, and which programs
//! they cannot reach.

mod visibility;

pub use visibility::{Obstacle, Visibility, find_program, no_such_program, visibility};

use horolog_sys::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The runtime of programs with triggers.
pub const TRACE_LIBRARY: &str = "libhorolog_trace.so";
/// The library that traces locks.
pub const LOCKS_LIBRARY: &str = "libhorolog_locks.so";

/// Names the folder of both where they do not lie beside the program.
const FOLDER_VARIABLE: &str = "HOROLOG_LIBRARY_PATH";

/// The folders in which libraries are looked for, beside an executable in `folder`: in `deps` (every build of the command by cargo makes
/// them there; beside the command a copy of an earlier build may lie), there, and in `../lib` (an installation).
fn folders(folder: &Path) -> [PathBuf; 4] {
    [folder.join("deps"), folder.to_owned(), folder.join("../lib"), folder.join("../lib/horolog")]
}

/// Finds a library: the file `given`, else in the folder that `HOROLOG_LIBRARY_PATH` names, else beside this executable, else beside the
/// `horolog` of `PATH`, of which this one may be a copy.
///
/// # Errors
/// Bad input where `given` is no file; not permitted, with the places, where the library is nowhere.
pub fn find_library(name: &str, given: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(given) = given {
        let path = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Error::bad_input(given.display().to_string(), "there is no such library", "check the path"))
        };
    }
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let executable = std::env::current_exe().ok();
    let original = find_program("horolog").and_then(|path| path.canonicalize().ok());
    let beside = |file: Option<&Path>| file.and_then(Path::parent).map(folders).into_iter().flatten();
    let beside = beside(executable.as_deref()).chain(beside(original.as_deref()));
    let mut looked: Vec<PathBuf> = Vec::new();
    for folder in named.into_iter().chain(beside) {
        let place = folder.join(name);
        if !looked.contains(&place) {
            looked.push(place);
        }
    }
    if let Some(found) = looked.iter().find(|path| path.is_file()) {
        return Ok(found.canonicalize().unwrap_or_else(|_| found.clone()));
    }
    let places: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
    Err(Error::unsupported(
        format!("{name}, looked for at {}", places.join(", ")),
        format!(
            "a copy of the command has it where it lies in the same bin/, or where {FOLDER_VARIABLE} names the folder of the original; `cargo \
             install` installs no libraries: the Debian package and the tarball have them (docs/install.md), and so has a checkout after \
             `cargo build --release`"
        ),
    ))
}

/// Stands before a library's path in `LD_PRELOAD`: glibc's dynamic linker puts the folder of the system's libraries there,
/// from which the way leads back to the root. musl's does not know `$LIB`, finds nothing, and goes on without a word; it
/// would end the program over a library that is made for glibc.
const FOR_GLIBC_ALONE: &str = "/usr/$LIB/../../..";

/// What `LD_PRELOAD` must say: these libraries before those that are there already.
///
/// # Errors
/// Bad input where a path holds a space or a colon, between which the dynamic linker cannot tell.
pub fn variable(libraries: &[PathBuf]) -> Result<OsString, Error> {
    let mut words = OsString::new();
    for library in libraries {
        if library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
            return Err(Error::bad_input(
                library.display().to_string(),
                "the dynamic linker cannot preload from a path with spaces or colons",
                format!("copy the library elsewhere and name its folder in {FOLDER_VARIABLE}"),
            ));
        }
        if !words.is_empty() {
            words.push(":");
        }
        // Where the system's libraries are elsewhere, the way would lead nowhere.
        if Path::new("/usr/lib").exists() && library.is_absolute() {
            words.push(FOR_GLIBC_ALONE);
        }
        words.push(library);
    }
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        words.push(":");
        words.push(others);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_nowhere_is_told_with_the_places() {
        let error = find_library("libnowhere.so", None).expect_err("there is none");
        assert!(error.is_not_permitted() && error.to_string().contains("deps/libnowhere.so"), "{error}");
        let error =
            find_library(TRACE_LIBRARY, Some(Path::new("/nowhere/lib.so"))).expect_err("there is none");
        assert!(error.is_bad_input(), "{error}");
    }

    #[test]
    fn a_path_that_the_linker_would_split_is_refused() {
        assert!(variable(&[PathBuf::from("/a b/lib.so")]).is_err_and(|error| error.is_bad_input()));
        let two = variable(&["/a/x.so".into(), "/a/y.so".into()]).expect("plain paths");
        let both = "/usr/$LIB/../../../a/x.so:/usr/$LIB/../../../a/y.so";
        assert!(two.to_string_lossy().starts_with(both), "{two:?}");
    }
}
