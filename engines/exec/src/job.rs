//! The handle that user code gets for each job.

use crate::arrivals;
use crate::control::SHOULD_YIELD;
use crate::shared::RunShared;
use crate::task_shared::{Overrun, TaskShared};
use horolog_sys::clock;
use horolog_time::{Instant, Span};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a job's calls do in the run's mode of scheduling.
pub(crate) trait Runtime {
    /// A preemption point that has something to do. Returns whether somebody more important waited.
    fn point(&self, task: &TaskShared, job: u64, next: Option<u32>, willing: bool) -> bool;

    /// The job asks a device, and comes back once it need not wait any more.
    fn ask(&self, task: &TaskShared, request: usize);

    /// The job asks for a mode of the system.
    fn request_mode(&self, task: &TaskShared, mode: u32);

    /// The job locks a resource, and comes back once it has it or the run is over: how much processor time it has spun for it.
    fn lock(&self, task: &TaskShared, job: u64, resource: usize) -> u64;

    /// The job lets go of a resource.
    fn unlock(&self, task: &TaskShared, job: u64, resource: usize);

    /// The job switches its own preemptibility.
    fn set_preemptible(&self, task: &TaskShared, job: u64, preemptible: bool);
}

/// One job, as its code sees it.
///
/// The same handle stands behind `horolog_job *` of the C header.
pub struct Job<'a> {
    pub(crate) facts: arrivals::Job,
    pub(crate) task: &'a TaskShared,
    pub(crate) run: &'a RunShared,
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) next: Option<u32>,
}

impl Job<'_> {
    /// The job's number, counted from 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.facts.number
    }

    /// The name of the task.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task.name
    }

    /// The nominal arrival, since the common start.
    pub fn release(&self) -> Instant {
        Instant::from_ns(self.facts.arrival)
    }

    /// The absolute deadline, since the common start; [`Instant::NEVER`] where the task has none.
    pub fn deadline(&self) -> Instant {
        Instant::from_ns(self.facts.deadline)
    }

    /// A preemption point: where `allow` and somebody more important waits, they run now, and this returns once
    /// the job has the processor again. Returns whether somebody waited. Idle, it costs one load and a branch.
    #[inline(always)]
    pub fn preemption_point(&mut self, allow: bool) -> bool {
        if self.task.control.attention.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.busy_point(allow)
    }

    #[cold]
    #[inline(never)]
    fn busy_point(&mut self, allow: bool) -> bool {
        self.runtime.point(self.task, self.facts.number, self.next.take(), allow)
    }

    /// Announces which segment follows the next preemption point, where the segment graph branches.
    #[inline]
    pub fn next_segment(&mut self, segment: u32) {
        self.next = Some(segment);
    }

    /// Whether somebody more important waits for this job's next preemption point: one load.
    #[inline(always)]
    #[must_use]
    pub fn should_yield(&self) -> bool {
        self.task.control.attention.load(Ordering::Relaxed) & SHOULD_YIELD != 0
    }

    /// Switches this task's own preemptibility, for this job and those after it.
    pub fn set_preemptible(&mut self, preemptible: bool) {
        self.runtime.set_preemptible(self.task, self.facts.number, preemptible);
    }

    /// Makes the request of this name (a `[[request]]` of this task in the system file): where it is synchronous, this comes
    /// back with the answer of the emulated device, and the task is suspended meanwhile. Returns whether there is such a
    /// request; without, nothing happens.
    pub fn ask(&mut self, request: &str) -> bool {
        let found = self.task.requests.iter().find(|known| known.name == request);
        let Some(place) = found.map(|known| known.place) else { return self.named_nothing(request, "") };
        self.runtime.ask(self.task, place);
        true
    }

    /// Asks for a mode of the system (a `[[mode]]` of the system file, or `base`), as a request of the file at this instant does:
    /// whether it takes effect at once says the mode. Returns whether there is such a mode; without, nothing happens.
    pub fn request_mode(&mut self, name: &str) -> bool {
        let found = self.run.modes.as_ref().and_then(|modes| modes.number_of(name));
        let Some(mode) = found else { return self.named_nothing(name, "") };
        self.runtime.request_mode(self.task, mode);
        true
    }

    /// Locks the resource of this name and comes back once the job has it. Returns whether the job holds it now.
    ///
    /// Where the sections of the task on it have `access = "read"`, others that read may hold it, too.
    ///
    /// It does not where no `[[task.section]]` of the task names the resource, where the job holds another one and the protocols of the two do
    /// not nest (spin locks, `inheritance` and `none` with nothing), and where the run has ended meanwhile. A resource that it holds already stays locked
    /// once: the first unlock lets go of it, and the call is counted. What a job still holds at its end is unlocked.
    pub fn lock(&mut self, resource: &str) -> bool {
        let Some(place) = self.resource(resource) else { return self.named_nothing(resource, "") };
        if !self.run.locks.is_held_by(place, self.task) {
            if !self.run.locks.nests_with_what_is_held(place, self.task) {
                let beside = ", while the job holds a resource with which its protocol does not nest";
                return self.named_nothing(resource, beside);
            }
            self.runtime.lock(self.task, self.facts.number, place);
        } else {
            self.task.tally().locked_twice(resource);
        }
        self.run.locks.is_held_by(place, self.task)
    }

    /// Unlocks the resource of this name. Returns whether the job held it; a call without that is counted, and does nothing.
    pub fn unlock(&mut self, resource: &str) -> bool {
        let Some(place) = self.resource(resource) else { return self.named_nothing(resource, "") };
        let is_held = self.run.locks.is_held_by(place, self.task);
        if is_held {
            self.runtime.unlock(self.task, self.facts.number, place);
        } else if !self.run.is_stopping() {
            // A lock takes nothing any more once the run is over.
            self.task.tally().unlocked_unheld(resource);
        }
        is_held
    }

    /// A call did nothing, because the file gives the task nothing of this name, or not for this call: `but` says what it gives.
    fn named_nothing(&self, name: &str, what_it_is: &'static str) -> bool {
        self.task.tally().named_nothing(name, what_it_is);
        false
    }

    /// Counts a call that takes from a link that the task does not read.
    fn must_read(&self, link: &str) {
        match self.task.links.ends_of(link) {
            (_, true) => {}
            (true, false) => _ = self.named_nothing(link, ", a link that the task writes and does not read"),
            (false, false) => _ = self.named_nothing(link, ""),
        }
    }

    /// A resource that the task's sections name.
    fn resource(&self, name: &str) -> Option<usize> {
        let place = self.run.locks.find(name)?;
        self.task.borders.iter().any(|border| border.resource == place).then_some(place)
    }

    /// Gives the value that this job publishes on a link that its task writes (a `[[link]]` of the system file with a `size`): the last
    /// one given is there for readers from the job's deadline on, once the job has completed. Whether there is such a link and the
    /// value fits. A job that gives none publishes its number and no bytes.
    pub fn publish(&mut self, link: &str, value: &[u8]) -> bool {
        if self.task.links.publish(link, value) {
            return true;
        }
        match self.task.links.ends_of(link) {
            // The value is too long.
            (true, _) => false,
            (false, true) => self.named_nothing(link, ", a link that the task reads and does not write"),
            (false, false) => self.named_nothing(link, ""),
        }
    }

    /// Whose value this job has from a link that its task reads: the number of the writer's job. `None`: nothing was published when
    /// this job arrived, or there is no such link.
    #[must_use]
    pub fn latched(&self, link: &str) -> Option<u64> {
        let found = self.task.links.latched(link);
        if found.is_none() {
            self.must_read(link);
        }
        found
    }

    /// Copies the value that this job has from a link, as much of it as fits; how many bytes it has. `None` where
    /// [`Job::latched`] gives none, and where a job that started after its deadline came too late for the bytes.
    pub fn read(&self, link: &str, into: &mut [u8]) -> Option<usize> {
        let found = self.task.links.read(link, into);
        if found.is_none() {
            self.must_read(link);
        }
        found
    }

    /// Calls `callback` from now on whenever a job of this task overruns: on this thread, at the next preemption
    /// point or at the end of the job, once a job. It must not block.
    pub fn on_overrun(&mut self, callback: impl Fn(Overrun) + Send + Sync + 'static) {
        self.task.on_overrun(Arc::new(callback));
    }

    /// What the job has executed so far.
    pub fn executed(&self) -> Span {
        let begun = self.task.control.cpu_at_start.load(Ordering::Relaxed);
        Span::from_ns(clock::thread_cpu_ns().saturating_sub(begun))
    }

    /// What is left of the job's worst-case execution time, or of the tighter bound known since a branch.
    pub fn remaining(&self) -> Span {
        let tighter = self.task.control.tighter_wcet.load(Ordering::Relaxed);
        let bound = if tighter == 0 { self.task.wcet } else { tighter };
        Span::from_ns(bound).saturating_sub(self.executed())
    }

    /// Whether the job should end at the next opportunity: the overrun policy or the end of the run says so.
    #[inline]
    #[must_use]
    pub fn must_end(&self) -> bool {
        self.task.control.must_end.load(Ordering::Relaxed) || self.run.is_stopping()
    }

    /// Whether the run is over.
    #[inline]
    #[must_use]
    pub fn is_run_over(&self) -> bool {
        self.run.is_stopping()
    }
}
