//! SRSD with amounts of any size: equal marginal utility.

use crate::majorant::segments;
use crate::problem::Problem;

/// One divisible resource, allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divided {
    /// The amount of each application.
    pub amounts: Vec<u64>,
    /// The utility of each, in units of 10^-9, rounded down; exact for all but [`Divided::between`].
    pub utilities: Vec<u64>,
    /// The application whose amount lies between two of its set-points; there is one at the most.
    pub between: Option<usize>,
    /// The sum of the utilities, rounded down: what is lost is below 10^-9.
    pub utility: u64,
    /// The marginal utility of the resource: so much (in 10^-9) for so many units. `None`: everyone has its largest amount.
    pub marginal: Option<(u64, u64)>,
    /// What of the resource is used.
    pub used: u64,
}

/// Allocates one divisible resource: the optimum for concave piecewise linear utilities. There every application strictly between its bounds has
/// the same marginal utility λ, one at its least amount has no more and one at its largest amount no less. λ is bisected among the slopes,
/// which are compared as ratios; amounts are integers.
///
/// `None`: the least amounts do not fit.
pub(crate) fn divide(problem: &Problem) -> Option<Divided> {
    let (choice, segments) = segments(problem);
    let start = problem.of_choice(&choice)?;
    let left = problem.resources()[0].capacity.checked_sub(start.used[0])?;
    let mut sums = Vec::with_capacity(segments.len());
    let mut sum = 0_u64;
    for segment in &segments {
        // Amounts of a problem add up within 63 bits.
        sum += segment.more;
        sums.push(sum);
    }
    // The steeper ones are taken whole; the first that is not gives λ.
    let whole = sums.partition_point(|&sum| sum <= left);
    let of = |application: usize, point: usize| problem.range(application).start + point;
    let mut amounts: Vec<u64> =
        choice.iter().enumerate().map(|(at, &point)| problem.uses(of(at, point))[0]).collect();
    let mut utilities: Vec<u64> =
        choice.iter().enumerate().map(|(at, &point)| problem.utility(of(at, point))).collect();
    for segment in &segments[..whole] {
        amounts[segment.application] += segment.more;
        utilities[segment.application] += segment.gain;
    }
    let mut between = None;
    let last = segments.get(whole);
    if let Some(segment) = last {
        let rest = left - whole.checked_sub(1).map_or(0, |before| sums[before]);
        amounts[segment.application] += rest;
        utilities[segment.application] +=
            (u128::from(segment.gain) * u128::from(rest) / u128::from(segment.more)) as u64;
        between = (rest > 0).then_some(segment.application);
    }
    Some(Divided {
        utility: utilities.iter().sum(),
        used: amounts.iter().sum(),
        marginal: last.map(|segment| (segment.gain, segment.more)),
        amounts,
        utilities,
        between,
    })
}
