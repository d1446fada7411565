//! Where the libraries lie that are preloaded into traced programs.

use crate::RecordingError;
use std::path::{Path, PathBuf};

/// The runtime of programs with triggers.
pub const TRACE: &str = "libhorolog_trace.so";
/// The library that traces locks.
pub const LOCKS: &str = "libhorolog_locks.so";

/// The folders in which libraries are looked for, beside an executable in `folder`: there, in `deps` (a build by cargo) and
/// in `../lib` (an installation).
fn folders(folder: &Path) -> [PathBuf; 4] {
    [folder.to_owned(), folder.join("deps"), folder.join("../lib"), folder.join("../lib/horolog")]
}

/// Finds a library: the file `given`, else in the folder that `HOROLOG_LIBRARY_PATH` names, else beside this executable.
///
/// # Errors
/// Where it is nowhere; the message says where it was looked for.
pub fn find(name: &str, given: Option<&Path>) -> Result<PathBuf, RecordingError> {
    if let Some(given) = given {
        let path = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        return if path.is_file() {
            Ok(path)
        } else {
            Err(RecordingError::bad_input(format_args!("{}: there is no such library", given.display())))
        };
    }
    let named = std::env::var_os("HOROLOG_LIBRARY_PATH").map(PathBuf::from);
    let executable = std::env::current_exe().ok();
    let beside = executable.as_deref().and_then(Path::parent).map(folders).into_iter().flatten();
    let looked: Vec<PathBuf> = named.into_iter().chain(beside).map(|folder| folder.join(name)).collect();
    if let Some(found) = looked.iter().find(|path| path.is_file()) {
        return Ok(found.canonicalize().unwrap_or_else(|_| found.clone()));
    }
    let places: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
    Err(RecordingError::not_permitted(format_args!(
        "{name} is nowhere to be found ({}); build it with `cargo build --release -p horolog-tracer -p horolog-locks`, \
         or name its folder in HOROLOG_LIBRARY_PATH",
        places.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_nowhere_is_told_with_the_places() {
        let error = find("libnowhere.so", None).expect_err("there is none");
        assert!(error.is_not_permitted() && error.to_string().contains("deps/libnowhere.so"), "{error}");
        let error = find(TRACE, Some(Path::new("/nowhere/lib.so"))).expect_err("there is none");
        assert!(error.is_bad_input(), "{error}");
    }
}
