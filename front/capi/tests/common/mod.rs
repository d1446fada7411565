//! What the tests with C code share.

// No test program uses all of it.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

/// Builds `libtest.so` in the folder against our header, without a warning. Whether it is there; false, said aloud, without a C compiler.
pub(crate) fn build(folder: &Path, source: &Path) -> bool {
    let output = Command::new("cc")
        .args([
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-function",
            "-shared",
            "-fPIC",
            "-pthread",
            "-I",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg("-o")
        .args([&folder.join("libtest.so"), source])
        .output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(error) => {
            println!("SKIPPED: no C compiler: {error}");
            false
        }
    }
}

/// A folder with `libtest.so` of this source, as [`build`].
pub(crate) fn library(source: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("test.c");
    std::fs::write(&file, source).expect("writable");
    build(folder.path(), &file).then_some(folder)
}
