//! `horolog trace events`, `enable` and `disable` on a running C program that was built with the header alone.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

const SOURCE: &str = r#"
#include <horolog/trace.h>
#include <pthread.h>
#include <stdio.h>
static volatile int sink;
static volatile long checks;
static void check(const struct horolog_event *event, const uint64_t *words, uint32_t count)
{
	(void)event, (void)words, (void)count;
	checks++;
}
__attribute__((noinline)) static void acquire(int i) { HOROLOG_TRIGGER("lock/acquire", &sink, i); sink++; }
__attribute__((noinline)) static void release(int i) { HOROLOG_TRIGGER_CALLBACK("lock/release", check, i > 3); sink--; }
static void *work(void *p) { for (;;) { acquire(3); release(3); } return p; }
int main(void)
{
	char line[16];
	pthread_t thread;
	pthread_create(&thread, 0, work, 0);
	while (fgets(line, sizeof line, stdin)) { printf("%ld\n", checks); fflush(stdout); }
	return 0;
}
"#;

struct Traced {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Traced {
    fn start(folder: &Path) -> Option<Traced> {
        let source = folder.join("locks.c");
        std::fs::write(&source, SOURCE).expect("writable");
        let program = folder.join("locks");
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tracer/include");
        let built = Command::new("cc")
            .args(["-O2", "-o"])
            .arg(&program)
            .arg(&source)
            .arg("-I")
            .arg(include)
            .arg("-lpthread")
            .status();
        let Ok(built) = built else {
            println!("SKIPPED: no C compiler");
            return None;
        };
        assert!(built.success(), "the program compiles");
        let mut child =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut traced = Traced { child, answers };
        traced.checks();
        Some(traced)
    }

    /// How often the callback has run; the program answers only while it runs.
    fn checks(&mut self) -> i64 {
        self.child.stdin.as_mut().expect("piped").write_all(b"?\n").expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        line.trim().parse().expect("a number")
    }

    fn horolog(&self, verb: &str, words: &[&str]) -> Output {
        let pid = self.child.id().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
        command.args(["trace", verb, &pid]).args(words).output().expect("horolog runs")
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_without_a_runtime_is_switched_from_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut traced) = Traced::start(folder.path()) else { return };
    let listed = traced.horolog("events", &[]);
    if listed.status.code() == Some(3) {
        println!("SKIPPED: {}", text(&listed.stderr));
        return;
    }
    assert_eq!(listed.status.code(), Some(0), "{}", text(&listed.stderr));
    let shown = text(&listed.stdout);
    assert!(shown.contains("lock/acquire") && shown.contains("sink address, i signed"), "{shown}");
    // Its place, and in which function.
    assert!(shown.contains("locks.c:12 acquire") && shown.contains("locks.c:13 release"), "{shown}");
    assert_eq!(traced.checks(), 0);

    let on = traced.horolog("enable", &["lock/*"]);
    assert_eq!(on.status.code(), Some(0), "{}", text(&on.stderr));
    let said = text(&on.stdout);
    assert!(said.contains("enabled: 2 events, 2 sites, 2 of them switched"), "{said}");
    assert!(said.contains("stood still for"), "{said}");
    while traced.checks() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }

    let off = traced.horolog("disable", &["lock/acquire", "lock/release", "--format", "json"]);
    assert_eq!(off.status.code(), Some(0), "{}", text(&off.stderr));
    let json: serde_json::Value = serde_json::from_slice(&off.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["changed"]), (&"horolog.switch/1".into(), &2.into()));
    assert!(json["stood_still_ns"].as_u64().is_some_and(|ns| ns > 0));
    let events = traced.horolog("events", &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&events.stdout).expect("JSON");
    assert_eq!(json["events"][0]["name"], "lock/acquire");
    assert_eq!(json["events"][0]["enabled"], 0);
    assert_eq!(json["events"][0]["arguments"][1]["name"], "i");
    assert_eq!(json["events"][0]["places"][0]["line"], 12);
    assert!(json["events"][0]["unheard"].as_u64().is_some_and(|count| count > 0), "{json}");
}

#[test]
fn an_unknown_name_gets_the_nearest_and_exit_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(traced) = Traced::start(folder.path()) else { return };
    let refused = traced.horolog("enable", &["lock/aquire"]);
    if refused.status.code() == Some(3) {
        println!("SKIPPED: {}", text(&refused.stderr));
        return;
    }
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("no event is called `lock/aquire`; the nearest: lock/acquire"), "{said}");
}

#[test]
fn a_process_that_does_not_exist_is_bad_input() {
    let output = Command::new(env!("CARGO_BIN_EXE_horolog"))
        .args(["trace", "events", "2147483646"])
        .output()
        .expect("horolog runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no such process"), "{}", text(&output.stderr));
}
