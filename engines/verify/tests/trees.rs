//! Trees of schedulers: what the simulator does is what verification expects, a wrong budget at any level is found, and what
//! cannot be judged is named.

use horolog_model::{
    Arrival, Capacity, Cluster, CpuId, Cpus, Draft, Enforcement, LowPriority, Order, Policy, Preemption,
    Priority, Segment, SegmentGraph, Server, ServerKind, SporadicRules, System, Task,
};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Class, Finding, Options, Verdict, Verification, verify_records};

fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

fn task(name: &str, wcet: u64, period: u64) -> Task {
    Task {
        offset: Some(Span::ZERO),
        priority: Some(Priority::new(1)),
        ..Task::new(name, Arrival::Sporadic { separation: ns(period) }, ns(wcet))
    }
}

fn reserve(
    name: &str,
    parent: Option<&str>,
    order: Order,
    tasks: &[&str],
    (budget, period): (u64, u64),
) -> Server {
    let kind = ServerKind::Deferrable {
        capacity: Capacity { budget: ns(budget), period: ns(period) },
        priority: Priority::new(5),
        low_priority: LowPriority::None,
    };
    let tasks = tasks.iter().map(|&task| task.to_owned()).collect();
    Server { parent: parent.map(str::to_owned), order, ..Server::new(name, tasks, CpuId(0), kind) }
}

/// Three levels, each with another budget, a task below each, and one beside them.
fn three_levels(low: (u64, u64), middle: (u64, u64), top: (u64, u64), preemption: Preemption) -> System {
    let mut tasks = vec![task("a", 17, 90), task("b", 11, 120), task("c", 13, 130), task("d", 900, 2_000)];
    (tasks[0].preemption, tasks[0].priority) = (preemption, None);
    let servers = vec![
        reserve("low", Some("middle"), Order::Edf, &["a"], low),
        reserve("middle", Some("top"), Order::FixedPriority, &["b"], middle),
        reserve("top", None, Order::FixedPriority, &["c"], top),
    ];
    System::new(Draft { name: "tree".into(), tasks, servers, ..Draft::default() })
        .unwrap_or_else(|e| panic!("{e:?}"))
}

fn records(system: &System, until: u64, seed: u64) -> Vec<Record> {
    let options = SimOptions { horizon: Horizon::Time(ns(until)), seed, ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records)
        .unwrap_or_else(|error| panic!("{error} {:#?}", system.to_draft()));
    records
}

fn verified(system: &System, backend: &str, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

fn of(result: &Verification, check: Check) -> Vec<&Finding> {
    result.findings.iter().filter(|one| one.check == check).collect()
}

fn applied(result: &Verification, check: Check) -> u64 {
    result.checks.iter().find(|one| one.check == check).map_or(0, |count| count.applied)
}

/// A tree drawn at random: up to five schedulers below each other, of every order and kind, their tasks of every kind of
/// preemption.
fn random_tree(index: u64) -> System {
    loop_until_valid(index, |random| {
        let root = if random.below(4) == 0 { Order::Edf } else { Order::FixedPriority };
        let mut servers: Vec<Server> = Vec::new();
        let mut tasks = Vec::new();
        for place in 0..random.between(2, 5) {
            // One that serves first in, first out has tasks alone below it.
            let parent =
                servers.get(random.below(place + 1) as usize).filter(|above| above.order != Order::Fifo);
            // The first one makes it a tree.
            let first = usize::from(place == 0);
            let order = [Order::Fifo, Order::FixedPriority, Order::Edf]
                [first + random.below(3 - first as u64) as usize];
            let kind = random_kind(parent.map_or(root, |above| above.order), random);
            let parent = parent.map(|above| above.name.clone());
            let mut below = Vec::new();
            for _ in 0..random.between(1, 3) {
                let one = random_task(tasks.len(), order, random);
                below.push(one.name.clone());
                tasks.push(one);
            }
            servers.push(Server { parent, order, ..Server::new(format!("s{place}"), below, CpuId(0), kind) });
        }
        tasks.push(random_task(tasks.len(), root, random));
        let policy = if root == Order::Edf { Policy::Edf } else { Policy::FixedPriority };
        Draft { name: "random".into(), policy, tasks, servers, ..Draft::default() }
    })
}

fn random_task(number: usize, order: Order, random: &mut Random) -> Task {
    let period = random.between(40, 400);
    let mut one = task(&format!("t{number}"), random.between(1, period / 8 + 1), period);
    one.priority = (order == Order::FixedPriority).then(|| Priority::new(random.below(6) as i64));
    if order != Order::Fifo {
        one.preemption = match random.below(4) {
            0 => Preemption::NonPreemptive,
            1 => segments(&mut one, random),
            _ => Preemption::Preemptive,
        };
    }
    one
}

/// A kind that may stand below this order.
fn random_kind(above: Order, random: &mut Random) -> ServerKind {
    let period = random.between(20, 120);
    let capacity = Capacity { budget: ns(random.between(1, period)), period: ns(period) };
    if above == Order::Edf {
        let enforcement = Enforcement::Own;
        return match random.below(2) {
            0 => ServerKind::Plain { priority: None },
            _ => ServerKind::ConstantBandwidth { capacity, enforcement },
        };
    }
    let priority = Priority::new(random.between(2, 6) as i64);
    let low_priority = match random.below(4) {
        0 => LowPriority::Background,
        1 => LowPriority::At(Priority::new(1)),
        _ => LowPriority::None,
    };
    let (max_replenishments, rules) = (random.between(1, 12) as u32, SporadicRules::Corrected);
    match random.below(6) {
        0 => ServerKind::Polling { capacity, priority, low_priority },
        1 => ServerKind::Sporadic { capacity, priority, low_priority, max_replenishments, rules },
        2 => ServerKind::Plain { priority: Some(priority) },
        _ => ServerKind::Deferrable { capacity, priority, low_priority },
    }
}

fn segments(one: &mut Task, random: &mut Random) -> Preemption {
    let wcets: Vec<u64> = (0..random.between(1, 3)).map(|_| random.between(1, 9)).collect();
    one.wcet = ns(wcets.iter().sum());
    one.bcet = one.wcet;
    let each = |(place, &wcet): (usize, &u64)| Segment {
        name: format!("p{place}"),
        bcet: ns(wcet),
        wcet: ns(wcet),
        next: if place + 1 < wcets.len() { vec![place + 1] } else { Vec::new() },
    };
    Preemption::Deferred(SegmentGraph { segments: wcets.iter().enumerate().map(each).collect() })
}

/// Not every combination is a system: the next draw then.
fn loop_until_valid(index: u64, mut draw: impl FnMut(&mut Random) -> Draft) -> System {
    let mut random = Random::of_item(11, index);
    for _ in 0..200 {
        if let Ok(system) = System::new(draw(&mut random)) {
            return system;
        }
    }
    panic!("no system in 200 draws");
}

#[test]
fn simulated_trees_have_no_findings() {
    let (mut decided, mut held) = (0, 0);
    for index in 0..400 {
        let system = random_tree(index);
        let records = records(&system, 3_000, index);
        let result = verified(&system, "sim", &records);
        assert_eq!(result.findings, [], "{index}: {:#?}", system.to_draft());
        assert_eq!(result.verdict, Verdict::Holds);
        decided += applied(&result, Check::ServerDecision);
        held += applied(&result, Check::Budget);
        // Nothing orders the jobs of a tree but the decisions.
        for check in [Check::PriorityInversion, Check::EarliestDeadlineFirst, Check::WorkConservation] {
            assert_eq!(applied(&result, check), 0, "{check:?}");
        }
    }
    assert!(decided > 20_000 && held > 10_000, "{decided} {held}");
}

/// The same records, said to be measured: the decisions follow the records of budgets.
#[test]
fn measured_trees_have_no_findings() {
    let mut decided = 0;
    for index in 0..400 {
        let system = random_tree(index);
        let records = records(&system, 3_000, index);
        let result = verified(&system, "linux", &records);
        // What lasts is found; here nothing lasts for a nanosecond.
        let one = &result.processors[0];
        assert_eq!((one.divergences, one.longest_ns), (0, None), "{index}\n{:#?}", system.to_draft());
        assert!(of(&result, Check::Budget).is_empty(), "{index}: {:#?}", result.findings);
        let compared = applied(&result, Check::Divergence);
        let said = result.notes.iter().any(|note| note.contains("who should run in its tree"));
        assert_eq!(said, compared == 0, "{index}: {compared} {:?}", result.notes);
        decided += compared;
    }
    assert!(decided > 5_000, "{decided}");
}

#[test]
fn costs_are_charged_to_no_budget() {
    let (mut held, mut decided) = (0, 0);
    for index in 0..200 {
        let mut draft = random_tree(index).to_draft();
        draft.platform.context_switch = Some(ns(1));
        draft.platform.timer_interrupt = Some(ns(1));
        let system = System::new(draft).expect("costs are no rule's business");
        let records = records(&system, 3_000, index);
        let result = verified(&system, "sim", &records);
        assert_eq!(result.findings, [], "{index}: {:#?}", system.to_draft());
        // The machine is told of costs, too; where deferred jobs come to their preemption points meanwhile is not on record.
        let deferred = |task: &horolog_model::Task| matches!(task.preemption, Preemption::Deferred(_));
        let is_deferred = system.tasks().iter().any(deferred);
        let said = result.notes.iter().any(|note| note.contains("not decided: with costs"));
        assert_eq!(said, is_deferred, "{:?}", result.notes);
        assert_eq!(result.verdict == Verdict::Unknown, is_deferred, "{:?}", result.notes);
        decided += usize::from(!is_deferred);
        held += applied(&result, Check::Budget);
    }
    assert!(held > 5_000 && decided > 50, "{held} {decided}");
}

const LOW: (u64, u64) = (9, 50);
const MIDDLE: (u64, u64) = (14, 60);
const TOP: (u64, u64) = (20, 70);

#[test]
fn a_budget_that_is_too_small_is_found_at_its_level() {
    for preemption in [Preemption::Preemptive, Preemption::NonPreemptive] {
        let right = three_levels(LOW, MIDDLE, TOP, preemption.clone());
        let clean = records(&right, 4_000, 1);
        assert_eq!(verified(&right, "sim", &clean).findings, []);
        let less = |(budget, period): (u64, u64)| (budget / 4, period);
        let wrong = [
            ("low", three_levels(less(LOW), MIDDLE, TOP, preemption.clone())),
            ("middle", three_levels(LOW, less(MIDDLE), TOP, preemption.clone())),
            ("top", three_levels(LOW, MIDDLE, less(TOP), preemption.clone())),
        ];
        for (name, wrong) in wrong {
            let result = verified(&wrong, "sim", &clean);
            let budgets = of(&result, Check::Budget);
            assert!(!budgets.is_empty(), "{name}");
            for found in budgets {
                assert_eq!(found.class, Class::ModelViolated);
                assert!(found.message.starts_with(&format!("scheduler {name} took ")), "{}", found.message);
            }
            assert_eq!(of(&result, Check::ServerDecision).len(), 1, "{name}: {:#?}", result.findings);
            let exceeded: Vec<bool> = result.servers.iter().map(|server| server.exceeded > 0).collect();
            assert_eq!(exceeded, ["low", "middle", "top"].map(|each| each == name));
        }
    }
}

fn at(time: u64, kind: Kind, task: u32, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task, job: 0, value, extra }
}

/// A job of `a` has the processor in these stretches.
fn stretches(of_a: &[(u64, u64)]) -> Vec<Record> {
    let mut records = vec![at(0, Kind::Release, 0, 0, 0)];
    for (place, &(from, to)) in of_a.iter().enumerate() {
        records.push(at(from, if place == 0 { Kind::Start } else { Kind::Resume }, 0, 0, 0));
        records.push(at(to, Kind::Preempt, 0, 0, 0));
    }
    records
}

fn beyond_budgets(system: &System, backend: &str, of_a: &[(u64, u64)]) -> Vec<String> {
    let result = verified(system, backend, &stretches(of_a));
    of(&result, Check::Budget).iter().map(|found| found.message.clone()).collect()
}

/// One scheduler alone, a little below another.
fn alone(budget: (u64, u64), preemption: Preemption) -> System {
    let mut tasks = vec![task("a", 4_000_000, 1_000_000_000)];
    tasks[0].preemption = preemption;
    let servers = vec![
        reserve("low", Some("top"), Order::FixedPriority, &["a"], budget),
        reserve("top", None, Order::FixedPriority, &[], (budget.1, budget.1)),
    ];
    System::new(Draft { name: "alone".into(), tasks, servers, ..Draft::default() })
        .unwrap_or_else(|e| panic!("{e:?}"))
}

#[test]
fn a_simulated_budget_is_exact_and_a_debt_is_paid() {
    let system = alone((10, 100), Preemption::Preemptive);
    let inside: [&[(u64, u64)]; 3] = [&[(5, 15)], &[(90, 110)], &[(0, 10), (100, 110), (290, 310)]];
    let outside: [&[(u64, u64)]; 3] = [&[(5, 16)], &[(89, 110)], &[(0, 10), (100, 110), (289, 310)]];
    for (inside, outside) in inside.into_iter().zip(outside) {
        assert_eq!(beyond_budgets(&system, "sim", inside), Vec::<String>::new());
        assert_eq!(beyond_budgets(&system, "sim", outside).len(), 1, "{outside:?}");
    }
    // 30 in one go owe 20: what is taken within the two periods that pay them is too much.
    let mut draft = alone((10, 100), Preemption::NonPreemptive).to_draft();
    (draft.tasks[0].wcet, draft.tasks[0].bcet) = (ns(30), ns(30));
    let owing = System::new(draft).expect("valid");
    assert_eq!(beyond_budgets(&owing, "sim", &[(0, 30), (300, 330)]), Vec::<String>::new());
    assert_eq!(beyond_budgets(&owing, "sim", &[(0, 30), (200, 230)]).len(), 1);
    // What cannot be preempted and takes too long overdraws it by that.
    let longer = beyond_budgets(&owing, "sim", &[(0, 41)]);
    assert_eq!(longer.len(), 1, "{longer:?}");
    let follows =
        "; a job 0 kept the processor for 11 ns longer than the file says, and from that it follows";
    assert!(longer[0].ends_with(follows), "{longer:?}");
    // Where a budget takes the processor from it, it does not.
    let said = beyond_budgets(&system, "sim", &[(0, 11)]);
    assert_eq!(
        said,
        [
            "scheduler low took 1 ns more than its budgets of 10 ns every 100 ns since 0 ns, of which 0 ns may be owed"
        ]
    );
}

#[test]
fn a_measured_budget_may_be_overdrawn_by_the_tolerance() {
    // 0.1 ms a budget, and 20 us for the switch and for the release.
    let system = alone((1_000_000, 10_000_000), Preemption::Preemptive);
    let most = 1_000_000 + 100_000 + 40_000;
    assert_eq!(beyond_budgets(&system, "linux", &[(1_000, 1_000 + most)]), Vec::<String>::new());
    assert_eq!(beyond_budgets(&system, "linux", &[(1_000, 1_001 + most)]).len(), 1);
    // A sporadic one may have its budget three times in a period that does not begin with its use.
    let mut draft = system.to_draft();
    draft.servers[0].kind = ServerKind::Sporadic {
        capacity: Capacity { budget: ns(1_000_000), period: ns(10_000_000) },
        priority: Priority::new(5),
        low_priority: LowPriority::None,
        max_replenishments: 32,
        rules: SporadicRules::Corrected,
    };
    let sporadic = System::new(draft).expect("valid");
    let most = most + 2_000_000;
    assert_eq!(beyond_budgets(&sporadic, "linux", &[(1_000, 1_000 + most)]), Vec::<String>::new());
    assert_eq!(beyond_budgets(&sporadic, "linux", &[(1_000, 1_001 + most)]).len(), 1);
}

#[test]
fn a_sporadic_budget_catches_up_only_for_a_job_that_has_waited() {
    let mut draft = alone((10, 100), Preemption::Preemptive).to_draft();
    draft.servers[0].kind = ServerKind::Sporadic {
        capacity: Capacity { budget: ns(10), period: ns(100) },
        priority: Priority::new(5),
        low_priority: LowPriority::None,
        max_replenishments: 32,
        rules: SporadicRules::Corrected,
    };
    let system = System::new(draft).expect("valid");
    // The job waits from 0 on: five budgets behind, the present one, and two more that may come back.
    assert_eq!(beyond_budgets(&system, "sim", &[(500, 580)]), Vec::<String>::new());
    assert_eq!(beyond_budgets(&system, "sim", &[(500, 581)]).len(), 1);
    // What it has caught up it does not have again.
    assert_eq!(beyond_budgets(&system, "sim", &[(500, 580), (600, 610)]), Vec::<String>::new());
    assert_eq!(beyond_budgets(&system, "sim", &[(500, 580), (600, 611)]).len(), 1);
    // The whole periods since it arrived count, though its release is noted late.
    let released_at = |arrival: u64, to: u64| {
        let mut records = vec![at(500, Kind::Release, 0, arrival, 0), at(500, Kind::Start, 0, 0, 0)];
        records.push(at(to, Kind::Preempt, 0, 0, 0));
        of(&verified(&system, "sim", &records), Check::Budget).len()
    };
    assert_eq!((released_at(200, 560), released_at(200, 561)), (0, 1));
    assert_eq!((released_at(201, 550), released_at(201, 551)), (0, 1));
    assert_eq!((released_at(500, 530), released_at(500, 531)), (0, 1));
    // Once nothing is pending below it, nothing is left to catch up.
    let after_one = |to: u64| {
        let mut records = vec![at(0, Kind::Release, 0, 0, 0), at(500, Kind::Start, 0, 0, 0)];
        records.push(at(505, Kind::Completion, 0, 5, 0));
        records.push(Record { job: 1, ..at(505, Kind::Release, 0, 505, 0) });
        records.push(Record { job: 1, ..at(505, Kind::Start, 0, 0, 0) });
        records.push(Record { job: 1, ..at(to, Kind::Preempt, 0, 0, 0) });
        of(&verified(&system, "sim", &records), Check::Budget).len()
    };
    assert_eq!((after_one(535), after_one(536)), (0, 1));
}

#[test]
fn very_many_periods_in_one_stretch_are_counted_at_once() {
    let system = alone((1, 2), Preemption::Preemptive);
    assert_eq!(beyond_budgets(&system, "sim", &[(1, 1 << 60)]).len(), 1);
}

#[test]
fn a_wrong_choice_in_a_measured_tree_that_lasts_is_found() {
    let system = three_levels(LOW, MIDDLE, TOP, Preemption::Preemptive);
    let clean = records(&system, 2_000, 1);
    let right = verified(&system, "linux", &clean);
    assert!(of(&right, Check::Divergence).is_empty() && applied(&right, Check::Divergence) > 40);
    // d, which stands beside the tree, gets the processor although the budget of low has come back.
    let place =
        clean.iter().position(|one| one.kind == Kind::Resume && one.task == 0).expect("it waits for budget");
    let mut records = clean.clone();
    records[place].task = 3;
    records.truncate(place + 1);
    // The time stamps leave open 20 us, and the end of a budget is noticed within 100 us.
    let kept = |length: u64| {
        let mut records = records.clone();
        records.push(at(records[place].time.as_ns() + length, Kind::Release, 0, 0, 0));
        let found = verified(&system, "linux", &records);
        let divergences: Vec<Finding> = of(&found, Check::Divergence).into_iter().cloned().collect();
        (divergences, found.processors[0].clone())
    };
    let (found, one) = kept(120_000);
    assert_eq!((found.len(), one.divergences, one.short), (0, 0, 1));
    let (found, one) = kept(120_001);
    assert_eq!((found.len(), one.divergences, one.short), (1, 1, 0), "{found:#?}");
    let said = "had CPU 0 for 120.001 us where a job 0 should have: that is what its schedulers' orders and budgets say; unknown \
                cause";
    assert!(found[0].message.starts_with("d ") && found[0].message.ends_with(said), "{}", found[0].message);
}

#[test]
fn hard_deadlines_of_a_tree_that_were_missed_are_named_and_soft_ones_are_not() {
    let mut draft = three_levels((2, 50), MIDDLE, TOP, Preemption::Preemptive).to_draft();
    let said = |draft: &Draft| {
        let system = System::new(draft.clone()).unwrap_or_else(|errors| panic!("{errors:?}"));
        let result = verified(&system, "sim", &records(&system, 2_000, 1));
        result.notes.into_iter().filter(|note| note.starts_with("a missed ")).count()
    };
    assert_eq!(said(&draft), 1);
    draft.servers[0].order = Order::Fifo;
    draft.tasks[0].priority = None;
    assert_eq!(said(&draft), 0);
}

#[test]
fn a_cluster_leaves_everything_unknown_by_name() {
    let plain = three_levels(LOW, MIDDLE, TOP, Preemption::Preemptive);
    let clean = records(&plain, 500, 1);
    let mut draft = plain.to_draft();
    draft.servers.clear();
    draft.tasks[0].priority = Some(Priority::new(4));
    draft.platform.cpus = Cpus::Count(2);
    let names = draft.tasks.iter().map(|task| task.name.clone()).collect();
    draft.clusters = vec![Cluster {
        name: "pair".into(),
        cpus: vec![CpuId(0), CpuId(1)],
        order: Order::FixedPriority,
        tasks: names,
    }];
    let with_cluster = System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"));
    for backend in ["sim", "linux"] {
        let result = verified(&with_cluster, backend, &clean);
        assert_eq!(
            (result.verdict, result.findings.len(), result.exit_code(false)),
            (Verdict::Unknown, 0, 1)
        );
        assert!(result.notes.iter().any(|note| note.starts_with("scheduler.pair: ")), "{:?}", result.notes);
        assert_eq!(result.records, clean.len() as u64);
    }
}

#[test]
fn who_takes_the_processor_from_a_job_behind_the_horizon_disturbs_it() {
    let system = alone((1_000_000, 10_000_000), Preemption::Preemptive);
    let mut header = Header::simulated(String::new(), vec!["a".into()], 0, Span::from_ns(500_000));
    header.backend = "linux".to_owned();
    // A thread outside the model takes over from a job that is not done, before or at the horizon: the job may complete behind that.
    let foreign = |from: u64| {
        let kernel = |time, kind, value, extra| Record { task: u32::MAX, ..at(time, kind, 0, value, extra) };
        let records = [
            kernel(0, Kind::KernelSwitch, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            Record { task: 0, ..kernel(1_000, Kind::KernelSwitch, 1, 2) },
            at(1_000, Kind::Start, 0, 0, 0),
            kernel(from, Kind::KernelSwitch, 2, 3),
            kernel(900_000, Kind::KernelSwitch, 3, 1),
        ];
        let result =
            verify_records(&system, &[], &header, &records, &Options::default()).expect("it can be verified");
        of(&result, Check::ForeignThread).iter().map(|found| found.observed_ns).collect::<Vec<_>>()
    };
    assert_eq!(foreign(500_000), [Some(ns(400_000))]);
    assert_eq!(foreign(300_000), [Some(ns(600_000))]);
}
