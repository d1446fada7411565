//! Every certificate that an analysis writes is accepted, and none with any number changed.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, Verdict, analyze, certify};
use horolog_certificate::{Certificate, check};
use horolog_model::System;
use horolog_testkit::{Ingredients, mixed_system};
use serde_json::Value;

fn certificate_of(system: &System) -> (Certificate, Vec<Verdict>) {
    let options = Options::default();
    let analysis = analyze(system, &options).unwrap();
    let verdicts = analysis.tasks.iter().map(|t| t.verdict).collect();
    (certify(system, &analysis, &options).unwrap(), verdicts)
}

#[test]
fn every_proven_verdict_has_an_accepted_certificate() {
    let mut count = [0; 3];
    for index in 0..400 {
        let kind = if index % 2 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = mixed_system(3, index, kind);
        let (certificate, verdicts) = certificate_of(&system);
        let said = check(&system, &certificate);
        let said = said.unwrap_or_else(|flaw| panic!("system {index}: {flaw}\n{system:#?}"));
        let proven = verdicts.iter().filter(|v| **v != Verdict::Unknown).count();
        assert_eq!(certificate.claims.len(), proven, "system {index}");
        assert_eq!(said.meet.len() + said.miss.len(), proven, "system {index}");
        for verdict in verdicts {
            count[verdict as usize] += 1;
        }
    }
    assert!(count[0] > 300 && count[1] > 100, "meets, misses, unknown: {count:?}");
}

/// The paths of all numbers in a JSON tree, as JSON pointers.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                numbers(item, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                numbers(member, &format!("{path}/{key}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_number_can_be_changed() {
    let mut mutants = 0;
    for index in 0..60 {
        let kind = if index % 2 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = mixed_system(4, index, kind);
        let (certificate, _) = certificate_of(&system);
        let tree = serde_json::to_value(&certificate).unwrap();
        let mut places = Vec::new();
        numbers(&tree, "", &mut places);
        let step = places.len() / 150 + 1;
        for place in places.iter().step_by(step) {
            let value = tree.pointer(place).unwrap().as_u64().unwrap();
            for changed in [value.wrapping_add(1), value.wrapping_sub(1), value / 2, 0, u64::MAX] {
                if changed == value {
                    continue;
                }
                let mut mutant = tree.clone();
                *mutant.pointer_mut(place).unwrap() = changed.into();
                let mutant: Certificate = serde_json::from_value(mutant).unwrap();
                assert!(check(&system, &mutant).is_err(), "system {index}: {place} {value} to {changed}");
                mutants += 1;
            }
        }
    }
    assert!(mutants > 5_000, "{mutants}");
}

#[test]
fn no_part_can_be_left_out_or_turned_round() {
    let mut changed = 0;
    for index in 0..60 {
        let system = mixed_system(5, index, Ingredients::NONE);
        let (certificate, _) = certificate_of(&system);
        let tree = serde_json::to_value(&certificate).unwrap();
        for (claim, _) in certificate.claims.iter().enumerate() {
            let verdict = format!("/claims/{claim}/verdict");
            let mut mutant = tree.clone();
            let turned = if tree.pointer(&verdict).unwrap() == "meets" { "misses" } else { "meets" };
            *mutant.pointer_mut(&verdict).unwrap() = turned.into();
            assert!(check(&system, &serde_json::from_value(mutant).unwrap()).is_err());
            for list in ["jobs", "tasks", "jobs/0/start_iterates", "horizon/iterates"] {
                let place = format!("/claims/{claim}/proof/{list}");
                let Some(Value::Array(items)) = tree.pointer(&place) else { continue };
                let mut mutant = tree.clone();
                let shorter = items[..items.len() - 1].to_vec();
                *mutant.pointer_mut(&place).unwrap() = Value::Array(shorter);
                // An overload may be provable without its last task, but never without the claim's own.
                let mutant: Certificate = serde_json::from_value(mutant).unwrap();
                if list == "tasks"
                    && items.last().unwrap().as_str() != Some(certificate.claims[claim].task.as_str())
                {
                    continue;
                }
                assert!(check(&system, &mutant).is_err(), "system {index}: {place} shortened");
                changed += 1;
            }
            if let Some(Value::Bool(least)) = tree.pointer(&format!("/claims/{claim}/proof/least")) {
                let mut mutant = tree.clone();
                *mutant.pointer_mut(&format!("/claims/{claim}/proof/least")).unwrap() = (!least).into();
                assert!(check(&system, &serde_json::from_value(mutant).unwrap()).is_err());
            }
        }
        let mut other = certificate.clone();
        other.system.push('x');
        assert!(check(&system, &other).is_err());
    }
    assert!(changed > 200, "{changed}");
}

#[test]
fn a_job_that_is_ready_only_after_a_pause_of_its_level_does_not_hide_the_bound() {
    let text = r#"
        [system]
        name = "pause"
        policy = "fixed-priority"
        [[task]]
        name = "own"
        period = "100 ns"
        deadline = "12 ns"
        wcet = "5 ns"
        priority = 1
        preemption = "non-preemptive"
        [[task]]
        name = "equal"
        period = "20 ns"
        wcet = "1 ns"
        priority = 1
        preemption = "non-preemptive"
        [[task]]
        name = "higher"
        period = "4 ns"
        wcet = "3 ns"
        priority = 2
    "#;
    let system = horolog_model::file::read(text, "pause.toml", &[]).unwrap().0;
    let analysis = analyze(&system, &Options::default()).unwrap();
    assert_eq!(analysis.tasks[0].verdict, Verdict::Meets, "{:#?}", analysis.tasks[0]);
    let (certificate, _) = certificate_of(&system);
    assert_eq!(certificate.claims.len(), 3);
    assert_eq!(check(&system, &certificate).unwrap().meet, ["own"]);
}
