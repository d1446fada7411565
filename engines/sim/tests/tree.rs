//! Trees in virtual time: budgets run out and come back where they should; nodes without supply change nothing.

use horolog_model::{
    Capacity, CpuId, LowPriority, Order, Policy, Priority, PriorityAssignment, Server, ServerKind, System,
    TaskId, TimeTable, Window,
};
use horolog_sched::{
    Machine, MachineBuilder, ModeSpec, NodePolicy, NodeSpec, Place, ProcessorIndex, Supply, TaskMode,
};
use horolog_sim::{Horizon, SimOptions, simulate, simulate_machine};
use horolog_testkit::{Shape, systems};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, NullSink, Record};
use proptest::prelude::*;

/// A budget that comes back in full at every multiple of its period; what was overdrawn is owed.
#[derive(Clone, Debug)]
struct PeriodicBudget {
    full: i64,
    period: u64,
    left: i64,
    next: u64,
}

impl Supply for PeriodicBudget {
    fn place(&self) -> Place {
        if self.left > 0 { Place::High } else { Place::Out }
    }

    fn budget(&self) -> Option<Span> {
        Some(Span::from_ns(u64::try_from(self.left).unwrap_or(0)))
    }

    fn timer(&self) -> Option<Instant> {
        Some(Instant::from_ns(self.next))
    }

    fn executed(&mut self, _: Instant, amount: Span) -> bool {
        self.left -= amount.as_ns() as i64;
        true
    }

    fn timer_fired(&mut self, _: Instant) {
        self.left = self.left.min(0) + self.full;
        self.next += self.period;
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

/// `served` below a node with a budget of 4 every 10, more important than `other`.
fn with_budget(served: &str, platform: &str) -> (System, Machine) {
    let text = format!(
        "[system]\nname = \"served\"\n[platform]\ncpus = 1\n{platform}\n[[task]]\nname = \"served\"\narrivals = \
         [\"1 ns\", \"12 ns\"]\npriority = 1\n{served}\n[[task]]\nname = \"other\"\narrivals = [\"0 ns\"]\nwcet = \
         \"100 ns\"\npriority = 1\n"
    );
    let (system, _) =
        horolog_model::file::read(&text, "served.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut builder = MachineBuilder::new(&system);
    let supply = PeriodicBudget { full: 4, period: 10, left: 4, next: 10 };
    let spec = NodeSpec {
        policy: NodePolicy::Edf,
        priority: Some(Priority::new(9)),
        supply: Some(Box::new(supply)),
        ..NodeSpec::default()
    };
    let node = builder.node(builder.root_of(ProcessorIndex(0)), spec);
    builder.place(TaskId(0), node);
    let machine = builder.build().expect("a valid tree");
    (system, machine)
}

/// When `served` gets and loses the processor.
fn stretches(served: &str, platform: &str) -> Vec<(u64, u64)> {
    let (system, machine) = with_budget(served, platform);
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(60)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate_machine(&system, machine, &options, &mut records).expect("it simulates");
    let mut stretches = Vec::new();
    let mut since = 0;
    for record in records.iter().filter(|r| r.task == 0) {
        match record.kind {
            Kind::Start | Kind::Resume => since = record.time.as_ns(),
            Kind::Preempt | Kind::Yield | Kind::Completion => stretches.push((since, record.time.as_ns())),
            _ => {}
        }
    }
    stretches
}

#[test]
fn a_budget_cuts_a_job_into_pieces() {
    // 6 of work at 1: 4 now, 2 at the next replenishment; the next job, at 12, has the rest of that budget.
    assert_eq!(stretches("wcet = \"6 ns\"", ""), [(1, 5), (10, 12), (12, 14), (20, 24)]);
}

#[test]
fn a_non_preemptive_job_overdraws_and_pays_back() {
    // 6 at a stretch: 2 owed, so the next budget is 2, enough to start the second job, which owes 4; 0 at 20.
    let served = "wcet = \"6 ns\"\npreemption = \"non-preemptive\"";
    assert_eq!(stretches(served, ""), [(1, 7), (12, 18)]);
    let longer = "wcet = \"9 ns\"\npreemption = \"non-preemptive\"";
    // Owes 5 at 10, and still 1 after it; 3 at 20.
    assert_eq!(stretches(longer, ""), [(1, 10), (20, 29)]);
}

#[test]
fn a_deferred_job_leaves_at_its_point_when_the_budget_is_gone() {
    let served = "preemption = \"deferred\"\nsegments = [\"5 ns\", \"2 ns\"]";
    // 5 executed of 4: at the point 1 is owed; 3 at 10, of which 1 is left at 12; then 4 are owed: 0 at 20, 4 at 30.
    assert_eq!(stretches(served, ""), [(1, 6), (10, 12), (12, 17), (30, 32)]);
}

#[test]
fn the_kernel_s_own_time_is_not_charged() {
    // Each switch-in takes 1 before the job executes: 4 of execution last until 6, and so on.
    let stretches = stretches("wcet = \"6 ns\"", "context_switch = \"1 ns\"");
    assert_eq!(stretches[0], (1, 6));
    assert_eq!(stretches[1], (10, 13));
}

#[test]
fn a_mode_change_drops_releases_and_reorders() {
    let text = "[system]\nname = \"modes\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \
        \"4 ns\"\npriority = 2\n[[task]]\nname = \"b\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"4 ns\"\n\
        priority = 1\n";
    let (system, _) =
        horolog_model::file::read(text, "modes.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut builder = MachineBuilder::new(&system);
    let task = |active, priority| TaskMode {
        active,
        priority: Some(Priority::new(priority)),
        ..TaskMode::default()
    };
    let swapped = builder.mode(ModeSpec { tasks: vec![task(true, 1), task(true, 2)], ..ModeSpec::default() });
    let without_a =
        builder.mode(ModeSpec { tasks: vec![task(false, 2), task(true, 1)], ..ModeSpec::default() });
    let machine = builder.build().expect("valid modes");
    let ns = Span::from_ns;
    let modes = vec![(ns(12), swapped), (ns(30), without_a), (ns(34), 0)];
    let options = SimOptions { horizon: Horizon::Time(ns(50)), modes, ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    let outcome = simulate_machine(&system, machine.clone(), &options, &mut records).expect("it simulates");
    let starts: Vec<(u64, u32)> = records
        .iter()
        .filter(|r| matches!(r.kind, Kind::Start | Kind::Resume))
        .map(|r| (r.time.as_ns(), r.task))
        .collect();
    // At 12 b displaces a; at 30 a is not released, and at 34 that is so no more.
    let expected = [(0, 0), (4, 1), (10, 0), (12, 1), (16, 0), (20, 1), (24, 0), (30, 1), (40, 0), (44, 1)];
    assert_eq!(starts, expected);
    let counts = |i: usize| (outcome.tasks[i].jobs, outcome.tasks[i].completed, outcome.tasks[i].skipped);
    assert_eq!((counts(0), counts(1)), ((4, 4, 1), (5, 5, 0)));
    let of = |kind| {
        records.iter().filter(|r| r.kind == kind).map(|r| (r.time.as_ns(), r.value)).collect::<Vec<_>>()
    };
    assert_eq!(of(Kind::ModeChange), [(12, 1), (30, 2), (34, 0)]);
    assert_eq!(of(Kind::Skip), [(30, 30)]);
    assert_eq!(outcome.events, records.len() as u64);
    for wrong in [vec![(ns(3), 9)], vec![(ns(3), 1), (ns(2), 0)]] {
        let options = SimOptions { modes: wrong, ..options.clone() };
        let error =
            simulate_machine(&system, machine.clone(), &options, &mut NullSink).expect_err("no such change");
        assert!(error.is_bad_input(), "{error}");
    }
}

/// Distinct priorities, so that nodes of neighbours order as the tasks alone do.
fn distinct(system: &System) -> Option<System> {
    let mut draft = system.to_draft();
    draft.policy = Policy::FixedPriority;
    draft.priorities = PriorityAssignment::Explicit;
    for (index, task) in draft.tasks.iter_mut().enumerate() {
        task.priority = Some(Priority::new(index as i64 * 7 % 31 * 10));
    }
    System::new(draft).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nodes_without_supply_change_nothing(system in systems(Shape::small()), cut in 0_i64..300) {
        let Some(system) = distinct(&system) else { return Ok(()) };
        let mut builder = MachineBuilder::new(&system);
        let nodes: Vec<_> = (0..system.platform().cpus.len().min(8))
            .map(|index| {
                let root = builder.root_of(ProcessorIndex(index as u16));
                let above = NodeSpec { priority: Some(Priority::new(cut)), ..NodeSpec::default() };
                let inner = builder.node(root, above.clone());
                builder.node(inner, above)
            })
            .collect();
        for (index, task) in system.tasks().iter().enumerate() {
            let place = system.platform().cpus.index_of(task.cpu).and_then(|index| nodes.get(index));
            if let Some(&node) = place
                && task.priority.is_some_and(|p| p.number() <= cut)
            {
                builder.place(TaskId(index as u32), node);
            }
        }
        let machine = builder.build().expect("a valid tree");
        let options = SimOptions { max_events: 3_000, max_backlog: 1_000, ..SimOptions::default() };
        let (mut flat, mut deep): (Vec<Record>, Vec<Record>) = Default::default();
        let first = simulate(&system, &options, &mut flat);
        let second = simulate_machine(&system, machine, &options, &mut deep);
        prop_assert_eq!(first.is_ok(), second.is_ok());
        let common = flat.len().min(deep.len());
        prop_assert_eq!(&flat[..common], &deep[..common]);
    }
}

/// A deferrable server or scheduler that waits for its budget.
fn reserve(name: &str, tasks: &[&str], budget: u64, period: u64, priority: i64) -> Server {
    let kind = ServerKind::Deferrable {
        capacity: Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) },
        priority: Priority::new(priority),
        low_priority: LowPriority::None,
    };
    Server::new(name, tasks.iter().map(|&task| task.to_owned()).collect(), CpuId(0), kind)
}

#[test]
fn a_system_of_three_levels_is_charged_at_each() {
    let text = "[system]\nname = \"three levels\"\n[[task]]\nname = \"a\"\narrivals = [\"0 ns\"]\nwcet = \"6 ns\"\npriority = 1\n\
                [[task]]\nname = \"b\"\narrivals = [\"0 ns\"]\nwcet = \"2 ns\"\npriority = 1\n\
                [[task]]\nname = \"z\"\narrivals = [\"0 ns\"]\nwcet = \"20 ns\"\npriority = 1\n";
    let (flat, _) =
        horolog_model::file::read(text, "three.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut draft = flat.to_draft();
    draft.tasks[0].priority = None;
    let inner = Server { parent: Some("outer".to_owned()), ..reserve("inner", &["a"], 2, 5, 2) };
    let outer = Server { order: Order::FixedPriority, ..reserve("outer", &["b"], 3, 10, 5) };
    for servers in [vec![inner.clone(), outer.clone()], vec![outer, inner]] {
        draft.servers = servers;
        let system = System::new(draft.clone()).expect("a valid tree");
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(60)), ..SimOptions::default() };
        let mut records: Vec<Record> = Vec::new();
        simulate(&system, &options, &mut records).expect("it simulates");
        let switches: Vec<(u64, u32)> = records
            .iter()
            .filter(|record| matches!(record.kind, Kind::Start | Kind::Resume))
            .map(|record| (record.time.as_ns(), record.task))
            .collect();
        // inner ends at 2, outer at 3; inner's budget at 5 finds outer empty; b ends at 13; a at 22.
        assert_eq!(
            switches,
            [(0, 0), (2, 1), (3, 2), (10, 0), (12, 1), (13, 2), (20, 0), (22, 2)],
            "{:?}",
            system.servers()
        );
    }
}

/// What the first scheduler has used of its budget, and when each job of the first task starts.
fn used(system: &System, until: u64) -> (u64, Vec<u64>) {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    let outcome = simulate(system, &options, &mut records).expect("it simulates");
    let starts = records.iter().filter(|record| record.kind == Kind::Start && record.task == 0);
    (
        outcome.servers[0].consumed_ns.map_or(0, Span::as_ns),
        starts.map(|record| record.time.as_ns()).collect(),
    )
}

/// A task below a polling scheduler that orders by fixed priority.
fn polled(task: &str, budget: u64, period: u64, low_priority: LowPriority) -> System {
    let text = format!("[system]\nname = \"polled\"\n[[task]]\nname = \"a\"\n{task}\npriority = 1\n");
    let (flat, _) =
        horolog_model::file::read(&text, "polled.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut draft = flat.to_draft();
    let kind = ServerKind::Polling {
        capacity: Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) },
        priority: Priority::new(2),
        low_priority,
    };
    let server = Server::new("outer", vec!["a".to_owned()], CpuId(0), kind);
    draft.servers = vec![Server { order: Order::FixedPriority, ..server }];
    System::new(draft).expect("a valid tree")
}

#[test]
fn a_job_that_is_not_preemptible_pays_beyond_its_budget_where_its_scheduler_has_a_low_place() {
    let task = "period = \"12 ns\"\ndeadline = \"14 ns\"\nwcet = \"2 ns\"\noffset = \"0 ns\"\npreemption = \"non-preemptive\"";
    let low = LowPriority::At(Priority::new(-2));
    // Polls at 0, 24, 48 and 72 find work: each time 1 of budget and 1 of debt, which the next poll pays.
    assert_eq!(used(&polled(task, 1, 8, low), 96).0, 8);
    // Chosen at the low place it pays nothing, although the poll at 25 brings budget.
    let task = "period = \"12 ns\"\nwcet = \"2 ns\"\noffset = \"0 ns\"\npreemption = \"non-preemptive\"";
    assert_eq!(used(&polled(task, 2, 5, LowPriority::Background), 96).0, 4);
}

#[test]
fn a_poll_that_finds_nobody_pays_a_debt_too() {
    let task = "period = \"11 ns\"\nwcet = \"2 ns\"\noffset = \"0 ns\"\npreemption = \"non-preemptive\"";
    // 1 is owed at 2 and paid at 3; the job of 11 starts with the poll at 12.
    assert_eq!(used(&polled(task, 1, 3, LowPriority::None), 15).1, [0, 12]);
}

#[test]
fn in_its_window_a_child_runs_and_what_it_leaves_goes_to_others_outside_the_table() {
    let text = "[system]\nname = \"table\"\n[[task]]\nname = \"a\"\narrivals = [\"0 ns\"]\nwcet = \"5 ns\"\npriority = 1\n\
                [[task]]\nname = \"b\"\narrivals = [\"0 ns\"]\nwcet = \"5 ns\"\npriority = 1\n\
                [[task]]\nname = \"z\"\narrivals = [\"0 ns\"]\nwcet = \"30 ns\"\npriority = 1\n";
    let (flat, _) =
        horolog_model::file::read(text, "table.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut draft = flat.to_draft();
    draft.tasks[1].priority = None;
    let plain = |name: &str, tasks: &[&str], priority: Option<i64>| {
        let kind = ServerKind::Plain { priority: priority.map(Priority::new) };
        Server::new(name, tasks.iter().map(|&task| task.to_owned()).collect(), CpuId(0), kind)
    };
    let ns = Span::from_ns;
    let window =
        |child: &str, from, length| Window { child: child.to_owned(), from: ns(from), length: ns(length) };
    let windows = vec![window("A", 0, 4), window("B", 4, 3), window("A", 8, 2)];
    let frame = Server {
        order: Order::Table,
        table: Some(TimeTable { cycle: ns(10), windows }),
        ..plain("frame", &[], Some(5))
    };
    let below = |server: Server| Server { parent: Some("frame".to_owned()), ..server };
    let first = below(Server { order: Order::FixedPriority, ..plain("A", &["a"], None) });
    draft.servers = vec![frame, first, below(plain("B", &["b"], None))];
    let system = System::new(draft).expect("a valid tree");
    let options = SimOptions { horizon: Horizon::Time(ns(25)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(&system, &options, &mut records).expect("it simulates");
    let switches: Vec<(u64, u32)> = records
        .iter()
        .filter(|record| matches!(record.kind, Kind::Start | Kind::Resume))
        .map(|record| (record.time.as_ns(), record.task))
        .collect();
    assert_eq!(switches, [(0, 0), (4, 1), (7, 2), (8, 0), (9, 2), (14, 1), (16, 2)]);
}

#[test]
fn a_scheduler_without_a_budget_competes_by_the_earliest_deadline_below_it() {
    for order in [Order::FixedPriority, Order::Fifo, Order::Edf] {
        let text = "[system]\nname = \"edf\"\npolicy = \"edf\"\n[[task]]\nname = \"early\"\nperiod = \"6 ns\"\nwcet = \"1 ns\"\n\
                    [[task]]\nname = \"late\"\nperiod = \"14 ns\"\ndeadline = \"13 ns\"\nwcet = \"2 ns\"\n";
        let (flat, _) =
            horolog_model::file::read(text, "edf.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let mut draft = flat.to_draft();
        draft.tasks[0].priority = (order == Order::FixedPriority).then(|| Priority::new(1));
        let kind = ServerKind::Plain { priority: None };
        let server = Server::new("inner", vec!["early".to_owned()], CpuId(0), kind);
        draft.servers = vec![Server { order, ..server }];
        let system = System::new(draft).expect("a valid tree");
        // By deadlines 6 before 13, then 12 before 13 at 6, then 18 before 27 at 12: the second of late comes at 14.
        assert_eq!(used(&system, 20).1, [0, 6, 12, 18], "{order:?}");
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(20)), ..SimOptions::default() };
        let mut records: Vec<Record> = Vec::new();
        simulate(&system, &options, &mut records).expect("it simulates");
        let late: Vec<u64> = records
            .iter()
            .filter(|record| record.kind == Kind::Start && record.task == 1)
            .map(|record| record.time.as_ns())
            .collect();
        assert_eq!(late, [1, 14], "{order:?}");
    }
}

/// The starts, resumptions and completions of the tasks of a system file.
fn schedule(text: &str, until: u64) -> Vec<(u64, Kind, u32)> {
    let (system, _) =
        horolog_model::file::read(text, "tree.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(&system, &options, &mut records).expect("it simulates");
    let kinds = [Kind::Start, Kind::Resume, Kind::Completion];
    let of_jobs = records.iter().filter(|record| kinds.contains(&record.kind));
    of_jobs.map(|record| (record.time.as_ns(), record.kind, record.task)).collect()
}

#[test]
fn whoever_keeps_the_processor_is_demand_at_every_level_above() {
    let text = r#"
[system]
name = "kept"
[[task]]
name = "a"
arrivals = ["0 ns"]
wcet = "3 ns"
priority = 1
preemption = "non-preemptive"
[[task]]
name = "b"
arrivals = ["2 ns"]
wcet = "1 ns"
priority = 1
[[scheduler]]
name = "outer"
order = "fixed-priority"
kind = "polling"
budget = "4 ns"
period = "8 ns"
priority = 5
low_priority = "none"
tasks = ["b"]
[[scheduler]]
name = "inner"
parent = "outer"
order = "fixed-priority"
kind = "deferrable"
budget = "1 ns"
period = "8 ns"
priority = 3
low_priority = "none"
tasks = ["a"]
"#;
    use Kind::{Completion, Start};
    // inner's budget ends at 1; outer keeps its own, and has 1 left for b.
    assert_eq!(schedule(text, 12), [(0, Start, 0), (3, Completion, 0), (3, Start, 1), (4, Completion, 1)]);
}

#[test]
fn chunks_of_a_sporadic_budget_that_come_back_at_one_time_are_one() {
    let text = r#"
[system]
name = "chunks"
[[task]]
name = "a"
period = "12 ns"
deadline = "13 ns"
wcet = "4 ns"
offset = "0 ns"
priority = 1
preemption = "non-preemptive"
[[scheduler]]
name = "node"
order = "fixed-priority"
kind = "sporadic"
budget = "3 ns"
period = "12 ns"
priority = 4
low_priority = "background"
max_replenishments = 2
tasks = ["a"]
"#;
    let (system, _) =
        horolog_model::file::read(text, "chunks.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    // Charged from 0, 12 and 24 on, four each; at 36 it stands low, and at 48 high again.
    assert_eq!([28, 47, 60].map(|until| used(&system, until).0), [12, 12, 16]);
}
