//! The concave majorant of one application, and the two greedy variants for one resource.

use crate::answer::{Bound, BoundKind};
use crate::problem::Problem;
use std::cmp::Ordering;

/// An upgrade from one vertex of an application's majorant to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) application: usize,
    /// The place that it leads to.
    pub(crate) to: usize,
    /// What it is worth more.
    pub(crate) gain: u64,
    /// What it costs more.
    pub(crate) more: u64,
}

/// What variants 1 and 2 come to, and the fractional bound of variant 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Greedy {
    pub(crate) choice: Vec<usize>,
    /// The optimum is at most this.
    pub(crate) bound: Bound,
}

/// What happens at the first segment that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtMisfit {
    /// Variant 1: the end.
    Stop,
    /// Variant 2: this application stays where it is, the others go on.
    Drop,
}

/// The vertices of the upper hull of (cost, utility): from the cheapest place (of several the most useful one) on, each with more
/// utility than the one before, slopes falling. `into` gets their places.
///
/// Slopes are compared by products in 128 bits: exact.
pub(crate) fn majorant(costs: &[u64], utilities: &[u64], order: &mut Vec<u32>, into: &mut Vec<u32>) {
    order.clear();
    order.extend(0..costs.len() as u32);
    let (cost, utility) = (|at: u32| costs[at as usize], |at: u32| utilities[at as usize]);
    order.sort_unstable_by(|&a, &b| cost(a).cmp(&cost(b)).then(utility(b).cmp(&utility(a))).then(a.cmp(&b)));
    into.clear();
    for &next in order.iter() {
        let Some(&last) = into.last() else {
            into.push(next);
            continue;
        };
        if utility(next) <= utility(last) {
            continue;
        }
        while let [.., before, last] = into[..] {
            let old = u128::from(utility(last) - utility(before)) * u128::from(cost(next) - cost(before));
            let new = u128::from(utility(next) - utility(before)) * u128::from(cost(last) - cost(before));
            // The last vertex lies on or below the line to the next one.
            if old > new {
                break;
            }
            into.pop();
        }
        into.push(next);
    }
}

/// By slope, the steepest first; ties by the application, then the place.
fn steepest(a: &Segment, b: &Segment) -> Ordering {
    let (left, right) = (u128::from(b.gain) * u128::from(a.more), u128::from(a.gain) * u128::from(b.more));
    left.cmp(&right).then(a.application.cmp(&b.application)).then(a.more.cmp(&b.more))
}

/// The cheapest set-points, and all segments of one resource, the steepest first.
pub(crate) fn segments(problem: &Problem) -> (Vec<usize>, Vec<Segment>) {
    let (mut order, mut hull, mut start, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for application in 0..problem.applications().len() {
        let range = problem.range(application);
        let costs: Vec<u64> = range.clone().map(|place| problem.uses(place)[0]).collect();
        let utilities: Vec<u64> = range.clone().map(|place| problem.utility(place)).collect();
        majorant(&costs, &utilities, &mut order, &mut hull);
        start.push(hull[0] as usize);
        for pair in hull.windows(2) {
            let (from, to) = (pair[0] as usize, pair[1] as usize);
            all.push(Segment {
                application,
                to,
                gain: utilities[to] - utilities[from],
                more: costs[to] - costs[from],
            });
        }
    }
    all.sort_by(steepest);
    (start, all)
}

/// SRSD and SRMD with set-points: upgrades along the majorants, the steepest first, while they fit. The first one that does not fit gives the
/// bound: the utility so far and the share of its gain that would still fit, rounded down (the optimum is an integer).
///
/// `None`: the cheapest set-points do not fit, so nothing does.
pub(crate) fn greedy(problem: &Problem, at_misfit: AtMisfit) -> Option<Greedy> {
    let (mut choice, segments) = segments(problem);
    let start = problem.of_choice(&choice)?;
    let capacity = problem.resources()[0].capacity;
    let mut left = capacity.checked_sub(start.used[0])?;
    let mut utility = start.utility;
    let mut frozen = vec![false; choice.len()];
    let mut bound = None;
    for segment in segments {
        if frozen[segment.application] {
            continue;
        }
        if segment.more <= left {
            left -= segment.more;
            utility += segment.gain;
            choice[segment.application] = segment.to;
            continue;
        }
        if bound.is_none() {
            let part = u128::from(segment.gain) * u128::from(left) / u128::from(segment.more);
            bound = Some(utility + part as u64);
        }
        if at_misfit == AtMisfit::Stop {
            break;
        }
        frozen[segment.application] = true;
    }
    // Where every segment fits each application has its best set-point.
    let bound = match bound {
        Some(utility) => Bound { kind: BoundKind::Fractional, utility },
        None => Bound { kind: BoundKind::Optimum, utility },
    };
    Some(Greedy { choice, bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hull(points: &[(u64, u64)]) -> Vec<u32> {
        let (costs, utilities): (Vec<u64>, Vec<u64>) = points.iter().copied().unzip();
        let mut into = Vec::new();
        majorant(&costs, &utilities, &mut Vec::new(), &mut into);
        into
    }

    #[test]
    fn a_point_on_the_line_is_left_out_and_one_unit_above_it_is_not() {
        assert_eq!(hull(&[(0, 0), (2, 10), (4, 20)]), [0, 2]);
        assert_eq!(hull(&[(0, 0), (2, 11), (4, 20)]), [0, 1, 2]);
        assert_eq!(hull(&[(0, 0), (2, 9), (4, 20)]), [0, 2]);
        assert_eq!(hull(&[(10, 8), (30, 20), (50, 44)]), [0, 2], "the second application of fact 13");
    }

    #[test]
    fn of_equal_costs_the_most_useful_one_counts_and_what_is_worth_less_for_more_does_not() {
        assert_eq!(hull(&[(3, 5), (1, 2), (1, 4), (7, 5), (9, 6)]), [2, 0, 4]);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let most = i64::MAX as u64;
        assert_eq!(hull(&[(0, 0), (1, most), (most, most)]), [0, 1]);
    }
}
