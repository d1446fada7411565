//! The terms of an explanation add up to the bound, to the nanosecond.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, TermKind, analyze, explain};
use horolog_model::TaskId;
use horolog_testkit::{Ingredients, mixed_system};
use std::collections::HashSet;

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
