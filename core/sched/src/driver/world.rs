//! What a driver asks of the world that it drives: virtual time, real threads, or a recorded trace.

use crate::{Grant, Machine, ModeRequest, Note, OverrunAction, ProcessorIndex, Tell};
use horolog_model::TaskId;

/// What a processor should do from now on.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The task whose oldest job should run; `None`: idle.
    pub task: Option<TaskId>,
    pub(crate) machine: &'a Machine,
    pub(crate) processor: ProcessorIndex,
}

impl Choice<'_> {
    /// Whether somebody more important waits for the running job's next preemption point.
    #[must_use]
    pub fn should_yield(&self) -> bool {
        self.machine.flag(self.processor).0
    }

    /// Counts the changes of [`Choice::should_yield`], so that a stale flag is told from a fresh one.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.machine.flag(self.processor).1
    }
}

/// One processor that a driver drives; times are nanoseconds of the world's clock.
pub trait World {
    /// Why a run may end early.
    type Error;

    /// Whether it takes notes one by one; where not, they are only counted ([`World::noted`]).
    const NOTES: bool = true;

    /// When something happens next by the world's own doing; `u64::MAX`: never.
    fn next(&self) -> u64;

    /// From when on the processor can be given to another job; a choice that is due waits until then.
    fn ready_at(&self) -> u64;

    /// Whether the running job gets to its end or to a preemption point at `now`, or is held up: what it has executed is told
    /// before.
    fn ends(&self, now: u64) -> bool;

    /// What the job that has the processor has executed since this was asked last or it got the processor. `allowance` is what
    /// it might execute since then until its budget is used up, `u64::MAX` without a limit.
    fn executed(&mut self, now: u64, allowance: u64) -> u64;

    /// Tells what ends at `now`.
    ///
    /// # Errors
    /// Where the run cannot go on.
    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Self::Error>;

    /// Tells what arrives at `now`, after the timers of this instant.
    ///
    /// # Errors
    /// Where the run cannot go on.
    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Self::Error>;

    /// The mode has changed: what ended at `now` has been told, what arrives has not.
    fn mode_changed(&mut self, now: u64, change: ModeChange<'_>) {
        let _ = (now, change);
    }

    /// The running job of a task has used up its budget, and the machine has acted as the task's policy says: with
    /// [`OverrunAction::Drop`] the job is gone, with [`OverrunAction::Stop`] those that waited behind it, too.
    fn overran(&mut self, now: u64, task: TaskId, action: OverrunAction) {
        let _ = (now, task, action);
    }

    /// A job of this processor that spins for a lock has been granted it, before what arrives at `now`.
    fn granted(&mut self, now: u64, grant: Grant) {
        let _ = (now, grant);
    }

    /// A section of one of this processor's jobs has ended, which went on elsewhere ([`Worlds::take_end`]).
    ///
    /// # Errors
    /// Where the run cannot go on.
    fn ended_elsewhere(&mut self, tell: &mut Tell<'_>, task: TaskId) -> Result<(), Self::Error> {
        let _ = (tell, task);
        Ok(())
    }

    /// Carries the choice out: the processor is given to the chosen job.
    fn carry_out(&mut self, now: u64, choice: Choice<'_>);

    /// Takes a note, before the choice of its instant.
    fn note(&mut self, now: u64, note: Note);

    /// So many notes were not taken one by one.
    fn noted(&mut self, count: u64) {
        let _ = count;
    }

    /// A timer was called; whether another one that is due may be called at this instant.
    fn called_timer(&mut self) -> bool {
        true
    }

    /// Everything of an instant was told; whether the run goes on.
    fn goes_on(&mut self, now: u64) -> bool;
}

/// A change of the mode.
#[derive(Clone, Copy, Debug)]
pub struct ModeChange<'a> {
    /// The mode before.
    pub before: u32,
    /// The mode from now on.
    pub mode: u32,
    /// When it was asked for, and whether an overrun did; `None` where somebody else keeps the requests.
    pub request: Option<ModeRequest>,
    /// How many jobs on the driver's processors are left over from the mode before.
    pub left_over: u32,
    /// Whether this is the first processor that is told of it.
    pub is_first: bool,
    /// The machine after the change, to look at: a task of which it has no jobs has none left.
    pub machine: &'a Machine,
}

/// The processors of a driver that has several, each a world of its own.
pub trait Worlds {
    /// Why a run may end early.
    type Error;

    /// The next of the locks that jobs have let go of in this round and others have got by that.
    fn take_grant(&mut self) -> Option<Grant> {
        None
    }

    /// The next of the jobs whose section has ended in this round on another processor than their own (decision 0024).
    fn take_end(&mut self) -> Option<TaskId> {
        None
    }

    /// All choices of a round were carried out: sections whose jobs are not chosen go on in the place of jobs that spin. Only where the machine's
    /// resources have such a protocol.
    fn place_sections(&mut self, now: u64) {
        let _ = now;
    }

    /// One of them.
    type One<'a>: World<Error = Self::Error>
    where
        Self: 'a;

    /// A processor, by its place among those that the driver was made with.
    fn one(&mut self, place: usize) -> Self::One<'_>;
}

/// How far a run came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The last instant that was looked at.
    pub last: u64,
    /// When something happens next; `u64::MAX`: never.
    pub next: u64,
    /// Whether the world ended it.
    pub is_ended: bool,
}
