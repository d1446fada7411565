//! Exact sums of utilisations.

use num_bigint::BigUint;
use num_rational::Ratio;
use std::cmp::Ordering;

/// Compares Σ c/t with 1, exactly. Every `t` is above zero.
#[must_use]
pub fn compare_with_one(shares: impl Iterator<Item = (u64, u64)> + Clone) -> Ordering {
    compare_with(shares, (1, 1))
}

/// Compares Σ c/t with the share `whole`, which is above zero, exactly. Every `t` is above zero.
///
/// Sums rounded to 2^−64 decide except within that rounding of the share; there one big fraction does.
#[must_use]
pub(crate) fn compare_with(shares: impl Iterator<Item = (u64, u64)> + Clone, whole: (u64, u64)) -> Ordering {
    let mut sum = RunningSum::default();
    for (c, t) in shares.clone() {
        sum.add(c, t);
    }
    sum.compare_with(share(whole.0, whole.1)).unwrap_or_else(|| {
        let (numerator, denominator) = sum_unreduced(shares);
        (numerator * whole.1).cmp(&(denominator * whole.0))
    })
}

/// A sum of shares c/t, each rounded down to 2^−64.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningSum {
    below: u128,
    count: u128,
}

impl RunningSum {
    #[inline]
    pub(crate) fn add(&mut self, c: u64, t: u64) {
        self.below = self.below.saturating_add(share(c, t));
        self.count += 1;
    }

    /// How the exact sum compares with 1; `None` within the rounding of 1. It lies in [below, below + count).
    pub(crate) fn compare_with_one(self) -> Option<Ordering> {
        self.compare_with(1 << 64)
    }

    /// The same with what rounds down to `whole`.
    fn compare_with(self, whole: u128) -> Option<Ordering> {
        if self.below > whole {
            Some(Ordering::Greater)
        } else if self.below.saturating_add(self.count) <= whole {
            Some(Ordering::Less)
        } else {
            None
        }
    }
}

/// ⌊c·2^64/t⌋; of short numbers in two steps, which is several times as fast as one long division.
fn share(c: u64, t: u64) -> u128 {
    if c >> 32 == 0 && t >> 32 == 0 {
        let (high, rest) = ((c << 32) / t, (c << 32) % t);
        return (u128::from(high) << 32) + u128::from((rest << 32) / t);
    }
    (u128::from(c) << 64) / u128::from(t)
}

fn sum_unreduced(shares: impl Iterator<Item = (u64, u64)>) -> (BigUint, BigUint) {
    let (mut numerator, mut denominator) = (BigUint::ZERO, BigUint::from(1_u32));
    for (c, t) in shares {
        numerator = numerator * t + &denominator * c;
        denominator *= t;
    }
    (numerator, denominator)
}

/// Σ c/t as a reduced fraction. Every `t` is above zero.
#[must_use]
pub fn sum(shares: impl Iterator<Item = (u64, u64)>) -> Ratio<BigUint> {
    let shares: Vec<(u64, u64)> = shares.collect();
    let (numerator, denominator) = sum_of(&shares);
    Ratio::new(numerator, denominator)
}

/// Fractions with more bits are reduced once, at the end: reducing costs more than it saves there.
const REDUCED_BITS: u64 = 512;

/// By halves, so that long numbers are made late: adding one term after the other makes a long number for each.
fn sum_of(shares: &[(u64, u64)]) -> (BigUint, BigUint) {
    match shares {
        [] => (BigUint::ZERO, BigUint::from(1_u32)),
        [(c, t)] => (BigUint::from(*c), BigUint::from(*t)),
        _ => {
            let (first, second) = shares.split_at(shares.len() / 2);
            let ((a, b), (c, d)) = (sum_of(first), sum_of(second));
            let sum = (&a * &d + &c * &b, b * d);
            if sum.1.bits() > REDUCED_BITS {
                return sum;
            }
            let sum = Ratio::new(sum.0, sum.1);
            (sum.numer().clone(), sum.denom().clone())
        }
    }
}

/// What Σ c/t leaves of 1, exactly; `None` where it is more than 1. Every `t` is above zero.
#[must_use]
pub fn left(shares: impl Iterator<Item = (u64, u64)>) -> Option<Ratio<BigUint>> {
    let (total, one) = (sum(shares), Ratio::from_integer(BigUint::from(1_u32)));
    (total <= one).then(|| one - total)
}

/// Σ c/t in parts per billion, rounded up; `None` where it leaves 64 bits.
#[must_use]
pub fn ppb_up(shares: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    u64::try_from((sum(shares) * BigUint::from(1_000_000_000_u32)).ceil().to_integer()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decides_within_a_hair_of_one() {
        let by = |shares: &[(u64, u64)]| compare_with_one(shares.iter().copied());
        assert_eq!(by(&[]), Ordering::Less);
        assert_eq!(by(&[(1, 3), (1, 3), (1, 3)]), Ordering::Equal);
        let t = u64::MAX;
        assert_eq!(by(&[(t - 1, t), (1, t - 1)]), Ordering::Greater);
        assert_eq!(by(&[(t - 2, t - 1), (1, t)]), Ordering::Less);
        assert_eq!(by(&[(u64::MAX, 1), (u64::MAX, 1)]), Ordering::Greater);
        let with = |shares: &[(u64, u64)], whole| compare_with(shares.iter().copied(), whole);
        assert_eq!(with(&[(1, 7), (1, 7)], (2, 7)), Ordering::Equal);
        assert_eq!(with(&[(1, 7), (1, 7)], (200_000_001, 700_000_000)), Ordering::Less);
        assert_eq!(with(&[(1, 7), (1, 7)], (199_999_999, 700_000_000)), Ordering::Greater);
        assert_eq!(with(&[(1, t)], (1, t - 1)), Ordering::Less);
        assert_eq!(with(&[(1, t - 1)], (1, t)), Ordering::Greater);
        assert_eq!(with(&[(u64::MAX, 1)], (u64::MAX, 1)), Ordering::Equal);
    }

    #[test]
    fn a_share_in_two_steps_is_that_of_one() {
        let values = [1, 2, 3, 7, 1_000, 999_999_937, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, u64::MAX];
        for c in values {
            for t in values {
                assert_eq!(share(c, t), (u128::from(c) << 64) / u128::from(t), "{c}/{t}");
            }
        }
    }

    #[test]
    fn sums_exactly() {
        let total = sum([(1, 6), (1, 10), (1, 15)].into_iter());
        assert_eq!(total, Ratio::new(BigUint::from(1_u32), BigUint::from(3_u32)));
        assert_eq!(ppb_up([(1, 3)].into_iter()), Some(333_333_334));
        assert_eq!(ppb_up([(u64::MAX, 1), (u64::MAX, 1)].into_iter()), None);
    }
}
