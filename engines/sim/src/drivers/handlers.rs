//! What the kernel does above the threads: it takes events, runs handlers and softirq rounds, and wakes threads.

use super::device::{Addressee, DeviceEvent, Where};
use super::processor::Hard;
use super::rounds::Next;
use super::source::Driven;
use crate::engine::Core;
use crate::error::Reason;
use crate::lane::{Lane, NEVER};
use horolog_model::Priority;
use horolog_sched::Tell;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Sink};

impl<K: Sink> Core<'_, Driven, K> {
    /// Events of devices, answers of devices, lines of their own and lines that were held back, all due now.
    pub(super) fn device_events(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        now: u64,
    ) -> Result<(), Reason> {
        for line in 0..self.source.processors[index].lines.len() {
            let processor = &mut self.source.processors[index];
            if processor.lines[line].held_until <= now {
                processor.assert_line(line, now);
            }
            if processor.lines[line].next_own <= now {
                processor.raise(line, now);
                processor.lines[line].advance_own(now);
            }
        }
        for device in 0..self.source.processors[index].devices.len() {
            loop {
                let state = &mut self.source.processors[index].devices[device];
                let Some(to) = state.next_event(now) else { break };
                self.event_occurs(tell, lane, index, device, to, now)?;
            }
        }
        Ok(())
    }

    fn event_occurs(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        device: usize,
        to: Addressee,
        now: u64,
    ) -> Result<(), Reason> {
        self.events += 1;
        let processor = &mut self.source.processors[index];
        let state = &mut processor.devices[device];
        if !state.take(now, to) {
            return Ok(());
        }
        let Some(line) = state.line else {
            processor.left_interrupt = true;
            return self.announce(tell, lane, index, device, now);
        };
        let free = state.free();
        let told = &processor.lines[line];
        if told.polling {
            // Softirq rounds see what comes by themselves.
            return self.announce(tell, lane, index, device, now);
        }
        if told.free.is_none_or(|threshold| free <= threshold) {
            processor.raise(line, now);
        }
        Ok(())
    }

    /// Hands all that a device has to whoever works it off.
    fn announce(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        device: usize,
        now: u64,
    ) -> Result<(), Reason> {
        let processor = &mut self.source.processors[index];
        let is_polling = processor.devices[device].line.is_some_and(|line| processor.lines[line].polling);
        let state = &mut processor.devices[device];
        match state.service {
            Where::Interrupt => {
                for _ in state.announced..state.ring.len() {
                    processor.hard_events.push_back(device);
                }
                state.announced = state.ring.len();
            }
            Where::Softirq { .. } if is_polling && (state.turn || state.pending) => {}
            Where::Softirq { .. } => state.pending = !state.ring.is_empty(),
            Where::Thread { task } => {
                while let Some(event) = self.source.processors[index].devices[device].unannounced() {
                    self.release_event(tell, lane, task, event.at, now)?;
                }
            }
        }
        Ok(())
    }

    /// One job of a thread of a driver, which arrived with its event.
    fn release_event(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        task: u32,
        arrival: u64,
        now: u64,
    ) -> Result<(), Reason> {
        let run = &mut self.tasks[task as usize];
        run.next_arrival = arrival;
        run.jobs += 1;
        // No timer interrupt told of it.
        let cost = std::mem::take(&mut self.release_cost);
        let released = self.release(tell, lane, task, now);
        self.release_cost = cost;
        self.tasks[task as usize].next_arrival = NEVER;
        released
    }

    /// Handlers and softirqs that end now.
    pub(super) fn kernel_work_ends(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        now: u64,
    ) -> Result<(), Reason> {
        let processor = &mut self.source.processors[index];
        if let Some((hard, _)) = processor.hard.take_if(|(_, end)| *end <= now) {
            processor.left_interrupt = true;
            match hard {
                Hard::Handler(line) => self.handler_ends(tell, lane, index, line, now)?,
                Hard::Event(device) => {
                    let value = self.interrupt_number(index, device);
                    self.emit(lane, now, Kind::InterruptExit, NO_TASK, NO_JOB, value, 0);
                    self.event_done(tell, lane, index, device, now)?;
                    self.source.processors[index].unmask_if_idle(device);
                }
            }
        }
        if let Some(device) = self.source.processors[index].round_event_ends(now) {
            self.event_done(tell, lane, index, device, now)?;
        }
        Ok(())
    }

    fn handler_ends(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        line: usize,
        now: u64,
    ) -> Result<(), Reason> {
        let processor = &mut self.source.processors[index];
        let state = &mut processor.lines[line];
        state.taken += 1;
        state.polling = state.is_polled;
        let id = state.id as u64;
        self.emit(lane, now, Kind::InterruptExit, NO_TASK, NO_JOB, id, 0);
        for device in 0..self.source.processors[index].devices.len() {
            if self.source.processors[index].devices[device].line == Some(line) {
                self.announce(tell, lane, index, device, now)?;
            }
        }
        Ok(())
    }

    /// Gives the processor to what is due above the threads, until something executes or nothing is due.
    pub(super) fn begin_kernel_work(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        now: u64,
    ) -> Result<(), Reason> {
        loop {
            let processor = &mut self.source.processors[index];
            if processor.hard.is_some() {
                return Ok(());
            }
            if let Some(device) = processor.hard_events.pop_front() {
                let cost = processor.devices[device].front_cost();
                self.begin_hard(lane, index, Hard::Event(device), cost, now);
            } else if let Some(line) = processor.acknowledge() {
                let cost = processor.lines[line].cost;
                self.begin_hard(lane, index, Hard::Handler(line), cost, now);
            } else if processor.rounds.is_some() {
                if processor.rounds.is_some_and(|rounds| rounds.end.is_some()) {
                    return Ok(());
                }
                self.next_in_rounds(tell, lane, index, now)?;
            } else if std::mem::take(&mut processor.left_interrupt)
                && processor.in_background.is_none()
                && processor.softirq_waits()
            {
                processor.begin_rounds();
            } else {
                return Ok(());
            }
        }
    }

    fn begin_hard(&mut self, lane: &mut Lane, index: usize, hard: Hard, cost: u64, now: u64) {
        let processor = &mut self.source.processors[index];
        processor.hard = Some((hard, now.saturating_add(cost)));
        processor.delay_rounds(cost);
        let value = match hard {
            Hard::Handler(line) => processor.lines[line].id as u64,
            Hard::Event(device) => self.interrupt_number(index, device),
        };
        lane.charge(now, cost);
        self.emit(lane, now, Kind::InterruptEntry, NO_TASK, NO_JOB, value, 0);
    }

    /// The number that records give what is served in an interrupt: that of the line, or behind all lines.
    fn interrupt_number(&self, index: usize, device: usize) -> u64 {
        let processor = &self.source.processors[index];
        let device = &processor.devices[device];
        match device.line {
            Some(line) => processor.lines[line].id as u64,
            None => {
                let lines: usize = self.source.processors.iter().map(|processor| processor.lines.len()).sum();
                (lines + device.id) as u64
            }
        }
    }

    fn next_in_rounds(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        now: u64,
    ) -> Result<(), Reason> {
        match self.source.processors[index].next_of_rounds() {
            Next::Event(device, begins) => {
                if begins {
                    self.emit_softirq(lane, Kind::SoftirqEntry, index, device, now);
                }
                let processor = &mut self.source.processors[index];
                let cost = processor.devices[device].front_cost();
                processor.work_in_rounds(now.saturating_add(cost));
                lane.charge(now, cost);
            }
            Next::TurnEnds(device) => self.emit_softirq(lane, Kind::SoftirqExit, index, device, now),
            Next::Over(true) => self.wake_background(tell, lane, index, now)?,
            Next::Over(false) => {}
        }
        Ok(())
    }

    pub(super) fn emit_softirq(&mut self, lane: &Lane, kind: Kind, index: usize, device: usize, now: u64) {
        let id = self.source.processors[index].devices[device].id as u64;
        self.emit(lane, now, kind, NO_TASK, NO_JOB, id, 0);
    }

    /// The background thread has something to do, unless it knows that already.
    pub(super) fn wake_background(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        now: u64,
    ) -> Result<(), Reason> {
        let processor = &mut self.source.processors[index];
        let Some(task) = processor.background else { return Ok(()) };
        if !processor.softirq_waits() || processor.background_waits || processor.in_background.is_some() {
            return Ok(());
        }
        processor.background_waits = true;
        self.release_event(tell, lane, task, now, now)
    }

    /// The oldest event of a device is worked off: whoever waited for it goes on.
    pub(super) fn event_done(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        device: usize,
        now: u64,
    ) -> Result<(), Reason> {
        self.events += 1;
        let state = &mut self.source.processors[index].devices[device];
        let id = state.id;
        if let Some(event) = state.serve(now)
            && event.admitted
        {
            self.deliver(tell, lane, index, id, event, now);
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        index: usize,
        id: usize,
        event: DeviceEvent,
        now: u64,
    ) {
        let request = match event.to {
            Addressee::Answer(request, asked) => {
                let state = &mut self.source.requests[request];
                state.charged += event.cost;
                if state.waits {
                    self.wake(tell, lane, index, request, now);
                } else {
                    state.answer(asked, now);
                }
                return;
            }
            Addressee::Stream(request) => {
                let state = &mut self.source.requests[request];
                state.charged += event.cost;
                state.unread += u64::from(state.waiting_since.is_none());
                request
            }
            Addressee::Anybody => {
                let requests = self.source.requests.iter().enumerate();
                let mut readers = requests
                    .filter(|(_, request)| request.device == id && !request.is_closed && !request.has_stream);
                let first =
                    readers.clone().filter_map(|(at, request)| Some((request.waiting_since?, at))).min();
                let Some((_, request)) = first else {
                    // Nobody waits: it is kept where somebody may read it later.
                    let is_read = readers.next().is_some();
                    let (lane, device) = self.source.places[id];
                    self.source.processors[lane].devices[device].unread += u64::from(is_read);
                    return;
                };
                self.source.requests[request].charged += event.cost;
                request
            }
        };
        self.wake(tell, lane, index, request, now);
    }

    /// The threads under the rule `waiting` move to the priority of who waits now.
    pub(super) fn lend_priorities(&mut self, tell: &mut Tell<'_>, index: usize) {
        for place in 0..self.source.processors[index].lent.len() {
            let (device, thread) = &self.source.processors[index].lent[place];
            let id = self.source.processors[index].devices[*device].id;
            let waiting = self.source.requests.iter().filter(|r| r.device == id && r.waiting_since.is_some());
            let numbers = waiting.filter_map(|request| self.priorities[request.task as usize]);
            let greatest = numbers.map(Priority::number).max().map(Priority::new);
            let told = tell.lend(thread.node, thread.place(greatest));
            debug_assert_eq!(told, Ok(()));
        }
    }
}
