//! Lengths in bins of 0.1 µs.

use std::collections::BTreeMap;

/// Width of a linear bin: 0.1 µs, as in the paper.
pub const BIN_NS: u64 = 100;
/// Parts of an octave above the linear range.
const PARTS_LOG2: u32 = 6;
/// Bins that stand side by side.
const SHORTEST: usize = 16;

/// A histogram of lengths: exact bins of 0.1 µs up to a limit, above that 64 bins an octave, each at most 1/64 wide of
/// its lower edge. Only bins that hold something take memory, at most `linear + 3,712` of them.
///
/// ```
/// use horolog_measure::critical_sections::Histogram;
/// let mut lengths = Histogram::new(10_000);
/// lengths.add(1_000);
/// assert_eq!(lengths.bins().collect::<Vec<_>>(), [(10, 1)]);
/// assert_eq!(lengths.edges(10), (1_000, 1_100));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    linear: u32,
    /// The bins of the shortest lengths, where most are.
    shortest: [u64; SHORTEST],
    bins: BTreeMap<u32, u64>,
    count: u64,
    total_ns: u128,
    max_ns: u64,
}

impl Histogram {
    /// A histogram whose first `linear` bins are 0.1 µs wide (at least 64).
    #[must_use]
    pub fn new(linear: u32) -> Histogram {
        Histogram {
            linear: linear.max(1 << PARTS_LOG2),
            shortest: [0; SHORTEST],
            bins: BTreeMap::new(),
            count: 0,
            total_ns: 0,
            max_ns: 0,
        }
    }

    /// Adds a length.
    pub fn add(&mut self, ns: u64) {
        self.add_to(self.bin(ns), 1);
        self.count += 1;
        self.total_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn add_to(&mut self, bin: u32, count: u64) {
        match self.shortest.get_mut(bin as usize) {
            Some(place) => *place += count,
            None => *self.bins.entry(bin).or_insert(0) += count,
        }
    }

    /// The bin of a length: ⌊length / 0.1 µs⌋ in the linear range.
    #[must_use]
    pub fn bin(&self, ns: u64) -> u32 {
        let tenths = ns / BIN_NS;
        if tenths < u64::from(self.linear) {
            return tenths as u32;
        }
        // Above: tenths = 2^octave × (1 + part/64), seen from the limit on.
        self.linear + log_index(tenths) - log_index(u64::from(self.linear))
    }

    /// The lower and the upper edge of a bin, ns; the upper one does not belong to it.
    #[must_use]
    pub fn edges(&self, bin: u32) -> (u64, u64) {
        if bin < self.linear {
            return (u64::from(bin) * BIN_NS, (u64::from(bin) + 1) * BIN_NS);
        }
        let index = bin - self.linear + log_index(u64::from(self.linear));
        let lower = log_value(index).max(u64::from(self.linear));
        (lower.saturating_mul(BIN_NS), log_value(index + 1).saturating_mul(BIN_NS))
    }

    /// Bins that hold something, with their counts, in order.
    pub fn bins(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let shortest = (0_u32..).zip(self.shortest).filter(|(_, count)| *count > 0);
        shortest.chain(self.bins.iter().map(|(bin, count)| (*bin, *count)))
    }

    /// How many lengths.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    #[must_use]
    pub const fn total_ns(&self) -> u128 {
        self.total_ns
    }

    /// The longest, ns.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Their mean, ns; `None` without any.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }

    /// The upper edge of the bin in which the smallest length stands that at least `share` of all do not exceed
    /// (the maximum where that is less); `None` without any.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bin, count) in self.bins() {
            seen += count;
            if seen as f64 >= wanted {
                return Some(self.edges(bin).1.min(self.max_ns));
            }
        }
        None
    }

    /// The share of lengths below `limit_ns`: exact for multiples of 0.1 µs in the linear range, else that of the
    /// whole bins below it. `None` without any.
    #[must_use]
    pub fn share_below(&self, limit_ns: u64) -> Option<f64> {
        let below: u64 =
            self.bins().take_while(|(bin, _)| self.edges(*bin).1 <= limit_ns).map(|(_, count)| count).sum();
        (self.count > 0).then(|| below as f64 / self.count as f64)
    }

    /// The cumulative distribution: for each bin that holds something its upper edge (ns) and the share of lengths
    /// below that.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let mut seen = 0;
        self.bins()
            .map(|(bin, count)| {
                seen += count;
                (self.edges(bin).1, seen as f64 / self.count as f64)
            })
            .collect()
    }

    /// Adds all lengths of another histogram with the same limit.
    ///
    /// # Panics
    /// Where the limits differ.
    pub fn merge(&mut self, other: &Histogram) {
        assert_eq!(self.linear, other.linear, "histograms with different limits");
        for (bin, count) in other.bins() {
            self.add_to(bin, count);
        }
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Numbers the 64 parts of all octaves: 64 × (octave - 6) + mantissa; `value` is at least 64.
fn log_index(value: u64) -> u32 {
    let octave = value.ilog2();
    let mantissa = (value >> (octave - PARTS_LOG2)) as u32;
    ((octave - PARTS_LOG2) << PARTS_LOG2) + mantissa
}

/// The smallest value with this index.
fn log_value(index: u32) -> u64 {
    let octave = (index >> PARTS_LOG2) - 1;
    let mantissa = u64::from(index) - (u64::from(octave) << PARTS_LOG2);
    mantissa.checked_shl(octave).filter(|value| value >> octave == mantissa).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_lies_in_its_bin_and_bins_touch() {
        for linear in [64, 100, 1_000, 10_000] {
            let histogram = Histogram::new(linear);
            let mut last = 0;
            let lengths = (0..2_000_000u64).step_by(33).chain((0..40).map(|shift| (1u64 << shift) * 100 + 7));
            let mut sorted: Vec<u64> = lengths.chain([u64::MAX, u64::MAX / 2]).collect();
            sorted.sort_unstable();
            for ns in sorted {
                let bin = histogram.bin(ns);
                assert!(bin >= last, "bins follow the order of lengths");
                last = bin;
                let (lower, upper) = histogram.edges(bin);
                assert!(lower <= ns && (ns < upper || upper == u64::MAX), "{ns} in {lower}..{upper}");
                if bin > 0 {
                    assert_eq!(histogram.edges(bin - 1).1, lower);
                }
                assert!(upper - lower <= BIN_NS.max(lower / 64 + BIN_NS), "{lower}..{upper} is too wide");
            }
        }
    }

    #[test]
    fn quantiles_shares_and_the_distribution() {
        let mut histogram = Histogram::new(10_000);
        assert_eq!(
            (histogram.mean_ns(), histogram.quantile_ns(0.5), histogram.share_below(5)),
            (None, None, None)
        );
        for ns in [50, 150, 4_999, 5_000] {
            histogram.add(ns);
        }
        assert_eq!(histogram.share_below(5_000), Some(0.75));
        assert_eq!(histogram.quantile_ns(0.5), Some(200));
        assert_eq!(histogram.quantile_ns(1.0), Some(5_000));
        assert_eq!(histogram.mean_ns(), Some(10_199.0 / 4.0));
        assert_eq!(histogram.cumulative(), [(100, 0.25), (200, 0.5), (5_000, 0.75), (5_100, 1.0)]);
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.max_ns(), twice.share_below(5_000)), (8, 5_000, Some(0.75)));
    }
}
