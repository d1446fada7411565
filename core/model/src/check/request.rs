//! The rules of requests.

use super::driver::Drivers;
use super::{At, Checker};
use crate::{DeviceClass, Preemption, Request, RequestMode};

impl Checker {
    pub(super) fn request(
        &mut self,
        request: &Request,
        path: &str,
        drivers: &Drivers<'_>,
        is_complete: bool,
    ) {
        self.name(&request.name, At::new(path, "name"));
        let draft = drivers.forest.draft;
        let device = drivers.devices.get(request.device.as_str()).map(|&place| &draft.devices[place]);
        if device.is_none() && is_complete {
            let known = draft.devices.iter().map(|device| device.name.as_str());
            let remedy = self.suggestions.did_you_mean(&request.device, known);
            let reason = format!("there is no device `{}`", request.device);
            self.fail(At::new(path, "device"), reason, remedy);
        }
        let tasks = &drivers.forest.task_places;
        match tasks.get(request.task.as_str()).map(|&place| &draft.tasks[place]) {
            None if is_complete => {
                let known = draft.tasks.iter().map(|task| task.name.as_str());
                let remedy = self.suggestions.did_you_mean(&request.task, known);
                let reason = format!("there is no task `{}`", request.task);
                self.fail(At::new(path, "task"), reason, remedy);
            }
            Some(task) => {
                if request.after > task.wcet {
                    let remedy = format!("give at most {}", task.wcet);
                    self.fail(At::new(path, "after"), "a job ends before it asks", remedy);
                }
                if matches!(task.preemption, Preemption::Deferred(_)) {
                    let remedy = "use another preemption mode, or a task of its own for the device";
                    self.fail(
                        At::new(path, "task"),
                        "a task in segments asks for nothing within a job",
                        remedy,
                    );
                }
                if device.is_some_and(|device| device.cpu != task.cpu) {
                    let remedy = "use the CPU of the task";
                    self.fail(At::new(path, "device"), "the device is served on another CPU", remedy);
                }
            }
            None => {}
        }
        if let Some(arrivals) = &request.arrivals {
            if device.is_some_and(|device| device.class == DeviceClass::Closed) {
                let remedy = "remove `arrivals`; a closed device answers by itself";
                self.fail(At::new(path, "arrivals"), "only an open device has events of its own", remedy);
            }
            if !arrivals.is_sorted() {
                self.fail(At::new(path, "arrivals"), "the arrivals are not in order", "sort them");
            }
        }
        let is_open = device.is_some_and(|device| device.class == DeviceClass::Open);
        if is_open && request.mode == RequestMode::Asynchronous {
            let remedy = "use `mode = \"synchronous\"`, or a closed device";
            self.fail(
                At::new(path, "mode"),
                "an open device answers nobody: its data are waited for",
                remedy,
            );
        }
    }
}
