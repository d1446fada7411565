//! Blocking by sections, for preemptive tasks, and for servers that serve none of the tasks with sections.
//!
//! **Servers.** A server holds nothing. So what blocks it is what blocks a task of its priority that has no sections. To the tasks it is a load like
//! any other.
//!
//! **Immediate ceiling.** A job that holds a resource has the resource's ceiling as its priority, the most important priority among the tasks that use it. A less
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
//! A section that nothing preempts is one whose ceiling is the most important priority of its processor.
//!
//! **Inheritance.** A job that holds a resource has the priority of the most important job that waits for it. A less important job can delay i
//! only from within a section that it has begun before i's busy period, on a resource that i or a more important task uses: with anything
//! else it stays below i. Such sections do not nest, so each less important job has begun one at most, and each resource has one holder:
//!
//! ```text
//! B_i = min { sum over less important tasks of their longest such section, sum over such resources of the longest such section on them }
//! ```
//!
//! That is added to what ceilings and spin locks block. Each section of i under inheritance adds two context switches to i's execution: to the
//! holder and back. Source: `sha90`, for sections that do not nest.
//!
//! **Original ceiling.** A job gets a resource only if it is more important than the ceilings of all that other jobs hold. So of two less important jobs
//! that have begun sections before i's busy period, one is more important than the ceiling of what the other holds: one section blocks, as under
//! the immediate ceiling, and beside one under that. A job is suspended once, at its first section: two context switches.
//!
//! **Spin locks.** A spin lock (decision 0018) has no ceiling: a job that holds it stands above everybody, and one that waits for it stands at the spin
//! priority S of its processor. So every section of a less important task on one blocks, for tasks above S without the wait for it:
//!
//! ```text
//! local   = max { length(s) : s local, of a task less important than i, ceiling at or above i }
//! above S: B_i = max { local, length(g) + max { length(s) : s as for local, of a task above S } }
//! else:    B_i = max { local, wait(g) + length(g) }        g a section on a spin lock of a task less important than i
//! ```
//!
//! Under the multiprocessor resource sharing protocol a job has the local ceiling from its request on, so that wait(g) + length(g) counts where that ceiling is at or above i,
//! and one of all blocks, as under the immediate ceiling. Source: `burns13`.
//!
//! Under preemptable FIFO spinning a job that waits has its own priority, and no lock comes to it while it is preempted. So one that holds alone blocks, and
//! no other section does beside it: `B_i = max { local, length(g) }`. Source: `wieder13`.
//!
//! Above S both may block: a task above S has preempted the job that spins and holds a local resource when i comes, and the lock comes to
//! the job that spins while i executes. A second lock cannot: one job of a processor waits for or holds one.
//!
//! With a continuous time the bound is a supremum: the section begins any little before the busy period. It is the least bound
//! where the task itself holds nothing to its end above its own priority: who is released in that last section comes after it.

use super::priority_of;
use crate::cpu_model::SpinsAt;
use crate::cpu_model::{CpuModel, Held};
use crate::error::AnalysisError;
use horolog_model::{Priority, Protocol};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A section that blocks, by the place of its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocking {
    pub(crate) task: usize,
    pub(crate) section: Held,
}

/// What blocks a task: sections of less important ones, and for how long.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Blocked {
    /// Each with the time for which it blocks.
    pub(crate) by: Vec<(Blocking, u64)>,
}

impl Blocked {
    pub(crate) fn time(&self) -> u64 {
        self.by.iter().fold(0, |sum: u64, (_, time)| sum.saturating_add(*time))
    }
}

/// The sections of one processor with the ceilings of what they hold.
pub(crate) struct Sections<'a> {
    cpu: &'a CpuModel,
    /// By the place of the resource.
    ceilings: BTreeMap<usize, Priority>,
    /// With the priority of its task and its ceiling: the longest first, among equals in the order of the file.
    longest_first: Vec<(Blocking, Priority, Priority)>,
    /// Those on spin locks, with the priority of their task.
    spinning: Vec<(Blocking, Priority)>,
    /// Those under inheritance, with the priority of their task.
    inherited: Vec<(Blocking, Priority)>,
    /// Those under the original ceiling, with the priority of their task.
    barring: Vec<(Blocking, Priority)>,
}

impl<'a> Sections<'a> {
    pub(crate) fn of(cpu: &'a CpuModel) -> Result<Sections<'a>, AnalysisError> {
        let mut ceilings: BTreeMap<usize, Priority> = BTreeMap::new();
        let (mut longest_first, mut spinning, mut inherited) = (Vec::new(), Vec::new(), Vec::new());
        let mut barring = Vec::new();
        for (place, task) in cpu.tasks.iter().enumerate().filter(|(_, task)| !task.sections.is_empty()) {
            let own = priority_of(task)?;
            for &section in &task.sections {
                let ceiling = ceilings.entry(section.resource).or_insert(own);
                if own.is_more_important_than(*ceiling) {
                    *ceiling = own;
                }
                let blocking = Blocking { task: place, section };
                if section.spin.is_some() {
                    spinning.push((blocking, own));
                } else if section.protocol == Protocol::OriginalCeiling {
                    barring.push((blocking, own));
                } else if section.protocol.suspends() {
                    inherited.push((blocking, own));
                } else {
                    longest_first.push((blocking, own, own));
                }
            }
        }
        let keeps = longest_first.iter().filter(|(it, ..)| it.section.protocol == Protocol::NonPreemptive);
        let kept: Vec<usize> = keeps.map(|(it, ..)| it.section.resource).collect();
        if !kept.is_empty() {
            let mut most = longest_first[0].1;
            for task in &cpu.tasks {
                let own = priority_of(task)?;
                most = if own.is_more_important_than(most) { own } else { most };
            }
            for place in cpu.servers.iter().filter_map(|server| server.kind.priority()) {
                most = if place.is_more_important_than(most) { place } else { most };
            }
            ceilings.extend(kept.into_iter().map(|resource| (resource, most)));
        }
        for (blocking, _, ceiling) in &mut longest_first {
            *ceiling = ceilings[&blocking.section.resource];
        }
        longest_first.sort_by_key(|(blocking, ..)| Reverse(blocking.section.length));
        Ok(Sections { cpu, ceilings, longest_first, spinning, inherited, barring })
    }

    /// What blocks work of a server at a place.
    pub(crate) fn blocked_at(&self, place: Priority) -> Blocked {
        let local = self.local(place).map(|one| (one, one.section.length));
        let others = self.barring(place).into_iter().chain(self.inherited(place));
        Blocked { by: local.into_iter().chain(others).collect() }
    }

    /// What blocks the task at `index`.
    pub(crate) fn blocked(&self, index: usize) -> Result<Blocked, AnalysisError> {
        let local = self.blocking(index)?;
        let alone = |one: Blocking| Blocked { by: vec![(one, one.section.length)] };
        let mut worst = local.map_or_else(Blocked::default, alone);
        let own = priority_of(&self.cpu.tasks[index])?;
        let switches = self.cpu.context_switch.saturating_mul(2);
        for &(one, priority) in &self.spinning {
            let Some((wait, at)) = one.section.spin.filter(|_| own.is_more_important_than(priority)) else {
                continue;
            };
            let length = one.section.length;
            let blocked = match at {
                SpinsAt::Priority(at) if own.is_more_important_than(at) => {
                    // The lock comes to it in the middle of this job: a switch there and one back.
                    let beside = self.local_above(index, at)?;
                    let by = beside.map(|beside| (beside, beside.section.length));
                    Blocked { by: by.into_iter().chain([(one, length.saturating_add(switches))]).collect() }
                }
                SpinsAt::Ceiling if own.is_more_important_than(self.ceilings[&one.section.resource]) => {
                    continue;
                }
                // While it waits a more important job preempts it, and it has no place in the queue then.
                SpinsAt::Own => Blocked { by: vec![(one, length)] },
                SpinsAt::Ceiling | SpinsAt::Priority(_) | SpinsAt::Highest => {
                    Blocked { by: vec![(one, wait.saturating_add(length))] }
                }
            };
            if blocked.time() > worst.time() {
                worst = blocked;
            }
        }
        worst.by.extend(self.barring(own));
        worst.by.extend(self.inherited(own));
        Ok(worst)
    }

    /// The longest section under the original ceiling of a less important task that reaches a task.
    fn barring(&self, own: Priority) -> Option<(Blocking, u64)> {
        let reaches = |(one, priority): &&(Blocking, Priority)| {
            own.is_more_important_than(*priority)
                && !own.is_more_important_than(self.ceilings[&one.section.resource])
        };
        let longest = self.barring.iter().filter(reaches).map(|&(one, _)| one);
        longest.max_by_key(|one| one.section.length).map(|one| (one, one.section.length))
    }

    /// What less important jobs execute at the priority of a task or above, since such jobs wait for them.
    fn inherited(&self, own: Priority) -> Vec<(Blocking, u64)> {
        let (mut by_task, mut by_resource) = (BTreeMap::new(), BTreeMap::new());
        for &(one, priority) in &self.inherited {
            let reaches = !own.is_more_important_than(self.ceilings[&one.section.resource]);
            if !own.is_more_important_than(priority) || !reaches {
                continue;
            }
            let keep_longest = |most: &mut Blocking| {
                if one.section.length > most.section.length {
                    *most = one;
                }
            };
            by_task.entry(one.task).and_modify(keep_longest).or_insert(one);
            by_resource.entry(one.section.resource).and_modify(keep_longest).or_insert(one);
        }
        let listed = |by: BTreeMap<usize, Blocking>| Blocked {
            by: by.into_values().map(|one| (one, one.section.length)).collect(),
        };
        let (by_task, by_resource) = (listed(by_task), listed(by_resource));
        if by_task.time() <= by_resource.time() { by_task.by } else { by_resource.by }
    }

    /// The longest local section that can block the task at `index` of tasks more important than `at`.
    fn local_above(&self, index: usize, at: Priority) -> Result<Option<Blocking>, AnalysisError> {
        let task = priority_of(&self.cpu.tasks[index])?;
        let can_block = |(_, own, ceiling): &&(Blocking, Priority, Priority)| {
            own.is_more_important_than(at)
                && task.is_more_important_than(*own)
                && !task.is_more_important_than(*ceiling)
        };
        Ok(self.longest_first.iter().find(can_block).map(|(blocking, ..)| *blocking))
    }

    /// The longest section on a local resource that can block the task at `index`, the first one among equals.
    pub(crate) fn blocking(&self, index: usize) -> Result<Option<Blocking>, AnalysisError> {
        if self.longest_first.is_empty() {
            return Ok(None);
        }
        Ok(self.local(priority_of(&self.cpu.tasks[index])?))
    }

    fn local(&self, place: Priority) -> Option<Blocking> {
        let can_block = |(_, own, ceiling): &&(Blocking, Priority, Priority)| {
            place.is_more_important_than(*own) && !place.is_more_important_than(*ceiling)
        };
        self.longest_first.iter().find(can_block).map(|(blocking, ..)| *blocking)
    }

    /// Whether the job of a task may hold a resource to its very end above its own priority.
    pub(crate) fn ends_above(&self, index: usize) -> Result<bool, AnalysisError> {
        let task = &self.cpu.tasks[index];
        let own = priority_of(task)?;
        let mut last = task.sections.iter().filter(|held| held.from + held.length >= task.bare_wcet);
        Ok(last.any(|held| self.ceilings[&held.resource].is_more_important_than(own)))
    }
}
