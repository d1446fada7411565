//! Small systems with servers: a mixed system, or one under EDF, with soft tasks and one or two servers for them.

use crate::{Ingredients, Random, mixed_system};
use horolog_model::{
    Access, Arrival, Capacity, CpuId, Draft, Enforcement, ExecutionTimes, Gain, LowPriority, OverrunPolicy,
    Policy, Preemption, Priority, Protocol, Resource, Section, Server, ServerKind, SporadicRules, System,
    Task,
};
use horolog_time::Span;

/// Which servers a served system has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Serving {
    /// One or two servers with a place under fixed priorities.
    Placed,
    /// The same beside preemptive tasks with sections, but for priority exchange.
    BesideSections,
    /// Dual priority or slack stealing beside preemptive tasks.
    SlackPolicy,
    /// Constant bandwidth and background servers under EDF.
    Edf,
    /// Total and constant bandwidth servers under EDF.
    TotalBandwidth,
    /// A constant bandwidth server that the kernel serves, above every task and perhaps another server: under EDF
    /// where the index is odd.
    Kernel,
}

/// The served system number `index` of the series `seed`.
///
/// # Panics
/// Never: what it draws is a system.
#[must_use]
pub fn served_system(seed: u64, index: u64, serving: Serving, ingredients: Ingredients) -> System {
    let mut draft = mixed_system(seed, index, ingredients).to_draft();
    let mut random = Random::of_item(seed ^ 0x5e_7e_d5, index);
    if serving != Serving::Placed {
        draft.tasks.iter_mut().for_each(make_preemptive);
    }
    if matches!(serving, Serving::Edf | Serving::TotalBandwidth)
        || (serving == Serving::Kernel && index % 2 == 1)
    {
        draft.policy = Policy::Edf;
        draft.tasks.iter_mut().for_each(|task| task.priority = None);
    }
    if serving == Serving::BesideSections {
        add_sections(&mut random, &mut draft);
    }
    if serving == Serving::SlackPolicy {
        draft.interferences.clear();
        draft.tasks.iter_mut().enumerate().for_each(constrain);
    }
    let servers = if serving == Serving::SlackPolicy { 1 } else { random.between(1, 2) };
    for place in 0..servers {
        let most = if serving == Serving::Kernel { 1 } else { 2 };
        let tasks: Vec<String> = (0..random.between(1, most))
            .map(|task| soft_task(&mut random, &mut draft, place, task))
            .collect();
        let kind = if serving == Serving::Kernel {
            beside_kernels(&mut random, draft.policy, place == 0)
        } else {
            kind(&mut random, serving)
        };
        draft.servers.push(Server::new(format!("server {place}"), tasks, CpuId(0), kind));
    }
    // Priority exchange serves all soft tasks of its processor, beside no other server.
    let exchange = |server: &Server| matches!(server.kind, ServerKind::PriorityExchange { .. });
    if let Some(index) = draft.servers.iter().position(exchange) {
        let tasks = draft.servers.iter().flat_map(|server| server.tasks.clone()).collect();
        let server = Server { tasks, ..draft.servers[index].clone() };
        draft.servers = vec![server];
    }
    match System::new(draft) {
        Ok(system) => system,
        Err(errors) => panic!("a served system is a system: {errors:?}"),
    }
}

fn make_preemptive(task: &mut Task) {
    task.preemption = Preemption::Preemptive;
}

/// One or two resources under protocols of one processor, and up to two sections a task, one behind the other.
fn add_sections(random: &mut Random, draft: &mut Draft) {
    let protocols =
        [Protocol::Ceiling, Protocol::NonPreemptive, Protocol::Inheritance, Protocol::OriginalCeiling];
    for place in 0..random.between(1, 2) {
        let protocol = protocols[random.below(4) as usize];
        draft.resources.push(Resource { name: format!("r{place}"), protocol, ..Resource::default() });
    }
    let resources = draft.resources.len() as u64;
    for task in &mut draft.tasks {
        let mut from = 0;
        for _ in 0..random.below(3) {
            let left = task.wcet.as_ns() - from;
            if left < 4 {
                break;
            }
            let begin = from + random.below(left / 2);
            let length = random.between(1, task.wcet.as_ns() - begin);
            task.sections.push(Section {
                resource: format!("r{}", random.below(resources)),
                from: Span::from_ns(begin),
                length: Span::from_ns(length),
                access: Access::Write,
            });
            from = begin + length;
        }
    }
    let used = |resource: &Resource, tasks: &[Task]| {
        tasks.iter().flat_map(|task| &task.sections).any(|section| section.resource == resource.name)
    };
    let tasks = &draft.tasks;
    draft.resources.retain(|resource| used(resource, tasks));
}

/// What slack policies of every gain ask of a hard task: periodic, without jitter, of a priority of its own.
fn constrain((place, task): (usize, &mut Task)) {
    task.priority = task.priority.map(|priority| Priority::new(8 * priority.number() + place as i64));
    if let Arrival::Aperiodic { .. } = task.arrival {
        let period = Span::from_ns(2 * task.wcet.as_ns() + 5_000);
        (task.arrival, task.deadline) = (Arrival::Periodic { period }, Some(period));
    }
    if let Arrival::Sporadic { separation } = task.arrival {
        task.arrival = Arrival::Periodic { period: separation };
    }
    task.jitter = Span::ZERO;
    let separation = task.separation();
    task.deadline = task.deadline.min(separation).or(separation);
    task.wcet = task.deadline.map_or(task.wcet, |deadline| task.wcet.min(deadline));
    task.bcet = task.bcet.min(task.wcet);
}

/// Adds a soft task; its name.
fn soft_task(random: &mut Random, draft: &mut Draft, server: u64, place: u64) -> String {
    let name = format!("soft {server}.{place}");
    let separation = Span::from_ns(random.log_uniform(2_000, 40_000));
    let wcet = random.log_uniform(20, 2_000).min(separation.as_ns() / 4);
    let arrival = match random.below(4) {
        0 => {
            let mut arrivals: Vec<Span> =
                (0..random.between(1, 8)).map(|_| Span::from_ns(random.below(60_000))).collect();
            arrivals.sort_unstable();
            Arrival::Aperiodic { arrivals }
        }
        1 => Arrival::Periodic { period: separation },
        _ => Arrival::Sporadic { separation },
    };
    let jitter = if matches!(arrival, Arrival::Aperiodic { .. }) { 0 } else { random.below(500) };
    draft.tasks.push(Task {
        name: name.clone(),
        arrival,
        deadline: (random.below(2) == 0).then(|| Span::from_ns(random.between(wcet, 60_000))),
        wcet: Span::from_ns(wcet),
        bcet: Span::from_ns(random.between(wcet / 2, wcet)),
        offset: None,
        jitter: Span::from_ns(if random.below(2) == 0 { jitter } else { 0 }),
        priority: None,
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
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

/// The kernel's server, or one that may stand beside it.
fn beside_kernels(random: &mut Random, policy: Policy, is_kernels: bool) -> ServerKind {
    let period = random.log_uniform(1_500, 12_000);
    let capacity =
        Capacity { budget: Span::from_ns(random.between(1, period / 4)), period: Span::from_ns(period) };
    let enforcement = if is_kernels { Enforcement::Kernel { latency: Span::ZERO } } else { Enforcement::Own };
    match policy {
        _ if is_kernels => ServerKind::ConstantBandwidth { capacity, enforcement },
        Policy::Edf => ServerKind::ConstantBandwidth { capacity, enforcement },
        _ => ServerKind::Deferrable {
            capacity,
            priority: Priority::new(random.between(1, 8) as i64),
            low_priority: LowPriority::Background,
        },
    }
}

fn kind(random: &mut Random, serving: Serving) -> ServerKind {
    let period = random.log_uniform(1_500, 12_000);
    let budget = random.between(1, period / 3);
    let capacity = Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) };
    let number = random.between(1, 8) as i64;
    let priority = Priority::new(number);
    let low_priority = match random.below(4) {
        0 => LowPriority::None,
        1 => LowPriority::At(Priority::new(number - random.between(1, 6) as i64)),
        _ => LowPriority::Background,
    };
    match (serving, random.below(6)) {
        (Serving::Edf | Serving::Placed | Serving::BesideSections, 0) => ServerKind::Background,
        (Serving::Edf, _) => ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own },
        (Serving::TotalBandwidth, 0) => {
            ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own }
        }
        (Serving::TotalBandwidth, _) => ServerKind::TotalBandwidth { capacity },
        (Serving::SlackPolicy, choice) => match choice {
            0 => ServerKind::DualPriority { gain: Gain::None },
            1 => ServerKind::DualPriority { gain: Gain::SelfGain },
            2 => ServerKind::DualPriority { gain: Gain::Propagated },
            3 => ServerKind::DualPriority { gain: Gain::Both },
            4 => ServerKind::SlackStealing { gain: Gain::None },
            _ => ServerKind::SlackStealing { gain: Gain::Propagated },
        },
        (_, 1) => ServerKind::Polling { capacity, priority, low_priority },
        (_, 2) => ServerKind::Deferrable { capacity, priority, low_priority },
        (Serving::Placed, 3) => ServerKind::PriorityExchange { capacity, priority },
        (_, _) => ServerKind::Sporadic {
            capacity,
            priority,
            low_priority,
            max_replenishments: [1, 2, 3, 32][random.below(4) as usize],
            rules: if random.below(6) == 0 { SporadicRules::Posix } else { SporadicRules::Corrected },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_turns_up() {
        let mut words = BTreeSet::new();
        for serving in [Serving::Placed, Serving::SlackPolicy, Serving::Edf, Serving::TotalBandwidth] {
            for index in 0..60 {
                let system = served_system(1, index, serving, Ingredients::ALL);
                words.extend(system.servers().iter().map(|server| server.kind.word()));
            }
        }
        assert_eq!(words.len(), ServerKind::WORDS.len(), "{words:?}");
    }
}
