//! Locks across processors as a domain of their own (decisions 0018 and 0020): who holds each, and who waits for it, first in, first out, or the most
//! important job first.
//!
//! The machine of a processor learns of its own jobs alone that they wait, hold and let go. The queue belongs to the world. A [`Grant`] is
//! what leaves it: the resource has passed to the job that has waited longest, on whatever processor that is. Jobs that read may hold a
//! resource together (decision 0023).

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
    order: QueueOrder,
    /// The jobs that hold it, and behind them those that wait.
    line: VecDeque<Request>,
    /// So many of the line hold it: one, or some that read.
    holders: usize,
    /// By task, whether its jobs only read; empty where no job does.
    readers: Box<[bool]>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    task: TaskId,
    reads: bool,
}

/// Before whom of those that wait a request comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum QueueOrder {
    /// At the end of the line.
    #[default]
    Fifo,
    /// Before those that are less important.
    ByPriority,
    /// One that reads comes before every writer but the first of the line, and those that wait for that one, too, go with it.
    PhaseFair,
}

impl Queue {
    /// Where a request joins the line.
    fn place_of(&self, request: Request, priorities: &[i64]) -> usize {
        let of = |request: &Request| priorities[request.task.index()];
        match self.order {
            QueueOrder::ByPriority if self.holders > 0 => {
                let waiting = self.line.range(self.holders..);
                self.holders + waiting.take_while(|other| of(other) >= of(&request)).count()
            }
            QueueOrder::PhaseFair if request.reads => {
                let Some(writer) = self.line.iter().position(|other| !other.reads) else {
                    return self.line.len();
                };
                writer + 1 + self.line.range(writer + 1..).take_while(|other| other.reads).count()
            }
            _ => self.line.len(),
        }
    }

    /// How many of the line may hold the resource: its first, or those that read at its head.
    fn may_hold(&self) -> usize {
        match self.line.front() {
            Some(first) if first.reads => self.line.iter().take_while(|it| it.reads).count(),
            first => usize::from(first.is_some()),
        }
    }
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
            let order = match resource.protocol {
                Protocol::Mpcp => QueueOrder::ByPriority,
                Protocol::PhaseFair => QueueOrder::PhaseFair,
                _ => QueueOrder::Fifo,
            };
            let place = system.find_resource(&resource.name).unwrap_or(usize::MAX);
            let only_reads = |task| system.only_reads(task, place);
            let readers =
                resource.protocol.tells_readers().then(|| system.task_ids().map(only_reads).collect());
            Queue {
                is_global,
                suspends: resource.protocol.boosts(),
                order,
                line: VecDeque::with_capacity(users),
                holders: 0,
                readers: readers.unwrap_or_default(),
            }
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

    /// Who holds a resource, and behind him those that wait, in their order.
    pub fn line(&self, resource: u32) -> impl Iterator<Item = TaskId> + '_ {
        self.queues.get(resource as usize).into_iter().flat_map(|queue| queue.line.iter().map(|it| it.task))
    }

    /// The job of a task asks for a resource: whether it has it. Else it waits behind all others, or behind those that are no less important.
    pub fn request(&mut self, resource: u32, task: TaskId) -> bool {
        let priorities = &self.priorities;
        let Some(queue) = self.queues.get_mut(resource as usize) else { return false };
        let reads = queue.readers.get(task.index()).is_some_and(|&reads| reads);
        let place = queue.place_of(Request { task, reads }, priorities);
        queue.line.insert(place, Request { task, reads });
        let has_it = place < queue.may_hold();
        queue.holders += usize::from(has_it);
        has_it
    }

    /// The job of a task lets go of a resource; `grant` is told who has it since then, in the order of the line.
    pub fn release(&mut self, resource: u32, task: TaskId, mut grant: impl FnMut(Grant)) {
        let Some(queue) = self.queues.get_mut(resource as usize) else { return };
        let own = queue.line.iter().take(queue.holders).position(|it| it.task == task);
        let Some(own) = own else { return };
        queue.line.remove(own);
        let (before, now) = (queue.holders, queue.may_hold());
        queue.holders = now;
        for request in queue.line.range(before - 1..now) {
            grant(Grant { task: request.task, resource });
        }
    }
}
