//! Which processors the fast engine covers.

use super::sweep::{self, Rules, Swept};
use super::{PlainTask, Solver, priority_of};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use std::cmp::Reverse;

/// Above so many tasks only the sweep is fast: the other engine looks at every pair of tasks.
const MOST_FOR_LANES: usize = 2_000;

/// The least upper bounds of all tasks by the fast engines, `None` for a task that is left to the general one; no
/// result where the processor has something that the fast engine does not know: equal priorities, listed arrivals,
/// servers above tasks, sections, interrupts, interference, context switches, or several ways that a job can end.
pub(crate) fn responses(cpu: &CpuModel, effort: u64) -> Result<Option<Vec<Option<u64>>>, AnalysisError> {
    let mut swept = Vec::new();
    let answer = sweep::sweep(cpu, Rules::default(), &mut swept, &mut { effort })?;
    if answer == Some(Swept::Responses) || answer.is_some() && cpu.tasks.len() > MOST_FOR_LANES {
        return Ok(Some(swept));
    }
    let servers = cpu.servers.iter().any(|server| server.kind.priority().is_some());
    if servers
        || cpu.has_sections()
        || !cpu.drivers.is_empty()
        || !cpu.interrupts.is_empty()
        || !cpu.interferences.is_empty()
        || cpu.context_switch > 0
    {
        return Ok(None);
    }
    let mut order = Vec::with_capacity(cpu.tasks.len());
    for (index, task) in cpu.tasks.iter().enumerate() {
        order.push((Reverse(priority_of(task)?.number()), index));
    }
    order.sort_unstable();
    if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Ok(None);
    }
    let mut plain = Vec::with_capacity(order.len());
    for &(_, index) in &order {
        let task = &cpu.tasks[index];
        let (ArrivalCurve::Periodic { separation, jitter }, [ending]) =
            (&task.arrival, &task.shape.endings[..])
        else {
            return Ok(None);
        };
        plain.push(PlainTask {
            separation: *separation,
            jitter: *jitter,
            wcet: task.wcet,
            last_segment: ending.last,
            longest_segment: task.shape.longest_segment,
        });
    }
    let mut found = vec![None; plain.len()];
    if !plain.is_empty() {
        Solver::with_effort(0).solve(&plain, plain.len(), &mut found);
    }
    let mut responses = vec![None; found.len()];
    for (&(_, index), response) in order.iter().zip(found) {
        responses[index] = response;
    }
    Ok(Some(responses))
}
