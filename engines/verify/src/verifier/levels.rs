//! Trees of schedulers: what the tasks below each budget took, by the trace alone.
//!
//! A polling or deferrable scheduler that waits without budget (`low_priority = "none"`) is charged for everything that its tasks
//! execute, at whatever depth. Its budget C comes back at each multiple of its period T, and what was overdrawn is paid from
//! the next ones, so from any such multiple on
//!
//! ```text
//! executed in n periods ≤ n·C + o      o: the longest stretch below it that nobody may interrupt
//! executed in n periods ≤ (n + 2)·C + o    a sporadic one, whose budget comes back T after its use began
//! ```
//!
//! The excess of the worst n is kept as a sum that each period lowers by C and that never falls below zero. A sporadic one whose
//! tasks wait for others keeps the times of its replenishments and may catch up, so there the sum falls below zero while
//! something below it is pending, and its windows begin where nothing was. In a measured trace
//! a period may add [`crate::Tolerance::budget`], the release latency, and what the time stamps leave open at each switch; costs
//! of the platform come on top. One that goes on at a low place is charged while its records say that it has budget. Nothing of the
//! scheduling machine is used.

use crate::report::Found;
use crate::result::{Check, Class, Evidence, ServerVerification};
use crate::state::history::Occupant;
use crate::state::model::{Model, Stretches};
use crate::verifier::Verifier;
use crate::verifier::sections::Resources;
use horolog_model::{LowPriority, ServerId, ServerKind, SporadicRules, System};
use horolog_time::Span;

/// One budget of a tree.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    name: String,
    kind: &'static str,
    /// Its place among the servers.
    server: usize,
    /// Index into the model's processors.
    cpu: usize,
    budget: u64,
    period: u64,
    /// What may be overdrawn and is owed: the longest stretch below it, and what a sporadic one may have twice.
    overdraw: u64,
    /// Whether everything is charged; else while the records say that there is budget.
    waits: bool,
    has_budget: bool,
    /// Whether the running job was chosen while it had budget: who keeps the processor from its low place on pays nothing.
    pays: bool,
    /// The tasks below it, at any depth.
    is_below: Vec<bool>,
    /// The present period, what was taken in it, how often a job below it got the processor, and how many were released there.
    number: u64,
    taken: u64,
    switches: u64,
    releases: u64,
    /// Beyond the budgets so far; below zero only for what a sporadic one may catch up.
    excess: i128,
    /// Since when that is above zero.
    since: u64,
    /// Of a sporadic one: whether something below it was pending in the whole of the present period so far, and is now.
    catches_up: bool,
    was_pending: bool,
    is_pending: bool,
    /// What is pending below it is not known: what it may catch up with is not, either.
    is_lost: bool,
    most: u64,
    exceeded: u64,
}

/// What a level took beyond its budgets.
struct Beyond {
    since: u64,
    excess: u64,
    overdraw: u64,
}

impl Level {
    /// Of every budget in a tree that promises something by itself.
    pub(crate) fn all(system: &System, model: &Model, resources: &Resources) -> Vec<Level> {
        if model.foreign {
            return Vec::new();
        }
        let ids = system.server_ids().zip(system.servers());
        ids.filter_map(|(id, server)| {
            let cpu = system.platform().cpus.index_of(server.cpu)?;
            let capacity = server.kind.capacity().filter(|_| model.is_tree(cpu))?;
            if changes(system, id) {
                // What a change takes away or gives back has no record.
                return None;
            }
            let waits = server.kind.low_priority() == Some(LowPriority::None);
            let again = match server.kind {
                // Without work its budget goes without a record.
                ServerKind::Polling { .. } if waits => 0,
                ServerKind::Deferrable { .. } => 0,
                ServerKind::Sporadic { rules: SporadicRules::Corrected, max_replenishments, .. }
                    if waits || max_replenishments >= crate::on_record::TOLD_REPLENISHMENTS =>
                {
                    2
                }
                ServerKind::Polling { .. }
                | ServerKind::Sporadic { .. }
                | ServerKind::Background
                | ServerKind::Plain { .. }
                | ServerKind::PriorityExchange { .. }
                | ServerKind::ConstantBandwidth { .. }
                | ServerKind::TotalBandwidth { .. }
                | ServerKind::DualPriority { .. }
                | ServerKind::SlackStealing { .. } => return None,
            };
            let is_below: Vec<bool> = system
                .task_ids()
                .map(|task| system.schedulers_above(task).any(|above| above == id))
                .collect();
            let below = model.tasks.iter().zip(&is_below).filter(|(_, is_below)| **is_below);
            let stretch = below.map(|(task, _)| match &task.stretches {
                Stretches::None => 0,
                Stretches::Whole => task.wcet,
                Stretches::Segments(segments) => segments.iter().map(|(wcet, _)| *wcet).max().unwrap_or(0),
            });
            // A job that holds a resource may go on in debt, and so may each that waits for a chance beside it.
            let tasks = is_below.iter().enumerate().filter(|(_, is_below)| **is_below);
            let in_debt: u64 = tasks.map(|(task, _)| resources.longest_in_debt(task)).sum();
            let budget = capacity.budget.as_ns();
            let twice = budget.saturating_mul(again);
            Some(Level {
                name: server.name.clone(),
                kind: server.kind_word(),
                server: id.index(),
                cpu,
                budget,
                period: capacity.period.as_ns().max(1),
                // Something was left when the stretch began.
                overdraw: stretch
                    .max()
                    .unwrap_or(0)
                    .saturating_add(in_debt)
                    .saturating_sub(1)
                    .saturating_add(twice),
                waits,
                has_budget: true,
                pays: true,
                is_below,
                number: 0,
                taken: 0,
                switches: 0,
                releases: 0,
                excess: 0,
                since: 0,
                catches_up: again > 0,
                was_pending: false,
                is_pending: false,
                is_lost: false,
                most: 0,
                exceeded: 0,
            })
        })
        .collect()
    }

    pub(crate) fn result(&self) -> ServerVerification {
        ServerVerification {
            name: self.name.clone(),
            kind: self.kind,
            interference_ns: Span::ZERO,
            period_ns_max: Some(Span::from_ns(self.most.max(self.taken))),
            period_allowed_ns: Some(Span::from_ns(self.budget)),
            exceeded: self.exceeded,
        }
    }

    pub(crate) fn is_of(&self, server: usize) -> bool {
        self.server == server
    }

    /// What the present period may add by tolerance: by itself, and by what happened in it.
    fn tolerance(&self, model: &Model) -> (u64, u64) {
        let late = if model.simulated { 0 } else { model.release_latency };
        let by_itself = model.budget.saturating_add(late);
        let costs = model.costs_of(self.cpu, self.period, self.releases);
        let each = model.context_switch.saturating_add(model.stamping);
        let events = self.switches.saturating_add(self.releases).saturating_mul(each);
        (by_itself, costs.saturating_add(events))
    }

    /// Its tasks executed in `from..to`.
    fn take(&mut self, (from, to): (u64, u64), model: &Model) {
        self.go_on(from, model);
        let end = self.number.saturating_add(1).saturating_mul(self.period);
        self.taken = self.taken.saturating_add(to.min(end).saturating_sub(from));
        if to < end {
            return;
        }
        self.go_on(end, model);
        // Whole periods at once: there may be very many.
        let whole = (to - end) / self.period;
        if whole > 0 {
            let allowed = i128::from(self.budget.saturating_add(self.tolerance(model).0));
            let gained = (i128::from(self.period) - allowed).saturating_mul(i128::from(whole));
            self.excess = self.at_least(self.excess.saturating_add(gained));
            self.most = self.most.max(self.period);
            self.number = self.number.saturating_add(whole);
        }
        self.taken = (to - end) % self.period;
    }

    /// Closes the periods before `now`.
    fn go_on(&mut self, now: u64, model: &Model) {
        let number = now / self.period;
        if number <= self.number {
            return;
        }
        let (by_itself, by_events) = self.tolerance(model);
        let allowed = i128::from(self.budget.saturating_add(by_itself));
        self.most = self.most.max(self.taken);
        let gained = i128::from(self.taken) - allowed - i128::from(by_events);
        self.excess = self.at_least(self.excess.saturating_add(gained));
        self.was_pending = self.is_pending;
        let idle = allowed.saturating_mul(i128::from(number - self.number - 1));
        self.excess = self.at_least(self.excess.saturating_sub(idle));
        if self.excess <= 0 {
            self.since = number.saturating_mul(self.period);
        }
        (self.number, self.taken, self.switches, self.releases) = (number, 0, 0, 0);
    }

    /// The sum: below zero only where it may catch up.
    fn at_least(&self, excess: i128) -> i128 {
        if self.catches_up && self.was_pending { excess } else { excess.max(0) }
    }

    /// Something below it is pending since `arrival`, which may be noted late: nothing below it has run since then.
    fn is_pending_since(&mut self, arrival: u64, model: &Model) {
        if !std::mem::replace(&mut self.is_pending, true) && self.catches_up {
            let first = arrival.div_ceil(self.period);
            let allowed = self.budget.saturating_add(self.tolerance(model).0);
            let whole = i128::from(self.number.saturating_sub(first));
            self.excess = self.excess.saturating_sub(i128::from(allowed).saturating_mul(whole));
            self.was_pending = first <= self.number;
        }
    }

    /// Nothing below it is pending any more: what it did not use is lost.
    fn has_nothing_pending(&mut self) {
        (self.was_pending, self.is_pending) = (false, false);
        if self.excess < 0 {
            let spent = self.excess.saturating_add(i128::from(self.taken)).max(0);
            (self.excess, self.taken) = (0, u64::try_from(spent).unwrap_or(u64::MAX));
        }
    }

    /// Nothing is known of it from now on. One that a record brings back to its own place is judged from there.
    fn lose(&mut self, now: u64, model: &Model) {
        self.go_on(now, model);
        (self.taken, self.switches, self.releases, self.excess, self.since) = (0, 0, 0, 0, now);
        (self.was_pending, self.is_pending, self.is_lost) = (false, false, self.catches_up);
        (self.has_budget, self.pays) = (false, false);
    }

    /// Whether it has taken too much by now, the present period included. What is told is not told again.
    fn beyond(&mut self, model: &Model) -> Option<Beyond> {
        let (by_itself, by_events) = self.tolerance(model);
        let allowed = self.budget.saturating_add(by_itself).saturating_add(by_events);
        let excess = self.excess.saturating_add(i128::from(self.taken) - i128::from(allowed));
        let excess = u64::try_from(excess.max(0)).unwrap_or(u64::MAX);
        if excess <= self.overdraw {
            return None;
        }
        self.exceeded += 1;
        self.most = self.most.max(self.taken);
        (self.excess, self.taken) = (0, 0);
        Some(Beyond { since: self.since, excess, overdraw: self.overdraw })
    }
}

impl Verifier {
    /// A job of `task` had the processor in `from..to`.
    pub(crate) fn charge_levels(&mut self, task: usize, from: u64, to: u64) {
        for index in 0..self.levels.len() {
            let level = &mut self.levels[index];
            if !level.is_below[task] || level.is_lost || !(level.waits || level.pays) {
                continue;
            }
            level.take((from, to), &self.model);
            self.report.apply(Check::Budget);
            let Some(beyond) = level.beyond(&self.model) else { continue };
            let Beyond { since, excess, overdraw } = beyond;
            let processor = &self.cpus[level.cpu];
            let disturbed = processor.interrupted(since, to).saturating_add(processor.stolen(since, to));
            let is_disturbed =
                self.model.is_best_effort || !self.model.simulated && excess - overdraw <= disturbed;
            let (name, cpu, budget, period) = (level.name.clone(), level.cpu, level.budget, level.period);
            let cause = self.overrun_of(&[task], (since, to));
            let found = Found {
                class: if is_disturbed { Class::MachineDisturbed } else { Class::ModelViolated },
                check: Check::Budget,
                time: to,
                during: None,
                cpu: self.model.cpus[cpu],
                task: None,
                job: None,
                observed: Some(excess),
                allowed: Some(overdraw),
                evidence: vec![Evidence {
                    what: "interrupts and steal".to_owned(),
                    amount_ns: Span::from_ns(disturbed),
                }],
                message: format!(
                    "scheduler {name} took {} more than its budgets of {} every {} since {}, of which {} may be owed{cause}",
                    Span::from_ns(excess),
                    Span::from_ns(budget),
                    Span::from_ns(period),
                    Span::from_ns(since),
                    Span::from_ns(overdraw)
                ),
                subject: name,
            };
            self.report.add(found);
            self.breach(cpu, to, excess - overdraw, !is_disturbed, "a server beyond its budget");
        }
    }

    /// A job of `task` gets the processor.
    pub(crate) fn note_level_switch(&mut self, task: usize) {
        let now = self.now;
        for level in self.levels.iter_mut().filter(|level| level.is_below[task]) {
            level.go_on(now, &self.model);
            level.switches += 1;
            level.pays = level.has_budget;
        }
    }

    /// A job of `task` that arrived at `arrival` is released on a processor: whoever has it may be held up.
    pub(crate) fn note_level_release(&mut self, cpu: usize, task: usize, arrival: u64) {
        let now = self.now;
        for level in self.levels.iter_mut().filter(|level| level.cpu == cpu) {
            level.go_on(now, &self.model);
            level.releases += 1;
            if level.is_below[task] {
                level.is_pending_since(arrival, &self.model);
            }
        }
    }

    /// Jobs of a processor have ended.
    pub(crate) fn note_level_end(&mut self, cpu: usize) {
        let now = self.now;
        let may_end = |level: &&mut Level| level.cpu == cpu && (level.is_pending || level.is_lost);
        for level in self.levels.iter_mut().filter(may_end) {
            let mut below = self.tasks.iter().zip(&level.is_below).filter(|(_, is_below)| **is_below);
            if below.all(|(task, _)| task.pending.is_empty() && !task.has_unknown) {
                level.go_on(now, &self.model);
                level.has_nothing_pending();
                level.is_lost = false;
            }
        }
    }

    pub(crate) fn lose_levels(&mut self) {
        self.levels.iter_mut().for_each(|level| level.lose(self.now, &self.model));
    }

    /// A record says that the budget of a server has ended, or has come back.
    pub(crate) fn note_level_budget(&mut self, server: u64, has_budget: bool) {
        let Some(index) = self.levels.iter().position(|level| level.server as u64 == server) else { return };
        let cpu = self.levels[index].cpu;
        self.advance(cpu, self.now);
        let keeps = match self.cpus[cpu].occupant {
            Occupant::Task(task) => !self.model.tasks[task].is_preemptive(),
            _ => false,
        };
        let level = &mut self.levels[index];
        level.has_budget = has_budget;
        level.pays = has_budget && (level.pays || !keeps);
    }
}

/// Whether modes change the budget of a server.
pub(crate) fn changes(system: &System, id: ServerId) -> bool {
    (1..system.mode_count()).any(|mode| system.capacity_in(mode, id) != system.capacity_in(0, id))
}

/// The budgets of trees that no window judges, and why.
pub(crate) fn unjudged(system: &System, model: &Model, levels: &[Level]) -> Vec<String> {
    let servers = system.server_ids().zip(system.servers());
    let note = |(id, server): (ServerId, &horolog_model::Server)| {
        let cpu = system.platform().cpus.index_of(server.cpu)?;
        server.kind.capacity().filter(|_| model.is_tree(cpu))?;
        if levels.iter().any(|level| level.is_of(id.index())) {
            return None;
        }
        let why = match server.kind {
            _ if changes(system, id) => {
                "modes change it, and what a change takes away or gives back has no record"
            }
            _ if model.foreign => "horolog did not run it, so when its periods begin is not known",
            ServerKind::ConstantBandwidth { .. } => "without budget its deadline moves and it goes on",
            ServerKind::TotalBandwidth { .. } => "it has no budget, only deadlines",
            ServerKind::Polling { .. } => {
                "without work its budget goes without a record, and it goes on at its low place"
            }
            ServerKind::Sporadic { rules: SporadicRules::Corrected, .. } => {
                "with few replenishments its budget may go without a record, and it goes on at its low place"
            }
            ServerKind::Sporadic { .. }
            | ServerKind::Deferrable { .. }
            | ServerKind::PriorityExchange { .. } => "its rules give more than the budget at times",
            ServerKind::Background
            | ServerKind::Plain { .. }
            | ServerKind::DualPriority { .. }
            | ServerKind::SlackStealing { .. } => return None,
        };
        Some(format!("scheduler {}: what it took was not held against its budget: {why}", server.name))
    };
    servers.filter_map(note).collect()
}
