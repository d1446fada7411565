//! Batches of task sets as three arrays, in parallel: for studies of millions of sets.
//!
//! Set number i of a seed is drawn by a generator of its own ([`Random::of_item`]), so a batch is the same on any number of threads,
//! and any part of it can be drawn again by itself.

use crate::vectors::{Method, Vectors};
use crate::{Deadlines, Random};
use std::sync::{Mutex, PoisonError};

/// Sets that a core takes at a time.
const BLOCK: usize = 256;
/// No period may be longer (1 hour and 40 minutes): with a factor below a million, deadlines stay below 2^60 ns.
const LONGEST_NS: u64 = 6_000_000_000_000;
/// The largest factor of [`BatchDeadlines::Arbitrary`], in parts per million.
const MOST_FACTOR_PPM: u64 = 100_000_000;

/// Where periods come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Periods {
    /// Log-uniform from the shortest to the longest, rounded down to a multiple of the granularity (`emberson10`).
    LogUniform {
        /// The shortest, ns.
        shortest: u64,
        /// The longest, ns.
        longest: u64,
        /// Periods are multiples of this, ns.
        granularity: u64,
    },
    /// shortest · 2^k up to the longest, every k as likely: of two periods one divides the other.
    Harmonic {
        /// The shortest, ns.
        shortest: u64,
        /// The longest, ns.
        longest: u64,
    },
    /// Periods of runnables in engine control by their published shares (`kramer15`, table III): 1, 2, 5, 10, 20, 50, 100, 200, 1000 ms
    /// by 3, 2, 2, 25, 25, 3, 20, 1, 4 of 85. The other 15 of 100 are synchronous to the crankshaft and have no period.
    Automotive,
}

/// The shares of [`Periods::Automotive`]: milliseconds, and parts of 85.
pub const AUTOMOTIVE: [(u64, u64); 9] =
    [(1, 3), (2, 2), (5, 2), (10, 25), (20, 25), (50, 3), (100, 20), (200, 1), (1000, 4)];

/// Where deadlines lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchDeadlines {
    /// As [`Deadlines`]: at the period, or before it.
    UpToPeriod(Deadlines),
    /// Uniform from C to a multiple of the period, before or behind its end.
    Arbitrary {
        /// The multiple, in parts per million.
        factor_ppm: u64,
    },
}

/// Bounds of the utilisation of each task, for methods that take them.
#[derive(Clone, PartialEq, Debug)]
pub struct Bounds {
    /// The least.
    pub lower: Vec<f64>,
    /// The greatest.
    pub upper: Vec<f64>,
}

/// What sets to draw.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Tasks of each set.
    pub tasks: usize,
    /// Their total utilisation.
    pub utilisation: f64,
    /// How it is shared.
    pub method: Method,
    /// Within which bounds; without them 0 and 1, where the method takes any.
    pub bounds: Option<Bounds>,
    /// Periods.
    pub periods: Periods,
    /// Deadlines.
    pub deadlines: BatchDeadlines,
    /// The seed.
    pub seed: u64,
}

impl Batch {
    /// What is wrong, the argument first; `None` where sets of it can be drawn.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        self.vectors().err().or_else(|| self.other_flaw())
    }

    fn vectors(&self) -> Result<Vectors, String> {
        match &self.bounds {
            Some(Bounds { lower, upper }) => {
                if lower.len() != self.tasks {
                    return Err(format!("lower: there are {} bounds of {} tasks", lower.len(), self.tasks));
                }
                Vectors::bounded(self.method, self.utilisation, lower, upper)
            }
            None => Vectors::new(self.method, self.tasks, self.utilisation),
        }
    }

    fn other_flaw(&self) -> Option<String> {
        let (shortest, longest, granularity) = match self.periods {
            Periods::LogUniform { shortest, longest, granularity } => (shortest, longest, granularity),
            Periods::Harmonic { shortest, longest } => (shortest, longest, 1),
            Periods::Automotive => (1, 1, 1),
        };
        if granularity == 0 || shortest < granularity {
            return Some(format!(
                "granularity: {granularity} ns is not from 1 ns to the shortest period, {shortest} ns"
            ));
        }
        if shortest > longest || longest > LONGEST_NS {
            return Some(format!(
                "longest_period: {longest} ns is not from the shortest period, {shortest} ns, to {LONGEST_NS} ns"
            ));
        }
        match self.deadlines {
            BatchDeadlines::Arbitrary { factor_ppm } if factor_ppm == 0 || factor_ppm > MOST_FACTOR_PPM => {
                Some(format!("factor: {} is not above 0 and at most 100", factor_ppm as f64 / 1e6))
            }
            _ => None,
        }
    }

    /// Draws sets from number `first` on into three arrays with one value for every task, in nanoseconds, on so many threads
    /// (0: one a core): C = max(1, ⌊u·T⌋), the deadline D, the period T.
    ///
    /// # Errors
    /// The [flaw](Batch::flaw).
    ///
    /// # Panics
    /// Where the arrays differ in length or the last set is not whole.
    pub fn draw(
        &self,
        first: u64,
        [wcet, deadline, period]: [&mut [u64]; 3],
        threads: usize,
    ) -> Result<(), String> {
        let vectors = self.vectors()?;
        self.other_flaw().map_or(Ok(()), Err)?;
        let (tasks, count) = (self.tasks, wcet.len() / self.tasks);
        assert!(wcet.len() == deadline.len() && wcet.len() == period.len(), "as many of each");
        assert!(wcet.len().is_multiple_of(tasks), "whole sets");
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if threads == 0 { cores } else { threads }.min(count.div_ceil(BLOCK));
        let size = BLOCK * tasks;
        let blocks = wcet.chunks_mut(size).zip(deadline.chunks_mut(size)).zip(period.chunks_mut(size));
        let blocks = Mutex::new(blocks.enumerate());
        let work = || {
            let (mut vectors, mut shares) = (vectors.clone(), vec![0.0; tasks]);
            loop {
                let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((block, ((wcet, deadline), period))) = next else { return };
                let sets =
                    wcet.chunks_mut(tasks).zip(deadline.chunks_mut(tasks)).zip(period.chunks_mut(tasks));
                for (place, ((wcet, deadline), period)) in sets.enumerate() {
                    let number = first.wrapping_add((block * BLOCK + place) as u64);
                    let mut random = Random::of_item(self.seed, number);
                    vectors.draw(&mut random, &mut shares);
                    for task in 0..tasks {
                        period[task] = self.period(&mut random);
                        wcet[task] = ((shares[task] * period[task] as f64) as u64).max(1);
                        deadline[task] = self.deadline(wcet[task], period[task], &mut random);
                    }
                }
            }
        };
        if threads <= 1 {
            work();
        } else {
            std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        }
        Ok(())
    }

    fn period(&self, random: &mut Random) -> u64 {
        match self.periods {
            Periods::LogUniform { shortest, longest, granularity } => {
                random.log_uniform(shortest, longest) / granularity * granularity
            }
            Periods::Harmonic { shortest, longest } => {
                shortest << random.between(0, u64::from((longest / shortest).ilog2()))
            }
            Periods::Automotive => {
                let mut at = random.below(85);
                let found = AUTOMOTIVE.into_iter().find(|&(_, share)| {
                    let is_here = at < share;
                    at = at.wrapping_sub(share);
                    is_here
                });
                found.map_or(1_000, |(period, _)| period) * 1_000_000
            }
        }
    }

    fn deadline(&self, wcet: u64, period: u64, random: &mut Random) -> u64 {
        match self.deadlines {
            BatchDeadlines::UpToPeriod(Deadlines::Implicit) => period,
            BatchDeadlines::UpToPeriod(Deadlines::Constrained { least_ppm }) => {
                let slack = period.saturating_sub(wcet);
                let least = (u128::from(slack) * u128::from(least_ppm.min(1_000_000)) / 1_000_000) as u64;
                // A share above 1 asks for more than its period: its deadline is the period.
                random.between(period - slack + least, period)
            }
            BatchDeadlines::Arbitrary { factor_ppm } => {
                let most = (u128::from(period) * u128::from(factor_ppm) / 1_000_000) as u64;
                random.between(wcet, most.max(wcet))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Batch = Batch {
        tasks: 5,
        utilisation: 0.8,
        method: Method::UuniFastDiscard,
        bounds: None,
        periods: Periods::LogUniform { shortest: 1_000_000, longest: 100_000_000, granularity: 1_000 },
        deadlines: BatchDeadlines::UpToPeriod(Deadlines::Implicit),
        seed: 7,
    };

    fn drawn(batch: &Batch, first: u64, count: usize, threads: usize) -> [Vec<u64>; 3] {
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array| array.resize(count * batch.tasks, 0));
        let [wcet, deadline, period] = &mut arrays;
        batch.draw(first, [wcet, deadline, period], threads).expect("good");
        arrays
    }

    #[test]
    fn a_batch_is_the_same_on_any_number_of_threads_and_in_parts() {
        let whole = drawn(&BATCH, 0, 700, 1);
        assert_eq!(drawn(&BATCH, 0, 700, 3), whole);
        let rest = drawn(&BATCH, 300, 400, 0);
        for (rest, whole) in rest.iter().zip(&whole) {
            assert_eq!(rest[..], whole[300 * 5..]);
        }
        assert_ne!(drawn(&Batch { seed: 8, ..BATCH }, 0, 700, 1), whole);
    }

    #[test]
    fn values_lie_where_they_have_to() {
        let arbitrary = Batch { deadlines: BatchDeadlines::Arbitrary { factor_ppm: 2_000_000 }, ..BATCH };
        let constrained = BatchDeadlines::UpToPeriod(Deadlines::Constrained { least_ppm: 500_000 });
        let constrained = Batch { deadlines: constrained, ..BATCH };
        for (batch, most) in [(BATCH, 1), (arbitrary.clone(), 2), (constrained.clone(), 1)] {
            let [wcet, deadline, period] = drawn(&batch, 0, 2_000, 0);
            for ((&c, &d), &t) in wcet.iter().zip(&deadline).zip(&period) {
                assert!((1_000_000..=100_000_000).contains(&t) && t % 1_000 == 0);
                assert!(1 <= c && c <= d && d <= most * t, "{c} {d} {t}");
                assert!(batch != BATCH || d == t);
                assert!(batch != constrained || d >= c + (t - c) / 2);
            }
            let behind = deadline.iter().zip(&period).filter(|(d, t)| d > t).count();
            assert_eq!(behind > 3_000, batch == arbitrary, "{behind} of 10000 behind the period");
            for set in 0..2_000 {
                let range = set * 5..set * 5 + 5;
                let total: f64 = range.map(|at| wcet[at] as f64 / period[at] as f64).sum();
                assert!((total - 0.8).abs() < 6e-6, "{total}");
            }
        }
    }

    #[test]
    fn harmonic_periods_divide_each_other_and_automotive_ones_have_their_shares() {
        let harmonic = Periods::Harmonic { shortest: 3_000, longest: 24_000 };
        let [_, _, period] = drawn(&Batch { periods: harmonic, ..BATCH }, 0, 1_000, 0);
        for one in [3_000, 6_000, 12_000, 24_000] {
            let count = period.iter().filter(|&&period| period == one).count();
            assert!((1_100..1_400).contains(&count), "{one}: {count} of 5000");
        }
        let [_, _, period] = drawn(&Batch { periods: Periods::Automotive, ..BATCH }, 0, 17_000, 0);
        for (ms, share) in AUTOMOTIVE {
            let count = period.iter().filter(|&&period| period == ms * 1_000_000).count() as f64;
            let expected = share as f64 * 1_000.0;
            assert!(
                (count - expected).abs() < 5.0 * expected.sqrt(),
                "{ms} ms: {count}, expected {expected}"
            );
        }
        assert_eq!(AUTOMOTIVE.iter().map(|entry| entry.1).sum::<u64>(), 85);
    }

    #[test]
    fn flaws_begin_with_the_argument() {
        let periods = |shortest, longest, granularity| Batch {
            periods: Periods::LogUniform { shortest, longest, granularity },
            ..BATCH
        };
        let factor = |factor_ppm| Batch { deadlines: BatchDeadlines::Arbitrary { factor_ppm }, ..BATCH };
        for (batch, argument) in [
            (Batch { tasks: 0, ..BATCH }, "tasks: "),
            (Batch { utilisation: f64::NAN, ..BATCH }, "utilisation: "),
            (periods(10, 20, 0), "granularity: "),
            (periods(10, 20, 11), "granularity: "),
            (periods(0, 20, 1), "granularity: "),
            (periods(21, 20, 1), "longest_period: "),
            (periods(20, LONGEST_NS + 1, 1), "longest_period: "),
            (factor(0), "factor: "),
            (factor(MOST_FACTOR_PPM + 1), "factor: "),
        ] {
            let flaw = batch.flaw().expect("a flaw");
            assert!(flaw.starts_with(argument), "{flaw}");
            assert_eq!(batch.draw(0, [&mut [0; 5], &mut [0; 5], &mut [0; 5]], 1), Err(flaw));
        }
        for batch in [periods(10, 20, 10), periods(20, 20, 1), factor(1), factor(MOST_FACTOR_PPM)] {
            assert_eq!(batch.flaw(), None);
        }
    }
}
