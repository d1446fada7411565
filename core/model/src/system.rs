//! A checked system.

use crate::check::{self, Paths};
use crate::{
    Cluster, CpuId, Device, Draft, Interference, Interrupt, Link, Mode, Order, Platform, PlatformCosts,
    Priority, PriorityAssignment, Request, Resource, Server, ServerId, SpinLevel, SpinPriority, Task,
};
use horolog_time::Span;

/// The scheduling policy of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Policy {
    /// Fixed priorities.
    #[default]
    FixedPriority,
    /// Earliest deadline first.
    Edf,
}

impl Policy {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["fixed-priority", "edf"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FixedPriority => "fixed-priority",
            Self::Edf => "edf",
        }
    }

    /// The policy that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Policy> {
        [Self::FixedPriority, Self::Edf].into_iter().find(|p| p.word() == word)
    }
}

/// The index of a task within its system, the same in every room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The place in [`System::tasks`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a draft is no system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {reason}; {remedy}")]
pub struct ModelError {
    /// Where, as a dotted path of keys: `task.control.deadline`.
    pub at: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// A system that passed every check.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    parts: Draft,
    /// The server or scheduler above each task; empty where there is none.
    above: Vec<Option<ServerId>>,
    /// What is above each server or scheduler.
    parents: Vec<Parent>,
    /// The cluster whose root is directly above each task; empty where there is none.
    clusters: Vec<Option<usize>>,
}

/// What stands directly above a server, scheduler or task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parent {
    /// The root of its processor.
    #[default]
    Root,
    /// A scheduler.
    Scheduler(ServerId),
    /// A root over several processors: its place in [`System::clusters`].
    Cluster(usize),
}

impl System {
    /// Checks a draft.
    ///
    /// # Errors
    /// Every rule that the draft breaks, in the order of the draft; never an empty list.
    pub fn new(parts: Draft) -> Result<System, Vec<ModelError>> {
        if check::check(&parts, &Paths::none(&parts), true).is_empty() {
            return Ok(System::of_checked(parts));
        }
        let findings = check::check(&parts, &Paths::of(&parts), true);
        Err(findings.into_iter().map(|finding| finding.error).collect())
    }

    /// A draft that [`check::check`] found nothing wrong with.
    pub(crate) fn of_checked(parts: Draft) -> System {
        let above = if parts.servers.is_empty() { Vec::new() } else { above(&parts) };
        let clusters = if parts.clusters.is_empty() { Vec::new() } else { clusters_of(&parts) };
        let parents = parents(&parts);
        System { parts, above, parents, clusters }
    }

    /// The system's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The scheduling policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.parts.policy
    }

    /// Where priorities come from.
    #[must_use]
    pub fn priorities(&self) -> PriorityAssignment {
        self.parts.priorities
    }

    /// What the system does and the model does not say; with any of it nothing is proved.
    #[must_use]
    pub fn unmodelled(&self) -> &[String] {
        &self.parts.unmodelled
    }

    /// Processors and costs.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.parts.platform
    }

    /// The tasks; a [`TaskId`] is an index into them.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.parts.tasks
    }

    /// The task with this id.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.parts.tasks[id.index()]
    }

    /// The servers of soft tasks; a [`ServerId`] is an index into them.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.parts.servers
    }

    /// The server with this id.
    #[must_use]
    pub fn server(&self, id: ServerId) -> &Server {
        &self.parts.servers[id.index()]
    }

    /// The ids of all servers, in the order of the file.
    pub fn server_ids(&self) -> impl ExactSizeIterator<Item = ServerId> + use<> {
        (0..self.parts.servers.len() as u32).map(ServerId)
    }

    /// The server with this name.
    #[must_use]
    pub fn find_server(&self, name: &str) -> Option<ServerId> {
        self.parts.servers.iter().position(|server| server.name == name).map(|index| ServerId(index as u32))
    }

    /// The servers of one processor, in the order of the file.
    pub fn servers_on(&self, cpu: CpuId) -> impl Iterator<Item = (ServerId, &Server)> {
        self.server_ids().map(|id| (id, self.server(id))).filter(move |(_, server)| server.cpu == cpu)
    }

    /// Who serves a task first in, first out; `None`: nobody, it is a hard task (or, under EDF and without a deadline, a
    /// background one).
    #[must_use]
    pub fn server_of(&self, task: TaskId) -> Option<ServerId> {
        self.scheduler_of(task).filter(|&id| self.server(id).order == Order::Fifo)
    }

    /// The server or scheduler directly above a task; `None`: the root of its processor or cluster.
    #[must_use]
    pub fn scheduler_of(&self, task: TaskId) -> Option<ServerId> {
        self.above.get(task.index()).copied().flatten()
    }

    /// The servers and schedulers above a task, from the one directly above it to the root.
    pub fn schedulers_above(&self, task: TaskId) -> impl Iterator<Item = ServerId> {
        std::iter::successors(self.scheduler_of(task), |&id| match self.parent_of(id) {
            Parent::Scheduler(above) => Some(above),
            Parent::Root | Parent::Cluster(_) => None,
        })
    }

    /// Whether a processor has a tree: more than servers below its root.
    #[must_use]
    pub fn has_tree(&self, cpu: CpuId) -> bool {
        self.servers_on(cpu).any(|(_, server)| server.is_scheduler())
    }

    /// How the node directly above a task orders its children.
    #[must_use]
    pub fn order_above(&self, task: TaskId) -> Order {
        match (self.scheduler_of(task), self.cluster_of(task)) {
            (Some(id), _) => self.server(id).order,
            (None, Some(cluster)) => self.parts.clusters[cluster].order,
            (None, None) => Order::of_policy(self.policy()),
        }
    }

    /// What is directly above a server or scheduler.
    #[must_use]
    pub fn parent_of(&self, server: ServerId) -> Parent {
        self.parents[server.index()]
    }

    /// The cluster whose root is directly above a task, by its place in [`System::clusters`].
    #[must_use]
    pub fn cluster_of(&self, task: TaskId) -> Option<usize> {
        self.clusters.get(task.index()).copied().flatten()
    }

    /// The tasks directly below a server or scheduler, in the order of the tasks.
    pub fn tasks_below(&self, server: ServerId) -> impl Iterator<Item = (TaskId, &Task)> {
        let is_below = move |id: &TaskId| self.scheduler_of(*id) == Some(server);
        self.task_ids().filter(is_below).map(|id| (id, self.task(id)))
    }

    /// Roots over several processors.
    #[must_use]
    pub fn clusters(&self) -> &[Cluster] {
        &self.parts.clusters
    }

    /// Modes beside the base mode.
    #[must_use]
    pub fn modes(&self) -> &[Mode] {
        &self.parts.modes
    }

    /// What jobs share by mutual exclusion.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.parts.resources
    }

    /// Where the sections of a task begin and end, in the order in which a job passes them.
    #[must_use]
    pub fn borders(&self, task: TaskId) -> Vec<crate::Border> {
        crate::resource::borders(&self.task(task).sections, |name| self.find_resource(name))
    }

    /// The place of the resource with this name.
    #[must_use]
    pub fn find_resource(&self, name: &str) -> Option<usize> {
        self.parts.resources.iter().position(|resource| resource.name == name)
    }

    /// At which priorities jobs spin for resources, of processors where the file says so.
    #[must_use]
    pub fn spin_priorities(&self) -> &[SpinPriority] {
        &self.parts.spin_priorities
    }

    /// At which priority jobs of a processor spin for resources of [`Protocol::Fslm`].
    #[must_use]
    pub fn spin_level(&self, cpu: CpuId) -> SpinLevel {
        let of_cpu = self.parts.spin_priorities.iter().find(|spin| spin.cpu == cpu);
        of_cpu.map_or(SpinLevel::default(), |spin| spin.level)
    }

    /// The most important priority of a processor's tasks that use a spin lock; `None`: none does, or none of them has a priority.
    #[must_use]
    pub fn spin_ceiling(&self, cpu: CpuId) -> Option<Priority> {
        crate::resource::spin_ceiling(&self.parts.tasks, &self.parts.resources, cpu)
    }

    /// The priority at which jobs of a processor spin for resources of [`Protocol::Fslm`]; `None`: above every task.
    ///
    /// [`Protocol::Fslm`]: crate::Protocol::Fslm
    #[must_use]
    pub fn spin_priority(&self, cpu: CpuId) -> Option<Priority> {
        match self.spin_level(cpu) {
            SpinLevel::Highest => None,
            SpinLevel::At(priority) => Some(priority),
            SpinLevel::Ceiling => self.spin_ceiling(cpu),
        }
    }

    /// Whether the jobs of a task only read what a resource guards, by its place in [`System::resources`], so that others that read may hold
    /// it, too.
    #[must_use]
    pub fn only_reads(&self, task: TaskId, resource: usize) -> bool {
        let Some(resource) = self.parts.resources.get(resource) else { return false };
        let own = &self.task(task).sections;
        own.iter().any(|section| section.resource == resource.name && section.access.is_read())
    }

    /// Whether jobs of several processors are serialised by spin locks.
    #[must_use]
    pub fn has_spin_locks(&self) -> bool {
        self.parts.resources.iter().any(|resource| resource.protocol.spins())
    }

    /// The first resource for which jobs of several processors are suspended while they wait.
    #[must_use]
    pub fn first_boosting(&self) -> Option<&Resource> {
        self.parts.resources.iter().find(|resource| resource.protocol.boosts())
    }

    /// Values that tasks hand to others.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.parts.links
    }

    /// The writer of a link, by the link's place in [`System::links`].
    #[must_use]
    pub fn writer_of(&self, link: usize) -> TaskId {
        // A checked link names a task.
        self.find_task(&self.parts.links[link].from).unwrap_or(TaskId(0))
    }

    /// The readers of a link, by the link's place, in the order of the tasks.
    pub fn readers_of(&self, link: usize) -> impl Iterator<Item = TaskId> {
        let to = &self.parts.links[link].to;
        self.task_ids().filter(|id| to.contains(&self.task(*id).name))
    }

    /// Where the file says more than servers below the roots of single processors in one mode: a tree of schedulers, a
    /// cluster, a mode, a device that works on several requests at once, something that the model leaves out. A link is none: it changes nothing about who runs when.
    /// What does not know of these has to refuse, and to name this place. Sections that hold resources: [`System::first_held`].
    #[must_use]
    pub fn first_beyond_servers(&self) -> Option<String> {
        let cluster = || self.parts.clusters.first().map(|it| format!("scheduler.{}", it.name));
        self.first_tree().or_else(cluster).or_else(|| self.first_beyond_clusters())
    }

    fn first_tree(&self) -> Option<String> {
        let tree = self.parts.servers.iter().find(|server| server.is_scheduler())?;
        Some(format!("scheduler.{}", tree.name))
    }

    /// As [`System::first_beyond_servers`], leaving clusters out.
    #[must_use]
    pub fn first_beyond_clusters(&self) -> Option<String> {
        self.first_tree().or_else(|| self.first_beyond_trees())
    }

    /// As [`System::first_beyond_servers`], leaving clusters and trees out.
    #[must_use]
    pub fn first_beyond_trees(&self) -> Option<String> {
        let unmodelled = || (!self.parts.unmodelled.is_empty()).then(|| "system.unmodelled".to_owned());
        let mode = || self.parts.modes.first().map(|it| format!("mode.{}", it.name));
        let has_slots = |device: &&Device| device.slots > 1;
        let slots =
            || self.parts.devices.iter().find(has_slots).map(|it| format!("device.{}.slots", it.name));
        mode().or_else(slots).or_else(unmodelled)
    }

    /// The first resource that a task holds in a section, as `resource.NAME`; one that no task locks changes nothing.
    #[must_use]
    pub fn first_held(&self) -> Option<String> {
        let section = self.tasks().iter().find_map(|task| task.sections.first())?;
        Some(format!("resource.{}", section.resource))
    }

    /// Whether a server serves the task: it is soft, and no verdict is about it.
    #[must_use]
    pub fn is_served(&self, task: TaskId) -> bool {
        self.server_of(task).is_some()
    }

    /// Whether a task's deadline counts in no verdict: a server serves it, or the file says so.
    #[must_use]
    pub fn is_soft(&self, task: TaskId) -> bool {
        self.is_served(task) || self.task(task).is_soft
    }

    /// The tasks that a server serves, in the order of the tasks.
    pub fn served_tasks(&self, server: ServerId) -> impl Iterator<Item = (TaskId, &Task)> {
        let is_served = move |id: &TaskId| self.server_of(*id) == Some(server);
        self.task_ids().filter(is_served).map(|id| (id, self.task(id)))
    }

    /// The tasks of one processor that nobody serves, in the order of the file.
    pub fn hard_tasks_on(&self, cpu: CpuId) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks_on(cpu).filter(|(id, _)| !self.is_served(*id))
    }

    /// Interrupts, whose handlers execute above all tasks.
    #[must_use]
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.parts.interrupts
    }

    /// Devices, whose events are served.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.parts.devices
    }

    /// What tasks ask of devices.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.parts.requests
    }

    /// The place of the device with this name in [`System::devices`].
    #[must_use]
    pub fn find_device(&self, name: &str) -> Option<usize> {
        self.parts.devices.iter().position(|device| device.name == name)
    }

    /// What stands in the file for interrupts and devices, by name; `None` where there is neither.
    #[must_use]
    pub fn first_driver(&self) -> Option<String> {
        let interrupt =
            self.parts.interrupts.first().map(|interrupt| format!("interrupt.{}", interrupt.name));
        interrupt.or_else(|| self.parts.devices.first().map(|device| format!("device.{}", device.name)))
    }

    /// Loads above all tasks.
    #[must_use]
    pub fn interferences(&self) -> &[Interference] {
        &self.parts.interferences
    }

    /// The tasks of one processor, in the order of the file.
    pub fn tasks_on(&self, cpu: CpuId) -> impl Iterator<Item = (TaskId, &Task)> {
        self.parts
            .tasks
            .iter()
            .enumerate()
            .filter(move |(_, task)| task.cpu == cpu)
            .map(|(index, task)| (TaskId(index as u32), task))
    }

    /// The ids of all tasks, in the order of the file.
    pub fn task_ids(&self) -> impl ExactSizeIterator<Item = TaskId> + use<> {
        (0..self.parts.tasks.len() as u32).map(TaskId)
    }

    /// The task with this name.
    #[must_use]
    pub fn find_task(&self, name: &str) -> Option<TaskId> {
        self.parts.tasks.iter().position(|task| task.name == name).map(|index| TaskId(index as u32))
    }

    /// Whether every priority is known: always under EDF, and under fixed priorities unless an assignment has
    /// yet to give them.
    #[must_use]
    pub fn is_resolved(&self) -> bool {
        self.policy() == Policy::Edf || self.priorities() == PriorityAssignment::Explicit
    }

    /// The same system with these priorities, one a task in the order of [`System::tasks`], as if its file gave
    /// them: what a priority assignment hands on. Those at the places of tasks that no fixed priority orders are not looked
    /// at.
    ///
    /// # Errors
    /// Under EDF, and where there are not as many priorities as tasks.
    pub fn with_explicit_priorities(&self, priorities: &[Priority]) -> Result<System, Vec<ModelError>> {
        if priorities.len() != self.parts.tasks.len() {
            return Err(vec![ModelError {
                at: "system.priorities".to_owned(),
                reason: format!("{} priorities for {} tasks", priorities.len(), self.parts.tasks.len()),
                remedy: "give one a task".to_owned(),
            }]);
        }
        let mut parts = self.to_draft();
        parts.priorities = PriorityAssignment::Explicit;
        for (id, &priority) in self.task_ids().zip(priorities) {
            let is_ordered = self.policy() == Policy::Edf && self.order_above(id) != Order::Fifo
                || self.order_above(id) == Order::FixedPriority;
            parts.tasks[id.index()].priority = is_ordered.then_some(priority);
        }
        System::new(parts)
    }

    /// The same system with the costs that are given, such as measured ones; `None` keeps what the file says.
    #[must_use]
    pub fn with_platform_costs(&self, costs: PlatformCosts) -> System {
        let mut parts = self.to_draft();
        let platform = &mut parts.platform;
        platform.context_switch = costs.context_switch.or(platform.context_switch);
        platform.timer_interrupt = costs.timer_interrupt.or(platform.timer_interrupt);
        platform.release_latency = costs.release_latency.or(platform.release_latency);
        // No rule restricts a cost.
        System::of_checked(parts)
    }

    /// The least common multiple of all periods and least separations: the pattern of periodic releases repeats
    /// after it. `None` where it is above 2^64 - 1 ns, or where no task has a period.
    #[must_use]
    pub fn hyperperiod(&self) -> Option<Span> {
        let mut periods = self.parts.tasks.iter().filter_map(Task::separation).map(Span::as_ns);
        let first = periods.next()?;
        periods.try_fold(first, lcm).map(Span::from_ns)
    }

    /// A digest of everything in the system, for telling whether a file was made for it: 16 hexadecimal digits. Systems that
    /// differ in anything differ in it but for chance (2^-64); the same system has another one in a release whose model says
    /// more. FNV-1a.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = format!("{:?}", self.parts);
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// The unchecked parts, to change and check again.
    #[must_use]
    pub fn to_draft(&self) -> Draft {
        self.parts.clone()
    }
}

/// What is above each server or scheduler of a checked draft.
fn parents(parts: &Draft) -> Vec<Parent> {
    let mut by_name = std::collections::BTreeMap::new();
    if parts.servers.iter().any(|server| server.parent.is_some()) {
        let servers = parts.servers.iter().enumerate();
        by_name
            .extend(servers.map(|(index, it)| (it.name.as_str(), Parent::Scheduler(ServerId(index as u32)))));
        let clusters = parts.clusters.iter().enumerate();
        by_name.extend(clusters.map(|(index, it)| (it.name.as_str(), Parent::Cluster(index))));
    }
    let of = |server: &Server| server.parent.as_deref().and_then(|name| by_name.get(name).copied());
    parts.servers.iter().map(|server| of(server).unwrap_or_default()).collect()
}

/// The cluster above each task of a checked draft.
fn clusters_of(parts: &Draft) -> Vec<Option<usize>> {
    let mut by_name = std::collections::BTreeMap::new();
    for (index, cluster) in parts.clusters.iter().enumerate() {
        by_name.extend(cluster.tasks.iter().map(|name| (name.as_str(), index)));
    }
    parts.tasks.iter().map(|task| by_name.get(task.name.as_str()).copied()).collect()
}

/// The server or scheduler above each task of a checked draft.
fn above(parts: &Draft) -> Vec<Option<ServerId>> {
    let mut by_name = std::collections::BTreeMap::new();
    for (index, server) in parts.servers.iter().enumerate() {
        by_name.extend(server.tasks.iter().map(|name| (name.as_str(), ServerId(index as u32))));
    }
    parts.tasks.iter().map(|task| by_name.get(task.name.as_str()).copied()).collect()
}

/// The least common multiple of two numbers above zero; `None` on overflow.
fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut greater, mut rest) = (a, b);
    while rest > 0 {
        (greater, rest) = (rest, greater % rest);
    }
    (a / greater).checked_mul(b)
}
