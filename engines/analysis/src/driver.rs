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
//! These are the loads; the answers for devices are found in `server/devices.rs`.
//! Sources: `baker07`, `lewandowski07`.

pub use crate::cpu_model::{DriverThread, Drivers};

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{InterruptLoad, LONGEST_NS, NapiInterrupt, Poller};
use crate::error::AnalysisError;
use horolog_model::{
    CpuId, Device, DeviceService, Interrupt, Priority, PriorityRule, System, TaskId, Throttling,
};

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

/// The id of a device's events in the queue of a server: beyond all tasks, counted from the end.
pub(crate) fn id_of(device: usize) -> TaskId {
    TaskId(u32::MAX - device as u32)
}

/// The device whose events have this id; `None` for a task's.
pub(crate) fn device_of(id: TaskId, system: &System) -> Option<usize> {
    let device = (u32::MAX - id.0) as usize;
    (device < system.devices().len()).then_some(device)
}
