//! Budgets of jobs on threads (decision 0010): the machine is told how far the running job is by its thread's own clock, says when
//! its budget is used up, and what then; that is carried out here.

use super::driver::Threads;
use crate::bands;
use crate::control::OVERRAN;
use horolog_model::TaskId;
use horolog_sched::{OverrunAction, Tell};
use horolog_sys::fixed_priority::Class;
use horolog_trace::Kind;
use std::sync::atomic::Ordering;

/// How much later than the earliest possible overrun the agent looks. The switch to the job takes some of the time;
/// without this the agent could come again before the job has executed at all, and for ever.
const LOOK_SLACK: u64 = 30_000;

impl Threads {
    /// Reads how far the running job is, where it has a budget.
    pub(super) fn look_at_progress(&mut self, now: u64) {
        let seat = self.current.map(|current| &self.seats[current]).filter(|seat| seat.shared.is_enforced());
        let progress = seat.and_then(|seat| Some((now, seat.shared.id, seat.progress()?)));
        self.progress = progress;
    }

    /// Tells the machine how far the running job is now; what was due before it had a job that was less far.
    pub(super) fn tell_progress(&mut self, tell: &mut Tell<'_>) {
        if let Some((at, task, progress)) = self.progress
            && at <= tell.now()
        {
            self.progress = None;
            tell.progress(task, progress);
        }
    }

    /// A choice was made: when to look at the running job again, which may execute so much until a budget is used up.
    pub(super) fn plan_look(&mut self, now: u64, allowance: u64) {
        let is_enforced = self.current.is_some_and(|current| self.seats[current].shared.is_enforced());
        self.look_at = match allowance {
            0 | u64::MAX => u64::MAX,
            _ if !is_enforced => u64::MAX,
            rest => now.saturating_add(rest).saturating_add(LOOK_SLACK),
        };
    }

    /// The running job of a task has used up its budget, and the machine has acted.
    pub(super) fn carry_out_overrun(&mut self, now: u64, task: TaskId, action: OverrunAction) {
        let seat = self.seat_of[task.index()];
        let Some(place) = self.seats.get(seat) else { return };
        let shared = place.shared.clone();
        let job = place.backlog.front().map_or(0, |job| job.number);
        let executed = place.progress().map_or(0, |progress| progress.executed.as_ns());
        self.record(seat, Kind::Enforcement, now, job, executed, action.number());
        shared.control.attention.fetch_or(OVERRAN, Ordering::AcqRel);
        match action {
            OverrunAction::Skip => shared.control.must_end.store(true, Ordering::Release),
            OverrunAction::Demote => {
                if shared.overrun != OverrunAction::Demote {
                    // The mode leaves no more to it.
                    shared.control.must_end.store(true, Ordering::Release);
                }
                self.demote(seat, Class::Fifo(bands::DEMOTED));
            }
            OverrunAction::Stop => {
                shared.control.must_end.store(true, Ordering::Release);
                self.drop_waiting(seat);
                self.demote(seat, Class::Idle);
            }
            OverrunAction::AskFor(mode) => {
                if let Some(modes) = &self.run.modes {
                    modes.request_by_overrun(now, mode);
                }
            }
            OverrunAction::Count | OverrunAction::Drop => {}
        }
    }

    /// The job of `seat` has left the machine; its thread goes on below every task.
    fn demote(&mut self, seat: usize, class: Class) {
        self.clear_flag(seat);
        self.seats[seat].demoted = true;
        if self.seats[seat].has_ended() {
            // There is nothing to go on with.
            return;
        }
        self.seats[seat].lowered = true;
        if self.pass.0 == Some(seat) {
            // A thread that is inside the monitor must not wait there for those above it.
            self.lowers_itself = self.has_bands.then_some(class);
        } else {
            self.change_class(seat, class);
        }
    }

    /// The jobs behind the oldest one of `seat` are gone.
    fn drop_waiting(&mut self, seat: usize) {
        let place = &mut self.seats[seat];
        let gone = place.backlog.len().saturating_sub(1) as u64;
        place.backlog.truncate(1);
        let mut tally = place.shared.tally();
        tally.counts.jobs += gone;
        tally.counts.unfinished += gone;
    }

    /// The class that the thread which makes this pass gives itself once it has left the monitor.
    pub(crate) fn take_own_class(&mut self) -> Option<Class> {
        self.lowers_itself.take()
    }
}
