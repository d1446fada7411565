//! Resources in the machine of one processor: what threads did by themselves is told before anything else, and what concerns
//! others goes through the monitor.

use super::driver::{Driver, HERE, Threads};
use crate::queued_locks::Came;
use crate::spin_locks::{Asked, Asks};
use horolog_model::TaskId;
use horolog_sched::{Grant, Rejected};
use horolog_trace::Kind;

/// A job waits for a resource: `extra` of [`Kind::Suspend`] and [`Kind::Wake`].
const OF_RESOURCE: u64 = 1;

impl Driver {
    /// Tells the machine what jobs have locked and unlocked since the last pass.
    pub(super) fn follow_locks(&mut self) {
        self.follow_spin_locks();
        let run = self.threads.run.clone();
        let is_local = |&resource: &usize| run.locks.is_local(resource);
        // What was let go of comes first: under the original ceiling it may keep its job from what is locked now.
        for locks in [false, true] {
            for resource in (0..run.locks.len()).filter(is_local) {
                let (word, known) = (run.locks.holder(resource), self.core.machine().holder(resource as u32));
                if word == known || !self.threads.holds_here(resource) {
                    continue;
                }
                // At the last instant that was told: releases that have come due since keep theirs.
                let mut tell = self.core.tell(HERE, 0);
                match (word, known) {
                    (Some(task), _) if locks => {
                        let told = tell.lock(task, resource as u32);
                        let _ = self.threads.count_rejected(told);
                    }
                    (_, Some(task)) if !locks => {
                        // Only a word that is not marked changes by itself, so nobody waits for it.
                        let told = tell.unlock(task, resource as u32);
                        let _ = self.threads.count_rejected(told);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Tells the machine what the job of this processor that waits for a spin lock, or holds one, has done since the last pass.
    fn follow_spin_locks(&mut self) {
        let (known, asks) = (self.threads.asks, self.threads.run.locks.spin.asks(self.threads.cpu));
        if known == asks {
            return;
        }
        self.threads.asks = asks;
        let run = self.threads.run.clone();
        let mut tell = self.core.tell(HERE, 0);
        let mut told = |told: Result<(), Rejected>| _ = self.threads.count_rejected(told);
        let is_same = known.zip(asks).is_some_and(|(known, asks)| {
            (known.task, known.resource) == (asks.task, asks.resource) && (asks.holds || !known.holds)
        });
        let before = known.filter(|_| !is_same);
        // One that may lose its place has, or has had the lock and let go since: the machine need not know which.
        let is_over = |it: &Asks| it.holds || !run.locks.spin.asks_anew(it.resource as usize);
        if let Some(Asks { task, resource, holds }) = before.filter(is_over) {
            if !holds {
                told(tell.lock(task, resource).map(|_| ()));
            }
            told(tell.unlock(task, resource).map(|_| ()));
        }
        match asks {
            Some(Asks { task, resource, holds: true }) => told(tell.lock(task, resource).map(|_| ())),
            Some(Asks { task, resource, holds: false }) => told(tell.spin(task, resource)),
            None => {}
        }
    }

    /// As [`Driver::mark_locks`], of spin locks; whether one was handed to a job that is preempted, or another job asks than the machine knows,
    /// so that it has to choose anew.
    pub(super) fn mark_spin_locks(&mut self) -> bool {
        if std::mem::take(&mut self.threads.keeps_turn) {
            return true;
        }
        let Some(Asks { task, holds, .. }) = self.threads.asks else { return false };
        let is_preempted = !holds && self.core.running(HERE) != Some(task);
        self.threads.run.locks.spin.mark(self.threads.cpu, task, is_preempted)
    }

    /// Whoever holds something from here on says so when it lets go: others may wait for that.
    pub(super) fn mark_locks(&mut self) {
        let run = &self.threads.run;
        let is_local = |&resource: &usize| run.locks.is_local(resource) && self.threads.holds_here(resource);
        for resource in (0..run.locks.len()).filter(is_local) {
            run.locks.mark(resource);
        }
    }

    /// The job of `seat` locks a resource of one processor that was taken: it has it now, or waits. Nothing, where its thread is not the one that runs.
    pub(crate) fn lock(&mut self, seat: usize, now: u64, resource: usize) {
        let Some(task) = self.asks(seat) else { return };
        let told = self.core.tell(HERE, now).lock(task, resource as u32);
        if let Ok(has_it) = self.threads.count_rejected(told) {
            self.note_request(seat, now, resource, has_it);
        }
    }

    /// The job of `seat` asks for a spin lock that it may lose its place for. Nothing, where its thread is not the one that runs.
    pub(crate) fn ask_to_spin(&mut self, seat: usize, now: u64, resource: usize) -> Option<Asked> {
        let task = self.asks(seat)?;
        let asked = self.threads.run.locks.spin.ask(resource, self.threads.cpu, task);
        if asked == Asked::Waits {
            self.threads.record(seat, Kind::Spin, now, self.job_in(seat), resource as u64, 0);
        }
        self.follow_spin_locks();
        Some(asked)
    }

    /// The job of `seat` asks for a resource that processors hand to each other: it has it now, or waits. Nothing, where its thread is not the one that
    /// runs, or has to come again.
    pub(crate) fn request(&mut self, seat: usize, now: u64, resource: usize) {
        let Some(task) = self.asks(seat) else { return };
        if self.core.machine().waits_for(task).is_some() {
            // It is in the queue already.
            return;
        }
        let Came::Done(has_it) = self.threads.run.locks.queued.request(resource, task, now) else { return };
        let mut tell = self.core.tell(HERE, now);
        let told = match has_it {
            true => tell.lock(task, resource as u32).map(|_| ()),
            false => tell.spin(task, resource as u32),
        };
        // The queue has it by now, whatever the machine says.
        let _ = self.threads.count_rejected(told);
        self.note_request(seat, now, resource, has_it);
    }

    /// The job of `seat` asks for a resource whose sections execute on its own processor: it is suspended here, and its thread goes there. Whether its
    /// section may begin at once; `None`: as for [`Driver::request`], nothing.
    pub(crate) fn leave_for(&mut self, seat: usize, now: u64, resource: usize) -> Option<bool> {
        let task = self.asks(seat)?;
        let Came::Done(may_begin) = self.threads.run.locks.queued.request(resource, task, now) else {
            return None;
        };
        let told = self.core.tell(HERE, now).spin(task, resource as u32);
        let _ = self.threads.count_rejected(told);
        self.note_request(seat, now, resource, false);
        if may_begin {
            self.threads.record(seat, Kind::Lock, now, self.job_in(seat), resource as u64, 0);
        }
        let seat = &mut self.threads.seats[seat];
        (seat.away, seat.lowered) = (true, true);
        Some(may_begin)
    }

    /// Whose job asks from `seat`, where its thread is the one that runs.
    fn asks(&mut self, seat: usize) -> Option<TaskId> {
        let runs = if self.threads.current == Some(seat) { Ok(()) } else { Err(Rejected::NotRunning) };
        self.threads.count_rejected(runs).ok()?;
        Some(self.threads.seats[seat].shared.id)
    }

    /// The job of `seat` has a resource that it asked for, or is suspended until it may ask again or is handed it.
    fn note_request(&mut self, seat: usize, now: u64, resource: usize, has_it: bool) {
        let job = self.job_in(seat);
        if has_it {
            self.threads.run.locks.set(resource, Some(self.threads.seats[seat].shared.id));
            self.threads.record(seat, Kind::Lock, now, job, resource as u64, 0);
        } else {
            self.threads.seats[seat].suspended = true;
            self.threads.record(seat, Kind::Suspend, now, job, resource as u64, OF_RESOURCE);
        }
    }

    /// The number of the oldest job of a seat.
    fn job_in(&self, seat: usize) -> u64 {
        self.threads.seats[seat].backlog.front().map_or(0, |job| job.number)
    }

    /// The job of `seat` lets go of a resource. Who waited, for it or for another one that was free, asks again.
    pub(crate) fn unlock(&mut self, seat: usize, now: u64, resource: usize) {
        let task = self.threads.seats[seat].shared.id;
        let mut tell = self.core.tell(HERE, now);
        let told = tell.unlock(task, resource as u32);
        self.threads.run.locks.set(resource, None);
        for woken in self.threads.count_rejected(told).unwrap_or_default() {
            let seat = self.threads.seat_of[woken.task.index()];
            self.threads.seats[seat].suspended = false;
            let job = self.threads.seats[seat].backlog.front().map_or(0, |job| job.number);
            self.threads.record(seat, Kind::Wake, now, job, woken.resource.into(), OF_RESOURCE);
        }
    }

    /// The job of `seat` lets go of a resource that processors hand to each other; `how` as the record's `extra` has it. Whether it has to come again.
    pub(crate) fn hand_on(&mut self, seat: usize, now: u64, resource: usize, how: u64) -> bool {
        let (task, locks) = (self.threads.seats[seat].shared.id, &self.threads.run.locks);
        // Whoever has it next says so itself, and may do that at once.
        locks.set(resource, None);
        let Came::Done(next) = locks.queued.release(resource, task, now) else {
            locks.set(resource, Some(task));
            return true;
        };
        let told = self.core.tell(HERE, now).unlock(task, resource as u32).map(|_| ());
        let _ = self.threads.count_rejected(told);
        self.threads.record(seat, Kind::Unlock, now, self.job_in(seat), resource as u64, how);
        if let Some(grant) = next {
            self.has_now(grant, now);
        }
        false
    }

    /// Tells the machine what other processors have handed to jobs of this one.
    pub(super) fn follow_grants(&mut self, now: u64) {
        while let Some(grant) = self.threads.run.locks.queued.next_handed(self.threads.cpu, now) {
            self.has_now(grant, now);
        }
    }

    /// A job that was suspended holds what it waited for.
    fn has_now(&mut self, Grant { task, resource }: Grant, now: u64) {
        if self.threads.run.locks.queued.remote.is_one(resource as usize) {
            return self.comes_home(task, resource, now);
        }
        let told = self.core.tell(HERE, now).lock(task, resource);
        let _ = self.threads.count_rejected(told);
        self.threads.run.locks.set(resource as usize, Some(task));
        let seat = self.threads.seat_of[task.index()];
        self.threads.seats[seat].suspended = false;
        let job = self.job_in(seat);
        self.threads.record(seat, Kind::Wake, now, job, resource.into(), OF_RESOURCE);
        self.threads.record(seat, Kind::Lock, now, job, resource.into(), 0);
    }

    /// The section of a job has ended elsewhere: the job is ready here.
    fn comes_home(&mut self, task: TaskId, resource: u32, now: u64) {
        let told = self.core.tell(HERE, now).unlock(task, resource).map(|_| ());
        let _ = self.threads.count_rejected(told);
        let seat = self.threads.seat_of[task.index()];
        self.threads.seats[seat].suspended = false;
        self.threads.record(seat, Kind::Wake, now, self.job_in(seat), resource.into(), OF_RESOURCE);
    }

    /// Whether another processor may hand something to a job of this one.
    pub(super) fn may_be_handed(&self) -> bool {
        let waits = |seat: &super::seat::Seat| {
            let resource = seat.suspended.then(|| self.core.machine().waits_for(seat.shared.id)).flatten();
            resource.is_some_and(|resource| self.threads.run.locks.queued.is_one(resource as usize))
        };
        self.threads.seats.iter().any(waits)
    }
}

impl Threads {
    /// Another job than `old` was chosen: where that one spins and loses its place by that, it leaves the queue. `false`: it has its turn already, and the machine has to
    /// learn of that first.
    pub(super) fn leaves_queue(&mut self, old: usize) -> bool {
        let own = self.seats[old].shared.id;
        let spins =
            |it: &Asks| it.task == own && !it.holds && self.run.locks.spin.asks_anew(it.resource as usize);
        let Some(Asks { resource, .. }) = self.asks.filter(spins) else { return true };
        let is_away = self.run.locks.spin.withdraw(resource as usize, self.cpu, own);
        if is_away {
            self.asks = None;
        }
        self.keeps_turn = !is_away;
        is_away
    }
}
