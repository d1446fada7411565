//! Any events in any order, senseless ones included: the machine never panics, a rejected event changes nothing, and
//! its answers keep the rules. Without a task that is not preemptible it decides as a scheduler does that has never
//! heard of deferral (fact 4 of the source: with the feature unused, the logs are the same).

mod support;

use horolog_model::{Priority, TaskId};
use horolog_sched::{
    Desired, EntityId, Event, EventKind, Machine, MachineBuilder, ModeSpec, NodePolicy, NodeSpec, Place,
    Supply, TaskMode,
};
use horolog_time::{Instant, Span};
use proptest::prelude::*;
use std::collections::VecDeque;
use support::served::{SERVERS, served};
use support::{CPU, system};

const TASKS: [&str; 5] = [
    "name = \"a\"; priority = 3; period = \"100 ms\"; wcet = \"2 ms\"",
    "name = \"b\"; priority = 2; period = \"100 ms\"; preemption = \"deferred\"; segments = [\"1 ms\", \"1 ms\", \"1 ms\"]",
    "name = \"c\"; priority = 2; period = \"100 ms\"; wcet = \"2 ms\"",
    "name = \"d\"; priority = 1; period = \"100 ms\"; wcet = \"2 ms\"; preemption = \"non-preemptive\"",
    "name = \"e\"; priority = 1; period = \"100 ms\"; wcet = \"2 ms\"",
];

/// Five of execution, then nothing until the timer.
#[derive(Clone, Debug)]
struct Five {
    left: u64,
    timer: Option<Instant>,
}

impl Supply for Five {
    fn place(&self) -> Place {
        if self.left > 0 { Place::High } else { Place::Out }
    }

    fn budget(&self) -> Option<Span> {
        Some(Span::from_ns(self.left))
    }

    fn timer(&self) -> Option<Instant> {
        self.timer
    }

    fn executed(&mut self, now: Instant, amount: Span) -> bool {
        self.left = self.left.saturating_sub(amount.as_ns());
        if self.left == 0 {
            self.timer = now.checked_add(Span::from_ns(5));
        }
        true
    }

    fn timer_fired(&mut self, _: Instant) {
        *self = Five { left: 5, timer: None };
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

fn tree() -> Machine {
    let system = system("", &TASKS);
    let mut builder = MachineBuilder::new(&system);
    let root = builder.root_of(CPU);
    let five = Five { left: 5, timer: None };
    let spec = NodeSpec {
        policy: NodePolicy::Edf,
        priority: Some(Priority::new(9)),
        supply: Some(Box::new(five)),
        ..NodeSpec::default()
    };
    let node = builder.node(root, spec);
    builder.place(TaskId(0), node);
    builder.place(TaskId(3), node);
    let tasks = (0..5)
        .map(|i| TaskMode { active: i != 2, priority: Some(Priority::new(i)), ..TaskMode::default() })
        .collect();
    builder.mode(ModeSpec { tasks, ..ModeSpec::default() });
    builder.build().expect("a valid tree")
}

fn flat() -> Machine {
    Machine::new(&system("", &TASKS)).expect("priorities are given")
}

/// Windows below a budget, budgets of jobs, and either locks or modes that drop and suspend.
fn rich(overrun: &str, on_threads: bool, locks: bool) -> Machine {
    let section =
        if locks { "[[task.section]]\nresource = \"r\"\nfrom = \"0 ns\"\nlength = \"1 ns\"\n" } else { "" };
    let tasks = [
        "wcet = \"4 ns\"\npriority = 3".to_owned(),
        "priority = 2\npreemption = \"deferred\"\nsegments = [\"2 ns\", \"1 ns\"]".to_owned(),
        format!("wcet = \"4 ns\"\noverrun = \"{overrun}\""),
        format!(
            "preemption = \"deferred\"\nsegments = [\"2 ns\", \"1 ns\", \"1 ns\"]\noverrun = \"{overrun}\""
        ),
        "wcet = \"4 ns\"\npriority = 1\npreemption = \"non-preemptive\"".to_owned(),
    ];
    let mut text = String::from("[system]\nname = \"rich\"\n");
    for (name, keys) in ["a", "b", "c", "d", "e"].into_iter().zip(tasks) {
        text += &format!("[[task]]\nname = \"{name}\"\nperiod = \"100 ns\"\n{keys}\n");
        text += if name == "e" { "" } else { section };
    }
    text += "[[scheduler]]\nname = \"outer\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\nbudget = \"5 ns\"\nperiod = \"11 ns\"\n\
             priority = 5\nlow_priority = \"none\"\ntasks = [\"e\"]\n[[scheduler]]\nname = \"table\"\nparent = \"outer\"\norder = \
             \"table\"\npriority = 5\ncycle = \"9 ns\"\ntasks = [\"c\", \"d\"]\nwindows = [{ child = \"c\", from = \"0 ns\", length = \
             \"3 ns\" }, { child = \"d\", from = \"4 ns\", length = \"3 ns\" }]\n";
    text += if locks {
        "[[resource]]\nname = \"r\"\n[[mode]]\nname = \"m1\"\nactive = [\"a\", \"c\"]\n[[mode]]\nname = \"m2\"\nactive = [\"d\", \"e\"]\n"
    } else {
        "[[mode]]\nname = \"m1\"\nactive = [\"a\", \"d\", \"e\"]\nleft_over = \"drop\"\n[[mode]]\nname = \"m2\"\nactive = [\"a\", \"c\"]\n\
         left_over = \"suspend\"\n"
    };
    let (system, _) = horolog_model::file::read(&text, "rich.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let builder = MachineBuilder::new(&system);
    let builder = if on_threads { builder.on_threads(true) } else { builder.job_budgets() };
    builder.build().expect("a valid tree")
}

fn kind() -> impl Strategy<Value = EventKind> {
    let task = || (0_u32..7).prop_map(TaskId);
    let entity = || (0_u32..9).prop_map(EntityId);
    let span = || (0_u64..8).prop_map(Span::from_ns);
    prop_oneof![
        4 => (task(), 0_u64..100).prop_map(|(task, d)| EventKind::Release { task, deadline: Instant::from_ns(d) }),
        3 => task().prop_map(|task| EventKind::Completion { task }),
        2 => (task(), any::<bool>(), 0_u32..4)
            .prop_map(|(task, willing, next)| EventKind::PreemptionPoint { task, willing, next }),
        1 => task().prop_map(|task| EventKind::Block { task }),
        2 => task().prop_map(|task| EventKind::Wake { task }),
        1 => (task(), any::<bool>()).prop_map(|(task, preemptible)| EventKind::SetPreemptible { task, preemptible }),
        3 => (task(), span()).prop_map(|(task, amount)| EventKind::Ran { task, amount }),
        1 => (entity(), 0_u32..6).prop_map(|(entity, generation)| EventKind::Timer { entity, generation }),
        1 => (task(), 0_u32..2).prop_map(|(task, resource)| EventKind::Lock { task, resource }),
        1 => (task(), 0_u32..2).prop_map(|(task, resource)| EventKind::Unlock { task, resource }),
        1 => (0_u32..3).prop_map(|mode| EventKind::ModeChange { mode }),
    ]
}

/// What tells of a task or timer that is not there tells of whoever runs and of the timer that is armed.
fn aimed(kind: EventKind, desired: Desired) -> EventKind {
    let of = |task: TaskId| desired.running.filter(|_| task.0 >= 5).unwrap_or(task);
    match kind {
        EventKind::Completion { task } => EventKind::Completion { task: of(task) },
        EventKind::PreemptionPoint { task, willing, next } => {
            EventKind::PreemptionPoint { task: of(task), willing, next }
        }
        EventKind::Block { task } => EventKind::Block { task: of(task) },
        EventKind::Ran { task, amount } => EventKind::Ran { task: of(task), amount },
        EventKind::Lock { task, .. } => EventKind::Lock { task: of(task), resource: 0 },
        EventKind::Unlock { task, .. } => EventKind::Unlock { task: of(task), resource: 0 },
        EventKind::SetPreemptible { task, preemptible } => {
            EventKind::SetPreemptible { task: of(task), preemptible }
        }
        EventKind::Timer { .. } => desired
            .wall_timer
            .map_or(kind, |timer| EventKind::Timer { entity: timer.entity, generation: timer.generation }),
        kind => kind,
    }
}

/// Feeds the events; after each the answer must stand when asked again.
fn feed(mut machine: Machine, kinds: &[(EventKind, bool)], aims: bool) -> Result<(), TestCaseError> {
    for (now, &(kind, is_impossible)) in kinds.iter().enumerate() {
        let kind = if aims { aimed(kind, machine.decide(CPU)) } else { kind };
        let mut event = Event::at(Instant::from_ns(now as u64 + 1), kind);
        if is_impossible {
            event.observed = Instant::from_ns(now as u64);
        }
        let before = format!("{machine:?}");
        if machine.on(event).is_err() {
            prop_assert_eq!(
                &before,
                &format!("{machine:?}"),
                "a rejected event changes nothing: {:?}",
                event
            );
        }
        prop_assert_eq!(machine.check(), Ok(()), "after {:?}", event);
        let desired = machine.decide(CPU);
        prop_assert_eq!(machine.check(), Ok(()), "after the choice that follows {:?}", event);
        prop_assert_eq!(desired, machine.decide(CPU));
        if let Some(running) = desired.running {
            prop_assert!(machine.jobs(running) > 0, "{:?} runs without a job", running);
        }
        if desired.should_yield {
            // Who holds something keeps the processor beyond its window, too.
            let holds = |task| machine.resource_count() > 0 && machine.holder(0) == Some(task);
            prop_assert!(desired.running.is_some_and(|task| !machine.is_preemptible(task) || holds(task)));
        }
    }
    Ok(())
}

/// A plain fixed-priority scheduler: one queue a priority, the head of the highest runs.
#[derive(Default)]
struct Plain {
    queues: [VecDeque<u32>; 4],
}

impl Plain {
    fn running(&self) -> Option<u32> {
        self.queues.iter().rev().find_map(|queue| queue.front().copied())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn senseless_events_do_no_harm(
        kinds in prop::collection::vec((kind(), prop::bool::weighted(0.06)), 0..120),
        server in 0..SERVERS.len(),
    ) {
        feed(flat(), &kinds, false)?;
        feed(tree(), &kinds, false)?;
        feed(Machine::new(&served(SERVERS[server])).expect("a valid system"), &kinds, false)?;
    }

    #[test]
    fn without_deferral_it_is_a_plain_scheduler(steps in prop::collection::vec((0_u32..6, any::<bool>()), 0..200)) {
        let priorities = [3_usize, 1, 2, 2, 0, 1];
        let lines: Vec<String> = priorities
            .iter()
            .enumerate()
            .map(|(i, p)| format!("name = \"t{i}\"; priority = {p}; period = \"100 ms\"; wcet = \"2 ms\""))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut machine = Machine::new(&system("", &lines)).expect("priorities are given");
        let mut plain = Plain::default();
        for (now, (task, completes)) in steps.into_iter().enumerate() {
            let at = |kind| Event::at(Instant::from_ns(now as u64), kind);
            match plain.running() {
                Some(running) if completes => {
                    plain.queues[priorities[running as usize]].pop_front();
                    machine.on(at(EventKind::Completion { task: TaskId(running) })).expect("it runs");
                }
                _ => {
                    plain.queues[priorities[task as usize]].push_back(task);
                    let release = EventKind::Release { task: TaskId(task), deadline: Instant::NEVER };
                    machine.on(at(release)).expect("it is active");
                }
            }
            let desired = machine.decide(CPU);
            prop_assert_eq!(desired.running.map(|task| task.0), plain.running());
            prop_assert!(!desired.should_yield && desired.generation == 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn they_do_none_beside_windows_locks_and_modes_that_end_jobs(
        kinds in prop::collection::vec((kind(), prop::bool::weighted(0.06)), 0..120),
        on_threads in any::<bool>(),
        locks in any::<bool>(),
        demotes in any::<bool>(),
    ) {
        feed(rich(if demotes { "demote" } else { "drop" }, on_threads, locks), &kinds, true)?;
    }
}
