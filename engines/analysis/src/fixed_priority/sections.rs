//! Blocking by sections under the immediate ceiling protocol, for preemptive tasks without servers.
//!
//! A job that holds a resource has the resource's ceiling as its priority, the most important priority among the tasks that use it. A less
//! important job can delay a task i only from within a section whose ceiling is at or above i; it must have locked before i's
//! busy period began, and one job alone can have: while it has that ceiling no other less important one gets the processor.
//! So B_i is one section, the longest of such:
//!
//! ```text
//! B_i = max { length(s) : s a section of a task less important than i, ceiling(resource of s) at or above i }
//! ```
//!
//! Of nested sections each counts by its own ceiling, so the outer one counts where its ceiling reaches i. Source: `sha90` (at most
//! one critical section); the ceiling that acts at once blocks as long as the one that acts when another locks.
//!
//! With a continuous time the bound is a supremum: the section begins any little before the busy period. It is the least bound
//! where the task itself holds nothing to its end above its own priority: who is released in that last section comes after it.

use super::priority_of;
use crate::cpu_model::{CpuModel, CpuTask, Held};
use crate::error::AnalysisError;

/// A section that blocks, by the place of its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocking {
    pub(crate) task: usize,
    pub(crate) section: Held,
}

/// The longest section that can block the task at `index`, the first one among equals.
pub(crate) fn blocking_section(cpu: &CpuModel, index: usize) -> Result<Option<Blocking>, AnalysisError> {
    let own = priority_of(&cpu.tasks[index])?;
    let mut reaching: Vec<usize> = Vec::new();
    for task in &cpu.tasks {
        if !task.sections.is_empty() && !own.is_more_important_than(priority_of(task)?) {
            reaching.extend(task.sections.iter().map(|section| section.resource));
        }
    }
    let mut longest: Option<Blocking> = None;
    for (place, task) in cpu.tasks.iter().enumerate() {
        if task.sections.is_empty() || !own.is_more_important_than(priority_of(task)?) {
            continue;
        }
        for &section in task.sections.iter().filter(|section| reaching.contains(&section.resource)) {
            if longest.is_none_or(|longest| section.length > longest.section.length) {
                longest = Some(Blocking { task: place, section });
            }
        }
    }
    Ok(longest)
}

/// Whether the job of a task may hold a resource to its very end above its own priority.
pub(crate) fn ends_above(cpu: &CpuModel, index: usize) -> Result<bool, AnalysisError> {
    let task = &cpu.tasks[index];
    let own = priority_of(task)?;
    let is_last = |held: &&Held| held.from + held.length >= task.bare_wcet;
    for held in task.sections.iter().filter(is_last) {
        let uses = |other: &CpuTask| other.sections.iter().any(|section| section.resource == held.resource);
        for other in cpu.tasks.iter().filter(|other| uses(other)) {
            if priority_of(other)?.is_more_important_than(own) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
