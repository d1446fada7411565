//! The promises for later rooms, exercised: a tree of depth two with a budget, execution and wall timers with
//! generations, a mode change.
//!
//! The root serves, by fixed priority, an EDF node with a budget of 4 every 10 (priority 9), then an FP node
//! (priority 5), then a task of its own (priority 1).

mod support;

use horolog_model::{Priority, TaskId};
use horolog_sched::{
    EntityId, EventKind, Machine, MachineBuilder, ModeSpec, NodePolicy, NodeSpec, Place, Rejected, Supply,
    TaskMode,
};
use horolog_time::{Instant, Span};
use support::{CPU, Driver, system};

/// A budget that comes back in full at every multiple of its period; what was overdrawn is owed.
#[derive(Clone, Debug)]
struct PeriodicBudget {
    full: i64,
    period: u64,
    left: i64,
    next: u64,
}

impl PeriodicBudget {
    fn new(full: i64, period: u64) -> PeriodicBudget {
        PeriodicBudget { full, period, left: full, next: period }
    }
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

const TASK: &str = "period = \"100 ms\"; wcet = \"2 ms\"";
const NON_PREEMPTIVE: &str = "period = \"100 ms\"; wcet = \"2 ms\"; preemption = \"non-preemptive\"";
const E0: u32 = 0;
const E1: u32 = 1;
const F0: u32 = 2;
const F1: u32 = 3;
const BACK: u32 = 4;

struct Tree {
    driver: Driver,
    server: EntityId,
    /// The mode in which F0 and F1 change places and E1 is inactive.
    second_mode: u32,
}

fn tree(e1: &str) -> Tree {
    let lines = [
        format!("name = \"e0\"; priority = 1; {TASK}"),
        format!("name = \"e1\"; priority = 1; {e1}"),
        format!("name = \"f0\"; priority = 3; {TASK}"),
        format!("name = \"f1\"; priority = 2; {TASK}"),
        format!("name = \"back\"; priority = 1; {TASK}"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let system = system("", &lines);
    let mut builder = MachineBuilder::new(&system);
    let root = builder.root_of(CPU);
    let server = builder.node(
        root,
        NodeSpec {
            policy: NodePolicy::Edf,
            priority: Some(Priority::new(9)),
            supply: Some(Box::new(PeriodicBudget::new(4, 10))),
            ..NodeSpec::default()
        },
    );
    let inner = NodeSpec { priority: Some(Priority::new(5)), ..NodeSpec::default() };
    let inner = builder.node(root, inner);
    for (task, node) in [(E0, server), (E1, server), (F0, inner), (F1, inner)] {
        builder.place(TaskId(task), node);
    }
    let same = TaskMode::default();
    let at = |number| TaskMode { priority: Some(Priority::new(number)), ..TaskMode::default() };
    let tasks = vec![same, TaskMode { active: false, ..TaskMode::default() }, at(1), at(4), same];
    let second_mode = builder.mode(ModeSpec { tasks, ..ModeSpec::default() });
    Tree { driver: Driver::new(builder.build().expect("a valid tree")), server, second_mode }
}

#[test]
fn a_budget_runs_out_and_comes_back() {
    let Tree { mut driver, server, .. } = tree(TASK);
    driver.release_until(E0, 50).release_until(E1, 40).release(F1).release(BACK);
    let first = driver.decide();
    assert_eq!(first.running, Some(TaskId(E1)), "the server is more important, and E1 more urgent");
    assert_eq!(first.allowance, Some(Span::from_ns(4)));
    let wall = first.wall_timer.expect("the budget comes back");
    assert_eq!((wall.entity, wall.at), (server, Instant::from_ns(10)));

    // E1 ends after 3; E0 runs on the rest.
    driver.ran(E1, 3).complete(E1);
    let second = driver.decide();
    assert_eq!((second.running, second.allowance), (Some(TaskId(E0)), Some(Span::from_ns(1))));

    // Exhausted at 4: the node is out, although E0 is ready; the FP node takes over.
    driver.ran(E0, 1);
    let without = driver.decide();
    assert_eq!(without.running, Some(TaskId(F1)));
    assert_eq!(without.allowance, None);
    driver.at(5).release(F0);
    assert_eq!(driver.running(), Some(F0), "fixed priorities inside the FP node");
    assert_eq!(driver.at(6).complete(F0).running(), Some(F1));
    assert_eq!(driver.at(7).complete(F1).running(), Some(BACK));

    // The wall timer replenishes it; the same generation a second time is stale.
    let fired = EventKind::Timer { entity: server, generation: wall.generation };
    driver.at(10).on(fired).expect("it is the armed one");
    assert_eq!(driver.on(fired), Err(Rejected::Stale));
    let again = driver.decide();
    assert_eq!(again.running, Some(TaskId(E0)));
    assert_eq!(again.allowance, Some(Span::from_ns(4)));
    assert_eq!(again.wall_timer.map(|timer| timer.at), Some(Instant::from_ns(20)));
    assert_ne!(again.wall_timer.map(|timer| timer.generation), Some(wall.generation));
}

#[test]
fn a_committed_job_overdraws_its_budget() {
    let Tree { mut driver, server, .. } = tree(NON_PREEMPTIVE);
    driver.release_until(E1, 40).release(BACK);
    assert_eq!((driver.running(), driver.allowance()), (Some(E1), Some(4)));
    driver.ran(E1, 4);
    let overdrawn = driver.decide();
    assert_eq!(overdrawn.running, Some(TaskId(E1)), "it is not preemptible");
    assert_eq!(overdrawn.allowance, None, "nothing is left to limit it");
    assert!(overdrawn.should_yield, "its node is out of budget and BACK waits");
    // It ends after 7 in all; the budget is at -3, so the next replenishment leaves 1.
    driver.ran(E1, 3).complete(E1);
    assert_eq!(driver.running(), Some(BACK));
    driver.at(8).release_until(E0, 50);
    assert_eq!(driver.running(), Some(BACK));
    let wall = driver.decide().wall_timer.expect("the budget comes back");
    driver.at(10).on(EventKind::Timer { entity: server, generation: wall.generation }).expect("it is armed");
    let replenished = driver.decide();
    assert_eq!(replenished.running, Some(TaskId(E0)));
    assert_eq!(replenished.allowance, Some(Span::from_ns(1)));
}

#[test]
fn a_job_whose_budget_is_gone_is_asked_to_leave_although_nobody_waits() {
    let deferred = "period = \"100 ms\"; preemption = \"deferred\"; segments = [\"2 ms\", \"2 ms\"]";
    let Tree { mut driver, .. } = tree(deferred);
    driver.release_until(E1, 40);
    assert_eq!((driver.running(), driver.allowance()), (Some(E1), Some(4)));
    driver.ran(E1, 4);
    let overdrawn = driver.decide();
    assert_eq!((overdrawn.running, overdrawn.should_yield), (Some(TaskId(E1)), true));
    let point = EventKind::PreemptionPoint { task: TaskId(E1), willing: true, next: 1 };
    driver.at(5).on(point).expect("it is at a point");
    assert_eq!(driver.running(), None, "it waits for the next budget");
}

#[test]
fn a_mode_change_reorders_and_deactivates() {
    let Tree { mut driver, second_mode, .. } = tree(TASK);
    driver.release(F0).release(F1).release(F1).release_until(E1, 30);
    assert_eq!(driver.running(), Some(E1));
    driver.at(1).on(EventKind::ModeChange { mode: second_mode }).expect("there is such a mode");
    assert_eq!(driver.machine.mode(), second_mode);
    assert_eq!(driver.running(), Some(E1), "a job in progress finishes");
    let release = EventKind::Release { task: TaskId(E1), deadline: Instant::NEVER };
    assert_eq!(driver.on(release), Err(Rejected::Inactive));
    assert_eq!(driver.at(2).complete(E1).running(), Some(F1), "F1 is now more important than F0");
    assert_eq!(driver.at(3).complete(F1).running(), Some(F1));
    driver.at(4).on(EventKind::ModeChange { mode: 0 }).expect("mode 0 is the system");
    assert_eq!(driver.running(), Some(F0), "and now F0 again");
    assert_eq!(driver.at(5).on(release), Ok(()));
    assert_eq!(driver.running(), Some(E1));
}

#[test]
fn a_clone_goes_its_own_way() {
    let Tree { mut driver, .. } = tree(TASK);
    driver.release_until(E0, 50).release(BACK);
    assert_eq!(driver.running(), Some(E0));
    let mut other = Driver::new(driver.machine.clone());
    other.ran(E0, 4);
    assert_eq!(other.running(), Some(BACK));
    assert_eq!(driver.running(), Some(E0));
}

#[test]
fn a_tree_must_be_whole() {
    let system = system("policy = \"edf\"", &[&format!("name = \"a\"; {TASK}")]);
    let mut builder = MachineBuilder::new(&system).root(CPU, NodeSpec::default());
    assert!(
        MachineBuilder::new(&system).root(CPU, NodeSpec::default()).build().is_err(),
        "a has no priority"
    );
    let edf = || NodeSpec { policy: NodePolicy::Edf, ..NodeSpec::default() };
    let node = builder.node(builder.root_of(CPU), edf());
    builder.place(TaskId(0), node);
    assert!(builder.build().is_err(), "the inner node has no priority");
    let mut builder = MachineBuilder::new(&system);
    let node = builder.node(builder.root_of(CPU), edf());
    builder.place(TaskId(0), node);
    assert!(builder.build().is_ok(), "below an EDF root it needs none");
    let mut builder = MachineBuilder::new(&system);
    builder.place(TaskId(0), EntityId(0));
    assert!(builder.build().is_err(), "a task is no place");
}

#[test]
fn a_nodes_parent_is_a_dispatcher_that_is_there() {
    let system = system("policy = \"edf\"", &[&format!("name = \"a\"; {TASK}")]);
    let edf = || NodeSpec { policy: NodePolicy::Edf, ..NodeSpec::default() };
    let last = MachineBuilder::new(&system).root_of(CPU);
    // A task, and one past the last dispatcher.
    for parent in [EntityId(0), EntityId(last.0 + 1)] {
        let mut builder = MachineBuilder::new(&system);
        builder.node(parent, edf());
        let error = builder.build().expect_err("no such dispatcher");
        assert_eq!(error.reason, "a node's parent is not a dispatcher");
    }
}

/// `count` tasks, the first the most important; in the second mode the last is.
fn turned(count: u32) -> Driver {
    let lines: Vec<String> =
        (0..count).map(|n| format!("name = \"t{n}\"; priority = {}; {TASK}", count - n)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let system = system("", &lines);
    let mut builder = MachineBuilder::new(&system);
    let task = |n: u32| TaskMode { priority: Some(Priority::new(i64::from(n))), ..TaskMode::default() };
    assert_eq!(builder.mode(ModeSpec { tasks: (0..count).map(task).collect(), ..ModeSpec::default() }), 1);
    Driver::new(builder.build().expect("a valid machine"))
}

#[test]
fn readiness_travels_with_a_mode_change_among_few_tasks_and_many() {
    for count in [2, 64, 65, 140] {
        for ready in [0, count - 1, count / 2] {
            let mut driver = turned(count);
            assert_eq!(driver.release(ready).running(), Some(ready));
            for mode in [1, 0, 1, 1, 0] {
                driver.on(EventKind::ModeChange { mode }).expect("there is such a mode");
                assert_eq!(driver.running(), Some(ready), "{count} tasks, mode {mode}");
            }
            assert_eq!(driver.complete(ready).running(), None);
            // What was ready once is so no more.
            for mode in [1, 0, 1, 1, 0] {
                driver.on(EventKind::ModeChange { mode }).expect("there is such a mode");
                assert_eq!(driver.running(), None, "{count} tasks, mode {mode}");
            }
        }
        // The order turns round.
        let mut driver = turned(count);
        driver.release(0).release(count - 1);
        for (mode, first) in [(0, 0), (1, count - 1), (0, 0)] {
            driver.on(EventKind::ModeChange { mode }).expect("there is such a mode");
            assert_eq!(driver.running(), Some(first), "{count} tasks, mode {mode}");
        }
    }
}

/// A table whose one window is from 0 to 10 of 30, above a task that has none.
fn windowed(kind: &str) -> Driver {
    let text = format!(
        "[system]\nname = \"windows\"\n[[task]]\nname = \"x\"\nperiod = \"100 ns\"\n{kind}\n[[task]]\nname = \"low\"\nperiod = \
         \"100 ns\"\nwcet = \"5 ns\"\npriority = 1\n[[scheduler]]\nname = \"table\"\norder = \"table\"\npriority = 5\ncycle = \
         \"30 ns\"\nwindows = [{{ child = \"x\", from = \"0 ns\", length = \"10 ns\" }}]\ntasks = [\"x\"]\n"
    );
    let (system, _) = horolog_model::file::read(&text, "windows.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    Driver::new(Machine::new(&system).expect("it builds"))
}

fn window_ends(driver: &mut Driver) {
    let timer = driver.decide().wall_timer.expect("the window ends");
    assert_eq!(timer.at.as_ns(), 10);
    driver.at(10).on(EventKind::Timer { entity: timer.entity, generation: timer.generation }).expect("armed");
    let beyond = driver.decide();
    assert_eq!((beyond.running, beyond.should_yield), (Some(TaskId(0)), true), "it keeps the processor");
    assert_eq!(driver.machine.check(), Ok(()));
}

#[test]
fn a_job_beyond_its_window_gives_way_as_soon_as_it_can_be_preempted() {
    let deferred = "preemption = \"deferred\"\nsegments = [\"12 ns\", \"8 ns\"]";
    let mut driver = windowed(deferred);
    driver.release(0).release(1);
    window_ends(&mut driver);
    driver.at(12).point(0, 1);
    assert_eq!((driver.running(), driver.machine.check()), (Some(1), Ok(())));
    let mut driver = windowed("wcet = \"20 ns\"\npreemption = \"non-preemptive\"");
    driver.release(0).release(1);
    window_ends(&mut driver);
    let preemptible = EventKind::SetPreemptible { task: TaskId(0), preemptible: true };
    driver.at(12).on(preemptible).expect("it runs");
    assert_eq!((driver.running(), driver.machine.check()), (Some(1), Ok(())));
}
