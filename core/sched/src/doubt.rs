//! Budgets in doubt (decision 0007): what was executed is known within bounds, or nothing is known of a stretch of time, until each
//! supply says by its own rule that what it has is known again.

use crate::dispatcher::NONE;
use crate::pump::NEVER;
use crate::{Driver, Machine, ProcessorIndex};
use horolog_model::ServerId;
use horolog_time::{Instant, Span};

/// What is not known of the execution up to an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// At most so much was executed beyond what was told.
    pub more: Span,
    /// At most so much is any budget overdrawn: the longest stretch that no end of a budget interrupts.
    pub overdraw: Span,
}

impl Doubt {
    /// How often a whole budget fits into what may have been executed; rounded up.
    pub(crate) fn budgets(&self, full: i64) -> u64 {
        self.more.as_ns() / full.unsigned_abs().max(1) + 1
    }

    /// For how many periods what was used until now may keep a budget away: one, and those that an overdraw takes.
    #[must_use]
    pub fn periods(&self, budget: Span) -> u64 {
        match self.overdraw.as_ns() {
            0 => 1,
            most => 3 + most / budget.as_ns().max(1),
        }
    }
}

/// How much less may be left of a budget than its supply says, which then says the most that may be left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missing {
    amount: i64,
    /// No less than this is left.
    deepest: i64,
}

impl Missing {
    #[inline(always)]
    pub(crate) fn is_some(&self) -> bool {
        self.amount != 0
    }

    fn add(&mut self, left: i64, more: u64) {
        let least = left.saturating_sub(self.amount).saturating_sub_unsigned(more);
        self.amount = left - least.max(self.deepest).min(left);
    }

    #[cold]
    pub(crate) fn doubt(&mut self, left: i64, doubt: Doubt) {
        let overdraw = 0_i64.saturating_sub_unsigned(doubt.overdraw.as_ns());
        self.deepest = self.deepest.min(overdraw).min(left);
        self.add(left, doubt.more.as_ns());
    }

    /// The node has executed, perhaps within its budget.
    #[cold]
    pub(crate) fn executed(&mut self, left: i64, amount: Span) {
        self.add(left, amount.as_ns());
    }

    /// What is left becomes what a rule says, which gives no more for less.
    #[inline]
    pub(crate) fn apply(&mut self, left: &mut i64, rule: impl Fn(i64) -> i64) {
        let least = *left - self.amount;
        *left = rule(*left);
        if self.amount != 0 {
            self.amount = *left - rule(least);
            self.forget_if_none();
        }
    }

    fn forget_if_none(&mut self) {
        if self.amount == 0 {
            self.deepest = 0;
        }
    }

    /// A record says what is left; zero: nothing, and perhaps less.
    pub(crate) fn learn(&mut self, left: &mut i64, budget: Span) {
        let budget = budget.as_ns() as i64;
        if budget > 0 {
            *left = budget;
            *self = Missing::default();
        } else {
            self.apply(left, |left| left.min(0));
        }
    }
}

impl Machine {
    /// Nothing is known of the jobs of its processors but that there are none: everything but the supplies is as in `fresh`, and what
    /// these have is in doubt. False: what a service knows of the past is lost for good, so that nothing was done.
    #[must_use]
    fn begin_anew(&mut self, fresh: &Machine, now: Instant, doubt: Doubt) -> bool {
        if !self.watches.is_empty() || !self.bandwidths.is_empty() {
            return false;
        }
        let supplied = std::mem::take(&mut self.supplied);
        let changes: Vec<u64> = self.processors.iter().map(|processor| processor.changes).collect();
        self.clone_from(fresh);
        self.supplied = supplied;
        for (processor, changes) in self.processors.iter_mut().zip(changes) {
            processor.changes = changes;
        }
        for supplied in &mut self.supplied {
            let index = usize::from(self.nodes[supplied.node as usize].processor);
            supplied.begin_anew(now, doubt, &mut self.processors[index]);
        }
        true
    }

    /// Whether what each budget of a processor has at `now` is known, where there is no job on it.
    #[must_use]
    fn is_known(&self, processor: ProcessorIndex, now: Instant) -> bool {
        let supplies = self.processors[usize::from(processor.0)].supplies.clone();
        self.supplied[supplies].iter().all(|supplied| supplied.is_known(now))
    }

    /// What stands above a budget in doubt is in doubt: its demand is, and whether it was charged.
    fn spread_doubt(&mut self, processor: ProcessorIndex, now: Instant, overdraw: Span) {
        let index = usize::from(processor.0);
        let supplies = self.processors[index].supplies.clone();
        for place in supplies {
            if !self.supplied[place].is_known(now) {
                let above = self.nodes[self.supplied[place].node as usize].parent;
                self.doubt_path(index, above, now, Doubt { more: overdraw, overdraw });
            }
        }
    }

    /// Every budget from a node upwards is in doubt.
    fn doubt_path(&mut self, index: usize, first: u32, now: Instant, doubt: Doubt) {
        let mut node = first;
        while node != NONE {
            if let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) {
                supplied.doubt(now, doubt, &mut self.processors[index]);
            }
            node = self.nodes[node as usize].parent;
        }
        if first != NONE && self.processors[index].is_shallow {
            self.follow_supply(first, now);
        } else if first != NONE {
            self.propagate(first, now);
        }
    }

    fn learn(&mut self, server: ServerId, budget: Span, now: Instant) {
        let node = self.servers[server.index()];
        let Some(supplied) = self.supplied.get_mut(self.supply_of[node as usize] as usize) else { return };
        if supplied.is_known(now) {
            return;
        }
        let index = usize::from(self.nodes[node as usize].processor);
        supplied.learn(now, budget, &mut self.processors[index]);
        if self.processors[index].is_shallow {
            self.follow_supply(node, now);
        } else {
            self.propagate(node, now);
        }
    }
}

impl Driver {
    /// Nothing is known of what happened since the machine was told last but that there is no job at `now`. Jobs, tables and choices
    /// are those of `fresh`, a driver of the same system to which nothing was told; every budget is in doubt until its supply says
    /// that it is known ([`Driver::is_known`]). False where that never comes, since a service or a total bandwidth server hangs on
    /// the past: nothing was done.
    #[must_use]
    pub fn begin_anew(&mut self, fresh: &Driver, now: u64, doubt: Doubt) -> bool {
        if !self.machine.begin_anew(&fresh.machine, Instant::from_ns(now), doubt) {
            return false;
        }
        for (pump, fresh) in self.pumps.iter_mut().zip(&fresh.pumps) {
            let noted = std::mem::take(&mut pump.noted);
            *pump = fresh.clone();
            (pump.noted, pump.last) = (noted, now.max(pump.last));
        }
        true
    }

    /// Of the job that has the processor at `place` it is known only that it executed at least what was told: the budgets above it
    /// are in doubt. Whether there are any.
    pub fn doubt(&mut self, place: usize, now: u64, doubt: Doubt) -> bool {
        let Self { machine, pumps, .. } = self;
        let pump = &mut pumps[place];
        let Some(leaf) = machine.leaves.get(pump.running as usize).filter(|_| pump.has_timers) else {
            return false;
        };
        let (index, node) = (usize::from(pump.processor.0), leaf.node);
        machine.doubt_path(index, node, Instant::from_ns(now), doubt);
        // No budget in doubt is counted down.
        (pump.allowance, pump.is_due) = (NEVER, true);
        !machine.is_known(pump.processor, Instant::from_ns(now))
    }

    /// Whether every budget on a processor without jobs is known at `now`.
    #[must_use]
    pub fn is_known(&self, place: usize, now: u64) -> bool {
        self.machine.is_known(self.pumps[place].processor, Instant::from_ns(now))
    }

    /// What stands above a budget in doubt is in doubt, too; called after every instant as long as any budget is.
    pub fn spread_doubt(&mut self, place: usize, now: u64, overdraw: u64) {
        let Self { machine, pumps, .. } = self;
        machine.spread_doubt(pumps[place].processor, Instant::from_ns(now), Span::from_ns(overdraw));
    }

    /// A record says that a server's budget has come back and what it may execute from `now` on; zero: that it has run out. It
    /// matters only to a budget in doubt. Of a server that puts off its deadline when its budget runs out, a return at that instant
    /// is not told.
    pub fn learn(&mut self, server: ServerId, budget: u64, now: u64) {
        self.machine.learn(server, Span::from_ns(budget), Instant::from_ns(now));
        // Whoever runs may run for another time.
        self.pumps.iter_mut().for_each(|pump| pump.is_due |= pump.has_timers);
    }
}
