//! What the kernel says about the threads of other processes: which there are, how they are scheduled, where they may run.

use crate::Error;
use crate::cpu_list::parse_cpu_list;
use crate::deadline::{Reservation, deadline_of};
use std::collections::BTreeMap;
use std::fs;

/// How a thread is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduling {
    /// SCHED_FIFO at this priority, 1 to 99.
    Fifo(u8),
    /// SCHED_RR at this priority, 1 to 99.
    RoundRobin(u8),
    /// SCHED_DEADLINE with this reservation.
    Deadline(Reservation),
    /// SCHED_OTHER or SCHED_BATCH with this nice value.
    Normal(i32),
    /// SCHED_IDLE.
    Idle,
    /// A class that this version does not know, by the kernel's number.
    Other(i32),
}

/// A thread as it stands now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadFacts {
    /// Its id.
    pub tid: u32,
    /// Its process.
    pub process: u32,
    /// Its short name.
    pub comm: String,
    /// How it is scheduled.
    pub scheduling: Scheduling,
    /// The processors that it may run on.
    pub allowed: Vec<u32>,
    /// It has ended, and its entry waits to be taken away. The first thread of a process may have ended while others go on.
    pub has_ended: bool,
}

/// What a file descriptor of a process is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileKind {
    /// A timerfd.
    Timer,
    /// An eventfd.
    Event,
    /// A signalfd.
    Signal,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// An epoll file.
    Epoll,
    /// Anything else.
    Other,
}

impl FileKind {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Timer => "timerfd",
            FileKind::Event => "eventfd",
            FileKind::Signal => "signalfd",
            FileKind::Pipe => "pipe",
            FileKind::Socket => "socket",
            FileKind::Device => "device",
            FileKind::Epoll => "epoll",
            FileKind::Other => "other file",
        }
    }
}

/// The facts of a thread.
///
/// # Errors
/// `ESRCH` or `ENOENT` where it has ended; else what procfs refused.
pub fn of_thread(tid: u32) -> Result<ThreadFacts, Error> {
    let path = format!("/proc/{tid}/status");
    let text = fs::read_to_string(&path)
        .map_err(|error| Error::io(format!("read({path})"), &error, "is the thread still there?"))?;
    let field = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim).unwrap_or_default().to_owned()
    };
    Ok(ThreadFacts {
        tid,
        process: field("Tgid:").parse().unwrap_or(tid),
        comm: unescaped(&field("Name:")),
        scheduling: scheduling(tid)?,
        allowed: parse_cpu_list(&field("Cpus_allowed_list:")).unwrap_or_default(),
        has_ended: field("State:").starts_with(['Z', 'X']),
    })
}

fn scheduling(tid: u32) -> Result<Scheduling, Error> {
    // SAFETY: the call takes an integer and touches no memory of ours.
    let policy = unsafe { libc::sched_getscheduler(tid as i32) };
    if policy < 0 {
        return Err(Error::last_os(format!("sched_getscheduler of thread {tid}"), "is it still there?"));
    }
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is writable.
    if unsafe { libc::sched_getparam(tid as i32, &mut parameter) } != 0 {
        return Err(Error::last_os(format!("sched_getparam of thread {tid}"), "is it still there?"));
    }
    let priority = u8::try_from(parameter.sched_priority).unwrap_or(0);
    Ok(match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Scheduling::Fifo(priority),
        libc::SCHED_RR => Scheduling::RoundRobin(priority),
        libc::SCHED_OTHER | libc::SCHED_BATCH => {
            // SAFETY: the call takes integers and touches no memory of ours. -1 is a legal nice value, and an error
            // only means that the thread has just ended.
            Scheduling::Normal(unsafe { libc::getpriority(libc::PRIO_PROCESS, tid) })
        }
        libc::SCHED_IDLE => Scheduling::Idle,
        other => match deadline_of(tid)? {
            Some(reservation) => Scheduling::Deadline(reservation),
            None => Scheduling::Other(other),
        },
    })
}

/// A thread's name, and how often it has given up its processor by itself since it began: it slept, or waited for something. `None`
/// where it has ended.
#[must_use]
pub fn waits_of(tid: u32) -> Option<(String, u64)> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some((unescaped(field("Name:")?), field("voluntary_ctxt_switches:")?.parse().ok()?))
}

/// The threads of a process.
///
/// # Errors
/// Where there is no such process.
pub fn of_process(process: u32) -> Result<Vec<u32>, Error> {
    let path = format!("/proc/{process}/task");
    let entries = fs::read_dir(&path).map_err(|error| {
        Error::io(format!("read({path})"), &error, format!("there is no process {process}; `ps` lists them"))
    })?;
    let mut tids: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    Ok(tids)
}

/// A process as procfs lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessEntry {
    /// Its id.
    pub process: u32,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
}

/// All processes.
#[must_use]
pub fn all_processes() -> Vec<ProcessEntry> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|process| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name may hold blanks and brackets; what follows its last bracket does not.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        Some(ProcessEntry { process, parent, group: fields.next()?.parse().ok()? })
    })
    .collect()
}

/// All threads but those of this process, of the kernel, and of the guardians of horolog's commands.
#[must_use]
pub fn foreign_threads() -> Vec<ThreadFacts> {
    // All threads of the kernel are children of this one.
    const KERNEL: u32 = 2;
    const GUARDIANS: [&str; 2] = ["horolog-guard", "horolog-watch"];
    let foreign = |entry: &ProcessEntry| {
        entry.parent != KERNEL && entry.process != KERNEL && entry.process != std::process::id()
    };
    let processes = all_processes().into_iter().filter(foreign);
    // A thread that ends meanwhile is in no one's way.
    let threads = processes.flat_map(|entry| of_process(entry.process).unwrap_or_default());
    threads
        .filter_map(|tid| of_thread(tid).ok())
        .filter(|facts| !GUARDIANS.contains(&facts.comm.as_str()))
        .collect()
}

/// A process and everything that it and its children have started and that still lives.
#[must_use]
pub fn descendants(process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in all_processes() {
        children.entry(entry.parent).or_default().push(entry.process);
    }
    let mut found = vec![process];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(children.remove(&parent).unwrap_or_default());
        at += 1;
    }
    found
}

/// What the file descriptor `file` of the thread `tid` is; `None` where it cannot be seen.
#[must_use]
pub fn file_kind(tid: u32, file: u64) -> Option<FileKind> {
    let target = fs::read_link(format!("/proc/{tid}/fd/{file}")).ok()?;
    let target = target.to_string_lossy();
    Some(match target.as_ref() {
        "anon_inode:[timerfd]" => FileKind::Timer,
        "anon_inode:[eventfd]" => FileKind::Event,
        "anon_inode:[signalfd]" => FileKind::Signal,
        "anon_inode:[eventpoll]" => FileKind::Epoll,
        text if text.starts_with("pipe:") => FileKind::Pipe,
        text if text.starts_with("socket:") => FileKind::Socket,
        text if text.starts_with("/dev/") => FileKind::Device,
        _ => FileKind::Other,
    })
}

/// What the epoll file `file` of the thread `tid` waits for, by sort; of more than a thousand files the first thousand.
/// Empty where that cannot be seen.
#[must_use]
pub fn watched_files(tid: u32, file: u64) -> BTreeMap<FileKind, usize> {
    let text = fs::read_to_string(format!("/proc/{tid}/fdinfo/{file}")).unwrap_or_default();
    let files =
        text.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok());
    let mut found = BTreeMap::new();
    for kind in files.take(1_000).filter_map(|file| file_kind(tid, file)) {
        *found.entry(kind).or_default() += 1;
    }
    found
}

/// `/proc/…/status` writes a newline and a backslash of a name as `\n` and `\\`.
fn unescaped(name: &str) -> String {
    name.replace("\\n", "\n").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_priority::{Class, set_class};

    #[test]
    fn a_thread_is_described() {
        std::thread::Builder::new()
            .name("facts-test".to_owned())
            .spawn(|| {
                let tid = crate::thread::id();
                let facts = of_thread(tid).expect("it lives");
                assert_eq!(
                    (facts.tid, facts.process, facts.comm.as_str()),
                    (tid, std::process::id(), "facts-test")
                );
                assert!(!facts.allowed.is_empty());
                match set_class(0, Class::Fifo(3)) {
                    Ok(()) => {
                        assert_eq!(of_thread(tid).expect("it lives").scheduling, Scheduling::Fifo(3));
                    }
                    Err(error) => println!("SKIPPED: {error}"),
                }
            })
            .expect("threads can be made")
            .join()
            .expect("it ends");
    }

    #[test]
    fn children_and_files_are_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is a program");
        let family = descendants(std::process::id());
        let foreign = foreign_threads();
        assert!(foreign.iter().any(|facts| facts.process == child.id()));
        assert!(foreign.iter().all(|facts| facts.process != std::process::id() && facts.process != 2));
        assert!(
            !foreign
                .iter()
                .any(|facts| facts.comm.starts_with("kthreadd") || facts.comm.starts_with("ksoftirqd/"))
        );
        let group = all_processes().into_iter().find(|entry| entry.process == child.id());
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert!(family.contains(&child.id()), "{family:?}");
        assert_eq!(group.map(|entry| entry.parent), Some(std::process::id()));
        let (read, _write) = std::io::pipe().expect("pipes can be made");
        let file = std::os::fd::AsRawFd::as_raw_fd(&read) as u64;
        assert_eq!(file_kind(std::process::id(), file), Some(FileKind::Pipe));
        assert_eq!(file_kind(std::process::id(), 1 << 30), None);
    }

    /// The first thread of a process may end while another one goes on: each has its own state.
    #[test]
    fn a_thread_that_has_ended_hides_no_other_one() {
        let folder = std::env::temp_dir().join(format!("horolog-facts-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let source = "#include <pthread.h>\n#include <unistd.h>\n\
            static void *rest(void *none) { pause(); return none; }\n\
            int main(void) { pthread_t it; pthread_create(&it, 0, rest, 0); pthread_exit(0); }\n";
        fs::write(folder.join("left.c"), source).expect("written");
        let built = std::process::Command::new("cc")
            .args(["-pthread", "-o"])
            .args([folder.join("left"), folder.join("left.c")])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            println!("SKIPPED: no C compiler");
            return;
        }
        let mut child = std::process::Command::new(folder.join("left")).spawn().expect("it starts");
        let first = child.id();
        let ended = |tid| of_thread(tid).expect("it is there").has_ended;
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !ended(first) && std::time::Instant::now() < limit {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let states: Vec<(bool, bool)> = foreign_threads()
            .iter()
            .filter(|facts| facts.process == first)
            .map(|facts| (facts.tid == first, facts.has_ended))
            .collect();
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(states, [(true, true), (false, false)]);
    }

    #[test]
    fn who_has_ended_is_told() {
        let error = of_process(u32::MAX >> 1).expect_err("there is none");
        assert!(error.to_string().contains("no process"), "{error}");
        assert!(of_thread(u32::MAX >> 1).is_err());
    }
}
