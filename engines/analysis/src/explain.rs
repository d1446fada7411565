//! Where a response time goes, in terms that add up to the bound exactly.

use crate::arrival_curve::ArrivalCurve;
use crate::beyond;
use crate::cpu_model::{CpuModel, CpuTask, Held};
use crate::error::AnalysisError;
use crate::fixed_priority::sections::Sections;
use crate::fixed_priority::{level_of, name_of_exact, priority_of};
use crate::hyperbolic_load::HyperbolicLoad;
use crate::mixed_criticality;
use crate::options::Options;
use crate::server::{CpuServer, Seen};
use crate::suspended_waits;
use crate::tree;
use crate::waiting::Waiting;
use crate::{assignment::resolve_priorities, fixed_priority::level::Worst};
use horolog_model::{Policy, System, TaskId};
use horolog_time::Span;
use serde::Serialize;
use std::fmt;

/// What a part of a response time is spent on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TermKind {
    /// The job itself.
    OwnWork,
    /// Earlier jobs of the same task in the busy period.
    EarlierJobs,
    /// The longest non-preemptive segment of a less important task.
    Blocking,
    /// The longest section of a less important task on a resource that this one, or a more important one, uses.
    BlockingSection,
    /// Waits for spin locks that jobs of other processors hold.
    Spinning,
    /// Requests for spin locks that come to nothing, since a job of a more important task preempts the one that waits: it asks anew.
    AskedAnew,
    /// What asking for locks across processors, getting them and letting go of them costs.
    Locking,
    /// Sections of another task on a resource that the job waits for, suspended.
    LockWait,
    /// Until a resource that another processor has handed over is noticed.
    HandOver,
    /// A section of a less important task that has begun on the processor of a resource, and that one of this task cannot preempt there.
    BlockingElsewhere,
    /// Sections of jobs of another task, as important or more, on the processor of a resource.
    SectionsElsewhere,
    /// Context switches, interrupts, measured loads and what locking costs on the processor of a resource.
    CostsElsewhere,
    /// Sections of a less important task whose priority is boosted while it holds a resource.
    BlockingBoosted,
    /// A section of a less important task on a spin lock; of one that spins above this task with the wait for it.
    BlockingSpinLock,
    /// A task with a later deadline that has just begun and cannot be preempted (EDF).
    BlockingDueLater,
    /// A section of a task that is due later on a resource that keeps jobs waiting (EDF).
    BlockingSectionDueLater,
    /// A section of a task that is due later on a spin lock, with the wait for it (EDF).
    BlockingSpinLockDueLater,
    /// A job that is due later and has begun above the holder of such a resource, where jitter allows that (EDF).
    BegunAboveSection,
    /// Jobs of a more important task.
    Interference,
    /// Jobs of another task that are due no later (EDF).
    DueNoLater,
    /// Jobs of equal priority that are ahead.
    EqualPriority,
    /// Executions of a server that is more important or due no later.
    Server,
    /// Until dual priority promotes the job, or slack stealing has no slack left: soft work may take it all.
    UntilPromotion,
    /// Jobs of other tasks that are ahead in the queue of a server.
    QueuedAhead,
    /// Until the server has capacity again.
    ServerWait,
    /// Periods of the server, each for one capacity of work.
    ServerPeriods,
    /// The rest of the work, within one capacity.
    LastPiece,
    /// While the schedulers above the task have no budget, or execute others.
    Supply,
    /// Until a device has answered what the task asked.
    Answer,
    /// Context switches.
    ContextSwitches,
    /// While all processors of a cluster execute other tasks.
    AllProcessorsBusy,
    /// Interrupts and events of a device or driver.
    Device,
    /// Timer interrupts.
    TimerInterrupts,
    /// Loads from outside the model.
    Outside,
    /// Release jitter of the task itself.
    Jitter,
    /// Release latency and tick of the platform.
    ReleaseDelay,
    /// The part of the busy period that is over when the job becomes ready: it does not count.
    BeforeReady,
    /// The part of the busy period that is over when the job arrives: it does not count (EDF).
    BeforeArrival,
}

/// One part of a response time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Term {
    /// What it is spent on.
    pub kind: TermKind,
    /// Whose, where it is some task's or load's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The resource of a section that blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// How many jobs, switches or interrupts, where it consists of such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How long. [`TermKind::BeforeReady`] and [`TermKind::BeforeArrival`] are taken off, all else is added.
    #[serde(rename = "time_ns")]
    pub time: Span,
}

/// Where a task's worst response time goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Explanation {
    /// The task's name.
    pub task: String,
    /// The test that gave the bound.
    pub test: &'static str,
    /// The bound; `None` where there is none, for the reason given.
    #[serde(rename = "response_ns")]
    pub response: Option<Span>,
    /// Which job of the busy period is the worst, from 0.
    pub worst_job: u64,
    /// The length of the busy period.
    #[serde(rename = "busy_period_ns")]
    pub busy_period: Option<Span>,
    /// The parts; those that are zero are left out.
    pub terms: Vec<Term>,
    /// Why there is no bound, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where the worst response time of a task goes: the terms of [`crate::analyze`]'s bound.
///
/// # Errors
/// As for [`crate::analyze`].
pub fn explain(system: &System, id: TaskId, options: &Options) -> Result<Explanation, AnalysisError> {
    if mixed_criticality::concerns(system) {
        return mixed_criticality::explain(system, id, options);
    }
    if beyond::why(system).is_none() && system.has_tree(system.task(id).cpu) {
        return tree::explain(system, id, options);
    }
    if let Some(why) = beyond::why(system).or_else(|| beyond::why_on(system, system.task(id).cpu)) {
        let explanation = Explanation::unresolved(&system.task(id).name, beyond::NO_TEST);
        return Ok(Explanation { reason: Some(why), ..explanation });
    }
    if let Some(place) = system.cluster_of(id) {
        return Ok(crate::global::verdict::explain(&resolve_priorities(system)?, place, id, options));
    }
    crate::waiting::refuse_unbounded(system)?;
    let system = resolve_priorities(system)?;
    if suspended_waits::concern(&system, system.task(id).cpu) {
        let explained = suspended_waits::Waits::new(&system, options)?.explain(id);
        return explained.ok_or_else(|| too_long("the task's number"));
    }
    if system.is_served(id) {
        let cpu = CpuModel::new(&system, system.task(id).cpu)?;
        let explained = crate::server::explain::explain(&system, &cpu, id, options);
        return explained.ok_or_else(|| too_long("the task's number"));
    }
    let mut cpu = CpuModel::new(&system, system.task(id).cpu)?;
    crate::waiting::settle(&system, &mut cpu, options)?;
    let index = cpu.tasks.iter().position(|t| t.id == id);
    let index = index.ok_or_else(|| AnalysisError::overflow("task", "the task's number"))?;
    if system.policy() == Policy::Edf {
        return crate::edf::explain_edf(&system, &cpu, index, options);
    }
    let level = level_of(&cpu, index)?;
    let (task, mut effort) = (&cpu.tasks[index], options.effort);
    let test = name_of_exact(&cpu, index);
    let mut explanation = Explanation::unresolved(&task.name, test);
    match level.solve(&mut effort) {
        Err(stop) => explanation.reason = Some(stop.words().to_owned()),
        Ok(found) => {
            explanation.response = Some(Span::from_ns(found.worst.response));
            explanation.worst_job = found.worst.own_jobs.saturating_sub(1);
            explanation.busy_period = Some(Span::from_ns(found.busy_period));
            explanation.terms = terms(&system, &cpu, index, &found.worst)?;
            until_promotion(&cpu, index, &mut explanation);
        }
    }
    Ok(explanation)
}

/// Beside dual priority or slack stealing the bound is the deadline, where there is one.
fn until_promotion(cpu: &CpuModel, index: usize, explanation: &mut Explanation) {
    let Some(server) = cpu.servers.iter().find(|server| server.kind.is_slack_policy()) else { return };
    let dual = matches!(server.kind, horolog_model::ServerKind::DualPriority { .. });
    explanation.test = if dual { "fp-dual-priority" } else { "fp-slack-stealing" };
    let deadline = cpu.tasks[index].deadline.map(Span::from_ns);
    match (explanation.response, deadline) {
        (Some(response), Some(deadline)) if response <= deadline && !cpu.has_costs => {
            let (who, time) = (Some(server.name.clone()), deadline.saturating_sub(response));
            explanation.response = Some(deadline);
            if !time.is_zero() {
                explanation.terms.insert(
                    0,
                    Term { kind: TermKind::UntilPromotion, who, resource: None, count: None, time },
                );
            }
        }
        (response, _) => {
            (explanation.response, explanation.terms) = (None, Vec::new());
            let alone = response.map_or_else(|| "no bound".to_owned(), |response| response.to_string());
            explanation.reason = Some(format!("{alone} under plain fixed priorities; see the analysis"));
        }
    }
}

/// Collects terms; counts are those of the equations that gave the bound.
pub(crate) struct Terms<'a> {
    system: &'a System,
    cpu: &'a CpuModel,
    switches: u128,
    /// Switching of servers, ns.
    pub(crate) server_switching: u128,
    pub(crate) list: Vec<Term>,
}

impl<'a> Terms<'a> {
    /// None yet; the switch that has begun when the window opens counts already.
    pub(crate) fn new(system: &'a System, cpu: &'a CpuModel) -> Terms<'a> {
        Terms { system, cpu, switches: 1, server_switching: 0, list: Vec::new() }
    }

    pub(crate) fn add(&mut self, kind: TermKind, who: Option<&str>, count: Option<u64>, ns: u64) {
        if ns > 0 {
            let (who, time) = (who.map(str::to_owned), Span::from_ns(ns));
            self.list.push(Term { kind, who, resource: None, count, time });
        }
    }

    /// A section of the task at `index` that blocks.
    pub(crate) fn section(&mut self, kind: TermKind, index: usize, held: &Held, ns: u64) {
        if ns > 0 {
            let who = Some(self.cpu.tasks[index].name.clone());
            let resource = self.system.resources().get(held.resource).map(|resource| resource.name.clone());
            self.list.push(Term { kind, who, resource, count: None, time: Span::from_ns(ns) });
        }
    }

    /// Jobs of the task at `index`: their own work, and their switches for later.
    pub(crate) fn jobs(&mut self, kind: TermKind, index: usize, count: u128) -> Result<(), AnalysisError> {
        self.work_of(kind, &self.cpu.tasks[index], count)
    }

    fn work_of(&mut self, kind: TermKind, task: &CpuTask, count: u128) -> Result<(), AnalysisError> {
        let count = narrow(count)?;
        let work = count.checked_mul(task.bare_wcet).ok_or_else(|| too_long("interference"))?;
        self.switches += 2 * u128::from(count) * u128::from(task.turns());
        let who = (kind != TermKind::OwnWork).then_some(task.name.as_str());
        self.add(kind, who, Some(count), work);
        let spin = count.checked_mul(task.spin).ok_or_else(|| too_long("waits for spin locks"))?;
        self.add(TermKind::Spinning, Some(&task.name), Some(count), spin);
        let locking = count.checked_mul(task.locking).ok_or_else(|| too_long("what locking costs"))?;
        self.add(TermKind::Locking, Some(&task.name), Some(count), locking);
        Ok(())
    }

    /// The context switches: two for every job so far, and the one that has begun.
    pub(crate) fn switches(&mut self) -> Result<(), AnalysisError> {
        let switch = u128::from(self.cpu.context_switch);
        let time = narrow(self.switches * switch + self.server_switching)?;
        let switches = self.switches + self.server_switching.checked_div(switch).unwrap_or(0);
        self.add(TermKind::ContextSwitches, None, Some(narrow(switches)?), time);
        Ok(())
    }

    /// Executions of a server, each of its whole capacity: their work, and their switches for later.
    pub(crate) fn server(&mut self, server: &CpuServer, count: u128) -> Result<(), AnalysisError> {
        let Some(load) = &server.load else { return Ok(()) };
        let time = count * u128::from(load.wcet - server.overhead);
        self.server_switching += count * u128::from(server.overhead);
        self.add(TermKind::Server, Some(&server.name), Some(narrow(count)?), narrow(time)?);
        Ok(())
    }

    /// The measured loads of this processor, and what the kernel serves.
    pub(crate) fn outside(&mut self, system: &System, ns: u64) {
        let names = self.cpu.names_of_interferences(system);
        self.add(TermKind::Outside, Some(&names), None, ns);
    }
}

fn terms(system: &System, cpu: &CpuModel, index: usize, worst: &Worst) -> Result<Vec<Term>, AnalysisError> {
    let (task, own) = (&cpu.tasks[index], priority_of(&cpu.tasks[index])?);
    let switch = cpu.context_switch;
    let closed = !task.shape.preemptive && crate::fixed_priority::blocking(cpu, index)? == 0;
    let mut terms = Terms::new(system, cpu);
    // A segment may block at each turn, a section once.
    let turns = task.suspensions() + 1;
    terms.switches += u128::from(turns - 1 + 2 * task.turns());
    let answers = task.waiting.as_ref().and_then(Waiting::total).unwrap_or(0);
    let work = worst.ending.before + worst.ending.last
        - 2 * task.turns() * switch
        - answers
        - task.spin
        - task.locking;
    terms.add(TermKind::OwnWork, None, Some(1), work);
    terms.add(TermKind::Spinning, Some(&task.name), Some(1), task.spin);
    terms.add(TermKind::Locking, Some(&task.name), Some(1), task.locking);
    terms.jobs(TermKind::EarlierJobs, index, u128::from(worst.own_jobs - 1))?;
    for (request, answer) in task.waiting.iter().flat_map(|waiting| &waiting.answers) {
        let time = u128::from(worst.own_jobs) * u128::from(answer.unwrap_or(0));
        terms.add(TermKind::Answer, Some(request), Some(worst.own_jobs), narrow(time)?);
    }
    let (mut blocker, mut longest): (Option<&str>, u64) = (None, 0);
    let asks_anew = cpu.asks_anew();
    for (other_index, other) in cpu.tasks.iter().enumerate().filter(|(i, _)| *i != index) {
        let priority = priority_of(other)?;
        let (is_above, is_below) =
            (priority.is_more_important_than(own), own.is_more_important_than(priority));
        if is_above || !is_below && (task.may_wait() || other.may_wait()) {
            let (x, arrival) = (u128::from(worst.start), other.seen().0);
            let count = if closed { arrival.closed(x) } else { arrival.half_open(x) };
            let kind = if is_above { TermKind::Interference } else { TermKind::EqualPriority };
            terms.jobs(kind, other_index, count)?;
            let anew = if asks_anew { count * u128::from(cpu.asked_anew(own, priority)) } else { 0 };
            terms.add(TermKind::AskedAnew, Some(&other.name), Some(narrow(count)?), narrow(anew)?);
        } else if is_below {
            if other.shape.longest_segment > longest {
                (blocker, longest) = (Some(other.name.as_str()), other.shape.longest_segment);
            }
        } else {
            let count = other.arrival.closed(u128::from(worst.ready));
            terms.jobs(TermKind::EqualPriority, other_index, count)?;
        }
    }
    for thread in &cpu.drivers.threads {
        let x = u128::from(worst.start);
        if let Some(load) = thread.seen_from(Some(own)) {
            let count = if closed { load.arrival.closed(x) } else { load.arrival.half_open(x) };
            terms.switches += if thread.switching > 0 { 2 * count } else { 0 };
            let work = narrow(count * u128::from(load.wcet - thread.switching))?;
            terms.add(TermKind::Device, Some(&thread.name), Some(narrow(count)?), work);
        }
    }
    for server in &cpu.servers {
        let x = u128::from(worst.start);
        let count = |arrival: &ArrivalCurve| if closed { arrival.closed(x) } else { arrival.half_open(x) };
        match server.seen_from(Some(own)) {
            Seen::Load(load) => terms.server(server, count(&load.arrival))?,
            Seen::Tasks(tasks, moves) => {
                for task in tasks {
                    let count = count(&task.arrival);
                    terms.work_of(TermKind::Interference, task, count)?;
                }
                let each = moves.iter().map(|load| count(&load.arrival) * u128::from(load.wcet));
                terms.server_switching += each.sum::<u128>();
            }
            Seen::Nothing | Seen::Unbounded => {}
        }
    }
    let times = (turns > 1).then_some(turns);
    terms.add(TermKind::Blocking, blocker, times, turns * longest);
    for (blocking, time) in Sections::of(cpu)?.blocked(index)?.by {
        let is_local = blocking.section.spin.is_none();
        let kind = if is_local { TermKind::BlockingSection } else { TermKind::BlockingSpinLock };
        terms.section(kind, blocking.task, &blocking.section, time);
    }
    terms.switches()?;
    let finish = u128::from(worst.finish);
    let loads = crate::fixed_priority::interrupts_above(cpu, own);
    let drivers = cpu.first_driver..cpu.first_driver + cpu.drivers.above_all.len();
    for (load, (name, _)) in loads[drivers.clone()].iter().zip(&cpu.drivers.above_all) {
        let count = load.arrival.half_open(finish);
        let time = narrow(count * u128::from(load.wcet))?;
        terms.add(TermKind::Device, Some(name), Some(narrow(count)?), time);
    }
    let timers = loads.iter().enumerate().filter(|(index, _)| !drivers.contains(index)).map(|(_, load)| load);
    let interrupts = timers.map(|i| (i.arrival.half_open(finish), u128::from(i.wcet)));
    let (count, time) = interrupts.fold((0, 0), |(n, t), (count, wcet)| (n + count, t + count * wcet));
    terms.add(TermKind::TimerInterrupts, None, Some(narrow(count)?), narrow(time)?);
    let outside =
        HyperbolicLoad::demand(&cpu.interferences, finish).ok_or_else(|| too_long("interference"))?;
    terms.outside(system, narrow(outside)?);
    let jitter = system.task(task.id).jitter.as_ns();
    terms.add(TermKind::Jitter, None, None, jitter);
    terms.add(TermKind::ReleaseDelay, None, None, task.arrival.jitter() - jitter);
    terms.add(TermKind::BeforeReady, None, None, worst.ready);
    Ok(terms.list)
}

fn too_long(what: &'static str) -> AnalysisError {
    AnalysisError::overflow("task", what)
}

pub(crate) fn narrow(value: u128) -> Result<u64, AnalysisError> {
    u64::try_from(value).map_err(|_| too_long("response time"))
}

impl Explanation {
    /// Of a task without a bound, so far.
    pub(crate) fn unresolved(task: &str, test: &'static str) -> Explanation {
        Explanation {
            task: task.to_owned(),
            test,
            response: None,
            worst_job: 0,
            busy_period: None,
            terms: Vec::new(),
            reason: None,
        }
    }
}

impl Term {
    /// Whether the term is added to the bound, not taken off.
    #[must_use]
    pub fn adds(&self) -> bool {
        !matches!(self.kind, TermKind::BeforeReady | TermKind::BeforeArrival)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who.as_deref().unwrap_or("no task");
        let resource = self.resource.as_deref().unwrap_or("a resource");
        let count = self.count.unwrap_or(1);
        let plural = if count == 1 { "" } else { "s" };
        match self.kind {
            TermKind::OwnWork => write!(f, "its own work"),
            TermKind::EarlierJobs => write!(f, "{count} earlier job{plural} of its own, not through yet"),
            TermKind::Blocking => {
                write!(f, "blocked by `{who}`, less important, that has just begun its longest segment")?;
                if count > 1 { write!(f, ", {count} times: after each wait again") } else { Ok(()) }
            }
            TermKind::BlockingSection => {
                write!(f, "blocked by `{who}`, less important, that has just locked `{resource}`")?;
                if count > 1 { write!(f, ", {count} times: after each wait again") } else { Ok(()) }
            }
            TermKind::LockWait => {
                write!(f, "waits for `{resource}` while `{who}` has it")?;
                if count > 1 { write!(f, ", {count} times") } else { Ok(()) }
            }
            TermKind::HandOver => {
                write!(
                    f,
                    "until {count} hand-over{plural} of another processor {} noticed",
                    if count == 1 { "is" } else { "are" }
                )
            }
            TermKind::BlockingElsewhere => {
                write!(
                    f,
                    "{count} section{plural} of `{who}`, less important, begun on the CPU of `{resource}`"
                )
            }
            TermKind::SectionsElsewhere => {
                write!(f, "sections of {count} job{plural} of `{who}` on the CPU of `{resource}`")
            }
            TermKind::CostsElsewhere => {
                write!(
                    f,
                    "switches, interrupts and loads on the CPU of `{resource}`, for {count} section{plural}"
                )
            }
            TermKind::BlockingBoosted => {
                write!(f, "{count} section{plural} of `{who}`, less important, at boosted priority")
            }
            TermKind::Spinning => {
                write!(f, "{count} job{plural} of `{who}` spinning, for locks that other processors hold")
            }
            TermKind::AskedAnew => {
                write!(
                    f,
                    "spinning in vain, since {count} job{plural} of `{who}` may preempt one that waits and asks anew"
                )
            }
            TermKind::Locking => {
                write!(f, "{count} job{plural} of `{who}` asking for locks, getting them and letting go")
            }
            TermKind::BlockingSpinLock => {
                write!(
                    f,
                    "blocked by `{who}`, less important, that waits for the spin lock `{resource}` or holds it"
                )
            }
            TermKind::BlockingDueLater => {
                write!(f, "blocked by `{who}`, due later, that has just begun and cannot be preempted")
            }
            TermKind::BlockingSectionDueLater => {
                write!(f, "blocked by `{who}`, due later, that has just locked `{resource}`")
            }
            TermKind::BlockingSpinLockDueLater => {
                write!(
                    f,
                    "blocked by `{who}`, due later, that waits for the spin lock `{resource}` or holds it"
                )
            }
            TermKind::BegunAboveSection => {
                write!(
                    f,
                    "{count} job{plural} of `{who}`, due later, that may have begun while that was held"
                )
            }
            TermKind::DueNoLater => write!(f, "{count} job{plural} of `{who}`, due no later"),
            TermKind::Interference => write!(f, "{count} job{plural} of `{who}`, more important"),
            TermKind::EqualPriority => write!(f, "{count} job{plural} of `{who}`, as important and ahead"),
            TermKind::Server => {
                write!(f, "{count} execution{plural} of the server `{who}`")
            }
            TermKind::UntilPromotion => write!(f, "soft work that `{who}` may let go first"),
            TermKind::QueuedAhead => write!(f, "{count} job{plural} of `{who}`, ahead in the queue"),
            TermKind::ServerWait => write!(f, "until the server `{who}` has capacity"),
            TermKind::ServerPeriods => {
                write!(f, "{count} period{plural} of the server `{who}`, a capacity of work each")
            }
            TermKind::LastPiece => write!(f, "the rest of the work, within one capacity"),
            TermKind::Supply => write!(f, "while schedulers above have no budget, or execute others"),
            TermKind::Answer if count == 1 => write!(f, "until `{who}` is answered"),
            TermKind::Answer => write!(f, "until `{who}` is answered, {count} times"),
            TermKind::ContextSwitches if self.count.is_none() => write!(f, "context switches"),
            TermKind::ContextSwitches => {
                write!(f, "{count} context switch{}", if count == 1 { "" } else { "es" })
            }
            TermKind::Device => write!(f, "{count} time{plural} `{who}`, a driver"),
            TermKind::AllProcessorsBusy => write!(f, "while all {count} processors execute others: {who}"),
            TermKind::TimerInterrupts => write!(f, "{count} timer interrupt{plural}"),
            TermKind::Outside => write!(f, "interference from outside: {who}"),
            TermKind::Jitter => write!(f, "its release jitter"),
            TermKind::ReleaseDelay => write!(f, "until the platform notices the release"),
            TermKind::BeforeReady => write!(f, "over before it became ready"),
            TermKind::BeforeArrival => write!(f, "over before it arrived"),
        }
    }
}

impl fmt::Display for Explanation {
    /// One line a term, with its sign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(response) = self.response else {
            let reason = self.reason.as_deref().unwrap_or("unknown");
            if self.test == beyond::NO_TEST {
                return write!(f, "`{}` has no bound: {reason}", self.task);
            }
            return write!(f, "`{}` has no bound by {}: {reason}", self.task, self.test);
        };
        writeln!(f, "`{}` responds within {response} ({}):", self.task, self.test)?;
        for term in &self.terms {
            let sign = if term.adds() { '+' } else { '-' };
            writeln!(f, "  {sign} {:>12}  {term}", term.time.to_string())?;
        }
        write!(f, "  = {:>12}", response.to_string())?;
        match self.busy_period {
            Some(busy) if self.worst_job > 0 => {
                write!(f, "  for job {} of a busy period of {busy}", self.worst_job)
            }
            Some(busy) => write!(f, "  in a busy period of {busy}"),
            None => Ok(()),
        }
    }
}
