//! The example runs for real and prints what the C library of `examples/user-library` prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_controls_for_a_second() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../user-library/system.toml");
    let ran = Command::new(env!("CARGO_BIN_EXE_horolog-example-rust-api"))
        .arg(&file)
        .output()
        .expect("the example starts");
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(3) {
        println!("SKIPPED: {}", errors.trim());
        return;
    }
    // 1: a loaded machine may make a job late.
    assert!(matches!(ran.status.code(), Some(0 | 1)), "{}: {errors}", ran.status);
    let line =
        out.lines().find(|line| line.starts_with("control: ")).expect("the controller says how far it came");
    let jobs: i32 =
        line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number of jobs");
    assert!((1..=101).contains(&jobs), "{line}");
    // Each job goes half of the way that is left.
    let position = 1000.0 * (1.0 - 0.5_f64.powi(jobs));
    assert_eq!(line, format!("control: {jobs} jobs, position {position:.3}"));
}

#[test]
fn without_a_file_it_says_what_is_missing() {
    let ran =
        Command::new(env!("CARGO_BIN_EXE_horolog-example-rust-api")).output().expect("the example starts");
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("give the system file"));
}
