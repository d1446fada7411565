//! What is placed: groups of tasks that have to stay together, in the order in which they are tried.

use super::TaskOrder;
use horolog_model::{CpuId, Policy, System, Task, TaskId};
use std::collections::BTreeMap;

/// One unit, 2^-64.
const SCALE: u32 = 64;

/// Tasks that go to one processor together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    /// In the order of the file.
    pub(super) tasks: Vec<TaskId>,
    /// What they ask for of a processor, each task's share rounded down to 2^-64.
    pub(super) load: u128,
}

/// Why a task stays where the file has it.
pub(super) fn tied(system: &System, id: TaskId) -> Option<String> {
    let task = system.task(id);
    if let Some(server) = system.scheduler_of(id) {
        return Some(format!("`{}` is on its CPU", system.server(server).name));
    }
    let request = system.requests().iter().find(|request| request.task == task.name)?;
    Some(format!("it asks `{}`, which is on its CPU", request.device))
}

/// C with the two context switches of a job, over `time`, rounded down to 2^-64.
fn share(system: &System, task: &Task, time: u64) -> u128 {
    let switches = system.platform().context_switch_cost().as_ns().saturating_mul(2);
    let wcet = task.wcet.as_ns().saturating_add(switches);
    (u128::from(wcet) << SCALE) / u128::from(time.max(1))
}

/// C/T; nothing for a task without a period.
pub(super) fn utilisation(system: &System, task: &Task) -> u128 {
    task.separation().map_or(0, |time| share(system, task, time.as_ns()))
}

/// C/min(D, T); nothing for a task without a period.
fn density(system: &System, task: &Task) -> u128 {
    let Some(period) = task.separation() else { return 0 };
    share(system, task, task.deadline.map_or(period, |deadline| deadline.min(period)).as_ns())
}

/// What a processor has to carry besides tasks: its interrupts and measured loads.
pub(super) fn given_load(system: &System, cpu: CpuId) -> u128 {
    let scaled = |c: u64, t: u64| (u128::from(c) << SCALE) / u128::from(t.max(1));
    let interrupts = system.interrupts().iter().filter(|it| it.cpu == cpu);
    let interrupts = interrupts.map(|it| scaled(it.cost.as_ns(), it.separation.as_ns()));
    let measured = system.interferences().iter().filter(|it| it.cpu == cpu);
    let measured = measured.map(|it| scaled(it.utilisation_ppb, 1_000_000_000));
    let servers = system.servers_on(cpu).filter_map(|(_, server)| server.kind.capacity());
    let servers = servers.map(|capacity| scaled(capacity.budget.as_ns(), capacity.period.as_ns()));
    interrupts.chain(measured).chain(servers).fold(0, u128::saturating_add)
}

/// The tasks in groups: who shares a resource whose protocol is local stays together. Groups by their first task.
pub(super) fn groups(system: &System) -> Vec<Unit> {
    let count = system.tasks().len();
    let mut parent: Vec<usize> = (0..count).collect();
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    let places: BTreeMap<&str, usize> =
        system.resources().iter().map(|it| it.name.as_str()).zip(0..).collect();
    for (index, task) in system.tasks().iter().enumerate() {
        for section in &task.sections {
            let Some(&place) = places.get(section.resource.as_str()) else { continue };
            if !system.resources()[place].protocol.is_global() {
                let other = *first.entry(place).or_insert(index);
                let (a, b) = (root(&mut parent, other), root(&mut parent, index));
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    let mut units: BTreeMap<usize, Unit> = BTreeMap::new();
    for (index, task) in system.tasks().iter().enumerate() {
        let unit = units.entry(root(&mut parent, index)).or_insert(Unit { tasks: Vec::new(), load: 0 });
        unit.tasks.push(TaskId(index as u32));
        unit.load = unit.load.saturating_add(utilisation(system, task));
    }
    units.into_values().collect()
}

fn root(parent: &mut [usize], of: usize) -> usize {
    let mut at = of;
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

/// Sorts units by what is tried first; equals stay in the order of the file.
pub(super) fn sort(system: &System, order: TaskOrder, units: &mut [Unit]) {
    use std::cmp::Reverse;
    let densest = |unit: &Unit| {
        let each = unit.tasks.iter().map(|&id| density(system, system.task(id)));
        each.fold(0, u128::saturating_add)
    };
    let shortest = |unit: &Unit| {
        let deadlines = unit.tasks.iter().filter_map(|&id| system.task(id).deadline);
        deadlines.min().map_or(u64::MAX, |deadline| deadline.as_ns())
    };
    match order {
        TaskOrder::Utilisation => units.sort_by_key(|unit| Reverse(unit.load)),
        TaskOrder::Density => units.sort_by_cached_key(|unit| Reverse(densest(unit))),
        TaskOrder::Deadline => units.sort_by_cached_key(shortest),
        TaskOrder::File => {}
    }
}

/// Whether what a task asks for is known by its period and deadline alone, so that the bound of the processor's utilisation speaks of it.
pub(super) fn density_or_none(system: &System, task: &Task) -> Option<(u64, u64)> {
    let period = task.separation()?;
    let time = task.deadline.map_or(period, |deadline| deadline.min(period)).as_ns();
    let switches = system.platform().context_switch_cost().as_ns().checked_mul(2)?;
    Some((task.wcet.as_ns().checked_add(switches)?, time))
}

/// Whether the tasks of a system are ordered on each processor as on one that has all of them, whichever they share it with.
pub(super) fn keeps_order(system: &System) -> bool {
    use horolog_model::PriorityAssignment as By;
    system.policy() == Policy::Edf || system.priorities() != By::Audsley
}
