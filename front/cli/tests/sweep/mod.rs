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
    let example = root().join("examples/sweep/acceptance.toml");
    let example = example.to_str().expect("a path");
    let folder = folder_with(&TEXT.replace("edf-qpa", "edf"));
    let dry = Done::of(&mut sweep(folder.path(), &[example, "--dry-run", "--out", "x"]));
    assert_eq!(dry.status, Some(0), "{dry:?}");
    let bad = Done::of(&mut sweep(folder.path(), &["a.toml"]));
    assert_eq!(bad.status, Some(2));
    assert!(bad.err.contains("no test is called `edf`") && bad.err.contains("a.toml:7:"), "{bad:?}");
    fs::write(folder.path().join("a.toml"), TEXT).unwrap();
    for (words, told) in [
        (vec!["none.toml"], "cannot read none.toml"),
        (vec!["-"], "say the folder with `--out`"),
        (vec!["a.toml", "--out", "."], "is not empty and no sweep"),
        (vec!["a.toml", "--out", "a.toml"], "cannot read a.toml"),
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
