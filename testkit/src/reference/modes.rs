//! Modes: which one it is, which ones are asked for, and the arrivals, which depend on them.

use super::Job;
use super::group::Group;
use horolog_model::{
    Arrival, ExecutionTimes, LeftOver, SecondRequest, System, TakesEffect, TaskId, TaskInMode,
};

/// The mode of a system, and who arrives when.
pub(super) struct Modes<'a> {
    system: &'a System,
    mode: u32,
    /// Requests that have not taken effect, in their order.
    waiting: Vec<u32>,
    /// When each task's next job arrives.
    next: Vec<Option<u64>>,
    /// Instants of changes.
    pub(super) changes: Vec<u64>,
}

impl<'a> Modes<'a> {
    pub(super) fn new(system: &'a System) -> Modes<'a> {
        let first = |task: &horolog_model::Task| match &task.arrival {
            Arrival::Aperiodic { .. } => None,
            _ => Some(task.offset.map_or(0, |offset| offset.as_ns())),
        };
        let next = system.tasks().iter().map(first).collect();
        Modes { system, mode: 0, waiting: Vec::new(), next, changes: Vec::new() }
    }

    fn task(&self, mode: u32, task: usize) -> TaskInMode {
        self.system.task_in(mode, TaskId(task as u32))
    }

    /// What has ended has ended: requests take effect, one after the other.
    pub(super) fn step(&mut self, now: u64, groups: &mut [Group<'_>]) {
        self.take_effect(now, groups);
        for (at, mode) in self.system.mode_requests() {
            if at.as_ns() != now {
                continue;
            }
            let wants = self.system.modes()[mode as usize - 1].second_request;
            if self.waiting.is_empty() || wants == SecondRequest::Queue {
                self.waiting.push(mode);
                self.take_effect(now, groups);
            }
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
            self.change(now, mode, groups);
        }
    }

    fn change(&mut self, now: u64, mode: u32, groups: &mut [Group<'_>]) {
        self.changes.push(now);
        // Budgets first, then jobs.
        for server in self.system.server_ids() {
            if let Some(capacity) = self.system.capacity_in(mode, server) {
                groups.iter_mut().for_each(|group| group.change_budget(now, server.index(), capacity));
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
                    }
                    group.wake_jobs(now, task);
                } else if after.left_over == LeftOver::Drop {
                    group.drop_jobs(task);
                } else if after.left_over == LeftOver::Suspend {
                    group.suspend_jobs(task);
                }
            }
        }
        groups.iter_mut().for_each(|group| group.update(now));
        self.mode = mode;
    }

    /// The jobs of a task that arrive now: each with its absolute deadline.
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
        (0..count).map(|_| (Job { arrival: now, ready: now, segments: segments.clone() }, deadline)).collect()
    }
}
