//! What the simulator does is what verification expects: no findings in any simulated trace with the bounds that
//! the analysis proves, whatever the policy, the costs and the jitter.

use horolog_analysis::{Options as AnalysisOptions, analyze};
use horolog_model::{Interference, Policy, Preemption, System, TaskId};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, PathChoice, SimOptions, simulate};
use horolog_testkit::random::Random;
use horolog_testkit::task_set::{Deadlines, PreemptionRecipe, TaskSetRecipe, system_of};
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_verify::{Bound, Options, Verification, Verifier};

fn recipe(tasks: usize, utilisation_percent: u64) -> TaskSetRecipe {
    TaskSetRecipe {
        tasks,
        utilisation_ppb: utilisation_percent * 10_000_000,
        shortest_period: Span::from_ns(1_000),
        longest_period: Span::from_ns(50_000),
        granularity: Span::from_ns(1),
        deadlines: Deadlines::Implicit,
    }
}

fn bounds_of(system: &System) -> Vec<Bound> {
    // Where no test exists for a system, its trace is checked without bounds.
    let Ok(analysis) = analyze(system, &AnalysisOptions::default()) else { return Vec::new() };
    let bound = |(index, task): (usize, &horolog_analysis::TaskVerdict)| {
        Some(Bound {
            task: TaskId(index as u32),
            response: task.response?,
            test: task.test.to_string(),
            exact: task.exact,
        })
    };
    analysis.tasks.iter().enumerate().filter_map(bound).collect()
}

fn verified(system: &System, bounds: &[Bound], options: &SimOptions) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, options.seed, Span::ZERO);
    let mut verifier =
        Verifier::new(system, bounds, &header, &Options::default()).expect("it can be verified");
    let outcome = simulate(system, options, &mut verifier).expect("it can be simulated");
    let result = verifier.finish(outcome.horizon_ns.as_ns(), None, Vec::new());
    for (task, outcome) in result.tasks.iter().zip(&outcome.tasks) {
        assert_eq!(task.completed, outcome.completed);
        assert_eq!(task.response_ns_max, outcome.response_ns_max);
    }
    result
}

fn half(wcet: Span) -> Span {
    Span::from_ns(wcet.as_ns().div_ceil(2))
}

/// Draws systems, lets `change` alter them, and verifies their simulation.
fn no_findings(
    seed: u64,
    policy: Policy,
    preemption: PreemptionRecipe,
    change: impl Fn(&mut horolog_model::Draft, &mut Random),
) {
    let mut records = 0;
    for index in 0..60 {
        let mut random = Random::of_item(seed, index);
        let tasks = 2 + index as usize % 4;
        let set = recipe(tasks, random.between(30, 95)).draw(&mut random);
        let mut draft = system_of(&set, policy, preemption, &mut random).to_draft();
        for task in &mut draft.tasks {
            task.bcet = half(task.wcet);
            if let Preemption::Deferred(graph) = &mut task.preemption {
                graph.segments.iter_mut().for_each(|segment| segment.bcet = half(segment.wcet));
                task.bcet = graph.bcet().expect("it fits");
            }
        }
        change(&mut draft, &mut random);
        let system = System::new(draft).expect("a right system");
        let bounds = bounds_of(&system);
        let options = SimOptions {
            horizon: Horizon::Time(Span::from_ns(500_000)),
            seed: index,
            execution: if index % 2 == 0 { ExecutionChoice::AsModelled } else { ExecutionChoice::Uniform },
            jitter: DelayChoice::Uniform,
            latency: DelayChoice::Uniform,
            path: PathChoice::Random,
            ..SimOptions::default()
        };
        let result = verified(&system, &bounds, &options);
        assert_eq!(result.findings, [], "seed {seed}, item {index}: {:#?}", system.to_draft());
        records += result.records;
    }
    assert!(records > 10_000);
}

const KINDS: [PreemptionRecipe; 3] = [
    PreemptionRecipe::Preemptive,
    PreemptionRecipe::NonPreemptive,
    PreemptionRecipe::Deferred { max_segments: 4 },
];

#[test]
fn fixed_priority_traces_have_no_findings() {
    for (seed, kind) in KINDS.into_iter().enumerate() {
        no_findings(seed as u64, Policy::FixedPriority, kind, |_, _| {});
    }
}

#[test]
fn edf_traces_have_no_findings() {
    for (seed, kind) in KINDS.into_iter().take(2).enumerate() {
        no_findings(10 + seed as u64, Policy::Edf, kind, |_, _| {});
    }
}

#[test]
fn traces_with_jitter_ticks_and_equal_priorities_have_no_findings() {
    for (seed, kind) in KINDS.into_iter().enumerate() {
        no_findings(20 + seed as u64, Policy::FixedPriority, kind, |draft, random| {
            for task in &mut draft.tasks {
                task.jitter = Span::from_ns(random.below(300));
                task.priority = Some(horolog_model::Priority::new(random.between(1, 2) as i64));
            }
            if random.below(2) == 0 {
                draft.platform.tick = Some(Span::from_ns(200));
            }
        });
    }
}

#[test]
fn traces_with_costs_have_no_findings() {
    for (seed, kind) in KINDS.into_iter().enumerate() {
        no_findings(30 + seed as u64, Policy::FixedPriority, kind, |draft, random| {
            draft.platform.context_switch = Some(Span::from_ns(random.below(20)));
            draft.platform.timer_interrupt = Some(Span::from_ns(random.below(20)));
            draft.platform.release_latency = Some(Span::from_ns(random.below(50)));
            if random.below(2) == 0 {
                let cpu = draft.tasks[0].cpu;
                let period = Span::from_ns(random.between(500, 3_000));
                draft.interferences.push(Interference {
                    name: "nic".to_owned(),
                    cpu,
                    utilisation_ppb: 50_000_000,
                    period,
                });
            }
        });
    }
}

#[test]
fn a_bound_below_the_simulated_maximum_is_always_caught() {
    let mut caught = 0;
    for index in 0..40 {
        let mut random = Random::of_item(99, index);
        let set = recipe(3, 70).draw(&mut random);
        let system = system_of(&set, Policy::FixedPriority, PreemptionRecipe::Preemptive, &mut random);
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(500_000)), ..SimOptions::default() };
        let worst = verified(&system, &[], &options).tasks[2].response_ns_max.expect("jobs finished");
        let wrong = Bound {
            task: TaskId(2),
            response: Span::from_ns(worst.as_ns() - 1),
            test: "wrong".to_owned(),
            exact: true,
        };
        let result = verified(&system, &[wrong], &options);
        assert!(result.bound_violated > 0 && result.model_violated == 0);
        caught += 1;
    }
    assert_eq!(caught, 40);
}
