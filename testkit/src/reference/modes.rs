//! Modes: which one it is, which ones are asked for, and the arrivals, which depend on them.

use super::group::Group;
use super::{Job, Node};
use horolog_model::{
    Arrival, ExecutionTimes, LeftOver, OverrunPolicy, SecondRequest, System, TakesEffect, TaskId, TaskInMode,
};

/// The mode of a system, and who arrives when.
pub(super) struct Modes<'a> {
    system: &'a System,
    mode: u32,
    /// Requests that have not taken effect, in their order.
    waiting: Vec<u32>,
    /// Those of them that a mode asked for which they follow.
    following: Vec<u32>,
    /// When each task's next job arrives.
    next: Vec<Option<u64>>,
    /// Instants of changes.
    pub(super) changes: Vec<u64>,
    /// The mode before the last change, until it has ended.
    ending: Option<u32>,
    pub(super) ended: Vec<(u64, u32)>,
    /// Who has not had the processor in the mode.
    to_dispatch: Vec<Node>,
    pub(super) dispatched: Vec<(u64, Node, u32)>,
}

impl<'a> Modes<'a> {
    pub(super) fn new(system: &'a System) -> Modes<'a> {
        let first = |task: &horolog_model::Task| match &task.arrival {
            Arrival::Aperiodic { .. } => None,
            _ => Some(task.offset.map_or(0, |offset| offset.as_ns())),
        };
        let next = system.tasks().iter().map(first).collect();
        Modes {
            system,
            mode: 0,
            waiting: Vec::new(),
            following: Vec::new(),
            next,
            changes: Vec::new(),
            ending: None,
            ended: Vec::new(),
            to_dispatch: Vec::new(),
            dispatched: Vec::new(),
        }
    }

    fn task(&self, mode: u32, task: usize) -> TaskInMode {
        self.system.task_in(mode, TaskId(task as u32))
    }

    /// What has ended has ended: requests take effect, one after the other. Of one instant those of the file come before those of
    /// the jobs that have used up their budgets.
    pub(super) fn step(&mut self, now: u64, overrun: &[usize], groups: &mut [Group<'_>]) {
        self.take_effect(now, groups);
        for (at, mode) in self.system.mode_requests() {
            if at.as_ns() != now {
                continue;
            }
            self.ask(now, mode, groups);
        }
        for &task in overrun {
            let OverrunPolicy::Mode(name) = &self.system.tasks()[task].overrun else { continue };
            let place = self.system.modes().iter().position(|mode| mode.name == *name);
            let mode = place.map_or(0, |place| place as u32 + 1);
            let others = self.waiting.len() > self.following.len();
            let holds = !others && self.mode == mode;
            if !holds && !self.waiting.contains(&mode) {
                self.ask(now, mode, groups);
            }
        }
    }

    fn ask(&mut self, now: u64, mode: u32, groups: &mut [Group<'_>]) {
        let wants = self.system.modes()[mode as usize - 1].second_request;
        if self.waiting.is_empty() || wants == SecondRequest::Queue {
            self.waiting.push(mode);
            self.take_effect(now, groups);
        }
    }

    /// Requests that wait take effect in their order, for as long as the first of them does.
    fn take_effect(&mut self, now: u64, groups: &mut [Group<'_>]) {
        while let Some(&mode) = self.waiting.first() {
            let is_time = match &self.system.modes()[mode as usize - 1].takes_effect {
                TakesEffect::Frame(name) => groups.iter().any(|group| group.starts_period(now, name)),
                TakesEffect::WhenDone(names) => {
                    let is_left = |name: &String| {
                        let task = self.system.find_task(name).map_or(usize::MAX, TaskId::index);
                        groups.iter().any(|group| group.has_job(task))
                    };
                    !names.iter().any(is_left)
                }
                _ => true,
            };
            if !is_time {
                return;
            }
            self.waiting.remove(0);
            self.following.retain(|&other| other != mode);
            if let Some(then) = &self.system.modes()[mode as usize - 1].then {
                let place = self.system.modes().iter().position(|other| other.name == *then);
                let then = place.map_or(0, |place| place as u32 + 1);
                if !self.waiting.contains(&then) {
                    self.waiting.push(then);
                    self.following.push(then);
                }
            }
            self.change(now, mode, groups);
        }
    }

    fn change(&mut self, now: u64, mode: u32, groups: &mut [Group<'_>]) {
        self.changes.push(now);
        // Budgets and tables first, then jobs.
        for server in self.system.server_ids() {
            if let Some(capacity) = self.system.capacity_in(mode, server) {
                groups.iter_mut().for_each(|group| group.change_budget(now, server.index(), capacity));
            }
            let (before, after) =
                (self.system.table_in(self.mode, server), self.system.table_in(mode, server));
            if let Some(table) = after.filter(|after| Some(*after) != before) {
                groups.iter_mut().for_each(|group| group.change_table(now, server.index(), table));
            }
        }
        groups.iter_mut().for_each(|group| group.update(now));
        for task in 0..self.next.len() {
            let (before, after) = (self.task(self.mode, task), self.task(mode, task));
            let has_other_period = before.separation != after.separation;
            if after.separation.is_some() {
                if !after.is_active {
                    self.next[task] = None;
                } else if !before.is_active || has_other_period {
                    self.next[task] = Some(now);
                }
            }
            for group in groups.iter_mut().filter(|group| group.above[task].is_some()) {
                group.change_priority(task, after.priority);
                if after.is_active {
                    if has_other_period && after.left_over == LeftOver::Drop {
                        group.drop_jobs(task);
                    } else if has_other_period {
                        group.leave_over(task);
                    }
                    group.wake_jobs(now, task);
                } else if after.left_over == LeftOver::Drop {
                    group.drop_jobs(task);
                } else if after.left_over == LeftOver::Suspend {
                    group.suspend_jobs(task);
                } else {
                    group.leave_over(task);
                }
            }
        }
        groups.iter_mut().for_each(|group| group.update(now));
        self.ending = Some(self.mode);
        self.mode = mode;
        self.look_for_end(now, groups);
        let is_active = |task: &usize| self.task(mode, *task).is_active;
        let active: Vec<usize> = (0..self.next.len()).filter(is_active).collect();
        self.to_dispatch = active.iter().map(|&task| Node::Task(task)).collect();
        let servers = (0..self.system.servers().len()).map(Node::Server);
        let has_active = |node: &Node| {
            let mut above =
                active.iter().flat_map(|&task| groups.iter().flat_map(move |it| it.servers_above(task)));
            above.any(|server| Node::Server(server) == *node)
        };
        self.to_dispatch.extend(servers.filter(has_active));
    }

    /// Whether the mode before has ended: none of its jobs is left.
    pub(super) fn look_for_end(&mut self, now: u64, groups: &[Group<'_>]) {
        let is_left = |group: &Group<'_>| group.pending.iter().any(|pending| pending.is_left_over);
        if let Some(mode) = self.ending.take_if(|_| !groups.iter().any(is_left)) {
            self.ended.push((now, mode));
        }
    }

    /// Who has the processor after the choice, for the first time in the mode.
    pub(super) fn look_for_dispatches(&mut self, now: u64, group: &Group<'_>) {
        if !group.was_decided {
            return;
        }
        for (task, servers) in group.runs_in_mode() {
            for node in std::iter::once(Node::Task(task)).chain(servers.into_iter().map(Node::Server)) {
                if let Some(place) = self.to_dispatch.iter().position(|other| *other == node) {
                    self.to_dispatch.remove(place);
                    self.dispatched.push((now, node, self.mode));
                }
            }
        }
    }

    /// The jobs of a task that arrive now: each with its absolute deadline.
    /// `before` jobs of the task came before.
    pub(super) fn arrivals(&mut self, now: u64, task: usize) -> Vec<(Job, Option<u64>)> {
        let spec = &self.system.tasks()[task];
        let in_mode = self.task(self.mode, task);
        let mut count = 0;
        if let Arrival::Aperiodic { arrivals } = &spec.arrival {
            count =
                if in_mode.is_active { arrivals.iter().filter(|at| at.as_ns() == now).count() } else { 0 };
        } else if self.next[task] == Some(now) {
            count = 1;
            self.next[task] = in_mode.separation.map(|separation| now + separation.as_ns());
        }
        let segments = match (&spec.segment_graph(), &spec.execution) {
            (Some(graph), _) => graph.segments.iter().map(|segment| segment.wcet.as_ns()).collect(),
            (_, ExecutionTimes::Samples(samples)) => vec![samples[0].as_ns()],
            _ => vec![spec.wcet.as_ns()],
        };
        let deadline = in_mode.deadline.map(|deadline| now + deadline.as_ns());
        let job = || Job { arrival: now, ready: now, segments: segments.clone(), path: Vec::new() };
        (0..count).map(|_| (job(), deadline)).collect()
    }
}
