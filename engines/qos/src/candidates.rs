//! Set-points that some best allocation may have.

use crate::problem::Problem;

/// The places of each application without those that cannot be in an allocation (beside the least that all others need they are too much)
/// and those that use no less of anything and are worth no more than another one. Some best allocation is among the rest.
pub(crate) fn candidates(problem: &Problem) -> Vec<Vec<usize>> {
    let applications = problem.applications().len();
    let width = problem.resources().len();
    let least_of = |application: usize| -> Vec<u64> {
        let least = |resource| problem.range(application).map(|place| problem.uses(place)[resource]).min();
        (0..width).map(|resource| least(resource).unwrap_or(0)).collect()
    };
    let least: Vec<Vec<u64>> = (0..applications).map(least_of).collect();
    let all: Vec<u64> = (0..width).map(|resource| least.iter().map(|one| one[resource]).sum()).collect();
    let capacities = problem.capacities();
    let may_be = |application: usize, place: usize| {
        let uses = problem.uses(place);
        (0..width).all(|at| all[at] - least[application][at] + uses[at] <= capacities[at])
    };
    (0..applications)
        .map(|application| {
            let fitting: Vec<usize> =
                problem.range(application).filter(|&place| may_be(application, place)).collect();
            let beaten = |&place: &usize| fitting.iter().any(|&other| beats(problem, other, place));
            fitting.iter().copied().filter(|place| !beaten(place)).collect()
        })
        .collect()
}

/// Whether a place uses no more of anything and is worth no less than another one; of equal ones the first does.
fn beats(problem: &Problem, one: usize, other: usize) -> bool {
    let (mine, theirs) = (problem.uses(one), problem.uses(other));
    let no_worse = problem.utility(one) >= problem.utility(other)
        && mine.iter().zip(theirs).all(|(mine, theirs)| mine <= theirs);
    let is_equal = problem.utility(one) == problem.utility(other) && mine == theirs;
    no_worse && (!is_equal || one < other)
}
