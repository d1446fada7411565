//! Priority exchange: budget that finds no work is lent to the hard task that runs instead, and may be used at that
//! task's priority later.
//!
//! There is a budget a level: the server's own and one for each less important hard priority. At every multiple of the
//! period the server's own becomes full, whatever was left. Soft jobs run at the most important level that has budget,
//! before the hard tasks of that level, and use it. While they have nothing to do, time goes as follows: a hard task of
//! level k that runs takes as much over, from the most important budgets above k to that of k; when nobody runs, the
//! most important budget is lost as time passes. Without any budget soft jobs run in the background.
//!
//! Exchanged budget is used at a less important place than it was given for, so less important tasks see at most a
//! periodic task (budget, period).
//!
//! Source: `lehoczky87`.

use crate::servers::period::Period;
use crate::{HardTask, Place, Service, Tally};
use horolog_model::{Capacity, Priority};
use horolog_time::{Instant, Span};

/// A priority exchange server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct PriorityExchange {
    full: u64,
    period: Period,
    /// Budgets, the server's own first.
    levels: Box<[u64]>,
    /// The most important level with budget; the number of levels where none has any.
    best: usize,
    /// The level of each hard task; 0 for those that are not less important than the server.
    level_of: Box<[usize]>,
    /// Up to when time has been accounted for.
    last: u64,
    /// Whether soft work waits or runs since then: no budget is lent or lost.
    backlogged: bool,
    tally: Tally,
}

impl PriorityExchange {
    pub(crate) fn new(
        hard: &[HardTask],
        capacity: Capacity,
        priority: Priority,
        origin: Instant,
    ) -> PriorityExchange {
        let mut level = 0;
        let mut before = None;
        let mut level_of = Vec::with_capacity(hard.len());
        for task in hard {
            let is_less = priority.is_more_important_than(task.priority);
            if is_less && before != Some(task.priority) {
                level += 1;
                before = Some(task.priority);
            }
            level_of.push(if is_less { level } else { 0 });
        }
        let mut levels = vec![0; level + 1];
        levels[0] = capacity.budget.as_ns();
        PriorityExchange {
            full: capacity.budget.as_ns(),
            period: Period::new(capacity.period, origin),
            best: 0,
            levels: levels.into(),
            level_of: level_of.into(),
            last: origin.as_ns(),
            backlogged: false,
            tally: Tally::default(),
        }
    }

    /// Whether any level has budget.
    fn has_budget(&self) -> bool {
        self.best < self.levels.len()
    }

    /// Takes up to `amount` from the budgets above `end`, the most important first; what was taken.
    #[inline]
    fn take(&mut self, end: usize, amount: u64) -> u64 {
        let mut rest = amount;
        while self.best < end && rest > 0 {
            let taken = rest.min(self.levels[self.best]);
            self.levels[self.best] -= taken;
            rest -= taken;
            self.find_best();
        }
        amount - rest
    }

    /// From `best` on: the next level with budget.
    #[inline]
    fn find_best(&mut self) {
        while self.levels.get(self.best) == Some(&0) {
            self.best += 1;
        }
    }

    /// Nobody runs up to `until`: without soft work budget is lost.
    #[inline]
    fn idle(&mut self, until: u64) {
        let idle = until.saturating_sub(self.last);
        if idle > 0 {
            if !self.backlogged {
                self.take(self.levels.len(), idle);
            }
            self.last = until;
        }
    }
}

impl Service for PriorityExchange {
    fn released(&mut self, _: Instant, _: usize, _: Instant) {}

    fn completed(&mut self, _: Instant, _: usize) {}

    #[inline]
    fn executed(&mut self, now: Instant, rank: Option<usize>, amount: Span) {
        let time = amount.as_ns();
        // What was neither idle nor reported before was executed last.
        self.idle(now.as_ns().saturating_sub(time));
        self.last = self.last.max(now.as_ns());
        match rank.map(|rank| self.level_of[rank]) {
            // More important than the server, or not to be preempted: nothing is exchanged.
            Some(0) => {}
            Some(_) if self.backlogged => {}
            Some(level) => {
                let taken = self.take(level, time);
                if taken > 0 {
                    self.levels[level] = self.levels[level].saturating_add(taken);
                    self.best = self.best.min(level);
                }
            }
            None => {
                // At the most important level; beyond it where the executive was late, in the background without any.
                let had_budget = self.has_budget();
                let taken = self.take(self.levels.len(), time);
                self.tally.consume(Span::from_ns(taken));
                self.tally.exhaustions += u64::from(had_budget && !self.has_budget());
            }
        }
    }

    fn soft_demand(&mut self, now: Instant, backlogged: bool) {
        self.idle(now.as_ns());
        self.backlogged = backlogged;
    }

    fn timer(&self) -> Option<Instant> {
        Some(self.period.next())
    }

    fn timer_fired(&mut self, now: Instant) {
        self.idle(now.as_ns());
        if self.period.reach(now) > 0 {
            self.tally.replenishments += u64::from(self.levels[0] < self.full);
            self.levels[0] = self.full;
            self.best = 0;
            self.find_best();
        }
    }

    fn soft_place(&self) -> Place {
        // The node's places are those of the levels, and last the background.
        match self.best {
            0 => Place::High,
            level => Place::Low((level - 1) as u16),
        }
    }

    fn soft_budget(&self) -> Option<Span> {
        self.levels.get(self.best).map(|&left| Span::from_ns(left))
    }

    #[inline]
    fn counts(&self) -> bool {
        // Without any budget nothing is exchanged, used or lost.
        self.has_budget()
    }

    fn wants_jobs(&self) -> bool {
        false
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}
