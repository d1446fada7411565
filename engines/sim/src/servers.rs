//! What servers do becomes records: budgets that run out and come back, promotions, slack.

use crate::engine::Core;
use crate::lane::Lane;
use crate::source::Source;
use horolog_model::{CpuId, ServerId, ServerKind, System, TaskId};
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Sink};

/// The servers of one processor as they were seen last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    servers: Vec<Seen>,
    /// How often budgets had run out or come back, where no records are made.
    changes: u64,
    /// The hard tasks that are promoted, and whether each stood low.
    promoted: Vec<(u32, bool)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    id: ServerId,
    /// The kinds of its records: without budget, and with budget again.
    kinds: [Kind; 2],
    exhaustions: u64,
    replenishments: u64,
}

impl Watched {
    pub(crate) fn new(system: &System, cpu: CpuId) -> Watched {
        let kinds = |kind: &ServerKind| match kind {
            ServerKind::SlackStealing { .. } => [Kind::SlackChange; 2],
            _ => [Kind::BudgetExhausted, Kind::BudgetReplenished],
        };
        let servers = system.servers_on(cpu);
        let servers: Vec<Seen> = servers
            .map(|(id, server)| Seen { id, kinds: kinds(&server.kind), exhaustions: 0, replenishments: 0 })
            .collect();
        let is_dual =
            |(_, server): (_, &horolog_model::Server)| matches!(server.kind, ServerKind::DualPriority { .. });
        let promoted = if system.servers_on(cpu).any(is_dual) {
            system.hard_tasks_on(cpu).map(|(id, _)| (id.0, false)).collect()
        } else {
            Vec::new()
        };
        Watched { servers, changes: 0, promoted }
    }
}

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// Before a choice: records what has changed since the last look.
    #[inline(always)]
    pub(crate) fn note_servers(&mut self, lane: &mut Lane, now: u64) {
        if K::ACTIVE || !lane.watched.promoted.is_empty() {
            self.record_servers(lane, now);
            return;
        }
        // Without a trace records are counted, not made.
        let changes = self.machine.budget_changes(lane.processor);
        self.events += changes - lane.watched.changes;
        lane.watched.changes = changes;
    }

    fn record_servers(&mut self, lane: &mut Lane, now: u64) {
        for index in 0..lane.watched.servers.len() {
            let seen = &mut lane.watched.servers[index];
            let (id, kinds) = (seen.id, seen.kinds);
            let tally = self.machine.tally(id);
            let exhaustions = tally.exhaustions - seen.exhaustions;
            let replenishments = tally.replenishments - seen.replenishments;
            (seen.exhaustions, seen.replenishments) = (tally.exhaustions, tally.replenishments);
            let is_slack = kinds[0] == kinds[1];
            for _ in 0..exhaustions {
                let extra = if is_slack { 0 } else { tally.consumed.as_ns() };
                self.emit(lane, now, kinds[0], NO_TASK, NO_JOB, id.0.into(), extra);
            }
            for _ in 0..replenishments {
                let budget = self.machine.budget(id).map_or(0, Span::as_ns);
                let extra = if is_slack { 1 } else { budget };
                self.emit(lane, now, kinds[1], NO_TASK, NO_JOB, id.0.into(), extra);
            }
        }
        for index in 0..lane.watched.promoted.len() {
            let (task, was_low) = lane.watched.promoted[index];
            let is_low = self.machine.stands_low(TaskId(task));
            if was_low && !is_low {
                let job = self.tasks[task as usize].completed;
                self.emit(lane, now, Kind::Promotion, task, job, 0, 0);
            }
            lane.watched.promoted[index].1 = is_low;
        }
    }
}
