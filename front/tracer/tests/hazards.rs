//! What an enabled trigger must not disturb: red zone, stack alignment, registers, unwinding, signal handlers.

mod common;

use common::{Built, build, library, lines};
use std::process::Command;

#[test]
fn enabled_triggers_disturb_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for compiler in ["g++", "clang++"] {
        for flags in [&["-O2"][..], &["-O0"], &["-O3", "-flto"], &["-O2", "-fcf-protection=full"]] {
            let mut words = vec!["-std=c++17", "-Wall", "-Wextra", "-Werror"];
            words.extend(flags);
            let program = match build(folder.path(), compiler, &words, "hazards.cpp") {
                Built::Program(program) => program,
                Built::Refused(reason) => panic!("{compiler} {flags:?}: {reason}"),
                Built::Absent => continue,
            };
            let off = lines(&mut Command::new(&program));
            for method in ["kernel", "remap"] {
                let mut traced = Command::new(&program);
                traced.env("LD_PRELOAD", library()).env("HOROLOG_TRACE_ENABLE", "hazard/*");
                traced.env("HOROLOG_TRACE_SWITCH", method);
                compare(&format!("{compiler} {flags:?} {method}"), &off, &lines(&mut traced));
            }
        }
    }
}

fn compare(what: &str, off: &str, on: &str) {
    let (off, on): (Vec<&str>, Vec<&str>) = (off.lines().collect(), on.lines().collect());
    assert_eq!(off[..2], on[..2], "{what}: red zone and vector registers");
    assert_eq!(
        (off[2], on[2]),
        ("unwound 42", "unwound 42"),
        "{what}: an exception across frames with sites"
    );
    assert_eq!(
        (off[3], on[3]),
        ("invariant 9", "invariant broken 7"),
        "{what}: an exception out of a callback"
    );
    assert_eq!((off[4], on[4]), ("left 10", "left 4"), "{what}: frames left by unwinding");
    assert_eq!((off[5], on[5]), ("backtrace none", "backtrace whole"), "{what}: a backtrace from a callback");
    // Leaf 1, vectors 8, unwinding 6, the handler 1.
    assert_eq!((off[6], on[6]), ("calls 0 misaligned 0", "calls 16 misaligned 0"), "{what}");
}
