//! Utility against resources: the same applications with less and with more of everything.

use crate::allocate::{Request, allocate, divisible};
use crate::answer::Outcome;
use crate::problem::{Problem, Resource};

/// What a share of every capacity is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurvePoint {
    /// So many per cent of each capacity, rounded down.
    pub percent: u64,
    /// The utility found, in units of 10^-9; `None`: nothing was found that fits.
    pub utility: Option<u64>,
    /// The least bound that is proved.
    pub bound: Option<u64>,
}

/// Allocates at 10, 20, and so on to 200 % of every capacity.
#[must_use]
pub fn curve(problem: &Problem, request: &Request) -> Vec<CurvePoint> {
    (1..=20).map(|tenth| point(problem, request, tenth * 10)).collect()
}

fn point(problem: &Problem, request: &Request, percent: u64) -> CurvePoint {
    let scaled = |resource: &Resource| {
        let capacity = u128::from(resource.capacity) * u128::from(percent) / 100;
        Resource { capacity: u64::try_from(capacity).unwrap_or(u64::MAX), ..resource.clone() }
    };
    let nothing = CurvePoint { percent, utility: None, bound: None };
    let resources = problem.resources().iter().map(scaled).collect();
    let applications = problem.applications().to_vec();
    // The names and sums are those of a problem.
    let Ok(problem) = Problem::new(problem.name(), resources, applications, problem.is_divisible()) else {
        return nothing;
    };
    if problem.is_divisible() {
        let utility = divisible(&problem).ok().flatten().map(|divided| divided.utility);
        return CurvePoint { percent, utility, bound: utility };
    }
    match allocate(&problem, request) {
        Ok(Outcome::Found(answer)) => CurvePoint {
            percent,
            utility: Some(answer.utility),
            bound: answer.bound().map(|bound| bound.utility),
        },
        _ => nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Application, SetPoint};

    #[test]
    fn the_step_is_where_the_larger_set_point_fits() {
        let point = |name: &str, amount, utility| SetPoint { name: name.into(), utility, uses: vec![amount] };
        let set_points = vec![point("low", 10, 1), point("high", 15, 7)];
        let application = Application { name: "a".into(), dimensions: 1, set_points };
        let resource = Resource { name: "r".into(), unit: String::new(), capacity: 20 };
        let problem = Problem::new("p", vec![resource], vec![application], false).expect("a problem");
        let found = curve(&problem, &Request::default());
        let at = |percent: u64| found[percent as usize / 10 - 1].utility;
        assert_eq!((at(40), at(50), at(70), at(80), at(200)), (None, Some(1), Some(1), Some(7), Some(7)));
    }
}
