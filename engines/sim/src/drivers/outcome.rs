//! What interrupts, devices and requests came to.

use super::source::Driven;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{DeviceOutcome, InterruptOutcome, RequestOutcome};

/// In the order of the file.
pub(super) fn collect(
    system: &System,
    source: &Driven,
    end: u64,
) -> (Vec<InterruptOutcome>, Vec<DeviceOutcome>, Vec<RequestOutcome>) {
    let mut interrupts = vec![InterruptOutcome::default(); system.interrupts().len()];
    let mut devices = vec![DeviceOutcome::default(); system.devices().len()];
    let mut late = vec![0; system.requests().len()];
    for processor in &source.processors {
        for line in &processor.lines {
            interrupts[line.id] = InterruptOutcome {
                name: system.interrupts()[line.id].name.clone(),
                causes: line.causes,
                taken: line.taken,
                executed_ns: Span::from_ns(line.taken.saturating_mul(line.cost)),
            };
        }
        for device in &processor.devices {
            let file = &system.devices()[device.id];
            let counts = device.counts;
            devices[device.id] = DeviceOutcome {
                name: file.name.clone(),
                service: file.service.word(),
                is_soft: file.is_soft,
                events: counts.events,
                served: counts.served,
                dropped: counts.dropped,
                refused: counts.refused,
                waiting: device.ring.len() as u64,
                missed: counts.missed + device.late(end),
                in_background: counts.in_background,
                executed_ns: Span::from_ns(counts.executed),
                late_ns_max: Span::ZERO,
                response: device.responses.statistics().summary(),
            };
            for (request, asked) in device.unanswered() {
                late[request] += u64::from(source.requests[request].is_late(asked, end));
            }
        }
    }
    let outcome =
        |((request, file), late): ((&super::requests::RequestRun, &horolog_model::Request), u64)| {
            let open = request.waiting_since.filter(|_| !request.is_closed);
            RequestOutcome {
                name: file.name.clone(),
                asked: request.asked,
                answered: request.answered,
                missed: request.missed
                    + late
                    + u64::from(open.is_some_and(|since| request.is_late(since, end))),
                charged_ns: Span::from_ns(request.charged),
                response: request.responses.statistics().summary(),
            }
        };
    let requests = source.requests.iter().zip(system.requests()).zip(late).map(outcome).collect();
    (interrupts, devices, requests)
}
