//! Processors with servers: the machine's execution and wall timers, carried out on real threads.
//!
//! A pass through the monitor first *catches up*: releases and wall timers that have come due are told at the instants at
//! which they were due, in their order, and what the running thread has executed is told before each of them. What it
//! executed comes from its own CPU clock; of that, what it can only have executed after an instant (the agent was late by so
//! much) is told after it. So a server's periods and replenishments count from nominal instants and do not drift, and a late
//! agent is release jitter, which the analysis knows as the platform's release latency.
//!
//! The end of a budget is an instant on the thread's clock. The agent sleeps until the earliest time at which it can come and
//! sleeps again where the thread has executed less.

use super::driver::Driver;
use crate::options::RecordLevel;
use horolog_model::{CpuId, ServerId, ServerKind, System, TaskId};
use horolog_sched::{Desired, EntityId, EventKind, ExecutionTimer, Machine, Tally, WallTimer};
use horolog_time::{Instant, Span};
use horolog_trace::{Enforcement, Kind, NO_JOB, NO_TASK, Record, ResponseStatistics, ServerOutcome};

/// The agent looks no sooner than this after it has left: a shorter sleep costs more than it tells.
const LEAST_SLEEP: u64 = 5_000;

/// Where the thread has executed nothing since the last look (somebody beyond our bands has its processor), the sleep
/// doubles up to this: by so much a budget can be overdrawn then.
const LONGEST_PATIENCE: u64 = 100_000;

/// What a processor with servers keeps beside its machine.
pub(crate) struct Served {
    execution: Option<ExecutionTimer>,
    /// What was executed since the execution timer was armed, as far as it was told.
    consumed: u64,
    /// Whether the overshoot of its budget was noted: what is executed later, below everybody or committed, is none.
    noted: bool,
    /// The running thread's CPU clock when it was last read.
    clock: u64,
    wall: Option<WallTimer>,
    /// When the running budget can be used up at the earliest; `u64::MAX`: never.
    pub(crate) budget_at: u64,
    /// The shortest sleep until the next look at the budget.
    patience: u64,
    /// The latest instant that the machine was told.
    last: u64,
    servers: Vec<Seen>,
    /// The hard tasks that are promoted, and whether each stood low.
    promoted: Vec<(usize, TaskId, bool)>,
}

/// A server as it was seen last.
struct Seen {
    id: ServerId,
    entity: EntityId,
    /// Its tasks: where a service watches, timers count for these.
    tasks: Vec<TaskId>,
    /// The kinds of its records: without budget, and with budget again.
    kinds: [Kind; 2],
    tally: Tally,
    overshoots: ResponseStatistics,
}

impl Served {
    /// Of the processor `cpu`; `None` where it has no servers. `seats` are the tasks in the order of their seats.
    pub(crate) fn new(
        system: &System,
        machine: &Machine,
        cpu: CpuId,
        seats: &[TaskId],
    ) -> Option<Box<Served>> {
        let kinds = |kind: &ServerKind| match kind {
            ServerKind::SlackStealing { .. } => [Kind::SlackChange; 2],
            _ => [Kind::BudgetExhausted, Kind::BudgetReplenished],
        };
        let servers: Vec<Seen> = system
            .servers_on(cpu)
            .filter(|(_, server)| !server.kind.is_kernels())
            .map(|(id, server)| Seen {
                id,
                entity: machine.server(id),
                tasks: system.served_tasks(id).map(|(task, _)| task).collect(),
                kinds: kinds(&server.kind),
                tally: Tally::default(),
                overshoots: ResponseStatistics::default(),
            })
            .collect();
        if servers.is_empty() {
            return None;
        }
        let is_dual =
            system.servers_on(cpu).any(|(_, server)| matches!(server.kind, ServerKind::DualPriority { .. }));
        let hard = seats.iter().enumerate().filter(|(_, task)| is_dual && !system.is_served(**task));
        Some(Box::new(Served {
            execution: None,
            consumed: 0,
            noted: false,
            clock: 0,
            wall: None,
            budget_at: u64::MAX,
            patience: LEAST_SLEEP,
            last: 0,
            promoted: hard.map(|(seat, &task)| (seat, task, false)).collect(),
            servers,
        }))
    }

    /// When a wall timer goes off next; `u64::MAX`: never.
    pub(crate) fn wall_at(&self) -> u64 {
        self.wall.map_or(u64::MAX, |timer| timer.at.as_ns())
    }

    /// A choice was made: where the budget is used up, notes once by how much it was overdrawn before that was noticed.
    fn note_overshoot(&mut self) {
        let Some(ExecutionTimer { entity, after, .. }) = self.execution.filter(|_| !self.noted) else {
            return;
        };
        let Some(over) = self.consumed.checked_sub(after.as_ns()) else { return };
        self.noted = true;
        let is_its =
            |seen: &&mut Seen| seen.entity == entity || seen.tasks.iter().any(|task| task.0 == entity.0);
        if let Some(seen) = self.servers.iter_mut().find(is_its) {
            seen.overshoots.record(Span::from_ns(over));
        }
    }
}

impl Driver {
    /// Tells the machine everything that has come due by `now`.
    pub(crate) fn catch_up(&mut self, now: u64) {
        match self.served.take() {
            None => self.release_due(now),
            Some(mut served) => {
                self.catch_up_served(&mut served, now);
                self.served = Some(served);
            }
        }
    }

    fn catch_up_served(&mut self, served: &mut Served, now: u64) {
        let mut pending = self.executed_since_look(served);
        loop {
            let wall = served.wall_at();
            let device = self.next_device();
            let due = wall.min(self.next_due).min(device);
            if due > now {
                break;
            }
            let before = pending.saturating_sub(now - due);
            pending -= before;
            let at = due.max(served.last);
            self.report(served, at, before);
            if wall == due {
                self.fire(served, at);
            } else {
                if self.next_due == due {
                    self.release_next(at);
                } else {
                    self.device_events(at);
                }
                self.note_servers(served, at);
                served.wall = self.machine.wall_timer(self.processor);
            }
            served.last = at;
        }
        self.report(served, now, pending);
        // What was executed may have asked for a timer that is due: it goes off before the choice.
        served.wall = self.machine.wall_timer(self.processor);
        while served.wall_at() <= now {
            self.fire(served, now);
        }
        self.note_servers(served, now);
        served.last = now;
    }

    /// What the running thread has executed since its clock was last read.
    fn executed_since_look(&mut self, served: &mut Served) -> u64 {
        let Some(clock) = self.current.and_then(|current| self.seats[current].executed_ns()) else {
            return 0;
        };
        let amount = clock.saturating_sub(served.clock);
        served.clock = clock;
        served.patience = if amount == 0 { (served.patience * 2).min(LONGEST_PATIENCE) } else { LEAST_SLEEP };
        amount
    }

    fn report(&mut self, served: &mut Served, at: u64, amount: u64) {
        if amount == 0 {
            return;
        }
        let Some(timer) = served.execution else {
            if let Some(current) = self.current.filter(|_| self.machine.is_watched(self.processor)) {
                let (task, amount) = (self.seats[current].shared.id, Span::from_ns(amount));
                let _ = self.tell(at, EventKind::Ran { task, amount });
            }
            return;
        };
        served.consumed += amount;
        let ExecutionTimer { entity, generation, after } = timer;
        let consumed = Span::from_ns(served.consumed);
        let kind = if consumed >= after {
            EventKind::Exhausted { entity, generation, consumed }
        } else {
            EventKind::Executed { entity, generation, consumed }
        };
        let _ = self.tell(at, kind);
    }

    fn fire(&mut self, served: &mut Served, at: u64) {
        let Some(fired) = served.wall.take() else { return };
        let _ = self.tell(at, EventKind::Timer { entity: fired.entity, generation: fired.generation });
        self.note_servers(served, at);
        // A server that wanted the same instant again would hold the agent for ever.
        let next = self.machine.wall_timer(self.processor);
        served.wall = next.filter(|next| next.entity != fired.entity || next.at > fired.at);
    }

    /// After a choice: takes over the timers that the machine wants. `new` is the seat that runs from now on; the present
    /// one still stands in `current`.
    pub(crate) fn arm(&mut self, desired: &Desired, new: Option<usize>, now: u64) {
        let Some(mut served) = self.served.take() else { return };
        let generation = |timer: Option<ExecutionTimer>| timer.map(|timer| timer.generation);
        // A committed job that overdraws its budget has no timer any more; what it executes is reported all the same.
        let goes_on = new.is_some() && new == self.current;
        served.note_overshoot();
        if desired.execution_timer.is_some() || !goes_on {
            if generation(desired.execution_timer) != generation(served.execution) {
                served.consumed = 0;
                served.noted = false;
            }
            served.execution = desired.execution_timer;
        }
        served.wall = desired.wall_timer;
        if !goes_on {
            served.patience = LEAST_SLEEP;
            served.clock = new.and_then(|new| self.seats[new].executed_ns()).unwrap_or(0);
        }
        let rest = served.execution.map(|timer| timer.after.as_ns().saturating_sub(served.consumed));
        served.budget_at = match rest {
            None | Some(0) => u64::MAX,
            Some(rest) => now.saturating_add(rest.max(served.patience)),
        };
        self.served = Some(served);
    }

    /// Records what has changed since the last look, before a choice is made.
    pub(crate) fn note_changes(&mut self, now: u64) {
        if let Some(mut served) = self.served.take() {
            self.note_servers(&mut served, now);
            self.served = Some(served);
        }
    }

    fn note_servers(&mut self, served: &mut Served, at: u64) {
        if !self.machine.has_changed(self.processor) {
            return;
        }
        for seen in &mut served.servers {
            let tally = self.machine.tally(seen.id);
            if tally == seen.tally {
                continue;
            }
            let before = std::mem::replace(&mut seen.tally, tally);
            let is_slack = seen.kinds[0] == seen.kinds[1];
            for _ in before.exhaustions..tally.exhaustions {
                let extra = if is_slack { 0 } else { tally.consumed.as_ns() };
                self.record_server(seen.kinds[0], at, seen.id, extra);
            }
            for _ in before.replenishments..tally.replenishments {
                let budget = self.machine.budget(seen.id).map_or(0, Span::as_ns);
                self.record_server(seen.kinds[1], at, seen.id, if is_slack { 1 } else { budget });
            }
        }
        for (seat, task, was_low) in &mut served.promoted {
            let is_low = self.machine.stands_low(*task);
            if *was_low && !is_low {
                let job = self.seats[*seat].backlog.front().map_or(NO_JOB, |job| job.number);
                self.record(*seat, Kind::Promotion, at, job, 0, 0);
            }
            *was_low = is_low;
        }
    }

    fn record_server(&self, kind: Kind, time: u64, server: ServerId, extra: u64) {
        let Some(first) = self.seats.first() else { return };
        if first.shared.record == RecordLevel::Nothing {
            return;
        }
        self.ring.push(Record {
            time: Instant::from_ns(time),
            kind,
            cpu: first.shared.cpu as u16,
            task: NO_TASK,
            job: NO_JOB,
            value: server.0.into(),
            extra,
        });
    }

    /// What each server of this processor came to, `elapsed` ns after the start.
    pub(crate) fn server_outcomes(
        &mut self,
        system: &System,
        elapsed: u64,
    ) -> Vec<(ServerId, ServerOutcome)> {
        let Some(served) = &mut self.served else { return Vec::new() };
        served.note_overshoot();
        served.execution = None;
        let machine = &self.machine;
        let outcome = |seen: &Seen| {
            let (server, tally) = (system.server(seen.id), machine.tally(seen.id));
            let enforcement = server.kind.capacity().map(|capacity| {
                Enforcement::new(
                    "one-shot timer on the thread's CPU clock",
                    &seen.overshoots,
                    (tally.consumed, Span::from_ns(elapsed)),
                    (capacity.budget, capacity.period),
                )
            });
            let outcome = ServerOutcome {
                name: server.name.clone(),
                kind: server.kind.word(),
                consumed_ns: tally.consumed,
                exhaustions: tally.exhaustions,
                replenishments: tally.replenishments,
                enforcement,
            };
            (seen.id, outcome)
        };
        served.servers.iter().map(outcome).collect()
    }
}
