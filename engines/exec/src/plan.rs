//! What a run of a system needs from this machine, before anything is started.

use crate::bands::{self, OutOfBands};
use crate::drivers;
use crate::options::{Backend, NonPreemptiveVariant};
use crate::remote_sections::RemoteSections;
use crate::reservation;
use crate::spin_locks::SpinLocks;
use crate::{ExecError, RunOptions};
use horolog_model::{
    Body, CpuId, Cpus, Order, OverrunPolicy, Policy, Preemption, Priority, Server, System, Task, TaskId,
    is_emulated,
};
use horolog_sys::affinity::{CpuSet, allowed_cpus};
use horolog_sys::deadline::Reservation;
use horolog_sys::fixed_priority::Class;

/// How one processor's tasks are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// The kernel decides; each task's own thread sleeps to its releases.
    Shadow,
    /// The machine decides; the kernel carries it out.
    Authoritative,
}

/// One processor of the run.
#[derive(Clone, Debug)]
pub(crate) struct CpuPlan {
    pub(crate) cpu: u32,
    pub(crate) mode: Mode,
    /// The tasks that horolog's own threads run.
    pub(crate) tasks: Vec<TaskId>,
}

/// The whole run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) cpus: Vec<CpuPlan>,
    /// The class of each task's thread or process when its first job starts.
    pub(crate) classes: Vec<Class>,
    /// The `SCHED_DEADLINE` reservation of each task that has one.
    pub(crate) reservations: Vec<Option<Reservation>>,
    /// Every processor that this process may use: where threads with reservations run.
    pub(crate) all: CpuSet,
    /// Where everything that is no task runs.
    pub(crate) housekeeping: CpuSet,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Plans the run of `file`; `system` holds the threads of the devices that are emulated, too.
    pub(crate) fn new(file: &System, system: &System, options: &RunOptions) -> Result<Plan, ExecError> {
        check_scope(system)?;
        check_modes(file)?;
        check_served(system)?;
        check_overruns(system)?;
        let allowed = allowed_cpus()?;
        let listed = listed_cpus(system, &allowed)?;
        let mut plan = Plan {
            cpus: Vec::new(),
            classes: vec![Class::Normal; system.tasks().len()],
            reservations: vec![None; system.tasks().len()],
            all: allowed.clone(),
            housekeeping: CpuSet::new(
                allowed.as_slice().iter().copied().filter(|&cpu| !listed.contains(&CpuId(cpu))),
            ),
            notes: Vec::new(),
        };
        if plan.housekeeping.as_slice().is_empty() {
            plan.notes
                .push("no processor is left for housekeeping: the collector shares one with tasks".into());
            plan.housekeeping = allowed;
        }
        for &cpu in listed {
            let (commands, tasks): (Vec<TaskId>, Vec<TaskId>) =
                system.tasks_on(cpu).map(|(id, _)| id).partition(|&id| is_command(system.task(id)));
            check_priorities(system, cpu)?;
            let (kernels, tasks): (Vec<TaskId>, Vec<TaskId>) =
                tasks.into_iter().partition(|&id| reservation::server_of(system, id).is_some());
            plan.reserve_server(system, cpu, kernels, options)?;
            // The kernel wakes nobody when an emulated device has answered.
            let emulates = file.devices().iter().any(|device| device.cpu == cpu && is_emulated(file, device));
            let of = |policies_act| mode_of(system, cpu, &tasks, options, policies_act);
            let mut mode = if emulates { Mode::Authoritative } else { of(true) };
            let by_policy = mode == Mode::Authoritative && !emulates && of(false) == Mode::Shadow;
            let is_agents = emulates || shares_resources(system, &tasks);
            if !is_agents && plan.reserve(system, cpu, &tasks, options) {
                mode = Mode::Shadow;
            } else {
                match mode {
                    Mode::Shadow => plan.shadow_classes(system, cpu, options)?,
                    Mode::Authoritative => {
                        plan.authoritative_classes(system, cpu, &tasks, &commands, options)?
                    }
                }
            }
            if mode == Mode::Authoritative && by_policy {
                plan.notes.push(by_policy_alone(system, cpu, &tasks));
            }
            if !tasks.is_empty() {
                plan.cpus.push(CpuPlan { cpu: cpu.0, mode, tasks });
            }
        }
        if options.best_effort && !system.servers().is_empty() {
            plan.notes.push("best effort: budgets are counted and not enforced".into());
        }
        plan.notes.extend(crate::load_warnings(system));
        plan.note_offsets(file);
        plan.notes.extend(drivers::notes(file));
        Ok(plan)
    }

    /// Reserves processor time for the tasks by `SCHED_DEADLINE`, where that is asked for and possible.
    fn reserve(&mut self, system: &System, cpu: CpuId, tasks: &[TaskId], options: &RunOptions) -> bool {
        if options.backend != Backend::Deadline || options.best_effort || tasks.is_empty() {
            return false;
        }
        if let Some((_, server)) = system.servers_on(cpu).next() {
            self.notes.push(format!(
                "cpu {}: SCHED_DEADLINE is not used: it outranks every SCHED_FIFO thread, the agent included, and refuses \
                 pinning, so beside server {} the agent decides",
                cpu.0, server.name
            ));
            return false;
        }
        if !system.modes().is_empty() {
            self.notes.push(format!("cpu {}: SCHED_DEADLINE is not used: the agent changes the mode", cpu.0));
            return false;
        }
        match reservation::of_tasks(system, tasks, &self.all) {
            Ok(reservations) => {
                for (id, reservation) in tasks.iter().zip(reservations) {
                    self.reservations[id.index()] = Some(reservation);
                }
                self.notes.push(format!(
                    "cpu {}: scheduled by SCHED_DEADLINE, which may run its tasks on any of the cpus {:?}, since the \
                     kernel pins such threads only in exclusive cpusets",
                    cpu.0,
                    self.all.as_slice()
                ));
                true
            }
            Err(reason) => {
                self.notes.push(format!("cpu {}: SCHED_DEADLINE is not used: {reason}", cpu.0));
                false
            }
        }
    }

    /// Has the kernel serve these tasks, which stand above the release agent then: it never hears of them.
    fn reserve_server(
        &mut self,
        system: &System,
        cpu: CpuId,
        tasks: Vec<TaskId>,
        options: &RunOptions,
    ) -> Result<(), ExecError> {
        for &id in &tasks {
            if let Some(server) = reservation::server_of(system, id).filter(|_| !options.best_effort) {
                let (reservation, notes) = reservation::of_server(server, &self.all)?;
                self.reservations[id.index()] = Some(reservation);
                self.notes.extend(notes);
            }
        }
        if !tasks.is_empty() {
            self.cpus.push(CpuPlan { cpu: cpu.0, mode: Mode::Shadow, tasks });
        }
        Ok(())
    }

    fn note_offsets(&mut self, system: &System) {
        // Listed arrivals say when the first job comes.
        let is_open = |task: &Task| task.offset.is_none() && task.separation().is_some();
        if system.tasks().iter().any(is_open) {
            self.notes.push("tasks without an offset start at the common start".into());
        }
    }

    /// One band a distinct priority, for threads and processes alike.
    fn shadow_classes(&mut self, system: &System, cpu: CpuId, options: &RunOptions) -> Result<(), ExecError> {
        // What the kernel serves by deadline has no band.
        let has_band = |(id, task): (TaskId, &Task)| task.priority.map(|_| id);
        let ids: Vec<TaskId> = system.tasks_on(cpu).filter_map(has_band).collect();
        self.assign(system, cpu, &ids, bands::TASKS_LEAST, bands::TASKS_MOST, options)
    }

    /// Driven tasks share the machine's bands; processes stand above or below all of them.
    fn authoritative_classes(
        &mut self,
        system: &System,
        cpu: CpuId,
        tasks: &[TaskId],
        commands: &[TaskId],
        options: &RunOptions,
    ) -> Result<(), ExecError> {
        if !options.best_effort {
            for id in tasks {
                self.classes[id.index()] = Class::Fifo(bands::RUN);
            }
        }
        if commands.is_empty() {
            return Ok(());
        }
        if system.policy() == Policy::Edf {
            return Err(ExecError::at(
                format!("task.{}.body.command", system.task(commands[0]).name),
                format!(
                    "a command cannot run beside EDF tasks on cpu {}, since the kernel releases it without a deadline",
                    cpu.0
                ),
                "give it a processor of its own, or make it a library",
            ));
        }
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for &command in commands {
            if place_of_command(system, command, tasks)? { above.push(command) } else { below.push(command) }
        }
        self.assign(system, cpu, &above, bands::RUN + 1, bands::TASKS_MOST, options)?;
        self.assign(system, cpu, &below, bands::TASKS_LEAST, bands::WAIT - 1, options)
    }

    fn assign(
        &mut self,
        system: &System,
        cpu: CpuId,
        ids: &[TaskId],
        least: u8,
        most: u8,
        options: &RunOptions,
    ) -> Result<(), ExecError> {
        if options.best_effort {
            return Ok(());
        }
        let priorities: Vec<Priority> = ids.iter().filter_map(|&id| system.task(id).priority).collect();
        let assigned = bands::assign(&priorities, least, most).map_err(|out| out_of_bands(cpu, out))?;
        for (id, band) in ids.iter().zip(assigned) {
            self.classes[id.index()] = Class::Fifo(band);
        }
        Ok(())
    }
}

fn out_of_bands(cpu: CpuId, out: OutOfBands) -> ExecError {
    ExecError::at(
        "platform.cpus",
        format!(
            "{} distinct priorities on cpu {} do not fit into the {} bands of SCHED_FIFO that are left for them",
            out.wanted, cpu.0, out.available
        ),
        "give some tasks equal priorities, or move some to another processor",
    )
}

fn listed_cpus<'a>(system: &'a System, allowed: &CpuSet) -> Result<&'a [CpuId], ExecError> {
    let Cpus::Listed(listed) = &system.platform().cpus else {
        return Err(ExecError::at(
            "platform.cpus",
            "a count of processors cannot run",
            "list the numbers of real ones, as in `cpus = [1]`",
        ));
    };
    match listed.iter().find(|cpu| !allowed.contains(cpu.0)) {
        Some(missing) => Err(ExecError::at(
            "platform.cpus",
            format!("this process may not run on cpu {}", missing.0),
            format!("it may on {:?}: list some of these", allowed.as_slice()),
        )),
        None => Ok(listed),
    }
}

/// What no run can do yet.
fn check_scope(system: &System) -> Result<(), ExecError> {
    if let Some(cluster) = system.clusters().first() {
        return Err(ExecError::at(
            format!("scheduler.{}.cpus", cluster.name),
            format!(
                "a run keeps each task on one processor and cannot schedule cpus {:?} together yet",
                cluster.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>()
            ),
            "give each of its tasks a `cpu`, or simulate the system",
        ));
    }
    if let Some((name, users, most)) = SpinLocks::too_many(system) {
        return Err(ExecError::at(
            format!("resource.{name}"),
            format!("tasks of {users} cpus share it, and a run has room for {most} in its queue"),
            "split it, or simulate the system",
        ));
    }
    if let Some(resource) = system.resources().iter().find(|resource| resource.protocol.helps()) {
        return Err(ExecError::at(
            format!("resource.{}.protocol", resource.name),
            "under `mrsp` a section goes on on another processor as soon as its own one chooses a more important job, and comes back with the next choice; here \
             each processor's agent decides of its own threads alone, and knows no other one's choice",
            "use `protocol = \"msrp\"` or `\"fslm\"`, or simulate the system",
        ));
    }
    RemoteSections::check(system).map_err(|too| out_of_bands(CpuId(too.cpu), too.out))?;
    let acts = |task: &&Task| matches!(task.overrun, OverrunPolicy::Demote | OverrunPolicy::Stop);
    if let Some(task) = system.tasks().iter().find(|task| acts(task) && !task.sections.is_empty()) {
        return Err(ExecError::at(
            format!("task.{}.overrun", task.name),
            "a job that is demoted or stopped may still lock, and more important jobs would wait for one that every task preempts",
            "use `\"skip\"` or `\"count\"`, remove the sections, or simulate the system",
        ));
    }
    let holds = |task: &&Task| is_command(task) && !task.sections.is_empty();
    if let Some(task) = system.tasks().iter().find(holds) {
        return Err(ExecError::at(
            format!("task.{}.section", task.name),
            "a command is a program of its own and can lock nothing",
            "use a library or `spin`",
        ));
    }
    let is_process = |name: &String| system.tasks().iter().any(|task| task.name == *name && is_command(task));
    for link in system.links() {
        if let Some(name) = std::iter::once(&link.from).chain(&link.to).find(|name| is_process(name)) {
            return Err(ExecError::at(
                format!("link.{}", link.name),
                format!("task {name} is a process, which publishes and latches nothing"),
                "make it a library, or remove it from the link",
            ));
        }
    }
    let in_tree = |server: &&Server| server.kind.is_kernels() && server.is_scheduler();
    if let Some(server) = system.servers().iter().find(in_tree) {
        return Err(ExecError::at(
            format!("scheduler.{}.enforcement", server.name),
            "the kernel's SCHED_DEADLINE serves one thread above every other one, so it cannot keep a scheduler in a tree to its budget",
            "use `enforcement = \"own\"`",
        ));
    }
    Ok(())
}

/// What a mode change would have to reach and cannot.
fn check_modes(system: &System) -> Result<(), ExecError> {
    let Some(mode) = system.modes().first().map(|mode| &mode.name) else { return Ok(()) };
    if let Some(task) = system.tasks().iter().find(|task| is_command(task)) {
        return Err(ExecError::at(
            format!("mode.{mode}"),
            format!("task {} is a command, which releases its own jobs whatever the mode is", task.name),
            "make it a library, or remove the section",
        ));
    }
    if let Some(request) = system.requests().first() {
        return Err(ExecError::at(
            format!("mode.{mode}"),
            format!(
                "a run cannot change the mode beside `[[request]]` {}, since a job that waits for an emulated device can neither \
                 be dropped nor suspended",
                request.name
            ),
            "remove one of the two, or simulate the system",
        ));
    }
    Ok(())
}

fn check_priorities(system: &System, cpu: CpuId) -> Result<(), ExecError> {
    let lacks = |&(id, task): &(TaskId, &Task)| {
        task.priority.is_none()
            && match system.order_above(id) {
                Order::FixedPriority => true,
                Order::Fifo | Order::Edf | Order::Table => false,
            }
    };
    match system.tasks_on(cpu).find(lacks) {
        Some((_, task)) => Err(ExecError::at(
            format!("task.{}", task.name),
            "it has no priority",
            "give it one, or resolve the assignment of the system first",
        )),
        None => Ok(()),
    }
}

/// A job of a thread ends by its own code alone.
fn check_overruns(system: &System) -> Result<(), ExecError> {
    let Some(task) = system.tasks().iter().find(|task| task.overrun == OverrunPolicy::Drop) else {
        return Ok(());
    };
    let remedy = if task.sections.is_empty() {
        "use `\"skip\"`, which asks the job to end, or `\"demote\"`; or simulate the system"
    } else {
        "use `\"skip\"`, which asks the job to end; or simulate the system"
    };
    let reason = "nobody can end a thread's job from outside, so `drop` is for simulations alone";
    Err(ExecError::at(format!("task.{}.overrun", task.name), reason, remedy))
}

/// The kernel wakes a process without asking the agent, so no budget can be kept of it, and no slack policy sees it.
fn check_served(system: &System) -> Result<(), ExecError> {
    for server in system.servers() {
        if let Some((_, task)) = system.tasks_on(server.cpu).find(|(_, task)| is_command(task)) {
            return Err(ExecError::at(
                format!("task.{}.body.command", task.name),
                format!(
                    "a command cannot run on cpu {} beside server {}, since the kernel schedules a process without the release \
                     agent",
                    server.cpu.0, server.name
                ),
                "make it a library, give it a processor of its own, or put the running process under a server with `horolog serve`",
            ));
        }
    }
    Ok(())
}

pub(crate) fn is_command(task: &Task) -> bool {
    matches!(task.body, Some(Body::Command(_)))
}

/// Whether the command stands above all driven tasks (else below all).
fn place_of_command(system: &System, command: TaskId, tasks: &[TaskId]) -> Result<bool, ExecError> {
    let name = &system.task(command).name;
    let Some(own) = system.task(command).priority else { return Ok(false) };
    let others = || tasks.iter().map(|&id| system.task(id));
    let above = |task: &&Task| task.priority.is_some_and(|other| own.is_more_important_than(other));
    let below = |task: &&Task| task.priority.is_some_and(|other| other.is_more_important_than(own));
    if let Some(victim) = others().filter(above).find(|task| task.is_non_preemptive_between_points()) {
        return Err(ExecError::at(
            format!("task.{name}.body.command"),
            format!(
                "its command is more important than {} on the same processor, which is not preemptive: the kernel wakes a \
                 process without asking the release agent, so it would preempt {} between preemption points",
                victim.name, victim.name
            ),
            "lower its priority, move it to another processor, or make it a library",
        ));
    }
    if others().all(|task| below(&task)) {
        return Ok(false);
    }
    if others().all(|task| above(&task)) {
        return Ok(true);
    }
    Err(ExecError::at(
        format!("task.{name}.body.command"),
        "its command lies between tasks that the release agent drives; the kernel can only place it above or below all of them",
        "change its priority, or move it to another processor",
    ))
}

/// Whether tasks lock resources: the agent decides who runs then.
fn shares_resources(system: &System, tasks: &[TaskId]) -> bool {
    tasks.iter().any(|&id| !system.task(id).sections.is_empty())
}

/// Overrun policies that need no timer.
fn acts_late(task: &Task) -> bool {
    matches!(task.overrun, OverrunPolicy::Count | OverrunPolicy::Skip)
}

/// The agent decides for the sake of overrun policies alone.
fn by_policy_alone(system: &System, cpu: CpuId, tasks: &[TaskId]) -> String {
    let whose = tasks.iter().map(|&id| system.task(id)).filter(|task| !acts_late(task));
    let names: Vec<&str> = whose.map(|task| task.name.as_str()).collect();
    format!(
        "cpu {}: horolog's agent decides who runs, not the kernel, so that the overrun policy of {} can act at once",
        cpu.0,
        names.join(", ")
    )
}

/// The kernel may decide where its rules are the model's: preemptive tasks of distinct fixed priorities, and overrun
/// policies that need no timer, where these are looked at.
fn mode_of(system: &System, cpu: CpuId, tasks: &[TaskId], options: &RunOptions, policies_act: bool) -> Mode {
    if system.servers_on(cpu).any(|(_, server)| !server.kind.is_kernels()) || !system.modes().is_empty() {
        return Mode::Authoritative;
    }
    if shares_resources(system, tasks) {
        return Mode::Authoritative;
    }
    let by_variant = options.non_preemptive != NonPreemptiveVariant::Flag;
    let plain = |task: &Task| match task.preemption {
        Preemption::Preemptive => true,
        // The comparison's other variants shut more important tasks out without an agent.
        Preemption::NonPreemptive => by_variant,
        _ => false,
    };
    let late_action = |task: &Task| !policies_act || acts_late(task);
    let tasks = || tasks.iter().map(|&id| system.task(id));
    let mut priorities: Vec<i64> = tasks().filter_map(|task| task.priority).map(Priority::number).collect();
    let before = priorities.len();
    priorities.sort_unstable();
    priorities.dedup();
    let distinct = priorities.len() == before;
    let kernel_can = tasks().all(|task| plain(task) && late_action(task));
    if system.policy() == Policy::FixedPriority && distinct && kernel_can && !options.watch_all {
        Mode::Shadow
    } else {
        Mode::Authoritative
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tasks_with_a_period_are_said_to_start_at_the_common_start() {
        let allowed = allowed_cpus().expect("readable");
        let cpu = allowed.as_slice()[0];
        let notes = |offset: &str| {
            let text = format!(
                "[system]\nname = \"s\"\n[platform]\ncpus = [{cpu}]\n\
                 [[task]]\nname = \"a\"\nperiod = \"10 ms\"\n{offset}wcet = \"1 ms\"\npriority = 2\n\
                 [[task]]\nname = \"b\"\narrivals = [\"3 ms\"]\nwcet = \"1 ms\"\npriority = 1\n"
            );
            let (system, _) = horolog_model::file::read(&text, "s.toml", &[]).expect("a valid file");
            let options = RunOptions { best_effort: true, ..RunOptions::default() };
            let plan = Plan::new(&system, &system, &options).expect("it can be run");
            plan.notes.iter().filter(|note| note.contains("offset")).count()
        };
        assert_eq!((notes("offset = \"0 ms\"\n"), notes("")), (0, 1));
    }
}
