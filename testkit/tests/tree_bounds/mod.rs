//! Trees of schedulers: no simulated response exceeds a bound, and some reach it.

mod switching;

use super::phased;
use horolog_analysis::{Analysis, Options, Verdict, analyze};
use horolog_model::{
    Arrival, Capacity, CpuId, Draft, Enforcement, ExecutionTimes, LowPriority, Order, OverrunPolicy, Policy,
    Preemption, Priority, Server, ServerKind, SporadicRules, System, Task, TimeTable, Window,
};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_testkit::reference::draw::{Kind, short_system};
use horolog_time::Span;
use horolog_trace::NullSink;
use std::collections::BTreeMap;

fn ns(value: u64) -> Span {
    Span::from_ns(value)
}

/// A small tree on one processor whose budgets are likely to be served: short periods above long ones.
fn small_tree(seed: u64, index: u64) -> System {
    let mut random = Random::of_item(seed, index);
    let policy = if random.below(3) == 0 { Policy::Edf } else { Policy::FixedPriority };
    let mut draft = Draft { name: format!("tree {index}"), policy, ..Draft::default() };
    let count = random.between(1, 2);
    for _ in 0..count {
        node(&mut random, &mut draft, Order::of_policy(policy), None, 1);
    }
    for _ in 0..random.below(3) {
        task(&mut random, &mut draft, Order::of_policy(policy));
    }
    System::new(draft).unwrap()
}

/// A scheduler below one that orders so; its name.
fn node(random: &mut Random, draft: &mut Draft, above: Order, parent: Option<String>, depth: u64) -> String {
    let orders = [Order::FixedPriority, Order::FixedPriority, Order::Edf, Order::Fifo, Order::Table];
    let order = orders[random.below(5) as usize];
    let kind = kind(random, above, depth, order);
    let place = draft.servers.len();
    let name = format!("n{place}");
    draft.servers.push(Server { parent, order, ..Server::new(name.clone(), Vec::new(), CpuId(0), kind) });
    let mut children = Vec::new();
    let nests = order != Order::Fifo && depth < 3;
    for _ in 0..if nests { random.below(3).min(1 + u64::from(depth == 1)) } else { 0 } {
        children.push(node(random, draft, order, Some(name.clone()), depth + 1));
    }
    let least = u64::from(children.is_empty());
    for _ in 0..random.between(least, 2) {
        let task = task(random, draft, order);
        draft.servers[place].tasks.push(task.clone());
        children.push(task);
    }
    if order == Order::Table {
        draft.servers[place].table = Some(table(random, &children));
    }
    name
}

fn table(random: &mut Random, children: &[String]) -> TimeTable {
    let (mut at, mut windows) = (random.below(2), Vec::new());
    for _ in 0..random.between(1, 2) {
        for child in children {
            let length = random.between(1, 3);
            windows.push(Window { child: child.clone(), from: ns(at), length: ns(length) });
            at += length + random.below(2);
        }
    }
    TimeTable { cycle: ns(at + random.below(3)), windows }
}

fn kind(random: &mut Random, above: Order, depth: u64, order: Order) -> ServerKind {
    let period = random.between(2 + 2 * depth, 4 + 4 * depth);
    let budget = random.between(1, if depth == 1 { period } else { period / 2 });
    let capacity = Capacity { budget: ns(budget), period: ns(period) };
    let priority = Priority::new(random.between(1, 4) as i64);
    match above {
        Order::Table => return ServerKind::Plain { priority: None },
        Order::Edf if random.below(3) == 0 => return ServerKind::Plain { priority: None },
        Order::Edf => return ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own },
        _ => {}
    }
    let low_priority = match random.below(4) {
        0 => LowPriority::Background,
        1 => LowPriority::At(Priority::new(priority.number() - 1 - random.below(2) as i64)),
        _ => LowPriority::None,
    };
    match random.below(if order == Order::Table { 2 } else { 7 }) {
        0 => ServerKind::Plain { priority: Some(priority) },
        1 | 2 if order != Order::Table => ServerKind::Polling { capacity, priority, low_priority },
        3 | 4 => ServerKind::Deferrable { capacity, priority, low_priority },
        5 | 6 => ServerKind::Sporadic {
            capacity,
            priority,
            low_priority,
            max_replenishments: [1, 2, 32, 32][random.below(4) as usize],
            rules: SporadicRules::Corrected,
        },
        _ => ServerKind::Plain { priority: Some(priority) },
    }
}

fn task(random: &mut Random, draft: &mut Draft, order: Order) -> String {
    let name = format!("t{}", draft.tasks.len());
    let period = random.between(8, 48);
    let wcet = random.between(1, 3);
    let arrival = match random.below(3) {
        0 => Arrival::Sporadic { separation: ns(period) },
        _ => Arrival::Periodic { period: ns(period) },
    };
    let deadline = random.between(period / 2 + wcet, period + 6);
    draft.tasks.push(Task {
        deadline: Some(ns(deadline)),
        bcet: ns(random.between(1, wcet)),
        jitter: ns(if random.below(3) == 0 { random.below(5) } else { 0 }),
        priority: (order == Order::FixedPriority).then(|| Priority::new(random.between(1, 3) as i64)),
        ..Task::new(&name, arrival, ns(wcet))
    });
    name
}

/// The same with all lengths ten times as long, and costs of the platform.
fn with_costs(system: &System, random: &mut Random) -> System {
    let mut draft = system.to_draft();
    let ten = |span: &mut Span| *span = ns(span.as_ns() * 10);
    for task in &mut draft.tasks {
        match &mut task.arrival {
            Arrival::Periodic { period: span } | Arrival::Sporadic { separation: span } => ten(span),
            _ => {}
        }
        task.deadline.as_mut().into_iter().for_each(ten);
        [&mut task.wcet, &mut task.bcet, &mut task.jitter].into_iter().for_each(ten);
    }
    for server in &mut draft.servers {
        if let Some(Capacity { mut budget, mut period }) = server.kind.capacity() {
            [&mut budget, &mut period].into_iter().for_each(ten);
            server.kind = server.kind.with_capacity(Capacity { budget, period });
        }
    }
    draft.servers.retain(|server| server.table.is_none());
    let platform = &mut draft.platform;
    platform.context_switch = Some(ns(random.below(4)));
    platform.timer_interrupt = Some(ns(random.below(2)));
    platform.release_latency = Some(ns(random.below(4)));
    platform.tick = (random.below(3) == 0).then(|| ns(random.between(3, 9)));
    System::new(draft).unwrap_or_else(|_| system.clone())
}

/// The reference simulator's trees, whose jobs can be preempted everywhere here.
fn reference_tree(kind: Kind, seed: u64, index: u64) -> System {
    let mut draft = short_system(seed, index, kind, 200).to_draft();
    draft.platform.context_switch = None;
    draft.platform.timer_interrupt = None;
    draft.platform.release_latency = None;
    draft.platform.tick = None;
    for task in &mut draft.tasks {
        task.preemption = Preemption::Preemptive;
        task.execution = ExecutionTimes::Wcet;
        task.overrun = OverrunPolicy::Count;
    }
    System::new(draft).unwrap()
}

/// How many bounds of each test were compared, and how many a response reached.
type Counts = BTreeMap<&'static str, (u32, u32)>;

fn options() -> Options {
    Options::default()
}

fn compare(system: &System, analysis: &Analysis, runs: u64, random: &mut Random, counts: &mut Counts) {
    let has_costs = system.platform().context_switch.is_some();
    let mut largest: Vec<Option<Span>> = vec![None; analysis.tasks.len()];
    for run in 0..runs {
        let system = if run < 2 { system.clone() } else { phased(system, random) };
        let options = SimOptions {
            horizon: Horizon::Time(ns(if has_costs { 8_000 } else { 1_500 })),
            seed: random.next_u64(),
            jitter: if run % 2 == 0 { DelayChoice::Max } else { DelayChoice::Uniform },
            execution: if run % 5 == 4 { ExecutionChoice::Uniform } else { ExecutionChoice::AsModelled },
            sporadic_extra: ns(if run % 4 < 3 { 0 } else { 9 }),
            latency: if run % 3 == 0 { DelayChoice::Max } else { DelayChoice::Uniform },
            max_backlog: 10_000,
            ..SimOptions::default()
        };
        let Ok(outcome) = simulate(&horolog_testkit::resolved(&system), &options, &mut NullSink) else {
            continue;
        };
        for (place, task) in outcome.tasks.iter().enumerate() {
            largest[place] = largest[place].max(task.response_ns_max);
        }
    }
    for (task, largest) in analysis.tasks.iter().zip(largest) {
        let Some(largest) = largest else { continue };
        // Other tests go by the offsets of the file, which runs change here.
        for test in task.tests.iter().filter(|test| test.test.starts_with("tree-")) {
            let Some(bound) = test.response else { continue };
            assert!(
                largest <= bound,
                "{}, {} ({}): {largest} above {bound}\n{}",
                system.name(),
                task.name,
                test.test,
                horolog_model::file::print(system)
            );
            let (compared, reached) = counts.entry(test.test).or_default();
            *compared += 1;
            *reached += u32::from(largest == bound);
        }
        assert!(!task.test.starts_with("tree-") || task.verdict != Verdict::Misses, "no miss is proved");
    }
}

fn how_many(default: u64) -> u64 {
    std::env::var("HOROLOG_TREES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_response_of_a_small_tree_exceeds_its_bound() {
    let mut counts = Counts::new();
    for index in 0..how_many(350) {
        let system = small_tree(41, index);
        let analysis = analyze(&system, &options()).unwrap();
        compare(&system, &analysis, 8, &mut Random::of_item(42, index), &mut counts);
    }
    eprintln!("{counts:?}");
    let reachable = ["tree-fixed-priority", "tree-busy-period", "tree-fifo", "tree-window"];
    assert!(counts["tree-edf"].0 > 60 && counts["tree-constant-bandwidth"].0 > 10, "{counts:?}");
    for test in reachable {
        let (compared, reached) = counts.get(test).copied().unwrap_or_default();
        assert!(compared > 30 && reached > 3, "{test}: {counts:?}");
    }
}

#[test]
fn no_response_beside_costs_exceeds_its_bound() {
    let mut counts = Counts::new();
    for index in 0..how_many(250) {
        let mut random = Random::of_item(46, index);
        let system = with_costs(&small_tree(45, index), &mut random);
        let analysis = analyze(&system, &options()).unwrap();
        compare(&system, &analysis, 4, &mut random, &mut counts);
    }
    eprintln!("{counts:?}");
    for test in ["tree-fixed-priority", "tree-busy-period", "tree-fifo", "tree-edf"] {
        assert!(counts.get(test).is_some_and(|(compared, _)| *compared > 15), "{test}: {counts:?}");
    }
}

#[test]
fn no_response_of_a_tree_of_the_reference_exceeds_its_bound() {
    let mut counts = Counts::new();
    for kind in [Kind::Tree, Kind::Table] {
        for index in 0..how_many(200) {
            let system = reference_tree(kind, 43, index);
            let analysis = analyze(&system, &options()).unwrap();
            compare(&system, &analysis, 4, &mut Random::of_item(44, index), &mut counts);
        }
    }
    eprintln!("{counts:?}");
    assert!(counts.values().map(|(compared, _)| compared).sum::<u32>() > 300, "{counts:?}");
}
