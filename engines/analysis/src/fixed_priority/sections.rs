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
use crate::cpu_model::{CpuModel, Held};
use crate::error::AnalysisError;
use horolog_model::Priority;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A section that blocks, by the place of its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocking {
    pub(crate) task: usize,
    pub(crate) section: Held,
}

/// The sections of one processor with the ceilings of what they hold.
pub(crate) struct Sections<'a> {
    cpu: &'a CpuModel,
    /// By the place of the resource.
    ceilings: BTreeMap<usize, Priority>,
    /// With the priority of its task and its ceiling: the longest first, among equals in the order of the file.
    longest_first: Vec<(Blocking, Priority, Priority)>,
}

impl<'a> Sections<'a> {
    pub(crate) fn of(cpu: &'a CpuModel) -> Result<Sections<'a>, AnalysisError> {
        let mut ceilings: BTreeMap<usize, Priority> = BTreeMap::new();
        let mut longest_first = Vec::new();
        for (place, task) in cpu.tasks.iter().enumerate().filter(|(_, task)| !task.sections.is_empty()) {
            let own = priority_of(task)?;
            for &section in &task.sections {
                let ceiling = ceilings.entry(section.resource).or_insert(own);
                if own.is_more_important_than(*ceiling) {
                    *ceiling = own;
                }
                longest_first.push((Blocking { task: place, section }, own, own));
            }
        }
        for (blocking, _, ceiling) in &mut longest_first {
            *ceiling = ceilings[&blocking.section.resource];
        }
        longest_first.sort_by_key(|(blocking, ..)| Reverse(blocking.section.length));
        Ok(Sections { cpu, ceilings, longest_first })
    }

    /// The longest section that can block the task at `index`, the first one among equals.
    pub(crate) fn blocking(&self, index: usize) -> Result<Option<Blocking>, AnalysisError> {
        if self.longest_first.is_empty() {
            return Ok(None);
        }
        let task = priority_of(&self.cpu.tasks[index])?;
        let can_block = |(_, own, ceiling): &&(Blocking, Priority, Priority)| {
            task.is_more_important_than(*own) && !task.is_more_important_than(*ceiling)
        };
        Ok(self.longest_first.iter().find(can_block).map(|(blocking, ..)| *blocking))
    }

    /// Whether the job of a task may hold a resource to its very end above its own priority.
    pub(crate) fn ends_above(&self, index: usize) -> Result<bool, AnalysisError> {
        let task = &self.cpu.tasks[index];
        let own = priority_of(task)?;
        let mut last = task.sections.iter().filter(|held| held.from + held.length >= task.bare_wcet);
        Ok(last.any(|held| self.ceilings[&held.resource].is_more_important_than(own)))
    }
}
