//! The budgets of a measured tree, as the records have them.
//!
//! In a tree a job is charged at every level, and what it executed between two records is an estimate; a budget that ran out by
//! an estimate would make wrong decisions of right ones. So a measured tree is decided again with supplies that hold no budget:
//! each stands where the records of its ends and returns say. What the budgets come to is judged by [`crate::verifier::levels`].

use horolog_model::{Capacity, LowPriority, Server, ServerId, ServerKind, SporadicRules, System};
use horolog_sched::{Doubt, EntityId, Machine, MachineBuilder, Place, Supply, Tell};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};

/// A supply that stands where the records say.
#[derive(Clone, Debug)]
struct OnRecord {
    place: Place,
    /// Where it stands without budget.
    without: Place,
    /// Without work its budget is gone, and no record says so.
    polls: bool,
    capacity: Option<Capacity>,
    backlogged: bool,
    /// Where it is in doubt: when it has budget by its rules if nothing below it executes from now on, and how long after that it does.
    doubt: Option<(u64, u64)>,
}

impl Supply for OnRecord {
    fn place(&self) -> Place {
        self.place
    }

    fn budget(&self) -> Option<Span> {
        None
    }

    fn timer(&self) -> Option<Instant> {
        None
    }

    fn executed(&mut self, now: Instant, _: Span) -> bool {
        if let Some((back_at, after)) = &mut self.doubt {
            *back_at = (*back_at).max(now.as_ns().saturating_add(*after));
        }
        false
    }

    fn timer_fired(&mut self, _: Instant) {}

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        self.backlogged = backlogged;
        if backlogged && self.doubt.is_some_and(|(back_at, _)| now.as_ns() >= back_at) {
            self.doubt = None;
        }
        if self.polls && !backlogged {
            (self.place, self.doubt) = (self.without, None);
        }
    }

    /// After a period without execution the budget of a server that keeps it has come back; an end or a return that comes before has
    /// its record.
    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        let Some(Capacity { budget, period }) = self.capacity else { return };
        if self.polls && !self.backlogged {
            self.place = self.without;
            return;
        }
        let after = period.as_ns().saturating_mul(doubt.periods(budget));
        let (before, longest) = self.doubt.unwrap_or((0, 0));
        let after = after.max(longest);
        self.doubt = Some((before.max(now.as_ns().saturating_add(after)), after));
        self.place = Place::High;
    }

    fn is_known(&self, now: Instant) -> bool {
        self.doubt.is_none_or(|(back_at, _)| !self.backlogged && now.as_ns() >= back_at)
    }

    fn lent(&mut self, _: Instant, place: Place) {
        (self.place, self.doubt) = (place, None);
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

/// Where the records put a server.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    server: ServerId,
    node: EntityId,
    without: Place,
}

/// With fewer places for replenishments a budget may come to nothing without a record.
pub(crate) const TOLD_REPLENISHMENTS: u32 = 8;

/// Whether the records tell of every change of its place.
pub(crate) fn is_told(server: &Server) -> bool {
    match server.kind {
        ServerKind::Background
        | ServerKind::Plain { .. }
        | ServerKind::Polling { .. }
        | ServerKind::Deferrable { .. } => true,
        ServerKind::Sporadic { max_replenishments, rules: SporadicRules::Corrected, .. } => {
            max_replenishments >= TOLD_REPLENISHMENTS
        }
        ServerKind::Sporadic { .. }
        | ServerKind::PriorityExchange { .. }
        | ServerKind::ConstantBandwidth { .. }
        | ServerKind::TotalBandwidth { .. }
        | ServerKind::DualPriority { .. }
        | ServerKind::SlackStealing { .. } => false,
    }
}

/// The machine of a system whose trees follow the records, and its servers.
pub(crate) fn machine(system: &System) -> Result<(Machine, Vec<Put>), horolog_model::ModelError> {
    let mut builder = MachineBuilder::new(system);
    let with_budget = || {
        let servers = system.server_ids().zip(system.servers());
        servers.filter(|(_, server)| server.kind.low_priority().is_some() && system.has_tree(server.cpu))
    };
    let without = |server: &Server| match server.kind.low_priority() {
        Some(LowPriority::None) | None => Place::Out,
        Some(_) => Place::Low(0),
    };
    for (id, server) in with_budget() {
        let polls = matches!(server.kind, ServerKind::Polling { .. });
        let without = without(server);
        let place = if polls { without } else { Place::High };
        let capacity = server.kind.capacity();
        let supply = OnRecord { place, without, polls, capacity, backlogged: false, doubt: None };
        builder.supply(id, Box::new(supply));
    }
    let machine = builder.build()?;
    let put = |(server, it)| Put { server, node: machine.server(server), without: without(it) };
    // As timers go off: by the lowest tasks below them.
    let mut puts: Vec<Put> = with_budget().map(put).collect();
    puts.sort_by_key(|put| put.node.0);
    Ok((machine, puts))
}

/// Tells the machine what the records of one instant say of budgets, after what ends and before what arrives: who comes back by a
/// timer comes before that, and who does so by an arrival enters its parent's order with that.
pub(crate) fn tell(puts: &[Put], group: &[Record], tell: &mut Tell<'_>) {
    let of = |put: &Put, kind| {
        let is_of = move |record: &&Record| record.kind == kind && record.value == u64::from(put.server.0);
        group.iter().rev().find(is_of)
    };
    for put in puts {
        let back = of(put, Kind::BudgetReplenished);
        // What comes back may be owed.
        if back.is_some_and(|record| record.extra > 0) {
            let _ = tell.lend(put.node, Place::High);
        } else if back.is_some() || of(put, Kind::BudgetExhausted).is_some() {
            let _ = tell.lend(put.node, put.without);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget of a server that keeps it has come back a period after the doubt began, if nothing was executed since: work that
    /// comes then finds it, and work that came before leaves the doubt.
    #[test]
    fn work_that_comes_once_the_budget_is_back_ends_the_doubt() {
        let capacity = Capacity { budget: Span::from_ns(5), period: Span::from_ns(20) };
        let is_known = |comes: u64| {
            let mut supply = OnRecord {
                place: Place::High,
                without: Place::Out,
                polls: false,
                capacity: Some(capacity),
                backlogged: false,
                doubt: None,
            };
            supply.doubt(Instant::from_ns(7), Doubt { more: Span::from_ns(4), overdraw: Span::ZERO });
            supply.demand_changed(Instant::from_ns(comes), true);
            supply.is_known(Instant::from_ns(90))
        };
        assert_eq!((is_known(26), is_known(27)), (false, true));
    }
}
