//! Fact 11 of the thesis: the enforcement instant, with the correction.
#![allow(clippy::unwrap_used)]

use horolog_exec::{Allowance, Progress};
use horolog_time::Span;

fn spans(value: &toml::Value) -> Vec<Span> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().parse().unwrap()).collect()
}

fn span(golden: &toml::Table, key: &str) -> Span {
    golden[key].as_str().unwrap().parse().unwrap()
}

fn list(spans: &[Span]) -> String {
    spans.iter().map(|span| format!("\"{span}\"")).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_enforcement_instant_counts_execution_and_not_preemption() {
    let text = include_str!("../../../golden/fpds-enforcement.toml");
    let golden: toml::Table = text.parse().unwrap();
    let (job, below) = (spans(&golden["job"]), spans(&golden["less-important"]));
    let file = format!(
        "[system]\nname = \"fact 11\"\n[platform]\ncpus = 1\n\
         [[task]]\nname = \"above\"\nperiod = \"50 ms\"\nwcet = \"1 ms\"\npriority = 3\n\
         [[task]]\nname = \"job\"\nperiod = \"100 ms\"\npriority = 2\npreemption = \"deferred\"\nsegments = [{}]\n\
         [[task]]\nname = \"below\"\nperiod = \"100 ms\"\npriority = 1\npreemption = \"deferred\"\nsegments = [{}]\n",
        list(&job),
        list(&below)
    );
    let (system, _) = horolog_model::file::read(&file, "golden", &[]).unwrap();
    let allowance = Allowance::of(&system, system.find_task("job").unwrap());
    let before = span(&golden, "executed-before");
    let progress = Progress { segment: 1, executed: before, before_segment: before, tighter_wcet: None };
    let starts = span(&golden, "second-starts");
    let enforced = starts.checked_add(allowance.until_action(progress)).unwrap();
    assert_eq!(enforced, span(&golden, "enforced"));
    // At the printed instant nothing is wrong yet.
    let executed = before.checked_add(span(&golden, "printed").checked_sub(starts).unwrap()).unwrap();
    assert!(!allowance.judge(Progress { executed, ..progress }).demands_action());
}
