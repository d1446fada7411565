//! What the servers of a system file are in the tree: their nodes, supplies and services.

use crate::servers::any_service::AnyService;
use crate::servers::any_supply::AnySupply;
use crate::servers::constant_bandwidth_server::ConstantBandwidthServer;
use crate::servers::deferrable_server::DeferrableServer;
use crate::servers::dual_priority::DualPriority;
use crate::servers::hard_reservation::HardReservation;
use crate::servers::overheads::Overheads;
use crate::servers::polling_server::PollingServer;
use crate::servers::posix_sporadic_server::PosixSporadicServer;
use crate::servers::priority_exchange::PriorityExchange;
use crate::servers::slack_stealing::SlackStealing;
use crate::servers::sporadic_server::SporadicServer;
use crate::{HardTask, Level, NodePolicy, NodeSpec, Place, Supply};
use horolog_model::{
    Capacity, Enforcement, LowPriority, ModelError, Order, Priority, Server, ServerKind, SporadicRules,
    System,
};
use horolog_time::{Instant, Span};

/// Beyond this (146 years) sums of budgets and times could leave the range of the arithmetic.
const LONGEST: Span = Span::from_ns(1 << 62);

/// How a node orders its children.
pub(crate) fn node_policy(order: Order) -> NodePolicy {
    match order {
        Order::FixedPriority => NodePolicy::FixedPriority,
        Order::Edf => NodePolicy::Edf,
        Order::Table => NodePolicy::Table,
        Order::Fifo => NodePolicy::Fifo,
    }
}

/// The node of a server, without its supply; `hard` are the priorities of the hard tasks beside it.
pub(crate) fn node(server: &Server, hard: impl Iterator<Item = Priority>) -> NodeSpec {
    let policy = node_policy(server.order);
    let mut spec = NodeSpec { policy, priority: server.kind.priority(), ..NodeSpec::default() };
    spec.lower_places = match server.kind {
        ServerKind::Polling { low_priority, .. }
        | ServerKind::Deferrable { low_priority, .. }
        | ServerKind::Sporadic { low_priority, .. } => match low_priority {
            LowPriority::At(priority) => vec![Level::at(priority)],
            LowPriority::None => Vec::new(),
            _ => vec![Level::BACKGROUND],
        },
        ServerKind::PriorityExchange { priority, .. } => lent_to(hard, priority),
        ServerKind::DualPriority { .. } => vec![Level::ABOVE_ALL],
        ServerKind::SlackStealing { .. } => vec![Level::ABOVE_ALL, Level::BACKGROUND],
        ServerKind::ConstantBandwidth { enforcement: Enforcement::Kernel { .. }, .. } => {
            vec![Level::ABOVE_ALL]
        }
        ServerKind::ConstantBandwidth { .. }
        | ServerKind::TotalBandwidth { .. }
        | ServerKind::Plain { .. } => Vec::new(),
        ServerKind::Background => vec![Level::BACKGROUND],
    };
    spec
}

/// Just above each less important priority, from the top down, and below all of them.
fn lent_to(hard: impl Iterator<Item = Priority>, own: Priority) -> Vec<Level> {
    let mut numbers: Vec<i64> =
        hard.filter(|&other| own.is_more_important_than(other)).map(Priority::number).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.dedup();
    let levels = numbers.into_iter().map(|number| Level::just_above(Priority::new(number)));
    levels.chain([Level::BACKGROUND]).collect()
}

/// The rules of a server by themselves, without a machine around them; `None` for kinds that have no budget of their own
/// or watch a whole processor. Periods count from `origin`.
///
/// # Errors
/// Where the period is above 2^62 ns.
pub fn supply(server: &Server, origin: Instant) -> Result<Option<Box<dyn Supply>>, ModelError> {
    Ok(any_supply(server, origin)?.map(AnySupply::into_box))
}

/// The supply of a server that has one.
pub(crate) fn any_supply(server: &Server, origin: Instant) -> Result<Option<AnySupply>, ModelError> {
    let without = match server.kind.low_priority() {
        Some(LowPriority::None) | None => Place::Out,
        Some(_) => Place::Low(0),
    };
    check_period(server)?;
    Ok(match server.kind {
        ServerKind::Polling { capacity, .. } => {
            Some(AnySupply::Polling(PollingServer::new(capacity, origin, without)))
        }
        ServerKind::Deferrable { capacity, .. } => {
            Some(AnySupply::Deferrable(DeferrableServer::new(capacity, origin, without)))
        }
        ServerKind::Sporadic { capacity, max_replenishments, rules: SporadicRules::Posix, .. } => {
            Some(AnySupply::PosixSporadic(PosixSporadicServer::new(capacity, max_replenishments, without)))
        }
        ServerKind::Sporadic { capacity, max_replenishments, .. } => {
            Some(AnySupply::Sporadic(SporadicServer::new(capacity, max_replenishments, without)))
        }
        ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Kernel { .. } } => {
            Some(AnySupply::HardReservation(HardReservation::new(capacity)))
        }
        ServerKind::ConstantBandwidth { capacity, .. } => {
            Some(AnySupply::ConstantBandwidth(ConstantBandwidthServer::new(capacity)))
        }
        ServerKind::Background
        | ServerKind::Plain { .. }
        | ServerKind::PriorityExchange { .. }
        | ServerKind::TotalBandwidth { .. }
        | ServerKind::DualPriority { .. }
        | ServerKind::SlackStealing { .. } => None,
    })
}

/// The service of a server that watches all tasks of its processor.
pub(crate) fn service(
    system: &System,
    server: &Server,
    hard: &[HardTask],
    origin: Instant,
) -> Result<Option<AnyService>, ModelError> {
    check_period(server)?;
    let overheads = || Overheads::new(system, server.cpu);
    Ok(match server.kind {
        ServerKind::PriorityExchange { capacity, priority } => {
            Some(AnyService::PriorityExchange(PriorityExchange::new(hard, capacity, priority, origin)))
        }
        ServerKind::DualPriority { gain } => {
            Some(AnyService::DualPriority(DualPriority::new(system, hard, &overheads(), gain)?))
        }
        ServerKind::SlackStealing { gain } => {
            Some(AnyService::SlackStealing(SlackStealing::new(hard, overheads(), gain)))
        }
        ServerKind::Background
        | ServerKind::Plain { .. }
        | ServerKind::Polling { .. }
        | ServerKind::Deferrable { .. }
        | ServerKind::Sporadic { .. }
        | ServerKind::ConstantBandwidth { .. }
        | ServerKind::TotalBandwidth { .. } => None,
    })
}

fn check_period(server: &Server) -> Result<(), ModelError> {
    match server.kind.capacity() {
        Some(Capacity { period, .. }) if period > LONGEST => Err(ModelError {
            at: format!("server.{}.period", server.name),
            reason: format!("the period {period} is above 2^62 ns (146 years)"),
            remedy: "use a smaller value".to_owned(),
        }),
        _ => Ok(()),
    }
}
