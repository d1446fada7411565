//! Interference from outside the model: the hyperbolic load bound in exact integers.

use horolog_model::Interference;

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
}
