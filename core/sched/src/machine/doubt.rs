//! Budgets in doubt: the machine begins anew, and learns what its budgets are.

use super::dispatcher::NONE;
use crate::{Doubt, Machine, ProcessorIndex};
use horolog_model::ServerId;
use horolog_time::{Instant, Span};

impl Machine {
    /// Nothing is known of the jobs of its processors but that there are none: everything but the supplies is as in `fresh`, and what
    /// these have is in doubt. False: what a service knows of the past is lost for good, so that nothing was done.
    #[must_use]
    pub(crate) fn begin_anew(&mut self, fresh: &Machine, now: Instant, doubt: Doubt) -> bool {
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
    pub(crate) fn is_known(&self, processor: ProcessorIndex, now: Instant) -> bool {
        let supplies = self.processors[usize::from(processor.0)].supplies.clone();
        self.supplied[supplies].iter().all(|supplied| supplied.is_known(now))
    }

    /// What stands above a budget in doubt is in doubt: its demand is, and whether it was charged.
    pub(crate) fn spread_doubt(&mut self, processor: ProcessorIndex, now: Instant, overdraw: Span) {
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
    pub(crate) fn doubt_path(&mut self, index: usize, first: u32, now: Instant, doubt: Doubt) {
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

    pub(crate) fn learn(&mut self, server: ServerId, budget: Span, now: Instant) {
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
