//! The answers for devices: how late an event is worked off, whether a server has it in its queue or not.

use super::place::{Source, place_of};
use super::queue::{self, QueuedTask};
use super::verdict::{Known, soft_verdicts};
use super::{Above, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, InterruptLoad};
use crate::driver::{announced_late, device_of};
use crate::error::AnalysisError;
use crate::explanation::TermKind;
use crate::options::Options;
use crate::result::{DeviceVerdict, TaskVerdict, Verdict};
use horolog_model::{Device, DeviceService, Interrupt, System, Throttling};
use horolog_time::Span;
use std::collections::BTreeMap;

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

/// [`verdicts`] with those of devices that servers serve.
pub(crate) fn verdicts_of_all(
    system: &System,
    cpu: &CpuModel,
    options: &Options,
) -> Result<Vec<(usize, DeviceVerdict)>, AnalysisError> {
    let mut served = Vec::new();
    let each = options.for_each_server_of(cpu.servers.len());
    let known = Known::default();
    for index in 0..cpu.servers.len() {
        for (id, verdict) in soft_verdicts(cpu, index, system.policy(), &known, &each)? {
            if let Some(device) = device_of(id, system) {
                served.push((device, verdict));
            }
        }
    }
    Ok(verdicts(system, cpu, &served, options))
}

/// Whether a device waits for its ring to fill before it tells of an event: as long as it likes.
fn has_threshold(system: &System, device: &Device) -> bool {
    let own = |interrupt: &&Interrupt| device.interrupt.as_ref() == Some(&interrupt.name);
    let interrupt = system.interrupts().iter().find(own);
    interrupt.is_some_and(|interrupt| matches!(interrupt.throttling, Throttling::Threshold { .. }))
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
