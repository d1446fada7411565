//! The distribution of a quantity, for results.

use crate::ResponseStatistics;
use horolog_time::Span;
use serde::Serialize;

/// How spans are distributed. Minimum, mean and maximum are exact; percentiles are nearest-rank, to three significant
/// digits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min_ns: Span,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: Span,
    /// The 90th percentile.
    pub p90_ns: Span,
    /// The 99th percentile.
    pub p99_ns: Span,
    /// The 99.9th percentile.
    pub p99_9_ns: Span,
    /// The greatest.
    pub max_ns: Span,
    /// A histogram whose bins double: each bin's least value and how many fell into it, empty bins left out. The first
    /// bin holds 0 alone.
    pub histogram: Vec<Bin>,
}

/// One bin of a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bin {
    /// The least value that falls into it.
    pub from_ns: Span,
    /// How many fell into it.
    pub count: u64,
}

impl Distribution {
    /// What `statistics` holds; `None` where it holds nothing.
    #[must_use]
    pub fn of(statistics: &ResponseStatistics) -> Option<Distribution> {
        let percentile = |percent| statistics.percentile(percent);
        Some(Distribution {
            count: statistics.count(),
            min_ns: statistics.min()?,
            mean_ns: statistics.mean()?,
            p50_ns: percentile(50.0)?,
            p90_ns: percentile(90.0)?,
            p99_ns: percentile(99.0)?,
            p99_9_ns: percentile(99.9)?,
            max_ns: statistics.max()?,
            histogram: doubling_bins(statistics),
        })
    }
}

/// The recorded values in bins from 2^k to 2^(k+1) - 1. A value is known to three digits only, but a power of two is a
/// bucket's edge, so that no value falls into a wrong bin.
fn doubling_bins(statistics: &ResponseStatistics) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    let histogram = statistics.histogram();
    for step in histogram.iter_recorded() {
        let value = histogram.lowest_equivalent(step.value_iterated_to());
        let from_ns = Span::from_ns(value.checked_ilog2().map_or(0, |bits| 1 << bits));
        match bins.last_mut() {
            Some(bin) if bin.from_ns == from_ns => bin.count += step.count_at_value(),
            _ => bins.push(Bin { from_ns, count: step.count_at_value() }),
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_and_hold_every_value() {
        let mut statistics = ResponseStatistics::default();
        assert!(Distribution::of(&statistics).is_none());
        for ns in [0, 1, 2, 3, 4, 1_023, 1_024, 4_095, 4_096, 1 << 40, (1 << 41) - 1] {
            statistics.record(Span::from_ns(ns));
        }
        let found = Distribution::of(&statistics).unwrap();
        let bins: Vec<_> = found.histogram.iter().map(|bin| (bin.from_ns.as_ns(), bin.count)).collect();
        let expected =
            [(0, 1), (1, 1), (2, 2), (4, 1), (512, 1), (1_024, 1), (2_048, 1), (4_096, 1), (1 << 40, 2)];
        assert_eq!(bins, expected);
        assert_eq!((found.count, found.min_ns, found.max_ns.as_ns()), (11, Span::ZERO, (1 << 41) - 1));
    }
}
