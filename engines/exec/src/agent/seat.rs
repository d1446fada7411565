//! One task as the driver of its processor keeps it.

use crate::arrivals::{Arrivals, Job};
use crate::task_shared::TaskShared;
use horolog_sched::Progress;
use horolog_time::Span;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many waiting jobs of one task fit before the queue has to grow, at the price of an allocation.
const BACKLOG: usize = 256;

/// A task's place on its processor.
pub(crate) struct Seat {
    pub(crate) shared: Arc<TaskShared>,
    arrivals: Arrivals,
    /// The number of the next job to arrive.
    next_number: u64,
    /// That job.
    pub(crate) next: Option<Job>,
    /// Jobs that were released and have not completed, the oldest first.
    pub(crate) backlog: VecDeque<Job>,
    /// Whether the oldest job was handed to its thread. It starts when the thread takes its grant.
    pub(crate) begun: bool,
    /// The thread sleeps on its gate, or is about to: it goes on once it is granted.
    pub(crate) parked: bool,
    /// The thread stands in another band than `RUN`.
    pub(crate) lowered: bool,
    /// The task's server may leave the order, so that its thread must be able to stand still.
    pub(crate) may_be_held: bool,
    /// The thread stands still in the middle of its code.
    pub(crate) held: bool,
    /// Where it is held: the thread's clock when what it had executed was last charged. Its way into the signal's handler comes after.
    pub(crate) charged: Option<u64>,
    /// The oldest job overran and was taken out of the machine.
    pub(crate) demoted: bool,
    /// The oldest job waits for a device.
    pub(crate) suspended: bool,
    /// Its thread is, or goes, to where a section of its job executes.
    pub(crate) away: bool,
    /// The thread of a device, which has work as long as others wait for it.
    pub(crate) goes_on: bool,
    /// What the task's attention word was last told about yielding; zero: nothing.
    pub(crate) flagged: u32,
}

impl Seat {
    pub(crate) fn new(shared: Arc<TaskShared>, mut arrivals: Arrivals, horizon: u64) -> Seat {
        let next = arrivals.next_job().filter(|job| job.arrival < horizon);
        Seat {
            shared,
            arrivals,
            next_number: 0,
            next,
            backlog: VecDeque::with_capacity(BACKLOG),
            begun: false,
            parked: true,
            lowered: false,
            may_be_held: false,
            held: false,
            charged: None,
            demoted: false,
            suspended: false,
            away: false,
            goes_on: false,
            flagged: 0,
        }
    }

    /// Takes the next arrival and draws the one after it.
    pub(crate) fn take_next(&mut self, horizon: u64) -> Option<Job> {
        let job = self.next.take()?;
        self.next_number = job.number + 1;
        self.next = self.arrivals.next_job().filter(|job| job.arrival < horizon);
        Some(job)
    }

    /// From now on jobs have this relative deadline.
    pub(crate) fn change_deadline(&mut self, deadline: Option<u64>) {
        self.arrivals.change_deadline(deadline);
        if let Some(next) = &mut self.next {
            next.deadline = self.arrivals.deadline_of(next.arrival);
        }
    }

    /// What was to come does not; the next job arrives at an instant and others follow at a distance, or none.
    pub(crate) fn restart(&mut self, from: Option<(u64, u64)>, horizon: u64) {
        self.next = None;
        if let Some((at, separation)) = from {
            self.arrivals.restart(self.next_number, at, separation);
            self.next = self.arrivals.next_job().filter(|job| job.arrival < horizon);
        }
    }

    /// Whether the code of the oldest job has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let ended = self.shared.control.ended.load(Ordering::Acquire);
        self.backlog.front().is_some_and(|job| ended == job.number + 1)
    }

    /// Whether the thread has begun the oldest job. Where it is not so and a grant lies there, the job has not started.
    pub(crate) fn has_started(&self) -> bool {
        let job = self.shared.control.job.load(Ordering::Acquire);
        self.has_ended() || self.backlog.front().is_some_and(|oldest| job == oldest.number + 1)
    }

    /// How far the oldest job is, by its thread's own clock; `None` while the thread has not begun it.
    pub(crate) fn progress(&self) -> Option<Progress> {
        let job = self.backlog.front()?;
        let control = &self.shared.control;
        let executed = if self.has_ended() {
            // A job that ends where its budget does has not used it up: that takes one unit more.
            control.executed_at_end.load(Ordering::Relaxed).saturating_sub(1)
        } else if control.job.load(Ordering::Acquire) == job.number + 1 {
            let begun = control.cpu_at_start.load(Ordering::Relaxed);
            self.shared.clock.get()?.read_ns()?.saturating_sub(begun)
        } else {
            return None;
        };
        let tighter = control.tighter_wcet.load(Ordering::Relaxed);
        Some(Progress {
            segment: control.segment.load(Ordering::Acquire) as usize,
            executed: Span::from_ns(executed),
            before_segment: Span::from_ns(control.executed_before_segment.load(Ordering::Relaxed)),
            tighter_wcet: (tighter != 0).then_some(Span::from_ns(tighter)),
        })
    }

    /// What the thread has executed in all, by its own clock; `None` where it has ended.
    #[inline]
    pub(crate) fn executed_ns(&self) -> Option<u64> {
        self.shared.clock.get()?.read_ns()
    }
}
