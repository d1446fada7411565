//! A server of a system, with its costs, as the tests of its processor see it.

use super::{Costs, CpuTask, InterruptLoad, LONGEST_NS};
use crate::arrival_curve::ArrivalCurve;
use crate::error::AnalysisError;
use crate::hyperbolic_load::HyperbolicLoad;
use horolog_model::{Capacity, LowPriority, Priority, Server, ServerId, ServerKind, SporadicRules};
use horolog_time::Span;

/// One server and the tasks that it serves. All times in ns.
#[derive(Clone, Debug)]
pub struct CpuServer {
    /// Its id within the system.
    pub id: ServerId,
    /// Its name.
    pub name: String,
    /// Its rules.
    pub kind: ServerKind,
    /// The tasks that it serves.
    pub queue: Vec<CpuTask>,
    /// What it takes at its own priority (under EDF: at its deadlines), costs included; `None` for servers without a
    /// capacity, and by POSIX's letter.
    pub load: Option<InterruptLoad>,
    /// What it takes above all tasks, costs included, where the kernel serves it.
    pub reservation: Option<HyperbolicLoad>,
    /// The interrupts of its own timers.
    pub timers: Option<InterruptLoad>,
    /// Switching in each period, beyond the capacity.
    pub overhead: u64,
    /// Switching that its changes of place, or of deadline, cost work below all of its places, beyond that of its jobs.
    pub moves: Vec<InterruptLoad>,
    pub(crate) costs: Costs,
}

/// What becomes of capacity that nobody asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retention {
    /// It is lost, comes back no earlier than a period after it was taken, or is exchanged: the server takes from
    /// tasks below no more than a periodic task does.
    AsPeriodic,
    /// It is kept to the end of the period: the server may execute at the end of one and at the start of the next.
    Deferrable,
}

impl Retention {
    /// The release jitter of the periodic task that takes as much: 0, or T_s − C_s.
    #[must_use]
    pub fn jitter(self, capacity: u64, period: u64) -> u64 {
        match self {
            Self::AsPeriodic => 0,
            Self::Deferrable => period.saturating_sub(capacity),
        }
    }

    /// The server as a load above others.
    #[must_use]
    pub fn load(self, capacity: u64, period: u64) -> InterruptLoad {
        let jitter = self.jitter(capacity, period);
        InterruptLoad { arrival: ArrivalCurve::Periodic { separation: period, jitter }, wcet: capacity }
    }
}

/// What a server is to work of some priority.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// It is below.
    Nothing,
    /// Its capacity is above.
    Load(&'a InterruptLoad),
    /// All its work is above, with capacity or without: its tasks, and the switching that its changes of place cost besides.
    Tasks(&'a [CpuTask], &'a [InterruptLoad]),
    /// It is above, and nothing bounds what it takes.
    Unbounded,
}

impl CpuServer {
    pub(crate) fn new(
        id: ServerId,
        server: &Server,
        queue: Vec<CpuTask>,
        costs: Costs,
    ) -> Result<CpuServer, AnalysisError> {
        let mut built = CpuServer {
            id,
            name: server.name.clone(),
            kind: server.kind,
            queue,
            load: None,
            reservation: None,
            timers: None,
            overhead: 0,
            moves: Vec::new(),
            costs,
        };
        if let Some(capacity) = server.kind.capacity() {
            let set = built.set_capacity(capacity.budget.as_ns(), capacity.period.as_ns());
            set.ok_or_else(|| {
                AnalysisError::overflow(format!("server.{}", server.name), "a period with costs")
            })?;
        }
        Ok(built)
    }

    /// Gives it another capacity and period; `None` where they leave the numbers.
    ///
    /// Each stretch of execution switches to the server and away from it, and may need a timer at its end. A period
    /// holds at most as many as jobs of the least length fit into the capacity, one cut off at each end, and one for each
    /// part in which the capacity may come back.
    pub(crate) fn set_capacity(&mut self, budget: u64, period: u64) -> Option<()> {
        let shortest = self.queue.iter().map(|task| task.bcet.max(1)).min().unwrap_or(1);
        let stretches = (budget / shortest).checked_add(2)?.checked_add(parts(&self.kind, budget))?;
        let within = |ns: Option<u64>| ns.filter(|&ns| ns <= LONGEST_NS);
        within(Some(period))?;
        self.overhead = within(self.costs.context_switch.checked_mul(2)?.checked_mul(stretches))?;
        let cost = within(self.costs.context_switch.checked_mul(2))?;
        let queue = self.queue.iter().map(|task| (task.arrival.clone(), task.wcet));
        self.moves = moves(&self.kind, (budget, period), queue, (cost, self.costs.late))?;
        let capacity = Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) };
        self.kind = self.kind.with_capacity(capacity);
        self.load = self.retention().map(|retention| {
            let mut load = retention.load(budget, period);
            load.wcet += self.overhead;
            load
        });
        if self.costs.interrupt > 0 {
            let wcet = within(self.costs.interrupt.checked_mul(stretches + 1))?;
            let arrival = ArrivalCurve::Periodic { separation: period, jitter: period };
            self.timers = Some(InterruptLoad { arrival, wcet });
        }
        Some(())
    }

    /// What becomes of its unused capacity; `None` for servers without one, by POSIX's letter, and in the kernel.
    #[must_use]
    pub fn retention(&self) -> Option<Retention> {
        match self.kind {
            kind if kind.is_kernels() => None,
            ServerKind::Deferrable { .. } => Some(Retention::Deferrable),
            ServerKind::Sporadic { rules: SporadicRules::Posix, .. } => None,
            kind => kind.capacity().map(|_| Retention::AsPeriodic),
        }
    }

    /// Whether it takes nothing from any task that it does not serve.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(self.kind, ServerKind::Background)
    }

    /// Whether it goes on without capacity: at this priority, or below all tasks (`Some(None)`).
    pub(crate) fn low_place(&self) -> Option<Option<Priority>> {
        match self.kind.low_priority() {
            Some(LowPriority::At(priority)) => Some(Some(priority)),
            Some(LowPriority::Background) => Some(None),
            Some(_) => None,
            // It lends its capacity to others, but never goes on without.
            None if matches!(self.kind, ServerKind::PriorityExchange { .. }) => None,
            None if self.kind.is_kernels() => None,
            None => Some(None),
        }
    }

    /// What it is to work of the given priority; `None`: to work below all tasks. Equals count as above.
    pub(crate) fn seen_from(&self, priority: Option<Priority>) -> Seen<'_> {
        let above = |own: Option<Priority>| match (priority, own) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(priority), Some(own)) => !priority.is_more_important_than(own),
        };
        if self.low_place().is_some_and(above) {
            return Seen::Tasks(&self.queue, &self.moves);
        }
        // A constant bandwidth server has no place among fixed priorities; it is above what has no deadline.
        let high = self.kind.priority();
        if high.is_none() || !above(high) {
            return Seen::Nothing;
        }
        self.load.as_ref().map_or(Seen::Unbounded, Seen::Load)
    }
}

/// In how many parts, at different instants of one period, a capacity may come back beyond the first: of a sporadic server as many as it
/// keeps apart, and none is shorter than 1 ns.
pub(crate) fn parts(kind: &ServerKind, budget: u64) -> u64 {
    match kind {
        ServerKind::Sporadic { max_replenishments, .. } => budget.min(u64::from(*max_replenishments)),
        _ => 0,
    }
}

/// What the changes of place of a server that goes on without capacity cost work below all of its places, and those of deadline where
/// it has one: each may preempt another task, which comes back later. `queue` has when jobs come and their wcet, `cost` is two switches,
/// `late` how late a change may be noticed.
/// `None` where it leaves the numbers.
///
/// A capacity that comes back lifts the server; that it ends is the way back of the same. A constant bandwidth server puts its deadline
/// off whenever it has executed its capacity: at most once for each of a job's, once for the rest, and once for what is left when the window begins.
pub(crate) fn moves(
    kind: &ServerKind,
    (budget, period): (u64, u64),
    queue: impl Iterator<Item = (ArrivalCurve, u64)>,
    (cost, late): (u64, u64),
) -> Option<Vec<InterruptLoad>> {
    if cost == 0 {
        return Some(Vec::new());
    }
    let within = |ns: Option<u64>| ns.filter(|&ns| ns <= LONGEST_NS);
    if let ServerKind::ConstantBandwidth { .. } = kind {
        let of_task = |(arrival, wcet): (ArrivalCurve, u64)| {
            let times = wcet.checked_div(budget.max(1))?.checked_add(1)?;
            Some(InterruptLoad { arrival, wcet: within(cost.checked_mul(times))? })
        };
        let at_first = ArrivalCurve::Periodic { separation: LONGEST_NS, jitter: 0 };
        let first = std::iter::once(Some(InterruptLoad { arrival: at_first, wcet: cost }));
        return queue.map(of_task).chain(first).collect();
    }
    let wcet = within(cost.checked_mul(parts(kind, budget).max(1)))?;
    let jitter = within(period.checked_add(late))?;
    Some(vec![InterruptLoad { arrival: ArrivalCurve::Periodic { separation: period, jitter }, wcet }])
}
