//! Dirichlet-rescale: vectors with a given sum and bounds of their own on every share (`griffin20`).
//!
//! A vector is drawn uniformly from the simplex {x ≥ 0, Σ x = R}. Where shares are above their bounds, the part of the simplex in which
//! those shares are is a smaller simplex with the corner c (c_i = w_i for those shares, else 0); the vector is mapped from it to the
//! whole, x_i ← (x_i - c_i) · R / (R - Σ c), until all bounds are kept. As in the authors' program a corner is kept as long as all of its
//! shares are above their bounds, whether others come above theirs or not: another choice gives another distribution.
//!
//! **It is not uniform**, as its authors found later (`griffin25`): the map is one of the smaller simplex, but only vectors come to it
//! whose other shares keep their bounds. It is here to make published experiments again.

use crate::Random;
use crate::bounded::{Reduced, spacings};

/// After so many maps a vector is drawn anew.
const MOST_MAPS: u32 = 1_000;
/// So many vectors are tried when it is prepared.
const TRIED: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct DirichletRescale {
    reduced: Reduced,
    /// Shares that are not of one value: every draw would be above the bound of those.
    free: Vec<usize>,
    widths: Vec<f64>,
    drawn: Vec<f64>,
    cuts: Vec<u64>,
    /// Which shares the corner has.
    in_corner: Vec<bool>,
}

impl DirichletRescale {
    /// # Errors
    /// Where hardly a vector comes to an end.
    pub(crate) fn new(reduced: Reduced) -> Result<DirichletRescale, String> {
        let free: Vec<usize> =
            (0..reduced.widths.len()).filter(|&share| reduced.widths[share] > 0.0).collect();
        let widths: Vec<f64> = free.iter().map(|&share| reduced.widths[share]).collect();
        let (count, drawn) = (free.len(), vec![0.0; free.len()]);
        let (cuts, in_corner) = (vec![0; count.saturating_sub(1)], vec![false; count]);
        let mut drawn = DirichletRescale { reduced, free, widths, drawn, cuts, in_corner };
        let mut random = Random::new(0);
        let ends = (0..TRIED).filter(|_| drawn.attempt(&mut random)).count();
        if ends > 0 {
            return Ok(drawn);
        }
        Err(format!(
            "utilisation: none of {TRIED} vectors came within its bounds in {MOST_MAPS} maps of dirichlet-rescale; draw by convolutionalfixedsum"
        ))
    }

    pub(crate) fn draw(&mut self, random: &mut Random, shares: &mut [f64]) {
        while !self.attempt(random) {}
        shares.fill(0.0);
        self.free.iter().zip(&self.drawn).for_each(|(&place, &drawn)| shares[place] = drawn);
        self.reduced.restore(shares);
    }

    fn attempt(&mut self, random: &mut Random) -> bool {
        let (shares, widths, rest) = (&mut self.drawn, &self.widths, self.reduced.rest);
        if rest <= 0.0 || shares.is_empty() {
            shares.fill(0.0);
            return true;
        }
        spacings(random, &mut self.cuts, rest, shares);
        let in_corner = &mut self.in_corner;
        in_corner.fill(false);
        for _ in 0..MOST_MAPS {
            let above = |place: usize| shares[place] > widths[place];
            let stays = in_corner.iter().enumerate().all(|(place, &is_in)| !is_in || above(place));
            if !stays || !in_corner.contains(&true) {
                in_corner.iter_mut().enumerate().for_each(|(place, is_in)| *is_in = above(place));
                if !in_corner.contains(&true) {
                    return true;
                }
            }
            let corner: f64 =
                in_corner.iter().zip(widths).filter(|(is_in, _)| **is_in).map(|(_, width)| width).sum();
            let factor = rest / (rest - corner);
            let mut sum = 0.0;
            for ((share, width), is_in) in shares.iter_mut().zip(widths).zip(in_corner.iter()) {
                *share = (if *is_in { *share - width } else { *share }) * factor;
                sum += *share;
            }
            // The map makes errors of rounding larger: the sum is put right each time.
            if !(sum.is_finite() && sum > 0.0) {
                return false;
            }
            let right = rest / sum;
            shares.iter_mut().for_each(|share| *share *= right);
        }
        false
    }
}
