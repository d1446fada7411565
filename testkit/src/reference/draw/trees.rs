//! Trees of schedulers, at most four deep.

use super::{hard_task, ns, platform, soft_task};
use crate::Random;
use horolog_model::{
    Capacity, CpuId, Draft, Enforcement, LowPriority, Order, Platform, Policy, Preemption, Priority, Server,
    ServerKind, SporadicRules, TimeTable, Window,
};

/// How many schedulers a path has at most.
const DEEPEST: u64 = 4;
/// How many tasks a processor has at most.
const MOST_TASKS: usize = 6;

/// Where time tables stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tables {
    /// Nowhere.
    No,
    /// Below schedulers that order by fixed priority alone: none below another one, and none below EDF.
    BelowFixedPriorities,
    /// Everywhere.
    Anywhere,
}

/// One or two processors with a tree each.
pub(super) fn draft(random: &mut Random, end: u64, tables: Tables) -> Draft {
    let mut policy = [Policy::FixedPriority, Policy::Edf][random.below(2) as usize];
    if tables == Tables::BelowFixedPriorities {
        policy = Policy::FixedPriority;
    }
    let mut draft = Draft { policy, ..Draft::default() };
    let cpus = if random.below(8) == 0 { 2 } else { 1 };
    draft.platform = platform(random, super::Kind::Tree, cpus);
    if tables != Tables::No {
        let cpus = draft.platform.cpus.clone();
        draft.platform = Platform { cpus, ..Platform::default() };
    }
    for cpu in 0..cpus {
        let mut tree = Tree { random, draft: &mut draft, cpu: CpuId(cpu), end, tasks: 0, tables };
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
    tables: Tables,
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
            let has_no_table = self.draft.servers.is_empty();
            if may_nest && ((self.tables != Tables::No && has_no_table) || self.random.below(4 + depth) < 3) {
                self.scheduler(order, parent, depth + 1);
            } else {
                self.task(order, parent);
            }
        }
    }

    fn scheduler(&mut self, above: Order, parent: Option<usize>, depth: u64) {
        let mut order = [Order::Fifo, Order::FixedPriority, Order::Edf][self.random.below(3) as usize];
        if self.may_have_table(parent) && (self.draft.servers.is_empty() || self.random.below(3) == 0) {
            order = Order::Table;
        }
        let kind = self.kind(above);
        let index = self.draft.servers.len();
        let mut server = Server::new(format!("node-{index}"), Vec::new(), self.cpu, kind);
        server.order = order;
        server.parent = parent.map(|parent| self.draft.servers[parent].name.clone());
        self.draft.servers.push(server);
        self.children(order, Some(index), depth);
        if order == Order::Table {
            let table = time_table(self.random, self.draft, &self.draft.servers[index]);
            self.draft.servers[index].table = Some(table);
        }
    }

    /// Whether a scheduler below this parent may have a time table.
    fn may_have_table(&self, parent: Option<usize>) -> bool {
        let find = |name: &String| self.draft.servers.iter().position(|it| it.name == *name);
        let up = |&at: &usize| self.draft.servers[at].parent.as_ref().and_then(find);
        let mut above = std::iter::successors(parent, up);
        match self.tables {
            Tables::No => false,
            Tables::Anywhere => true,
            Tables::BelowFixedPriorities => {
                above.all(|at| self.draft.servers[at].order == Order::FixedPriority)
            }
        }
    }

    /// Below fixed priorities every child has a priority, below EDF none.
    fn kind(&mut self, above: Order) -> ServerKind {
        let random = &mut *self.random;
        let period = random.between(3, 16);
        let capacity = Capacity { budget: ns(random.between(1, period.div_ceil(2) + 1)), period: ns(period) };
        if above == Order::Table {
            return ServerKind::Plain { priority: None };
        }
        if above == Order::Edf {
            return match random.below(3) {
                0 => ServerKind::Plain { priority: None },
                _ => ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own },
            };
        }
        // Which of two equal schedulers comes first where windows and budgets begin at one instant is undecided.
        let are_distinct = self.tables == Tables::BelowFixedPriorities;
        let from = if are_distinct { 10 * (self.draft.servers.len() as i64 + 1) } else { 0 };
        let number = from + random.between(1, 5) as i64;
        let priority = Priority::new(number);
        let low_priority = match random.below(3) {
            1 if are_distinct => LowPriority::None,
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
        if order == Order::Table {
            task.priority = None;
        }
        (task.name, task.cpu) = (format!("task-{}", self.draft.tasks.len()), self.cpu);
        if let Some(parent) = parent {
            self.draft.servers[parent].tasks.push(task.name.clone());
        }
        self.draft.tasks.push(task);
        self.tasks += 1;
    }
}

/// Windows of what stands below a scheduler, most of them one behind the other.
pub(super) fn time_table(random: &mut Random, draft: &Draft, server: &Server) -> TimeTable {
    let below = draft.servers.iter().filter(|child| child.parent.as_ref() == Some(&server.name));
    let mut children: Vec<String> = below.map(|child| child.name.clone()).collect();
    children.extend(server.tasks.iter().cloned());
    let cycle = random.between(2, 16);
    let (mut at, mut windows) = (0, Vec::new());
    while at < cycle && windows.len() < 5 {
        if random.below(3) == 0 {
            at += random.below(3);
        }
        let length = random.between(1, 5).min(cycle.saturating_sub(at));
        if length > 0 {
            let child = children[random.below(children.len() as u64) as usize].clone();
            windows.push(Window { child, from: ns(at), length: ns(length) });
        }
        at += length.max(1);
    }
    if windows.is_empty() {
        windows.push(Window { child: children[0].clone(), from: ns(0), length: ns(1) });
    }
    TimeTable { cycle: ns(cycle), windows }
}
