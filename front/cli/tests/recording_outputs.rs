//! Where a recording is written: what was there stays until it has begun, and keeps its names and its owner.

mod common;

use common::{done, inside};
use horolog_recording::{RecordOptions, Target, Tracing, record};
use horolog_trace::file::Reader;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[test]
fn what_is_no_file_of_its_own_is_never_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| inside(&folder, name);
    symlink("/dev/null", at("device")).expect("linked");
    symlink("target", at("dangling")).expect("linked");
    for options in [&[] as &[&str], &["--rotate", "1M"]] {
        for name in ["device", "dangling"] {
            let out = at(name);
            let first = if options.is_empty() { out.clone() } else { format!("{out}-0001") };
            if first != out && !Path::new(&first).is_symlink() {
                fs::rename(&out, &first).expect("moved");
            }
            let ended =
                done([&["trace", "record", "-o", &out], options, &["--", "./no-such-program"]].concat());
            assert_eq!(ended.no_panic().status, Some(2), "{ended:?}");
            assert!(Path::new(&first).is_symlink(), "{first} is gone: {ended:?}");
        }
    }
    assert!(Path::new("/dev/null").exists());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "a target was left");
}

#[test]
fn a_recording_is_written_into_the_file_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| inside(&folder, name);
    // A name as long as a file's may be; it needs no other one beside it.
    let long = at(&"x".repeat(255));
    fs::write(&long, "before").expect("written");
    fs::hard_link(&long, at("other")).expect("linked");
    let is_owned = chown(&long, Some(65_534), Some(65_534)).is_ok();
    let before = fs::metadata(&long).expect("there");
    for _ in 0..2 {
        let ended = done(["trace", "record", "-o", &long, "--", "true"]);
        assert_eq!(ended.no_panic().status, Some(0), "{ended:?}");
    }
    let after = fs::metadata(at("other")).expect("there");
    assert_eq!(after.ino(), before.ino());
    assert!(!is_owned || (after.uid(), after.gid()) == (65_534, 65_534));
    let mut reader = Reader::open(at("other")).expect("a trace");
    assert!(reader.by_ref().count() == 0 && reader.damage().is_none());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn a_signal_before_the_start_starts_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| inside(&folder, name);
    fs::write(at("before"), "before").expect("written");
    for overwrite in [false, true] {
        for out in ["before", "new"] {
            let command = ["touch".to_owned(), at("started")];
            let options = RecordOptions {
                target: Target::Command(command.to_vec()),
                tracing: Tracing { overwrite, ..Tracing::default() },
                out: at(out).into(),
                kernel: false,
                kernel_buffer: None,
                rotate: None,
                max_size: None,
                duration: None,
                stop: Arc::new(AtomicBool::new(true)),
                snapshot: Arc::new(AtomicBool::new(false)),
            };
            let stopped = record(&options, &mut |_| {}).expect_err("stopped");
            assert!(stopped.is_stopped() && !stopped.is_bad_input(), "{stopped}");
        }
    }
    assert_eq!(fs::read_to_string(at("before")).expect("there"), "before");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

/// The words of a verb and of its command are no files, and what tells a refusal does not write where two outputs go.
#[test]
fn only_files_are_refused_and_a_refusal_writes_into_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(common::HOROLOG);
        common::Done::of(command.args(words).current_dir(folder.path()))
    };
    for _ in 0..2 {
        let ended = run(&["trace", "record", "-o", "trace", "--", "true"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let ended = run(&["trace", "record", "-o", "true", "--for", "1s", "--", "true"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
    }
    fs::write(inside(&folder, "o"), "precious").expect("written");
    for twice in [
        &["simulate", "s.toml", "--trace", "o", "--format", "junit=o"] as &[&str],
        &["check", "s.toml", "--format", "json=o", "--format", "junit=./o"],
    ] {
        let ended = run(twice);
        assert!(ended.status == Some(2) && ended.err.contains("twice"), "{ended:?}");
        assert_eq!(fs::read_to_string(inside(&folder, "o")).expect("there"), "precious");
    }
}

/// Whatever ends a verb and does not hold, with `--errors json` the last line is an object.
#[test]
fn every_end_that_is_none_well_is_an_object_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| inside(&folder, name);
    let task = |wcet: &str| {
        format!(
            "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"{wcet}\"\npriority = 2\n[[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"11 ms\"\npriority = 1\n"
        )
    };
    fs::write(at("late"), task("6 ms")).expect("written");
    fs::write(at("good"), task("1 ms")).expect("written");
    fs::write(at("bad"), "[system]\n").expect("written");
    for (words, status, kind) in [
        (vec!["analyze", "late"], 1, "no"),
        (vec!["analyze", "late", "good"], 1, "no"),
        (vec!["check", "bad", "late"], 2, "bad-input"),
        (vec!["check", "nothing"], 2, "bad-input"),
        (vec!["simulate", "late"], 1, "no"),
        // No processor is named: nothing says what goes on before that is told.
        (vec!["run", "good"], 2, "bad-input"),
        (vec![], 2, "usage"),
        (vec!["no-verb"], 2, "usage"),
    ] {
        let words: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(place, word)| if place == 0 { (*word).to_owned() } else { at(word) })
            .collect();
        let ended = done(["--errors", "json"].into_iter().chain(words.iter().map(String::as_str)));
        assert_eq!(ended.status, Some(status), "{words:?} {ended:?}");
        let lines: Vec<Value> = ended
            .err
            .lines()
            .filter(|line| !line.contains(": holds: "))
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{words:?}: {line}: {error}"))
            })
            .collect();
        let last = lines.last().unwrap_or_else(|| panic!("{words:?} says nothing"));
        assert!(
            last["schema"] == "horolog.error/1" && last["exit"] == status && last["kind"] == kind,
            "{last}"
        );
    }
}
