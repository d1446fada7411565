//! What methods with bounds have in common: the problem without its lower bounds, and spacings.

use crate::Random;

/// Steps of a uniform number in [0, 1).
pub(crate) const STEPS: f64 = (1_u64 << 53) as f64;

/// Shares from 0 to widths with a sum of at most the half of all widths; [`Reduced::restore`] gives those that were asked for.
#[derive(Clone, Debug)]
pub(crate) struct Reduced {
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    pub(crate) widths: Vec<f64>,
    pub(crate) rest: f64,
    /// A share is its upper bound less what was drawn.
    pub(crate) is_mirrored: bool,
}

impl Reduced {
    /// # Errors
    /// In words, the argument first: bounds that are none, or a sum that no shares within them have.
    pub(crate) fn of(tasks: usize, sum: f64, lower: &[f64], upper: &[f64]) -> Result<Reduced, String> {
        for (argument, bounds) in [("lower", lower), ("upper", upper)] {
            if bounds.len() != tasks {
                return Err(format!("{argument}: there are {} bounds of {tasks} tasks", bounds.len()));
            }
            if let Some(bad) =
                bounds.iter().find(|bound| !bound.is_finite() || !(0.0..=1_000.0).contains(*bound))
            {
                return Err(format!("{argument}: {bad} is not from 0 to 1000"));
            }
        }
        if let Some((low, high)) = lower.iter().zip(upper).find(|(low, high)| low > high) {
            return Err(format!("upper: {high} is below {low}, the lower bound of the same task"));
        }
        let (least, most): (f64, f64) = (lower.iter().sum(), upper.iter().sum());
        // 0.1 + 0.1 + 0.1 is above 0.3: what is off by no more than sums are rounded is the bound.
        let rounding = f64::EPSILON * tasks as f64;
        let is_bound = |bound: f64| (sum - bound).abs() <= rounding * bound;
        let sum = if is_bound(least) {
            least
        } else if is_bound(most) {
            most
        } else {
            sum
        };
        if sum < least || sum > most {
            return Err(format!("utilisation: {sum} is not from {least} to {most}, the sums of the bounds"));
        }
        let is_mirrored = most - sum < sum - least;
        let widths = lower.iter().zip(upper).map(|(low, high)| high - low).collect();
        let rest = if is_mirrored { most - sum } else { sum - least };
        Ok(Reduced { lower: lower.to_vec(), upper: upper.to_vec(), widths, rest, is_mirrored })
    }

    /// The shares that were asked for.
    pub(crate) fn restore(&self, shares: &mut [f64]) {
        for (place, share) in shares.iter_mut().enumerate() {
            let (low, high, width) = (self.lower[place], self.upper[place], self.widths[place]);
            let drawn = share.clamp(0.0, width);
            // The width is rounded, and a bound is kept to the last digit.
            *share = (if self.is_mirrored { high - drawn } else { low + drawn }).clamp(low, high);
        }
    }
}

/// The spacings of sorted uniform numbers of 53 binary digits: uniform over {x ≥ 0, Σ x = sum}.
pub(crate) fn spacings(random: &mut Random, cuts: &mut [u64], sum: f64, shares: &mut [f64]) {
    cuts.iter_mut().for_each(|cut| *cut = random.next_u64() >> 11);
    cuts.sort_unstable();
    let scale = sum / STEPS;
    let mut before = 0;
    let (last, others) = shares.split_last_mut().expect("a vector has a share");
    for (share, &cut) in others.iter_mut().zip(cuts.iter()) {
        *share = (cut - before) as f64 * scale;
        before = cut;
    }
    *last = ((1 << 53) - before) as f64 * scale;
}
