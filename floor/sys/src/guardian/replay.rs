//! Undoing everything that a journal lists, last change first.

use super::journal::{Contents, Entry, Life, Locked};
use crate::Error;
use crate::affinity::{CpuSet, set_affinity};
use crate::network::{namespace, netlink, sysfs};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files that have their old value again.
    pub files: u32,
    /// Directories removed.
    pub directories: u32,
    /// Processes that had to be ended.
    pub processes: u32,
    /// Threads of other processes that have their class and CPUs again.
    pub threads: u32,
    /// Network namespaces and devices removed.
    pub networks: u32,
    /// What could not be put back, each with the reason.
    pub failures: Vec<String>,
}

impl Restored {
    /// Whether anything had to be done.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Restored::default()
    }
}

impl std::fmt::Display for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Restored { files, directories, processes, threads, networks, failures } = self;
        write!(f, "put back {files} settings and {threads} threads, removed {directories} directories, ")?;
        write!(f, "ended {processes} processes")?;
        if *networks > 0 {
            write!(f, ", removed {networks} network namespaces and devices")?;
        }
        failures.iter().try_for_each(|failure| write!(f, "; failed: {failure}"))
    }
}

/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// How long a directory may stay busy after its processes were ended.
const BUSY: Duration = Duration::from_secs(1);

/// Undoes what the journal at `path` lists and removes it, or keeps it where something failed.
pub(super) fn replay(path: &Path, locked: &mut Locked) -> Result<Restored, Error> {
    let contents = locked.read(path)?;
    let restored = undo_all(&contents);
    if restored.failures.is_empty() {
        fs::remove_file(path).map_err(|error| {
            Error::io(format!("unlink({})", path.display()), &error, "remove the journal by hand")
        })?;
    }
    Ok(restored)
}

fn undo_all(contents: &Contents) -> Restored {
    let mut restored = Restored::default();
    // Processes first: they might keep directories busy or write settings again.
    for entry in contents.entries.iter().rev() {
        if let Entry::End { process, group } = entry {
            restored.processes += u32::from(end(*process, *group));
        }
    }
    for entry in contents.entries.iter().rev() {
        if let Err(failure) = undo(entry, &mut restored) {
            restored.failures.push(failure);
        }
    }
    restored
}

fn undo(entry: &Entry, restored: &mut Restored) -> Result<(), String> {
    match entry {
        Entry::End { .. } => Ok(()),
        Entry::Write { path, value } => match fs::write(path, value) {
            Ok(()) => {
                restored.files += 1;
                Ok(())
            }
            // Its directory went away meanwhile, and the setting with it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                Err(format!("write({}, {:?}): {error}", path.display(), String::from_utf8_lossy(value)))
            }
        },
        Entry::RemoveDirectory { path } => remove_directory(path, restored),
        Entry::Namespace { path } => {
            restored.networks += u32::from(namespace::remove(path).map_err(|error| error.to_string())?);
            Ok(())
        }
        Entry::Link { namespace, name } => {
            if namespace::open(namespace).map_err(|error| error.to_string())?.is_some() {
                let removed = namespace::inside(namespace, || netlink::delete(name));
                restored.networks += u32::from(removed.map_err(|error| error.to_string())?);
            }
            Ok(())
        }
        Entry::WriteInside { namespace, path, value } => write_inside(namespace, path, value, restored),
        Entry::Thread { thread, policy, priority, nice, cpus } => {
            if !thread.is_alive() {
                return Ok(());
            }
            // The class first: a thread that is under SCHED_DEADLINE now cannot be pinned.
            set_scheduler(thread.id, *policy, *priority, *nice)?;
            set_affinity(thread.id, &CpuSet::new(cpus.iter().copied())).map_err(|error| error.to_string())?;
            restored.threads += 1;
            Ok(())
        }
    }
}

fn write_inside(namespace: &Path, path: &Path, value: &[u8], restored: &mut Restored) -> Result<(), String> {
    let is_there = namespace::open(namespace).map_err(|error| error.to_string())?.is_some();
    // With its namespace or its device the setting went away.
    let written = is_there.then(|| sysfs::write(namespace, path, value));
    match written {
        None => Ok(()),
        Some(Err(error)) if error.errno() == Some(libc::ENOENT) => Ok(()),
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(())) => {
            restored.files += 1;
            Ok(())
        }
    }
}

fn remove_directory(path: &Path, restored: &mut Restored) -> Result<(), String> {
    let end = Instant::now() + BUSY;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => {
                restored.directories += 1;
                return Ok(());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            // A cgroup stays busy until the last of its processes is gone for good.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(format!("rmdir({}): {error}", path.display())),
        }
    }
}

fn set_scheduler(tid: u32, policy: i32, priority: i32, nice: i32) -> Result<(), String> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameter` is readable for the call's duration; no memory of ours is written.
    if unsafe { libc::sched_setscheduler(tid as i32, policy, &parameter) } != 0 {
        return Err(format!(
            "sched_setscheduler({policy}, {priority}) of thread {tid}: {}",
            std::io::Error::last_os_error()
        ));
    }
    // SAFETY: setpriority takes integers.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, nice) } != 0 {
        return Err(format!("setpriority({nice}) of thread {tid}: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

/// Ends a process (and the group that it leads) with SIGTERM, then SIGKILL; says whether it had to.
pub(super) fn end(process: Life, group: bool) -> bool {
    if !has_members(process, group) {
        return false;
    }
    signal(process, group, libc::SIGTERM);
    let deadline = Instant::now() + GRACE;
    while has_members(process, group) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    if has_members(process, group) {
        signal(process, group, libc::SIGKILL);
        let deadline = Instant::now() + GRACE;
        while has_members(process, group) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    true
}

/// Whether the process, or a living member of the group that it led, is left.
fn has_members(process: Life, group: bool) -> bool {
    match Life::of(process.id) {
        Some(now) => now == process,
        // The leader is gone. Its number is not given to another process while a member of its group lives.
        None => group && group_lives(process.id),
    }
}

/// Whether a process that is no zombie has this process group.
fn group_lives(group: u32) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).any(|id| {
        let in_group = || {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(2)?.parse::<u32>().ok()
        };
        in_group() == Some(group) && Life::of(id).is_some()
    })
}

fn signal(process: Life, group: bool, signal: i32) {
    let Ok(id) = i32::try_from(process.id) else { return };
    // 0, 1 and their negatives would address ourselves, init or everybody.
    if id > 1 {
        // SAFETY: kill takes two integers.
        unsafe { libc::kill(if group { -id } else { id }, signal) };
    }
}
