//! Random task sets of a stated recipe, the same for ever from the same seed: what benches and published figures
//! draw from.
//!
//! - Utilisations: uniform over all ways to share the total, as UUniFast draws them (Bini and Buttazzo 2005; key
//!   bini05), by the spacings of sorted uniform numbers, which have the same distribution and need no powers.
//!   Sets with a task above a utilisation of 1 are drawn again (UUniFast-Discard; Davis and Burns 2009; key
//!   davis09), which matters only where the total is above 1.
//! - Periods: log-uniform (Emberson, Stafford and Davis 2010; key emberson10), rounded down to a multiple of the
//!   recipe's granularity.
//! - Execution times: utilisation times period, rounded down, at least 1 ns.
//! - Deadlines: the period, or uniform from a stated point between execution time and period up to the period.

use crate::Random;
use horolog_model::{
    Arrival, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Policy, Preemption, Priority,
    PriorityAssignment, SegmentGraph, System, Task,
};
use horolog_time::Span;

/// Parts of one ppb in which utilisations are drawn: fine enough that rounding shows nowhere.
const PARTS: u64 = 1 << 20;
/// Parts in a utilisation of 1.
const ONE: u64 = 1_000_000_000 * PARTS;
/// A set may take a mean of 10 to this power drawn shares, those of refused draws among them: about half a minute.
const MOST_SHARES_LOG10: f64 = 9.0;

/// Where deadlines lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadlines {
    /// At the period.
    Implicit,
    /// Uniform from C + s·(T - C) to T, with s in parts per million: 0 gives the whole range from C to T.
    Constrained {
        /// The share s.
        least_ppm: u32,
    },
}

/// How jobs may be preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreemptionRecipe {
    /// Anywhere.
    Preemptive,
    /// Nowhere.
    NonPreemptive,
    /// Between 1 to `max_segments` segments, the number uniform, the lengths uniform over all ways to share the
    /// execution time.
    Deferred {
        /// The most segments of a task, at least 1.
        max_segments: usize,
    },
}

/// What kind of task sets to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskSetRecipe {
    /// How many tasks, at least 1.
    pub tasks: usize,
    /// Their total utilisation in parts per billion.
    pub utilisation_ppb: u64,
    /// The shortest period.
    pub shortest_period: Span,
    /// The longest period.
    pub longest_period: Span,
    /// Periods are multiples of this.
    pub granularity: Span,
    /// Where deadlines lie.
    pub deadlines: Deadlines,
}

/// One task of a drawn set, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrawnTask {
    /// The period T.
    pub period: u64,
    /// The relative deadline D, from C to T.
    pub deadline: u64,
    /// The worst-case execution time C, at least 1.
    pub wcet: u64,
}

impl TaskSetRecipe {
    /// The sets of the benches: 10 tasks, periods log-uniform from 10 to 1000 ms in nanoseconds, deadlines uniform
    /// from C to T.
    #[must_use]
    pub fn bench(utilisation_ppb: u64) -> TaskSetRecipe {
        TaskSetRecipe {
            tasks: 10,
            utilisation_ppb,
            shortest_period: Span::from_ns(10_000_000),
            longest_period: Span::from_ns(1_000_000_000),
            granularity: Span::from_ns(1),
            deadlines: Deadlines::Constrained { least_ppm: 0 },
        }
    }

    /// The utilisations of the benches, in parts per billion: 0.60, 0.62, … 0.98.
    pub fn bench_utilisations() -> impl Iterator<Item = u64> + Clone {
        (0..20).map(|step| 600_000_000 + step * 20_000_000)
    }

    /// What is wrong with the recipe, in words; `None` where sets of it can be drawn.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let step = self.granularity.as_ns();
        if self.tasks == 0 {
            return Some("a set has a task at least".to_owned());
        }
        if self.utilisation_ppb == 0 || self.utilisation_ppb > self.tasks as u64 * 1_000_000_000 {
            return Some(format!(
                "a utilisation lies above 0 and, with {} tasks, at most at {}",
                self.tasks, self.tasks
            ));
        }
        // Above half of the tasks' most, nearly every set would have to be drawn again.
        if self.utilisation_ppb > 1_000_000_000 && self.utilisation_ppb > self.tasks as u64 * 500_000_000 {
            return Some(format!(
                "{} tasks are too few for so much utilisation: give two for each processor",
                self.tasks
            ));
        }
        if self.is_endless() {
            return Some(format!(
                "of 10^{:.0} draws of {} tasks with a utilisation of {} in all, one has no task above 1: give more tasks, or a \
                 utilisation of at most {}",
                self.draws_log10(),
                self.tasks,
                self.utilisation_ppb as f64 / 1e9,
                self.most_utilisation_ppb() as f64 / 1e9
            ));
        }
        if step == 0 || self.shortest_period.as_ns() < step || self.shortest_period > self.longest_period {
            return Some("periods go from a shorter to a longer one, none below the granularity".to_owned());
        }
        None
    }

    /// Whether drawing until a set has no task above 1 takes too long.
    fn is_endless(&self) -> bool {
        self.draws_log10() + (self.tasks as f64).log10() > MOST_SHARES_LOG10
    }

    /// The mean number of draws until a set has no task above 1, as a power of 10.
    ///
    /// Shares are uniform over the ways to share U among n tasks, so one draw in
    ///
    /// ```text
    /// (volume of the ways to share U) / (volume of those without a share above 1)
    ///     = (U^(n-1) / (n-1)!) / ((integral of e^(-θx), x from 0 to 1)^n e^(θU) f(U))
    /// ```
    ///
    /// is kept, for any θ. f is the density of the sum of n independent numbers from 0 to 1 with a density in proportion to e^(-θx).
    /// With the θ for which the mean of this sum is U, the sum is nearly normal, and f(U) is 1/√(2πnσ²): a saddle-point
    /// approximation, good to a few in a hundred from three tasks on.
    fn draws_log10(&self) -> f64 {
        let (count, total) = (self.tasks as f64, self.utilisation_ppb as f64 / 1e9);
        if total <= 1.0 {
            return 0.0;
        }
        // The mean falls with θ: from a half near 0 to 1/θ.
        let (mut low, mut high) = (1e-4, count);
        for _ in 0..64 {
            let tilt = f64::midpoint(low, high);
            let mean = tilt.recip() - tilt.exp_m1().recip();
            *(if mean > total / count { &mut low } else { &mut high }) = tilt;
        }
        let tilt = low;
        let variance = tilt.powi(-2) - (tilt.exp_m1() * -(-tilt).exp_m1()).recip();
        let normal = -0.5 * (std::f64::consts::TAU * count * variance).ln();
        let kept = count * (-(-tilt).exp_m1() / tilt).ln() + tilt * total + normal;
        let all = (count - 1.0) * total.ln() - (1..self.tasks).map(|n| (n as f64).ln()).sum::<f64>();
        (all - kept).max(0.0) * std::f64::consts::LOG10_E
    }

    /// The most hundredths of utilisation with which sets of so many tasks can be drawn.
    fn most_utilisation_ppb(&self) -> u64 {
        let hundredth = 10_000_000;
        let (mut good, mut bad) = (100, self.utilisation_ppb.div_ceil(hundredth));
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            let recipe = TaskSetRecipe { utilisation_ppb: middle * hundredth, ..*self };
            *(if recipe.is_endless() { &mut bad } else { &mut good }) = middle;
        }
        good * hundredth
    }

    /// Draws one set; its tasks are in the order in which they were drawn.
    ///
    /// # Panics
    /// Where the recipe has a [flaw](TaskSetRecipe::flaw) of its tasks, periods or granularity.
    ///
    /// ```
    /// use horolog_draw::{Random, TaskSetRecipe};
    /// let set = TaskSetRecipe::bench(700_000_000).draw(&mut Random::new(1));
    /// let utilisation: f64 = set.iter().map(|t| t.wcet as f64 / t.period as f64).sum();
    /// assert!((utilisation - 0.7).abs() < 1e-6);
    /// ```
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> Vec<DrawnTask> {
        let shares = self.utilisations(random);
        shares
            .into_iter()
            .map(|share| {
                let period = self.period(random);
                let wcet = (u128::from(share) * u128::from(period) / u128::from(ONE)) as u64;
                let wcet = wcet.clamp(1, period);
                let deadline = match self.deadlines {
                    Deadlines::Implicit => period,
                    Deadlines::Constrained { least_ppm } => {
                        let slack =
                            u128::from(period - wcet) * u128::from(least_ppm.min(1_000_000)) / 1_000_000;
                        random.between(wcet + slack as u64, period)
                    }
                };
                DrawnTask { period, deadline, wcet }
            })
            .collect()
    }

    /// The set number `index` of the series `seed`: any set can be drawn again without those before it.
    #[must_use]
    pub fn draw_item(&self, seed: u64, index: u64) -> Vec<DrawnTask> {
        self.draw(&mut Random::of_item(seed, index))
    }

    fn utilisations(&self, random: &mut Random) -> Vec<u64> {
        let total = self.utilisation_ppb.saturating_mul(PARTS);
        assert!(self.tasks > 0, "a set has a task");
        assert!(total <= ONE.saturating_mul(self.tasks as u64), "no task has a utilisation above 1");
        loop {
            let shares = shares(total, self.tasks, random);
            if shares.iter().all(|&share| share <= ONE) {
                return shares;
            }
        }
    }

    fn period(&self, random: &mut Random) -> u64 {
        let step = self.granularity.as_ns();
        let drawn = random.log_uniform(self.shortest_period.as_ns(), self.longest_period.as_ns());
        let period = drawn / step * step;
        assert!(period > 0, "a period is at least one step of the granularity");
        period
    }
}

/// Shares `total` among `count`, uniformly over all ways: the spacings of sorted uniform numbers (the distribution of UUniFast).
#[must_use]
pub fn shares(total: u64, count: usize, random: &mut Random) -> Vec<u64> {
    let mut cuts: Vec<u64> = (1..count).map(|_| random.between(0, total)).collect();
    cuts.push(total);
    cuts.sort_unstable();
    let mut before = 0;
    cuts.into_iter()
        .map(|cut| {
            let share = cut - before;
            before = cut;
            share
        })
        .collect()
}

/// The checked system of a drawn set on CPU 0: tasks `t1`, `t2`, …; under fixed priorities deadline-monotonic
/// ones, larger for shorter deadlines and, among equals, for the task drawn first.
///
/// # Panics
/// Never for a set that [`TaskSetRecipe::draw`] gave.
#[must_use]
pub fn system_of(
    set: &[DrawnTask],
    policy: Policy,
    preemption: PreemptionRecipe,
    random: &mut Random,
) -> System {
    let mut by_deadline: Vec<usize> = (0..set.len()).collect();
    by_deadline.sort_by_key(|&index| (set[index].deadline, index));
    let mut priority = vec![0_i64; set.len()];
    for (rank, &index) in by_deadline.iter().enumerate() {
        priority[index] = (set.len() - rank) as i64;
    }
    let tasks = set
        .iter()
        .enumerate()
        .map(|(index, drawn)| Task {
            name: format!("t{}", index + 1),
            arrival: Arrival::Periodic { period: Span::from_ns(drawn.period) },
            deadline: Some(Span::from_ns(drawn.deadline)),
            wcet: Span::from_ns(drawn.wcet),
            bcet: Span::from_ns(drawn.wcet),
            offset: None,
            jitter: Span::ZERO,
            priority: (policy == Policy::FixedPriority).then(|| Priority::new(priority[index])),
            cpu: horolog_model::CpuId(0),
            preemption: preemption_of(preemption, drawn.wcet, random),
            overrun: OverrunPolicy::Count,
            execution: ExecutionTimes::Wcet,
            criticality: None,
            promotion: None,
            sections: Vec::new(),
            is_soft: false,
            body: None,
        })
        .collect();
    let draft = Draft {
        name: "drawn".to_owned(),
        policy,
        priorities: PriorityAssignment::Explicit,
        platform: Platform { cpus: Cpus::Count(1), ..Platform::default() },
        tasks,
        ..Draft::default()
    };
    match System::new(draft) {
        Ok(system) => system,
        Err(errors) => panic!("a drawn set is a system: {errors:?}"),
    }
}

fn preemption_of(recipe: PreemptionRecipe, wcet: u64, random: &mut Random) -> Preemption {
    match recipe {
        PreemptionRecipe::Preemptive => Preemption::Preemptive,
        PreemptionRecipe::NonPreemptive => Preemption::NonPreemptive,
        PreemptionRecipe::Deferred { max_segments } => {
            let lengths = crate::parts::cut(wcet, max_segments as u64, random);
            let wcets: Vec<Span> = lengths.into_iter().map(Span::from_ns).collect();
            Preemption::Deferred(SegmentGraph::sequence(&wcets))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_utilisation_and_the_ranges_of_its_recipe() {
        for (index, utilisation_ppb) in TaskSetRecipe::bench_utilisations().enumerate() {
            let recipe = TaskSetRecipe::bench(utilisation_ppb);
            let set = recipe.draw_item(1, index as u64);
            assert_eq!(set.len(), 10);
            let total: f64 = set.iter().map(|task| task.wcet as f64 / task.period as f64).sum();
            assert!((total - utilisation_ppb as f64 / 1e9).abs() < 2e-6, "{total} for {utilisation_ppb}");
            for task in set {
                assert!((10_000_000..=1_000_000_000).contains(&task.period));
                assert!(1 <= task.wcet && task.wcet <= task.deadline && task.deadline <= task.period);
            }
        }
        assert_eq!(TaskSetRecipe::bench_utilisations().last(), Some(980_000_000));
    }

    #[test]
    fn utilisations_are_uniform_over_the_simplex() {
        // Of n uniform spacings of 1, one exceeds x with probability (1 - x)^(n - 1).
        let recipe = TaskSetRecipe { tasks: 4, ..TaskSetRecipe::bench(1_000_000_000) };
        let mut random = Random::new(3);
        let runs = 4_000;
        let mut above = [0; 4];
        for _ in 0..runs {
            for (count, share) in above.iter_mut().zip(recipe.utilisations(&mut random)) {
                *count += u32::from(share > ONE / 4);
            }
        }
        let expected = 0.75_f64.powi(3) * f64::from(runs);
        for count in above {
            assert!((f64::from(count) - expected).abs() < 0.08 * expected, "{count}, expected {expected}");
        }
    }

    #[test]
    fn shares_above_one_are_drawn_again() {
        let recipe = TaskSetRecipe { tasks: 3, ..TaskSetRecipe::bench(2_500_000_000) };
        let mut random = Random::new(4);
        for _ in 0..50 {
            let shares = recipe.utilisations(&mut random);
            assert!(shares.iter().all(|&share| share <= ONE));
            assert_eq!(shares.iter().sum::<u64>(), 2_500_000_000 * PARTS);
        }
    }

    #[test]
    fn the_mean_number_of_draws_is_that_of_drawing() {
        let cases = [(3, 1_100_000_000), (3, 1_500_000_000), (10, 4_000_000_000), (20, 9_500_000_000)];
        for (tasks, utilisation_ppb) in cases {
            let recipe = TaskSetRecipe { tasks, ..TaskSetRecipe::bench(utilisation_ppb) };
            let (mut random, runs) = (Random::new(7), 200_000);
            let mut draw = || shares(utilisation_ppb * PARTS, tasks, &mut random);
            let kept = (0..runs).filter(|_| draw().into_iter().all(|share| share <= ONE)).count();
            let ratio = 10_f64.powf(recipe.draws_log10()) * kept as f64 / f64::from(runs);
            assert!((0.85..1.15).contains(&ratio), "{tasks} tasks, {utilisation_ppb}: {ratio}");
        }
        // The way to share 50 among 100 without one above 1: 0.138 / (50^99 / 99!), by hand.
        let recipe = TaskSetRecipe { tasks: 100, ..TaskSetRecipe::bench(50_000_000_000) };
        assert!((recipe.draws_log10() - 13.09).abs() < 0.02, "{}", recipe.draws_log10());
        // Where hardly any draw has a share above 1, every one is kept.
        for (tasks, utilisation_ppb) in [(10, 1_000_000_000), (10_000, 100_000_000_000)] {
            let recipe = TaskSetRecipe { tasks, ..TaskSetRecipe::bench(utilisation_ppb) };
            assert!(recipe.draws_log10() < 1e-3, "{}", recipe.draws_log10());
        }
    }

    #[test]
    fn sets_that_would_be_drawn_again_for_ever_are_refused() {
        for (tasks, most_ppb) in
            [(100, 41_560_000_000), (1_000, 226_070_000_000), (10_000, 1_472_190_000_000)]
        {
            let recipe = |utilisation_ppb| TaskSetRecipe { tasks, ..TaskSetRecipe::bench(utilisation_ppb) };
            let flaw = recipe(tasks as u64 * 500_000_000).flaw().expect("no set in a lifetime");
            let most = format!("a utilisation of at most {}", most_ppb as f64 / 1e9);
            assert!(flaw.ends_with(&most), "{flaw}");
            assert_eq!(recipe(most_ppb).flaw(), None);
            assert!(recipe(most_ppb + 10_000_000).flaw().is_some());
        }
        // Of up to forty tasks with half of their most, a set is there within a second.
        let recipe = TaskSetRecipe { tasks: 40, ..TaskSetRecipe::bench(20_000_000_000) };
        assert_eq!((recipe.flaw(), recipe.draw_item(1, 0).len()), (None, 40));
    }

    #[test]
    fn granularity_and_implicit_deadlines_hold() {
        let recipe = TaskSetRecipe {
            granularity: Span::from_ns(1_000_000),
            deadlines: Deadlines::Implicit,
            ..TaskSetRecipe::bench(800_000_000)
        };
        for task in recipe.draw_item(5, 0) {
            assert_eq!(task.period % 1_000_000, 0);
            assert_eq!(task.deadline, task.period);
        }
    }

    #[test]
    fn drawn_sets_are_systems_of_every_policy() {
        let mut random = Random::new(6);
        let set = TaskSetRecipe::bench(900_000_000).draw(&mut random);
        let deferred = PreemptionRecipe::Deferred { max_segments: 5 };
        let system = system_of(&set, Policy::FixedPriority, deferred, &mut random);
        for (task, drawn) in system.tasks().iter().zip(&set) {
            let graph = task.segment_graph().expect("deferred");
            assert_eq!(graph.wcet(), Some(Span::from_ns(drawn.wcet)));
            assert!((1..=5).contains(&graph.segments.len()));
        }
        let edf = system_of(&set, Policy::Edf, PreemptionRecipe::NonPreemptive, &mut random);
        assert!(edf.tasks().iter().all(|task| task.priority.is_none()));
    }

    #[test]
    fn the_sets_of_a_seed_are_fixed_for_ever() {
        let set = TaskSetRecipe::bench(800_000_000).draw_item(42, 0);
        assert_eq!(set[0], DrawnTask { period: 11_881_572, deadline: 9_400_776, wcet: 134_858 });
    }
}
