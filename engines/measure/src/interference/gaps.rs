//! The gaps of one stretch, and the share that they take of its windows.

/// Time between two reads of the clock in which somebody else had the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Its begin, ns after the stretch's begin.
    pub from_ns: u64,
    /// Its end, ns after the stretch's begin.
    pub until_ns: u64,
}

/// What the probe saw without a rest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stretch {
    /// How long, ns.
    pub length_ns: u64,
    /// The gaps in time order; they do not overlap.
    pub gaps: Vec<Gap>,
    /// Whether there were more gaps than fit; then the stretch ends with the last that did.
    pub is_full: bool,
}

/// Parts per billion in one.
const BILLION: u128 = 1_000_000_000;

impl Stretch {
    /// Prefix sums, for the questions below.
    #[must_use]
    pub fn index(&self) -> Windows<'_> {
        let mut before = Vec::with_capacity(self.gaps.len() + 1);
        let mut sum = 0;
        before.push(0);
        for gap in &self.gaps {
            sum += gap.until_ns - gap.from_ns;
            before.push(sum);
        }
        Windows { stretch: self, before }
    }

    /// The longest gap, ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.until_ns - gap.from_ns).max().unwrap_or(0)
    }
}

/// A stretch that answers how much of a window was taken.
#[derive(Debug)]
pub struct Windows<'a> {
    stretch: &'a Stretch,
    /// Time taken by the gaps before the one of this index.
    before: Vec<u64>,
}

impl Windows<'_> {
    /// Time taken from the stretch's begin until `at_ns`.
    fn taken_until(&self, at_ns: u64) -> u64 {
        let begun = self.stretch.gaps.partition_point(|gap| gap.from_ns < at_ns);
        match begun.checked_sub(1).map(|last| (last, self.stretch.gaps[last])) {
            None => 0,
            Some((last, gap)) => self.before[last] + gap.until_ns.min(at_ns) - gap.from_ns,
        }
    }

    /// Share of the window of `length_ns` that begins at `from_ns`, parts per billion, rounded up; `None` where it leaves
    /// the stretch or is empty.
    #[must_use]
    pub fn share_ppb(&self, from_ns: u64, length_ns: u64) -> Option<u64> {
        let until = from_ns.checked_add(length_ns).filter(|&until| until <= self.stretch.length_ns)?;
        if length_ns == 0 {
            return None;
        }
        let taken = self.taken_until(until) - self.taken_until(from_ns);
        Some((u128::from(taken) * BILLION).div_ceil(u128::from(length_ns)) as u64)
    }

    /// The largest share of any window of `length_ns` inside the stretch, parts per billion; `None` where none fits.
    ///
    /// Exact: moved to the right, a window takes more only while it leaves free time and enters a gap; so the largest
    /// share is at a window that begins with a gap, or ends with one, or touches an end of the stretch.
    #[must_use]
    pub fn largest_ppb(&self, length_ns: u64) -> Option<u64> {
        let latest = self.stretch.length_ns.checked_sub(length_ns)?;
        let starts = self.stretch.gaps.iter().map(|gap| gap.from_ns);
        let ends = self.stretch.gaps.iter().filter_map(|gap| gap.until_ns.checked_sub(length_ns));
        let places = starts.chain(ends).chain([0, latest]).filter(|&from| from <= latest);
        places.filter_map(|from| self.share_ppb(from, length_ns)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(length_ns: u64, gaps: &[(u64, u64)]) -> Stretch {
        let gaps = gaps.iter().map(|&(from_ns, until_ns)| Gap { from_ns, until_ns }).collect();
        Stretch { length_ns, gaps, is_full: false }
    }

    #[test]
    fn the_largest_window_begins_or_ends_with_a_gap() {
        let seen = stretch(100, &[(10, 14), (20, 30), (90, 95)]);
        let windows = seen.index();
        assert_eq!(windows.largest_ppb(10), Some(1_000_000_000));
        // [10, 30) has both gaps: 14 of 20.
        assert_eq!(windows.largest_ppb(20), Some(700_000_000));
        assert_eq!(windows.largest_ppb(100), Some(190_000_000));
        assert_eq!(windows.largest_ppb(101), None);
        assert_eq!(windows.share_ppb(12, 10), Some(400_000_000));
        assert_eq!(windows.share_ppb(95, 6), None);
        assert_eq!(seen.longest_ns(), 10);
    }

    #[test]
    fn an_undisturbed_stretch_has_no_share() {
        let seen = stretch(50, &[]);
        assert_eq!(seen.index().largest_ppb(7), Some(0));
        assert_eq!(seen.index().share_ppb(0, 0), None);
    }

    proptest! {
        #[test]
        fn the_largest_share_is_that_of_the_naive_search(
            pieces in prop::collection::vec((1_u64..6, 1_u64..6), 0..12),
            rest in 0_u64..8,
            length in 1_u64..40,
        ) {
            let mut gaps = Vec::new();
            let mut at = 0;
            for (free, taken) in pieces {
                gaps.push((at + free, at + free + taken));
                at += free + taken;
            }
            let seen = stretch(at + rest, &gaps);
            let windows = seen.index();
            let taken = |from: u64| -> u64 {
                (from..from + length).filter(|t| gaps.iter().any(|(a, b)| (a..b).contains(&t))).count() as u64
            };
            let naive = (0..=(at + rest).saturating_sub(length))
                .filter(|from| from + length <= at + rest)
                .map(|from| (taken(from) * 1_000_000_000).div_ceil(length))
                .max();
            prop_assert_eq!(windows.largest_ppb(length), naive);
        }
    }
}
