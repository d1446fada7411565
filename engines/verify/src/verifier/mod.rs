//! Reads records one after the other and keeps the state of every processor and job.

mod again;
mod assumptions;
mod borders;
mod compared;
mod completeness;
mod costs_seen;
mod decisions;
mod devices;
mod drivers;
mod finish;
mod hidden;
mod judge;
mod judged;
mod kernel;
mod levels;
mod lifecycle;
mod links;
mod mode_notes;
mod modes;
mod order;
mod recorded;
mod returns;
mod sections;
mod servers;
mod shadow;
mod switch;
mod wandering;

use crate::decidable::Source;
use crate::report::{Found, Report};
use crate::result::{Check, Class};
use crate::state::candidate::Candidate;
use crate::state::history::{Occupant, Slice};
use crate::state::job::{Job, Reason, State, TaskState};
use crate::state::model::Model;
use crate::state::ongoing::Ongoing;
use crate::state::processor::{MOST, Open, Processor};
use crate::verifier::again::Again;
use crate::verifier::compared::Compared;
use crate::verifier::completeness::Completeness;
use crate::verifier::decisions::Decisions;
use crate::verifier::devices::Devices;
use crate::verifier::drivers::Drivers;
use crate::verifier::judged::is_of_the_schedule;
use crate::verifier::levels::Level;
use crate::verifier::links::Link;
use crate::verifier::mode_notes::AfterChange;
use crate::verifier::modes::InModes;
use crate::verifier::returns::Returns;
use crate::verifier::sections::{OF_RESOURCE, Resources};
use crate::verifier::servers::ServerState;
use crate::{Bound, Options, VerifyError};
use horolog_model::System;
use horolog_trace::file::{Header, Losses, Thread};
use horolog_trace::{Kind, Record, Sink};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Verifies records as they come: hand them to [`Verifier::take`], then ask [`Verifier::finish`]. It is a
/// [`Sink`] too, so that a simulation can be verified without a file.
#[derive(Clone, Debug)]
pub struct Verifier {
    pub(crate) model: Model,
    pub(crate) tasks: Vec<TaskState>,
    pub(crate) cpus: Vec<Processor>,
    pub(crate) servers: Vec<ServerState>,
    /// The budgets of trees.
    pub(crate) levels: Vec<Level>,
    pub(crate) links: Vec<Link>,
    pub(crate) resources: Resources,
    /// Tasks whose threads ended before the run did, with the job that was under way, and when.
    pub(crate) ended_threads: Vec<(usize, Option<u64>, u64)>,
    /// Whether more jobs came one behind the other than are kept.
    pub(crate) has_too_many_jobs: bool,
    /// When the latest of the late releases so far was noticed.
    pub(crate) stalled_until: u64,
    /// What of the system is not followed, so that nothing is judged.
    undecided: Option<String>,
    /// Where the system has modes.
    pub(crate) modes: Option<Box<InModes>>,
    /// What is still to be told of the last change: of a simulation, or of each processor.
    pub(crate) after_change: Vec<AfterChange>,
    /// What nothing was held against that would show it: without a finding the verdict is unknown.
    pub(crate) unknown: Vec<String>,
    pub(crate) completeness: Completeness,
    /// By server.
    pub(crate) returns: Vec<Option<Returns>>,
    /// What is not judged of a processor, and why.
    unjudged: Vec<String>,
    pub(crate) drivers: Drivers,
    pub(crate) devices: Devices,
    /// One a processor whose decisions can be made again, and the place of each processor's.
    pub(crate) decisions: Vec<Decisions>,
    pub(crate) decisions_of: Vec<Option<usize>>,
    pub(crate) compared: Vec<Compared>,
    /// By processor, what may be scheduled again as a whole.
    pub(crate) again: Vec<Option<Again>>,
    /// The tasks that the trace numbers.
    pub(crate) companion: System,
    pub(crate) report: Report,
    pub(crate) threads: Vec<Thread>,
    pub(crate) candidates: VecDeque<Candidate>,
    /// Per processor, something that goes on and should not.
    pub(crate) ongoing: Vec<Option<Open<Ongoing>>>,
    pub(crate) now: u64,
    pub(crate) disordered_times: u64,
    system: String,
    backend: String,
    pub(crate) records: u64,
    /// The same by kind.
    pub(crate) counts: [u64; 64],
    pub(crate) losses: Losses,
}

impl Verifier {
    /// Prepares for the records of one trace.
    ///
    /// # Errors
    /// Where the system's priorities are not resolved, or it uses what verification does not know.
    pub fn new(
        system: &System,
        bounds: &[Bound],
        header: &Header,
        options: &Options,
    ) -> Result<Verifier, VerifyError> {
        let companion = drivers::companion(system, header)?;
        let undecided = undecided(system);
        let drivers = Drivers::new(system, &companion);
        let mut model = Model::new(&companion.system, bounds, header, options)?;
        model.learn_drivers(system, &companion);
        let (mut unjudged, mut not_decided) = (Vec::new(), Vec::new());
        let late = if model.simulated { 0 } else { model.budget.saturating_add(model.release_latency) };
        let devices = Devices::of(system, &companion, &mut unjudged);
        let source = Source::new(system, &companion, &header.backend, model.simulated);
        let is_kernels = |cpu| source.foreign || source.is_kernels(cpu);
        model.kernels = companion.system.platform().cpus.iter().map(is_kernels).collect();
        let (decisions, compared) = if undecided.is_none() {
            Decisions::all(&companion, source, &mut not_decided, late)
                .map_err(|error| VerifyError::input(error.to_string()))?
        } else {
            let reason = undecided.as_ref().map(|section| format!("{section} is not followed yet"));
            let nothing = Compared::new(reason);
            (Vec::new(), vec![nothing; model.cpus.len()])
        };
        let mut decisions_of = vec![None; model.cpus.len()];
        for (index, decisions) in decisions.iter().enumerate() {
            decisions_of[decisions.place] = Some(index);
        }
        let again =
            Again::all(system, &companion, &model).map_err(|error| VerifyError::input(error.to_string()))?;
        let resources = Resources::of(&companion.system);
        let levels = Level::all(&companion.system, &model, &resources);
        unjudged.extend(levels::unjudged(&companion.system, &model, &levels));
        let modes = InModes::of(&companion.system, model.simulated, model.cpus.len())?;
        let is_decided = |cpu| decisions.iter().any(|one| one.cpu == cpu);
        let mut unknown = modes::unjudged(&companion.system, model.simulated, is_decided);
        unknown.extend(not_decided.into_iter().chain(options.all_doubts()));
        unknown.extend(resources.why_not_judged(model.foreign));
        let cpus: Vec<Processor> = (0..model.cpus.len())
            .map(|cpu| {
                let tasks = (0..model.tasks.len()).filter(|&task| model.tasks[task].cpu == cpu).collect();
                Processor::new(tasks, model.simulated).with_levels(|task| model.rank(task))
            })
            .collect();
        Ok(Verifier {
            tasks: model
                .tasks
                .iter()
                .map(|task| TaskState { has_unknown: task.is_observed, ..TaskState::default() })
                .collect(),
            ongoing: vec![None; cpus.len()],
            after_change: vec![AfterChange::nothing(&companion.system); cpus.len()],
            cpus,
            servers: ServerState::all(&companion.system, system, &resources),
            levels,
            links: Link::all(system, model.foreign),
            resources,
            ended_threads: Vec::new(),
            has_too_many_jobs: false,
            stalled_until: 0,
            undecided,
            modes,
            unknown,
            completeness: Completeness::new(header),
            returns: Returns::all(&companion.system),
            unjudged,
            drivers,
            devices,
            decisions,
            decisions_of,
            compared,
            again,
            companion: companion.system,
            report: Report::new(options.listed_per_group, !options.served_otherwise.is_empty()),
            threads: Vec::new(),
            candidates: VecDeque::new(),
            now: 0,
            disordered_times: 0,
            system: system.name().to_owned(),
            backend: header.backend.clone(),
            records: 0,
            counts: [0; 64],
            losses: Losses::default(),
            model,
        })
    }

    /// The threads that kernel records name by number.
    pub fn set_threads(&mut self, threads: &[Thread]) {
        self.threads = threads.to_vec();
    }

    /// How many threads are known.
    #[must_use]
    pub fn threads_known(&self) -> usize {
        self.threads.len()
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        self.records += 1;
        // Numbers of kinds are below 64.
        if let Some(count) = self.counts.get_mut(record.kind as usize) {
            *count += 1;
        }
        let time = record.time.as_ns();
        if self.undecided.is_some() {
            self.now = self.now.max(time);
            return;
        }
        if time < self.now {
            self.disordered_times += 1;
            if self.model.simulated {
                self.order_finding(record, "its time lies before the previous record's");
            }
        }
        self.note_reach(record);
        self.expect_changes_before(record);
        self.settle(Some(time.max(self.now)));
        if time > self.now && !self.links.is_empty() {
            self.judge_latches(time);
        }
        self.check_places(time);
        self.now = self.now.max(time);
        if !self.decisions.is_empty() {
            self.replay_decisions(record);
        }
        if record.kind == Kind::Lost {
            self.lost(record);
        } else if record.kind == Kind::Promotion {
            self.promote(record.task as usize, record.job);
        } else if record.kind == Kind::BudgetReplenished {
            self.check_return(record);
            self.replenish(record.value);
            self.note_level_budget(record.value, record.extra > 0);
        } else if record.kind == Kind::BudgetExhausted {
            self.note_level_budget(record.value, false);
        } else if matches!(record.kind, Kind::FirstDispatch | Kind::ModeEnd) {
            self.mode_note(record);
        } else if matches!(record.kind, Kind::Publish | Kind::Latch) {
            self.link_record(record);
        } else if matches!(record.kind, Kind::Suspend | Kind::Wake | Kind::Lock | Kind::Unlock | Kind::Spin) {
            self.task_record(record);
        } else if record.kind == Kind::Exit {
            self.program_ended(record);
        } else if record.kind as u8 >= Kind::KernelSwitch as u8 {
            self.kernel_record(record);
        } else if record.kind == Kind::ModeChange {
            self.change_mode(record);
        } else {
            self.task_record(record);
        }
    }

    fn task_record(&mut self, record: &Record) {
        let task = record.task as usize;
        if task >= self.tasks.len() {
            self.order_finding(record, &format!("it names task {task}, which the system does not have"));
            return;
        }
        if self.is_of_agent(record, task) {
            return self.agent_record(record, task);
        }
        self.judge_request_order(record, task);
        let away = self.place_away(record, task);
        let cpu = away.unwrap_or(self.model.tasks[task].cpu);
        self.advance(cpu, self.now);
        self.hold_against_the_kernel(record, task, cpu);
        // Who tells of a job that an application had elsewhere is the kernel, at its switches alone.
        let is_told = !self.model.foreign || matches!(record.kind, Kind::Start | Kind::Resume);
        if is_told && away.is_none() {
            self.check_processor(record, task, cpu);
        }
        if matches!(record.kind, Kind::Start | Kind::Resume) {
            self.note_dispatch(task);
            self.devices.note_dispatch(task, self.now);
            self.note_level_switch(task);
        }
        match record.kind {
            Kind::Release => self.release(record, task, cpu),
            Kind::Start => self.start(record, task, cpu),
            Kind::Preempt => self.preempt(record, task, cpu),
            Kind::Resume => self.resume(record, task, cpu),
            Kind::PreemptionPoint => self.point(record, task, cpu),
            Kind::Yield => self.give_way(record, task, cpu),
            Kind::Completion => self.complete(record, task, cpu),
            Kind::Lock => self.lock(record, task),
            Kind::Unlock => self.unlock(record, task),
            Kind::Spin => self.spin(record, task),
            Kind::Suspend if record.extra == OF_RESOURCE => self.wait_for(record, task, cpu),
            Kind::Wake if record.extra == OF_RESOURCE => self.asks_again(record, task),
            Kind::Suspend => self.suspend(record, task, cpu),
            Kind::Wake => self.awake(record, task),
            Kind::Miss => self.miss(record, task),
            Kind::Skip => self.skip(record, task),
            Kind::Enforcement => self.enforce(record, task, cpu),
            _ => {}
        }
    }

    /// After a loss nothing is known of pending jobs or of who has a processor.
    fn lost(&mut self, record: &Record) {
        self.losses.add(record.extra, record.value);
        /// The source of a loss that is one switch, as [`Kind::Lost`] numbers it.
        const MISSED_SWITCH: u64 = 2;
        if record.extra == MISSED_SWITCH {
            self.missed_switch(record);
            return;
        }
        // Kernel records tell nothing about jobs, so their loss does not concern these, unless the jobs were derived
        // from them.
        let keeps_jobs = record.extra == 1 && !self.model.foreign;
        for cpu in 0..self.cpus.len() {
            self.lose_sight(cpu);
            if !keeps_jobs {
                // Who had the processor since the last record is not known.
                self.occupy(cpu, Occupant::Unknown);
            }
            self.advance(cpu, self.now);
            self.ongoing[cpu] = None;
            self.cpus[cpu].occupant = Occupant::Unknown;
            self.cpus[cpu].interrupt_depth = 0;
            self.cpus[cpu].hidden.forget();
        }
        if keeps_jobs {
            self.lose_observed();
            return;
        }
        self.links_lost();
        self.lose_budgets();
        self.resources.lose(self.now);
        for cpu in &mut self.cpus {
            cpu.pending.clear();
            cpu.first_busy = cpu.levels.len();
        }
        self.devices.lose();
        for task in &mut self.tasks {
            task.lose();
        }
        (0..self.cpus.len()).for_each(|cpu| self.lose_kept(cpu));
    }

    /// Nothing is known of the jobs that were derived from the kernel's records.
    fn lose_observed(&mut self) {
        for task in 0..self.tasks.len() {
            if !self.model.tasks[task].is_observed {
                continue;
            }
            self.tasks[task].lose();
            let cpu = self.model.tasks[task].cpu;
            self.cpus[cpu].set_pending(task, self.model.tasks[task].priority, false);
            self.lose_kept(cpu);
        }
    }

    /// Whether something was lost so far, so that what is not on record may still have happened.
    pub(crate) fn lossy(&self) -> bool {
        self.losses.total() > 0
    }

    /// Accounts for the time of a processor up to `to`.
    pub(crate) fn advance(&mut self, cpu: usize, to: u64) {
        while self.cpus[cpu].last < to {
            let from = self.cpus[cpu].last;
            let judged_until = Some(self.model.judged_until[cpu]);
            // While an interrupt goes on the point moves with it: it is looked for behind that.
            let point = if self.cpus[cpu].interrupt_depth == 0 { self.point_is_due(cpu) } else { None };
            let within = |at: &u64| from < *at && *at < to;
            let until = judged_until.into_iter().chain(point).filter(within).min();
            self.advance_unchanged(cpu, from, until.unwrap_or(to));
        }
    }

    /// Accounts for the time `from..to` of a processor, in which nothing changed.
    fn advance_unchanged(&mut self, cpu: usize, from: u64, to: u64) {
        let who = self.cpus[cpu].occupant;
        if let Occupant::Task(task) = who
            && let Some(job) = self.tasks[task].pending.front_mut()
        {
            job.executed += to - from;
        }
        if let Occupant::Task(task) = who
            && !(self.model.simulated && self.cpus[cpu].interrupt_depth > 0)
        {
            self.charge_levels(task, from, to);
        }
        if !self.cpus[cpu].pending.is_empty() {
            self.cpus[cpu].busy += to - from;
        }
        self.check_order(cpu, from, to);
        if !self.model.simulated {
            self.note_withdrawn(cpu, Slice { from, to, who });
            if let Occupant::Task(task) = who {
                self.note_kept_waiting(cpu, task, to - from);
            }
            self.cpus[cpu].note_slice(Slice { from, to, who });
            if self.cpus[cpu].slices.len() > 2 * MOST {
                self.forget(cpu);
            }
        }
        self.cpus[cpu].last = to;
    }

    /// Whether jobs may be pending on a processor whose releases are lost.
    pub(crate) fn may_have_unknown_jobs(&self, cpu: usize) -> bool {
        self.cpus[cpu].tasks.iter().any(|&task| self.tasks[task].has_unknown)
    }

    /// Changes who has a processor, from now on.
    pub(crate) fn occupy(&mut self, cpu: usize, who: Occupant) {
        if self.is_soft_on(cpu).is_some() && self.cpus[cpu].occupant != who {
            self.judge_interference(cpu);
        }
        let had_task = matches!(self.cpus[cpu].occupant, Occupant::Task(_));
        let has_task = matches!(who, Occupant::Task(_));
        if had_task != has_task {
            self.cpus[cpu].unticked_from = has_task.then_some(self.now);
        }
        self.cpus[cpu].occupant = who;
        if who == Occupant::Idle {
            let is_kernels = self.cpus[cpu].kernel;
            self.see_again(cpu, is_kernels);
        }
    }

    /// The most important pending hard job of a processor, by its task; in a tree the one that runs by its own records.
    pub(crate) fn most_important(&self, cpu: usize) -> Option<usize> {
        if self.model.is_tree(cpu) {
            let runs = |&task: &usize| !self.is_soft(task) && self.is_running(task);
            return self.cpus[cpu].pending.iter().map(|&(_, task)| task).filter(runs).min();
        }
        // Where nothing lifts a job above another one, whoever comes first in that order is it.
        let is_plain = !self.model.edf && !self.resources.has_any() && !self.has_bands(cpu);
        let mut best: Option<(usize, &Job)> = None;
        for &(Reverse(priority), task) in &self.cpus[cpu].pending {
            if is_plain && best.is_some_and(|(best, _)| priority < self.model.tasks[best].priority) {
                break;
            }
            if self.is_soft(task) || self.model.tasks[task].thread.is_lent || self.tasks[task].is_suspended {
                continue;
            }
            let can_run = |job: &&Job| !job.demoted && job.noticed && job.state != State::Suspended;
            let Some(job) = self.tasks[task].pending.front().filter(can_run) else {
                continue;
            };
            let is_first = best.is_none_or(|(other, other_job)| {
                if job.promoted == other_job.promoted {
                    let is_before = self.goes_before((task, job), (other, other_job));
                    is_before || task < other && !self.goes_before((other, other_job), (task, job))
                } else {
                    job.promoted
                }
            });
            if is_first {
                best = Some((task, job));
            }
        }
        best.map(|(task, _)| task)
    }

    /// Whether the policy serves `a` before `b`, whatever their order of release.
    pub(crate) fn is_more_important(&self, a: (usize, &Job), b: (usize, &Job)) -> bool {
        if b.1.demoted || a.1.demoted {
            return b.1.demoted && !a.1.demoted;
        }
        if self.model.edf {
            let deadline = |(task, job): (usize, &Job)| {
                job.deadline
                    .map_or(u64::MAX, |deadline| deadline.saturating_sub(self.model.tasks[task].shortened))
            };
            deadline(a) < deadline(b)
        } else {
            // Under dual priority only a promotion on record tells for certain who stands in which band.
            let stands_high = a.1.promoted || !self.has_bands(self.model.tasks[a.0].cpu);
            self.priority_of(a.0) > self.priority_of(b.0) && stands_high
        }
    }

    fn goes_before(&self, a: (usize, &Job), b: (usize, &Job)) -> bool {
        self.is_more_important(a, b) || (!self.is_more_important(b, a) && a.1.stands_since < b.1.stands_since)
    }

    /// A finding about a job, with what was observed and what is allowed.
    pub(crate) fn job_finding(
        &mut self,
        class: Class,
        check: Check,
        task: usize,
        job: u64,
        message: String,
        numbers: Option<(u64, u64)>,
    ) {
        if class == Class::ModelViolated && is_of_the_schedule(check) {
            self.set_aside(task, job, Reason::Differs);
        }
        let model = &self.model.tasks[task];
        self.report.add(Found {
            class,
            check,
            time: self.now,
            during: None,
            cpu: self.model.cpus[model.cpu],
            task: Some(model.name.clone()),
            job: Some(job),
            observed: numbers.map(|(observed, _)| observed),
            allowed: numbers.map(|(_, allowed)| allowed),
            evidence: Vec::new(),
            subject: model.name.clone(),
            message,
        });
    }

    /// A record that cannot stand where it stands.
    pub(crate) fn order_finding(&mut self, record: &Record, reason: &str) {
        if record.job != horolog_trace::NO_JOB {
            self.set_aside(record.task as usize, record.job, Reason::Differs);
        }
        let task = self.model.tasks.get(record.task as usize).map(|task| task.name.clone());
        let subject = task.clone().unwrap_or_else(|| "trace".to_owned());
        self.report.add(Found {
            class: Class::ModelViolated,
            check: Check::EventOrder,
            time: record.time.as_ns(),
            during: None,
            cpu: u32::from(record.cpu),
            job: (record.job != horolog_trace::NO_JOB).then_some(record.job),
            task,
            observed: None,
            allowed: None,
            evidence: Vec::new(),
            message: format!("{} of {subject} job {}: {reason}", record.kind.name(), record.job),
            subject,
        });
    }

    /// Whether the job's own records say that it has the processor.
    pub(crate) fn is_running(&self, task: usize) -> bool {
        self.tasks[task].pending.front().is_some_and(|job| job.state == State::Running)
    }
}

/// The section that nothing here follows.
fn undecided(system: &System) -> Option<String> {
    system.clusters().first().map(|cluster| format!("scheduler.{}", cluster.name))
}

impl Sink for Verifier {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        self.take(&record);
    }
}
