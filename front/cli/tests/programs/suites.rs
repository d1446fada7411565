//! Test suites of others inside a memory cgroup: the same tests pass, fail and are skipped plain, recorded, and with their
//! locks studied. `bench/suites.sh` has those that take longer.

use crate::common::narrow::Narrow;
use crate::common::{Done, HOROLOG, inside, root};
use crate::scripts::SCRIPTS;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What comes before a command: nothing, or a recorder.
const WAYS: [(&str, &[&str]); 3] = [
    ("plain", &[]),
    ("record", &["-q", "trace", "record", "--out", "trace.hrt", "--"]),
    ("locks", &["-q", "trace", "locks", "--"]),
];

/// A command that is run in one of the ways, inside its cgroup and in a folder of its own.
fn command(narrow: &[Narrow; 3], way: usize, folder: &TempDir, program: &[&str]) -> Command {
    let (narrow, (way, words)) = (&narrow[way], WAYS[way]);
    let place = folder.path().join(way);
    fs::create_dir_all(&place).expect("a folder");
    let mut command = match words {
        [] => narrow.command(program[0]),
        words => {
            let mut command = narrow.command(HOROLOG);
            command.args(words).arg(program[0]);
            command
        }
    };
    command.args(&program[1..]).current_dir(place).stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// A cgroup for each way; `None`, said aloud, where none can be made.
fn cgroups(what: &str) -> Option<[Narrow; 3]> {
    let [plain, record, locks] = WAYS.map(|(way, _)| Narrow::new(&format!("{what}-{way}")));
    Some([plain?, record?, locks?])
}

/// Runs `run` for all ways at once; its results in the order of [`WAYS`].
fn each_way<T: Send>(run: impl Fn(usize) -> T + Sync) -> [T; 3] {
    std::thread::scope(|scope| {
        let run = &run;
        [0, 1, 2].map(|way| scope.spawn(move || run(way))).map(|thread| thread.join().expect("it ends"))
    })
}

/// Every file of a folder with its text, but for the recorder's own.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().expect("known");
        if kind.is_dir() {
            all.extend(texts(&path).into_iter().map(|(inner, text)| (format!("{name}/{inner}"), text)));
        } else if kind.is_file() && name != "trace.hrt" {
            all.insert(name, String::from_utf8_lossy(&fs::read(&path).expect("readable")).into_owned());
        }
    }
    all
}

#[test]
fn thirty_scripts_of_redirections_write_what_they_write_alone() {
    let Some(narrow) = cgroups("scripts") else { return };
    for shell in [&["bash"][..], &["dash"], &["busybox", "sh"]] {
        if Command::new(shell[0]).args(["-c", "true"]).output().is_err() {
            println!("SKIPPED: no {}", shell[0]);
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let scripts = folder.path().join("scripts");
        fs::create_dir(&scripts).expect("a folder");
        for (number, script) in SCRIPTS.iter().enumerate() {
            fs::write(scripts.join(number.to_string()), script).expect("writes");
        }
        let shell_words = shell.join(" ");
        let driver = format!(
            "for i in $(seq 0 29); do mkdir $i; cd $i; {shell_words} ../../scripts/$i >out 2>err; echo $? >status; cd ..; done"
        );
        let program = [shell, &["-c", &driver]].concat();
        let [plain, record, locks] = each_way(|way| {
            let seen = Done::of(command(&narrow, way, &folder, &program).env("SHELL_UNDER_TEST", shell[0]));
            assert_eq!(seen.status, Some(0), "{way:?}: {seen:?}");
            texts(&folder.path().join(WAYS[way].0))
        });
        assert_eq!(plain.keys().filter(|name| name.ends_with("/status")).count(), SCRIPTS.len());
        assert_eq!(plain["0/out"], "line 1\nline 2\nline 3\n");
        for (name, text) in &plain {
            assert_eq!(record.get(name), Some(text), "{shell:?} {name}, recorded");
            assert_eq!(locks.get(name), Some(text), "{shell:?} {name}, locks studied");
        }
        assert_eq!((plain.len(), plain.len()), (record.len(), locks.len()));
    }
}

/// What became of each test, by its name.
type Outcomes = BTreeMap<String, String>;

/// The way's outcomes must be the plain ones. A test that came out otherwise is asked again, in both ways, by `again`:
/// tests that measure time fail now and then on a busy machine. What fails plain is excluded.
fn same(way: &str, plain: &Outcomes, seen: &Outcomes, again: impl Fn(&str) -> bool) {
    assert!(plain.len() > 20, "{plain:?}");
    assert_eq!(plain.keys().collect::<Vec<_>>(), seen.keys().collect::<Vec<_>>(), "{way}");
    for (name, outcome) in plain {
        if outcome == "failed" {
            println!("excluded, since it fails plain: {name}");
        } else if seen[name] != *outcome {
            assert!((0..2).any(|_| again(name)), "{name}: {outcome} plain, {} in {way}", seen[name]);
        }
    }
}

const PYTHON: &str = "/usr/bin/python3.11";

#[test]
fn pythons_own_tests_of_processes_threads_and_files_come_out_as_alone() {
    if !Path::new("/usr/lib/python3.11/test/test_subprocess.py").exists() {
        println!("SKIPPED: no libpython3.11-testsuite");
        return;
    }
    let Some(narrow) = cgroups("python") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = root().join("front/cli/tests/programs/outcomes.py").to_string_lossy().into_owned();
    let run = |way: usize, tests: &[&str]| -> (Outcomes, Done) {
        let out = inside(&folder, &format!("{}-outcomes", WAYS[way].0));
        let program = [&[PYTHON, &script, &out], tests].concat();
        let seen = Done::of(&mut command(&narrow, way, &folder, &program));
        let text = fs::read_to_string(&out).unwrap_or_else(|error| panic!("{error}: {seen:?}"));
        fs::remove_file(&out).expect("was there");
        let split =
            |line: &str| line.split_once('\t').map(|(outcome, name)| (name.to_owned(), outcome.to_owned()));
        (text.lines().filter_map(split).collect(), seen)
    };
    let modules = ["test.test_subprocess", "test.test_threading", "test.test_os"];
    let [plain, record, locks] = each_way(|way| run(way, &modules));
    for (way, seen) in [(1, record), (2, locks)] {
        println!("{}: {} tests, at most {:?} bytes", WAYS[way].0, seen.0.len(), narrow[way].peak());
        same(WAYS[way].0, &plain.0, &seen.0, |name| {
            let (alone, (recorded, done)) = (run(0, &[name]).0, run(way, &[name]));
            if alone != recorded {
                println!("{name} in {}: {}", WAYS[way].0, done.err);
            }
            alone == recorded
        });
    }
}

/// Those of glib's installed tests that are about threads and take less than a quarter of a minute.
const GLIB: [&str; 16] = [
    "thread",
    "thread-pool",
    "mutex",
    "rec-mutex",
    "rwlock",
    "cond",
    "once",
    "onceinit",
    "asyncqueue",
    "threadtests",
    "spawn-multithreaded",
    "spawn-singlethread",
    "bitlock",
    "atomic",
    "private",
    "mainloop",
];

#[test]
fn glibs_own_tests_of_threads_come_out_as_alone() {
    let place = Path::new("/usr/libexec/installed-tests/glib");
    if !place.join("thread").exists() {
        println!("SKIPPED: no libglib2.0-tests");
        return;
    }
    let Some(narrow) = cgroups("glib") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = |way: usize, name: &str| -> Outcomes {
        let program = place.join(name).to_string_lossy().into_owned();
        let seen = Done::of(&mut command(&narrow, way, &folder, &[&program, "--tap"]));
        // `ok 3 /thread/mutex3`, `not ok 4 ...`, `ok 5 ... # SKIP why`.
        let lines = seen.out.lines().chain(seen.err.lines()).filter_map(|line| {
            let outcome = if line.contains("# SKIP") { "skipped" } else { "passed" };
            let (words, outcome) = match line.strip_prefix("not ok ") {
                Some(words) => (words, "failed"),
                None => (line.strip_prefix("ok ")?, outcome),
            };
            Some((format!("{name} {}", words.split_whitespace().nth(1)?), outcome.to_owned()))
        });
        lines.collect()
    };
    let [plain, record, locks] =
        each_way(|way| GLIB.iter().flat_map(|name| run(way, name)).collect::<Outcomes>());
    for (way, seen) in [(1, record), (2, locks)] {
        same(WAYS[way].0, &plain, &seen, |name| {
            let program = name.split(' ').next().unwrap_or(name);
            run(0, program).get(name) == run(way, program).get(name)
        });
    }
}
