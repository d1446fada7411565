//! The hourglass: a thread that reads the clock as often as it can.

use super::gaps::{Gap, Stretch};
use horolog_sys::clock::monotonic_ns;
use horolog_time::Span;

/// The probe's two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hourglass {
    /// θ: a longer time between two reads of the clock was somebody else's. The paper gives no value.
    pub threshold: Span,
    /// κ: what one read of the clock costs; so much of a gap was the probe's own.
    pub clock_cost: Span,
}

impl Hourglass {
    /// Looks for `length` without a rest. `room` keeps the gaps; its capacity is the most that are kept, so that nothing
    /// is allocated meanwhile.
    #[must_use]
    pub fn watch(&self, length: Span, room: Vec<Gap>) -> Stretch {
        self.watch_by(length, room, monotonic_ns)
    }

    fn watch_by(&self, length: Span, mut room: Vec<Gap>, mut clock: impl FnMut() -> u64) -> Stretch {
        let (threshold, cost) = (self.threshold.as_ns(), self.clock_cost.as_ns());
        room.clear();
        let begin = clock();
        let mut last = begin;
        let mut is_full = false;
        while last - begin < length.as_ns() && !is_full {
            let now = clock();
            let gap = now - last;
            if gap > threshold && gap > cost {
                room.push(Gap { from_ns: last - begin + cost, until_ns: now - begin });
                is_full = room.len() == room.capacity();
            }
            last = now;
        }
        Stretch { length_ns: last - begin, gaps: room, is_full }
    }
}

/// κ on this processor: the median over batches of the mean of 100 reads in a row, ns, rounded up.
#[must_use]
pub fn clock_cost_ns() -> u64 {
    const BATCHES: usize = 101;
    const READS: u64 = 100;
    let mut costs: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let begin = monotonic_ns();
            for _ in 0..READS {
                std::hint::black_box(monotonic_ns());
            }
            (monotonic_ns() - begin).div_ceil(READS + 1)
        })
        .collect();
    costs.sort_unstable();
    costs[BATCHES / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that shows these instants, one a read.
    fn clock(times: &[u64]) -> impl FnMut() -> u64 + '_ {
        let mut times = times.iter();
        move || *times.next().expect("the probe stops in time")
    }

    const PROBE: Hourglass = Hourglass { threshold: Span::from_ns(20), clock_cost: Span::from_ns(5) };

    #[test]
    fn a_long_time_between_two_reads_is_a_gap() {
        let seen = PROBE.watch_by(
            Span::from_ns(100),
            Vec::with_capacity(8),
            clock(&[1_000, 1_005, 1_025, 1_060, 1_065, 1_170]),
        );
        // 20 is not above the threshold; 35 and 105 are, and 5 of each was the probe's own read.
        let gaps = [Gap { from_ns: 30, until_ns: 60 }, Gap { from_ns: 70, until_ns: 170 }];
        assert_eq!(seen, Stretch { length_ns: 170, gaps: gaps.to_vec(), is_full: false });
    }

    #[test]
    fn a_full_buffer_ends_the_stretch() {
        let seen =
            PROBE.watch_by(Span::from_ns(1_000), Vec::with_capacity(1), clock(&[0, 50, 100, 150, 2_000]));
        assert!(seen.is_full);
        assert_eq!((seen.length_ns, seen.gaps.len()), (50, 1));
    }

    #[test]
    fn reading_the_clock_costs_something() {
        assert!((1..100_000).contains(&clock_cost_ns()));
    }
}
