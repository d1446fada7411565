//! What an explanation says: the terms of a response time, and their words.

use crate::result::NO_TEST;
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
    /// Requests of another task of the same processor, each from when it has a place in a queue until it lets go: the job waits for its turn, suspended.
    TurnWait,
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
            TermKind::TurnWait => {
                let other = if count == 1 { "a request".to_owned() } else { format!("{count} requests") };
                write!(f, "waits for {other} of `{who}`, which goes first on this CPU")
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
            if self.test == NO_TEST {
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
