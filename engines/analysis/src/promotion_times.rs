//! Promotion times of dual priority, as data of the resolved system: what the scheduling machine goes by, the platform's costs included.
//!
//! A hard job of task i is promoted `U_i` after its arrival. The latest safe time is `U_i = D_i − R_i`, with R_i the worst response time
//! among the hard tasks of the processor, deadlines up to the periods, everything preemptive: the least fixed point of
//!
//! ```text
//! w = o(w) + C_i + Σ_j ⌈(w + J_j)/T_j⌉ C_j        R_i = w + J_i
//! ```
//!
//! over every other task j that is not less important. C has two context switches, J the release latency and the tick, and o(w) one
//! more switch and the timer interrupts of a window w: one a release (or a tick), of soft tasks too. Exact without costs and jitter.
//!
//! Any earlier time is safe, too: after its promotion a job is as one that was released U_i later in a system without soft jobs, and R_i
//! holds whatever constants the others have.
//!
//! Source: `davis95`; `joseph86`, with jitter `audsley93`.

use horolog_model::{Arrival, CpuId, ServerKind, System, Task, TaskId};
use horolog_time::Span;
use std::cmp::Reverse;

/// A hard task; times in ns.
#[derive(Clone, Copy, Debug)]
struct Hard {
    id: TaskId,
    priority: i64,
    execution: u64,
    separation: u64,
    deadline: u64,
    /// Release jitter, latency and tick.
    late: u64,
}

/// Timer interrupts: so many in a window, at most.
#[derive(Clone, Copy, Debug)]
enum Interrupts {
    /// One a `separation`, the first up to `jitter` early.
    Every { separation: u64, jitter: u64 },
    /// So many in all.
    Listed(u64),
}

/// The system with a promotion time at every hard task beside dual priority that has a safe one and is given none.
pub(crate) fn fill(system: System) -> System {
    let mut draft = system.to_draft();
    let mut is_changed = false;
    for cpu in dual_priority(&system) {
        for (id, latest) in latest_on(&system, cpu) {
            let task = &mut draft.tasks[id.index()];
            if task.promotion.is_none() && latest.is_some() {
                (task.promotion, is_changed) = (latest, true);
            }
        }
    }
    if !is_changed {
        return system;
    }
    // A time up to the deadline, where dual priority is: no rule is against it.
    System::new(draft).unwrap_or(system)
}

/// The first hard task of a processor whose given promotion time is not safe.
pub(crate) fn first_unsafe(system: &System, cpu: CpuId) -> Option<TaskId> {
    if !dual_priority(system).any(|other| other == cpu) {
        return None;
    }
    let is_unsafe = |&(id, latest): &(TaskId, Option<Span>)| {
        system.task(id).promotion.is_some_and(|given| latest.is_none_or(|latest| given > latest))
    };
    latest_on(system, cpu).into_iter().find(is_unsafe).map(|(id, _)| id)
}

/// The processors with a dual-priority server.
fn dual_priority(system: &System) -> impl Iterator<Item = CpuId> + '_ {
    let servers = system.servers().iter();
    servers.filter(|server| matches!(server.kind, ServerKind::DualPriority { .. })).map(|server| server.cpu)
}

/// The latest safe time of each hard task of a processor.
fn latest_on(system: &System, cpu: CpuId) -> Vec<(TaskId, Option<Span>)> {
    let platform = system.platform();
    let tick = platform.tick.map_or(0, Span::as_ns);
    let late = platform.release_latency_bound().as_ns().saturating_add(tick);
    let switch = platform.context_switch_cost().as_ns();
    let hard = |(id, task): (TaskId, &Task)| Hard {
        id,
        priority: task.priority.map_or(0, horolog_model::Priority::number),
        execution: task.wcet.as_ns().saturating_add(switch.saturating_mul(2)),
        separation: task.separation().map_or(u64::MAX, Span::as_ns),
        deadline: task.deadline.map_or(u64::MAX, Span::as_ns),
        late: task.jitter.as_ns().saturating_add(late),
    };
    let mut hard: Vec<Hard> = system.hard_tasks_on(cpu).map(hard).collect();
    hard.sort_by_key(|task| Reverse(task.priority));
    let interrupts = interrupts(system, cpu, late);
    let cost = platform.timer_interrupt_cost().as_ns();
    let overhead = |window: u64| {
        let interrupts = interrupts.iter().filter(|_| cost > 0);
        let count = interrupts.fold(0_u64, |sum, interrupt| sum.saturating_add(interrupt.within(window)));
        switch.saturating_add(count.saturating_mul(cost))
    };
    // A window of a less important task holds that of a more important one, and the task's own execution: no search starts below.
    let (mut within, mut found) = (0, Vec::with_capacity(hard.len()));
    let mut end = 0;
    for equals in hard.chunk_by(|a, b| a.priority == b.priority) {
        end += equals.len();
        let mut longest = within;
        for task in equals {
            let (window, response) = response(&hard[..end], task, within, overhead);
            longest = longest.max(window);
            found.push((task.id, response.map(|response| Span::from_ns(task.deadline - response))));
        }
        within = longest;
    }
    found.sort_by_key(|&(id, _)| id.index());
    found
}

/// The timer interrupts of a processor.
fn interrupts(system: &System, cpu: CpuId, late: u64) -> Vec<Interrupts> {
    if let Some(tick) = system.platform().tick {
        return vec![Interrupts::Every { separation: tick.as_ns(), jitter: 0 }];
    }
    let of_task = |(_, task): (TaskId, &Task)| match (&task.arrival, task.separation()) {
        (_, Some(separation)) => Some(Interrupts::Every {
            separation: separation.as_ns(),
            jitter: task.jitter.as_ns().saturating_add(late),
        }),
        (Arrival::Aperiodic { arrivals }, None) => Some(Interrupts::Listed(arrivals.len() as u64)),
        _ => None,
    };
    system.tasks_on(cpu).filter_map(of_task).collect()
}

impl Interrupts {
    fn within(self, window: u64) -> u64 {
        match self {
            Self::Every { separation, jitter } => window.saturating_add(jitter).div_ceil(separation),
            Self::Listed(count) => count,
        }
    }
}

/// The window up to which the task was searched, which holds every shorter one, and its R, jitter included; `None` where that is above
/// the deadline. `hard` are the tasks that are not less important, `within` is a window of a more important one.
fn response(hard: &[Hard], own: &Hard, within: u64, overhead: impl Fn(u64) -> u64) -> (u64, Option<u64>) {
    let mut window = within.saturating_add(own.execution);
    loop {
        let others = hard.iter().filter(|other| other.id != own.id);
        let demand = others.fold(overhead(window), |sum, other| {
            let jobs = window.saturating_add(other.late).div_ceil(other.separation);
            sum.saturating_add(jobs.saturating_mul(other.execution))
        });
        let next = demand.saturating_add(own.execution);
        let response = next.saturating_add(own.late);
        if response > own.deadline {
            return (window, None);
        }
        if next == window {
            return (window, Some(response));
        }
        window = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set B: (2, 10), (4, 20), (8, 40), with a soft task.
    fn set_b(platform: &str, third: &str) -> System {
        let mut text = format!("[system]\nname = \"set B\"\n[platform]\n{platform}\n");
        for (name, wcet, period, priority, more) in
            [("a", 2, 10, 3, ""), ("b", 4, 20, 2, ""), ("c", 8, 40, 1, third)]
        {
            text += &format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n{more}\n"
            );
        }
        text += "[[task]]\nname = \"soft\"\narrivals = [\"0 ns\"]\nwcet = \"1 ns\"\n\
                 [[server]]\nname = \"server\"\nkind = \"dual-priority\"\ntasks = [\"soft\"]\n";
        horolog_model::file::read(&text, "b.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
    }

    fn times(system: System) -> Vec<Option<u64>> {
        fill(system).tasks().iter().map(|task| task.promotion.map(Span::as_ns)).collect()
    }

    /// Fact 1 of the aperiodic policies: R = 2, 6, 16.
    #[test]
    fn promotion_times_of_set_b() {
        assert_eq!(times(set_b("", "")), [Some(8), Some(14), Some(24), None]);
        // The machine is late by 1, and each job begins and ends with a switch of 1; one more had begun before. Each window has the
        // interrupts of a, b, c and the soft task: none costs anything.
        let costs = "release_latency = \"1 ns\"\ncontext_switch = \"1 ns\"";
        let c = 40 - 1 - 10 - 4 * 4 - 2 * 6 - 1;
        assert_eq!(
            times(set_b(costs, "")),
            [Some(10 - 1 - 4 - 1), Some(20 - 1 - 6 - 2 * 4 - 1), Some(c), None]
        );
    }

    #[test]
    fn a_given_time_stays_and_is_safe_up_to_the_latest() {
        let cpu = set_b("", "").tasks()[0].cpu;
        for (given, is_safe) in [(0, true), (24, true), (25, false)] {
            let system = set_b("", &format!("promotion = \"{given} ns\""));
            assert_eq!(times(system.clone())[2], Some(given));
            assert_eq!(first_unsafe(&system, cpu).is_none(), is_safe, "{given}");
        }
        // With a deadline of 15 there is none at all.
        let late = set_b("", "deadline = \"15 ns\"\npromotion = \"0 ns\"");
        assert_eq!(first_unsafe(&late, cpu), late.find_task("c"));
        assert_eq!(times(set_b("", "deadline = \"15 ns\""))[2], None);
        assert_eq!(times(set_b("", "deadline = \"16 ns\""))[2], Some(0));
    }
}
