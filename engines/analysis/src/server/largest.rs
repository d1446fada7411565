//! The largest safe capacity of a server of a system.

use super::{Above, Capacity, NoAnswer, Victim, largest_capacity};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, InterruptLoad, Seen, has_waits};
use crate::edf::{self, constant_bandwidth};
use crate::error::AnalysisError;
use crate::fixed_priority;
use crate::options::Options;
use crate::result::LargestBudget;
use horolog_model::Policy;
use horolog_time::Span;
use num_rational::Ratio;

/// What was found for one period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Largest {
    pub(crate) budget: u64,
    /// The ratio in closed form, where there is one.
    pub(crate) exact: Option<Ratio<u128>>,
    /// The task or device whose deadline a nanosecond more breaks.
    pub(crate) binding: Option<String>,
}

impl Largest {
    /// The result beside the budget that the file gives.
    pub(crate) fn against(&self, given: Span) -> LargestBudget {
        let difference = i128::from(self.budget) - i128::from(given.as_ns());
        LargestBudget {
            budget: Span::from_ns(self.budget),
            exact_ns: self.exact.map(|ratio| ratio.to_string()),
            binding: self.binding.clone(),
            // Both are below 2^63.
            headroom: i64::try_from(difference).unwrap_or(i64::MAX),
        }
    }
}

/// The largest capacity of the server at `index` for a period, with which every task that its capacity or its timers delay
/// meets its deadline; in words, why there is none.
pub(crate) fn largest_budget(
    cpu: &CpuModel,
    index: usize,
    period: u64,
    policy: Policy,
    options: &Options,
) -> Result<Result<Largest, String>, AnalysisError> {
    if has_waits(cpu) {
        return Ok(Err("a task waits for a device, whose answers depend on the budget".to_owned()));
    }
    let closed = match policy {
        // Its load is no row of the closed form.
        _ if cpu.servers[index].kind.is_kernels() => None,
        Policy::FixedPriority => victims_of(cpu, index)?.map(|(victims, tasks)| {
            let found =
                largest_capacity(&victims, cpu.servers[index].retention()?, period, &mut { options.effort });
            Some(found.map(|found| found.map(|found| (found, tasks))))
        }),
        _ => constant_bandwidth::largest(cpu, index, period, options)
            .map(|found| Some(found.map(|f| f.map(|f| (f, Vec::new()))))),
    };
    match closed.flatten() {
        Some(Ok(Some((capacity, tasks)))) => return Ok(Ok(from_closed_form(cpu, capacity, &tasks))),
        Some(Ok(None)) => return Ok(Err(NONE_SAFE.to_owned())),
        // The closed form does not apply, or is too much work: whole nanoseconds by bisection.
        Some(Err(_)) | None => {}
    }
    bisect(cpu, index, period, policy, options)
}

pub(super) const NONE_SAFE: &str =
    "no capacity is safe: a task is not proven to meet its deadline with the server's least capacity";

fn from_closed_form(cpu: &CpuModel, capacity: Capacity, tasks: &[usize]) -> Largest {
    let binding = capacity.binding.and_then(|victim| tasks.get(victim));
    Largest {
        budget: capacity.floor_ns(),
        exact: Some(capacity.exact),
        binding: binding.map(|&index| cpu.tasks[index].name.clone()),
    }
}

/// Tasks that a server delays, and their indices into the processor's tasks.
type Delayed = (Vec<Victim>, Vec<usize>);

/// The tasks that the server's capacity delays, as the closed form wants them, with their indices; `None` where it does
/// not apply: segments, equal priorities, costs that depend on the capacity.
fn victims_of(cpu: &CpuModel, index: usize) -> Result<Option<Delayed>, AnalysisError> {
    let server = &cpu.servers[index];
    if !cpu.drivers.is_empty() || server.overhead > 0 || server.timers.is_some() || cpu.has_costs {
        return Ok(None);
    }
    let (mut victims, mut tasks) = (Vec::new(), Vec::new());
    for place in delayed(cpu, index) {
        let task = &cpu.tasks[place];
        let level = fixed_priority::level_of(cpu, place)?;
        let (ArrivalCurve::Periodic { separation, jitter }, Some(deadline)) = (&task.arrival, task.deadline)
        else {
            return Ok(None);
        };
        if !task.shape.preemptive || !level.equal.is_empty() || level.unbounded.is_some() {
            return Ok(None);
        }
        let own = server.load.as_ref().map(|load| &load.arrival);
        let others = level.higher.iter().filter(|row| !own.is_some_and(|own| std::ptr::eq(own, row.arrival)));
        let mut loads: Vec<InterruptLoad> =
            others.map(|row| InterruptLoad { arrival: row.arrival.clone(), wcet: row.wcet }).collect();
        loads.extend(cpu.interrupts.iter().cloned());
        let above = Above { loads, measured: cpu.interferences.clone(), blocking: level.blocking };
        victims.push(Victim { wcet: task.wcet, separation: *separation, jitter: *jitter, deadline, above });
        tasks.push(place);
    }
    Ok(Some((victims, tasks)))
}

/// The tasks with a hard deadline that the server's capacity delays: those between its two places.
fn delayed(cpu: &CpuModel, index: usize) -> Vec<usize> {
    let below = |place: &usize| {
        let task = &cpu.tasks[*place];
        let server = &cpu.servers[index];
        let is_above = server.kind.is_kernels() || matches!(server.seen_from(task.priority), Seen::Load(_));
        task.deadline.is_some() && !task.is_soft && is_above
    };
    (0..cpu.tasks.len()).filter(below).collect()
}

/// The largest capacity in whole nanoseconds by bisection over the full test; more capacity never helps a task.
fn bisect(
    cpu: &CpuModel,
    index: usize,
    period: u64,
    policy: Policy,
    options: &Options,
) -> Result<Result<Largest, String>, AnalysisError> {
    let tasks = if cpu.servers[index].timers.is_some() {
        // Its timers interrupt the tasks above it as well, more of them with more capacity.
        (0..cpu.tasks.len())
            .filter(|&place| cpu.tasks[place].deadline.is_some() && !cpu.tasks[place].is_soft)
            .collect()
    } else {
        delayed(cpu, index)
    };
    let mut effort = options.effort;
    let mut late = None;
    let mut passes = |budget: u64| -> Result<bool, AnalysisError> {
        let Some(model) = cpu.with_capacity(index, budget, period) else { return Ok(false) };
        if policy != Policy::FixedPriority {
            return edf::all_meet(&model, &mut effort);
        }
        for &task in &tasks {
            if fixed_priority::excess_within(&model, task, &mut effort)? > 0 {
                late = Some(task);
                return Ok(false);
            }
        }
        Ok(true)
    };
    if !passes(1)? {
        return Ok(Err(NONE_SAFE.to_owned()));
    }
    let (mut good, mut bad) = (1, period + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if passes(middle)? { good = middle } else { bad = middle }
    }
    if effort == 0 {
        return Ok(Err(NoAnswer::Effort.to_string()));
    }
    let binding = late.filter(|_| good < period).map(|index| cpu.tasks[index].name.clone());
    Ok(Ok(Largest { budget: good, exact: None, binding }))
}
