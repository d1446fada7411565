//! Analysis against simulation, each the other's oracle, under fixed priorities: no simulated response exceeds a
//! bound, and every witness of a miss runs into it.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{MissWitness, Options, Verdict, analyze};
use horolog_model::{Arrival, Priority, System};
use horolog_sim::{DelayChoice, Horizon, PathChoice, ReplayOptions, SimOptions, replay, simulate};
use horolog_testkit::{Ingredients, Random, mixed_system};
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

#[test]
fn no_simulated_response_exceeds_its_bound() {
    let (mut compared, mut reached) = (0, 0);
    for index in 0..500 {
        let system =
            mixed_system(21, index, if index % 3 == 0 { Ingredients::NONE } else { Ingredients::ALL });
        let analysis = analyze(&system, &Options::default()).unwrap();
        let mut random = Random::of_item(22, index);
        for run in 0..12 {
            let system = if run < 4 { system.clone() } else { phased(&system, &mut random) };
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
            // A system that asks for too much may overflow its backlog; then there is nothing to compare.
            let Ok(outcome) = simulate(&system, &options, &mut NullSink) else { continue };
            for (task, run) in analysis.tasks.iter().zip(&outcome.tasks) {
                let (Some(bound), Some(largest)) = (task.response, run.response_ns_max) else { continue };
                assert!(
                    largest <= bound,
                    "system {index}, {}: {largest} above {bound}\n{}",
                    task.name,
                    horolog_model::file::print(&system)
                );
                compared += 1;
                reached += u32::from(largest == bound);
            }
        }
    }
    assert!(compared > 8_000 && reached > 500, "{compared} compared, {reached} reached");
}

#[test]
fn every_witness_runs_into_its_miss() {
    let (mut patterns, mut suprema, mut promised) = (0, 0, 0);
    for index in 0..1_500 {
        let system = mixed_system(23, index, Ingredients::NONE);
        let analysis = analyze(&system, &Options::default()).unwrap();
        for task in analysis.tasks.iter().filter(|t| t.verdict == Verdict::Misses) {
            match task.witness.as_ref().unwrap_or_else(|| panic!("system {index}, {}: no witness", task.name))
            {
                MissWitness::Pattern { pattern } => {
                    let file = horolog_model::file::print(&system);
                    let run = replay(&system, pattern, &ReplayOptions::default(), &mut NullSink)
                        .unwrap_or_else(|e| {
                            panic!("system {index}, {}: {e}\n{file}\n{pattern:#?}", task.name)
                        });
                    let witness = run.witness.unwrap();
                    assert!(
                        witness.missed && witness.as_promised != Some(false),
                        "system {index}, {}: {witness:?}\n{file}\n{pattern:#?}",
                        task.name
                    );
                    patterns += 1;
                    promised += u32::from(pattern.witness.as_ref().unwrap().response_ns.is_some());
                }
                MissWitness::SupremumOnly => suprema += 1,
                MissWitness::TooFarToReplay => panic!("system {index}, {}: too far", task.name),
            }
        }
    }
    assert!(patterns > 500 && promised > 200, "{patterns} patterns, {promised} promised, {suprema} suprema");
}

#[test]
fn with_offsets_the_bound_is_what_the_simulation_reaches() {
    let (mut compared, mut witnesses, mut tied) = (0, 0, 0);
    for index in 0..300 {
        let mut random = Random::of_item(25, index);
        let mut draft = mixed_system(24, index, Ingredients::NONE).to_draft();
        for task in &mut draft.tasks {
            let period = [1_000, 1_500, 2_000, 3_000, 4_000, 6_000][random.below(6) as usize];
            task.wcet = Span::from_ns(random.between(1, period / 3));
            task.bcet = task.wcet;
            task.arrival = Arrival::Periodic { period: Span::from_ns(period) };
            task.deadline = Some(Span::from_ns(random.between(task.wcet.as_ns(), 2 * period)));
            // Every other system has releases of equals at one instant.
            let step = if index % 2 == 0 { 1 } else { 500 };
            task.offset = Some(Span::from_ns(random.below(2 * period / step) * step));
            if step > 1 && task.priority.is_some() {
                task.priority = Some(Priority::new(random.below(2) as i64));
            }
            task.jitter = Span::ZERO;
            task.preemption = horolog_model::Preemption::Preemptive;
        }
        let system = System::new(draft).unwrap();
        let analysis = analyze(&system, &Options::default()).unwrap();
        let mut draft = system.to_draft();
        draft.tasks.reverse();
        let mut reversed = analyze(&System::new(draft).unwrap(), &Options::default()).unwrap();
        reversed.tasks.reverse();
        for (one, other) in analysis.tasks.iter().zip(&reversed.tasks) {
            assert_eq!((one.verdict, one.response), (other.verdict, other.response), "system {index}");
        }
        let horizon = Horizon::Time(Span::from_ns(200_000));
        let options = SimOptions { horizon, max_backlog: 10_000, ..SimOptions::default() };
        if analysis.tasks.iter().all(|t| t.tests.iter().all(|t| t.test != "fp-offsets")) {
            // More than the whole processor is asked for.
            continue;
        }
        let outcome = simulate(&system, &options, &mut NullSink).unwrap();
        for (place, task) in analysis.tasks.iter().enumerate() {
            let Some(test) = task.tests.iter().find(|t| t.test == "fp-offsets") else { continue };
            let found = outcome.tasks[place].response_ns_max;
            let last = last_in_the_file(&system, place, &options);
            assert_eq!(last, test.response, "system {index}, {}", task.name);
            assert!(task.exact && task.test == "fp-offsets");
            compared += 1;
            tied += u32::from(found != last);
            if task.verdict == Verdict::Misses {
                let Some(MissWitness::Pattern { pattern }) = &task.witness else {
                    // In the order of this file it wins a tie each time.
                    assert!(found <= task.deadline, "system {index}, {}: no pattern", task.name);
                    assert!(matches!(task.witness, Some(MissWitness::SupremumOnly)));
                    continue;
                };
                let run = replay(&system, pattern, &ReplayOptions::default(), &mut NullSink).unwrap();
                let witness = run.witness.unwrap();
                assert!(
                    witness.missed && witness.as_promised != Some(false),
                    "system {index}, {}: {witness:?}",
                    task.name
                );
                witnesses += 1;
            }
        }
    }
    assert!(
        compared > 300 && witnesses > 30 && tied > 30,
        "{compared} compared, {witnesses} witnesses, {tied} tied"
    );
}

/// The longest response of a task that is the last one in the file, so that it loses every tie; the others keep their order.
fn last_in_the_file(system: &System, place: usize, options: &SimOptions) -> Option<Span> {
    let mut draft = system.to_draft();
    let task = draft.tasks.remove(place);
    draft.tasks.push(task);
    let outcome = simulate(&System::new(draft).unwrap(), options, &mut NullSink).unwrap();
    outcome.tasks.last().and_then(|task| task.response_ns_max)
}
