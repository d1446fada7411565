//! `horolog loop` on the example with links, on real threads: which instance each job latches is held against the rule of logical
//! execution time, computed here from the file alone.

mod common;

use common::{Done, done, inside, real_time, root};
use serde_json::Value;
use std::collections::BTreeMap;

/// How often a run that the host disturbed is tried again.
const TRIES: usize = 4;
const MS: u64 = 1_000_000;

/// A task of the file, in nanoseconds.
struct Task {
    name: &'static str,
    period: u64,
    deadline: u64,
}

/// What `examples/links/system.toml` says; all offsets are 0.
const TASKS: [Task; 3] = [
    Task { name: "imu", period: 10 * MS, deadline: 4 * MS },
    Task { name: "control", period: 5 * MS, deadline: 5 * MS },
    Task { name: "actuator", period: 20 * MS, deadline: 20 * MS },
];
/// The names of the links.
const NAMES: [&str; 2] = ["pose", "command"];
/// Writer and readers of each link.
const LINKS: [(&str, &[&str]); 2] = [("imu", &["control"]), ("control", &["actuator", "control"])];

fn task(name: &str) -> &'static Task {
    TASKS.iter().find(|task| task.name == name).expect("a task of the example")
}

/// The writer's job whose value a reader's job gets: the last one with arrival + deadline ≤ the reader's arrival.
fn instance(link: usize, reader: &str, job: u64) -> Option<u64> {
    let (writer, arrival) = (task(LINKS[link].0), task(reader).period * job);
    arrival.checked_sub(writer.deadline).map(|since| since / writer.period)
}

/// Reader, job and link of every latch in a trace, with what it took.
fn latches(trace: &str) -> BTreeMap<(String, u64, usize), Option<u64>> {
    let shown = done(["trace", "show", trace, "--kind", "latch"]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    let latch = |line: &str| {
        // "0.005012345  cpu 1  latch             control #1  link pose, job 0"
        let (_, rest) = line.split_once("  latch ")?;
        let (job, what) = rest.trim_start().split_once("  link ")?;
        let (reader, job) = job.split_once(" #")?;
        let (link, what) = what.split_once(", ")?;
        let taken = what.strip_prefix("job ").map(|job| job.parse().expect("a number"));
        assert!(taken.is_some() || what == "nothing yet", "{line}");
        let job = job.trim().parse().expect("a number");
        let link = NAMES.iter().position(|name| *name == link).expect("a link of the example");
        Some(((reader.to_owned(), job, link), taken))
    };
    let all: Vec<_> = shown.out.lines().filter_map(latch).collect();
    let count = all.len();
    let all = BTreeMap::from_iter(all);
    assert_eq!(all.len(), count, "no job latches a link twice");
    all
}

fn count(result: &Value, task: &str, what: &str) -> u64 {
    let tasks = result["measured"]["tasks"].as_array().expect("tasks");
    tasks.iter().find(|it| it["name"] == task).and_then(|it| it[what].as_u64()).expect("a count")
}

/// The loop over a run in which no writer was late.
fn closed(file: &str, out: &str) -> (Done, bool) {
    let words = ["loop", file, "--for", "1s", "--out", out, "--seed", "1", "--format", "json"];
    let mut last = None;
    for _ in 0..TRIES {
        let ended = done(words);
        ended.no_panic();
        let result = ended.json();
        let late = count(&result, "imu", "missed") + count(&result, "control", "missed");
        last = Some((ended, late == 0));
        if late == 0 {
            break;
        }
    }
    last.expect("it was tried")
}

#[test]
fn the_rule_of_this_test_is_the_one_of_the_file() {
    // The head of the example: none, job 0, job 0, job 1.
    let found: Vec<Option<u64>> = (0..4).map(|job| instance(0, "control", job)).collect();
    assert_eq!(found, [None, Some(0), Some(0), Some(1)]);
    let text = std::fs::read_to_string(root().join("examples/links/system.toml")).expect("the example");
    for Task { name, period, .. } in TASKS {
        let (_, rest) = text.split_once(&format!("name     = \"{name}\"")).expect("the task");
        assert!(rest.contains(&format!("\"{} ms\"", period / MS)), "{name}");
    }
}

#[test]
fn the_loop_closes_over_links_between_two_processors() {
    let Some(_alone) = real_time() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIPPED: one processor alone");
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let file = root().join("examples/links/system.toml");
    let out = inside(&place, "out");
    let (ended, is_undisturbed) = closed(file.to_str().expect("UTF-8"), &out);
    let result = ended.json();
    let notes = result["analysis"]["notes"].to_string();
    assert!(notes.contains("link pose: imu meets its deadline, so no value comes late"), "{notes}");
    let trace = inside(&place, "out/run.trace");
    let found = latches(&trace);
    // Every job of a reader that has ended has latched, each of its links.
    for (link, (_, readers)) in LINKS.iter().enumerate() {
        for reader in *readers {
            let jobs = found.keys().filter(|(name, _, of)| name == reader && *of == link).count() as u64;
            assert!(jobs >= count(&result, reader, "completed"), "{reader} on link {link}: {jobs}");
        }
    }
    let verification = &result["verification"];
    let groups = verification["groups"].as_array().expect("groups");
    let of_links: Vec<&Value> = groups.iter().filter(|group| group["check"] == "link").collect();
    if !is_undisturbed {
        // What came late is told; nothing else may be wrong about links.
        assert!(of_links.iter().all(|group| group["class"] == "machine-disturbed"), "{of_links:#?}");
        println!("SKIPPED: the machine was too loaded for values in time");
        return;
    }
    assert!(of_links.is_empty(), "{of_links:#?}");
    let checks = verification["checks"].as_array().expect("checks");
    let applied = checks.iter().find(|one| one["check"] == "link").and_then(|one| one["applied"].as_u64());
    assert!(applied > Some(400), "{applied:?}");
    assert!(found.len() > 400, "{}", found.len());
    for ((reader, job, link), taken) in &found {
        assert_eq!(*taken, instance(*link, reader, *job), "{reader} job {job}, link {link}");
    }
}
