//! Tests of tasks on several processors: sets a second on one core, n = 20, m = 4.
//!
//! Sets: 20 tasks, UUniFast-Discard shares of the total utilisation (60 % of m: 2.4, and 40 to 80 % in 20 equal steps), log-uniform periods 10
//! to 1000 ms in steps of 1 ms, implicit deadlines for GFB, else uniform from C + (T − C)/2 to T; fixed priorities by deadline. Seed 1. Each call decides one set
//! to its end; nothing is allocated. `NAME REPETITIONS` runs one test alone.

use horolog_analysis::global::{
    Scratch, SporadicTask, bak_holds, bar_holds, bcl_edf_holds, bcl_slack_edf_bounds, bcl_slack_fp_bounds,
    ff_dbf_holds, gfb_holds, limited_carry_in_bounds, response_edf_bounds, response_fp_bounds,
};
use horolog_bench::{repeat, report};
use horolog_testkit::{Deadlines, TaskSetRecipe};
use horolog_time::Span;
use std::hint::black_box;

const SETS: usize = 1_000;
const PROCESSORS: u32 = 4;

fn sets(utilisations: &[u64], deadlines: Deadlines) -> Vec<Vec<SporadicTask>> {
    let draw = |index: usize| {
        let recipe = TaskSetRecipe {
            tasks: 20,
            utilisation_ppb: utilisations[index % utilisations.len()],
            shortest_period: Span::from_ns(10_000_000),
            longest_period: Span::from_ns(1_000_000_000),
            granularity: Span::from_ns(1_000_000),
            deadlines,
        };
        let mut drawn = recipe.draw_item(1, index as u64);
        drawn.sort_by_key(|task| task.deadline);
        let task = |(rank, task): (usize, &horolog_testkit::DrawnTask)| SporadicTask {
            wcet: task.wcet,
            period: task.period,
            deadline: task.deadline,
            rank: rank as u32,
            is_periodic: false,
        };
        drawn.iter().enumerate().map(task).collect()
    };
    (0..SETS).map(draw).collect()
}

type Test = fn(&[SporadicTask], &mut Scratch) -> bool;

const EFFORT: u64 = 100_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map(String::as_str);
    let repetitions = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    let tests: [(&str, Test); 10] = [
        ("gfb", |set, _| gfb_holds(set, PROCESSORS) == Some(true)),
        ("bak", |set, _| bak_holds(set, PROCESSORS)),
        ("bcl-edf", |set, scratch| bcl_edf_holds(set, PROCESSORS, scratch)),
        ("bcl-slack-edf", |set, scratch| bcl_slack_edf_bounds(set, PROCESSORS, scratch)),
        ("bcl-slack-fp", |set, scratch| bcl_slack_fp_bounds(set, PROCESSORS, scratch)),
        ("response-edf", |set, scratch| {
            response_edf_bounds(set, PROCESSORS, &mut { EFFORT }, scratch) == Ok(true)
        }),
        ("response-fp", |set, scratch| {
            response_fp_bounds(set, PROCESSORS, &mut { EFFORT }, scratch) == Ok(true)
        }),
        ("limited-carry-in", |set, scratch| {
            limited_carry_in_bounds(set, PROCESSORS, &mut { EFFORT }, scratch) == Ok(Some(true))
        }),
        ("ff-dbf", |set, _| ff_dbf_holds(set, PROCESSORS, &mut { EFFORT }) == Ok(true)),
        ("bar", |set, scratch| bar_holds(set, PROCESSORS, &mut { EFFORT }, scratch) == Ok(true)),
    ];
    let steps: Vec<u64> = (0..20).map(|step| 1_600_000_000 + step * 1_600_000_000 / 19).collect();
    for (recipe, utilisations) in [("U = 60 %", vec![2_400_000_000]), ("U = 40..80 %", steps)] {
        let constrained = sets(&utilisations, Deadlines::Constrained { least_ppm: 500_000 });
        let implicit = sets(&utilisations, Deadlines::Implicit);
        for (name, test) in tests {
            if only.is_some_and(|only| only != name) {
                continue;
            }
            // The quick ones often enough to be seen, the slow ones a few times.
            let rounds = match name {
                "bar" | "ff-dbf" => repetitions.min(2),
                "gfb" => repetitions * 50,
                _ => repetitions,
            };
            for (kind, sets) in [("implicit", &implicit), ("constrained", &constrained)] {
                if name == "gfb" && kind == "constrained" {
                    continue;
                }
                let sets = if name == "bar" { &sets[..100] } else { &sets[..] };
                let (mut scratch, mut accepted) = (Scratch::default(), 0);
                let durations = repeat(rounds, || {
                    accepted = black_box(sets).iter().filter(|set| test(set, &mut scratch)).count();
                });
                report(&format!("{name} {kind}, {recipe}, sets"), sets.len(), durations);
                println!("    accepted: {accepted} of {}", sets.len());
            }
        }
    }
}
