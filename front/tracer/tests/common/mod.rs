//! Building and running the programs of these tests.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What became of a build.
pub(crate) enum Built {
    Program(PathBuf),
    /// The compiler said no, and why.
    Refused(String),
    /// There is no such compiler or linker here; said as `SKIPPED`.
    Absent,
}

/// The folder of this package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The runtime library that was built for this test: beside the test, where the compiler puts it.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test's own path");
    let library = test.parent().expect("target/PROFILE/deps").join("libhorolog_trace.so");
    assert!(library.exists(), "{} is built with this package", library.display());
    library
}

/// Builds `source` (a file beside the tests, or a path) with `compiler` and `words`.
pub(crate) fn build(folder: &Path, compiler: &str, words: &[&str], source: &str) -> Built {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let program = folder.join(format!("program-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let output = Command::new(compiler)
        .args(words)
        .arg("-I")
        .arg(package().join("include"))
        .arg("-o")
        .arg(&program)
        .arg(package().join("tests/programs").join(source))
        .arg("-lpthread")
        .output();
    let Ok(output) = output else {
        println!("SKIPPED: there is no {compiler}");
        return Built::Absent;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Built::Program(program);
    }
    let linker = words.iter().find(|word| word.starts_with("-fuse-ld="));
    if let Some(linker) = linker
        && (said.contains("cannot find 'ld'") || said.contains("invalid linker name"))
    {
        println!("SKIPPED: {compiler} {linker}: no such linker");
        return Built::Absent;
    }
    Built::Refused(said)
}

/// What a program prints; it must end well.
pub(crate) fn lines(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).expect("text")
}
