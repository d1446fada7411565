//! `horolog loop` on a tree of schedulers: where no test knows it, the answer says so; it runs for real, and its trace is verified.

mod common;

use common::{Done, done, folder, inside, real_time};
use serde_json::Value;

/// Three levels of unequal budgets on CPU 1: the lowest has more work than budget, a job of the highest overdraws, and one task
/// stands beside the tree. Costs are given, so that no run measures them first.
const TREE: &str = r#"
[system]
name = "tree end to end"
policy = "fixed-priority"
[platform]
cpus = [1]
context_switch = "20 us"
timer_interrupt = "50 us"
release_latency = "300 us"
[[task]]
name = "e2e-deep"
period = "40 ms"
wcet = "30 ms"
bcet = "10 us"
body = { spin = "12 ms" }
[[task]]
name = "e2e-middle"
period = "50 ms"
wcet = "5 ms"
bcet = "10 us"
priority = 9
body = { spin = "2 ms" }
[[task]]
name = "e2e-top"
period = "60 ms"
wcet = "20 ms"
bcet = "10 us"
priority = 1
preemption = "non-preemptive"
body = { spin = "10 ms" }
[[task]]
name = "e2e-beside"
period = "100 ms"
wcet = "20 ms"
bcet = "10 us"
priority = 1
body = { spin = "6 ms" }
[[scheduler]]
name = "low"
parent = "middle"
order = "edf"
kind = "deferrable"
budget = "3 ms"
period = "20 ms"
priority = 5
low_priority = "none"
tasks = ["e2e-deep"]
[[scheduler]]
name = "middle"
parent = "top"
order = "fixed-priority"
kind = "deferrable"
budget = "4 ms"
period = "30 ms"
priority = 5
low_priority = "none"
tasks = ["e2e-middle"]
[[scheduler]]
name = "top"
order = "fixed-priority"
kind = "deferrable"
budget = "16 ms"
period = "50 ms"
priority = 50
low_priority = "none"
tasks = ["e2e-top"]
"#;

/// How often a run that the host disturbed is tried again.
const TRIES: usize = 4;

fn groups<'a>(verification: &'a Value, class: &str) -> Vec<&'a Value> {
    let groups = verification["groups"].as_array().expect("groups");
    groups.iter().filter(|group| group["class"] == class).collect()
}

fn applied(verification: &Value, check: &str) -> u64 {
    let checks = verification["checks"].as_array().expect("checks");
    let count = checks.iter().find(|one| one["check"] == check);
    count.and_then(|one| one["applied"].as_u64()).unwrap_or(0)
}

/// The loop over a run in which the machine did nothing that the model does not allow.
fn closed(file: &str, out: &str) -> Done {
    let words = ["loop", file, "--for", "1s", "--out", out, "--seed", "1", "--format", "json"];
    let mut last = None;
    for _ in 0..TRIES {
        let ended = done(words);
        ended.no_panic();
        let is_undisturbed = groups(&ended.json()["verification"], "model-violated").is_empty();
        last = Some(ended);
        if is_undisturbed {
            break;
        }
    }
    last.expect("it was tried")
}

#[test]
fn the_loop_closes_over_a_tree_of_three_levels() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(TREE);
    let ended = closed(&file, &inside(&place, "out"));
    let result = ended.json();
    // A job that cannot be preempted: no test knows of the tree, and nothing was claimed.
    assert_eq!(result["analysis"]["schedulable"], "unknown", "{:#}", result["analysis"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let notes = result["analysis"]["notes"].to_string();
    assert!(notes.contains("`e2e-top` cannot be preempted"), "{:#}", result["analysis"]);
    let verification = &result["verification"];
    for class in ["model-violated", "bound-violated"] {
        assert!(groups(verification, class).is_empty(), "{verification:#}");
    }
    // Nothing orders its jobs but the decisions, which were made again; and every level was held to its budget.
    assert_eq!(applied(verification, "priority-inversion"), 0);
    assert!(applied(verification, "divergence") > 100, "{verification:#}");
    assert!(applied(verification, "budget") > 100, "{verification:#}");
    let servers = result["measured"]["servers"].as_array().expect("schedulers");
    let exhaustions: Vec<u64> = servers.iter().filter_map(|server| server["exhaustions"].as_u64()).collect();
    println!("{exhaustions:?} {}", verification["verdict"]);
    assert!(exhaustions.len() == 3 && exhaustions.iter().all(|&count| count >= 5), "{servers:#?}");
    let notes = verification["notes"].to_string();
    assert!(notes.contains("e2e-deep missed"), "{notes}");

    // The same trace by hand, and against a file that gives the middle level half of what it took.
    let trace = inside(&place, "out/run.trace");
    let again = done(["verify", &file, &trace, "--gate", "model"]);
    // Its least important task never catches up, so most of its jobs are not judged.
    assert_eq!(again.status, Some(4), "{again:?}");
    assert!(again.out.contains("the model holds") && again.err.contains("e2e-deep judged in"), "{again:?}");
    let set = "scheduler.middle.budget=\"2 ms\"";
    let less = done(["verify", &file, &trace, "--set", set, "--format", "json"]);
    assert_eq!(less.status, Some(1), "{less:?}");
    let less = less.json();
    let found = groups(&less, "model-violated");
    assert!(found.iter().all(|group| group["check"] == "budget" && group["subject"] == "middle"), "{less:#}");
}

#[test]
fn the_loop_says_why_nothing_is_proved() {
    let tree = TREE.replace("cpus = [1]", "cpus = 1");
    let (place, file) = folder(&tree);
    let ended = done(["loop", &file, "--for", "1s", "--out", &inside(&place, "out"), "--seed", "1"]);
    assert!(matches!(ended.no_panic().status, Some(1 | 4)), "{ended:?}");
    let said = format!("{}{}", ended.out, ended.err);
    assert!(said.contains("note: no test knows of the tree of schedulers on CPU 0"), "{said}");
}

#[test]
fn clusters_and_modes_are_refused_and_left_unknown_by_name() {
    let flat = TREE.split("[[scheduler]]").next().expect("tasks");
    let (place, file) = folder(&flat.replace("cpus = [1]", "cpus = [0, 1]").replace(
        "bcet = \"10 us\"\nbody = { spin = \"12 ms\" }",
        "bcet = \"10 us\"\npriority = 3\nbody = { spin = \"12 ms\" }",
    ));
    let text = std::fs::read_to_string(&file).expect("readable")
        + "[[scheduler]]\nname = \"pair\"\ncpus = [0, 1]\norder = \"fixed-priority\"\ntasks = [\"e2e-deep\", \"e2e-middle\", \
           \"e2e-top\", \"e2e-beside\"]\n";
    std::fs::write(&file, text).expect("writable");
    let ran = done(["run", &file, "--for", "100ms"]);
    assert_eq!(ran.no_panic().status, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("cannot schedule cpus [0, 1] together")
            && ran.err.contains("system.toml:41:8")
            && ran.err.contains("simulate"),
        "{ran:?}"
    );
    let trace = inside(&place, "simulated.trace");
    let simulated = done(["simulate", &file, "--for", "500ms", "--trace", &trace]);
    assert!(simulated.no_panic().status.is_some_and(|status| status < 2), "{simulated:?}");
    let judged = done(["verify", &file, &trace]);
    assert_eq!(judged.no_panic().status, Some(4), "{judged:?}");
    assert!(judged.out.contains("no verdict") && judged.out.contains("scheduler.pair"), "{judged:?}");
}
