//! Drivers as analysable work: interrupts above all tasks, devices whose events are served in a handler, in softirq
//! rounds, in a thread or in a server.
//!
//! | what | most time in a window w | above |
//! |---|---|---|
//! | interrupt, not throttled | ⌈w/a⌉ h | all |
//! | moderated | ⌈w/max(a, interval)⌉ h | all |
//! | NAPI, its poller below the task | h | all |
//! | NAPI, its poller above the task | ⌈w/a⌉ h | all |
//! | device served in the interrupt | ⌈w/s⌉ e | all |
//! | device served by softirqs | (⌈w/s⌉ + ring) e | all |
//! | device served by a thread | ⌈w/s⌉ e | what its priority is at or above |
//! | device served by a server | the server's | as the server |
//!
//! a and s are least separations, h and e costs. A softirq's backlog may have waited in the background thread and come
//! back after any interrupt, so a full ring counts on top. The same holds for a thread under the rule `waiting`: what it
//! left undone at its own low priority comes back when a user begins to wait. An interrupt that is held back (moderated, or
//! rarer than the device's events) tells of events late and of several at once: its device's events have that much jitter.
//! Admission control is a load of its own, the test of every event, and spaces out the rest. See `docs/concepts/driver-analysis.md`.
//! Sources: `baker07`, `lewandowski07`.

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, InterruptLoad, LONGEST_NS};
use crate::error::AnalysisError;
use crate::explanation::TermKind;
use crate::options::Options;
use crate::result::{DeviceVerdict, TaskVerdict, Verdict};
use crate::server::place::{Source, place_of};
use crate::server::queue::{self, QueuedTask};
use crate::server::{self, Above, NoAnswer};
use horolog_model::{
    CpuId, Device, DeviceService, Interrupt, Priority, PriorityRule, System, TaskId, Throttling,
};
use horolog_time::Span;
use std::collections::BTreeMap;

/// The drivers of one processor.
#[derive(Clone, Debug, Default)]
pub struct Drivers {
    /// Loads above all tasks, each with its name, as if no NAPI poller were below anybody.
    pub above_all: Vec<(String, InterruptLoad)>,
    /// Which of these are interrupts that stay off while a poller waits.
    pub(crate) napi: Vec<NapiInterrupt>,
    /// Devices served by threads.
    pub threads: Vec<DriverThread>,
}

/// A NAPI interrupt.
#[derive(Clone, Debug)]
pub(crate) struct NapiInterrupt {
    /// Its place in [`Drivers::above_all`].
    pub(crate) index: usize,
    pub(crate) poller: Poller,
}

/// Who polls for a NAPI interrupt.
#[derive(Clone, Debug)]
pub(crate) enum Poller {
    /// A thread of at most this priority; `None`: below all tasks.
    Thread(Option<Priority>),
    /// The server of this name.
    Server(String),
}

/// A device served by a thread.
#[derive(Clone, Debug)]
pub struct DriverThread {
    /// The device's name.
    pub name: String,
    /// Its events.
    pub load: InterruptLoad,
    /// Its events with a full ring that may come back at once.
    pub with_backlog: InterruptLoad,
    /// The part of an event's time that is its two context switches, ns.
    pub(crate) switching: u64,
    /// The greatest priority that it can have; `None`: below all tasks.
    pub high: Option<Priority>,
    /// The least priority that it can have while an event waits.
    pub low: Option<Priority>,
}

impl DriverThread {
    /// What it takes from work of a priority; `None` where it is below. Equals count as above.
    pub(crate) fn seen_from(&self, priority: Option<Priority>) -> Option<&InterruptLoad> {
        let above = |own: Option<Priority>| match (priority, own) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(priority), Some(own)) => !priority.is_more_important_than(own),
        };
        if above(self.low) { Some(&self.load) } else { above(self.high).then_some(&self.with_backlog) }
    }
}

impl Drivers {
    /// The drivers of a processor, with a thread's two context switches of this length.
    pub(crate) fn new(system: &System, cpu: CpuId, context_switch: u64) -> Result<Drivers, AnalysisError> {
        let mut drivers = Drivers::default();
        for interrupt in system.interrupts().iter().filter(|interrupt| interrupt.cpu == cpu) {
            drivers.interrupt(system, interrupt);
        }
        for device in system.devices().iter().filter(|device| device.cpu == cpu) {
            drivers.device(system, device, context_switch)?;
        }
        Ok(drivers)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.above_all.is_empty() && self.threads.is_empty()
    }

    fn interrupt(&mut self, system: &System, interrupt: &Interrupt) {
        let separation = match interrupt.throttling {
            Throttling::Moderated { interval } => interrupt.separation.max(interval),
            _ => interrupt.separation,
        };
        if interrupt.throttling == Throttling::Napi {
            let polls = |device: &&Device| {
                device.cpu == interrupt.cpu && device.interrupt.as_ref() == Some(&interrupt.name)
            };
            let poller = system.devices().iter().find(polls).and_then(|device| match &device.service {
                DeviceService::Thread { .. } => Some(Poller::Thread(places(system, device).0)),
                DeviceService::Server { server } => Some(Poller::Server(server.clone())),
                _ => None,
            });
            let index = self.above_all.len();
            self.napi.extend(poller.map(|poller| NapiInterrupt { index, poller }));
        }
        let arrival = ArrivalCurve::Periodic { separation: separation.as_ns(), jitter: 0 };
        self.above_all
            .push((interrupt.name.clone(), InterruptLoad { arrival, wcet: interrupt.cost.as_ns() }));
    }

    fn device(&mut self, system: &System, device: &Device, context_switch: u64) -> Result<(), AnalysisError> {
        let mut context_switch = context_switch;
        if let Some(admission) = device.admission {
            // The test of every event, as a device of its own beside it.
            let mut tests = device.clone();
            tests.name = format!("admission control of {}", device.name);
            (tests.cost, tests.admission) = (admission.cost, None);
            self.device(system, &tests, context_switch)?;
            // The thread is switched to for every event, refused or not: with its test.
            context_switch = 0;
        }
        let (load, with_backlog) = loads_of(system, device, 0)?;
        let name = device.name.clone();
        match &device.service {
            DeviceService::Interrupt => self.above_all.push((name, load)),
            DeviceService::Softirq { .. } => self.above_all.push((name, with_backlog)),
            DeviceService::Thread { .. } => {
                let (load, with_backlog) = loads_of(system, device, 2 * context_switch)?;
                let (high, low) = places(system, device);
                let switching = 2 * context_switch;
                self.threads.push(DriverThread { name, load, with_backlog, switching, high, low });
            }
            _ => {}
        }
        Ok(())
    }
}

/// A device's events, and with a full ring on top.
fn loads_of(
    system: &System,
    device: &Device,
    switches: u64,
) -> Result<(InterruptLoad, InterruptLoad), AnalysisError> {
    let too_long = |what| AnalysisError::overflow(format!("device.{}", device.name), what);
    let separation = device.admitted_separation().as_ns();
    let ring = separation.checked_mul(u64::from(device.ring)).filter(|&ns| ns <= LONGEST_NS);
    let late = announced_late(system, device).ok_or_else(|| too_long("the ring times the separation"))?;
    let jitter = ring.and_then(|ring| ring.checked_add(late)).filter(|&ns| ns <= LONGEST_NS);
    let jitter = jitter.ok_or_else(|| too_long("the ring times the separation"))?;
    let wcet = device.cost.as_ns().checked_add(switches).filter(|&ns| ns <= LONGEST_NS);
    let wcet = wcet.ok_or_else(|| too_long("the cost"))?;
    let load = |jitter| InterruptLoad { arrival: ArrivalCurve::Periodic { separation, jitter }, wcet };
    Ok((load(late), load(jitter)))
}

/// How late a device's interrupt may tell of an event, ns: not at all where it may come with every event; the time by which
/// it is held back; with a threshold, until the ring has filled up as far, for which a full ring stands. `None` where a
/// product leaves the numbers.
pub(crate) fn announced_late(system: &System, device: &Device) -> Option<u64> {
    let own = |interrupt: &&Interrupt| device.interrupt.as_ref() == Some(&interrupt.name);
    let Some(interrupt) = system.interrupts().iter().find(own) else { return Some(0) };
    let separation = device.separation.as_ns();
    let gap = match interrupt.throttling {
        Throttling::Moderated { interval } => interrupt.separation.max(interval).as_ns(),
        Throttling::Threshold { .. } => {
            return separation.checked_mul(u64::from(device.ring)).filter(|&ns| ns <= LONGEST_NS);
        }
        _ => interrupt.separation.as_ns(),
    };
    Some(if gap > separation { gap } else { 0 }).filter(|&ns| ns <= LONGEST_NS)
}

/// Whether a device waits for its ring to fill before it tells of an event: as long as it likes.
fn has_threshold(system: &System, device: &Device) -> bool {
    let own = |interrupt: &&Interrupt| device.interrupt.as_ref() == Some(&interrupt.name);
    let interrupt = system.interrupts().iter().find(own);
    interrupt.is_some_and(|interrupt| matches!(interrupt.throttling, Throttling::Threshold { .. }))
}

/// The greatest and the least priority of a device's thread.
fn places(system: &System, device: &Device) -> (Option<Priority>, Option<Priority>) {
    let DeviceService::Thread { priority, rule, users } = &device.service else { return (None, None) };
    let of_users = system.tasks().iter().filter(|task| users.contains(&task.name));
    let greatest = of_users.filter_map(|task| task.priority).chain(*priority).map(Priority::number).max();
    let greatest = greatest.map(Priority::new);
    match rule {
        PriorityRule::Fixed => (*priority, *priority),
        // Who holds it open holds it for good.
        PriorityRule::Open => (greatest, greatest),
        _ => (greatest, *priority),
    }
}

/// The answers for the devices of one processor, each with its place in the file; `served` are those of devices in the
/// queue of a server.
pub(crate) fn verdicts(
    system: &System,
    cpu: &CpuModel,
    served: &[(usize, TaskVerdict)],
    options: &Options,
) -> Vec<(usize, DeviceVerdict)> {
    let devices = system.devices().iter().enumerate().filter(|(_, device)| device.cpu == cpu.cpu);
    let options = &options.for_each_of(devices.clone().count());
    let served: BTreeMap<usize, &TaskVerdict> =
        served.iter().map(|(index, verdict)| (*index, verdict)).collect();
    let mut verdicts = Vec::new();
    for (index, device) in devices {
        let of_server = served.get(&index).copied();
        let (found, test, source) = match (&device.service, of_server) {
            _ if has_threshold(system, device) => {
                let reason = "an event waits until the ring has filled up to the threshold";
                (Err(reason.to_owned()), "driver-threshold", "baker07")
            }
            (_, Some(verdict)) => {
                let note = verdict.tests.first().and_then(|test| test.note.clone());
                (verdict.response.ok_or(note.unwrap_or_default()), verdict.test, verdict.source)
            }
            (service, None) => {
                let test = match service {
                    DeviceService::Thread { .. } => "driver-thread",
                    DeviceService::Softirq { .. } => "driver-softirq",
                    _ => "driver-interrupt",
                };
                let found = own_response(system, cpu, device, options);
                (found.map(Span::from_ns).map_err(|reason| reason.to_string()), test, "baker07")
            }
        };
        verdicts.push((index, judge(device, found, test, source)));
    }
    verdicts
}

/// The id of a device's events in the queue of a server: beyond all tasks, counted from the end.
pub(crate) fn id_of(device: usize) -> TaskId {
    TaskId(u32::MAX - device as u32)
}

/// The device whose events have this id; `None` for a task's.
pub(crate) fn device_of(id: TaskId, system: &System) -> Option<usize> {
    let device = (u32::MAX - id.0) as usize;
    (device < system.devices().len()).then_some(device)
}

/// [`verdicts`] with those of devices that servers serve.
pub(crate) fn verdicts_of_all(
    system: &System,
    cpu: &CpuModel,
    options: &Options,
) -> Result<Vec<(usize, DeviceVerdict)>, AnalysisError> {
    let mut served = Vec::new();
    let each = options.for_each_server_of(cpu.servers.len());
    let known = server::Known::default();
    for index in 0..cpu.servers.len() {
        for (id, verdict) in server::soft_verdicts(cpu, index, system.policy(), &known, &each)? {
            if let Some(device) = device_of(id, system) {
                served.push((device, verdict));
            }
        }
    }
    Ok(verdicts(system, cpu, &served, options))
}

fn judge(
    device: &Device,
    found: Result<Span, String>,
    test: &'static str,
    source: &'static str,
) -> DeviceVerdict {
    let response = found.as_ref().ok().copied();
    let meets = response.is_some_and(|response| device.deadline.is_none_or(|deadline| response <= deadline));
    let waiting = response.and_then(|response| response.div_ceil(device.separation));
    DeviceVerdict {
        name: device.name.clone(),
        cpu: device.cpu,
        service: device.service.word(),
        verdict: if meets { Verdict::Meets } else { Verdict::Unknown },
        soft: device.is_soft || device.deadline.is_none(),
        response,
        deadline: device.deadline,
        keeps_all: waiting.is_some_and(|events| events <= u64::from(device.ring)),
        test,
        source,
        note: found.err().filter(|reason| !reason.is_empty()),
    }
}

/// The response bound of an event of a device that no server serves: what is above its least place, and its own earlier
/// events. What softirq rounds leave over is done below all tasks, so that this is a softirq's place.
fn own_response(
    system: &System,
    cpu: &CpuModel,
    device: &Device,
    options: &Options,
) -> Result<u64, NoAnswer> {
    let late = announced_late(system, device).ok_or(NoAnswer::TooLarge)?;
    let own = |(name, _): &&(String, InterruptLoad)| *name != device.name;
    let queued = |load: &InterruptLoad| QueuedTask {
        arrival: match load.arrival {
            ArrivalCurve::Periodic { separation, .. } => ArrivalCurve::Periodic { separation, jitter: late },
            ArrivalCurve::Listed { .. } => load.arrival.clone(),
        },
        wcet: load.wcet,
    };
    let (above, load) = match &device.service {
        DeviceService::Thread { .. } => {
            let thread = cpu.drivers.threads.iter().find(|thread| thread.name == device.name);
            let thread = thread.ok_or(NoAnswer::TooLarge)?;
            let mut place = place_of(cpu, usize::MAX, thread.low)?;
            // Threads stand behind what is above all tasks, where another load may have the name.
            let own = |source: &Source| {
                source.kind == TermKind::Device && source.name.as_ref() == Some(&device.name)
            };
            if let Some(own) = place.who.iter().rposition(own) {
                place.above.loads.remove(own);
            }
            (place.above, thread.load.clone())
        }
        service => {
            let entry = cpu.drivers.above_all.iter().find(|(name, _)| *name == device.name);
            let (_, load) = entry.ok_or(NoAnswer::TooLarge)?;
            let mut above = if matches!(service, DeviceService::Softirq { .. }) {
                place_of(cpu, usize::MAX, None)?.above
            } else {
                Above { loads: cpu.interrupts.clone(), measured: cpu.interferences.clone(), blocking: 0 }
            };
            // All that is above all tasks, its own events left out.
            let drivers = cpu.first_driver..cpu.first_driver + cpu.drivers.above_all.len();
            above.loads.drain(drivers);
            above.loads.extend(cpu.drivers.above_all.iter().filter(own).map(|(_, load)| load.clone()));
            (above, load.clone())
        }
    };
    queue::response(&[queued(&load)], 0, &above, &mut { options.effort })
}
