//! A task's thread under the agent: it sleeps on its gate, runs the job that it is given, and says when it is done.

use super::cpu::CpuAgent;
use super::driver::Cause;
use crate::RecordLevel;
use crate::body::TaskBody;
use crate::control::WATCHED;
use crate::job::{Job, Runtime};
use crate::queued_locks::Came;
use crate::spin_locks::{Asked, Turn};
use crate::task_shared::TaskShared;
use crate::watch;
use horolog_sys::{clock, futex};
use horolog_trace::{Kind, LEFT_LOCKED};
use std::sync::atomic::Ordering;

/// What a job's calls do under the agent.
struct Driven<'a> {
    agent: &'a CpuAgent,
    seat: usize,
}

/// The jobs of the task in `seat`, from the common start to the end of the run.
pub(crate) fn run_jobs(agent: &CpuAgent, task: &TaskShared, seat: usize, body: &mut dyn TaskBody) {
    let driven = Driven { agent, seat };
    while let Some(started) = wait_for_start(agent, task) {
        if !run_job(&driven, task, body, started) {
            break;
        }
    }
    task.ring.promise(u64::MAX);
}

/// Sleeps until a job is granted and takes it: the instant at which it starts, `None` where the run is over. A grant that is taken
/// back between the reading of the clock and the taking was none: the job starts with the next one.
fn wait_for_start(agent: &CpuAgent, task: &TaskShared) -> Option<u64> {
    loop {
        if agent.run.is_stopping() {
            return None;
        }
        let now = agent.now();
        if task.control.take_grant() {
            return Some(now);
        }
        let _ = futex::wait(&task.control.gate, 0, u64::MAX);
    }
}

/// Sleeps on the gate; `false` where the run is over.
fn wait_for_grant(agent: &CpuAgent, task: &TaskShared) -> bool {
    while !task.control.take_grant() {
        if agent.run.is_stopping() {
            return false;
        }
        let _ = futex::wait(&task.control.gate, 0, u64::MAX);
    }
    !agent.run.is_stopping()
}

/// One job, which starts at `started`. `false` where the run is over.
fn run_job(driven: &Driven<'_>, task: &TaskShared, body: &mut dyn TaskBody, started: u64) -> bool {
    let Driven { agent, seat } = *driven;
    let facts = task.assigned();
    let begun = clock::thread_cpu_ns();
    task.begin(facts.number, begun);
    if task.is_preemptive {
        task.record(Kind::Start, started, facts.number, 0, 0);
    }
    if task.links.has_any() {
        task.latch(&facts, agent.now());
    }
    let mut job = Job { facts, task, run: &agent.run, runtime: driven, next: None };
    let returned = body.job(&mut job);
    // One that was asked to end may have left its section for that.
    let was_asked = agent.run.is_stopping() || task.control.must_end.load(Ordering::Relaxed);
    let how = if was_asked { 0 } else { LEFT_LOCKED };
    for resource in 0..agent.run.locks.len() {
        if agent.run.locks.is_held_by(resource, task) {
            driven.let_go(task, facts.number, resource, how);
            task.tally().left_locked += 1;
        }
    }
    task.crash.leave_code();
    task.put_values(&facts);
    // Without what it has spun for locks.
    let begun = task.control.cpu_at_start.load(Ordering::Relaxed);
    let executed = clock::thread_cpu_ns().saturating_sub(begun);
    watch::at_end(task, executed, agent.now(), facts.number);
    task.end(executed);
    loop {
        if agent.run.is_stopping() {
            return false;
        }
        let (told, parks) =
            agent.pass(seat, Cause::Other, |driver, now| driver.complete(seat, now, executed, returned));
        if told.is_ok() {
            return true;
        }
        // Somebody else is meant to run: this thread got the processor because that one sleeps in its own code.
        if parks && !wait_for_grant(agent, task) {
            return false;
        }
    }
}

impl Driven<'_> {
    /// What a job has done with a resource. Who records nothing reads no clock.
    fn note(&self, task: &TaskShared, kind: Kind, job: u64, resource: usize, extra: u64) {
        if task.record != RecordLevel::Nothing {
            task.record(kind, self.agent.now(), job, resource as u64, extra);
        }
    }

    /// The job holds a resource no more; `how` as the record's `extra` has it.
    fn let_go(&self, task: &TaskShared, job: u64, resource: usize, how: u64) {
        if self.agent.run.locks.queued.remote.is_one(resource) {
            return self.come_home(task, job, resource, how);
        }
        if self.agent.run.locks.queued.is_one(resource) {
            return self.hand_on(task, resource, how);
        }
        // Its record comes first: whoever gets the processor by it is recorded behind.
        self.note(task, Kind::Unlock, job, resource, how);
        if self.agent.run.locks.spin.is_one(resource) {
            if self.agent.run.locks.spin.let_go(resource, task.cpu) {
                // Somebody waits here for its end: the pass finds that it is over.
                let (_, parks) = self.agent.pass(self.seat, Cause::Other, |_, _| ());
                if parks {
                    let _ = wait_for_grant(self.agent, task);
                }
            }
            return;
        }
        if self.agent.run.locks.try_unlock(resource, task.id) {
            return;
        }
        let (_, parks) =
            self.agent.pass(self.seat, Cause::Other, |driver, now| driver.unlock(self.seat, now, resource));
        if parks {
            let _ = wait_for_grant(self.agent, task);
        }
    }

    /// The job lets go of a resource that processors hand to each other.
    fn hand_on(&self, task: &TaskShared, resource: usize, how: u64) {
        loop {
            let (comes_again, parks) = self
                .agent
                .pass(self.seat, Cause::Other, |driver, now| driver.hand_on(self.seat, now, resource, how));
            if parks && !wait_for_grant(self.agent, task) || !comes_again {
                return;
            }
        }
    }

    /// The job asks for a resource whose sections execute on its own processor: its thread goes there, and comes back once the section may begin.
    fn go_elsewhere(&self, task: &TaskShared, job: u64, resource: usize) {
        let (seat, run) = (self.seat, &self.agent.run);
        let may_begin = loop {
            if run.is_stopping() {
                return;
            }
            let (left, parks) =
                self.agent.pass(seat, Cause::Other, |driver, now| driver.leave_for(seat, now, resource));
            match left {
                Some(may_begin) => break may_begin,
                // Somebody else is meant to run, or it has to come again.
                None if parks && !wait_for_grant(self.agent, task) => return,
                None => {}
            }
        };
        if !run.locks.queued.remote.go(resource, self.agent.has_bands()) {
            task.tally().note = Some(
                "the kernel did not let its thread go to the CPU of a resource: sections executed elsewhere",
            );
        }
        if !may_begin {
            if !run.locks.queued.remote.wait(task.id, || run.is_stopping()) {
                return;
            }
            self.note(task, Kind::Lock, job, resource, 0);
        }
        run.locks.set(resource, Some(task.id));
    }

    /// The section has ended on the processor of its resource: the thread sleeps until its job is chosen on its own one.
    fn come_home(&self, task: &TaskShared, job: u64, resource: usize, how: u64) {
        let locks = &self.agent.run.locks;
        // Whoever has it next says so itself, and may do that at once.
        locks.set(resource, None);
        let ended = loop {
            let now = self.agent.now();
            match locks.queued.end_section(resource, task.id, now) {
                Came::TooEarly => {}
                Came::Done(()) => break now,
            }
        };
        if task.record != RecordLevel::Nothing {
            task.record(Kind::Unlock, ended, job, resource as u64, how);
        }
        task.ring.promise(u64::MAX);
        locks.queued.send_home(resource, task.id, ended);
        let _ = wait_for_grant(self.agent, task);
    }

    /// The job asks for a spin lock, and spins until it has it; how much processor time that took.
    fn spin(&self, task: &TaskShared, job: u64, resource: usize) -> u64 {
        let (locks, agent) = (&self.agent.run.locks.spin, self.agent);
        let asked = loop {
            match locks.ask(resource, task.cpu, task.id) {
                Asked::IsBehind if agent.run.is_stopping() => return 0,
                Asked::IsBehind => self.let_the_other_end(task),
                asked => break asked,
            }
        };
        if asked == Asked::Has {
            self.note(task, Kind::Lock, job, resource, 0);
            return 0;
        }
        let from = clock::thread_cpu_ns();
        self.note(task, Kind::Spin, job, resource, 0);
        while !locks.has_turn(resource, task.cpu) {
            if agent.run.is_stopping() {
                // The run is over, and nothing is handed on any more.
                return 0;
            }
            std::hint::spin_loop();
        }
        self.note(task, Kind::Lock, job, resource, 0);
        // What it has spun is none of what it has executed.
        let spun = clock::thread_cpu_ns().saturating_sub(from);
        task.control.cpu_at_start.fetch_add(spun, Ordering::Relaxed);
        spun
    }

    /// As [`Driven::spin`], where a job that is preempted loses its place and asks anew.
    fn spin_preemptably(&self, task: &TaskShared, job: u64, resource: usize) -> u64 {
        let (locks, agent) = (&self.agent.run.locks.spin, self.agent);
        if locks.ask_if_free(resource, task.cpu, task.id) {
            self.note(task, Kind::Lock, job, resource, 0);
            return 0;
        }
        let from = clock::thread_cpu_ns();
        loop {
            if agent.run.is_stopping() {
                return 0;
            }
            let seat = self.seat;
            let (asked, parks) =
                agent.pass(seat, Cause::Other, |driver, now| driver.ask_to_spin(seat, now, resource));
            if parks && !wait_for_grant(agent, task) {
                return 0;
            }
            let has_it = match asked {
                Some(Asked::Has) => true,
                Some(Asked::Waits) => self.waits_for_turn(task, resource),
                Some(Asked::IsBehind) => {
                    self.let_the_other_end(task);
                    false
                }
                // Somebody else is meant to run.
                None => false,
            };
            if has_it {
                break;
            }
        }
        self.note(task, Kind::Lock, job, resource, 0);
        // What it has spun is none of what it has executed.
        let spun = clock::thread_cpu_ns().saturating_sub(from);
        task.control.cpu_at_start.fetch_add(spun, Ordering::Relaxed);
        spun
    }

    /// Spins until the job has its turn; `false`: it has lost its place, or the run is over.
    fn waits_for_turn(&self, task: &TaskShared, resource: usize) -> bool {
        loop {
            match self.agent.run.locks.spin.turn(resource, task.cpu, task.id) {
                Turn::Has => return true,
                Turn::IsLost => return false,
                Turn::Waits if self.agent.run.is_stopping() => return false,
                Turn::Waits => std::hint::spin_loop(),
            }
        }
    }

    /// Another job of the processor waits for a spin lock or holds one, and this one got the processor because that one sleeps in its own code, or
    /// because a thread was moved.
    fn let_the_other_end(&self, task: &TaskShared) {
        /// How long it gets the processor where the machine knows nothing better.
        const A_WHILE: u64 = 20_000;
        let (_, parks) = self.agent.pass(self.seat, Cause::Other, |_, _| ());
        if parks {
            let _ = wait_for_grant(self.agent, task);
        } else {
            let _ = clock::sleep_until(clock::monotonic_ns() + A_WHILE);
        }
    }
}

impl Runtime for Driven<'_> {
    fn point(&self, task: &TaskShared, job: u64, next: Option<u32>, willing: bool) -> bool {
        let _out = task.crash.out_of_code();
        let attention = task.control.attention.load(Ordering::Acquire);
        let waiting = task.somebody_waits(attention);
        // A point that only asks makes its one call and nothing else.
        let monitors = task.record == RecordLevel::All || task.is_enforced();
        if attention & WATCHED != 0 && monitors {
            let now = self.agent.now();
            let crossing = task.cross(next);
            let overran = crossing.is_some_and(|crossing| watch::at_crossing(task, crossing, now, job));
            if task.record == RecordLevel::All {
                let entered = crossing.map_or(0, |crossing| crossing.entered);
                task.record(Kind::PreemptionPoint, now, job, entered as u64, u64::from(waiting));
            }
            if overran && task.is_enforced() {
                // The agent's timer would come a little later; from here the job can end at once.
                let (_, parks) = self.agent.pass(self.seat, Cause::Other, |_, _| ());
                if parks {
                    let _ = wait_for_grant(self.agent, task);
                }
            }
        }
        if waiting && willing {
            let seat = self.seat;
            let (_, parks) = self.agent.pass(seat, Cause::Point, |driver, now| driver.point(seat, now));
            if parks {
                let _ = wait_for_grant(self.agent, task);
            }
        }
        waiting
    }

    fn ask(&self, task: &TaskShared, request: usize) {
        let _out = task.crash.out_of_code();
        loop {
            let seat = self.seat;
            let (told, parks) =
                self.agent.pass(seat, Cause::Other, |driver, now| driver.ask(seat, now, request));
            if parks && !wait_for_grant(self.agent, task) {
                return;
            }
            // Refused: somebody else was meant to run, and slept in its own code.
            if told.is_ok() || self.agent.run.is_stopping() {
                return;
            }
        }
    }

    fn request_mode(&self, task: &TaskShared, mode: u32) {
        let _out = task.crash.out_of_code();
        let (_, parks) =
            self.agent.pass(self.seat, Cause::Other, |driver, now| driver.request_mode(now, mode));
        if parks {
            let _ = wait_for_grant(self.agent, task);
        }
    }

    fn lock(&self, task: &TaskShared, job: u64, resource: usize) -> u64 {
        let _out = task.crash.out_of_code();
        let locks = &self.agent.run.locks;
        if locks.spin.asks_anew(resource) {
            return self.spin_preemptably(task, job, resource);
        }
        if locks.spin.is_one(resource) {
            return self.spin(task, job, resource);
        }
        if locks.queued.remote.is_one(resource) {
            self.go_elsewhere(task, job, resource);
            return 0;
        }
        loop {
            let is_local = locks.is_local(resource);
            if is_local && !locks.may_be_barred(resource, task.id) && locks.try_lock(resource, task.id) {
                self.note(task, Kind::Lock, job, resource, 0);
                return 0;
            }
            if self.agent.run.is_stopping() {
                return 0;
            }
            let seat = self.seat;
            let (_, parks) = self.agent.pass(seat, Cause::Other, |driver, now| match is_local {
                true => driver.lock(seat, now, resource),
                false => driver.request(seat, now, resource),
            });
            // Where it had to wait, it asks again once it is chosen.
            if parks && !wait_for_grant(self.agent, task) || locks.holder(resource) == Some(task.id) {
                return 0;
            }
        }
    }

    fn unlock(&self, task: &TaskShared, job: u64, resource: usize) {
        let _out = task.crash.out_of_code();
        self.let_go(task, job, resource, 0);
    }

    fn set_preemptible(&self, task: &TaskShared, _job: u64, preemptible: bool) {
        let _out = task.crash.out_of_code();
        let seat = self.seat;
        let (_, parks) =
            self.agent.pass(seat, Cause::Other, |driver, now| driver.set_preemptible(seat, now, preemptible));
        if parks {
            let _ = wait_for_grant(self.agent, task);
        }
    }
}
