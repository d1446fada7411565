//! The conformance suite in virtual time, with every job at its wcet and with a tenth less.

use horolog_model::ExecutionTimes;
use horolog_model::{Preemption, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::conformance::SCENARIOS;
use horolog_time::Span;
use horolog_trace::{Kind, Record};

/// The same system with all execution a tenth shorter.
fn shortened(system: &System) -> System {
    let less = |span: Span| Span::from_ns(span.as_ns() / 10 * 9);
    let mut draft = system.to_draft();
    for task in &mut draft.tasks {
        if let Preemption::Deferred(graph) = &mut task.preemption {
            for segment in &mut graph.segments {
                segment.bcet = less(segment.wcet);
            }
        }
        task.bcet = less(task.wcet);
        task.execution = ExecutionTimes::Samples(vec![task.bcet]);
    }
    System::new(draft).expect("shorter jobs break no rule")
}

#[test]
fn every_scenario_shows_its_order() {
    for scenario in SCENARIOS {
        let (system, _) = horolog_model::file::read(&scenario.system(0), scenario.name, &[])
            .unwrap_or_else(|errors| panic!("{}: {errors}", scenario.name));
        let variants = if scenario.exact { vec![system] } else { vec![shortened(&system), system] };
        for system in variants {
            let until = Span::from_ms(scenario.for_ms).expect("it fits");
            let options = SimOptions { horizon: Horizon::Time(until), ..SimOptions::default() };
            let mut records: Vec<Record> = Vec::new();
            let outcome = simulate(&system, &options, &mut records).expect("it simulates");
            let order: Vec<(String, u64)> = records
                .iter()
                .filter(|r| matches!(r.kind, Kind::Start | Kind::Resume))
                .map(|r| (system.tasks()[r.task as usize].name.clone(), r.job))
                .collect();
            scenario.check(&order).unwrap_or_else(|difference| panic!("{difference}"));
            for task in &outcome.tasks {
                let expected = scenario.yields.iter().find(|(name, _)| *name == task.name).map_or(0, |y| y.1);
                assert_eq!(task.yields, expected, "{}: {}", scenario.name, task.name);
            }
        }
    }
}

#[test]
fn a_wrong_order_is_told() {
    let scenario = &SCENARIOS[0];
    let wrong = [("low".to_owned(), 0), ("low".to_owned(), 0)];
    let message = scenario.check(&wrong).expect_err("the order is wrong");
    assert!(message.contains("at place 1") && message.contains("high"), "{message}");
    assert!(scenario.check(&[]).is_err());
}
