//! A mode change on one processor: its machine, the arrivals of its tasks, and the threads of the jobs that are left over.

use super::driver::{Driver, HERE, Threads};
use crate::bands;
use crate::control::OVERRAN;
use crate::options::RecordLevel;
use horolog_model::{System, TaskInMode};
use horolog_sched::ModeChange;
use horolog_sys::fixed_priority::Class;
use horolog_sys::{futex, hold};
use horolog_time::Instant;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use std::sync::atomic::Ordering;

/// The agent looks at least so often: a change that nobody could know before must find no promise of later records.
pub(super) const LOOKS_EVERY: u64 = 50_000_000;

/// `extra` of an `Enforcement` record: the overrun policy or a mode has lowered the job below every task.
const DEMOTED: u64 = 2;
/// The same: the job is gone.
const DROPPED: u64 = 4;

/// What a processor keeps of the modes.
pub(crate) struct InModes {
    /// The tasks of the seats as each mode has them.
    tasks: Vec<Vec<TaskInMode>>,
    /// How many changes were made here.
    known: usize,
    /// The run's releases have ended, and with them the changes.
    is_over: bool,
    /// When the present pass began.
    now: u64,
    /// When the change was to be that is made now.
    asked_at: u64,
    cpu: u32,
}

impl InModes {
    /// Of the tasks of the seats, in their order; `None` where there is one mode alone.
    pub(crate) fn new(system: &System, tasks: &[horolog_model::TaskId], cpu: u32) -> Option<Box<InModes>> {
        let in_mode = |mode| tasks.iter().map(|&task| system.task_in(mode, task)).collect();
        (!system.modes().is_empty()).then(|| {
            Box::new(InModes {
                tasks: (0..system.mode_count()).map(in_mode).collect(),
                known: 0,
                is_over: false,
                now: 0,
                asked_at: 0,
                cpu,
            })
        })
    }
}

impl Driver {
    /// Makes every change up to `now` that was not made here yet; what comes before each is told before it.
    pub(super) fn follow_modes(&mut self, now: u64) {
        let Self { core, threads } = self;
        let run = threads.run.clone();
        let Some(here) = threads.modes.as_mut().filter(|here| !here.is_over) else { return };
        let horizon = run.horizon();
        here.is_over = now > horizon;
        let now = now.min(horizon);
        let Some(modes) = &run.modes else { return };
        loop {
            // Whether a request can take effect is seen when all before it is told.
            let until = modes.next_at().min(now);
            let Ok(_) = core.run(threads, HERE, until);
            for seat in &threads.seats {
                modes.note_left(seat.shared.id, core.machine().jobs(seat.shared.id));
            }
            modes.advance(until, threads.agent_cpu());
            while let Some(here) = &mut threads.modes
                && let Some((at, mode)) = modes.change(here.known).filter(|&(at, _)| at <= now)
            {
                (here.known, here.now, here.asked_at) = (here.known + 1, now, at);
                let Ok(_) = core.run(threads, HERE, at);
                let Ok(()) = core.change_mode(threads, HERE, at, mode);
            }
            if until == now {
                return;
            }
        }
    }

    /// A job asks for a mode.
    pub(crate) fn request_mode(&mut self, now: u64, mode: u32) {
        if let Some(modes) = &self.threads.run.modes {
            modes.request(now, mode);
        }
    }
}

impl Threads {
    fn agent_cpu(&self) -> u32 {
        self.modes.as_ref().map_or(0, |here| here.cpu)
    }

    /// The mode has changed: arrivals and deadlines are those of the new one, and jobs that the machine has dropped are gone.
    pub(super) fn take_over_mode(&mut self, now: u64, change: ModeChange<'_>) {
        let Some(here) = self.modes.take() else { return };
        let late = here.now.saturating_sub(here.asked_at);
        if self.seats.first().is_some_and(|first| first.shared.record != RecordLevel::Nothing) {
            self.ring.push(Record {
                time: Instant::from_ns(now),
                kind: Kind::ModeChange,
                cpu: here.cpu as u16,
                task: NO_TASK,
                job: NO_JOB,
                value: change.mode.into(),
                extra: late,
            });
        }
        if let Some(modes) = &self.run.modes {
            modes.note_change(here.known, change.left_over);
        }
        for seat in 0..self.seats.len() {
            self.end_dropped(seat, now, change);
            let of = |mode: u32| here.tasks.get(mode as usize).map(|tasks| tasks[seat]);
            if let (Some(before), Some(mode)) = (of(change.before), of(change.mode)) {
                self.change_arrivals(seat, now, before, mode);
            }
        }
        self.next_due =
            self.seats.iter().filter_map(|seat| seat.next.map(|job| job.ready)).min().unwrap_or(u64::MAX);
        self.modes = Some(here);
    }

    /// No job is left over here any more from the mode before the last change.
    pub(super) fn note_mode_end(&self, now: u64) {
        if let (Some(here), Some(modes)) = (&self.modes, &self.run.modes) {
            modes.note_end(here.known, now);
        }
    }

    /// Jobs of this seat that have not begun and that the mode drops are gone. One that has begun is asked to end: nobody can end a
    /// thread's job from outside.
    fn end_dropped(&mut self, seat: usize, now: u64, change: ModeChange<'_>) {
        let task = self.seats[seat].shared.id;
        let left = change.machine.jobs(task) as usize;
        while self.seats[seat].backlog.len() > left {
            if let Some(job) = self.seats[seat].backlog.pop_back() {
                self.seats[seat].shared.tally().counts.skipped += 1;
                self.record(seat, Kind::Enforcement, now, job.number, 0, DROPPED);
            }
        }
        let is_known = self.seats[seat].suspended || self.seats[seat].demoted;
        if left > 0 && change.machine.is_blocked(task) && !is_known {
            self.ask_to_end(seat, now);
        }
    }

    /// The begun job of `seat` is out of the machine; its thread goes on below every task until its code ends.
    fn ask_to_end(&mut self, seat: usize, now: u64) {
        let job = self.seats[seat].backlog.front().map_or(0, |job| job.number);
        self.record(seat, Kind::Enforcement, now, job, 0, DEMOTED);
        self.clear_flag(seat);
        let shared = self.seats[seat].shared.clone();
        shared.control.must_end.store(true, Ordering::Release);
        shared.control.attention.fetch_and(!OVERRAN, Ordering::AcqRel);
        self.change_class(seat, Class::Fifo(bands::DEMOTED));
        let place = &mut self.seats[seat];
        (place.lowered, place.demoted) = (true, true);
        if std::mem::take(&mut place.held) {
            hold::release(&shared.hold);
        }
        if std::mem::take(&mut place.parked) {
            shared.control.gate.store(1, Ordering::Release);
            let _ = futex::wake(&shared.control.gate, 1);
        }
    }

    /// The arrivals of a task stop, or begin anew at a mode change; its next jobs have the deadline of the mode.
    fn change_arrivals(&mut self, seat: usize, now: u64, before: TaskInMode, mode: TaskInMode) {
        let horizon = self.run.horizon();
        let place = &mut self.seats[seat];
        place.change_deadline(mode.deadline.map(|deadline| deadline.as_ns()));
        let Some(separation) = mode.separation else { return };
        let goes_on = before.is_active && before.separation == mode.separation;
        if !before.is_active && !mode.is_active || goes_on && mode.is_active {
            return;
        }
        let passed = place.next.filter(|job| job.arrival < now);
        place.restart(mode.is_active.then_some((now, separation.as_ns())), horizon);
        if let Some(job) = passed {
            // It had arrived, and was not ready before the change.
            self.seats[seat].shared.tally().counts.skipped += 1;
            self.record(seat, Kind::Skip, now, NO_JOB, job.arrival, 0);
        }
    }
}
