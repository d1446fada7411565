//! What a run does about the interrupts and devices of a file.
//!
//! They describe what the machine does by itself, so a run provokes none of it: the tasks run for real, the machine's own
//! interrupts come as they come, and the bounds that the trace is verified against hold the declared demand. The exception
//! are devices that tasks wait for ([`Companion::emulated`]): without an answer a job would never end, so these are
//! emulated, and their jobs are really suspended.

use crate::task_shared::RequestPoint;
use horolog_model::ModelError;
use horolog_model::{
    Body, Companion, Device, DeviceClass, DeviceService, RequestOrder, System, TaskId, is_emulated,
};

/// What records of a run number: the file's tasks, then the threads of the devices that it emulates.
///
/// # Errors
/// Where the threads make no valid system: never for a checked one whose priorities are resolved.
pub fn traced(system: &System) -> Result<Companion, ModelError> {
    Companion::emulated(system)
}

/// Where jobs of `task` ask emulated devices, in the order of their execution.
pub(crate) fn request_points(system: &System, task: TaskId) -> Vec<RequestPoint> {
    let Some(task) = system.tasks().get(task.index()) else { return Vec::new() };
    let requests = system.requests().iter().enumerate().filter(|(_, request)| request.task == task.name);
    let emulated = requests.filter(|(_, request)| {
        system.devices().iter().any(|device| device.name == request.device && is_emulated(system, device))
    });
    let point = |(place, request): (usize, &horolog_model::Request)| RequestPoint {
        name: request.name.clone(),
        place,
        after: request.after.as_ns(),
    };
    let mut points: Vec<RequestPoint> = emulated.map(point).collect();
    points.sort_by_key(|point| point.after);
    points
}

/// What the reader must know of each entry.
pub(crate) fn notes(system: &System) -> Vec<String> {
    let emulated = |device: &&Device| is_emulated(system, device);
    let mut notes = Vec::new();
    for interrupt in system.interrupts() {
        let named =
            || system.devices().iter().filter(|device| device.interrupt.as_ref() == Some(&interrupt.name));
        let is_stood_for = named().next().is_some() && named().all(|device| emulated(&device));
        notes.push(if is_stood_for {
            format!(
                "interrupt {}: its device is emulated, and the agent's timer stands for it; its declared cost is not executed",
                interrupt.name
            )
        } else {
            format!(
                "interrupt {}: it is this machine's own and was not provoked; the bounds hold its declared demand",
                interrupt.name
            )
        });
    }
    for device in system.devices() {
        notes.push(if emulated(&device) {
            format!("device {}: emulated, since tasks wait for it: {}", device.name, how(device))
        } else {
            format!(
                "device {}: its events are this machine's own and were not provoked; the bounds hold their declared demand",
                device.name
            )
        });
    }
    for (id, server) in system.server_ids().zip(system.servers()) {
        let devices = system.devices().iter().filter(|device| {
            matches!(&device.service, DeviceService::Server { server: name } if *name == server.name)
        });
        let serves_devices_alone =
            devices.clone().next().is_some() && system.tasks_below(id).next().is_none();
        if serves_devices_alone && !devices.clone().any(|device| emulated(&device)) {
            let names: Vec<&str> = devices.map(|device| device.name.as_str()).collect();
            notes.push(format!(
                "server {}: it serves devices alone ({}), which were not provoked; nothing ran below it",
                server.name,
                names.join(", ")
            ));
        }
    }
    for request in system.requests() {
        let task = system.tasks().iter().find(|task| task.name == request.task);
        if task.and_then(|task| task.body.as_ref()).is_some_and(Body::is_users_code) {
            notes.push(format!(
                "request {}: the code of {} asks its own device; nothing was emulated for it",
                request.name, request.task
            ));
        }
    }
    notes
}

fn how(device: &Device) -> String {
    let events = match device.class {
        DeviceClass::Closed => {
            let at_once = match device.slots {
                1 => "one request after the other".to_owned(),
                slots => format!("{slots} requests at once"),
            };
            let by = match device.order {
                RequestOrder::Fifo => "",
                RequestOrder::FixedPriority => ", by the priority of their tasks",
            };
            format!("it works {} on each request, {at_once}{by}", device.request_latency())
        }
        _ if device.arrivals.is_some() => "its events come as listed".to_owned(),
        _ => format!("its events come every {} to {} later", device.separation, device.spread),
    };
    let service = match &device.service {
        DeviceService::Thread { .. } => "a thread of its declared priority works each event off",
        DeviceService::Server { .. } => "a thread below its server works each event off",
        _ => "events are worked off at once, and their declared cost is not executed",
    };
    format!("{events}; {service}")
}
