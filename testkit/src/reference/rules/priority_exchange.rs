//! Priority exchange: a budget a level.

use super::super::order::Place;
use super::{HardTask, Ran, Rules};
use horolog_model::Capacity;

/// A priority exchange server.
pub(super) struct PriorityExchange {
    full: u64,
    period: u64,
    /// (priority, budget), the most important first; the first one is the server's own.
    levels: Vec<(i64, u64)>,
    hard: Vec<HardTask>,
}

impl PriorityExchange {
    pub(super) fn new(capacity: Capacity, priority: i64, hard: &[HardTask]) -> PriorityExchange {
        let mut below: Vec<i64> = hard.iter().map(|task| task.priority).filter(|&p| p < priority).collect();
        below.sort_unstable();
        below.dedup();
        let levels = [priority].into_iter().chain(below.into_iter().rev()).map(|level| (level, 0)).collect();
        let (full, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        PriorityExchange { full, period, levels, hard: hard.to_vec() }
    }

    /// Takes a unit from the most important budget, above `below` where that is given.
    fn take(&mut self, below: Option<i64>) -> bool {
        let from = |level: &&mut (i64, u64)| level.1 > 0 && below.is_none_or(|below| level.0 > below);
        match self.levels.iter_mut().find(from) {
            Some(level) => {
                level.1 -= 1;
                true
            }
            None => false,
        }
    }
}

impl Rules for PriorityExchange {
    fn timers(&mut self, now: u64, _has_work: bool) -> bool {
        let is_due = now.is_multiple_of(self.period);
        if is_due {
            self.levels[0].1 = self.full;
        }
        is_due
    }

    fn watches(&mut self, _now: u64, ran: Ran, has_work: bool) -> bool {
        match ran {
            Ran::Server(_) => return self.take(None),
            Ran::Nobody if !has_work => {
                self.take(None);
            }
            Ran::Hard(task, _) if !has_work => {
                let priority = self.hard.iter().find(|hard| hard.id == task).map_or(i64::MAX, |h| h.priority);
                if self.take(Some(priority))
                    && let Some(level) = self.levels.iter_mut().find(|level| level.0 == priority)
                {
                    level.1 += 1;
                }
            }
            _ => {}
        }
        false
    }

    fn place(&self, _now: u64) -> Option<Place> {
        let first = self.levels.iter().find(|level| level.1 > 0);
        Some(match first {
            None => Place::BACKGROUND,
            // At its own level who was ready first goes first.
            Some(level) if level.0 == self.levels[0].0 => Place::priority(level.0),
            Some(level) => Place::before(level.0),
        })
    }
}
