//! Puts the machine back after a run, however the run ends.
//!
//! A run that changes the machine (sysctls, cgroups, trace settings, priorities of foreign threads, child processes)
//! first writes into a journal how to undo the change, waits until that is on disk, and only then changes. A separate
//! process, the guardian, holds the journal. When the run finishes, crashes or is killed, the guardian undoes
//! everything, last change first. It also ends a run that goes on past its deadline. Where the guardian was killed too,
//! the journal is left over: [`left_over`] finds it, [`restore`] undoes it.
//!
//! What belongs to the run's own process (its threads, their priorities and CPUs, its locked memory, an open
//! `/dev/cpu_dma_latency`) ends with that process and needs no journal.

mod folder;
mod group;
mod journal;
mod keeper;
mod mark;
mod program;
mod replay;
mod serve;
mod worn;

pub use folder::{Folder, LeftOverFolder, left_over_folders, remove_left_over_folders};
pub use group::{LeftOverGroup, left_over_groups, remove_left_over_groups};
pub use journal::Life;
pub use mark::{Mark, Owner};
pub use program::{Program, Watch, finish_program, guard_program, run, spawn, spawn_exactly, watch_program};
pub(crate) use program::{hold, note_fork, note_instance};
pub use replay::Restored;
pub(crate) use replay::end_all_of;
pub use serve::serve;
pub(crate) use worn::put_on_this_process;

use crate::Error;
use crate::clock::monotonic_ns;
use crate::network::{namespace, netlink, sysfs};
use horolog_time::Span;
use journal::{Entry, Found, Journal, Locked, Scheduled};
use keeper::{Keeper, this_process};
use serve::Orders;
use std::ffi::OsString;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// How to start a guardian.
#[derive(Clone, Debug)]
pub struct GuardianOptions {
    /// The program whose `arguments` make it call [`serve`].
    pub program: PathBuf,
    /// Those arguments.
    pub arguments: Vec<OsString>,
    /// End the run after this long: the watchdog. `None`: never.
    pub deadline: Option<Span>,
    /// Where the guardian runs; empty: anywhere. Should hold no CPU that the run fills.
    pub housekeeping: Vec<u32>,
    /// Where the journal is; `None`: `$XDG_RUNTIME_DIR/horolog`, `/run/horolog` or `/tmp/horolog-UID`.
    pub directory: Option<PathBuf>,
}

/// The hidden subcommand of the command that calls [`serve`].
pub const SUBCOMMAND: &str = "guardian";

impl Default for GuardianOptions {
    fn default() -> GuardianOptions {
        GuardianOptions {
            program: PathBuf::from("/proc/self/exe"),
            arguments: vec![OsString::from(SUBCOMMAND)],
            deadline: None,
            housekeeping: Vec::new(),
            directory: None,
        }
    }
}

/// The run's end of a guardian. Dropping it without [`Guardian::finish`] puts everything back as well.
///
/// A guardian that dies before the run is replaced by another one, which goes on with the same journal.
#[derive(Debug)]
pub struct Guardian {
    journal: Journal,
    keeper: Option<Keeper>,
}

/// The variable of the environment by which the guardian finds what a run has started, and what that has started.
pub const MARK: &str = "HOROLOG_RUN";

impl Guardian {
    /// Starts the guardian and waits until it is armed.
    ///
    /// # Errors
    /// Where the journal cannot be written or the process does not start.
    pub fn start(options: &GuardianOptions) -> Result<Guardian, Error> {
        let directory = options.directory.clone().unwrap_or_else(journal::default_directory);
        let run = this_process()?;
        let orders = Orders {
            run,
            deadline_ns: options
                .deadline
                .map_or(u64::MAX, |after| monotonic_ns().saturating_add(after.as_ns())),
            housekeeping: options.housekeeping.clone(),
            journal: Journal::place(&directory, run)?,
        };
        let path = orders.journal.clone();
        // Removes journals without changes, of runs that were killed together with their guardians.
        let _ = left_over_in(&directory);
        let keeper = Keeper::start(options, orders).inspect_err(|_| {
            // Nothing was changed yet: where the guardian made it and died, it is of no use.
            let _ = fs::remove_file(&path);
        })?;
        Ok(Guardian { journal: Journal::open(&path)?, keeper: Some(keeper) })
    }

    /// Writes `value` into a file whose present contents undo the change when written back.
    ///
    /// # Errors
    /// Where the file cannot be read or written, or the journal cannot be written (then nothing is changed).
    pub fn write_file(&mut self, path: impl AsRef<Path>, value: &str) -> Result<(), Error> {
        let path = path.as_ref();
        let old = fs::read(path).map_err(|error| refused("read", path, &error))?;
        self.journal.append(&Entry::Write { path: path.to_owned(), value: old })?;
        fs::write(path, value).map_err(|error| refused(&format!("write {value:?}"), path, &error))
    }

    /// Writes `value` into `path`; to undo, `undo_value` is written into `undo_path`. For files that are not read as
    /// they are written: a cgroup's list of tasks, tracefs's clock.
    ///
    /// # Errors
    /// Where a file cannot be written, or the journal cannot be written (then nothing is changed).
    pub fn write_with_undo(
        &mut self,
        path: impl AsRef<Path>,
        value: &str,
        undo_path: impl Into<PathBuf>,
        undo_value: &str,
    ) -> Result<(), Error> {
        let path = path.as_ref();
        self.journal
            .append(&Entry::Write { path: undo_path.into(), value: undo_value.as_bytes().to_vec() })?;
        fs::write(path, value).map_err(|error| refused(&format!("write {value:?}"), path, &error))
    }

    /// Sets a sysctl by its dotted name, as in `kernel.sched_rt_runtime_us`.
    ///
    /// # Errors
    /// As [`Guardian::write_file`].
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.write_file(sysctl_path(name)?, value)
    }

    /// Makes a directory (a cgroup, a cpuset, a trace instance), to be removed at the end.
    ///
    /// # Errors
    /// Where it cannot be made, or the journal cannot be written (then nothing is changed).
    pub fn create_directory(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        if path.exists() {
            // Another's. Without an entry it stays even where this run is killed now.
            let error = std::io::Error::from_raw_os_error(libc::EEXIST);
            return Err(refused("mkdir", path, &error));
        }
        self.journal.append(&Entry::RemoveDirectory { path: path.to_owned() })?;
        fs::create_dir(path).map_err(|error| {
            // Another process may have made it since; the directory is then theirs.
            match self.journal.append(&Entry::KeepDirectory { path: path.to_owned() }) {
                Ok(()) => refused("mkdir", path, &error),
                Err(journal) => journal,
            }
        })
    }

    /// Starts a child process that ends with the run, and with it, where it leads a process group, that group, and whatever it has started, as long as that keeps the
    /// variable [`MARK`] in its environment. [`Program::leave`] is for those that may go on.
    ///
    /// # Errors
    /// What `spawn` says, or that the journal cannot be written; the text of the latter is in the error.
    pub fn spawn(&mut self, command: &mut Command) -> std::io::Result<Spawned> {
        self.spawn_after(command, |_| Ok(()))
    }

    /// The same, with what is done to the command last.
    fn spawn_after(
        &mut self,
        command: &mut Command,
        last: impl FnOnce(&mut Command) -> std::io::Result<()>,
    ) -> std::io::Result<Spawned> {
        let told = |error: Error| std::io::Error::other(error.to_string());
        let mark = Mark::fresh().map_err(told)?;
        self.journal.append(&Entry::EndMarked { mark }).map_err(told)?;
        let command = command_with_mark(command, mark);
        last(command)?;
        let mut child = command.spawn()?;
        // Also found by its number: some programs write over their environment.
        let adopted = match Life::of(child.id()) {
            Some(process) => self.adopt(process).map(|()| Some(process)),
            // It has ended already.
            None => Ok(None),
        };
        match adopted {
            Ok(process) => Ok(Spawned { child, mark, process }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(told(error))
            }
        }
    }

    /// The run is done with a child process: neither it nor what it has started is ended with the run.
    ///
    /// # Errors
    /// Where the journal cannot be written.
    fn leave(&mut self, kept: &Kept) -> Result<(), Error> {
        let process = kept.process.unwrap_or(Life { id: 0, started: 0 });
        self.journal.append(&Entry::Leave { mark: kept.mark, process })
    }

    fn adopt(&mut self, process: Life) -> Result<(), Error> {
        // SAFETY: getpgid takes an integer.
        let group = unsafe { libc::getpgid(process.id as i32) } == process.id as i32;
        self.journal.append(&Entry::End { process, group })
    }

    /// Has a process ended with the run; where it leads a process group, all of that group.
    ///
    /// # Errors
    /// Where there is no such process, or the journal cannot be written.
    pub fn adopt_process(&mut self, pid: u32) -> Result<(), Error> {
        self.adopt(Life::of(pid).ok_or_else(|| no_such(pid))?)
    }

    /// Notes an entry whose change the caller makes afterwards.
    fn note(&mut self, entry: &Entry) -> Result<(), Error> {
        self.journal.append(entry)
    }

    /// Notes the scheduling class and the CPUs of a thread of another process before the caller changes them.
    ///
    /// # Errors
    /// Where there is no such thread, it is under SCHED_DEADLINE, or the journal cannot be written.
    pub fn remember_thread(&mut self, tid: u32) -> Result<(), Error> {
        let thread = Life::of(tid).ok_or_else(|| no_such(tid))?;
        let facts = Scheduled::of(tid).ok_or_else(|| no_such(tid))?;
        if facts.policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_DEADLINE {
            return Err(Error::bad_input(
                format!("thread {tid}"),
                "it is under SCHED_DEADLINE, which cannot be given back with certainty",
                "leave it alone",
            ));
        }
        self.journal.append(&Entry::Thread { thread, facts })
    }

    /// Makes a network namespace with the name `path`, a file that must not exist yet. Needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// Where it cannot be made, or the journal cannot be written (then nothing is changed).
    pub fn create_namespace(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        if path.exists() {
            let error = std::io::Error::from_raw_os_error(libc::EEXIST);
            return Err(refused("open", path, &error));
        }
        self.journal.append(&Entry::Namespace { path: path.to_owned() })?;
        namespace::create(path)
    }

    /// Makes a pair of virtual Ethernet devices: `name` in one namespace, `peer` in another.
    ///
    /// # Errors
    /// Where it cannot be made, or the journal cannot be written (then nothing is changed).
    pub fn create_pair(
        &mut self,
        namespace: &Path,
        name: &str,
        peer_namespace: &Path,
        peer: &str,
    ) -> Result<(), Error> {
        let other = namespace::open(peer_namespace)?.ok_or_else(|| {
            Error::bad_input(peer_namespace.display().to_string(), "no network namespace", "make it first")
        })?;
        self.journal.append(&Entry::Link { namespace: namespace.to_owned(), name: name.to_owned() })?;
        namespace::inside(namespace, || netlink::create_pair(name, peer, other.as_raw_fd()))
    }

    /// Writes `value` into a file of `/proc/sys/net` or `/sys/class/net` as it is inside a network namespace; its present
    /// contents undo the change when written back.
    ///
    /// # Errors
    /// As [`Guardian::write_file`].
    pub fn write_inside(&mut self, namespace: &Path, path: &Path, value: &str) -> Result<(), Error> {
        let old = sysfs::read(namespace, path)?.into_bytes();
        let (namespace_path, file) = (namespace.to_owned(), path.to_owned());
        self.journal.append(&Entry::WriteInside { namespace: namespace_path, path: file, value: old })?;
        sysfs::write(namespace, path, value.as_bytes())
    }

    /// Writes `value` into a file of a network device of the calling thread's namespace, whichever one `/sys` shows; its present contents
    /// undo the change when written back. The device and its namespace are known by the kernel's numbers, so that the change is undone from
    /// anywhere.
    ///
    /// # Errors
    /// As [`Guardian::write_file`], and where there is no such device.
    pub fn write_device(&mut self, device: &str, file: &str, value: &str) -> Result<(), Error> {
        let (own, path) = (Path::new(namespace::OWN), sysfs::file_of(device, file));
        let (namespace, number) = (namespace::number()?, crate::bpf::interface_index(device)?);
        let old = sysfs::read(own, &path)?.into_bytes();
        self.journal.append(&Entry::WriteDevice {
            namespace,
            device: number,
            file: file.to_owned(),
            value: old,
        })?;
        sysfs::write(own, &path, value.as_bytes())
    }

    /// Moves the watchdog's deadline to `at_ns` of `CLOCK_MONOTONIC`; `None`: never.
    pub fn set_deadline(&self, at_ns: Option<u64>) {
        self.order(|orders| orders.deadline_ns = at_ns.unwrap_or(u64::MAX));
    }

    /// Moves the guardian to these CPUs; where none are named it stays where it is.
    pub fn set_housekeeping(&self, cpus: &[u32]) {
        self.order(|orders| orders.housekeeping = cpus.to_vec());
    }

    fn order(&self, change: impl FnOnce(&mut Orders)) {
        if let Some(keeper) = &self.keeper {
            keeper.order(change);
        }
    }

    /// The journal, for messages.
    #[must_use]
    pub fn journal_path(&self) -> &Path {
        self.journal.path()
    }

    /// The guardian's process id, for messages.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.keeper.as_ref().map_or(0, Keeper::process_id)
    }

    /// Puts everything back and ends the guardian.
    ///
    /// # Errors
    /// Where the journal cannot be read back. What could not be put back is listed in [`Restored::failures`].
    pub fn finish(mut self) -> Result<Restored, Error> {
        let answer = self.keeper.take().and_then(Keeper::finish);
        match answer.and_then(|line| parse_report(&line)) {
            Some(restored) => Ok(restored),
            // The guardian was killed: do its work.
            None => restore(self.journal.path()),
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            drop(keeper);
            if self.journal.path().exists() {
                let _ = restore(self.journal.path());
            }
        }
    }
}

/// A child process that its guardian knows.
#[derive(Debug)]
pub struct Spawned {
    /// The child.
    pub child: Child,
    mark: Mark,
    process: Option<Life>,
}

/// By what a guardian knows a child process.
#[derive(Debug)]
pub struct Kept {
    mark: Mark,
    process: Option<Life>,
}

impl Spawned {
    /// The child, and by what its guardian knows it.
    #[must_use]
    pub fn apart(self) -> (Child, Kept) {
        (self.child, Kept { mark: self.mark, process: self.process })
    }
}

/// Has the command start with the mark in its environment, and not at all where this process has died before.
fn command_with_mark(command: &mut Command, mark: Mark) -> &mut Command {
    command.env(MARK, mark.to_string());
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing: an error of a number does not.
    unsafe {
        command.pre_exec(move || {
            if libc::getppid() as u32 == parent {
                return Ok(());
            }
            // Its guardian may have looked for it already.
            Err(std::io::Error::from_raw_os_error(libc::ESRCH))
        })
    }
}

/// A journal whose run and guardian are both gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOver {
    /// Where it is.
    pub path: PathBuf,
    /// The process that wrote it; 0 where that is not to be read.
    pub run: u32,
    /// How many changes it lists; 1 where the file is no journal of this version.
    pub changes: usize,
}

/// The other commands with a guardian that live now, by the journals in the default directory.
///
/// # Errors
/// Where the directory cannot be read or others can write into it.
pub fn running() -> Result<Vec<Life>, Error> {
    running_in(&journal::default_directory())
}

fn running_in(directory: &Path) -> Result<Vec<Life>, Error> {
    let runs = journal::list(directory)?.into_iter().filter_map(|path| journal::run_in_name(&path));
    let mut living: Vec<Life> = runs.filter(|run| run.id != std::process::id() && run.is_alive()).collect();
    living.sort_unstable_by_key(|run| run.id);
    living.dedup();
    Ok(living)
}

/// Journals in the default directory whose run and guardian are both gone.
///
/// # Errors
/// Where the directory cannot be read or others can write into it.
pub fn left_over() -> Result<Vec<LeftOver>, Error> {
    left_over_in(&journal::default_directory())
}

/// The same in a directory of choice.
///
/// # Errors
/// As [`left_over`].
pub fn left_over_in(directory: &Path) -> Result<Vec<LeftOver>, Error> {
    let mut found = Vec::new();
    for path in journal::list(directory)? {
        // A guardian that is just starting takes the lock; nobody else may have it then.
        if journal::run_in_name(&path).is_some_and(|run| run.is_alive()) {
            continue;
        }
        let Some(mut locked) = Locked::open(&path)? else { continue };
        let (run, changes) = match locked.read(&path)? {
            Found::Journal(contents) => (Some(contents.run), contents.entries.len() + contents.strange.len()),
            Found::Unbegun => (journal::run_in_name(&path), 0),
            // Told, so that somebody looks at it; undoing it says why it cannot be.
            Found::Strange => {
                found.push(LeftOver { path, run: 0, changes: 1 });
                continue;
            }
        };
        if run.is_some_and(|run| run.is_alive()) {
            continue;
        }
        if changes == 0 {
            // Killed before its guardian was armed, when it had changed nothing. Where it stays, it is found again.
            let _ = fs::remove_file(&path);
        } else {
            found.push(LeftOver { path, run: run.map_or(0, |run| run.id), changes });
        }
    }
    Ok(found)
}

/// Undoes everything that a journal lists and removes it; it stays where something could not be undone.
///
/// # Errors
/// Where a living guardian holds it, or it cannot be read.
pub fn restore(journal: &Path) -> Result<Restored, Error> {
    match Locked::open(journal)? {
        Some(mut locked) => replay::replay(journal, &mut locked),
        None => Err(Error::bad_input(
            journal.display().to_string(),
            "a living guardian holds it",
            "end that run; its guardian puts everything back",
        )),
    }
}

/// `kernel.sched_rt_runtime_us` to `/proc/sys/kernel/sched_rt_runtime_us`.
fn sysctl_path(name: &str) -> Result<PathBuf, Error> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if plain && !name.is_empty() && !name.contains("..") && !name.starts_with('.') {
        Ok(Path::new("/proc/sys").join(name.replace('.', "/")))
    } else {
        Err(Error::bad_input(
            format!("sysctl {name:?}"),
            "no dotted name",
            "write it as kernel.sched_rt_runtime_us",
        ))
    }
}

/// Reads the guardian's last line.
fn parse_report(line: &str) -> Option<Restored> {
    let mut parts = line.strip_suffix('\n')?.split('\t');
    let mut words = parts.next()?.strip_prefix("restored ")?.split(' ').map(str::parse::<u32>);
    let mut number = || words.next()?.ok();
    let (files, directories, processes) = (number()?, number()?, number()?);
    let (threads, networks, already) = (number()?, number()?, number()?);
    let failures = parts.filter(|text| !text.is_empty()).map(str::to_owned).collect();
    Some(Restored { files, directories, processes, threads, networks, already, failures })
}

fn refused(call: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{call}({})", path.display()), error, "run as root, or leave this setting alone")
}

fn no_such(id: u32) -> Error {
    Error::os(format!("read(/proc/{id}/stat)"), libc::ESRCH, "it has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_names_become_paths_and_nothing_else() {
        let path = sysctl_path("kernel.sched_rt_runtime_us").unwrap();
        assert_eq!(path, Path::new("/proc/sys/kernel/sched_rt_runtime_us"));
        for bad in ["", "..", "kernel..x", "/etc/passwd", ".kernel", "a b"] {
            assert!(sysctl_path(bad).unwrap_err().is_bad_input(), "{bad}");
        }
    }

    #[test]
    fn a_report_reads_back() {
        let restored = parse_report("restored 3 1 2 0 4 158\twrite(/x): gone\n").unwrap();
        assert_eq!((restored.files, restored.directories, restored.processes), (3, 1, 2));
        assert_eq!((restored.networks, restored.already), (4, 158));
        assert_eq!((restored.put_back(), restored.changes()), (10, 169));
        let text = restored.to_string();
        assert!(text.contains("158 of 169 changes") && text.contains("1 could not be put back"), "{text}");
        let void = Restored { already: 168, ..Restored::default() };
        assert!(void.is_nothing() && !restored.is_nothing());
        assert_eq!(restored.failures, ["write(/x): gone"]);
        assert_eq!(parse_report("restored 3 1\n"), None);
        assert_eq!(parse_report(""), None);
    }
}
