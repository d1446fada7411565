//! `horolog analyze --partition`: what it proposes, writes and refuses, and that its verdict is that of `analyze` on what it wrote.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use std::path::Path;
use std::process::{Command, Output};

fn horolog(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
    command.current_dir(folder).args(["-q", "analyze"]).args(words).args(["--machine", "none"]);
    command.output().unwrap()
}

fn task(name: &str, period: u64, wcet: u64, more: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\nperiod = \"{period} ms\"\nwcet = \"{wcet} ms\"\n{more}")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Files whose proposals hold, do not, or are not decided: the proposal's last line and status are those of `analyze` on what was written.
#[test]
fn a_proposal_says_what_analyze_says_of_the_written_file() {
    let folder = tempfile::tempdir().unwrap();
    let fp = "[system]\nname = \"s\"\npriorities = \"rate-monotonic\"\n[platform]\ncpus = 2\n";
    let edf = "[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = 2\n";
    let lock = "[[task.section]]\nresource = \"r\"\nfrom = \"0 ns\"\nlength = \"1 ms\"\n";
    let files = [
        (
            format!("{fp}{}{}{}", task("a", 10, 5, ""), task("b", 20, 9, ""), task("c", 40, 10, "")),
            "exact",
            0,
        ),
        // A bound of the utilisation takes what misses behind a longer one that is not preempted.
        (
            format!(
                "{}{}{}",
                edf.replace("cpus = 2", "cpus = 1"),
                task("a", 10, 1, "deadline = \"3 ms\"\n"),
                task("b", 100, 8, "preemption = \"non-preemptive\"\n")
            ),
            "utilisation",
            1,
        ),
        (
            format!(
                "{edf}[[resource]]\nname = \"r\"\nprotocol = \"msrp\"\n{}{}",
                task("a", 10, 6, lock),
                task("b", 10, 6, lock)
            ),
            "exact",
            0,
        ),
        (
            format!(
                "{fp}[[resource]]\nname = \"r\"\nprotocol = \"none\"\n{}{}{}",
                task("a", 10, 2, lock),
                task("b", 20, 2, lock),
                task("c", 40, 2, "")
            ),
            "utilisation",
            4,
        ),
    ];
    for (text, accept, status) in files {
        std::fs::write(folder.path().join("s.toml"), &text).unwrap();
        let words = ["s.toml", "--partition", "all", "--accept", accept, "--output", "placed.toml"];
        let proposal = horolog(folder.path(), &words);
        let again = horolog(folder.path(), &["placed.toml"]);
        assert_eq!(proposal.status.code(), Some(status), "{text}\n{}", told(&proposal));
        assert_eq!((told(&proposal), proposal.status.code()), (told(&again), again.status.code()), "{text}");
        let json = horolog(folder.path(), &[&words[..], &["--format", "json"]].concat());
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        let chosen = json["attempts"].as_array().unwrap().iter().find(|it| it["heuristic"] == json["chosen"]);
        let word = ["yes", "no", "", "", "unknown"][status as usize];
        assert_eq!(chosen.unwrap()["schedulable"], word, "{text}");
        std::fs::remove_file(folder.path().join("placed.toml")).unwrap();
    }
}

/// What stays, and what is refused, with the reason.
#[test]
fn what_stays_and_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let head = "[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = [0, 2]\n";
    let text =
        format!("{head}{}{}{}", task("a", 10, 6, "cpu = 2\n"), task("b", 10, 6, ""), task("c", 10, 3, ""));
    std::fs::write(folder.path().join("s.toml"), &text).unwrap();
    let run = |words: &[&str]| horolog(folder.path(), words);
    let found = run(&["s.toml", "--partition", "first-fit", "--output", "placed.toml"]);
    assert_eq!(found.status.code(), Some(0), "{}", told(&found));
    assert!(String::from_utf8_lossy(&found.stdout).contains("a stays: the file gives its `cpu`"));
    let written = std::fs::read_to_string(folder.path().join("placed.toml")).unwrap();
    assert_eq!(
        written,
        text.replace("name = \"b\"\n", "name = \"b\"\ncpu = 0\n")
            .replace("name = \"c\"\n", "name = \"c\"\ncpu = 0\n")
    );
    let placed = run(&["placed.toml", "--partition", "all"]);
    assert!(
        placed.status.code() == Some(2) && told(&placed).contains("--move-all moves them, too"),
        "{}",
        told(&placed)
    );
    assert_eq!(run(&["placed.toml", "--partition", "all", "--move-all"]).status.code(), Some(0));
    let cases: [(&[&str], i32, &str); 6] = [
        (&["s.toml", "--partition", "all", "--processors", "3"], 2, "the platform lists 2 CPUs"),
        (&["s.toml", "--partition", "all", "--processors", "0"], 2, "0 is not in 1..=8192"),
        (&["s.toml", "--processors", "2"], 2, "--partition"),
        (&["s.toml", "s.toml", "--partition", "all"], 2, "--partition takes one file"),
        (&["none.toml", "--partition", "all"], 2, "cannot read none.toml"),
        (&["s.toml", "--partition", "all", "--move-all", "--processors", "1"], 1, "more than 1 CPU"),
    ];
    for (words, status, text) in cases {
        let found = run(words);
        assert!(
            found.status.code() == Some(status) && told(&found).contains(text),
            "{words:?} {}",
            told(&found)
        );
    }
    let tree = format!(
        "{head}{}[[scheduler]]\nname = \"p\"\norder = \"edf\"\ncpu = 0\ntasks = [\"a\"]\n",
        task("a", 10, 6, "")
    );
    std::fs::write(folder.path().join("tree.toml"), tree).unwrap();
    let found = run(&["tree.toml", "--partition", "all"]);
    assert!(
        found.status.code() == Some(2)
            && told(&found).contains("trees of schedulers have tests of their own"),
        "{}",
        told(&found)
    );
}

/// A bound of the utilisation takes "b" behind "a", and misses: on the other CPU it would not. (31 of 4 ns there.)
#[test]
fn a_placement_that_misses_says_nothing_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name: &str, period: u64, wcet: u64, priority: u64| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
        )
    };
    let text = format!(
        "[system]\nname = \"s\"\n[platform]\ncpus = 2\n{}{}",
        one("a", 4, 1, 1),
        one("b", 100, 30, 2)
    );
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let by = |acceptance: &str| {
        horolog(folder.path(), &["s.toml", "--partition", "first-fit", "--accept", acceptance])
    };
    assert_eq!(by("exact").status.code(), Some(0), "{}", told(&by("exact")));
    let found = by("utilisation");
    assert_eq!(found.status.code(), Some(4), "{}", told(&found));
    assert!(told(&found).contains("another placement may hold") && told(&found).contains("--accept exact"));
}
