//! Slack stealing: soft jobs above the hard tasks while every one of these has slack.

use super::super::order::Place;
use super::{HardTask, Ran, Rules};

/// A hard task and what is known of its jobs.
struct Watched {
    task: HardTask,
    /// Nominal arrivals of the jobs that have not ended, the oldest first.
    pending: Vec<i64>,
    /// What the oldest job has executed.
    executed: i64,
    /// What an ended job has left of its wcet and still counts.
    charge: i64,
    last_arrival: Option<i64>,
    slack: i64,
}

/// Slack stealing, without gain or with propagated gain.
pub(super) struct SlackStealing {
    gains: bool,
    /// Whether a job has arrived on this processor.
    has_begun: bool,
    tasks: Vec<Watched>,
}

impl SlackStealing {
    pub(super) fn new(gains: bool, hard: &[HardTask]) -> SlackStealing {
        let watched = |&task: &HardTask| Watched {
            task,
            pending: Vec::new(),
            executed: 0,
            charge: 0,
            last_arrival: None,
            slack: 0,
        };
        SlackStealing { gains, has_begun: false, tasks: hard.iter().map(watched).collect() }
    }

    /// With the first job of the processor all slacks are computed.
    fn begin(&mut self, now: u64) {
        if !self.has_begun {
            self.has_begun = true;
            self.compute_all(now as i64);
        }
    }

    fn compute_all(&mut self, now: i64) {
        for index in 0..self.tasks.len() {
            self.tasks[index].slack = self.slack(now, index);
        }
    }

    /// The time to the next release of a task.
    fn next_release(&self, now: i64, index: usize) -> i64 {
        let watched = &self.tasks[index];
        match watched.last_arrival {
            None => -watched.task.jitter,
            Some(last) => {
                let next = last + watched.task.separation - now;
                if watched.task.is_periodic { next } else { next.max(0) }
            }
        }
    }

    /// S_i, the slack of one task now.
    fn slack(&self, now: i64, index: usize) -> i64 {
        let own = &self.tasks[index];
        if own.pending.len() > 1 {
            return 0;
        }
        let to_deadline = match own.pending.first() {
            Some(arrival) => arrival + own.task.deadline - now,
            None => self.next_release(now, index) + own.task.deadline,
        };
        let mut demand = 0;
        for other in 0..self.tasks.len() {
            let watched = &self.tasks[other];
            if watched.task.priority < own.task.priority {
                continue;
            }
            let wcet = watched.task.wcet;
            let remaining = if watched.pending.is_empty() { watched.charge } else { wcet - watched.executed };
            let rest = to_deadline - self.next_release(now, other);
            let whole = rest.div_euclid(watched.task.separation).max(0);
            demand += remaining + whole * wcet + (rest - whole * watched.task.separation).clamp(0, wcet);
        }
        (to_deadline - demand).max(0)
    }

    fn is_above(&self) -> bool {
        self.tasks.iter().all(|watched| watched.slack > 0)
    }
}

impl Rules for SlackStealing {
    fn arrives(&mut self, now: u64) {
        self.begin(now);
    }

    fn hard_arrives(&mut self, now: u64, task: usize, _job: usize, arrival: u64) {
        self.begin(now);
        let Some(index) = self.tasks.iter().position(|watched| watched.task.id == task) else { return };
        let watched = &mut self.tasks[index];
        watched.pending.push(arrival as i64);
        watched.last_arrival = Some(arrival as i64);
        watched.charge = 0;
        self.tasks[index].slack = self.slack(now as i64, index);
    }

    fn hard_ends(&mut self, now: u64, task: usize, executed: u64) {
        let Some(index) = self.tasks.iter().position(|watched| watched.task.id == task) else { return };
        let watched = &mut self.tasks[index];
        watched.pending.remove(0);
        watched.executed = 0;
        watched.charge = if self.gains { 0 } else { watched.task.wcet - executed as i64 };
        self.compute_all(now as i64);
    }

    fn watches(&mut self, _now: u64, ran: Ran, _has_work: bool) -> bool {
        let is_above = self.is_above();
        // Everybody more important than this one loses a unit of slack.
        let running = match ran {
            Ran::Hard(task, _) => {
                let running = self.tasks.iter_mut().find(|watched| watched.task.id == task);
                running.map_or(i64::MIN, |watched| {
                    watched.executed += 1;
                    watched.task.priority
                })
            }
            _ => i64::MIN,
        };
        for watched in self.tasks.iter_mut().filter(|watched| watched.task.priority > running) {
            watched.slack -= 1;
        }
        // A unit of time is the time of one charge: the most important one's first.
        if !(matches!(ran, Ran::Server(_)) && is_above) {
            let charged = self.tasks.iter_mut().filter(|w| w.charge > 0 && w.task.priority > running);
            if let Some(first) = charged.max_by_key(|watched| watched.task.priority) {
                first.charge -= 1;
            }
        }
        false
    }

    fn place(&self, _now: u64) -> Option<Place> {
        Some(if self.is_above() { Place::SOFT } else { Place::BACKGROUND })
    }
}
