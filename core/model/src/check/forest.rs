//! Who stands above whom in a draft, by their names; what is wrong with that is told by the rules.

use super::{At, Paths};
use crate::file::is_slip_of;
use crate::{CpuId, DeviceService, Draft, Order, Policy, ServerKind};
use std::collections::{BTreeMap, BTreeSet};

/// So many names of tasks that are not there are compared with those that are.
const MOST_MISSPELT: usize = 100;

/// What stands directly above a task, server or scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Above {
    /// The root of its processor.
    Root,
    /// A server or scheduler, by its place in the draft.
    Server(usize),
    /// A root over several processors, by its place in the draft.
    Cluster(usize),
    /// Something that could not be read, or is not there.
    Unread,
}

/// The trees of a draft.
pub(super) struct Forest<'d> {
    pub(super) draft: &'d Draft,
    pub(super) paths: &'d Paths,
    servers: BTreeMap<&'d str, usize>,
    clusters: BTreeMap<&'d str, usize>,
    tasks: BTreeMap<&'d str, Above>,
    /// By name, where several have it the first one.
    pub(super) task_places: BTreeMap<&'d str, usize>,
    /// Names of tasks that servers and schedulers give and that are not there.
    misspelt: Vec<&'d str>,
    /// The processors of trees, each with the first scheduler.
    trees: BTreeMap<CpuId, Above>,
    /// The first server of a processor that looks at all of its tasks.
    pub(super) watching: BTreeMap<CpuId, usize>,
    /// The first server that the kernel serves.
    pub(super) first_of_kernel: Option<usize>,
    /// Names of servers that serve devices.
    pub(super) serving_devices: BTreeSet<&'d str>,
    /// Of each server the nearest one, from itself upwards, below which no task may hold a resource.
    refusing_resources: Vec<Option<usize>>,
}

impl<'d> Forest<'d> {
    pub(super) fn of(draft: &'d Draft, paths: &'d Paths) -> Forest<'d> {
        let mut forest = Forest {
            draft,
            paths,
            servers: BTreeMap::new(),
            clusters: BTreeMap::new(),
            tasks: BTreeMap::new(),
            task_places: first_places(draft.tasks.iter().map(|task| task.name.as_str())),
            misspelt: Vec::new(),
            trees: BTreeMap::new(),
            watching: BTreeMap::new(),
            first_of_kernel: draft.servers.iter().position(|server| server.kind.is_kernels()),
            serving_devices: BTreeSet::new(),
            refusing_resources: Vec::new(),
        };
        for (index, server) in draft.servers.iter().enumerate() {
            forest.servers.entry(&server.name).or_insert(index);
            for task in &server.tasks {
                forest.tasks.entry(task).or_insert(Above::Server(index));
                if forest.misspelt.len() < MOST_MISSPELT && !forest.task_places.contains_key(task.as_str()) {
                    forest.misspelt.push(task);
                }
            }
            if server.is_scheduler() {
                forest.trees.entry(server.cpu).or_insert(Above::Server(index));
            }
            if server.kind.watches_processor() {
                forest.watching.entry(server.cpu).or_insert(index);
            }
        }
        for (index, cluster) in draft.clusters.iter().enumerate() {
            forest.clusters.entry(&cluster.name).or_insert(index);
            for task in &cluster.tasks {
                forest.tasks.entry(task).or_insert(Above::Cluster(index));
            }
            for cpu in &cluster.cpus {
                forest.trees.entry(*cpu).or_insert(Above::Cluster(index));
            }
        }
        for device in &draft.devices {
            if let DeviceService::Server { server } = &device.service {
                forest.serving_devices.insert(server);
            }
        }
        forest.refusing_resources = forest.refusing_resources();
        forest
    }

    /// Each server is walked by once, also in a circle of parents, which is told elsewhere.
    fn refusing_resources(&self) -> Vec<Option<usize>> {
        let servers = &self.draft.servers;
        let refuses = |index: usize| {
            let kind = &servers[index].kind;
            kind.is_kernels() || matches!(kind, ServerKind::TotalBandwidth { .. })
        };
        let mut found: Vec<Option<Option<usize>>> = vec![None; servers.len()];
        for start in 0..servers.len() {
            let (mut at, mut walked) = (start, Vec::new());
            let nearest = loop {
                if let Some(known) = found[at] {
                    break known;
                }
                walked.push(at);
                // While the walk goes on.
                found[at] = Some(None);
                if refuses(at) {
                    break Some(at);
                }
                match self.above_server(at) {
                    Above::Server(parent) => at = parent,
                    _ => break None,
                }
            };
            for index in walked {
                found[index] = Some(nearest);
            }
        }
        found.into_iter().map(Option::flatten).collect()
    }

    /// The nearest server or scheduler above a task below which no task may hold a resource.
    pub(super) fn refuses_resources(&self, above: Above) -> Option<usize> {
        match above {
            Above::Server(index) => self.refusing_resources[index],
            _ => None,
        }
    }

    /// Whether a server or scheduler names a task that is not there and may be this one: who misspells it says so.
    pub(super) fn is_misspelt(&self, task: &str) -> bool {
        self.misspelt.iter().any(|name| is_slip_of(name, task))
    }

    /// Whether the draft says more than servers below the roots of single processors.
    pub(super) fn has_trees(&self) -> bool {
        !self.trees.is_empty() || !self.draft.clusters.is_empty()
    }

    /// The first scheduler that orders tasks or schedulers of this processor.
    pub(super) fn tree_on(&self, cpu: CpuId) -> Option<Above> {
        self.trees.get(&cpu).copied()
    }

    /// What is above the task with this name.
    pub(super) fn above_task(&self, name: &str) -> Above {
        match self.tasks.get(name) {
            Some(&above) => above,
            None if self.paths.named.contains(name) => Above::Unread,
            None => Above::Root,
        }
    }

    /// What is above a server or scheduler.
    pub(super) fn above_server(&self, index: usize) -> Above {
        self.draft.servers[index].parent.as_deref().map_or(Above::Root, |name| self.find(name))
    }

    /// The scheduler or cluster with this name.
    pub(super) fn find(&self, name: &str) -> Above {
        let server = self.servers.get(name).map(|&index| Above::Server(index));
        let cluster = || self.clusters.get(name).map(|&index| Above::Cluster(index));
        server.or_else(cluster).unwrap_or(Above::Unread)
    }

    /// The place of the server or scheduler with this name.
    pub(super) fn server_place(&self, name: &str) -> Option<usize> {
        self.servers.get(name).copied()
    }

    /// The names of what stands directly below each server or scheduler.
    pub(super) fn children(&self) -> Vec<Vec<&'d str>> {
        let tasks = |server: &'d crate::Server| server.tasks.iter().map(String::as_str).collect();
        let mut children: Vec<Vec<&str>> = self.draft.servers.iter().map(tasks).collect();
        for (index, server) in self.draft.servers.iter().enumerate() {
            if let Above::Server(parent) = self.above_server(index) {
                children[parent].push(&server.name);
            }
        }
        children
    }

    /// The names that a parent may have.
    pub(super) fn scheduler_names(&self) -> impl Iterator<Item = &'d str> {
        self.servers.keys().copied()
    }

    /// How it orders what is below it; `None` where that is unknown.
    pub(super) fn order(&self, above: Above) -> Option<Order> {
        match above {
            Above::Root => Some(Order::of_policy(self.draft.policy)),
            Above::Server(index) => Some(self.draft.servers[index].order),
            Above::Cluster(index) => Some(self.draft.clusters[index].order),
            Above::Unread => None,
        }
    }

    /// Where the file says how it orders, with a label for it.
    pub(super) fn what_orders(&self, above: Above) -> Vec<(String, String)> {
        let label = match self.order(above) {
            Some(Order::Edf) => "EDF here",
            Some(Order::FixedPriority) => "fixed priorities here",
            Some(Order::Table) => "a time table here",
            Some(Order::Fifo) | None => "first in, first out here",
        };
        let path = match above {
            Above::Root => "system.policy".to_owned(),
            Above::Server(index) => At::new(&self.paths.servers[index], "order").to_string(),
            Above::Cluster(index) => At::new(&self.paths.clusters[index], "order").to_string(),
            Above::Unread => return Vec::new(),
        };
        vec![(path, label.to_owned())]
    }

    /// How to make it order otherwise.
    pub(super) fn to_order(&self, above: Above, order: Order) -> String {
        let word = order.word();
        match above {
            Above::Server(index) => format!("`order = \"{word}\"` for `{}`", self.draft.servers[index].name),
            Above::Cluster(index) => {
                format!("`order = \"{word}\"` for `{}`", self.draft.clusters[index].name)
            }
            Above::Root | Above::Unread => format!(
                "`policy = \"{}\"`",
                Policy::word(match order {
                    Order::Edf => Policy::Edf,
                    Order::FixedPriority | Order::Fifo | Order::Table => Policy::FixedPriority,
                })
            ),
        }
    }
}

/// The place of each name, where several have it that of the first one.
pub(super) fn first_places<'d>(names: impl Iterator<Item = &'d str>) -> BTreeMap<&'d str, usize> {
    let mut places = BTreeMap::new();
    for (place, name) in names.enumerate() {
        places.entry(name).or_insert(place);
    }
    places
}
