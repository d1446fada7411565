//! The task sets of the study: drawn once for a load, and inflated by each reading of what a low task's section has to be proved with.
//!
//! All times are whole nanoseconds and every ratio is exact: a utilisation is a whole number of billionths, a unit of the published
//! periods is [`UNIT`] ns, so C = u · T, its half, its fifth and their products with 6/5, 3/2 and 2 are whole.

use horolog_draw::Random;

/// The factors of the published periods.
pub(super) const FACTORS: [u64; 7] = [2, 3, 4, 6, 8, 9, 12];
/// All published periods divide this many units.
pub(super) const HYPERPERIOD: u64 = 5_184;
/// Nanoseconds of a unit: a hundred for each billionth of utilisation.
pub(super) const UNIT: u64 = 100 * BILLION;
pub(super) const BILLION: u64 = 1_000_000_000;

/// A published ratio of high to low execution times, and the share of high tasks that goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ratio {
    /// r in tenths.
    pub(super) tenths: u64,
    /// The share of high tasks, per cent.
    pub(super) high_percent: u64,
}

pub(super) const RATIOS: [Ratio; 3] = [
    Ratio { tenths: 12, high_percent: 83 },
    Ratio { tenths: 15, high_percent: 67 },
    Ratio { tenths: 20, high_percent: 50 },
];

impl Ratio {
    /// r, for tables.
    pub(super) fn value(self) -> f64 {
        self.tenths as f64 / 10.0
    }

    fn times(self, time: u64) -> u64 {
        time / 10 * self.tenths
    }

    /// Of n tasks so many are high: the share of n, rounded to the nearest.
    pub(super) fn high_of(self, tasks: usize) -> usize {
        (tasks * self.high_percent as usize + 50) / 100
    }
}

/// What the low tasks' execution times are in the proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// With transactions: the low ones.
    Transactions,
    /// Without: the whole job takes r times as long.
    Job,
    /// Without: its critical section alone does.
    Section,
}

/// How many tasks a set has, and which of them are high: what the source leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Recipe {
    pub(super) tasks: (u64, u64),
    /// Each task is high with the probability of the share; else so many of a set are.
    pub(super) by_chance: bool,
}

/// What this study takes.
pub(super) const OURS: Recipe = Recipe { tasks: (2, 10), by_chance: false };

/// A task before it is high or low.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Drawn {
    /// Billionths.
    pub(super) utilisation: u64,
    /// Units.
    pub(super) period: u64,
    /// The tasks whose rank is below the number of high ones are high.
    pub(super) rank: usize,
    /// Of a hundred.
    chance: u64,
}

/// A task as it is proved, in nanoseconds; its deadline is its period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Task {
    pub(super) period: u64,
    /// Before the section.
    pub(super) outside: u64,
    /// Inside.
    pub(super) inside: u64,
    pub(super) is_high: bool,
}

impl Task {
    pub(super) fn wcet(&self) -> u64 {
        self.outside + self.inside
    }
}

/// The set number `index` of a load, in billionths.
///
/// Utilisations are uniform over all ways to share the load, which is the distribution of UUniFast (key bini05). A draw with a utilisation of zero, or above 1, is drawn again.
pub(super) fn draw(load: u64, recipe: Recipe, seed: u64, index: u64) -> Vec<Drawn> {
    let mut random = Random::of_item(seed, index);
    let count = random.between(recipe.tasks.0, recipe.tasks.1).max(load.div_ceil(BILLION)) as usize;
    let shares = loop {
        let shares = horolog_draw::shares(load, count, &mut random);
        if shares.iter().all(|share| (1..=BILLION).contains(share)) {
            break shares;
        }
    };
    let mut ranks: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        ranks.swap(last, random.below(last as u64 + 1) as usize);
    }
    let mut factor = || FACTORS[random.below(FACTORS.len() as u64) as usize];
    let periods: Vec<u64> = (0..count).map(|_| factor() * factor()).collect();
    let place = |(index, utilisation): (usize, u64)| Drawn {
        utilisation,
        period: periods[index],
        rank: ranks[index],
        chance: random.below(100),
    };
    shares.into_iter().enumerate().map(place).collect()
}

/// The tasks of a set in a reading; of a hundred parts of a job `inside` are in the section.
pub(super) fn tasks(
    drawn: &[Drawn],
    ratio: Ratio,
    recipe: Recipe,
    reading: Reading,
    inside: u64,
) -> Vec<Task> {
    let high = ratio.high_of(drawn.len());
    let of = |task: &Drawn| {
        let is_high = if recipe.by_chance { task.chance < ratio.high_percent } else { task.rank < high };
        let part = task.utilisation * task.period;
        let (outside, inside) = (part * (100 - inside), part * inside);
        let (outside, inside) = match reading {
            Reading::Job if !is_high => (ratio.times(outside), ratio.times(inside)),
            Reading::Section if !is_high => (outside, ratio.times(inside)),
            _ => (outside, inside),
        };
        Task { period: task.period * UNIT, outside, inside, is_high }
    };
    drawn.iter().map(of).collect()
}

/// The high tasks with their high execution times: what is left in high mode.
pub(super) fn in_high_mode(tasks: &[Task], ratio: Ratio) -> Vec<Task> {
    let times = |time| ratio.times(time);
    let of = |task: &Task| Task { outside: times(task.outside), inside: times(task.inside), ..*task };
    tasks.iter().filter(|task| task.is_high).map(of).collect()
}

/// The load in parts of 1 / ([`HYPERPERIOD`] · [`UNIT`]): exact.
pub(super) fn load(tasks: &[Task]) -> u128 {
    let whole = u128::from(HYPERPERIOD * UNIT);
    tasks.iter().map(|task| u128::from(task.wcet()) * (whole / u128::from(task.period))).sum()
}

/// A load of 1 in these parts.
pub(super) const FULL: u128 = HYPERPERIOD as u128 * UNIT as u128;

/// The least common multiple of the periods, ns.
pub(super) fn hyperperiod(tasks: &[Task]) -> u64 {
    tasks.iter().map(|task| task.period).fold(UNIT, |all, period| all / gcd(all, period) * period)
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_load_to_the_last_billionth_and_whole_times() {
        for (index, load_of) in [(0, BILLION / 2), (1, BILLION), (2, 3 * BILLION / 2)] {
            for index in index * 100..index * 100 + 100 {
                let drawn = draw(load_of, OURS, 7, index);
                assert!((2..=10).contains(&drawn.len()));
                let all = tasks(&drawn, RATIOS[2], OURS, Reading::Transactions, 50);
                assert_eq!(load(&all) * u128::from(BILLION), u128::from(load_of) * FULL);
                assert!(
                    hyperperiod(&all) <= HYPERPERIOD * UNIT && FULL.is_multiple_of(u128::from(all[0].period))
                );
                for ratio in RATIOS {
                    let job = tasks(&drawn, ratio, OURS, Reading::Job, 50);
                    let section = tasks(&drawn, ratio, OURS, Reading::Section, 50);
                    for (low, (job, section)) in all.iter().zip(job.iter().zip(&section)) {
                        let r = if job.is_high { 10 } else { ratio.tenths };
                        assert_eq!(job.wcet() * 10, low.wcet() * r);
                        assert_eq!((section.outside, section.inside * 10), (low.outside, low.inside * r));
                    }
                    assert_eq!(job.iter().filter(|task| task.is_high).count(), ratio.high_of(drawn.len()));
                }
            }
        }
    }

    #[test]
    fn shares_of_high_tasks_are_rounded_to_the_nearest() {
        let of = |ratio: usize, tasks| RATIOS[ratio].high_of(tasks);
        assert_eq!([of(0, 2), of(0, 3), of(0, 10)], [2, 2, 8]);
        assert_eq!([of(1, 2), of(1, 3), of(1, 10)], [1, 2, 7]);
        assert_eq!([of(2, 2), of(2, 3), of(2, 10)], [1, 2, 5]);
    }
}
