//! The companion of a system with drivers: its tasks and servers, and the threads of its drivers as tasks.
//!
//! A scheduling machine knows no interrupts and no devices. What drivers do in threads is scheduled like tasks, so every room
//! that drives a machine, or reads the records of one, has to number these threads in the same way: first the tasks of the
//! file, then one for each device that a thread or a server serves, in the order of the file, then the background thread of
//! the softirqs of each processor.

use crate::{
    Arrival, Body, CpuId, Device, DeviceService, ExecutionTimes, ModelError, OverrunPolicy, Policy,
    Preemption, Priority, PriorityRule, Server, System, Task, TaskId,
};
use horolog_time::Span;

/// Who executes a task of the companion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A task of the file.
    Task,
    /// The thread of a device (its place in the file), or its part of a server's queue.
    Handler(usize),
    /// The background thread of the softirqs of a processor.
    Background,
}

/// A system without drivers, in which the threads of another one's drivers are tasks.
#[derive(Clone, Debug)]
pub struct Companion {
    /// The file's tasks, then the threads.
    pub system: System,
    /// What each of its tasks is.
    pub roles: Vec<Role>,
}

impl Companion {
    /// Of every thread of every driver.
    ///
    /// # Errors
    /// Where the threads make no valid system: never for a checked one whose priorities are resolved.
    ///
    /// ```
    /// let text = r#"
    /// [system]
    /// name = "a network"
    /// [[task]]
    /// name = "control"
    /// period = "10 ms"
    /// wcet = "2 ms"
    /// priority = 90
    /// [[device]]
    /// name = "network"
    /// service = "thread"
    /// priority = 50
    /// separation = "1 ms"
    /// cost = "10 us"
    /// "#;
    /// let (system, _) = horolog_model::file::read(text, "network.toml", &[]).unwrap();
    /// let companion = horolog_model::Companion::new(&system).unwrap();
    /// let names: Vec<&str> = companion.system.tasks().iter().map(|task| task.name.as_str()).collect();
    /// assert_eq!(names, ["control", "network", "ksoftirqd/0"]);
    /// ```
    pub fn new(system: &System) -> Result<Companion, ModelError> {
        Companion::with(system, |_| true, true)
    }

    /// Of the devices alone that tasks wait for: what a run emulates.
    ///
    /// # Errors
    /// As [`Companion::new`].
    pub fn emulated(system: &System) -> Result<Companion, ModelError> {
        Companion::with(system, |device| is_emulated(system, device), false)
    }

    /// Of no thread: the tasks of the file alone, as in the records of a program that horolog did not run.
    ///
    /// # Errors
    /// As [`Companion::new`].
    pub fn without_threads(system: &System) -> Result<Companion, ModelError> {
        Companion::with(system, |_| false, false)
    }

    /// Of the devices that are `wanted`, and of the background threads of the softirqs or not.
    ///
    /// # Errors
    /// As [`Companion::new`].
    pub fn with(
        system: &System,
        wanted: impl Fn(&Device) -> bool,
        has_background: bool,
    ) -> Result<Companion, ModelError> {
        let mut draft = system.to_draft();
        (draft.interrupts, draft.devices, draft.requests) = Default::default();
        let mut roles = vec![Role::Task; draft.tasks.len()];
        for (index, device) in system.devices().iter().enumerate().filter(|(_, device)| wanted(device)) {
            let name = fresh_name(&device.name, &draft.tasks);
            let mut task = thread(system, name, device.cpu, longest_event(device));
            task.deadline = device.deadline;
            task.bcet = device.least_cost;
            match &device.service {
                DeviceService::Thread { rule: PriorityRule::Fixed, priority, .. } => {
                    task.priority = priority.or(task.priority);
                }
                DeviceService::Thread { rule: PriorityRule::Open, priority, users } => {
                    let of_users = priorities(system, users).chain(*priority);
                    task.priority = of_users.map(Priority::number).max().map(Priority::new);
                }
                DeviceService::Thread { .. } => {}
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
        for cpu in processors_with_drivers(system).into_iter().filter(|_| has_background) {
            let name = fresh_name(&format!("ksoftirqd/{}", cpu.0), &draft.tasks);
            let softirqs = system.devices().iter().filter(|device| {
                device.cpu == cpu && matches!(device.service, DeviceService::Softirq { .. })
            });
            let longest = softirqs.map(longest_event).max().unwrap_or(Span::from_ns(1));
            let mut task = thread(system, name, cpu, longest);
            task.preemption = Preemption::NonPreemptive;
            draft.tasks.push(task);
            roles.push(Role::Background);
        }
        // A mode names the tasks of the file that it activates; what drivers do in threads goes on in every mode.
        let threads: Vec<String> =
            draft.tasks[system.tasks().len()..].iter().map(|task| task.name.clone()).collect();
        for active in draft.modes.iter_mut().filter_map(|mode| mode.active.as_mut()) {
            active.extend(threads.iter().cloned());
        }
        // A server of devices alone, whose threads are not wanted, has nobody left.
        retain_used(&mut draft.servers);
        let system = System::new(draft).map_err(|mut errors| errors.swap_remove(0))?;
        Ok(Companion { system, roles })
    }

    /// The task of the companion that works off a device's events.
    #[must_use]
    pub fn task_of(&self, device: usize) -> Option<TaskId> {
        let place = self.roles.iter().position(|role| *role == Role::Handler(device));
        place.map(|place| TaskId(place as u32))
    }
}

/// Drops servers and schedulers with nothing below them. One may have had nothing but others that are dropped.
fn retain_used(servers: &mut Vec<Server>) {
    loop {
        let before = servers.len();
        let parents: Vec<String> = servers.iter().filter_map(|server| server.parent.clone()).collect();
        servers.retain(|server| !server.tasks.is_empty() || parents.contains(&server.name));
        if servers.len() == before {
            return;
        }
    }
}

/// Whether a run emulates the device: some task asks it whose body is none of the user's, which asks for itself.
#[must_use]
pub fn is_emulated(system: &System, device: &Device) -> bool {
    let asks = |task: &Task| {
        let brings_code = task.body.as_ref().is_some_and(Body::is_users_code);
        !brings_code
            && system.requests().iter().any(|other| other.task == task.name && other.device == device.name)
    };
    system.tasks().iter().any(asks)
}

/// The priorities of these tasks, where they have one.
pub fn priorities<'s>(system: &'s System, users: &'s [String]) -> impl Iterator<Item = Priority> + 's {
    let of_users = system.tasks().iter().filter(|task| users.contains(&task.name));
    of_users.filter_map(|task| task.priority)
}

/// What one event takes at the most: its test for admission, and its work.
fn longest_event(device: &Device) -> Span {
    let test = device.admission.map_or(Span::ZERO, |admission| admission.cost);
    device.cost.checked_add(test).unwrap_or(Span::MAX)
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
        criticality: None,
        promotion: None,
        jitter: Span::ZERO,
        priority: background,
        cpu,
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        sections: Vec::new(),
        is_soft: false,
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
