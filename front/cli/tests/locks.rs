//! `horolog trace locks` as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn horolog() -> Command {
    Command::new(env!("CARGO_BIN_EXE_horolog"))
}

/// Whether the lock library was built beside the command, as building the workspace does.
fn has_library() -> bool {
    let folder = Path::new(env!("CARGO_BIN_EXE_horolog")).parent().map(Path::to_owned).unwrap_or_default();
    let there =
        ["libhorolog_locks.so", "deps/libhorolog_locks.so"].iter().any(|name| folder.join(name).exists());
    if !there {
        println!("SKIPPED: the lock library is not built: cargo build -p horolog-locks");
    }
    there
}

/// Compiles a program; `None` (said) without a C compiler.
fn compile(folder: &Path, words: &[&str], source: &str) -> Option<PathBuf> {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, source).expect("writable");
    let compiled = Command::new("cc").args(["-O1", "-o"]).args([&program, &file]).args(words).output();
    match compiled {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            println!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("SKIPPED: no C compiler: {error}");
            None
        }
    }
}

const NESTED: &str = "
#include <pthread.h>
#include <stdio.h>
pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&outer);
        pthread_mutex_lock(&inner);
        pthread_mutex_unlock(&inner);
        pthread_mutex_unlock(&outer);
    }
    puts(\"the program's own output\");
    return 3;
}
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_program_is_studied_as_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), &["-g"], NESTED).filter(|_| has_library()) else { return };
    let output =
        horolog().args(["trace", "locks", "--format", "json", "--"]).arg(&program).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone on the output");
    assert_eq!((&report["schema"], &report["counts"]["lost"]), (&"horolog.locks/1".into(), &0.into()));
    let lock = |name: &str| {
        let rows = report["locks"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == *format!("program!{name}")).cloned().unwrap_or_default()
    };
    assert_eq!(
        (&lock("outer")["sections"], &lock("outer")["depths"]),
        (&1000.into(), &serde_json::json!([1000]))
    );
    assert_eq!(lock("inner")["depths"], serde_json::json!([0, 1000]));
    assert!(lock("inner")["site"].as_str().is_some_and(|site| site.starts_with("program!main+")), "{report}");
    let class = &report["classes"][0];
    assert_eq!(
        (&class["name"], &class["sections"], &class["contended"]),
        (&"mutex".into(), &2000.into(), &0.into())
    );
    let counted: u64 =
        class["histogram"].as_array().expect("bins").iter().filter_map(|bin| bin[2].as_u64()).sum();
    assert_eq!(counted, 2000);
    assert!(text(&output.stderr).contains("the program's own output"), "{}", said(&output));
    assert!(text(&output.stderr).contains("exit status: 3"), "{}", said(&output));
}

#[test]
fn the_table_names_locks_call_sites_and_depths() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), &[], NESTED).filter(|_| has_library()) else { return };
    let output = horolog().args(["trace", "locks", "--"]).arg(&program).output().expect("runs");
    let table = text(&output.stdout);
    assert!(
        table.contains("2000 critical sections") && table.contains("6000 lock events, 0 lost"),
        "{table}"
    );
    assert!(table.contains("program!inner (mutex)") && table.contains("program!main+"), "{table}");
    assert!(table.contains("50.00 %"), "{table}");
}

#[test]
fn a_recorded_trace_gives_the_same_study() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), &[], NESTED).filter(|_| has_library()) else { return };
    let trace = folder.path().join("trace");
    let mut record = horolog();
    record.args(["trace", "record", "--locks", "--out"]).arg(&trace).arg("--").arg(&program);
    let recorded = record.output().expect("runs");
    assert!(trace.exists(), "{}", said(&recorded));
    let output = horolog().args(["trace", "locks", "--format", "json"]).arg(&trace).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}{}", said(&recorded), said(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["counts"]["sections"], &report["counts"]["lost"]), (&2000.into(), &0.into()));
    assert_eq!(report["classes"][0]["depths"], serde_json::json!([1000, 1000]));
    assert!(report["locks"][0]["name"].as_str().is_some_and(|name| name.starts_with("program!")), "{report}");
    // Any other trace is refused with the way to record one.
    let mut simulate = horolog();
    let system = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/quick-start/system.toml");
    simulate.args(["simulate", system, "--for", "10 ms", "--trace"]).arg(folder.path().join("other"));
    if simulate.output().is_ok_and(|output| output.status.success()) {
        let refused =
            horolog().args(["trace", "locks"]).arg(folder.path().join("other")).output().expect("runs");
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(text(&refused.stderr).contains("trace record --locks"), "{}", said(&refused));
    }
}

#[test]
fn a_program_that_does_not_end_is_asked_to() {
    if !has_library() {
        return;
    }
    let output =
        horolog().args(["trace", "locks", "--for", "100 ms", "--", "sleep", "3600"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(text(&output.stderr).contains("signal: 15"), "{}", said(&output));
    assert!(said(&output).contains("only 0 lock events"), "{}", said(&output));
}

#[test]
fn a_static_program_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), &["-static"], "int main(void) { return 0; }") else { return };
    let output = horolog().args(["trace", "locks", "--"]).arg(&program).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("statically linked"), "{}", said(&output));
    let output = horolog().args(["trace", "locks", "--", "/no/such/program"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
