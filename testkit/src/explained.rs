//! Explanations beside the bounds that they explain.

use horolog_analysis::{Explanation, Options, analyze, explain};
use horolog_model::System;

/// The explanation of every task with a bound.
///
/// # Panics
/// Where the system cannot be analysed, where an explanation is of another bound, and where its terms do not make the bound up.
#[must_use]
pub fn explanations(system: &System) -> Vec<Explanation> {
    let options = Options::default();
    let text = || horolog_model::file::print(system);
    let analysis = analyze(system, &options).unwrap_or_else(|error| panic!("{error}\n{}", text()));
    let with_bound = system.task_ids().zip(&analysis.tasks).filter(|(_, task)| task.response.is_some());
    let explained = with_bound.map(|(id, task)| {
        let explained = explain(system, id, &options)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", task.name, text()));
        assert_eq!(explained.response, task.response, "{}\n{}", task.name, text());
        let sum = |adds: bool| {
            let terms = explained.terms.iter().filter(|term| term.adds() == adds);
            terms.map(|term| term.time.as_ns()).sum::<u64>()
        };
        let bound = task.response.map(horolog_time::Span::as_ns);
        let terms = &explained.terms;
        assert_eq!(Some(sum(true) - sum(false)), bound, "{}: {terms:?}\n{}", task.name, text());
        explained
    });
    explained.collect()
}
