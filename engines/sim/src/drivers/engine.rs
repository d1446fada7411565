//! A system with drivers as a world of the driver of `sched`, around the phases of the plain one.
//!
//! At one instant: what ends (jobs, handlers, softirqs), timers, releases, events of devices, what the kernel begins, the choice.

use super::source::Driven;
use crate::engine::{Core, End, Engine};
use crate::error::Reason;
use crate::lane::{Lane, NEVER, NONE};
use crate::world::{Run, run as run_world};
use horolog_model::{Role, TaskId};
use horolog_sched::{Choice, ModeChange, Note, Tell, World, Worlds};
use horolog_trace::{Kind, Sink};

/// Runs to the end; returns how and when it ended.
pub(super) fn run<K: Sink>(engine: &mut Engine<'_, Driven, K>) -> Result<(End, u64), Reason> {
    let Engine { driver, lanes, core } = engine;
    core.begin(lanes);
    run_world(driver, &mut DrivenSimulation { core, lanes })
}

/// One processor of a simulation with drivers.
struct WithDrivers<'w, 'a, K> {
    core: &'w mut Core<'a, Driven, K>,
    lane: &'w mut Lane,
    place: usize,
}

impl<K: Sink> World for WithDrivers<'_, '_, K> {
    type Error = Reason;
    const NOTES: bool = K::ACTIVE;

    fn next(&self) -> u64 {
        self.lane.next_time().min(self.core.source.processors[self.place].next_time())
    }

    fn ready_at(&self) -> u64 {
        self.lane.kernel_until
    }

    fn ends(&self, _: u64) -> bool {
        true
    }

    fn executed(&mut self, now: u64, _: u64) -> u64 {
        self.lane.executed(now)
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Reason> {
        let now = tell.now();
        let Self { core, lane, place } = self;
        core.job_stretch_ends(tell, lane, *place, now)?;
        core.kernel_work_ends(tell, lane, *place, now)?;
        if lane.next_interrupt <= now {
            let before = lane.kernel_until.max(now);
            lane.serve_interrupts(now);
            let stolen = lane.kernel_until.max(now) - before;
            core.source.processors[*place].delay(stolen);
        }
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Reason> {
        let now = tell.now();
        let Self { core, lane, place } = self;
        core.release_due(tell, lane, now)?;
        core.device_events(tell, lane, *place, now)?;
        core.begin_kernel_work(tell, lane, *place, now)
    }

    fn mode_changed(&mut self, now: u64, change: ModeChange<'_>) {
        self.core.mode_changed(self.lane, now, change);
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        let next = choice.task.map_or(NONE, |task| task.0);
        self.core.carry_out(self.lane, next, now);
    }

    fn note(&mut self, now: u64, note: Note) {
        self.core.note(self.lane, now, note);
    }

    fn noted(&mut self, count: u64) {
        self.core.events += count;
    }

    fn called_timer(&mut self) -> bool {
        self.core.called_timer()
    }

    fn goes_on(&mut self, now: u64) -> bool {
        self.core.goes_on(now)
    }
}

/// The processors of a simulation with drivers.
struct DrivenSimulation<'w, 'a, K> {
    core: &'w mut Core<'a, Driven, K>,
    lanes: &'w mut [Lane],
}

impl<'a, K: Sink> Worlds for DrivenSimulation<'_, 'a, K> {
    type Error = Reason;
    type One<'o>
        = WithDrivers<'o, 'a, K>
    where
        Self: 'o;

    fn one(&mut self, place: usize) -> WithDrivers<'_, 'a, K> {
        WithDrivers { core: self.core, lane: &mut self.lanes[place], place }
    }
}

impl<K: Sink> Run for DrivenSimulation<'_, '_, K> {
    fn until(&self) -> u64 {
        self.core.limits.until
    }

    fn end_after(&mut self, now: u64) -> Option<(End, u64)> {
        self.core.end_after(now)
    }

    fn ends_with_horizon(&mut self, place: usize, tell: &mut Tell<'_>) -> Result<(), Reason> {
        let now = tell.now();
        self.core.job_stretch_ends(tell, &mut self.lanes[place], place, now)?;
        self.core.kernel_work_ends(tell, &mut self.lanes[place], place, now)
    }

    fn places(&self) -> usize {
        self.lanes.len()
    }
}

impl<K: Sink> Core<'_, Driven, K> {
    /// The running job ends, asks for something, or its event is worked off.
    fn job_stretch_ends(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        now: u64,
    ) -> Result<(), Reason> {
        if lane.finish != now || lane.running == NONE {
            return Ok(());
        }
        let task = lane.running;
        match self.source.role(task) {
            Role::Task => match self.source.portions[task as usize].advance() {
                Some((request, rest)) => self.ask(tell, lane, index, request, rest, now),
                None => self.segment_ends(tell, lane, now),
            },
            Role::Handler(device) => {
                let (_, device) = self.source.places[device];
                self.segment_ends(tell, lane, now);
                self.completed -= 1;
                self.event_done(tell, lane, index, device, now)?;
                self.source.processors[index].unmask_if_idle(device);
            }
            Role::Background => {
                self.segment_ends(tell, lane, now);
                self.completed -= 1;
                if let Some(device) = self.source.processors[index].in_background.take() {
                    self.source.processors[index].devices[device].counts.in_background += 1;
                    self.event_done(tell, lane, index, device, now)?;
                    let processor = &mut self.source.processors[index];
                    processor.devices[device].pending = !processor.devices[device].ring.is_empty();
                    processor.unmask_if_idle(device);
                }
                self.wake_background(tell, lane, index, now)?;
            }
        }
        Ok(())
    }

    /// A job's start phase is over: it asks, and waits or goes on.
    fn ask(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        request: usize,
        rest: u64,
        now: u64,
    ) {
        let task = lane.running;
        let asked = &mut self.source.requests[request];
        asked.asked += 1;
        let (_, device) = self.source.places[asked.device];
        let device = &mut self.source.processors[index].devices[device];
        let is_there = if asked.is_closed {
            device.machine.release(now, request as u32, asked.priority);
            false
        } else if asked.has_stream {
            let some = asked.unread > 0;
            asked.unread -= u64::from(some);
            some
        } else {
            let some = device.unread > 0;
            device.unread -= u64::from(some);
            some
        };
        if is_there {
            asked.answer(now, now);
        }
        self.tasks[task as usize].executed += rest;
        if is_there || !self.source.requests[request].waits {
            lane.begin(now, rest);
            tell.choice_is_due();
            return;
        }
        self.source.requests[request].waiting_since = Some(now);
        let told = tell.block(TaskId(task));
        debug_assert_eq!(told, Ok(()));
        (lane.running, lane.finish) = (NONE, NEVER);
        self.tasks[task as usize].remaining = rest;
        let job = self.tasks[task as usize].oldest;
        self.emit(lane, now, Kind::Suspend, task, job, request as u64, 0);
        self.lend_priorities(tell, index);
    }

    /// The task that waits with a request goes on.
    pub(super) fn wake(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        request: usize,
        now: u64,
    ) {
        let waiting = &mut self.source.requests[request];
        let Some(since) = waiting.waiting_since.take() else { return };
        waiting.answer(since, now);
        let task = waiting.task;
        let told = tell.wake(TaskId(task));
        debug_assert_eq!(told, Ok(()));
        let job = self.tasks[task as usize].oldest;
        self.emit(lane, now, Kind::Wake, task, job, request as u64, 0);
        self.lend_priorities(tell, index);
    }
}
