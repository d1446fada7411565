//! The machine's door: [`Machine::on`] takes events, [`Machine::decide`] answers with desired state.

pub(crate) mod builder;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod companion;
pub(crate) mod dispatcher;
mod doubt;
pub(crate) mod from_system;
pub(crate) mod job_budget;
pub(crate) mod leaf;
pub(crate) mod lent_priority;
pub(crate) mod level;
pub(crate) mod locks;
pub(crate) mod mode;
pub(crate) mod mode_change;
pub(crate) mod node_spec;
pub(crate) mod ready_set;
pub(crate) mod shallow;
pub(crate) mod supplied;
pub(crate) mod table;
pub(crate) mod timers;
pub(crate) mod total_bandwidth;
pub(crate) mod tree;
pub(crate) mod watch;

pub use builder::MachineBuilder;
pub use companion::Lent;
pub use dispatcher::NodePolicy;
pub use job_budget::OverrunAction;
pub use lent_priority::LentPriority;
pub use level::Level;
pub use locks::Woken;
pub use mode::{ModeEffect, ModeSpec, TaskMode};
pub use node_spec::NodeSpec;

use crate::desired::{Desired, EntityId, ProcessorIndex, Rejected, TimerChanges, WallTimer};
use crate::machine::cluster::Cluster;
use crate::machine::dispatcher::{Dispatcher, NONE};
use crate::machine::job_budget::JobBudget;
use crate::machine::leaf::{JobOrder, Leaf, Standing};
use crate::machine::locks::Locks;
use crate::machine::mode::Mode;
use crate::machine::supplied::SuppliedNode;
use crate::machine::table::Table;
use crate::machine::timers::STALE;
use crate::machine::total_bandwidth::TotalBandwidth;
use crate::machine::watch::Watch;
use crate::{ANY_SEGMENT, Event, EventKind, Tally};
use horolog_model::{ModelError, ServerId, System, TaskId};
use horolog_time::{Instant, Span};

/// One processor's state.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    /// Its root dispatcher.
    pub(crate) root: u32,
    /// Which of the machine's clusters it belongs to, or [`NONE`].
    pub(crate) cluster: u32,
    /// The task that was chosen last and has neither completed nor suspended itself; [`NONE`]: nobody.
    pub(crate) running: u32,
    /// Its position in its dispatcher.
    pub(crate) running_position: u32,
    /// Whether the running job keeps the processor: it is not preemptible and stands at no preemption point.
    pub(crate) committed: bool,
    pub(crate) should_yield: bool,
    pub(crate) generation: u32,
    /// How many resources are held here.
    pub(crate) held: u32,
    /// Counts releases and wake-ups: the order of a first-in-first-out level.
    pub(crate) sequence: u64,
    /// One dispatcher, and below it tasks and first-in-first-out nodes of tasks.
    pub(crate) is_shallow: bool,
    /// Whether some node has a supply or a service watches.
    pub(crate) may_want_timers: bool,
    /// Who ran when the timers were looked at last.
    pub(crate) timed: u32,
    /// Who was chosen when it was last found out which budgets pay; [`NONE`] once that job has left.
    pub(crate) paying: u32,
    /// Which supplies are on this processor: a stretch of the machine's.
    pub(crate) supplies: std::ops::Range<usize>,
    /// Which of the machine's watches is on this processor, or [`NONE`].
    pub(crate) watch: u32,
    /// Whether its service wants to know what is executed.
    pub(crate) is_counting: bool,
    /// The earliest wall timer, unless a supply or service has changed since.
    pub(crate) wall: Option<WallTimer>,
    pub(crate) wall_is_stale: bool,
    /// Whether it was looked at since the last decision, which has to tell of it.
    pub(crate) wall_is_new: bool,
    /// How often budget has run out or come back.
    pub(crate) changes: u64,
    /// Whether budget has run out or come back, or a task moved, since the last decision.
    pub(crate) has_changed: bool,
}

/// The scheduling machine of one system.
///
/// Nothing is shared between processors, not even a spin lock's queue ([`crate::GlobalLocks`]), so a driver that serves each processor from a thread of its own may
/// give each its own clone and use one processor of it.
///
/// ```
/// use horolog_model::TaskId;
/// use horolog_sched::{Event, EventKind, Machine, ProcessorIndex};
/// use horolog_time::Instant;
/// let text = r#"
/// [system]
/// name = "two tasks"
/// [[task]]
/// name = "control"
/// period = "10 ms"
/// wcet = "2 ms"
/// priority = 90
/// [[task]]
/// name = "camera"
/// period = "40 ms"
/// wcet = "9 ms"
/// priority = 50
/// "#;
/// let (system, _) = horolog_model::file::read(text, "example.toml", &[]).expect("a valid file");
/// let mut machine = Machine::new(&system).expect("priorities are given");
/// let (control, camera, cpu) = (TaskId(0), TaskId(1), ProcessorIndex(0));
/// let release = |at, task| Event::at(Instant::from_ns(at), EventKind::Release { task, deadline: Instant::NEVER });
/// machine.on(release(0, camera)).expect("the camera is active");
/// assert_eq!(machine.decide(cpu).running, Some(camera));
/// machine.on(release(5, control)).expect("control is active");
/// assert_eq!(machine.decide(cpu).running, Some(control));
/// machine.on(Event::at(Instant::from_ns(7), EventKind::Completion { task: control })).expect("control runs");
/// assert_eq!(machine.decide(cpu).running, Some(camera));
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) nodes: Vec<Dispatcher>,
    /// The supplies of the nodes that have one, by processor; empty in a flat machine.
    pub(crate) supplied: Vec<SuppliedNode>,
    /// The servers that give their jobs deadlines when they are released.
    pub(crate) bandwidths: Vec<TotalBandwidth>,
    /// The budgets of the tasks whose jobs have one.
    pub(crate) budgets: Vec<JobBudget>,
    /// The services of the processors that have one.
    pub(crate) watches: Vec<Watch>,
    /// The node of each server of the system.
    pub(crate) servers: Vec<u32>,
    /// All nodes, the deepest first.
    pub(crate) upwards: Box<[u32]>,
    /// Which entry of `supplied` belongs to each node, or [`NONE`].
    pub(crate) supply_of: Vec<u32>,
    pub(crate) processors: Vec<Processor>,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) tables: Vec<Table>,
    pub(crate) locks: Locks,
    pub(crate) modes: Vec<Mode>,
    pub(crate) mode: u32,
    /// Whether a job that has begun outlives being dropped.
    pub(crate) keeps_begun: bool,
}

impl Machine {
    /// The machine of a checked system whose priorities are resolved: one dispatcher a processor, by the system's
    /// policy, and a node a server. For other trees and modes see [`MachineBuilder`].
    ///
    /// # Errors
    /// Where a fixed-priority task has no priority, or there are more processors than 65,535.
    pub fn new(system: &System) -> Result<Machine, ModelError> {
        MachineBuilder::new(system).build()
    }

    /// Takes one event. Events of one instant come in the order of their [`crate::Phase`].
    ///
    /// # Errors
    /// Where the event does not fit the state; nothing has changed then.
    #[inline(always)]
    pub fn on(&mut self, event: Event) -> Result<(), Rejected> {
        let now = event.occurred;
        if event.observed < now {
            return Err(Rejected::BadTime);
        }
        match event.kind {
            EventKind::Release { task, deadline } => self.release(task, deadline, now),
            EventKind::Completion { task } => self.complete(task, now),
            EventKind::Ran { task, amount } => self.ran(task, amount, now),
            EventKind::Timer { entity, generation } => self.wall_timer_fired(entity, generation, now),
            kind => self.on_rare(now, kind),
        }
    }

    /// Everything but releases, completions and timers.
    fn on_rare(&mut self, now: Instant, kind: EventKind) -> Result<(), Rejected> {
        match kind {
            EventKind::Release { .. }
            | EventKind::Completion { .. }
            | EventKind::Ran { .. }
            | EventKind::Timer { .. } => Err(Rejected::Unknown),
            EventKind::PreemptionPoint { task, willing, next } => {
                self.preemption_point(task, willing, next, now)
            }
            EventKind::Block { task } => self.block(task, now),
            EventKind::Wake { task } => self.wake(task, now),
            EventKind::SetPreemptible { task, preemptible } => {
                let processor = self.running_processor(task)?;
                self.leaves[task.index()].preemptible = preemptible;
                self.processors[processor].committed = !preemptible;
                self.ends_keeping(task, now);
                Ok(())
            }
            EventKind::Lock { task, resource } => self.lock(task, resource, now),
            EventKind::Spin { task, resource } => self.spin(task, resource, now),
            EventKind::Unlock { task, resource } => self.unlock(task, resource, now),
            EventKind::Lend { entity, place } => self.lend(entity, place, now),
            EventKind::ModeChange { mode } => self.change_mode(mode, now),
        }
    }

    #[inline(always)]
    fn release(&mut self, task: TaskId, deadline: Instant, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get_mut(task.index()).ok_or(Rejected::Unknown)?;
        if !leaf.active {
            return self.refuse_release(task);
        }
        let processor = &mut self.processors[leaf.processor as usize];
        let mut order = JobOrder {
            deadline: deadline.as_ns().saturating_sub(leaf.shortened),
            released: now.as_ns(),
            sequence: processor.sequence,
        };
        processor.sequence += 1;
        if leaf.bandwidth != NONE {
            order.deadline = self.bandwidths[leaf.bandwidth as usize].deadline(now, leaf.wcet);
        }
        leaf.jobs += 1;
        if leaf.jobs > 1 {
            leaf.backlog.push_back(order);
            if !leaf.is_direct {
                self.watch_release(task, deadline, now);
            }
            return Ok(());
        }
        if !leaf.is_direct {
            self.enter(task, order, now);
            return Ok(());
        }
        let node = &mut self.nodes[leaf.node as usize];
        node.keys[leaf.position as usize] = node.key(order.deadline, order.released, order.sequence);
        node.ready.insert(leaf.position);
        Ok(())
    }

    #[inline(always)]
    fn complete(&mut self, task: TaskId, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get_mut(task.index()).ok_or(Rejected::Unknown)?;
        let processor = &mut self.processors[leaf.processor as usize];
        if processor.running != task.0 {
            return self.complete_unwanted(task, now);
        }
        processor.leave();
        self.end_job(task, now);
        Ok(())
    }

    /// A job that the machine does not want to run has completed all the same: it had begun, and somebody let it go on.
    #[cold]
    fn complete_unwanted(&mut self, task: TaskId, now: Instant) -> Result<(), Rejected> {
        let leaf = &self.leaves[task.index()];
        if !leaf.begun {
            return Err(Rejected::NotRunning);
        }
        if leaf.blocked {
            self.waits_no_more(task);
            self.wake(task, now)?;
        }
        self.leave_cluster(task);
        self.end_job(task, now);
        Ok(())
    }

    /// The processor was taken by another job than the chosen one, or by nobody. The machine still wants the job that it chose; but
    /// that one cannot keep a processor that it never got.
    pub(crate) fn took(&mut self, processor: ProcessorIndex, task: Option<TaskId>, now: Instant) {
        let state = &mut self.processors[usize::from(processor.0)];
        let chosen = (state.running != NONE).then_some(TaskId(state.running));
        if let Some(chosen) = chosen.filter(|_| state.committed && chosen != task) {
            state.committed = false;
            self.ends_keeping(chosen, now);
        }
        let leaf = task.and_then(|task| self.leaves.get_mut(task.index()));
        if let Some(leaf) = leaf.filter(|leaf| leaf.jobs > 0 && !leaf.blocked) {
            leaf.begun = true;
            self.others_pay(usize::from(processor.0), task);
        }
    }

    /// Another job than the chosen one has the processor: each budget above it pays that stands at its own place now. Who pays for
    /// the chosen one is found out again with the next choice.
    fn others_pay(&mut self, index: usize, task: Option<TaskId>) {
        let processor = &mut self.processors[index];
        let Some(task) = task.filter(|task| processor.may_want_timers && processor.running != task.0) else {
            return;
        };
        (processor.paying, processor.timed) = (NONE, STALE);
        let mut node = self.leaves[task.index()].node;
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                supplied.chosen(false);
            }
            node = self.nodes[node as usize].parent;
        }
    }

    /// The ready job of a task has the processor as if it had been chosen; whether it can have.
    pub(crate) fn take_over(&mut self, processor: ProcessorIndex, task: TaskId) -> bool {
        let Self { processors, leaves, nodes, .. } = self;
        let state = &mut processors[usize::from(processor.0)];
        let Some(leaf) = leaves.get(task.index()) else { return false };
        let (node, position) = (leaf.node, leaf.position);
        let is_here = state.is_shallow && state.root == node && nodes[node as usize].ready.contains(position);
        if is_here {
            state.leave();
            state.run(task.0, position, leaves);
        }
        is_here
    }

    /// The oldest job of a task is done; it has the processor no more.
    #[inline(always)]
    pub(crate) fn end_job(&mut self, task: TaskId, now: Instant) {
        let leaf = &mut self.leaves[task.index()];
        leaf.jobs -= 1;
        leaf.segment = 0;
        leaf.begun = false;
        let node = &mut self.nodes[leaf.node as usize];
        if leaf.jobs == 0 {
            leaf.standing = Standing::OWN;
            node.ready.remove(leaf.position);
        } else if let Some(next) = leaf.backlog.pop_front() {
            leaf.standing.one_less();
            leaf.deadline = next.deadline;
            node.keys[leaf.position as usize] = node.key(next.deadline, next.released, next.sequence);
        }
        if !leaf.is_direct {
            let (from, has_budget, holds) =
                (leaf.node, leaf.budget != NONE, leaf.holds > 0 || leaf.spins_for != NONE);
            if has_budget {
                self.refill(task);
            }
            if holds {
                self.let_go(task, now);
            }
            self.left(task, from, now);
        }
    }

    fn preemption_point(
        &mut self,
        task: TaskId,
        willing: bool,
        next: u32,
        now: Instant,
    ) -> Result<(), Rejected> {
        let processor = self.running_processor(task)?;
        if !willing {
            return Ok(());
        }
        let leaf = &mut self.leaves[task.index()];
        let successors = leaf.successors.get(leaf.segment as usize).ok_or(Rejected::IllegalSegment)?;
        if next != ANY_SEGMENT {
            if !successors.contains(&next) {
                return Err(Rejected::IllegalSegment);
            }
            leaf.segment = next;
            if let Some(budget) = self.budgets.get_mut(leaf.budget as usize) {
                budget.enter(next);
            }
        }
        let keeps = self.is_beyond_window(task.0);
        if keeps {
            self.leaves[task.index()].kept_at = now.as_ns();
        }
        self.processors[processor].committed = keeps;
        // Who goes on from here is chosen anew, unless it keeps the processor.
        if !keeps {
            self.processors[processor].paying = NONE;
        }
        self.ends_keeping(task, now);
        Ok(())
    }

    /// The running job has become preemptible, or not: what stands above it has demand by what could run, or by this job.
    fn ends_keeping(&mut self, task: TaskId, now: Instant) {
        let leaf = &self.leaves[task.index()];
        let processor = &self.processors[usize::from(leaf.processor)];
        if !processor.is_shallow && processor.may_want_timers {
            self.propagate(leaf.node, now);
        }
    }

    /// Any job that has begun may suspend itself, also one that the machine does not want to run.
    pub(crate) fn block(&mut self, task: TaskId, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get_mut(task.index()).ok_or(Rejected::Unknown)?;
        if !leaf.begun || leaf.blocked {
            return Err(Rejected::NotRunning);
        }
        leaf.blocked = true;
        let (from, position) = (leaf.node, leaf.position);
        let processor = &mut self.processors[usize::from(leaf.processor)];
        if processor.running == task.0 {
            processor.leave();
        }
        self.leave_cluster(task);
        self.nodes[from as usize].ready.remove(position);
        self.parted(from, now);
        Ok(())
    }

    /// A job that wakes goes to the end of its first-in-first-out level; under EDF it keeps its deadline and
    /// its release time.
    pub(crate) fn wake(&mut self, task: TaskId, now: Instant) -> Result<(), Rejected> {
        let leaf = self.leaves.get_mut(task.index()).ok_or(Rejected::Unknown)?;
        if !leaf.blocked || leaf.waits_for != NONE {
            return Err(Rejected::NotBlocked);
        }
        leaf.blocked = false;
        if !leaf.standing.is_suspended() {
            self.come_back(task, now);
        }
        Ok(())
    }

    /// The processor where `task` runs.
    fn running_processor(&self, task: TaskId) -> Result<usize, Rejected> {
        let leaf = self.leaves.get(task.index()).ok_or(Rejected::Unknown)?;
        let home = usize::from(leaf.processor);
        let is_global = self.processors[home].cluster != NONE;
        let index = if is_global { usize::from(leaf.on) } else { home };
        let processor = self.processors.get(index).filter(|processor| processor.running == task.0);
        processor.map(|_| index).ok_or(Rejected::NotRunning)
    }

    /// What the processor should look like now. Asking again without an event between gives the same answer.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[inline(always)]
    pub fn decide(&mut self, processor: ProcessorIndex) -> Desired {
        let index = processor.0 as usize;
        if self.processors[index].may_want_timers || !self.processors[index].is_shallow {
            return self.decide_with_timers(index);
        }
        self.choose_shallow(index);
        let state = &self.processors[index];
        Desired {
            running: (state.running != NONE).then_some(TaskId(state.running)),
            should_yield: state.should_yield,
            generation: state.generation,
            allowance: None,
            wall_timer: None,
        }
    }

    /// [`Machine::decide`] in two steps, for drivers that look at the timers only where they are others than before:
    /// makes the choice and says who should run, and which timers may be others than after the decision before.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[inline(always)]
    pub fn choose(&mut self, processor: ProcessorIndex) -> (Option<TaskId>, TimerChanges) {
        let index = processor.0 as usize;
        let changes = if !self.processors[index].is_shallow {
            match self.cluster_of(processor) {
                Some(cluster) => self.choose_in_cluster(cluster, |_| true),
                None => self.choose_in_tree(index),
            }
            TimerChanges { allowance: true, wall: true }
        } else {
            self.choose_shallow(index);
            if self.processors[index].may_want_timers {
                self.look_at_timers(index)
            } else {
                TimerChanges::default()
            }
        };
        let running = self.processors[index].running;
        ((running != NONE).then_some(TaskId(running)), changes)
    }

    fn decide_with_timers(&mut self, index: usize) -> Desired {
        let (running, _) = self.choose(ProcessorIndex(index as u16));
        let allowance = running.and_then(|task| self.allowance(task));
        let state = &self.processors[index];
        let (should_yield, generation, wall_timer) = (state.should_yield, state.generation, state.wall);
        Desired { running, should_yield, generation, allowance, wall_timer }
    }

    /// Jobs of `task` that were released and have not completed.
    #[must_use]
    pub fn jobs(&self, task: TaskId) -> u32 {
        self.leaves[task.index()].jobs
    }

    /// Whether the oldest job of `task` waits outside the order: it has suspended itself, or was dropped and goes on
    /// ([`Machine::keeping_begun_jobs`]).
    #[must_use]
    pub fn is_blocked(&self, task: TaskId) -> bool {
        self.leaves[task.index()].blocked
    }

    /// The segment that the oldest job of `task` executes or will execute next.
    #[must_use]
    pub fn segment(&self, task: TaskId) -> u32 {
        self.leaves[task.index()].segment
    }

    /// Whether `task` may at present be displaced anywhere.
    #[must_use]
    pub fn is_preemptible(&self, task: TaskId) -> bool {
        self.leaves[task.index()].preemptible
    }

    /// Whether this processor may ever want a timer: some node there has a supply, or a service watches it.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[must_use]
    pub(crate) fn may_want_timers(&self, processor: ProcessorIndex) -> bool {
        self.processors[usize::from(processor.0)].may_want_timers
    }

    /// The node of a server.
    ///
    /// # Panics
    /// Where there is no such server.
    #[must_use]
    pub fn server(&self, server: ServerId) -> EntityId {
        EntityId(self.leaves.len() as u32 + self.servers[server.index()])
    }

    /// What a server has done so far; all zero for one without a budget.
    ///
    /// # Panics
    /// Where there is no such server.
    #[inline(always)]
    #[must_use]
    pub fn tally(&self, server: ServerId) -> Tally {
        let node = self.servers[server.index()];
        if let Some(supplied) = self.supplied.get(self.supply_of[node as usize] as usize) {
            return supplied.tally();
        }
        self.watch_of_soft(node).map_or_else(Tally::default, |watch| self.watches[watch].service.tally())
    }

    /// Whether a task stands at the lower of its two places: below the soft tasks, under dual priority.
    #[must_use]
    pub fn stands_low(&self, task: TaskId) -> bool {
        self.leaves[task.index()].is_low
    }

    /// Whether what is executed on this processor must be reported before every event: in nested trees, where a decision
    /// between two children of one server looks at its budget, and under slack stealing. Elsewhere it is enough to report
    /// when a decision replaces the timer, when its time is over, before a wall timer, before the running job completes
    /// or suspends itself, and before every release of a served task.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[must_use]
    pub(crate) fn wants_every_report(&self, processor: ProcessorIndex) -> bool {
        let processor = &self.processors[usize::from(processor.0)];
        let watch = self.watches.get(processor.watch as usize);
        !processor.is_shallow || watch.is_some_and(|w| w.service.wants_every_report())
    }

    /// Whether on this processor a budget may have run out or come back, or a task moved between its places, since the last
    /// decision: without, the counts of the tallies and [`Machine::stands_low`] are what they were.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[must_use]
    pub(crate) fn has_changed(&self, processor: ProcessorIndex) -> bool {
        self.processors[usize::from(processor.0)].has_changed
    }

    /// How often budgets of this processor have run out or come back so far: the sum of what the tallies of its servers count.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[inline]
    #[must_use]
    pub(crate) fn budget_changes(&self, processor: ProcessorIndex) -> u64 {
        self.processors[usize::from(processor.0)].changes
    }

    /// What a server may still execute at its priority before somebody must be told; `None`: there is no limit, or it
    /// stands at a low place.
    ///
    /// # Panics
    /// Where there is no such server.
    #[must_use]
    pub fn budget(&self, server: ServerId) -> Option<Span> {
        let node = self.servers[server.index()];
        if let Some(supplied) = self.supplied.get(self.supply_of[node as usize] as usize) {
            return supplied.budget();
        }
        self.watch_of_soft(node).and_then(|watch| self.watches[watch].service.soft_budget())
    }

    /// The earliest wall timer of a processor, as [`Desired::wall_timer`] has it, without a choice: for drivers that
    /// catch up with several instants before they ask who runs.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[inline]
    pub fn wall_timer(&mut self, processor: ProcessorIndex) -> Option<crate::WallTimer> {
        let index = usize::from(processor.0);
        if self.processors[index].wall_is_stale {
            self.arm_wall_timer(index);
            self.processors[index].wall_is_new = true;
        }
        self.processors[index].wall
    }

    /// Whether somebody more important waits for the running job's next preemption point, and how often that has changed.
    #[inline(always)]
    pub(crate) fn flag(&self, processor: ProcessorIndex) -> (bool, u32) {
        let state = &self.processors[usize::from(processor.0)];
        (state.should_yield, state.generation)
    }

    /// Whether [`Machine::wall_timer`] may be another than when it was asked last.
    #[inline(always)]
    pub(crate) fn wall_is_stale(&self, processor: ProcessorIndex) -> bool {
        self.processors[usize::from(processor.0)].wall_is_stale
    }

    /// Whether what this task executes is charged to a budget or told to a service.
    #[inline(always)]
    pub(crate) fn is_counted(&self, task: TaskId) -> bool {
        self.leaves[task.index()].is_counted
    }

    /// Whether [`Machine::allowance`] may be anything but `None`.
    #[inline]
    pub(crate) fn is_limited(&self, task: TaskId) -> bool {
        self.leaves[task.index()].is_limited
    }

    /// Whether a server stands above this task.
    #[inline(always)]
    pub(crate) fn is_served(&self, task: TaskId) -> bool {
        let leaf = &self.leaves[task.index()];
        leaf.node != self.processors[usize::from(leaf.processor)].root
    }

    /// How many modes there are, mode 0 included.
    #[must_use]
    pub fn modes(&self) -> u32 {
        self.modes.len() as u32
    }

    /// The present mode.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// The root dispatcher of a processor.
    ///
    /// # Panics
    /// Where there is no such processor.
    #[must_use]
    pub fn root(&self, processor: ProcessorIndex) -> EntityId {
        EntityId(self.leaves.len() as u32 + self.processors[processor.0 as usize].root)
    }
}

impl Processor {
    pub(crate) fn new(root: u32) -> Processor {
        Processor {
            root,
            cluster: NONE,
            running: NONE,
            running_position: 0,
            committed: false,
            should_yield: false,
            generation: 0,
            held: 0,
            sequence: 0,
            is_shallow: false,
            may_want_timers: false,
            timed: NONE,
            paying: NONE,
            supplies: 0..0,
            watch: NONE,
            is_counting: true,
            wall: None,
            wall_is_stale: true,
            wall_is_new: false,
            changes: 0,
            has_changed: true,
        }
    }

    /// Budget has run out or come back this often since the last look.
    #[inline(always)]
    pub(crate) fn count_changes(&mut self, changes: u64) {
        self.changes = self.changes.wrapping_add(changes);
        self.has_changed |= changes != 0;
    }

    /// The running job gives the processor up.
    #[inline(always)]
    pub(crate) fn leave(&mut self) {
        self.running = NONE;
        self.paying = NONE;
        self.committed = false;
        self.flag(false);
    }

    #[inline(always)]
    pub(crate) fn run(&mut self, task: u32, position: u32, leaves: &mut [Leaf]) {
        let leaf = &mut leaves[task as usize];
        leaf.begun = true;
        self.running = task;
        self.running_position = position;
        self.committed = !leaf.preemptible;
    }

    /// Sets `should_yield` and counts the change.
    #[inline(always)]
    pub(crate) fn flag(&mut self, should_yield: bool) {
        if self.should_yield != should_yield {
            self.generation = self.generation.wrapping_add(1);
            self.should_yield = should_yield;
        }
    }
}
