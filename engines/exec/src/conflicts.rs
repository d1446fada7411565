//! Who else wants the processors of a run: told before it, since afterwards it is a missed deadline.
//!
//! A thread of another program conflicts where it may run on a processor of the run and the kernel lets it go before a task there:
//! `SCHED_FIFO` or `SCHED_RR` at the least important task's band or above, and `SCHED_DEADLINE` always. Tasks that an agent schedules are
//! all in its band for the running one. Left out are kernel threads, which go before everything on every machine, and the guardians
//! of other commands. Another command that has a guardian conflicts, too: it may change what this one has changed.

use crate::plan::{Mode, Plan};
use crate::{ExecError, RunOptions, bands};
use horolog_model::{Companion, CpuId, System};
use horolog_sys::fixed_priority::Class;
use horolog_sys::guardian;
use horolog_sys::thread_facts::{self, Scheduling, ThreadFacts};
use serde::Serialize;
use std::fmt;

/// Something that may keep tasks of a run waiting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Conflict {
    /// The thread's or the program's short name.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// The thread; null of another command of horolog.
    pub thread: Option<u32>,
    /// `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`; null of another command of horolog.
    pub policy: Option<&'static str>,
    /// Its priority; null where it has none.
    pub priority: Option<u8>,
    /// The processors of the run on which it may run; empty of another command of horolog.
    pub cpus: Vec<u32>,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { name, process, thread, policy, priority, cpus, remedy } = self;
        match (thread, policy) {
            (Some(thread), Some(policy)) => {
                let priority = priority.map_or_else(String::new, |priority| format!(" {priority}"));
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                let cpus = cpus.join(", ");
                write!(
                    f,
                    "{name} (process {process}, thread {thread}) is {policy}{priority} on cpu {cpus} and goes before tasks there; {remedy}"
                )
            }
            _ => write!(f, "another command of horolog is under way: {name} (process {process}); {remedy}"),
        }
    }
}

/// What conflicts with a run of `system` now.
///
/// # Errors
/// As [`crate::run`], as far as the plan tells.
pub fn conflicts(system: &System, options: &RunOptions) -> Result<Vec<Conflict>, ExecError> {
    let companion = Companion::emulated(system)?;
    let plan = Plan::new(system, &companion.system, options)?;
    let mut cpus: Vec<u32> = companion.system.tasks().iter().map(|task| task.cpu.0).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let band = |cpu| (cpu, least_band(&companion.system, &plan, cpu));
    let least: Vec<(u32, u8)> = cpus.into_iter().map(band).collect();
    Ok(other_commands().into_iter().chain(threads(&least)).collect())
}

/// What would conflict with a run on these processors, whatever its priorities.
#[must_use]
pub fn conflicts_on(cpus: &[u32]) -> Vec<Conflict> {
    let least: Vec<(u32, u8)> = cpus.iter().map(|&cpu| (cpu, 1)).collect();
    other_commands().into_iter().chain(threads(&least)).collect()
}

/// The band of the least important task of a processor, as the kernel sees it.
fn least_band(system: &System, plan: &Plan, cpu: u32) -> u8 {
    let driven = plan.cpus.iter().find(|planned| planned.cpu == cpu && planned.mode == Mode::Authoritative);
    let bands = system.tasks_on(CpuId(cpu)).map(|(id, _)| match plan.classes[id.index()] {
        // Those that wait in the band below are not meant to run.
        Class::Fifo(_) if driven.is_some_and(|driven| driven.tasks.contains(&id)) => bands::RUN,
        Class::Fifo(band) => band,
        // Any real-time thread goes before normal scheduling.
        _ => 1,
    });
    bands.min().unwrap_or(u8::MAX)
}

fn other_commands() -> Vec<Conflict> {
    let running = guardian::running().unwrap_or_default().into_iter();
    running
        .filter_map(|life| {
            let facts = thread_facts::of_thread(life.id).ok();
            // A zombie runs nothing.
            if facts.as_ref().is_some_and(|facts| facts.has_ended) {
                return None;
            }
            Some(Conflict {
                name: facts.map(|facts| facts.comm).unwrap_or_default(),
                process: life.id,
                thread: None,
                policy: None,
                priority: None,
                cpus: Vec::new(),
                remedy: "wait for its end, or give the two different processors".to_owned(),
            })
        })
        .collect()
}

fn threads(least: &[(u32, u8)]) -> Vec<Conflict> {
    thread_facts::foreign_threads().iter().filter_map(|facts| conflict(facts, least)).collect()
}

/// Whether a thread goes before a task of one of these processors, each with the band of its least important one.
fn conflict(facts: &ThreadFacts, least: &[(u32, u8)]) -> Option<Conflict> {
    if facts.has_ended {
        return None;
    }
    let (policy, priority) = match facts.scheduling {
        Scheduling::Fifo(priority) => ("SCHED_FIFO", Some(priority)),
        Scheduling::RoundRobin(priority) => ("SCHED_RR", Some(priority)),
        Scheduling::Deadline(_) => ("SCHED_DEADLINE", None),
        Scheduling::Normal(_) | Scheduling::Idle | Scheduling::Other(_) => return None,
    };
    let goes_before = |&&(cpu, band): &&(u32, u8)| {
        facts.allowed.contains(&cpu) && priority.is_none_or(|priority| priority >= band)
    };
    let cpus: Vec<u32> = least.iter().filter(goes_before).map(|&(cpu, _)| cpu).collect();
    let (tid, cpu) = (facts.tid, *cpus.first()?);
    let remedy = match policy {
        "SCHED_DEADLINE" => format!("end it, or run on another processor than {cpu}"),
        _ => format!(
            "move it (`taskset -pc CPUS {tid}`), lower it (`chrt -f -p N {tid}`), end it, or run on another processor than {cpu}"
        ),
    };
    Some(Conflict {
        name: facts.comm.clone(),
        process: facts.process,
        thread: Some(tid),
        policy: Some(policy),
        priority,
        cpus,
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(scheduling: Scheduling, least: &[(u32, u8)]) -> Option<Conflict> {
        found_of(scheduling, least, false)
    }

    fn found_of(scheduling: Scheduling, least: &[(u32, u8)], has_ended: bool) -> Option<Conflict> {
        let comm = "rival".to_owned();
        conflict(&ThreadFacts { tid: 8, process: 7, comm, scheduling, allowed: vec![0, 2], has_ended }, least)
    }

    #[test]
    fn a_thread_that_has_ended_is_not_in_the_way() {
        let least = [(2, 50)];
        assert!(found_of(Scheduling::Fifo(60), &least, false).is_some());
        assert_eq!(found_of(Scheduling::Fifo(60), &least, true), None);
    }

    #[test]
    fn what_goes_before_a_task_conflicts() {
        for scheduling in [Scheduling::Fifo, Scheduling::RoundRobin] {
            assert_eq!(found(scheduling(49), &[(2, 50)]), None);
            assert_eq!(found(scheduling(99), &[(1, 50), (3, 1)]), None);
            let conflict =
                found(scheduling(50), &[(0, 51), (1, 50), (2, 50)]).expect("as important as a task");
            assert_eq!(
                (conflict.cpus.as_slice(), conflict.priority, conflict.thread),
                (&[2][..], Some(50), Some(8))
            );
        }
        assert_eq!(found(Scheduling::Normal(-20), &[(2, 1)]), None);
        let told = found(Scheduling::Fifo(60), &[(2, 50)]).expect("more important").to_string();
        for words in [
            "rival (process 7, thread 8) is SCHED_FIFO 60 on cpu 2",
            "taskset -pc CPUS 8",
            "another processor than 2",
        ] {
            assert!(told.contains(words), "{told}");
        }
    }
}
