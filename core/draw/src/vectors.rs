//! Vectors of utilisations with a given sum, as published generators draw them.
//!
//! | method | distribution | source |
//! |---|---|---|
//! | [`Method::UuniFast`] | uniform over {u ≥ 0, Σ u = U}; for U > 1 a share may be above 1 | `bini05` |
//! | [`Method::UuniFastDiscard`] | the same without the vectors that have a share above 1 | `davis09` |
//! | [`Method::RandFixedSum`] | uniform over {0 ≤ u ≤ 1, Σ u = U}, without drawing again | `emberson10` |
//! | [`Method::ConvolutionalFixedSum`] | uniform over {l ≤ u ≤ h, Σ u = U}, with bounds of each task's own | `griffin25` |
//! | [`Method::DirichletRescale`] | within the same bounds, **not uniform** | `griffin20`, `griffin25` |
//!
//! Three of them have one distribution where bounds are 0 and 1, by ways that share no code: each is the others' check.
//!
//! The first three are written without powers. UUniFast's are the spacings of sorted uniform numbers, as in
//! [`shares`](crate::task_set::shares). In Stafford's algorithm the factors r^(1/i), i = n-1 … 1, are the ratios of the order
//! statistics of n - 1 uniform numbers, from the largest down, so sorted numbers stand for their products. What is left are
//! operations that IEEE 754 rounds the same way everywhere: the numbers of a seed are the same on every machine. The same holds for
//! the last two, which add, multiply and divide alone, for `exp` and `ln` too.

use crate::bounded::{Reduced, STEPS, spacings};
use crate::dirichlet_rescale::DirichletRescale;
use crate::tilted::Tilted;
use crate::{Random, TaskSetRecipe};

/// How utilisations are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// UUniFast.
    UuniFast,
    /// UUniFast, drawn again where a share is above 1.
    UuniFastDiscard,
    /// Stafford's RandFixedSum with shares from 0 to 1.
    RandFixedSum,
    /// Uniform within bounds of each task's own.
    ConvolutionalFixedSum,
    /// Within bounds of each task's own; not uniform.
    DirichletRescale,
}

/// The most tasks of the methods within bounds: RandFixedSum's table has n² entries, whose products stay in the range of an `f64`.
const MOST_OF_TABLE: usize = 200;
/// The most tasks of the others.
const MOST_TASKS: usize = 1_000;

impl Method {
    /// Every method.
    pub const ALL: [Method; 5] = [
        Method::UuniFast,
        Method::UuniFastDiscard,
        Method::RandFixedSum,
        Method::ConvolutionalFixedSum,
        Method::DirichletRescale,
    ];

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Method::UuniFast => "uunifast",
            Method::UuniFastDiscard => "uunifast-discard",
            Method::RandFixedSum => "randfixedsum",
            Method::ConvolutionalFixedSum => "convolutionalfixedsum",
            Method::DirichletRescale => "dirichlet-rescale",
        }
    }

    /// Whether it takes bounds of the shares.
    #[must_use]
    pub fn takes_bounds(self) -> bool {
        matches!(self, Method::ConvolutionalFixedSum | Method::DirichletRescale)
    }

    /// The method of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.word() == word)
    }
}

/// Draws vectors of one length and sum; nothing is allocated by drawing.
#[derive(Clone, Debug)]
pub struct Vectors {
    method: Method,
    tasks: usize,
    utilisation: f64,
    cuts: Vec<u64>,
    /// t(i, j) of Stafford's algorithm: row i - 1 from column (i - 1) n.
    table: Vec<f64>,
    within: Option<Within>,
}

/// What the methods with bounds have prepared.
#[derive(Clone, Debug)]
enum Within {
    Tilted(Tilted),
    Rescale(DirichletRescale),
}

impl Vectors {
    /// Prepares drawing vectors of `tasks` shares with the sum `utilisation`; where the method takes bounds, they are 0 and 1.
    ///
    /// # Errors
    /// In words: no task or too many, a sum that is not above 0, or one that no such vectors have, or none within a lifetime.
    ///
    /// ```
    /// use horolog_draw::{Method, Random, Vectors};
    /// let mut vectors = Vectors::new(Method::RandFixedSum, 4, 2.5)?;
    /// let mut drawn = [0.0; 4];
    /// vectors.draw(&mut Random::new(1), &mut drawn);
    /// assert!((drawn.iter().sum::<f64>() - 2.5).abs() < 1e-12 && drawn.iter().all(|u| (0.0..=1.0).contains(u)));
    /// # Ok::<(), String>(())
    /// ```
    pub fn new(method: Method, tasks: usize, utilisation: f64) -> Result<Vectors, String> {
        Vectors::check(method, tasks, utilisation)?;
        if method.takes_bounds() {
            return Vectors::bounded(method, utilisation, &vec![0.0; tasks], &vec![1.0; tasks]);
        }
        if method == Method::UuniFastDiscard {
            // The recipe counts in parts per billion; what it refuses is no matter of less.
            let utilisation_ppb = ((utilisation * 1e9) as u64).max(1);
            let recipe = TaskSetRecipe { tasks, ..TaskSetRecipe::bench(utilisation_ppb) };
            if let Some(flaw) = recipe.flaw() {
                return Err(format!("utilisation: {flaw}, or draw by randfixedsum"));
            }
        }
        let table = if method == Method::RandFixedSum { table(tasks, utilisation) } else { Vec::new() };
        Ok(Vectors { method, tasks, utilisation, cuts: vec![0; tasks - 1], table, within: None })
    }

    /// Prepares drawing vectors with the sum `utilisation` whose shares have these bounds, one of each a task.
    ///
    /// # Errors
    /// In words: a method that takes no bounds, no task or too many, bounds that are none, a sum that no such vectors have, or, of
    /// [`Method::DirichletRescale`], one that hardly a draw comes to.
    ///
    /// ```
    /// use horolog_draw::{Method, Random, Vectors};
    /// let (lower, upper) = ([0.1, 0.0, 0.25], [0.2, 1.0, 0.25]);
    /// let mut vectors = Vectors::bounded(Method::ConvolutionalFixedSum, 0.9, &lower, &upper)?;
    /// let mut drawn = [0.0; 3];
    /// vectors.draw(&mut Random::new(1), &mut drawn);
    /// assert!((0.1..=0.2).contains(&drawn[0]) && drawn[2] == 0.25 && (drawn.iter().sum::<f64>() - 0.9).abs() < 1e-15);
    /// # Ok::<(), String>(())
    /// ```
    pub fn bounded(
        method: Method,
        utilisation: f64,
        lower: &[f64],
        upper: &[f64],
    ) -> Result<Vectors, String> {
        let tasks = lower.len();
        let reduced = Vectors::reduce(method, utilisation, lower, upper)?;
        let within = if method == Method::ConvolutionalFixedSum {
            Within::Tilted(Tilted::new(reduced))
        } else {
            Within::Rescale(DirichletRescale::new(reduced)?)
        };
        let (cuts, table) = (Vec::new(), Vec::new());
        Ok(Vectors { method, tasks, utilisation, cuts, table, within: Some(within) })
    }

    /// What is wrong with a number of tasks and a sum without bounds.
    pub(crate) fn check(method: Method, tasks: usize, utilisation: f64) -> Result<(), String> {
        check(method, tasks, utilisation)?;
        if !utilisation.is_finite() || utilisation <= 0.0 || utilisation > tasks as f64 {
            return Err(format!(
                "utilisation: {utilisation} is not above 0 and at most {tasks}, the number of tasks"
            ));
        }
        Ok(())
    }

    /// The problem without its lower bounds, before any table is made; what is wrong with it.
    pub(crate) fn reduce(
        method: Method,
        utilisation: f64,
        lower: &[f64],
        upper: &[f64],
    ) -> Result<Reduced, String> {
        check(method, lower.len(), utilisation)?;
        if !method.takes_bounds() {
            return Err(format!(
                "method: {} takes no bounds of shares; convolutionalfixedsum does",
                method.word()
            ));
        }
        Reduced::of(lower.len(), utilisation, lower, upper)
    }

    /// Draws one vector into `shares`.
    ///
    /// # Panics
    /// Where `shares` has another length than the vectors.
    pub fn draw(&mut self, random: &mut Random, shares: &mut [f64]) {
        assert_eq!(shares.len(), self.tasks, "one share a task");
        match (&mut self.within, self.method) {
            (Some(Within::Tilted(drawn)), _) => drawn.draw(random, shares),
            (Some(Within::Rescale(drawn)), _) => drawn.draw(random, shares),
            (None, Method::RandFixedSum) => self.fixed_sum(random, shares),
            (None, method) => loop {
                spacings(random, &mut self.cuts, self.utilisation, shares);
                if method == Method::UuniFast || shares.iter().all(|&share| share <= 1.0) {
                    return;
                }
            },
        }
    }

    /// n - 1 uniform numbers of 53 binary digits, sorted.
    fn cut(&mut self, random: &mut Random) {
        self.cuts.iter_mut().for_each(|cut| *cut = random.next_u64() >> 11);
        self.cuts.sort_unstable();
    }

    fn fixed_sum(&mut self, random: &mut Random, shares: &mut [f64]) {
        self.cut(random);
        let tasks = self.tasks;
        let whole = whole_part(tasks, self.utilisation);
        let mut rest = self.utilisation;
        let (mut column, mut sum, mut product) = (whole, 0.0, 1.0);
        for step in (1..tasks).rev() {
            let chance = self.table[(step - 1) * tasks + column];
            let uniform = (random.next_u64() >> 11) as f64 / STEPS;
            // In the first column the rest is below 1: there is nothing to take off.
            let is_taken = column > 0 && uniform < chance;
            let next = self.cuts[step - 1] as f64 / STEPS;
            sum += (product - next) * rest / (step + 1) as f64;
            product = next;
            shares[tasks - 1 - step] = (sum + if is_taken { product } else { 0.0 }).min(1.0);
            if is_taken {
                rest -= 1.0;
                column -= 1;
            }
        }
        shares[tasks - 1] = (sum + product * rest).clamp(0.0, 1.0);
        for last in (1..tasks).rev() {
            let other = random.below(last as u64 + 1) as usize;
            shares.swap(last, other);
        }
    }
}

/// What is wrong with a number of tasks or a sum, whatever the bounds are.
fn check(method: Method, tasks: usize, utilisation: f64) -> Result<(), String> {
    let has_table = method == Method::RandFixedSum || method.takes_bounds();
    let most = if has_table { MOST_OF_TABLE } else { MOST_TASKS };
    if tasks == 0 || tasks > most {
        return Err(format!("tasks: {} draws from 1 to {most} of them, not {tasks}", method.word()));
    }
    if !utilisation.is_finite() || utilisation < 0.0 {
        return Err(format!("utilisation: {utilisation} is no sum of shares"));
    }
    Ok(())
}

/// k of Stafford's algorithm: the whole part of the sum, at most n - 1.
fn whole_part(tasks: usize, sum: f64) -> usize {
    (sum.floor() as usize).min(tasks - 1)
}

/// The chances t(i, j) (Stafford 2006; Emberson, Stafford and Davis 2010, section 3.2).
fn table(tasks: usize, sum: f64) -> Vec<f64> {
    let (n, k) = (tasks, whole_part(tasks, sum));
    let below: Vec<f64> = (0..n).map(|i| sum - (k as f64 - i as f64)).collect();
    let above: Vec<f64> = (0..n).map(|i| (k + n - i) as f64 - sum).collect();
    let mut weights = vec![0.0_f64; n + 1];
    weights[1] = f64::MAX;
    let mut chances = vec![0.0; n.saturating_sub(1) * n];
    for i in 2..=n {
        let before = weights.clone();
        for j in 0..i {
            let first = before[j + 1] * below[j] / i as f64;
            let second = before[j] * above[n - i + j] / i as f64;
            let total = first + second;
            weights[j + 1] = total;
            let total = total + f64::from_bits(1);
            chances[(i - 2) * n + j] =
                if above[n - i + j] > below[j] { second / total } else { 1.0 - first / total };
        }
    }
    chances
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn drawn(method: Method, tasks: usize, sum: f64, count: usize, seed: u64) -> Vec<Vec<f64>> {
        drawn_by(Vectors::new(method, tasks, sum).expect("good"), count, seed)
    }

    /// `count` draws of each share.
    pub(crate) fn drawn_by(mut vectors: Vectors, count: usize, seed: u64) -> Vec<Vec<f64>> {
        let (tasks, sum) = (vectors.tasks, vectors.utilisation);
        let mut random = Random::new(seed);
        let mut shares = vec![0.0; tasks];
        let mut all = vec![Vec::with_capacity(count); tasks];
        for _ in 0..count {
            vectors.draw(&mut random, &mut shares);
            assert!((shares.iter().sum::<f64>() - sum).abs() < 1e-9, "{shares:?}");
            all.iter_mut().zip(&shares).for_each(|(all, &share)| all.push(share));
        }
        all
    }

    /// The largest distance of an empirical distribution from one on paper.
    pub(crate) fn distance_to(drawn: &mut [f64], paper: impl Fn(f64) -> f64) -> f64 {
        drawn.sort_unstable_by(f64::total_cmp);
        let count = drawn.len() as f64;
        let at = |(index, &x): (usize, &f64)| {
            let (wanted, before) = (paper(x), index as f64 / count);
            (wanted - before).abs().max((wanted - before - 1.0 / count).abs())
        };
        drawn.iter().enumerate().map(at).fold(0.0, f64::max)
    }

    /// The largest distance of two empirical distributions.
    pub(crate) fn distance(left: &mut [f64], right: &mut [f64]) -> f64 {
        left.sort_unstable_by(f64::total_cmp);
        right.sort_unstable_by(f64::total_cmp);
        let (mut at, mut most) = (0, 0.0_f64);
        for (index, value) in left.iter().enumerate() {
            while right.get(at).is_some_and(|other| other < value) {
                at += 1;
            }
            let part = |count: usize, of: usize| count as f64 / of as f64;
            let other = part(at, right.len());
            most = most.max((part(index, left.len()) - other).abs());
            most = most.max((part(index + 1, left.len()) - other).abs());
        }
        most
    }

    /// The distance that 10^-4 of samples exceed by chance, `tests` of them together (Kolmogorov, Bonferroni).
    pub(crate) fn limit(left: f64, right: f64, tests: usize) -> f64 {
        (-0.5 * (1e-4 / tests as f64 / 2.0).ln() * (left + right) / (left * right)).sqrt()
    }

    #[test]
    fn every_marginal_of_two_uniform_methods_is_the_same() {
        const COUNT: usize = 20_000;
        let cases = [(2, 0.7), (3, 1.4), (3, 1.0), (5, 2.4), (10, 0.95), (10, 3.5)];
        let tests = cases.iter().map(|case| case.0).sum::<usize>() + 1;
        for (seed, (tasks, sum)) in (21..).zip(cases) {
            let mut left = drawn(Method::UuniFastDiscard, tasks, sum, COUNT, seed);
            let mut right = drawn(Method::RandFixedSum, tasks, sum, COUNT, seed + 100);
            let most = limit(COUNT as f64, COUNT as f64, tests);
            for (left, right) in left.iter_mut().zip(&mut right) {
                let found = distance(left, right);
                assert!(found < most, "{tasks} tasks, {sum}: {found} of {most}");
                assert!(right.iter().all(|share| (0.0..=1.0).contains(share)));
            }
        }
    }

    #[test]
    fn the_marginal_of_uunifast_is_the_one_on_paper() {
        // P(u > x) = (1 - x/U)^(n-1).
        const COUNT: usize = 20_000;
        for (tasks, sum) in [(2, 0.5), (4, 1.0), (7, 2.0)] {
            for shares in &mut drawn(Method::UuniFast, tasks, sum, COUNT, 3) {
                let found = distance_to(shares, |x| 1.0 - (1.0 - x / sum).max(0.0).powi(tasks as i32 - 1));
                assert!(found < limit(COUNT as f64, 1e12, 13), "{tasks}, {sum}: {found}");
            }
        }
    }

    #[test]
    fn high_sums_and_many_tasks_are_drawn_by_randfixedsum() {
        for (tasks, sum) in
            [(1, 0.3), (1, 1.0), (2, 2.0), (4, 3.999), (200, 100.0), (200, 199.5), (200, 0.01)]
        {
            for (task, shares) in drawn(Method::RandFixedSum, tasks, sum, 200, 9).into_iter().enumerate() {
                let inside = shares.iter().all(|share| (0.0..=1.0).contains(share));
                assert!(inside, "{tasks}, {sum}, task {task}: {shares:?}");
                // By symmetry every share has the mean U/n.
                let mean = shares.iter().sum::<f64>() / 200.0;
                assert!((mean - sum / tasks as f64).abs() < 0.12, "{tasks}, {sum}: {mean}");
            }
        }
    }

    #[test]
    fn the_limit_of_a_share_is_one() {
        let above = drawn(Method::UuniFast, 2, 1.5, 300, 1);
        assert!(above[0].iter().any(|&share| share > 1.0));
        let within = drawn(Method::UuniFastDiscard, 2, 1.0, 300, 1);
        assert!(within.iter().flatten().all(|&share| share <= 1.0));
    }

    #[test]
    fn bad_arguments_are_named() {
        for method in Method::ALL {
            assert_eq!(Method::of_word(method.word()), Some(method));
            for bad in [0.0, -0.5, f64::NAN, f64::INFINITY, 3.000_001] {
                let flaw = Vectors::new(method, 3, bad).expect_err("bad");
                assert!(flaw.starts_with("utilisation: "), "{flaw}");
            }
            assert!(Vectors::new(method, 0, 0.5).expect_err("bad").starts_with("tasks: "));
            assert!(Vectors::new(method, 1_001, 0.5).expect_err("bad").starts_with("tasks: "));
        }
        assert!(Vectors::new(Method::RandFixedSum, 201, 0.5).is_err());
        assert!(Vectors::new(Method::UuniFast, 1_000, 0.5).is_ok());
        assert!(Vectors::new(Method::UuniFastDiscard, 100, 50.0).is_err());
        assert_eq!(Method::of_word("uniform"), None);
    }
}
