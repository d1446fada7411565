//! The system that the scheduling machine sees: the file's tasks and servers, and the threads of its drivers as tasks.

use crate::error::Reason;
use horolog_model::{
    Arrival, CpuId, Device, DeviceService, ExecutionTimes, ModelError, OverrunPolicy, Policy, Preemption,
    Priority, PriorityRule, System, Task, TaskId,
};
use horolog_sched::{
    EntityId, LentPriority, Level, Machine, MachineBuilder, NodePolicy, NodeSpec, Place, ProcessorIndex,
};
use horolog_time::Span;

/// Who executes a task of the companion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A task of the file.
    Task,
    /// The thread of a device (its place in the file), or its part of a server's queue.
    Handler(usize),
    /// The background thread of the softirqs of a processor.
    Background,
}

/// A thread whose priority somebody lends it.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    /// The device, by its place in the file.
    pub(crate) device: usize,
    /// Its node in the machine.
    pub(crate) node: EntityId,
    /// Its places from the top: the priority of each, `None` below all tasks.
    places: Vec<Option<Priority>>,
}

impl Lent {
    /// Its place at this priority, or at the one nearest below.
    pub(crate) fn place(&self, priority: Option<Priority>) -> Place {
        let reaches = |place: &Option<Priority>| match (priority, place) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(place)) => !place.is_more_important_than(own),
        };
        match self.places.iter().position(reaches).unwrap_or(self.places.len() - 1) {
            0 => Place::High,
            index => Place::Low(index as u16 - 1),
        }
    }
}

/// The companion of a system with drivers.
#[derive(Clone, Debug)]
pub(crate) struct Companion {
    pub(crate) system: System,
    /// What each of its tasks is.
    pub(crate) roles: Vec<Role>,
    /// The threads under the rule `waiting`.
    pub(crate) lent: Vec<Lent>,
}

impl Companion {
    pub(crate) fn new(system: &System) -> Result<Companion, Reason> {
        let mut draft = system.to_draft();
        (draft.interrupts, draft.devices, draft.requests) = Default::default();
        let mut roles = vec![Role::Task; draft.tasks.len()];
        let mut lent = Vec::new();
        for (index, device) in system.devices().iter().enumerate() {
            let name = fresh_name(&device.name, &draft.tasks);
            let mut task = thread(system, name, device.cpu, device.cost);
            task.deadline = device.deadline;
            match &device.service {
                DeviceService::Thread { rule: PriorityRule::Fixed, priority, .. } => {
                    task.priority = priority.or(task.priority);
                }
                DeviceService::Thread { rule: PriorityRule::Open, priority, users } => {
                    let of_users = priorities(system, users).chain(*priority);
                    task.priority = of_users.map(Priority::number).max().map(Priority::new);
                }
                DeviceService::Thread { .. } => {
                    let places = places_of(system, device);
                    lent.push(Lent { device: index, node: EntityId(0), places });
                }
                DeviceService::Server { server } => {
                    let found = draft.servers.iter_mut().find(|other| other.name == *server);
                    found.into_iter().for_each(|server| server.tasks.push(task.name.clone()));
                    task.priority = None;
                }
                _ => continue,
            }
            draft.tasks.push(task);
            roles.push(Role::Handler(index));
        }
        for cpu in processors_with_drivers(system) {
            let name = fresh_name(&format!("ksoftirqd/{}", cpu.0), &draft.tasks);
            let mut task = thread(system, name, cpu, Span::from_ns(1));
            task.preemption = Preemption::NonPreemptive;
            draft.tasks.push(task);
            roles.push(Role::Background);
        }
        let system = System::new(draft).map_err(|mut errors| Reason::Model(errors.swap_remove(0)))?;
        Ok(Companion { system, roles, lent })
    }

    /// The machine of the companion; threads with lent priorities get nodes of their own.
    pub(crate) fn machine(&self) -> Result<Machine, ModelError> {
        self.build().map(|(machine, _)| machine)
    }

    /// The threads with lent priorities, with their nodes in the machine.
    pub(crate) fn lent(&self) -> Result<Vec<Lent>, ModelError> {
        self.build().map(|(_, lent)| lent)
    }

    fn build(&self) -> Result<(Machine, Vec<Lent>), ModelError> {
        let mut builder = MachineBuilder::new(&self.system);
        let mut lent = self.lent.clone();
        for thread in &mut lent {
            let Some(task) = self.task_of(thread.device) else { continue };
            let cpu = self.system.task(task).cpu;
            let Some(processor) = self.system.platform().cpus.index_of(cpu) else { continue };
            let level = |place: &Option<Priority>| place.map_or(Level::BACKGROUND, Level::at);
            let spec = NodeSpec {
                policy: NodePolicy::Fifo,
                lower_places: thread.places.iter().map(level).collect(),
                supply: Some(Box::new(LentPriority::new(thread.place(None)))),
                ..NodeSpec::default()
            };
            let root = builder.root_of(ProcessorIndex(processor as u16));
            thread.node = builder.node(root, spec);
            builder.place(task, thread.node);
        }
        Ok((builder.build()?, lent))
    }

    /// The task of the companion that works off a device's events.
    pub(crate) fn task_of(&self, device: usize) -> Option<TaskId> {
        let place = self.roles.iter().position(|role| *role == Role::Handler(device));
        place.map(|place| TaskId(place as u32))
    }
}

/// The names that records of a simulation number: the file's tasks, then the threads of its drivers.
///
/// # Errors
/// As [`crate::simulate`], where the system cannot be simulated.
pub fn traced_names(system: &System) -> Result<Vec<String>, crate::SimError> {
    let names = |system: &System| system.tasks().iter().map(|task| task.name.clone()).collect();
    Ok(if crate::concerns(system) { names(&Companion::new(system)?.system) } else { names(system) })
}

/// The CPUs that have interrupts or devices, each once.
fn processors_with_drivers(system: &System) -> Vec<CpuId> {
    let interrupts = system.interrupts().iter().map(|interrupt| interrupt.cpu);
    let mut cpus: Vec<CpuId> = interrupts.chain(system.devices().iter().map(|device| device.cpu)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// A thread that only its device wakes; below all tasks unless it gets a priority.
fn thread(system: &System, name: String, cpu: CpuId, wcet: Span) -> Task {
    let background = (system.policy() == Policy::FixedPriority).then(|| Priority::new(i64::MIN));
    Task {
        name,
        arrival: Arrival::Aperiodic { arrivals: vec![Span::ZERO] },
        deadline: None,
        wcet,
        bcet: wcet,
        offset: None,
        jitter: Span::ZERO,
        priority: background,
        cpu,
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        body: None,
    }
}

/// A name that no task has.
fn fresh_name(name: &str, tasks: &[Task]) -> String {
    let mut name = name.to_owned();
    while tasks.iter().any(|task| task.name == name) {
        name.push('\'');
    }
    name
}

fn priorities<'s>(system: &'s System, users: &'s [String]) -> impl Iterator<Item = Priority> + 's {
    let of_users = system.tasks().iter().filter(|task| users.contains(&task.name));
    of_users.filter_map(|task| task.priority)
}

/// Where a thread under the rule `waiting` can stand: from the most important user down to its own priority.
fn places_of(system: &System, device: &Device) -> Vec<Option<Priority>> {
    let DeviceService::Thread { priority, users, .. } = &device.service else { return vec![None] };
    let mut numbers: Vec<i64> = priorities(system, users).chain(*priority).map(Priority::number).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.dedup();
    let own = priority.map(Priority::number);
    numbers.retain(|number| own.is_none_or(|own| *number >= own));
    let places = numbers.into_iter().map(|number| Some(Priority::new(number)));
    places.chain(priority.is_none().then_some(None)).collect()
}
