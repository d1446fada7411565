//! MRSD and MRMD as a mixed-integer program, solved by a library; and the faster program of what may still matter.

use crate::candidates::candidates;
use crate::local_search::Found;
use crate::prices::Prices;
use crate::problem::Problem;
use good_lp::solvers::SolutionStatus;
use good_lp::{
    Expression, IntoAffineExpression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable,
    WithTimeLimit, variable,
};

/// What the solver came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Solved {
    /// It calls this choice the best.
    Best(Vec<usize>),
    /// The best so far, when time was up.
    SoFar(Vec<usize>),
    /// Nothing that can be used, for this reason.
    Nothing(String),
}

/// The solver of this build.
#[must_use]
pub fn solver() -> &'static str {
    if cfg!(feature = "highs") { "HiGHS" } else { "microlp" }
}

/// `max sum u_is x_is, sum over s of x_is = 1, sum r_isk x_is <= R_k, x_is in {0, 1}`, over these places of each application. The solver computes
/// in floating point; whether its choice fits is decided in integers.
pub(crate) fn mip(problem: &Problem, places: &[Vec<usize>], first: &[usize], seconds: f64) -> Solved {
    if let Some(application) = places.iter().position(Vec::is_empty) {
        let name = &problem.applications()[application].name;
        return Solved::Nothing(format!("no set-point of `{name}` is left"));
    }
    let mut variables = ProblemVariables::new();
    let mut of: Vec<Vec<Variable>> = Vec::with_capacity(places.len());
    for (application, places) in places.iter().enumerate() {
        let chosen = first.get(application).map(|point| problem.range(application).start + point);
        let binary = |&place: &usize| {
            let definition = variable().binary();
            let first = f64::from(u8::from(chosen == Some(place)));
            variables.add(if first_is_known(places, chosen) { definition.initial(first) } else { definition })
        };
        of.push(places.iter().map(binary).collect());
    }
    let terms = || places.iter().flatten().zip(of.iter().flatten());
    let most = places.iter().flatten().map(|&place| problem.utility(place)).max().unwrap_or(1).max(1) as f64;
    let mut objective = Expression::with_capacity(problem.set_points());
    for (&place, &variable) in terms() {
        objective.add_mul(problem.utility(place) as f64 / most * 100.0, variable);
    }
    let mut model = variables.maximise(objective).using(using).with_time_limit(seconds);
    for of in &of {
        let mut one = Expression::with_capacity(of.len());
        of.iter().for_each(|&variable| one.add_mul(1.0, variable));
        model.add_constraint(one.eq(1.0));
    }
    for (resource, described) in problem.resources().iter().enumerate() {
        let scale = if described.capacity > 1_000_000 { 1e6 / described.capacity as f64 } else { 1.0 };
        let mut sum = Expression::with_capacity(problem.set_points());
        for (&place, &variable) in terms() {
            sum.add_mul(problem.uses(place)[resource] as f64 * scale, variable);
        }
        model.add_constraint(sum.into_expression().leq(described.capacity as f64 * scale));
    }
    match model.solve() {
        Ok(solution) => taken(problem, places, &of, &solution),
        Err(ResolutionError::Infeasible) => Solved::Nothing("the solver finds no allocation".to_owned()),
        Err(error) => Solved::Nothing(format!("the solver gives up: {error}")),
    }
}

/// An initial value is given to all variables of an application, or to none.
fn first_is_known(places: &[usize], chosen: Option<usize>) -> bool {
    chosen.is_some_and(|chosen| places.contains(&chosen))
}

#[cfg(feature = "highs")]
fn using(problem: good_lp::variable::UnsolvedProblem) -> good_lp::solvers::highs::HighsProblem {
    good_lp::highs(problem).set_threads(1).set_option("mip_rel_gap", 0.0).set_option("mip_abs_gap", 0.0)
}

#[cfg(not(feature = "highs"))]
fn using(problem: good_lp::variable::UnsolvedProblem) -> good_lp::solvers::microlp::MicroLpProblem {
    good_lp::microlp(problem)
}

/// The choice of a solution, where it fits.
fn taken(problem: &Problem, places: &[Vec<usize>], of: &[Vec<Variable>], solution: &impl Solution) -> Solved {
    let mut choice = Vec::with_capacity(places.len());
    for (application, (places, of)) in places.iter().zip(of).enumerate() {
        let at = places
            .iter()
            .zip(of)
            .max_by(|(_, a), (_, b)| solution.value(**a).total_cmp(&solution.value(**b)));
        let Some((&place, _)) = at else { return Solved::Nothing("the solver chose nothing".to_owned()) };
        choice.push(place - problem.range(application).start);
    }
    match problem.of_choice(&choice) {
        Some(totals) if problem.fits(&totals.used) => match solution.status() {
            SolutionStatus::Optimal => Solved::Best(choice),
            _ => Solved::SoFar(choice),
        },
        _ => Solved::Nothing(
            "the solver's choice is beyond a capacity, within its floating-point tolerance".to_owned(),
        ),
    }
}

/// The places that may still be in an allocation worth more than `found` by more than `permille_of_permille` millionths: a place whose best allocation, by the
/// prices' bound, is worth no more, is left out. Those of the allocation itself stay. The second is the utility that nothing left out exceeds.
pub(crate) fn core(
    problem: &Problem,
    found: &Found,
    prices: &Prices,
    millionths: u64,
) -> Option<(Vec<Vec<usize>>, u64)> {
    let bound = prices.total(problem)?;
    let slack = u128::from(found.utility) * u128::from(millionths) / 1_000_000;
    let limit = found.utility.checked_add(u64::try_from(slack).ok()?)?;
    let mut places = candidates(problem);
    for (application, places) in places.iter_mut().enumerate() {
        let best = problem.range(application).filter(|&place| problem.fits(problem.uses(place)));
        let best = best.map(|place| prices.surplus(problem, place)).max()?;
        let kept = problem.range(application).start + found.choice[application];
        places.retain(|&place| {
            let most = bound - best + prices.surplus(problem, place);
            place == kept || most >= Prices::of_utility(limit + 1)
        });
        if !places.contains(&kept) {
            places.push(kept);
        }
    }
    Some((places, limit))
}
