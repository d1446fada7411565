//! Who stands above whom in a draft, by their names; what is wrong with that is told by the rules.

use super::{At, Paths};
use crate::file::is_slip_of;
use crate::{CpuId, Draft, Order, Policy};
use std::collections::{BTreeMap, BTreeSet};

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
    tree_cpus: BTreeSet<CpuId>,
}

impl<'d> Forest<'d> {
    pub(super) fn of(draft: &'d Draft, paths: &'d Paths) -> Forest<'d> {
        let mut forest = Forest {
            draft,
            paths,
            servers: BTreeMap::new(),
            clusters: BTreeMap::new(),
            tasks: BTreeMap::new(),
            tree_cpus: BTreeSet::new(),
        };
        for (index, server) in draft.servers.iter().enumerate() {
            forest.servers.entry(&server.name).or_insert(index);
            for task in &server.tasks {
                forest.tasks.entry(task).or_insert(Above::Server(index));
            }
            if server.is_scheduler() {
                forest.tree_cpus.insert(server.cpu);
            }
        }
        for (index, cluster) in draft.clusters.iter().enumerate() {
            forest.clusters.entry(&cluster.name).or_insert(index);
            for task in &cluster.tasks {
                forest.tasks.entry(task).or_insert(Above::Cluster(index));
            }
            forest.tree_cpus.extend(&cluster.cpus);
        }
        forest
    }

    /// Whether a server or scheduler names a task that is not there and may be this one: who misspells it says so.
    pub(super) fn is_misspelt(&self, task: &str) -> bool {
        let is_there = |name: &str| self.draft.tasks.iter().any(|task| task.name == name);
        let named = self.draft.servers.iter().flat_map(|server| &server.tasks);
        let mut unknown = named.filter(|name| !is_there(name));
        unknown.any(|name| is_slip_of(name, task))
    }

    /// Whether the draft says more than servers below the roots of single processors.
    pub(super) fn has_trees(&self) -> bool {
        !self.tree_cpus.is_empty() || !self.draft.clusters.is_empty()
    }

    /// Whether a scheduler orders tasks or schedulers of this processor.
    pub(super) fn has_tree_on(&self, cpu: CpuId) -> bool {
        self.tree_cpus.contains(&cpu)
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

    /// The names of what stands directly below a scheduler.
    pub(super) fn children(&self, index: usize) -> Vec<&'d str> {
        let server = &self.draft.servers[index];
        let tasks = server.tasks.iter().map(String::as_str);
        let below = |child: &&'d crate::Server| child.parent.as_ref() == Some(&server.name);
        tasks.chain(self.draft.servers.iter().filter(below).map(|child| child.name.as_str())).collect()
    }

    /// The names that a parent may have.
    pub(super) fn scheduler_names(&self) -> Vec<&'d str> {
        self.servers.keys().copied().collect()
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
