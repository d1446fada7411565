//! How far heuristics are from the optimum, or from a bound of it.

use super::{by, request};
use crate::{ExperimentError, ExperimentReport, Fact, Series};
use horolog_qos::{Algorithm, Answer, LocalSearchOptions, Problem, Recipe, Request};

/// The dossier's size: 6 applications of 9 set-points.
fn small(resources: usize) -> Recipe {
    Recipe { applications: 6, dimensions: 2, values: 3, resources }
}

pub(super) fn draw(recipe: Recipe, seed: u64, index: u64) -> Result<Problem, ExperimentError> {
    recipe.draw(seed, index).map_err(|error| ExperimentError::bad_input(error.to_string()))
}

/// In per cent.
pub(super) fn loss(utility: u64, best: u64) -> f64 {
    if best == 0 { 0.0 } else { 100.0 * best.saturating_sub(utility) as f64 / best as f64 }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn worst(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Variants of the local search.
const VARIANTS: [LocalSearchOptions; 3] = [
    LocalSearchOptions { norm_rounds: 1, with_prices: false },
    LocalSearchOptions { norm_rounds: 5, with_prices: false },
    LocalSearchOptions { norm_rounds: 5, with_prices: true },
];

/// Facts 14 and 16, and a table of mean and worst losses.
pub(super) fn against_optimum(
    report: &mut ExperimentReport,
    seed: u64,
    problems: u64,
) -> Result<(), ExperimentError> {
    let mut all = Vec::new();
    let mut rows = Vec::new();
    let mut same = 0;
    for resources in [1, 3, 5] {
        let mut losses: [Vec<f64>; 3] = Default::default();
        for index in 0..problems {
            let problem = draw(small(resources), seed, index)?;
            let best = by(&problem, &request(Algorithm::Dynamic))?;
            if index % 6 == 0 {
                let program = by(&problem, &request(Algorithm::Mip))?;
                same += u64::from(program.utility == best.utility);
            }
            for (losses, local_search) in losses.iter_mut().zip(VARIANTS) {
                let answer = by(&problem, &Request { local_search, ..request(Algorithm::LocalSearch) })?;
                losses.push(loss(answer.utility, best.utility));
            }
        }
        let mut row = vec![resources as f64];
        losses.iter().for_each(|losses| row.extend([mean(losses), worst(losses)]));
        rows.push(row);
        all.extend_from_slice(&losses[2]);
    }
    let columns = [
        "resources",
        "one round, mean %",
        "worst %",
        "five rounds, mean %",
        "worst %",
        "with prices and exchanges, mean %",
        "worst %",
    ];
    report.series.push(Series {
        name: format!("loss of the local search: {problems} problems of 6 applications of 9 set-points each"),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    });
    let checked = 3 * problems.div_ceil(6);
    report.facts.push(Fact::trend(
        16,
        "dynamic programming and the mixed-integer program find the same optimum",
        "both optimal",
        format!("the same in {same} of {checked}"),
        same == checked,
        "dynamic programming in integers, the program by microlp in floating point",
    ));
    let (average, most) = (mean(&all), worst(&all));
    report.facts.push(Fact::trend(
        14,
        "loss of the local search against the optimum, on average",
        "below 5 %",
        format!("{average:.2} % (worst {most:.2} %)"),
        average < 5.0,
        &format!("{} problems of 1, 3 and 5 resources", all.len()),
    ));
    Ok(())
}

fn against_bound(answer: &Answer) -> f64 {
    answer.bound().map_or(100.0, |bound| loss(answer.utility, bound.utility))
}

/// Fact 18: losses against the least proved bound.
pub(super) fn with_more_resources(
    report: &mut ExperimentReport,
    seed: u64,
    applications: usize,
) -> Result<(), ExperimentError> {
    let mut rows = Vec::new();
    let mut most: f64 = 0.0;
    for resources in [1, 2, 4, 8, 16] {
        let recipe = Recipe { applications, resources, ..small(resources) };
        let mut losses = Vec::new();
        for index in 0..10 {
            let problem = draw(recipe, seed, index)?;
            losses.push(against_bound(&*by(&problem, &request(Algorithm::LocalSearch))?));
        }
        most = most.max(mean(&losses));
        rows.push(vec![resources as f64, mean(&losses), worst(&losses)]);
    }
    report.series.push(Series {
        name: format!(
            "loss against a proved bound: 10 problems of {applications} applications of 9 set-points each"
        ),
        columns: ["resources", "mean %", "worst %"].map(str::to_owned).to_vec(),
        rows,
    });
    report.facts.push(Fact::trend(
        18,
        "mean loss of the local search against a bound, 1 to 16 resources",
        "scalable and robust (no figure)",
        format!("at most {most:.2} %"),
        most < 5.0,
        "agrees below 5 %, the figure of fact 14; the bound is not an optimum, so the loss is less",
    ));
    Ok(())
}
