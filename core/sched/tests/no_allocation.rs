//! No event allocates, once the backlog has reached its record: flat or a tree, mode changes included.

mod support;

use horolog_model::{Priority, TaskId};
use horolog_sched::{Event, EventKind, Machine, MachineBuilder, ModeSpec, NodePolicy, NodeSpec, TaskMode};
use horolog_time::Instant;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System as Allocator;
use support::served::{SERVERS, served};
use support::{CPU, system};

#[global_allocator]
static GLOBAL: &StatsAlloc<Allocator> = &INSTRUMENTED_SYSTEM;

/// Releases, completions, preemption points, sleeps and mode changes, as the machine's own answers allow.
fn churn(machine: &mut Machine, steps: u64, modes: u32) -> u64 {
    let mut state = 88_172_645_463_325_252_u64;
    let mut events = 0;
    for now in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = |kind| Event::at(Instant::from_ns(now), kind);
        let task = TaskId((state >> 8) as u32 % 5);
        if let Some(running) = machine.decide(CPU).running {
            let next = machine.segment(running) + 1;
            let kind = match state % 7 {
                0 => EventKind::Block { task: running },
                1 | 2 => EventKind::PreemptionPoint { task: running, willing: true, next },
                _ => EventKind::Completion { task: running },
            };
            events += u64::from(machine.on(at(kind)).is_ok());
        }
        if machine.jobs(task) < 6 {
            let deadline = Instant::from_ns(now + state % 100);
            events += u64::from(machine.on(at(EventKind::Release { task, deadline })).is_ok());
        }
        events += u64::from(machine.on(at(EventKind::Wake { task })).is_ok());
        if modes > 0 && state.is_multiple_of(31) {
            let mode = (state >> 20) as u32 % (modes + 1);
            machine.on(at(EventKind::ModeChange { mode })).expect("there is such a mode");
        }
    }
    events
}

fn measured(mut machine: Machine, modes: u32) {
    // The first pass sets the record of every backlog.
    churn(&mut machine, 20_000, modes);
    // The same events again: what they allocate they allocate in every pass, the thread of the test harness only in
    // some.
    let mut passes = Vec::new();
    for _ in 0..5 {
        let region = Region::new(GLOBAL);
        let events = churn(&mut machine, 20_000, modes);
        let change = region.change();
        assert!(events > 20_000, "{events} events were taken");
        passes.push(change);
    }
    let calls = passes.iter().map(|change| change.allocations + change.reallocations);
    assert_eq!(calls.min(), Some(0), "{passes:?}");
}

const TASKS: [&str; 5] = [
    "name = \"a\"; priority = 3; period = \"100 ms\"; wcet = \"2 ms\"",
    "name = \"b\"; priority = 2; period = \"100 ms\"; preemption = \"deferred\"; segments = [\"1 ms\", \"1 ms\", \"1 ms\"]",
    "name = \"c\"; priority = 2; period = \"100 ms\"; wcet = \"2 ms\"",
    "name = \"d\"; priority = 1; period = \"100 ms\"; wcet = \"2 ms\"; preemption = \"non-preemptive\"",
    "name = \"e\"; priority = 1; period = \"100 ms\"; wcet = \"2 ms\"",
];

// One test, since the allocations of other tests' threads would count.
#[test]
fn events_do_not_allocate() {
    let system = system("", &TASKS);
    measured(Machine::new(&system).expect("priorities are given"), 0);

    let mut builder = MachineBuilder::new(&system);
    let root = builder.root_of(CPU);
    let spec = |policy, priority| NodeSpec {
        policy,
        priority: Some(Priority::new(priority)),
        ..NodeSpec::default()
    };
    let first = builder.node(root, spec(NodePolicy::Edf, 9));
    let second = builder.node(root, spec(NodePolicy::FixedPriority, 5));
    for (task, node) in [(0, first), (1, first), (2, second), (3, second)] {
        builder.place(TaskId(task), node);
    }
    let mode = |numbers: [i64; 5]| ModeSpec {
        tasks: numbers
            .iter()
            .map(|&number| TaskMode {
                active: number != 4,
                priority: Some(Priority::new(number)),
                ..TaskMode::default()
            })
            .collect(),
        ..ModeSpec::default()
    };
    builder.mode(mode([1, 1, 2, 3, 3]));
    builder.mode(mode([5, 4, 3, 2, 1]));
    measured(builder.build().expect("a valid tree"), 2);

    for server in SERVERS {
        let mut machine = Machine::new(&served(server)).expect("a valid system");
        support::served::churn(&mut machine, 0, 20_000);
        let region = Region::new(GLOBAL);
        let events = support::served::churn(&mut machine, 20_000, 20_000);
        let change = region.change();
        assert!(events > 10_000, "{server:?}: {events} events were taken");
        assert_eq!((change.allocations, change.reallocations), (0, 0), "{server:?}: {change:?}");
    }
}
