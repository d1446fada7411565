//! The rules of interrupts and devices.

use super::{At, Checker, Paths};
use crate::driver::MOST_SLOTS;
use crate::file::did_you_mean;
use crate::{
    Device, DeviceClass, DeviceService, Draft, Interrupt, Policy, PriorityAssignment, PriorityRule,
    RequestOrder, Server, ServerKind, Throttling,
};
use horolog_time::Span;

impl Checker {
    pub(super) fn interrupt(&mut self, interrupt: &Interrupt, path: &str, draft: &Draft, is_complete: bool) {
        self.name(&interrupt.name, At::new(path, "name"));
        self.cpu(interrupt.cpu, path, &draft.platform);
        if interrupt.separation.is_zero() {
            let remedy = "give the least time between two of what causes it";
            self.fail(At::new(path, "separation"), "the separation is zero", remedy);
        }
        if interrupt.cost.is_zero() {
            self.fail(At::new(path, "cost"), "the handler takes no time", "give its longest execution");
        }
        match interrupt.throttling {
            Throttling::Moderated { interval } if interval.is_zero() => {
                self.fail(
                    At::new(path, "interval"),
                    "the interval is zero",
                    "give the least time between interrupts",
                );
            }
            Throttling::Threshold { free } if is_complete => {
                let named = |device: &&Device| {
                    device.cpu == interrupt.cpu && device.interrupt.as_ref() == Some(&interrupt.name)
                };
                let mut devices = draft.devices.iter().filter(named);
                match (devices.next(), devices.next()) {
                    (Some(device), None) if free < device.ring => {}
                    (Some(device), None) => {
                        let reason =
                            format!("the ring has {} places, so {free} are free at once", device.ring);
                        self.fail(At::new(path, "free"), reason, "give fewer than the device's `ring`");
                    }
                    _ => self.fail(
                        At::new(path, "throttling"),
                        "a threshold is one of free places in a device's ring, so one device has to name it",
                        format!("give one [[device]] `interrupt = \"{}\"`", interrupt.name),
                    ),
                }
            }
            Throttling::Napi if is_complete => {
                let pollers = draft.devices.iter().filter(|device| {
                    device.cpu == interrupt.cpu && device.interrupt.as_ref() == Some(&interrupt.name)
                });
                if pollers.count() != 1 {
                    self.fail(
                        At::new(path, "throttling"),
                        "a NAPI interrupt stays off until its device's service is done, so one device has to name it",
                        format!("give one [[device]] `interrupt = \"{}\"`, or use another throttling", interrupt.name),
                    );
                }
            }
            _ => {}
        }
    }

    pub(super) fn device(&mut self, device: &Device, path: &str, draft: &Draft, is_complete: bool) {
        self.name(&device.name, At::new(path, "name"));
        self.cpu(device.cpu, path, &draft.platform);
        if device.separation.is_zero() {
            self.fail(
                At::new(path, "separation"),
                "the separation is zero",
                "give the least time between two events",
            );
        }
        if device.cost.is_zero() {
            self.fail(At::new(path, "cost"), "an event takes no time", "give its longest execution");
        }
        if device.ring == 0 {
            self.fail(At::new(path, "ring"), "no event has room", "give at least 1; 256 is the default");
        }
        if device.deadline.is_some_and(|deadline| deadline < device.cost) {
            let remedy = "raise the deadline, or lower the cost";
            self.fail(At::new(path, "deadline"), "every event would miss it", remedy);
        }
        self.scenario(device, path, draft);
        if device.is_soft && device.deadline.is_none() {
            let remedy = "add a `deadline`, or remove `constraint`";
            self.fail(At::new(path, "constraint"), "there is no deadline that could be soft", remedy);
        }
        if let Some(name) = &device.interrupt
            && is_complete
            && !draft.interrupts.iter().any(|other| other.name == *name && other.cpu == device.cpu)
        {
            let known: Vec<&str> = draft.interrupts.iter().map(|other| other.name.as_str()).collect();
            let reason = format!("there is no interrupt `{name}` on its CPU");
            self.fail(At::new(path, "interrupt"), reason, did_you_mean(name, &known));
        }
        self.service(device, path, draft, is_complete);
    }

    /// What a simulation alone looks at, and admission control.
    fn scenario(&mut self, device: &Device, path: &str, draft: &Draft) {
        if !device.cost.is_zero() && (device.least_cost.is_zero() || device.least_cost > device.cost) {
            let remedy = "give a time above zero and at most the cost";
            self.fail(At::new(path, "least_cost"), "the least cost is not between zero and the cost", remedy);
        }
        let of_requests = draft.requests.iter().filter(|request| request.device == device.name);
        let listed = of_requests.filter_map(|request| request.arrivals.as_ref());
        let mut arrivals: Vec<Span> = device.arrivals.iter().chain(listed).flatten().copied().collect();
        arrivals.sort_unstable();
        let is_close = |pair: &[Span]| pair[1].saturating_sub(pair[0]) < device.separation;
        if let Some(pair) = arrivals.windows(2).find(|pair| is_close(pair)) {
            let reason = format!("events at {} and {} are less than a separation apart", pair[0], pair[1]);
            self.fail(At::new(path, "arrivals"), reason, "move them apart, or lower `separation`");
        }
        if device.arrivals.as_ref().is_some_and(|arrivals| !arrivals.is_sorted()) {
            self.fail(At::new(path, "arrivals"), "the arrivals are not in order", "sort them");
        }
        let is_closed = device.class == DeviceClass::Closed;
        let asked = draft.requests.iter().any(|request| request.device == device.name);
        if is_closed && asked && device.arrivals.is_some() {
            let remedy = "remove `arrivals`, or make it `class = \"open\"`";
            self.fail(At::new(path, "arrivals"), "a closed device answers requests alone", remedy);
        }
        match device.latency {
            Some(_) if !is_closed => {
                let remedy = "remove `latency`, or make it `class = \"closed\"`";
                self.fail(At::new(path, "latency"), "only a closed device works on requests", remedy);
            }
            Some(latency) if latency < device.separation => {
                let remedy = "raise `latency`, or lower `separation`";
                let reason = "its answers would come less than a separation apart";
                self.fail(At::new(path, "latency"), reason, remedy);
            }
            _ => {}
        }
        self.slots(device, path, draft);
        if let Some(admission) = device.admission {
            if admission.cost.is_zero() {
                let remedy = "give what the test of one event costs";
                self.fail(At::new(path, "admission_cost"), "the test takes no time", remedy);
            }
            if admission.separation < device.separation {
                let remedy = "give at least the device's separation";
                self.fail(At::new(path, "admission_separation"), "every event would be admitted", remedy);
            }
        }
    }

    /// How a closed device serves what it is asked.
    fn slots(&mut self, device: &Device, path: &str, draft: &Draft) {
        let is_closed = device.class == DeviceClass::Closed;
        let remedy = "remove it, or make the device `class = \"closed\"`";
        match device.slots {
            0 => self.fail(At::new(path, "slots"), "no request is ever worked on", "give at least 1"),
            1 => {}
            _ if !is_closed => {
                self.fail(At::new(path, "slots"), "only a closed device works on requests", remedy);
            }
            slots if slots > MOST_SLOTS => {
                let reason = format!("more than {MOST_SLOTS} requests at once");
                self.fail(At::new(path, "slots"), reason, "give a smaller number");
            }
            _ => {}
        }
        if device.order == RequestOrder::Fifo {
            return;
        }
        if !is_closed {
            self.fail(At::new(path, "order"), "only a closed device has requests to order", remedy);
        } else if draft.policy == Policy::Edf {
            let reason = "tasks have no priorities under EDF";
            self.fail(At::new(path, "order"), reason, "use `order = \"fifo\"`");
        }
    }

    fn service(&mut self, device: &Device, path: &str, draft: &Draft, is_complete: bool) {
        match &device.service {
            DeviceService::Softirq { poll_budget: 0, .. } => {
                self.fail(
                    At::new(path, "poll_budget"),
                    "no round works off anything",
                    "give at least 1; 64 is the default",
                );
            }
            DeviceService::Softirq { rounds: 0, .. } => {
                self.fail(
                    At::new(path, "rounds"),
                    "no round works off anything",
                    "give at least 1; 10 is the default",
                );
            }
            DeviceService::Thread { priority, rule, users } => {
                if draft.policy == Policy::Edf || draft.priorities != PriorityAssignment::Explicit {
                    let remedy = "use fixed priorities that the file gives, or `service = \"interrupt\"`";
                    self.fail(
                        At::new(path, "service"),
                        "a thread of a driver needs a place among priorities",
                        remedy,
                    );
                }
                if *rule == PriorityRule::Fixed && priority.is_none() {
                    let remedy = "add `priority = 50`, or a `rule` with `users`";
                    self.fail(At::new(path, "priority"), "the thread has no priority", remedy);
                }
                if *rule != PriorityRule::Fixed && users.is_empty() {
                    let remedy = "add `users = [\"…\"]`, the tasks that use the device";
                    self.fail(At::new(path, "users"), "nobody lends the thread a priority", remedy);
                }
                let knows = |name: &String| {
                    draft.tasks.iter().any(|task| task.name == *name && task.cpu == device.cpu)
                };
                for (place, name) in users.iter().enumerate().filter(|(_, name)| is_complete && !knows(name))
                {
                    let known: Vec<&str> = draft.tasks.iter().map(|task| task.name.as_str()).collect();
                    let reason = format!("there is no task `{name}` on its CPU");
                    self.fail(At::new(path, "users").item(place), reason, did_you_mean(name, &known));
                }
            }
            DeviceService::Server { server } if is_complete => {
                let found =
                    draft.servers.iter().find(|other| other.name == *server && other.cpu == device.cpu);
                match found {
                    None => {
                        let known: Vec<&str> =
                            draft.servers.iter().map(|other| other.name.as_str()).collect();
                        let reason = format!("there is no server `{server}` on its CPU");
                        self.fail(At::new(path, "server"), reason, did_you_mean(server, &known));
                    }
                    Some(found) if found.kind.is_slack_policy() => {
                        let reason = format!("{} knows nothing of devices", found.kind.word());
                        self.fail(At::new(path, "server"), reason, "use a sporadic server");
                    }
                    Some(Server { kind: ServerKind::TotalBandwidth { .. }, .. }) => {
                        let reason = "a total bandwidth server has to know what each job executes at most";
                        self.fail(At::new(path, "server"), reason, "use a constant-bandwidth server");
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }

    /// Slack policies have to know all that executes on their processor; what the kernel serves has nobody above it and nobody that it may
    /// not preempt, and softirqs are both.
    pub(super) fn beside_drivers(&mut self, draft: &Draft, paths: &Paths) {
        for (server, path) in draft.servers.iter().zip(&paths.servers) {
            let interrupts = draft.interrupts.iter().any(|other| other.cpu == server.cpu);
            let devices = draft.devices.iter().any(|other| other.cpu == server.cpu);
            if server.kind.is_slack_policy() && (interrupts || devices) {
                let reason = format!("{} knows nothing of interrupts and devices", server.kind.word());
                self.fail(At::new(path, "kind"), reason, "use another CPU, or a sporadic server");
            }
            if server.kind.is_kernels() && (interrupts || devices) {
                self.fail(
                    At::new(path, "enforcement"),
                    format!(
                        "interrupts and softirqs of CPU {} come before what the kernel serves",
                        server.cpu.0
                    ),
                    "put interrupts and devices on another CPU, or use `enforcement = \"own\"`",
                );
            }
        }
    }
}
