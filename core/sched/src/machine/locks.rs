//! Resources (decisions 0009, 0018, 0019 and 0020): who holds what, and the choice while something is held.
//!
//! Under the local immediate ceiling, this is what a held resource changes.
//! On the path from the root to a holder, every node below two children of which somebody uses the resource sees its ceiling in
//! its own order. Under fixed priorities the child with the holder is *lifted* to it; under EDF jobs that have not begun are *gated*
//! by it (the stack resource policy). Both change who is chosen and nothing else: demand, budgets and charges are what they are
//! without. So a processor on which nothing is held is chosen for as always, and one on which something is held goes through
//! [`Machine::pick_while_held`].
//!
//! Other protocols concern tasks directly below a root alone. A job that nothing may preempt comes before all there. Under inheritance a holder
//! has the priority of the most important job that waits, and comes before the equals of that. Under the original ceiling it is the holder of
//! the resource with the highest ceiling, whatever the others wait for.

use crate::desired::Rejected;
use crate::machine::dispatcher::{Dispatcher, Key, NONE, NodePolicy};
use crate::{Machine, Place};
use horolog_model::TaskId;
use horolog_time::Instant;
use std::collections::VecDeque;

/// The ceiling of a resource at one node.
#[derive(Clone, Debug)]
pub(crate) struct Ceiling {
    pub(crate) node: u32,
    /// The entities directly below the node that use the resource, or have users of it below them: two at least, and of a resource whose holders are
    /// helped one.
    pub(crate) users: Box<[u32]>,
    /// Under fixed priorities the level of the most important of them ([`crate::machine::dispatcher::Layout::level_end`]); under EDF the
    /// shortest of their relative deadlines.
    pub(crate) at: u64,
}

/// What jobs share by mutual exclusion.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// Whether a holder goes on where a budget above it has run out.
    pub(crate) finishes: bool,
    /// The task whose job holds it, or [`NONE`].
    pub(crate) holder: u32,
    /// Tasks whose jobs wait for it, the longest wait first.
    pub(crate) waiting: VecDeque<u32>,
    pub(crate) ceilings: Box<[Ceiling]>,
    /// How jobs wait for it where it is a spin lock across processors (decision 0018); `None`: they are suspended.
    pub(crate) spins: Option<Spins>,
    /// How its holder's priority is boosted, where other processors may hand it to a job that is suspended meanwhile (decision 0020).
    pub(crate) boost: Option<Boost>,
    /// Whether nothing preempts its holder.
    pub(crate) keeps: bool,
    /// Whether several jobs may hold it, those that read: each leaf says whether its own job does ([`crate::machine::leaf::Leaf::shares`]), and `holder`
    /// stays empty.
    pub(crate) is_shared: bool,
    /// Whether its holder has the priority of the most important job that waits.
    pub(crate) inherits: bool,
    /// Under the original ceiling, the tasks that use it: while it is held no job gets another such resource that is not more important than
    /// all of them. Else empty.
    pub(crate) bars: Box<[u32]>,
}

/// At which priority jobs spin for a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spins {
    /// Above every task of the processor.
    Highest,
    /// At the processor's spin priority.
    AtPriority,
    /// At the resource's ceiling on the processor, before that priority's tasks. Its holder stands there, too.
    AtCeiling,
    /// At its own priority, as one that executes: the machine need not know of it.
    AtOwn,
}

/// The order of jobs whose priority is boosted above all of their processor.
#[derive(Clone, Debug)]
pub(crate) enum Boost {
    /// Of each processor: how many priorities of the system are above those of the resource's users on other processors.
    ByCeiling(Box<[u64]>),
    /// Who has asked first.
    ByRequest,
    /// None here: the section executes on the processor of its resource, and its job is suspended from its request to its unlock.
    Elsewhere,
}

/// A job is ready again, to ask for the resource that it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Woken {
    /// Whose job.
    pub task: TaskId,
    /// Which resource of the system.
    pub resource: u32,
}

/// The resources of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    pub(crate) resources: Vec<Resource>,
    /// How many waits have begun, to number them.
    pub(crate) waits: u64,
    /// Who is ready again by the last unlock, the longest wait first.
    pub(crate) woken: Vec<Woken>,
    /// For each mode, how urgent each entity is below EDF: a relative deadline.
    pub(crate) levels: Vec<Box<[u64]>>,
    /// For each processor, how a job stands that spins at the spin priority; see [`Machine::lifted`]. Empty without spin locks.
    pub(crate) spin_at: Vec<u64>,
}

/// How a job stands that holds a spin lock: before everybody.
const BEFORE_ALL: u64 = 0;

/// Boosted jobs are below this number, each by its rank; all other jobs are above it.
const BOOSTED: u64 = 1 << 62;

/// So many waits and holds of a run are told apart.
const BITS_OF_WAITS: u32 = 40;

/// Where a job of a level is in the order; one less is before all of them.
pub(crate) const fn standing_at(level: u64) -> u64 {
    BOOSTED + 2 * level
}

/// Where a job is in the order that comes before all of a level.
pub(crate) const fn standing_before(level: u64) -> u64 {
    standing_at(level) - 1
}

/// Who may run below a node at all.
#[derive(Clone, Copy, Default)]
struct Only {
    /// Jobs that have begun.
    begun: bool,
    /// Jobs that hold a resource with which they go on in debt.
    finishing: bool,
}

/// Whether what is held keeps jobs of an EDF node from beginning, each by its own level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    ByCeilings,
}

/// The child of a node that goes first.
struct Best {
    position: u32,
    /// The deadline that orders it below EDF, 0 elsewhere.
    urgency: u64,
    /// Whether the running job is below it.
    is_running: bool,
    /// Who may run there.
    below: Only,
}

/// How a child stands in a node's order while something is held; less goes first.
type Standing = (u64, Key, u32);

impl Machine {
    /// The job of a task locks a resource, or waits for it.
    pub(crate) fn lock(&mut self, task: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get(task.index()).ok_or(Rejected::Unknown)?;
        let lock = self.locks.resources.get_mut(resource as usize).ok_or(Rejected::Unknown)?;
        if lock.boost.is_some() {
            return self.take_boosting(task, resource, now);
        }
        if !leaf.begun || leaf.blocked {
            return Err(Rejected::NotRunning);
        }
        if lock.holder == task.0 || leaf.shares == resource {
            return Err(Rejected::Held);
        }
        if lock.spins.is_some() {
            return self.take_spin_lock(task, resource, now);
        }
        let (is_free, bars) = (lock.holder == NONE, !lock.bars.is_empty());
        if is_free && !(bars && self.bar_of(task.0).is_some()) {
            self.take_resource(task, resource, now);
            return Ok(());
        }
        self.locks.resources[resource as usize].waiting.push_back(task.0);
        self.locks.waits += 1;
        let leaf = &mut self.leaves[task.index()];
        (leaf.waits_for, leaf.wait) = (resource, self.locks.waits);
        self.block(task, now)
    }

    /// The job of a task has a spin lock: at once, or since it was granted the lock that it spins for.
    fn take_spin_lock(&mut self, task: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        let (leaf, lock) = (&mut self.leaves[task.index()], &mut self.locks.resources[resource as usize]);
        let has_waited = leaf.spins_for == resource;
        if lock.holder != NONE || !has_waited && leaf.spins_for != NONE {
            return Err(Rejected::Held);
        }
        // Who may hold a shared lock together is what the queue of all processors says.
        *(if lock.is_shared { &mut leaf.shares } else { &mut lock.holder }) =
            if lock.is_shared { resource } else { task.0 };
        leaf.spins_for = NONE;
        leaf.count_held(lock.finishes, true);
        let node = leaf.node;
        self.processors[usize::from(leaf.processor)].held += u32::from(!has_waited);
        self.propagate(node, now);
        Ok(())
    }

    /// The job of a task has a resource that processors hand to each other: at once, or since it was granted what it is suspended for.
    fn take_boosting(&mut self, task: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        if self.executes_elsewhere(resource) {
            // It is held elsewhere: here its job is suspended.
            return Err(Rejected::Unknown);
        }
        let (leaf, lock) = (&mut self.leaves[task.index()], &self.locks.resources[resource as usize]);
        if lock.holder != NONE {
            return Err(Rejected::Held);
        }
        let was_granted = leaf.waits_for == resource;
        if !was_granted && (!leaf.begun || leaf.blocked) {
            return Err(Rejected::NotRunning);
        }
        // The first request comes first, or of equal ceilings the longest hold.
        if !was_granted || matches!(lock.boost, Some(Boost::ByCeiling(_))) {
            self.locks.waits += 1;
            leaf.wait = self.locks.waits;
        }
        if was_granted {
            self.waits_no_more(task);
            self.wake(task, now)?;
        }
        self.take_resource(task, resource, now);
        Ok(())
    }

    /// Whether sections of a resource execute on its own processor.
    #[must_use]
    pub fn executes_elsewhere(&self, resource: u32) -> bool {
        let lock = self.locks.resources.get(resource as usize);
        lock.is_some_and(|lock| matches!(lock.boost, Some(Boost::Elsewhere)))
    }

    /// The job of a task waits for a lock that processors hand to each other. It spins, at the priority at which jobs do that for it, or it
    /// is suspended.
    pub(crate) fn spin(&mut self, task: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get_mut(task.index()).ok_or(Rejected::Unknown)?;
        let lock = self.locks.resources.get(resource as usize).ok_or(Rejected::Unknown)?;
        if lock.spins.is_none() && lock.boost.is_none() {
            return Err(Rejected::Unknown);
        }
        if !leaf.begun || leaf.blocked {
            return Err(Rejected::NotRunning);
        }
        if lock.boost.is_some() {
            if lock.holder == task.0 {
                return Err(Rejected::Held);
            }
            self.locks.waits += 1;
            (leaf.waits_for, leaf.wait) = (resource, self.locks.waits);
            self.locks.resources[resource as usize].waiting.push_back(task.0);
            return self.block(task, now);
        }
        if lock.holder == task.0 || leaf.shares != NONE || leaf.spins_for != NONE {
            return Err(Rejected::Held);
        }
        if lock.spins == Some(Spins::AtOwn) {
            return Ok(());
        }
        leaf.spins_for = resource;
        self.processors[usize::from(leaf.processor)].held += 1;
        Ok(())
    }

    /// The job of a task unlocks a resource. Who waited and may have its resource now is ready, and asks for it once it is chosen.
    pub(crate) fn unlock(&mut self, task: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        self.leaves.get(task.index()).ok_or(Rejected::Unknown)?;
        if self.executes_elsewhere(resource) {
            return self.comes_home(task, resource, now);
        }
        let lock = self.locks.resources.get_mut(resource as usize).ok_or(Rejected::Unknown)?;
        let leaf = &mut self.leaves[task.index()];
        if lock.holder != task.0 && leaf.shares != resource {
            return Err(Rejected::NotHeld);
        }
        *(if leaf.shares == resource { &mut leaf.shares } else { &mut lock.holder }) = NONE;
        let finishes = lock.finishes;
        leaf.count_held(finishes, false);
        let (node, goes_on) = (leaf.node, leaf.finishes > 0 || !leaf.preemptible);
        let processor = &mut self.processors[usize::from(leaf.processor)];
        processor.held -= 1;
        if processor.running == task.0 && !goes_on {
            // It kept the processor beyond its window, or went on in debt: who goes on from here is chosen anew.
            (processor.committed, processor.paying) = (false, NONE);
        }
        self.propagate(node, now);
        self.wake_those_who_wait(task, resource, now)
    }

    /// The section of a task's job has ended on the processor of its resource: the job is ready here.
    fn comes_home(&mut self, task: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        self.locks.woken.clear();
        if self.leaves[task.index()].waits_for != resource {
            return Err(Rejected::NotHeld);
        }
        self.waits_no_more(task);
        self.wake(task, now)
    }

    /// Makes those ready who waited, and may have their resource now that this one is free.
    fn wake_those_who_wait(&mut self, by: TaskId, resource: u32, now: Instant) -> Result<(), Rejected> {
        let mut woken = std::mem::take(&mut self.locks.woken);
        woken.clear();
        let lock = &self.locks.resources[resource as usize];
        if lock.boost.is_some() {
            // Who has it next is told by the queue of all processors.
        } else if lock.bars.is_empty() {
            woken.extend(lock.waiting.iter().map(|&task| Woken { task: TaskId(task), resource }));
        } else {
            let processor = self.leaves[by.index()].processor;
            let all = (0..).zip(&self.locks.resources).filter(|(_, lock)| !lock.bars.is_empty());
            let waiting = all.flat_map(|(resource, lock)| {
                lock.waiting.iter().map(move |&task| Woken { task: TaskId(task), resource })
            });
            // Whoever holds what it waits for keeps it from that.
            let may_have_it = |it: &Woken| {
                self.leaves[it.task.index()].processor == processor && self.bar_of(it.task.0).is_none()
            };
            woken.extend(waiting.filter(may_have_it));
            woken.sort_unstable_by_key(|it| self.leaves[it.task.index()].wait);
        }
        let told = woken.iter().try_for_each(|it| {
            self.waits_no_more(it.task);
            self.wake(it.task, now)
        });
        self.locks.woken = woken;
        told
    }

    /// Who keeps a task from resources under the original ceiling: the holder of the one with the highest ceiling that others hold on its
    /// processor, where the task is not more important than that.
    fn bar_of(&self, task: u32) -> Option<u32> {
        let processor = self.leaves[task as usize].processor;
        let is_beside = |lock: &&Resource| {
            let holder = lock.holder;
            !lock.bars.is_empty()
                && holder != NONE
                && holder != task
                && self.leaves[holder as usize].processor == processor
        };
        let ceiling = |lock: &Resource| lock.bars.iter().map(|&user| self.own_level(user)).min();
        let held = self.locks.resources.iter().filter(is_beside);
        let (highest, holder) = held.filter_map(|lock| Some((ceiling(lock)?, lock.holder))).min()?;
        (self.own_level(task) >= highest).then_some(holder)
    }

    /// How important a task is below its node, by its own priority; less is more important.
    fn own_level(&self, task: u32) -> u64 {
        let leaf = &self.leaves[task as usize];
        u64::from(self.nodes[leaf.node as usize].layout.level_end[leaf.position as usize])
    }

    /// The level that a task's job inherits from those that wait for what it holds; see [`Machine::lifted`].
    fn inherited(&self, entity: u32) -> Option<u64> {
        let leaf = self.leaves.get(entity as usize)?;
        let held = self.locks.resources.iter().filter(|lock| lock.inherits && lock.holder == entity);
        let waiting = held.flat_map(|lock| &lock.waiting);
        let barring = self.locks.resources.iter().filter(|lock| !lock.bars.is_empty());
        let barred =
            barring.flat_map(|lock| &lock.waiting).filter(|&&task| self.bar_of(task) == Some(entity));
        let waiting = waiting.chain(barred).filter(|_| leaf.holds > 0);
        waiting.map(|&task| standing_before(self.own_level(task))).min()
    }

    fn take_resource(&mut self, task: TaskId, resource: u32, now: Instant) {
        let lock = &mut self.locks.resources[resource as usize];
        lock.holder = task.0;
        let leaf = &mut self.leaves[task.index()];
        leaf.count_held(lock.finishes, true);
        let node = leaf.node;
        self.processors[usize::from(leaf.processor)].held += 1;
        self.propagate(node, now);
    }

    /// The job of a task does not wait for a resource any more, where it has.
    pub(crate) fn waits_no_more(&mut self, task: TaskId) {
        let resource = std::mem::replace(&mut self.leaves[task.index()].waits_for, NONE);
        if let Some(lock) = self.locks.resources.get_mut(resource as usize) {
            lock.waiting.retain(|&waiting| waiting != task.0);
        }
    }

    /// A job that ends, or is ended, lets go of everything.
    #[cold]
    pub(crate) fn let_go(&mut self, task: TaskId, now: Instant) {
        let leaf = &mut self.leaves[task.index()];
        if std::mem::replace(&mut leaf.spins_for, NONE) != NONE {
            self.processors[usize::from(leaf.processor)].held -= 1;
        }
        for resource in (0..self.locks.resources.len() as u32).rev() {
            if self.is_held_by(resource, task) {
                let told = self.unlock(task, resource, now);
                debug_assert_eq!(told, Ok(()));
            }
        }
    }

    /// Whether the oldest job of a task waits for a resource.
    ///
    /// # Panics
    /// Where there is no such task.
    #[must_use]
    pub fn waits_for(&self, task: TaskId) -> Option<u32> {
        let resource = self.leaves[task.index()].waits_for;
        (resource != NONE).then_some(resource)
    }

    /// How many resources the system has.
    #[must_use]
    pub fn resource_count(&self) -> usize {
        self.locks.resources.len()
    }

    /// Whether the oldest job of a task holds a resource of the system.
    #[must_use]
    pub fn is_held_by(&self, resource: u32, task: TaskId) -> bool {
        let is_holder = |lock: &Resource| lock.holder == task.0;
        let shares = |leaf: &crate::machine::leaf::Leaf| leaf.shares == resource && resource != NONE;
        self.locks.resources.get(resource as usize).is_some_and(is_holder)
            || self.leaves.get(task.index()).is_some_and(shares)
    }

    /// Whose job holds a resource of the system, which no jobs hold together.
    ///
    /// # Panics
    /// Where there is no such resource.
    #[must_use]
    pub fn holder(&self, resource: u32) -> Option<TaskId> {
        let holder = self.locks.resources[resource as usize].holder;
        (holder != NONE).then_some(TaskId(holder))
    }

    /// Whether an entity is a task's leaf or stands above it.
    fn is_above(&self, entity: u32, task: u32) -> bool {
        let tasks = self.leaves.len() as u32;
        let mut above = task;
        while above != entity {
            let node = match above.checked_sub(tasks) {
                None => self.leaves[above as usize].node,
                Some(node) => self.nodes[node as usize].parent,
            };
            if node == NONE {
                return false;
            }
            above = tasks + node;
        }
        true
    }

    /// Whether a node goes on without budget since a job below it holds a resource.
    pub(crate) fn goes_on_in_debt(&self, node: u32) -> bool {
        let entity = self.leaves.len() as u32 + node;
        let is_held_below =
            |lock: &Resource| lock.finishes && lock.holder != NONE && self.is_above(entity, lock.holder);
        let processor = &self.processors[usize::from(self.nodes[node as usize].processor)];
        processor.held > 0 && self.locks.resources.iter().any(is_held_below)
    }

    /// Whether the job of a task goes on to the end of a section beyond its window.
    pub(crate) fn is_beyond_window(&self, task: u32) -> bool {
        let leaf = &self.leaves[task as usize];
        let mut node = if leaf.finishes > 0 { leaf.node } else { NONE };
        while node != NONE {
            let dispatcher = &self.nodes[node as usize];
            if dispatcher.policy == NodePolicy::Table
                && dispatcher.current != self.position_on_path(task, node)
            {
                return true;
            }
            node = dispatcher.parent;
        }
        false
    }

    /// A window has begun or ended: a job that goes on beyond its own keeps the processor until it is in one again, or its
    /// section is over.
    pub(crate) fn window_changed(&mut self, node: u32, now: Instant) {
        let index = usize::from(self.nodes[node as usize].processor);
        let running = self.processors[index].running;
        let Some(leaf) = self.leaves.get(running as usize).filter(|leaf| leaf.finishes > 0) else { return };
        // At a preemption point of this instant it kept the processor for its window alone.
        let is_preemptible = leaf.preemptible || leaf.kept_at == now.as_ns();
        if self.is_beyond_window(running) {
            // Also at a preemption point of this instant it is not chosen anew: who pays stays.
            self.processors[index].committed = true;
            self.processors[index].paying = running;
        } else if is_preemptible {
            self.processors[index].committed = false;
        }
    }

    /// Ceilings in the places of the present mode.
    pub(crate) fn refresh_ceilings(&mut self) {
        let Self { locks, leaves, nodes, mode, .. } = self;
        let Locks { resources, levels, .. } = locks;
        for ceiling in resources.iter_mut().flat_map(|resource| &mut resource.ceilings) {
            let node = &nodes[ceiling.node as usize];
            let tasks = leaves.len();
            let level = |&entity: &u32| {
                let entity = entity as usize;
                if node.policy == NodePolicy::Edf {
                    return levels[*mode as usize][entity];
                }
                let position = match entity.checked_sub(tasks) {
                    None => leaves[entity].positions[0],
                    Some(child) => nodes[child].positions[0],
                };
                u64::from(node.layout.level_end[position as usize])
            };
            ceiling.at = ceiling.users.iter().map(level).min().unwrap_or(u64::MAX);
        }
    }

    /// The ceilings at a node of what is held below it, each with its holder.
    fn ceilings_at(&self, node: u32) -> impl Iterator<Item = (u64, u32)> + '_ {
        let entity = self.leaves.len() as u32 + node;
        let held = self.locks.resources.iter().filter(|lock| lock.holder != NONE);
        held.filter_map(move |lock| {
            let ceiling = lock.ceilings.iter().find(|ceiling| ceiling.node == node)?;
            self.is_above(entity, lock.holder).then_some((ceiling.at, lock.holder))
        })
    }

    /// As [`Machine::pick`], on a processor on which something is held.
    #[cold]
    pub(crate) fn pick_while_held(&self, index: usize) -> u32 {
        let processor = &self.processors[index];
        let (mut node, mut only) = (processor.root, Only::default());
        if !self.is_supplied(node) && !self.goes_on_in_debt(node) {
            return NONE;
        }
        let mut running = processor.running;
        loop {
            let Some(Best { position, is_running, below, .. }) = self.best_child(node, only, running) else {
                return NONE;
            };
            running = if is_running { running } else { NONE };
            let entity = self.nodes[node as usize].layout.children[position as usize];
            match entity.checked_sub(self.leaves.len() as u32) {
                None => return entity,
                Some(child) => (node, only) = (child, below),
            }
        }
    }

    /// The first child of a node below which a job may run.
    ///
    /// Under EDF this is the stack resource policy: while what another child holds keeps the most urgent job from beginning, no job begins
    /// there. Those that have begun go on; where none of them can, whoever the ceilings let begin does.
    fn best_child(&self, node: u32, only: Only, running: u32) -> Option<Best> {
        let first = self.best_of(node, only, running, Gate::Open)?;
        let entity = self.nodes[node as usize].layout.children[first.position as usize];
        if only.begun || !self.is_gated(node, entity) {
            return Some(first);
        }
        let below = Only { begun: true, ..first.below };
        if self.first_deadline(node, first.position, below) == Some(first.urgency) {
            return Some(Best { below, ..first });
        }
        let begun = self.best_of(node, Only { begun: true, ..only }, running, Gate::Open);
        begun.or_else(|| self.best_of(node, only, running, Gate::ByCeilings))
    }

    /// The first child of a node below which a job may run. The running job's child wins every tie.
    fn best_of(&self, node: u32, only: Only, running: u32, gate: Gate) -> Option<Best> {
        let dispatcher = &self.nodes[node as usize];
        let (from, to) = match (dispatcher.policy, dispatcher.current) {
            (NodePolicy::Table, NONE) => return None,
            (NodePolicy::Table, current) => (current, current + 1),
            _ => (0, dispatcher.layout.children.len() as u32),
        };
        let mut best: Option<(Standing, Best)> = None;
        dispatcher.ready.for_each_in(from, to, |position| {
            let entity = dispatcher.layout.children[position as usize];
            let mut below = self.only_below(entity, only);
            below.begun |= gate == Gate::ByCeilings && self.is_gated(node, entity);
            let Some(urgency) = self.first_deadline(node, position, below) else { return };
            let level = self.lifted(node, dispatcher, position, entity);
            let standing = (level, Key { urgency, ..dispatcher.keys[position as usize] }, position);
            let is_running = running != NONE && self.is_above(entity, running);
            let goes_first = match &best {
                None => true,
                Some((first, Best { is_running: true, .. })) => (level, urgency) < (first.0, first.1.urgency),
                Some((first, _)) if is_running => (level, urgency) <= (first.0, first.1.urgency),
                Some((first, _)) => standing < *first,
            };
            if goes_first {
                best = Some((standing, Best { position, urgency, is_running, below }));
            }
        });
        best.map(|(_, best)| best)
    }

    /// Whether what is held below another child of an EDF node keeps jobs of this one from beginning.
    fn is_gated(&self, node: u32, entity: u32) -> bool {
        if self.nodes[node as usize].policy != NodePolicy::Edf {
            return false;
        }
        let level = self.locks.levels[self.mode as usize][entity as usize];
        self.ceilings_at(node).any(|(ceiling, holder)| level >= ceiling && !self.is_above(entity, holder))
    }

    /// Who may run below a child, by its budget.
    fn only_below(&self, entity: u32, only: Only) -> Only {
        let mut below = only;
        if let Some(child) = entity.checked_sub(self.leaves.len() as u32) {
            let supplied = self.supplied.get(self.supply_of[child as usize] as usize);
            let is_empty = supplied.is_some_and(|supplied| supplied.standing.place != Place::High);
            // It stands at its own place without budget: in debt.
            below.finishing |= is_empty && self.goes_on_in_debt(child);
        }
        below
    }

    /// The level of a child: its own, or before all of the highest ceiling of what is held below it.
    fn lifted(&self, node: u32, dispatcher: &Dispatcher, position: u32, entity: u32) -> u64 {
        let own = standing_at(u64::from(dispatcher.layout.level_end[position as usize]));
        if let Some(standing) = self.spin_standing(entity) {
            return standing.min(own);
        }
        let has_low_place = entity
            .checked_sub(self.leaves.len() as u32)
            .is_some_and(|child| self.nodes[child as usize].place != 0);
        if dispatcher.policy != NodePolicy::FixedPriority || has_low_place {
            return own;
        }
        let above = self.ceilings_at(node).filter(|&(_, holder)| self.is_above(entity, holder));
        let lifted = above.map(|(ceiling, _)| standing_before(ceiling)).fold(own, u64::min);
        self.inherited(entity).map_or(lifted, |inherited| inherited.min(lifted))
    }

    /// How a task's job stands that spins for a lock, or holds what nothing preempts it from.
    fn spin_standing(&self, entity: u32) -> Option<u64> {
        let leaf = self.leaves.get(entity as usize)?;
        if let Some(lock) = self.locks.resources.get(leaf.spins_for as usize) {
            let at = match lock.spins {
                Some(Spins::AtPriority) => self.locks.spin_at.get(usize::from(leaf.processor)).copied(),
                Some(Spins::AtCeiling) => {
                    let ceiling = lock.ceilings.iter().find(|ceiling| ceiling.node == leaf.node);
                    ceiling.map(|ceiling| standing_before(ceiling.at))
                }
                Some(Spins::Highest | Spins::AtOwn) | None => None,
            };
            return Some(at.unwrap_or(BEFORE_ALL));
        }
        if leaf.shares != NONE {
            return Some(BEFORE_ALL);
        }
        if leaf.holds == 0 {
            return None;
        }
        let standing = |lock: &Resource| match &lock.boost {
            Some(Boost::ByCeiling(ranks)) => {
                let rank = ranks.get(usize::from(leaf.processor)).copied().unwrap_or(0);
                Some((rank << BITS_OF_WAITS) + leaf.wait)
            }
            Some(Boost::ByRequest) => Some(leaf.wait),
            Some(Boost::Elsewhere) => None,
            None => lock.keeps.then_some(BEFORE_ALL),
        };
        let held = self.locks.resources.iter().filter(|lock| lock.holder == entity);
        held.filter_map(standing).min()
    }

    /// Whether jobs that wait for a resource are suspended until another processor hands it to them.
    #[must_use]
    pub fn is_handed_to_the_suspended(&self, resource: u32) -> bool {
        self.locks.resources.get(resource as usize).is_some_and(|lock| lock.boost.is_some())
    }

    /// Whether jobs hand some resource to each other: it passes at its unlock, mostly to another processor.
    pub(crate) fn hands_on(&self) -> bool {
        self.locks.resources.iter().any(|lock| lock.spins.is_some() || lock.boost.is_some())
    }

    /// Whether sections may execute on another processor than their job's: in the place of one that spins, or on that of the resource.
    pub(crate) fn moves_sections(&self) -> bool {
        let moves = |lock: &Resource| {
            lock.spins == Some(Spins::AtCeiling) || matches!(lock.boost, Some(Boost::Elsewhere))
        };
        self.locks.resources.iter().any(moves)
    }

    /// The processor that a task belongs to.
    pub(crate) fn home_of(&self, task: TaskId) -> crate::ProcessorIndex {
        crate::ProcessorIndex(self.leaves[task.index()].processor)
    }

    /// The spin lock that the oldest job of a task waits for.
    ///
    /// # Panics
    /// Where there is no such task.
    #[must_use]
    pub fn spins_for(&self, task: TaskId) -> Option<u32> {
        let resource = self.leaves[task.index()].spins_for;
        (resource != NONE).then_some(resource)
    }

    /// The deadline that orders a ready child below EDF, 0 elsewhere; `None`: nobody below it may run.
    fn first_deadline(&self, node: u32, position: u32, only: Only) -> Option<u64> {
        let dispatcher = &self.nodes[node as usize];
        let is_edf = dispatcher.policy == NodePolicy::Edf;
        let entity = dispatcher.layout.children[position as usize];
        let own = dispatcher.keys[position as usize].urgency;
        let Some(child) = entity.checked_sub(self.leaves.len() as u32) else {
            let leaf = &self.leaves[entity as usize];
            let may_run = (leaf.begun || !only.begun) && (leaf.finishes > 0 || !only.finishing);
            return may_run.then_some(own);
        };
        let earliest = self.earliest_below(child, only)?;
        let supplied = self.supplied.get(self.supply_of[child as usize] as usize);
        let has_own = self.nodes[child as usize].is_background
            || supplied.is_some_and(|supplied| supplied.standing.deadline.is_some());
        Some(if !is_edf || has_own { own } else { earliest })
    }

    /// The earliest deadline below a node of who may run there; `None`: nobody.
    fn earliest_below(&self, node: u32, only: Only) -> Option<u64> {
        let dispatcher = &self.nodes[node as usize];
        let (from, to) = match (dispatcher.policy, dispatcher.current) {
            (NodePolicy::Edf, _) => return self.best_child(node, only, NONE).map(|best| best.urgency),
            (NodePolicy::Table, NONE) => return None,
            (NodePolicy::Table, current) => (current, current + 1),
            _ => (0, dispatcher.layout.children.len() as u32),
        };
        let mut earliest: Option<u64> = None;
        dispatcher.ready.for_each_in(from, to, |position| {
            let entity = dispatcher.layout.children[position as usize];
            let below = self.only_below(entity, only);
            if self.first_deadline(node, position, below).is_none() {
                return;
            }
            let deadline = match entity.checked_sub(self.leaves.len() as u32) {
                None => self.leaves[entity as usize].deadline,
                Some(child) => {
                    let supplied = self.supplied.get(self.supply_of[child as usize] as usize);
                    let own = supplied.and_then(|supplied| supplied.standing.deadline);
                    let below = || self.earliest_below(child, below).unwrap_or(u64::MAX);
                    own.map_or_else(below, Instant::as_ns)
                }
            };
            earliest = Some(earliest.map_or(deadline, |first| first.min(deadline)));
        });
        earliest
    }

    /// What is kept of resources, computed anew.
    pub(crate) fn check_locks(&self) -> Result<(), String> {
        let held = |task: u32| {
            let of = |(_, lock): (u32, &'_ Resource)| lock.finishes;
            let held = (0..).zip(&self.locks.resources);
            held.filter(move |&(resource, _)| self.is_held_by(resource, TaskId(task))).map(of)
        };
        for (task, leaf) in self.leaves.iter().enumerate() {
            let (holds, finishes) =
                (held(task as u32).count(), held(task as u32).filter(|&finishes| finishes).count());
            if (leaf.holds as usize, leaf.finishes as usize) != (holds, finishes) {
                return Err(format!("task {task}: it holds {holds} resources"));
            }
            let waits = self.locks.resources.iter().position(|lock| lock.waiting.contains(&(task as u32)));
            if waits != self.waits_for(TaskId(task as u32)).map(|it| it as usize)
                || waits.is_some() && !leaf.blocked
            {
                return Err(format!("task {task}: it waits for {waits:?}"));
            }
            let lock = waits.map(|waits| &self.locks.resources[waits]);
            let lock = lock.filter(|lock| lock.holder == NONE && lock.boost.is_none());
            if lock.is_some_and(|lock| lock.bars.is_empty() || self.bar_of(task as u32).is_none()) {
                return Err(format!("task {task}: it waits for {waits:?}, which it may have"));
            }
        }
        for (index, processor) in self.processors.iter().enumerate() {
            let here = self.leaves.iter().filter(|leaf| usize::from(leaf.processor) == index);
            let counts = |leaf: &crate::machine::leaf::Leaf| leaf.holds + u32::from(leaf.spins_for != NONE);
            if here.map(counts).sum::<u32>() != processor.held {
                return Err(format!("processor {index}: {} resources are not held there", processor.held));
            }
        }
        Ok(())
    }
}
