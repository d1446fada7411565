//! The whole machine as far as horolog could change it, for a comparison of before and after.

#![allow(unreachable_pub)]

use horolog_sys::guardian::Mark;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What the machine is like: each thing with its state.
///
/// What living programs beside the tests do is left out as far as it can be told: their threads, folders and recordings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine(BTreeMap<String, String>);

impl Machine {
    /// As it is now. `victim` is the process whose folders, journals and recordings count.
    pub fn now(victim: Option<u32>) -> Machine {
        let mut facts = Facts { all: BTreeMap::new(), victim };
        facts.tracing();
        facts.threads();
        facts.settings();
        facts.control_groups(Path::new("/sys/fs/cgroup"), 0);
        facts.network();
        facts.interrupts();
        facts.folders();
        Machine(facts.all)
    }

    /// What has changed since, in words; empty where nothing has.
    pub fn changes_to(&self, after: &Machine) -> Vec<String> {
        let mut changes = Vec::new();
        for (name, was) in &self.0 {
            match after.0.get(name) {
                Some(is) if is == was => {}
                Some(is) => changes.push(format!("{name}: {was:?} became {is:?}")),
                // Threads end; everything else was there to stay.
                None if name.starts_with("thread ") => {}
                None => changes.push(format!("{name}: {was:?} is gone")),
            }
        }
        let added = after.0.iter().filter(|(name, _)| !self.0.contains_key(*name));
        // Threads of others begin.
        let added = added.filter(|(name, _)| !name.starts_with("thread "));
        changes.extend(added.map(|(name, is)| format!("{name}: {is:?} is new")));
        changes
    }
}

struct Facts {
    all: BTreeMap<String, String>,
    victim: Option<u32>,
}

/// The tracing system's root.
const TRACEFS: &str = "/sys/kernel/tracing";

impl Facts {
    fn add(&mut self, name: impl Into<String>, state: impl Into<String>) {
        self.all.insert(name.into(), state.into());
    }

    fn file(&mut self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        if let Ok(bytes) = fs::read(path) {
            self.add(path.display().to_string(), String::from_utf8_lossy(&bytes).trim());
        }
    }

    /// The root's own state, and every instance that no other living program of ours has made.
    fn tracing(&mut self) {
        const STATE: [&str; 10] = [
            "tracing_on",
            "current_tracer",
            "buffer_size_kb",
            "set_event",
            "set_event_pid",
            "set_event_notrace_pid",
            "trace_options",
            "trace_clock",
            "tracing_cpumask",
            "kprobe_events",
        ];
        let root = Path::new(TRACEFS);
        STATE.iter().for_each(|name| self.file(root.join(name)));
        self.file(root.join("uprobe_events"));
        for name in names(&root.join("instances")) {
            if self.is_of_the_victim(&name) || !name.starts_with("horolog-") {
                let instance = root.join("instances").join(name);
                self.add(instance.display().to_string(), "there");
                STATE.iter().for_each(|name| self.file(instance.join(name)));
            }
        }
    }

    fn is_of_the_victim(&self, name: &str) -> bool {
        let Some(victim) = self.victim else { return false };
        let is_journal = name.starts_with(&format!("{victim}-"));
        is_journal || Mark::parse(name).is_some_and(|mark| mark.process() == victim)
    }

    /// Scheduling class, priority, nice value and CPUs of every thread that is not of a program built here.
    fn threads(&mut self) {
        for process in names(Path::new("/proc")).into_iter().filter(|name| name.parse::<u32>().is_ok()) {
            let folder = PathBuf::from(format!("/proc/{process}"));
            // Tests beside this one, and what they start.
            let is_ours = fs::read_link(folder.join("exe"))
                .is_ok_and(|exe| exe.components().any(|part| part.as_os_str() == "target"));
            if is_ours {
                continue;
            }
            for tid in names(&folder.join("task")) {
                if let Some((key, state)) = thread(&folder.join("task").join(&tid), &tid) {
                    self.add(key, state);
                }
            }
        }
    }

    fn settings(&mut self) {
        for name in [
            "sched_rt_runtime_us",
            "sched_rt_period_us",
            "sched_deadline_period_min_us",
            "sched_deadline_period_max_us",
            "sched_rr_timeslice_ms",
            "perf_event_paranoid",
            "perf_event_mlock_kb",
            "perf_event_max_stack",
            "ftrace_enabled",
            "kptr_restrict",
            "core_pattern",
        ] {
            self.file(Path::new("/proc/sys/kernel").join(name));
        }
        if let Ok(bytes) = fs::read("/dev/cpu_dma_latency") {
            self.add("/dev/cpu_dma_latency", format!("{bytes:?}"));
        }
        for cpu in names(Path::new("/sys/devices/system/cpu")) {
            let folder = Path::new("/sys/devices/system/cpu").join(cpu);
            self.file(folder.join("cpufreq/scaling_governor"));
            self.file(folder.join("online"));
        }
        self.file("/sys/devices/virtual/workqueue/cpumask");
        self.file("/proc/self/mountinfo");
        self.file("/proc/self/cgroup");
    }

    fn control_groups(&mut self, folder: &Path, depth: u32) {
        for name in names(folder) {
            let path = folder.join(&name);
            // Those of other tests carry their maker's number.
            let is_group = fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_dir());
            if !is_group || name.starts_with("horolog-test-") || depth > 4 {
                continue;
            }
            self.add(path.display().to_string(), "there");
            for file in [
                "cpuset.cpus",
                "cpuset.cpu_exclusive",
                "cpuset.sched_load_balance",
                "cpu.rt_runtime_us",
                "cpu.cfs_quota_us",
                "cpu.max",
                "freezer.state",
            ] {
                self.file(path.join(file));
            }
            self.control_groups(&path, depth + 1);
        }
    }

    fn network(&mut self) {
        let devices = Path::new("/sys/class/net");
        for name in names(devices) {
            self.add(format!("network device {name}"), "there");
            ["flags", "mtu", "threaded"].iter().for_each(|file| self.file(devices.join(&name).join(file)));
        }
        for name in names(Path::new("/run/netns")) {
            self.add(format!("/run/netns/{name}"), "there");
        }
    }

    fn interrupts(&mut self) {
        let folder = Path::new("/proc/irq");
        self.file(folder.join("default_smp_affinity"));
        names(folder).iter().for_each(|irq| self.file(folder.join(irq).join("smp_affinity_list")));
    }

    fn folders(&mut self) {
        for place in ["/tmp", "/run", "/run/horolog", "/dev/shm"] {
            for name in names(Path::new(place)) {
                let is_network = self.victim.is_some_and(|id| name.starts_with(&format!("h{id:x}")));
                if self.is_of_the_victim(&name) || is_network {
                    self.add(format!("{place}/{name}"), "there");
                }
            }
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// A thread, told from later ones of its number, and how it is scheduled.
fn thread(folder: &Path, tid: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"))?;
    let (nice, started, priority, policy) =
        (fields.get(16)?, fields.get(19)?, fields.get(37)?, fields.get(38)?);
    // Its name may change at any time, as those of the kernel's workers do.
    let state = format!("policy {policy}, priority {priority}, nice {nice}, {cpus}");
    Some((format!("thread {tid} of {started}"), state))
}

/// The living processes that have this line in their environment.
pub fn processes_with(line: &str) -> Vec<String> {
    let processes = names(Path::new("/proc")).into_iter().filter(|name| name.parse::<u32>().is_ok());
    let has = |process: &String| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|one| one == line.as_bytes())
    };
    let told = |process: String| {
        let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        format!("{process}: {}", String::from_utf8_lossy(&words).replace('\0', " "))
    };
    processes.filter(has).map(told).collect()
}
