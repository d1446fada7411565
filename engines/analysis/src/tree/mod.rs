//! Trees of schedulers on one processor: what each node gives to what is below it, and bounds of the tasks.
//!
//! The supply of a node is made from that of the node above ([`supply`]); tasks and nodes below it are then judged against the
//! supply ([`judge`], [`deadlines`]). Formulas and why they hold: `docs/concepts/tree-analysis.md`.

mod deadlines;
mod judge;
mod quick;
mod supply;
mod windows;

pub(crate) use judge::{explain, verdicts};
pub use quick::least_upper_bound;

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{InterruptLoad, LONGEST_NS, Retention, moves, parts};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::server::{NoAnswer, Service};
use deadlines::Deadlines;
use horolog_model::{
    Capacity, CpuId, LowPriority, Order, Parent, Platform, Preemption, Priority, Server, ServerId,
    ServerKind, SporadicRules, System, Task, TaskId,
};
use std::collections::BTreeMap;
use std::rc::Rc;
use supply::{Amount, Load, TreeSupply};
use windows::WindowSet;

/// Trees are analysed to this depth.
const DEEPEST: usize = 64;

/// A node of the tree: a scheduler, or the root.
type Node = Option<ServerId>;

/// Why nothing is known, in words.
type Reason = String;

/// The platform's costs, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Costs {
    /// Release latency and tick.
    late: u64,
    context_switch: u64,
    /// One timer interrupt.
    interrupt: u64,
}

impl Costs {
    fn of(platform: &Platform) -> Result<Costs, AnalysisError> {
        let within = |ns: u64| Some(ns).filter(|&ns| ns <= LONGEST_NS / 4);
        let tick = platform.tick.unwrap_or_default().as_ns();
        let costs = || {
            Some(Costs {
                late: within(platform.release_latency_bound().as_ns().checked_add(tick)?)?,
                context_switch: within(platform.context_switch_cost().as_ns())?,
                interrupt: within(platform.timer_interrupt_cost().as_ns())?,
            })
        };
        costs().ok_or_else(|| AnalysisError::overflow("platform", "a cost"))
    }
}

/// What a node gives to everything below it, and how late its own budget is served.
#[derive(Clone, Debug)]
struct Given {
    supply: TreeSupply,
    /// The time within which its whole budget is served, where it has one that is kept by time.
    completion: Option<u64>,
}

/// The tree of one processor.
struct Tree<'s> {
    system: &'s System,
    cpu: CpuId,
    tasks: BTreeMap<Node, Vec<TaskId>>,
    nodes: BTreeMap<Node, Vec<ServerId>>,
    /// When jobs become ready, by the task's place in the system.
    arrivals: BTreeMap<TaskId, ArrivalCurve>,
    given: BTreeMap<Node, Result<Given, Reason>>,
    /// By the node at which deadlines are compared.
    deadlines: BTreeMap<Node, Result<Deadlines, Reason>>,
    costs: Costs,
    options: Options,
}

impl<'s> Tree<'s> {
    /// # Errors
    /// Where a time is longer than 2^62 ns.
    fn new(system: &'s System, cpu: CpuId, options: &Options) -> Result<Tree<'s>, AnalysisError> {
        let mut tree = Tree {
            system,
            cpu,
            tasks: BTreeMap::new(),
            nodes: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            given: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            costs: Costs::of(system.platform())?,
            options: Options::clone(options),
        };
        for (id, task) in system.tasks_on(cpu) {
            let curve = ArrivalCurve::of(task, tree.costs.late).filter(|curve| curve.jitter() <= LONGEST_NS);
            let fits = task.wcet.as_ns() <= LONGEST_NS;
            let curve = curve.filter(|_| fits);
            let too_long =
                || AnalysisError::overflow(format!("task.{}", task.name), "wcet, or period and jitter");
            tree.arrivals.insert(id, curve.ok_or_else(too_long)?);
            tree.tasks.entry(system.scheduler_of(id)).or_default().push(id);
        }
        for (id, _) in system.servers_on(cpu) {
            let above = match system.parent_of(id) {
                Parent::Scheduler(above) => Some(above),
                Parent::Root | Parent::Cluster(_) => None,
            };
            tree.nodes.entry(above).or_default().push(id);
        }
        let count = tree.arrivals.len() + system.servers_on(cpu).count();
        tree.options = options.for_each_server_of(count);
        Ok(tree)
    }

    /// Why nothing is known of any task of the processor.
    fn obstacle(&self) -> Option<Reason> {
        let tasks = || self.arrivals.keys().map(|&id| self.system.task(id));
        let is_rigid = |task: &&Task| task.preemption != Preemption::Preemptive;
        if let Some(task) = tasks().find(|task| !task.sections.is_empty()) {
            return Some(format!("`{}` holds resources", task.name));
        }
        if let Some(task) = tasks().find(is_rigid) {
            return Some(format!(
                "`{}` cannot be preempted anywhere, and a budget does not end such a job",
                task.name
            ));
        }
        if self.has_costs() && self.system.servers_on(self.cpu).any(|(_, server)| server.table.is_some()) {
            return Some(
                "a time table is there, and how the platform's costs cut its windows is not known".to_owned(),
            );
        }
        if let Some((_, why)) = crate::beyond::endless_switching(self.system, self.cpu) {
            return Some(why);
        }
        let mut servers = self.system.servers_on(self.cpu);
        if let Some((_, server)) =
            servers.find(|(id, _)| self.overhead(*id).is_none() || self.moves_of(*id).is_none())
        {
            return Some(format!("switching below `{}` leaves 62 bits of nanoseconds", server.name));
        }
        (self.depth() > DEEPEST).then(|| format!("it is more than {DEEPEST} schedulers deep"))
    }

    fn depth(&self) -> usize {
        let (mut level, mut depth) = (vec![None], 0);
        while !level.is_empty() && depth <= DEEPEST + 1 {
            level = level.into_iter().flat_map(|node| self.nodes_below(node)).map(|&id| Some(id)).collect();
            depth += 1;
        }
        depth.saturating_sub(1)
    }

    fn effort(&self) -> u64 {
        self.options.effort
    }

    fn order(&self, node: Node) -> Order {
        node.map_or(Order::of_policy(self.system.policy()), |id| self.system.server(id).order)
    }

    fn nodes_below(&self, node: Node) -> &[ServerId] {
        self.nodes.get(&node).map_or(&[], Vec::as_slice)
    }

    fn tasks_below(&self, node: Node) -> &[TaskId] {
        self.tasks.get(&node).map_or(&[], Vec::as_slice)
    }

    fn parent(&self, id: ServerId) -> Node {
        match self.system.parent_of(id) {
            Parent::Scheduler(above) => Some(above),
            Parent::Root | Parent::Cluster(_) => None,
        }
    }

    fn has_costs(&self) -> bool {
        self.costs != Costs::default()
    }

    /// The execution of a job, with a switch to it and one away from it.
    fn wcet(&self, id: TaskId) -> u64 {
        self.system.task(id).wcet.as_ns().saturating_add(2 * self.costs.context_switch)
    }

    fn jobs(&self, id: TaskId) -> InterruptLoad {
        InterruptLoad { arrival: self.arrivals[&id].clone(), wcet: self.wcet(id) }
    }

    /// Switching in each period of a node, beyond its budget; `None` where it leaves the numbers. A stretch of execution costs two switches.
    /// A period holds at most as many as jobs of the least length fit into the budget, one cut off at each end, one begun and not ended of
    /// each task, one for each part in which the budget comes back, and two for each time that a budget below ends or comes back, or a
    /// deadline below is put off.
    fn overhead(&self, id: ServerId) -> Option<u64> {
        self.stretches(id)?.checked_mul(2 * self.costs.context_switch).filter(|&ns| ns <= LONGEST_NS)
    }

    fn stretches(&self, id: ServerId) -> Option<u64> {
        let kind = &self.system.server(id).kind;
        let Some(Capacity { budget, period }) = kind.capacity() else {
            return Some(0);
        };
        let (mut open, mut tasks, mut shortest, mut events) = (vec![id], 0_u64, u64::MAX, 0_u64);
        while let Some(node) = open.pop() {
            for &task in self.tasks_below(Some(node)) {
                tasks += 1;
                shortest = shortest.min(self.system.task(task).bcet.as_ns().max(1));
            }
            for &below in self.nodes_below(Some(node)) {
                let kind = &self.system.server(below).kind;
                if let Some(inner) = kind.capacity() {
                    let times = match kind {
                        // Each amount of its own that it executes, one begun before and one begun last.
                        ServerKind::ConstantBandwidth { .. } => {
                            (budget.as_ns() / inner.budget.as_ns().max(1)).checked_add(2)?
                        }
                        _ => {
                            let periods = period.as_ns().div_ceil(inner.period.as_ns()).checked_add(1)?;
                            periods.checked_mul(parts(kind, inner.budget.as_ns()).max(1))?
                        }
                    };
                    events = events.checked_add(times.checked_mul(2)?)?;
                }
                open.push(below);
            }
        }
        let parts = parts(kind, budget.as_ns());
        (budget.as_ns() / shortest)
            .checked_add(2)?
            .checked_add(tasks)?
            .checked_add(parts)?
            .checked_add(events)
    }

    /// Timer interrupts, above everything: of releases or ticks, and of the ends and returns of budgets.
    fn interrupts(&self) -> Vec<Load> {
        let wcet = self.costs.interrupt;
        if wcet == 0 {
            return Vec::new();
        }
        let load = |arrival: ArrivalCurve, wcet: u64| Load::Jobs(InterruptLoad { arrival, wcet });
        let mut loads: Vec<Load> = match self.system.platform().tick {
            Some(tick) => {
                vec![load(ArrivalCurve::Periodic { separation: tick.as_ns(), jitter: 0 }, wcet)]
            }
            None => self.arrivals.values().map(|arrival| load(arrival.clone(), wcet)).collect(),
        };
        for (id, server) in self.system.servers_on(self.cpu) {
            if let Some(capacity) = server.kind.capacity() {
                let period = capacity.period.as_ns();
                let times = self.stretches(id).unwrap_or(u64::MAX).saturating_add(1);
                let arrival = ArrivalCurve::Periodic { separation: period, jitter: period };
                loads.push(load(arrival, wcet.saturating_mul(times)));
            }
        }
        loads
    }

    /// What a budget without which a node waits takes from others.
    fn capacity_of(&self, id: ServerId) -> Load {
        let kind = &self.system.server(id).kind;
        let retention = match kind {
            ServerKind::Deferrable { .. } => Retention::Deferrable,
            ServerKind::Sporadic { rules: SporadicRules::Posix, .. } => return Load::Unbounded,
            _ => Retention::AsPeriodic,
        };
        let Some(Capacity { budget, period }) = kind.capacity() else { return Load::Unbounded };
        let (budget, period) = (budget.as_ns(), period.as_ns());
        let jitter = retention.jitter(budget, period).saturating_add(self.costs.late);
        let wcet = budget.saturating_add(self.overhead(id).unwrap_or(LONGEST_NS));
        Load::Jobs(InterruptLoad { arrival: ArrivalCurve::Periodic { separation: period, jitter }, wcet })
    }

    /// All that can have something to run below `node`: the jobs of its tasks, and of each child with a budget without which it waits,
    /// the budget.
    fn all_work(&self, node: Node) -> Vec<Load> {
        let mut loads: Vec<Load> =
            self.tasks_below(node).iter().map(|&id| Load::Jobs(self.jobs(id))).collect();
        for &child in self.nodes_below(node) {
            loads.extend(self.work_of(child));
        }
        loads
    }

    /// The same of one node.
    fn work_of(&self, id: ServerId) -> Vec<Load> {
        let server = self.system.server(id);
        if server.kind.low_priority() == Some(LowPriority::None) {
            return vec![self.capacity_of(id)];
        }
        match &server.table {
            Some(table) => {
                WindowSet::of(table, None).map(|set| Load::Windows(Rc::new(set))).into_iter().collect()
            }
            None => {
                let mut loads = self.all_work(Some(id));
                loads.extend(self.moves_of(id).unwrap_or_default().into_iter().map(Load::Jobs));
                loads
            }
        }
    }

    /// What it costs others that a node which goes on without its budget changes its place, or its deadline; `None` where it leaves the numbers.
    fn moves_of(&self, id: ServerId) -> Option<Vec<InterruptLoad>> {
        let kind = &self.system.server(id).kind;
        let Some(Capacity { budget, period }) = kind.capacity() else { return Some(Vec::new()) };
        let jobs = self.everything_below(id).into_iter().map(|task| {
            let InterruptLoad { arrival, wcet } = self.jobs(task);
            (arrival, wcet)
        });
        let costs = (2 * self.costs.context_switch, self.costs.late);
        moves(kind, (budget.as_ns(), period.as_ns()), jobs, costs)
    }

    /// All tasks below a node, at any depth.
    fn everything_below(&self, id: ServerId) -> Vec<TaskId> {
        let (mut open, mut tasks) = (vec![id], Vec::new());
        while let Some(node) = open.pop() {
            tasks.extend_from_slice(self.tasks_below(Some(node)));
            open.extend_from_slice(self.nodes_below(Some(node)));
        }
        tasks
    }

    /// What a node with fixed priorities above itself takes from something at `priority` beside it (`None`: in the background). Equals
    /// count as above.
    fn seen_from(&self, id: ServerId, priority: Option<Priority>) -> Vec<Load> {
        let server = self.system.server(id);
        let is_above = |place: Option<Priority>| match (priority, place) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(place)) => !own.is_more_important_than(place),
        };
        let goes_on_above = match server.kind.low_priority() {
            Some(LowPriority::At(low)) => is_above(Some(low)),
            Some(LowPriority::None) => false,
            Some(_) => is_above(None),
            None => is_above(server.kind.priority()),
        };
        if goes_on_above {
            return self.work_of(id);
        }
        match server.kind.low_priority() {
            Some(_) if is_above(server.kind.priority()) => vec![self.capacity_of(id)],
            _ => Vec::new(),
        }
    }

    /// All that comes before something at `priority` directly below `node`, which orders by fixed priorities.
    fn above(&self, node: Node, priority: Option<Priority>, but: (Option<TaskId>, Node)) -> Vec<Load> {
        let is_above = |id: &TaskId| match (priority, self.system.task(*id).priority) {
            (Some(own), Some(other)) => !own.is_more_important_than(other),
            _ => true,
        };
        let tasks = self.tasks_below(node).iter().filter(|id| Some(**id) != but.0 && is_above(id));
        let mut loads: Vec<Load> = tasks.map(|&id| Load::Jobs(self.jobs(id))).collect();
        for &other in self.nodes_below(node).iter().filter(|id| Some(**id) != but.1) {
            loads.extend(self.seen_from(other, priority));
        }
        loads
    }

    /// The node whose deadlines those of the tasks below `node`, which orders by deadline, are compared with: schedulers without a
    /// budget that order by deadline below one that does are as if their children were that one's.
    fn compares(&self, mut node: Node) -> Node {
        while let Some(id) = node
            && matches!(self.system.server(id).kind, ServerKind::Plain { .. })
            && self.order(self.parent(id)) == Order::Edf
        {
            node = self.parent(id);
        }
        node
    }

    /// Computes what every node gives, from the root down.
    fn settle(&mut self) {
        let whole = Given {
            supply: TreeSupply::whole(self.interrupts(), self.costs.context_switch),
            completion: None,
        };
        self.given.insert(None, Ok(whole));
        let mut level: Vec<Node> = vec![None];
        while !level.is_empty() {
            let mut next = Vec::new();
            for node in level {
                if self.order(node) == Order::Edf && self.compares(node) == node {
                    let found = self.supply(node).and_then(|supply| Deadlines::new(self, node, &supply));
                    self.deadlines.insert(node, found);
                }
                for id in self.nodes_below(node).to_vec() {
                    let given = self.give(id);
                    self.given.insert(Some(id), given);
                    next.push(Some(id));
                }
            }
            level = next;
        }
    }

    /// What a node gives to what is below it, or why that is not known.
    fn supply(&self, node: Node) -> Result<TreeSupply, Reason> {
        match self.given.get(&node) {
            Some(Ok(given)) => Ok(given.supply.clone()),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err("the scheduler above is not known".to_owned()),
        }
    }

    fn give(&self, id: ServerId) -> Result<Given, Reason> {
        let (server, parent) = (self.system.server(id), self.parent(id));
        let supply = match self.order(parent) {
            Order::Edf => return self.give_by_deadline(id, server),
            Order::FixedPriority => {
                if let Some(other) = self.equal(parent, id, server) {
                    return Err(format!(
                        "`{}` and `{other}` have the same priority: work of the one may come before older work of the other, and how \
                         much is not known; give one of them another priority",
                        server.name
                    ));
                }
                let loads = self.above(parent, server.kind.priority(), (None, Some(id)));
                self.supply(parent)?.below(loads)
            }
            Order::Table => self.window(parent, &server.name)?,
            Order::Fifo => return Err("nothing is below one that serves first in, first out".to_owned()),
        };
        let name = &server.name;
        let Some(capacity) = server.kind.capacity() else { return Ok(Given { supply, completion: None }) };
        let Some(service) = self.service(id, server, capacity) else {
            return Err(format!("`{name}`: {}", NoAnswer::PosixServer));
        };
        let (budget, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        let overhead = self.overhead(id).unwrap_or(LONGEST_NS);
        let amount = Amount { service, budget, period, overhead, late: self.costs.late };
        match supply.with_budget(amount, &mut self.effort()) {
            Ok((supply, done)) => Ok(Given { supply, completion: Some(done) }),
            Err(reason) => Err(format!("`{name}`: {reason}")),
        }
    }

    /// Something beside a node that has the same priority as one of the node's places. A queue without a budget waits for all that is
    /// there when its own work comes, and is not concerned.
    fn equal(&self, parent: Node, id: ServerId, server: &Server) -> Option<&'s str> {
        let own = server.kind.priority();
        if server.order == Order::Fifo && server.kind.capacity().is_none() {
            return None;
        }
        let task = |id: &&TaskId| self.system.task(**id).priority == own;
        let node = |other: &&ServerId| {
            let kind = &self.system.server(**other).kind;
            **other != id
                && (kind.priority() == own
                    || own.is_some_and(|own| kind.low_priority() == Some(LowPriority::At(own))))
        };
        let task = self.tasks_below(parent).iter().find(task).map(|&id| self.system.task(id).name.as_str());
        task.or_else(|| {
            self.nodes_below(parent).iter().find(node).map(|&id| self.system.server(id).name.as_str())
        })
    }

    /// The supply of something whose windows are in the time table of `node`.
    fn window(&self, node: Node, child: &str) -> Result<TreeSupply, Reason> {
        let server = node.map(|id| self.system.server(id));
        let (Some(server), supply) = (server, self.supply(node)?) else {
            return Err("there is no time table".to_owned());
        };
        let set = server.table.as_ref().and_then(|table| WindowSet::of(table, Some(child)));
        let Some(set) = set else { return Err(format!("`{child}` has no window in `{}`", server.name)) };
        let within = supply.within(Rc::new(set));
        within.ok_or_else(|| {
            format!(
                "the time table `{}` has a budget, or is below one, below another time table or below EDF: how its windows \
                 and what is above them meet is not known",
                server.name
            )
        })
    }

    /// A node below EDF: it never has something to run for longer than all that its deadlines are compared with, and with a constant
    /// bandwidth not longer than the share needs.
    fn give_by_deadline(&self, id: ServerId, server: &Server) -> Result<Given, Reason> {
        let above = self.compares(self.parent(id));
        let deadlines = match self.deadlines.get(&above) {
            Some(Ok(deadlines)) => deadlines,
            Some(Err(reason)) => return Err(reason.clone()),
            None => return Err("the scheduler above is not known".to_owned()),
        };
        // Its children's deadlines are compared there, so its own supply is not used.
        let mut longest = deadlines.longest;
        if let (ServerKind::ConstantBandwidth { capacity, .. }, Ok(())) =
            (server.kind, &deadlines.shares_meet)
        {
            let own = deadlines::share_backlog(&self.all_work(Some(id)), capacity, &mut self.effort());
            longest = match (longest, own) {
                (Ok(longest), Ok(own)) => Ok(longest.min(own)),
                (Ok(longest), Err(_)) => Ok(longest),
                (Err(_), own) => own,
            };
        }
        let longest = longest.map_err(|reason| format!("`{}`: {reason}", server.name))?;
        Ok(Given { supply: TreeSupply::within_backlog(longest), completion: None })
    }

    /// How a node serves while it has budget.
    fn service(&self, id: ServerId, server: &Server, capacity: Capacity) -> Option<Service> {
        match server.kind {
            ServerKind::Polling { .. } => Some(Service::Polling),
            ServerKind::Deferrable { .. } => Some(Service::Deferrable),
            ServerKind::Sporadic { rules: SporadicRules::Corrected, max_replenishments, .. } => {
                // As of a server: each end of all work below it leaves one more, and those older than a period are one.
                let window = u128::from(capacity.period.as_ns());
                let jobs = |task: &TaskId| self.arrivals[task].closed(window);
                let count: u128 = self.tasks_below(Some(id)).iter().map(jobs).sum();
                let merges =
                    !self.nodes_below(Some(id)).is_empty() || count + 3 > u128::from(max_replenishments);
                Some(Service::Sporadic { merges })
            }
            _ => None,
        }
    }
}
