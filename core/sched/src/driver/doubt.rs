//! Budgets in doubt, as the world tells of them.

use super::pump::NEVER;
use crate::{Doubt, Driver};
use horolog_model::ServerId;
use horolog_time::{Instant, Span};

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
