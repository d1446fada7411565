//! A file with a mode: every verb that would compute a number or a verdict says that it does not know. One with a tree of schedulers is
//! analysed, and no more. `check --expand` prints servers as schedulers.

mod common;

use common::done;
use std::path::{Path, PathBuf};

const FLAT: &str = "[system]\nname = \"one\"\n[platform]\ncpus = 1\n\
    [[task]]\nname = \"detect\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n\
    [[task]]\nname = \"track\"\nperiod = \"20 ms\"\nwcet = \"1 ms\"\npriority = 8\n";
const TREE: &str = "[[scheduler]]\nname = \"vision\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\nbudget = \"4 ms\"\n\
    period = \"10 ms\"\npriority = 5\ntasks = [\"detect\", \"track\"]\n";

/// A folder with `flat.toml`, `tree.toml`, and `mode.toml`, a tree with a mode.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("beyond-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("flat.toml"), FLAT).expect("written");
    std::fs::write(folder.join("tree.toml"), format!("{FLAT}{TREE}")).expect("written");
    let mode = "[[mode]]\nname = \"same\"\n";
    std::fs::write(folder.join("mode.toml"), format!("{FLAT}{TREE}{mode}")).expect("written");
    folder
}

fn path(folder: &Path, file: &str) -> String {
    folder.join(file).to_str().expect("UTF-8").to_owned()
}

const REASON: &str = "no test knows of `mode.same`";
const OWN_TESTS: &str = "trees of schedulers have tests of their own";

#[test]
fn analyze_says_unknown_without_a_number() {
    let folder = folder("analyze");
    let tree = path(&folder, "mode.toml");
    let table = done(["analyze", &tree]);
    assert_eq!(table.status, Some(4), "{table:?}");
    assert!(table.out.contains("no test decides") && table.out.contains(REASON), "{table:?}");
    assert!(!table.out.contains("utilisation") && !table.out.contains("sufficient"), "{table:?}");
    assert_eq!(table.out.matches("unknown").count(), 2, "{table:?}");

    let json = done(["analyze", &tree, "--format", "json"]);
    assert_eq!(json.status, Some(4), "{json:?}");
    let json = json.json();
    assert_eq!(json["schedulable"], "unknown");
    assert!(json["tasks"].as_array().expect("a list").iter().all(|task| task["response_ns"].is_null()));
    // The same tasks without the tree are proved.
    assert_eq!(done(["analyze", &path(&folder, "flat.toml")]).status, Some(0));
}

/// 4 ms every 10 ms may be used up when a job comes: 6 ms, and then its own work and what is more important.
#[test]
fn a_tree_is_proved() {
    let folder = folder("tree");
    let tree = path(&folder, "tree.toml");
    let table = done(["analyze", &tree]);
    assert_eq!(table.status, Some(0), "{table:?}");
    assert!(table.out.contains("every deadline is proved to hold"), "{table:?}");
    assert!(table.out.contains("server vision (deferrable, 4 ms every 10 ms)"), "{table:?}");
    assert!(table.out.contains("its whole budget is served within 4 ms"), "{table:?}");
    let json = done(["analyze", &tree, "--format", "json"]).json();
    let bounds: Vec<_> =
        json["tasks"].as_array().expect("a list").iter().map(|task| &task["response_ns"]).collect();
    assert_eq!(bounds, [7_000_000, 8_000_000]);
    assert_eq!(json["tasks"][0]["test"], "tree-fixed-priority");
    assert_eq!(json["servers"][0]["completion_ns"], 4_000_000);
    let said = done(["analyze", &tree, "--explain", "track"]);
    assert!(
        said.out.contains("responds within 8 ms") && said.out.contains("7 ms  while schedulers above"),
        "{said:?}"
    );
    // Half the budget is used up by the first of the two, and the second waits for one more.
    let less = done(["analyze", &tree, "--set", "scheduler.vision.budget=1 ms"]);
    assert_eq!(less.status, Some(4), "{less:?}");
}

#[test]
fn nothing_is_explained_or_sized() {
    let folder = folder("explain");
    let tree = path(&folder, "mode.toml");
    let said = done(["analyze", &tree, "--explain", "detect"]);
    assert_eq!(said.status, Some(4), "{said:?}");
    assert!(said.out.contains("`detect` has no bound") && said.out.contains(REASON), "{said:?}");
    let said = done(["analyze", &tree, "--size-server", "vision"]);
    assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains(REASON), "{said:?}");
    let said = done(["analyze", &path(&folder, "tree.toml"), "--size-server", "vision"]);
    assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains(OWN_TESTS), "{said:?}");
}

#[test]
fn no_evidence_is_written_or_accepted() {
    let folder = folder("evidence");
    let (tree, flat) = (path(&folder, "tree.toml"), path(&folder, "flat.toml"));
    let certificate = path(&folder, "tree.certificate");
    let said = done(["analyze", &tree, "--certificate", &certificate]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.err.contains(OWN_TESTS) && !Path::new(&certificate).exists(), "{said:?}");
    let pattern = path(&folder, "pattern.json");
    let mode = path(&folder, "mode.toml");
    let said = done(["analyze", &mode, "--counterexample", &pattern]);
    assert_eq!(said.status, Some(4), "{said:?}");
    assert!(!Path::new(&pattern).exists(), "{said:?}");

    let certificate = path(&folder, "flat.certificate");
    assert_eq!(done(["analyze", &flat, "--certificate", &certificate]).status, Some(0));
    assert_eq!(done(["check-certificate", &flat, &certificate]).status, Some(0));
    let said = done(["check-certificate", &tree, &certificate]);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(said.out.contains("scheduler.vision: this checker knows no trees"), "{said:?}");
}

#[test]
fn check_prints_the_long_form_of_servers() {
    let folder = folder("expand");
    let flat = path(&folder, "server.toml");
    let soft = "[[task]]\nname = \"soft\"\nperiod = \"20 ms\"\nwcet = \"1 ms\"\n";
    let server = "[[server]]\nname = \"events\"\nkind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 3\ntasks = [\"soft\"]\n";
    std::fs::write(&flat, format!("{FLAT}{soft}{server}")).expect("written");
    let (short, long) = (done(["check", &flat]), done(["check", &flat, "--expand"]));
    assert_eq!((short.status, long.status), (Some(0), Some(0)), "{short:?} {long:?}");
    assert!(short.out.contains("[[server]]") && !short.out.contains("[[scheduler]]"), "{short:?}");
    assert!(long.out.contains("[[scheduler]]\nname = \"events\"\ncpu = 0\norder = \"fifo\""), "{long:?}");
    std::fs::write(&flat, &long.out).expect("written");
    assert_eq!(done(["check", &flat]).out, short.out, "it reads back to the same system");
}
