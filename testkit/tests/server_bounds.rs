//! Analysis against simulation, each the other's oracle, with servers: no simulated response of a hard or a soft task
//! exceeds a bound.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod tree_bounds;

use horolog_analysis::{Options, Verdict, analyze};
use horolog_model::{Arrival, System};
use horolog_sim::{DelayChoice, Horizon, PathChoice, SimOptions, simulate};
use horolog_testkit::{Ingredients, Random, Serving, served_system};
use horolog_time::Span;
use horolog_trace::NullSink;

/// The system with random phases, which an analysis of any phase covers.
fn phased(system: &System, random: &mut Random) -> System {
    let mut draft = system.to_draft();
    for task in &mut draft.tasks {
        if let (Some(separation), false) =
            (task.separation(), matches!(task.arrival, Arrival::Aperiodic { .. }))
        {
            task.offset = Some(Span::from_ns(random.below(separation.as_ns())));
        }
    }
    System::new(draft).unwrap()
}

/// How many bounds were compared and how many were reached, of hard and of soft tasks.
#[derive(Default, Debug)]
struct Counts {
    hard: (u32, u32),
    soft: (u32, u32),
    exact_reached: u32,
    meets: u32,
}

fn compare(seed: u64, systems: u64, runs: u64, serving: Serving) -> Counts {
    let mut counts = Counts::default();
    for index in 0..systems {
        let ingredients = if index % 3 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = served_system(seed, index, serving, ingredients);
        let analysis = analyze(&system, &Options::default()).unwrap();
        let mut random = Random::of_item(seed + 1, index);
        counts.meets += analysis.tasks.iter().filter(|t| t.verdict == Verdict::Meets).count() as u32;
        for run in 0..runs {
            let system = if run < 3 { system.clone() } else { phased(&system, &mut random) };
            let options = SimOptions {
                horizon: Horizon::Time(Span::from_ns(300_000)),
                seed: random.next_u64(),
                jitter: if run % 2 == 0 { DelayChoice::Max } else { DelayChoice::Uniform },
                latency: if run % 3 == 0 { DelayChoice::Max } else { DelayChoice::Uniform },
                sporadic_extra: Span::from_ns(if run % 4 < 2 { 0 } else { 500 }),
                path: if run % 2 == 0 { PathChoice::Longest } else { PathChoice::Random },
                max_backlog: 10_000,
                ..SimOptions::default()
            };
            // A kind that has no dispatcher, or a backlog that overflows: there is nothing to compare.
            let Ok(outcome) = simulate(&horolog_testkit::resolved(&system), &options, &mut NullSink) else {
                continue;
            };
            for (task, run) in analysis.tasks.iter().zip(&outcome.tasks) {
                let (Some(bound), Some(largest)) = (task.response, run.response_ns_max) else { continue };
                assert!(
                    largest <= bound,
                    "system {index}, {} ({}): {largest} above {bound}\n{}",
                    task.name,
                    task.test,
                    horolog_model::file::print(&system)
                );
                let soft = task.served_by.is_some();
                let (compared, reached) = if soft { &mut counts.soft } else { &mut counts.hard };
                *compared += 1;
                *reached += u32::from(largest == bound);
                counts.exact_reached += u32::from(task.exact && !soft && largest == bound);
            }
        }
    }
    counts
}

#[test]
fn servers_with_a_place() {
    let counts = compare(31, 300, 8, Serving::Placed);
    assert!(counts.hard.0 > 1_500 && counts.hard.1 > 100, "{counts:?}");
    assert!(counts.soft.0 > 1_000 && counts.exact_reached > 30, "{counts:?}");
}

#[test]
fn servers_beside_sections() {
    let counts = compare(36, 600, 8, Serving::BesideSections);
    assert!(counts.hard.0 > 3_000 && counts.hard.1 > 100 && counts.soft.0 > 1_000, "{counts:?}");
}

#[test]
fn slack_policies() {
    let counts = compare(32, 150, 6, Serving::SlackPolicy);
    assert!(counts.hard.0 > 500 && counts.soft.0 > 500 && counts.meets > 150, "{counts:?}");
}

#[test]
fn constant_bandwidth_servers() {
    let counts = compare(33, 200, 8, Serving::Edf);
    assert!(counts.hard.0 > 1_000 && counts.soft.0 > 400, "{counts:?}");
}

#[test]
fn total_bandwidth_servers() {
    let counts = compare(35, 200, 8, Serving::TotalBandwidth);
    assert!(counts.hard.0 > 1_000 && counts.soft.0 > 400, "{counts:?}");
}

#[test]
fn a_server_that_the_kernel_serves() {
    let counts = compare(34, 200, 8, Serving::Kernel);
    assert!(counts.hard.0 > 1_000 && counts.soft.0 > 400, "{counts:?}");
}
