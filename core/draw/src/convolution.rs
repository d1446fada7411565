//! ConvolutionalFixedSum: uniform vectors with a given sum and bounds of their own on every share (`griffin25`).
//!
//! Let the shares x_1 … x_n be independent and each uniform on [0, w_i]. Given that their sum is R they are uniform over the vectors wanted.
//! So share by share is drawn: given that s is left for the shares from k on, y = s - x_k, what is left for those behind k, has a
//! density proportional to that of the sum of those shares on max(0, s - w_k) ≤ y ≤ s. Its distribution function G is the convolution of
//! uniform ones, computed from the last share on:
//!
//! ```text
//! G_k(y) = (1/w_k) · integral of G_(k+1) from y - w_k to y,    y = G_(k+1)⁻¹(G_(k+1)(s - w_k) + v · (G_(k+1)(s) - G_(k+1)(s - w_k)))
//! ```
//!
//! with v uniform in [0, 1). Every G is kept at [`GRID`] + 1 points from 0 to R, each scaled to 1 at R, and is taken as linear between
//! them. Only sums and products of what is not negative build it, so its relative error stays small where it is tiny; for sums above the middle
//! the shares are mirrored (w_i - x_i), which keeps R below the half of Σ w_i.

use crate::Random;
use crate::bounded::{Reduced, STEPS};
use std::sync::Arc;

/// Steps of each distribution function.
pub(crate) const GRID: usize = 10_000;

/// What is prepared for one sum and its bounds.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    reduced: Reduced,
    /// Shares in the order in which they are drawn: the widest last, so that every G is smooth on the grid.
    order: Vec<usize>,
    /// Their widths in this order.
    widths: Vec<f64>,
    /// Σ of the widths of the shares behind each one.
    behind: Vec<f64>,
    /// G of the shares behind each one but the last: row k from column k · (GRID + 1). Shared by clones.
    table: Arc<[f64]>,
    /// Points of the grid for a share of 1.
    scale: f64,
    /// What is left is a multiple of this, so that sums are exact.
    grain: f64,
}

impl Convolution {
    pub(crate) fn new(reduced: Reduced) -> Convolution {
        let mut order: Vec<usize> = (0..reduced.widths.len()).collect();
        order.sort_by(|&one, &other| reduced.widths[one].total_cmp(&reduced.widths[other]));
        let widths: Vec<f64> = order.iter().map(|&share| reduced.widths[share]).collect();
        let rest = reduced.rest;
        let scale = GRID as f64 / rest;
        let mut behind = vec![0.0; widths.len()];
        for share in (1..widths.len()).rev() {
            behind[share - 1] = behind[share] + widths[share];
        }
        let rows = widths.len() - 1;
        let mut table = vec![0.0; rows * (GRID + 1)];
        if rest > 0.0 {
            let mut integral = vec![0.0; GRID + 1];
            for share in (0..rows).rev() {
                let (row, next) = table[share * (GRID + 1)..].split_at_mut(GRID + 1);
                let width = widths[share + 1] * scale;
                if share + 1 == rows {
                    row.iter_mut().enumerate().for_each(|(at, value)| *value = (at as f64).min(width));
                } else {
                    convolve(&next[..=GRID], width, &mut integral, row);
                }
                let most = row[GRID];
                row.iter_mut().for_each(|value| *value /= most);
            }
        }
        let grain = grain(rest, reduced.is_mirrored);
        Convolution { reduced, order, widths, behind, table: Arc::from(table), scale, grain }
    }

    pub(crate) fn draw(&self, random: &mut Random, shares: &mut [f64]) {
        let mut rest = self.reduced.rest;
        let (last, others) = self.order.split_last().expect("a vector has a share");
        for (place, &share) in others.iter().enumerate() {
            let (least, most) = ((rest - self.widths[place]).max(0.0), rest.min(self.behind[place]));
            let uniform = (random.next_u64() >> 11) as f64 / STEPS;
            let left = if least < most { self.left(place, [least, most], uniform) } else { most };
            shares[share] = rest - left;
            rest = left;
        }
        shares[*last] = rest;
        self.reduced.restore(shares);
    }

    /// What is left for the shares behind `place`.
    fn left(&self, place: usize, [least, most]: [f64; 2], uniform: f64) -> f64 {
        let row = &self.table[place * (GRID + 1)..(place + 1) * (GRID + 1)];
        let (from, to) = (self.value(row, least), self.value(row, most));
        let left = inverse(row, from + uniform * (to - from)) / self.scale;
        ((left / self.grain).round() * self.grain).clamp(least, most)
    }

    fn value(&self, row: &[f64], at: f64) -> f64 {
        let at = at * self.scale;
        let cell = (at as usize).min(GRID - 1);
        row[cell] + (row[cell + 1] - row[cell]) * (at - cell as f64).min(1.0)
    }
}

/// Where the function has a value, in steps of the grid.
fn inverse(row: &[f64], value: f64) -> f64 {
    let cell = row.partition_point(|&one| one <= value).clamp(1, GRID) - 1;
    let rise = row[cell + 1] - row[cell];
    cell as f64 + if rise > 0.0 { ((value - row[cell]) / rise).clamp(0.0, 1.0) } else { 0.0 }
}

/// The integral of a function over the last `width` steps, at every point of the grid.
fn convolve(next: &[f64], width: f64, integral: &mut [f64], out: &mut [f64]) {
    let linear =
        |values: &[f64], cell: usize, part: f64| values[cell] + (values[cell + 1] - values[cell]) * part;
    if width < 1.0 {
        // The mean of a line is its middle; a difference of integrals would lose its digits here.
        let part = 1.0 - width / 2.0;
        out[0] = 0.0;
        (1..=GRID).for_each(|at| out[at] = linear(next, at - 1, part));
        return;
    }
    integral[0] = 0.0;
    for at in 1..=GRID {
        integral[at] = integral[at - 1] + f64::midpoint(next[at - 1], next[at]);
    }
    let whole = width.ceil().min(GRID as f64 + 1.0) as usize;
    let part = whole as f64 - width;
    let reach = whole.min(GRID + 1);
    out[..reach].copy_from_slice(&integral[..reach]);
    for at in reach..=GRID {
        let cell = at - whole;
        let begun = part * f64::midpoint(next[cell], linear(next, cell, part));
        out[at] = (integral[at] - integral[cell] - begun).max(0.0);
    }
}

/// A power of two, 44 binary digits below what is drawn: every share and every sum of shares is a whole multiple of the last digit of the sum.
fn grain(rest: f64, is_mirrored: bool) -> f64 {
    let mut grain = if is_mirrored { 1.0 } else { f64::MIN_POSITIVE };
    let mut power = 1.0;
    while power > rest && power > f64::MIN_POSITIVE {
        power /= 2.0;
    }
    while power * 2.0 <= rest {
        power *= 2.0;
    }
    if power > grain {
        grain = power;
    }
    grain / (1_u64 << 44) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform_sum(widths: &[f64], rest: f64) -> Convolution {
        let (lower, upper) = (vec![0.0; widths.len()], widths.to_vec());
        Convolution::new(Reduced { lower, upper, widths: widths.to_vec(), rest, is_mirrored: false })
    }

    /// The distribution function of a sum of uniform numbers on [0, w_i], by inclusion and exclusion: Σ over subsets of (-1)^|S| (y - Σ_S w)^m.
    fn exact(widths: &[f64], at: f64) -> f64 {
        let each = 0..1_u32 << widths.len();
        each.map(|set| {
            let taken: f64 = (0..widths.len()).filter(|one| set >> one & 1 == 1).map(|one| widths[one]).sum();
            let sign = if set.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
            sign * (at - taken).max(0.0).powi(widths.len() as i32)
        })
        .sum()
    }

    #[test]
    fn the_tables_are_the_exact_distribution_functions() {
        for (widths, rest) in [
            (vec![1.0, 0.3, 0.55, 0.125, 0.8], 1.3),
            (vec![0.5, 0.000_000_1, 0.4, 0.4], 0.6),
            (vec![1.0; 8], 3.7),
            (vec![0.2, 0.000_07, 1.0, 0.9], 0.9),
        ] {
            let found = uniform_sum(&widths, rest);
            let widths = found.widths.clone();
            for place in 0..widths.len() - 1 {
                let behind = &widths[place + 1..];
                // A width of nearly nothing is nothing here: the sum of alternating terms would lose its digits.
                let behind: Vec<f64> = behind.iter().copied().filter(|width| *width > 0.000_001).collect();
                let row = &found.table[place * (GRID + 1)..(place + 1) * (GRID + 1)];
                let whole = exact(&behind, rest);
                for step in 1..=40 {
                    let at = rest * f64::from(step) / 40.0;
                    let wanted = exact(&behind, at) / whole;
                    let error = (found.value(row, at) - wanted).abs();
                    assert!(
                        error < 1e-4 * wanted + 1e-6,
                        "{widths:?} from {place} at {at}: {error} of {wanted}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_inverse_of_a_value_is_its_place() {
        let found = uniform_sum(&[0.5, 0.7, 0.6], 0.9);
        for step in 1..200 {
            let at = 0.9 * f64::from(step) / 200.0;
            let row = &found.table[..=GRID];
            assert!((inverse(row, found.value(row, at)) / found.scale - at).abs() < 1e-9, "{at}");
        }
    }

    #[test]
    fn the_grain_is_a_power_of_two() {
        assert_eq!(grain(1.0, false), 2.0_f64.powi(-44));
        assert_eq!(grain(0.7, false), 2.0_f64.powi(-45));
        assert_eq!(grain(19.3, false), 2.0_f64.powi(-40));
        assert_eq!(grain(0.01, true), 2.0_f64.powi(-44));
        assert_eq!(grain(5.0, true), 2.0_f64.powi(-42));
    }
}
