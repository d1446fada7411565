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
            assert_eq!(explanation.worst_job, earlier, "system {index}: {explanation}");
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

/// `w = 2·⌈w/5⌉ + 4·⌈w/10⌉` at first at 8, under either policy; and a term of 1 ns is one.
#[test]
fn the_busy_period_and_the_shortest_terms_are_named() {
    for (policy, priorities) in [("fixed-priority", ["priority = 2", "priority = 1"]), ("edf", ["", ""])] {
        let text = format!(
            "[system]\nname = \"x\"\npolicy = \"{policy}\"\n[[task]]\nname = \"a\"\nseparation = \"5 ns\"\ndeadline = \"5 ns\"\nwcet = \"2 ns\"\n{}\n\
             [[task]]\nname = \"b\"\nseparation = \"10 ns\"\nwcet = \"4 ns\"\n{}\n",
            priorities[0], priorities[1]
        );
        let (system, _) = horolog_model::file::read(&text, "x", &[]).unwrap();
        let found = explain(&system, TaskId(1), &Options::default()).unwrap();
        assert_eq!(found.busy_period.map(|busy| busy.as_ns()), Some(8), "{policy}");
        assert!(found.terms.iter().all(|term| !term.time.is_zero()), "{found}");
        let tiny = text
            .replace("wcet = \"2 ns\"", "wcet = \"1 ns\"")
            .replace("separation = \"5 ns\"", "separation = \"100 ns\"");
        let (system, _) = horolog_model::file::read(&tiny, "x", &[]).unwrap();
        let found = explain(&system, TaskId(1), &Options::default()).unwrap();
        let others = found.terms.iter().filter(|term| term.who.as_deref() == Some("a"));
        assert_eq!(others.map(|term| term.time.as_ns()).collect::<Vec<_>>(), [1], "{policy}: {found}");
    }
}
