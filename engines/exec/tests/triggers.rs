//! The executive's events as triggers: what a recorder sees of a run is what the run itself wrote down.

use horolog_exec::RunOptions;
use horolog_probe::session::{Options, Session};
use horolog_probe::switching;
use horolog_trace::Kind;
use std::collections::BTreeMap;

mod common;
use common::{ms, run_or_skip, system, task, us};

#[test]
fn a_recorder_sees_the_runs_events_and_a_disabled_trigger_none() {
    let tasks = vec![task("fast", 10, ms(20), us(500)), task("slow", 5, ms(60), ms(4))];
    let system = system(tasks);
    let session = Session::create(&Options::default()).expect("memory for a session");
    let mut reader = session.reader().expect("the only reader");
    let switched = switching::apply("executive/*", true).expect("the executive has triggers");
    assert!(switched.sites >= 13, "{switched:?}");
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(240))) else { return };
    switching::apply("executive/*", false).expect("as before");

    let mut seen: Vec<(u32, Vec<u64>)> = Vec::new();
    reader.drain(|record| seen.push((record.event, record.args.to_vec())));
    assert_eq!(reader.losses().total(), 0);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (event, words) in &seen {
        assert_eq!(words.len(), 5);
        let name = reader.event(*event).expect("it is in the directory").name.clone();
        *counts.entry(name).or_default() += 1;
    }
    for kind in [Kind::Release, Kind::Start, Kind::Completion, Kind::Miss, Kind::Overrun, Kind::VainWait] {
        let written = result.records.iter().filter(|record| record.kind == kind).count();
        let name = format!("executive/{}", kind.name());
        assert_eq!(counts.get(&name).copied().unwrap_or(0), written, "{name}");
    }
    let completed: u64 = result.outcome.tasks.iter().map(|task| task.completed).sum();
    assert!(completed > 0 && counts["executive/completion"] as u64 == completed, "{counts:?}");

    let Some(_) = run_or_skip(&system, &RunOptions::for_span(ms(60))) else { return };
    assert_eq!(reader.drain(|_| {}), 0);
}
