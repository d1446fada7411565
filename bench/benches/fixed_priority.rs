//! Exact response times of fixed-priority sets: sets a second on one core, no early exit.
//!
//! Sets: the bench recipe of `horolog-testkit` (10 tasks, log-uniform periods 10 to 1000 ms, constrained deadlines,
//! utilisation 0.60 to 0.98 in 20 equal steps), seed 1, deadline-monotonic priorities. Every response time of every
//! task is computed, arbitrary deadlines and jitter allowed, whether or not the set is schedulable.

use horolog_analysis::fixed_priority::{PlainTask, Solver};
use horolog_bench::{repeat, report};
use horolog_testkit::{DrawnTask, Random, TaskSetRecipe};
use std::hint::black_box;

const SETS: usize = 2_000;
const TASKS: usize = 10;

fn main() {
    let sets = drawn_sets();
    // `NAME REPETITIONS` runs one case alone, for `perf stat`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map(String::as_str);
    let repetitions = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut random = Random::new(2);
    let cases: [(&str, Vec<PlainTask>); 3] = [
        ("preemptive", sets.iter().map(|t| PlainTask::preemptive(t.period, 0, t.wcet)).collect()),
        ("non-preemptive", sets.iter().map(|t| PlainTask::non_preemptive(t.period, 0, t.wcet)).collect()),
        ("deferred", sets.iter().map(|t| deferred(t, &mut random)).collect()),
    ];
    for (name, tasks) in &cases {
        if only.is_some_and(|only| only != *name) {
            continue;
        }
        let mut solver = Solver::default();
        let mut responses = vec![None; tasks.len()];
        let durations =
            repeat(repetitions, || solver.solve(black_box(tasks), TASKS, black_box(&mut responses)));
        let schedulable = responses
            .chunks(TASKS)
            .zip(sets.chunks(TASKS))
            .filter(|(responses, set)| {
                responses.iter().zip(*set).all(|(r, t)| r.is_some_and(|r| r <= t.deadline))
            })
            .count();
        report(&format!("fp {name}, 10 tasks, sets"), SETS, durations);
        println!("    schedulable: {schedulable} of {SETS}");
        check(name, tasks, &responses);
    }
}

/// The sets one after the other, most important task first.
fn drawn_sets() -> Vec<DrawnTask> {
    let steps: Vec<u64> = TaskSetRecipe::bench_utilisations().collect();
    let mut all = Vec::with_capacity(SETS * TASKS);
    for index in 0..SETS {
        let mut set = TaskSetRecipe::bench(steps[index % steps.len()]).draw_item(1, index as u64);
        set.sort_by_key(|t| t.deadline);
        all.extend(set);
    }
    all
}

/// One to five segments of random lengths.
fn deferred(task: &DrawnTask, random: &mut Random) -> PlainTask {
    let count = random.between(1, 5.min(task.wcet));
    let mut left = task.wcet;
    let mut segments = Vec::new();
    for rest in (1..=count).rev() {
        let segment = if rest == 1 { left } else { random.between(1, left - (rest - 1)) };
        segments.push(segment);
        left -= segment;
    }
    PlainTask::deferred(task.period, 0, &segments).expect("a job of less than 2^64 ns")
}

/// Every bound is a fixed point of the plain formula (preemptive, first job), or no less than one job alone.
fn check(name: &str, tasks: &[PlainTask], responses: &[Option<u64>]) {
    for (set, responses) in tasks.chunks(TASKS).zip(responses.chunks(TASKS)) {
        for (index, (task, response)) in set.iter().zip(responses).enumerate() {
            let response = response.expect("utilisation below 1");
            assert!(response >= task.wcet, "{name}");
            if name == "preemptive" && response <= task.separation {
                let higher: u64 = set[..index].iter().map(|h| response.div_ceil(h.separation) * h.wcet).sum();
                assert_eq!(response, task.wcet + higher, "{name}");
            }
        }
    }
}
