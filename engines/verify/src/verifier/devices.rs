//! What closed devices did, made again from the records: [`DeviceMachine`] beside every device whose jobs wait for it.
//!
//! A job that waits for a device leaves a record of its request, so what the device does follows: in which order it takes requests,
//! never more than it has slots for, and never idle while one waits. The instants at which it is done are those of the
//! events that its thread is released for, to the nanosecond, in a simulation and a run alike; where it has no thread on record,
//! nobody is woken before.
//!
//! Requests that are not waited for leave no record, so a device that has some is left out. After a loss of records
//! nothing is known of what was asked, and the device is not judged any more.

use crate::result::{Check, Class};
use crate::verifier::Verifier;
use horolog_model::{Companion, DeviceClass, Priority, RequestMode, System};
use horolog_sched::DeviceMachine;
use horolog_trace::Record;
use std::collections::VecDeque;

/// A closed device.
#[derive(Clone, Debug)]
struct Device {
    name: String,
    machine: DeviceMachine,
    /// When it was done with the requests that its thread has not been released for yet, the oldest first; of one with a
    /// thread on record.
    ended: Option<VecDeque<u64>>,
}

/// A request that is waited for.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Its place among the devices here.
    device: usize,
    priority: Option<Priority>,
    /// Whether the device is done with it, and nobody was woken for it yet.
    is_answered: bool,
}

/// The closed devices of a system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    all: Vec<Device>,
    /// By their place in the file; `None`: of a device that is not judged.
    requests: Vec<Option<Request>>,
    /// Of each task, the device that it works off.
    worked_off_by: Vec<Option<usize>>,
    /// When the job that runs of each task got the processor.
    began: Vec<u64>,
    /// Whether records were lost.
    is_lost: bool,
}

impl Devices {
    /// Those of `system` that can be judged; what cannot be goes to `unjudged`.
    pub(crate) fn of(system: &System, companion: &Companion, unjudged: &mut Vec<String>) -> Devices {
        let tasks = companion.system.tasks().len();
        let mut devices = Devices {
            requests: vec![None; system.requests().len()],
            worked_off_by: vec![None; tasks],
            began: vec![0; tasks],
            ..Devices::default()
        };
        for (place, file) in system.devices().iter().enumerate() {
            let asks = || system.requests().iter().enumerate().filter(|(_, it)| it.device == file.name);
            if file.class != DeviceClass::Closed || asks().next().is_none() {
                continue;
            }
            if asks().any(|(_, request)| request.mode != RequestMode::Synchronous) {
                unjudged.push(format!(
                    "device {}: when requests are asked that are not waited for is not on record, so its order is not judged",
                    file.name
                ));
                continue;
            }
            let device = devices.all.len();
            for (number, request) in asks() {
                let task = system.find_task(&request.task);
                let priority = task.and_then(|task| system.task(task).priority);
                devices.requests[number] = Some(Request { device, priority, is_answered: false });
            }
            let thread = companion.task_of(place);
            if let Some(thread) = thread {
                devices.worked_off_by[thread.index()] = Some(device);
            }
            devices.all.push(Device {
                name: file.name.clone(),
                machine: DeviceMachine::new(file),
                ended: thread.map(|_| VecDeque::new()),
            });
        }
        devices
    }

    /// A job of this task has got the processor.
    #[inline]
    pub(crate) fn note_dispatch(&mut self, task: usize, now: u64) {
        if !self.all.is_empty() {
            self.began[task] = now;
        }
    }

    /// Records were lost: what was asked is not known.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// What to say of devices that were not judged to the end.
    pub(crate) fn unjudged(&self) -> Option<String> {
        let names: Vec<&str> = self.all.iter().map(|device| device.name.as_str()).collect();
        (self.is_lost && !names.is_empty())
            .then(|| format!("device {}: not judged any more after records were lost", names.join(", ")))
    }

    /// Lets a device go on until `to`, that instant included.
    fn advance(&mut self, device: usize, to: u64) {
        let Self { all, requests, .. } = self;
        let device = &mut all[device];
        while let Some(answer) = device.machine.complete(to) {
            if let Some(request) = &mut requests[answer.request as usize] {
                request.is_answered = true;
            }
            if let Some(ended) = &mut device.ended {
                ended.push_back(answer.at);
            }
        }
    }

    fn request(&self, record: &Record) -> Option<(usize, Request)> {
        let number = usize::try_from(record.value).ok()?;
        let request = self.requests.get(number).copied().flatten()?;
        (!self.is_lost).then_some((number, request))
    }
}

impl Verifier {
    /// A job has asked a device and waits for it.
    pub(crate) fn device_asked(&mut self, record: &Record, task: usize) {
        let now = self.now;
        let Some((number, request)) = self.devices.request(record) else { return };
        self.report.apply(Check::Device);
        // In a simulation a stretch that ends at an instant ends before a device does, and a job that began at this instant asks in
        // a later round. A run catches up before a job asks.
        let is_behind = !self.model.simulated || self.devices.began[task] == now;
        let until = if is_behind { Some(now) } else { now.checked_sub(1) };
        if let Some(until) = until {
            self.devices.advance(request.device, until);
        }
        self.devices.all[request.device].machine.release(now, number as u32, request.priority);
        self.devices.requests[number] = Some(Request { is_answered: false, ..request });
    }

    /// A job that waited for a device was woken.
    pub(crate) fn device_answered(&mut self, record: &Record, task: usize) {
        let Some((number, request)) = self.devices.request(record) else { return };
        self.report.apply(Check::Device);
        self.devices.advance(request.device, self.now);
        let is_answered = match &mut self.devices.requests[number] {
            Some(request) => std::mem::take(&mut request.is_answered),
            None => true,
        };
        if !is_answered {
            let message = format!(
                "{} job {} was woken before device {} can have been done with what it asked",
                self.model.tasks[task].name, record.job, self.devices.all[request.device].name
            );
            self.job_finding(Class::ModelViolated, Check::Device, task, record.job, message, None);
        }
    }

    /// A job of a device's thread was released: the event that it works off came when the device was done with a request.
    pub(crate) fn device_event(&mut self, record: &Record, task: usize) {
        let Some(place) = self.devices.worked_off_by[task].filter(|_| !self.devices.is_lost) else { return };
        self.report.apply(Check::Device);
        self.devices.advance(place, self.now);
        let device = &mut self.devices.all[place];
        let expected = device.ended.as_mut().and_then(VecDeque::pop_front);
        if expected == Some(record.value) {
            return;
        }
        let wanted = match expected {
            Some(at) => format!("at {at} ns"),
            None => "with no request by then".to_owned(),
        };
        let message = format!(
            "device {} was done at {} ns by its thread's job {}, and has to be done {wanted} by what it was asked",
            device.name, record.value, record.job
        );
        self.job_finding(Class::ModelViolated, Check::Device, task, record.job, message, None);
    }
}
