//! Devices that tasks wait for, emulated: the agent's timer stands for the device and its interrupt, a real thread of the
//! declared priority works off what the device answers, and the job that waits is really suspended.
//!
//! A closed device works its `latency` on each request, one after the other; an open one has the events of the file: listed,
//! or a separation apart and up to the spread later. Each takes a place in the ring until it is worked off. Where the file
//! declares a thread or a server, that is one job of the device's own thread; in an interrupt or a softirq it is done at once,
//! since nothing below the kernel can execute there on a program's behalf.

use super::driver::Threads;
use crate::arrivals::Job;
use crate::random::SplitMix;
use horolog_model::{
    Companion, CpuId, Device, DeviceClass, Priority, RequestMode, System, TaskId, is_emulated,
};
use horolog_sched::{Answer, DeviceMachine, Lent, Rejected, Tell};
use horolog_time::Span;
use horolog_trace::{DeviceOutcome, Kind, RequestOutcome, ResponseRecorder};
use std::collections::VecDeque;

/// Whom an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    /// Whoever waits first.
    Anybody,
    /// The task of this request: a packet of its stream.
    Stream(usize),
    /// It answers this request, asked for at this time.
    Answer(usize, u64),
}

/// When the events of an open device come.
#[derive(Debug)]
enum Rhythm {
    /// It has none of its own.
    Asked,
    /// A separation and up to so much more.
    Drawn { separation: u64, spread: u64, chance: SplitMix },
    /// These, the next one last.
    Listed(Vec<(u64, To)>),
}

/// One emulated device of the processor.
#[derive(Debug)]
struct Emulated {
    /// Its place in the file.
    id: usize,
    /// The seat of its thread, where it has one.
    seat: Option<usize>,
    rhythm: Rhythm,
    /// The next event of its own, and whom it is for.
    next: (u64, To),
    /// The device itself, where tasks ask it.
    machine: DeviceMachine,
    /// Events that wait to be worked off: when each occurred.
    ring: VecDeque<(u64, To)>,
    capacity: usize,
    deadline: u64,
    /// Least time between two events that admission control lets through, and the last one.
    admission: Option<u64>,
    last_admitted: Option<u64>,
    /// Jobs that its thread was given.
    jobs: u64,
    /// Events that nobody has read yet.
    unread: u64,
    outcome: DeviceOutcome,
    responses: ResponseRecorder,
}

/// One request of a task of the processor.
#[derive(Debug)]
struct Asked {
    device: usize,
    seat: usize,
    priority: Option<Priority>,
    waits: bool,
    has_stream: bool,
    is_closed: bool,
    deadline: u64,
    waiting_since: Option<u64>,
    unread: u64,
    asked: u64,
    answered: u64,
    missed: u64,
    charged: u64,
    responses: ResponseRecorder,
}

/// The emulated devices of one processor.
#[derive(Debug)]
pub(crate) struct Devices {
    devices: Vec<Emulated>,
    /// By their places in the file; `None`: of another processor, or not emulated.
    requests: Vec<Option<Asked>>,
    lent: Vec<Lent>,
    /// When the present pass through the monitor began.
    now: u64,
}

impl Devices {
    /// Those of the processor `cpu`, whose seats are `tasks`; `None` where it has none.
    pub(crate) fn new(
        system: &System,
        companion: &Companion,
        lent: Vec<Lent>,
        cpu: CpuId,
        tasks: &[TaskId],
        seed: u64,
    ) -> Option<Box<Devices>> {
        let seat_of = |task: TaskId| tasks.iter().position(|&id| id == task);
        let files = system.devices().iter().enumerate();
        let here = files.filter(|(_, device)| device.cpu == cpu && is_emulated(system, device));
        let devices: Vec<Emulated> = here
            .map(|(id, device)| {
                Emulated::new(system, id, device, companion.task_of(id).and_then(seat_of), seed)
            })
            .collect();
        if devices.is_empty() {
            return None;
        }
        let request = |file: &horolog_model::Request| {
            let device = system.find_device(&file.device)?;
            let device = devices.iter().position(|other| other.id == device)?;
            let task = system.find_task(&file.task)?;
            Some(Asked {
                device,
                seat: seat_of(task)?,
                priority: system.task(task).priority,
                waits: file.mode == RequestMode::Synchronous,
                has_stream: file.arrivals.is_some(),
                is_closed: matches!(devices[device].rhythm, Rhythm::Asked),
                deadline: file.deadline.map_or(u64::MAX, Span::as_ns),
                waiting_since: None,
                unread: 0,
                asked: 0,
                answered: 0,
                missed: 0,
                charged: 0,
                responses: ResponseRecorder::default(),
            })
        };
        let requests = system.requests().iter().map(request).collect();
        let lent = lent.into_iter().filter(|thread| devices.iter().any(|device| device.id == thread.device));
        let lent = lent.collect();
        Some(Box::new(Devices { devices, requests, lent, now: 0 }))
    }

    /// A pass through the monitor has begun: what the devices have done by then is delivered in it.
    pub(crate) fn begin_pass(&mut self, now: u64) {
        self.now = now;
    }

    /// The processor learns now of an answer that was there at `at`.
    fn note_delivery(&mut self, place: usize, at: u64) {
        let late = Span::from_ns(self.now.saturating_sub(at));
        let most = &mut self.devices[place].outcome.late_ns_max;
        *most = (*most).max(late);
    }

    /// When a device has an event or an answer next; `u64::MAX`: none.
    pub(crate) fn next(&self) -> u64 {
        self.devices
            .iter()
            .map(|device| device.machine.next_end().min(device.next.0))
            .min()
            .unwrap_or(u64::MAX)
    }
}

impl Emulated {
    fn new(system: &System, id: usize, file: &Device, seat: Option<usize>, seed: u64) -> Emulated {
        let is_closed = file.class == DeviceClass::Closed;
        let streams = || {
            let requests =
                system.requests().iter().enumerate().filter(|(_, other)| other.device == file.name);
            requests.filter_map(|(index, request)| Some((index, request.arrivals.as_ref()?)))
        };
        let rhythm = if is_closed {
            Rhythm::Asked
        } else if file.arrivals.is_some() || streams().next().is_some() {
            let own = file.arrivals.iter().flatten().map(|at| (at.as_ns(), To::Anybody));
            let streams = streams()
                .flat_map(|(index, arrivals)| arrivals.iter().map(move |at| (at.as_ns(), To::Stream(index))));
            let mut all: Vec<(u64, To)> = own.chain(streams).collect();
            all.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
            Rhythm::Listed(all)
        } else {
            Rhythm::Drawn {
                separation: file.separation.as_ns(),
                spread: file.spread.as_ns(),
                chance: SplitMix::new(seed, &file.name, "device arrivals"),
            }
        };
        let mut device = Emulated {
            id,
            seat,
            rhythm,
            next: (u64::MAX, To::Anybody),
            machine: DeviceMachine::new(file),
            ring: VecDeque::with_capacity(file.ring.min(1 << 12) as usize),
            capacity: file.ring as usize,
            deadline: file.deadline.map_or(u64::MAX, Span::as_ns),
            admission: file.admission.map(|admission| admission.separation.as_ns()),
            last_admitted: None,
            jobs: 0,
            unread: 0,
            outcome: DeviceOutcome {
                name: file.name.clone(),
                service: file.service.word(),
                is_soft: file.is_soft,
                ..DeviceOutcome::default()
            },
            responses: ResponseRecorder::default(),
        };
        device.advance(None);
        device
    }

    /// On to the next event of its own; `after` is the present one.
    fn advance(&mut self, after: Option<u64>) {
        self.next = match &mut self.rhythm {
            Rhythm::Asked => (u64::MAX, To::Anybody),
            Rhythm::Drawn { separation, spread, chance } => {
                let begin = after.map_or(0, |at| at.saturating_add(*separation));
                (begin.saturating_add(chance.up_to(*spread)), To::Anybody)
            }
            Rhythm::Listed(rest) => rest.pop().unwrap_or((u64::MAX, To::Anybody)),
        };
    }

    /// What happens at the device by `at`, the oldest first.
    fn due(&mut self, at: u64) -> Option<(u64, To)> {
        if self.machine.next_end() <= self.next.0
            && let Some(Answer { request, asked, at }) = self.machine.complete(at)
        {
            return Some((at, To::Answer(request as usize, asked)));
        }
        if self.next.0 <= at {
            let event = self.next;
            self.advance(Some(event.0));
            return Some(event);
        }
        None
    }

    /// An event takes its place in the ring; `false` where it finds none or is not admitted. Answers are never lost: who asked has
    /// room.
    fn take(&mut self, at: u64, to: To) -> bool {
        self.outcome.events += 1;
        if self.ring.len() >= self.capacity && !matches!(to, To::Answer(..)) {
            self.outcome.dropped += 1;
            return false;
        }
        if let Some(separation) = self.admission {
            if self.last_admitted.is_some_and(|last| at < last.saturating_add(separation)) {
                self.outcome.refused += 1;
                return false;
            }
            self.last_admitted = Some(at);
        }
        self.ring.push_back((at, to));
        true
    }
}

impl Asked {
    fn answer(&mut self, since: u64, now: u64) {
        let response = now.saturating_sub(since);
        self.answered += 1;
        self.missed += u64::from(response > self.deadline);
        self.responses.record(Span::from_ns(response));
    }
}

/// Outcomes, each with its place in the file.
pub(crate) type Placed<T> = Vec<(usize, T)>;

impl Threads {
    /// When a device has something next; `u64::MAX`: none.
    #[inline]
    pub(crate) fn next_device(&self) -> u64 {
        self.devices.as_ref().map_or(u64::MAX, |devices| devices.next())
    }

    /// What the devices have done by `at` occurs.
    pub(super) fn device_events(&mut self, tell: &mut Tell<'_>, at: u64) {
        let Some(mut devices) = self.devices.take() else { return };
        for place in 0..devices.devices.len() {
            while let Some((occurred, to)) = devices.devices[place].due(at) {
                if matches!(to, To::Answer(..)) {
                    devices.note_delivery(place, occurred);
                }
                if !devices.devices[place].take(occurred, to) {
                    continue;
                }
                match devices.devices[place].seat {
                    Some(seat) => self.release_event(tell, &mut devices.devices[place], seat, occurred),
                    None => self.event_done(tell, &mut devices, place, 0),
                }
            }
        }
        self.devices = Some(devices);
    }

    /// One job of a device's thread, which arrived with its event.
    fn release_event(&mut self, tell: &mut Tell<'_>, device: &mut Emulated, seat: usize, arrival: u64) {
        let job = Job {
            number: device.jobs,
            arrival,
            ready: tell.now(),
            deadline: arrival.saturating_add(device.deadline),
        };
        device.jobs += 1;
        self.release_job(tell, seat, job);
    }

    /// The job of a device's thread is done: what it worked off goes to whoever waits for it.
    pub(super) fn event_served(&mut self, tell: &mut Tell<'_>, seat: usize, executed: u64) {
        let Some(mut devices) = self.devices.take() else { return };
        if let Some(place) = devices.devices.iter().position(|device| device.seat == Some(seat)) {
            let total = &mut devices.devices[place].outcome.executed_ns;
            *total = Span::from_ns(total.as_ns().saturating_add(executed));
            self.event_done(tell, &mut devices, place, executed);
        }
        self.devices = Some(devices);
    }

    /// The oldest event of a device is worked off, which took `executed`.
    fn event_done(&mut self, tell: &mut Tell<'_>, devices: &mut Devices, place: usize, executed: u64) {
        let now = tell.now();
        let device = &mut devices.devices[place];
        let Some((occurred, to)) = device.ring.pop_front() else { return };
        let response = now.saturating_sub(occurred);
        device.outcome.served += 1;
        device.outcome.missed += u64::from(response > device.deadline);
        device.responses.record(Span::from_ns(response));
        let waiting = match to {
            To::Answer(request, since) => {
                if let Some(asked) = devices.requests[request].as_mut().filter(|asked| !asked.waits) {
                    asked.charged = asked.charged.saturating_add(executed);
                    asked.answer(since, now);
                    return;
                }
                Some(request)
            }
            To::Stream(request) => Some(request),
            To::Anybody => {
                let requests = devices.requests.iter().enumerate();
                let readers = requests.filter_map(|(index, asked)| {
                    let asked = asked.as_ref()?;
                    (asked.device == place && !asked.has_stream).then_some((asked.waiting_since?, index))
                });
                readers.min().map(|(_, index)| index)
            }
        };
        if let Some(asked) = waiting.and_then(|request| devices.requests[request].as_mut()) {
            asked.charged = asked.charged.saturating_add(executed);
        }
        match waiting {
            Some(request) => self.wake_request(tell, devices, request),
            None => devices.devices[place].unread += 1,
        }
    }

    /// The job that waits with a request is ready again.
    fn wake_request(&mut self, tell: &mut Tell<'_>, devices: &mut Devices, request: usize) {
        let now = tell.now();
        let Some(asked) = &mut devices.requests[request] else { return };
        let Some(since) = asked.waiting_since.take() else {
            asked.unread += 1;
            return;
        };
        asked.answer(since, now);
        let seat = asked.seat;
        let task = self.seats[seat].shared.id;
        if tell.wake(task).is_ok() {
            self.seats[seat].suspended = false;
            let job = self.seats[seat].backlog.front().map_or(0, |job| job.number);
            self.record(seat, Kind::Wake, now, job, request as u64, 0);
        }
        self.lend(tell, devices);
    }

    pub(super) fn ask(
        &mut self,
        tell: &mut Tell<'_>,
        seat: usize,
        now: u64,
        request: usize,
    ) -> Result<bool, Rejected> {
        let Some(mut devices) = self.devices.take() else { return Ok(false) };
        let told = self.ask_device(tell, &mut devices, seat, now, request);
        self.devices = Some(devices);
        self.count_rejected(told)
    }

    fn ask_device(
        &mut self,
        tell: &mut Tell<'_>,
        devices: &mut Devices,
        seat: usize,
        now: u64,
        request: usize,
    ) -> Result<bool, Rejected> {
        let Some(asked) = devices.requests.get_mut(request).and_then(Option::as_mut) else {
            return Ok(false);
        };
        // A job that overran has left the machine; it goes on without.
        if asked.seat != seat || self.seats[seat].demoted {
            return Ok(false);
        }
        let device = &mut devices.devices[asked.device];
        let unread = if asked.has_stream { &mut asked.unread } else { &mut device.unread };
        let is_there = !asked.is_closed && *unread > 0;
        if asked.waits && !is_there {
            if self.current != Some(seat) {
                return Err(Rejected::NotRunning);
            }
            tell.block(self.seats[seat].shared.id)?;
            self.seats[seat].suspended = true;
            asked.waiting_since = Some(now);
            let job = self.seats[seat].backlog.front().map_or(0, |job| job.number);
            self.record(seat, Kind::Suspend, now, job, request as u64, 0);
        }
        asked.asked += 1;
        if is_there {
            *unread -= 1;
            asked.answer(now, now);
        } else if asked.is_closed {
            device.machine.release(now, request as u32, asked.priority);
        }
        let waits = self.seats[seat].suspended;
        self.lend(tell, devices);
        Ok(waits)
    }

    /// The threads under the rule `waiting` move to the priority of who waits now.
    fn lend(&mut self, tell: &mut Tell<'_>, devices: &Devices) {
        for thread in &devices.lent {
            let waiting = devices.requests.iter().flatten().filter(|asked| {
                devices.devices[asked.device].id == thread.device && asked.waiting_since.is_some()
            });
            let numbers = waiting.filter_map(|asked| asked.priority.map(Priority::number));
            let greatest = numbers.max().map(Priority::new);
            let _ = tell.lend(thread.node, thread.place(greatest));
        }
    }

    /// What the devices and the requests of this processor came to, with their places in the file.
    pub(crate) fn device_outcomes(
        &self,
        system: &System,
        end: u64,
    ) -> (Placed<DeviceOutcome>, Placed<RequestOutcome>) {
        let Some(devices) = &self.devices else { return Default::default() };
        let of_device = |device: &Emulated| {
            let late = device.ring.iter().filter(|(at, _)| at.saturating_add(device.deadline) <= end).count();
            let mut outcome = device.outcome.clone();
            outcome.waiting = device.ring.len() as u64;
            outcome.missed += late as u64;
            outcome.response = device.responses.statistics().summary();
            (device.id, outcome)
        };
        let of_request = |(index, asked): (usize, &Option<Asked>)| {
            let asked = asked.as_ref()?;
            let device = &devices.devices[asked.device];
            let in_ring = device.ring.iter().filter_map(|&(_, to)| match to {
                To::Answer(request, since) => Some((request, since)),
                _ => None,
            });
            let in_device = device.machine.unanswered().map(|asked| (asked.request as usize, asked.at));
            let unanswered = in_device.chain(in_ring);
            let since = unanswered.filter(|(request, _)| *request == index).map(|(_, since)| since);
            let open = asked.waiting_since.filter(|_| !asked.is_closed);
            let late = since.chain(open).filter(|since| since.saturating_add(asked.deadline) <= end).count();
            let outcome = RequestOutcome {
                name: system.requests()[index].name.clone(),
                asked: asked.asked,
                answered: asked.answered,
                missed: asked.missed + late as u64,
                charged_ns: Span::from_ns(asked.charged),
                response: asked.responses.statistics().summary(),
            };
            Some((index, outcome))
        };
        let of_requests = devices.requests.iter().enumerate().filter_map(of_request).collect();
        (devices.devices.iter().map(of_device).collect(), of_requests)
    }
}
