//! Dual priority: hard jobs below the soft ones until their promotion.

use super::super::order::Place;
use super::{HardTask, Ran, Rules};

/// A job of a hard task that has not ended: (task, job), its promotion, whether that has come.
struct Waiting {
    job: (usize, usize),
    promotion: u64,
    is_promoted: bool,
}

/// Dual priority, without gain or with self gain.
pub(super) struct DualPriority {
    gains: bool,
    /// (task, what the system gives, else D - R).
    latest: Vec<(usize, u64)>,
    jobs: Vec<Waiting>,
}

impl DualPriority {
    pub(super) fn new(gains: bool, hard: &[HardTask]) -> DualPriority {
        let latest = |task: &HardTask| (task.deadline - response(task, hard)).max(0) as u64;
        let latest = hard.iter().map(|task| (task.id, task.promotion.unwrap_or_else(|| latest(task))));
        DualPriority { gains, latest: latest.collect(), jobs: Vec::new() }
    }
}

/// The worst response time of a task among distinct priorities, its deadline not beyond its period.
fn response(task: &HardTask, hard: &[HardTask]) -> i64 {
    let mut window = task.wcet;
    loop {
        let above = hard.iter().filter(|other| other.priority > task.priority);
        let demand: i64 = above
            .map(|other| (window + other.jitter + other.separation - 1) / other.separation * other.wcet)
            .sum();
        let next = task.wcet + demand;
        if next == window || next + task.jitter > task.deadline {
            return next + task.jitter;
        }
        window = next;
    }
}

impl Rules for DualPriority {
    fn hard_arrives(&mut self, now: u64, task: usize, job: usize, arrival: u64) {
        let after = self.latest.iter().find(|(id, _)| *id == task).map_or(0, |(_, after)| *after);
        let promotion = arrival + after;
        self.jobs.push(Waiting { job: (task, job), promotion, is_promoted: promotion <= now });
    }

    fn hard_ends(&mut self, _now: u64, task: usize, _executed: u64) {
        // A task's jobs end in order.
        if let Some(first) = self.jobs.iter().position(|waiting| waiting.job.0 == task) {
            self.jobs.remove(first);
        }
    }

    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        let mut any = false;
        for waiting in self.jobs.iter_mut().filter(|w| !w.is_promoted && w.promotion <= now) {
            waiting.is_promoted = true;
            any = true;
        }
        any
    }

    fn watches(&mut self, _now: u64, ran: Ran, _has_work: bool) -> bool {
        if let (true, Ran::Hard(task, job)) = (self.gains, ran) {
            let runs = |waiting: &&mut Waiting| waiting.job == (task, job) && !waiting.is_promoted;
            self.jobs.iter_mut().filter(runs).for_each(|waiting| waiting.promotion += 1);
        }
        false
    }

    fn place(&self, _now: u64) -> Option<Place> {
        Some(Place::SOFT)
    }

    fn is_promoted(&self, _now: u64, task: usize, job: usize) -> bool {
        self.jobs.iter().any(|waiting| waiting.job == (task, job) && waiting.is_promoted)
    }
}
