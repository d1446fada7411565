//! A second, naive simulator of whole systems: it shares no code with the scheduling machine, the simulator and the
//! verifier, only the model. It looks at every unit of time, keeps plain lists and computes everything anew.
//!
//! Written from `docs/concepts/servers.md`, `slack-stealing.md`, `dual-priority.md`, `scheduling-machine.md` and
//! `simulation.md`; what it knows and how it is used stands in `docs/concepts/reference-simulator.md`.

mod cluster;
pub mod draw;
mod group;
pub mod links;
mod locks;
mod modes;
mod order;
mod overruns;
mod rules;
pub mod shrink;
mod tree;

use group::Group;
use horolog_model::{CpuId, System};

/// One job to come, in units of a nanosecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its nominal arrival.
    pub arrival: u64,
    /// When it is noticed, not before its arrival nor before the task's job before.
    pub ready: u64,
    /// How long each of its segments executes, each at least one unit.
    pub segments: Vec<u64>,
    /// Which segments of its task these are; empty: the first ones, in their order.
    pub path: Vec<usize>,
}

/// What happens to a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum What {
    /// It gets the processor for the first time.
    Start,
    /// It loses the processor without giving it up.
    Preempt,
    /// It gives the processor up at a preemption point.
    Yield,
    /// It gets the processor back.
    Resume,
    /// It has executed all that it needs.
    Completion,
    /// It holds a resource from now on.
    Lock(usize),
    /// It holds a resource no more.
    Unlock(usize),
    /// It waits for a resource.
    Wait(usize),
    /// It has used up its budget and is acted upon: the number of the policy.
    Act(u64),
    /// It has executed longer than its wcet (0), or one of its segments has (1 and which).
    Overrun(u64),
}

/// Something that happens to a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Event {
    /// When.
    pub at: u64,
    /// Which task, by its place in the system.
    pub task: usize,
    /// What.
    pub what: What,
    /// Which of the task's jobs, from 0.
    pub job: usize,
    /// On which processor.
    pub cpu: u32,
}

/// A schedule: what happens, in order of time, then of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// Everything that happens to jobs.
    pub events: Vec<Event>,
    /// The units of time in which each server used its budget.
    pub used: Vec<Vec<u64>>,
    /// Each instant at which a server's budget, or a slack policy's timer, went off.
    pub timers: Vec<u64>,
    /// Instants at which a job ended and a timer went off or a job was released.
    pub coincidences: u64,
    /// Instants at which the mode changed.
    pub changes: Vec<u64>,
    /// When the mode before a change ended, and which one it was.
    pub ended: Vec<(u64, u32)>,
    /// Who had the processor for the first time in a mode: when, who, and the mode.
    pub dispatched: Vec<(u64, Node, u32)>,
}

/// What a mode is told to have dispatched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// A task, by its place in the system.
    Task(usize),
    /// A server or scheduler, by its place in the system.
    Server(usize),
}

/// Runs the jobs of each task up to `end`; jobs that end exactly then have ended.
///
/// # Panics
/// Where a task has no list of jobs.
#[must_use]
pub fn simulate(system: &System, jobs: &[Vec<Job>], end: u64) -> Schedule {
    assert_eq!(jobs.len(), system.tasks().len(), "each task has a list of jobs");
    let mut groups = groups_of(system);
    for now in 0..=end {
        groups.iter_mut().for_each(|group| group.ends(now, jobs));
        if now == end {
            break;
        }
        for group in &mut groups {
            group.timers(now);
            for task in (0..jobs.len()).filter(|&task| group.above[task].is_some()).collect::<Vec<_>>() {
                let relative = system.tasks()[task].deadline.map(|deadline| deadline.as_ns());
                for (job, spec) in jobs[task].iter().enumerate().filter(|(_, job)| job.ready == now) {
                    let deadline = relative.map(|relative| spec.arrival + relative);
                    group.release(now, (task, job), spec.arrival, deadline);
                }
            }
            group.decide(now, jobs);
            group.execute(now);
        }
    }
    together(system, groups)
}

/// Runs a system with modes up to `end`: its schedule, and the jobs that it released. Jobs are noticed when they arrive, and
/// execute as long as the model says.
#[must_use]
pub fn simulate_modes(system: &System, end: u64) -> (Schedule, Vec<Vec<Job>>) {
    let mut groups = groups_of(system);
    let mut modes = modes::Modes::new(system);
    let mut jobs: Vec<Vec<Job>> = vec![Vec::new(); system.tasks().len()];
    for now in 0..=end {
        groups.iter_mut().for_each(|group| group.ends(now, &jobs));
        if now == end {
            break;
        }
        let overrun: Vec<usize> = groups.iter_mut().flat_map(Group::used_up).collect();
        modes.look_for_end(now, &groups);
        modes.step(now, &overrun, &mut groups);
        for group in &mut groups {
            group.timers(now);
            for (task, jobs) in jobs
                .iter_mut()
                .enumerate()
                .filter(|&(task, _)| group.above[task].is_some())
                .collect::<Vec<_>>()
            {
                for (mut job, deadline) in modes.arrivals(now, task) {
                    if group.skips_release(task) {
                        continue;
                    }
                    overruns::give_times(&system.tasks()[task], jobs.len(), &mut job);
                    group.release(now, (task, jobs.len()), job.arrival, deadline);
                    jobs.push(job);
                }
            }
            group.decide(now, &jobs);
            modes.look_for_dispatches(now, group);
            group.execute(now);
        }
    }
    let mut schedule = together(system, groups);
    (schedule.changes, schedule.ended, schedule.dispatched) = (modes.changes, modes.ended, modes.dispatched);
    (schedule, jobs)
}

/// The processors that decide together: those of each cluster, and each other one alone.
fn groups_of(system: &System) -> Vec<Group<'_>> {
    let clusters = system.clusters();
    let mut groups: Vec<Group<'_>> =
        clusters.iter().map(|cluster| Group::new(system, &cluster.cpus, tree::of_cluster(cluster))).collect();
    let is_alone = |cpu: &CpuId| !clusters.iter().any(|cluster| cluster.cpus.contains(cpu));
    let alone = system.platform().cpus.iter().filter(is_alone);
    groups.extend(alone.map(|cpu| Group::new(system, &[cpu], tree::of_processor(system, cpu))));
    groups
}

fn together(system: &System, groups: Vec<Group<'_>>) -> Schedule {
    let mut whole = Schedule { used: vec![Vec::new(); system.servers().len()], ..Schedule::default() };
    for part in groups.into_iter().map(Group::finish) {
        whole.events.extend(part.events);
        whole.timers.extend(part.timers);
        whole.coincidences += part.coincidences;
        for (sum, used) in whole.used.iter_mut().zip(part.used) {
            sum.extend(used);
        }
    }
    whole.events.sort_by_key(|event| (event.at, event.task));
    whole
}
