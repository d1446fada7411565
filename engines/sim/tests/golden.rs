//! Golden facts of deferred preemption that a simulation shows exactly.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

fn golden<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name);
    let text = std::fs::read_to_string(&path).expect("the golden file is there");
    toml::from_str(&text).expect("the golden file is well formed")
}

fn system(text: &str) -> System {
    match horolog_model::file::read(text, "golden", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

fn span(text: &str) -> Span {
    text.parse().expect("a duration")
}

fn run(system: &System, until: Span) -> (Outcome, Vec<Record>) {
    let mut records = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(until), ..SimOptions::default() };
    let outcome = simulate(system, &options, &mut records).expect("it simulates");
    (outcome, records)
}

#[derive(Deserialize)]
struct Tick {
    system: String,
    until: String,
    runs: Vec<(String, u64, String, String)>,
    responses: Vec<(String, u64, String)>,
}

#[test]
fn ticks_delay_releases_as_in_table_2_1() {
    let golden: Tick = golden("fpds-tick.toml");
    let system = system(&golden.system);
    let (outcome, records) = run(&system, span(&golden.until));
    let name = |task: u32| system.tasks()[task as usize].name.clone();
    let mut runs = Vec::new();
    let mut since = 0;
    for record in &records {
        match record.kind {
            Kind::Start | Kind::Resume => since = record.time.as_ns(),
            Kind::Preempt | Kind::Completion => {
                runs.push((name(record.task), record.job, since, record.time.as_ns()));
            }
            _ => {}
        }
    }
    let expected =
        golden.runs.into_iter().map(|(t, j, from, to)| (t, j, span(&from).as_ns(), span(&to).as_ns()));
    assert_eq!(runs, expected.collect::<Vec<_>>());
    for (task, job, response) in golden.responses {
        let of = |kind| records.iter().find(|r| r.kind == kind && r.job == job && name(r.task) == task);
        let (release, end) = (of(Kind::Release).expect("released"), of(Kind::Completion).expect("completed"));
        assert_eq!(Span::from_ns(end.time.as_ns() - release.value), span(&response), "{task} {job}");
    }
    assert!(outcome.tasks.iter().all(|task| task.missed == 0 && task.unfinished == 0));
}

#[derive(Deserialize)]
struct SwitchIns {
    frequent: String,
    long: String,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Case {
    name: String,
    low: Option<String>,
    segments: Option<usize>,
    #[serde(default)]
    alone: bool,
    switch_ins: u64,
    preemptions: u64,
    points: u64,
    yields: u64,
    waits: Vec<String>,
}

#[test]
fn switch_ins_and_yields_follow_the_preemption_mode() {
    let golden: SwitchIns = golden("fpds-switch-ins.toml");
    for case in golden.case {
        let low = match (&case.low, case.segments) {
            (Some(low), None) => low.clone(),
            (None, Some(count)) => {
                let segment = format!("\"{}\"", Span::from_ns(500_000_000 / count as u64));
                format!("preemption = \"deferred\"\nsegments = [{}]", vec![segment; count].join(", "))
            }
            _ => panic!("{}: either `low` or `segments`", case.name),
        };
        let frequent = if case.alone { "" } else { &golden.frequent };
        let text = format!("[system]\nname = \"table 5.1\"\n{frequent}\n{}\n{low}\n", golden.long);
        let system = system(&text);
        let low = system.tasks().iter().position(|task| task.name == "low").expect("it is there");
        // Two periods of the long task: the counts are those of each of its jobs.
        let (outcome, records) = run(&system, span("2 s"));
        let found = &outcome.tasks[low];
        let points = records.iter().filter(|r| r.kind == Kind::PreemptionPoint).count() as u64;
        let counts = [found.switch_ins, found.preemptions, points, found.yields];
        let expected = [case.switch_ins, case.preemptions, case.points, case.yields];
        assert_eq!(counts, expected.map(|count| count * 2), "{}", case.name);
        let high = (1 - low) as u32;
        let waits: Vec<Span> = records
            .iter()
            .filter(|r| r.kind == Kind::Completion && r.task == high && (1..=4).contains(&r.job))
            .map(|r| Span::from_ns(r.time.as_ns() - r.job * 100_000_000))
            .collect();
        let expected: Vec<Span> = case.waits.iter().map(|wait| span(wait)).collect();
        assert_eq!(if case.alone { vec![] } else { waits }, expected, "{}", case.name);
    }
}
