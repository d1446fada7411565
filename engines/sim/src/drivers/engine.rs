//! The loop of a system with drivers, around the phases of the plain engine.
//!
//! At one instant: what ends (jobs, handlers, softirqs), releases, events of devices, what the kernel begins, the choice.

use super::source::Driven;
use crate::engine::{Core, End, Engine};
use crate::error::Reason;
use crate::lane::{Lane, NEVER, NONE, WATCHED};
use horolog_model::{Role, TaskId};
use horolog_sched::{Event, EventKind};
use horolog_time::Instant;
use horolog_trace::{Kind, Sink};

/// Runs to the end; returns how and when it ended.
pub(super) fn run<K: Sink>(engine: &mut Engine<'_, Driven, K>) -> Result<(End, u64), Reason> {
    engine.begin();
    let (lanes, core) = (&mut engine.lanes, &mut engine.core);
    let mut now = 0;
    let end = loop {
        let times = lanes.iter().zip(&core.source.processors);
        let times = times.map(|(lane, processor)| lane.next_time().min(processor.next_time()));
        let (index, time) = times.enumerate().min_by_key(|&(_, time)| time).unwrap_or((0, NEVER));
        if time >= core.barrier {
            match core.pass_barrier(lanes, time, now) {
                Some(end) => break end,
                None => continue,
            }
        }
        now = time;
        core.step_driven(&mut lanes[index], index, now)?;
        if let Some(end) = core.end_after(now) {
            break end;
        }
    };
    for (index, lane) in lanes.iter_mut().enumerate() {
        if lane.has_timers {
            core.report_execution::<WATCHED>(lane, end.1);
        }
        if end.0 == End::Horizon {
            // What finishes exactly at the horizon is finished.
            core.job_stretch_ends(lane, index, end.1)?;
            core.kernel_work_ends(lane, index, end.1)?;
        }
    }
    Ok(end)
}

impl<K: Sink> Core<'_, Driven, K> {
    fn step_driven(&mut self, lane: &mut Lane, index: usize, now: u64) -> Result<(), Reason> {
        self.steps += 1;
        if lane.has_timers {
            self.report_execution::<WATCHED>(lane, now);
        }
        self.job_stretch_ends(lane, index, now)?;
        self.kernel_work_ends(lane, index, now)?;
        if lane.next_interrupt <= now {
            let before = lane.kernel_until.max(now);
            lane.serve_interrupts(now);
            let stolen = lane.kernel_until.max(now) - before;
            self.source.processors[index].delay(stolen);
        }
        if lane.has_timers {
            self.fire_wall_timers(lane, now);
        }
        self.release_due::<WATCHED>(lane, now)?;
        self.device_events(lane, index, now)?;
        self.begin_kernel_work(lane, index, now)?;
        if lane.has_timers {
            self.fire_wall_timers(lane, now);
            if self.machine.has_changed(lane.processor) {
                self.note_servers(lane, now);
            }
        }
        if lane.choice_due && lane.kernel_until <= now {
            self.choose::<WATCHED>(lane, now);
        }
        if lane.has_timers {
            lane.watch_timers::<WATCHED>(now);
        }
        Ok(())
    }

    /// The running job ends, asks for something, or its event is worked off.
    fn job_stretch_ends(&mut self, lane: &mut Lane, index: usize, now: u64) -> Result<(), Reason> {
        if lane.finish != now || lane.running == NONE {
            return Ok(());
        }
        let task = lane.running;
        match self.source.role(task) {
            Role::Task => match self.source.portions[task as usize].advance() {
                Some((request, rest)) => self.ask(lane, index, request, rest, now),
                None => self.segment_ends(lane, now),
            },
            Role::Handler(device) => {
                let (_, device) = self.source.places[device];
                self.segment_ends(lane, now);
                self.completed -= 1;
                self.event_done(lane, index, device, now)?;
                self.source.processors[index].unmask_if_idle(device);
            }
            Role::Background => {
                self.segment_ends(lane, now);
                self.completed -= 1;
                if let Some(device) = self.source.processors[index].in_background.take() {
                    self.source.processors[index].devices[device].counts.in_background += 1;
                    self.event_done(lane, index, device, now)?;
                    let processor = &mut self.source.processors[index];
                    processor.devices[device].pending = !processor.devices[device].ring.is_empty();
                    processor.unmask_if_idle(device);
                }
                self.wake_background(lane, index, now)?;
            }
        }
        Ok(())
    }

    /// A job's start phase is over: it asks, and waits or goes on.
    fn ask(&mut self, lane: &mut Lane, index: usize, request: usize, rest: u64, now: u64) {
        let task = lane.running;
        let asked = &mut self.source.requests[request];
        asked.asked += 1;
        let (_, device) = self.source.places[asked.device];
        let device = &mut self.source.processors[index].devices[device];
        let is_there = if asked.is_closed {
            device.ask(request, now);
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
        lane.choice_due = true;
        if is_there || !self.source.requests[request].waits {
            lane.finish = now + rest;
            return;
        }
        self.source.requests[request].waiting_since = Some(now);
        let taken =
            self.machine.on(Event::at(Instant::from_ns(now), EventKind::Block { task: TaskId(task) }));
        debug_assert_eq!(taken, Ok(()));
        (lane.running, lane.finish) = (NONE, NEVER);
        self.tasks[task as usize].remaining = rest;
        let job = self.tasks[task as usize].completed;
        self.emit(lane, now, Kind::Suspend, task, job, request as u64, 0);
        self.lend_priorities(lane, index, now);
    }

    /// The task that waits with a request goes on.
    pub(super) fn wake(&mut self, lane: &mut Lane, index: usize, request: usize, now: u64) {
        let waiting = &mut self.source.requests[request];
        let Some(since) = waiting.waiting_since.take() else { return };
        waiting.answer(since, now);
        let task = waiting.task;
        let taken = self.machine.on(Event::at(Instant::from_ns(now), EventKind::Wake { task: TaskId(task) }));
        debug_assert_eq!(taken, Ok(()));
        lane.choice_due = true;
        let job = self.tasks[task as usize].completed;
        self.emit(lane, now, Kind::Wake, task, job, request as u64, 0);
        self.lend_priorities(lane, index, now);
    }
}
