//! Systems that no test here knows: modes, devices with several slots; and processors whose tasks
//! hold resources beside what the bound of their blocking does not know.
//!
//! The gate stands where every test begins, at the model of a processor ([`crate::cpu_model::CpuModel::new`]), so that a new
//! test cannot forget it. What asks for an answer about a whole system says `unknown` instead of failing.

use crate::error::AnalysisError;
use crate::result::{Analysis, NO_TEST, Schedulable, TaskVerdict, TestResult, Verdict};
use crate::{mixed_criticality, spin_locks, suspended_waits};
use horolog_model::{
    CpuId, Device, Policy, Preemption, PriorityAssignment, Protocol, Resource, Server, ServerId, ServerKind,
    System, Task, TaskId,
};
use horolog_time::Span;

/// Why there is no answer about any task; `None` where the tests know everything that the system says.
pub(crate) fn why(system: &System) -> Option<String> {
    if let Some(why) = unmodelled(system) {
        return Some(why);
    }
    match system.first_beyond_trees() {
        Some(at) => Some(format!(
            "no test knows of `{at}`: modes and devices with several slots can be simulated and run, but not analysed"
        )),
        // The search for priorities asks the tests of a processor.
        None if system.priorities() == PriorityAssignment::Audsley => {
            system.platform().cpus.iter().find_map(|cpu| why_on(system, cpu))
        }
        None => None,
    }
}

/// What the file itself says that it leaves out.
pub(crate) fn unmodelled(system: &System) -> Option<String> {
    let all = system.unmodelled();
    let more = if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() };
    Some(format!(
        "the file leaves something out, so nothing is proved (`system.unmodelled`): {}{more}",
        all.first()?
    ))
}

/// Why nothing is known of the tasks of one processor: the blocking of its sections, or the switching of a server, has no bound here.
pub(crate) fn why_on(system: &System, cpu: CpuId) -> Option<String> {
    let of_sections = why_sections(system, cpu);
    let can = if is_simulated_only(system) { "simulated" } else { "simulated and run" };
    of_sections.map(|why| format!("{why}; the file can be {can}")).or_else(|| {
        let (_, why) = endless_switching(system, cpu)?;
        Some(format!("no test knows of the servers on CPU {}: {why}", cpu.0))
    })
}

/// A budget on a platform where a switch or a timer costs something, whose jobs may take no time: no budget limits how many of them
/// begin in a period, and so what their switching takes. The server, and why.
pub(crate) fn endless_switching(system: &System, cpu: CpuId) -> Option<(&str, String)> {
    let platform = system.platform();
    if platform.context_switch_cost().is_zero() && platform.timer_interrupt_cost().is_zero() {
        return None;
    }
    let has_budget = |id: &ServerId| system.server(*id).kind.capacity().is_some();
    // An event of a device always takes some time.
    let mut empty = system.tasks_on(cpu).filter(|(_, task)| task.bcet.is_zero());
    empty.find_map(|(id, task)| {
        let server = system.server(system.schedulers_above(id).find(has_budget)?).name.as_str();
        let name = &task.name;
        let why = format!(
            "the switching of `{server}` has no bound: a job of `{name}` may take no time, so the budget does not limit how many begin in a \
             period; give `{name}` a bcet above zero if its jobs always take some"
        );
        Some((server, why))
    })
}

/// The least that a server executes for one event of a device: one that admission control turns away has the test alone.
pub(crate) fn shortest_event(device: &Device) -> Span {
    device.admission.map_or(device.least_cost, |admission| admission.cost)
}

fn why_sections(system: &System, cpu: CpuId) -> Option<String> {
    let first = system.tasks_on(cpu).find_map(|(_, task)| task.sections.first())?;
    let mut resource = first.resource.as_str();
    let is_rigid = |task: &Task| task.preemption != Preemption::Preemptive;
    let beside = if suspended_waits::concern(system, cpu) {
        suspended_waits::obstacle(system)?
    } else if let Some(unknown) = unbounded(system, cpu) {
        let protocol = unknown.protocol;
        resource = &unknown.name;
        format!("not with `protocol = \"{}\"` under {}", protocol.word(), system.policy().word())
    } else if let Some(why) = servers_beside_sections(system, cpu) {
        why
    } else {
        match system.tasks_on(cpu).find(|(_, task)| is_rigid(task)) {
            Some((_, rigid)) => format!("not beside `{}`, which cannot be preempted anywhere", rigid.name),
            None => spin_locks::unbounded(system, cpu).or_else(|| inversion(system, cpu))?,
        }
    };
    Some(format!(
        "no test knows of `resource.{resource}` on CPU {}: blocking by sections is bounded for preemptive tasks under fixed priorities and EDF, {beside}",
        cpu.0
    ))
}

fn is_simulated_only(system: &System) -> bool {
    system.first_boosting().is_some() || system.resources().iter().any(|resource| resource.protocol.helps())
}

/// Which server no test knows beside sections. One with a place under fixed priorities is a load like others, and holds nothing.
fn servers_beside_sections(system: &System, cpu: CpuId) -> Option<String> {
    let is_known = |server: &Server| {
        let kind = matches!(
            server.kind,
            ServerKind::Background
                | ServerKind::Polling { .. }
                | ServerKind::Deferrable { .. }
                | ServerKind::Sporadic { .. }
        );
        kind && system.policy() == Policy::FixedPriority && !server.kind.is_kernels()
    };
    let (_, first) = system.servers_on(cpu).next()?;
    if let Some((_, other)) = system.servers_on(cpu).find(|(_, server)| !is_known(server)) {
        let how = if system.policy() == Policy::FixedPriority { "of this kind" } else { "under this policy" };
        return Some(format!("not beside the server `{}` {how}", other.name));
    }
    let served =
        system.tasks_on(cpu).find(|(id, task)| system.server_of(*id).is_some() && !task.sections.is_empty());
    if let Some((_, served)) = served {
        return Some(format!(
            "not where a task of a server, as `{}`, has some: its budget may end within one",
            served.name
        ));
    }
    let held = system.tasks_on(cpu).flat_map(|(_, task)| &task.sections);
    let mut protocols = held
        .filter_map(|section| system.find_resource(&section.resource))
        .map(|place| system.resources()[place].protocol);
    let local = |protocol: &Protocol| {
        matches!(
            protocol,
            Protocol::Ceiling | Protocol::NonPreemptive | Protocol::Inheritance | Protocol::OriginalCeiling
        )
    };
    let other = protocols.find(|protocol| !local(protocol) && *protocol != Protocol::None)?;
    Some(format!("not with `protocol = \"{}\"` beside the server `{}`", other.word(), first.name))
}

/// A resource whose holder less important tasks than those that wait for it may preempt.
fn inversion(system: &System, cpu: CpuId) -> Option<String> {
    let mut sections = system.tasks_on(cpu).flat_map(|(_, task)| &task.sections);
    let protocol = |name: &str| system.find_resource(name).map(|place| system.resources()[place].protocol);
    let open = sections.find(|section| protocol(&section.resource) == Some(Protocol::None))?;
    Some(format!(
        "not with `protocol = \"none\"`, which `{}` has: tasks that use no resource keep its holder, and who waits for it, from the \
         processor (priority inversion)",
        open.resource
    ))
}

/// What the tasks of a processor hold whose protocol the policy's tests do not know.
fn unbounded(system: &System, cpu: CpuId) -> Option<&Resource> {
    let sections = system.tasks_on(cpu).flat_map(|(_, task)| &task.sections);
    let held = sections.filter_map(|section| system.find_resource(&section.resource));
    let is_known = |protocol: &Protocol| match system.policy() {
        Policy::FixedPriority => true,
        Policy::Edf => match protocol {
            Protocol::Ceiling | Protocol::NonPreemptive => true,
            other => other.spins() && !matches!(other, Protocol::Fslm | Protocol::PreemptableFifo),
        },
        _ => false,
    };
    held.map(|resource| &system.resources()[resource]).find(|resource| !is_known(&resource.protocol))
}

/// The cluster that a processor belongs to, by its place.
pub(crate) fn cluster_on(system: &System, cpu: CpuId) -> Option<usize> {
    system.clusters().iter().position(|cluster| cluster.cpus.contains(&cpu))
}

/// Refuses what no test of a processor by itself knows.
pub(crate) fn refuse_on(system: &System, cpu: CpuId) -> Result<(), AnalysisError> {
    if cluster_on(system, cpu).is_some() || system.has_tree(cpu) || system.first_beyond_trees().is_some() {
        refuse(system)?;
    }
    let together = || {
        suspended_waits::concern(system, cpu).then(|| {
            format!(
                "jobs on CPU {} wait, suspended, for other processors: only `analyze` has bounds of all of them together",
                cpu.0
            )
        })
    };
    if let Some((server, why)) = endless_switching(system, cpu) {
        return Err(AnalysisError::outside(
            format!("server.{server}"),
            why,
            "simulate the file, run it and verify the trace",
        ));
    }
    match (system.first_held(), why_sections(system, cpu).or_else(together)) {
        (Some(at), Some(why)) => {
            let remedy = match is_simulated_only(system) {
                true => "simulate the file and verify the trace",
                false => "simulate the file, run it and verify the trace",
            };
            Err(AnalysisError::outside(at, why, remedy))
        }
        _ => Ok(()),
    }
}

/// Refuses what no test of single processors knows.
pub(crate) fn refuse(system: &System) -> Result<(), AnalysisError> {
    let of_their_own =
        |what| format!("{what} have tests of their own, which `analyze` asks, and this does not know them");
    match system.first_beyond_servers() {
        Some(at) => {
            let why = match why(system) {
                Some(_) if mixed_criticality::concerns(system) && unmodelled(system).is_none() => {
                    of_their_own("tasks with `criticality`")
                }
                Some(why) => why,
                None if at_tree(system) => of_their_own("trees of schedulers"),
                None => of_their_own("tasks of a cluster"),
            };
            Err(AnalysisError::outside(at, why, "simulate the file, run it and verify the trace"))
        }
        None => Ok(()),
    }
}

fn at_tree(system: &System) -> bool {
    system.platform().cpus.iter().any(|cpu| system.has_tree(cpu))
}

/// The answer about one task of such a system: nothing is proven, and no number is given.
pub(crate) fn unknown_task(system: &System, id: TaskId) -> TaskVerdict {
    let task = system.task(id);
    TaskVerdict {
        name: task.name.clone(),
        cpu: task.cpu,
        served_by: system.server_of(id).map(|server| system.server(server).name.clone()),
        verdict: Verdict::Unknown,
        response: None,
        low_mode: None,
        deadline: task.deadline,
        test: NO_TEST,
        exact: false,
        source: "",
        blocking: None,
        allowed_segment: None,
        tests: Vec::<TestResult>::new(),
        witness: None,
        slack: None,
        remedies: Vec::new(),
    }
}

/// The answer about such a system: nothing is proven of any task, and no number is given.
pub(crate) fn unknown(system: &System, why: String) -> Analysis {
    Analysis {
        schema: "horolog.analysis/1",
        system: system.name().to_owned(),
        utilisation: None,
        schedulable: Schedulable::Unknown,
        tasks: system.task_ids().map(|id| unknown_task(system, id)).collect(),
        servers: Vec::new(),
        devices: Vec::new(),
        processors: Vec::new(),
        reasons: Vec::new(),
        notes: vec![why],
    }
}
