//! Response times as they come, at the cost of a few instructions each.

use crate::ResponseStatistics;
use horolog_time::Span;

/// Values below this are counted exactly; above, each octave has half as many buckets: the buckets of an HDR histogram of
/// three significant digits.
const EXACT_BITS: u32 = 11;
#[cfg(test)]
const BUCKETS: usize = (64 - EXACT_BITS as usize) * (1 << (EXACT_BITS - 1)) + (1 << EXACT_BITS);

/// Counts response times; [`ResponseRecorder::statistics`] reads them. It holds the same as [`ResponseStatistics`] and
/// is several times faster to fill; it has counters between the least and the greatest value only.
///
/// ```
/// use horolog_time::Span;
/// use horolog_trace::ResponseRecorder;
/// let mut recorder = ResponseRecorder::default();
/// for ns in [5, 7, 9_000_000] {
///     recorder.record(Span::from_ns(ns));
/// }
/// let statistics = recorder.statistics();
/// assert_eq!(statistics.max(), Some(Span::from_ns(9_000_000)));
/// assert_eq!(statistics.percentile(50.0), Some(Span::from_ns(7)));
/// ```
#[derive(Clone, Debug)]
pub struct ResponseRecorder {
    /// The counters of the buckets from `first` on, as far as values fell: ten thousand tasks have as many recorders.
    counts: Vec<u64>,
    first: usize,
    sum: u128,
    min: u64,
    max: u64,
}

/// Counters are added so many at a time.
const STEP: usize = 512;

impl Default for ResponseRecorder {
    fn default() -> ResponseRecorder {
        ResponseRecorder { counts: Vec::new(), first: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

/// The bucket of a value; 0 to `BUCKETS - 1`.
#[inline(always)]
fn bucket(ns: u64) -> usize {
    // The leading bit decides the octave; the next ten bits the bucket in it.
    let shift = (u64::BITS - (ns | 1).leading_zeros()).saturating_sub(EXACT_BITS);
    ((shift as usize) << (EXACT_BITS - 1)) + (ns >> shift) as usize
}

/// The least value of a bucket.
fn least(bucket: usize) -> u64 {
    let half = 1_usize << (EXACT_BITS - 1);
    let shift = (bucket / half).saturating_sub(1);
    ((bucket - shift * half) as u64) << shift
}

impl ResponseRecorder {
    /// A recorder that has room for so many counters: it takes no memory while values fall into that many buckets around the first, 1,024
    /// an octave.
    #[must_use]
    pub fn with_room(counters: usize) -> ResponseRecorder {
        ResponseRecorder { counts: Vec::with_capacity(counters), ..ResponseRecorder::default() }
    }

    /// Adds one response time.
    #[inline(always)]
    pub fn record(&mut self, response: Span) {
        let ns = response.as_ns();
        let bucket = bucket(ns);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.count_beyond(bucket),
        }
        self.sum += u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// The first value outside of the counters that there are.
    #[cold]
    fn count_beyond(&mut self, bucket: usize) {
        let (from, to) = (bucket / STEP * STEP, (bucket / STEP + 1) * STEP);
        if self.counts.is_empty() {
            self.first = from;
        }
        if from < self.first {
            let more = self.first - from;
            self.counts.splice(..0, std::iter::repeat_n(0, more));
            self.first = from;
        }
        if to > self.first + self.counts.len() {
            self.counts.resize(to - self.first, 0);
        }
        self.counts[bucket - self.first] += 1;
    }

    /// What was recorded so far.
    #[must_use]
    pub fn statistics(&self) -> ResponseStatistics {
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        let buckets = filled.map(|(index, &count)| (Span::from_ns(least(self.first + index)), count));
        ResponseStatistics::from_buckets(buckets, self.sum, Span::from_ns(self.min), Span::from_ns(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_room_it_grows_both_ways_where_it_is() {
        let mut recorder = ResponseRecorder::with_room(6 * 1024);
        let place = recorder.counts.as_ptr();
        // 32 times between the least and the greatest: below six octaves.
        for us in [400, 100, 3200] {
            recorder.record(Span::from_ns(us * 1000));
        }
        assert_eq!((recorder.counts.as_ptr(), recorder.counts.capacity()), (place, 6 * 1024));
        let statistics = recorder.statistics();
        assert_eq!(
            (statistics.min(), statistics.max()),
            (Some(Span::from_ns(100_000)), Some(Span::from_ns(3_200_000)))
        );
        recorder.record(Span::from_ns(60_000_000_000));
        assert!(recorder.counts.capacity() > 6 * 1024);
        assert_eq!(recorder.statistics().count(), 4);
    }

    #[test]
    fn agrees_with_statistics_filled_one_by_one() {
        let mut recorder = ResponseRecorder::default();
        let mut plain = ResponseStatistics::default();
        let mut x = 1_u64;
        for step in 0..20_000_u32 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let response = Span::from_ns(x >> (step % 63 + 1));
            recorder.record(response);
            plain.record(response);
        }
        let statistics = recorder.statistics();
        assert_eq!(statistics.histogram(), plain.histogram());
        assert_eq!(statistics.count(), plain.count());
        assert_eq!((statistics.min(), statistics.max()), (plain.min(), plain.max()));
        assert_eq!(statistics.mean(), plain.mean());
    }

    #[test]
    fn buckets_cover_every_value() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for ns in [0, 1, 1_023, 1_024, 2_047, 2_048, 2_049, 1 << 40, u64::MAX] {
            let index = bucket(ns);
            assert!(least(index) <= ns, "{ns}");
            assert!(index + 1 == BUCKETS || ns < least(index + 1), "{ns}");
        }
    }
}
