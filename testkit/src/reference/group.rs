//! One processor, or the processors of a cluster, unit by unit.

use super::order::{Place, number};
use super::rules::{HardTask, Ran};
use super::tree::Node;
use super::{Event, Job, Schedule, What};
use horolog_model::{Capacity, CpuId, Priority, System, Task};

/// A task and one of its jobs.
pub(super) type JobId = (usize, usize);

/// A job that was released and has not ended.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) id: JobId,
    /// Its place in the order of all releases and changes of place.
    pub(super) order: u64,
    pub(super) released: u64,
    /// Its absolute deadline.
    pub(super) deadline: Option<u64>,
    pub(super) segment: usize,
    /// Units executed in the present segment.
    pub(super) executed: u64,
    /// Units executed in all.
    pub(super) total: u64,
    pub(super) started: bool,
    /// Which of its task's sections it is in, and which it has come to.
    pub(super) holds: Vec<usize>,
    pub(super) begun: Vec<usize>,
    /// Whether a mode has just let it go on: it has left the processor, if it had one.
    pub(super) is_back: bool,
    /// Whether its policy has acted, and has put it below every task.
    pub(super) acted: bool,
    pub(super) lowered: bool,
    /// Whether it is left over from a mode before.
    pub(super) is_left_over: bool,
}

/// A processor of the group.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    cpu: CpuId,
    /// The job that has it.
    pub(super) running: Option<JobId>,
    /// Whether that job has just reached a preemption point.
    pub(super) at_point: bool,
    /// Who had it last, for the costs of switches.
    last: Option<usize>,
    /// What the kernel has yet to do.
    owed: u64,
}

/// Processors on which one root decides, and everything below it.
pub(super) struct Group<'a> {
    pub(super) system: &'a System,
    pub(super) slots: Vec<Slot>,
    pub(super) pending: Vec<Pending>,
    /// Who holds which resource.
    pub(super) locks: Vec<super::locks::Lock>,
    /// Jobs that wait for a mode.
    suspended: Vec<Pending>,
    /// Tasks whose jobs have used up their budgets at this instant and ask for a mode.
    pub(super) asked: Vec<usize>,
    /// The root first.
    pub(super) nodes: Vec<Node>,
    /// The node directly above each task; `None`: a task of another group.
    pub(super) above: Vec<Option<usize>>,
    /// The priority of each task.
    pub(super) priorities: Vec<i64>,
    /// Whether the next release of each task does not take place, and whether none does.
    pub(super) skips: Vec<bool>,
    pub(super) stopped: Vec<bool>,
    /// The processor that each task had last.
    pub(super) had_last: Vec<Option<usize>>,
    counter: u64,
    pub(super) schedule: Schedule,
    completed_now: bool,
    pub(super) timed_now: bool,
    released_now: bool,
    /// Whether it was decided at the present instant who runs.
    pub(super) was_decided: bool,
}

impl<'a> Group<'a> {
    pub(super) fn new(system: &'a System, cpus: &[CpuId], nodes: Vec<Node>) -> Group<'a> {
        let above = super::tree::above(system, &nodes, cpus);
        let slot = |&cpu: &CpuId| Slot { cpu, running: None, at_point: false, last: None, owed: 0 };
        let priority = |task: &Task| task.priority.map_or(i64::MIN, number);
        let mut group = Group {
            system,
            slots: cpus.iter().map(slot).collect(),
            pending: Vec::new(),
            locks: super::locks::locks_of(system),
            suspended: Vec::new(),
            asked: Vec::new(),
            nodes,
            above,
            priorities: system.tasks().iter().map(priority).collect(),
            skips: vec![false; system.tasks().len()],
            stopped: vec![false; system.tasks().len()],
            had_last: vec![None; system.tasks().len()],
            counter: 0,
            schedule: Schedule { used: vec![Vec::new(); system.servers().len()], ..Schedule::default() },
            completed_now: false,
            timed_now: false,
            released_now: false,
            was_decided: false,
        };
        let is_hard = |index: &usize| group.above[*index] == Some(0);
        let hard: Vec<HardTask> = (0..system.tasks().len())
            .filter(is_hard)
            .map(|index| HardTask::of(index, &system.tasks()[index]))
            .collect();
        group.nodes.iter_mut().for_each(|node| node.add_rules(system, &hard));
        group
    }

    pub(super) fn task(&self, index: usize) -> &'a Task {
        &self.system.tasks()[index]
    }

    pub(super) fn next_order(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(super) fn note(&mut self, at: u64, what: What, slot: usize, (task, job): JobId) {
        let cpu = self.slots[slot].cpu.0;
        self.schedule.events.push(Event { at, task, what, job, cpu });
    }

    /// What was executed until now has been charged: who has executed all of it ends, who has no budget moves.
    pub(super) fn ends(&mut self, now: u64, jobs: &[Vec<Job>]) {
        (self.completed_now, self.timed_now, self.released_now) = (false, false, false);
        // What was executed is charged before anything ends.
        self.update(now);
        for slot in 0..self.slots.len() {
            self.end_segment(now, slot, jobs);
        }
        for slot in 0..self.slots.len() {
            self.act(now, slot, jobs);
        }
        // A budget that has ended moves its server, even where it comes back at this instant.
        self.update(now);
    }

    /// The tasks whose jobs have just used up their budgets and ask for a mode, in the order of processors.
    pub(super) fn used_up(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.asked)
    }

    /// The running job ends a segment, or ends, when it has executed all of it.
    fn end_segment(&mut self, now: u64, slot: usize, jobs: &[Vec<Job>]) {
        let Some(id) = self.slots[slot].running else { return };
        self.end_sections(now, id, false);
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else { return };
        let segments = &jobs[id.0][id.1].segments;
        let pending = &mut self.pending[at];
        if pending.executed < segments[pending.segment] {
            return;
        }
        self.note_overrun(now, slot, at, &jobs[id.0][id.1]);
        let pending = &mut self.pending[at];
        if pending.segment + 1 < segments.len() {
            (pending.segment, pending.executed) = (pending.segment + 1, 0);
            self.slots[slot].at_point = true;
            return;
        }
        let total = pending.total;
        self.end_sections(now, id, true);
        self.pending.retain(|pending| pending.id != id);
        self.slots[slot].running = None;
        self.completed_now = true;
        self.note(now, What::Completion, slot, id);
        if total > self.task(id.0).wcet.as_ns() {
            self.note(now, What::Overrun(0), slot, id);
        }
        if self.above[id.0] == Some(0) {
            self.nodes.iter_mut().for_each(|node| node.rules.hard_ends(now, id.0, total));
        }
        self.update(now);
    }

    /// Interrupts, then every timer that is due.
    pub(super) fn timers(&mut self, now: u64) {
        let platform = self.system.platform();
        let interrupt = platform.timer_interrupt.map_or(0, |cost| cost.as_ns());
        for slot in &mut self.slots {
            if platform.tick.is_some_and(|tick| now.is_multiple_of(tick.as_ns())) {
                slot.owed += interrupt;
            }
            for load in self.system.interferences().iter().filter(|load| load.cpu == slot.cpu) {
                let period = load.period.as_ns();
                if now.is_multiple_of(period) {
                    slot.owed += load.utilisation_ppb * period / 1_000_000_000;
                }
            }
        }
        // A window ends as a job does: before the budgets of this instant come back.
        for node in &mut self.nodes {
            self.timed_now |= node.turn_to(now);
        }
        self.update(now);
        // In the order of the lowest tasks below them.
        for index in self.by_number() {
            let has_demand = self.nodes[index].has_demand;
            self.timed_now |= self.nodes[index].rules.timers(now, has_demand);
            self.update(now);
        }
        if self.timed_now {
            self.schedule.timers.push(now);
        }
    }

    /// A job is noticed.
    pub(super) fn release(&mut self, now: u64, id: JobId, arrival: u64, deadline: Option<u64>) {
        self.released_now = true;
        if self.system.platform().tick.is_none() {
            let cost = self.system.platform().timer_interrupt.map_or(0, |cost| cost.as_ns());
            self.slots[0].owed += cost;
        }
        let wcet = self.task(id.0).wcet.as_ns();
        let given = self.above[id.0].and_then(|node| self.nodes[node].rules.deadline_of_job(now, wcet));
        let deadline = given.or(deadline);
        let order = self.next_order();
        let (segment, executed, total, started) = (0, 0, 0, false);
        let is_back = false;
        self.pending.push(Pending {
            id,
            order,
            released: now,
            deadline,
            segment,
            executed,
            total,
            started,
            is_back,
            acted: false,
            lowered: false,
            is_left_over: false,
            holds: Vec::new(),
            begun: Vec::new(),
        });
        if self.above[id.0] == Some(0) {
            self.nodes.iter_mut().for_each(|node| node.rules.hard_arrives(now, id.0, id.1, arrival));
        } else {
            self.update(now);
        }
    }

    /// What is decided when all jobs of this instant are known, and who runs.
    pub(super) fn decide(&mut self, now: u64, jobs: &[Vec<Job>]) {
        for node in &mut self.nodes {
            node.rules.settles(now, node.has_demand);
        }
        self.update(now);
        self.schedule.coincidences += u64::from(self.completed_now && (self.timed_now || self.released_now));
        self.was_decided = self.slots.len() > 1 || self.slots[0].owed == 0;
        if self.slots.len() > 1 {
            self.choose_together(now);
        } else if self.slots[0].owed == 0 {
            self.choose(now);
            // What begins to hold something after the choice may let another one be chosen.
            while self.slots[0].owed == 0 && self.begin_sections(now, jobs) {
                self.choose(now);
            }
        } else {
            return;
        }
        self.pending.iter_mut().for_each(|pending| pending.is_back = false);
    }

    /// Whether the job on a processor keeps it whatever the order says.
    pub(super) fn is_committed(&self, slot: usize) -> bool {
        let slot = &self.slots[slot];
        slot.running.is_some_and(|id| {
            let is_ready =
                self.pending.iter().any(|pending| pending.id == id && !pending.is_back && !pending.lowered);
            let keeps = self.task(id.0).is_non_preemptive_between_points() && !slot.at_point;
            is_ready && (keeps || self.is_beyond_window(id))
        })
    }

    /// The most important job gets the one processor.
    fn choose(&mut self, now: u64) {
        if !self.is_committed(0) {
            let chosen = self.most_important(0, now, false);
            self.hand_over(now, 0, chosen);
            self.charge_above(chosen);
        } else if let Some(id) = self.slots[0].running.filter(|&id| self.may_finish(id)) {
            // From a section on, who keeps the processor is in debt at every level that is empty.
            for index in self.path(id.0) {
                let rules = &self.nodes[index].rules;
                self.nodes[index].is_charged |= rules.knows_debt() && !rules.is_at_its_own();
            }
            // A preemption point within a section that goes on beyond its window is passed.
            self.slots[0].at_point = false;
        }
        self.account_switch(0);
    }

    /// Which budgets pay for a job from now on: those on its path that stand at their own priority.
    fn charge_above(&mut self, chosen: Option<JobId>) {
        let path = chosen.map_or(Vec::new(), |id| self.path(id.0));
        let may_finish = chosen.is_some_and(|id| self.may_finish(id));
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.is_charged = path.contains(&index)
                && (node.rules.is_at_its_own() || (may_finish && node.rules.knows_debt()));
        }
    }

    /// A processor goes from one job to another, or stays with its job.
    pub(super) fn hand_over(&mut self, now: u64, slot: usize, chosen: Option<JobId>) {
        let before = self.slots[slot].running;
        if chosen != before {
            self.take_away(now, slot);
            if let Some(next) = chosen {
                self.take_up(now, slot, next);
            }
        }
        self.slots[slot].at_point = false;
    }

    /// The job on a processor, if any, loses it.
    pub(super) fn take_away(&mut self, now: u64, slot: usize) {
        if let Some(previous) = self.slots[slot].running.take() {
            let what = if self.slots[slot].at_point { What::Yield } else { What::Preempt };
            self.note(now, what, slot, previous);
        }
    }

    /// A job gets a processor.
    pub(super) fn take_up(&mut self, now: u64, slot: usize, next: JobId) {
        let mut what = What::Resume;
        for pending in self.pending.iter_mut().filter(|pending| pending.id == next && !pending.started) {
            pending.started = true;
            what = What::Start;
        }
        self.slots[slot].running = Some(next);
        self.had_last[next.0] = Some(slot);
        self.note(now, what, slot, next);
    }

    /// Where another task has the processor than before, the kernel has to switch.
    pub(super) fn account_switch(&mut self, slot: usize) {
        let cost = self.system.platform().context_switch.map_or(0, |cost| cost.as_ns());
        let slot = &mut self.slots[slot];
        let task = slot.running.map(|(task, _)| task);
        if task != slot.last {
            if task.is_some() {
                slot.owed += cost;
            }
            slot.last = task;
        }
    }

    /// One unit for the kernel, for the running job, or for nobody, on each processor.
    pub(super) fn execute(&mut self, now: u64) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].owed > 0 {
                self.slots[slot].owed -= 1;
                continue;
            }
            let running = self.slots[slot].running;
            for pending in self.pending.iter_mut().filter(|pending| Some(pending.id) == running) {
                pending.executed += 1;
                pending.total += 1;
            }
            let ran = match running {
                None => Ran::Nobody,
                Some((task, job)) => match self.path(task).last() {
                    Some(&below_root) => Ran::Server(below_root),
                    None => Ran::Hard(task, job),
                },
            };
            self.charge(now, ran);
        }
    }

    fn charge(&mut self, now: u64, ran: Ran) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let is_others = matches!(ran, Ran::Server(other) if other != index);
            let has_used = if node.is_charged && !matches!(ran, Ran::Nobody) {
                node.rules.charge(now);
                true
            } else {
                !is_others && node.rules.watches(now, ran, node.has_demand)
            };
            if has_used {
                node.used.push(now);
            }
        }
    }

    /// What happened, when all is over.
    pub(super) fn finish(mut self) -> Schedule {
        for node in &mut self.nodes {
            if let Some(server) = node.server {
                self.schedule.used[server] = std::mem::take(&mut node.used);
            }
        }
        self.schedule
    }

    /// Whether a period of the named server starts now.
    pub(super) fn starts_period(&self, now: u64, name: &str) -> bool {
        let is_named = |node: &&Node| node.server.is_some_and(|at| self.system.servers()[at].name == name);
        let starts = |node: &Node| match node.has_table() {
            true => node.starts_cycle(now),
            false => node.rules.starts_period(now),
        };
        self.nodes.iter().filter(is_named).any(starts)
    }

    /// Whether a job of a task has not ended.
    pub(super) fn has_job(&self, task: usize) -> bool {
        self.pending.iter().chain(&self.suspended).any(|pending| pending.id.0 == task) || self.waits(task)
    }

    pub(super) fn change_priority(&mut self, task: usize, priority: Option<Priority>) {
        self.priorities[task] = priority.map_or(i64::MIN, number);
    }

    pub(super) fn change_budget(&mut self, now: u64, server: usize, capacity: Capacity) {
        for node in self.nodes.iter_mut().filter(|node| node.server == Some(server)) {
            node.rules.changes(now, capacity);
        }
    }

    /// All jobs of a task end without completing.
    pub(super) fn drop_jobs(&mut self, task: usize) {
        for slot in self.slots.iter_mut().filter(|slot| slot.running.is_some_and(|id| id.0 == task)) {
            slot.running = None;
        }
        self.leave(task);
        self.suspended.retain(|pending| pending.id.0 != task);
    }

    /// All jobs of a task wait for a mode that wakes them. Who runs has the processor until the choice.
    pub(super) fn suspend_jobs(&mut self, task: usize) {
        let gone = self.leave(task);
        self.suspended.extend(gone.into_iter().map(|pending| Pending { is_left_over: false, ..pending }));
    }

    /// No job of a task is left here; they, in their order.
    fn leave(&mut self, task: usize) -> Vec<Pending> {
        let (gone, stay) = std::mem::take(&mut self.pending).into_iter().partition(|it| it.id.0 == task);
        self.pending = stay;
        gone
    }

    /// The servers and schedulers above a task of this group.
    pub(super) fn servers_above(&self, task: usize) -> Vec<usize> {
        let path = if self.above[task].is_some() { self.path(task) } else { Vec::new() };
        path.into_iter().filter_map(|node| self.nodes[node].server).collect()
    }

    /// The jobs of a task are left over from the mode before.
    pub(super) fn leave_over(&mut self, task: usize) {
        self.pending.iter_mut().filter(|it| it.id.0 == task).for_each(|it| it.is_left_over = true);
    }

    /// The jobs that have the processors and are not left over: their tasks, and the servers above each.
    pub(super) fn runs_in_mode(&self) -> Vec<(usize, Vec<usize>)> {
        let is_own = |id: &JobId| self.pending.iter().any(|it| it.id == *id && !it.is_left_over);
        let running = self.slots.iter().filter_map(|slot| slot.running).filter(is_own);
        running.map(|(task, _)| (task, self.servers_above(task))).collect()
    }

    /// Jobs of a task that waited for a mode go on, behind their equals.
    pub(super) fn wake_jobs(&mut self, now: u64, task: usize) {
        let suspended = std::mem::take(&mut self.suspended);
        let (woken, stay): (Vec<Pending>, Vec<Pending>) =
            suspended.into_iter().partition(|pending| pending.id.0 == task);
        self.suspended = stay;
        for mut pending in woken {
            (pending.order, pending.released, pending.is_back) = (self.next_order(), now, true);
            self.pending.push(pending);
        }
    }

    /// Where a task's job stands below its node.
    pub(super) fn place_of(&self, now: u64, pending: &Pending, by_deadline: bool) -> Place {
        let (task, job) = pending.id;
        if pending.lowered {
            return Place::BACKGROUND;
        }
        if by_deadline {
            return Place::deadline(pending.deadline);
        }
        let priority = self.priorities[task];
        let promoted = self.nodes.iter().any(|node| node.rules.is_promoted(now, task, job));
        if promoted { Place::promoted(priority) } else { Place::priority(priority) }
    }
}
