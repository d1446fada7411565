//! What many readings of one phase say about each length.

use super::store::Reading;
use horolog_time::Span;
use serde::Serialize;

/// A number that stands for many windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The largest share of any window seen: a lower bound on the worst case.
    Max,
    /// The 95th percentile of windows that begin at random.
    P95,
    /// Their median.
    Median,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Statistic; 3] = [Statistic::Max, Statistic::P95, Statistic::Median];

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Statistic::Max => "max",
            Statistic::P95 => "p95",
            Statistic::Median => "median",
        }
    }
}

/// One window length.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The length.
    pub length_ns: Span,
    /// Windows that begin at random.
    pub windows: u64,
    /// Largest share of any window, parts per billion; so are the others.
    pub max_ppb: u64,
    /// 95th percentile (nearest rank).
    pub p95_ppb: u64,
    /// Median (nearest rank).
    pub median_ppb: u64,
    /// Mean.
    pub mean_ppb: u64,
}

impl Row {
    /// The value of a statistic.
    #[must_use]
    pub fn get(&self, statistic: Statistic) -> u64 {
        match statistic {
            Statistic::Max => self.max_ppb,
            Statistic::P95 => self.p95_ppb,
            Statistic::Median => self.median_ppb,
        }
    }
}

/// A row a length; none where there is no reading.
pub(super) fn rows(lengths_ns: &[u64], readings: &[&Reading]) -> Vec<Row> {
    if readings.is_empty() {
        return Vec::new();
    }
    let row = |(at, &length): (usize, &u64)| {
        let mut shares: Vec<u64> =
            readings.iter().flat_map(|reading| reading.sampled_ppb[at].iter().copied()).collect();
        shares.sort_unstable();
        let sum: u128 = shares.iter().map(|&share| u128::from(share)).sum();
        Row {
            length_ns: Span::from_ns(length),
            windows: shares.len() as u64,
            max_ppb: readings.iter().map(|reading| reading.largest_ppb[at]).max().unwrap_or(0),
            p95_ppb: nearest_rank(&shares, 95),
            median_ppb: nearest_rank(&shares, 50),
            mean_ppb: (sum / shares.len().max(1) as u128) as u64,
        }
    };
    lengths_ns.iter().enumerate().map(row).collect()
}

fn nearest_rank(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::configuration::Phase;
    use super::*;

    #[test]
    fn maxima_are_over_all_windows_and_percentiles_over_those_at_random() {
        let reading = |largest, sampled: &[u64]| Reading {
            phase: Phase::Load,
            gaps: 1,
            longest_gap_ns: 1,
            largest_ppb: vec![largest],
            sampled_ppb: vec![sampled.to_vec()],
            disturbance: Default::default(),
        };
        let readings = [reading(90, &[10, 20]), reading(95, &[30, 40])];
        let rows = rows(&[1_000], &readings.iter().collect::<Vec<_>>());
        assert_eq!((rows[0].max_ppb, rows[0].p95_ppb, rows[0].median_ppb), (95, 40, 20));
        assert_eq!((rows[0].mean_ppb, rows[0].windows), (25, 4));
        assert_eq!(nearest_rank(&[], 50), 0);
    }
}
