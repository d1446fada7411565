//! Locks in the machine: whatever order events come in, what is kept is what a recomputation gives; and it makes no difference
//! whether the machine learns of a lock when it happens or before it is told anything else.

mod support;

use horolog_model::TaskId;
use horolog_sched::{Event, EventKind, Machine, Rejected};
use horolog_time::{Instant, Span};
use proptest::prelude::*;
use support::{CPU, Driver};

const TASKS: u32 = 5;
const RESOURCES: u32 = 2;

/// Three tasks at the root and two below a server; all but one use a resource.
fn machine(policy: &str, at_exhaustion: &str) -> Machine {
    let is_edf = policy == "edf";
    let mut text = format!("[system]\nname = \"locks\"\npolicy = \"{policy}\"\n");
    for (index, resource) in ["one", "two", "", "one", "two"].into_iter().enumerate() {
        let served = index >= 3;
        let when = if served {
            "arrivals = [\"0 ms\"]".to_owned()
        } else {
            format!("period = \"{} ms\"", 10 + index)
        };
        let priority = if served || is_edf { String::new() } else { format!("priority = {}\n", index + 1) };
        text += &format!("[[task]]\nname = \"t{index}\"\n{when}\nwcet = \"4 ms\"\n{priority}");
        if !resource.is_empty() {
            text +=
                &format!("[[task.section]]\nresource = \"{resource}\"\nfrom = \"1 ms\"\nlength = \"1 ms\"\n");
        }
    }
    let kind = if is_edf {
        "kind = \"constant-bandwidth\"\nbudget = \"3 ns\"\nperiod = \"11 ns\"".to_owned()
    } else {
        "kind = \"deferrable\"\nbudget = \"3 ns\"\nperiod = \"11 ns\"\npriority = 2\nlow_priority = \"none\""
            .to_owned()
    };
    text += &format!("[[server]]\nname = \"s\"\n{kind}\ntasks = [\"t3\", \"t4\"]\n");
    for name in ["one", "two"] {
        text += &format!("[[resource]]\nname = \"{name}\"\nat_exhaustion = \"{at_exhaustion}\"\n");
    }
    let (system, _) = horolog_model::file::read(&text, "locks.toml", &[]).expect("a valid file");
    Machine::new(&system).expect("it builds")
}

/// What the world does next; time passes before.
#[derive(Clone, Copy, Debug)]
enum Step {
    Release(u32),
    /// The running job executes and goes on.
    Run,
    Complete,
    Lock(u32),
    Unlock(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..TASKS).prop_map(Step::Release),
        3 => Just(Step::Run),
        1 => Just(Step::Complete),
        3 => (0..RESOURCES).prop_map(Step::Lock),
        2 => (0..RESOURCES).prop_map(Step::Unlock),
    ]
}

/// One machine and what it has not been told yet.
struct Told {
    machine: Machine,
    untold: Option<EventKind>,
    /// Whether a lock that nobody contends is told late.
    is_late: bool,
}

impl Told {
    fn tell(&mut self, now: u64, kind: EventKind) -> Result<(), Rejected> {
        if let Some(lock) = self.untold.take() {
            let told = self.machine.on(Event::at(Instant::from_ns(now), lock));
            assert_eq!(told, Ok(()), "what was free stays free while nothing is told");
        }
        let is_free = match kind {
            EventKind::Lock { resource, .. } => self.machine.holder(resource).is_none(),
            _ => false,
        };
        if self.is_late && is_free {
            self.untold = Some(kind);
            return Ok(());
        }
        let told = self.machine.on(Event::at(Instant::from_ns(now), kind));
        assert_eq!(self.machine.check(), Ok(()), "after {kind:?}");
        told
    }

    /// Timers that are due, then the choice.
    fn settle(&mut self, now: u64) -> Option<TaskId> {
        if self.untold.is_some() {
            // Nothing else has happened: who locked has the processor.
            return None;
        }
        for _ in 0..8 {
            let Some(timer) = self.machine.wall_timer(CPU).filter(|timer| timer.at.as_ns() <= now) else {
                break;
            };
            let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
            assert_eq!(self.tell(now, kind), Ok(()));
        }
        let running = self.machine.decide(CPU).running;
        assert_eq!(self.machine.check(), Ok(()), "after the choice at {now}");
        running
    }
}

fn holds_through(policy: &str, at_exhaustion: &str, steps: &[(u64, Step)]) {
    let of = |is_late| Told { machine: machine(policy, at_exhaustion), untold: None, is_late };
    let (mut at_once, mut late) = (of(false), of(true));
    let (mut now, mut running) = (0, at_once.settle(0));
    assert_eq!(late.settle(0), running);
    for &(pause, step) in steps {
        now += pause;
        let mut both = |kind: EventKind| {
            let told = (at_once.tell(now, kind), late.tell(now, kind));
            assert_eq!(told.0, told.1, "{kind:?}");
            told.0
        };
        if let Some(task) = running.filter(|_| pause > 0) {
            assert_eq!(both(EventKind::Ran { task, amount: Span::from_ns(pause) }), Ok(()));
            // Who has lost the processor by that does nothing more.
            running = at_once.settle(now);
            assert_eq!(late.settle(now), running, "at {now}");
        }
        let mut both = |kind: EventKind| {
            let told = (at_once.tell(now, kind), late.tell(now, kind));
            assert_eq!(told.0, told.1, "{kind:?}");
            told.0
        };
        let told = match (step, running) {
            (Step::Release(task), _) => {
                let deadline = Instant::from_ns(now + 10 + u64::from(task));
                both(EventKind::Release { task: TaskId(task), deadline })
            }
            (Step::Complete, Some(task)) => both(EventKind::Completion { task }),
            (Step::Lock(resource), Some(task)) => both(EventKind::Lock { task, resource }),
            (Step::Unlock(resource), Some(task)) => both(EventKind::Unlock { task, resource }),
            _ => Ok(()),
        };
        assert!(
            matches!(told, Ok(()) | Err(Rejected::Held | Rejected::NotHeld)),
            "{step:?} of {running:?} at {now}: {told:?}"
        );
        let chosen = at_once.settle(now);
        if late.untold.is_none() {
            assert_eq!(late.settle(now), chosen, "at {now} after {step:?}");
        } else {
            assert_eq!(chosen, running, "a lock that nobody contends changes nothing at once");
        }
        running = chosen;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn locks_told_late_are_locks_told_at_once(
        steps in prop::collection::vec((0..4_u64, step()), 1..120),
        edf in any::<bool>(),
        finish in any::<bool>(),
    ) {
        holds_through(
            if edf { "edf" } else { "fixed-priority" },
            if finish { "finish" } else { "wait" },
            &steps,
        );
    }
}

#[test]
fn what_does_not_fit_is_rejected_and_changes_nothing() {
    let mut machine = machine("fixed-priority", "finish");
    let (first, second) = (TaskId(0), TaskId(2));
    let mut on = |now, kind| {
        let told = machine.on(Event::at(Instant::from_ns(now), kind));
        let _ = machine.decide(CPU);
        assert_eq!(machine.check(), Ok(()));
        told
    };
    let release = |task| EventKind::Release { task, deadline: Instant::from_ns(50) };
    let (lock, unlock) = (
        |task, resource| EventKind::Lock { task, resource },
        |task, resource| EventKind::Unlock { task, resource },
    );
    assert_eq!(on(0, lock(first, 0)), Err(Rejected::NotRunning));
    assert_eq!(on(0, release(first)), Ok(()));
    assert_eq!(on(0, lock(first, 2)), Err(Rejected::Unknown));
    assert_eq!(on(0, lock(TaskId(9), 0)), Err(Rejected::Unknown));
    assert_eq!(on(0, unlock(first, 0)), Err(Rejected::NotHeld));
    assert_eq!(on(0, lock(first, 0)), Ok(()));
    assert_eq!(on(0, lock(first, 0)), Err(Rejected::Held));
    // A job that ends lets go.
    assert_eq!(on(3, EventKind::Completion { task: first }), Ok(()));
    assert_eq!(on(3, release(second)), Ok(()));
    assert_eq!(on(3, lock(second, 0)), Ok(()));
    assert_eq!(on(4, unlock(second, 0)), Ok(()));
    assert_eq!(on(4, unlock(second, 0)), Err(Rejected::NotHeld));
}

fn machine_of(text: &str) -> Driver {
    let text = format!("[system]\nname = \"locks\"\n{text}");
    let (system, _) = horolog_model::file::read(&text, "locks.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    Driver::new(Machine::new(&system).expect("it builds"))
}

/// Windows keep the processor for a job that holds something; where there is no window, a preemption point is one.
#[test]
fn at_a_preemption_point_a_holder_gives_way_to_whoever_is_above_the_ceiling() {
    let section = "[[task.section]]\nresource = \"r\"\nfrom = \"0 ms\"\nlength = \"3 ms\"\n";
    let text = format!(
        "[[task]]\nname = \"holder\"\nperiod = \"50 ms\"\npriority = 1\npreemption = \"deferred\"\nsegments = [\"2 ms\", \
         \"2 ms\"]\n{section}[[task]]\nname = \"user\"\nperiod = \"50 ms\"\nwcet = \"4 ms\"\npriority = 2\n{section}\
         [[task]]\nname = \"above\"\nperiod = \"50 ms\"\nwcet = \"4 ms\"\npriority = 3\n\
         [[resource]]\nname = \"r\"\nat_exhaustion = \"finish\"\n"
    );
    let mut driver = machine_of(&text);
    driver.release(0);
    assert_eq!(driver.running(), Some(0));
    driver.on(EventKind::Lock { task: TaskId(0), resource: 0 }).expect("it is free");
    driver.at(1).release(1).release(2);
    let before = driver.decide();
    assert_eq!((before.running, before.should_yield), (Some(TaskId(0)), true), "it stands at no point");
    driver.at(2).point(0, 1);
    let after = driver.decide();
    assert_eq!((after.running, after.should_yield), (Some(TaskId(2)), false));
    // The other user is at the ceiling, not above it.
    driver.at(3).complete(2);
    assert_eq!(driver.running(), Some(0));
    driver.on(EventKind::Unlock { task: TaskId(0), resource: 0 }).expect("it holds it");
    assert_eq!(driver.running(), Some(0), "on to the next point");
    driver.at(4).complete(0);
    assert_eq!(driver.running(), Some(1));
}

/// "The shortest level below it" is that of a task at any depth.
#[test]
fn below_edf_a_scheduler_without_a_budget_is_as_urgent_as_the_most_urgent_task_far_below() {
    let section = "[[task.section]]\nresource = \"r\"\nfrom = \"0 ns\"\nlength = \"3 ns\"\n";
    let task = |name: &str, period: u32, section: &str| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\nwcet = \"4 ns\"\n{section}")
    };
    // Both users stand at the root: its ceiling is 50.
    for (deadline, runs) in [(49, 2), (50, 0), (51, 0)] {
        let text = String::from("policy = \"edf\"\n")
            + &task("holder", 100, section)
            + &task("user", 50, section)
            + &task("deep", deadline, "")
            + "[[scheduler]]\nname = \"outer\"\norder = \"edf\"\ntasks = []\n\
               [[scheduler]]\nname = \"inner\"\nparent = \"outer\"\norder = \"edf\"\ntasks = [\"deep\"]\n\
               [[resource]]\nname = \"r\"\n";
        let mut driver = machine_of(&text);
        driver.release_until(0, 100);
        assert_eq!(driver.running(), Some(0));
        driver.on(EventKind::Lock { task: TaskId(0), resource: 0 }).expect("it is free");
        driver.at(1).release_until(2, 1 + u64::from(deadline));
        assert_eq!(driver.running(), Some(runs), "with a deadline of {deadline}");
        driver.at(2).on(EventKind::Unlock { task: TaskId(0), resource: 0 }).expect("it holds it");
        assert_eq!(driver.running(), Some(2), "with a deadline of {deadline}");
    }
}
