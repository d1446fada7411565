//! Which value of a distribution a cost is.

use horolog_time::Span;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A quantile, as `p99.9`: so many per cent of the samples are not above it. Three decimals at most; from p0.001 to p99.999, so
/// that one sample above it is never improbable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Quantile(u32);

/// Parts of the whole.
const WHOLE: u32 = 100_000;

impl Quantile {
    /// p99.
    pub const P99: Quantile = Quantile(99_000);
    /// p99.9.
    pub const P99_9: Quantile = Quantile(99_900);

    /// The share of samples that may be above it, as a ratio.
    #[must_use]
    pub fn above(self) -> (u32, u32) {
        (WHOLE - self.0, WHOLE)
    }

    /// The nearest-rank quantile: the least sample that so many per cent are not above. `None` without a sample.
    ///
    /// ```
    /// use horolog_measure::machine::Quantile;
    /// let sorted: Vec<u64> = (1..=1_000).collect();
    /// assert_eq!(Quantile::P99_9.of_sorted(&sorted), Some(horolog_time::Span::from_ns(999)));
    /// ```
    #[must_use]
    pub fn of_sorted(self, samples: &[u64]) -> Option<Span> {
        let rank = (samples.len() as u128 * u128::from(self.0)).div_ceil(u128::from(WHOLE)).max(1);
        let index = usize::try_from(rank - 1).ok()?;
        samples.get(index).copied().map(Span::from_ns)
    }

    /// How many samples it takes until one may be above it: fewer make the quantile the maximum.
    #[must_use]
    pub fn least_samples(self) -> u64 {
        u64::from(WHOLE.div_ceil(WHOLE - self.0))
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        if rest == 0 {
            return write!(f, "p{whole}");
        }
        let decimals = format!("{rest:03}");
        write!(f, "p{whole}.{}", decimals.trim_end_matches('0'))
    }
}

impl FromStr for Quantile {
    type Err = String;

    fn from_str(text: &str) -> Result<Quantile, String> {
        let refuse =
            || format!("`{text}` is not a quantile from p0.001 to p99.999, with at most three decimals");
        let number = text.strip_prefix('p').ok_or_else(refuse)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(decimals) || whole.len() > 2 || decimals.len() > 3 {
            return Err(refuse());
        }
        let whole: u32 = whole.parse().map_err(|_| refuse())?;
        let decimals: u32 = format!("{decimals:0<3}").parse().map_err(|_| refuse())?;
        let parts = whole * 1_000 + decimals;
        if parts == 0 { Err(refuse()) } else { Ok(Quantile(parts)) }
    }
}

impl Serialize for Quantile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["p99", "p99.9", "p50", "p0.001", "p99.999", "p1.05"] {
            assert_eq!(text.parse::<Quantile>().expect("a quantile").to_string(), text);
        }
        for text in ["99", "p", "p100", "p0", "p99.9999", "p-1", "p99.", "p.5", "p+9", "pp9", "p099"] {
            assert!(text.parse::<Quantile>().is_err(), "{text}");
        }
        assert_eq!("p99.90".parse(), Ok(Quantile::P99_9));
    }

    #[test]
    fn the_nearest_rank_of_few_and_many() {
        let of = |quantile: Quantile, count: u64| {
            let samples: Vec<u64> = (1..=count).collect();
            quantile.of_sorted(&samples).map(Span::as_ns)
        };
        assert_eq!(
            [0, 1, 99, 100, 101].map(|count| of(Quantile::P99, count)),
            [None, Some(1), Some(99), Some(99), Some(100)]
        );
        assert_eq!((of(Quantile::P99_9, 999), of(Quantile::P99_9, 1_001)), (Some(999), Some(1_000)));
        assert_eq!((Quantile::P99.above(), Quantile::P99_9.above()), ((1_000, WHOLE), (100, WHOLE)));
        assert_eq!((Quantile::P99.least_samples(), Quantile::P99_9.least_samples()), (100, 1_000));
    }
}
