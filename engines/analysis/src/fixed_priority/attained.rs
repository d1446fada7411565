//! Whether the terms of servers are least, and where they come from.

use super::blocking;
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuServer, CpuTask, Retention, Seen};
use horolog_model::{Priority, ServerKind};

/// More periods of a server than this are not looked at.
const MOST_PERIODS: u64 = 1_000_000;

/// Whether some run that the model allows has the servers above the task at `index` take as much as their terms say
/// within `window` ns: then a bound that is least without servers is least with them.
///
/// That needs soft jobs that keep every server above busy from the critical instant on, at replenishments that can
/// coincide with it. A deferrable or sporadic server must not be delayed itself, so nothing may be above it or block
/// it.
pub(crate) fn attained(cpu: &CpuModel, index: usize, window: u64) -> bool {
    let tied = cpu.tasks.iter().any(|task| task.offset.is_some());
    let Some(own) = cpu.tasks[index].priority else { return false };
    if tied || cpu.has_sections() || !cpu.is_exact_without_servers() {
        return false;
    }
    cpu.servers.iter().all(|server| match server.seen_from(Some(own)) {
        Seen::Nothing => true,
        Seen::Unbounded => false,
        Seen::Tasks(tasks, moves) => {
            let strictly = server.low_place().flatten().is_some_and(|low| low.is_more_important_than(own));
            strictly && moves.is_empty() && tasks.iter().all(is_free)
        }
        Seen::Load(_) => {
            let strictly = server.kind.priority().is_some_and(|high| high.is_more_important_than(own));
            strictly
                && (tolerates_delay(server) || is_undelayed(cpu, index, server))
                && is_busy(server, window)
        }
    })
}

/// Whether the task's phase is free and its arrivals are as dense as its separation says.
fn is_free(task: &CpuTask) -> bool {
    task.offset.is_none() && matches!(task.arrival, ArrivalCurve::Periodic { jitter: 0, .. })
}

/// Whether the server takes its full term even where work above delays it.
fn tolerates_delay(server: &CpuServer) -> bool {
    matches!(server.kind, ServerKind::Polling { .. } | ServerKind::PriorityExchange { .. })
}

/// Whether nothing is above the server, and nothing below can block it.
fn is_undelayed(cpu: &CpuModel, index: usize, server: &CpuServer) -> bool {
    let Some(high) = server.kind.priority() else { return false };
    let below = |priority: Option<Priority>| priority.is_some_and(|p| high.is_more_important_than(p));
    cpu.tasks.iter().all(|task| below(task.priority))
        && cpu.servers.iter().all(|other| other.id == server.id || below(other.kind.priority()))
        && blocking(cpu, index) == Ok(0)
        && cpu.tasks.iter().all(|task| task.shape.preemptive)
}

/// Whether the server's queue can hold enough work, from a synchronous arrival on, to use up every capacity within the
/// window.
fn is_busy(server: &CpuServer, window: u64) -> bool {
    let (Some(capacity), Some(retention)) = (server.kind.capacity(), server.retention()) else {
        return false;
    };
    let (budget, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
    if !server.queue.iter().all(is_free) || window / period > MOST_PERIODS {
        return false;
    }
    let came = |at: u128| -> u128 {
        server.queue.iter().map(|task| task.arrival.closed(at) * u128::from(task.bare_wcet)).sum()
    };
    (0..=window / period + 1).all(|execution| {
        // A deferrable server executes at the end of a period, then at the starts of the next ones.
        let at = match retention {
            Retention::AsPeriodic => u128::from(execution) * u128::from(period),
            Retention::Deferrable if execution == 0 => 0,
            Retention::Deferrable => u128::from(budget) + u128::from(execution - 1) * u128::from(period),
        };
        at > u128::from(window) || came(at) >= u128::from(execution + 1) * u128::from(budget)
    })
}

/// A key of `docs/references.bib` for the terms of the servers above the task at `index`; `None` where there are none.
pub(crate) fn source_of_terms(cpu: &CpuModel, index: usize) -> Option<&'static str> {
    let own = cpu.tasks[index].priority?;
    let sources = cpu.servers.iter().filter_map(|server| match server.seen_from(Some(own)) {
        Seen::Nothing => None,
        Seen::Tasks(..) => Some((0, "tindell94")),
        Seen::Unbounded => Some((4, "stanovich10")),
        Seen::Load(_) => Some(match server.kind {
            ServerKind::Deferrable { .. } => (3, "strosnider95"),
            ServerKind::Sporadic { .. } => (2, "sprunt89"),
            ServerKind::PriorityExchange { .. } => (2, "lehoczky87"),
            _ => (1, "bernat99"),
        }),
    });
    sources.max().map(|(_, source)| source)
}
