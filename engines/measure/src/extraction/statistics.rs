//! Distributions as evidence shows them.

use super::arrivals::percentile;
use serde::Serialize;

/// A distribution of times, ns; percentiles are nearest-rank over all values.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// The least.
    pub min_ns: u64,
    /// The middle one.
    pub p50_ns: u64,
    /// Of a hundred values 90 are not above it.
    pub p90_ns: u64,
    /// Of a hundred values 99 are not above it.
    pub p99_ns: u64,
    /// Of a thousand values 999 are not above it.
    pub p99_9_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

impl Distribution {
    /// The distribution of these values; `None` of none.
    #[must_use]
    pub fn of(mut values: Vec<u64>) -> Option<Distribution> {
        values.sort_unstable();
        let (min_ns, max_ns) = (*values.first()?, *values.last()?);
        Some(Distribution {
            count: values.len() as u64,
            min_ns,
            p50_ns: percentile(&values, 50.0),
            p90_ns: percentile(&values, 90.0),
            p99_ns: percentile(&values, 99.0),
            p99_9_ns: percentile(&values, 99.9),
            max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_nearest() {
        let found = Distribution::of((1..=1000).rev().collect()).expect("values");
        assert_eq!((found.count, found.min_ns, found.p50_ns, found.p90_ns), (1000, 1, 500, 900));
        assert_eq!((found.p99_ns, found.p99_9_ns, found.max_ns), (990, 999, 1000));
        assert_eq!(Distribution::of(Vec::new()), None);
    }
}
