//! Systems with a server of every kind, and a driver that serves their timers.

use super::CPU;
use horolog_model::{System, TaskId};
use horolog_sched::{Event, EventKind, Machine};
use horolog_time::{Instant, Span};

/// Everything that a server of every kind needs beside its name and tasks, and the system's policy.
pub const SERVERS: [(&str, &str); 12] = [
    ("kind = \"background\"", "fixed-priority"),
    ("kind = \"polling\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"\npriority = 9", "fixed-priority"),
    ("kind = \"deferrable\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"\npriority = 2", "fixed-priority"),
    (
        "kind = \"sporadic\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"\npriority = 9\nmax_replenishments = 2",
        "fixed-priority",
    ),
    (
        "kind = \"sporadic\"\nrules = \"posix\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"\npriority = 9\nmax_replenishments = 2",
        "fixed-priority",
    ),
    (
        "kind = \"sporadic\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"\npriority = 9\nlow_priority = \"none\"",
        "fixed-priority",
    ),
    ("kind = \"priority-exchange\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"\npriority = 2", "fixed-priority"),
    ("kind = \"constant-bandwidth\"\nbudget = \"3 ns\"\nperiod = \"10 ns\"", "edf"),
    ("kind = \"dual-priority\"", "fixed-priority"),
    ("kind = \"dual-priority\"\ngain = \"both\"", "fixed-priority"),
    ("kind = \"slack-stealing\"", "fixed-priority"),
    ("kind = \"slack-stealing\"\ngain = \"propagated\"", "fixed-priority"),
];

/// Three hard tasks (0 to 2) and two soft ones (3 and 4).
pub fn served((server, policy): (&str, &str)) -> System {
    let mut text = format!("[system]\nname = \"served\"\npolicy = \"{policy}\"\n");
    for (index, (period, wcet)) in [(10, 2), (20, 4), (40, 8)].into_iter().enumerate() {
        text += &format!("[[task]]\nname = \"h{index}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\n");
        if policy == "fixed-priority" {
            text += &format!("priority = {}\n", 3 - index);
        }
    }
    text += "[[task]]\nname = \"x\"\narrivals = [\"0 ns\"]\nwcet = \"5 ns\"\n[[task]]\nname = \"y\"\nseparation = \"9 ns\"\nwcet = \
             \"4 ns\"\n";
    text += &format!("[[server]]\nname = \"s\"\ntasks = [\"x\", \"y\"]\n{server}\n");
    match horolog_model::file::read(&text, "served.toml", &[]) {
        Ok((system, _)) => horolog_testkit::resolved(&system),
        Err(errors) => panic!("{errors}"),
    }
}

/// Releases and completions as the machine's own answers allow, with its timers served, one unit of time a step; how many
/// events were taken.
pub fn churn(machine: &mut Machine, from: u64, steps: u64) -> u64 {
    let mut state = 88_172_645_463_325_252_u64;
    let mut events = 0;
    for now in from..from + steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut on = |machine: &mut Machine, kind| {
            events += u64::from(machine.on(Event::at(Instant::from_ns(now), kind)).is_ok());
        };
        let desired = machine.decide(CPU);
        if let Some(task) = desired.running {
            on(machine, EventKind::Ran { task, amount: Span::from_ns(1) });
        }
        if let Some(task) = desired.running.filter(|_| state.is_multiple_of(3)) {
            on(machine, EventKind::Completion { task });
        }
        if let Some(timer) = desired.wall_timer.filter(|timer| timer.at.as_ns() <= now) {
            on(machine, EventKind::Timer { entity: timer.entity, generation: timer.generation });
        }
        let task = TaskId((state >> 8) as u32 % 5);
        if machine.jobs(task) < 4 && state >> 20 & 1 == 0 {
            let deadline = Instant::from_ns(now + [10, 20, 40, 50, 50][task.index()]);
            on(machine, EventKind::Release { task, deadline });
        }
    }
    events
}
