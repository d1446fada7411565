//! Memory, cgroups, and what an earlier run left behind.

use super::{Fact, State};
use horolog_sys::guardian::{left_over, left_over_folders, left_over_groups};
use horolog_sys::kernel_trace::left_over_instances;
use horolog_sys::machine::{Capability, Limit, has_capability, limit, may_write, read};
use horolog_sys::memory::{LOCKED_MEMORY_REMEDY, may_lock_all};

pub(super) fn facts() -> Vec<Fact> {
    vec![locked_memory(), cgroup_v2(), cgroup_v1(), left_over_changes()]
}

fn locked_memory() -> Fact {
    const NAME: &str = "locked-memory";
    const FOR: &str = "runs without page faults (mlockall), and rings of the recorder";
    let unlimited = has_capability(Capability::IpcLock);
    let bytes = match (unlimited, limit(Limit::LockedMemory)) {
        (Ok(true), _) => return Fact::new(NAME, FOR, State::Yes, "CAP_IPC_LOCK is in effect: no limit"),
        (_, Ok(None)) => return Fact::new(NAME, FOR, State::Yes, "RLIMIT_MEMLOCK is unlimited"),
        (_, Ok(Some(bytes))) => bytes,
        (_, Err(error)) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    let kib = bytes / 1024;
    let found = match may_lock_all() {
        Ok(()) => Fact::new(
            NAME,
            FOR,
            State::Limited,
            format!("RLIMIT_MEMLOCK is {kib} KiB: enough for a small run (tried)"),
        ),
        Err(error) => Fact::new(
            NAME,
            FOR,
            State::No,
            format!("RLIMIT_MEMLOCK is {kib} KiB, too little for a run (tried): {}", error.what()),
        ),
    };
    found.remedy(LOCKED_MEMORY_REMEDY)
}

/// Where file systems of this type are mounted, each with its options.
fn mounts(kind: &str) -> Result<Vec<(String, String)>, horolog_sys::Error> {
    let text = read("/proc/self/mounts")?;
    let found = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [_, place, of_kind, options, ..] if of_kind == kind => {
                Some((place.to_owned(), options.to_owned()))
            }
            _ => None,
        }
    });
    Ok(found.collect())
}

fn cgroup_v2() -> Fact {
    const NAME: &str = "cgroup-v2";
    const FOR: &str = "exclusive cpusets, in which SCHED_DEADLINE threads may be pinned; no verb makes one";
    let places = match mounts("cgroup2") {
        Ok(places) => places,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    let Some((place, _)) = places.first() else {
        return Fact::new(NAME, FOR, State::No, "not mounted")
            .remedy("`mount -t cgroup2 cgroup2 /sys/fs/cgroup`; cgroup v1 serves where it is there");
    };
    let controllers = match read(&format!("{place}/cgroup.controllers")) {
        Ok(controllers) => controllers,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    let missing: Vec<&str> = ["cpu", "cpuset", "io"]
        .into_iter()
        .filter(|wanted| !controllers.split_whitespace().any(|controller| controller == *wanted))
        .collect();
    let writable = if may_write(&format!("{place}/cgroup.procs")) { "" } else { ", not writable" };
    let shown = if controllers.is_empty() { "none".to_owned() } else { controllers.clone() };
    let detail = format!("at {place}; controllers: {shown}{writable}");
    if missing.is_empty() && writable.is_empty() {
        Fact::new(NAME, FOR, State::Yes, detail)
    } else {
        Fact::new(NAME, FOR, State::Limited, detail).remedy(if missing.is_empty() {
            "run as root, or have systemd delegate a subtree (Delegate=yes)".to_owned()
        } else {
            format!(
                "{} belong to cgroup v1 here or are not built in; boot with cgroup_no_v1=all",
                missing.join(", ")
            )
        })
    }
}

fn cgroup_v1() -> Fact {
    const NAME: &str = "cgroup-v1";
    const FOR: &str =
        "SCHED_FIFO in this process's group (cpu.rt_runtime_us), and exclusive cpusets on older systems";
    let places = match mounts("cgroup") {
        Ok(places) => places,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    if places.is_empty() {
        return Fact::new(NAME, FOR, State::No, "not mounted")
            .remedy("not needed where cgroup v2 has cpu, cpuset and io");
    }
    let names: Vec<&str> = places.iter().filter_map(|(place, _)| place.rsplit('/').next()).collect();
    let group_of = read("/proc/self/cgroup").unwrap_or_default();
    let cpu_group = group_of.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let controllers = parts.nth(1)?;
        controllers.split(',').any(|name| name == "cpu").then(|| parts.next().map(str::to_owned))?
    });
    let cpu_mount = places.iter().find(|(_, options)| options.split(',').any(|option| option == "cpu"));
    let budget = cpu_group.zip(cpu_mount).and_then(|(group, (place, _))| {
        read(&format!("{place}{group}/cpu.rt_runtime_us")).ok().map(|runtime| (group, runtime))
    });
    let detail = format!("controllers: {}", names.join(", "));
    match budget {
        Some((group, runtime)) if runtime == "0" => Fact::new(
            NAME,
            FOR,
            State::Limited,
            format!("{detail}; group {group} of this process has cpu.rt_runtime_us 0"),
        )
        .remedy("SCHED_FIFO gives EPERM there: write a share into cpu.rt_runtime_us of the group"),
        Some((_, runtime)) => Fact::new(
            NAME,
            FOR,
            State::Yes,
            format!("{detail}; cpu.rt_runtime_us {runtime} for this process's group"),
        ),
        None => Fact::new(NAME, FOR, State::Yes, format!("{detail}; no group limit on real-time tasks")),
    }
}

fn left_over_changes() -> Fact {
    const NAME: &str = "clean";
    const FOR: &str = "a machine that is as it was before the last run";
    let journals = match left_over() {
        Ok(found) => found,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    // Who may not read tracefs has made no instance either.
    let instances = left_over_instances().unwrap_or_default();
    let mut left = Vec::new();
    if let Some(first) = journals.first() {
        let changes: usize = journals.iter().map(|left| left.changes).sum();
        left.push(format!(
            "{} runs were killed together with their guardians and left {changes} changes ({})",
            journals.len(),
            first.path.display()
        ));
    }
    if let Some(first) = instances.first() {
        left.push(format!(
            "{} recordings of the kernel go on, whose commands were killed (tracefs instance {})",
            instances.len(),
            first.name
        ));
    }
    let folders = left_over_folders();
    if let Some(first) = folders.first() {
        left.push(format!(
            "{} folders for temporary files are left of commands that were killed ({})",
            folders.len(),
            first.path.display()
        ));
    }
    let groups = left_over_groups();
    if let Some(first) = groups.first() {
        let processes: usize = groups.iter().map(|group| group.processes).sum();
        left.push(format!(
            "{} control groups with {processes} processes are left of programs that were killed ({})",
            groups.len(),
            first.path.display()
        ));
    }
    if left.is_empty() {
        return Fact::new(NAME, FOR, State::Yes, "no run left changes behind");
    }
    Fact::new(NAME, FOR, State::No, left.join("; ")).remedy("`horolog doctor --restore` puts everything back")
}
