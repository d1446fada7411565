//! The rules of interrupts and devices.

use super::forest::{Forest, first_places};
use super::{At, Checker, Paths};
use crate::driver::MOST_SLOTS;
use crate::{
    CpuId, Device, DeviceClass, DeviceService, Draft, Interrupt, Policy, PriorityAssignment, PriorityRule,
    RequestOrder, Server, ServerKind, Throttling,
};
use horolog_time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The interrupts, devices and requests of a draft by their names.
pub(super) struct Drivers<'d> {
    pub(super) forest: &'d Forest<'d>,
    interrupts: BTreeSet<(CpuId, &'d str)>,
    pub(super) devices: BTreeMap<&'d str, usize>,
    /// The devices that name an interrupt of their processor.
    devices_of: BTreeMap<(CpuId, &'d str), Vec<usize>>,
    /// The requests of each device.
    requests_of: BTreeMap<&'d str, Vec<usize>>,
    tasks: BTreeSet<(CpuId, &'d str)>,
    servers: BTreeMap<(CpuId, &'d str), usize>,
    /// The processors with interrupts or devices.
    cpus: BTreeSet<CpuId>,
}

impl<'d> Drivers<'d> {
    pub(super) fn of(forest: &'d Forest<'d>) -> Drivers<'d> {
        let draft = forest.draft;
        let mut drivers = Drivers {
            forest,
            interrupts: draft.interrupts.iter().map(|one| (one.cpu, one.name.as_str())).collect(),
            devices: first_places(draft.devices.iter().map(|device| device.name.as_str())),
            devices_of: BTreeMap::new(),
            requests_of: BTreeMap::new(),
            tasks: BTreeSet::new(),
            servers: BTreeMap::new(),
            cpus: draft.interrupts.iter().map(|one| one.cpu).collect(),
        };
        if draft.devices.is_empty() {
            return drivers;
        }
        drivers.cpus.extend(draft.devices.iter().map(|device| device.cpu));
        drivers.tasks.extend(draft.tasks.iter().map(|task| (task.cpu, task.name.as_str())));
        for (place, server) in draft.servers.iter().enumerate() {
            drivers.servers.entry((server.cpu, server.name.as_str())).or_insert(place);
        }
        for (place, device) in draft.devices.iter().enumerate() {
            if let Some(name) = &device.interrupt {
                drivers.devices_of.entry((device.cpu, name)).or_default().push(place);
            }
        }
        for (place, request) in draft.requests.iter().enumerate() {
            drivers.requests_of.entry(&request.device).or_default().push(place);
        }
        drivers
    }

    /// The devices that name this interrupt.
    fn devices_of<'a>(&'a self, interrupt: &'a Interrupt) -> &'a [usize] {
        self.devices_of.get(&(interrupt.cpu, interrupt.name.as_str())).map_or(&[], Vec::as_slice)
    }
}

impl Checker {
    pub(super) fn interrupt(
        &mut self,
        interrupt: &Interrupt,
        path: &str,
        drivers: &Drivers<'_>,
        is_complete: bool,
    ) {
        let draft = drivers.forest.draft;
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
            Throttling::Threshold { free } if is_complete => match *drivers.devices_of(interrupt) {
                [device] if free < draft.devices[device].ring => {}
                [device] => {
                    let ring = draft.devices[device].ring;
                    let reason = format!("the ring has {ring} places, so {free} are free at once");
                    self.fail(At::new(path, "free"), reason, "give fewer than the device's `ring`");
                }
                _ => self.fail(
                    At::new(path, "throttling"),
                    "a threshold is one of free places in a device's ring, so one device has to name it",
                    format!("give one [[device]] `interrupt = \"{}\"`", interrupt.name),
                ),
            },
            Throttling::Napi if is_complete && drivers.devices_of(interrupt).len() != 1 => self.fail(
                At::new(path, "throttling"),
                "a NAPI interrupt stays off until its device's service is done, so one device has to name it",
                format!(
                    "give one [[device]] `interrupt = \"{}\"`, or use another throttling",
                    interrupt.name
                ),
            ),
            _ => {}
        }
    }

    pub(super) fn device(&mut self, device: &Device, path: &str, drivers: &Drivers<'_>, is_complete: bool) {
        let draft = drivers.forest.draft;
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
        self.scenario(device, path, drivers);
        if device.is_soft && device.deadline.is_none() {
            let remedy = "add a `deadline`, or remove `constraint`";
            self.fail(At::new(path, "constraint"), "there is no deadline that could be soft", remedy);
        }
        if let Some(name) = &device.interrupt
            && is_complete
            && !drivers.interrupts.contains(&(device.cpu, name.as_str()))
        {
            let known = draft.interrupts.iter().map(|other| other.name.as_str());
            let remedy = self.suggestions.did_you_mean(name, known);
            let reason = format!("there is no interrupt `{name}` on its CPU");
            self.fail(At::new(path, "interrupt"), reason, remedy);
        }
        self.service(device, path, drivers, is_complete);
    }

    /// What a simulation alone looks at, and admission control.
    fn scenario(&mut self, device: &Device, path: &str, drivers: &Drivers<'_>) {
        let draft = drivers.forest.draft;
        let requests = drivers.requests_of.get(device.name.as_str()).map_or(&[][..], Vec::as_slice);
        if !device.cost.is_zero() && (device.least_cost.is_zero() || device.least_cost > device.cost) {
            let remedy = "give a time above zero and at most the cost";
            self.fail(At::new(path, "least_cost"), "the least cost is not between zero and the cost", remedy);
        }
        let listed = requests.iter().filter_map(|&place| draft.requests[place].arrivals.as_ref());
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
        if is_closed && !requests.is_empty() && device.arrivals.is_some() {
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

    fn service(&mut self, device: &Device, path: &str, drivers: &Drivers<'_>, is_complete: bool) {
        let draft = drivers.forest.draft;
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
                let knows = |name: &str| drivers.tasks.contains(&(device.cpu, name));
                for (place, name) in users.iter().enumerate().filter(|(_, name)| is_complete && !knows(name))
                {
                    let known = draft.tasks.iter().map(|task| task.name.as_str());
                    let remedy = self.suggestions.did_you_mean(name, known);
                    let reason = format!("there is no task `{name}` on its CPU");
                    self.fail(At::new(path, "users").item(place), reason, remedy);
                }
            }
            DeviceService::Server { server } if is_complete => {
                let found = drivers.servers.get(&(device.cpu, server.as_str()));
                match found.map(|&place| &draft.servers[place]) {
                    None => {
                        let known = draft.servers.iter().map(|other| other.name.as_str());
                        let remedy = self.suggestions.did_you_mean(server, known);
                        let reason = format!("there is no server `{server}` on its CPU");
                        self.fail(At::new(path, "server"), reason, remedy);
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
    pub(super) fn beside_drivers(&mut self, draft: &Draft, paths: &Paths, drivers: &Drivers<'_>) {
        for (server, path) in draft.servers.iter().zip(&paths.servers) {
            let has_drivers = drivers.cpus.contains(&server.cpu);
            if server.kind.is_slack_policy() && has_drivers {
                let reason = format!("{} knows nothing of interrupts and devices", server.kind.word());
                self.fail(At::new(path, "kind"), reason, "use another CPU, or a sporadic server");
            }
            if server.kind.is_kernels() && has_drivers {
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
