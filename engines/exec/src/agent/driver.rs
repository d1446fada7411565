//! The threads of one processor as a world of the driver of `sched`: what happened to them is told, what the machine wants is
//! carried out.
//!
//! Every method runs inside the processor's monitor. All times are ns since the common start.
//!
//! A pass through the monitor first *catches up*: releases, wall timers and devices that have come due are told at the instants
//! at which they were due, in their order, and nothing is chosen in between ([`World::ready_at`] is never). Then comes what the
//! pass was made for, and the choice.

use super::devices::Devices;
use super::modes::{InModes, LOOKS_EVERY};
use super::seat::Seat;
use super::served::Served;
use crate::arrivals::Job;
use crate::bands;
use crate::control::SHOULD_YIELD;
use crate::ring::Ring;
use crate::shared::RunShared;
use crate::spin_locks::Asks;
use horolog_model::{System, TaskId};
use horolog_sched::{
    ANY_SEGMENT, Choice, Machine, ModeChange, Note, OverrunAction, ProcessorIndex, Progress, Rejected, Tell,
    World,
};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::{futex, hold};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Overhead};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What one pass through the monitor was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The caller gives way if somebody more important waits.
    Point,
    /// Anything else: who loses the processor is preempted.
    Other,
}

/// What the passes through one processor's monitor took.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Passes {
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) longest: u64,
}

impl Passes {
    /// Adds one that began at `begun` and ended at `ended`.
    pub(crate) fn add(&mut self, begun: u64, ended: u64) {
        let took = ended.saturating_sub(begun);
        self.count += 1;
        self.total += took;
        self.longest = self.longest.max(took);
    }

    pub(crate) fn overhead(self, cpu: u32, context_switches: u64) -> Overhead {
        Overhead {
            cpu,
            passes: self.count,
            total_ns: Span::from_ns(self.total),
            longest_ns: Span::from_ns(self.longest),
            context_switches,
        }
    }
}

/// One processor's machine and the driver of it.
pub(crate) struct Driver {
    pub(super) core: horolog_sched::Driver,
    pub(crate) threads: Threads,
}

/// The threads of one processor.
pub(crate) struct Threads {
    pub(crate) seats: Vec<Seat>,
    /// The seat of each task of the system; `usize::MAX`: on another processor.
    pub(super) seat_of: Vec<usize>,
    pub(super) current: Option<usize>,
    pub(super) ring: Arc<Ring>,
    pub(super) run: Arc<RunShared>,
    /// Whether classes can be set: not in best effort.
    pub(super) has_bands: bool,
    pub(super) next_due: u64,
    /// Where the processor has servers.
    pub(super) served: Option<Box<Served>>,
    /// Where tasks wait for devices that are emulated.
    pub(super) devices: Option<Box<Devices>>,
    /// Where the system has modes.
    pub(super) modes: Option<Box<InModes>>,
    /// The seat whose thread makes the present pass, and what for.
    pub(super) pass: (Option<usize>, Cause),
    /// How far the running job is, read by the present pass and not told yet, and when that was.
    pub(super) progress: Option<(u64, TaskId, Progress)>,
    /// When the running job's budget may be used up; `u64::MAX`: never.
    pub(super) look_at: u64,
    /// The class that the thread that makes this pass gives itself once it has left the monitor.
    pub(super) lowers_itself: Option<Class>,
    /// What the passes through the monitor took.
    pub(crate) passes: Passes,
    /// Until when the agent sleeps.
    pub(crate) armed: u64,
    /// What a job here does with a spin lock, as the machine was told.
    pub(super) asks: Option<Asks>,
    /// Whether a job that was to lose the processor while it spun has its turn: the choice is made anew.
    pub(super) keeps_turn: bool,
    /// Which processor it is.
    pub(super) cpu: u32,
    /// Events that the machine did not want.
    pub(crate) rejected: u64,
    /// Class changes that the kernel refused.
    pub(crate) refused: u64,
}

/// A driver has one processor.
pub(super) const HERE: usize = 0;

impl Driver {
    pub(crate) fn new(
        machine: Machine,
        system: &System,
        processor: ProcessorIndex,
        seats: Vec<Seat>,
        ring: Arc<Ring>,
        run: Arc<RunShared>,
        has_bands: bool,
    ) -> Driver {
        let mut seat_of = vec![usize::MAX; system.tasks().len()];
        for (index, seat) in seats.iter().enumerate() {
            seat_of[seat.shared.id.index()] = index;
        }
        let next_due =
            seats.iter().filter_map(|seat| seat.next.map(|job| job.ready)).min().unwrap_or(u64::MAX);
        let threads = Threads {
            seats,
            seat_of,
            current: None,
            ring,
            run,
            has_bands,
            next_due,
            served: None,
            devices: None,
            modes: None,
            pass: (None, Cause::Other),
            progress: None,
            look_at: u64::MAX,
            lowers_itself: None,
            passes: Passes::default(),
            armed: u64::MAX,
            asks: None,
            keeps_turn: false,
            cpu: 0,
            rejected: 0,
            refused: 0,
        };
        Driver { core: horolog_sched::Driver::new(machine, system, std::iter::once(processor)), threads }
    }

    /// The processor's number.
    pub(crate) fn on(mut self, cpu: u32) -> Driver {
        self.threads.cpu = cpu;
        self
    }

    /// The processor has servers.
    pub(crate) fn with_servers(mut self, served: Option<Box<Served>>) -> Driver {
        self.threads.served = served;
        self
    }

    /// Tasks of the processor wait for devices.
    pub(crate) fn with_devices(mut self, devices: Option<Box<Devices>>) -> Driver {
        self.threads.devices = devices;
        self
    }

    /// The system has modes.
    pub(crate) fn with_modes(mut self, modes: Option<Box<InModes>>) -> Driver {
        self.threads.modes = modes;
        self
    }

    /// When the agent must look again.
    pub(crate) fn next_wake(&self) -> u64 {
        let threads = &self.threads;
        let look_at = threads.look_at;
        let budget = threads.served.as_ref().map_or(u64::MAX, |served| served.budget_at);
        let mode = threads.run.modes.as_ref().map_or(u64::MAX, |modes| modes.next_at());
        // Modes change no more once the run's releases have ended.
        let mode = if mode < threads.run.horizon() { mode } else { u64::MAX };
        threads.next_event().min(look_at).min(self.core.wall_at(HERE)).min(budget).min(mode)
    }

    /// A pass begins: by whose thread (`None`: the agent's), and what for.
    pub(crate) fn begin_pass(&mut self, caller: Option<usize>, cause: Cause) {
        self.threads.pass = (caller, cause);
    }

    /// Until when the agent may sleep that leaves at `now`.
    pub(crate) fn sleeps_until(&self, now: u64) -> u64 {
        let wake = self.next_wake();
        if self.threads.modes.is_some() { wake.min(now.saturating_add(LOOKS_EVERY)) } else { wake }
    }

    /// Promises the collector that no record of this processor will bear an earlier time than the next event can.
    pub(crate) fn promise(&self, now: u64) {
        let due = self.threads.next_event().min(self.core.wall_at(HERE));
        let may_come = self.threads.current.is_some() || self.threads.modes.is_some() || self.may_be_handed();
        self.threads.ring.promise(if may_come { now } else { due.max(now) });
    }

    /// Tells the machine everything that has come due by `now`.
    pub(crate) fn catch_up(&mut self, now: u64) {
        if let Some(devices) = &mut self.threads.devices {
            devices.begin_pass(now);
        }
        self.follow_locks();
        self.threads.look_at_clock(now);
        self.threads.look_at_progress(now);
        self.follow_modes(now);
        let Self { core, threads } = self;
        let Ok(_) = core.run(threads, HERE, now.saturating_add(1));
        let Ok(()) = core.instant(threads, HERE, now);
        self.follow_grants(now);
    }

    /// Asks the machine and carries out what it wants. `caller` is the seat whose thread runs this; `None`: the agent.
    pub(crate) fn settle(&mut self, now: u64, caller: Option<usize>, cause: Cause) {
        // A job that has ended, or has asked for a mode, may be what a change has waited for.
        self.follow_modes(now);
        self.threads.pass = (caller, cause);
        self.core.settle(&mut self.threads, HERE, now);
        while self.mark_spin_locks() {
            self.follow_locks();
            self.core.settle(&mut self.threads, HERE, now);
        }
        let Self { core, threads } = self;
        threads.plan_look(now, core.allowance(HERE));
        if let Some(served) = &mut threads.served {
            served.plan_look(now, core.allowance(HERE));
            served.follow_budgets(core.machine(), core.running(HERE), core.untold(HERE));
        }
        self.mark_locks();
    }

    /// Tells the machine that the oldest job of `seat` completed; an error where its thread is not the one that
    /// runs: it must wait for its turn and say so again.
    pub(crate) fn complete(
        &mut self,
        seat: usize,
        now: u64,
        executed: u64,
        returned: i32,
    ) -> Result<(), Rejected> {
        let Self { core, threads } = self;
        threads.complete(&mut core.tell(HERE, now), seat, now, executed, returned)
    }

    /// The job of `seat` reached a preemption point. Whether it is one for the machine.
    pub(crate) fn point(&mut self, seat: usize, now: u64) -> bool {
        let task = self.threads.seats[seat].shared.id;
        let told = self.core.tell(HERE, now).preemption_point(task, ANY_SEGMENT);
        self.threads.count_rejected(told).is_ok()
    }

    /// The job of `seat` switches its preemptibility.
    pub(crate) fn set_preemptible(&mut self, seat: usize, now: u64, preemptible: bool) {
        let task = self.threads.seats[seat].shared.id;
        let told = self.core.tell(HERE, now).set_preemptible(task, preemptible);
        let _ = self.threads.count_rejected(told);
    }

    /// The job of `seat` asks. Whether it waits for the answer; an error where its thread is not the one that runs.
    pub(crate) fn ask(&mut self, seat: usize, now: u64, request: usize) -> Result<bool, Rejected> {
        let Self { core, threads } = self;
        threads.ask(&mut core.tell(HERE, now), seat, now, request)
    }
}

impl Driver {
    /// Once the run's releases have ended, which tasks have nothing left to do.
    pub(crate) fn note_idle(&self, now: u64) {
        let horizon = self.threads.run.horizon();
        if now < horizon {
            return;
        }
        for seat in &self.threads.seats {
            let nothing_comes = seat.next.is_none_or(|job| job.arrival >= horizon);
            let is_idle = seat.goes_on || seat.backlog.is_empty() && nothing_comes;
            seat.shared.is_idle.store(is_idle, Ordering::Release);
        }
    }

    /// Counts what was released, or would have been, by the end of the run and has not completed.
    pub(crate) fn count_unfinished(&mut self) {
        let Self { core, threads } = self;
        threads.count_unfinished(core.machine());
    }
}

impl World for Threads {
    type Error = Infallible;

    fn next(&self) -> u64 {
        self.next_event()
    }

    fn ready_at(&self) -> u64 {
        u64::MAX
    }

    fn ends(&self, _: u64) -> bool {
        true
    }

    fn executed(&mut self, now: u64, _: u64) -> u64 {
        self.served.as_mut().map_or(0, |served| served.executed(now))
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        self.tell_progress(tell);
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        loop {
            let device = self.next_device();
            if self.next_due.min(device) > tell.now() {
                return Ok(());
            }
            if self.next_due <= device {
                self.release_next(tell);
            } else {
                self.device_events(tell, device);
            }
        }
    }

    fn mode_changed(&mut self, now: u64, change: ModeChange<'_>) {
        self.take_over_mode(now, change);
    }

    fn overran(&mut self, now: u64, task: TaskId, action: OverrunAction) {
        self.carry_out_overrun(now, task, action);
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        self.hand_over(now, choice);
    }

    fn note(&mut self, now: u64, note: Note) {
        self.record_note(now, note);
    }

    fn goes_on(&mut self, _: u64) -> bool {
        true
    }
}

impl Threads {
    /// When something happens next by itself: a release, an event of a device.
    fn next_event(&self) -> u64 {
        self.next_due.min(self.next_device())
    }

    /// Whether a task of this processor uses a resource.
    pub(super) fn holds_here(&self, resource: usize) -> bool {
        let uses = |seat: &Seat| seat.shared.borders.iter().any(|border| border.resource == resource);
        self.seats.iter().any(uses)
    }

    pub(super) fn count_rejected<T>(&mut self, told: Result<T, Rejected>) -> Result<T, Rejected> {
        self.rejected += u64::from(matches!(told, Err(Rejected::NotRunning)));
        told
    }

    #[inline(always)]
    pub(super) fn record(&self, seat: usize, kind: Kind, time: u64, job: u64, value: u64, extra: u64) {
        self.seats[seat].shared.record_in(&self.ring, kind, time, job, value, extra);
    }

    /// Releases the job that is due next.
    fn release_next(&mut self, tell: &mut Tell<'_>) {
        let due = self.next_due;
        if let Some(seat) = self.seats.iter().position(|seat| seat.next.is_some_and(|job| job.ready == due)) {
            self.release(tell, seat);
        }
        self.next_due =
            self.seats.iter().filter_map(|seat| seat.next.map(|job| job.ready)).min().unwrap_or(u64::MAX);
    }

    fn release(&mut self, tell: &mut Tell<'_>, seat: usize) {
        let horizon = self.run.horizon();
        // The run may end earlier than was planned.
        let job = self.seats[seat].take_next(horizon).filter(|job| job.arrival < horizon);
        let Some(job) = job else { return };
        self.release_job(tell, seat, job);
    }

    /// A job is ready. Where the mode does not want it, or one before has overrun, its release does not take place.
    pub(super) fn release_job(&mut self, tell: &mut Tell<'_>, seat: usize, job: Job) {
        let task = self.seats[seat].shared.id;
        let (deadline, now) = (Instant::from_ns(job.deadline), tell.now());
        let served = &mut self.served;
        let executed = |_| served.as_mut().map_or(0, |served| served.executed(now));
        if tell.release(task, deadline, executed).is_ok() {
            self.record(seat, Kind::Release, job.ready, job.number, job.arrival, 0);
            self.seats[seat].backlog.push_back(job);
        } else {
            self.seats[seat].shared.tally().counts.skipped += 1;
            self.record(seat, Kind::Skip, job.ready, job.number, job.arrival, 0);
        }
    }

    fn complete(
        &mut self,
        tell: &mut Tell<'_>,
        seat: usize,
        now: u64,
        executed: u64,
        returned: i32,
    ) -> Result<(), Rejected> {
        let is_demoted = std::mem::take(&mut self.seats[seat].demoted);
        if self.current != Some(seat) && !is_demoted {
            return self.count_rejected(Err(Rejected::NotRunning));
        }
        let told = tell.completion(self.seats[seat].shared.id);
        self.count_rejected(told)?;
        self.seats[seat].begun = false;
        if let Some(job) = self.seats[seat].backlog.pop_front() {
            self.account(seat, &job, now, executed, returned);
        }
        self.event_served(tell, seat, executed);
        Ok(())
    }

    fn account(&mut self, seat: usize, job: &Job, now: u64, executed: u64, returned: i32) {
        let shared = &self.seats[seat].shared;
        let mut tally = shared.tally();
        tally.returned(returned);
        let missed = tally.finished(job, now);
        let overran = executed > shared.wcet;
        tally.counts.overruns += u64::from(overran);
        let waits = !self.seats[seat].backlog.is_empty();
        tally.counts.vain_waits += u64::from(waits);
        drop(tally);
        self.record(seat, Kind::Completion, now, job.number, executed, 0);
        self.seats[seat].shared.publish_values(&self.ring, job, now);
        if missed {
            // Where the program is traced as a flight recorder, what led here is worth keeping.
            horolog_probe::session::snapshot::request();
            self.record(seat, Kind::Miss, now, job.number, job.deadline, 0);
        }
        if overran {
            self.record(seat, Kind::Overrun, now, job.number, executed, 0);
        }
        if waits {
            self.record(seat, Kind::VainWait, now, job.number + 1, 0, 0);
        }
    }

    /// Carries out what the machine wants.
    fn hand_over(&mut self, now: u64, choice: Choice<'_>) {
        let (caller, cause) = self.pass;
        let new = choice.task.map(|task: TaskId| self.seat_of[task.index()]);
        let has_more = |seat: &Seat| seat.begun && !seat.demoted && !seat.suspended;
        let old = self.current.filter(|&old| has_more(&self.seats[old]));
        if let Some(old) = old.filter(|&old| Some(old) != new) {
            if !self.leaves_queue(old) {
                return;
            }
            self.take_away(old, now, caller, cause);
        }
        if let Some(caller) = caller.filter(|&caller| Some(caller) != new) {
            self.park(caller);
        }
        if let Some(new) = new {
            let goes_on = self.current == Some(new) && self.seats[new].begun;
            if !goes_on || self.seats[new].parked || self.seats[new].lowered {
                self.give(new, now, caller, goes_on);
            } else if cause == Cause::Point && self.seats[new].flagged != 0 && !choice.should_yield() {
                self.seats[new].shared.tally().vain_yields += 1;
                let job = self.seats[new].backlog.front().map_or(0, |job| job.number);
                self.record(new, Kind::VainYield, now, job, 0, 0);
            }
        }
        self.follow_clock(new);
        self.current = new;
        self.flag(choice);
    }

    /// The caller's thread will sleep on its gate once it has left the monitor.
    fn park(&mut self, seat: usize) {
        let seat = &mut self.seats[seat];
        // A demoted job goes on in its own band.
        if !seat.demoted {
            seat.parked = true;
        }
        // One that leaves for a section elsewhere records more there.
        if !seat.demoted && !seat.away {
            seat.shared.ring.promise(u64::MAX);
        }
    }

    /// The job of `old`, which was granted the processor, loses it.
    fn take_away(&mut self, old: usize, now: u64, caller: Option<usize>, cause: Cause) {
        if self.take_grant_back(old) && self.seats[old].shared.is_preemptive {
            return self.forget_start(old, caller);
        }
        let job = self.seats[old].backlog.front().map_or(0, |job| job.number);
        let by_itself = caller == Some(old);
        let yields = by_itself && cause == Cause::Point;
        let mut tally = self.seats[old].shared.tally();
        if yields {
            tally.counts.yields += 1;
        } else {
            tally.counts.preemptions += 1;
        }
        drop(tally);
        self.record(old, if yields { Kind::Yield } else { Kind::Preempt }, now, job, 0, 0);
        self.clear_flag(old);
        // A thread that is inside a call of ours sleeps by itself; one in its own code is lowered.
        if !by_itself && !self.seats[old].parked && !self.seats[old].lowered {
            self.change_class(old, Class::Fifo(bands::WAIT));
            self.seats[old].lowered = true;
            self.hold(old);
        }
    }

    /// Takes back the grant of a job whose thread has not taken it yet. Whether that was so.
    fn take_grant_back(&mut self, seat: usize) -> bool {
        let place = &mut self.seats[seat];
        let is_back = !place.has_started() && place.shared.control.take_grant();
        if is_back {
            place.parked = true;
            place.shared.ring.promise(u64::MAX);
        }
        is_back
    }

    /// The job of `seat` has not started, and nothing of it is on record: it will be handed over anew.
    fn forget_start(&mut self, seat: usize, caller: Option<usize>) {
        let place = &mut self.seats[seat];
        place.begun = false;
        if caller != Some(seat) {
            let mut tally = place.shared.tally();
            tally.counts.switch_ins = tally.counts.switch_ins.saturating_sub(1);
        }
        self.clear_flag(seat);
    }

    /// `new` gets the processor.
    fn give(&mut self, new: usize, now: u64, caller: Option<usize>, goes_on: bool) {
        let starts = !self.seats[new].begun;
        if starts {
            self.start(new, now);
        } else if !goes_on {
            let job = self.seats[new].backlog.front().map_or(0, |job| job.number);
            self.record(new, Kind::Resume, now, job, 0, 0);
        }
        let seat = &mut self.seats[new];
        seat.shared.ring.promise(now);
        let follows_itself = caller == Some(new) && !seat.parked;
        if !follows_itself && !goes_on {
            seat.shared.tally().counts.switch_ins += 1;
        }
        if std::mem::take(&mut seat.held) {
            hold::release(&seat.shared.hold);
        }
        if std::mem::take(&mut seat.away) {
            self.fetch(new);
        }
        if std::mem::take(&mut self.seats[new].lowered) {
            self.change_class(new, Class::Fifo(bands::RUN));
        }
        let was_parked = std::mem::take(&mut self.seats[new].parked);
        if was_parked || starts {
            // A job starts by taking its grant, also where its thread goes on from the job before.
            let gate = &self.seats[new].shared.control.gate;
            gate.store(1, Ordering::Release);
            if was_parked && caller != Some(new) {
                let _ = futex::wake(gate, 1);
            }
        }
    }

    /// Brings a thread home whose job's section has ended elsewhere.
    fn fetch(&mut self, seat: usize) {
        let tid = self.seats[seat].shared.tid.load(Ordering::Relaxed);
        self.refused += u64::from(set_affinity(tid, &CpuSet::new([self.cpu])).is_err());
    }

    /// Stops a thread whose server may leave the order: no band is low enough for one that must not run at all.
    fn hold(&mut self, seat: usize) {
        let seat = &mut self.seats[seat];
        if seat.may_be_held {
            let tid = seat.shared.tid.load(Ordering::Relaxed);
            seat.held = hold::ask(tid, &seat.shared.hold).is_ok();
            self.refused += u64::from(!seat.held);
        }
    }

    /// Hands the oldest job to its thread, which notes the start itself once it has taken the grant. One that may not be preempted has
    /// the processor for good from this choice on, whoever is released before its thread is awake: that is its start.
    fn start(&mut self, seat: usize, now: u64) {
        self.seats[seat].begun = true;
        let Some(job) = self.seats[seat].backlog.front().copied() else { return };
        self.seats[seat].shared.assign(job);
        if !self.seats[seat].shared.is_preemptive {
            self.record(seat, Kind::Start, now, job.number, 0, 0);
        }
    }

    /// Shows the running job whether somebody waits for its preemption point.
    fn flag(&mut self, choice: Choice<'_>) {
        let Some(current) = self.current else { return };
        if !choice.should_yield() {
            self.clear_flag(current);
            return;
        }
        // The generation makes two flags in a row differ, so that a trace of the word tells them apart.
        let flag = SHOULD_YIELD | choice.generation() << 8;
        let seat = &mut self.seats[current];
        if seat.flagged != flag {
            seat.flagged = flag;
            seat.shared.control.raise_yield(flag);
            seat.shared.show_status(true);
        }
    }

    pub(super) fn clear_flag(&mut self, seat: usize) {
        let seat = &mut self.seats[seat];
        if seat.flagged != 0 {
            seat.flagged = 0;
            seat.shared.control.clear_yield();
            seat.shared.show_status(false);
        }
    }

    pub(super) fn change_class(&mut self, seat: usize, class: Class) {
        if self.has_bands {
            let tid = self.seats[seat].shared.tid.load(Ordering::Relaxed);
            self.refused += u64::from(set_class(tid, class).is_err());
        }
    }

    /// Counts what was released, or would have been, by the end of the run and has not completed.
    fn count_unfinished(&mut self, machine: &Machine) {
        let (horizon, closed) = (self.run.horizon(), self.run.closed());
        for seat in 0..self.seats.len() {
            while let Some(job) = self.seats[seat].backlog.pop_front() {
                self.seats[seat].shared.tally().unfinished(&job, closed);
            }
            while let Some(job) = self.seats[seat].take_next(horizon) {
                let is_active = machine.is_active(self.seats[seat].shared.id);
                if job.arrival < horizon && is_active {
                    self.record(seat, Kind::Release, job.ready, job.number, job.arrival, 0);
                    self.seats[seat].shared.tally().unfinished(&job, closed);
                }
            }
        }
    }
}
