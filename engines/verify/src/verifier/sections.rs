//! Sections that hold resources (decision 0009): who holds what by the records, and what that means for the order of jobs.
//!
//! A resource has one holder, or some that read ([`readers`]), and its sections are those of the file and take no longer than it says. Once it is free, who has waited for it
//! asks again when it is chosen; spin locks go to whoever has waited longest. Under fixed priorities a job may go before others by what it holds, under EDF a
//! job that has not begun may be kept back by what another one holds. Nothing of the scheduling machine is used.

mod elsewhere;
mod entries;
mod hand_over;
mod helping;
mod readers;
mod request_order;
mod tokens;
mod withdrawn;

use crate::result::{Check, Class};
use crate::state::job::{Excess, Job, Part, State};
use crate::state::marks::What;
use crate::verifier::Verifier;
use crate::verifier::borders::Borders;
use entries::Entries;
use horolog_model::{AtExhaustion, CpuId, Priority, Protocol, Section, System, Task};
use horolog_time::Span;
use horolog_trace::{LEFT_LOCKED, Record};
use std::collections::{BTreeSet, VecDeque};

/// `extra` of a suspension or a wake-up that is about a resource.
pub(crate) const OF_RESOURCE: u64 = 1;

/// Who holds a resource.
#[derive(Clone, Copy, Debug)]
struct Holder {
    task: usize,
    job: u64,
    /// Since when, and what the job had executed then and had been interrupted for.
    since: u64,
    so_far: (u64, u64, u64),
    /// How many locks were on record before.
    order: u64,
}

/// One resource.
#[derive(Clone, Debug)]
struct Resource {
    name: String,
    users: Vec<usize>,
    protocol: Protocol,
    /// The processor on which its sections execute; `None`: that of each job.
    cpu: Option<u32>,
    /// Whether a holder goes on where its budget ends.
    finishes: bool,
    /// Who holds it: one job, or some that read.
    holders: Vec<Holder>,
    /// The tasks that only read what it guards.
    readers: Vec<usize>,
    /// How many writers have let go of it.
    writes: u64,
    /// The jobs that wait for it, the longest wait first.
    waiting: VecDeque<Waiting>,
    /// Whether it is known who holds it.
    is_known: bool,
    /// Since when no job holds it.
    free_since: u64,
    /// Whether a finding says where its present holder does not execute and should.
    is_told: bool,
    /// Whose turn it is since then, where it is handed to a job that is suspended, and that one has not been woken yet.
    handed: Option<usize>,
}

impl Resource {
    /// Nothing is known of who holds it.
    fn lose(&mut self) {
        self.holders.clear();
        (self.is_known, self.handed) = (false, None);
    }

    /// Whether another job than that of a task holds it.
    fn is_held_by_another(&self, task: usize) -> bool {
        self.holders.iter().any(|holder| holder.task != task)
    }

    /// A job that nothing is known of has got it or let go of it: who holds it is not known any more.
    fn forget(&mut self, task: usize) {
        self.lose();
        self.waiting.retain(|waiting| waiting.task != task);
    }
}

/// A job that waits for a resource.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    task: usize,
    since: u64,
    /// How many writers had let go of it by then.
    writes: u64,
    /// Since when it is the job's own, by the rules of readers and writers ([`readers`]), or its section may execute elsewhere ([`elsewhere`]).
    granted: Option<u64>,
    /// Its place among all locks and requests on record.
    order: u64,
    /// Since when it has a place in the queue, among all such, where of each processor one job at a time has one ([`tokens`]).
    joined: Option<u64>,
}

/// A job that waits for a spin lock: since when, and what it had executed then and had been interrupted for.
#[derive(Clone, Copy, Debug)]
struct Spinning {
    place: usize,
    since: u64,
    so_far: (u64, u64),
}

/// The resources of a system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    all: Vec<Resource>,
    /// Of each task: resource and length of its sections.
    sections: Vec<Vec<(usize, u64)>>,
    pub(crate) borders: Vec<Borders>,
    /// Of each task whose job waits for a spin lock.
    spinning: Vec<Option<Spinning>>,
    /// Of each task whose job was preempted while it spun, and has no place in the queue since then: what it asks for anew.
    withdrawn: Vec<Option<withdrawn::Withdrawn>>,
    /// At which priority jobs of each task spin under the flexible spin-lock model.
    spin_priorities: Vec<i64>,
    /// When records were lost last.
    pub(crate) lost_at: Option<u64>,
    /// How many locks were on record, and requests for sections elsewhere.
    locks: u64,
    /// The processors that execute sections alone.
    agents: Vec<elsewhere::Agents>,
    /// Who asks first at one instant.
    requests: request_order::Requests,
    /// Of each task, how often its present job has come to its resources.
    pub(crate) entries: Vec<Entries>,
    /// Of each task: those of its resources of which the first has a section within one of the second.
    within: Vec<BTreeSet<(usize, usize)>>,
}

impl Resources {
    pub(crate) fn of(system: &System) -> Resources {
        let find = |name: &str| system.find_resource(name);
        let sections: Vec<Vec<(usize, u64)>> = system
            .tasks()
            .iter()
            .map(|task| {
                let one = |section: &Section| {
                    find(&section.resource).map(|resource| (resource, section.length.as_ns()))
                };
                task.sections.iter().filter_map(one).collect()
            })
            .collect();
        let all = system.resources().iter().enumerate().map(|(place, resource)| {
            let uses = |sections: &Vec<(usize, u64)>| sections.iter().any(|(of, _)| *of == place);
            let users = sections.iter().enumerate().filter(|(_, sections)| uses(sections));
            Resource {
                name: resource.name.clone(),
                users: users.map(|(task, _)| task).collect(),
                protocol: resource.protocol,
                cpu: resource.cpu.map(|cpu| cpu.0),
                finishes: resource.at_exhaustion == AtExhaustion::Finish,
                holders: Vec::new(),
                readers: system
                    .task_ids()
                    .filter(|&task| system.only_reads(task, place))
                    .map(|it| it.index())
                    .collect(),
                writes: 0,
                waiting: VecDeque::new(),
                is_known: true,
                free_since: 0,
                is_told: false,
                handed: None,
            }
        });
        let entries = sections.iter().map(|sections| Entries::of(sections)).collect();
        Resources {
            all: all.collect(),
            borders: Borders::all(system),
            spinning: vec![None; system.tasks().len()],
            withdrawn: vec![None; system.tasks().len()],
            sections,
            spin_priorities: system.tasks().iter().map(|task| spin_priority(system, task.cpu)).collect(),
            lost_at: None,
            locks: 0,
            agents: elsewhere::agents(system),
            requests: request_order::Requests::of(system),
            entries,
            within: system.tasks().iter().map(|task| nested(system, task)).collect(),
        }
    }

    /// The longest section in which a job of `task` goes on although its budget has ended.
    pub(crate) fn longest_in_debt(&self, task: usize) -> u64 {
        let in_debt = self.sections[task].iter().filter(|(resource, _)| self.all[*resource].finishes);
        in_debt.map(|(_, length)| *length).max().unwrap_or(0)
    }

    /// After a loss nobody is known to hold anything.
    pub(crate) fn lose(&mut self, now: u64) {
        self.lost_at = Some(now);
        self.requests.lose();
        for resource in &mut self.all {
            resource.lose();
            resource.waiting.clear();
        }
        self.entries.iter_mut().for_each(Entries::lose);
        self.spinning.fill(None);
        self.withdrawn.fill(None);
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Why sections are held against nothing.
    pub(crate) fn why_not_judged(&self, is_foreign: bool) -> Option<String> {
        let why =
            "horolog did not run it, so what it locks, and for what it sleeps within a job, is not judged";
        (is_foreign && self.has_any()).then(|| why.to_owned())
    }

    pub(crate) fn name(&self, place: usize) -> &str {
        &self.all[place].name
    }

    fn is_held_by(&self, resource: &Resource, task: usize) -> bool {
        resource.holders.iter().any(|holder| holder.task == task)
    }
}

/// The pairs of a task's resources of which the first has a section within one of the second.
fn nested(system: &System, task: &Task) -> BTreeSet<(usize, usize)> {
    let place = |section: &Section| system.find_resource(&section.resource);
    let is_within = |inner: &Section, outer: &Section| outer.from <= inner.from && inner.end() <= outer.end();
    let all = task.sections.iter();
    let pairs = all.clone().flat_map(|inner| all.clone().map(move |outer| (inner, outer)));
    let nested = pairs.filter(|(inner, outer)| is_within(inner, outer));
    nested.filter_map(|(inner, outer)| Some((place(inner)?, place(outer)?))).collect()
}

/// The priority at which jobs of a processor spin, where it is not above every task.
fn spin_priority(system: &System, cpu: CpuId) -> i64 {
    system.spin_priority(cpu).map_or(i64::MAX, Priority::number)
}

impl Verifier {
    fn name_of(&self, task: usize) -> &str {
        self.model.tasks.get(task).map_or("?", |task| &task.name)
    }

    fn resource_finding(&mut self, task: usize, job: u64, message: String) {
        self.job_finding(Class::ModelViolated, Check::Resource, task, job, message, None);
    }

    /// What the runtime does alone. In a run a job may be preempted between its change of the word and the record of that, so no task is accused.
    fn waiting_finding(&mut self, task: usize, job: u64, message: String) {
        let class = if self.model.simulated { Class::ModelViolated } else { Class::CannotTell };
        self.job_finding(class, Check::Resource, task, job, message, None);
    }

    /// The place of the resource that a record names; finds fault where there is none, or the task does not use it.
    fn resource_of(&mut self, record: &Record, task: usize) -> Option<usize> {
        self.report.apply(Check::Resource);
        let place = usize::try_from(record.value).ok().filter(|&place| place < self.resources.all.len());
        let Some(place) = place else {
            self.order_finding(record, &format!("there is no resource {}", record.value));
            return None;
        };
        if !self.resources.all[place].users.contains(&task) {
            let message = format!(
                "{} job {} names {}, and the file gives it no section there",
                self.name_of(task),
                record.job,
                self.resources.all[place].name
            );
            self.resource_finding(task, record.job, message);
        }
        Some(place)
    }

    /// A job has a resource from now on.
    pub(crate) fn lock(&mut self, record: &Record, task: usize) {
        let now = self.now;
        let Some(place) = self.resource_of(record, task) else { return };
        if self.resources.all[place].protocol.is_remote() {
            return self.begin_elsewhere(record, task, place);
        }
        let spun = self.resources.spinning[task].take().filter(|spun| spun.place == place);
        self.alone_on_its_processor(record, task, place);
        let already_holds = self.holds_anything(task);
        let waited = self.resources.all[place].waiting.iter().position(|waiting| waiting.task == task);
        let Some(job) = self.head(record, task) else { return self.resources.all[place].forget(task) };
        if let Some(Spinning { so_far: (executed, interrupted), .. }) = spun {
            // What it has spun is none of what it executes.
            (job.executed, job.interrupted) = (executed, interrupted);
        }
        let (state, so_far) = (job.state, (job.executed, job.interrupted, job.switches));
        job.was_lifted = true;
        let asked = job.asks_for.take() == Some(place);
        let asks_anew = self.asks_anew(record, task, place);
        let protocol = self.resources.all[place].protocol;
        let was_handed_on = protocol.boosts() && asked;
        if spun.is_none() && !already_holds && !was_handed_on {
            self.check_choice_at_lock(task);
        }
        // Two processors write down at their own times when they have joined a queue.
        let is_spin_lock = protocol.spins();
        let stamping = if self.model.simulated || !is_spin_lock { 0 } else { self.model.stamping };
        let came = spun.map_or(now, |spun| spun.since);
        let came_before = |&other: &usize| {
            let since = self.resources.spinning[other].map_or(0, |spinning| spinning.since);
            let resource = &self.resources.all[place];
            // A reader that came later goes before a writer all the same: it came before the last writer left.
            let until =
                if resource.passes(other, task) { resource.free_since.saturating_add(1) } else { came };
            !is_spin_lock || since.saturating_add(stamping) < until
        };
        // Of a job that was woken for it that was judged then.
        let next = self.next_of(place).filter(|(other, _)| *other == task || came_before(other));
        let next = next.filter(|_| !was_handed_on);
        let handed = self.resources.all[place].handed.take().filter(|&other| other != task);
        let (bar, is_original) = (self.bar_of(task), self.is_original(place));
        let token = self.token_of_another(place, task).filter(|_| !was_handed_on);
        self.resources.locks += 1;
        let order = self.resources.locks;
        let resource = &mut self.resources.all[place];
        resource.is_told = false;
        let before = resource.take(Holder { task, job: record.job, since: now, so_far, order });
        let free_since =
            if std::mem::replace(&mut resource.is_known, true) { resource.free_since } else { now };
        let granted = waited.and_then(|place| resource.waiting.remove(place)).and_then(|it| it.granted);
        let free_since = granted.unwrap_or(free_since);
        let name = resource.name.clone();
        if spun.is_none() && !asked && !asks_anew {
            self.check_nesting(record, task, place);
            self.enter_section(task, place);
            self.mark(task, What::Lock(place as u32));
        }
        if was_handed_on && !self.model.simulated {
            self.check_notice(record, task, place, now.saturating_sub(free_since));
        }
        let locks = format!("{} job {} locks {name}", self.name_of(task), record.job);
        if let (Some((other, holder)), true) = (bar, is_original) {
            let (other, holder) = (&self.resources.all[other].name, self.name_of(holder));
            let message = format!("{locks}, and {holder} holds {other}, whose ceiling is not below it");
            self.resource_finding(task, record.job, message);
        } else if let Some(holder) = before {
            let message = format!("{locks}, which {} holds", self.name_of(holder.task));
            self.resource_finding(task, record.job, message);
        } else if let Some(other) = token {
            let other = self.name_of(other);
            let message = format!("{locks}, and {other} of the same CPU has asked before and has not let go");
            self.turn_finding(task, record.job, message);
        } else if let Some(other) = handed {
            let message = format!("{locks}, which was handed to {}", self.name_of(other));
            self.turn_finding(task, record.job, message);
        } else if let Some((next, other)) = next.filter(|&(next, _)| next != task) {
            let next = self.name_of(next);
            let message = if is_spin_lock || protocol.boosts() {
                format!("{locks}, for which {next} has waited longer")
            } else {
                let other = self.resources.name(other);
                format!("{locks}, and {next}, which waits for {other}, was not woken")
            };
            self.waiting_finding(task, record.job, message);
        } else if spun.is_none() && state != State::Running && (!was_handed_on || state == State::Suspended) {
            self.misfit(record, state);
        } else if self.model.simulated
            && (spun.is_some() && free_since.max(came) < now || was_handed_on && free_since < now)
        {
            let message = format!(
                "{locks} at {}, which was free since {}",
                Span::from_ns(now),
                Span::from_ns(free_since)
            );
            self.resource_finding(task, record.job, message);
        }
    }

    /// A job asks for a resource: it lies within what the job holds already, as the file has it.
    fn check_nesting(&mut self, record: &Record, task: usize, place: usize) {
        let is_outer = |&other: &usize| {
            let mut holders = self.resources.all[other].holders.iter();
            other != place && holders.any(|it| (it.task, it.job) == (task, record.job))
        };
        let mut held = (0..self.resources.all.len()).filter(is_outer);
        let outer = held.find(|&outer| !self.resources.within[task].contains(&(place, outer)));
        let Some(outer) = outer.map(|outer| self.resources.name(outer)) else { return };
        let inner = self.resources.name(place);
        let message = format!(
            "{} job {} comes to {inner} while it holds {outer}: the file has no section of {inner} within one of {outer}",
            self.name_of(task),
            record.job,
        );
        self.resource_finding(task, record.job, message);
    }

    /// A job lets go of a resource: whatever it has locked since is free again.
    fn check_unnesting(&mut self, record: &Record, task: usize, holder: Holder, name: &str) {
        let is_inner = |it: &Resource| {
            it.holders.iter().any(|it| (it.task, it.job) == (task, record.job) && it.order > holder.order)
        };
        let Some(inner) = self.resources.all.iter().find(|it| is_inner(it)) else { return };
        let message = format!(
            "{} job {} unlocks {name} before {}, which it locked within: sections nest",
            self.name_of(task),
            record.job,
            inner.name
        );
        self.resource_finding(task, record.job, message);
    }

    /// A job waits for a spin lock: somebody else has to hold it. It keeps its place meanwhile.
    pub(crate) fn spin(&mut self, record: &Record, task: usize) {
        let now = self.now;
        let Some(place) = self.resource_of(record, task) else { return };
        self.alone_on_its_processor(record, task, place);
        let resource = &self.resources.all[place];
        if !resource.protocol.spins() {
            let task_name = self.name_of(task);
            let message =
                format!("{task_name} job {} spins for {}, which is no spin lock", record.job, resource.name);
            self.resource_finding(task, record.job, message);
            return;
        }
        let is_held = resource.must_wait(task);
        // In a run it may have let go by now, and the other one has seen its turn already.
        if self.model.simulated && !is_held && resource.is_known {
            let message = format!(
                "{} job {} spins for {}, which {}",
                self.name_of(task),
                record.job,
                resource.name,
                if resource.holders.is_empty() { "no job holds" } else { "jobs hold together that read" }
            );
            self.resource_finding(task, record.job, message);
        }
        let Some(job) = self.head(record, task) else { return };
        let (state, so_far) = (job.state, (job.executed, job.interrupted));
        job.was_lifted = true;
        self.check_choice_at_lock(task);
        let asks_anew = self.asks_anew(record, task, place) | self.asks_twice(record, task, place);
        let resource = &mut self.resources.all[place];
        resource.waiting.push_back(Waiting {
            task,
            since: now,
            writes: resource.writes,
            granted: None,
            order: 0,
            joined: None,
        });
        self.resources.spinning[task] = Some(Spinning { place, since: now, so_far });
        if !asks_anew {
            self.check_nesting(record, task, place);
            self.enter_section(task, place);
        }
        if state != State::Running {
            self.misfit(record, state);
        }
    }

    /// One job of a processor waits for spin locks or holds one.
    fn alone_on_its_processor(&mut self, record: &Record, task: usize, place: usize) {
        if !self.resources.all[place].protocol.spins() {
            return;
        }
        let cpu = self.model.tasks[task].cpu;
        let is_here = |other: usize| other != task && self.model.tasks[other].cpu == cpu;
        // Under local ceilings a more important job may ask for another resource meanwhile.
        let is_alone_there = self.resources.all[place].protocol.helps();
        let counts = |other: usize| {
            let protocol = self.resources.all[other].protocol;
            protocol.spins() && (other == place || !is_alone_there && !protocol.helps())
        };
        let holders = (0..self.resources.all.len()).filter(|&other| counts(other));
        let holder = holders.flat_map(|place| &self.resources.all[place].holders).map(|holder| holder.task);
        let spins = (0..self.resources.spinning.len())
            .filter(|&other| self.resources.spinning[other].is_some_and(|it| counts(it.place)));
        if let Some(other) = holder.chain(spins).find(|&other| is_here(other)) {
            let message = format!(
                "{} job {} asks for {} while {} of the same CPU waits for a spin lock or holds one",
                self.name_of(task),
                record.job,
                self.resources.all[place].name,
                self.name_of(other)
            );
            self.resource_finding(task, record.job, message);
        }
    }

    /// A job has a resource no more.
    pub(crate) fn unlock(&mut self, record: &Record, task: usize) {
        let Some(place) = self.resource_of(record, task) else { return };
        // A stopped job lets go where its code does.
        let is_stopped = self.tasks[task].stopped_job.is_some_and(|(number, ..)| number == record.job);
        if is_stopped && self.resources.all[place].put_back(task, record.job, self.now).is_some() {
            return;
        }
        let Some(job) = self.head(record, task) else { return self.resources.all[place].forget(task) };
        let now = (job.executed, job.interrupted, job.switches);
        let resource = &mut self.resources.all[place];
        let name = resource.name.clone();
        if let Some(holder) = resource.put_back(task, record.job, self.now) {
            self.hand_on(place);
            self.pass_token(place, task);
            if self.resources.all[place].cpu.is_some() {
                self.ended_elsewhere(task, place);
            }
            if record.extra == LEFT_LOCKED {
                let message =
                    format!("{} job {} ended: resource left locked: {name}", self.name_of(task), record.job);
                self.resource_finding(task, record.job, message);
            } else {
                self.check_unnesting(record, task, holder, &name);
            }
            let most = self.longest_section(task, place).unwrap_or(u64::MAX);
            self.mark(task, What::Unlock { resource: place as u32, most });
            self.check_length(holder, place, now);
            self.leave_section(task, place);
            return;
        }
        if std::mem::replace(&mut resource.is_known, true) {
            let message =
                format!("{} job {} unlocks {name}, which it does not hold", self.name_of(task), record.job);
            self.resource_finding(task, record.job, message);
        }
    }

    fn longest_section(&self, task: usize, place: usize) -> Option<u64> {
        let lengths = self.resources.sections[task].iter().filter(|(resource, _)| *resource == place);
        lengths.map(|(_, length)| *length).max()
    }

    /// A section takes no longer than the file says; judged with its job.
    fn check_length(&mut self, holder: Holder, place: usize, now: (u64, u64, u64)) {
        let excess = self.excess_of_section(holder, place, now);
        if let Some(job) = self.tasks[holder.task].pending.front_mut() {
            job.excesses.extend(excess);
        }
    }

    /// The sections in which a job that is not done has been for too long already.
    pub(crate) fn excesses_of_open_sections(&mut self, task: usize, job: &Job) -> Vec<Excess> {
        let now = (job.executed, job.interrupted, job.switches);
        let all = self.resources.all.iter().enumerate();
        let holders = all.flat_map(|(place, it)| it.holders.iter().map(move |&holder| (place, holder)));
        let its = holders.filter(|(_, holder)| (holder.task, holder.job) == (task, job.number));
        let its: Vec<(usize, Holder)> = its.collect();
        its.into_iter().filter_map(|(place, holder)| self.excess_of_section(holder, place, now)).collect()
    }

    /// By how much a section is too long whose job has executed, was interrupted and got the processor so often by now.
    fn excess_of_section(
        &mut self,
        Holder { task, since, so_far, .. }: Holder,
        place: usize,
        now: (u64, u64, u64),
    ) -> Option<Excess> {
        let length = self.longest_section(task, place)?;
        let taken = (now.0.saturating_sub(so_far.0), now.1.saturating_sub(so_far.1));
        let switches = now.2.saturating_sub(so_far.2);
        self.check_part(task, Part::Section(place), (Some(since), switches), taken, Some(length))
    }

    /// What an excess was in, for its message.
    pub(crate) fn part_of(&self, excess: &Excess) -> String {
        match excess.part {
            Part::Segment(segment) => {
                format!("in segment {segment}, whose wcet is {}", Span::from_ns(excess.wcet))
            }
            Part::Section(place) => format!(
                "in a section of {}, which takes at most {}",
                self.resources.all[place].name,
                Span::from_ns(excess.wcet)
            ),
        }
    }

    /// A job waits for a resource: somebody else has to hold it.
    pub(crate) fn wait_for(&mut self, record: &Record, task: usize, cpu: usize) {
        if let Some(place) = self.resource_of(record, task) {
            if self.resources.all[place].protocol.is_remote() {
                self.asks_elsewhere(record, task, place);
                return self.waits(record, task, cpu);
            }
            let is_barred = self.is_original(place) && self.bar_of(task).is_some();
            if self.resources.all[place].protocol.boosts() {
                self.check_wait(record, task, place);
            }
            let waits_for_token = self.may_wait_for_token(place, task);
            let resource = &mut self.resources.all[place];
            resource.waiting.push_back(Waiting {
                task,
                since: self.now,
                writes: resource.writes,
                granted: None,
                order: 0,
                joined: None,
            });
            let is_held = resource.is_held_by_another(task) || is_barred || waits_for_token;
            let is_handed = resource.handed.is_some_and(|other| other != task);
            if !is_held && !is_handed && resource.is_known {
                let message = format!(
                    "{} job {} waits for {}, which nobody else holds",
                    self.model.tasks[task].name, record.job, resource.name
                );
                self.waiting_finding(task, record.job, message);
            }
            self.asks_for_token(place, task);
            // Behind a loss its job may not be known, and the next one is not the one that waits.
            let job = self.tasks[task].pending.front_mut().filter(|job| job.number == record.job);
            if job.is_some_and(|job| job.asks_for.replace(place) != Some(place)) {
                self.check_nesting(record, task, place);
                self.enter_section(task, place);
                self.mark(task, What::Lock(place as u32));
            }
        }
        self.waits(record, task, cpu);
    }

    /// The oldest job of `task` has ended: what it holds goes with it.
    pub(crate) fn let_go(&mut self, task: usize, job: u64) {
        self.resources.spinning[task] = None;
        self.check_withdrawn(task, job);
        for place in 0..self.resources.all.len() {
            let resource = &mut self.resources.all[place];
            resource.waiting.retain(|waiting| waiting.task != task);
            if resource.put_back(task, job, self.now).is_none() {
                continue;
            }
            let name = resource.name.clone();
            let message =
                format!("{} job {job} ended, and no record says that it unlocked {name}", self.name_of(task));
            self.resource_finding(task, job, message);
        }
    }

    /// How important a task's job is: as the most important user of what it holds, under fixed priorities.
    pub(crate) fn priority_of(&self, task: usize) -> i64 {
        let own = self.model.tasks[task].priority;
        let held = self.resources.all.iter().filter(|resource| self.resources.is_held_by(resource, task));
        let lifts = |resource: &Resource| match resource.protocol {
            Protocol::Ceiling => resource.users.iter().map(|&user| self.model.tasks[user].priority).max(),
            // Nothing preempts who holds one.
            Protocol::Msrp | Protocol::Fslm | Protocol::PreemptableFifo | Protocol::NonPreemptive => {
                Some(i64::MAX)
            }
            Protocol::TaskFair | Protocol::PhaseFair => Some(i64::MAX),
            // Its priority is boosted above all.
            Protocol::Mpcp | Protocol::FmlpPlus | Protocol::Omlp => Some(i64::MAX),
            Protocol::Mrsp => Some(self.local_ceiling(resource, task)),
            Protocol::Inheritance => {
                resource.waiting.iter().map(|waiting| self.model.tasks[waiting.task].priority).max()
            }
            Protocol::OriginalCeiling => self.barred_by(task),
            // It is held elsewhere.
            Protocol::None | Protocol::Dpcp => None,
        };
        let lifted = held.filter_map(lifts).fold(own, i64::max);
        match self.resources.spinning[task].map(|spinning| self.resources.all[spinning.place].protocol) {
            Some(Protocol::Fslm) => lifted.max(self.resources.spin_priorities[task]),
            Some(Protocol::Msrp | Protocol::TaskFair | Protocol::PhaseFair) => i64::MAX,
            Some(Protocol::Mrsp) => {
                let place = self.resources.spinning[task].map(|spinning| spinning.place);
                let ceiling = place.map(|place| self.local_ceiling(&self.resources.all[place], task));
                ceiling.map_or(lifted, |ceiling| ceiling.max(lifted))
            }
            // Under preemptable spinning it has its own, and the others do not spin.
            Some(_) | None => lifted,
        }
    }

    fn is_original(&self, place: usize) -> bool {
        self.resources.all[place].protocol == Protocol::OriginalCeiling
    }

    /// Under the original ceiling, what keeps a task from getting anything: the resource with the highest ceiling that another task of its
    /// processor holds, where the task is not more important, and its holder.
    fn bar_of(&self, task: usize) -> Option<(usize, usize)> {
        let of = |task: usize| &self.model.tasks[task];
        let beside = (0..self.resources.all.len()).filter(|&place| self.is_original(place));
        let held = beside.filter_map(|place| {
            let resource = &self.resources.all[place];
            let holder = resource.holders.iter().find(|holder| holder.task != task)?.task;
            let ceiling = resource.users.iter().map(|&user| of(user).priority).max()?;
            (of(holder).cpu == of(task).cpu).then_some((ceiling, place, holder))
        });
        let (ceiling, place, holder) = held.max()?;
        (of(task).priority <= ceiling).then_some((place, holder))
    }

    /// The priority of the most important job that a task keeps from its resources under the original ceiling.
    fn barred_by(&self, task: usize) -> Option<i64> {
        let waiting =
            self.original_waits().filter(|(_, it)| self.bar_of(it.task).map(|it| it.1) == Some(task));
        waiting.map(|(_, it)| self.model.tasks[it.task].priority).max()
    }

    /// Who waits for resources under the original ceiling, each with the place of its resource.
    fn original_waits(&self) -> impl Iterator<Item = (usize, &Waiting)> {
        let places = (0..self.resources.all.len()).filter(|&place| self.is_original(place));
        places.flat_map(|place| self.resources.all[place].waiting.iter().map(move |it| (place, it)))
    }

    /// Of those that wait, who gets a spin lock next, or should have been woken to ask for a free resource, and for which.
    fn next_of(&self, place: usize) -> Option<(usize, usize)> {
        let resource = &self.resources.all[place];
        if !self.is_original(place) {
            return resource.next_waiting().map(|waiting| (waiting.task, place));
        }
        // Whoever nothing keeps from its own resource, whatever that is.
        let cpu = resource.users.first().map(|&user| self.model.tasks[user].cpu);
        let mut waits = self.original_waits().map(|(place, it)| (it.task, place));
        waits.find(|&(task, _)| Some(self.model.tasks[task].cpu) == cpu && self.bar_of(task).is_none())
    }

    /// Whether `running` may stand higher than could be told: with its server, below which something is held, or since a server's
    /// task uses what it holds.
    pub(crate) fn is_lifted_by_a_server(&self, running: usize) -> bool {
        let server = self.model.tasks[running].server;
        self.resources.all.iter().any(|resource| {
            let Some(&Holder { task: holder, .. }) = resource.holders.first() else { return false };
            let is_its_servers = server.is_some() && self.model.tasks[holder].server == server;
            match resource.protocol {
                Protocol::Ceiling => {
                    is_its_servers
                        || holder == running && resource.users.iter().any(|&user| self.is_soft(user))
                }
                Protocol::Msrp | Protocol::Fslm | Protocol::PreemptableFifo | Protocol::NonPreemptive => {
                    holder == running
                }
                Protocol::TaskFair | Protocol::PhaseFair => self.resources.is_held_by(resource, running),
                Protocol::Mpcp | Protocol::FmlpPlus | Protocol::Omlp => holder == running,
                Protocol::Inheritance | Protocol::OriginalCeiling | Protocol::None => false,
                Protocol::Dpcp => false,
                // No job below a server holds one.
                Protocol::Mrsp => false,
            }
        })
    }

    /// Whether something is held that may keep this job back: by EDF, one that has not begun.
    pub(crate) fn may_be_gated(&self, (task, job): (usize, &Job)) -> bool {
        if !self.model.edf || job.started.is_some() {
            return false;
        }
        let own = self.model.tasks[task].deadline.unwrap_or(u64::MAX);
        let reaches = |&user: &usize| {
            user != task && (self.is_soft(user) || self.model.tasks[user].deadline.unwrap_or(u64::MAX) <= own)
        };
        let cpu = self.model.tasks[task].cpu;
        let is_beside = |other: usize| other != task && self.model.tasks[other].cpu == cpu;
        let spins = |place: usize| {
            let mut spinning = self.resources.spinning.iter().enumerate();
            spinning.any(|(other, it)| is_beside(other) && it.is_some_and(|it| it.place == place))
        };
        self.resources.all.iter().enumerate().any(|(place, resource)| {
            let is_held = resource.is_held_by_another(task);
            match resource.protocol {
                // Its ceiling is the shortest deadline of all who use it, the job's own task included.
                Protocol::Ceiling => {
                    is_held && (resource.users.contains(&task) || resource.users.iter().any(reaches))
                }
                Protocol::NonPreemptive => is_held,
                // Under EDF nothing is held by these.
                Protocol::Inheritance | Protocol::OriginalCeiling | Protocol::None => false,
                Protocol::Mpcp | Protocol::FmlpPlus | Protocol::Mrsp | Protocol::Dpcp => false,
                Protocol::PreemptableFifo | Protocol::Omlp => false,
                // What other processors hold keeps nothing back here; who waits for it does.
                Protocol::Msrp | Protocol::Fslm | Protocol::TaskFair | Protocol::PhaseFair => {
                    resource.holders.iter().any(|holder| is_beside(holder.task)) || spins(place)
                }
            }
        })
    }

    /// Since when what the oldest job of a task holds, or spins for, puts it above others; 0: nothing does.
    pub(crate) fn lifted_since(&self, task: usize) -> u64 {
        let holders = self.resources.all.iter().flat_map(|resource| &resource.holders);
        let held = holders.filter(|holder| holder.task == task).map(|holder| holder.since);
        let inherits = |resource: &&Resource| {
            resource.protocol == Protocol::Inheritance && self.resources.is_held_by(resource, task)
        };
        let inherited = self.resources.all.iter().filter(inherits).flat_map(|resource| &resource.waiting);
        let barred = self.original_waits().map(|(_, it)| it);
        let barred = barred.filter(|it| self.bar_of(it.task).map(|it| it.1) == Some(task));
        let held = held.chain(inherited.chain(barred).map(|waiting| waiting.since));
        let spins = self.resources.spinning[task].map(|spinning| spinning.since);
        held.chain(spins).max().unwrap_or(0)
    }

    /// Whether anything is held on a processor.
    pub(crate) fn holds_anything(&self, task: usize) -> bool {
        self.resources.all.iter().any(|resource| self.resources.is_held_by(resource, task))
    }
}
