//! Tests of mixed criticality on one processor: sets a second on one core, n = 10 and 20.
//!
//! Sets: UUniFast-Discard shares of the low utilisation (40 to 80 % in 20 equal steps), log-uniform periods 10 to 1000 ms in steps of 1 ms,
//! implicit deadlines, deadline-monotonic; every second task of a set is of high criticality, with twice the low wcet. Seed 1. Each call decides one
//! set to its end: whether every task has a bound.

use horolog_analysis::mixed_criticality::bounds::{LevelTask, amc_max, amc_rtb, smc};
use horolog_analysis::mixed_criticality::whole_set::amc_rtb_meets;
use horolog_bench::{repeat, report};
use horolog_testkit::{Deadlines, TaskSetRecipe};
use horolog_time::Span;
use std::hint::black_box;

const SETS: usize = 1_000;

fn sets(tasks: usize) -> Vec<Vec<LevelTask>> {
    let draw = |index: usize| {
        let recipe = TaskSetRecipe {
            tasks,
            utilisation_ppb: 400_000_000 + (index as u64 % 20) * 400_000_000 / 19,
            shortest_period: Span::from_ns(10_000_000),
            longest_period: Span::from_ns(1_000_000_000),
            granularity: Span::from_ns(1_000_000),
            deadlines: Deadlines::Implicit,
        };
        let drawn = recipe.draw_item(1, index as u64);
        let level = |(place, task): (usize, &horolog_testkit::DrawnTask)| LevelTask {
            period: task.period,
            deadline: task.deadline,
            jitter: 0,
            low: task.wcet,
            high: (place % 2 == 0).then(|| (2 * task.wcet).min(task.deadline)),
            degraded: None,
        };
        let mut set: Vec<LevelTask> = drawn.iter().enumerate().map(level).collect();
        set.sort_by_key(|task| task.deadline);
        set
    };
    (0..SETS).map(draw).collect()
}

type Test = fn(&LevelTask, &[LevelTask]) -> Option<u64>;

fn main() {
    let tests: [(&str, Test); 3] =
        [("smc", smc), ("amc-rtb", amc_rtb), ("amc-max", |task, above| amc_max(task, above, 100_000))];
    for count in [10, 20] {
        let sets = sets(count);
        for (name, test) in tests {
            let mut accepted = 0;
            let durations = repeat(20, || {
                let holds = |set: &&Vec<LevelTask>| {
                    set.iter().enumerate().all(|(place, task)| test(task, &set[..place]).is_some())
                };
                accepted = black_box(&sets).iter().filter(holds).count();
            });
            report(&format!("{name}, n = {count}, sets"), sets.len(), durations);
            println!("    accepted: {accepted} of {}", sets.len());
        }
        let mut accepted = 0;
        let durations =
            repeat(20, || accepted = black_box(&sets).iter().filter(|set| amc_rtb_meets(set)).count());
        report(&format!("amc-rtb of a whole set, n = {count}, sets"), sets.len(), durations);
        println!("    accepted: {accepted} of {}", sets.len());
    }
}
