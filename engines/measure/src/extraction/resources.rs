//! Locks that several threads share, as resources of the system file where it has a protocol that does what the lock does.

use super::event::LockKind;
use super::proposal::{Arrival, Options, Values};
use super::task::{LockUse, TaskProposal};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A lock that becomes a `[[resource]]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SharedLock {
    /// The lock's name, which is the resource's.
    pub name: String,
    /// The file's protocol.
    pub protocol: &'static str,
    /// One section of each task that takes it.
    pub sections: Vec<ProposedSection>,
}

/// A `[[task.section]]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProposedSection {
    /// The task.
    pub task: String,
    /// What the job has executed before it, ns. That it lies there is no observation: no bound depends on it.
    pub from_ns: u64,
    /// The longest one seen, its sleeps included, with the margin, ns.
    pub length_ns: u64,
}

/// A shared lock that the file cannot say.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// The lock.
    pub lock: String,
    /// The tasks that take it.
    pub tasks: Vec<String>,
    /// Threads that are no tasks here and take it.
    pub others: Vec<String>,
    /// Why there is no resource for it.
    pub why: String,
}

/// The locks of a proposal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Locks {
    /// Those in the file.
    pub resources: Vec<SharedLock>,
    /// Those that are not.
    pub left_out: Vec<LeftOut>,
}

/// A thread that is no task, with the locks that it takes.
pub(super) struct Other {
    pub(super) name: String,
    pub(super) locks: Vec<LockUse>,
}

/// Who takes a lock: tasks by their places, and threads that are none.
type Users<'a> = (Vec<(usize, &'a LockUse)>, BTreeSet<&'a str>);

/// Finds what is shared. `tasks` have their final processors.
pub(super) fn shared(
    tasks: &[(TaskProposal, Values)],
    others: &[Other],
    is_edf: bool,
    options: &Options,
) -> Locks {
    let mut users: BTreeMap<&str, Users<'_>> = BTreeMap::new();
    for (place, (task, _)) in tasks.iter().enumerate() {
        for lock in &task.locks {
            users.entry(&lock.lock).or_default().0.push((place, lock));
        }
    }
    for other in others {
        for lock in &other.locks {
            if let Some((_, names)) = users.get_mut(&*lock.lock) {
                names.insert(&other.name);
            }
        }
    }
    let mut waiting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (task, _) in tasks {
        for lock in task.timed_out.iter().filter(|lock| task.locks.iter().all(|held| held.lock != **lock)) {
            waiting.entry(lock).or_default().insert(&task.name);
        }
    }
    let mut locks = Locks::default();
    for (lock, waiting) in &waiting {
        let users = users.get(lock);
        let holders =
            users.iter().flat_map(|(users, _)| users).map(|(place, _)| tasks[*place].0.name.clone());
        locks.left_out.push(LeftOut {
            lock: (*lock).to_owned(),
            tasks: waiting.iter().map(|name| (*name).to_owned()).chain(holders).collect(),
            others: users.iter().flat_map(|(_, others)| others).map(|name| (*name).to_owned()).collect(),
            why: "who waits for it never got it in time, and that wait is in no section".to_owned(),
        });
    }
    // What each task's sections take so far: they lie one behind the other.
    let mut taken = vec![0_u64; tasks.len()];
    for (lock, (users, others)) in users {
        if users.len() + others.len() < 2 {
            continue;
        }
        let names = users.iter().map(|(place, _)| tasks[*place].0.name.clone());
        let left_out = |why: String| LeftOut {
            lock: lock.to_owned(),
            tasks: names.clone().collect(),
            others: others.iter().map(|name| (*name).to_owned()).collect(),
            why,
        };
        match resource(lock, &users, tasks, (is_edf, options), &mut taken) {
            Ok(resource) => {
                locks.resources.push(resource);
                if !others.is_empty() {
                    locks.left_out.push(left_out(
                        "what these threads hold is in no bound, since they are not tasks here".to_owned(),
                    ));
                }
            }
            Err(why) => locks.left_out.push(left_out(why)),
        }
    }
    locks
}

/// The resource of one lock, or why there is none.
fn resource(
    lock: &str,
    users: &[(usize, &LockUse)],
    tasks: &[(TaskProposal, Values)],
    (is_edf, options): (bool, &Options),
    taken: &mut [u64],
) -> Result<SharedLock, String> {
    let kind = users.iter().map(|(_, lock)| lock.kind).min().unwrap_or(LockKind::Other);
    let protocol = protocol(kind)?;
    if users.len() < 2 {
        let raised = match kind {
            LockKind::Plain => ", and nothing raises the priority of who holds it",
            _ => "",
        };
        return Err(format!("what these threads hold is in no bound, since they are not tasks here{raised}"));
    }
    if is_edf {
        return Err("under EDF no protocol of a resource does what a mutex does".to_owned());
    }
    let cpus: BTreeSet<u32> = users.iter().map(|(place, _)| tasks[*place].1.cpu).collect();
    if cpus.len() > 1 {
        return Err(format!(
            "its users are on CPUs {cpus:?}, and no protocol of a resource across CPUs does what a mutex does; \
             `horolog_lock` with one of these protocols would be bounded"
        ));
    }
    let mut sections = Vec::new();
    for &(place, held) in users {
        let (task, values) = &tasks[place];
        if task.locks.iter().any(|lock| lock.depth_max > 0) {
            return Err(format!("{} takes locks while it holds others", task.name));
        }
        if matches!(values.arrival, Arrival::Portions { .. }) {
            return Err(format!("{} is described by portions of its execution, not by jobs", task.name));
        }
        let length_ns = options.with_margin(held.length_max_ns);
        let from_ns = taken[place];
        if from_ns.saturating_add(length_ns) > values.wcet {
            return Err(format!(
                "the longest sections of {} are together longer than its wcet (they may be of several jobs, or count time in which it was preempted)",
                task.name
            ));
        }
        sections.push(ProposedSection { task: task.name.clone(), from_ns, length_ns });
    }
    for (&(place, _), section) in users.iter().zip(&sections) {
        taken[place] += section.length_ns;
    }
    Ok(SharedLock { name: lock.to_owned(), protocol, sections })
}

/// The protocol of the file that does what a lock does.
fn protocol(kind: LockKind) -> Result<&'static str, String> {
    match kind {
        LockKind::Plain => Ok("none"),
        LockKind::Inheritance => Ok("inheritance"),
        LockKind::Ceiling => Ok("ceiling"),
        LockKind::Other => Err("it is a spinlock or a lock for readers and writers".to_owned()),
    }
}
