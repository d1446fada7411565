//! A mode change in the machine: places, budgets, left-over jobs.

use crate::Machine;
use crate::desired::Rejected;
use crate::machine::dispatcher::{Key, NodePolicy};
use crate::machine::job_budget::JobBudget;
use crate::machine::leaf::Standing;
use crate::machine::mode::{Mode, ModeEffect};
use crate::machine::timers::STALE;
use horolog_model::{LeftOver, TaskId};
use horolog_time::Instant;

impl Machine {
    /// Puts every child where the new mode wants it, its readiness and its key with it; then budgets and left-over jobs.
    pub(crate) fn change_mode(&mut self, mode: u32, now: Instant) -> Result<(), Rejected> {
        if mode as usize >= self.modes.len() {
            return Err(Rejected::Unknown);
        }
        // Taken out for as long as it is read; it is put back below.
        let modes = std::mem::take(&mut self.modes);
        let before = std::mem::replace(&mut self.mode, mode);
        self.rearrange(&modes[mode as usize]);
        self.order_anew(&modes[mode as usize]);
        for processor in &mut self.processors {
            (processor.timed, processor.wall_is_stale, processor.has_changed) = (STALE, true, true);
        }
        self.change_capacities(&modes[mode as usize], now);
        self.change_tables(&modes[mode as usize], now);
        self.look_everywhere(now);
        self.end_left_over(&modes[before as usize], &modes[mode as usize], now);
        self.modes = modes;
        Ok(())
    }

    fn rearrange(&mut self, spec: &Mode) {
        let tasks = self.leaves.len();
        for (leaf, task) in self.leaves.iter_mut().zip(&spec.tasks) {
            leaf.active = task.active && !Machine::is_held(leaf, &self.budgets);
        }
        for (index, layout) in spec.layouts.iter().enumerate() {
            self.nodes[index].spare_ready.clear();
            for (position, (&entity, &place)) in layout.children.iter().zip(&layout.places).enumerate() {
                let (entity, place) = (entity as usize, usize::from(place));
                let old = if entity < tasks {
                    self.leaves[entity].positions[place]
                } else {
                    self.nodes[entity - tasks].positions[place]
                };
                let node = &mut self.nodes[index];
                node.spare_keys[position] = node.keys[old as usize];
                if node.ready.contains(old) {
                    node.spare_ready.insert(position as u32);
                }
            }
            self.nodes[index].adopt(layout);
        }
        self.refresh_positions();
        self.refresh_heads();
        self.refresh_ceilings();
    }

    /// Jobs that are there are ordered by the deadlines of this mode, and what they may execute is that of this mode.
    fn order_anew(&mut self, spec: &Mode) {
        for (leaf, task) in self.leaves.iter_mut().zip(&spec.tasks) {
            let before = std::mem::replace(&mut leaf.shortened, task.shortened.as_ns());
            if let Some(budget) = self.budgets.get_mut(leaf.budget as usize) {
                budget.limit_to(task.limit);
            }
            if before == leaf.shortened || leaf.jobs == 0 {
                continue;
            }
            let shortened = leaf.shortened;
            // One without a deadline, or below every deadline, stays behind all.
            let moved = |deadline: u64| match deadline {
                u64::MAX => u64::MAX,
                deadline => deadline.saturating_add(before).saturating_sub(shortened),
            };
            leaf.deadline = moved(leaf.deadline);
            leaf.backlog.iter_mut().for_each(|order| order.deadline = moved(order.deadline));
            let node = &mut self.nodes[leaf.node as usize];
            if node.policy == NodePolicy::Edf {
                let key = &mut node.keys[leaf.position as usize];
                key.urgency = moved(key.urgency);
            }
        }
    }

    fn change_capacities(&mut self, spec: &Mode, now: Instant) {
        for &(server, capacity) in &spec.capacities {
            let node = self.servers[server.index()];
            let index = usize::from(self.nodes[node as usize].processor);
            for bandwidth in self.bandwidths.iter_mut().filter(|bandwidth| bandwidth.node == node) {
                bandwidth.change_capacity(capacity);
            }
            let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) else {
                continue;
            };
            supplied.change_capacity(now, capacity, &mut self.processors[index]);
        }
    }

    /// The first cycle of a table that the change alters begins at the change; the others go on.
    fn change_tables(&mut self, spec: &Mode, now: Instant) {
        for (number, windows) in spec.windows.iter().enumerate() {
            if self.tables[number].change_to(windows, now) {
                self.turned(number, now);
            }
        }
    }

    /// What a mode changes it changes at once: budgets and tables, then jobs, and demand is looked at when each of these is done.
    fn look_everywhere(&mut self, now: Instant) {
        for index in 0..self.processors.len() {
            self.look_at_all(index, now);
        }
    }

    /// Jobs of tasks that the new mode does not activate or gives another period, and those that waited for this mode.
    fn end_left_over(&mut self, before: &Mode, mode: &Mode, now: Instant) {
        for task in 0..self.leaves.len() {
            let (old, new) = (before.tasks[task], mode.tasks[task]);
            let is_left_over = !new.active || old.separation != new.separation;
            match new.left_over {
                LeftOver::Drop if is_left_over => self.drop_jobs(TaskId(task as u32), now),
                _ if new.active && self.leaves[task].standing.is_suspended() => {
                    self.resume(TaskId(task as u32), now);
                }
                LeftOver::Suspend if !new.active => self.suspend(TaskId(task as u32)),
                _ if new.active && self.is_spent(task) => self.drop_oldest(TaskId(task as u32), now),
                _ if is_left_over => self.leaves[task].leave_over(),
                _ => {}
            }
        }
        self.look_everywhere(now);
    }

    /// Whether the oldest job of a task has executed what the mode leaves to it. On threads it is acted upon when it runs next: nobody can
    /// end it from outside.
    fn is_spent(&self, task: usize) -> bool {
        let leaf = &self.leaves[task];
        let budget = self.budgets.get(leaf.budget as usize);
        leaf.jobs > 0 && !self.keeps_begun && budget.is_some_and(JobBudget::is_spent)
    }

    /// The oldest job of a task ends without completing.
    fn drop_oldest(&mut self, task: TaskId, now: Instant) {
        self.take_processor(task);
        self.end_job(task, now);
    }

    /// The running job of a task, where it is one, has the processor no more.
    fn take_processor(&mut self, task: TaskId) {
        let processor = &mut self.processors[usize::from(self.leaves[task.index()].processor)];
        if processor.running == task.0 {
            processor.leave();
        }
        self.leave_cluster(task);
    }

    /// A job that has begun when a mode drops it is taken out of the order, as one that has suspended itself, until it completes;
    /// jobs of its task that come meanwhile wait for it. So it is where nobody can end a job from outside.
    #[must_use]
    pub fn keeping_begun_jobs(mut self) -> Machine {
        self.keeps_begun = true;
        self
    }

    /// The jobs of a task end without completing.
    fn drop_jobs(&mut self, task: TaskId, now: Instant) {
        if self.leaves[task.index()].jobs == 0 {
            return;
        }
        self.take_processor(task);
        self.waits_no_more(task);
        self.let_go(task, now);
        let leaf = &mut self.leaves[task.index()];
        leaf.backlog.clear();
        // Another mode of this instant may have taken the processor from the job that ends here.
        leaf.is_taken_out = false;
        let is_kept = self.keeps_begun && leaf.begun;
        if is_kept {
            (leaf.jobs, leaf.blocked, leaf.standing) = (1, true, Standing::left_over(1));
        } else {
            (leaf.jobs, leaf.segment, leaf.begun, leaf.blocked) = (0, 0, false, false);
            leaf.standing = Standing::OWN;
        }
        let (node, position) = (leaf.node, leaf.position);
        self.nodes[node as usize].ready.remove(position);
        if !is_kept {
            self.refill(task);
        }
    }

    /// The jobs of a task wait for a mode that activates it.
    fn suspend(&mut self, task: TaskId) {
        let leaf = &mut self.leaves[task.index()];
        if leaf.jobs == 0 || leaf.standing.is_suspended() {
            return;
        }
        leaf.standing = Standing::SUSPENDED;
        let (node, position) = (leaf.node, leaf.position);
        self.nodes[node as usize].ready.remove(position);
        self.take_out_of_cluster(task);
        self.take_processor(task);
    }

    /// The jobs of a task have waited for this mode; they come behind their equals, in their order.
    fn resume(&mut self, task: TaskId, now: Instant) {
        let leaf = &mut self.leaves[task.index()];
        leaf.standing = Standing::OWN;
        let processor = &mut self.processors[usize::from(leaf.processor)];
        let node = &mut self.nodes[leaf.node as usize];
        let urgency = node.keys[leaf.position as usize].urgency;
        node.keys[leaf.position as usize] = node.key(urgency, now.as_ns(), processor.sequence);
        processor.sequence += 1;
        for order in &mut leaf.backlog {
            (order.released, order.sequence) = (now.as_ns(), processor.sequence);
            processor.sequence += 1;
        }
        if !leaf.blocked {
            node.ready.insert(leaf.position);
        }
    }

    /// A job that waited outside the order of its dispatcher enters it at the end of its first-in-first-out level; under EDF it
    /// keeps its deadline and its release time.
    pub(crate) fn come_back(&mut self, task: TaskId, now: Instant) {
        let leaf = &self.leaves[task.index()];
        let processor = &mut self.processors[usize::from(leaf.processor)];
        let node = &mut self.nodes[leaf.node as usize];
        let Key { urgency, tie } = node.keys[leaf.position as usize];
        node.keys[leaf.position as usize] = node.key(urgency, tie, processor.sequence);
        processor.sequence += 1;
        self.arrived(task, now);
    }

    /// Whether a request for a mode may take effect at `now`, and else when it does at the latest change of a frame; `None`: that
    /// depends on jobs.
    pub(crate) fn mode_effect(&self, mode: u32, now: Instant) -> Option<Instant> {
        match &self.modes[mode as usize].takes_effect {
            ModeEffect::AtOnce => Some(now),
            ModeEffect::Frame(server) => {
                let node = self.servers[server.index()];
                if let Some(table) = self.table_of(node) {
                    return Some(table.frame(now));
                }
                let supplied = self.supplied.get(self.supply_of[node as usize] as usize);
                Some(supplied.and_then(|supplied| supplied.frame(now)).unwrap_or(now))
            }
            ModeEffect::WhenDone(tasks) => {
                let is_done = tasks.iter().all(|task| self.leaves[task.index()].jobs == 0);
                is_done.then_some(now)
            }
        }
    }

    /// How many jobs of a task are left over from a mode before: its oldest. Jobs that wait for another mode are that one's.
    #[must_use]
    pub fn left_over(&self, task: TaskId) -> u32 {
        self.leaves[task.index()].standing.count()
    }

    /// Whether a request for this mode that comes while another one waits is refused.
    pub(crate) fn refuses_second(&self, mode: u32) -> bool {
        self.modes[mode as usize].refuses_second
    }

    /// Whether a task releases jobs in the present mode.
    #[must_use]
    pub fn is_active(&self, task: TaskId) -> bool {
        self.leaves[task.index()].active
    }
}
