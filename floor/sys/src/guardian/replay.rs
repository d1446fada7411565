//! Undoing everything that a journal lists, last change first.

use super::journal::{Contents, Entry, Found, Life, Locked, Scheduled};
use super::mark::Mark;
use super::{MARK, folder};
use crate::Error;
use crate::affinity::{CpuSet, set_affinity};
use crate::kernel_trace::remove_instance;
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
    /// Changes of which nothing was left to undo: already as before, or gone with what they belonged to.
    pub already: u32,
    /// What could not be put back, each with the reason.
    pub failures: Vec<String>,
}

impl Restored {
    /// Whether nothing had to be done.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Restored { already: self.already, ..Restored::default() }
    }

    /// How many changes were undone.
    #[must_use]
    pub fn put_back(&self) -> u32 {
        let Restored { files, directories, processes, threads, networks, .. } = self;
        files + directories + processes + threads + networks
    }

    /// Whether programs were ended, and nothing else was done or failed.
    #[must_use]
    pub fn is_of_programs_alone(&self) -> bool {
        self.processes > 0 && self.put_back() == self.processes && self.failures.is_empty()
    }

    /// How many changes there were: those that were undone, those that were so already, and those that could not be.
    #[must_use]
    pub fn changes(&self) -> u64 {
        u64::from(self.put_back()) + u64::from(self.already) + self.failures.len() as u64
    }
}

impl std::fmt::Display for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Restored { files, directories, processes, threads, networks, already, failures } = self;
        write!(f, "put back {files} settings and {threads} threads, removed {directories} directories, ")?;
        write!(f, "ended {processes} processes")?;
        if *networks > 0 {
            write!(f, ", removed {networks} network namespaces and devices")?;
        }
        if *already > 0 {
            write!(f, "; {already} of {} changes were as before already, or gone", self.changes())?;
        }
        if !failures.is_empty() {
            write!(f, "; {} could not be put back", failures.len())?;
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
    let restored = match locked.read(path)? {
        Found::Journal(contents) => undo_all(&contents),
        Found::Unbegun => Restored::default(),
        Found::Strange => Restored {
            failures: vec!["no journal of this version: remove it by hand".to_owned()],
            ..Restored::default()
        },
    };
    if restored.failures.is_empty() {
        fs::remove_file(path).map_err(|error| {
            Error::io(format!("unlink({})", path.display()), &error, "remove the journal by hand")
        })?;
    }
    Ok(restored)
}

fn undo_all(contents: &Contents) -> Restored {
    let mut restored = Restored::default();
    for line in &contents.strange {
        restored.failures.push(format!("line {line} of the journal is not understood: remove it by hand"));
    }
    let mut marks = Vec::new();
    // Processes first: they might keep directories busy or write settings again.
    for entry in contents.entries.iter().rev() {
        match entry {
            Entry::End { process, group } => {
                restored.count(&end(*process, *group), |restored| &mut restored.processes);
            }
            Entry::EndMarked { mark } => marks.push(*mark),
            _ => {}
        }
    }
    for ended in end_marked(&marks) {
        restored.count(&ended, |restored| &mut restored.processes);
    }
    for entry in contents.entries.iter().rev() {
        match entry {
            // Processes ended above; what is to be kept or left is left out when the journal is read.
            Entry::End { .. }
            | Entry::EndMarked { .. }
            | Entry::Leave { .. }
            | Entry::KeepDirectory { .. } => {}
            Entry::Instance { mark } => {
                let removed = remove_instance(*mark).map_err(|error| error.to_string());
                restored.count(&removed, |restored| &mut restored.directories);
            }
            Entry::RemoveFolder { path } => {
                restored.count(&folder::remove(path), |restored| &mut restored.directories);
            }
            Entry::Write { path, value } => {
                restored.count(&write(path, value), |restored| &mut restored.files);
            }
            Entry::WriteInside { namespace, path, value } => {
                restored.count(&write_inside(namespace, path, value), |restored| &mut restored.files);
            }
            Entry::WriteDevice { namespace, device, file, value } => {
                restored
                    .count(&write_device(*namespace, *device, file, value), |restored| &mut restored.files);
            }
            Entry::RemoveDirectory { path } => {
                restored.count(&remove_directory(path), |restored| &mut restored.directories);
            }
            Entry::Namespace { path } => {
                let removed = namespace::remove(path).map_err(|error| error.to_string());
                restored.count(&removed, |restored| &mut restored.networks);
            }
            Entry::Link { namespace, name } => {
                restored.count(&remove_link(namespace, name), |restored| &mut restored.networks);
            }
            Entry::Thread { thread, facts } => {
                restored.count(&give_back(*thread, facts), |restored| &mut restored.threads);
            }
        }
    }
    restored
}

impl Restored {
    /// Counts one change: undone, so already, or failed.
    fn count(&mut self, undone: &Result<bool, String>, kind: impl FnOnce(&mut Restored) -> &mut u32) {
        match undone {
            Ok(true) => *kind(self) += 1,
            Ok(false) => self.already += 1,
            Err(failure) => self.failures.push(failure.clone()),
        }
    }
}

/// Writes the old value where another stands there now; whether that was so.
fn write(path: &Path, value: &[u8]) -> Result<bool, String> {
    // Files that cannot be read, or are not read as they are written, are written in any case.
    if fs::read(path).is_ok_and(|now| now == value) {
        return Ok(false);
    }
    match fs::write(path, value) {
        Ok(()) => Ok(true),
        // Its directory went away meanwhile, and the setting with it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            Err(format!("write({}, {:?}): {error}", path.display(), String::from_utf8_lossy(value)))
        }
    }
}

fn remove_link(namespace: &Path, name: &str) -> Result<bool, String> {
    if namespace::open(namespace).map_err(|error| error.to_string())?.is_none() {
        return Ok(false);
    }
    namespace::inside(namespace, || netlink::delete(name)).map_err(|error| error.to_string())
}

/// Gives a thread its class and CPUs where they are others now. A run that was refused the change is refused this as well.
fn give_back(thread: Life, facts: &Scheduled) -> Result<bool, String> {
    if !thread.is_alive() || Scheduled::of(thread.id).as_ref() == Some(facts) {
        return Ok(false);
    }
    let Scheduled { policy, priority, nice, cpus } = facts;
    // The class first: a thread that is under SCHED_DEADLINE now cannot be pinned.
    let given = set_scheduler(thread.id, *policy, *priority, *nice).and_then(|()| {
        set_affinity(thread.id, &CpuSet::new(cpus.iter().copied())).map_err(|error| error.to_string())
    });
    match given {
        // It ended meanwhile.
        Err(_) if !thread.is_alive() => Ok(false),
        given => given.map(|()| true),
    }
}

fn write_inside(namespace: &Path, path: &Path, value: &[u8]) -> Result<bool, String> {
    let is_there = namespace::open(namespace).map_err(|error| error.to_string())?.is_some();
    // With its namespace or its device the setting went away.
    if !is_there || sysfs::read(namespace, path).is_ok_and(|now| now.as_bytes() == value) {
        return Ok(false);
    }
    match sysfs::write(namespace, path, value) {
        Ok(()) => Ok(true),
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

/// A device is found by its number, whatever its name is now.
fn write_device(namespace: u64, device: u32, file: &str, value: &[u8]) -> Result<bool, String> {
    let Some(namespace) = namespace::find(namespace) else { return Ok(false) };
    match sysfs::name_of(&namespace, device).map_err(|error| error.to_string())? {
        Some(name) => write_inside(&namespace, &sysfs::file_of(&name, file), value),
        None => Ok(false),
    }
}

fn remove_directory(path: &Path) -> Result<bool, String> {
    let end = Instant::now() + BUSY;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            // Somebody else is removing this control group.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(false),
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
fn end(process: Life, group: bool) -> Result<bool, String> {
    if !has_members(process, group) {
        return Ok(false);
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
    if has_members(process, group) {
        // Frozen, or waiting in the kernel for what does not come.
        return Err(format!("process {} does not end, although it was killed", process.id));
    }
    Ok(true)
}

/// Ends all that has one of the marks in its environment; says of each mark whether anything had to be ended.
fn end_marked(marks: &[Mark]) -> Vec<Result<bool, String>> {
    let mut ended: Vec<Result<bool, String>> = vec![Ok(false); marks.len()];
    let begin = Instant::now();
    let mut empty = 0;
    // Twice: a process that is just beginning its program shows no environment yet.
    while empty < 2 && !marks.is_empty() {
        let found = marked(marks);
        let waited = begin.elapsed();
        for (at, process) in &found {
            ended[*at] = Ok(true);
            if waited > 2 * GRACE {
                ended[*at] = Err(format!("process {} does not end, although it was killed", process.id));
            }
            signal(*process, false, if waited < GRACE { libc::SIGTERM } else { libc::SIGKILL });
        }
        empty = if found.is_empty() { empty + 1 } else { 0 };
        if waited > 2 * GRACE && !found.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    ended
}

/// Ends all that has this mark in its environment, this process excepted; how many processes that were.
pub(crate) fn end_all_of(mark: Mark) -> usize {
    let found = marked(&[mark]).len();
    if found > 0 {
        end_marked(&[mark]);
    }
    found
}

/// The living processes that have a mark in their environment, and which one.
fn marked(marks: &[Mark]) -> Vec<(usize, Life)> {
    let wanted: Vec<String> = marks.iter().map(|mark| format!("{MARK}={mark}")).collect();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| {
        let process = Life::of(id)?;
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        let is_wanted = |line: &[u8]| wanted.iter().position(|wanted| wanted.as_bytes() == line);
        Some((environment.split(|&byte| byte == 0).find_map(is_wanted)?, process))
    })
    .collect()
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
    if let Some(target) = target(process.id, group) {
        // SAFETY: kill takes two integers.
        unsafe { libc::kill(target, signal) };
    }
}

/// Whom `kill` is to address. 0, 1 and their negatives would be ourselves, init or everybody.
fn target(id: u32, group: bool) -> Option<i32> {
    let id = i32::try_from(id).ok().filter(|&id| id > 1)?;
    Some(if group { -id } else { id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_is_ended() {
        assert_eq!((target(7, false), target(7, true)), (Some(7), Some(-7)));
        for id in [0, 1, u32::MAX, 1 << 31] {
            assert_eq!((target(id, false), target(id, true)), (None, None), "{id}");
        }
        assert_eq!(target(2, true), Some(-2));
    }

    /// A thread may end at any moment while its class is given back.
    #[test]
    fn a_thread_that_ends_meanwhile_is_no_failure() {
        let own = Scheduled::of(crate::thread::id()).unwrap();
        for round in 0..200_u64 {
            let (send, receive) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                send.send(Life::of(crate::thread::id()).unwrap()).unwrap();
                // Anywhere within a few tries.
                std::thread::sleep(Duration::from_micros(round * 37 % 400));
            });
            let life = receive.recv().unwrap();
            for policy in [libc::SCHED_BATCH, libc::SCHED_OTHER].into_iter().cycle() {
                if !life.is_alive() {
                    break;
                }
                give_back(life, &Scheduled { policy, ..own.clone() }).unwrap();
            }
            thread.join().unwrap();
        }
    }

    #[test]
    fn what_was_put_back_is_told_in_words() {
        let nothing = Restored::default();
        let text = "put back 0 settings and 0 threads, removed 0 directories, ended 0 processes";
        assert!(nothing.is_nothing());
        assert_eq!(nothing.to_string(), text);
        let all = Restored {
            files: 1,
            directories: 2,
            processes: 3,
            threads: 4,
            networks: 5,
            already: 6,
            failures: vec!["one".to_owned(), "two".to_owned()],
        };
        let text = "put back 1 settings and 4 threads, removed 2 directories, ended 3 processes, removed 5 network \
                    namespaces and devices; 6 of 23 changes were as before already, or gone; 2 could not be put back; \
                    failed: one; failed: two";
        assert_eq!(all.to_string(), text);
        assert_eq!((all.put_back(), all.changes(), all.is_nothing()), (15, 23, false));
    }
}
