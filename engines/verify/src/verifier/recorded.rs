//! A recorded trace as a world of the driver.

use crate::costs::Costs;
use crate::on_record::{self, Put};
use crate::verifier::sections::OF_RESOURCE;
use horolog_model::TaskId;
use horolog_sched::{ANY_SEGMENT, Choice, Note, OverrunAction, Tell, World};
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use std::convert::Infallible;

/// What the records say of the processor.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) is_exact: bool,
    /// No budget asks what is executed.
    pub(crate) is_flat: bool,
    /// The relative deadline of each task.
    pub(crate) deadlines: Vec<Option<u64>>,
    /// What the machine has noted, and upon whom it has acted, since that was looked at last.
    pub(crate) noted: Vec<Note>,
    pub(crate) overran: Vec<(TaskId, OverrunAction)>,
    /// In a simulated trace, what the platform costs.
    pub(crate) costs: Costs,
    /// Whose job has it, and since when.
    pub(crate) actual: Option<TaskId>,
    pub(crate) given_at: u64,
    /// How many interrupts and softirqs of a simulated trace are under way.
    pub(crate) depth: u32,
    /// Up to when execution is accounted for.
    pub(crate) last: u64,
}

/// A recorded trace as a world of the driver: at the instant of its records they are told, in between nothing but budgets and
/// timers.
pub(crate) struct Told<'a> {
    pub(crate) recorded: &'a mut Recorded,
    /// The records of the instant; empty in between.
    pub(crate) group: &'a [Record],
    /// To whom execution before this instant is charged.
    pub(crate) charged: Option<TaskId>,
    /// What a budget that ends at this instant by its record is known to have been used since it was told last.
    pub(crate) used: Option<u64>,
    /// Whether the system under trace asked who runs.
    pub(crate) asked: bool,
    /// A job that ended although it does not run.
    pub(crate) wrong: Option<TaskId>,
    /// In a measured tree, the budgets that the records tell of.
    pub(crate) puts: &'a [Put],
    pub(crate) is_exact: bool,
    /// What ends at this instant was told.
    pub(crate) has_ended: bool,
}

impl Recorded {
    /// Where nothing is compared, notes are of no use.
    pub(crate) fn forget_notes(&mut self) {
        self.noted.clear();
        self.overran.clear();
    }

    /// The absolute deadline of a job of `task` that arrived at this instant.
    #[inline]
    pub(crate) fn deadline_of(&self, task: TaskId, arrival: u64) -> Instant {
        let relative = self.deadlines.get(task.index()).copied().flatten();
        let deadline = relative.and_then(|relative| arrival.checked_add(relative));
        deadline.map_or(Instant::NEVER, Instant::from_ns)
    }
}

impl World for Told<'_> {
    type Error = Infallible;

    fn next(&self) -> u64 {
        self.recorded.costs.next()
    }

    fn ready_at(&self) -> u64 {
        if self.asked { self.recorded.costs.until() } else { u64::MAX }
    }

    fn ends(&self, _: u64) -> bool {
        true
    }

    /// Where budgets end by their records alone, an end only with one.
    fn executed(&mut self, now: u64, allowance: u64) -> u64 {
        let recorded = &mut *self.recorded;
        let passed = recorded.costs.executed(recorded.last, now);
        recorded.last = recorded.last.max(now);
        let goes = recorded.actual.is_some() && recorded.actual == self.charged;
        let amount = if goes { passed } else { 0 };
        match self.used.take() {
            // Without a limit there is nothing to use up.
            Some(used) if allowance == u64::MAX => used,
            Some(used) => used.max(allowance),
            None if !recorded.is_exact && allowance != u64::MAX => amount.min(allowance.saturating_sub(1)),
            None => amount,
        }
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        if self.has_ended {
            return Ok(());
        }
        for record in self.group {
            let task = TaskId(record.task);
            match record.kind {
                // Whether it has to wait the machine says, once the choice is made.
                _ if waits_for_resource(record) => {}
                Kind::Unlock | Kind::Wake if ends_section(tell, record) => unlock(tell, task, record.value),
                // Whoever is handed a resource of several processors holds it before the choice of this instant.
                Kind::Lock => handed(tell, task, record.value),
                Kind::Completion | Kind::Suspend if self.is_exact && tell.running() != Some(task) => {
                    self.wrong = self.wrong.or(Some(task));
                }
                Kind::Completion | Kind::Suspend => leave(tell, task, record.kind),
                Kind::Start | Kind::Resume if !self.is_exact => tell.choice_is_due(),
                Kind::PreemptionPoint if self.recorded.is_exact => {
                    _ = tell.preemption_point(task, record.value as u32);
                }
                Kind::PreemptionPoint | Kind::Yield if !self.recorded.is_exact => {
                    _ = tell.preemption_point(task, ANY_SEGMENT);
                }
                _ => {}
            }
        }
        on_record::tell(self.puts, self.group, tell);
        self.recorded.costs.serve(tell.now());
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        for record in self.group {
            let task = TaskId(record.task);
            match record.kind {
                Kind::Release => {
                    let deadline = self.recorded.deadline_of(task, record.value);
                    // What was executed until now was told with the instant.
                    let _ = tell.release(task, deadline, |_| 0);
                    self.recorded.costs.release(tell.now());
                }
                // Whoever takes no job for once is told of it, to take the next one.
                Kind::Skip if self.is_exact && !tell.machine().is_active(task) => {
                    let _ = tell.release(task, self.recorded.deadline_of(task, record.value), |_| 0);
                }
                // Who waited for a resource is awake by the unlock.
                Kind::Wake if record.extra != OF_RESOURCE => _ = tell.wake(task),
                _ => {}
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        self.recorded.last = self.recorded.last.max(now);
        self.recorded.costs.give(choice.task, now);
        self.charged = choice.task;
    }

    fn note(&mut self, _: u64, note: Note) {
        if self.recorded.is_exact {
            self.recorded.noted.push(note);
        }
    }

    fn overran(&mut self, _: u64, task: TaskId, action: OverrunAction) {
        self.recorded.overran.push((task, action));
    }

    fn goes_on(&mut self, _: u64) -> bool {
        true
    }
}

impl<'a> Told<'a> {
    /// No record tells of anything; where what was executed is known to the nanosecond, every choice is made.
    pub(crate) fn between(recorded: &'a mut Recorded, charged: Option<TaskId>) -> Told<'a> {
        let (asked, is_exact) = (recorded.is_exact, recorded.is_exact);
        Told {
            recorded,
            group: &[],
            charged,
            used: None,
            asked,
            wrong: None,
            puts: &[],
            is_exact,
            has_ended: false,
        }
    }
}

/// The job of `task` is done, or suspends itself. It cannot have come so far without the processor.
pub(crate) fn leave(tell: &mut Tell<'_>, task: TaskId, kind: Kind) {
    let mut told = || if kind == Kind::Completion { tell.completion(task) } else { tell.block(task) };
    if told().is_err() {
        tell.took(Some(task));
        let _ = if kind == Kind::Completion { tell.completion(task) } else { tell.block(task) };
    }
}

/// The job of `task` has a resource no more.
pub(crate) fn unlock(tell: &mut Tell<'_>, task: TaskId, resource: u64) {
    let known =
        u32::try_from(resource).ok().filter(|&resource| tell.machine().resource_count() > resource as usize);
    if let Some(resource) = known {
        let _ = tell.unlock(task, resource);
    }
}

/// Whether a record says that the job's processor has it without a resource from now on: its unlock, and of a section that executes elsewhere its
/// coming home.
pub(crate) fn ends_section(tell: &Tell<'_>, record: &Record) -> bool {
    let resource = u32::try_from(record.value).unwrap_or(u32::MAX);
    match tell.machine().executes_elsewhere(resource) {
        true => record.kind == Kind::Wake && record.extra == OF_RESOURCE,
        false => record.kind == Kind::Unlock,
    }
}

/// The job of `task` holds a resource that it was suspended for and is handed, where that is so.
fn handed(tell: &mut Tell<'_>, task: TaskId, resource: u64) {
    let waits_for = tell.machine().waits_for(task).filter(|&waits_for| u64::from(waits_for) == resource);
    if let Some(resource) = waits_for.filter(|&it| tell.machine().is_handed_to_the_suspended(it)) {
        let _ = tell.lock(task, resource);
    }
}

/// A job comes to a section of a resource that another one holds.
pub(crate) fn waits_for_resource(record: &Record) -> bool {
    record.kind == Kind::Suspend && record.extra == OF_RESOURCE
}

/// A job locks, or begins to wait for a lock.
pub(crate) fn locks(record: &Record) -> bool {
    matches!(record.kind, Kind::Lock | Kind::Spin) || waits_for_resource(record)
}

/// Records that say something about who has a processor, or about a budget.
/// An interrupt concerns only whoever counts every nanosecond.
pub(crate) fn concerns(kind: Kind, is_exact: bool) -> bool {
    let is_interrupt =
        matches!(kind, Kind::InterruptEntry | Kind::InterruptExit | Kind::SoftirqEntry | Kind::SoftirqExit);
    gives(kind)
        || takes(kind)
        || (is_exact && (is_interrupt || kind == Kind::Skip))
        || matches!(
            kind,
            Kind::Release
                | Kind::Wake
                | Kind::BudgetExhausted
                | Kind::BudgetReplenished
                | Kind::SlackChange
                | Kind::Promotion
                | Kind::ModeChange
                | Kind::Lock
                | Kind::Spin
                | Kind::Unlock
        )
}

/// A job gets the processor.
pub(crate) fn gives(kind: Kind) -> bool {
    matches!(kind, Kind::Start | Kind::Resume)
}

/// A job loses the processor, or may.
pub(crate) fn takes(kind: Kind) -> bool {
    matches!(kind, Kind::Preempt | Kind::Yield | Kind::Completion | Kind::Suspend | Kind::PreemptionPoint)
}
