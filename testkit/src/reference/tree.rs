//! A tree of schedulers: who asks for the processor, where everybody stands, who is first.

use super::group::{Group, JobId, Pending};
use super::order::Place;
use super::rules::{HardTask, Root, Rules, rules_of};
use horolog_model::{Cluster, CpuId, Order, Parent, ServerId, ServerKind, System, TimeTable};

/// A scheduler, or the root.
pub(super) struct Node {
    /// Its place in the system; `None`: the root.
    pub(super) server: Option<usize>,
    /// The node above it.
    pub(super) parent: Option<usize>,
    pub(super) order: Order,
    /// Whether it has a deadline of its own, or the earliest one below it.
    kind: Option<ServerKind>,
    /// The lowest task below it.
    number: usize,
    /// How many nodes are above it.
    depth: usize,
    pub(super) rules: Box<dyn Rules>,
    /// Whether something below it could run.
    pub(super) has_demand: bool,
    /// Where it stands in its parent's order.
    place: Option<Place>,
    /// When it came to its place, in the order of all releases and changes of place.
    came: u64,
    /// When it got demand.
    entered: u64,
    /// Whether the job that runs below it is charged to it.
    pub(super) is_charged: bool,
    /// The units in which its budget was used.
    pub(super) used: Vec<u64>,
    /// Where it orders by a time table.
    table: Option<Table>,
}

/// A time table.
struct Table {
    /// When its first cycle began.
    origin: u64,
    cycle: u64,
    /// Whose window, from when to when in a cycle.
    windows: Vec<(Child, u64, u64)>,
    /// Whose window it is.
    present: Option<Child>,
}

/// What stands directly below a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Child {
    Task(usize),
    Node(usize),
}

/// One who may get the processor, below one node.
#[derive(Clone, Copy)]
struct Candidate {
    place: Place,
    order: u64,
    entered: u64,
    /// Tasks before schedulers, lower ids first.
    id: usize,
    is_running: bool,
    who: Who,
}

#[derive(Clone, Copy)]
enum Who {
    Job(JobId),
    Node(usize),
}

fn node(server: Option<usize>, order: Order) -> Node {
    Node {
        server,
        parent: None,
        order,
        kind: None,
        number: 0,
        depth: 0,
        rules: Box::new(Root),
        has_demand: false,
        place: None,
        came: 0,
        entered: 0,
        is_charged: false,
        used: Vec::new(),
        table: None,
    }
}

/// The root of one processor and the schedulers below it.
pub(super) fn of_processor(system: &System, cpu: CpuId) -> Vec<Node> {
    let mut nodes = vec![node(None, Order::of_policy(system.policy()))];
    let here: Vec<ServerId> = system.servers_on(cpu).map(|(id, _)| id).collect();
    nodes.extend(here.iter().map(|id| node(Some(id.index()), system.server(*id).order)));
    for (place, &id) in here.iter().enumerate() {
        let above = match system.parent_of(id) {
            Parent::Scheduler(parent) => here.iter().position(|&other| other == parent).map(|at| at + 1),
            _ => None,
        };
        nodes[place + 1].parent = Some(above.unwrap_or(0));
        nodes[place + 1].kind = Some(system.server(id).kind);
    }
    for index in 1..nodes.len() {
        let path: Vec<usize> = std::iter::successors(Some(index), |&at| nodes[at].parent).collect();
        nodes[index].depth = path.len() - 1;
        let is_below = |task: &usize| {
            let mut above = above(system, &nodes, &[cpu])[*task];
            while above.is_some_and(|at| at != index) {
                above = above.and_then(|at| nodes[at].parent);
            }
            above.is_some()
        };
        nodes[index].number = (0..system.tasks().len()).find(is_below).unwrap_or(usize::MAX);
    }
    for index in 1..nodes.len() {
        let table = nodes[index].server.and_then(|server| system.servers()[server].table.as_ref());
        nodes[index].table = table.map(|table| table_of(system, &nodes, index, table, 0));
    }
    nodes
}

fn table_of(system: &System, nodes: &[Node], index: usize, table: &TimeTable, origin: u64) -> Table {
    let child = |name: &str| {
        let is_named = |node: &Node| node.server.is_some_and(|at| system.servers()[at].name == name);
        let below = nodes.iter().position(|node| node.parent == Some(index) && is_named(node));
        let task = || system.find_task(name).map(|id| Child::Task(id.index()));
        below.map(Child::Node).or_else(task)
    };
    let windows = table.windows.iter().filter_map(|window| {
        let from = window.from.as_ns();
        Some((child(&window.child)?, from, from + window.length.as_ns()))
    });
    Table { origin, cycle: table.cycle.as_ns(), windows: windows.collect(), present: None }
}

/// The root of a cluster.
pub(super) fn of_cluster(cluster: &Cluster) -> Vec<Node> {
    vec![node(None, cluster.order)]
}

/// The node directly above each task of these processors.
pub(super) fn above(system: &System, nodes: &[Node], cpus: &[CpuId]) -> Vec<Option<usize>> {
    let above = |id| {
        if !cpus.contains(&system.task(id).cpu) {
            return None;
        }
        let server = system.scheduler_of(id).map(ServerId::index);
        Some(nodes.iter().position(|node| server.is_some() && node.server == server).unwrap_or(0))
    };
    system.task_ids().map(above).collect()
}

impl Node {
    pub(super) fn add_rules(&mut self, system: &System, hard: &[HardTask]) {
        if let Some(server) = self.server {
            self.rules = rules_of(&system.servers()[server], hard);
        }
    }

    /// The window of this instant, where there is a time table; whether one begins or ends.
    pub(super) fn turn_to(&mut self, now: u64) -> bool {
        let Some(table) = &mut self.table else { return false };
        let at = (now - table.origin) % table.cycle;
        let here = table.windows.iter().find(|&&(_, from, to)| (from..to).contains(&at));
        table.present = here.map(|&(child, ..)| child);
        table.windows.iter().any(|&(_, from, to)| from == at || to % table.cycle == at)
    }

    /// Whether a cycle of its time table starts now.
    pub(super) fn starts_cycle(&self, now: u64) -> bool {
        self.table.as_ref().is_some_and(|table| (now - table.origin).is_multiple_of(table.cycle))
    }

    pub(super) fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// Whether a child may stand in its order: with a time table, only in its window.
    pub(super) fn admits(&self, child: Child) -> bool {
        self.table.as_ref().is_none_or(|table| table.present == Some(child))
    }
}

impl Group<'_> {
    /// A mode has another table of a scheduler: a cycle of it begins.
    pub(super) fn change_table(&mut self, now: u64, server: usize, table: &TimeTable) {
        for index in 0..self.nodes.len() {
            if self.nodes[index].server == Some(server) {
                self.nodes[index].table = Some(table_of(self.system, &self.nodes, index, table, now));
                let _ = self.nodes[index].turn_to(now);
            }
        }
    }

    /// The nodes between a task and the root, from below.
    pub(super) fn path(&self, task: usize) -> Vec<usize> {
        let parent = |&at: &usize| self.nodes[at].parent;
        std::iter::successors(self.above[task], parent).filter(|&at| at != 0).collect()
    }

    /// All nodes but the root, in the order of the lowest tasks below them; of two on one path the upper one first.
    pub(super) fn by_number(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = (1..self.nodes.len()).collect();
        nodes.sort_by_key(|&at| (self.nodes[at].number, self.nodes[at].depth));
        nodes
    }

    /// Who has demand, and where everybody stands: from below, since a child without a place is no demand. Who stands
    /// somewhere else than before has come to the end there.
    pub(super) fn update(&mut self, now: u64) {
        let keeps = (0..self.slots.len()).filter(|&slot| self.is_committed(slot));
        let kept: Vec<usize> =
            keeps.filter_map(|slot| self.slots[slot].running).flat_map(|id| self.path(id.0)).collect();
        let mut upwards = self.by_number();
        upwards.sort_by_key(|&at| std::cmp::Reverse(self.nodes[at].depth));
        for index in upwards {
            let has_demand = self.is_any_job_below(index)
                || self.nodes.iter().any(|child| child.parent == Some(index) && child.place.is_some())
                || kept.contains(&index);
            let node = &mut self.nodes[index];
            if has_demand && !node.has_demand {
                node.rules.arrives(now);
                node.entered = now;
            }
            if !has_demand && node.has_demand {
                node.rules.empties(now);
            }
            node.has_demand = has_demand;
            let place = node.rules.place(now);
            let place = if self.is_in_debt(index) { Some(self.own_place(index)) } else { place };
            let place = place.filter(|_| has_demand);
            let place = place.filter(|_| self.is_admitted(index));
            if place != self.nodes[index].place {
                let came = self.next_order();
                (self.nodes[index].place, self.nodes[index].came) = (place, came);
            }
        }
    }

    /// Whether a job directly below a node could run.
    fn is_any_job_below(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        let mut below = self.pending.iter().filter(|pending| self.above[pending.id.0] == Some(index));
        // Jobs behind one that waits for a resource wait as well.
        below.any(|pending| node.admits(Child::Task(pending.id.0)) && !self.waits(pending.id.0))
    }

    /// Whether what is above a node lets it stand in its order.
    fn is_admitted(&self, index: usize) -> bool {
        self.nodes[index].parent.is_none_or(|parent| self.nodes[parent].admits(Child::Node(index)))
    }

    /// The first of each order, from a node down; with `begun`, of those jobs alone that have begun.
    pub(super) fn most_important(&self, node: usize, now: u64, begun: bool) -> Option<JobId> {
        let (first, begun) = self.first(node, now, begun)?;
        match first.who {
            Who::Job(id) => Some(id),
            Who::Node(child) => self.most_important(child, now, begun),
        }
    }

    /// The first of a node, and whether only jobs that have begun count there.
    ///
    /// The stack resource policy: where the first one by EDF may not begin, no other one begins, as long as one that has begun can go on.
    fn first(&self, node: usize, now: u64, begun: bool) -> Option<(Candidate, bool)> {
        let by_edf = self.first_of(self.candidates(node, now, begun), node, now, |_| begun)?;
        if begun || self.nodes[node].order != Order::Edf || !self.is_barred(node, &by_edf) {
            return Some((by_edf, begun));
        }
        let going_on = self.candidates(node, now, true);
        if let Some(same) = going_on.iter().find(|candidate| candidate.id == by_edf.id)
            && same.place == by_edf.place
            && self.has_eligible(same, now, true)
        {
            return Some((*same, true));
        }
        if let Some(first) = self.first_of(going_on, node, now, |_| true) {
            return Some((first, true));
        }
        let barred = |candidate: &Candidate| self.is_barred(node, candidate);
        let first = self.first_of(self.candidates(node, now, false), node, now, barred)?;
        let begun = self.is_barred(node, &first);
        Some((first, begun))
    }

    /// The first of these below which somebody may be chosen; `begun` says of which only by jobs that have begun.
    fn first_of(
        &self,
        mut candidates: Vec<Candidate>,
        node: usize,
        now: u64,
        begun: impl Fn(&Candidate) -> bool,
    ) -> Option<Candidate> {
        candidates.retain(|candidate| self.has_eligible(candidate, now, begun(candidate)));
        let top = candidates.iter().map(|candidate| candidate.place).max()?;
        let equals = candidates.into_iter().filter(|candidate| candidate.place == top);
        match self.nodes[node].order {
            Order::Edf => equals.min_by_key(|c| (!c.is_running, c.entered, c.id)),
            Order::Fifo | Order::FixedPriority | Order::Table => {
                equals.min_by_key(|c| (!c.is_running, c.order))
            }
        }
    }

    /// Whether what others hold keeps a candidate of an EDF node from beginning.
    fn is_barred(&self, node: usize, candidate: &Candidate) -> bool {
        let child = match candidate.who {
            Who::Job(id) => Child::Task(id.0),
            Who::Node(index) => Child::Node(index),
        };
        self.is_below_a_ceiling(node, child)
    }

    /// Whether somebody may be chosen there.
    fn has_eligible(&self, candidate: &Candidate, now: u64, begun: bool) -> bool {
        let may_run = |pending: &Pending| (!begun || pending.started) && self.is_eligible(pending);
        match candidate.who {
            Who::Job(id) => self.pending.iter().any(|pending| pending.id == id && may_run(pending)),
            Who::Node(child) => self.most_important(child, now, begun).is_some(),
        }
    }

    /// The oldest job of each task directly below a node, and the schedulers there that have a place.
    fn candidates(&self, node: usize, now: u64, begun: bool) -> Vec<Candidate> {
        // Whose job has been taken out by a mode has nothing to win.
        let is_ready = |id: &JobId| self.pending.iter().any(|pending| pending.id == *id && !pending.is_back);
        let running = self.slots[0].running.filter(is_ready);
        let by_deadline = self.nodes[node].order == Order::Edf;
        let mut candidates = Vec::new();
        for pending in self.oldest(node) {
            let place = match self.nodes[node].order {
                Order::Fifo | Order::Table => Place::BACKGROUND,
                Order::FixedPriority | Order::Edf => self.place_of(now, pending, by_deadline),
            };
            let place = match self.nodes[node].order {
                Order::FixedPriority => self.lifted(node, Child::Task(pending.id.0), place),
                Order::Fifo | Order::Edf | Order::Table => place,
            };
            candidates.push(Candidate {
                place,
                order: pending.order,
                entered: pending.released,
                id: pending.id.0,
                is_running: running == Some(pending.id),
                who: Who::Job(pending.id),
            });
        }
        for (index, child) in self.nodes.iter().enumerate() {
            let Some(place) = child.place.filter(|_| child.parent == Some(node)) else { continue };
            let is_plain =
                matches!(child.kind, Some(ServerKind::Plain { .. } | ServerKind::TotalBandwidth { .. }));
            let place = match self.nodes[node].order {
                Order::FixedPriority => self.lifted(node, Child::Node(index), place),
                Order::Fifo | Order::Edf | Order::Table => place,
            };
            candidates.push(Candidate {
                place: if by_deadline && is_plain {
                    Place::deadline(self.earliest(index, now, begun))
                } else {
                    place
                },
                order: child.came,
                entered: child.entered,
                id: self.above.len() + child.number,
                is_running: running.is_some_and(|id| self.path(id.0).contains(&index)),
                who: Who::Node(index),
            });
        }
        candidates
    }

    /// The oldest job of each task directly below a node.
    pub(super) fn oldest(&self, node: usize) -> impl Iterator<Item = &Pending> {
        let is_first = |pending: &Pending| {
            !self.pending.iter().any(|other| other.id.0 == pending.id.0 && other.id.1 < pending.id.1)
        };
        self.pending
            .iter()
            .filter(move |&pending| self.above[pending.id.0] == Some(node) && is_first(pending))
            .filter(move |&pending| self.nodes[node].admits(Child::Task(pending.id.0)))
            .filter(|&pending| !self.waits(pending.id.0))
    }

    /// The earliest deadline below a node, of what could run there.
    fn earliest(&self, node: usize, now: u64, begun: bool) -> Option<u64> {
        if self.nodes[node].order == Order::Edf {
            let (first, begun) = self.first(node, now, begun)?;
            return match first.who {
                Who::Job(id) => self.pending.iter().find(|pending| pending.id == id)?.deadline,
                Who::Node(child) => {
                    self.nodes[child].rules.deadline().or_else(|| self.earliest(child, now, begun))
                }
            };
        }
        let may_run = |pending: &&Pending| (!begun || pending.started) && self.is_eligible(pending);
        let own = self.oldest(node).filter(may_run).filter_map(|pending| pending.deadline);
        let children = (1..self.nodes.len())
            .filter(|&at| self.nodes[at].parent == Some(node) && self.nodes[at].place.is_some())
            .filter(|&at| self.most_important(at, now, begun).is_some());
        let below = children
            .filter_map(|at| self.nodes[at].rules.deadline().or_else(|| self.earliest(at, now, begun)));
        own.chain(below).min()
    }
}
