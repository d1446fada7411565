//! The choice of a cluster: its m most important jobs run.

use super::group::{Group, JobId, Pending};
use horolog_model::Order;

impl Group<'_> {
    /// Gives the processors to the most important jobs.
    pub(super) fn choose_together(&mut self, now: u64) {
        let chosen = self.first_of_cluster(now);
        let slots = 0..self.slots.len();
        for slot in slots.clone() {
            if self.slots[slot].running.is_some_and(|id| !chosen.contains(&id)) {
                self.take_away(now, slot);
            }
            self.slots[slot].at_point = false;
        }
        let runs = |group: &Self, id: JobId| group.slots.iter().any(|slot| slot.running == Some(id));
        let mut newcomers: Vec<JobId> = chosen.into_iter().filter(|&id| !runs(self, id)).collect();
        // First those whose processor is free, then the others.
        newcomers.retain(|&id| {
            let home = self.had_last[id.0].filter(|&slot| self.slots[slot].running.is_none());
            if let Some(slot) = home {
                self.take_up(now, slot, id);
            }
            home.is_none()
        });
        for id in newcomers {
            if let Some(slot) = slots.clone().find(|&slot| self.slots[slot].running.is_none()) {
                self.take_up(now, slot, id);
            }
        }
        slots.for_each(|slot| self.account_switch(slot));
    }

    /// Who runs, the most important first: those who cannot be preempted, and the first of the others.
    fn first_of_cluster(&self, now: u64) -> Vec<JobId> {
        let committed = (0..self.slots.len()).filter(|&slot| self.is_committed(slot));
        let committed: Vec<JobId> = committed.filter_map(|slot| self.slots[slot].running).collect();
        let by_deadline = self.nodes[0].order == Order::Edf;
        let mut jobs: Vec<&Pending> = self.oldest(0).collect();
        jobs.sort_by_key(|pending| {
            let place = self.place_of(now, pending, by_deadline);
            let runs = !pending.is_back && self.slots.iter().any(|slot| slot.running == Some(pending.id));
            let entered =
                if by_deadline { (pending.released, pending.id.0 as u64) } else { (pending.order, 0) };
            (std::cmp::Reverse(place), !runs, entered)
        });
        let mut free = self.slots.len() - committed.len();
        let mut chosen = Vec::new();
        for id in jobs.iter().map(|pending| pending.id) {
            if committed.contains(&id) {
                chosen.push(id);
            } else if free > 0 {
                free -= 1;
                chosen.push(id);
            }
        }
        chosen
    }
}
