//! The example does in C what it does in Rust, with its triggers on and off.

use std::path::Path;
use std::process::Command;

const OFF: &str = "pushed 1000, refused 124, checked 0, longest 0\n";
const ON: &str = "pushed 1000, refused 124, checked 1000, longest 8\n";

fn output(command: &mut Command) -> String {
    let output = command.output().expect("the example runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn in_rust() {
    let program = env!("CARGO_BIN_EXE_horolog-example-tracing");
    assert_eq!(output(&mut Command::new(program)), OFF);
    assert_eq!(output(Command::new(program).env("HOROLOG_TRACE_ENABLE", "queue/*")), ON);
}

#[test]
fn in_c() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.path().join("queue");
    let built = Command::new("cc")
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
        .arg(&program)
        .arg(here.join("queue.c"))
        .arg("-I")
        .arg(here.join("../../front/tracer/include"))
        .status();
    let Ok(built) = built else {
        println!("SKIPPED: no C compiler");
        return;
    };
    assert!(built.success(), "the program compiles");
    assert_eq!(output(&mut Command::new(&program)), OFF);
    let test = std::env::current_exe().expect("this test's own path");
    let library = test.parent().expect("target/PROFILE/deps").join("libhorolog_trace.so");
    assert!(library.exists(), "{} is built with this package", library.display());
    let mut traced = Command::new(&program);
    traced.env("LD_PRELOAD", library).env("HOROLOG_TRACE_ENABLE", "queue/*");
    assert_eq!(output(&mut traced), ON);
}
