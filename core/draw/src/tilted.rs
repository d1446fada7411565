//! Uniform vectors with a given sum and bounds of their own on every share: what ConvolutionalFixedSum (`griffin25`) draws, without its tables.
//!
//! Let the shares x_1 … x_n be independent, x_i on [0, w_i] with a density proportional to exp(-θ x_i). The joint density depends on their sum alone,
//! whatever θ is: given that the sum is R they are uniform over the vectors wanted. So all but the two widest are drawn, t = R - Σ x_i is
//! left for those two, a and b (w_a ≤ w_b), and that is accepted with a chance proportional to the density of x_a + x_b at t:
//!
//! ```text
//! L(t) exp(-θ t) / (t* exp(-θ t*)),   L(t) = min(w_a, t) - max(0, t - w_b),   t* = min(w_a, 1/θ)
//! ```
//!
//! The denominator is the greatest value of L(t) exp(-θ t). Once it is accepted, x_a is uniform on the segment of length L(t). This is exact;
//! θ decides how many attempts it takes. It is the one for which the mean of the sum is R: then some √n of them at the most, since the density
//! of a sum at its mean is about 1 by its standard deviation, and that of the widest shares is no less than that of any other.
//!
//! For sums above the middle the shares are mirrored (w_i - x_i), which keeps R below the half of Σ w_i and θ above 0. No share is above R, so widths are cut there.

use crate::Random;
use crate::bounded::{Reduced, STEPS};
use crate::elementary::{exp_minus_one, minus_ln_one_minus, nearest};

/// θ is at least this by the greatest width, where shares are as good as uniform.
const LEAST_TILT: f64 = 1e-6;
/// How far the mean may be from the sum: it costs no attempt.
const MEAN_ERROR: f64 = 1e-3;
/// Steps of Newton's method; with fewer digits of θ there are more attempts, and no other vectors.
const MOST_STEPS: usize = 30;

/// A power of two: with less left below upper bounds, grains are of what is left.
const LEAST_MIRRORED: f64 = 1.0 / (1 << 20) as f64;

/// What is prepared for one sum and its bounds.
#[derive(Clone, Debug)]
pub(crate) struct Tilted {
    reduced: Reduced,
    /// The shares that are drawn first, from the narrowest on, and the two that come last; none where there is but one vector.
    first: Vec<Share>,
    last: Option<[(usize, f64); 2]>,
    /// The shares of `first`, in grains.
    drawn: Vec<f64>,
    /// θ of shares by the sum.
    tilt: f64,
    /// t* by the sum.
    best: f64,
    /// Every share but the last is a multiple of this, so that sums are exact.
    grain: f64,
    /// 1/θ in grains.
    mean: f64,
}

/// A share that is drawn without regard to the sum.
#[derive(Clone, Debug)]
struct Share {
    place: usize,
    /// The most grains that it can have.
    most: f64,
    /// 1 - exp(-θ w), by [`STEPS`].
    chance: f64,
}

impl Tilted {
    pub(crate) fn new(reduced: Reduced) -> Tilted {
        Tilted::by(reduced, tilt)
    }

    /// With θ as `tilt` has it for widths by the sum, from the narrowest on.
    fn by(reduced: Reduced, tilt: impl Fn(&[f64]) -> f64) -> Tilted {
        let rest = reduced.rest;
        let grain = grain(rest, reduced.is_mirrored);
        let width = |place: usize| reduced.widths[place].min(rest);
        // What is left is no sum of several numbers where it is below all normal ones.
        let is_nothing = rest < f64::MIN_POSITIVE;
        let is_free = |&place: &usize| !is_nothing && width(place) > 0.0;
        let mut free: Vec<usize> = (0..reduced.widths.len()).filter(is_free).collect();
        free.sort_by(|&one, &other| reduced.widths[one].total_cmp(&reduced.widths[other]));
        let &[ref first @ .., one, other] = &free[..] else {
            let (first, drawn) = (Vec::new(), Vec::new());
            return Tilted { reduced, first, last: None, drawn, tilt: 0.0, best: 0.0, grain, mean: 0.0 };
        };
        let widths: Vec<f64> = free.iter().map(|&place| width(place) / rest).collect();
        let tilt = tilt(&widths);
        let share = |(&place, &by_sum): (&usize, &f64)| Share {
            place,
            most: (width(place) / grain).floor(),
            chance: -exp_minus_one(-tilt * by_sum) / STEPS,
        };
        Tilted {
            first: first.iter().zip(&widths).map(share).collect(),
            last: Some([(one, width(one)), (other, width(other))]),
            drawn: vec![0.0; first.len()],
            tilt,
            best: (width(one) / rest).min(1.0 / tilt),
            grain,
            mean: rest / tilt / grain,
            reduced,
        }
    }

    pub(crate) fn draw(&mut self, random: &mut Random, shares: &mut [f64]) {
        shares.fill(0.0);
        if let Some([(one, _), (other, _)]) = self.last {
            let both = loop {
                if let Some(both) = self.attempt(random) {
                    break both;
                }
            };
            for (share, &drawn) in self.first.iter().zip(&self.drawn) {
                shares[share.place] = drawn * self.grain;
            }
            [shares[one], shares[other]] = both;
        } else if let Some(only) = self.reduced.widths.iter().position(|&width| width > 0.0) {
            shares[only] = self.reduced.rest;
        }
        self.reduced.restore(shares);
    }

    /// Draws the first shares; the last two, where these are accepted.
    fn attempt(&mut self, random: &mut Random) -> Option<[f64; 2]> {
        let [(_, narrow), (_, wide)] = self.last?;
        for (drawn, share) in self.drawn.iter_mut().zip(&self.first) {
            *drawn = steps(random) * share.chance;
        }
        let mut sum = 0.0;
        for (drawn, share) in self.drawn.iter_mut().zip(&self.first) {
            *drawn = nearest(minus_ln_one_minus(*drawn) * self.mean).min(share.most);
            sum += *drawn;
        }
        let rest = self.reduced.rest;
        let left = rest - sum * self.grain;
        let (least, most) = ((left - wide).max(0.0), narrow.min(left));
        if most <= least {
            return None;
        }
        let by_density = 1.0 + exp_minus_one(self.tilt * (self.best - left / rest));
        if steps(random) / STEPS >= (most - least) / rest / self.best * by_density {
            return None;
        }
        let share = least + steps(random) / STEPS * (most - least);
        let share = (nearest(share / self.grain) * self.grain).clamp(least, most);
        Some([share, left - share])
    }
}

/// A uniform whole number below [`STEPS`].
fn steps(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64
}

/// θ for which the mean of the sum of shares with these widths is 1: Newton's method on 1 by the mean, which is nearly a line in θ.
///
/// ```text
/// mean     = 1/θ - w (1 - q) / q          q = 1 - exp(-θ w)
/// variance = 1/θ² - w² (1 - q) / q²       (the mean falls by it, as θ rises)
/// ```
fn tilt(widths: &[f64]) -> f64 {
    let least = LEAST_TILT / widths.iter().copied().fold(0.0, f64::max);
    let mut tilt = least;
    for _ in 0..MOST_STEPS {
        let (mut mean, mut variance) = (0.0, 0.0);
        for &width in widths {
            let by_width = tilt * width;
            if by_width < 0.01 {
                // The differences below would lose their digits.
                mean += width * (0.5 - by_width / 12.0);
                variance += width * width / 12.0;
            } else {
                let chance = -exp_minus_one(-by_width);
                let rest = width * (1.0 - chance) / chance;
                mean += 1.0 / tilt - rest;
                variance += 1.0 / (tilt * tilt) - rest * width / chance;
            }
        }
        let next = (tilt + mean * (mean - 1.0) / variance).max(least);
        if (mean - 1.0).abs() < MEAN_ERROR || next == tilt {
            break;
        }
        tilt = next;
    }
    tilt
}

/// A power of two, 44 binary digits below what is drawn: every share and every sum of shares is a whole multiple of the last digit of the sum.
/// Shares that are less than [`LEAST_MIRRORED`] from their bounds would have hardly a grain, so sums are as exact there as bounds are.
fn grain(rest: f64, is_mirrored: bool) -> f64 {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    let least = if is_mirrored && rest >= LEAST_MIRRORED { 1.0 } else { f64::MIN_POSITIVE };
    f64::from_bits(rest.max(least).to_bits() & EXPONENT) / (1_u64 << 44) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::tests::{distance_to, limit};

    fn reduced(widths: &[f64], rest: f64) -> Reduced {
        let (lower, upper) = (vec![0.0; widths.len()], widths.to_vec());
        Reduced { lower, upper, widths: widths.to_vec(), rest, is_mirrored: false }
    }

    fn tilted(widths: &[f64], rest: f64) -> Tilted {
        Tilted::new(reduced(widths, rest))
    }

    /// The distribution function of a sum of uniform numbers on [0, w_i], but for a factor, by inclusion and exclusion: Σ over subsets of
    /// (-1)^|S| (y - Σ_S w)^m.
    fn exact(widths: &[f64], at: f64) -> f64 {
        let each = 0..1_u32 << widths.len();
        each.map(|set| {
            let taken: f64 = (0..widths.len()).filter(|one| set >> one & 1 == 1).map(|one| widths[one]).sum();
            let sign = if set.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
            sign * (at - taken).max(0.0).powi(widths.len() as i32)
        })
        .sum()
    }

    /// x_i ≤ x is that the others have at least R - x, and at most R: (F(R) - F(R - x)) / (F(R) - F(R - w_i)) with F of the sum of the others.
    #[test]
    fn every_marginal_is_the_exact_one() {
        const COUNT: usize = 60_000;
        let cases = [
            (vec![1.0, 0.3, 0.55, 0.125, 0.8], 1.3),
            (vec![0.5, 0.05, 0.4, 0.4], 0.6),
            (vec![1.0; 8], 3.7),
            (vec![1.0; 7], 0.4),
            (vec![0.2, 0.01, 1.0, 0.9], 0.9),
            (vec![0.1, 0.2], 0.14),
            (vec![4.0, 0.25, 0.5, 1.0, 2.0], 0.75),
        ];
        let tests = cases.iter().map(|case| case.0.len()).sum();
        for (seed, (widths, rest)) in (1..).zip(cases) {
            // Whatever θ is.
            let factor = [1.0, 0.5, 2.0][seed as usize % 3];
            let mut drawn = Tilted::by(reduced(&widths, rest), |widths| tilt(widths) * factor);
            let mut random = Random::new(seed);
            let mut shares = vec![0.0; widths.len()];
            let mut all = vec![Vec::with_capacity(COUNT); widths.len()];
            for _ in 0..COUNT {
                drawn.draw(&mut random, &mut shares);
                all.iter_mut().zip(&shares).for_each(|(all, &share)| all.push(share));
            }
            for (share, all) in all.iter_mut().enumerate() {
                let mut others = widths.clone();
                let width = others.remove(share);
                let above = |x: f64| exact(&others, rest) - exact(&others, rest - x);
                let found = distance_to(all, |x| above(x) / above(width.min(rest)));
                let most = limit(COUNT as f64, 1e12, tests);
                assert!(found < most, "share {share} of {widths:?}, {rest}: {found} of {most}");
            }
        }
    }

    #[test]
    fn attempts_are_few_and_the_tilt_makes_them_few() {
        let geometric = |factor: f64| (0..30).map(|power| factor.powi(power)).collect::<Vec<f64>>();
        let mut cases = vec![vec![1.0; 2], vec![1.0; 3], vec![1.0; 20], vec![1.0; 200]];
        cases.extend([geometric(0.9), geometric(0.5), geometric(0.1), vec![1e-9, 1.0, 1e-9, 1e-3]]);
        cases.push([vec![1e-3; 150], vec![1.0; 2]].concat());
        for widths in cases {
            let most = 2.0 + (widths.len() as f64).sqrt();
            let count = |drawn: &mut Tilted| {
                let mut random = Random::new(3);
                let accepted = (0..3_000).filter(|_| drawn.attempt(&mut random).is_some()).count();
                3_000.0 / accepted as f64
            };
            let sum: f64 = widths.iter().sum();
            for part in [1e-9, 1e-3, 0.1, 0.25, 0.4, 0.49, 0.5] {
                let attempts = count(&mut tilted(&widths, part * sum));
                assert!(attempts < most, "{attempts} for {part} of {} shares", widths.len());
            }
        }
        // A wrong θ draws the same vectors with more attempts.
        let accepted = |factor: f64| {
            let mut drawn = Tilted::by(reduced(&[1.0; 20], 1.0), |widths| tilt(widths) * factor);
            let mut random = Random::new(4);
            (0..20_000).filter(|_| drawn.attempt(&mut random).is_some()).count()
        };
        let right = accepted(1.0);
        for factor in [0.7, 1.4] {
            let wrong = accepted(factor);
            assert!(wrong * 10 < right * 9, "{factor}: {wrong}, and {right}");
        }
        // The mean of each of many shares is its part of the sum.
        assert!((tilt(&[1.0; 20]) - 20.0).abs() < 0.1);
    }

    #[test]
    fn the_vectors_of_a_seed_are_fixed_for_ever() {
        let mut shares = [0.0; 4];
        tilted(&[0.25, 1.0, 0.5, 0.125], 0.75).draw(&mut Random::new(42), &mut shares);
        assert_eq!(
            shares,
            [0.19386087187842804, 0.41099924712463576, 0.05890345070477565, 0.08623643029216055]
        );
    }

    #[test]
    fn the_grain_is_a_power_of_two() {
        assert_eq!(grain(1.0, false), 2.0_f64.powi(-44));
        assert_eq!(grain(0.7, false), 2.0_f64.powi(-45));
        assert_eq!(grain(19.3, false), 2.0_f64.powi(-40));
        assert_eq!(grain(0.01, true), 2.0_f64.powi(-44));
        assert_eq!(grain(5.0, true), 2.0_f64.powi(-42));
        assert_eq!(grain(LEAST_MIRRORED, true), 2.0_f64.powi(-44));
        assert_eq!(grain(LEAST_MIRRORED / 2.0, true), 2.0_f64.powi(-65));
        assert_eq!(grain(0.0, false), f64::MIN_POSITIVE / (1_u64 << 44) as f64);
    }
}
