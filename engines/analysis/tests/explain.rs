//! The terms of an explanation add up to the bound, to the nanosecond.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, TermKind, analyze, explain};
use horolog_model::{Draft, Policy, Preemption, System, TaskId};
use horolog_testkit::{Ingredients, mixed_system};
use std::collections::HashSet;

/// The same system under EDF; what is deferred becomes non-preemptive.
fn under_edf(system: &System) -> System {
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        task.priority = None;
        if matches!(task.preemption, Preemption::Deferred(_)) {
            task.preemption = Preemption::NonPreemptive;
        }
    }
    let draft = Draft {
        name: system.name().to_owned(),
        policy: Policy::Edf,
        platform: system.platform().clone(),
        tasks,
        interferences: system.interferences().to_vec(),
        ..Draft::default()
    };
    System::new(draft).unwrap()
}

#[test]
fn terms_under_edf_add_up_to_the_bound() {
    let mut kinds = HashSet::new();
    let mut bounds = 0;
    for index in 0..600 {
        let ingredients = if index % 2 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = under_edf(&mixed_system(32, index, ingredients));
        let analysis = analyze(&system, &Options::default()).unwrap();
        for (task, verdict) in analysis.tasks.iter().enumerate() {
            let explanation = explain(&system, TaskId(task as u32), &Options::default()).unwrap();
            assert_eq!(explanation.response, verdict.response, "system {index}: {explanation}");
            let Some(response) = explanation.response else {
                assert!(explanation.reason.is_some() && explanation.terms.is_empty());
                continue;
            };
            bounds += 1;
            assert_eq!(explanation.test, verdict.test, "system {index}: {explanation}");
            let signed =
                |t: &horolog_analysis::Term| i128::from(t.time.as_ns()) * if t.adds() { 1 } else { -1 };
            let sum: i128 = explanation.terms.iter().map(signed).sum();
            assert_eq!(sum, i128::from(response.as_ns()), "system {index}: {explanation}");
            assert_eq!(explanation.terms[0].kind, TermKind::OwnWork);
            let mut earlier = explanation.terms.iter().filter(|t| t.kind == TermKind::EarlierJobs);
            let earlier = earlier.next().map_or(0, |t| t.count.unwrap());
            assert_eq!(explanation.worst_job, earlier + 1, "system {index}: {explanation}");
            kinds.extend(explanation.terms.iter().map(|t| t.kind));
        }
    }
    assert!(bounds > 1_000, "{bounds}");
    let all = [
        TermKind::OwnWork,
        TermKind::EarlierJobs,
        TermKind::BlockingDueLater,
        TermKind::DueNoLater,
        TermKind::ContextSwitches,
        TermKind::TimerInterrupts,
        TermKind::Outside,
        TermKind::Jitter,
        TermKind::ReleaseDelay,
        TermKind::BeforeArrival,
    ];
    assert_eq!(kinds, HashSet::from(all), "every kind of term turns up");
}

#[test]
fn terms_add_up_to_the_bound() {
    let mut kinds = HashSet::new();
    for index in 0..600 {
        let system =
            mixed_system(31, index, if index % 2 == 0 { Ingredients::ALL } else { Ingredients::NONE });
        let analysis = analyze(&system, &Options::default()).unwrap();
        for (task, verdict) in analysis.tasks.iter().enumerate() {
            let explanation = explain(&system, TaskId(task as u32), &Options::default()).unwrap();
            assert_eq!(explanation.response, verdict.response, "system {index}: {explanation}");
            assert_eq!(explanation.test, verdict.test);
            let Some(response) = explanation.response else {
                assert!(explanation.reason.is_some() && explanation.terms.is_empty());
                continue;
            };
            let sum: i128 = explanation
                .terms
                .iter()
                .map(|t| i128::from(t.time.as_ns()) * if t.adds() { 1 } else { -1 })
                .sum();
            assert_eq!(sum, i128::from(response.as_ns()), "system {index}: {explanation}");
            // A job that never waits is blocked once: there is nothing to count.
            let mut blocked = explanation.terms.iter().filter(|t| t.kind == TermKind::Blocking);
            assert!(blocked.all(|t| t.count.is_none()), "system {index}: {explanation}");
            kinds.extend(explanation.terms.iter().map(|t| t.kind));
        }
    }
    let all = [
        TermKind::OwnWork,
        TermKind::EarlierJobs,
        TermKind::Blocking,
        TermKind::Interference,
        TermKind::EqualPriority,
        TermKind::ContextSwitches,
        TermKind::TimerInterrupts,
        TermKind::Outside,
        TermKind::Jitter,
        TermKind::ReleaseDelay,
        TermKind::BeforeReady,
    ];
    assert_eq!(kinds, HashSet::from(all), "every kind of term turns up");
}
