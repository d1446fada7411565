//! Trees of schedulers on real threads: budgets of every level kept, overdraw owed at every level, decisions as in the
//! simulator.
//!
//! Every margin is 5 ms or more, and a run that the host disturbed is tried again: what is asserted is that the executive
//! can, not that nothing ever stops a virtual machine.

use horolog_exec::{Executive, RunOptions, RunResult};
use horolog_model::{
    Arrival, Capacity, Cluster, Enforcement, LowPriority, Order, OverrunPolicy, Priority, Server, ServerKind,
    SporadicRules, System, Task,
};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod common;
use common::{alone, last_cpu, ms, run_or_skip};

/// How often a disturbed run is tried again.
const TRIES: usize = 4;

/// The tasks of a file's text, and these schedulers above them.
fn tree(tasks: &str, schedulers: Vec<Server>) -> System {
    let cpu = last_cpu().0;
    let text = format!("[system]\nname = \"tree\"\n[platform]\ncpus = [{cpu}]\n{tasks}");
    let (flat, _) = horolog_model::file::read(&text, "tree.toml", &[])
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let mut draft = flat.to_draft();
    for scheduler in schedulers.iter().filter(|scheduler| scheduler.order != Order::FixedPriority) {
        // Below these nobody has a priority.
        let below = |task: &&mut Task| scheduler.tasks.contains(&task.name);
        draft.tasks.iter_mut().filter(below).for_each(|task| task.priority = None);
    }
    draft.servers = schedulers;
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn task(name: &str, keys: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\npriority = 1\n{keys}\n")
}

/// A scheduler with a budget (ms) that waits without it.
fn reserve(
    name: &str,
    parent: Option<&str>,
    order: Order,
    tasks: &[&str],
    budget: u64,
    period: u64,
) -> Server {
    let kind = ServerKind::Deferrable {
        capacity: Capacity { budget: ms(budget), period: ms(period) },
        priority: Priority::new(5),
        low_priority: LowPriority::None,
    };
    let tasks = tasks.iter().map(|&task| task.to_owned()).collect();
    Server { parent: parent.map(str::to_owned), order, ..Server::new(name, tasks, last_cpu(), kind) }
}

/// The order in which jobs get and give up the processor and budgets end and come back: (kind, task or scheduler, job).
fn order(records: &[Record]) -> Vec<(Kind, u64, u64)> {
    let of_job = [Kind::Start, Kind::Preempt, Kind::Resume, Kind::Yield, Kind::Completion];
    let of_budget = [Kind::BudgetExhausted, Kind::BudgetReplenished];
    let entry = |record: &Record| {
        if of_job.contains(&record.kind) {
            Some((record.kind, u64::from(record.task), record.job))
        } else {
            of_budget.contains(&record.kind).then_some((record.kind, record.value, 0))
        }
    };
    records.iter().filter_map(entry).collect()
}

fn simulated(system: &System, span: Span) -> Vec<(Kind, u64, u64)> {
    let options = horolog_sim::SimOptions {
        horizon: horolog_sim::Horizon::Time(span),
        ..horolog_sim::SimOptions::default()
    };
    let mut records: Vec<Record> = Vec::new();
    horolog_sim::simulate(system, &options, &mut records).expect("simulates");
    apart(&records);
    order(&records)
}

/// What decides lies so far apart that a real run has the same order.
fn apart(records: &[Record]) {
    let causes = [
        Kind::Completion,
        Kind::PreemptionPoint,
        Kind::BudgetExhausted,
        Kind::BudgetReplenished,
        Kind::Release,
    ];
    // A constant bandwidth comes back at the instant of its end.
    let moves_on = |record: &Record| {
        let ends = |other: &Record| other.kind == Kind::BudgetExhausted && other.value == record.value;
        record.kind == Kind::BudgetReplenished
            && records.iter().any(|other| ends(other) && other.time == record.time)
    };
    let of_causes = records.iter().filter(|record| causes.contains(&record.kind) && !moves_on(record));
    let times: Vec<u64> =
        of_causes.map(|record| record.time.as_ns() / 1_000_000).filter(|&at| at > 0).collect();
    let closest = times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(u64::MAX);
    assert!(closest >= MARGIN, "{closest} ms: {times:?}");
}

/// The records up to the end of the simulation: a run lets the jobs that are under way at its end complete.
fn within(records: &[Record], span: Span) -> Vec<Record> {
    records.iter().filter(|record| record.time.as_ns() <= span.as_ns()).copied().collect()
}

/// Runs until the order is the simulator's.
fn runs_as_simulated(system: &System, span: Span) -> Option<RunResult> {
    let expected = simulated(system, span);
    let mut last = None;
    for _ in 0..TRIES {
        let result = run_or_skip(system, &RunOptions::for_span(span))?;
        if order(&within(&result.records, span)) == expected {
            return Some(result);
        }
        last = Some(result);
    }
    let result = last.expect("tried");
    assert_eq!(
        order(&within(&result.records, span)),
        expected,
        "{:#?} {:?}",
        system.servers(),
        result.outcome.notes
    );
    None
}

/// How long each run takes, and how far everything in it lies apart, ms.
const SPAN: u64 = 490;
const MARGIN: u64 = 5;

/// A task that spins for 99 percent of its wcet (ms) from each of these instants on.
fn spins(name: &str, arrivals: &[u64], wcet: u64, more: &str) -> String {
    let arrivals: Vec<String> = arrivals.iter().map(|at| format!("\"{at} ms\"")).collect();
    let arrivals = arrivals.join(", ");
    task(name, &format!("arrivals = [{arrivals}]\nwcet = \"{wcet} ms\"\nbody = {{ spin = 0.99 }}\n{more}"))
}

#[test]
fn three_levels_decide_as_the_simulator_does() {
    // Three unequal budgets; below the lowest the earlier deadline goes first, below the middle one c before it.
    let tasks = [
        spins("a", &[0, 283], 83, "deadline = \"400 ms\""),
        spins("b", &[13], 66, "deadline = \"120 ms\""),
        spins("c", &[29], 20, "").replacen("priority = 1", "priority = 7", 1),
        spins("d", &[0], 500, ""),
    ]
    .concat();
    let low = reserve("low", Some("middle"), Order::Edf, &["a", "b"], 45, 150);
    let middle = reserve("middle", Some("top"), Order::FixedPriority, &["c"], 71, 205);
    let top = reserve("top", None, Order::FixedPriority, &[], 90, 240);
    // The file may have them in any order.
    for schedulers in [vec![low.clone(), middle.clone(), top.clone()], vec![top, middle, low]] {
        let system = tree(&tasks, schedulers);
        let Some(result) = runs_as_simulated(&system, ms(SPAN)) else { return };
        let servers = &result.outcome.servers;
        assert!(servers.iter().all(|server| server.exhaustions >= 2), "{servers:?}");
    }
}

#[test]
fn every_kind_of_budget_decides_as_the_simulator_does_in_a_tree() {
    let tasks =
        [spins("a", &[0, 230], 75, ""), spins("b", &[20], 70, ""), spins("d", &[0], 500, "")].concat();
    let (capacity, priority) = (Capacity { budget: ms(45), period: ms(170) }, Priority::new(3));
    let low_priority = LowPriority::None;
    let (fixed, edf) = (Order::FixedPriority, Order::Edf);
    for (above, kind) in [
        (fixed, ServerKind::Polling { capacity, priority, low_priority }),
        (
            fixed,
            ServerKind::Sporadic {
                capacity,
                priority,
                low_priority,
                max_replenishments: 8,
                rules: SporadicRules::Corrected,
            },
        ),
        (fixed, ServerKind::Deferrable { capacity, priority, low_priority: LowPriority::Background }),
        (fixed, ServerKind::Plain { priority: Some(priority) }),
        (edf, ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own }),
        (edf, ServerKind::Plain { priority: None }),
    ] {
        let low = reserve("low", Some("top"), Order::FixedPriority, &["a", "b"], 45, 160);
        let top = reserve("top", None, above, &[], 70, 220);
        let system = tree(&tasks, vec![top, Server { kind, ..low }]);
        if runs_as_simulated(&system, ms(SPAN)).is_none() {
            return;
        }
    }
}

#[test]
fn a_job_that_keeps_the_processor_overdraws_every_level() {
    // 65 in a budget of 20 below one of 47: low owes 45 and has nothing before its third period, top owes 18.
    let tasks = [
        spins("a", &[0, 80], 65, "preemption = \"non-preemptive\""),
        spins("b", &[13], 68, ""),
        spins("d", &[0], 500, ""),
    ]
    .concat();
    let low = reserve("low", Some("top"), Order::FixedPriority, &["a"], 20, 110);
    let top = reserve("top", None, Order::FixedPriority, &["b"], 47, 136);
    let system = tree(&tasks, vec![low, top]);
    let Some(result) = runs_as_simulated(&system, ms(SPAN)) else { return };
    println!("{:?}", result.outcome.servers);
    let consumed: Vec<u64> = result
        .outcome
        .servers
        .iter()
        .map(|server| server.consumed_ns.map_or(0, Span::as_ns) / 1_000_000)
        .collect();
    // Both jobs of a at both levels, b at the upper one alone.
    assert!((120..135).contains(&consumed[0]) && (185..205).contains(&consumed[1]), "{consumed:?}");
}

#[test]
fn a_deferred_job_leaves_at_its_point_once_a_budget_above_it_is_gone() {
    // Nobody else waits: it leaves all the same, and goes on with the next budget.
    let segments = "arrivals = [\"0 ms\"]\npreemption = \"deferred\"\nsegments = [\"30 ms\", \"30 ms\", \"20 ms\"]\n\
                    body = { spin = 0.97 }";
    let low = reserve("low", Some("top"), Order::FixedPriority, &["a"], 45, 150);
    let top = reserve("top", None, Order::FixedPriority, &[], 100, 300);
    let system = tree(&task("a", segments), vec![top, low]);
    let Some(result) = runs_as_simulated(&system, ms(SPAN)) else { return };
    assert_eq!(result.outcome.tasks[0].yields, 1, "{:?}", result.outcome.tasks[0]);
}

/// A task that never ends gets what the tightest budget above it leaves, by its own clock.
#[test]
fn a_greedy_task_three_levels_down_gets_the_tightest_budget_and_no_more() {
    let tasks = task("greedy", "arrivals = [\"0 ms\"]\nwcet = \"10 s\"");
    let low = reserve("low", Some("middle"), Order::Fifo, &["greedy"], 3, 10);
    let middle = reserve("middle", Some("top"), Order::FixedPriority, &[], 5, 20);
    let top = reserve("top", None, Order::FixedPriority, &[], 9, 30);
    let system = tree(&tasks, vec![low, middle, top]);
    let mut shares = Vec::new();
    for _ in 0..TRIES {
        let _alone = alone();
        let executed = Arc::new(AtomicU64::new(0));
        let seen = executed.clone();
        let run = Executive::new(system.clone()).options(RunOptions::for_span(ms(1_000)));
        let run = run.body("greedy", move |job| {
            while !job.must_end() {
                seen.store(job.executed().as_ns(), Ordering::Relaxed);
            }
        });
        let RunResult { outcome, .. } = match run.run() {
            Err(error) if error.is_not_permitted() => return println!("SKIPPED: {error}"),
            result => result.expect("runs"),
        };
        println!("{:?} {:?}", outcome.servers, outcome.overhead);
        // All that it executes is charged at every level.
        let consumed: Vec<u64> =
            outcome.servers.iter().map(|server| server.consumed_ns.map_or(0, Span::as_ns)).collect();
        assert!(consumed.iter().all(|&amount| amount == consumed[0]), "{consumed:?}");
        shares.push(executed.load(Ordering::Relaxed) as f64 / 1e9);
        if shares.last().is_some_and(|share| (0.23..0.26).contains(share)) {
            break;
        }
    }
    // 5 of every 20.
    assert!(shares.iter().any(|share| (0.22..0.27).contains(share)), "{shares:?}");
}

#[test]
fn a_cluster_is_refused_by_name() {
    let tasks =
        [task("a", "period = \"10 ms\"\nwcet = \"1 ms\""), task("b", "period = \"10 ms\"\nwcet = \"1 ms\"")]
            .concat();
    let mut draft = tree(&tasks, Vec::new()).to_draft();
    let refusal = |draft: horolog_model::Draft| {
        let system = System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"));
        let error = horolog_exec::run(&system, &RunOptions::for_span(ms(10))).expect_err("it is refused");
        assert!(error.is_bad_input(), "{error}");
        error.to_string()
    };
    let cpus = vec![last_cpu(), horolog_model::CpuId(last_cpu().0 + 1)];
    draft.platform.cpus = horolog_model::Cpus::Listed(cpus.clone());
    draft.clusters = vec![Cluster {
        name: "pair".into(),
        cpus,
        order: Order::FixedPriority,
        tasks: vec!["a".into(), "b".into()],
    }];
    let said = refusal(draft);
    assert!(said.starts_with("scheduler.pair.cpus: ") && said.contains("simulate"), "{said}");
}

/// A scheduler in a tree has no budget of the kernel's, and deferred tasks there have no bound on blocking.
#[test]
fn a_tree_with_deferred_tasks_and_a_policy_for_overruns_runs() {
    let segments = "period = \"50 ms\"\npreemption = \"deferred\"\nsegments = [\"2 ms\", \"2 ms\"]\nbody = { spin = 0.9 }\n\
                    overrun = \"skip\"";
    let tasks = [task("a", segments), task("b", "period = \"20 ms\"\nwcet = \"2 ms\"")].concat();
    let low = reserve("low", Some("top"), Order::FixedPriority, &["a"], 10, 40);
    let top = reserve("top", None, Order::FixedPriority, &["b"], 15, 40);
    let system = tree(&tasks, vec![top, low]);
    assert_eq!(system.tasks()[0].overrun, OverrunPolicy::Skip);
    assert!(matches!(system.tasks()[1].arrival, Arrival::Periodic { .. }));
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(300))) else { return };
    let completed: Vec<u64> = result.outcome.tasks.iter().map(|task| task.completed).collect();
    println!("{completed:?} {:?}", result.outcome.notes);
    assert!(completed[0] >= 4 && completed[1] >= 10, "{:#?}", result.outcome.tasks);
    assert!(
        !result.outcome.notes.iter().any(|note| note.contains("it serves devices alone")),
        "{:?}",
        result.outcome.notes
    );
}
