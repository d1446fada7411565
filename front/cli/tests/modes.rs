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
    closed_but_for(file, out, "")
}

/// The same, but for one check that finds something in every run.
fn closed_but_for(file: &str, out: &str, but: &str) -> Done {
    let words = ["loop", file, "--for", "200ms", "--out", out, "--seed", "1", "--format", "json"];
    let mut last = None;
    for _ in 0..TRIES {
        let ended = done(words);
        ended.no_panic();
        let result = ended.json();
        let found = groups(&result["verification"], "model-violated");
        let is_undisturbed = found.iter().all(|group| group["check"] == but);
        last = Some(ended);
        if is_undisturbed {
            break;
        }
    }
    last.expect("it was tried")
}

/// What a replacement in the text of a file makes of the verification of a trace.
fn verified_with(place: &tempfile::TempDir, text: &str, said: &str, instead: &str, trace: &str) -> Value {
    assert!(text.contains(said), "{said}");
    let other = inside(place, "other.toml");
    std::fs::write(&other, text.replacen(said, instead, 1)).expect("it is written");
    verified(&other, trace)
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
    // Not decided, unless the machine made a job late.
    let is_late = result["closing"]["deadlines"] == "no";
    assert_eq!(ended.status, Some(if is_late { 1 } else { 4 }), "{ended:?}");
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
    assert_eq!(instants(&trace, "mode-change", "mode moving"), [40.0]);
    assert_eq!(instants(&trace, "mode-change", "mode standing"), [120.0]);
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
        let verification = verified_with(&place, &text, said, instead, &trace);
        let violated = groups(&verification, "model-violated");
        assert!(violated.iter().any(|group| group["check"] == check), "{instead}: {verification:#}");
    }
}

/// Two modes with time tables of their own, and a partition that always has work.
#[test]
fn partitions_have_the_windows_of_their_mode() {
    let Some(_alone) = real_time() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let file = root().join("examples/partitions/system.toml");
    let text = std::fs::read_to_string(&file).expect("the example");
    let file = file.to_str().expect("UTF-8");
    let ended = closed(file, &inside(&place, "out"));
    let result = ended.json();
    assert_eq!(result["analysis"]["schedulable"], "unknown", "{:#}", result["analysis"]);
    // Not decided, unless the machine made a job late.
    let is_late = result["closing"]["deadlines"] == "no";
    assert_eq!(ended.status, Some(if is_late { 1 } else { 4 }), "{ended:?}");
    let verification = &result["verification"];
    for class in ["model-violated", "bound-violated"] {
        assert!(groups(verification, class).is_empty(), "{verification:#}");
    }
    assert_eq!(verification["processors"][0]["compared"], true, "{verification:#}");
    let trace = inside(&place, "out/run.trace");
    assert_eq!(instants(&trace, "mode-change", "mode emergency"), [40.0]);
    assert_eq!(instants(&trace, "mode-change", "mode nominal"), [120.0]);
    let control: Vec<f64> = every(0, 40, 10).chain(every(40, 120, 5)).chain(every(120, 200, 10)).collect();
    assert_eq!(instants(&trace, "release", " control #"), control);
    // Other windows in the mode: the images ran at other times than these.
    let payload = "{ child = \"payload\", from = \"9 ms\", length = \"1 ms\" },";
    let flight = "{ child = \"flight\",  from = \"0 ms\", length = \"9 ms\" },";
    for (said, instead) in [
        (payload, "{ child = \"flight\", from = \"9 ms\", length = \"1 ms\" },"),
        (flight, "{ child = \"payload\", from = \"5 ms\", length = \"4 ms\" },"),
    ] {
        let verification = verified_with(&place, &text, said, instead, &trace);
        let divergences = verification["processors"][0]["divergences"].as_u64();
        assert!(divergences.is_some_and(|count| count > 0), "{instead}: {verification:#}");
    }
}

/// A picture takes longer than its wcet and asks for the mode without pictures: in a simulation and on real threads alike.
#[test]
fn an_overrun_degrades_the_system() {
    let place = tempfile::tempdir().expect("a folder");
    let file = root().join("examples/degraded/system.toml");
    let file = file.to_str().expect("UTF-8");
    let trace = inside(&place, "simulated.trace");
    let simulated = done(["simulate", file, "--for", "200ms", "--trace", &trace, "--format", "json"]);
    let changes: Vec<(String, String, u64, u64)> = listed_changes(&simulated.json());
    // What is dropped is not left over. 6 ms of a picture beside one job of control, which has the first of every 10 ms.
    let ms = |ms: u64| ms * 1_000_000;
    let name = |text: &str| text.to_owned();
    let expected = [
        (name("degraded"), name("overrun"), ms(7), 0),
        (name("nominal"), name("request"), ms(100), 0),
        (name("degraded"), name("overrun"), ms(107), 0),
    ];
    assert_eq!(changes, expected);
    // The picture is dropped, so nothing is left of the mode before; control is dispatched at once in the new one.
    assert_eq!(instants(&trace, "mode-end", "mode base, mode degraded goes on"), [7.0]);
    let first = instants(&trace, "first-dispatch", " control #");
    assert_eq!(first, [7.0, 100.0, 107.0]);
    let verification = verified(file, &trace);
    let found = groups(&verification, "model-violated");
    assert!(found.is_empty(), "the dropped pictures never ended: {verification:#}");

    let Some(_alone) = real_time() else { return };
    let ended = closed_but_for(file, &inside(&place, "out"), "execution");
    let result = ended.json();
    let verification = &result["verification"];
    let found = groups(verification, "model-violated");
    let checks: Vec<&str> = found.iter().filter_map(|group| group["check"].as_str()).collect();
    assert!(!checks.is_empty() && checks.iter().all(|&check| check == "execution"), "{verification:#}");
    let trace = inside(&place, "out/run.trace");
    let (to, back) =
        (instants(&trace, "mode-change", "mode degraded"), instants(&trace, "mode-change", "mode nominal"));
    assert!(to.len() == 2 && back == [100.0], "{to:?} {back:?}");
    let asked = instants(&trace, "enforcement", "asked for a mode");
    assert_eq!(asked, to, "at the instant at which the overrun was noticed");
    // From the change on control runs twice as often.
    let after: Vec<f64> = instants(&trace, "release", " control #");
    let after: Vec<f64> = after.into_iter().filter(|&at| at >= to[0] && at < 100.0).collect();
    assert!(
        (after[0] - to[0]).abs() < 1e-6
            && after.windows(2).all(|pair| (pair[1] - pair[0] - 5.0).abs() < 1e-6)
    );
    // Each end of a mode and each first dispatch once.
    assert_eq!(instants(&trace, "mode-end", "mode base, mode degraded goes on").len(), 1);
    assert_eq!(instants(&trace, "first-dispatch", " control #").len(), 3);
    let changes = listed_changes(&result["measured"]);
    assert_eq!(changes.len(), 3, "{:#}", result["measured"]["modes"]);
}

/// The changes of an outcome: the mode, who asked, when it came, and how many jobs were left over.
fn listed_changes(outcome: &Value) -> Vec<(String, String, u64, u64)> {
    let text = |change: &Value, key: &str| change[key].as_str().expect("a text").to_owned();
    let number = |change: &Value, key: &str| change[key].as_u64().expect("a number");
    let listed = |change: &Value| {
        let (mode, by) = (text(change, "mode"), text(change, "by"));
        (mode, by, number(change, "changed_ns"), number(change, "left_over"))
    };
    outcome["modes"].as_array().expect("changes of the mode").iter().map(listed).collect()
}
