//! Prices of resources: the Lagrangian bound, exact for any prices, and a search for good ones.

use crate::answer::{Bound, BoundKind};
use crate::problem::Problem;

/// Fixed point of prices: this many binary digits behind the point.
const DIGITS: u32 = 40;
/// What a price times everything that there is, or that is asked for, stays below.
const LARGEST_WORTH: f64 = (1_u128 << 110) as f64;
/// The most applications that the search looks at in each step.
const SAMPLE: usize = 2_048;

/// A price for one unit of each resource, in 2^-40 of 10^-9 utility.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Prices(Vec<i128>);

impl Prices {
    /// What a set-point that fits alone is worth beyond its price, in 2^-40 of 10^-9.
    pub(crate) fn surplus(&self, problem: &Problem, place: usize) -> i128 {
        (i128::from(problem.utility(place)) << DIGITS) - self.worth(problem.uses(place))
    }

    /// What amounts cost.
    pub(crate) fn worth(&self, uses: &[u64]) -> i128 {
        self.0.iter().zip(uses).map(|(price, used)| price * i128::from(*used)).sum()
    }

    /// `utility` as surpluses are stated.
    pub(crate) fn of_utility(utility: u64) -> i128 {
        i128::from(utility) << DIGITS
    }

    /// The prices nearest to these, in 10^-9 utility a unit; `None` where they are too large to compute with.
    fn of(problem: &Problem, prices: &[f64]) -> Option<Prices> {
        let scale = (1_u64 << DIGITS) as f64;
        let limit = LARGEST_WORTH / prices.len() as f64;
        let mut all = Vec::with_capacity(prices.len());
        for (resource, price) in problem.resources().iter().zip(prices) {
            let price = price * scale;
            if !price.is_finite() || price < 0.0 || price * resource.capacity.max(1) as f64 > limit {
                return None;
            }
            all.push(price as i128);
        }
        Some(Prices(all))
    }

    /// No allocation is worth more than all capacities at their prices and every application's best surplus:
    /// `floor(sum over k of p_k R_k + sum over i of max over s of (u_is - sum over k of p_k r_isk))`, for any prices p >= 0.
    pub(crate) fn bound(&self, problem: &Problem) -> Option<Bound> {
        let utility = u64::try_from(self.total(problem)? >> DIGITS).ok()?;
        Some(Bound { kind: BoundKind::Lagrangian, utility })
    }

    /// The same before it is rounded, in 2^-40 of 10^-9. `None`: an application has no set-point that fits alone.
    pub(crate) fn total(&self, problem: &Problem) -> Option<i128> {
        let mut sum = 0_i128;
        for (price, resource) in self.0.iter().zip(problem.resources()) {
            sum = sum.checked_add(price.checked_mul(i128::from(resource.capacity))?)?;
        }
        for application in 0..problem.applications().len() {
            let fitting = problem.range(application).filter(|&place| problem.fits(problem.uses(place)));
            sum = sum.checked_add(fitting.map(|place| self.surplus(problem, place)).max()?)?;
        }
        Some(sum)
    }
}

/// What the search has found.
pub(crate) struct Priced {
    /// As floating-point numbers, 10^-9 utility a unit.
    pub(crate) rough: Vec<f64>,
    /// The same, exactly.
    pub(crate) exact: Option<Prices>,
}

/// Set-points as shares of capacities, of an evenly spread sample.
struct Sample {
    starts: Vec<usize>,
    utilities: Vec<f64>,
    shares: Vec<f64>,
    width: usize,
    /// How many applications stand for one of the sample.
    each: f64,
}

impl Sample {
    fn of(problem: &Problem) -> Sample {
        let all = problem.applications().len();
        let taken = all.min(SAMPLE);
        let width = problem.resources().len();
        let capacities: Vec<f64> = problem.capacities().iter().map(|&one| one.max(1) as f64).collect();
        let (mut starts, mut utilities, mut shares) = (vec![0], Vec::new(), Vec::new());
        for index in 0..taken {
            for place in problem.range(index * all / taken) {
                let uses = problem.uses(place);
                // What never fits alone is no part of any allocation.
                if problem.fits(uses) {
                    utilities.push(problem.utility(place) as f64);
                    shares.extend(uses.iter().zip(&capacities).map(|(&used, all)| used as f64 / all));
                }
            }
            starts.push(utilities.len());
        }
        Sample { starts, utilities, shares, width, each: all as f64 / taken as f64 }
    }

    /// The bound at these prices (of a whole capacity each), and the share of each capacity that is asked for.
    fn ask(&self, prices: &[f64], asked: &mut [f64]) -> f64 {
        asked.fill(0.0);
        let mut value: f64 = 0.0;
        for pair in self.starts.windows(2) {
            let (mut best, mut at) = (f64::NEG_INFINITY, usize::MAX);
            for place in pair[0]..pair[1] {
                let shares = &self.shares[place * self.width..][..self.width];
                let cost: f64 = shares.iter().zip(prices).map(|(share, price)| share * price).sum();
                let surplus = self.utilities[place] - cost;
                if surplus > best {
                    (best, at) = (surplus, place);
                }
            }
            if at != usize::MAX {
                value += best * self.each;
                for (asked, share) in asked.iter_mut().zip(&self.shares[at * self.width..]) {
                    *asked += share * self.each;
                }
            }
        }
        value + prices.iter().sum::<f64>()
    }
}

/// Searches prices at which what is asked for comes near the capacities: each step moves a price by how much too much, or too little, of its resource
/// is asked for, in ever smaller steps, and the least bound wins. Any prices give a bound, so rounding harms nothing; only operations that IEEE 754 rounds
/// correctly are used, so that the result is the same everywhere.
pub(crate) fn search(problem: &Problem) -> Priced {
    let sample = Sample::of(problem);
    let width = sample.width;
    let mut asked = vec![0.0; width];
    let total = sample.ask(&vec![0.0; width], &mut asked).max(1.0);
    let most: f64 = asked.iter().sum::<f64>().max(1e-9);
    let mut best = (total, vec![0.0; width]);
    let mut prices = vec![total / most / 2.0; width];
    let steps = (2_000_000 / (sample.utilities.len().max(1) * width)).clamp(40, 400);
    for step in 0..steps {
        let value = sample.ask(&prices, &mut asked);
        if value < best.0 {
            best = (value, prices.clone());
        }
        let stride = 1.0 / (1.0 + step as f64 * 12.0 / steps as f64 * step as f64 / 8.0);
        for (price, asked) in prices.iter_mut().zip(&asked) {
            *price *= (1.0 + stride * (asked - 1.0)).clamp(0.4, 2.5);
        }
    }
    let capacities = problem.capacities();
    let rough: Vec<f64> =
        best.1.iter().zip(&capacities).map(|(price, &capacity)| price / capacity.max(1) as f64).collect();
    let exact = Prices::of(problem, &rough);
    Priced { rough, exact }
}
