//! Prices of resources: the Lagrangian bound, exact for any prices, and a search for good ones.

use crate::answer::{Bound, BoundKind};
use crate::problem::Problem;

/// Fixed point of prices: this many binary digits behind the point.
const DIGITS: u32 = 40;
/// What a price times everything that there is, or that is asked for, stays below.
const LARGEST_WORTH: f64 = (1_u128 << 110) as f64;
/// How many applications the search looks at in each step of a stage, how many steps it has, and by what share a price moves at first.
const STAGES: [(usize, u32, f64); 4] =
    [(96, 120, 0.5), (768, 40, 0.1), (4_096, 24, 0.02), (usize::MAX, 10, 0.005)];
/// The largest and the least share by which a price moves.
const STRIDES: (f64, f64) = (0.7, 1e-4);

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
    fn of(problem: &Problem, most: usize) -> Sample {
        let all = problem.applications().len();
        let taken = all.min(most);
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

    /// Prices to begin with: what everything is worth for all that is asked for when it costs nothing.
    fn first_prices(&self, asked: &mut [f64]) -> Vec<f64> {
        let total = self.ask(&vec![0.0; self.width], asked).max(1.0);
        let most = asked.iter().sum::<f64>().max(1e-9);
        vec![total / most / 2.0; self.width]
    }

    /// Moves the prices so many steps; gives those of the least bound that was seen.
    fn descend(&self, prices: &mut [f64], steps: u32, stride: f64, asked: &mut [f64]) -> Vec<f64> {
        let mut least = (self.ask(&vec![0.0; self.width], asked), vec![0.0; self.width]);
        let mut moves: Vec<(f64, Option<bool>)> = vec![(stride, None); self.width];
        for _ in 0..steps {
            let value = self.ask(prices, asked);
            if value < least.0 {
                least = (value, prices.to_vec());
            }
            for ((price, asked), (stride, before)) in prices.iter_mut().zip(asked.iter()).zip(&mut moves) {
                let rises = *asked > 1.0;
                match *before {
                    Some(before) if before == rises => *stride = (*stride * 1.3).min(STRIDES.0),
                    Some(_) => *stride = (*stride * 0.5).max(STRIDES.1),
                    None => {}
                }
                *before = Some(rises);
                *price = if rises { *price * (1.0 + *stride) } else { *price / (1.0 + *stride) };
            }
        }
        least.1
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

/// Searches prices at which what is asked for comes near the capacities: a price rises while more than all of its resource is asked for and falls while less is, by a share
/// that grows while the direction stays and halves when it turns; on ever larger samples. The least bound of the largest sample wins. Any prices give a bound, so rounding harms
/// nothing; only operations that IEEE 754 rounds correctly are used, so that the result is the same everywhere.
pub(crate) fn search(problem: &Problem) -> Priced {
    let width = problem.resources().len();
    let all = problem.applications().len();
    let mut asked = vec![0.0; width];
    let mut prices: Vec<f64> = Vec::new();
    for (stage, (most, steps, stride)) in STAGES.into_iter().enumerate() {
        let sample = Sample::of(problem, most);
        // Where nothing is scarce in a sample all prices are nothing.
        if prices.iter().all(|price| *price == 0.0) {
            prices = sample.first_prices(&mut asked);
        }
        let least = sample.descend(&mut prices, steps, stride, &mut asked);
        let is_last = stage + 1 == STAGES.len() || all <= most;
        prices = if is_last { least } else { not_nothing(least) };
        if is_last {
            break;
        }
    }
    let per_unit = prices.iter().zip(problem.resources());
    let rough: Vec<f64> = per_unit.map(|(price, one)| price / one.capacity.max(1) as f64).collect();
    let exact = Prices::of(problem, &rough);
    Priced { rough, exact }
}

/// The same with a small part of the highest price at the least: a price of nothing could not rise again in a later stage.
fn not_nothing(mut prices: Vec<f64>) -> Vec<f64> {
    let least = prices.iter().copied().fold(0.0_f64, f64::max) * 3e-4;
    prices.iter_mut().for_each(|price| *price = price.max(least));
    prices
}
