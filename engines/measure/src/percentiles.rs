//! A distribution of times in a few numbers.

use horolog_time::Span;
use horolog_trace::ResponseStatistics;
use serde::Serialize;

/// How many times were seen, and how they are distributed. In JSON its fields stand among those of the result that has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many samples.
    pub count: u64,
    /// Least, exact.
    pub ns_min: Span,
    /// Mean, exact.
    pub ns_mean: f64,
    /// Median (nearest rank, three significant digits; so are all percentiles).
    pub ns_p50: Span,
    /// 95th percentile.
    pub ns_p95: Span,
    /// 99th percentile.
    pub ns_p99: Span,
    /// 99.9th percentile.
    pub ns_p99_9: Span,
    /// Greatest, exact.
    pub ns_max: Span,
}

impl Percentiles {
    /// Those of all samples; `None` without a sample.
    #[must_use]
    pub fn of(samples: &ResponseStatistics) -> Option<Percentiles> {
        Some(Percentiles {
            count: samples.count(),
            ns_min: samples.min()?,
            ns_mean: samples.mean()?,
            ns_p50: samples.percentile(50.0)?,
            ns_p95: samples.percentile(95.0)?,
            ns_p99: samples.percentile(99.0)?,
            ns_p99_9: samples.percentile(99.9)?,
            ns_max: samples.max()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_samples_have_these_percentiles() {
        let mut samples = ResponseStatistics::default();
        assert_eq!(Percentiles::of(&samples), None);
        (1..=100).for_each(|ns| samples.record(Span::from_ns(ns)));
        let all = Percentiles::of(&samples).unwrap();
        let ns = [all.ns_min, all.ns_p50, all.ns_p95, all.ns_p99, all.ns_p99_9, all.ns_max].map(Span::as_ns);
        assert_eq!((all.count, all.ns_mean, ns), (100, 50.5, [1, 50, 95, 99, 100, 100]));
    }
}
