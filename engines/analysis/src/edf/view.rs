//! One processor as the tests of a set see it.

use super::sections::sections;
use super::{Arrivals, EdfSet, EdfTask, TopLoad};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;

/// The processor as the EDF tests see it, tasks in the same order. Constant bandwidth servers are not part of it.
pub(crate) fn set_of(cpu: &CpuModel) -> Result<EdfSet, AnalysisError> {
    let mut tasks = Vec::with_capacity(cpu.tasks.len());
    for task in &cpu.tasks {
        tasks.push(EdfTask {
            wcet: task.wcet,
            arrivals: arrivals(&task.arrival),
            deadline: task.deadline,
            jitter: task.arrival.jitter(),
            non_preemptive: task.shape.longest_segment,
        });
    }
    let interrupts = cpu.interrupts.iter().map(|load| TopLoad::Interrupts {
        cost: load.wcet,
        arrivals: arrivals(&load.arrival),
        jitter: load.arrival.jitter(),
    });
    let measured = cpu.interferences.iter().map(|load| TopLoad::Linear(*load));
    let sections = sections(cpu).into_iter().map(|section| section.blocking).collect();
    EdfSet::new(tasks, interrupts.chain(measured).collect())
        .and_then(|set| set.with_extra_blocking(cpu.context_switch))
        .and_then(|set| set.with_sections(sections))
        .map_err(|error| AnalysisError::too_long("system", error.to_string()))
}

fn arrivals(curve: &ArrivalCurve) -> Arrivals {
    match curve {
        ArrivalCurve::Periodic { separation, .. } => Arrivals::Separated(*separation),
        ArrivalCurve::Listed { arrivals, .. } => Arrivals::Listed(arrivals.clone()),
    }
}

/// Whether the tasks alone, without costs and interference, ask for more than the processor.
pub(super) fn bare_overload(cpu: &CpuModel) -> bool {
    let shares = cpu.tasks.iter().filter(|t| t.deadline.is_some()).filter_map(|t| match t.arrival {
        ArrivalCurve::Periodic { separation, .. } => Some((t.bare_wcet, separation)),
        ArrivalCurve::Listed { .. } => None,
    });
    crate::utilisation::compare_with_one(shares) == std::cmp::Ordering::Greater
}
