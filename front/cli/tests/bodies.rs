//! Bodies that leave processes behind, or do not come to an end before the start.

mod common;

use common::{
    Done, SYSTEM, done, end, folder, horolog, inside, is_alive, real_time, signal, start, wait_for,
};
use std::path::Path;
use std::process::Command;

/// The first task's body is in this C code, built into the folder. `None`, said aloud, without a compiler.
fn with_code(source: &str, init: &str) -> Option<(tempfile::TempDir, String)> {
    let body = format!("body = {{ library = \"libbody.so\", symbol = \"step\"{init} }}");
    let (place, file) = folder(&SYSTEM.replacen("body = { spin = \"1 ms\" }", &body, 1));
    let code = place.path().join("code.c");
    std::fs::write(&code, source).expect("writable");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(place.path().join("libbody.so")).arg(&code);
    match compiler.output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("SKIPPED: no C compiler: {error}");
            return None;
        }
    }
    Some((place, file))
}

/// Runs it with journals in its own folder.
fn with_journals<'a>(place: &tempfile::TempDir, words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = horolog(words);
    command.env("XDG_RUNTIME_DIR", inside(place, "")).env("LEFT", inside(place, "left"));
    command
}

/// Forks twice in its first job, once more into another program; their numbers stand in a file.
const FORKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void daemon_of(int program) {
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        FILE *file = fopen(getenv("LEFT"), "a");
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        if (program) execlp("sleep", "sleep", "3600", (char *)0);
        for (;;) pause();
    }
    waitpid(child, 0, 0);
}
static int jobs;
int step(void *job) { (void)job; if (jobs++ == 0) { daemon_of(0); daemon_of(1); } return 0; }
"#;

fn left(place: &tempfile::TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(inside(place, "left")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A child that could not become another program calls exit, or crashes: the run is not the child.
#[test]
fn the_end_of_a_child_is_not_the_end_of_the_run() {
    let Some(_alone) = real_time() else { return };
    for how in ["exit(127)", "*(volatile int *)0 = 0"] {
        let code = format!(
            "#include <stdlib.h>\n#include <unistd.h>\nstatic int jobs;\nint step(void *job) {{ (void)job;\n\
             if (jobs++ == 2 && fork() == 0) {{ execl(\"/nonexistent\", \"x\", (char *)0); {how}; }} return 0; }}\n"
        );
        let Some((place, file)) = with_code(&code, "") else { return };
        let words = ["run", &file, "--for", "400ms", "--format", "json"];
        let ended = Done::of(&mut with_journals(&place, words));
        assert!(ended.no_panic().json()["ended_by"].is_null(), "{how}: {ended:?}");
    }
}

/// What a body prints may lack the end of its line; the closing line has a line of its own all the same.
#[test]
fn an_unfinished_line_of_a_body_does_not_take_the_closing_line() {
    let Some(_alone) = real_time() else { return };
    let code =
        "#include <stdio.h>\nint step(void *job) { (void)job; fputs(\"half a line\", stderr); return 0; }\n";
    let Some((place, file)) = with_code(code, "") else { return };
    for verb in ["run", "loop"] {
        let out = inside(&place, "out");
        let mut words = vec![verb, &file, "--for", "300ms"];
        words.extend(["--out", &out].into_iter().filter(|_| verb == "loop"));
        let ended = Done::of(&mut with_journals(&place, words));
        assert!(ended.no_panic().err.contains("half a line"), "{ended:?}");
        let last = ended.err.lines().rfind(|line| !line.starts_with("  help: ")).expect("lines");
        let begins = ["holds: ", "no: ", "undecided: "].iter().any(|word| last.starts_with(word));
        assert!(begins, "{verb}: {last}");
    }
}

#[test]
fn what_bodies_fork_ends_with_the_run() {
    let Some(_alone) = real_time() else { return };
    let Some((place, file)) = with_code(FORKS, "") else { return };
    let ended = Done::of(&mut with_journals(&place, ["run", &file, "--for", "500ms"]));
    let processes = left(&place);
    assert_eq!(processes.len(), 2, "{ended:?}");
    assert!(!processes.iter().any(|process| is_alive(process)), "{processes:?}");
    let told = "2 processes that its bodies had started outlived the run and were ended";
    assert!(ended.no_panic().out.contains(told), "{ended:?}");
}

/// By whatever it ends, the guardian looks for what is left.
#[test]
fn what_bodies_fork_ends_with_a_run_that_is_killed() {
    let Some(_alone) = real_time() else { return };
    let Some((place, file)) = with_code(FORKS, "") else { return };
    for by in ["KILL", "TERM", "HUP", "INT"] {
        let _ = std::fs::remove_file(inside(&place, "left"));
        let run = start(&mut with_journals(&place, ["run", &file, "--for", "60s"]));
        wait_for("the bodies' processes", || left(&place).len() == 2);
        let processes = left(&place);
        assert!(processes.iter().all(|process| is_alive(process)), "{processes:?}");
        signal(run.id(), by);
        let _ = end(run);
        wait_for("the guardian", || !processes.iter().any(|process| is_alive(process)));
    }
    // Where the guardian is killed as well, `doctor` sees it and ends them.
    let _ = std::fs::remove_file(inside(&place, "left"));
    let run = start(&mut with_journals(&place, ["run", &file, "--for", "60s"]));
    wait_for("the bodies' processes", || left(&place).len() == 2);
    let processes = left(&place);
    let guardian = common::guardian_of(run.id()).expect("it is guarded");
    signal(run.id(), "STOP");
    signal(guardian, "KILL");
    signal(run.id(), "KILL");
    wait_for("the command's end", || !is_alive(&run.id().to_string()));
    assert!(processes.iter().all(|process| is_alive(process)), "{processes:?}");
    let seen = Done::of(&mut with_journals(&place, ["doctor"]));
    assert!(seen.out.contains("--restore"), "{seen:?}");
    let restored = Done::of(&mut with_journals(&place, ["doctor", "--restore"]));
    assert!(!processes.iter().any(|process| is_alive(process)), "{restored:?}");
    // They had its pipes.
    let _ = end(run);
}

#[test]
fn who_does_not_return_before_the_start_is_named() {
    let Some(_alone) = real_time() else { return };
    let source = "#include <unistd.h>\nint ready(int count, char **words) { (void)count; (void)words; for (;;) pause(); }\n\
                  int step(void *job) { (void)job; return 0; }\n";
    let Some((place, file)) = with_code(source, ", init = \"ready\"") else { return };
    let out = inside(&place, "out");
    for words in [&["run", &file, "--for", "20s"][..], &["loop", &file, "--for", "20s", "--out", &out]] {
        let waiting = start(&mut with_journals(&place, words.iter().copied()));
        std::thread::sleep(std::time::Duration::from_secs(2));
        signal(waiting.id(), "INT");
        let ended = end(waiting);
        let line = "undecided: stopped before the start: `ready` of libbody.so (task e2e-fast) did not return (exit 4)";
        assert!(ended.no_panic().status == Some(4) && ended.err.contains(line), "{ended:?}");
    }
    assert!(Path::new(&out).join("report.html").exists());
}

/// With the task, the place of `init` in the file and what to do.
#[test]
fn an_init_that_fails_is_told_at_its_place() {
    let source = "int ready(int count, char **words) { (void)words; return 3 + count; }\n\
                  int step(void *job) { (void)job; return 0; }\n";
    let Some((place, file)) = with_code(source, ", init = \"ready\", arguments = [\"a\"]") else { return };
    let text = std::fs::read_to_string(&file).expect("readable");
    let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains("init =")).expect("a body");
    let column = line.find("\"ready\"").expect("its name") + 1;
    let out = inside(&place, "out");
    for words in [
        &["run", &file, "--for", "1s", "--best-effort"][..],
        &["loop", &file, "--best-effort", "--out", &out],
    ] {
        let told = Done::of(&mut with_journals(&place, words.iter().copied()));
        assert_eq!(told.no_panic().status, Some(2), "{told:?}");
        for said in [
            "error: task e2e-fast: `ready` returned 4, so the task does not start",
            &format!("{file}:{}:{column}", index + 1),
            "= help: let `ready` return 0 where the task can start",
        ] {
            assert!(told.err.contains(said), "{said}: {told:?}");
        }
    }
}

/// Deadlines that pass after the kill say nothing: the job did not come to its end, and was not late before.
#[test]
fn no_miss_is_counted_beyond_a_kill() {
    let Some(_alone) = real_time() else { return };
    // With so much locked memory the process is in dying for longer than a deadline.
    let source = "#include <signal.h>\n#include <unistd.h>\nstatic int jobs;\nstatic char large[256 << 20];\n\
                  int step(void *job) { (void)job; large[jobs] = 1; if (jobs++ == 30) kill(getpid(), SIGKILL); return 0; }\n";
    let Some((place, file)) = with_code(source, "") else { return };
    let text = std::fs::read_to_string(&file).expect("readable");
    let text = text.replacen("period = \"20 ms\"", "period = \"20 ms\"\ndeadline = \"8 ms\"", 1);
    std::fs::write(&file, text).expect("writable");
    let trace = inside(&place, "run.trace");
    let words = ["run", &file, "--for", "20s", "--trace", &trace, "--format", "json"];
    let outcome = Done::of(&mut with_journals(&place, words)).json();
    assert_eq!(outcome["ended_by"]["cause"], "killed", "{outcome:#}");
    let killed_at = outcome["horizon_ns"].as_u64().expect("a time");
    let found = Done::of(&mut with_journals(&place, ["verify", &file, &trace, "--format", "json"])).json();
    let counted =
        |of: &serde_json::Value| (of["tasks"][0]["missed"].as_u64(), of["tasks"][1]["missed"].as_u64());
    assert_eq!(counted(&found), counted(&outcome), "{found:#} {outcome:#}");
    // The job that killed it was released at 600 ms, and its deadline is 8 ms later. One before it may be late by the machine, and
    // it itself where it started late.
    assert!(killed_at >= 600_000_000, "{outcome:#}");
    let missed = found["missed_jobs"].as_array().into_iter().flatten();
    let of_the_kill =
        missed.filter(|job| job["task"] == "e2e-fast" && job["job"].as_u64() >= Some(30)).count();
    assert_eq!(of_the_kill, usize::from(killed_at > 608_000_000), "{found:#} {outcome:#}");
    if counted(&found) == (Some(0), Some(0)) {
        assert_eq!(found["closing"]["word"], "undecided", "{found:#}");
        assert_eq!(found["model_violated"], 0, "{found:#}");
    }
}

/// No record tells of the miss of a job that never ends: the dump comes all the same, with what the others did meanwhile.
#[test]
fn a_run_without_end_dumps_what_led_to_a_job_that_does_not_come_back() {
    let Some(_alone) = real_time() else { return };
    let source = "#include <unistd.h>\nstatic int jobs;\n\
                  int step(void *job) { (void)job; if (jobs++ == 5) for (;;) pause(); return 0; }\n";
    let Some((place, file)) = with_code(source, "") else { return };
    let dumps = inside(&place, "dumps");
    let run = start(&mut with_journals(&place, ["run", &file, "--forever", "--trace", &dumps]));
    let first = Path::new(&dumps).join("miss-0001.trace");
    wait_for("the dump", || first.exists());
    std::thread::sleep(std::time::Duration::from_millis(100));
    signal(run.id(), "INT");
    let ended = end(run);
    assert_eq!(ended.no_panic().status, Some(1), "{ended:?}");
    assert!(ended.err.contains("a deadline was missed"), "{ended:?}");
    let shown = done(["trace", "show", first.to_str().expect("UTF-8")]).out;
    let of = |what: &str, task: &str| {
        let lines = shown.lines().enumerate();
        let found = lines.filter(|(_, line)| line.contains(what) && line.contains(task)).last();
        found.unwrap_or_else(|| panic!("{what} of {task}: {shown}")).0
    };
    // The job began, and the other task went on for a second.
    assert!(shown.lines().nth(of("start", "e2e-fast")).is_some_and(|line| line.contains("#5")), "{shown}");
    assert!(of("completion", "e2e-slow") > of("start", "e2e-fast") + 9, "{shown}");
    let once = std::fs::read_dir(&dumps).expect("the folder").count();
    assert_eq!(once, 1, "{ended:?}");
}
