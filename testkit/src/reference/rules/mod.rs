//! The rules of the servers, one a file.

mod constant_bandwidth;
mod dual_priority;
mod polled;
mod posix_sporadic;
mod priority_exchange;
mod slack_stealing;
mod sporadic;
mod total_bandwidth;

use super::order::{Place, number};
use horolog_model::{Arrival, Capacity, Enforcement, Server, ServerKind, SporadicRules, Task};

/// Who had the processor for one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ran {
    /// A job of a hard task: (task, job).
    Hard(usize, usize),
    /// A server of this processor, by its place there.
    Server(usize),
    /// Nobody.
    Nobody,
}

/// What a server is told and asked.
pub(super) trait Rules {
    /// Something below it could run that could not before.
    fn arrives(&mut self, _now: u64) {}
    /// Nothing below it can run any more.
    fn empties(&mut self, _now: u64) {}
    /// Timers that are due go off; whether there were any.
    fn timers(&mut self, _now: u64, _has_work: bool) -> bool {
        false
    }
    /// All jobs of this instant have arrived.
    fn settles(&mut self, _now: u64, _has_work: bool) {}
    /// The unit from `now` on was executed below it, while it stood at its own priority.
    fn charge(&mut self, _now: u64) {}
    /// Whether it stands at its own priority, so that what is executed below it is charged.
    fn is_at_its_own(&self) -> bool {
        false
    }
    /// Whether what is executed without budget is paid for later.
    fn knows_debt(&self) -> bool {
        true
    }
    /// The unit from `now` on belonged to `ran` and was not charged: this server, a hard task or nobody. Whether it used budget.
    fn watches(&mut self, _now: u64, _ran: Ran, _has_work: bool) -> bool {
        false
    }
    /// Whether a period starts now.
    fn starts_period(&self, _now: u64) -> bool {
        false
    }
    /// A mode gives it another budget, or the same.
    fn changes(&mut self, _now: u64, _capacity: Capacity) {}
    /// Its deadline, where it has one of its own.
    fn deadline(&self) -> Option<u64> {
        None
    }
    /// The deadline that it gives a job which is released now, of a task with this wcet.
    fn deadline_of_job(&mut self, _now: u64, _wcet: u64) -> Option<u64> {
        None
    }
    /// Where the server stands while it has work.
    fn place(&self, now: u64) -> Option<Place>;
    /// A job of a hard task is noticed.
    fn hard_arrives(&mut self, _now: u64, _task: usize, _job: usize, _arrival: u64) {}
    /// A job of a hard task has ended after so many units.
    fn hard_ends(&mut self, _now: u64, _task: usize, _executed: u64) {}
    /// Whether a job of a hard task is promoted.
    fn is_promoted(&self, _now: u64, _task: usize, _job: usize) -> bool {
        false
    }
}

/// What slack policies and priority exchange look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct HardTask {
    pub(super) id: usize,
    pub(super) priority: i64,
    pub(super) wcet: i64,
    /// Zero where there is none.
    pub(super) separation: i64,
    pub(super) deadline: i64,
    pub(super) jitter: i64,
    pub(super) is_periodic: bool,
    /// How long after its arrival it is promoted, where the system says so.
    pub(super) promotion: Option<u64>,
}

impl HardTask {
    pub(super) fn of(id: usize, task: &Task) -> HardTask {
        let separation = task.separation().map_or(0, |span| span.as_ns() as i64);
        HardTask {
            id,
            priority: task.priority.map_or(i64::MIN, number),
            wcet: task.wcet.as_ns() as i64,
            separation,
            deadline: task.deadline.map_or(separation, |span| span.as_ns() as i64),
            jitter: task.jitter.as_ns() as i64,
            is_periodic: matches!(task.arrival, Arrival::Periodic { .. }),
            promotion: task.promotion.map(|span| span.as_ns()),
        }
    }
}

/// The root of a processor has no rules.
pub(super) struct Root;

impl Rules for Root {
    fn place(&self, _now: u64) -> Option<Place> {
        None
    }
}

/// Without a budget, at its priority; below an EDF parent where the earliest deadline below it stands.
struct Plain {
    place: Place,
}

impl Rules for Plain {
    fn place(&self, _now: u64) -> Option<Place> {
        Some(self.place)
    }
}

/// Below every task, always.
struct Background;

impl Rules for Background {
    fn place(&self, _now: u64) -> Option<Place> {
        Some(Place::BACKGROUND)
    }
}

/// The rules of a server beside these hard tasks.
pub(super) fn rules_of(server: &Server, hard: &[HardTask]) -> Box<dyn Rules> {
    match server.kind {
        ServerKind::Polling { capacity, priority, low_priority } => {
            Box::new(polled::Polled::new(capacity, priority, low_priority, true))
        }
        ServerKind::Deferrable { capacity, priority, low_priority } => {
            Box::new(polled::Polled::new(capacity, priority, low_priority, false))
        }
        ServerKind::Sporadic { capacity, priority, low_priority, max_replenishments: most, rules } => {
            let high = Place::priority(number(priority));
            let low = Place::low(low_priority);
            match rules {
                SporadicRules::Posix => {
                    Box::new(posix_sporadic::PosixSporadic::new(capacity, high, low, most))
                }
                _ => Box::new(sporadic::Sporadic::new(capacity, high, low, most)),
            }
        }
        ServerKind::PriorityExchange { capacity, priority } => {
            Box::new(priority_exchange::PriorityExchange::new(capacity, number(priority), hard))
        }
        ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own } => {
            Box::new(constant_bandwidth::ConstantBandwidth::new(capacity))
        }
        ServerKind::ConstantBandwidth { capacity, .. } => {
            Box::new(constant_bandwidth::KernelsReservation::new(capacity))
        }
        ServerKind::TotalBandwidth { capacity } => Box::new(total_bandwidth::TotalBandwidth::new(capacity)),
        ServerKind::DualPriority { gain } => Box::new(dual_priority::DualPriority::new(gain.is_self(), hard)),
        ServerKind::SlackStealing { gain } => {
            Box::new(slack_stealing::SlackStealing::new(gain.is_propagated(), hard))
        }
        ServerKind::Plain { priority: Some(priority) } => {
            Box::new(Plain { place: Place::priority(number(priority)) })
        }
        ServerKind::Background | ServerKind::Plain { priority: None } => Box::new(Background),
    }
}
