//! The budgets of a measured tree, as the records have them.
//!
//! In a tree a job is charged at every level, and what it executed between two records is an estimate; a budget that ran out by
//! an estimate would make wrong decisions of right ones. So a measured tree is decided again with supplies that hold no budget:
//! each stands where the records of its ends and returns say. What the budgets come to is judged by [`crate::levels`].

use horolog_model::{LowPriority, Server, ServerId, ServerKind, SporadicRules, System};
use horolog_sched::{EntityId, Machine, MachineBuilder, Place, Supply, Tell};
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

    fn executed(&mut self, _: Instant, _: Span) -> bool {
        false
    }

    fn timer_fired(&mut self, _: Instant) {}

    fn demand_changed(&mut self, _: Instant, backlogged: bool) {
        if self.polls && !backlogged {
            self.place = self.without;
        }
    }

    fn lent(&mut self, _: Instant, place: Place) {
        self.place = place;
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
        builder.supply(id, Box::new(OnRecord { place, without, polls }));
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
