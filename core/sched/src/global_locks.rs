//! Locks across processors as a domain of their own (decisions 0018 and 0020): who holds each, and who waits for it, first in, first out, or the most
//! important job first.
//!
//! The machine of a processor learns of its own jobs alone that they wait, hold and let go. The queue belongs to the world. A [`Grant`] is
//! what leaves it: the resource has passed to the job that has waited longest, on whatever processor that is.

use horolog_model::{Priority, Protocol, System, TaskId};
use std::collections::VecDeque;

/// A resource has passed to a job that waited for it.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Whose job holds it from now on.
    pub task: TaskId,
    /// Which resource of the system.
    pub resource: u32,
}

/// The locks across processors of a system.
#[derive(Clone, Debug, Default)]
pub struct GlobalLocks {
    /// By resource; those of local protocols stay empty.
    queues: Vec<Queue>,
    /// By task.
    priorities: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    is_global: bool,
    suspends: bool,
    by_priority: bool,
    holder: Option<TaskId>,
    waiting: VecDeque<TaskId>,
}

impl GlobalLocks {
    /// Those of a system; nobody holds anything.
    #[must_use]
    pub fn new(system: &System) -> GlobalLocks {
        let uses =
            |task: &horolog_model::Task, name: &str| task.sections.iter().any(|it| it.resource == name);
        let queue = |resource: &horolog_model::Resource| {
            let is_global = resource.protocol.is_global();
            let users = system.tasks().iter().filter(|task| is_global && uses(task, &resource.name)).count();
            let by_priority = resource.protocol == Protocol::Mpcp;
            let suspends = resource.protocol.boosts();
            Queue { is_global, suspends, by_priority, holder: None, waiting: VecDeque::with_capacity(users) }
        };
        let priority = |task: &horolog_model::Task| task.priority.map_or(i64::MIN, Priority::number);
        GlobalLocks {
            queues: system.resources().iter().map(queue).collect(),
            priorities: system.tasks().iter().map(priority).collect(),
        }
    }

    /// Whether a resource is given by this queue, and not by the machine of a processor.
    #[inline]
    #[must_use]
    pub fn is_global(&self, resource: u32) -> bool {
        self.queues.get(resource as usize).is_some_and(|queue| queue.is_global)
    }

    /// Whether jobs that wait for a resource are suspended. Else they spin.
    #[inline]
    #[must_use]
    pub fn suspends(&self, resource: u32) -> bool {
        self.queues.get(resource as usize).is_some_and(|queue| queue.suspends)
    }

    /// The job of a task asks for a resource: whether it has it. Else it waits behind all others, or behind those that are no less important.
    pub fn request(&mut self, resource: u32, task: TaskId) -> bool {
        let priorities = &self.priorities;
        let Some(queue) = self.queues.get_mut(resource as usize) else { return false };
        if queue.holder.is_none() {
            queue.holder = Some(task);
            return true;
        }
        let own = priorities[task.index()];
        let behind = queue.waiting.partition_point(|other| priorities[other.index()] >= own);
        let place = if queue.by_priority { behind } else { queue.waiting.len() };
        queue.waiting.insert(place, task);
        false
    }

    /// The holder lets go of a resource; who has it now, where somebody waited.
    pub fn release(&mut self, resource: u32) -> Option<Grant> {
        let queue = self.queues.get_mut(resource as usize)?;
        queue.holder = queue.waiting.pop_front();
        queue.holder.map(|task| Grant { task, resource })
    }
}
