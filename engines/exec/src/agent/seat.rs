//! One task as the driver of its processor keeps it.

use crate::arrivals::{Arrivals, Job};
use crate::enforcement::Progress;
use crate::task_shared::TaskShared;
use horolog_model::OverrunPolicy;
use horolog_time::Span;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many waiting jobs of one task fit before the queue has to grow, at the price of an allocation.
const BACKLOG: usize = 256;

/// How much later than the earliest possible overrun the agent looks. The switch to the job takes some of the time;
/// without this the agent could come again before the job has executed at all, and for ever.
const LOOK_SLACK: u64 = 30_000;

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
    /// Whether the oldest job has started.
    pub(crate) begun: bool,
    /// The thread sleeps on its gate, or is about to: it goes on once it is granted.
    pub(crate) parked: bool,
    /// The thread stands in another band than `RUN`.
    pub(crate) lowered: bool,
    /// The task's server may leave the order, so that its thread must be able to stand still.
    pub(crate) may_be_held: bool,
    /// The thread stands still in the middle of its code.
    pub(crate) held: bool,
    /// The oldest job overran and was taken out of the machine.
    pub(crate) demoted: bool,
    /// The oldest job waits for a device.
    pub(crate) suspended: bool,
    /// No more jobs of this task start.
    pub(crate) stopped: bool,
    /// The next release is dropped.
    pub(crate) skips_next: bool,
    /// The policy has acted on the oldest job.
    pub(crate) acted: bool,
    /// What the task's attention word was last told about yielding; zero: nothing.
    pub(crate) flagged: u32,
    /// When the running job's execution must be looked at; `u64::MAX`: never.
    pub(crate) look_at: u64,
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
            demoted: false,
            suspended: false,
            stopped: false,
            skips_next: false,
            acted: false,
            flagged: 0,
            look_at: u64::MAX,
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

    /// Whether the overrun policy needs a timer: it acts while the job runs.
    pub(crate) fn is_enforced(&self) -> bool {
        self.shared.overrun != OverrunPolicy::Count || self.shared.is_watched_closely
    }

    /// How far the oldest job is, by its thread's own clock; `None` while the thread has not begun it.
    pub(crate) fn progress(&self) -> Option<Progress> {
        let job = self.backlog.front()?;
        let control = &self.shared.control;
        if control.job.load(Ordering::Acquire) != job.number + 1 {
            return None;
        }
        let begun = control.cpu_at_start.load(Ordering::Relaxed);
        let executed = self.shared.clock.get()?.read_ns()?.saturating_sub(begun);
        let tighter = control.tighter_wcet.load(Ordering::Relaxed);
        Some(Progress {
            segment: control.segment.load(Ordering::Relaxed) as usize,
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

    /// Sets when the job that runs from `now` on must be looked at.
    pub(crate) fn plan_look(&mut self, now: u64) {
        self.look_at = u64::MAX;
        if !self.is_enforced() || self.acted {
            return;
        }
        let fresh =
            Progress { segment: 0, executed: Span::ZERO, before_segment: Span::ZERO, tighter_wcet: None };
        let progress = self.progress().unwrap_or(fresh);
        if let Some(left) = self.shared.allowance.until_next_judgement(progress) {
            self.look_at = now.saturating_add(left.as_ns()).saturating_add(LOOK_SLACK);
        }
    }
}
