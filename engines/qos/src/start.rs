//! A first allocation: every application at a set-point, within the capacities; or a proof that there is none.

use crate::problem::Problem;

/// How often prices are raised before the search falls back on single changes.
const RAISES: usize = 60;
/// The binary digits of the weights of a proof.
const WEIGHT: u64 = 1 << 32;

/// Whether there is an allocation at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// This one.
    Found(Vec<usize>),
    /// There is none, for this reason; proved.
    NoneFits(String),
    /// None was found.
    Unknown,
}

/// Looks for one.
pub(crate) fn start(problem: &Problem) -> Start {
    let capacities = problem.capacities();
    if let Some(reason) = least_is_too_much(problem, &capacities) {
        return Start::NoneFits(reason);
    }
    let inverse = |&capacity: &u64| 1.0 / capacity.max(1) as f64;
    let mut weights: Vec<f64> = capacities.iter().map(inverse).collect();
    let mut choice = cheapest(problem, &weights);
    for _ in 0..RAISES {
        let Some(totals) = problem.of_choice(&choice) else { return Start::Unknown };
        if problem.fits(&totals.used) {
            return Start::Found(choice);
        }
        for ((weight, &used), &capacity) in weights.iter_mut().zip(&totals.used).zip(&capacities) {
            *weight *= (used as f64 / capacity.max(1) as f64).clamp(0.7, 1.4);
        }
        choice = cheapest(problem, &weights);
    }
    if let Some(reason) = proof(problem, &weights) {
        return Start::NoneFits(reason);
    }
    repair(problem, choice)
}

/// Why not even the least of each resource that every application needs fits, where that is so.
fn least_is_too_much(problem: &Problem, capacities: &[u64]) -> Option<String> {
    let mut sums = vec![0_u64; capacities.len()];
    let mut least = vec![0_u64; capacities.len()];
    for (index, application) in problem.applications().iter().enumerate() {
        least.fill(u64::MAX);
        for place in problem.range(index).filter(|&place| problem.fits(problem.uses(place))) {
            least.iter_mut().zip(problem.uses(place)).for_each(|(least, used)| *least = (*least).min(*used));
        }
        if least[0] == u64::MAX {
            return Some(format!("no set-point of `{}` fits, even alone", application.name));
        }
        // Sums of the largest fit 63 bits.
        sums.iter_mut().zip(&least).for_each(|(sum, least)| *sum += least);
    }
    let at = sums.iter().zip(capacities).position(|(sum, capacity)| sum > capacity)?;
    Some(format!(
        "the least that all applications need of `{}` is {}, and there is {}",
        problem.resources()[at].name,
        sums[at],
        capacities[at]
    ))
}

/// The set-point of each application that fits alone and costs least; of equal ones the most useful one.
fn cheapest(problem: &Problem, weights: &[f64]) -> Vec<usize> {
    let cost = |place: usize| -> f64 {
        problem.uses(place).iter().zip(weights).map(|(&used, weight)| used as f64 * weight).sum()
    };
    let of = |application: usize| {
        let range = problem.range(application);
        let (mut best, mut at) = ((f64::INFINITY, 0), 0);
        for place in range.clone().filter(|&place| problem.fits(problem.uses(place))) {
            let (cost, utility) = (cost(place), problem.utility(place));
            if cost < best.0 || (cost == best.0 && utility > best.1) {
                (best, at) = ((cost, utility), place - range.start);
            }
        }
        at
    };
    (0..problem.applications().len()).map(of).collect()
}

/// The least weighted amount of all applications, and the weighted capacity, where that is less: then nothing fits, whatever the
/// weights. Exact, in 128 bits.
fn too_much(problem: &Problem, weights: &[u64]) -> Option<(u128, u128)> {
    let weighted = |uses: &[u64]| -> u128 {
        uses.iter().zip(weights).map(|(&used, &weight)| u128::from(used) * u128::from(weight)).sum()
    };
    let least = |application| {
        let fitting = problem.range(application).filter(|&place| problem.fits(problem.uses(place)));
        fitting.map(|place| weighted(problem.uses(place))).min().unwrap_or(0)
    };
    let need: u128 = (0..problem.applications().len()).map(least).sum();
    let capacity = weighted(&problem.capacities());
    (need > capacity).then_some((need, capacity))
}

/// The same with weights that the search has come to.
fn proof(problem: &Problem, weights: &[f64]) -> Option<String> {
    let capacities = problem.capacities();
    let worth = weights.iter().zip(&capacities).map(|(weight, &capacity)| weight * capacity.max(1) as f64);
    let most = worth.fold(0.0_f64, f64::max);
    // So that a weight times its capacity has 32 digits, or the weight has.
    let smallest = capacities.iter().copied().filter(|&capacity| capacity > 0).min().unwrap_or(1);
    let scale = WEIGHT as f64 * (smallest as f64).max(1.0) / most;
    let whole: Vec<u64> = weights.iter().map(|weight| (weight * scale) as u64).collect();
    too_much(problem, &whole)?;
    let named: Vec<String> = problem
        .resources()
        .iter()
        .zip(&whole)
        .filter(|(_, weight)| **weight > 0)
        .map(|(resource, _)| format!("`{}`", resource.name))
        .collect();
    Some(format!(
        "no choice of set-points fits {} at once: their weighted sum is too small for the least that all applications need",
        named.join(" and ")
    ))
}

/// Changes one application at a time while that lowers what is too much, in shares of the capacities.
fn repair(problem: &Problem, mut choice: Vec<usize>) -> Start {
    let capacities = problem.capacities();
    let excess = |used: &[u64]| -> f64 {
        used.iter()
            .zip(&capacities)
            .map(|(&used, &capacity)| used.saturating_sub(capacity) as f64 / capacity.max(1) as f64)
            .sum()
    };
    let Some(mut totals) = problem.of_choice(&choice) else { return Start::Unknown };
    for _ in 0..choice.len().min(1_000) {
        let mut best = (excess(&totals.used), None);
        for (application, &now) in choice.iter().enumerate() {
            let range = problem.range(application);
            for place in range.clone() {
                let used = moved(&totals.used, problem.uses(range.start + now), problem.uses(place));
                let excess = excess(&used);
                if excess < best.0 {
                    best = (excess, Some((application, place - range.start, used)));
                }
            }
        }
        let Some((application, point, used)) = best.1 else { return Start::Unknown };
        choice[application] = point;
        totals.used = used;
        if problem.fits(&totals.used) {
            return Start::Found(choice);
        }
    }
    Start::Unknown
}

/// What is used after one application goes from one set-point to another.
pub(crate) fn moved(used: &[u64], from: &[u64], to: &[u64]) -> Vec<u64> {
    used.iter().zip(from).zip(to).map(|((used, from), to)| used - from + to).collect()
}
