//! `horolog sweep` as its users meet it: killed, started again, without room on the disk.

use crate::common::{Done, horolog, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const TEXT: &str = r#"
schema = "horolog.sweep/1"
[sweep]
name = "killed"
sets = 400
block = 20
tests = ["edf-qpa", "fp-preemptive"]
[generator]
tasks = 10
utilisation = [0.7, 0.8, 0.9]
"#;

fn sweep(folder: &Path, words: &[&str]) -> Command {
    let mut command = horolog(["-q", "sweep"]);
    command.args(words).current_dir(folder);
    command
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.toml"), text).expect("a file");
    folder
}

/// The files of rows with their content, by their place below `rows`.
fn rows(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let Ok(cells) = fs::read_dir(folder.join("rows")) else { return all };
    for cell in cells.flatten() {
        for file in fs::read_dir(cell.path()).expect("a cell").flatten() {
            let place = Path::new(&cell.file_name()).join(file.file_name());
            all.insert(place, fs::read(file.path()).expect("rows"));
        }
    }
    all
}

#[test]
fn a_killed_sweep_goes_on_and_comes_to_the_same_rows() {
    let folder = folder_with(TEXT);
    let whole = Done::of(&mut sweep(folder.path(), &["a.toml", "--out", "whole", "--workers", "2"]));
    assert_eq!(whole.status, Some(0), "{whole:?}");
    assert!(
        whole
            .err
            .starts_with("holds: 3 cells, 1200 sets by 2 tests; 60 blocks computed, 0 were there (exit 0)")
    );
    let killed = folder.path().join("killed");
    let mut kept = 0;
    for _ in 0..3 {
        let mut child = sweep(folder.path(), &["a.toml", "--out", "killed", "--workers", "1"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() {
            let now = rows(&killed);
            // A reader sees whole files alone meanwhile.
            assert!(now.values().all(|file| file.starts_with(b"PAR1") && file.ends_with(b"PAR1")));
            if now.len() >= kept + 5 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = child.kill();
        let _ = child.wait();
        kept = rows(&killed).len();
    }
    assert!(kept >= 15);
    let json = Done::of(&mut sweep(folder.path(), &["a.toml", "--out", "killed", "--format", "json"])).json();
    assert_eq!(
        json["blocks"],
        serde_json::json!({"all": 60, "computed": 60 - kept, "kept": kept, "damaged": 0})
    );
    assert_eq!(json["is_complete"], true);
    assert_eq!(rows(&killed), rows(&folder.path().join("whole")));
    let read = |of: &str, name: &str| fs::read(folder.path().join(of).join(name)).expect(name);
    for name in ["sweep.toml", "sweep.json", "acceptance.svg"] {
        assert_eq!(read("killed", name), read("whole", name), "{name}");
    }
    assert_eq!(read("whole", "sweep.toml"), TEXT.as_bytes());
    let stored: Value = serde_json::from_slice(&read("whole", "sweep.json")).expect("JSON");
    assert!(stored["generator"].as_str().is_some_and(|name| name.contains("xoshiro256++")));
    assert_eq!(
        (&stored["version"], &stored["cells"][0]["seed"]),
        (&env!("CARGO_PKG_VERSION").into(), &1.into())
    );
    assert_eq!(fs::read_dir(killed.join("tmp")).unwrap().count(), 0, "what was half written is gone");
}

#[test]
fn a_full_disk_stops_it_with_a_message_and_the_same_command_goes_on() {
    let folder = folder_with(&TEXT.replace("block = 20", "block = 100"));
    let script = format!(
        "mkdir disk && mount -t tmpfs -o size=32k horolog-test disk || exit 77
         '{0}' -q sweep a.toml --out disk/out --workers 1; echo \"status $?\"
         ls disk/out/rows/*/ | grep -c parquet; ls disk/out/tmp | wc -l
         mount -o remount,size=4m disk
         '{0}' -q sweep a.toml --out disk/out --workers 1; echo \"status $?\"",
        crate::common::HOROLOG
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(folder.path());
    let Ok(output) = command.output() else {
        return println!("SKIPPED: there is no `unshare`, so no disk is filled");
    };
    let done = Done::from(output);
    if done.status == Some(77) || done.err.contains("unshare") {
        return println!("SKIPPED: no file system may be mounted here, so no disk is filled: {}", done.err);
    }
    let lines: Vec<&str> = done.out.lines().filter(|line| !line.contains("  ") && !line.is_empty()).collect();
    assert_eq!(lines[0], "status 2", "{done:?}");
    assert!(done.err.contains("No space left on device"), "{done:?}");
    let kept: usize = lines[1].parse().expect("a count");
    assert!((1..12).contains(&kept), "{done:?}");
    assert!(done.err.contains(&format!("{kept} of 12 blocks are kept")), "{done:?}");
    assert_eq!(lines[2], "0", "what was half written is gone");
    let told = format!(
        "{} computed, {kept} were there (exit 0)",
        if kept == 11 { "1 block".to_owned() } else { format!("{} blocks", 12 - kept) }
    );
    assert!(done.err.contains(&told), "{done:?}");
}

#[test]
fn a_process_without_memory_is_killed_and_the_same_command_goes_on() {
    // A block of 100,000 sets by three tests takes some 100 MB with rows of sets.
    let text = TEXT
        .replace("sets = 400", "sets = 100000")
        .replace("block = 20", "block = 100000\nrows = \"sets\"")
        .replace("\"edf-qpa\", \"fp-preemptive\"", "\"edf-qpa\", \"rm-hyperbolic\", \"rm-liu-layland\"");
    let folder = folder_with(&text);
    let script = format!(
        "root=/sys/fs/cgroup/memory; limit=memory.limit_in_bytes
         [ -e $root/$limit ] || {{ root=/sys/fs/cgroup; limit=memory.max; }}
         group=$root/horolog-sweep-$$
         mkdir $group 2>/dev/null || exit 77
         trap 'rmdir $group' EXIT
         echo 33554432 2>/dev/null > $group/$limit || exit 77
         '{0}' -q sweep a.toml --out out --workers 1 2>/dev/null & child=$!
         until ls out/rows/*/*.parquet >/dev/null 2>&1; do sleep 0.01; done
         kill -9 $child; wait $child 2>/dev/null
         ls out/rows/*/*.parquet | wc -l
         sh -c \"echo \\$\\$ > $group/cgroup.procs && exec '{0}' -q sweep a.toml --out out --workers 2\"; echo \"status $?\"
         ls out/rows/*/*.parquet | wc -l
         '{0}' -q sweep a.toml --out out --workers 1 >/dev/null; echo \"status $?\"",
        crate::common::HOROLOG
    );
    let done = Done::of(Command::new("sh").args(["-c", &script]).current_dir(folder.path()));
    if done.status == Some(77) {
        return println!("SKIPPED: no memory cgroup can be made here, so no process runs out of memory");
    }
    let lines: Vec<&str> = done.out.lines().collect();
    let kept: usize = lines[0].parse().expect("a count");
    assert!((1..3).contains(&kept), "{done:?}");
    assert_eq!(lines[1..], ["status 137", lines[0], "status 0"], "{done:?}");
    assert!(done.err.contains(&format!("computed, {kept} were there (exit 0)")), "{done:?}");
    let whole = Done::of(&mut sweep(folder.path(), &["a.toml", "--out", "whole"]));
    assert_eq!(whole.status, Some(0), "{whole:?}");
    assert_eq!(rows(&folder.path().join("out")), rows(&folder.path().join("whole")));
    assert_eq!(fs::read_dir(folder.path().join("out/tmp")).expect("a folder").count(), 0);
}

#[test]
fn a_full_disk_keeps_rows_of_sets_whole() {
    // The first block fits, the second does not: what is half written goes, and what was there before stays.
    let folder = folder_with(
        &TEXT.replace("sets = 400", "sets = 2000").replace("block = 20", "block = 2000\nrows = \"sets\""),
    );
    let script = format!(
        "mkdir disk && mount -t tmpfs -o size=28k horolog-test disk || exit 77
         '{0}' -q sweep a.toml --out disk/out --workers 2 >/dev/null; echo \"status $?\"
         ls disk/out/rows/*/ | grep -c parquet; ls disk/out/tmp | wc -l
         mount -o remount,size=8m disk
         '{0}' -q sweep a.toml --out disk/out --workers 2 >/dev/null; echo \"status $?\"; cp -r disk/out kept",
        crate::common::HOROLOG
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(folder.path());
    let Ok(output) = command.output() else {
        return println!("SKIPPED: there is no `unshare`, so no disk is filled");
    };
    let done = Done::from(output);
    if done.status == Some(77) || done.err.contains("unshare") {
        return println!("SKIPPED: no file system may be mounted here, so no disk is filled: {}", done.err);
    }
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[0] == "status 2" && lines[2] == "0" && lines[3] == "status 0", "{done:?}");
    assert!(lines[1].parse::<usize>().is_ok_and(|kept| kept < 3), "{done:?}");
    assert!(done.err.contains("No space left on device"), "{done:?}");
    let whole = Done::of(&mut sweep(folder.path(), &["a.toml", "--out", "whole"]));
    assert_eq!(whole.status, Some(0), "{whole:?}");
    assert_eq!(rows(&folder.path().join("kept")), rows(&folder.path().join("whole")));
}

#[test]
fn drawn_sets_keep_the_limits_of_their_shares() {
    let folder = tempfile::tempdir().expect("a folder");
    let draw = |words: &[&str]| {
        let mut command = horolog(["-q", "experiment", "sets"]);
        Done::of(command.args(words).current_dir(folder.path()))
    };
    let words = ["--tasks", "4", "--utilisation", "1.2..1.6", "--count", "20"];
    let done = draw(&[&["sets", "--lower", "0.2", "--upper", "0.55"], &words[..]].concat());
    assert_eq!(done.status, Some(0), "{done:?}");
    for index in 0..20 {
        let path = folder.path().join(format!("sets/set-{index:02}.toml"));
        let (system, _) = horolog_model::file::read_path(&path, &[]).expect("a system");
        let share = |task: &horolog_model::Task| {
            task.wcet.as_ns() as f64 / task.separation().expect("a period").as_ns() as f64
        };
        let shares: Vec<f64> = system.tasks().iter().map(share).collect();
        assert!(shares.iter().all(|share| (0.2 - 1e-6..=0.55).contains(share)), "{shares:?}");
        let wanted = 1.2 + 0.4 * f64::from(index) / 19.0;
        assert!((shares.iter().sum::<f64>() - wanted).abs() < 1e-6, "{shares:?} {wanted}");
    }
    for (more, told) in [
        (["--lower", "0.31"], "utilisation: 1.2 is not from 1.24 to 4"),
        (["--upper", "0.39"], "utilisation: 1.6 is not from 0 to 1.56"),
        (["--lower", "1.1"], "`1.1` is not a number from 0 to 1"),
        (["--upper", "nan"], "`nan` is not a number from 0 to 1"),
    ] {
        let done = draw(&[&["none"], &more[..], &words[..]].concat());
        assert!(done.status == Some(2) && done.err.contains(told), "{more:?}: {done:?}");
        assert!(!folder.path().join("none").exists());
    }
}

#[test]
fn a_dry_run_writes_nothing_and_counts_what_is_left() {
    let folder = folder_with(TEXT);
    let dry = |words: &[&str]| {
        let done = Done::of(&mut sweep(
            folder.path(),
            &[&["a.toml", "--dry-run", "--format", "json"], words].concat(),
        ));
        assert_eq!(done.status, Some(0), "{done:?}");
        done.json()
    };
    let before = dry(&["--workers", "2"]);
    assert_eq!(
        (&before["missing_blocks"], &before["sets"], &before["workers"]),
        (&60.into(), &1200.into(), &2.into())
    );
    assert_eq!(before["folder"], "a-sweep");
    assert!(!folder.path().join("a-sweep").exists());
    assert_eq!(Done::of(&mut sweep(folder.path(), &["a.toml"])).status, Some(0));
    assert_eq!(dry(&[])["missing_blocks"], 0);
    let again = Done::of(&mut sweep(folder.path(), &["a.toml"]));
    assert!(again.err.contains("0 blocks computed, 60 were there"), "{again:?}");
    assert!(
        again.out.contains("weighted schedulability") && again.out.contains("acceptance.svg"),
        "{again:?}"
    );
}

#[test]
fn the_example_is_good_and_bad_words_are_refused() {
    let folder = folder_with(&TEXT.replace("edf-qpa", "edf"));
    for name in ["acceptance", "policies"] {
        let example = root().join(format!("examples/sweep/{name}.toml"));
        let example = example.to_str().expect("a path");
        let dry = Done::of(&mut sweep(folder.path(), &[example, "--dry-run", "--out", "x"]));
        assert_eq!(dry.status, Some(0), "{dry:?}");
    }
    let bad = Done::of(&mut sweep(folder.path(), &["a.toml"]));
    assert_eq!(bad.status, Some(2));
    assert!(bad.err.contains("no test is called `edf`") && bad.err.contains("a.toml:7:"), "{bad:?}");
    fs::write(folder.path().join("a.toml"), TEXT).unwrap();
    for (words, told) in [
        (vec!["none.toml"], "cannot read none.toml"),
        (vec!["-"], "say the folder with `--out`"),
        (vec!["a.toml", "--out", "."], "is not empty and no sweep"),
        (vec!["a.toml", "--out", "a.toml"], "a.toml is what is read"),
        (vec!["a.toml", "--workers", "1025"], "1025"),
        (vec!["a.toml", "--dry-run", "--drop-others"], "cannot be used with"),
    ] {
        let mut command = sweep(folder.path(), &words);
        if words == ["-"] {
            command.stdin(fs::File::open(folder.path().join("a.toml")).unwrap());
        }
        let done = Done::of(&mut command);
        assert!(done.status == Some(2) && done.err.contains(told), "{words:?}: {done:?}");
    }
}

#[test]
fn sets_that_an_exact_test_gave_up_are_told_below_the_table() {
    let text = TEXT.replace("[0.7, 0.8, 0.9]", "1.0").replace("sets = 400", "sets = 20");
    let folder = folder_with(&text);
    let table = Done::of(&mut sweep(folder.path(), &["a.toml", "--out", "rows"]));
    let json = Done::of(&mut sweep(folder.path(), &["a.toml", "--out", "rows", "--format", "json"])).json();
    let tests = json["cells"][0]["tests"].as_array().unwrap();
    let unknown =
        tests.iter().find(|test| test["test"] == "fp-preemptive").unwrap()["unknown"].as_u64().unwrap();
    assert!(unknown > 0, "{json}");
    let line = format!("fp-preemptive: {unknown} sets in 1 cell were given up for their effort");
    assert!(table.out.contains(&line), "{table:?}");
}
