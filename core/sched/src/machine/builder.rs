//! Builds a machine: flat by default, or a tree with inner nodes, supplies and modes.

mod locks;

use super::from_system;
use crate::desired::{EntityId, ProcessorIndex};
use crate::machine::Processor;
use crate::machine::cluster::{Cluster, NO_PROCESSOR};
use crate::machine::dispatcher::{Dispatcher, Layout, NONE, NodePolicy};
use crate::machine::job_budget::{JobBudget, OverrunAction, may_be_lowered};
use crate::machine::leaf::{Leaf, Standing};
use crate::machine::mode::{Mode, ModeSpec};
use crate::machine::supplied::SuppliedNode;
use crate::machine::table::{Table, Windows};
use crate::machine::total_bandwidth::TotalBandwidth;
use crate::machine::watch::Watch;
use crate::servers::any_supply::AnySupply;
use crate::servers::overheads::Overheads;
use crate::{Allowance, Level, Machine, NodeSpec, Place, Supply};
use horolog_model::{
    CpuId, ModelError, OverrunPolicy, Parent, Policy, Preemption, ServerId, ServerKind, System, TaskId,
    TimeTable,
};
use horolog_time::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    processor: u16,
    spec: NodeSpec,
}

/// Builds a [`Machine`] of a checked system whose priorities are resolved.
///
/// Without further calls every processor is one dispatcher over its tasks, by the system's policy, and each server of the
/// system is a node below it with one first-in-first-out queue.
#[derive(Debug)]
pub struct MachineBuilder<'a> {
    system: &'a System,
    nodes: Vec<Node>,
    /// The node above each task.
    places: Vec<usize>,
    modes: Vec<ModeSpec>,
    processors: usize,
    /// The node of each server.
    servers: Vec<usize>,
    budgets: Budgets,
    error: Option<ModelError>,
}

/// The jobs of which tasks have budgets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Budgets {
    None,
    /// Of those that may execute longer than the model says.
    Exceeding,
    /// Of those with a policy that acts, on threads.
    Acting,
    /// Of all, on threads.
    All,
}

impl Budgets {
    /// Whether the world tells how far a job is, and nobody can end it from outside.
    fn are_of_threads(self) -> bool {
        matches!(self, Budgets::Acting | Budgets::All)
    }
}

fn error(at: impl Into<String>, reason: &str, remedy: &str) -> ModelError {
    ModelError { at: at.into(), reason: reason.to_owned(), remedy: remedy.to_owned() }
}

/// The first task below each server or scheduler, at any depth.
fn first_tasks(system: &System) -> Vec<Option<TaskId>> {
    let mut firsts = vec![None; system.servers().len()];
    for task in system.task_ids() {
        let mut above = system.scheduler_of(task);
        while let Some(id) = above {
            firsts[id.index()].get_or_insert(task);
            above = scheduler_above(system, id);
        }
    }
    firsts
}

fn scheduler_above(system: &System, id: ServerId) -> Option<ServerId> {
    match system.parent_of(id) {
        Parent::Scheduler(above) => Some(above),
        Parent::Root | Parent::Cluster(_) => None,
    }
}

/// How many schedulers stand above one.
fn depth(system: &System, id: ServerId) -> usize {
    std::iter::successors(scheduler_above(system, id), |&above| scheduler_above(system, above)).count()
}

/// Periods and cycles count from here.
const START: Instant = Instant::from_ns(0);

impl<'a> MachineBuilder<'a> {
    /// Starts from the machine that the system describes: flat, with a node a server.
    #[must_use]
    pub fn new(system: &'a System) -> MachineBuilder<'a> {
        let policy = match system.policy() {
            Policy::FixedPriority => Some(NodePolicy::FixedPriority),
            Policy::Edf => Some(NodePolicy::Edf),
            _ => None,
        };
        let cpus: Vec<CpuId> = system.platform().cpus.iter().take(usize::from(u16::MAX)).collect();
        let mut builder = MachineBuilder {
            system,
            nodes: Vec::new(),
            places: Vec::new(),
            modes: Vec::new(),
            processors: cpus.len(),
            servers: Vec::new(),
            budgets: Budgets::None,
            error: None,
        };
        if policy.is_none() {
            builder.fail(error(
                "system.policy",
                "no dispatcher for this policy",
                "use fixed-priority or edf",
            ));
        }
        if let Some(at) = system.first_driver() {
            builder.fail(error(
                at,
                "there is no dispatcher for interrupts and devices yet",
                "analyse the system, or remove its interrupts and devices",
            ));
        }
        for processor in 0..cpus.len() {
            let spec = NodeSpec { policy: policy.unwrap_or_default(), ..NodeSpec::default() };
            builder.nodes.push(Node { parent: None, processor: processor as u16, spec });
        }
        for task in system.tasks() {
            match cpus.iter().position(|&cpu| cpu == task.cpu) {
                Some(index) => builder.places.push(index),
                None => {
                    let at = format!("task.{}.cpu", task.name);
                    builder.fail(error(at, "no such processor among the first 65,535", "use a lower number"));
                    builder.places.push(0);
                }
            }
        }
        for cluster in system.clusters() {
            let root = cluster.cpus.first().and_then(|&cpu| system.platform().cpus.index_of(cpu));
            if let Some(node) = root.and_then(|root| builder.nodes.get_mut(root)) {
                node.spec.policy = from_system::node_policy(cluster.order);
            }
        }
        builder.add_servers();
        builder.modes = (1..system.mode_count()).map(|mode| ModeSpec::of(system, mode)).collect();
        builder
    }

    /// One node a server or scheduler below its parent, its tasks below it. Nodes are in the order of the first tasks below them,
    /// parents before children, so that a tie goes to the lower task id, in whatever order the file has the servers.
    fn add_servers(&mut self) {
        let system = self.system;
        let firsts = first_tasks(system);
        let mut ids: Vec<ServerId> = system.server_ids().collect();
        ids.sort_by_key(|&id| (firsts[id.index()], depth(system, id)));
        self.servers = vec![0; ids.len()];
        for id in ids {
            let server = system.server(id);
            // A processor that is not there was told with the server's tasks.
            let root = firsts[id.index()]
                .map_or(0, |task| usize::from(self.nodes[self.places[task.index()]].processor));
            let parent = match system.parent_of(id) {
                Parent::Scheduler(above) => self.servers[above.index()],
                Parent::Root | Parent::Cluster(_) => root,
            };
            let hard = system.hard_tasks_on(server.cpu).filter_map(|(_, task)| task.priority);
            let spec = from_system::node(server, hard);
            let processor = self.nodes.get(parent).map_or(0, |node| node.processor);
            self.servers[id.index()] = self.nodes.len();
            for (task, _) in system.tasks_below(id) {
                self.places[task.index()] = self.nodes.len();
            }
            self.nodes.push(Node { parent: Some(parent), processor, spec });
        }
    }

    fn fail(&mut self, error: ModelError) {
        self.error.get_or_insert(error);
    }

    /// Changes the root dispatcher of a processor; its priority is not looked at.
    #[must_use]
    pub fn root(mut self, processor: ProcessorIndex, spec: NodeSpec) -> MachineBuilder<'a> {
        match self.nodes.get_mut(usize::from(processor.0)) {
            Some(node) if node.parent.is_none() => node.spec = spec,
            _ => self.fail(error("tree", "no such processor", "use a place in platform.cpus")),
        }
        self
    }

    /// Adds an inner node below `parent`, a root or an inner node, and returns its id.
    pub fn node(&mut self, parent: EntityId, spec: NodeSpec) -> EntityId {
        let index = (parent.0 as usize).checked_sub(self.places.len()).filter(|&i| i < self.nodes.len());
        let above = index.unwrap_or_else(|| {
            self.fail(error("tree", "a node's parent is not a dispatcher", "use a root or an inner node"));
            0
        });
        let processor = self.nodes.get(above).map_or(0, |node| node.processor);
        self.nodes.push(Node { parent: Some(above), processor, spec });
        EntityId((self.places.len() + self.nodes.len() - 1) as u32)
    }

    /// Puts a supply in the place of the one that a server's own rules give it: for whoever knows otherwise what became of its
    /// budget.
    pub fn supply(&mut self, server: ServerId, supply: Box<dyn Supply>) {
        match self.servers.get(server.index()).and_then(|&node| self.nodes.get_mut(node)) {
            Some(node) => node.spec.supply = Some(supply),
            None => self.fail(error("tree", "no such server", "use one of the system")),
        }
    }

    /// The root dispatcher of a processor.
    #[must_use]
    pub fn root_of(&self, processor: ProcessorIndex) -> EntityId {
        EntityId((self.places.len() + usize::from(processor.0)) as u32)
    }

    /// Puts a task below a node, which must be on the task's processor.
    pub fn place(&mut self, task: TaskId, node: EntityId) {
        let index = (node.0 as usize).checked_sub(self.places.len()).filter(|&i| i < self.nodes.len());
        match (index, self.places.get(task.index())) {
            (Some(index), Some(&old)) if self.nodes[index].processor == self.nodes[old].processor => {
                self.places[task.index()] = index;
            }
            _ => {
                let reason = "a task is placed below no dispatcher of its processor";
                self.fail(error("tree", reason, "use a node of the task's processor"));
            }
        }
    }

    /// Adds a mode and returns its number; mode 0 is the system itself.
    pub fn mode(&mut self, mode: ModeSpec) -> u32 {
        if mode.tasks.len() != self.places.len() {
            self.fail(error("mode", "a mode says nothing about some task", "give one entry a task"));
        }
        self.modes.push(mode);
        self.modes.len() as u32
    }

    /// Gives the jobs of every task that may execute longer than the model says ([`horolog_model::Task::may_exceed`]) and their
    /// segments their wcets as budgets. For worlds in which jobs do so at that word.
    #[must_use]
    pub fn job_budgets(mut self) -> MachineBuilder<'a> {
        self.budgets = Budgets::Exceeding;
        self
    }

    /// Gives the jobs of every task whose overrun policy acts, or of all, their budgets. For jobs on threads: the world tells how far
    /// they are ([`crate::Tell::progress`]), and one that has begun outlives being demoted, stopped or dropped, as one that has
    /// suspended itself, until it completes; jobs of its task that come meanwhile wait for it. So it is where nobody can end a
    /// job from outside.
    #[must_use]
    pub fn on_threads(mut self, watches_all: bool) -> MachineBuilder<'a> {
        self.budgets = if watches_all { Budgets::All } else { Budgets::Acting };
        self
    }

    fn has_budget(&self, task: &horolog_model::Task) -> bool {
        match self.budgets {
            Budgets::None => false,
            Budgets::Exceeding => task.may_exceed() || self.is_limited(task),
            Budgets::Acting => task.overrun != OverrunPolicy::Count || self.is_limited(task),
            Budgets::All => true,
        }
    }

    /// Whether some mode leaves less to its jobs than their wcet.
    fn is_limited(&self, task: &horolog_model::Task) -> bool {
        let changes = self.system.modes().iter().flat_map(|mode| &mode.tasks);
        changes.filter(|change| change.wcet.is_some()).any(|change| change.task == task.name)
    }

    /// Builds the machine.
    ///
    /// # Errors
    /// The first thing that was wrong in the calls before, or an entity below a fixed-priority dispatcher that
    /// has no priority.
    pub fn build(mut self) -> Result<Machine, ModelError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let watches = self.watches()?;
        let modes =
            (0..=self.modes.len()).map(|mode| self.build_mode(mode)).collect::<Result<Vec<_>, _>>()?;
        let nodes = self.dispatchers(&modes[0]);
        let supplied = self.supplies()?;
        let mut supply_of = vec![NONE; self.nodes.len()];
        for (index, supplied) in supplied.iter().enumerate() {
            supply_of[supplied.node as usize] = index as u32;
        }
        let clusters = self.clusters();
        let tables = self.tables(&modes[0]);
        let bandwidths = self.bandwidths();
        let budgeted = self.system.task_ids().filter(|&id| self.has_budget(self.system.task(id)));
        let is_told = self.budgets.are_of_threads();
        let action = |id| OverrunAction::of(self.system, &self.system.task(id).overrun);
        let budget = |id| JobBudget::new(Allowance::of(self.system, id), action(id), is_told);
        let budgets = budgeted.map(budget).collect();
        let locks = self.locks(&modes);
        let mut machine = Machine {
            locks,
            leaves: self.leaves(&watches, &bandwidths),
            nodes,
            processors: self.processors(&supplied, &watches, &clusters, &tables),
            clusters,
            tables,
            supplied,
            supply_of,
            bandwidths,
            budgets,
            watches,
            servers: self.servers.iter().map(|&node| node as u32).collect(),
            upwards: self.upwards(),
            modes,
            mode: 0,
            keeps_begun: self.budgets.are_of_threads(),
        };
        for table in &machine.tables {
            machine.nodes[table.node as usize].current = table.current();
        }
        machine.refresh_positions();
        machine.find_shallow();
        machine.refresh_ceilings();
        Ok(machine)
    }

    /// All nodes, the deepest first; of one depth in their order.
    fn upwards(&self) -> Box<[u32]> {
        let depth =
            |&node: &u32| std::iter::successors(Some(node as usize), |&at| self.nodes[at].parent).count();
        let mut nodes: Vec<u32> = (0..self.nodes.len() as u32).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(depth(node)));
        nodes.into()
    }

    fn dispatchers(&self, mode: &Mode) -> Vec<Dispatcher> {
        let dispatcher = |(index, node): (usize, &Node)| {
            let parent = node.parent.map_or(NONE, |parent| parent as u32);
            let places = node.spec.places().count().max(1);
            let mut dispatcher = Dispatcher::new(node.spec.policy, parent, node.processor, places);
            dispatcher.prepare(&mode.layouts[index]);
            let server = self.servers.iter().position(|&server| server == index);
            let kind = server.and_then(|server| self.system.servers().get(server)).map(|server| server.kind);
            dispatcher.is_background = kind == Some(ServerKind::Background);
            dispatcher
        };
        self.nodes.iter().enumerate().map(dispatcher).collect()
    }

    /// The supplies of all nodes that have one, by processor.
    fn supplies(&mut self) -> Result<Vec<SuppliedNode>, ModelError> {
        let mut supplied = Vec::new();
        let mut add = |node: usize, supply: AnySupply| {
            supplied.push(SuppliedNode::new(node as u32, supply));
        };
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(supply) = node.spec.supply.clone() {
                add(index, AnySupply::Other(supply));
            }
        }
        for (server, &node) in self.system.servers().iter().zip(&self.servers) {
            if self.nodes[node].spec.supply.is_none()
                && let Some(supply) = from_system::any_supply(server, START)?
            {
                add(node, supply);
            }
        }
        supplied.sort_by_key(|supplied| (self.nodes[supplied.node as usize].processor, supplied.node));
        Ok(supplied)
    }

    /// The tables of the system, as the base mode has them.
    fn tables(&self, mode: &Mode) -> Vec<Table> {
        let nodes =
            self.system.servers().iter().zip(&self.servers).filter(|(server, _)| server.table.is_some());
        let tables = nodes.zip(&mode.windows);
        tables.map(|((_, &node), windows)| Table::new(node as u32, windows, START)).collect()
    }

    /// What each table says in a mode.
    fn windows(&self, layouts: &[Layout], changed: &[(ServerId, TimeTable)]) -> Vec<Arc<Windows>> {
        let mut tables = Vec::new();
        for (id, &node) in self.system.server_ids().zip(&self.servers) {
            let other = changed.iter().find(|(server, _)| *server == id).map(|(_, table)| table);
            let Some(base) = &self.system.server(id).table else { continue };
            let table = other.unwrap_or(base);
            let entity = |name: &str| match self.system.find_server(name) {
                Some(child) => Some(self.places.len() + self.servers[child.index()]),
                None => self.system.find_task(name).map(TaskId::index),
            };
            let position = |name: &str| {
                let entity = entity(name)? as u32;
                layouts[node].children.iter().position(|&child| child == entity)
            };
            let window = |window: &horolog_model::Window| {
                let (from, until) = (window.from.as_ns(), window.from.as_ns() + window.length.as_ns());
                Some((from, until, position(&window.child)? as u32))
            };
            let windows: Vec<(u64, u64, u32)> = table.windows.iter().filter_map(window).collect();
            tables.push(Arc::new(Windows::new(table.cycle.as_ns(), &windows)));
        }
        tables
    }

    fn clusters(&self) -> Vec<Cluster> {
        let cluster = |cluster: &horolog_model::Cluster| {
            let index = |&cpu: &CpuId| self.system.platform().cpus.index_of(cpu).map(|index| index as u16);
            let processors: Box<[u16]> = cluster.cpus.iter().filter_map(index).collect();
            Cluster::new(processors.first().copied().map_or(0, u32::from), processors)
        };
        self.system.clusters().iter().map(cluster).collect()
    }

    fn processors(
        &self,
        supplied: &[SuppliedNode],
        watches: &[Watch],
        clusters: &[Cluster],
        tables: &[Table],
    ) -> Vec<Processor> {
        let mut processors: Vec<Processor> = Vec::with_capacity(self.processors);
        for index in 0..self.processors {
            let mut processor = Processor::new(index as u32);
            let of = |supplied: &SuppliedNode| usize::from(self.nodes[supplied.node as usize].processor);
            let first = supplied.partition_point(|supplied| of(supplied) < index);
            processor.supplies = first..supplied.partition_point(|supplied| of(supplied) <= index);
            processors.push(processor);
        }
        for (index, watch) in watches.iter().enumerate() {
            processors[usize::from(watch.processor)].watch = index as u32;
        }
        for (number, cluster) in clusters.iter().enumerate() {
            for &index in &cluster.processors {
                let processor = &mut processors[usize::from(index)];
                (processor.cluster, processor.root) = (number as u32, cluster.root);
            }
        }
        for processor in &mut processors {
            let is_here =
                |table: &Table| u32::from(self.nodes[table.node as usize].processor) == processor.root;
            let is_on = |task: &horolog_model::Task| {
                self.system.platform().cpus.index_of(task.cpu) == Some(processor.root as usize)
            };
            let has_budgets = self.system.tasks().iter().any(|task| self.has_budget(task) && is_on(task));
            processor.may_want_timers = !processor.supplies.is_empty()
                || processor.watch != NONE
                || tables.iter().any(is_here)
                || has_budgets;
        }
        processors
    }

    /// The services of the processors whose server watches all their tasks.
    fn watches(&self) -> Result<Vec<Watch>, ModelError> {
        let mut watches = Vec::new();
        for (server, &node) in self.system.servers().iter().zip(&self.servers) {
            let hard = Overheads::hard_tasks(self.system, server.cpu);
            let Some(service) = from_system::service(self.system, server, &hard, START)? else {
                continue;
            };
            if !self.modes.is_empty() {
                let reason = "a server that watches all tasks of its processor knows of no modes";
                return Err(error(format!("server.{}.kind", server.name), reason, "use another kind"));
            }
            watches.push(Watch {
                service,
                processor: self.nodes[node].processor,
                soft_node: node as u32,
                tasks: hard.iter().map(|hard| (hard.task.0, hard.deadline)).collect(),
                backlogged: false,
                place: Place::Out,
                changes: 0,
                timer: None,
                generation: 0,
            });
        }
        Ok(watches)
    }

    fn bandwidths(&self) -> Vec<TotalBandwidth> {
        let of = |(server, &node): (&horolog_model::Server, &usize)| match server.kind {
            ServerKind::TotalBandwidth { capacity } => Some(TotalBandwidth::new(node as u32, capacity)),
            _ => None,
        };
        self.system.servers().iter().zip(&self.servers).filter_map(of).collect()
    }

    fn leaves(&self, watches: &[Watch], bandwidths: &[TotalBandwidth]) -> Vec<Leaf> {
        let bandwidth = |index: usize| {
            let node = self.places[index] as u32;
            bandwidths.iter().position(|server| server.node == node).map_or(NONE, |found| found as u32)
        };
        let rank = |index: usize| {
            let rank = |watch: &Watch| watch.tasks.iter().position(|&(task, _)| task as usize == index);
            watches.iter().find_map(rank).map_or(NONE, |rank| rank as u32)
        };
        let mut budgets = 0;
        let leaf = |(index, task): (usize, &horolog_model::Task)| {
            let budget = if self.has_budget(task) { budgets } else { NONE };
            budgets += u32::from(budget != NONE);
            let successors = task.segment_graph().map_or_else(Box::default, |graph| {
                let next =
                    |segment: &horolog_model::Segment| segment.next.iter().map(|&n| n as u32).collect();
                graph.segments.iter().map(next).collect()
            });
            Leaf {
                node: self.places[index] as u32,
                position: 0,
                positions: [0; 2],
                is_low: false,
                rank: rank(index),
                bandwidth: bandwidth(index),
                budget,
                wcet: task.wcet.as_ns(),
                is_direct: false,
                is_counted: false,
                is_limited: false,
                processor: self.nodes[self.places[index]].processor,
                on: NO_PROCESSOR,
                preemptible: matches!(task.preemption, Preemption::Preemptive),
                active: true,
                begun: false,
                blocked: false,
                standing: Standing::OWN,
                uses_resources: !task.sections.is_empty(),
                holds: 0,
                finishes: 0,
                waits_for: NONE,
                wait: 0,
                spins_for: NONE,
                shares: NONE,
                kept_at: u64::MAX,
                is_taken_out: false,
                jobs: 0,
                segment: 0,
                shortened: self.system.task_in(0, TaskId(index as u32)).shortened.as_ns(),
                deadline: 0,
                successors,
                backlog: VecDeque::with_capacity(4),
            }
        };
        self.system.tasks().iter().enumerate().map(leaf).collect()
    }

    fn build_mode(&self, mode: usize) -> Result<Mode, ModelError> {
        let spec = mode.checked_sub(1).map(|index| &self.modes[index]);
        let base = ModeSpec::of(self.system, 0);
        let children = self.children();
        let layouts = children.iter().enumerate().map(|(node, children)| self.layout(node, children, spec));
        let layouts = layouts.collect::<Result<Vec<_>, _>>()?;
        let ModeSpec { tasks, capacities, tables, takes_effect, refuses_second } =
            spec.unwrap_or(&base).clone();
        // Changes of one mode are undone by those of the next.
        let base = base.capacities.into_iter();
        let is_changed = |server: ServerId| capacities.iter().any(|&(other, _)| other == server);
        let mut all: Vec<_> = base.filter(|&(server, _)| !is_changed(server)).collect();
        all.extend(&capacities);
        if self.modes.is_empty() {
            all.clear();
        }
        let windows = self.windows(&layouts, &tables);
        Ok(Mode { tasks, layouts, capacities: all, windows, takes_effect, refuses_second })
    }

    /// The entities below each node, tasks first. One pass: there may be 65,535 processors.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (task, &place) in self.places.iter().enumerate() {
            children[place].push(task);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(self.places.len() + index);
            }
        }
        children
    }

    /// The children of a node in order of importance: by level, then by entity.
    fn layout(&self, node: usize, entities: &[usize], mode: Option<&ModeSpec>) -> Result<Layout, ModelError> {
        let mut children: Vec<(Level, usize, u16)> = Vec::new();
        for &entity in entities {
            match self.nodes[node].spec.policy {
                NodePolicy::Edf | NodePolicy::Fifo | NodePolicy::Table => {
                    children.push((Level::BACKGROUND, entity, 0))
                }
                NodePolicy::FixedPriority => {
                    let levels = self.levels(entity, mode)?;
                    children.extend(levels.into_iter().zip(0..).map(|(level, place)| (level, entity, place)));
                }
            }
        }
        children.sort_by_key(|&(level, entity, place)| (std::cmp::Reverse(level), entity, place));
        let end_of = |level: Level| {
            children.iter().rposition(|&(other, ..)| other == level).map_or(0, |last| last + 1)
        };
        Ok(Layout {
            level_end: children.iter().map(|&(level, ..)| end_of(level) as u32).collect(),
            children: children.iter().map(|&(_, entity, _)| entity as u32).collect(),
            places: children.iter().map(|&(.., place)| place).collect(),
        })
    }

    /// The places of an entity below a fixed-priority dispatcher.
    fn levels(&self, entity: usize, mode: Option<&ModeSpec>) -> Result<Vec<Level>, ModelError> {
        let Some(task) = self.system.tasks().get(entity) else {
            let levels: Vec<Level> = self.nodes[entity - self.places.len()].spec.places().collect();
            if levels.is_empty() {
                let reason = "an inner node below a fixed-priority dispatcher has no priority";
                return Err(error("tree", reason, "give one"));
            }
            return Ok(levels);
        };
        let priority = mode.and_then(|mode| mode.tasks[entity].priority).or(task.priority);
        let priority = priority.ok_or_else(|| {
            let at = format!("task.{}.priority", task.name);
            error(at, "no priority under a fixed-priority dispatcher", "give one, or resolve the assignment")
        })?;
        let is_promoted = self
            .system
            .servers_on(task.cpu)
            .any(|(_, server)| matches!(server.kind, ServerKind::DualPriority { .. }));
        let task = &self.system.tasks()[entity];
        let may_be_lowered = !self.budgets.are_of_threads() && may_be_lowered(&task.overrun);
        Ok(if self.has_budget(task) && may_be_lowered {
            vec![Level::at(priority), Level::BACKGROUND]
        } else if is_promoted {
            vec![Level::promoted(priority), Level::at(priority)]
        } else {
            vec![Level::at(priority)]
        })
    }
}
