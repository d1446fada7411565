//! Processors with servers: what their threads execute, and when a budget is used up.
//!
//! What the running thread has executed comes from its own CPU clock. Between two looks at the clock, what it can only have
//! executed after an instant (the agent was late by so much) is told after that instant. So a server's periods and
//! replenishments count from nominal instants and do not drift, and a late agent is release jitter, which the analysis knows as
//! the platform's release latency.
//!
//! The end of a budget is an instant on the thread's clock. The agent sleeps until the earliest time at which it can come and
//! sleeps again where the thread has executed less.

use super::driver::{Driver, Threads};
use crate::options::RecordLevel;
use horolog_model::{CpuId, ServerId, System, TaskId};
use horolog_sched::{Machine, Note};
use horolog_time::{Instant, Span};
use horolog_trace::{Enforcement, NO_JOB, Record, ResponseStatistics, ServerOutcome};

/// The agent looks no sooner than this after it has left: a shorter sleep costs more than it tells.
const LEAST_SLEEP: u64 = 5_000;

/// Where the thread has executed nothing since the last look (somebody beyond our bands has its processor), the sleep
/// doubles up to this: by so much a budget can be overdrawn then.
const LONGEST_PATIENCE: u64 = 100_000;

/// What a processor with servers keeps beside its machine.
pub(crate) struct Served {
    /// The running thread's CPU clock when it was last read.
    clock: u64,
    /// What it had executed when the present pass read it, as far as it was not told, and when that was.
    pending: u64,
    read_at: u64,
    /// When the running budget can be used up at the earliest; `u64::MAX`: never.
    pub(crate) budget_at: u64,
    /// The shortest sleep until the next look at the budget.
    patience: u64,
    servers: Vec<Watched>,
}

/// A server or scheduler of this processor.
struct Watched {
    id: ServerId,
    /// The tasks below it, at any depth.
    tasks: Vec<TaskId>,
    /// What was left of its budget when the running job was chosen, where that one pays.
    left: Option<u64>,
    /// By how much the present budget was overdrawn until that was noticed; what is executed later, below everybody or
    /// committed, is not counted.
    overshoot: Option<u64>,
    overshoots: ResponseStatistics,
}

impl Watched {
    /// What is charged to it has been executed.
    fn executed(&mut self, amount: u64) {
        if let Some(over) = &mut self.overshoot {
            *over += amount;
        } else if let Some(left) = self.left.filter(|_| amount > 0) {
            self.overshoot = amount.checked_sub(left);
            self.left = left.checked_sub(amount);
        }
    }

    fn note_overshoot(&mut self) {
        if let Some(over) = self.overshoot.take() {
            self.overshoots.record(Span::from_ns(over));
        }
    }
}

impl Served {
    /// Of the processor `cpu`; `None` where it has no servers.
    pub(crate) fn new(system: &System, cpu: CpuId) -> Option<Box<Served>> {
        let is_below = |task, id| system.schedulers_above(task).any(|above| above == id);
        let servers: Vec<Watched> = system
            .servers_on(cpu)
            .filter(|(_, server)| !server.kind.is_kernels())
            .map(|(id, _)| Watched {
                id,
                tasks: system.task_ids().filter(|&task| is_below(task, id)).collect(),
                left: None,
                overshoot: None,
                overshoots: ResponseStatistics::default(),
            })
            .collect();
        (!servers.is_empty()).then(|| {
            Box::new(Served {
                clock: 0,
                pending: 0,
                read_at: 0,
                budget_at: u64::MAX,
                patience: LEAST_SLEEP,
                servers,
            })
        })
    }

    /// What of the execution up to the last look at the clock happened before `at` and was not told. It counts at every level
    /// above the running task.
    pub(super) fn executed(&mut self, at: u64) -> u64 {
        let amount = self.pending.saturating_sub(self.read_at.saturating_sub(at));
        self.pending -= amount;
        self.servers.iter_mut().for_each(|server| server.executed(amount));
        amount
    }

    /// A choice was made, and what the machine was not told (`untold`) is still to be charged: how much is left of each
    /// budget above the running task.
    pub(super) fn follow_budgets(&mut self, machine: &Machine, running: Option<TaskId>, untold: u64) {
        for server in &mut self.servers {
            let pays = running.is_some_and(|task| server.tasks.contains(&task));
            let left = if pays { machine.budget(server.id) } else { None };
            server.left = left.map(|left| left.as_ns().saturating_sub(untold));
        }
    }

    /// When to look at the running thread's budgets: not before the tightest can be used up.
    pub(super) fn plan_look(&mut self, now: u64, allowance: u64) {
        self.budget_at = match allowance {
            0 | u64::MAX => u64::MAX,
            rest => now.saturating_add(rest.max(self.patience)),
        };
    }
}

impl Threads {
    /// Reads the running thread's clock where what it executes is charged to somebody.
    pub(super) fn look_at_clock(&mut self, now: u64) {
        let Some(served) = &mut self.served else { return };
        served.read_at = now;
        let Some(clock) = self.current.and_then(|current| self.seats[current].executed_ns()) else {
            return;
        };
        let amount = clock.saturating_sub(served.clock);
        served.clock = clock;
        served.pending += amount;
        served.patience = if amount == 0 { (served.patience * 2).min(LONGEST_PATIENCE) } else { LEAST_SLEEP };
    }

    /// `new` runs from now on; the present one still stands in `current`.
    pub(super) fn follow_clock(&mut self, new: Option<usize>) {
        let Some(served) = &mut self.served else { return };
        served.servers.iter_mut().for_each(Watched::note_overshoot);
        if new.is_none() || new != self.current {
            if let Some(held) = self.current.map(|old| &mut self.seats[old]).filter(|old| old.held) {
                held.charged = Some(served.clock);
            }
            served.patience = LEAST_SLEEP;
            served.pending = 0;
            // What a thread has executed to be held is its server's, and told with what it executes from now on.
            served.clock = new.map_or(0, |new| {
                let seat = &mut self.seats[new];
                let clock = seat.executed_ns().unwrap_or(0);
                seat.charged.take().map_or(clock, |charged| charged.min(clock))
            });
        }
    }

    pub(super) fn record_note(&self, at: u64, note: Note) {
        if let Note::ModeEnded { .. } = note {
            self.note_mode_end(at);
        }
        let Some(first) = self.seats.first().filter(|first| first.shared.record != RecordLevel::Nothing)
        else {
            return;
        };
        let job = match note {
            Note::Promoted { task } | Note::TaskDispatched { task, .. } => {
                let seat = self.seats.iter().find(|seat| seat.shared.id == task);
                seat.and_then(|seat| seat.backlog.front()).map_or(NO_JOB, |job| job.number)
            }
            _ => NO_JOB,
        };
        self.ring.push(Record::of_note(note, Instant::from_ns(at), first.shared.cpu as u16, job));
    }
}

impl Driver {
    /// What each server of this processor came to, `elapsed` ns after the start.
    pub(crate) fn server_outcomes(
        &mut self,
        system: &System,
        elapsed: u64,
    ) -> Vec<(ServerId, ServerOutcome)> {
        let Self { core, threads } = self;
        let Some(served) = &mut threads.served else { return Vec::new() };
        served.servers.iter_mut().for_each(Watched::note_overshoot);
        let machine = core.machine();
        // Where a mode gives it another one, there is no share to hold it to.
        let keeps_one_budget = |id| {
            let mut modes = 0..system.mode_count();
            let capacity = system.server(id).kind.capacity();
            system.server(id).kind.is_budgeted() && modes.all(|mode| system.capacity_in(mode, id) == capacity)
        };
        let outcome = |seen: &Watched| {
            let (server, tally) = (system.server(seen.id), machine.tally(seen.id));
            let enforcement = server.kind.capacity().filter(|_| keeps_one_budget(seen.id)).map(|capacity| {
                Enforcement::new(
                    "one-shot timer on the thread's CPU clock",
                    &seen.overshoots,
                    (tally.consumed, Span::from_ns(elapsed)),
                    (capacity.budget, capacity.period),
                )
            });
            let outcome = ServerOutcome {
                name: server.name.clone(),
                kind: server.kind_word(),
                order: server.is_scheduler().then(|| server.order.word()),
                consumed_ns: server.kind.counts_execution().then_some(tally.consumed),
                exhaustions: tally.exhaustions,
                replenishments: tally.replenishments,
                enforcement,
            };
            (seen.id, outcome)
        };
        served.servers.iter().map(outcome).collect()
    }
}
