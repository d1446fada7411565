//! Every rule that a system obeys, in one place; [`crate::System::new`] and the file reader both come here.

mod body;
mod driver;
mod forest;
mod link;
mod mode;
mod remote;
mod request;
mod resource;
mod scheduler;
mod server;
mod spin;
mod task;

pub(crate) use server::NEEDS_FIXED_PRIORITIES;

use crate::file::Suggestions;
use crate::platform::MAX_CPUS;
use crate::{CpuId, Cpus, Draft, Interference, ModelError, Platform, Policy, PriorityAssignment, path};
use driver::Drivers;
use forest::Forest;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One broken rule, and the other values that have to do with it.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) error: ModelError,
    /// Path and label of values that contradict the one at fault.
    pub(crate) others: Vec<(String, String)>,
}

/// How messages name the items of a draft.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// One path a task.
    pub(crate) tasks: Vec<String>,
    /// One path a server or scheduler.
    pub(crate) servers: Vec<String>,
    /// One path a root over several processors.
    pub(crate) clusters: Vec<String>,
    /// One path a mode.
    pub(crate) modes: Vec<String>,
    /// One path an interrupt.
    pub(crate) interrupts: Vec<String>,
    /// One path a device.
    pub(crate) devices: Vec<String>,
    /// One path a request.
    pub(crate) requests: Vec<String>,
    /// One path a resource.
    pub(crate) resources: Vec<String>,
    /// One path a spin priority.
    pub(crate) spin_priorities: Vec<String>,
    /// One path a link.
    pub(crate) links: Vec<String>,
    /// One path an interference.
    pub(crate) interferences: Vec<String>,
    /// Names of tasks that some server or scheduler names, among them those that could not be read: how such a task is
    /// ordered is unknown then.
    pub(crate) named: BTreeSet<String>,
    /// Whether every server and scheduler could be read.
    pub(crate) all_schedulers: bool,
    /// Whether every mode could be read.
    pub(crate) all_modes: bool,
}

impl Paths {
    /// No paths at all, for finding out cheaply whether any rule is broken.
    pub(crate) fn none(draft: &Draft) -> Paths {
        Paths {
            tasks: vec![String::new(); draft.tasks.len()],
            servers: vec![String::new(); draft.servers.len()],
            clusters: vec![String::new(); draft.clusters.len()],
            modes: vec![String::new(); draft.modes.len()],
            interrupts: vec![String::new(); draft.interrupts.len()],
            devices: vec![String::new(); draft.devices.len()],
            requests: vec![String::new(); draft.requests.len()],
            resources: vec![String::new(); draft.resources.len()],
            spin_priorities: vec![String::new(); draft.spin_priorities.len()],
            links: vec![String::new(); draft.links.len()],
            interferences: vec![String::new(); draft.interferences.len()],
            named: BTreeSet::new(),
            all_schedulers: true,
            all_modes: true,
        }
    }

    /// By name where that tells which one is meant, else by place.
    pub(crate) fn of(draft: &Draft) -> Paths {
        let tasks: Vec<&str> = draft.tasks.iter().map(|task| task.name.as_str()).collect();
        let interferences: Vec<&str> = draft.interferences.iter().map(|i| i.name.as_str()).collect();
        let interrupts: Vec<&str> = draft.interrupts.iter().map(|i| i.name.as_str()).collect();
        let devices: Vec<&str> = draft.devices.iter().map(|device| device.name.as_str()).collect();
        let resources: Vec<&str> = draft.resources.iter().map(|resource| resource.name.as_str()).collect();
        let links: Vec<&str> = draft.links.iter().map(|link| link.name.as_str()).collect();
        let requests: Vec<&str> = draft.requests.iter().map(|request| request.name.as_str()).collect();
        let cpus: Vec<String> = draft.spin_priorities.iter().map(|spin| spin.cpu.0.to_string()).collect();
        let cpus: Vec<&str> = cpus.iter().map(String::as_str).collect();
        let (servers, clusters) = scheduler_paths(draft);
        let modes: Vec<&str> = draft.modes.iter().map(|mode| mode.name.as_str()).collect();
        Paths {
            modes: item_paths("mode", &modes),
            interrupts: item_paths("interrupt", &interrupts),
            devices: item_paths("device", &devices),
            requests: item_paths("request", &requests),
            resources: item_paths("resource", &resources),
            spin_priorities: item_paths("spin_priority", &cpus),
            links: item_paths("link", &links),
            tasks: item_paths("task", &tasks),
            servers,
            clusters,
            interferences: item_paths("interference", &interferences),
            named: BTreeSet::new(),
            all_schedulers: true,
            all_modes: true,
        }
    }
}

/// The paths of servers and schedulers, and of clusters: the two forms of the file count apart.
fn scheduler_paths(draft: &Draft) -> (Vec<String>, Vec<String>) {
    let is_scheduler = |server: &&crate::Server| server.is_scheduler();
    let plain = draft.servers.iter().filter(|server| !is_scheduler(server));
    let plain: Vec<&str> = plain.map(|server| server.name.as_str()).collect();
    let trees = draft.servers.iter().filter(is_scheduler).map(|server| server.name.as_str());
    let trees: Vec<&str> = trees.chain(draft.clusters.iter().map(|cluster| cluster.name.as_str())).collect();
    let mut plain = item_paths("server", &plain).into_iter();
    let mut trees = item_paths("scheduler", &trees).into_iter();
    let of = |server: &crate::Server| if is_scheduler(&server) { trees.next() } else { plain.next() };
    let servers = draft.servers.iter().filter_map(of).collect();
    (servers, trees.collect())
}

/// One path an item: by its name where that is unique, else by its place.
pub(crate) fn item_paths(base: &str, names: &[&str]) -> Vec<String> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *count.entry(name).or_default() += 1;
    }
    names.iter().enumerate().map(|(index, name)| path::item(base, name, index, count[name] == 1)).collect()
}

/// A value below an item, written out only where a message needs it: drafts without errors cost no text.
#[derive(Clone, Copy)]
pub(crate) struct At<'p> {
    base: &'p str,
    keys: &'static str,
}

impl<'p> At<'p> {
    pub(crate) fn new(base: &'p str, keys: &'static str) -> At<'p> {
        At { base, keys }
    }

    /// One item of the list at this path.
    pub(crate) fn item(self, index: usize) -> String {
        path::by_place(&self.to_string(), index)
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.base, self.keys)
    }
}

/// The rules that a draft breaks.
pub(crate) struct Checker {
    findings: Vec<Finding>,
    suggestions: Suggestions,
}

impl Checker {
    fn fail(&mut self, at: impl fmt::Display, reason: impl Into<String>, remedy: impl Into<String>) {
        self.fail_beside(at, reason, remedy, Vec::new());
    }

    fn fail_beside(
        &mut self,
        at: impl fmt::Display,
        reason: impl Into<String>,
        remedy: impl Into<String>,
        others: Vec<(String, String)>,
    ) {
        let error = ModelError { at: at.to_string(), reason: reason.into(), remedy: remedy.into() };
        self.findings.push(Finding { error, others });
    }

    /// A name that shows in tables, messages and thread names.
    fn name(&mut self, name: &str, at: At<'_>) {
        if name.is_empty() {
            self.fail(at, "the name is empty", "give it a name");
        } else if name.trim() != name {
            self.fail(
                at,
                format!("the name `{name}` starts or ends with white space"),
                "remove the white space",
            );
        } else if name.chars().any(char::is_control) {
            self.fail(at, format!("the name {name:?} has a control character"), "use printable characters");
        }
    }

    fn unique<'d>(&mut self, names: impl Iterator<Item = &'d str>, paths: &[String], noun: &str) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, name) in names.enumerate() {
            match first.get(name) {
                // An empty name is told as such.
                Some(_) if name.is_empty() => {}
                Some(&earlier) => self.fail_beside(
                    path::join(&paths[index], "name"),
                    format!("two {noun}s are called `{name}`"),
                    "give each its own name",
                    vec![(path::join(&paths[earlier], "name"), "the other".to_owned())],
                ),
                None => {
                    first.insert(name, index);
                }
            }
        }
    }

    fn platform(&mut self, platform: &Platform) {
        let at = "platform.cpus";
        match &platform.cpus {
            Cpus::Listed(list) => self.cpu_list(list, at),
            Cpus::Count(0) => self.fail(at, "there is no CPU", "give at least one, as in `cpus = 1`"),
            Cpus::Count(n) if *n > MAX_CPUS => {
                self.fail(
                    at,
                    format!("{n} CPUs are more than any Linux has"),
                    format!("use at most {MAX_CPUS}"),
                );
            }
            Cpus::Count(_) => {}
        }
        if platform.tick.is_some_and(horolog_time::Span::is_zero) {
            self.fail(
                "platform.tick",
                "a tick of zero never comes",
                "give the tick's period, or leave `tick` out for one-shot timers",
            );
        }
    }

    fn cpu_list(&mut self, list: &[CpuId], at: &str) {
        if list.is_empty() {
            self.fail(at, "there is no CPU", "give at least one, as in `cpus = [1]`");
        }
        if let Some(cpu) = list.iter().find(|cpu| cpu.0 >= MAX_CPUS) {
            let reason = format!("CPU {} is beyond the last one that Linux can have", cpu.0);
            self.fail(at, reason, format!("use numbers from 0 to {}", MAX_CPUS - 1));
        }
        if !list.is_sorted_by(|a, b| a < b) {
            let mut sorted: Vec<u32> = list.iter().map(|cpu| cpu.0).collect();
            sorted.sort_unstable();
            sorted.dedup();
            self.fail(
                at,
                "the CPUs are not in ascending order, each once",
                format!("write `cpus = {sorted:?}`"),
            );
        }
    }

    fn interference(&mut self, interference: &Interference, path: &str, platform: &Platform) {
        self.name(&interference.name, At::new(path, "name"));
        self.cpu(interference.cpu, path, platform);
        let at = At::new(path, "utilisation");
        if interference.utilisation_ppb == 0 {
            self.fail(
                at,
                "this interference takes no time",
                "give a utilisation above 0, or remove the interference",
            );
        } else if interference.utilisation_ppb > 1_000_000_000 {
            self.fail(at, "nothing takes more than all of a CPU", "give a utilisation of at most 1");
        }
        if interference.period.is_zero() {
            self.fail(At::new(path, "period"), "the period is zero", "give the period of the load bound");
        }
    }

    fn cpu(&mut self, cpu: CpuId, path: &str, platform: &Platform) {
        if platform.cpus.index_of(cpu).is_none() {
            let known = match &platform.cpus {
                Cpus::Listed(list) => {
                    let numbers: Vec<String> = list.iter().take(16).map(|cpu| cpu.0.to_string()).collect();
                    format!("use one of {}, or add it to `cpus`", numbers.join(", "))
                }
                Cpus::Count(1) => "use CPU 0, or list CPUs in [platform], as in `cpus = [1]`".to_owned(),
                Cpus::Count(n) => format!("use one from 0 to {}", n.saturating_sub(1)),
            };
            self.fail_beside(
                At::new(path, "cpu"),
                format!("CPU {} is not among the platform's CPUs", cpu.0),
                known,
                vec![("platform.cpus".to_owned(), "the platform's CPUs".to_owned())],
            );
        }
    }
}

/// Every rule that the draft breaks, in its order. Of an incomplete draft some tasks were left out because they
/// could not be read.
pub(crate) fn check(draft: &Draft, paths: &Paths, is_complete: bool) -> Vec<Finding> {
    let mut checker = Checker { findings: Vec::new(), suggestions: Suggestions::default() };
    checker.name(&draft.name, At::new("system", "name"));
    for text in &draft.unmodelled {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            let at = At::new("system", "unmodelled");
            checker.fail(
                at,
                "a text is empty or has a control character",
                "say in words what the file leaves out",
            );
        }
    }
    if draft.policy == Policy::Edf && draft.priorities != PriorityAssignment::Explicit {
        checker.fail_beside(
            "system.priorities",
            "under EDF nothing has a priority",
            "remove `priorities`, or use `policy = \"fixed-priority\"`",
            vec![("system.policy".to_owned(), "EDF here".to_owned())],
        );
    }
    checker.platform(&draft.platform);
    if is_complete && draft.tasks.is_empty() {
        checker.fail("task", "there is no task", "add a `[[task]]` with name, period, wcet and priority");
    }
    if draft.tasks.len() > u32::MAX as usize {
        checker.fail("task", "there are more than 2^32 - 1 tasks", "remove some");
    }
    checker.unique(draft.tasks.iter().map(|task| task.name.as_str()), &paths.tasks, "task");
    let forest = Forest::of(draft, paths);
    for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
        checker.task(task, path, forest.above_task(&task.name), &forest);
    }
    checker.schedulers(&forest, is_complete);
    checker.servers(&forest, is_complete);
    checker.overruns(&forest);
    let drivers = Drivers::of(&forest);
    checker.unique(draft.interrupts.iter().map(|i| i.name.as_str()), &paths.interrupts, "interrupt");
    for (interrupt, path) in draft.interrupts.iter().zip(&paths.interrupts) {
        checker.interrupt(interrupt, path, &drivers, is_complete);
    }
    checker.unique(draft.devices.iter().map(|device| device.name.as_str()), &paths.devices, "device");
    for (device, path) in draft.devices.iter().zip(&paths.devices) {
        checker.device(device, path, &drivers, is_complete);
    }
    checker.unique(draft.requests.iter().map(|request| request.name.as_str()), &paths.requests, "request");
    for (request, path) in draft.requests.iter().zip(&paths.requests) {
        checker.request(request, path, &drivers, is_complete);
    }
    checker.resources(&forest, is_complete);
    checker.spin_priorities(&forest, is_complete);
    checker.links(&forest, is_complete);
    checker.beside_drivers(draft, paths, &drivers);
    checker.unique(draft.interferences.iter().map(|i| i.name.as_str()), &paths.interferences, "interference");
    for (interference, path) in draft.interferences.iter().zip(&paths.interferences) {
        checker.interference(interference, path, &draft.platform);
    }
    checker.modes(&forest, is_complete);
    checker.findings
}
