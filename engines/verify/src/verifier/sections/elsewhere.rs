//! Sections that execute on the processor of their resource (decision 0026): who may begin there, who executes, and when a job comes home.
//!
//! The job is suspended on its own processor meanwhile. Whose turn it is follows from the requests and unlocks on record, by a code of its own: a section begins once its
//! task is more important than the ceilings of all that have begun on that processor, the most important first, of equals who asked first.

use super::{Holder, Waiting};
use crate::state::job::State;
use crate::state::marks::What;
use crate::verifier::Verifier;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::cmp::Reverse;

/// A processor that executes sections alone.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    cpu: u32,
    /// Whose section executes by the records.
    executing: Option<usize>,
    /// Whether nothing but sections takes its time.
    is_exact: bool,
    /// Whether a finding says what does not happen there now.
    is_told: bool,
}

/// The processors that execute sections alone.
pub(super) fn agents(system: &System) -> Vec<Agents> {
    let mut cpus: Vec<u32> = system.resources().iter().filter_map(|it| it.cpu.map(|cpu| cpu.0)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let platform = system.platform();
    let is_free = platform.context_switch_cost().is_zero() && platform.timer_interrupt_cost().is_zero();
    let is_exact = |cpu: u32| is_free && system.interferences().iter().all(|load| load.cpu.0 != cpu);
    let one = |cpu| Agents { cpu, executing: None, is_exact: is_exact(cpu), is_told: false };
    cpus.into_iter().map(one).collect()
}

impl Verifier {
    fn importance(&self, task: usize) -> i64 {
        self.model.tasks[task].priority
    }

    /// The resources whose sections execute on a processor.
    fn places_on(&self, cpu: u32) -> impl Iterator<Item = usize> + '_ {
        let all = self.resources.all.iter().enumerate();
        all.filter(move |(_, resource)| resource.cpu == Some(cpu)).map(|(place, _)| place)
    }

    fn ceiling_of(&self, place: usize) -> i64 {
        let users = self.resources.all[place].users.iter();
        users.map(|&user| self.importance(user)).max().unwrap_or(i64::MIN)
    }

    /// The ceilings of what has begun on a processor, or may: each with its task, and whether its lock is on record.
    fn begun_on(&self, cpu: u32) -> Vec<(i64, usize, bool)> {
        let begun = |place: usize| {
            let (resource, ceiling) = (&self.resources.all[place], self.ceiling_of(place));
            let holders = resource.holders.iter().map(move |holder| (ceiling, holder.task, true));
            let granted = resource.waiting.iter().filter(|it| it.granted.is_some());
            holders.chain(granted.map(move |it| (ceiling, it.task, false)))
        };
        self.places_on(cpu).flat_map(begun).collect()
    }

    /// Who waits on a processor and may not begin yet: the first one is next.
    fn next_on(&self, cpu: u32) -> Option<(usize, usize)> {
        let waiting = |place: usize| {
            let waiting = self.resources.all[place].waiting.iter().filter(|it| it.granted.is_none());
            waiting.map(move |it| (self.importance(it.task), Reverse(it.order), place, it.task))
        };
        let (.., place, task) = self.places_on(cpu).flat_map(waiting).max()?;
        Some((place, task))
    }

    /// Begins every section on a processor that may begin now.
    pub(super) fn grant_on(&mut self, cpu: u32) {
        let Some((place, task)) = self.next_on(cpu) else { return };
        let highest = self.begun_on(cpu).iter().map(|&(ceiling, ..)| ceiling).max();
        if highest.is_some_and(|highest| self.importance(task) <= highest) {
            return;
        }
        let now = self.now;
        let waiting = self.resources.all[place].waiting.iter_mut().find(|waiting| waiting.task == task);
        if let Some(Waiting { granted, .. }) = waiting {
            *granted = Some(now);
        }
    }

    /// What declared loads take in a window of the processors on which sections of a task execute.
    pub(crate) fn loads_elsewhere(&self, task: usize, window: u64) -> u64 {
        let loads = self.processors_elsewhere(task).map(|cpu| self.model.declared_interference(cpu, window));
        loads.fold(0, u64::saturating_add)
    }

    /// The places of the processors on which sections of a task execute, beside its own.
    fn processors_elsewhere(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        let uses = move |cpu: u32| {
            self.resources.all.iter().any(|it| it.cpu == Some(cpu) && it.users.contains(&task))
        };
        let numbers = self.resources.agents.iter().map(|agents| agents.cpu).filter(move |&cpu| uses(cpu));
        numbers.filter_map(|cpu| self.model.cpus.iter().position(|&it| it == cpu))
    }

    /// Whether what happens on a processor is known: no records were lost.
    fn knows_agents(&self) -> bool {
        self.resources.lost_at.is_none()
    }

    /// The section of a job begins on the processor of its resource.
    pub(super) fn begin_elsewhere(&mut self, record: &Record, task: usize, place: usize) {
        let Some(job) = self.head(record, task) else { return self.resources.all[place].forget(task) };
        let so_far = (job.executed, job.interrupted, job.switches);
        job.asks_for = None;
        self.resources.locks += 1;
        let (order, now) = (self.resources.locks, self.now);
        let resource = &mut self.resources.all[place];
        let waited = resource.waiting.iter().position(|waiting| waiting.task == task);
        let waited = waited.and_then(|place| resource.waiting.remove(place));
        let before = resource.take(Holder { task, job: record.job, since: now, so_far, order });
        let (name, cpu) = (resource.name.clone(), resource.cpu.unwrap_or_default());
        let locks = format!("{} job {} locks {name}", self.name_of(task), record.job);
        let message = match (before, waited.map(|it| it.granted)) {
            (Some(holder), _) => format!("{locks}, which {} holds", self.name_of(holder.task)),
            (None, None) => format!("{locks}, for which it does not wait"),
            (None, Some(None)) => {
                let others = self.begun_on(cpu);
                let highest = others.iter().filter(|it| it.1 != task).max();
                let other = highest.map(|it| it.1).or_else(|| self.next_on(cpu).map(|it| it.1));
                let other = other.map_or("another one", |other| self.name_of(other));
                format!("{locks} on CPU {cpu}, where {other} comes first")
            }
            (None, Some(Some(since))) => {
                if !self.model.simulated {
                    self.check_notice(record, task, place, now.saturating_sub(since));
                }
                return;
            }
        };
        if self.knows_agents() {
            self.turn_finding(task, record.job, message);
        }
    }

    /// A job has let go of a resource on its processor.
    pub(super) fn ended_elsewhere(&mut self, task: usize, place: usize) {
        let cpu = self.resources.all[place].cpu.unwrap_or_default();
        if let Some(agents) = self.resources.agents.iter_mut().find(|agents| agents.cpu == cpu)
            && agents.executing == Some(task)
        {
            agents.executing = None;
        }
        self.grant_on(cpu);
    }

    /// A job is ready on its own processor again: its section has ended.
    pub(super) fn comes_home(&mut self, record: &Record, task: usize, place: usize) {
        let resource = &self.resources.all[place];
        let waits = resource.waiting.iter().any(|waiting| waiting.task == task);
        if (waits || self.resources.is_held_by(resource, task)) && self.knows_agents() {
            let message = format!(
                "{} job {} is woken while its section of {} has not ended",
                self.name_of(task),
                record.job,
                resource.name
            );
            self.waiting_finding(task, record.job, message);
        }
        self.awake(record, task);
    }

    /// Whether a record gives a section of a job the processor of its resource, or takes it away.
    pub(crate) fn is_of_agent(&self, record: &Record, task: usize) -> bool {
        let is_there = |place: usize| {
            self.resources.is_held_by(&self.resources.all[place], task)
                || self.resources.agents.iter().any(|agents| agents.executing == Some(task))
        };
        let cpu = u32::from(record.cpu);
        matches!(record.kind, Kind::Resume | Kind::Preempt)
            && self.model.tasks.get(task).is_some_and(|it| self.model.cpus[it.cpu] != cpu)
            && self.places_on(cpu).any(is_there)
    }

    /// Whether sections of a task execute on a processor.
    pub(crate) fn executes_sections_on(&self, task: usize, cpu: u32) -> bool {
        self.places_on(cpu).any(|place| self.resources.all[place].users.contains(&task))
    }

    /// Such a record.
    pub(crate) fn agent_record(&mut self, record: &Record, task: usize) {
        let cpu = u32::from(record.cpu);
        let Some(agents) = self.resources.agents.iter_mut().find(|agents| agents.cpu == cpu) else { return };
        let other = agents.executing.filter(|&other| other != task);
        agents.executing = (record.kind == Kind::Resume).then_some(task);
        if record.kind == Kind::Resume
            && let Some(job) = self.tasks[task].pending.front_mut()
        {
            job.switches += 1;
        }
        if let Some(other) = other {
            let name = self.name_of(other).to_owned();
            self.order_finding(record, &format!("{name} still has CPU {cpu}"));
        }
    }

    /// Time passes until `until`: the section with the highest ceiling executes, and every section that may begin has begun.
    pub(crate) fn pass_elsewhere(&mut self, until: u64) {
        for place in 0..self.resources.agents.len() {
            let Agents { cpu, executing, is_exact, is_told } = self.resources.agents[place].clone();
            let begun = self.begun_on(cpu);
            let top = begun.iter().filter(|it| it.2).max().map(|&(_, task, _)| task);
            let late = begun.iter().find(|it| !it.2).map(|&(_, task, _)| task);
            if let Some(top) = top {
                self.executes_elsewhere(top, cpu, until - self.now, is_exact && self.model.simulated);
            }
            let is_wrong = late.is_some() || executing != top;
            self.resources.agents[place].is_told = is_wrong;
            if !is_wrong || is_told || !self.model.simulated || !self.knows_agents() {
                continue;
            }
            let Some(task) = late.or(top).or(executing) else { continue };
            let Some(job) = self.tasks[task].pending.front().map(|job| job.number) else { continue };
            let (name, time) = (self.name_of(task).to_owned(), Span::from_ns(self.now));
            let message = match (late, top) {
                (Some(_), _) => {
                    format!("{name} job {job} may begin its section on CPU {cpu} at {time}, and does not")
                }
                (None, Some(_)) => format!(
                    "{name} job {job} does not execute on CPU {cpu} at {time}, where its section comes first"
                ),
                (None, None) => {
                    format!("{name} job {job} executes on CPU {cpu} at {time} and holds nothing there")
                }
            };
            self.turn_finding(task, job, message);
        }
    }

    /// The section of a task's job has a processor for so long; where other things take its time, too, no longer than the file says.
    fn executes_elsewhere(&mut self, task: usize, cpu: u32, time: u64, is_exact: bool) {
        let its = self.places_on(cpu).find_map(|place| {
            let holder = self.resources.all[place].holders.iter().find(|holder| holder.task == task)?;
            Some((place, holder.so_far.0))
        });
        let Some((place, before)) = its else { return };
        let most = self.longest_section(task, place).unwrap_or(u64::MAX);
        let Some(job) = self.tasks[task].pending.front_mut() else { return };
        let executed = job.executed.saturating_add(time);
        job.executed =
            if is_exact { executed } else { executed.min(before.saturating_add(most)).max(job.executed) };
    }

    /// The job of a task is suspended from now on.
    pub(super) fn waits(&mut self, record: &Record, task: usize, cpu: usize) {
        let Some(job) = self.head(record, task) else { return };
        let state = std::mem::replace(&mut job.state, State::Suspended);
        job.stretch_from = None;
        if state != State::Running {
            self.misfit(record, state);
        }
        self.leave_processor(task, cpu);
    }

    /// A job asks for a resource on whose processor its section executes: it is suspended until that has ended.
    pub(super) fn asks_elsewhere(&mut self, record: &Record, task: usize, place: usize) {
        self.check_choice_at_lock(task);
        self.resources.locks += 1;
        let (order, now) = (self.resources.locks, self.now);
        let resource = &mut self.resources.all[place];
        resource.waiting.push_back(Waiting {
            task,
            since: now,
            writes: 0,
            granted: None,
            order,
            joined: None,
        });
        let cpu = resource.cpu.unwrap_or_default();
        self.check_nesting(record, task, place);
        self.enter_section(task, place);
        self.mark(task, What::Lock(place as u32));
        self.grant_on(cpu);
    }
}
