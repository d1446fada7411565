//! One device: its ring, its counts, when its next event comes.

use super::arrivals::Arrivals;
use crate::lane::NEVER;
use crate::options::{ExecutionChoice, SimOptions};
use crate::random::Stream;
use horolog_model::{Device, DeviceClass, DeviceService, System};
use horolog_sched::{Answer, DeviceMachine};
use horolog_time::Span;
use horolog_trace::ResponseRecorder;
use std::collections::VecDeque;

/// Whom an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addressee {
    /// Whoever waits first.
    Anybody,
    /// The task of this request: a packet of its stream.
    Stream(usize),
    /// It answers this request, asked for at this time.
    Answer(usize, u64),
}

/// One event in the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceEvent {
    /// When it occurred.
    pub(crate) at: u64,
    /// What it costs, admission control included.
    pub(crate) cost: u64,
    pub(crate) admitted: bool,
    pub(crate) to: Addressee,
}

/// Where its events are worked off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    Interrupt,
    Softirq {
        rounds: u32,
        poll_budget: u32,
    },
    /// In this task of the companion.
    Thread {
        task: u32,
    },
}

/// One device of a processor.
#[derive(Debug)]
pub(crate) struct DeviceRun {
    /// Its place in the file.
    pub(crate) id: usize,
    pub(crate) service: Where,
    /// Its interrupt, among those of the processor.
    pub(crate) line: Option<usize>,
    /// Events that wait or are worked on, the oldest first.
    pub(crate) ring: VecDeque<DeviceEvent>,
    /// How many of them its thread or handler was told of.
    pub(crate) announced: usize,
    /// Softirq: whether it is raised, and whether it has a turn in the present round.
    pub(crate) pending: bool,
    pub(crate) turn: bool,
    pub(crate) arrivals: Arrivals,
    /// The device itself, where tasks ask it.
    pub(crate) machine: DeviceMachine,
    capacity: usize,
    is_closed: bool,
    least_cost: u64,
    cost: u64,
    costs: Stream,
    admission: Option<(u64, u64)>,
    last_admitted: Option<u64>,
    deadline: u64,
    pub(crate) counts: Counts,
    pub(crate) responses: ResponseRecorder,
    /// Events that nobody has taken yet, for anybody; those of a stream count at the request.
    pub(crate) unread: u64,
}

/// What is counted of one device.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) served: u64,
    pub(crate) dropped: u64,
    pub(crate) refused: u64,
    pub(crate) missed: u64,
    pub(crate) in_background: u64,
    pub(crate) executed: u64,
}

impl DeviceRun {
    pub(crate) fn new(
        system: &System,
        id: usize,
        device: &Device,
        line: Option<usize>,
        thread: Option<u32>,
        options: &SimOptions,
    ) -> DeviceRun {
        let service = match (&device.service, thread) {
            (_, Some(task)) => Where::Thread { task },
            (DeviceService::Softirq { rounds, poll_budget }, None) => {
                Where::Softirq { rounds: *rounds, poll_budget: *poll_budget }
            }
            _ => Where::Interrupt,
        };
        let ns = Span::as_ns;
        let least_cost = match options.execution {
            ExecutionChoice::Wcet => ns(device.cost),
            _ => ns(device.least_cost),
        };
        let cost = match options.execution {
            ExecutionChoice::Bcet => ns(device.least_cost),
            _ => ns(device.cost),
        };
        DeviceRun {
            id,
            service,
            line,
            ring: VecDeque::new(),
            announced: 0,
            pending: false,
            turn: false,
            arrivals: Arrivals::new(system, id, device, options),
            machine: DeviceMachine::new(device),
            capacity: device.ring as usize,
            is_closed: device.class == DeviceClass::Closed,
            least_cost,
            cost,
            costs: Stream::new(options.seed, &device.name, "device costs"),
            admission: device.admission.map(|admission| (ns(admission.cost), ns(admission.separation))),
            last_admitted: None,
            deadline: device.deadline.map_or(NEVER, ns),
            counts: Counts::default(),
            responses: ResponseRecorder::default(),
            unread: 0,
        }
    }

    /// When something happens here by itself.
    pub(crate) fn next_time(&self) -> u64 {
        self.arrivals.next.min(self.machine.next_end())
    }

    /// Free places of the ring.
    pub(crate) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.ring.len())
    }

    /// An event occurs; `false`: the ring is full and it is lost. Answers are never lost: who asked has room.
    pub(crate) fn take(&mut self, now: u64, to: Addressee) -> bool {
        self.counts.events += 1;
        if self.free() == 0 && !self.is_closed {
            self.counts.dropped += 1;
            return false;
        }
        let mut event = DeviceEvent { at: now, cost: 0, admitted: true, to };
        if let Some((test, separation)) = self.admission {
            event.cost = test;
            event.admitted = self.last_admitted.is_none_or(|last| now >= last.saturating_add(separation));
        }
        if event.admitted {
            self.last_admitted = Some(now);
            let drawn = self.least_cost + self.costs.up_to(self.cost - self.least_cost);
            event.cost = event.cost.saturating_add(drawn);
        }
        self.ring.push_back(event);
        true
    }

    /// The oldest event that its thread was not told of.
    pub(crate) fn unannounced(&mut self) -> Option<DeviceEvent> {
        let event = self.ring.get(self.announced).copied()?;
        self.announced += 1;
        Some(event)
    }

    /// What the oldest event costs.
    pub(crate) fn front_cost(&self) -> u64 {
        self.ring.front().map_or(0, |event| event.cost)
    }

    /// The oldest event is worked off.
    pub(crate) fn serve(&mut self, now: u64) -> Option<DeviceEvent> {
        let event = self.ring.pop_front()?;
        self.announced = self.announced.saturating_sub(1);
        self.counts.executed += event.cost;
        if event.admitted {
            self.counts.served += 1;
            let response = now - event.at;
            self.counts.missed += u64::from(response > self.deadline);
            self.responses.record(Span::from_ns(response));
        } else {
            self.counts.refused += 1;
        }
        Some(event)
    }

    /// Waiting events whose deadline has passed.
    pub(crate) fn late(&self, end: u64) -> u64 {
        let late = |event: &&DeviceEvent| event.admitted && event.at.saturating_add(self.deadline) <= end;
        self.ring.iter().filter(late).count() as u64
    }

    /// What comes from the device at `now`: the answer to a request, or the next event of its own.
    #[inline(always)]
    pub(crate) fn next_event(&mut self, now: u64) -> Option<Addressee> {
        if self.machine.next_end().min(self.arrivals.next) > now {
            return None;
        }
        if let Some(Answer { request, asked, .. }) = self.machine.complete(now) {
            return Some(Addressee::Answer(request as usize, asked));
        }
        let to = self.arrivals.to;
        self.arrivals.advance(now);
        Some(to)
    }

    /// Requests that the device has not answered, with the times when they were asked.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let in_ring = self.ring.iter().filter_map(|event| match event.to {
            Addressee::Answer(request, at) => Some((request, at)),
            _ => None,
        });
        self.machine.unanswered().map(|asked| (asked.request as usize, asked.at)).chain(in_ring)
    }
}
