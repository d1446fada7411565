//! How a world tells what happens on one processor at one instant.

use crate::driver::pump::{NEVER, Pump};
use crate::machine::dispatcher::NONE;
use crate::{EntityId, Event, EventKind, Machine, Place, Progress, Rejected, Woken};
use horolog_model::TaskId;
use horolog_time::Instant;

/// How a world tells what happens on one processor at one instant.
#[derive(Debug)]
pub struct Tell<'a> {
    pub(crate) machine: &'a mut Machine,
    pub(crate) pump: &'a mut Pump,
    pub(crate) now: u64,
}

impl Tell<'_> {
    /// The instant.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.machine
    }

    /// Whose job has the processor, as far as was told.
    #[must_use]
    pub fn running(&self) -> Option<TaskId> {
        (self.pump.running != NONE).then_some(TaskId(self.pump.running))
    }

    #[inline(always)]
    fn on(&mut self, kind: EventKind) -> Result<(), Rejected> {
        let told = self.machine.on(Event::at(Instant::from_ns(self.now), kind));
        self.pump.is_due |= told.is_ok();
        told
    }

    /// The running job of `task` has left the processor.
    #[inline(always)]
    fn left(&mut self, task: TaskId) {
        if self.pump.running == task.0 {
            self.pump.running = NONE;
            self.pump.is_counted = false;
            self.pump.allowance = NEVER;
        }
    }

    /// The job of `task` is done.
    ///
    /// # Errors
    /// As [`Machine::on`]; so do the other methods.
    #[inline(always)]
    pub fn completion(&mut self, task: TaskId) -> Result<(), Rejected> {
        self.on(EventKind::Completion { task })?;
        self.left(task);
        Ok(())
    }

    /// The job of `task` suspends itself.
    pub fn block(&mut self, task: TaskId) -> Result<(), Rejected> {
        self.on(EventKind::Block { task })?;
        self.left(task);
        Ok(())
    }

    /// The job of `task` is at a preemption point and gives way if somebody more important waits; `next` is its next segment, or
    /// [`crate::ANY_SEGMENT`].
    #[inline(always)]
    pub fn preemption_point(&mut self, task: TaskId, next: u32) -> Result<(), Rejected> {
        self.on(EventKind::PreemptionPoint { task, willing: true, next })
    }

    /// How far the job of `task` is by its thread's own clock, where jobs are on threads ([`crate::MachineBuilder::on_threads`]):
    /// its segment, and what it has executed. It takes the place of what was told before.
    pub fn progress(&mut self, task: TaskId, progress: Progress) {
        self.machine.progress(task, progress);
        if self.pump.running == task.0 && self.pump.is_counted {
            let allowance = self.machine.allowance(task).map_or(NEVER, |left| left.as_ns());
            self.pump.allowance = allowance.saturating_sub(self.pump.untold);
        }
    }

    /// The job of `task` switches its own preemptibility.
    pub fn set_preemptible(&mut self, task: TaskId, preemptible: bool) -> Result<(), Rejected> {
        self.on(EventKind::SetPreemptible { task, preemptible })
    }

    /// A job of `task` is ready. `executed` says what the running job has executed since the world was asked last; it is called
    /// where the release may change a budget.
    #[inline(always)]
    pub fn release(
        &mut self,
        task: TaskId,
        deadline: Instant,
        executed: impl FnOnce(u64) -> u64,
    ) -> Result<(), Rejected> {
        if self.pump.is_counted && self.machine.is_served(task) {
            self.pump.tell_amount(self.machine, executed(self.pump.allowance), self.now);
        }
        self.on(EventKind::Release { task, deadline })
    }

    /// A job of `task` that suspended itself is ready again.
    pub fn wake(&mut self, task: TaskId) -> Result<(), Rejected> {
        self.on(EventKind::Wake { task })
    }

    /// The job of `task` locks a resource; whether it has it, and else it is suspended until it may ask again.
    pub fn lock(&mut self, task: TaskId, resource: u32) -> Result<bool, Rejected> {
        self.on(EventKind::Lock { task, resource })?;
        let has_it = self.machine.is_held_by(resource, task);
        if !has_it {
            self.left(task);
        }
        Ok(has_it)
    }

    /// The running job of `task` waits for a lock that processors hand to each other, until [`Tell::lock`] says that it holds it: it spins, or is
    /// suspended.
    pub fn spin(&mut self, task: TaskId, resource: u32) -> Result<(), Rejected> {
        self.on(EventKind::Spin { task, resource })?;
        if self.machine.waits_for(task).is_some() {
            self.left(task);
        }
        Ok(())
    }

    /// The job of `task` unlocks a resource; who waited and is ready by that, to ask again once it is chosen.
    pub fn unlock(&mut self, task: TaskId, resource: u32) -> Result<&[Woken], Rejected> {
        self.on(EventKind::Unlock { task, resource })?;
        Ok(&self.machine.locks.woken)
    }

    /// A node stands at another place from now on.
    pub fn lend(&mut self, entity: EntityId, place: Place) -> Result<(), Rejected> {
        self.on(EventKind::Lend { entity, place })
    }

    /// Something has changed that the machine does not see: it is asked who runs.
    pub fn choice_is_due(&mut self) {
        self.pump.is_due = true;
    }

    /// Who really has the processor from now on, where that is not whom the machine chose. Execution is charged to him, and his
    /// job has begun: it may end although the machine does not want it. Whoever was chosen has not begun to keep the processor.
    pub fn took(&mut self, task: Option<TaskId>) {
        self.machine.took(self.pump.processor, task, Instant::from_ns(self.now));
        self.pump.hand_over(self.machine, task.map_or(NONE, |task| task.0));
    }
    /// A job got the processor that is as good a choice as the machine's, since the order of two events was not known or makes no
    /// difference: the machine takes it for its own choice. Only jobs directly below the root of a processor are taken over.
    pub fn chose(&mut self, task: TaskId) {
        if self.machine.take_over(self.pump.processor, task) {
            self.pump.hand_over(self.machine, task.0);
        }
    }
}
