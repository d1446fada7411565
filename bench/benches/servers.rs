//! The simulator with a server, per event, beside plain fixed priorities: the same ten hard tasks (recipe of
//! `horolog-testkit`, utilisation 0.60, seed 1) and one soft task (0.2 of the processor, jobs of 1 to 8 ms). `plain` has
//! the soft task at the server's priority without a budget, `plain EDF` by its deadline. Runs are interleaved, and the ratio is that of the least
//! times, so that a busy machine disturbs both alike. Slack stealing looks at every task at every completion: its cost
//! is given over the number of hard tasks.

use horolog_model::{
    Arrival, Capacity, CpuId, Draft, Enforcement, ExecutionTimes, Gain, LowPriority, OverrunPolicy, Policy,
    Preemption, Priority, Server, ServerKind, SporadicRules, System, Task,
};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::{PreemptionRecipe, Random, TaskSetRecipe, system_of};
use horolog_time::Span;
use horolog_trace::NullSink;
use std::hint::black_box;
use std::time::Instant;

const JOBS: u64 = 300_000;
const ROUNDS: usize = 11;

fn main() {
    // `NAME ROUNDS` runs one case alone, for `perf` and `valgrind --tool=callgrind`.
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let rounds = only.get(1).and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let mut cases = cases();
    if let Some(only) = only.first() {
        cases.retain(|(name, ..)| name == only);
    }
    let systems: Vec<System> = cases.iter().map(|(_, policy, kind)| system(10, *policy, *kind)).collect();
    let mut least = vec![(f64::INFINITY, 0); cases.len()];
    for _ in 0..rounds {
        for (system, least) in systems.iter().zip(&mut least) {
            let (ns, events) = ns_per_event(system);
            *least = (least.0.min(ns), events);
        }
    }
    println!("10 hard tasks, {JOBS} jobs, least of {rounds} interleaved runs");
    for ((name, ..), &(ns, events)) in cases.iter().zip(&least) {
        let (of_plain, a_job) = (ns / least[0].0, events as f64 / JOBS as f64);
        println!("{name:<28} {ns:>7.2} ns an event, {of_plain:>5.2} of plain; {a_job:.2} events a job");
    }
    if !only.is_empty() {
        return;
    }
    println!("slack stealing over the number of hard tasks");
    for tasks in [4, 8, 16, 32, 64] {
        let system =
            system(tasks, Policy::FixedPriority, Some(ServerKind::SlackStealing { gain: Gain::Propagated }));
        let least = (0..5).map(|_| ns_per_event(&system).0).fold(f64::INFINITY, f64::min);
        println!("{tasks:>3} tasks {least:>9.2} ns an event");
    }
}

fn cases() -> Vec<(&'static str, Policy, Option<ServerKind>)> {
    let capacity = Capacity { budget: Span::from_ns(2_500_000), period: Span::from_ns(10_000_000) };
    let (priority, low_priority) = (Priority::new(1 << 40), LowPriority::Background);
    let sporadic =
        |rules| ServerKind::Sporadic { capacity, priority, low_priority, max_replenishments: 32, rules };
    let fixed = [
        ("plain", None),
        ("background", Some(ServerKind::Background)),
        ("polling", Some(ServerKind::Polling { capacity, priority, low_priority })),
        ("deferrable", Some(ServerKind::Deferrable { capacity, priority, low_priority })),
        ("sporadic", Some(sporadic(SporadicRules::Corrected))),
        ("sporadic by POSIX", Some(sporadic(SporadicRules::Posix))),
        ("priority exchange", Some(ServerKind::PriorityExchange { capacity, priority })),
        ("dual priority, self gain", Some(ServerKind::DualPriority { gain: Gain::SelfGain })),
        ("slack stealing", Some(ServerKind::SlackStealing { gain: Gain::None })),
        ("slack stealing, gain", Some(ServerKind::SlackStealing { gain: Gain::Propagated })),
    ];
    let edf = [
        ("plain EDF", None),
        (
            "constant bandwidth, EDF",
            Some(ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own }),
        ),
    ];
    let fixed = fixed.into_iter().map(|(name, kind)| (name, Policy::FixedPriority, kind));
    fixed.chain(edf.into_iter().map(|(name, kind)| (name, Policy::Edf, kind))).collect()
}

fn system(tasks: usize, policy: Policy, kind: Option<ServerKind>) -> System {
    let recipe = TaskSetRecipe { tasks, ..TaskSetRecipe::bench(600_000_000) };
    let set = recipe.draw_item(1, 0);
    let mut draft: Draft =
        system_of(&set, policy, PreemptionRecipe::Preemptive, &mut Random::new(1)).to_draft();
    // Implicit deadlines, rate-monotonic: every policy finds the set schedulable.
    draft.tasks.sort_by_key(|task| std::cmp::Reverse(task.separation()));
    for (place, task) in draft.tasks.iter_mut().enumerate() {
        task.deadline = task.separation();
        task.priority = (policy == Policy::FixedPriority).then(|| Priority::new(place as i64));
    }
    draft.tasks.push(Task {
        name: "soft".to_owned(),
        arrival: Arrival::Sporadic { separation: Span::from_ns(22_500_000) },
        deadline: kind.is_none().then(|| Span::from_ns(22_500_000)),
        wcet: Span::from_ns(8_000_000),
        bcet: Span::from_ns(1_000_000),
        offset: None,
        jitter: Span::ZERO,
        priority: (policy == Policy::FixedPriority && kind.is_none()).then(|| Priority::new(1 << 40)),
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Uniform,
        promotion: None,
        sections: Vec::new(),
        criticality: None,
        is_soft: false,
        body: None,
    });
    if let Some(kind) = kind {
        let tasks = vec!["soft".to_owned()];
        draft.servers.push(Server::new("server", tasks, CpuId(0), kind));
    }
    let system = System::new(draft).expect("the set is valid");
    horolog_analysis::resolve(&system).expect("priorities are given")
}

/// Nanoseconds an event, and the events.
fn ns_per_event(system: &System) -> (f64, u64) {
    let options = SimOptions { horizon: Horizon::Jobs(JOBS), ..SimOptions::default() };
    let start = Instant::now();
    let outcome = simulate(black_box(system), &options, &mut NullSink).expect("it simulates");
    let elapsed = start.elapsed();
    (elapsed.as_nanos() as f64 / outcome.events as f64, outcome.events)
}
