//! Interference from outside the model: the hyperbolic load bound in exact integers.

use horolog_model::Interference;
use num_bigint::BigUint;

/// Scale of [`HyperbolicLoad::demand_scaled`]: parts per billion, squared.
pub(crate) const SCALE: u128 = 1_000_000_000_000_000_000;

const PPB: u128 = 1_000_000_000;

/// A load that takes at most `min(x, u (x + p - e))`, with `e = u p`, in any window of length x.
///
/// Source: `lewandowski07`, equation (7). With u in parts per billion U the bound is the exact fraction
/// `(U * 10^9 * (x + p) - U^2 * p) / 10^18`; a test rounds the sum of all such loads up to whole ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyperbolicLoad {
    /// U, parts per billion.
    pub utilisation_ppb: u64,
    /// p, ns.
    pub period: u64,
}

impl HyperbolicLoad {
    /// The load of an `[[interference]]` entry.
    #[must_use]
    pub fn of(interference: &Interference) -> HyperbolicLoad {
        HyperbolicLoad { utilisation_ppb: interference.utilisation_ppb, period: interference.period.as_ns() }
    }

    /// What the kernel's constant bandwidth server of `budget` in every `period` takes above all tasks, where something
    /// above it may hold it up by `delay`, and a budget may be overdrawn by `overdrawn`, which the next ones pay back; `None`
    /// where its numbers are too large.
    ///
    /// With u = Q/T, delay J and overdraft e, in any window of length x at most
    ///
    /// ```text
    /// min(x, u·(x + J) + Q·(1 − u) + ⌊e/Q⌋·Q + e)
    /// ```
    ///
    /// its share, a whole budget at once, and what is not paid back yet; who owes more than a budget is given as many at once
    /// as make up for it. Without J and e that is this load with p = T. Sufficient: u and p are rounded up. Source: the rules
    /// of `abeni98` with throttling; derived in `docs/concepts/server-analysis.md`.
    #[must_use]
    pub fn of_reservation(budget: u64, period: u64, delay: u64, overdrawn: u64) -> Option<HyperbolicLoad> {
        let (q, t) = (u128::from(budget.max(1)), u128::from(period.max(1)));
        let ppb = (q * PPB).div_ceil(t).min(PPB);
        let (utilisation_ppb, rest) = (u64::try_from(ppb).ok()?, PPB - ppb);
        if rest == 0 {
            return Some(HyperbolicLoad { utilisation_ppb, period: 0 });
        }
        // u·p·(1 − u) is all but the share of the window: times T here, and u in parts per billion.
        let owed = u128::from(overdrawn) / q * q + u128::from(overdrawn);
        let once = BigUint::from(q) * (t - q) + BigUint::from(owed) * t + BigUint::from(q) * delay;
        let below = BigUint::from(t) * ppb * rest;
        let p = (once * SCALE + &below - 1_u32) / below;
        Some(HyperbolicLoad { utilisation_ppb, period: u64::try_from(p).ok()? })
    }

    /// The bound for a window of `x` ns, times 10^18; `None` on overflow.
    #[must_use]
    pub fn demand_scaled(&self, x: u128) -> Option<u128> {
        let (u, p) = (u128::from(self.utilisation_ppb), u128::from(self.period));
        let whole = x.checked_mul(SCALE)?;
        let linear = x.checked_add(p)?.checked_mul(u * PPB)?.checked_sub(p.checked_mul(u * u)?)?;
        Some(whole.min(linear))
    }

    /// The most that all of `loads` take of a window of `x` ns, rounded up to whole ns; `None` on overflow.
    #[must_use]
    pub fn demand(loads: &[HyperbolicLoad], x: u128) -> Option<u128> {
        let sum = loads.iter().try_fold(0_u128, |sum, load| sum.checked_add(load.demand_scaled(x)?))?;
        Some(sum.div_ceil(SCALE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_takes_a_budget_at_once_and_its_share_of_what_follows() {
        let of = |delay, overdrawn| {
            HyperbolicLoad::of_reservation(2_000_000, 10_000_000, delay, overdrawn).unwrap()
        };
        assert_eq!(of(0, 0), HyperbolicLoad { utilisation_ppb: 200_000_000, period: 10_000_000 });
        // min(x, 0.2 (x + J) + 1.6 + floor(e/2) 2 + e) in units of 10^6 ns, rounded up.
        for (delay, e, x, expected) in [
            (0, 0, 1, 1_000_000),
            (0, 0, 2, 2_000_000),
            (0, 0, 12, 4_000_000),
            (1, 0, 12, 4_200_000),
            (0, 1, 12, 5_000_000),
            (0, 3, 12, 9_000_000),
        ] {
            let found =
                HyperbolicLoad::demand(&[of(delay * 1_000_000, e * 1_000_000)], x * 1_000_000).unwrap();
            assert!((expected..expected + 10).contains(&found), "{delay} {e} {x}: {found}");
        }
        let whole = HyperbolicLoad::of_reservation(10, 10, 0, 5).unwrap();
        assert_eq!(HyperbolicLoad::demand(&[whole], 7), Some(7));
        assert_eq!(HyperbolicLoad::of_reservation(1, u64::MAX, 0, u64::MAX), None);
    }

    #[test]
    fn two_sevenths_as_printed() {
        // p = 7, e = 2 in units of 10^6 ns; u is rounded up to whole parts per billion.
        let load = HyperbolicLoad { utilisation_ppb: 285_714_286, period: 7_000_000 };
        for (x, expected) in [(2_000_000, 2_000_000), (4_000_000, 2_571_429), (8_000_000, 3_714_286)] {
            let demand = HyperbolicLoad::demand(&[load], x).unwrap();
            assert!(demand.abs_diff(expected) <= 2, "{x}: {demand}");
        }
        assert_eq!(HyperbolicLoad::demand(&[load], 1_000_000), Some(1_000_000));
        assert_eq!(HyperbolicLoad::demand(&[], 5), Some(0));
    }

    /// With u rounded up to parts per billion, p is the least whole number with `u·p·(1 − u)` at least what may come at once: also
    /// where that is a single part above a whole number.
    #[test]
    fn the_period_of_a_reservation_is_the_least_that_covers_it() {
        let (budget, period) = (1_u64, 7_u64);
        let ppb = 142_857_143_u128;
        let (rest, below) = (PPB - ppb, 7 * ppb * (PPB - ppb));
        // Such a delay that (6 + delay)·10^18 leaves 1 when it is divided by 7·ppb·(10^9 − ppb).
        let inverse = |value: u128, modulus: u128| {
            let (mut a, mut b, mut x, mut y) = (value as i128, modulus as i128, 1_i128, 0_i128);
            while b != 0 {
                (a, b, x, y) = (b, a % b, y, x - a / b * y);
            }
            x.rem_euclid(modulus as i128) as u128
        };
        let exact = inverse(SCALE % below, below);
        for once in [exact - 1, exact, exact + 1, 1_000] {
            let load = HyperbolicLoad::of_reservation(budget, period, (once - 6) as u64, 0).unwrap();
            assert_eq!(u128::from(load.utilisation_ppb), ppb);
            let covers = |p: u128| BigUint::from(p) * ppb * rest * 7_u32 >= BigUint::from(once) * SCALE;
            let p = u128::from(load.period);
            assert!(covers(p) && !covers(p - 1), "{once}: {load:?}");
        }
    }
}
