//! `cargo xtask dist`: the command as it is shipped.

use crate::step::succeeds;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode};

/// What is written beside the program, and the words that print it.
const FILES: [(&str, &[&str]); 4] = [
    ("horolog.1", &["man"]),
    ("horolog.bash", &["completions", "bash"]),
    ("_horolog", &["completions", "zsh"]),
    ("horolog.fish", &["completions", "fish"]),
];

/// Builds with fat LTO and every format, and writes completions and the manual page beside the program.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut build = Command::new("cargo");
    build.args(["build", "--profile", "dist", "--features", "parquet"]).current_dir(root);
    if !succeeds(&mut build) {
        return ExitCode::FAILURE;
    }
    let folder = root.join("target/dist");
    if let Err(error) = libraries(root, &folder) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    for (name, words) in FILES {
        let written = File::create(folder.join(name))
            .is_ok_and(|file| succeeds(Command::new(folder.join("horolog")).args(words).stdout(file)));
        if !written {
            eprintln!("cannot write {}", folder.join(name).display());
            return ExitCode::FAILURE;
        }
    }
    println!(
        "{}: horolog, its libraries, include/horolog, its manual page and its completions",
        folder.display()
    );
    ExitCode::SUCCESS
}

/// Puts what traced programs load, link and include beside the program, where `horolog` looks for it.
fn libraries(root: &Path, folder: &Path) -> Result<(), String> {
    // The build of all default members leaves them there; a library that is missing was not built.
    for name in ["libhorolog_trace.so", "libhorolog_trace.a", "libhorolog_locks.so"] {
        if !folder.join(name).is_file() {
            return Err(format!("{} was not built", folder.join(name).display()));
        }
    }
    let include = folder.join("include/horolog");
    std::fs::create_dir_all(&include).map_err(|error| format!("{}: {error}", include.display()))?;
    std::fs::copy(root.join("front/tracer/include/horolog/trace.h"), include.join("trace.h"))
        .map(drop)
        .map_err(|error| format!("{}/trace.h: {error}", include.display()))
}
