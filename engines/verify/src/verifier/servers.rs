//! Systems with servers: what soft tasks may take from hard ones, by the trace alone.
//!
//! Soft jobs have no priority of their own, so they stand outside the checks of the order among hard jobs. What a server
//! promises to these is checked instead, from who had the processor while a hard job waited that is less important than the
//! server and more important than its low place: in every window w this *interference* is at most
//!
//! ```text
//! j·C + min(C, w − j·T), j = ⌊w/T⌋     polling and sporadic servers above every hard task
//! (⌊w/T⌋ + 2)·C                        every other one: its jobs may be delayed, and come back to back
//! w·C/T + C·(1 − C/T) + ⌊e/C⌋·C + e    a constant bandwidth server that the kernel serves, e its enforcement latency
//! ```
//!
//! A window begins where the server last had no work or, by its own records, no budget: while it is held up, budget that it
//! does not use comes back all the same. Budget C and period T; in a measured trace each budget may be overdrawn by [`crate::Tolerance::budget`]. Nothing
//! of the scheduling machine is used. Slack policies and priority exchange promise no window; there the bounds of the hard
//! tasks speak.

use crate::report::Found;
use crate::result::{Check, Class, Evidence, ServerVerification};
use crate::state::history::Occupant;
use crate::state::job::State;
use crate::verifier::Verifier;
use crate::verifier::sections::Resources;
use horolog_model::{Enforcement, LowPriority, Preemption, ServerId, ServerKind, System};
use horolog_time::Span;
use std::collections::VecDeque;

/// How many stretches of interference are kept.
const MOST_STRETCHES: usize = 1 << 8;

/// What a server may take from hard tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Promise {
    /// Nothing: it stands below all of them.
    Nothing,
    /// A budget in every period.
    Budget {
        budget: u64,
        period: u64,
        /// Above every hard task, and never back to back.
        is_refined: bool,
        priority: i64,
        /// Hard tasks up to this priority may wait for it without budget, too.
        low: i64,
    },
    /// Its share, and a budget at once: the kernel's, above every hard task.
    Reservation { budget: u64, period: u64, overdrawn: u64 },
    /// What the deadlines of the hard tasks leave.
    Slack,
    /// It is part of a tree: [`crate::verifier::levels`].
    Level,
}

/// One stretch of interference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    /// Since when the server had waited for it.
    since: u64,
    from: u64,
    to: u64,
    /// How often another of its jobs got the processor within it.
    changes: u64,
}

/// One server and what it has taken.
#[derive(Clone, Debug)]
pub(crate) struct ServerState {
    name: String,
    kind: &'static str,
    /// Index into the model's processors.
    cpu: usize,
    promise: Promise,
    has_bands: bool,
    pub(crate) tasks: Vec<usize>,
    /// Stretches of interference, the oldest first.
    stretches: VecDeque<Stretch>,
    /// Its jobs that got the processor since it last interfered.
    dispatched: u64,
    /// When its queue was empty last, and when it was without budget last.
    backlogged_since: u64,
    replenished: u64,
    interference: u64,
    /// The most in a window of one period.
    most: u64,
    budgets_checked: u64,
    exceeded: u64,
    /// How much of a section each of its budgets may be overdrawn by.
    in_debt: u64,
    /// Up to when a finding speaks already.
    told: u64,
}

impl ServerState {
    /// Of the servers of `system`; `file` has its drivers, too.
    pub(crate) fn all(system: &System, file: &System, resources: &Resources) -> Vec<ServerState> {
        system.server_ids().map(|id| ServerState::new(system, file, resources, id)).collect()
    }

    fn new(system: &System, file: &System, resources: &Resources, id: ServerId) -> ServerState {
        let server = system.server(id);
        // Modes may give it other ones: what it takes is at most its largest budget in its shortest period.
        let capacities = || (0..system.mode_count()).filter_map(|mode| system.capacity_in(mode, id));
        let most = capacities().map(|capacity| capacity.budget.as_ns()).max().unwrap_or(0);
        let shortest = capacities().map(|capacity| capacity.period.as_ns()).min().unwrap_or(0).max(1);
        let hard = || system.hard_tasks_on(server.cpu).filter_map(|(_, task)| task.priority);
        let promise = match server.kind {
            _ if system.has_tree(server.cpu) => Promise::Level,
            ServerKind::Background => Promise::Nothing,
            ServerKind::Polling { priority, low_priority, .. }
            | ServerKind::Deferrable { priority, low_priority, .. }
            | ServerKind::Sporadic { priority, low_priority, .. } => {
                // Nothing may hold its jobs up, so that they never come back to back.
                let is_top = hard().all(|other| priority.is_more_important_than(other))
                    && system
                        .hard_tasks_on(server.cpu)
                        .all(|(_, task)| task.preemption == Preemption::Preemptive)
                    && system.modes().is_empty()
                    && system.tasks_on(server.cpu).all(|(_, task)| task.sections.is_empty())
                    && !system.interferences().iter().any(|load| load.cpu == server.cpu)
                    && !file.interrupts().iter().any(|interrupt| interrupt.cpu == server.cpu)
                    && !file.devices().iter().any(|device| device.cpu == server.cpu);
                let low = match low_priority {
                    LowPriority::At(low) => low.number(),
                    _ => i64::MIN,
                };
                Promise::Budget {
                    budget: most,
                    period: shortest,
                    is_refined: is_top && !matches!(server.kind, ServerKind::Deferrable { .. }),
                    priority: priority.number(),
                    low,
                }
            }
            ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Kernel { latency } } => {
                Promise::Reservation {
                    budget: capacity.budget.as_ns().max(1),
                    period: capacity.period.as_ns().max(1),
                    overdrawn: latency.as_ns(),
                }
            }
            ServerKind::Plain { .. }
            | ServerKind::PriorityExchange { .. }
            | ServerKind::ConstantBandwidth { .. }
            | ServerKind::TotalBandwidth { .. }
            | ServerKind::DualPriority { .. }
            | ServerKind::SlackStealing { .. } => Promise::Slack,
        };
        ServerState {
            name: server.name.clone(),
            kind: server.kind_word(),
            cpu: system.platform().cpus.index_of(server.cpu).unwrap_or(0),
            promise,
            has_bands: matches!(server.kind, ServerKind::DualPriority { .. }),
            tasks: system.served_tasks(id).map(|(task, _)| task.index()).collect(),
            stretches: VecDeque::new(),
            dispatched: 0,
            backlogged_since: 0,
            replenished: 0,
            interference: 0,
            most: 0,
            budgets_checked: 0,
            exceeded: 0,
            in_debt: system.served_tasks(id).map(|(task, _)| resources.longest_in_debt(task.index())).sum(),
            told: 0,
        }
    }

    pub(crate) fn result(&self) -> ServerVerification {
        let allowed = self.period().map(|period| self.allowed(period));
        ServerVerification {
            name: self.name.clone(),
            kind: self.kind,
            interference_ns: Span::from_ns(self.interference),
            period_ns_max: allowed.is_some().then_some(Span::from_ns(self.most)),
            period_allowed_ns: allowed.map(Span::from_ns),
            exceeded: self.exceeded,
        }
    }

    /// Whether the bounds of hard tasks judge it.
    pub(crate) fn leaves_it_to_bounds(&self) -> bool {
        matches!(self.promise, Promise::Nothing | Promise::Slack)
    }

    /// The replenishment period, where windows are promised.
    fn period(&self) -> Option<u64> {
        match self.promise {
            Promise::Budget { period, .. } | Promise::Reservation { period, .. } => Some(period),
            Promise::Nothing | Promise::Slack | Promise::Level => None,
        }
    }

    /// Where the longest window begins in which its budget on this processor may yet be judged.
    pub(crate) fn oldest_window(&self, cpu: usize) -> Option<u64> {
        self.stretches.front().filter(|_| self.cpu == cpu && self.period().is_some()).map(|first| first.since)
    }

    /// What it may take in a window of this length.
    fn allowed(&self, window: u64) -> u64 {
        if let Promise::Reservation { budget, period, overdrawn } = self.promise {
            let shares =
                u128::from(budget) * (u128::from(window) + u128::from(period.saturating_sub(budget)));
            let owed = u128::from(overdrawn / budget * budget) + u128::from(overdrawn);
            // Whole nanoseconds are taken, so none beyond the share.
            let most = shares / u128::from(period) + owed;
            return u64::try_from(most).unwrap_or(u64::MAX).min(window);
        }
        let Promise::Budget { budget, period, is_refined, .. } = self.promise else { return u64::MAX };
        let whole = window / period;
        if is_refined {
            whole.saturating_mul(budget).saturating_add(budget.min(window - whole * period))
        } else {
            whole.saturating_add(2).saturating_mul(budget)
        }
    }

    /// The greatest excess over what is allowed, of the windows that end with the last stretch: excess, window, taken,
    /// allowed. What it may be held up by `delay` makes the window longer.
    fn worst(&mut self, per_budget: u64, delay: u64) -> Option<(u64, u64, u64, u64)> {
        let period = self.period()?;
        let end = self.stretches.back()?.to;
        let (mut taken, mut in_period) = (0_u64, 0_u64);
        let mut worst: Option<(u64, u64, u64, u64)> = None;
        for &Stretch { since, from, to, .. } in self.stretches.iter().rev() {
            taken += to - from;
            let window = end - since;
            if end - from <= period {
                in_period = taken;
            } else if to.saturating_add(period) > end {
                // A stretch that begins before the window of one period.
                in_period = taken - ((end - period) - from);
            }
            let budgets = (window / period).saturating_add(2);
            let allowed = self.allowed(window.saturating_add(delay));
            let limit = allowed.saturating_add(budgets.saturating_mul(per_budget));
            if taken > limit && worst.is_none_or(|(excess, ..)| taken - limit > excess) {
                worst = Some((taken - limit, window, taken, allowed));
            }
        }
        self.most = self.most.max(in_period);
        worst
    }
}

impl Verifier {
    /// Whether the task is soft.
    pub(crate) fn is_soft(&self, task: usize) -> bool {
        self.model.tasks[task].server.is_some()
    }

    /// A soft job of `running` had the processor in `from..to` while the hard job `top` waited. Whether it may not at all.
    pub(crate) fn soft_before_hard(&mut self, running: usize, top: usize, from: u64, to: u64) -> bool {
        let Some(server) = self.model.tasks[running].server else { return false };
        let waits = self.model.tasks[top].priority;
        match self.servers[server].promise {
            Promise::Nothing => true,
            Promise::Slack | Promise::Level => false,
            Promise::Reservation { .. } => {
                self.interfere(server, from, to);
                false
            }
            Promise::Budget { priority, .. } if waits > priority && !self.model.edf => true,
            Promise::Budget { low, .. } if waits <= low => false,
            Promise::Budget { .. } => {
                self.interfere(server, from, to);
                false
            }
        }
    }

    fn interfere(&mut self, server: usize, from: u64, to: u64) {
        let state = &mut self.servers[server];
        state.interference += to - from;
        // Nothing of the model holds up what the kernel serves.
        let since = match state.promise {
            Promise::Reservation { .. } => from,
            _ => state.backlogged_since.max(state.replenished).min(from),
        };
        let dispatched = std::mem::take(&mut state.dispatched);
        match state.stretches.back_mut() {
            Some(last) if last.to == from => {
                last.to = to;
                last.changes += dispatched;
            }
            _ => state.stretches.push_back(Stretch { since, from, to, changes: 0 }),
        }
        if state.stretches.len() > MOST_STRETCHES {
            state.stretches.pop_front();
        }
    }

    /// A soft job comes: its server waits for the processor from now on, if it has not before.
    pub(crate) fn note_demand(&mut self, task: usize, ready: u64) {
        let Some(server) = self.model.tasks[task].server else { return };
        let waits = |&task: &usize| !self.tasks[task].pending.is_empty();
        if !self.servers[server].tasks.iter().any(waits) {
            self.servers[server].backlogged_since = ready;
        }
    }

    /// A soft job gets the processor.
    pub(crate) fn note_dispatch(&mut self, task: usize) {
        if let Some(server) = self.model.tasks[task].server {
            self.servers[server].dispatched += 1;
        }
    }

    /// A server got budget back: it was without until now.
    pub(crate) fn replenish(&mut self, server: u64) {
        let Some(cpu) =
            usize::try_from(server).ok().and_then(|at| self.servers.get(at)).map(|state| state.cpu)
        else {
            return;
        };
        self.advance(cpu, self.now);
        self.servers[server as usize].replenished = self.now;
    }

    /// Nothing is known of budgets and of what waits for them: windows begin anew.
    pub(crate) fn lose_budgets(&mut self) {
        let now = self.now;
        for state in &mut self.servers {
            state.stretches.clear();
            (state.backlogged_since, state.replenished, state.told, state.dispatched) = (now, now, now, 0);
        }
        self.lose_levels();
    }

    /// Which job of these tasks kept the processor for longer than the file says, where no budget takes it from it: what a budget is overdrawn by
    /// beyond what is allowed follows from that. In words; nothing where none did.
    pub(crate) fn overrun_of(&self, tasks: &[usize], (from, to): (u64, u64)) -> String {
        let keeps = |task: usize| !self.model.tasks[task].is_preemptive() || self.holds_anything(task);
        let under_way = |&task: &usize| {
            let job = self.tasks[task].pending.front()?;
            let in_segment = job.executed - job.executed_before;
            let interrupted = job.interrupted - job.interrupted_before;
            let model = &self.model.tasks[task];
            let most = model.wcet_of(job.segment).unwrap_or(model.wcet);
            Some((task, job.number, in_segment.saturating_sub(interrupted).saturating_sub(most)))
        };
        let ended = tasks.first().map(|&task| &self.cpus[self.model.tasks[task].cpu].finished);
        let ended = ended.into_iter().flat_map(|jobs| jobs.iter().rev());
        let ended = ended.take_while(|job| job.completion > from).filter(|job| tasks.contains(&job.task));
        let ended = ended.filter(|job| job.completion <= to);
        let ended = ended
            .map(|job| (job.task, job.number, job.executed.saturating_sub(self.model.tasks[job.task].wcet)));
        let all = tasks.iter().filter_map(under_way).chain(ended);
        let beyond = all.filter(|(task, _, beyond)| *beyond > self.model.execution && keeps(*task));
        beyond.max_by_key(|(_, _, beyond)| *beyond).map_or_else(String::new, |(task, job, beyond)| {
            format!(
                "; {} job {job} kept the processor for {} longer than the file says, and from that it follows",
                self.model.tasks[task].name,
                Span::from_ns(beyond)
            )
        })
    }

    /// Judges the windows that end now, once the server's soft jobs interfere no more.
    pub(crate) fn judge_interference(&mut self, cpu: usize) {
        for index in 0..self.servers.len() {
            let state = &mut self.servers[index];
            let is_new = |stretch: &&Stretch| state.cpu == cpu && stretch.to > state.told;
            let Some(&Stretch { from, to, .. }) = state.stretches.back().filter(is_new) else {
                continue;
            };
            state.told = to;
            state.budgets_checked += 1;
            self.report.apply(Check::Budget);
            let lateness = if self.model.simulated { 0 } else { self.model.release_latency };
            let per_budget =
                self.model.budget.saturating_add(lateness).saturating_add(self.servers[index].in_debt);
            // Switches and interrupts of every release that can come at once, and in a measured trace the agent.
            let tasks = self.cpus[cpu].tasks.len() as u64;
            let delay = self
                .model
                .costs_of(cpu, 0, tasks)
                .saturating_add(lateness)
                .saturating_add(self.model.dispatch);
            let Some((excess, window, taken, allowed)) = self.servers[index].worst(per_budget, delay) else {
                continue;
            };
            let begin = to.saturating_sub(window);
            let processor = &self.cpus[cpu];
            // Each release in the window may have waited for the agent while a soft job ran on.
            let releases = processor.releases_in(begin, to);
            let each = self.model.stamping.saturating_add(lateness);
            // Two for each stretch, and one for each change to another job of the server.
            let stretches = self.servers[index].stretches.iter().filter(|stretch| stretch.from >= begin);
            let switches: u64 = stretches.map(|stretch| stretch.changes.saturating_add(2)).sum();
            let costs = self
                .model
                .costs_of(cpu, window, releases)
                .saturating_add(switches.saturating_mul(self.model.context_switch))
                .saturating_add(releases.saturating_mul(each));
            let Some(excess) = excess.checked_sub(costs).filter(|&excess| excess > 0) else { continue };
            let disturbed = processor.interrupted(begin, to).saturating_add(processor.stolen(begin, to));
            let is_disturbed = self.model.is_best_effort || !self.model.simulated && excess <= disturbed;
            let class = if is_disturbed { Class::MachineDisturbed } else { Class::ModelViolated };
            let cause = self.overrun_of(&self.servers[index].tasks, (begin, to));
            let state = &mut self.servers[index];
            state.exceeded += 1;
            let name = state.name.clone();
            self.report.add(Found {
                class,
                check: Check::Budget,
                time: from,
                during: Some((begin, to)),
                cpu: self.model.cpus[cpu],
                task: None,
                job: None,
                observed: Some(taken),
                allowed: Some(allowed),
                evidence: vec![Evidence {
                    what: "interrupts and steal".to_owned(),
                    amount_ns: Span::from_ns(disturbed),
                }],
                subject: name.clone(),
                message: format!(
                    "server {name} took {} from hard tasks in a window of {}, its budget allows {}{cause}",
                    Span::from_ns(taken),
                    Span::from_ns(window),
                    Span::from_ns(allowed)
                ),
            });
            self.breach(cpu, to, excess, !is_disturbed, "a server beyond its budget");
        }
    }

    /// A soft job starts: no other one of its server may have come before it.
    pub(crate) fn check_queue(&mut self, task: usize, job: u64, ready: u64) {
        let Some(server) = self.model.tasks[task].server else { return };
        self.report.apply(Check::FirstInFirstOut);
        let earlier = self.servers[server].tasks.iter().copied().find(|&other| {
            let head = self.tasks[other].pending.front();
            other != task
                && head.is_some_and(|head| {
                    let can_run = !head.demoted && head.state != State::Suspended;
                    let waits = can_run && !self.tasks[other].is_suspended;
                    waits && head.stands_since.saturating_add(self.model.stamping) < ready
                })
        });
        if let Some(earlier) = earlier {
            let name = self.model.tasks[task].name.clone();
            let message = format!(
                "{name} job {job} started while {} was ready, which came before it to the same server",
                self.model.tasks[earlier].name
            );
            self.job_finding(Class::ModelViolated, Check::FirstInFirstOut, task, job, message, None);
        }
    }

    /// Whether hard jobs of this processor stand in two bands (dual priority).
    pub(crate) fn has_bands(&self, cpu: usize) -> bool {
        self.servers.iter().any(|server| server.cpu == cpu && server.has_bands)
    }

    /// A hard job was promoted (dual priority).
    pub(crate) fn promote(&mut self, task: usize, job: u64) {
        let Some(cpu) = self.model.tasks.get(task).map(|task| task.cpu) else { return };
        self.advance(cpu, self.now);
        if let Some(job) = self.tasks[task].pending.iter_mut().find(|pending| pending.number == job) {
            job.promoted = true;
        }
    }

    /// Whether a soft task has this processor.
    pub(crate) fn is_soft_on(&self, cpu: usize) -> Option<usize> {
        match self.cpus[cpu].occupant {
            Occupant::Task(task) if self.is_soft(task) => Some(task),
            _ => None,
        }
    }
}
