//! Valid systems with trees of schedulers and clusters, for property tests.

use crate::choices::{Choices, Words};
use horolog_model::{
    Arrival, Capacity, Cluster, CpuId, Cpus, Draft, Enforcement, ExecutionTimes, LowPriority, Order,
    OverrunPolicy, Policy, Preemption, Priority, Segment, SegmentGraph, Server, ServerKind, SporadicRules,
    System, Task,
};
use horolog_time::Span;
use proptest::prelude::*;

/// Which trees to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeShape {
    /// At most so many processors outside clusters, at least 1.
    pub max_cpus: u64,
    /// At most so many schedulers on each of them.
    pub max_schedulers: u64,
    /// Whether there may be a cluster of two or three further processors.
    pub clusters: bool,
    /// Whether jobs may be not preemptible, or only between segments.
    pub blocking: bool,
    /// Every length is a multiple of this.
    pub unit: Span,
}

impl TreeShape {
    /// Everything that the model allows.
    #[must_use]
    pub const fn everything() -> TreeShape {
        let unit = Span::from_ns(100_000);
        TreeShape { max_cpus: 2, max_schedulers: 5, clusters: true, blocking: true, unit }
    }

    /// One processor, preemptive jobs, lengths of a few nanoseconds.
    #[must_use]
    pub const fn small() -> TreeShape {
        let unit = Span::from_ns(1);
        TreeShape { max_cpus: 1, max_schedulers: 4, clusters: false, blocking: false, unit }
    }
}

/// A strategy for systems with trees; it shrinks towards few schedulers.
pub fn trees(shape: TreeShape) -> impl Strategy<Value = System> {
    proptest::collection::vec(any::<u64>(), 0..256)
        .prop_map(move |words| draw_tree(shape, &mut Words::new(words)))
}

/// One system of the shape.
///
/// # Panics
/// Never: a drawn draft obeys every rule.
#[must_use]
pub fn draw_tree(shape: TreeShape, choices: &mut impl Choices) -> System {
    let draft = Drawing { shape, choices, tasks: Vec::new() }.draft();
    match System::new(draft.clone()) {
        Ok(system) => system,
        Err(errors) => panic!("a drawn draft obeys every rule: {errors:?} in {draft:?}"),
    }
}

/// A drawing under way.
struct Drawing<'c, C> {
    shape: TreeShape,
    choices: &'c mut C,
    tasks: Vec<Task>,
}

impl<C: Choices> Drawing<'_, C> {
    fn draft(mut self) -> Draft {
        let policy = *self.choices.pick(&[Policy::FixedPriority, Policy::Edf]);
        let cpus = self.choices.between(1, self.shape.max_cpus) as u32;
        let mut servers = Vec::new();
        for cpu in 0..cpus {
            self.processor(CpuId(cpu), policy, &mut servers);
        }
        let mut clusters = Vec::new();
        let mut more = 0;
        if self.shape.clusters && self.choices.once_in(2) {
            more = self.choices.between(2, 3) as u32;
            let order = *self.choices.pick(&[Order::FixedPriority, Order::Edf]);
            let count = self.choices.between(1, 4);
            let tasks = (0..count).map(|_| self.task(CpuId(cpus), order)).collect();
            let cpus = (cpus..cpus + more).map(CpuId).collect();
            clusters.push(Cluster { name: "cluster".to_owned(), cpus, order, tasks });
        }
        if self.tasks.is_empty() {
            self.task(CpuId(0), Order::of_policy(policy));
        }
        // A parent may stand below its children in the file.
        let turn = self.choices.below(servers.len() as u64 + 1) as usize;
        servers.rotate_left(turn);
        let mut draft = Draft { name: "tree".to_owned(), policy, servers, clusters, ..Draft::default() };
        draft.platform.cpus = Cpus::Count(cpus + more);
        draft.tasks = self.tasks;
        draft
    }

    /// The schedulers of one processor, and the tasks below its root.
    fn processor(&mut self, cpu: CpuId, policy: Policy, all: &mut Vec<Server>) {
        let count = self.choices.below(self.shape.max_schedulers + 1);
        let mut servers: Vec<Server> = Vec::new();
        for index in 0..count {
            let open: Vec<usize> =
                (0..servers.len()).filter(|&index| servers[index].order != Order::Fifo).collect();
            let parent = self.choices.below(open.len() as u64 + 1).checked_sub(1).map(|at| open[at as usize]);
            let above = parent.map_or(Order::of_policy(policy), |parent| servers[parent].order);
            let order = *self.choices.pick(&[Order::Fifo, Order::FixedPriority, Order::Edf]);
            let kind = self.kind(above);
            let parent = parent.map(|parent| servers[parent].name.clone());
            let name = format!("s{}.{index}", cpu.0);
            let server = Server::new(name, Vec::new(), cpu, kind);
            servers.push(Server { parent, order, ..server });
        }
        for index in 0..servers.len() {
            let is_leaf = !servers.iter().any(|other| other.parent.as_ref() == Some(&servers[index].name));
            let count = self.choices.between(u64::from(is_leaf), 2);
            let order = servers[index].order;
            servers[index].tasks = (0..count).map(|_| self.task(cpu, order)).collect();
        }
        all.append(&mut servers);
        for _ in 0..self.choices.below(3) {
            self.task(cpu, Order::of_policy(policy));
        }
    }

    fn kind(&mut self, above: Order) -> ServerKind {
        let period = self.choices.between(3, 12);
        let budget = self.choices.between(1, period);
        let capacity = Capacity { budget: self.span(budget), period: self.span(period) };
        if above == Order::Edf {
            return match self.choices.below(2) {
                0 => ServerKind::Plain { priority: None },
                _ => ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own },
            };
        }
        let priority = self.priority();
        let low_priority = match self.choices.below(3) {
            0 => LowPriority::Background,
            1 => LowPriority::None,
            _ => LowPriority::At(Priority::new(priority.number() - 1 - self.choices.below(4) as i64)),
        };
        match self.choices.below(4) {
            0 => ServerKind::Plain { priority: Some(priority) },
            1 => ServerKind::Polling { capacity, priority, low_priority },
            2 => ServerKind::Deferrable { capacity, priority, low_priority },
            _ => ServerKind::Sporadic {
                capacity,
                priority,
                low_priority,
                max_replenishments: self.choices.between(1, 4) as u32,
                rules: SporadicRules::Corrected,
            },
        }
    }

    fn priority(&mut self) -> Priority {
        Priority::new(self.choices.below(6) as i64)
    }

    fn span(&self, units: u64) -> Span {
        Span::from_ns(units * self.shape.unit.as_ns())
    }

    /// Adds a task below something that orders so; its name.
    fn task(&mut self, cpu: CpuId, order: Order) -> String {
        let units = self.choices.between(4, 24);
        let period = self.span(units);
        let wcet = self.choices.between(1, 3);
        let arrival = match self.choices.below(3) {
            0 => Arrival::Sporadic { separation: period },
            _ => Arrival::Periodic { period },
        };
        let needs_deadline = order != Order::Fifo || self.choices.once_in(2);
        let modes = match order {
            _ if !self.shape.blocking => 1,
            Order::FixedPriority => 3,
            Order::Edf => 2,
            Order::Fifo | Order::Table => 1,
        };
        let preemption = match self.choices.below(modes) {
            0 => Preemption::Preemptive,
            1 => Preemption::NonPreemptive,
            _ => Preemption::Deferred(self.segments(wcet)),
        };
        let priority = if order == Order::FixedPriority { Some(self.priority()) } else { None };
        let name = format!("t{}", self.tasks.len());
        self.tasks.push(Task {
            name: name.clone(),
            arrival,
            deadline: needs_deadline.then_some(period),
            wcet: self.span(wcet),
            bcet: self.span(wcet),
            offset: None,
            jitter: Span::ZERO,
            priority,
            cpu,
            preemption,
            overrun: OverrunPolicy::Count,
            execution: ExecutionTimes::Wcet,
            criticality: None,
            promotion: None,
            sections: Vec::new(),
            is_soft: false,
            body: None,
        });
        name
    }

    /// As many segments of one unit.
    fn segments(&self, count: u64) -> SegmentGraph {
        let unit = self.span(1);
        let segment = |index: u64| Segment {
            name: (index + 1).to_string(),
            bcet: unit,
            wcet: unit,
            next: if index + 1 < count { vec![index as usize + 1] } else { Vec::new() },
        };
        SegmentGraph { segments: (0..count).map(segment).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use horolog_model::Parent;

    #[test]
    fn every_form_comes_up() {
        let mut random = Random::new(3);
        let systems: Vec<System> =
            (0..400).map(|_| draw_tree(TreeShape::everything(), &mut random)).collect();
        let depth = |system: &System, mut id| {
            let mut depth = 1;
            while let Parent::Scheduler(parent) = system.parent_of(id) {
                (depth, id) = (depth + 1, parent);
            }
            depth
        };
        let deepest = |system: &System| system.server_ids().map(|id| depth(system, id)).max().unwrap_or(0);
        assert!(systems.iter().filter(|system| deepest(system) >= 3).count() > 40);
        assert!(systems.iter().filter(|system| !system.clusters().is_empty()).count() > 100);
        assert!(systems.iter().any(|system| system.first_beyond_servers().is_none()));
        for order in [Order::Fifo, Order::FixedPriority, Order::Edf] {
            let orders = systems.iter().flat_map(|system| system.servers()).filter(|it| it.order == order);
            assert!(orders.count() > 50, "{order:?}");
        }
    }
}
