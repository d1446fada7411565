//! `horolog loop` on the example with two modes, on real threads: when the modes changed and which jobs they released is held against
//! the file, and a file that says otherwise is found out.

mod common;

use common::{Done, done, inside, real_time, root};
use serde_json::Value;

/// How often a run that the host disturbed is tried again.
const TRIES: usize = 4;

fn groups<'a>(verification: &'a Value, class: &str) -> Vec<&'a Value> {
    let groups = verification["groups"].as_array().expect("groups");
    groups.iter().filter(|group| group["class"] == class).collect()
}

/// The loop over a run in which the machine did nothing that the model does not allow.
fn closed(file: &str, out: &str) -> Done {
    let words = ["loop", file, "--for", "200ms", "--out", out, "--seed", "1", "--format", "json"];
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

/// Instants, in milliseconds, of the records of a kind that speak of something.
fn instants(trace: &str, kind: &str, what: &str) -> Vec<f64> {
    let shown = done(["trace", "show", trace, "--kind", kind]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    let lines = shown.out.lines().filter(|line| line.contains(what));
    let instant = |line: &str| line.split_whitespace().next().and_then(|at| at.parse::<f64>().ok());
    lines.map(|line| instant(line).expect("a time") * 1e3).collect()
}

fn every(from: u64, to: u64, period: u64) -> impl Iterator<Item = f64> {
    (from..to).step_by(period as usize).map(|at| at as f64)
}

fn verified(file: &str, trace: &str) -> Value {
    let ended = done(["verify", file, trace, "--format", "json"]);
    ended.no_panic();
    ended.json()
}

#[test]
fn the_loop_closes_over_two_modes() {
    let Some(_alone) = real_time() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let file = root().join("examples/modes/system.toml");
    let text = std::fs::read_to_string(&file).expect("the example");
    let file = file.to_str().expect("UTF-8");
    let ended = closed(file, &inside(&place, "out"));
    let result = ended.json();
    assert_eq!(result["analysis"]["schedulable"], "unknown", "{:#}", result["analysis"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let verification = &result["verification"];
    for class in ["model-violated", "bound-violated"] {
        assert!(groups(verification, class).is_empty(), "{verification:#}");
    }
    // A budget that a mode changes has no window in a run, so nobody says that all holds.
    assert_eq!(verification["verdict"], "unknown", "{verification:#}");
    assert!(
        verification["notes"].to_string().contains("server radio: modes change its budget"),
        "{verification:#}"
    );
    assert_eq!(verification["processors"][0]["compared"], true, "{verification:#}");
    // "moving" from 40 ms on, the base mode again from 120 ms on.
    let trace = inside(&place, "out/run.trace");
    assert_eq!(instants(&trace, "mode-change", "mode 1"), [40.0]);
    assert_eq!(instants(&trace, "mode-change", "mode 2"), [120.0]);
    let control: Vec<f64> = every(0, 40, 10).chain(every(40, 120, 5)).chain(every(120, 200, 10)).collect();
    assert_eq!(instants(&trace, "release", " control #"), control);
    let camera: Vec<f64> = every(0, 40, 30).chain(every(120, 200, 30)).collect();
    assert_eq!(instants(&trace, "release", " camera #"), camera);
    // A file that says otherwise is found out.
    for (said, instead, check) in [
        ("period = \"5 ms\" ", "period = \"5100 us\"", "arrival"),
        ("period = \"5 ms\" ", "period = \"4900 us\"", "arrival"),
        ("active       = [\"control\", \"commands\"]", "", "arrival"),
    ] {
        assert!(text.contains(said), "{said}");
        let other = inside(&place, "other.toml");
        std::fs::write(&other, text.replace(said, instead)).expect("it is written");
        let verification = verified(&other, &trace);
        let violated = groups(&verification, "model-violated");
        assert!(violated.iter().any(|group| group["check"] == check), "{instead}: {verification:#}");
    }
}
