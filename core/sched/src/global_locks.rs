//! Locks across processors as a domain of their own (decisions 0018, 0020 and 0029): who holds each, and who waits for it, first in, first out, or the most
//! important job first.
//!
//! The machine of a processor learns of its own jobs alone that they wait, hold and let go. The queue belongs to the world. A [`Grant`] is
//! what leaves it: the resource has passed to the job that has waited longest, on whatever processor that is. Jobs that read may hold a
//! resource together (decision 0023).

use horolog_model::{CpuId, Priority, Protocol, System, TaskId};
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
    /// The processors on which sections of others execute.
    agents: Vec<Agents>,
    /// Where of each processor one job at a time has a place in the queues.
    tokens: Tokens,
}

/// Who of each processor may have a place in the queues (decision 0029).
#[derive(Clone, Debug, Default)]
struct Tokens {
    /// By task, the place of its processor in `of`; empty where no resource is given so.
    cpu: Vec<usize>,
    of: Vec<Token>,
}

/// That of a processor.
#[derive(Clone, Debug, Default)]
struct Token {
    /// Whose job has it: it holds a resource, or is in the queue of one.
    holder: Option<TaskId>,
    /// Those that wait for it, the most important first; of equals the one that came first.
    waiting: Vec<Grant>,
}

/// The sections that execute on the processor of their resources (decision 0026), each at the ceiling of its resource.
#[derive(Clone, Debug)]
struct Agents {
    cpu: CpuId,
    /// Those that have begun: each has a higher ceiling than those before it. The last one executes.
    begun: Vec<(Grant, i64)>,
    /// Those that have not, the most important first; of equals the one that came first.
    waiting: Vec<Grant>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    is_global: bool,
    suspends: bool,
    asks_anew: bool,
    has_tokens: bool,
    order: QueueOrder,
    /// The jobs that hold it, and behind them those that wait.
    line: VecDeque<Request>,
    /// So many of the line hold it: one, or some that read.
    holders: usize,
    /// By task, whether its jobs only read; empty where no job does.
    readers: Box<[bool]>,
    /// Where its sections execute on a processor of its own: the place of that one among `agents`, and its ceiling.
    remote: Option<(usize, i64)>,
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

impl Agents {
    /// Whether a section of this importance may begin: it is above the ceilings of all that have begun.
    fn may_begin(&self, priority: i64) -> bool {
        self.begun.last().is_none_or(|&(_, ceiling)| priority > ceiling)
    }
}

impl Tokens {
    fn of(system: &System) -> Tokens {
        if !system.resources().iter().any(|resource| resource.protocol.has_tokens()) {
            return Tokens::default();
        }
        let mut cpus: Vec<CpuId> = Vec::new();
        let place = |task: &horolog_model::Task| {
            cpus.iter().position(|&cpu| cpu == task.cpu).unwrap_or_else(|| {
                cpus.push(task.cpu);
                cpus.len() - 1
            })
        };
        let cpu: Vec<usize> = system.tasks().iter().map(place).collect();
        let tasks = cpu.len();
        let token = |_| Token { holder: None, waiting: Vec::with_capacity(tasks) };
        Tokens { of: (0..cpus.len()).map(token).collect(), cpu }
    }

    /// The job of a task asks: whether it has the token of its processor. Else it waits for that.
    fn ask(&mut self, asked: Grant, priorities: &[i64]) -> bool {
        let token = &mut self.of[self.cpu[asked.task.index()]];
        if token.holder.is_none() {
            token.holder = Some(asked.task);
            return true;
        }
        let own = priorities[asked.task.index()];
        let place = token.waiting.iter().take_while(|it| priorities[it.task.index()] >= own).count();
        token.waiting.insert(place, asked);
        false
    }

    /// The job of a task has let go of what it held: who of its processor has the token now, and asks for what.
    fn pass(&mut self, task: TaskId) -> Option<Grant> {
        let token = &mut self.of[self.cpu[task.index()]];
        if token.holder != Some(task) {
            return None;
        }
        let next = (!token.waiting.is_empty()).then(|| token.waiting.remove(0));
        token.holder = next.map(|next| next.task);
        next
    }
}

impl GlobalLocks {
    /// Those of a system; nobody holds anything.
    #[must_use]
    pub fn new(system: &System) -> GlobalLocks {
        let uses =
            |task: &horolog_model::Task, name: &str| task.sections.iter().any(|it| it.resource == name);
        let priority = |task: &horolog_model::Task| task.priority.map_or(i64::MIN, Priority::number);
        let mut agents: Vec<Agents> = Vec::new();
        let queue = |resource: &horolog_model::Resource| {
            let is_global = resource.protocol.is_global();
            let users = system.tasks().iter().filter(|task| is_global && uses(task, &resource.name));
            let ceiling = users.clone().map(priority).max().unwrap_or(i64::MIN);
            let users = users.count();
            let remote = resource.cpu.filter(|_| resource.protocol.is_remote()).map(|cpu| {
                let known = agents.iter().position(|it| it.cpu == cpu).unwrap_or_else(|| {
                    let most = system.tasks().len();
                    let (begun, waiting) = (Vec::with_capacity(most), Vec::with_capacity(most));
                    agents.push(Agents { cpu, begun, waiting });
                    agents.len() - 1
                });
                (known, ceiling)
            });
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
                asks_anew: resource.protocol.asks_anew(),
                has_tokens: resource.protocol.has_tokens(),
                order,
                line: VecDeque::with_capacity(users),
                holders: 0,
                readers: readers.unwrap_or_default(),
                remote,
            }
        };
        GlobalLocks {
            queues: system.resources().iter().map(queue).collect(),
            priorities: system.tasks().iter().map(priority).collect(),
            agents,
            tokens: Tokens::of(system),
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

    /// Whether sections of a resource execute on its own processor, and their jobs are suspended until they have ended.
    #[inline]
    #[must_use]
    pub fn is_remote(&self, resource: u32) -> bool {
        self.queues.get(resource as usize).is_some_and(|queue| queue.remote.is_some())
    }

    /// The processors on which sections of other processors' jobs execute, and whose executes on each now.
    pub fn remote(&self) -> impl Iterator<Item = (CpuId, Option<TaskId>)> + '_ {
        self.agents.iter().map(|agents| (agents.cpu, agents.begun.last().map(|(grant, _)| grant.task)))
    }

    /// The job of a task asks for a resource: whether it has it. Else it waits behind all others, or behind those that are no less important.
    pub fn request(&mut self, resource: u32, task: TaskId) -> bool {
        let priorities = &self.priorities;
        let Some(queue) = self.queues.get_mut(resource as usize) else { return false };
        if let Some((place, ceiling)) = queue.remote {
            let (agents, own) = (&mut self.agents[place], priorities[task.index()]);
            let (grant, may_begin) = (Grant { task, resource }, agents.may_begin(own));
            if may_begin {
                agents.begun.push((grant, ceiling));
            } else {
                let behind =
                    agents.waiting.iter().take_while(|it| priorities[it.task.index()] >= own).count();
                agents.waiting.insert(behind, grant);
            }
            return may_begin;
        }
        if queue.has_tokens && !self.tokens.ask(Grant { task, resource }, priorities) {
            return false;
        }
        self.join(resource, task)
    }

    /// The job of a task comes into the queue of a resource; whether it has it.
    fn join(&mut self, resource: u32, task: TaskId) -> bool {
        let priorities = &self.priorities;
        let Some(queue) = self.queues.get_mut(resource as usize) else { return false };
        let reads = queue.readers.get(task.index()).is_some_and(|&reads| reads);
        let place = queue.place_of(Request { task, reads }, priorities);
        queue.line.insert(place, Request { task, reads });
        let has_it = place < queue.may_hold();
        queue.holders += usize::from(has_it);
        has_it
    }

    /// The job of a task that waits for a resource does so no more, where those that are preempted ask anew ([`Protocol::asks_anew`]). Whether it
    /// did, and the resource is such a one.
    pub fn withdraw(&mut self, resource: u32, task: TaskId) -> bool {
        let Some(queue) = self.queues.get_mut(resource as usize).filter(|queue| queue.asks_anew) else {
            return false;
        };
        let place = queue.line.range(queue.holders..).position(|it| it.task == task);
        place.is_some_and(|place| queue.line.remove(queue.holders + place).is_some())
    }

    /// The job of a task lets go of a resource; `grant` is told who has it since then, in the order of the line.
    pub fn release(&mut self, resource: u32, task: TaskId, mut grant: impl FnMut(Grant)) {
        let Some(queue) = self.queues.get_mut(resource as usize) else { return };
        if let Some((place, _)) = queue.remote {
            return self.end_section(place, Grant { task, resource }, grant);
        }
        let own = queue.line.iter().take(queue.holders).position(|it| it.task == task);
        let Some(own) = own else { return };
        queue.line.remove(own);
        let (before, now) = (queue.holders, queue.may_hold());
        queue.holders = now;
        for request in queue.line.range(before - 1..now) {
            grant(Grant { task: request.task, resource });
        }
        if !queue.has_tokens {
            return;
        }
        if let Some(next) = self.tokens.pass(task)
            && self.join(next.resource, next.task)
        {
            grant(next);
        }
    }

    /// A section on the processor of its resource has ended; the most important that waits begins where it is above the ceilings of those that go on.
    fn end_section(&mut self, place: usize, ended: Grant, mut grant: impl FnMut(Grant)) {
        let Self { agents, queues, priorities, .. } = self;
        let agents = &mut agents[place];
        let Some(own) = agents.begun.iter().position(|(it, _)| *it == ended) else { return };
        let _ = agents.begun.remove(own);
        let Some(&next) = agents.waiting.first() else { return };
        if agents.may_begin(priorities[next.task.index()]) {
            let _ = agents.waiting.remove(0);
            let ceiling = queues[next.resource as usize].remote.map_or(i64::MIN, |(_, ceiling)| ceiling);
            agents.begun.push((next, ceiling));
            grant(next);
        }
    }
}
