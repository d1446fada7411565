//! Trees of schedulers, at most four deep.

use super::{hard_task, ns, platform, soft_task};
use crate::Random;
use horolog_model::{
    Capacity, CpuId, Draft, Enforcement, LowPriority, Order, Policy, Preemption, Priority, Server,
    ServerKind, SporadicRules,
};

/// How many schedulers a path has at most.
const DEEPEST: u64 = 4;
/// How many tasks a processor has at most.
const MOST_TASKS: usize = 6;

/// One or two processors with a tree each.
pub(super) fn draft(random: &mut Random, end: u64) -> Draft {
    let policy = [Policy::FixedPriority, Policy::Edf][random.below(2) as usize];
    let mut draft = Draft { policy, ..Draft::default() };
    let cpus = if random.below(8) == 0 { 2 } else { 1 };
    draft.platform = platform(random, super::Kind::Tree, cpus);
    for cpu in 0..cpus {
        let mut tree = Tree { random, draft: &mut draft, cpu: CpuId(cpu), end, tasks: 0 };
        tree.children(Order::of_policy(policy), None, 0);
    }
    shuffle(random, &mut draft.tasks);
    shuffle(random, &mut draft.servers);
    draft
}

fn shuffle<T>(random: &mut Random, items: &mut [T]) {
    for place in (1..items.len()).rev() {
        items.swap(place, random.below(place as u64 + 1) as usize);
    }
}

struct Tree<'a> {
    random: &'a mut Random,
    draft: &'a mut Draft,
    cpu: CpuId,
    end: u64,
    tasks: usize,
}

impl Tree<'_> {
    /// What stands below a scheduler, or below the root; at least one task.
    fn children(&mut self, order: Order, parent: Option<usize>, depth: u64) {
        let count = self.random.between(1, if depth == 0 { 4 } else { 3 });
        for place in 0..count {
            let is_last = place + 1 == count;
            let is_full = self.tasks >= MOST_TASKS;
            if is_full && !(is_last && place == 0) {
                break;
            }
            // More schedulers above than below.
            let may_nest = order != Order::Fifo && depth < DEEPEST && !is_full;
            if may_nest && self.random.below(4 + depth) < 3 {
                self.scheduler(order, parent, depth + 1);
            } else {
                self.task(order, parent);
            }
        }
    }

    fn scheduler(&mut self, above: Order, parent: Option<usize>, depth: u64) {
        let order = [Order::Fifo, Order::FixedPriority, Order::Edf][self.random.below(3) as usize];
        let kind = self.kind(above);
        let index = self.draft.servers.len();
        let mut server = Server::new(format!("node-{index}"), Vec::new(), self.cpu, kind);
        server.order = order;
        server.parent = parent.map(|parent| self.draft.servers[parent].name.clone());
        self.draft.servers.push(server);
        self.children(order, Some(index), depth);
    }

    /// Below fixed priorities every child has a priority, below EDF none.
    fn kind(&mut self, above: Order) -> ServerKind {
        let random = &mut *self.random;
        let period = random.between(3, 16);
        let capacity = Capacity { budget: ns(random.between(1, period.div_ceil(2) + 1)), period: ns(period) };
        if above == Order::Edf {
            return match random.below(3) {
                0 => ServerKind::Plain { priority: None },
                _ => ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own },
            };
        }
        let number = random.between(1, 5) as i64;
        let priority = Priority::new(number);
        let low_priority = match random.below(3) {
            0 => LowPriority::At(Priority::new(number - random.between(1, 4) as i64)),
            1 => LowPriority::Background,
            _ => LowPriority::None,
        };
        let max_replenishments = [1, 2, 3, 32][random.below(4) as usize];
        let rules = SporadicRules::Corrected;
        match random.below(7) {
            0 => ServerKind::Plain { priority: Some(priority) },
            1 | 2 => ServerKind::Polling { capacity, priority, low_priority },
            3 | 4 => ServerKind::Deferrable { capacity, priority, low_priority },
            _ => ServerKind::Sporadic { capacity, priority, low_priority, max_replenishments, rules },
        }
    }

    fn task(&mut self, order: Order, parent: Option<usize>) {
        let random = &mut *self.random;
        let mut task = if order == Order::Fifo {
            let mut task = soft_task(random, self.end);
            task.deadline = (random.below(2) == 0).then(|| ns(random.between(task.wcet.as_ns(), 20)));
            task
        } else {
            let policy = if order == Order::Edf { Policy::Edf } else { Policy::FixedPriority };
            let mut task = hard_task(random, policy, super::Kind::Tree, 3, 0);
            // So that budgets are overdrawn.
            if random.below(4) == 0 && task.preemption == Preemption::Preemptive {
                task.preemption = Preemption::NonPreemptive;
            }
            task
        };
        (task.name, task.cpu) = (format!("task-{}", self.draft.tasks.len()), self.cpu);
        if let Some(parent) = parent {
            self.draft.servers[parent].tasks.push(task.name.clone());
        }
        self.draft.tasks.push(task);
        self.tasks += 1;
    }
}
