//! `horolog run` and `horolog loop` as they end: by themselves, by Ctrl-C, killed, refused, crashed. The machine is as
//! before each time.

mod common;

use common::{Done, HOROLOG, SYSTEM, done, end, folder, horolog, inside, is_alive, real_time, signal, start};
use common::{wait_for, wait_for_thread};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What a run must leave as it was.
fn settings() -> Vec<Option<String>> {
    ["sched_rt_runtime_us", "sched_rt_period_us", "perf_event_paranoid"]
        .map(|name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok())
        .to_vec()
}

/// The command with journals of its own, so that nobody else's runs count as left over.
fn with_journals<'a>(journals: &str, words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = horolog(words);
    command.env("XDG_RUNTIME_DIR", journals);
    command
}

fn nothing_left(journals: &str) {
    let restored = Done::of(&mut with_journals(journals, ["doctor", "--restore", "--format", "json"]));
    // Journals alone: recordings in tracefs may be another's that was killed.
    assert_eq!(restored.status, Some(0), "{restored:?}");
    assert_eq!(restored.json()["journals"].as_array().map(Vec::len), Some(0), "{restored:?}");
}

#[test]
fn ctrl_c_ends_a_run_in_order_and_another_terminal_stays_usable() {
    let Some(_alone) = real_time() else { return };
    let before = settings();
    let (place, file) = folder(SYSTEM);
    let journals = inside(&place, "");
    let trace = inside(&place, "run.trace");
    let words = ["run", &file, "--for", "60s", "--trace", &trace, "--format", "json"];
    let run = start(&mut with_journals(&journals, words));
    let process = run.id();
    wait_for_thread(process, "e2e-fast");
    // An ordinary program does its work meanwhile.
    let work = Command::new("sh")
        .args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $i"])
        .output();
    assert_eq!(Done::from(work.expect("sh")).out.trim(), "100000");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(is_alive(&process.to_string()), "the run goes on");
    signal(process, "INT");
    let ended = end(run);
    ended.no_panic();
    let outcome = ended.json();
    assert_eq!(outcome["backend"], "linux");
    assert!(outcome["tasks"][0]["completed"].as_u64() > Some(0), "{outcome:#}");
    assert!(outcome["horizon_ns"].as_u64() < Some(60_000_000_000), "{outcome:#}");
    let counted = done(["trace", "stats", &trace, "--format", "json"]);
    assert_eq!(counted.status, Some(0), "{counted:?}");
    assert!(counted.json()["damage"].is_null());
    nothing_left(&journals);
    assert_eq!(settings(), before);
}

#[test]
fn ctrl_c_during_the_loop_still_gives_a_report_that_says_so() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(SYSTEM);
    let journals = inside(&place, "");
    let out = inside(&place, "out");
    let run = start(&mut with_journals(&journals, ["loop", &file, "--for", "50s", "--out", &out]));
    wait_for_thread(run.id(), "e2e-fast");
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(run.id(), "INT");
    let ended = end(run);
    ended.no_panic();
    assert!(ended.out.contains("stopped early"), "{ended:?}");
    assert!(Path::new(&out).join("report.html").exists(), "{ended:?}");
    nothing_left(&journals);
}

#[test]
fn a_killed_run_leaves_no_process_and_no_journal() {
    let Some(_alone) = real_time() else { return };
    let before = settings();
    let (place, _) = folder("");
    let child = inside(&place, "child");
    let command = format!("echo $$ > {child}; while true; do sleep 0.02; done");
    let text = SYSTEM.replace(
        "body = { spin = \"4 ms\" }",
        &format!("body = {{ command = [\"sh\", \"-c\", \"{command}\"] }}"),
    );
    let file = inside(&place, "system.toml");
    fs::write(&file, text).expect("writable");
    let journals = inside(&place, "");
    let run = start(&mut with_journals(&journals, ["run", &file, "--for", "60s"]));
    wait_for_thread(run.id(), "e2e-fast");
    let read = || fs::read_to_string(&child).unwrap_or_default().trim().to_owned();
    wait_for("the task's own program", || !read().is_empty());
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal(run.id(), "KILL");
    let ended = end(run);
    assert_eq!(ended.status, None, "killed: {ended:?}");
    wait_for("the end of the task's own program", || !is_alive(&read()));
    let journal =
        |path: &Path| fs::read_dir(path.join("horolog")).map_or(0, |entries| entries.flatten().count());
    wait_for("the end of the journal", || journal(place.path()) == 0);
    nothing_left(&journals);
    assert_eq!(settings(), before);
}

#[test]
fn a_run_without_end_dumps_what_led_to_a_miss() {
    let Some(_alone) = real_time() else { return };
    // The slow task executes longer than its deadline allows.
    let text = SYSTEM.replace("wcet = \"6 ms\"", "wcet = \"2 ms\"\ndeadline = \"2 ms\"");
    let (place, file) = folder(&text);
    let dumps = inside(&place, "dumps");
    let run = start(&mut with_journals(&inside(&place, ""), ["run", &file, "--forever", "--trace", &dumps]));
    let first = Path::new(&dumps).join("miss-0001.trace");
    wait_for("the first dump", || first.exists());
    signal(run.id(), "INT");
    let ended = end(run);
    ended.no_panic();
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.err.contains("a deadline was missed") && ended.out.contains("dumps"), "{ended:?}");
    let shown = done(["trace", "show", first.to_str().expect("UTF-8"), "--kind", "miss"]);
    assert!(shown.status == Some(0) && shown.out.contains("e2e-slow"), "{shown:?}");
    nothing_left(&inside(&place, ""));
}

#[test]
fn a_run_without_end_and_without_misses_dumps_nothing() {
    let Some(_alone) = real_time() else { return };
    let text = SYSTEM.replace("period = ", "deadline = \"10 s\"\nperiod = ");
    let (place, file) = folder(&text);
    let dumps = inside(&place, "dumps");
    let run = start(&mut horolog(["run", &file, "--forever", "--trace", &dumps]));
    wait_for_thread(run.id(), "e2e-fast");
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(run.id(), "TERM");
    let ended = end(run);
    assert_eq!(ended.no_panic().status, Some(0), "{ended:?}");
    assert_eq!(fs::read_dir(&dumps).expect("the folder").count(), 0);
}

/// The command under the user `nobody`, without capabilities; `None`, said aloud, where that cannot be tried.
fn unprivileged(place: &Path, words: &[&str]) -> Option<Done> {
    // The build's folder may be closed to others.
    let program = place.join("horolog");
    if !program.exists() {
        fs::copy(HOROLOG, &program).expect("a copy");
    }
    for path in [place, program.as_path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("permissions");
    }
    let words = words.iter().copied();
    let tried = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"])
        .arg(&program)
        .args(words)
        .current_dir(place)
        .env_remove("XDG_RUNTIME_DIR")
        .output();
    match tried {
        Ok(output) => {
            let ended = Done::from(output);
            if ended.err.starts_with("setpriv:") {
                println!("SKIPPED: {}", ended.err.trim());
                return None;
            }
            Some(ended)
        }
        Err(error) => {
            println!("SKIPPED: setpriv: {error}");
            None
        }
    }
}

/// The last lines on standard error are the closing line and its help, and they name the right.
fn assert_is_not_allowed(err: &str, beginning: &str) {
    let mut lines: Vec<&str> = err.trim_end().lines().collect();
    let last: Vec<&str> = lines.split_off(lines.len().saturating_sub(2));
    assert!(last[0].starts_with(beginning) && last[0].ends_with("(exit 3)"), "{err}");
    assert!(last[0].contains("SCHED_FIFO needs CAP_SYS_NICE (sched_setscheduler("), "{err}");
    assert!(last[1].starts_with("  help: run as root, or with CAP_SYS_NICE"), "{err}");
}

#[test]
fn without_privileges_it_refuses_with_the_remedy_or_says_that_nothing_is_promised() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(SYSTEM);
    let Some(refused) = unprivileged(place.path(), &["run", &file, "--for", "100ms"]) else { return };
    assert_eq!(refused.no_panic().status, Some(3), "{refused:?}");
    assert!(refused.out.is_empty(), "{refused:?}");
    assert_is_not_allowed(&refused.err, "not allowed: not run: ");
    let Some(refused) =
        unprivileged(place.path(), &["run", &file, "--for", "100ms", "--retries", "2", "--format", "json"])
    else {
        return;
    };
    assert_is_not_allowed(&refused.err, "not allowed: not run: ");
    let json = refused.json();
    let closing = &json["closing"];
    assert_eq!((&json["schema"], &json["system"]), (&"horolog.outcome/1".into(), &"end to end".into()));
    assert_eq!((&closing["word"], &closing["exit"]), (&"not-allowed".into(), &3.into()), "{json}");
    assert!(closing["deadlines"].is_null() && json.get("tasks").is_none(), "{json}");
    let told =
        format!("{}\n{}", closing["text"].as_str().unwrap_or(""), closing["help"].as_str().unwrap_or(""));
    assert!(told.contains("CAP_SYS_NICE") && told.starts_with("not run: "), "{json}");
    // What needs no right is done, and the closing line says what was not.
    let words = ["loop", &file, "--for", "100ms", "--out", "refused"];
    let Some(refused) = unprivileged(place.path(), &words) else { return };
    assert_eq!(refused.no_panic().status, Some(3), "{refused:?}");
    assert_is_not_allowed(&refused.err, "not allowed: proved and simulated, not run: SCHED_FIFO needs ");
    assert!(refused.err.contains("CAP_SYS_NICE") && refused.out.contains("report.html"), "{refused:?}");
    let gate = words.into_iter().chain(["--gate", "proof"]).collect::<Vec<_>>();
    let Some(proved) = unprivileged(place.path(), &gate) else { return };
    assert_eq!(proved.no_panic().status, Some(0), "{proved:?}");
    let words = ["run", &file, "--for", "500ms", "--best-effort"];
    let Some(table) = unprivileged(place.path(), &words) else { return };
    table.no_panic();
    assert!(table.out.contains("linux-best-effort") && table.out.contains("best effort:"), "{table:?}");
    let is_said =
        |done: &Done| done.err.contains("; best effort: nothing was asked of the scheduling class (exit ");
    assert!(is_said(&table), "{table:?}");
    let out = inside(&place, "out");
    let words = ["loop", &file, "--for", "500ms", "--best-effort", "--out", &out];
    let Some(closed) = unprivileged(place.path(), &words) else { return };
    closed.no_panic();
    assert!(closed.out.contains("linux-best-effort") && closed.out.contains("best effort:"), "{closed:?}");
    // Whoever had the processor is the machine's doing.
    assert!(is_said(&closed) && !closed.err.contains(" was ready"), "{closed:?}");
    let outcome: serde_json::Value =
        serde_json::from_slice(&fs::read(Path::new(&out).join("run.json")).expect("written")).expect("JSON");
    assert_eq!(outcome["backend"], "linux-best-effort");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).expect("the page");
    assert!(page.contains("best effort") || page.contains("best-effort"));
}

/// Builds a library; `None`, said aloud, without a compiler.
fn library(place: &Path, source: &str, name: &str) -> Option<()> {
    let file = place.join("code.c");
    fs::write(&file, source).expect("writable");
    let include = common::root().join("front/capi/include");
    let built = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-I"])
        .arg(include)
        .arg("-o")
        .arg(place.join(name))
        .arg(&file)
        .output();
    match built {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(error) => {
            println!("SKIPPED: no C compiler: {error}");
            None
        }
    }
}

#[test]
fn a_crash_of_user_code_names_the_task_and_the_job() {
    let Some(_alone) = real_time() else { return };
    let before = settings();
    let text = SYSTEM
        .replace("body = { spin = \"1 ms\" }", "body = { library = \"libcrash.so\", symbol = \"step\" }");
    let (place, file) = folder(&text);
    let source = "#include \"horolog.h\"\nint step(horolog_job *job) {\n\
                  if (horolog_job_number(job) == 3) *(volatile int *)0 = 1;\nreturn 0; }\n";
    if library(place.path(), source, "libcrash.so").is_none() {
        return;
    }
    let journals = inside(&place, "");
    let crashed = Done::of(&mut with_journals(&journals, ["run", &file, "--for", "20s"]));
    assert_eq!(crashed.no_panic().status, Some(1), "{crashed:?}");
    assert!(crashed.err.contains("e2e-fast") && crashed.err.contains("job 3"), "{crashed:?}");
    // A run without end writes what led there, and a job that overran is worth a dump, too.
    let dumps = inside(&place, "dumps");
    let crashed = Done::of(&mut with_journals(&journals, ["run", &file, "--forever", "--trace", &dumps]));
    assert_eq!(crashed.no_panic().status, Some(1), "{crashed:?}");
    let last =
        fs::read_dir(&dumps).expect("the folder").flatten().map(|file| file.path()).max().expect("a dump");
    let shown =
        done(["trace", "show", last.to_str().expect("UTF-8"), "--kind", "start", "--task", "e2e-fast"]);
    assert!(shown.status == Some(0) && shown.out.lines().count() >= 3, "{shown:?}");
    // Only the run was cut off: a reader does not take the end of the record for the end that was meant.
    let verified = done(["verify", &file, last.to_str().expect("UTF-8"), "--machine", "none"]);
    assert!(matches!(verified.no_panic().status, Some(1 | 4)), "{verified:?}");
    assert!(verified.out.contains("the run ended before its time: task e2e-fast"), "{verified:?}");
    nothing_left(&journals);
    assert_eq!(settings(), before);
}

/// Whatever ends the program, the trace is whole, the page is written, and nothing says that all holds.
#[test]
fn a_body_that_ends_the_program_costs_no_record() {
    let Some(_alone) = real_time() else { return };
    let before = settings();
    let text = SYSTEM
        .replace("body = { spin = \"1 ms\" }", "body = { library = \"libends.so\", symbol = \"step\" }");
    let (place, file) = folder(&text);
    let source = "#include \"horolog.h\"\n#include <stdio.h>\n#include <stdlib.h>\nint step(horolog_job *job) {\n\
                  printf(\"said in job %d\\n\", (int)horolog_job_number(job));\n\
                  if (horolog_job_number(job) == 3) exit(0);\nreturn 0; }\n";
    if library(place.path(), source, "libends.so").is_none() {
        return;
    }
    let (journals, trace, out) = (inside(&place, ""), inside(&place, "run.trace"), inside(&place, "out"));
    let words = ["run", &file, "--for", "20s", "--trace", &trace, "--format", "json"];
    let ended = Done::of(&mut with_journals(&journals, words));
    assert_eq!(ended.no_panic().status, Some(1), "{ended:?}");
    // What the body prints goes beside the result, not into it.
    let outcome = ended.json();
    let who = &outcome["ended_by"];
    let found = (who["cause"].as_str(), who["task"].as_str(), who["job"].as_u64());
    assert_eq!(found, (Some("exit"), Some("e2e-fast"), Some(3)), "{outcome:#}");
    assert!(ended.err.contains("said in job 3") && ended.err.contains("called exit"), "{ended:?}");
    let counted = done(["trace", "stats", &trace, "--format", "json"]).json();
    assert!(counted["damage"].is_null(), "{counted:#}");
    assert_eq!(counted["outcome"]["tasks"][0]["completed"], 3, "{counted:#}");
    let closed = Done::of(&mut with_journals(&journals, ["loop", &file, "--for", "20s", "--out", &out]));
    assert!(matches!(closed.no_panic().status, Some(1 | 4)), "{closed:?}");
    // Before the start there is nothing to count, and a closing line all the same.
    let source = "#include <stdlib.h>\n__attribute__((constructor)) static void ends(void) { exit(0); }\nint step(void *job) { (void)job; return 0; }\n";
    if library(place.path(), source, "libends.so").is_some() {
        let words = ["run", &file, "--for", "20s", "--format", "json"];
        let ended = Done::of(&mut with_journals(&journals, words));
        assert_eq!(ended.no_panic().status, Some(1), "{ended:?}");
        assert_eq!(ended.json()["closing"]["word"], "no");
        let last = ended.err.lines().rev().find(|line| !line.starts_with(' ')).unwrap_or_default();
        assert!(last.starts_with("no: the run ended before its time: before the start: "), "{ended:?}");
    }
    assert!(Path::new(&out).join("report.html").exists(), "{closed:?}");
    // Where the user does not wait for an `init`, nothing is decided, and nothing is called a crash.
    let source = "#include <unistd.h>\n__attribute__((constructor)) static void waits(void) { for (;;) pause(); }\nint step(void *job) { (void)job; return 0; }\n";
    if library(place.path(), source, "libends.so").is_some() {
        let waiting = start(&mut with_journals(&journals, ["run", &file, "--for", "20s"]));
        std::thread::sleep(std::time::Duration::from_secs(1));
        signal(waiting.id(), "INT");
        let ended = end(waiting);
        assert_eq!(ended.no_panic().status, Some(4), "{ended:?}");
        let who = "a constructor of libends.so (task e2e-fast) did not return";
        let line = format!("undecided: stopped before the start: {who} (exit 4)");
        assert!(ended.err.contains(&line), "{ended:?}");
    }
    nothing_left(&journals);
    assert_eq!(settings(), before);
}

#[test]
fn a_job_that_overruns_is_worth_a_dump() {
    let Some(_alone) = real_time() else { return };
    let text = SYSTEM
        .replace("period = ", "deadline = \"10 s\"\nperiod = ")
        .replace("body = { spin = \"1 ms\" }", "body = { spin = \"9 ms\" }");
    let (place, file) = folder(&text);
    let dumps = inside(&place, "dumps");
    let run = start(&mut with_journals(&inside(&place, ""), ["run", &file, "--forever", "--trace", &dumps]));
    let first = Path::new(&dumps).join("overrun-0001.trace");
    wait_for("the first dump", || first.exists());
    signal(run.id(), "INT");
    let ended = end(run);
    assert!(ended.no_panic().err.contains("a job overran"), "{ended:?}");
    let shown = done(["trace", "show", first.to_str().expect("UTF-8"), "--kind", "overrun"]);
    assert!(shown.status == Some(0) && shown.out.contains("e2e-fast"), "{shown:?}");
}

#[test]
fn the_library_of_the_example_runs() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let example = common::root().join("examples/user-library");
    let source = fs::read_to_string(example.join("control.c")).expect("the example");
    if library(place.path(), &source, "libcontrol.so").is_none() {
        return;
    }
    let file = inside(&place, "system.toml");
    fs::copy(example.join("system.toml"), &file).expect("a copy");
    let ended = done(["run", &file, "--for", "1s"]);
    assert!(ended.no_panic().out.contains("control: 100 jobs, position 1000.000"), "{ended:?}");
}
