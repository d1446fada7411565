//! Resources of one processor, from the words of decisions 0009 and 0019: who holds what, which places are lifted, who
//! has to wait for whom before he begins.

use super::What;
use super::group::{Group, JobId, Pending};
use super::order::{Place, number};
use super::tree::Child;
use horolog_model::{AtExhaustion, Protocol, ServerKind, System};

/// What one resource is to a processor.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    holder: Option<JobId>,
    /// Jobs that wait for it, the longest wait first.
    queue: Vec<Pending>,
}

/// The resources of a system, by their places.
pub(super) fn locks_of(system: &System) -> Vec<Lock> {
    vec![Lock::default(); system.resources().len()]
}

/// A section of a job: which resource, and from when to when in units of execution.
struct Section {
    place: usize,
    resource: usize,
    from: u64,
    end: u64,
}

impl Group<'_> {
    fn sections(&self, task: usize) -> Vec<Section> {
        let sections = self.task(task).sections.iter().enumerate();
        let section = |(place, section): (usize, &horolog_model::Section)| Section {
            place,
            resource: self.system.resources().iter().position(|it| it.name == section.resource).unwrap_or(0),
            from: section.from.as_ns(),
            end: section.from.as_ns() + section.length.as_ns(),
        };
        sections.map(section).collect()
    }

    fn finishes(&self, resource: usize) -> bool {
        self.system.resources()[resource].at_exhaustion == AtExhaustion::Finish
    }

    /// What jobs hold: each resource with its holder.
    fn held(&self) -> impl Iterator<Item = (usize, JobId)> + '_ {
        self.locks.iter().enumerate().filter_map(|(resource, lock)| Some((resource, lock.holder?)))
    }

    /// Whether a job holds a resource with which it goes on without budget.
    pub(super) fn may_finish(&self, id: JobId) -> bool {
        self.held().any(|(resource, holder)| holder == id && self.finishes(resource))
    }

    /// Whether a job below a node holds such a resource while the node has no budget.
    pub(super) fn is_in_debt(&self, node: usize) -> bool {
        let has_budget = match self.nodes[node].server.map(|at| self.system.servers()[at].kind) {
            Some(kind) => kind.capacity().is_none() || self.nodes[node].rules.is_at_its_own(),
            None => true,
        };
        let is_below = |id: JobId| self.path(id.0).contains(&node);
        !has_budget && self.held().any(|(resource, holder)| self.finishes(resource) && is_below(holder))
    }

    /// The place that a node has with budget.
    pub(super) fn own_place(&self, node: usize) -> Place {
        match self.nodes[node].server.map(|at| self.system.servers()[at].kind) {
            Some(ServerKind::Background) | None => Place::BACKGROUND,
            Some(kind) => {
                kind.priority().map_or(Place::BACKGROUND, |priority| Place::priority(number(priority)))
            }
        }
    }

    /// Sections that end with what the running job has executed; where the job ends, all that it holds. Inner ones first.
    pub(super) fn end_sections(&mut self, now: u64, id: JobId, is_whole_job: bool) {
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else { return };
        let total = self.pending[at].total;
        let mut over: Vec<Section> = self.sections(id.0);
        over.retain(|section| self.pending[at].holds.contains(&section.place));
        over.retain(|section| is_whole_job || section.end <= total);
        // Of two that are alike the one that is written first is the outer one.
        over.sort_by_key(|section| {
            (section.end, std::cmp::Reverse(section.from), std::cmp::Reverse(section.place))
        });
        for section in over {
            for pending in self.pending.iter_mut().filter(|pending| pending.id == id) {
                pending.holds.retain(|&place| place != section.place);
            }
            self.locks[section.resource].holder = None;
            self.note(now, What::Unlock(section.resource), 0, id);
            self.call_again(now, section.resource);
            self.update(now);
        }
    }

    fn protocol(&self, resource: usize) -> Protocol {
        self.system.resources()[resource].protocol
    }

    /// The highest ceiling under the original ceiling of what other jobs hold, and who holds it.
    fn system_ceiling(&self, besides: JobId) -> Option<(i64, JobId)> {
        let those = self.held().filter(|&(resource, holder)| {
            self.protocol(resource) == Protocol::OriginalCeiling && holder != besides
        });
        let ceiling = |resource: usize| {
            let name = &self.system.resources()[resource].name;
            let tasks = self.system.tasks().iter().zip(&self.priorities);
            let users = tasks.filter(|(task, _)| task.sections.iter().any(|it| it.resource == *name));
            users.map(|(_, priority)| *priority).max()
        };
        those.filter_map(|(resource, holder)| Some((ceiling(resource)?, holder))).max_by_key(|it| it.0)
    }

    /// Whether a job is important enough for what others hold under the original ceiling.
    fn may_lock(&self, id: JobId) -> bool {
        self.system_ceiling(id).is_none_or(|(ceiling, _)| self.priorities[id.0] > ceiling)
    }

    /// A resource is free: who waits and could have what it waits for now is ready again, in the order of their waits.
    fn call_again(&mut self, now: u64, resource: usize) {
        let is_original = self.protocol(resource) == Protocol::OriginalCeiling;
        let concerned = |other: usize| match is_original {
            true => self.protocol(other) == Protocol::OriginalCeiling && self.locks[other].holder.is_none(),
            false => other == resource,
        };
        let mut calls: Vec<(u64, usize, JobId)> = Vec::new();
        for other in (0..self.locks.len()).filter(|&other| concerned(other)) {
            let waiting = self.locks[other].queue.iter();
            let waiting = waiting.filter(|waiting| !is_original || self.may_lock(waiting.id));
            calls.extend(waiting.map(|waiting| (waiting.order, other, waiting.id)));
        }
        calls.sort_unstable();
        for (_, other, id) in calls {
            let Some(at) = self.locks[other].queue.iter().position(|waiting| waiting.id == id) else {
                continue;
            };
            let mut ready = self.locks[other].queue.remove(at);
            ready.order = self.next_order();
            self.pending.push(ready);
            // Each stands behind who was called before, with what is above it.
            self.update(now);
        }
    }

    /// Sections that begin where the running job is begin now; whether there was one.
    pub(super) fn begin_sections(&mut self, now: u64, jobs: &[Vec<super::Job>]) -> bool {
        let Some(id) = self.slots[0].running else { return false };
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else { return false };
        let pending = &self.pending[at];
        // What begins where a segment ends begins behind it.
        if pending.executed == jobs[id.0][id.1].segments[pending.segment] {
            return false;
        }
        let mut here = self.sections(id.0);
        here.retain(|section| section.from == pending.total && section.place_is_new(pending));
        here.sort_by_key(|section| std::cmp::Reverse(section.end));
        let begins = !here.is_empty();
        for section in here {
            let is_original = self.protocol(section.resource) == Protocol::OriginalCeiling;
            let is_barred = is_original && !self.may_lock(id);
            let lock = &mut self.locks[section.resource];
            if lock.holder.is_none() && !is_barred {
                lock.holder = Some(id);
                self.pending[at].holds.push(section.place);
                self.pending[at].begun.push(section.place);
                self.note(now, What::Lock(section.resource), 0, id);
                continue;
            }
            let mut waiting = self.pending.remove(at);
            waiting.order = self.next_order();
            self.locks[section.resource].queue.push(waiting);
            self.slots[0].running = None;
            self.note(now, What::Wait(section.resource), 0, id);
            break;
        }
        if begins {
            self.update(now);
        }
        begins
    }

    /// Whether a job waits for a resource.
    pub(super) fn waits(&self, task: usize) -> bool {
        self.locks.iter().flat_map(|lock| &lock.queue).any(|pending| pending.id.0 == task)
    }

    /// The children of a node that use a resource, or have users of it below them.
    fn users(&self, node: usize, resource: usize) -> Vec<Child> {
        let mut users = Vec::new();
        for task in 0..self.above.len() {
            if self.above[task].is_none() || !self.sections(task).iter().any(|it| it.resource == resource) {
                continue;
            }
            if let Some(child) = self.child_towards(node, task)
                && !users.contains(&child)
            {
                users.push(child);
            }
        }
        users
    }

    /// The child of a node below which a task stands, the task itself included.
    fn child_towards(&self, node: usize, task: usize) -> Option<Child> {
        let mut path = self.path(task);
        path.push(0);
        let place = path.iter().position(|&at| at == node)?;
        Some(if place == 0 { Child::Task(task) } else { Child::Node(path[place - 1]) })
    }

    fn own_place_of(&self, child: Child) -> Place {
        match child {
            Child::Task(task) => Place::priority(self.priorities[task]),
            Child::Node(node) => self.own_place(node),
        }
    }

    /// The place of a child of a node that orders by priorities, with what is held below it.
    pub(super) fn lifted(&self, node: usize, child: Child, own: Place) -> Place {
        let is_low = match child {
            Child::Task(_) => false,
            Child::Node(below) => {
                let kind = self.nodes[below].server.map(|at| self.system.servers()[at].kind);
                kind.is_some_and(|kind| kind.capacity().is_some())
                    && !self.nodes[below].rules.is_at_its_own()
                    && !self.is_in_debt(below)
            }
        };
        if is_low {
            return own;
        }
        let mut place = own;
        for (resource, holder) in self.held() {
            let users = self.users(node, resource);
            if self.child_towards(node, holder.0) == Some(child) {
                let waiting = &self.locks[resource].queue;
                let most = waiting.iter().map(|waiting| Place::priority(self.priorities[waiting.id.0])).max();
                match self.system.resources()[resource].protocol {
                    Protocol::NonPreemptive => place = Place::FIRST,
                    Protocol::Inheritance => place = place.max(most.map_or(own, Place::before_equals)),
                    Protocol::OriginalCeiling => {
                        let original = (0..self.locks.len())
                            .filter(|&it| self.protocol(it) == Protocol::OriginalCeiling);
                        let waiting = original.flat_map(|it| &self.locks[it].queue);
                        let kept = waiting.filter(|waiting| {
                            self.system_ceiling(waiting.id).is_some_and(|(_, by)| by == holder)
                        });
                        let most = kept.map(|waiting| Place::priority(self.priorities[waiting.id.0])).max();
                        place = place.max(most.map_or(own, Place::before_equals));
                    }
                    _ => {}
                }
            }
            if users.len() > 1 && self.child_towards(node, holder.0) == Some(child) {
                let ceiling = match self.system.resources()[resource].protocol {
                    Protocol::Ceiling => users.iter().map(|&user| self.own_place_of(user)).max(),
                    // This simulator schedules one processor, and knows no locks of several.
                    Protocol::Msrp | Protocol::Fslm | Protocol::Mrsp | Protocol::PreemptableFifo => None,
                    Protocol::Mpcp | Protocol::FmlpPlus | Protocol::Dpcp | Protocol::Omlp => None,
                    Protocol::TaskFair | Protocol::PhaseFair => None,
                    Protocol::NonPreemptive
                    | Protocol::Inheritance
                    | Protocol::OriginalCeiling
                    | Protocol::None => None,
                };
                place = place.max(ceiling.map_or(own, Place::before_equals));
            }
        }
        place
    }

    /// How urgent a child is below EDF: a relative deadline.
    fn relative_deadline(&self, child: Child) -> u64 {
        match child {
            Child::Task(task) => self.task(task).deadline.map_or(u64::MAX, |deadline| deadline.as_ns()),
            Child::Node(node) => match self.nodes[node].server.map(|at| self.system.servers()[at].kind) {
                Some(ServerKind::ConstantBandwidth { capacity, .. }) => capacity.period.as_ns(),
                Some(ServerKind::Background) => u64::MAX,
                _ => {
                    let tasks = (0..self.above.len()).filter(|&task| self.above[task] == Some(node));
                    let tasks = tasks.map(|task| self.relative_deadline(Child::Task(task)));
                    let nodes = (1..self.nodes.len()).filter(|&at| self.nodes[at].parent == Some(node));
                    let nodes = nodes.map(|at| self.relative_deadline(Child::Node(at)));
                    tasks.chain(nodes).min().unwrap_or(u64::MAX)
                }
            },
        }
    }

    /// Whether a job may be chosen at all: not where only those go on that hold something, nor beside what nothing preempts.
    pub(super) fn is_eligible(&self, pending: &Pending) -> bool {
        let in_debt = self.path(pending.id.0).iter().any(|&node| self.is_in_debt(node));
        // A holder that waits for another resource is in nobody's way.
        let is_kept_back = |(resource, holder): (usize, JobId)| {
            self.protocol(resource) == Protocol::NonPreemptive
                && holder != pending.id
                && self.pending.iter().any(|other| other.id == holder)
        };
        (!in_debt || self.may_finish(pending.id)) && !self.held().any(is_kept_back)
    }

    /// Whether the ceiling, at a node, of what is held below another child of it is no lower than a child's level.
    pub(super) fn is_below_a_ceiling(&self, node: usize, own: Child) -> bool {
        let level = self.relative_deadline(own);
        self.held().any(|(resource, holder)| {
            let users = self.users(node, resource);
            let theirs = self.child_towards(node, holder.0);
            let ceiling = match self.protocol(resource) {
                Protocol::Ceiling => users.iter().map(|&user| self.relative_deadline(user)).min(),
                Protocol::Msrp | Protocol::Fslm | Protocol::NonPreemptive => None,
                Protocol::Inheritance | Protocol::OriginalCeiling | Protocol::None => None,
                Protocol::Mpcp | Protocol::FmlpPlus | Protocol::TaskFair | Protocol::PhaseFair => None,
                Protocol::Mrsp | Protocol::Dpcp | Protocol::PreemptableFifo | Protocol::Omlp => None,
            };
            let is_other = theirs.is_some_and(|theirs| theirs != own);
            is_other && users.len() > 1 && ceiling.is_some_and(|it| level >= it)
        })
    }

    /// Whether the running job keeps the processor since its window is over and its section is not.
    pub(super) fn is_beyond_window(&self, id: JobId) -> bool {
        let mut nodes = self.path(id.0);
        nodes.push(0);
        let is_out = |&node: &usize| {
            self.child_towards(node, id.0).is_some_and(|child| !self.nodes[node].admits(child))
        };
        self.may_finish(id) && nodes.iter().any(is_out)
    }
}

impl Section {
    fn place_is_new(&self, pending: &Pending) -> bool {
        !pending.begun.contains(&self.place)
    }
}
