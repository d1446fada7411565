//! Priority assignment: deadline-monotonic, rate-monotonic and Audsley's optimal one.

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::fixed_priority;
use crate::options::Options;
use crate::promotion_times;
use horolog_model::{CpuId, Policy, Priority, PriorityAssignment, System, TaskId};

/// The system with a priority at every task.
///
/// Explicit priorities, and every system under EDF, come back as they are. The others give each processor's tasks
/// the numbers from its task count down to 1:
///
/// - deadline-monotonic: the shorter the deadline the more important (`leung82`); tasks without one come last;
/// - rate-monotonic: the shorter the period the more important (`liu73`); aperiodic tasks come last;
/// - Audsley's assignment (`audsley91`): from the least important level up, any task that meets its deadline there by
///   the exact test of its preemption mode takes it. Optimal for preemptive and, since blocking depends only on
///   *which* tasks are below, for non-preemptive and deferred tasks too. Where no task fits a level, the task that
///   exceeds its deadline by least takes it, so that a failing system still gets a complete order to look at.
///
/// Ties go to the task that stands first in the file. Tasks that a server serves get no priority.
///
/// # Errors
/// Where a task under explicit priorities has none, or the result breaks a rule of the model.
pub fn resolve_priorities(system: &System) -> Result<System, AnalysisError> {
    if system.policy() != Policy::FixedPriority || system.priorities() == PriorityAssignment::Explicit {
        return Ok(system.clone());
    }
    let mut draft = system.to_draft();
    let mut cpus: Vec<CpuId> = system.tasks().iter().map(|t| t.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for cpu in cpus {
        let order = match system.priorities() {
            PriorityAssignment::DeadlineMonotonic => by_key(system, cpu, |id| system.task(id).deadline),
            PriorityAssignment::RateMonotonic => by_key(system, cpu, |id| system.task(id).separation()),
            _ => audsley(system, cpu)?,
        };
        for (place, id) in order.iter().enumerate() {
            draft.tasks[id.index()].priority = Some(Priority::new((order.len() - place) as i64));
        }
    }
    draft.priorities = PriorityAssignment::Explicit;
    System::new(draft).map_err(AnalysisError::model)
}

/// The system with everything that an analysis gives it and a scheduling machine goes by: a priority at every task
/// ([`resolve_priorities`]), and under dual priority a promotion time at every hard task that has a safe one. What the file gives
/// stays.
///
/// # Errors
/// As [`resolve_priorities`].
pub fn resolve(system: &System) -> Result<System, AnalysisError> {
    resolve_priorities(system).map(promotion_times::fill)
}

/// The tasks of one processor by rising key, tasks without one last.
fn by_key<K: Ord>(system: &System, cpu: CpuId, key: impl Fn(TaskId) -> Option<K>) -> Vec<TaskId> {
    let mut order: Vec<TaskId> = system.hard_tasks_on(cpu).map(|(id, _)| id).collect();
    order.sort_by_key(|&id| {
        let key = key(id);
        (key.is_none(), key)
    });
    order
}

/// Audsley's order of one processor's tasks, most important first.
fn audsley(system: &System, cpu: CpuId) -> Result<Vec<TaskId>, AnalysisError> {
    let options = Options::default();
    let mut model = CpuModel::new(system, cpu)?;
    if crate::waiting::has_waits(&model) {
        return Err(AnalysisError::outside(
            "system.priorities",
            "Audsley's search needs tests that do not depend on the order of more important tasks; answers of devices do",
            "use priorities = \"deadline-monotonic\"",
        ));
    }
    let count = model.tasks.len();
    for task in &mut model.tasks {
        task.priority = Some(Priority::new(count as i64 + 1));
    }
    let mut order = Vec::with_capacity(count);
    let mut left: Vec<usize> = (0..count).collect();
    for level in 1..=count {
        let mut best: Option<(u64, usize)> = None;
        for &index in left.iter().rev() {
            model.tasks[index].priority = Some(Priority::new(level as i64));
            let excess = fixed_priority::excess(&model, index, &options)?;
            model.tasks[index].priority = Some(Priority::new(count as i64 + 1));
            if best.is_none_or(|(least, _)| excess < least) {
                best = Some((excess, index));
            }
            if excess == 0 {
                break;
            }
        }
        let Some((_, index)) = best else { break };
        model.tasks[index].priority = Some(Priority::new(level as i64));
        left.retain(|&other| other != index);
        order.push(model.tasks[index].id);
    }
    order.reverse();
    Ok(order)
}
