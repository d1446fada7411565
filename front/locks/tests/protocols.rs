//! C and C++ programs whose mutexes get protocols: they behave as without, and the protocol acts.

mod common;

use common::{compile, library};
use horolog_probe::lock_protocol::{Counts, RULES, TABLE, Table, What};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that ran under rules.
struct Ran {
    out: String,
    err: String,
    status: Option<i32>,
    signal: Option<i32>,
    counts: Counts,
}

impl Ran {
    fn count(&self, what: What) -> u64 {
        self.counts.rows.iter().filter(|row| row.what == what).map(|row| row.count).sum()
    }
}

fn of(output: &Output, counts: Counts) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (status, signal) = (output.status.code(), output.status.signal());
    Ran { out: text(&output.stdout), err: text(&output.stderr), status, signal, counts }
}

/// Runs it, its mutexes under these rules.
fn under(rules: &str, command: &mut Command) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("table");
    std::fs::write(&table, Table::empty()).expect("written");
    let output = command.env("LD_PRELOAD", library()).env(RULES, rules).env(TABLE, &table).output();
    let output = output.expect("the program runs");
    of(&output, Counts::of(&std::fs::read(&table).expect("a table")))
}

fn alone(command: &mut Command) -> Ran {
    of(&command.output().expect("the program runs"), Counts::default())
}

/// A folder, and the right to run alone: real-time threads of one test keep those of others waiting.
fn folder() -> (tempfile::TempDir, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (tempfile::tempdir().expect("a folder"), alone)
}

/// The command as a thread of SCHED_FIFO; `None`, said, where that is not allowed.
fn real_time(priority: u32, program: &Path) -> Option<Command> {
    let allowed = Command::new("chrt").args(["-f", "1", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: SCHED_FIFO is not allowed here");
        return None;
    }
    let mut command = Command::new("chrt");
    command.args(["-f", &priority.to_string()]).arg(program);
    Some(command)
}

/// Compiles this text as `other`; `None`, said, without a compiler.
fn compile_text(folder: &Path, source: &str) -> Option<PathBuf> {
    let (file, program) = (folder.join("other.c"), folder.join("other"));
    std::fs::write(&file, source).expect("written");
    let built = Command::new("cc").args(["-g", "-pthread", "-o"]).arg(&program).arg(&file).output();
    match built {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("SKIPPED: no cc: {error}");
            return None;
        }
    }
    Some(program)
}

const BOTH: [&str; 2] = ["inheritance", "ceiling=50"];

#[test]
fn every_function_returns_what_it_returns_without_a_protocol() {
    let (folder, _alone) = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "returns.c") else { return };
    let expected = alone(&mut Command::new(&program));
    assert!(expected.status == Some(0) && expected.out.lines().count() == 90, "{}", expected.out);
    for rules in BOTH {
        let found = under(rules, &mut Command::new(&program));
        assert_eq!((found.out.as_str(), found.status), (expected.out.as_str(), Some(0)), "{rules}");
        assert!(found.count(What::Set) > 5, "{rules}: {:?}", found.counts);
        let Some(mut command) = real_time(10, &program) else { continue };
        let found = under(rules, &mut command);
        assert_eq!(
            (found.out.as_str(), found.status),
            (expected.out.as_str(), Some(0)),
            "{rules}, real-time"
        );
    }
}

#[test]
fn waits_that_only_a_time_out_ends_end_as_without_a_protocol() {
    let (folder, _alone) = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "deadlocks.c") else { return };
    let expected = alone(&mut Command::new(&program));
    assert!(expected.status == Some(0) && expected.out.lines().count() == 50, "{}", expected.out);
    let cases = BOTH.into_iter().flat_map(|rules| {
        [Some(Command::new(&program)), real_time(10, &program)]
            .into_iter()
            .flatten()
            .map(move |one| (rules, one))
    });
    let cases: Vec<_> = cases.collect();
    // They sleep most of the time.
    std::thread::scope(|scope| {
        for (rules, mut command) in cases {
            let expected = &expected;
            scope.spawn(move || {
                let found = under(rules, &mut command);
                let outcome = (found.out.as_str(), found.status);
                assert_eq!(outcome, (expected.out.as_str(), Some(0)), "{rules}: {}", found.err);
                assert_eq!(found.count(What::Set), 61, "{rules}: {:?}", found.counts);
            });
        }
    });
}

#[test]
fn what_is_started_under_a_ceiling_begins_with_the_own_priority() {
    let (folder, _alone) = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "started.c") else { return };
    let expected = alone(&mut Command::new(&program));
    assert!(expected.status == Some(0) && expected.out.lines().count() == 17, "{}", expected.out);
    for rules in BOTH {
        let found = under(rules, &mut Command::new(&program));
        assert_eq!(
            (found.out.as_str(), found.status),
            (expected.out.as_str(), Some(0)),
            "{rules}: {}",
            found.err
        );
    }
    let Some(mut command) = real_time(10, &program) else { return };
    let expected = alone(&mut command);
    assert_eq!(expected.out.matches(" 10").count(), 14, "{}", expected.out);
    for (rules, raised) in [("inheritance", 10), ("ceiling=50", 50), ("ceiling=10", 10), ("ceiling=9", 10)] {
        let Some(mut command) = real_time(10, &program) else { return };
        let found = under(rules, &mut command);
        assert_eq!(
            (found.out.as_str(), found.status),
            (expected.out.as_str(), Some(0)),
            "{rules}: {}",
            found.err
        );
        assert_eq!(found.err, format!("raised {raised}\n"), "{rules}");
    }
}

/// A thread that may not raise its priority takes the lock all the same, and errno is its own.
#[test]
fn a_ceiling_that_is_not_allowed_changes_no_errno() {
    let (folder, _alone) = folder();
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <sys/resource.h>\n#include <unistd.h>\n\
                  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
                  int main(void) { struct rlimit none = {0, 0}; setrlimit(RLIMIT_RTPRIO, &none);\n\
                  int user = setresuid(65534, 65534, 65534); errno = 77; int l = pthread_mutex_lock(&m); int e = errno;\n\
                  int u = pthread_mutex_unlock(&m); printf(\"%d %d %d %d %d\\n\", user, l, e, u, errno); return 0; }\n";
    let Some(program) = compile_text(folder.path(), source) else { return };
    let Some(mut command) = real_time(10, &program) else { return };
    let expected = alone(&mut command);
    assert!(expected.out.ends_with(" 0 77 0 77\n"), "{}", expected.out);
    let Some(mut command) = real_time(10, &program) else { return };
    let found = under("ceiling=50", &mut command);
    assert_eq!(found.out, expected.out);
    if expected.out.starts_with("0 ") {
        assert_eq!(found.count(What::NotAllowed), 1, "{:?}", found.counts.rows);
    }
}

#[test]
fn attributes_of_the_program_stay_and_the_kind_shows_the_protocol() {
    let (folder, _alone) = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "attributes.c") else { return };
    let expected = alone(&mut Command::new(&program));
    assert!(expected.status == Some(0) && expected.out.lines().count() == 10, "{}", expected.out);
    let kind = |ran: &Ran, name: &str| {
        let line = ran.err.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
        let hexadecimal =
            line.split("0x").nth(1).and_then(|rest| rest.split(' ').next()).expect("a kind").to_owned();
        u32::from_str_radix(&hexadecimal, 16).expect("hexadecimal") & 0x3ff
    };
    let found = under("inheritance", &mut Command::new(&program));
    assert_eq!((found.out.as_str(), found.status), (expected.out.as_str(), Some(0)));
    // Type in the low two bits, 16 robust, 32 inheritance, 128 process-shared, also of all robust ones; 512 is what NORMAL says of elision.
    let kinds =
        ["default", "recursive", "errorcheck", "adaptive", "robust", "own inheritance", "static recursive"];
    let found_kinds = kinds.map(|name| kind(&found, name) & !512);
    assert_eq!(found_kinds, [32, 33, 34, 35, 144, 32, 33]);
    assert_eq!(kind(&found, "shared") & !512, 128);
    assert!(
        expected.out.contains("errorcheck: lock 0, again 16")
            && expected.out.contains("checking inheritance: lock 0, again 35")
    );
    let counted = [What::Set, What::HasProtocol].map(|what| found.count(what));
    assert_eq!(counted, [7, 2], "{:?}", found.counts.rows);
    assert!(found.count(What::Shared) > 0, "{:?}", found.counts.rows);

    let Some(mut command) = real_time(10, &program) else { return };
    let found = under("ceiling=30", &mut command);
    assert_eq!((found.out.as_str(), found.status), (expected.out.as_str(), Some(0)));
    for name in ["default", "recursive", "errorcheck", "adaptive", "static recursive"] {
        let line = found.err.lines().find(|line| line.starts_with(name)).expect("a line");
        assert!(line.ends_with("priority 30 then 10"), "{line}");
    }
    for name in ["robust", "shared", "own inheritance"] {
        let line = found.err.lines().find(|line| line.starts_with(name)).expect("a line");
        assert!(line.ends_with("priority 10 then 10"), "{line}");
    }
    assert!(found.err.contains("crossed 30 then 10"), "{}", found.err);
    // A ceiling is reached at 30, and a thread above it takes the lock all the same.
    for (priority, above) in [(30, 0), (31, 1)] {
        let Some(mut command) = real_time(priority, &program) else { return };
        let found = under("ceiling=30", &mut command);
        assert_eq!(found.out, expected.out);
        assert_eq!(found.count(What::AboveCeiling).min(1), above, "{priority}: {:?}", found.counts.rows);
        let then = format!("then {priority}\n");
        assert!(found.err.lines().all(|line| format!("{line}\n").ends_with(&then)), "{}", found.err);
    }
}

#[test]
fn first_uses_at_once_keep_exclusion_and_each_lock_is_decided_once() {
    let (folder, _alone) = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "first_use.c") else { return };
    let rules =
        "none\ttake_plainly\ninheritance\ttake_inherited\nceiling=40\ttake_raised\ninheritance\ttake_tried";
    let found = under(rules, &mut Command::new(&program));
    assert_eq!(found.out, "wrong 0, bytes 40\n", "{}", found.err);
    let decided = found.count(What::Set) + found.count(What::Left);
    assert_eq!(decided, 40_000, "{:?}", found.counts);
    let of_rules = found.counts.rows.iter().filter(|row| row.what == What::Set || row.what == What::Left);
    let rules: std::collections::BTreeSet<Option<u32>> = of_rules.map(|row| row.rule).collect();
    assert!(rules.len() >= 2, "several threads came first: {rules:?}");
}

#[test]
fn programs_with_conditions_cancellation_handlers_and_forks_behave_the_same() {
    let (folder, _alone) = folder();
    for (name, expected) in [
        ("cancel.c", "cancelled 1, cleaned 1, mutex free 1"),
        ("old_condition.c", "said 1, a pointer 1, untouched 1"),
        ("early.c", "child 0\nexec 0"),
        ("handover.c", "forked 0 0 0 0 priority 0"),
    ] {
        let Some(program) = compile(folder.path(), "cc", &[], name) else { return };
        assert!(alone(&mut Command::new(&program)).out.contains(expected), "{name}");
        for rules in BOTH {
            let found = under(rules, &mut Command::new(&program));
            assert!(
                found.out.contains(expected) && found.status == Some(0),
                "{name} {rules}: {}{}",
                found.out,
                found.err
            );
            assert!(found.count(What::Set) > 0, "{name} {rules}");
            let Some(mut command) = real_time(10, &program) else { continue };
            let found = under(rules, &mut command);
            assert!(
                found.out.contains(expected) && found.status == Some(0),
                "{name} {rules}: {}{}",
                found.out,
                found.err
            );
            assert_eq!(found.count(What::NotHeld), 0, "{name} {rules}");
        }
    }
    let Some(program) = compile(folder.path(), "c++", &["-x", "c++"], "standard.cc") else { return };
    let expected = "turns 1500, total 1500, got 0, timed out 1\n";
    for rules in BOTH {
        for command in [Some(Command::new(&program)), real_time(10, &program)] {
            let Some(mut command) = command else { continue };
            let found = under(rules, &mut command);
            assert_eq!(found.out, expected, "{rules}: {}", found.err);
        }
    }
}

/// The example: its high thread waits for the middle one's whole execution without a protocol, and for the section with one.
#[test]
fn an_inversion_is_gone_under_inheritance_and_under_a_ceiling() {
    let (folder, _alone) = folder();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/legacy-locks/legacy.c");
    let program = folder.path().join("legacy");
    let built = Command::new("cc")
        .args(["-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    match built {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return println!("SKIPPED: no cc: {error}"),
    }
    if real_time(1, &program).is_none() {
        return;
    }
    let processor = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    let command = || {
        let mut command = Command::new(&program);
        command.arg(processor.to_string());
        command
    };
    let told =
        |found: &str, waited: &str| format!("control: found the bus {found}, waited for video: {waited}\n");
    assert_eq!(alone(&mut command()).out, told("taken", "yes"));
    let line = std::fs::read_to_string(&source).expect("the source");
    let line = 1 + line.lines().position(|line| line.contains("pthread_mutex_lock(&bus)")).expect("the call");
    for (rules, found, waited, what, rule) in [
        ("none".to_owned(), "taken", "yes", What::Left, Some(0)),
        ("inheritance".to_owned(), "taken", "no", What::Set, Some(0)),
        ("ceiling=30".to_owned(), "free", "no", What::Set, Some(0)),
        // A ceiling below the high thread: inheritance is what it gets, and the report names it.
        ("ceiling=20".to_owned(), "taken", "no", What::Set, Some(0)),
        // By the call: the first rule that fits.
        ("none\tvideo*\ninheritance\tbus_write\nnone".to_owned(), "taken", "no", What::Set, Some(1)),
        ("none\tlegacy!*\ninheritance".to_owned(), "taken", "yes", What::Left, Some(0)),
        ("none\tother!*\ninheritance".to_owned(), "taken", "no", What::Set, Some(1)),
        (format!("inheritance\tlegacy.c:{line}"), "taken", "no", What::Set, Some(0)),
        (format!("inheritance\texamples/legacy-locks/*.c:1-{line}\nnone"), "taken", "no", What::Set, Some(0)),
        (format!("inheritance\tlegacy.c:{}", line + 1), "taken", "yes", What::Left, None),
        (format!("inheritance\tegacy.c:{line}"), "taken", "yes", What::Left, None),
    ] {
        let ran = under(&rules, &mut command());
        assert_eq!(ran.out, told(found, waited), "{rules}");
        let row = ran.counts.rows.iter().find(|row| row.what == what && row.rule == rule);
        let row = row.unwrap_or_else(|| panic!("{rules}: {:?}", ran.counts));
        assert_eq!(
            (row.count, row.module.as_slice()),
            (1, program.as_os_str().as_encoded_bytes()),
            "{rules}"
        );
        assert_eq!(ran.count(What::AboveCeiling), u64::from(rules == "ceiling=20") * 2, "{rules}");
    }
    // The very place of the call, by symbol and by module.
    let ran = under("inheritance", &mut command());
    let offset = ran.counts.rows.iter().find(|row| row.what == What::Set).expect("a row").offset;
    for (offset, waited) in [(offset, "no"), (offset + 1, "yes"), (offset - 1, "yes")] {
        assert_eq!(
            under(&format!("inheritance\tlegacy+{offset:#x}"), &mut command()).out,
            told("taken", waited)
        );
    }
}

#[test]
fn a_lock_that_another_thread_unlocks_is_told() {
    let source = "#include <pthread.h>\n#include <stdio.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
                  static void *other(void *a) { printf(\"%d\\n\", pthread_mutex_unlock(&m)); return a; }\n\
                  int main(void) { pthread_t t; pthread_mutex_lock(&m); pthread_create(&t, 0, other, 0);\n\
                  pthread_join(t, 0); return 0; }\n";
    let (folder, _alone) = folder();
    let Some(program) = compile_text(folder.path(), source) else { return };
    assert_eq!(alone(&mut Command::new(&program)).out, "0\n");
    let found = under("inheritance", &mut Command::new(&program));
    assert_eq!((found.out.as_str(), found.count(What::NotHeld)), ("1\n", 1));
    let row = found.counts.rows.iter().find(|row| row.what == What::NotHeld).expect("a row");
    assert!(row.first.name.starts_with(b"other\0"), "{row:?}");
    // A rule leaves it as it is.
    assert_eq!(under("none\tmain\ninheritance", &mut Command::new(&program)).out, "0\n");
}

/// Rules of each form fit a library that the program opens itself.
#[test]
fn rules_fit_a_library_that_is_opened_later() {
    let (folder, _alone) = folder();
    let library = |text: &str| {
        let (file, library) = (folder.path().join("plug.c"), folder.path().join("libplug.so"));
        std::fs::write(&file, text).expect("written");
        // Not written over: a program may have the old one open.
        let fresh = folder.path().join("fresh.so");
        let built = Command::new("cc").args(["-g", "-shared", "-fPIC", "-o"]).args([&fresh, &file]).output();
        assert!(built.is_ok_and(|output| output.status.success()));
        std::fs::rename(&fresh, &library).expect("renamed");
        library
    };
    let source = "#include <dlfcn.h>\n#include <stdlib.h>\nint main(int n, char **v) {\n\
                  for (int i = 2; i < n; i++) { void *h = dlopen(v[1], RTLD_NOW); if (!h) abort();\n\
                  for (int j = 0; j < 3; j++) { ((int (*)(int))dlsym(h, \"plug_lock\"))(j); ((int (*)(int))dlsym(h, \"other_lock\"))(j); }\n\
                  dlclose(h); } return 0; }\n";
    let Some(program) = compile_text(folder.path(), source) else { return };
    let plug = library(
        "#include <pthread.h>\nstatic pthread_mutex_t m[8];\n\
         int plug_lock(int i) {\n    pthread_mutex_lock(&m[i]);\n    return pthread_mutex_unlock(&m[i]); }\n\
         int other_lock(int i) {\n    pthread_mutex_lock(&m[4 + i]);\n    return pthread_mutex_unlock(&m[4 + i]); }\n",
    );
    let command = || {
        let mut command = Command::new(&program);
        command.arg(&plug).arg("x");
        command
    };
    let ran = under("inheritance\tlibplug.so!plug_lock", &mut command());
    let offset = ran.counts.rows.iter().find(|row| row.what == What::Set).expect("a row").offset;
    for (rules, set, left) in [
        ("inheritance\tlibplug.so!plug_*".to_owned(), 3, 3),
        ("inheritance\tplug_*".to_owned(), 3, 3),
        ("inheritance\t*_lock".to_owned(), 6, 0),
        ("inheritance\tlibplug.so!*".to_owned(), 6, 0),
        ("inheritance\tplug.c:4".to_owned(), 3, 3),
        ("inheritance\tplug.c:3-7".to_owned(), 6, 0),
        ("inheritance\tplug.c:5-6".to_owned(), 0, 6),
        ("none\tplug_lock\ninheritance".to_owned(), 3, 3),
        ("none\tother!*\ninheritance\tother_*".to_owned(), 3, 3),
        (format!("inheritance\tlibplug.so+{offset:#x}"), 3, 3),
        (format!("inheritance\tlibplug.so+{:#x}", offset - 1), 0, 6),
        ("inheritance\tlibplug.so!plug_lock+0x1".to_owned(), 0, 6),
        ("inheritance\tno_such".to_owned(), 0, 6),
    ] {
        let ran = under(&rules, &mut command());
        assert_eq!(
            (ran.status, ran.count(What::Set), ran.count(What::Left)),
            (Some(0), set, left),
            "{rules}"
        );
    }
}

/// A program that the library is not in is told by who starts it.
#[test]
fn programs_that_the_library_does_not_reach_are_told() {
    let (folder, _alone) = folder();
    let Some(reached) = compile_text(folder.path(), "int main(void) { return 0; }\n") else { return };
    let (file, fixed) = (folder.path().join("other.c"), folder.path().join("fixed"));
    let built = Command::new("cc").arg("-static").arg("-o").args([&fixed, &file]).output();
    if !built.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED: no static C library");
    }
    let other = folder.path().join("set-group");
    std::fs::copy(&reached, &other).expect("copied");
    let told = |script: &str| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).current_dir(folder.path());
        let path = std::env::var("PATH").unwrap_or_default();
        let ran = under("inheritance", shell.env("PATH", format!("{path}:{}", folder.path().display())));
        let rows = ran
            .counts
            .rows
            .iter()
            .map(|row| (row.what, String::from_utf8_lossy(&row.module).into_owned(), row.count));
        let mut rows: Vec<_> = rows.filter(|(what, ..)| *what >= What::Static).collect();
        rows.sort();
        (rows, ran.status, ran.err)
    };
    let name = |file: &Path| file.display().to_string();
    for (script, what, file, count) in [
        ("./fixed; ./fixed; exit 3", What::Static, "./fixed".to_owned(), 2),
        ("fixed; exit 3", What::Static, name(&fixed), 1),
        ("env fixed; exit 3", What::Static, name(&fixed), 1),
        ("env -i ./other; exit 3", What::Environment, "./other".to_owned(), 1),
        ("env -u LD_PRELOAD ./other; exit 3", What::Environment, "./other".to_owned(), 1),
        ("env -u HOROLOG_LOCK_TABLE ./other; exit 3", What::Environment, "./other".to_owned(), 1),
    ] {
        assert_eq!(told(script), (vec![(what, file, count)], Some(3), String::new()), "{script}");
    }
    assert_eq!(told("./other; env ./other; other; sh -c ./other; exit 3"), (vec![], Some(3), String::new()));
    let (rows, status, _) = told("./nowhere; ./other.c; exit 3");
    assert_eq!((rows, status), (vec![], Some(3)));
    // Python starts programs by vfork and each folder of PATH in turn.
    let script =
        "python3 -c 'import subprocess; subprocess.run([\"fixed\"]); subprocess.run([\"true\"])'; exit 3";
    if Path::new("/usr/bin/python3").exists() {
        assert_eq!(told(script).0, [(What::Static, name(&fixed), 1)]);
    }
    let privileged =
        Command::new("chgrp").arg("65534").arg(&other).status().is_ok_and(|status| status.success())
            && Command::new("chmod").arg("2755").arg(&other).status().is_ok_and(|status| status.success());
    if privileged {
        assert_eq!(told("./set-group; exit 3").0, [(What::Privileged, "./set-group".to_owned(), 1)]);
    }
}

#[test]
fn real_programs_end_the_same_with_the_same_descriptors_and_output() {
    let (_folder, _alone) = folder();
    let shells = [
        ("bash", "exec 3</dev/null; ls /proc/self/fd | wc -l; (exit 7); echo $?; echo a | cat; exit 5"),
        ("bash", "sleep 0 & wait; ls /proc/self/fd | wc -w; kill -9 $$"),
    ];
    for (shell, script) in shells {
        let command = || {
            let mut command = Command::new(shell);
            command.args(["-c", script]);
            command
        };
        let expected = alone(&mut command());
        for rules in BOTH {
            let found = under(rules, &mut command());
            let outcome = |ran: &Ran| (ran.out.clone(), ran.err.clone(), ran.status, ran.signal);
            assert_eq!(outcome(&found), outcome(&expected), "{script}");
            assert!(found.counts.processes > 1 && found.counts.unable == 0, "{:?}", found.counts);
        }
    }
    let python: PathBuf = "/usr/bin/python3.11".into();
    let script = "import threading, queue, os, subprocess, sys\n\
                  q = queue.Queue()\n\
                  t = [threading.Thread(target=lambda: [q.put(1) for _ in range(500)]) for _ in range(4)]\n\
                  [x.start() for x in t]; print(sum(q.get() for _ in range(2000))); [x.join() for x in t]\n\
                  print(subprocess.run(['true']).returncode, len(os.listdir('/proc/self/fd')))\n\
                  p = os.fork()\n\
                  if p == 0: os._exit(4)\n\
                  print(os.waitpid(p, 0)[1]); sys.exit(3)";
    let sqlite = "create table t(a); insert into t values (1), (2), (3); select sum(a) from t;";
    for (program, words) in [(python, vec!["-c", script]), ("sqlite3".into(), vec![":memory:", sqlite])] {
        let command = || {
            let mut command = Command::new(&program);
            command.args(&words);
            command
        };
        let Ok(output) = command().output() else {
            println!("SKIPPED: no {}", program.display());
            continue;
        };
        let expected = of(&output, Counts::default());
        for rules in BOTH {
            let found = under(rules, &mut command());
            assert_eq!(
                (found.out.as_str(), found.status),
                (expected.out.as_str(), expected.status),
                "{}",
                found.err
            );
            assert!(found.count(What::Set) > 0, "{}: {:?}", program.display(), found.counts);
        }
    }
}
