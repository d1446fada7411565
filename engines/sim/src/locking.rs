//! What jobs lock and unlock where a stretch of their execution ends.

use crate::engine::Core;
use crate::lane::{Lane, NEVER, NONE};
use crate::sections::Beginning;
use crate::source::Source;
use horolog_model::TaskId;
use horolog_sched::{Grant, Tell};
use horolog_trace::{Kind, Sink};

/// A job waits for a resource: `extra` of [`Kind::Suspend`] and [`Kind::Wake`].
const OF_RESOURCE: u64 = 1;

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// A stretch of execution ends, and with it maybe a section or the wait for one; whether the segment goes on, or the job waits for
    /// a resource.
    #[inline(never)]
    pub(crate) fn pass_borders(&mut self, tell: &mut Tell<'_>, lane: &mut Lane, task: u32, now: u64) -> bool {
        if !self.sections[task as usize].has_any() {
            return false;
        }
        let job = self.tasks[task as usize].oldest;
        while let Some(resource) = self.sections[task as usize].pass_end() {
            self.unlock(tell, lane, task, resource, now);
        }
        if self.sections[task as usize].is_at_end() {
            return false;
        }
        loop {
            match self.sections[task as usize].pass_beginning(now) {
                Beginning::None => break,
                Beginning::AfterTheChoice => return true,
                Beginning::Of(resource) if self.globals.is_global(resource) => {
                    if !self.take_global(tell, lane, task, resource, now) {
                        return true;
                    }
                }
                Beginning::Of(resource) => match tell.lock(TaskId(task), resource) {
                    Ok(true) => self.emit(lane, now, Kind::Lock, task, job, resource.into(), 0),
                    told => {
                        debug_assert_eq!(told, Ok(false));
                        // It asks again once it has the processor.
                        self.sections[task as usize].put_back();
                        self.tasks[task as usize].remaining = 0;
                        (lane.running, lane.chosen, lane.finish) = (NONE, NONE, NEVER);
                        self.emit(lane, now, Kind::Suspend, task, job, resource.into(), OF_RESOURCE);
                        return true;
                    }
                },
            }
        }
        lane.begin(now, self.sections[task as usize].next_stretch());
        true
    }

    /// A job asks for a lock across processors: whether it has it and goes on, and else it spins or is suspended.
    fn take_global(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        task: u32,
        resource: u32,
        now: u64,
    ) -> bool {
        let job = self.tasks[task as usize].oldest;
        let has_it = self.globals.request(resource, TaskId(task));
        let is_remote = self.globals.is_remote(resource);
        let told = if has_it && !is_remote {
            tell.lock(TaskId(task), resource).map(|_| ())
        } else {
            tell.spin(TaskId(task), resource)
        };
        debug_assert_eq!(told, Ok(()));
        if has_it && !is_remote {
            self.emit(lane, now, Kind::Lock, task, job, resource.into(), 0);
            return true;
        }
        let run = &mut self.tasks[task as usize];
        // It goes on once it holds the resource.
        run.remaining = self.sections[task as usize].next_stretch();
        if self.globals.suspends(resource) {
            (lane.running, lane.chosen, lane.finish) = (NONE, NONE, NEVER);
            self.emit(lane, now, Kind::Suspend, task, job, resource.into(), OF_RESOURCE);
            if has_it {
                self.emit(lane, now, Kind::Lock, task, job, resource.into(), 0);
            }
        } else {
            run.spins = true;
            lane.spin();
            self.emit(lane, now, Kind::Spin, task, job, resource.into(), 0);
        }
        false
    }

    /// A job that spins is preempted: where the protocol says so it has no place in the queue any more, and asks anew once it has the processor.
    #[inline(never)]
    pub(crate) fn leaves_its_place(&mut self, task: u32) {
        let sections = &mut self.sections[task as usize];
        if sections.passed_last().is_some_and(|resource| self.globals.withdraw(resource, TaskId(task))) {
            sections.go_back();
            let run = &mut self.tasks[task as usize];
            (run.spins, run.remaining) = (false, 0);
        }
    }

    /// The next of the locks that jobs have got in this round.
    pub(crate) fn take_grant(&mut self) -> Option<Grant> {
        self.grants.pop_front()
    }

    /// A job of this processor that waits holds the lock from now on.
    pub(crate) fn granted(&mut self, lane: &mut Lane, now: u64, grant: Grant) {
        let task = grant.task.0;
        if self.globals.suspends(grant.resource) && !self.globals.is_remote(grant.resource) {
            let job = self.tasks[task as usize].oldest;
            self.emit(lane, now, Kind::Wake, task, job, grant.resource.into(), OF_RESOURCE);
        }
        let run = &mut self.tasks[task as usize];
        run.spins = false;
        let (job, remaining) = (run.oldest, run.remaining);
        self.emit(lane, now, Kind::Lock, task, job, grant.resource.into(), 0);
        if lane.running == task {
            lane.begin(lane.kernel_until.max(now), remaining);
        }
    }

    /// A job lets go of a resource; who waited for it, or for another one that was free, asks again.
    pub(crate) fn unlock(&mut self, tell: &mut Tell<'_>, lane: &Lane, task: u32, resource: u32, now: u64) {
        let woken = tell.unlock(TaskId(task), resource);
        debug_assert!(woken.is_ok());
        let value = resource.into();
        self.emit(lane, now, Kind::Unlock, task, self.tasks[task as usize].oldest, value, 0);
        if self.globals.is_global(resource) {
            let Self { globals, grants, .. } = self;
            globals.release(resource, TaskId(task), |grant| grants.push_back(grant));
            if self.globals.is_remote(resource) {
                let job = self.tasks[task as usize].oldest;
                self.emit(lane, now, Kind::Wake, task, job, value, OF_RESOURCE);
            }
            return;
        }
        for woken in woken.unwrap_or_default() {
            let job = self.tasks[woken.task.index()].oldest;
            self.emit(lane, now, Kind::Wake, woken.task.0, job, woken.resource.into(), OF_RESOURCE);
        }
    }

    /// A job ends: so does what it still holds.
    #[inline(never)]
    pub(crate) fn close_sections(&mut self, tell: &mut Tell<'_>, lane: &Lane, task: u32, now: u64) {
        let passed = self.sections[task as usize].passed();
        while let Some(resource) = self.sections[task as usize].close(passed) {
            self.unlock(tell, lane, task, resource, now);
        }
    }
}
