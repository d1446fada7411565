//! Batches of task sets as three arrays, in parallel: for studies of millions of sets.
//!
//! Set number i of a seed is drawn by a generator of its own ([`Random::of_item`]), so a batch is the same on any number of threads,
//! and any part of it can be drawn again by itself.

use crate::vectors::{Method, Vectors};
use crate::{Deadlines, DrawnTask, Random, TaskSetRecipe};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Bounds of the utilisation of each task, for methods that take them: one a task, which hold for every set, or one a task of each set that is
/// drawn, set after set.
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

    /// What draws the shares of every set; `None` where each has bounds of its own.
    fn vectors(&self) -> Result<Option<Vectors>, String> {
        let Some(bounds) = &self.bounds else {
            return Vectors::new(self.method, self.tasks, self.utilisation).map(Some);
        };
        let (lower, upper) = (&bounds.lower, &bounds.upper);
        if lower.len() == self.tasks {
            return Vectors::bounded(self.method, self.utilisation, lower, upper).map(Some);
        }
        if lower.is_empty() || !lower.len().is_multiple_of(self.tasks.max(1)) {
            return Err(format!("lower: there are {} bounds of {} tasks", lower.len(), self.tasks));
        }
        if upper.len() != lower.len() {
            return Err(format!("upper: there are {} bounds, and {} lower ones", upper.len(), lower.len()));
        }
        for (set, (lower, upper)) in lower.chunks(self.tasks).zip(upper.chunks(self.tasks)).enumerate() {
            Vectors::reduce(self.method, self.utilisation, lower, upper)
                .map_err(|flaw| of_set(set, &flaw))?;
        }
        Ok(None)
    }

    /// The set with this number alone.
    ///
    /// # Errors
    /// The [flaw](Batch::flaw).
    pub fn draw_item(&self, number: u64) -> Result<Vec<DrawnTask>, String> {
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array: &mut Vec<u64>| array.resize(self.tasks, 0));
        let [wcet, deadline, period] = &mut arrays;
        self.draw(number, [wcet, deadline, period], 1)?;
        let tasks = wcet.iter().zip(deadline.iter()).zip(period.iter());
        Ok(tasks.map(|((&wcet, &deadline), &period)| DrawnTask { period, deadline, wcet }).collect())
    }

    /// What draws sets of it; `draw` prepares it for itself.
    ///
    /// # Errors
    /// The [flaw](Batch::flaw).
    pub fn prepare(&self) -> Result<Prepared, String> {
        let vectors = self.vectors()?;
        self.other_flaw().map_or(Ok(()), Err)?;
        let shares = match (vectors, &self.bounds) {
            (None, Some(bounds)) => Shares::Each(self.method, self.utilisation, Arc::new(bounds.clone())),
            (Some(vectors), _) => Shares::Alike(Box::new(vectors)),
            (None, None) => return Err("lower: no set has bounds".to_owned()),
        };
        let Batch { tasks, periods, deadlines, seed, .. } = *self;
        Ok(Prepared { shares, drawn: vec![0.0; tasks], periods, deadlines, seed })
    }

    fn other_flaw(&self) -> Option<String> {
        let (shortest, longest, granularity) = match self.periods {
            Periods::LogUniform { shortest, longest, granularity } => (shortest, longest, granularity),
            Periods::Harmonic { shortest, longest } => (shortest, longest, 1),
            Periods::Automotive => (1, 1, 1),
        };
        if shortest == 0 {
            return Some("shortest_period: 0 ns is not at least 1 ns".to_owned());
        }
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
        let prepared = self.prepare()?;
        let (tasks, count) = (self.tasks, wcet.len() / self.tasks);
        assert!(wcet.len() == deadline.len() && wcet.len() == period.len(), "as many of each");
        assert!(wcet.len().is_multiple_of(tasks), "whole sets");
        if let Shares::Each(_, _, bounds) = &prepared.shares
            && bounds.lower.len() != wcet.len()
        {
            let rows = bounds.lower.len() / tasks;
            return Err(format!("lower: there are bounds of {rows} sets, and {count} are drawn"));
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if threads == 0 { cores } else { threads }.min(count.div_ceil(BLOCK));
        let size = BLOCK * tasks;
        let blocks = wcet.chunks_mut(size).zip(deadline.chunks_mut(size)).zip(period.chunks_mut(size));
        let blocks = Mutex::new(blocks.enumerate());
        let flaw: Mutex<Option<(usize, String)>> = Mutex::new(None);
        let work = || {
            let mut prepared = prepared.clone();
            loop {
                let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((block, ((wcet, deadline), period))) = next else { return };
                if let Err(found) = prepared.rows(first, block * BLOCK, [wcet, deadline, period]) {
                    let mut flaw = flaw.lock().unwrap_or_else(PoisonError::into_inner);
                    // The first in the order of the sets, whoever finds one first.
                    if flaw.as_ref().is_none_or(|(other, _)| block < *other) {
                        *flaw = Some((block, found));
                    }
                }
            }
        };
        if threads <= 1 {
            work();
        } else {
            std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        }
        let flaw = flaw.into_inner().unwrap_or_else(PoisonError::into_inner);
        flaw.map_or(Ok(()), |(_, flaw)| Err(flaw))
    }
}

impl TaskSetRecipe {
    /// Sets of this recipe whose tasks have utilisations from `lower` to `upper`, uniform over all such vectors.
    #[must_use]
    pub fn within(&self, lower: f64, upper: f64, seed: u64) -> Batch {
        Batch {
            tasks: self.tasks,
            utilisation: self.utilisation_ppb as f64 / 1e9,
            method: Method::ConvolutionalFixedSum,
            bounds: Some(Bounds { lower: vec![lower; self.tasks], upper: vec![upper; self.tasks] }),
            periods: Periods::LogUniform {
                shortest: self.shortest_period.as_ns(),
                longest: self.longest_period.as_ns(),
                granularity: self.granularity.as_ns(),
            },
            deadlines: BatchDeadlines::UpToPeriod(self.deadlines),
            seed,
        }
    }
}

/// How the utilisations of sets are drawn.
#[derive(Clone, Debug)]
enum Shares {
    /// Of every set within the same bounds.
    Alike(Box<Vectors>),
    /// Of each set within its own.
    Each(Method, f64, Arc<Bounds>),
}

/// A flaw of one set's bounds, behind the argument.
fn of_set(set: usize, flaw: &str) -> String {
    match flaw.split_once(": ") {
        Some((argument @ ("lower" | "upper" | "utilisation"), reason)) => {
            format!("{argument}: set {set}: {reason}")
        }
        _ => flaw.to_owned(),
    }
}

/// What draws sets of a batch, one after the other; clones share its tables.
#[derive(Clone, Debug)]
pub struct Prepared {
    shares: Shares,
    drawn: Vec<f64>,
    periods: Periods,
    deadlines: BatchDeadlines,
    seed: u64,
}

impl Prepared {
    /// Draws sets from number `first` on into three arrays, as [`Batch::draw`] on one thread.
    ///
    /// # Errors
    /// Where each set has bounds of its own: those that have no vectors, or none within a lifetime.
    ///
    /// # Panics
    /// Where the arrays differ in length, the last set is not whole, or there are bounds of fewer sets.
    pub fn draw(&mut self, first: u64, arrays: [&mut [u64]; 3]) -> Result<(), String> {
        self.rows(first, 0, arrays)
    }

    /// Sets from `row` on of those that begin with number `first`.
    fn rows(
        &mut self,
        first: u64,
        row: usize,
        [wcet, deadline, period]: [&mut [u64]; 3],
    ) -> Result<(), String> {
        let tasks = self.drawn.len();
        assert!(wcet.len() == deadline.len() && wcet.len() == period.len(), "as many of each");
        let sets = wcet.chunks_mut(tasks).zip(deadline.chunks_mut(tasks)).zip(period.chunks_mut(tasks));
        for (place, ((wcet, deadline), period)) in sets.enumerate() {
            let place = row + place;
            let mut random = Random::of_item(self.seed, first.wrapping_add(place as u64));
            match &mut self.shares {
                Shares::Alike(vectors) => vectors.draw(&mut random, &mut self.drawn),
                Shares::Each(method, sum, bounds) => {
                    let own = place * tasks..(place + 1) * tasks;
                    let (lower, upper) = (&bounds.lower[own.clone()], &bounds.upper[own]);
                    let vectors = Vectors::bounded(*method, *sum, lower, upper);
                    let mut vectors = vectors.map_err(|flaw| of_set(place, &flaw))?;
                    vectors.draw(&mut random, &mut self.drawn);
                }
            }
            for task in 0..tasks {
                period[task] = self.period(&mut random);
                wcet[task] = ((self.drawn[task] * period[task] as f64) as u64).max(1);
                deadline[task] = self.deadline(wcet[task], period[task], &mut random);
            }
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
    fn bounds_of_each_set_are_those_of_a_batch_of_its_own() {
        let method = Method::ConvolutionalFixedSum;
        let row = |set: usize| -> Bounds {
            let lower = (0..5).map(|task| (set % 3 * task) as f64 / 100.0).collect();
            Bounds { lower, upper: vec![0.3 + (set % 4) as f64 / 10.0; 5] }
        };
        let rows: Vec<Bounds> = (0..600).map(row).collect();
        let all = Bounds {
            lower: rows.iter().flat_map(|row| row.lower.clone()).collect(),
            upper: rows.iter().flat_map(|row| row.upper.clone()).collect(),
        };
        let batch = |bounds: Bounds| Batch { method, bounds: Some(bounds), utilisation: 1.25, ..BATCH };
        let whole = drawn(&batch(all.clone()), 7, 600, 3);
        assert_eq!(drawn(&batch(all.clone()), 7, 600, 1), whole);
        for set in [0, 1, 255, 256, 257, 599] {
            let alone = drawn(&batch(rows[set].clone()), 7 + set as u64, 1, 1);
            for (alone, whole) in alone.iter().zip(&whole) {
                assert_eq!(alone[..], whole[set * 5..set * 5 + 5], "set {set}");
            }
            let item = batch(rows[set].clone()).draw_item(7 + set as u64).expect("good bounds");
            let wcets: Vec<u64> = item.iter().map(|task| task.wcet).collect();
            assert_eq!(
                (wcets, item[4].deadline, item[4].period),
                (alone[0].clone(), alone[1][4], alone[2][4])
            );
        }
        let told = |batch: &Batch, count: usize| {
            let mut arrays = [const { Vec::new() }; 3];
            arrays.iter_mut().for_each(|array| array.resize(count * 5, 0));
            let [wcet, deadline, period] = &mut arrays;
            batch.draw(0, [wcet, deadline, period], 2).expect_err("a flaw")
        };
        assert_eq!(told(&batch(all.clone()), 599), "lower: there are bounds of 600 sets, and 599 are drawn");
        let mut wrong = all.clone();
        wrong.upper[1_500..1_505].fill(0.24);
        assert!(told(&batch(wrong), 600).starts_with("utilisation: set 300: 1.25 is not from"));
        let mut wrong = all.clone();
        wrong.lower[2_998] = 0.9;
        assert!(told(&batch(wrong), 600).starts_with("upper: set 599: "));
        let ragged = Bounds { lower: vec![0.0; 11], upper: vec![1.0; 11] };
        assert_eq!(told(&batch(ragged), 600), "lower: there are 11 bounds of 5 tasks");
        let uneven = Bounds { lower: vec![0.0; 10], upper: vec![1.0; 15] };
        assert_eq!(told(&batch(uneven), 2), "upper: there are 15 bounds, and 10 lower ones");
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
            (periods(0, 20, 1), "shortest_period: "),
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
