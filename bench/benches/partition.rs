//! What a placement costs by the number of tasks and of processors: one heuristic over all tasks, by the exact test of each policy, without the analysis of what
//! was placed.
//!
//! Systems: implicit deadlines, periods from 1 ms to 1 s, evenly by their logarithm, in whole microseconds, a utilisation of 0.8 a processor, shares from a half to
//! one and a half times their mean, seed = number of tasks. `tests` counts those that bounds of the utilisation leave open; `left` are
//! tasks that found no place.

use horolog_analysis::partition::{Heuristic, Request, place_alone};
use horolog_analysis::{Options, partition};
use std::fmt::Write;
use std::time::Instant;

fn main() {
    // `POLICY TASKS` runs some cases alone.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map(String::as_str);
    let size = arguments.get(1).and_then(|n| n.parse().ok());
    for policy in ["edf", "fixed-priority"] {
        for tasks in [10, 100, 1_000, 10_000] {
            if only.is_some_and(|only| only != policy) || size.is_some_and(|size: u64| size != tasks) {
                continue;
            }
            for cpus in [2, 4, 16] {
                let text = many(tasks, policy, cpus);
                let (system, ..) =
                    horolog_model::file::read_unplaced(&text, "many.toml", &[]).expect("a valid file");
                for heuristic in Heuristic::ALL {
                    let request = Request { heuristics: vec![heuristic], ..Request::all(&system) };
                    let start = Instant::now();
                    let found = place_alone(&system, &request, &Options::default()).expect("a placement");
                    let partition::Placed { left, tests, given_up, .. } = found;
                    println!(
                        "{policy:<15} {tasks:>6} tasks {cpus:>3} CPUs {:<10} {:>10.4} s {tests:>6} tests {given_up:>5} given up {left:>5} left",
                        heuristic.word(),
                        start.elapsed().as_secs_f64(),
                    );
                }
            }
        }
    }
}

fn many(tasks: u64, policy: &str, cpus: u64) -> String {
    let mut text = format!("[system]\nname = \"many\"\npolicy = \"{policy}\"\n");
    if policy == "fixed-priority" {
        text += "priorities = \"rate-monotonic\"\n";
    }
    writeln!(text, "[platform]\ncpus = {cpus}").expect("a string");
    let mut state = tasks;
    let mut part = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    for task in 0..tasks {
        let period = (1e6 * 1_000_f64.powf(part())) as u64 / 1_000 * 1_000;
        let share = 0.8 * cpus as f64 / tasks as f64 * (0.5 + part());
        let wcet = ((period as f64 * share.min(1.0)) as u64).max(1);
        writeln!(text, "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"")
            .expect("a string");
    }
    text
}
