//! What happens to jobs whose segments execute longer than their wcets, by decision 0010: each expectation is computed by hand.
#![allow(clippy::panic)] // Helpers of an integration test are tests too.

use horolog_model::{System, TaskId};
use horolog_sim::{Horizon, PathChoice, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};
use std::collections::BTreeMap;

fn read(text: &str) -> Result<System, String> {
    let text = format!("[system]\nname = \"segments\"\n{text}");
    horolog_model::file::read(&text, "test", &[])
        .map(|(system, _)| system)
        .map_err(|errors| errors.to_string())
}

fn run_along(text: &str, until: u64, path: &[usize]) -> (Outcome, Vec<Record>) {
    let system = read(text).unwrap_or_else(|errors| panic!("{errors}"));
    let path = match path {
        [] => PathChoice::Longest,
        path => PathChoice::Given(BTreeMap::from([(TaskId(0), path.to_vec())])),
    };
    let horizon = Horizon::Time(Span::from_ns(until));
    let options = SimOptions { horizon, path, ..SimOptions::default() };
    let mut records = Vec::new();
    let outcome = simulate(&system, &options, &mut records).unwrap_or_else(|error| panic!("{error}"));
    (outcome, records)
}

fn run(text: &str, until: u64) -> (Outcome, Vec<Record>) {
    run_along(text, until, &[])
}

/// When records of this kind stand, of which task, and their `extra`.
fn of(records: &[Record], kind: Kind) -> Vec<(u64, u32, u64)> {
    let here = records.iter().filter(|one| one.kind == kind);
    here.map(|one| (one.time.as_ns(), one.task, one.extra)).collect()
}

/// A deferred task with a period of 100, alone or above what follows.
fn job(overrun: &str, segments: &str, times: &str) -> String {
    format!(
        "[[task]]\nname = \"job\"\nperiod = \"100 ns\"\noffset = \"0 ns\"\npriority = 5\noverrun = \"{overrun}\"\n\
         preemption = \"deferred\"\nsegments = [{segments}]\nexecution = {{ segments = [{times}] }}\n"
    )
}

fn task(name: &str, priority: u64, offset: u64, wcet: u64) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nperiod = \"100 ns\"\noffset = \"{offset} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
    )
}

const POLICIES: [(&str, u64); 4] = [("skip", 1), ("demote", 2), ("stop", 3), ("drop", 4)];

/// When the policy acts on the first job: the same instant whatever the policy, and never where it counts.
fn acts(segments: &str, times: &str, path: &[usize], beside: &str) -> Option<u64> {
    let acted = POLICIES.map(|(overrun, number)| {
        let text = job(overrun, segments, times) + beside;
        let acted = of(&run_along(&text, 100, path).1, Kind::Enforcement);
        assert!(acted.len() < 2 && acted.iter().all(|&(_, task, extra)| (task, extra) == (0, number)));
        acted.first().map(|&(at, ..)| at)
    });
    let counted = run_along(&(job("count", segments, times) + beside), 100, path).1;
    assert_eq!(of(&counted, Kind::Enforcement), []);
    assert!(acted.iter().all(|&at| at == acted[0]), "{acted:?}");
    acted[0]
}

#[test]
fn without_time_left_a_segment_s_budget_is_its_wcet() {
    let sequence = "\"3 ns\", \"4 ns\"";
    assert_eq!(acts(sequence, "[\"3 ns\"], [\"4 ns\"]", &[], ""), None);
    assert_eq!(acts(sequence, "[\"4 ns\"], [\"4 ns\"]", &[], ""), Some(3));
    assert_eq!(acts(sequence, "[\"3 ns\"], [\"5 ns\"]", &[], ""), Some(7));
}

#[test]
fn what_earlier_segments_left_may_be_used() {
    let shorter = "{ wcet = \"3 ns\", bcet = \"1 ns\" }, { wcet = \"4 ns\", bcet = \"2 ns\" }";
    assert_eq!(acts(shorter, "[\"1 ns\"], [\"6 ns\"]", &[], ""), None);
    assert_eq!(acts(shorter, "[\"1 ns\"], [\"7 ns\"]", &[], ""), Some(7));
}

#[test]
fn the_policy_acts_when_the_job_cannot_end_in_time_any_more() {
    // What follows takes 2 at the least: 7 - 2 are there for the first segment.
    let shorter = "{ wcet = \"3 ns\", bcet = \"1 ns\" }, { wcet = \"4 ns\", bcet = \"2 ns\" }";
    assert_eq!(acts(shorter, "[\"5 ns\"], [\"2 ns\"]", &[], ""), None);
    assert_eq!(acts(shorter, "[\"6 ns\"], [\"2 ns\"]", &[], ""), Some(5));
    assert_eq!(acts(shorter, "[\"5 ns\"], [\"3 ns\"]", &[], ""), Some(7));
}

const BRANCHES: &str = "{ name = \"scan\", wcet = \"3 ns\", bcet = \"2 ns\", next = [\"full\", \"crop\"] }, \
     { name = \"full\", wcet = \"6 ns\", bcet = \"4 ns\", next = [\"merge\"] }, \
     { name = \"crop\", wcet = \"2 ns\", bcet = \"1 ns\", next = [\"merge\"] }, { name = \"merge\", wcet = \"4 ns\", bcet = \"3 ns\" }";

#[test]
fn a_branch_off_the_longest_way_makes_the_budget_smaller() {
    let times = |scan: u64, crop: u64, merge: u64| {
        format!("[\"{scan} ns\"], [\"6 ns\"], [\"{crop} ns\"], [\"{merge} ns\"]")
    };
    let (full, crop) = ([0, 1, 3], [0, 2, 3]);
    // 13 less 1 and 3.
    assert_eq!(acts(BRANCHES, &times(9, 2, 4), &full, ""), Some(13));
    assert_eq!(acts(BRANCHES, &times(10, 2, 4), &full, ""), Some(9));
    assert_eq!(acts(BRANCHES, &times(10, 2, 4), &crop, ""), Some(9));
    // The short way has 9 in all.
    assert_eq!(acts(BRANCHES, &times(3, 2, 4), &crop, ""), None);
    assert_eq!(acts(BRANCHES, &times(3, 2, 5), &crop, ""), Some(9));
    assert_eq!(acts(BRANCHES, &times(2, 3, 4), &crop, ""), None);
    assert_eq!(acts(BRANCHES, &times(2, 4, 4), &crop, ""), Some(9));
    assert_eq!(acts(BRANCHES, &times(2, 5, 4), &crop, ""), Some(6));
    // At the point itself there may be nothing left, and one unit.
    assert_eq!(acts(BRANCHES, &times(9, 1, 3), &crop, ""), Some(9));
    assert_eq!(acts(BRANCHES, &times(8, 2, 3), &crop, ""), Some(9));
}

#[test]
fn the_policy_acts_when_more_important_tasks_wait_longer_than_the_longest_segment() {
    let shorter = "{ wcet = \"3 ns\", bcet = \"1 ns\" }, { wcet = \"5 ns\", bcet = \"1 ns\" }";
    let (five, six) = ("[\"5 ns\"], [\"1 ns\"]", "[\"6 ns\"], [\"1 ns\"]");
    // Alone it has 8 less 1, which nobody waits for.
    assert_eq!(acts(shorter, six, &[], ""), None);
    assert_eq!(acts(shorter, &six.replace('6', "8"), &[], ""), Some(7));
    let above = task("above", 9, 50, 1);
    assert_eq!(acts(shorter, five, &[], &above), None);
    assert_eq!(acts(shorter, six, &[], &above), Some(5));
    let below = task("below", 1, 50, 6) + "preemption = \"non-preemptive\"\n";
    assert_eq!(acts(shorter, six, &[], &(above.clone() + &below)), None);
    assert_eq!(acts(shorter, &six.replace('6', "7"), &[], &(above.clone() + &below)), Some(6));
    // Its equals wait behind it, and a preemptible task blocks nobody.
    let preemptible = task("below", 1, 50, 6);
    assert_eq!(acts(shorter, six, &[], &(above + &preemptible)), Some(5));
}

#[test]
fn the_budget_counts_execution_and_not_the_time_between_segments() {
    // "above" runs from 3 to 10 between the segments; the second one begins at 10 and may take 4.
    let above = task("above", 9, 1, 7);
    let sequence = "\"3 ns\", \"4 ns\"";
    assert_eq!(acts(sequence, "[\"3 ns\"], [\"4 ns\"]", &[], &above), None);
    assert_eq!(acts(sequence, "[\"3 ns\"], [\"5 ns\"]", &[], &above), Some(14));
}

#[test]
fn an_overrun_of_a_segment_is_recorded_at_its_end_and_that_of_the_job_at_its_own() {
    let shorter = "{ wcet = \"3 ns\", bcet = \"1 ns\" }, { wcet = \"4 ns\", bcet = \"2 ns\" }";
    let (outcome, records) = run(&job("drop", shorter, "[\"4 ns\", \"3 ns\"], [\"3 ns\"]"), 200);
    assert_eq!(of(&records, Kind::Overrun), [(4, 0, 1)]);
    assert_eq!((outcome.tasks[0].overruns, outcome.tasks[0].completed), (0, 2));
    let (outcome, records) = run(&job("count", shorter, "[\"3 ns\", \"5 ns\"], [\"5 ns\"]"), 200);
    assert_eq!(of(&records, Kind::Overrun), [(8, 0, 2), (8, 0, 0), (105, 0, 1), (110, 0, 2), (110, 0, 0)]);
    assert_eq!(outcome.tasks[0].overruns, 2);
    // What is cut short has not ended.
    let (_, records) = run(&job("drop", shorter, "[\"6 ns\"], [\"2 ns\"]"), 100);
    assert_eq!(of(&records, Kind::Overrun), []);
}

#[test]
fn a_demoted_job_can_be_preempted_between_its_points() {
    let beside = task("below", 1, 0, 4) + &task("above", 9, 5, 2);
    let (_, records) = run(&(job("demote", "\"3 ns\", \"4 ns\"", "[\"6 ns\"], [\"4 ns\"]") + &beside), 100);
    assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 2)]);
    assert_eq!(of(&records, Kind::Preempt), [(3, 0, 0), (5, 1, 0)]);
    assert_eq!(of(&records, Kind::Completion), [(7, 2, 0), (9, 1, 0), (16, 0, 0)]);
    // One that keeps to its budget is not: "above" waits for its point.
    let (_, records) = run(&(job("demote", "\"3 ns\", \"4 ns\"", "[\"3 ns\"], [\"4 ns\"]") + &beside), 100);
    assert_eq!(of(&records, Kind::Completion), [(7, 0, 0), (9, 2, 0), (13, 1, 0)]);
}

#[test]
fn the_next_job_has_all_of_its_budgets_and_the_policy_acts_once_a_job() {
    let text = job("skip", "\"3 ns\", \"4 ns\"", "[\"4 ns\", \"3 ns\"], [\"5 ns\", \"4 ns\"]");
    let (outcome, records) = run(&text, 400);
    assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 1), (303, 0, 1)]);
    assert_eq!(of(&records, Kind::Skip), [(100, 0, 0)]);
    assert_eq!((outcome.tasks[0].skipped, outcome.tasks[0].completed), (1, 3));
}

#[test]
fn every_segment_has_a_list_of_its_own_length() {
    let text = job(
        "count",
        "{ wcet = \"3 ns\", bcet = \"1 ns\" }, { wcet = \"4 ns\", bcet = \"1 ns\" }",
        "[\"1 ns\", \"2 ns\"], [\"4 ns\", \"3 ns\", \"1 ns\"]",
    );
    let (_, records) = run(&text, 500);
    let ends: Vec<u64> = of(&records, Kind::Completion).iter().map(|&(at, ..)| at % 100).collect();
    assert_eq!(ends, [5, 5, 2, 6, 4]);
    // Which segments a job takes changes nothing: the third job takes the third time.
    let (_, records) = run_along(
        &job(
            "count",
            BRANCHES,
            "[\"3 ns\"], [\"6 ns\"], [\"1 ns\", \"2 ns\"], [\"3 ns\", \"3 ns\", \"4 ns\"]",
        ),
        300,
        &[0, 2, 3],
    );
    let ends: Vec<u64> = of(&records, Kind::Completion).iter().map(|&(at, ..)| at % 100).collect();
    assert_eq!(ends, [7, 8, 8]);
}

#[test]
fn what_does_not_fit_the_segments_is_refused() {
    let said = |text: &str| read(text).err().unwrap_or_default();
    let sequence = "\"3 ns\", \"4 ns\"";
    let whole = job("count", sequence, "").replace("segments = [] }", "jobs = [\"8 ns\"] }");
    assert!(said(&whole).contains("a job with segments has no time of its own to list"), "{}", said(&whole));
    let few = job("count", sequence, "[\"3 ns\"]");
    assert!(said(&few).contains("there are 1 lists of times and 2 segments"), "{}", said(&few));
    let none = job("count", sequence, "[\"3 ns\"], []");
    assert!(said(&none).contains("there is no time"), "{}", said(&none));
    let low = job("count", sequence, "[\"3 ns\"], [\"4 ns\", \"3 ns\"]");
    assert!(said(&low).contains("the time 3 ns is below the bcet 4 ns"), "{}", said(&low));
    assert!(said(&low).contains("test:11:46"), "{}", said(&low));
    let flat = job("count", sequence, "[\"3 ns\"]")
        .replace("preemption = \"deferred\"\nsegments = [\"3 ns\", \"4 ns\"]", "wcet = \"3 ns\"");
    assert!(said(&flat).contains("this task has no segments"), "{}", said(&flat));
    let both = job("count", sequence, "[\"3 ns\"], [\"4 ns\"]")
        .replace("{ segments", "{ jobs = [\"3 ns\"], segments");
    assert!(said(&both).contains("by jobs or by segments, not both"), "{}", said(&both));
    let text = job("count", sequence, "\"3 ns\", [\"4 ns\"]");
    assert!(said(&text).contains("list of durations"), "{}", said(&text));
    let device =
        "[[device]]\nname = \"d\"\nservice = \"interrupt\"\nseparation = \"1 ms\"\ncost = \"1 us\"\n";
    let beside = job("count", sequence, "[\"3 ns\"], [\"5 ns\"]") + device;
    assert!(said(&beside).contains("beside interrupts and devices"), "{}", said(&beside));
    assert_eq!(said(&(job("count", sequence, "[\"3 ns\"], [\"4 ns\"]") + device)), "");
}

#[test]
fn lists_follow_their_segments_into_the_order_of_the_graph_and_are_read_back() {
    let turned =
        "{ name = \"last\", wcet = \"2 ns\" }, { name = \"first\", wcet = \"3 ns\", next = [\"last\"] }";
    let (_, records) = run(&job("drop", turned, "[\"2 ns\"], [\"4 ns\", \"3 ns\"]"), 200);
    assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 4)]);
    let system = read(&job("drop", turned, "[\"2 ns\"], [\"4 ns\", \"3 ns\"]"));
    let system = system.unwrap_or_else(|errors| panic!("{errors}"));
    let printed = horolog_model::file::print(&system);
    assert!(printed.contains("segments = [[\"4 ns\", \"3 ns\"], [\"2 ns\"]]"), "{printed}");
    let again = horolog_model::file::read(&printed, "printed", &[]).map(|(again, _)| again.to_draft());
    assert_eq!(again.ok(), Some(system.to_draft()));
}
