//! Programs that must work below a recorder as they do alone: one test a row of the table in
//! `docs/concepts/traced-programs.md`, and whole test suites of others (`suites.rs`).

#[path = "../common/mod.rs"]
mod common;
mod scripts;
mod suites;

use common::{Done, done, end, inside, is_alive, root, start, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const FILTER: &str =
    "not recorded: 1 process below a filter of system calls (seccomp) that may forbid what recording needs";
const COUNTER: &str =
    "recorded only in part: 1 process that forbade the time-stamp counter (PR_SET_TSC or strict seccomp)";
const UNREACHED: &str = "not recorded: 1 program that the runtime did not reach (static, for another C library, with \
                         privileges of its own, without its environment, or in a sandbox)";

/// Whether `program` is there; said aloud where it is not.
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        println!("SKIPPED: no {program}");
    }
    there.is_ok()
}

/// Compiles `c/NAME.c`; `None`, said aloud, where the compiler or what it needs is missing.
fn compiled(folder: &TempDir, name: &str, compiler: &[&str]) -> Option<String> {
    let tests = root().join("front/cli/tests/programs/c");
    let program = inside(folder, name);
    let mut command = Command::new(compiler[0]);
    command.args(["-O1", "-g", "-pthread", "-o", &program]).arg(tests.join(format!("{name}.c")));
    command.args(&compiler[1..]).arg("-I").arg(root().join("front/tracer/include"));
    match command.output() {
        Ok(output) if output.status.success() => Some(program),
        // Without options it needs nothing but gcc.
        Ok(output) if compiler == ["gcc"] => panic!("{name}.c: {}", String::from_utf8_lossy(&output.stderr)),
        Ok(output) => {
            println!("SKIPPED: {compiler:?}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("SKIPPED: no {}: {error}", compiler[0]);
            None
        }
    }
}

fn alone(command: &[&str]) -> Done {
    Done::of(Command::new(command[0]).args(&command[1..]).current_dir(root()).stdin(Stdio::null()))
}

/// Records `command` with these options; its output and its end must be those that it has alone. The summary.
fn recorded(folder: &TempDir, options: &[&str], command: &[&str]) -> Value {
    let alone = alone(command);
    let file = inside(folder, "recorded.hrt");
    let words = ["-q", "trace", "record", "--format", "json", "--out", &file];
    let seen =
        done(words.into_iter().chain(options.iter().copied()).chain(["--"]).chain(command.iter().copied()));
    let summary = seen.out.strip_prefix(&alone.out).and_then(|rest| serde_json::from_str::<Value>(rest).ok());
    let summary = summary.unwrap_or_else(|| panic!("alone {alone:?}, recorded {seen:?}"));
    assert_eq!(seen.err, alone.err, "{summary}");
    assert_eq!(summary["command"]["status"], json!(alone.status), "alone {alone:?}, recorded {seen:?}");
    assert_eq!(seen.status, Some(i32::from(alone.status != Some(0))));
    assert_eq!(summary["events_lost"], 0, "{summary}");
    summary
}

/// Studies the locks of `command`, whose output and end must be those that it has alone. The report.
fn studied(command: &[&str]) -> Value {
    let alone = alone(command);
    let words = ["trace", "locks", "--format", "json", "--"];
    let seen = done(words.into_iter().chain(command.iter().copied()));
    let status = format!("{}: exit status: {} after", command[0], alone.status.expect("it exits"));
    assert!(seen.err.contains(&alone.out) && seen.err.contains(&status), "alone {alone:?}, studied {seen:?}");
    seen.json()
}

fn has_note(summary: &Value, note: &str) -> bool {
    summary["notes"].as_array().expect("notes").iter().any(|said| said == note)
}

/// Holds a program against its row: so many of its own events recorded, so many critical sections at least, this note or
/// none. The program exits with 7.
fn row(folder: &TempDir, command: &[&str], events: u64, sections: u64, note: Option<&str>) {
    let plain = recorded(folder, &["--event", "row/*"], command);
    assert_eq!((&plain["events"], &plain["command"]["status"]), (&json!(events), &json!(7)), "{plain}");
    let (with_locks, study) = (recorded(folder, &["--locks"], command), studied(command));
    let all = with_locks["events"].as_u64().expect("a number");
    assert!(all >= events + 3 * sections, "{with_locks}");
    assert!(
        study["counts"]["sections"].as_u64() >= Some(sections) && study["counts"]["lost"] == 0,
        "{study}"
    );
    for summary in [&plain, &with_locks, &study] {
        match note {
            Some(note) => assert!(has_note(summary, note), "{note}: {summary}"),
            None => assert!(!summary["notes"].to_string().contains("recorded"), "{summary}"),
        }
    }
}

/// A program that no library can be preloaded into: it runs unharmed, and why it was not recorded is said; `trace locks`
/// does not start it.
fn not_reached(folder: &TempDir, program: &str, why: &str) {
    for options in [&[][..], &["--locks"]] {
        let summary = recorded(folder, options, &[program]);
        let note = format!(
            "{program}: {why}; only events of a runtime that is linked into it are recorded (link libhorolog_trace.a)"
        );
        assert!(has_note(&summary, &note), "{summary}");
        assert_eq!((&summary["sessions"], &summary["events"]), (&json!(0), &json!(0)), "{summary}");
    }
    let refused = done(["trace", "locks", "--", program]);
    let sentence =
        format!("error: its locks cannot be seen: {program}: {why}; `--kernel` shows the waits for them\n");
    assert_eq!((refused.status, refused.err.as_str()), (Some(2), sentence.as_str()));
    // Below a shell, which is reached.
    let script = format!("{program}; s=$?; {program} | cat; exit $s");
    for options in [&[][..], &["--locks"]] {
        recorded(folder, options, &["sh", "-c", &script]);
    }
    studied(&["sh", "-c", &script]);
}

#[test]
fn sanitizers_are_recorded_with_triggers_and_locks() {
    let folder = tempfile::tempdir().expect("a folder");
    for compiler in ["gcc", "clang"] {
        for sanitizer in ["address", "thread", "undefined"] {
            let words = [compiler, &format!("-fsanitize={sanitizer}"), "-fno-sanitize-recover=undefined"];
            let Some(program) = compiled(&folder, "threads", &words) else { continue };
            row(&folder, &[&program], 200, 200, None);
        }
    }
}

#[test]
fn musl_static_and_go_programs_run_unharmed_and_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_static = "it is statically linked, so that no library can be preloaded";
    let rows = [
        (&["musl-gcc"][..], "its C library is not glibc, for which the preloaded libraries are made"),
        (&["musl-gcc", "-static"], is_static),
        (&["gcc", "-static"], is_static),
    ];
    for (compiler, why) in rows {
        if let Some(program) = compiled(&folder, "threads", compiler) {
            not_reached(&folder, &program, why);
        }
    }
    let (source, program) = (inside(&folder, "main.go"), inside(&folder, "go"));
    fs::write(&source, "package main\nimport \"os\"\nfunc main() { println(\"go\"); os.Exit(7) }\n")
        .expect("writes");
    let mut build = Command::new("go");
    build.args(["build", "-o", &program, &source]).env("GO111MODULE", "off").env("CGO_ENABLED", "0");
    if build.output().is_ok_and(|output| output.status.success()) {
        not_reached(&folder, &program, is_static);
    } else {
        println!("SKIPPED: no Go compiler");
    }
}

#[test]
fn a_program_below_its_own_filter_of_system_calls_is_recorded_and_its_children_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(filter) = compiled(&folder, "filter", &["gcc"]) else { return };
    row(&folder, &[&filter], 300, 300, Some(FILTER));
    row(&folder, &[&filter, "by number"], 300, 300, Some(FILTER));
}

#[test]
fn a_program_that_starts_below_a_filter_of_system_calls_runs_unrecorded_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (Some(below), Some(program)) =
        (compiled(&folder, "below", &["gcc"]), compiled(&folder, "threads", &["gcc"]))
    else {
        return;
    };
    row(&folder, &[&below, &program], 0, 0, Some(FILTER));
}

/// A session is larger than all that such a program has, and than what it may lock.
#[test]
fn a_program_that_locks_its_memory_locks_no_session() {
    let folder = TempDir::new().expect("a folder");
    if let Some(locked) = compiled(&folder, "locked", &["gcc"]) {
        row(&folder, &[&locked], 100, 100, None);
    }
}

#[test]
fn a_program_that_waits_for_a_recorder_has_its_own_files_under_every_number() {
    let folder = TempDir::new().expect("a folder");
    let Some(closes) = compiled(&folder, "closes", &["gcc"]) else { return };
    let library = Path::new(common::HOROLOG).with_file_name("deps").join("libhorolog_trace.so");
    assert!(library.exists(), "the tests of the workspace build {}", library.display());
    let mut command = Command::new(&closes);
    let ended = Done::of(command.env("HOROLOG_TRACE", "listen").env("LD_PRELOAD", &library));
    assert_eq!((ended.status, ended.out.as_str()), (Some(7), "0 closed, 0 changed\n"), "{ended:?}");
}

#[test]
fn a_program_that_forbids_the_counter_is_recorded_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(strict) = compiled(&folder, "strict", &["gcc"]) {
        row(&folder, &[&strict], 100, 100, Some(COUNTER));
    }
    // Its child, too, is counted.
    let both = COUNTER.replace("1 process", "2 processes");
    if let Some(counter) = compiled(&folder, "counter", &["gcc"]) {
        row(&folder, &[&counter], 100, 100, Some(&both));
    }
}

#[test]
fn valgrind_finds_nothing_and_the_program_below_it_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "threads", &["gcc"]).filter(|_| has("valgrind")) else { return };
    let command = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", &program];
    row(&folder, &command, 200, 200, None);
}

#[test]
fn gdb_runs_a_recorded_program_and_attaches_to_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "threads", &["gcc"]).filter(|_| has("gdb")) else { return };
    // What gdb prints holds numbers of threads.
    let file = inside(&folder, "gdb.hrt");
    let gdb = ["gdb", "-nx", "-batch", "-ex", "run", "-ex", "quit $_exitcode", &program];
    let words = ["-q", "trace", "record", "--event", "row/*", "--format", "json", "--out", &file, "--"];
    let seen = done(words.into_iter().chain(gdb));
    assert!(seen.out.contains("sum 9900") && seen.out.contains("exited with code 07"), "{seen:?}");
    let stats = done(["trace", "stats", &file]);
    assert!(
        stats.out.lines().any(|line| line.starts_with("row/step") && line.contains(" 200 ")),
        "{stats:?}"
    );
    let waits = compiled(&folder, "waits", &["gcc"]).expect("as the one before");
    let said = inside(&folder, "said");
    let script = format!("exec {waits} >{said}");
    let words = ["-q", "trace", "record", "--format", "json", "--out", &file, "--", "sh", "-c", &script];
    let running = start(common::horolog(words).env("SHLVL", "1"));
    wait_for("the program", || fs::read_to_string(&said).is_ok_and(|text| text == "begun\n"));
    let mut children = String::new();
    wait_for("its number", || {
        children = find(&waits).unwrap_or_default();
        !children.is_empty()
    });
    let gdb =
        Done::of(Command::new("gdb").args(["-nx", "-batch", "-p", &children, "-ex", "bt", "-ex", "detach"]));
    assert!(gdb.out.contains("in main"), "{gdb:?}");
    let summary = end(running).json();
    assert_eq!((&summary["events"], &summary["command"]["status"]), (&json!(400), &json!(7)), "{summary}");
    assert_eq!(fs::read_to_string(&said).expect("written"), "begun\nended\n");
}

/// The number of the process that runs `program`.
fn find(program: &str) -> Option<String> {
    let runs = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == Path::new(program))
    };
    let found = fs::read_dir("/proc").ok()?.flatten().find(runs)?;
    found.file_name().into_string().ok()
}

#[test]
fn sandboxes_are_recorded_where_the_recorder_can_be_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "threads", &["gcc"]) else { return };
    let rows: [&[&str]; 3] =
        [&["bwrap", "--dev-bind", "/", "/", "--unshare-user"], &["unshare", "-U"], &["unshare", "-Urpf"]];
    for sandbox in rows {
        let command = [sandbox, &[program.as_str()]].concat();
        let plain = Command::new(command[0]).args(&command[1..]).output();
        if plain.is_ok_and(|output| output.status.code() == Some(7)) {
            row(&folder, &command, 200, 200, None);
        } else {
            println!("SKIPPED: {sandbox:?} does not work here");
        }
    }
}

#[test]
fn a_program_that_cannot_reach_the_recorder_is_named_where_it_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorders = inside(&folder, "runtime");
    fs::create_dir(&recorders).expect("a folder");
    fs::set_permissions(&recorders, fs::Permissions::from_mode(0o700)).expect("ours");
    let file = inside(&folder, "t.hrt");
    let Some(program) = compiled(&folder, "waits", &["gcc"]) else { return };
    let sandbox = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", &recorders, "--"];
    let rows = [(&sandbox[..], has("bwrap")), (&["env", "-i"], true)];
    for (wrapper, _) in rows.into_iter().filter(|(_, there)| *there) {
        let words = ["-q", "trace", "record", "--format", "json", "--out", &file, "--"];
        let command = words.into_iter().chain(wrapper.iter().copied()).chain([program.as_str()]);
        let seen = Done::of(common::horolog(command).env("XDG_RUNTIME_DIR", &recorders));
        assert_eq!(seen.err, "", "{wrapper:?}");
        let summary: Value =
            serde_json::from_str(seen.out.strip_prefix("begun\nended\n").expect("it ran")).expect("JSON");
        assert_eq!(summary["command"]["status"], 7, "{summary}");
        assert!(has_note(&summary, UNREACHED), "{wrapper:?}: {summary}");
    }
}

#[test]
fn a_program_with_privileges_of_its_own_runs_unharmed_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let Some(program) = compiled(&folder, "threads", &["gcc"]) else { return };
    if chown(&program, Some(65_534), None).is_err() {
        println!("SKIPPED: files cannot be given to another user here");
        return;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("ours");
    let why = "it changes its privileges when it starts, so that the dynamic linker ignores LD_PRELOAD; run a copy without \
               those bits";
    not_reached(&folder, &program, why);
}

#[test]
fn a_process_without_memory_for_its_session_runs_unharmed_and_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "ulimit -f 100; (exit 3); s=$?; exit $((s + 4))";
    let summary = recorded(&folder, &["--locks"], &["sh", "-c", script]);
    let note = "not recorded: 1 process without memory for buffers, or whose buffers the recorder did not take in time";
    assert!(has_note(&summary, note), "{summary}");
    assert_eq!(summary["command"]["status"], 7, "{summary}");
}

#[test]
fn programs_started_by_posix_spawn_vfork_and_fork_are_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let (Some(spawns), Some(program)) =
        (compiled(&folder, "spawns", &["gcc"]), compiled(&folder, "threads", &["gcc"]))
    else {
        return;
    };
    let summary = recorded(&folder, &["--event", "row/*"], &[&spawns, &program]);
    assert_eq!((&summary["events"], &summary["command"]["status"]), (&json!(603), &json!(21)), "{summary}");
    let study = studied(&[&spawns, &program]);
    assert_eq!(study["counts"]["sections"], 600, "{study}");
}

#[test]
fn what_outlives_the_command_runs_on_and_is_named_as_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "daemon", &["gcc"]) else { return };
    let (file, written) = (inside(&folder, "t.hrt"), inside(&folder, "written"));
    let record = ["trace", "record", "--format", "json", "--out", &file, "--", &program, &written];
    let locks = ["trace", "locks", "--format", "json", "--", &program, &written];
    for verb in [&record[..], &locks] {
        let summary = done(verb.iter().copied()).json();
        let notes = summary["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
        let end = " outlives the command: what it does from now on is not recorded";
        let cut: Vec<_> = notes.filter_map(|note| note.strip_prefix("process ")?.strip_suffix(end)).collect();
        assert!(matches!(cut[..], [pid] if is_alive(pid)), "{summary}");
        let go = format!("{written}.go");
        fs::write(&go, "").expect("writable");
        wait_for("the daemon's end", || fs::read_to_string(&written).is_ok_and(|text| text == "done\n"));
        for file in [&written, &go] {
            fs::remove_file(file).expect("was there");
        }
    }
}

#[test]
fn the_summary_says_how_the_command_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = inside(&folder, "t.hrt");
    let rows = [
        ("exit 0", (Some(0), None), "exit status 0"),
        ("exit 7", (Some(7), None), "exit status 7"),
        ("exit 255", (Some(255), None), "exit status 255"),
        ("kill -SEGV $$", (None, Some(11)), "ended by signal 11"),
        ("kill -KILL $$", (None, Some(9)), "ended by signal 9"),
    ];
    for (script, (status, signal), words) in rows {
        let words_of = ["trace", "record", "--out", &file, "--", "sh", "-c", script];
        let told = done(words_of);
        assert!(told.err.contains(&format!("command: {words}\n")), "{told:?}");
        assert_eq!(told.status, Some(i32::from(status != Some(0))));
        let json = done(
            ["-q", "trace", "record", "--format", "json"].into_iter().chain(words_of.into_iter().skip(2)),
        );
        let end = &json.json()["command"];
        assert_eq!((&end["status"], &end["signal"]), (&json!(status), &json!(signal)), "{script}");
    }
}
