//! The resources of a machine, built from the system's.

use super::MachineBuilder;
use crate::Level;
use crate::machine::dispatcher::{NONE, NodePolicy};
use crate::machine::locks::{Boost, Ceiling, Locks, Resource, Spins, standing_before};
use crate::machine::mode::Mode;
use horolog_model::{AtExhaustion, CpuId, Priority, Protocol, ServerId, ServerKind};
use horolog_time::Span;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl MachineBuilder<'_> {
    /// The resources, and how urgent everything is below EDF in each mode.
    pub(super) fn locks(&self, modes: &[Mode]) -> Locks {
        let priorities: BTreeSet<i64> = self.system.tasks().iter().map(number).collect();
        let priorities: Vec<i64> = priorities.into_iter().collect();
        let resources: Vec<Resource> =
            self.system.resources().iter().map(|it| self.resource(it, &priorities)).collect();
        let has_any = !resources.is_empty();
        let levels = modes.iter().enumerate().filter(|_| has_any);
        Locks {
            woken: Vec::new(),
            waits: 0,
            levels: levels.map(|(number, mode)| self.relative_deadlines(number, mode)).collect(),
            spin_at: self.spin_standings(&resources),
            resources,
        }
    }

    /// How a job stands on each processor that spins at the spin priority there: behind whoever is more important, and before the
    /// tasks of that priority.
    fn spin_standings(&self, resources: &[Resource]) -> Vec<u64> {
        if resources.iter().all(|resource| resource.spins.is_none()) {
            return Vec::new();
        }
        let children = self.children();
        let of = |(index, cpu): (usize, CpuId)| {
            let Some(level) = self.system.spin_priority(cpu).map(Level::at) else { return 0 };
            let levels = children[index].iter().filter_map(|&entity| self.levels(entity, None).ok());
            let above = levels.flatten().filter(|&other| other > level).count();
            standing_before(above as u64 + 1)
        };
        self.system.platform().cpus.iter().take(self.processors).enumerate().map(of).collect()
    }

    fn resource(&self, resource: &horolog_model::Resource, priorities: &[i64]) -> Resource {
        // Below each node, the children with users below them.
        let mut below: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut users = Vec::new();
        for (index, task) in self.system.tasks().iter().enumerate() {
            if !task.sections.iter().any(|section| section.resource == resource.name) {
                continue;
            }
            users.push(index as u32);
            let (mut entity, mut above) = (index, Some(self.places[index]));
            while let Some(node) = above {
                below.entry(node as u32).or_default().insert(entity as u32);
                (entity, above) = (self.places.len() + node, self.nodes[node].parent);
            }
        }
        let orders = |node: u32| {
            matches!(self.nodes[node as usize].spec.policy, NodePolicy::FixedPriority | NodePolicy::Edf)
        };
        // A ceiling across processors is there for the wait, too, also where a processor has one user alone.
        let fewest = if resource.protocol.helps() { 1 } else { 2 };
        let ceilings = below.into_iter().filter(|(node, users)| users.len() >= fewest && orders(*node));
        let ceiling =
            |(node, users): (u32, BTreeSet<u32>)| Ceiling { node, users: users.into_iter().collect(), at: 0 };
        Resource {
            finishes: resource.at_exhaustion == AtExhaustion::Finish,
            holder: NONE,
            waiting: VecDeque::with_capacity(users.len()),
            ceilings: match resource.protocol {
                Protocol::Ceiling | Protocol::Mrsp => ceilings.map(ceiling).collect(),
                Protocol::Msrp
                | Protocol::Fslm
                | Protocol::NonPreemptive
                | Protocol::Inheritance
                | Protocol::OriginalCeiling
                | Protocol::None
                | Protocol::Mpcp
                | Protocol::FmlpPlus
                | Protocol::TaskFair
                | Protocol::PhaseFair
                | Protocol::Dpcp
                | Protocol::Omlp
                | Protocol::PreemptableFifo => Box::default(),
            },
            spins: match resource.protocol {
                Protocol::Ceiling
                | Protocol::NonPreemptive
                | Protocol::Inheritance
                | Protocol::OriginalCeiling
                | Protocol::None
                | Protocol::Mpcp
                | Protocol::FmlpPlus
                | Protocol::Omlp
                | Protocol::Dpcp => None,
                Protocol::Msrp | Protocol::TaskFair | Protocol::PhaseFair => Some(Spins::Highest),
                Protocol::Fslm => Some(Spins::AtPriority),
                Protocol::Mrsp => Some(Spins::AtCeiling),
                Protocol::PreemptableFifo => Some(Spins::AtOwn),
            },
            boost: match resource.protocol {
                Protocol::Mpcp => Some(Boost::ByCeiling(self.remote_ceilings(&users, priorities))),
                Protocol::FmlpPlus | Protocol::Omlp => Some(Boost::ByRequest),
                Protocol::Dpcp => Some(Boost::Elsewhere),
                _ => None,
            },
            keeps: resource.protocol == Protocol::NonPreemptive
                || resource.protocol.spins() && !resource.protocol.helps(),
            is_shared: resource.protocol.tells_readers(),
            inherits: resource.protocol == Protocol::Inheritance,
            bars: match resource.protocol {
                Protocol::OriginalCeiling => users.into(),
                _ => Box::default(),
            },
        }
    }

    /// Of each processor: how many priorities of the system, each of which is listed once in rising order, are above those of a resource's users on other processors; where it has none,
    /// above those of its own.
    fn remote_ceilings(&self, users: &[u32], priorities: &[i64]) -> Box<[u64]> {
        let tasks = self.system.tasks();
        // The most important user of each processor that has some.
        let mut most: BTreeMap<CpuId, i64> = BTreeMap::new();
        for user in users.iter().map(|&user| &tasks[user as usize]) {
            let own = most.entry(user.cpu).or_insert(i64::MIN);
            *own = (*own).max(number(user));
        }
        let of = |cpu: CpuId| {
            let remote = most.iter().filter(|(other, _)| **other != cpu).map(|(_, most)| *most).max();
            let ceiling = remote.or_else(|| most.values().copied().max()).unwrap_or(i64::MIN);
            (priorities.len() - priorities.partition_point(|&other| other <= ceiling)) as u64
        };
        self.system.platform().cpus.iter().take(self.processors).map(of).collect()
    }

    /// The relative deadline of a task, the period of a constant bandwidth, the shortest below any other node.
    fn relative_deadlines(&self, number: usize, mode: &Mode) -> Box<[u64]> {
        let tasks = self.places.len();
        let number =
            u32::try_from(number).ok().filter(|&number| number < self.system.mode_count()).unwrap_or(0);
        let mut levels = vec![u64::MAX; tasks + self.nodes.len()];
        for id in self.system.task_ids() {
            levels[id.index()] = self.system.task_in(number, id).deadline.map_or(u64::MAX, Span::as_ns);
        }
        for (task, &node) in self.places.iter().enumerate() {
            levels[tasks + node] = levels[tasks + node].min(levels[task]);
        }
        for node in (0..self.nodes.len()).rev() {
            let server = self.servers.iter().position(|&of| of == node);
            let id = server.map(|server| ServerId(server as u32));
            match id.map(|id| (id, self.system.server(id).kind)) {
                Some((id, ServerKind::ConstantBandwidth { capacity, .. })) => {
                    let changed =
                        mode.capacities.iter().find(|(of, _)| *of == id).map(|&(_, capacity)| capacity);
                    levels[tasks + node] = changed.unwrap_or(capacity).period.as_ns();
                }
                Some((_, ServerKind::Background)) => levels[tasks + node] = u64::MAX,
                _ => {}
            }
            if let Some(parent) = self.nodes[node].parent {
                levels[tasks + parent] = levels[tasks + parent].min(levels[tasks + node]);
            }
        }
        levels.into_boxed_slice()
    }
}

/// A task's priority; without one it is the least.
fn number(task: &horolog_model::Task) -> i64 {
    task.priority.map_or(i64::MIN, Priority::number)
}
