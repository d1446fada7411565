//! Closed pipes, full disks, damaged traces, hostile systems: an answer, an exit status, never a panic or a hang.

mod common;

use common::{Done, HOROLOG, done, folder, horolog, inside, real_time};
use std::fs::{self, OpenOptions};
use std::process::{Command, Stdio};

const QUICK_START: &str = "examples/quick-start/system.toml";

const TINY: &str = "[system]\nname = \"tiny\"\n[platform]\ncpus = [0]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\n";

/// A simulated trace of the quick start.
fn trace(folder: &tempfile::TempDir) -> String {
    let trace = inside(folder, "simulated.trace");
    let made = done(["simulate", QUICK_START, "--for", "60s", "--seed", "1", "--trace", &trace]);
    assert_eq!(made.status, Some(0), "{made:?}");
    trace
}

/// What is read is never written over, also not by a link.
#[test]
fn an_output_that_is_the_input_leaves_it_as_it_was() {
    let (place, system) = folder(TINY);
    let trace = trace(&place);
    let link = inside(&place, "link.pftrace");
    std::os::unix::fs::symlink(&trace, &link).unwrap();
    let counterexample = inside(&place, "pattern.json");
    fs::write(&counterexample, "{}").unwrap();
    let in_folder = inside(&place, "report.html");
    fs::copy(&system, &in_folder).unwrap();
    let hard_link = inside(&place, "hard.toml");
    fs::hard_link(&system, &hard_link).unwrap();
    let told = |file: &str| format!("json={file}");
    let (told_in_system, told_in_link, told_in_trace) = (told(&system), told(&hard_link), told(&trace));
    let joined = format!("--format={told_in_system}");
    let (profile, command) = (inside(&place, "machine.toml"), inside(&place, "command.sh"));
    for file in [&profile, &command] {
        fs::write(file, "#!/bin/sh\n").unwrap();
    }
    let ctf = place.path().join("old.ctf");
    fs::create_dir(&ctf).unwrap();
    let in_ctf = ctf.join("trace.hrt").display().to_string();
    fs::copy(&trace, &in_ctf).unwrap();
    let (replay, told_in_pattern) = (format!("--replay={counterexample}"), told(&counterexample));
    let other = format!("junit={}", inside(&place, "other.xml"));
    let calls: [(&str, &[&str]); 27] = [
        (&system, &["check", &system, "--format", &told_in_system]),
        (&system, &["analyze", "--format", &other, &joined, &system]),
        (&system, &["simulate", &system, "--format", &told_in_link]),
        (&system, &["run", &system, "--for", "10ms", "--format", &told_in_system]),
        (&system, &["loop", &system, "--for", "10ms", "--format", &told_in_system]),
        (&system, &["sweep", &system, "--format", &told_in_system]),
        (&trace, &["verify", &system, &trace, "--format", &told_in_trace]),
        (&trace, &["trace", "diff", &trace, &system, "--format", &told_in_trace]),
        (&counterexample, &["simulate", &system, &replay, "--format", &told_in_pattern]),
        (&counterexample, &["simulate", &system, "--replay", &counterexample, "--trace", &counterexample]),
        (&in_folder, &["loop", &in_folder, "--for", "10ms", "--out", place.path().to_str().unwrap()]),
        (&system, &["analyze", "--partition", "first-fit", &system, "--output", &system]),
        (&system, &["analyze", "--partition", "first-fit", &system, "--output", &hard_link]),
        (&system, &["analyze", &system, "--counterexample", &hard_link]),
        (&system, &["loop", &system, "--for", "10ms", "--out", place.path().to_str().unwrap()]),
        (&profile, &["analyze", &system, "--machine", &profile, "--certificate", &profile]),
        (&command, &["trace", "record", "-o", &command, "--", &command]),
        (&in_ctf, &["trace", "convert", &in_ctf, ctf.to_str().unwrap()]),
        (&system, &["qos", "allocate", &system, "--curve", &hard_link]),
        (&trace, &["qos", "allocate", &system, "--from", &trace, "--curve", &trace]),
        (&trace, &["trace", "convert", &trace, &trace, "--to", "perfetto"]),
        (&trace, &["trace", "convert", &trace, &link]),
        (&trace, &["measure", "extract", "--from", &trace, "-o", &trace]),
        (&system, &["simulate", &system, "--trace", &system]),
        (&system, &["run", &system, "--for", "10ms", "--trace", &system]),
        (&system, &["analyze", &system, "--certificate", &system]),
        (&system, &["analyze", &system, "--counterexample", &system]),
    ];
    for (input, words) in calls {
        let before = fs::read(input).unwrap();
        let found = done(words.iter().copied());
        assert_eq!(found.status, Some(2), "{words:?}: {found:?}");
        assert!(found.err.contains("is what is read") && found.err.contains("another name"), "{found:?}");
        assert!(fs::read(input).unwrap() == before, "{words:?} has changed its input");
    }
    // Nor where it comes through the standard input.
    let before = fs::read(&system).unwrap();
    for words in [["check", "-", "--format", &told_in_system], ["analyze", "-", "--certificate", &system]] {
        let input = OpenOptions::new().read(true).open(&system).unwrap();
        let found = Done::of(horolog(words).stdin(input));
        assert!(found.status == Some(2) && fs::read(&system).unwrap() == before, "{words:?}: {found:?}");
    }
    // Nor by an error of usage.
    let before = fs::read(&system).unwrap();
    let found = done(["check", &system, "--nothing", "--format", &told_in_system, "--format", &other]);
    assert!(found.status == Some(2) && fs::read(&system).unwrap() == before, "{found:?}");
    assert!(fs::read_to_string(inside(&place, "other.xml")).unwrap().contains("--nothing"));
}

/// What a loop has written may be looped again in its folder, and a pipe has one writer.
#[test]
fn a_legal_output_is_not_refused() {
    let (place, system) = folder(TINY);
    let out = inside(&place, "out");
    let looped = |file: &str| {
        let words = ["loop", file, "--for", "20ms", "--machine", "none", "--best-effort", "--out", &out];
        let found = done(words);
        assert_ne!(found.no_panic().status, Some(2), "{found:?}");
    };
    looped(&system);
    looped(&place.path().join("out/system.toml").display().to_string());
    let pipe = inside(&place, "pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let found = done(["check", &system, "--format", &format!("json={pipe}")]);
    let read = reader.wait_with_output().unwrap();
    assert!(found.status == Some(0) && read.stdout.starts_with(b"{"), "{found:?} {read:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let (place, _) = folder("");
    let trace = trace(&place);
    let calls: [&[&str]; 8] = [
        &["trace", "show", &trace],
        &["trace", "stats", &trace],
        &["check", QUICK_START],
        &["analyze", QUICK_START],
        &["simulate", QUICK_START, "--format", "json"],
        &["completions", "bash"],
        &["man"],
        &["help"],
    ];
    for words in calls {
        let mut child = common::start(&mut horolog(words.iter().copied()));
        child.close_stdout();
        let ended = common::end(child);
        ended.no_panic();
        assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
    }
}

#[test]
fn nobody_reads_the_progress_either() {
    let mut child = common::start(&mut horolog(["simulate", QUICK_START]));
    child.close_stderr();
    assert_eq!(common::end(child).no_panic().status, Some(0));
}

#[test]
fn a_full_disk_is_told() {
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    for words in [&["analyze", QUICK_START][..], &["check", QUICK_START], &["man"]] {
        let ended = Done::of(horolog(words.iter().copied()).stdout(full()));
        ended.no_panic();
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.err.contains("No space left on device"), "{ended:?}");
    }
    let ended = done(["simulate", QUICK_START, "--for", "60s", "--trace", "/dev/full"]);
    ended.no_panic();
    assert!(ended.status != Some(0) && ended.err.contains("No space left on device"), "{ended:?}");
    let ended = done(["analyze", QUICK_START, "--certificate", "/dev/full"]);
    assert!(ended.status == Some(2) && ended.err.contains("/dev/full"), "{ended:?}");
}

/// The kernel sends a signal that ends programs, where they do not ask for the error.
#[test]
fn a_file_size_limit_is_a_failed_write() {
    let (place, _) = folder("");
    let limited = |blocks: u32, words: &str| {
        let script =
            format!("ulimit -S -f {blocks}; exec {HOROLOG} {words} --trace {}", inside(&place, "t.hrt"));
        Done::of(Command::new("sh").args(["-c", &script]).current_dir(common::root()))
    };
    let ended = limited(8, &format!("simulate {QUICK_START} --for 60s"));
    assert!(ended.status.is_some() && ended.no_panic().err.contains("File too large"), "{ended:?}");
    let Some(_alone) = real_time() else { return };
    let ended = limited(8, &format!("run {QUICK_START} --for 2s"));
    assert!(ended.status.is_some() && ended.no_panic().err.contains("File too large"), "{ended:?}");
}

#[test]
fn a_cut_trace_is_read_up_to_the_damage() {
    let (place, _) = folder("");
    let trace = trace(&place);
    let whole = fs::read(&trace).expect("readable");
    let all = done(["trace", "show", &trace]).out.lines().count();
    let cut = inside(&place, "cut.trace");
    fs::write(&cut, &whole[..whole.len() * 2 / 3]).expect("writable");
    let shown = done(["trace", "show", &cut]);
    assert_eq!(shown.no_panic().status, Some(1), "{}", shown.err);
    assert!(shown.out.lines().last().is_some_and(|line| line == "# events lost: 0"), "{shown:?}");
    let kept = shown.out.lines().count();
    assert!(kept > 0 && kept < all, "{kept} of {all}");
    assert!(shown.err.contains("damaged") && shown.err.contains("byte"), "{}", shown.err);
    let counted = done(["trace", "stats", &cut, "--format", "json"]);
    assert!(counted.json()["damage"].is_string(), "{counted:?}");
    let verified = done(["verify", QUICK_START, &cut, "--format", "json"]);
    assert!(!verified.no_panic().json()["damage"].is_null(), "{verified:?}");
}

#[test]
fn flipped_bytes_neither_panic_nor_pass_unseen() {
    let (place, _) = folder("");
    let trace = trace(&place);
    let whole = fs::read(&trace).expect("readable");
    let hurt = inside(&place, "hurt.trace");
    for part in 1..8 {
        let mut bytes = whole.clone();
        let at = bytes.len() * part / 8;
        bytes[at] ^= 0x55;
        fs::write(&hurt, &bytes).expect("writable");
        let shown = done(["trace", "stats", &hurt]);
        shown.no_panic();
        assert_ne!(shown.status, Some(0), "byte {at}");
    }
}

/// Period, wcet, deadline.
type Line = (&'static str, &'static str, &'static str);

/// One task a line.
fn tasks(policy: &str, lines: &[Line]) -> String {
    let mut text = format!("[system]\nname = \"hostile\"\npolicy = \"{policy}\"\n[platform]\ncpus = 1\n");
    for (index, (period, wcet, deadline)) in lines.iter().enumerate() {
        text += &format!(
            "[[task]]\nname = \"t{index}\"\nperiod = \"{period}\"\nwcet = \"{wcet}\"\ndeadline = \"{deadline}\"\n"
        );
        if policy == "fixed-priority" {
            text += &format!("priority = {}\n", 90 - index);
        }
    }
    text
}

#[test]
fn hostile_systems_get_an_answer() {
    let prime = ("999999999989 ns", "333333333333 ns", "999999999989 ns");
    let cases: [(&str, &[Line]); 5] = [
        // Utilisation of exactly 1.
        ("exactly one", &[("10 ms", "5 ms", "10 ms"), ("20 ms", "10 ms", "20 ms")]),
        // A hyperperiod far beyond 64 bits.
        (
            "hyperperiod",
            &[
                prime,
                ("999999999961 ns", "333333333333 ns", "999999999961 ns"),
                ("999999999937 ns", "1 ns", "999999999937 ns"),
            ],
        ),
        ("overload", &[("1 ns", "1 ns", "1 ns"), ("2 ns", "2 ns", "2 ns"), ("3 ns", "3 ns", "3 ns")]),
        (
            "just below one",
            &[
                ("2 ns", "1 ns", "4 ns"),
                ("18446744073709551 us", "9223372036854775 us", "18446744073709551 us"),
            ],
        ),
        ("long deadlines", &[("10 ms", "9999999 ns", "10000 s"), ("1000 s", "9 ns", "18000 s")]),
    ];
    for (name, lines) in cases {
        for policy in ["fixed-priority", "edf"] {
            let (_place, file) = folder(&tasks(policy, lines));
            let analysis = done(["analyze", &file, "--format", "json"]);
            analysis.no_panic();
            if analysis.status == Some(2) {
                assert!(analysis.err.starts_with("error"), "{name}, {policy}: {analysis:?}");
                continue;
            }
            let answer = analysis.json()["schedulable"].clone();
            assert_eq!(analysis.status == Some(0), answer == "yes", "{name}, {policy}: {analysis:?}");
            if name == "overload" {
                assert_eq!(answer, "no", "{policy}");
            }
            if name == "exactly one" {
                assert_eq!(answer, "yes", "{policy}");
            }
            done(["simulate", &file, "--jobs", "1000"]).no_panic();
        }
    }
}

#[test]
fn a_miss_comes_with_a_pattern_that_runs_into_it() {
    let (place, file) =
        folder(&tasks("fixed-priority", &[("10 ms", "6 ms", "10 ms"), ("25 ms", "9 ms", "20 ms")]));
    let pattern = inside(&place, "pattern.json");
    let analysis = done(["analyze", &file, "--counterexample", &pattern]);
    assert_eq!(analysis.status, Some(1), "{analysis:?}");
    let replay = done(["simulate", &file, "--replay", &pattern]);
    assert_eq!(replay.status, Some(1), "{replay:?}");
    assert!(
        replay.err.contains("misses its deadline") && replay.err.contains(" as the pattern promised"),
        "{replay:?}"
    );
    assert!(!replay.err.contains("NOT"), "{replay:?}");

    // A system with one number more, in which the same job shows the same response: it was not promised anything.
    let task = tasks("fixed-priority", &[("10 ms", "6 ms", "10 ms"), ("25 ms", "9 ms", "21 ms")]);
    let (_other, changed) = folder(&task);
    let replay = done(["simulate", &changed, "--replay", &pattern]);
    assert!(replay.status == Some(1) && replay.err.contains("another system"), "{replay:?}");
    assert!(!replay.err.contains("as the pattern promised"), "{replay:?}");
    // A pattern that does not say what it was made for, and one that promises no response time.
    let mut json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&pattern).expect("it was written"))
            .expect("it is JSON");
    for (key, words) in [("system_digest", "for which system"), ("response_ns", "no response time")] {
        let part = if key == "response_ns" { &mut json["witness"] } else { &mut json };
        part.as_object_mut().expect("an object").remove(key);
        std::fs::write(&pattern, json.to_string()).expect("the folder is ours");
        let replay = done(["simulate", &file, "--replay", &pattern]);
        assert!(replay.status == Some(1) && replay.err.contains(words), "{key}: {replay:?}");
        assert!(replay.err.contains("not decided"), "{key}: {replay:?}");
    }
}

#[test]
fn a_certificate_passes_the_checker_and_a_forged_one_does_not() {
    let (place, _) = folder("");
    let certificate = inside(&place, "certificate.json");
    assert_eq!(done(["analyze", QUICK_START, "--certificate", &certificate]).status, Some(0));
    let checked = done(["check-certificate", QUICK_START, &certificate]);
    assert!(
        checked.status == Some(0) && checked.out.contains("each claim of the certificate holds"),
        "{checked:?}"
    );
    // The same claims about a system that needs longer.
    let set = "task.control.wcet=\"2.5 ms\"";
    let forged = done(["check-certificate", QUICK_START, &certificate, "--set", set]);
    assert!(forged.status == Some(1) && forged.out.contains("flaw"), "{forged:?}");
}

#[test]
fn a_certificate_that_leaves_tasks_out_decides_nothing_of_them() {
    let (place, _) = folder("");
    let certificate = inside(&place, "certificate.json");
    assert_eq!(done(["analyze", QUICK_START, "--certificate", &certificate]).status, Some(0));
    let whole: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&certificate).expect("it was written")).expect("JSON");
    let count = whole["claims"].as_array().expect("claims").len();
    for left in 0..count {
        let mut part = whole.clone();
        part["claims"].as_array_mut().expect("claims").truncate(left);
        std::fs::write(&certificate, part.to_string()).expect("the folder is ours");
        let checked = done(["check-certificate", QUICK_START, &certificate]);
        assert!(
            checked.status == Some(4) && checked.out.contains("not decided: no claim for"),
            "{checked:?}"
        );
    }
}

#[test]
fn a_proved_miss_is_no_yes_and_an_empty_certificate_is_not_written() {
    let (place, file) =
        folder(&tasks("fixed-priority", &[("10 ms", "6 ms", "10 ms"), ("25 ms", "9 ms", "20 ms")]));
    let certificate = inside(&place, "certificate.json");
    assert_eq!(done(["analyze", &file, "--certificate", &certificate]).status, Some(1));
    let checked = done(["check-certificate", &file, &certificate]);
    assert!(checked.status == Some(1) && checked.out.contains("proved to miss"), "{checked:?}");

    // Overload, and a certificate that says nothing.
    let (other, file) =
        folder(&tasks("fixed-priority", &[("10 ms", "6 ms", "10 ms"), ("10 ms", "9 ms", "20 ms")]));
    let empty = inside(&other, "empty.json");
    let text = r#"{"schema":"horolog.certificate/1","system":"SYSTEM","claims":[]}"#;
    std::fs::write(&empty, text.replace("SYSTEM", "hostile")).expect("the folder is ours");
    let checked = done(["check-certificate", &file, &empty]);
    assert!(checked.status == Some(4) && checked.out.contains("not decided"), "{checked:?}");
}

#[test]
fn quiet_leaves_only_results_and_the_same_seed_gives_the_same_run() {
    let words = ["simulate", "examples/edf/system.toml", "--seed", "5", "--for", "2s", "--format", "json"];
    let (one, two) = (done(words), done(words));
    assert_eq!(one.json(), two.json());
    assert_eq!(one.json()["seed"], 5);
    let quiet = done(["-q", "simulate", "examples/edf/system.toml"]);
    // The verdict is a result.
    assert!(quiet.err.lines().count() == 1 && quiet.err.starts_with("holds: "), "{quiet:?}");
    let drawn = done(["simulate", "examples/edf/system.toml", "--format", "json"]);
    let seed = drawn.json()["seed"].to_string();
    assert!(drawn.err.contains(&format!("--seed {seed}")), "{drawn:?}");
}

#[test]
fn a_perfetto_file_and_a_diff_come_from_traces() {
    let (place, _) = folder("");
    let trace = trace(&place);
    let out = inside(&place, "t.pftrace");
    let converted = done(["trace", "convert", &trace, &out]);
    assert_eq!(converted.status, Some(0), "{converted:?}");
    assert!(fs::metadata(&out).expect("written").len() > 1000);
    let parquet = done(["trace", "convert", &trace, &inside(&place, "t.parquet")]);
    assert_eq!(parquet.status, Some(0), "{parquet:?}");
    let diff = done(["trace", "diff", &trace, &trace, "--format", "json"]);
    assert_eq!(diff.status, Some(0));
    assert_eq!(diff.json()["tasks"].as_array().map(Vec::len), Some(3));
    let shown = done(["trace", "show", &trace, "--task", "control", "--kind", "completion", "--limit", "2"]);
    assert_eq!(shown.out.lines().filter(|line| !line.starts_with('#')).count(), 2, "{shown:?}");
    assert!(shown.out.lines().next().is_some_and(|head| head.ends_with("events lost: 0")), "{shown:?}");
    let verified = done(["verify", QUICK_START, &trace, "--strict"]);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    let wrong = done(["verify", QUICK_START, &trace, "--bound-override", "camera=9ms", "--format", "json"]);
    assert_eq!((wrong.status, &wrong.json()["verdict"]), (Some(1), &"bound-violated".into()));
    let set = "task.control.wcet=\"1.5 ms\"";
    let wrong = done(["verify", QUICK_START, &trace, "--set", set, "--format", "json"]);
    assert_eq!((wrong.status, &wrong.json()["verdict"]), (Some(1), &"model-violated".into()));
}

#[test]
fn every_shell_gets_completions_and_the_manual_formats() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = done(["completions", shell]);
        assert!(text.status == Some(0) && text.out.contains("check-certificate"), "{shell}");
    }
    let manual = done(["man"]);
    assert!(manual.out.contains(".TH HOROLOG 1"), "{manual:?}");
    let bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn();
    let Ok(mut bash) = bash else {
        println!("SKIPPED: no bash");
        return;
    };
    let text = Command::new(HOROLOG).args(["completions", "bash"]).output().expect("runs").stdout;
    std::io::Write::write_all(&mut bash.stdin.take().expect("a pipe"), &text).expect("bash reads");
    assert!(bash.wait().expect("bash ends").success());
}
