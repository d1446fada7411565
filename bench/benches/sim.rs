//! The simulator: jobs a second on one core, with full response-time histograms, and with the trace written to disk.
//!
//! Ten periodic tasks of the bench recipe of `horolog-testkit` (log-uniform periods 10 to 1000 ms, constrained
//! deadlines, utilisation 0.80, seed 1), the same set for every case. `drawn` adds uniform execution times and
//! release jitter; `costs` adds context switches and timer interrupts as well. Each case says how many preemptions
//! and misses its jobs had, so that it is seen to do its work.

use horolog_bench::{repeat, report};
use horolog_model::{ExecutionTimes, Policy, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::{PreemptionRecipe, Random, TaskSetRecipe, system_of};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Writer};
use horolog_trace::{NullSink, Outcome};
use std::hint::black_box;

const JOBS: u64 = 1_000_000;

fn main() {
    // `NAME REPETITIONS` runs one case alone, for `perf stat`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map(String::as_str);
    let repetitions = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(10);
    for (policy, word) in [(Policy::FixedPriority, "fp"), (Policy::Edf, "edf")] {
        for variant in ["plain", "drawn", "costs", "trace"] {
            let name = format!("{word}-{variant}");
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let system = system(policy, variant);
            let options = SimOptions { horizon: Horizon::Jobs(JOBS), ..SimOptions::default() };
            let mut outcome = None;
            let durations =
                repeat(repetitions, || outcome = Some(run(&system, &options, variant == "trace")));
            report(&format!("simulate {name}, 10 tasks, jobs"), JOBS as usize, durations);
            check(&outcome.expect("it ran at least once"));
        }
    }
}

fn system(policy: Policy, variant: &str) -> System {
    let set = TaskSetRecipe::bench(800_000_000).draw_item(1, 0);
    let mut draft = system_of(&set, policy, PreemptionRecipe::Preemptive, &mut Random::new(1)).to_draft();
    if variant == "drawn" || variant == "costs" {
        for task in &mut draft.tasks {
            task.bcet = Span::from_ns(task.wcet.as_ns() / 2);
            task.execution = ExecutionTimes::Uniform;
            task.jitter = Span::from_ns(100_000);
        }
    }
    if variant == "costs" {
        draft.platform.context_switch = Some(Span::from_ns(2_000));
        draft.platform.timer_interrupt = Some(Span::from_ns(3_000));
        draft.platform.release_latency = Some(Span::from_ns(60_000));
    }
    System::new(draft).expect("the set is valid")
}

fn run(system: &System, options: &SimOptions, traced: bool) -> Outcome {
    if !traced {
        return simulate(black_box(system), options, &mut NullSink).expect("it simulates");
    }
    let path = std::env::temp_dir().join(format!("horolog-bench-{}.trace", std::process::id()));
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, options.seed, Span::ZERO);
    let mut writer = Writer::create(&path, &header).expect("the trace can be created");
    let outcome = simulate(black_box(system), options, &mut writer).expect("it simulates");
    writer.finish(Instant::from_ns(outcome.horizon_ns.as_ns())).expect("the trace can be written");
    std::fs::remove_file(&path).expect("it was just written");
    outcome
}

fn check(outcome: &Outcome) {
    let sum = |of: fn(&horolog_trace::TaskOutcome) -> u64| outcome.tasks.iter().map(of).sum::<u64>();
    let (completed, preemptions, missed) = (sum(|t| t.completed), sum(|t| t.preemptions), sum(|t| t.missed));
    assert_eq!(completed, JOBS, "the run ends with the last job");
    println!("    {} events, {preemptions} preemptions, {missed} missed", outcome.events);
}
