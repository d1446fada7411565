//! What the tests of the machine share.
#![allow(dead_code, unreachable_pub)]

pub mod served;

use horolog_model::{System, TaskId};
use horolog_sched::{Desired, Event, EventKind, Machine, ProcessorIndex, Rejected};
use horolog_time::{Instant, Span};

pub const CPU: ProcessorIndex = ProcessorIndex(0);

/// A system from lines of keys, one task a line: `name = "a"; wcet = "2 ms"` and so on.
pub fn system(head: &str, tasks: &[&str]) -> System {
    let mut text = format!("[system]\nname = \"test\"\n{head}\n");
    for task in tasks {
        text += &format!("[[task]]\n{}\n", task.replace("; ", "\n"));
    }
    match horolog_model::file::read(&text, "test.toml", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

/// A machine and a clock that the test moves.
pub struct Driver {
    pub machine: Machine,
    pub now: u64,
}

impl Driver {
    pub fn new(machine: Machine) -> Driver {
        Driver { machine, now: 0 }
    }

    pub fn at(&mut self, now: u64) -> &mut Driver {
        assert!(now >= self.now);
        self.now = now;
        self
    }

    pub fn on(&mut self, kind: EventKind) -> Result<(), Rejected> {
        self.machine.on(Event::at(Instant::from_ns(self.now), kind))
    }

    pub fn release(&mut self, task: u32) -> &mut Driver {
        self.release_until(task, Instant::NEVER.as_ns())
    }

    pub fn release_until(&mut self, task: u32, deadline: u64) -> &mut Driver {
        let deadline = Instant::from_ns(deadline);
        self.on(EventKind::Release { task: TaskId(task), deadline }).expect("the release is accepted");
        self
    }

    pub fn complete(&mut self, task: u32) -> &mut Driver {
        self.on(EventKind::Completion { task: TaskId(task) }).expect("the task runs");
        self
    }

    pub fn point(&mut self, task: u32, next: u32) -> &mut Driver {
        self.on(EventKind::PreemptionPoint { task: TaskId(task), willing: true, next })
            .expect("a legal point");
        self
    }

    /// The job of a task has executed for so long, up to then.
    pub fn ran(&mut self, task: u32, amount: u64) -> &mut Driver {
        self.now += amount;
        self.told(task, amount)
    }

    /// The job of a task has executed for so long up to now.
    pub fn told(&mut self, task: u32, amount: u64) -> &mut Driver {
        let kind = EventKind::Ran { task: TaskId(task), amount: Span::from_ns(amount) };
        self.on(kind).expect("the task exists");
        self
    }

    /// Whoever runs has executed for so long.
    pub fn executed(&mut self, amount: u64) {
        let running = self.running().expect("somebody runs");
        self.ran(running, amount);
    }

    /// How much the running job may execute.
    pub fn allowance(&mut self) -> Option<u64> {
        self.decide().allowance.map(Span::as_ns)
    }

    pub fn decide(&mut self) -> Desired {
        let desired = self.machine.decide(CPU);
        assert_eq!(self.machine.decide(CPU), desired, "asking twice gives the same answer");
        desired
    }

    pub fn running(&mut self) -> Option<u32> {
        self.decide().running.map(|task| task.0)
    }
}
