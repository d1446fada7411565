//! Commands that record or run are killed, hung up and interrupted at any moment: the whole machine must be as before.
//!
//! `HOROLOG_KILLS=400 cargo test -p horolog --test left_behind` kills as often; `HOROLOG_SEED=N` repeats a series.

mod common;
#[path = "common/machine.rs"]
mod machine;

use common::{
    PATIENT, Running, done, end, folder, guardian_of, horolog, inside, is_alive, real_time, signal, wait_for,
};
use machine::{Machine, processes_with};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// By which the victim, its guardian and all that it starts are found.
const TAG: &str = "HOROLOG_TEST_VICTIM";
/// How often is killed in the test command.
const KILLS: u64 = 44;
const SIGNALS: [&str; 4] = ["KILL", "TERM", "HUP", "INT"];

/// What may be killed: the words of a command, and within how many milliseconds after its start it is killed.
struct Case {
    words: Vec<String>,
    within_ms: u64,
}

/// A command that starts another one, which it does not wait for when it is ended.
const NEST: &str = "sleep 1000 & sleep 1000";

/// A thread to be served: it sleeps, and is ended with the test.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cases(place: &TempDir, served: u32) -> Vec<Case> {
    let file = |name: &str, text: &str| {
        let path = inside(place, name);
        fs::write(&path, text).expect("writable");
        path
    };
    let threads = file("threads.toml", PATIENT);
    let program = file(
        "program.toml",
        &PATIENT.replace("{ spin = \"4 ms\" }", &format!("{{ command = [\"sh\", \"-c\", \"{NEST}\"] }}")),
    );
    let out = |name: &str| inside(place, name);
    let case = |within_ms, words: &[&str]| Case {
        words: words.iter().map(|&word| word.to_owned()).collect(),
        within_ms,
    };
    let served = served.to_string();
    vec![
        case(500, &["trace", "record", "--kernel", "-o", &out("t.hrt"), "--", "sh", "-c", NEST]),
        case(600, &["run", &threads, "--for", "60s", "--trace", &out("run.hrt")]),
        case(600, &["run", &program, "--for", "60s", "--trace", &out("program.hrt")]),
        case(900, &["loop", &threads, "--for", "60s", "--out", &out("loop")]),
        case(600, &["measure", "costs", "--cpu", "1", "--for", "20s", "--interrupt", "call,network"]),
        case(900, &["measure", "machine", "--cpu", "1", "-o", &out("machine.toml")]),
        case(400, &["measure", "extract", "--for", "60s", "--", "sh", "-c", NEST]),
        case(300, &["trace", "locks", "--for", "60s", "--", "sh", "-c", NEST]),
        case(300, &["trace", "top", "--", "sh", "-c", NEST]),
        case(400, &["measure", "interference", "--cpu", "1", "--only", "load", "--", "sh", "-c", NEST]),
        case(400, &["measure", "blocking", "--for", "60s", "--", "sh", "-c", NEST]),
        case(300, &["serve", &served, "--budget", "1ms", "--period", "10ms", "--priority", "60"]),
        case(900, &["experiment", "run", "driver-framework"]),
        case(900, &["experiment", "run", "driver-load-bounds"]),
    ]
}

/// The same series for the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a whole number"))
}

fn start(words: &[String], tag: &str) -> Running {
    let mut command = horolog(words.iter().map(String::as_str));
    command.env(TAG, tag).env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR");
    common::start(command.stdin(Stdio::null()))
}

/// What is left, in words, once all processes of the victim are gone, or half a minute is over.
fn left(before: &Machine, victim: u32, tag: &str) -> Vec<String> {
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        let processes = processes_with(&format!("{TAG}={tag}"));
        let mut changes = before.changes_to(&Machine::now(Some(victim)));
        // What other programs change for a moment passes; what the victim has left does not.
        if (processes.is_empty() && changes.is_empty()) || Instant::now() > limit {
            changes.extend(processes.into_iter().map(|process| format!("process {process}")));
            return changes;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_that_is_killed_at_any_moment_leaves_the_machine_as_it_was() {
    let Some(_alone) = real_time() else { return };
    let (kills, seed) = (number("HOROLOG_KILLS", KILLS), number("HOROLOG_SEED", 11));
    println!("{kills} kills, seed {seed}");
    let mut draw = Draw(seed);
    let (place, _) = folder("");
    let sleeper = Sleeper(Command::new("sleep").arg("1000").spawn().expect("sleep starts"));
    let cases = cases(&place, sleeper.0.id());
    let (mut failures, mut met) = (Vec::new(), 0);
    for kill in 0..kills {
        let case = &cases[(kill % cases.len() as u64) as usize];
        // Each case meets each signal.
        let name = SIGNALS[((kill / cases.len() as u64 + kill) % 4) as usize];
        let after = Duration::from_micros(draw.below(case.within_ms * 1_000));
        let tag = format!("{}-{kill}", std::process::id());
        let before = Machine::now(None);
        let victim = start(&case.words, &tag);
        let id = victim.id();
        std::thread::sleep(after);
        if is_alive(&id.to_string()) {
            met += 1;
            signal(id, name);
        }
        let ended = end_within(victim, Duration::from_secs(20));
        let left = left(&before, id, &tag);
        if !left.is_empty() {
            failures.push(format!("{name} after {after:?} of {}: {left:#?}\n{ended}", case.words.join(" ")));
        }
    }
    // Where the words of a case were wrong, it would end before it is killed.
    assert!(met * 4 >= kills * 3, "only {met} of {kills} were still running when they were to be killed");
    assert!(failures.is_empty(), "{} of {kills}: {}", failures.len(), failures.join("\n"));
}

/// Waits for the end of a command that was asked to end, and kills it where it does not come; what it said.
fn end_within(running: Running, patience: Duration) -> String {
    let id = running.id().to_string();
    let limit = Instant::now() + patience;
    let mut note = "";
    while is_alive(&id) {
        if Instant::now() > limit {
            note = "; it did not end by itself";
            signal(running.id(), "KILL");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let done = end(running);
    format!("{:?}{note}: {}", done.status, done.err.trim())
}

/// The recordings of the kernel by a process.
fn instances_of(process: u32) -> usize {
    let names = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let marks = names.filter_map(|name| horolog_sys::guardian::Mark::parse(&name));
    marks.filter(|mark| mark.process() == process).count()
}

/// A command that records the kernel and has started a child; `None`, said aloud, where the kernel cannot be recorded so.
fn recorder(place: &TempDir, tag: &str) -> Option<Running> {
    let out = inside(place, "t.hrt");
    let words = ["trace", "record", "--kernel", "-o", &out, "--", "sh", "-c", NEST].map(str::to_owned);
    let recorder = start(&words, tag);
    let is_up = || instances_of(recorder.id()) > 0 && processes_with(&format!("{TAG}={tag}")).len() >= 4;
    let limit = Instant::now() + Duration::from_secs(10);
    while !is_up() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    if instances_of(recorder.id()) == 0 {
        println!("SKIPPED: it records nothing through tracefs here");
        return None;
    }
    Some(recorder)
}

#[test]
fn a_guardian_that_is_killed_alone_is_replaced_and_the_new_one_puts_everything_back() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let tag = format!("{}-replaced", std::process::id());
    let before = Machine::now(None);
    let Some(recorder) = recorder(&place, &tag) else { return };
    let id = recorder.id();
    let mut known = Vec::new();
    for _ in 0..3 {
        let guardian = guardian_of(id).expect("it is guarded");
        known.push(guardian);
        signal(guardian, "KILL");
        wait_for("another guardian", || guardian_of(id).is_some_and(|guardian| !known.contains(&guardian)));
    }
    assert!(instances_of(id) > 0 && is_alive(&id.to_string()), "the recording goes on");
    signal(id, "KILL");
    let ended = end(recorder);
    assert_eq!(left(&before, id, &tag), Vec::<String>::new(), "{ended:?}");
    assert_eq!(ended.err.matches("has ended before the run; process").count(), 3, "{ended:?}");
}

/// No process is left to put anything back: the journal and the names say what to do.
#[test]
fn what_a_command_and_its_guardian_leave_that_are_killed_at_once_is_told_and_put_back() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let tag = format!("{}-both", std::process::id());
    let before = Machine::now(None);
    let Some(recorder) = recorder(&place, &tag) else { return };
    let id = recorder.id();
    // Stopped, it cannot replace its guardian before it is killed itself.
    signal(id, "STOP");
    signal(guardian_of(id).expect("it is guarded"), "KILL");
    signal(id, "KILL");
    let _ = recorder;
    wait_for("its end", || !is_alive(&id.to_string()));
    assert_eq!(instances_of(id), 1, "it records on");
    let doctor = done(["doctor", "--format", "json"]).json();
    let clean = doctor["facts"].as_array().expect("facts").iter().find(|fact| fact["name"] == "clean");
    let clean = clean.expect("the fact clean");
    assert_eq!(clean["state"], "no", "{clean}");
    for part in ["recordings of the kernel", "killed together with their guardians", "temporary files"] {
        assert!(clean["detail"].as_str().is_some_and(|text| text.contains(part)), "{part}: {clean}");
    }
    let told = done(["doctor"]).out;
    assert!(told.contains(&format!("-{id}-")) && told.contains("doctor --restore"), "{told}");
    let restored = done(["doctor", "--restore", "--format", "json"]);
    let json = restored.json();
    let journals = json["journals"].as_array().expect("journals");
    let ours =
        journals.iter().find(|journal| journal["run"] == id).expect("the journal of the killed command");
    // The instance, the folder, the command, and what it has started.
    assert!(ours["put_back"].as_u64() >= Some(4) && ours["failures"] == serde_json::json!([]), "{json}");
    assert_eq!(left(&before, id, &tag), Vec::<String>::new(), "{json}");
}

/// Without a journal, as of a program that has no guardian, names alone tell what is left.
#[test]
fn folders_that_killed_commands_have_left_are_told_and_removed() {
    let (place, _) = folder("");
    let fresh = horolog_sys::guardian::Mark::fresh().expect("procfs").to_string();
    let mut words: Vec<&str> = fresh.split('-').collect();
    words[4] = "1";
    let left = place.path().join(words.join("-"));
    let theirs = place.path().join("horolog-run-of-somebody");
    for folder in [&left, &theirs] {
        fs::create_dir_all(folder.join("inner")).expect("writable");
    }
    let run = |words: &[&str]| {
        let mut command = horolog(words.iter().copied());
        common::Done::of(command.env("TMPDIR", place.path()).env("XDG_RUNTIME_DIR", place.path()))
    };
    assert!(run(&["doctor"]).out.contains(left.to_str().expect("UTF-8")), "it is told");
    let json = run(&["doctor", "--restore", "--format", "json"]).json();
    assert!(json["folders"].to_string().contains(left.to_str().expect("UTF-8")), "{json}");
    assert!(!left.exists() && Path::new(&theirs).join("inner").exists());
}
