//! EDF-VD of a system: its virtual deadlines.

use super::edf_vd::{EdfLevel, shorten};
use super::{Obstacle, Set, concerns, degraded, low_jobs_finish};
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use horolog_model::{Criticality, Policy, System, TaskId};
use horolog_time::Span;
use num_traits::One;

/// What of the system EDF-VD does not know.
pub(super) fn obstacle(system: &System) -> Option<Obstacle> {
    let platform = system.platform();
    if !platform.release_latency_bound().is_zero() || platform.tick.is_some() {
        return Some("under EDF, jobs are noticed late (a release latency, a tick)".to_owned());
    }
    if platform.timer_interrupt.is_some_and(|interrupt| !interrupt.is_zero()) {
        return Some("under EDF, timer interrupts take the processor".to_owned());
    }
    if low_jobs_finish(system) {
        return Some("under EDF, low jobs that are there at the change finish".to_owned());
    }
    let why = |task: &horolog_model::Task| {
        if task.deadline != task.separation() {
            Some("has a deadline that is not its period")
        } else if !task.jitter.is_zero() {
            Some("has release jitter")
        } else if degraded(system, task).is_some() {
            Some("goes on with less in the high mode")
        } else {
            None
        }
    };
    system.tasks().iter().find_map(|task| Some(format!("under EDF, `{}` {}", task.name, why(task)?)))
}

/// The set of a processor, in the order of `set`.
pub(crate) fn levels(set: &Set) -> Vec<EdfLevel> {
    let level = |(_, _, level): &(TaskId, _, super::LevelTask)| EdfLevel {
        period: level.period,
        low: level.low,
        high: level.high,
    };
    set.tasks.iter().map(level).collect()
}

/// Whether a task of the set has a virtual deadline that the file gives.
fn are_given(system: &System, set: &Set) -> bool {
    set.tasks.iter().any(|(id, ..)| system.task(*id).virtual_deadline().is_some())
}

/// The system with a virtual deadline at every high task of a processor whose file gives none there, where EDF-VD finds some.
pub(crate) fn fill(system: System) -> Result<System, AnalysisError> {
    if system.policy() != Policy::Edf || !concerns(&system) || super::obstacle(&system).is_some() {
        return Ok(system);
    }
    let mut draft = system.to_draft();
    for cpu in system.platform().cpus.iter() {
        let model = CpuModel::of(&system, cpu)?;
        let set = Set::new(&system, &model)?;
        if are_given(&system, &set) {
            continue;
        }
        let Some(found) = shorten(&levels(&set), Options::default().effort) else { continue };
        for ((id, ..), deadline) in set.tasks.iter().zip(found.deadlines) {
            let task = &mut draft.tasks[id.index()];
            if let Some(Criticality::High { virtual_deadline, .. }) = &mut task.criticality
                && !found.factor.is_one()
            {
                *virtual_deadline = Some(Span::from_ns(deadline).max(task.wcet));
            }
        }
    }
    System::new(draft).map_err(AnalysisError::model)
}
