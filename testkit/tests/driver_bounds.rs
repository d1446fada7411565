//! Analysis against simulation, each the other's oracle, with drivers: no simulated response of a task or of a device's
//! event exceeds its bound, and no event is lost where the analysis says that all are kept.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::demand_bound::PeriodicDemand;
use horolog_analysis::{Options, analyze};
use horolog_model::System;
use horolog_sim::{ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::{Random, driven_system};
use horolog_time::Span;
use horolog_trace::{Kind, NullSink, Record};

/// The system with random phases, which an analysis of any phase covers.
fn phased(system: &System, random: &mut Random) -> System {
    let mut draft = system.to_draft();
    for task in &mut draft.tasks {
        task.offset = task.separation().map(|separation| Span::from_ns(random.below(separation.as_ns())));
    }
    System::new(draft).unwrap()
}

#[derive(Default, Debug)]
struct Counts {
    tasks: (u32, u32),
    devices: (u32, u32),
    kept: u32,
    dropped: u64,
    in_background: u64,
}

#[test]
fn no_simulated_response_exceeds_its_bound() {
    let mut counts = Counts::default();
    // Fewer where small faults are judged, each by all tests.
    let systems = std::env::var("HOROLOG_BOUNDS_SYSTEMS").map_or(600, |text| text.parse().unwrap());
    for index in 0..systems {
        let mut draft = driven_system(41, index).to_draft();
        if index % 4 == 3 {
            // The machine's own costs, in the proof and in the simulation.
            draft.platform.context_switch = Some(Span::from_ns(1 + index % 7));
            draft.platform.timer_interrupt = Some(Span::from_ns(index % 5));
        }
        let system = System::new(draft).unwrap();
        let analysis = analyze(&system, &Options::default()).unwrap();
        let mut random = Random::of_item(42, index);
        for run in 0..6 {
            let system = if run < 2 { system.clone() } else { phased(&system, &mut random) };
            let options = SimOptions {
                horizon: Horizon::Time(Span::from_ns(300_000)),
                seed: random.next_u64(),
                execution: if run % 2 == 0 { ExecutionChoice::Wcet } else { ExecutionChoice::AsModelled },
                sporadic_extra: Span::from_ns(if run % 3 < 2 { 0 } else { 500 }),
                max_backlog: 10_000,
                ..SimOptions::default()
            };
            // A backlog that overflows: there is nothing to compare.
            let Ok(outcome) = simulate(&system, &options, &mut NullSink) else { continue };
            let text = || horolog_model::file::print(&system);
            for (task, run) in analysis.tasks.iter().zip(&outcome.tasks) {
                let (Some(bound), Some(largest)) = (task.response, run.response_ns_max) else { continue };
                assert!(
                    largest <= bound,
                    "system {index}, {}: {largest} above {bound}\n{}",
                    task.name,
                    text()
                );
                counts.tasks.0 += 1;
                counts.tasks.1 += u32::from(largest == bound);
            }
            for (device, run) in analysis.devices.iter().zip(&outcome.devices) {
                counts.dropped += run.dropped;
                counts.in_background += run.in_background;
                if device.keeps_all {
                    assert_eq!(run.dropped, 0, "system {index}, {}\n{}", device.name, text());
                    counts.kept += 1;
                }
                let (Some(bound), Some(largest)) = (device.response, run.response.response_ns_max) else {
                    continue;
                };
                assert!(
                    largest <= bound,
                    "system {index}, {}: {largest} above {bound}\n{}",
                    device.name,
                    text()
                );
                counts.devices.0 += 1;
                counts.devices.1 += u32::from(largest == bound);
            }
        }
    }
    if systems < 600 {
        return;
    }
    assert!(counts.tasks.0 > 5_000 && counts.tasks.1 > 100, "{counts:?}");
    assert!(counts.devices.0 > 2_000 && counts.devices.1 > 100, "{counts:?}");
    assert!(counts.kept > 500 && counts.dropped > 1_000 && counts.in_background > 100, "{counts:?}");
}

/// Fact 9 of driver-load-bounds: what a most important sporadic server executes for a driver in any window is never more
/// than the refined bound of a periodic task with its budget and period.
#[test]
fn a_sporadic_server_for_a_driver_keeps_the_refined_bound() {
    let ms = |ms| Span::from_ms(ms).unwrap();
    let bound = PeriodicDemand::new(ms(10), ms(1)).unwrap();
    for seed in 1..=5 {
        let text = "[system]\nname = \"ss\"\n[[task]]\nname = \"t\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 50\n\
                    [[device]]\nname = \"net\"\nservice = \"server\"\nserver = \"ss\"\nseparation = \"50 us\"\nspread = \"3 ms\"\n\
                    least_cost = \"20 us\"\ncost = \"300 us\"\n[[server]]\nname = \"ss\"\nkind = \"sporadic\"\ntasks = []\n\
                    budget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 90\nlow_priority = \"none\"\n";
        let (system, _) = horolog_model::file::read(text, "ss", &[]).unwrap();
        let options = SimOptions { horizon: Horizon::Time(ms(2_000)), seed, ..SimOptions::default() };
        let mut records: Vec<Record> = Vec::new();
        simulate(&system, &options, &mut records).unwrap();
        // When the device's thread, the task behind the file's own, executed.
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        let mut since = None;
        for record in records.iter().filter(|record| record.task == 1) {
            match record.kind {
                Kind::Start | Kind::Resume => since = Some(record.time.as_ns()),
                Kind::Preempt | Kind::Completion => {
                    pieces.extend(since.take().map(|from| (from, record.time.as_ns())))
                }
                _ => {}
            }
        }
        assert!(pieces.len() > 500, "{}", pieces.len());
        // The densest windows begin where a piece begins and end where one ends.
        for (index, &(begin, _)) in pieces.iter().enumerate() {
            let mut executed = 0;
            for &(from, to) in pieces[index..].iter().take_while(|(_, to)| to - begin <= ms(60).as_ns()) {
                executed += to - from;
                let most = bound.refined(Span::from_ns(to - begin)).unwrap();
                assert!(executed <= most.as_ns(), "seed {seed}: {executed} ns from {begin} to {to}");
            }
        }
    }
}
