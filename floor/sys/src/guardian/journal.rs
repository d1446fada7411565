//! The journal: how to undo each change of the machine, on disk before the change is made.
//!
//! A text file, one line an entry, written and synchronised before the change. A last line without its newline was cut
//! off before its change, so it is ignored. Bytes other than letters, digits and `/._-:,+` stand as `%XX`.

use super::mark::Mark;
use crate::Error;
use crate::affinity::allowed_cpus_of;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The first line of every journal.
const HEADER: &str = "horolog-journal/1";

/// A process or thread, told from a later one of the same number by when it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// Its number.
    pub id: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
}

/// How a thread is scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Scheduled {
    pub(super) policy: i32,
    pub(super) priority: i32,
    pub(super) nice: i32,
    pub(super) cpus: Vec<u32>,
}

impl Scheduled {
    /// How this thread is now; `None` where it has ended.
    pub(super) fn of(tid: u32) -> Option<Scheduled> {
        // SAFETY: these calls take integers; `parameter` is writable.
        let (policy, priority, nice) = unsafe {
            let mut parameter = libc::sched_param { sched_priority: 0 };
            let policy = libc::sched_getscheduler(tid as i32);
            libc::sched_getparam(tid as i32, &mut parameter);
            (policy, parameter.sched_priority, libc::getpriority(libc::PRIO_PROCESS, tid))
        };
        let cpus = allowed_cpus_of(tid).ok()?.as_slice().to_vec();
        (policy >= 0).then_some(Scheduled { policy, priority, nice, cpus })
    }
}

/// How to undo one change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    /// Write `value` into `path`.
    Write { path: PathBuf, value: Vec<u8> },
    /// Remove the empty directory `path` (a cgroup, a cpuset, a trace instance).
    RemoveDirectory { path: PathBuf },
    /// Do not remove the directory `path` after all: it could not be made, so what is there now is another's.
    KeepDirectory { path: PathBuf },
    /// End a process, and its process group where it leads one.
    End { process: Life, group: bool },
    /// Give a thread of another process its scheduling class and its CPUs back.
    Thread { thread: Life, facts: Scheduled },
    /// Take the name of a network namespace away.
    Namespace { path: PathBuf },
    /// Remove a network device, and its peer, from the namespace of this name.
    Link { namespace: PathBuf, name: String },
    /// Write `value` into `path` as it is inside a network namespace.
    WriteInside { namespace: PathBuf, path: PathBuf, value: Vec<u8> },
    /// Write `value` into this file of the network device with this number, in the network namespace with this number.
    WriteDevice { namespace: u64, device: u32, file: String, value: Vec<u8> },
    /// End the recording of the kernel by this instance of tracefs.
    Instance { mark: Mark },
    /// Remove the folder `path` with all that is in it; its last name is a mark.
    RemoveFolder { path: PathBuf },
    /// End every process that has this mark in its environment.
    EndMarked { mark: Mark },
    /// Do not end these after all: the run is done with them, and they may go on.
    Leave { mark: Mark, process: Life },
}

/// An open journal, appended to by the run.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// Its length up to the last whole line.
    length: u64,
}

/// What a journal says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contents {
    pub(super) run: Life,
    pub(super) entries: Vec<Entry>,
    /// The whole lines that are not understood, from 1.
    pub(super) strange: Vec<usize>,
}

/// A journal as it is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Its first line is not there yet: nothing was changed.
    Unbegun,
    /// Its first line is none of ours.
    Strange,
    Journal(Contents),
}

impl Life {
    /// The process or thread that has this number now; `None` where there is none.
    #[must_use]
    pub fn of(id: u32) -> Option<Life> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name may hold blanks and parentheses; the fields after it start behind the last parenthesis.
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X" | "x");
        if is_dead { None } else { Some(Life { id, started: fields.get(19)?.parse().ok()? }) }
    }

    /// Whether it still lives.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Life::of(self.id) == Some(*self)
    }
}

impl Journal {
    /// A name for a fresh journal of this process in `directory`, which is made where it is not there.
    pub(super) fn place(directory: &Path, run: Life) -> Result<PathBuf, Error> {
        prepare_directory(directory)?;
        Ok(directory.join(format!("{}-{}-{}.journal", run.id, run.started, next_number())))
    }

    /// Opens the journal that the guardian has made.
    pub(super) fn open(path: &Path) -> Result<Journal, Error> {
        let file =
            OpenOptions::new().append(true).open(path).map_err(|error| refused("open", path, &error))?;
        let facts = file.metadata().map_err(|error| refused("fstat", path, &error))?;
        Ok(Journal { file, path: path.to_owned(), length: facts.len() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an entry and waits until it is on disk.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        let mut line = encode(entry);
        line.push('\n');
        if self.file.metadata().is_ok_and(|facts| facts.nlink() == 0) {
            // What only an unlinked file lists could never be undone.
            return Err(Error::unexpected(
                format!("write({})", self.path.display()),
                "the journal was removed by another program",
                "leave the journals of living runs alone",
            ));
        }
        // What an earlier entry left that was refused half way would spoil this line.
        self.file
            .set_len(self.length)
            .and_then(|()| self.file.write_all(line.as_bytes()))
            .and_then(|()| self.file.sync_data())
            .map_err(|error| refused("write", &self.path, &error))?;
        self.length += line.len() as u64;
        Ok(())
    }
}

/// Numbers journals of one process, which may guard several runs one after another.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Where journals are: `$XDG_RUNTIME_DIR/horolog`, else `/run/horolog` for root, else `/tmp/horolog-UID`.
pub(super) fn default_directory() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    directory_of(std::env::var_os("XDG_RUNTIME_DIR"), user, Path::new("/run").is_dir())
}

fn directory_of(runtime: Option<OsString>, user: u32, has_run: bool) -> PathBuf {
    match runtime.map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("horolog"),
        None if user == 0 && has_run => PathBuf::from("/run/horolog"),
        None => PathBuf::from(format!("/tmp/horolog-{user}")),
    }
}

/// Makes the directory, or checks that nobody else can put journals into it: they are replayed with our rights.
pub(super) fn prepare_directory(directory: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(directory);
    made.map_err(|error| refused("mkdir", directory, &error))?;
    let facts = fs::symlink_metadata(directory).map_err(|error| refused("lstat", directory, &error))?;
    let ours = facts.uid() == rustix::process::geteuid().as_raw();
    if facts.is_dir() && ours && facts.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Error::bad_input(
        format!("journal directory {}", directory.display()),
        "it is not a directory that only this user can write",
        "remove it, or `chmod 700` it",
    ))
}

/// All journals in a directory that belong to this user.
pub(super) fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| refused("readdir", directory, &error))?,
    };
    prepare_directory(directory)?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| refused("readdir", directory, &error))?.path();
        if path.extension().is_some_and(|extension| extension == "journal") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A journal opened for replay, locked against another replay.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
}

impl Locked {
    /// Opens and locks; `None` where somebody else holds the lock: a living guardian.
    pub(super) fn open(path: &Path) -> Result<Option<Locked>, Error> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
            .map_err(|error| refused("open", path, &error))?;
        let facts = file.metadata().map_err(|error| refused("fstat", path, &error))?;
        if !facts.is_file() || facts.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::bad_input(
                path.display().to_string(),
                "the journal is another user's",
                "remove it",
            ));
        }
        // SAFETY: flock takes a descriptor that we own and a flag.
        let status = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        if status == 0 {
            return Ok(Some(Locked { file }));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() == std::io::ErrorKind::WouldBlock {
            Ok(None)
        } else {
            Err(refused("flock", path, &error))
        }
    }

    /// The same of a journal that need not be there yet: then it is made, as `run`'s, with its first line.
    pub(super) fn open_or_create(path: &Path, run: Life) -> Result<Option<Locked>, Error> {
        let made = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path);
        let mut file = match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Locked::open(path),
            made => made.map_err(|error| refused("open", path, &error))?,
        };
        let locked = Locked::open(path)?;
        file.write_all(format!("{HEADER} {} {}\n", run.id, run.started).as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|error| refused("write", path, &error))?;
        Ok(locked)
    }

    /// What it says now.
    pub(super) fn read(&mut self, path: &Path) -> Result<Found, Error> {
        let mut bytes = Vec::new();
        std::io::Seek::rewind(&mut self.file).map_err(|error| refused("lseek", path, &error))?;
        self.file.read_to_end(&mut bytes).map_err(|error| refused("read", path, &error))?;
        Ok(parse(&String::from_utf8_lossy(&bytes)))
    }
}

fn refused(call: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{call}({})", path.display()), error, "make the journal's directory writable")
}

fn encode(entry: &Entry) -> String {
    match entry {
        Entry::Write { path, value } => format!("write {} {}", escape_path(path), escape(value)),
        Entry::RemoveDirectory { path } => format!("rmdir {}", escape_path(path)),
        Entry::KeepDirectory { path } => format!("keep {}", escape_path(path)),
        Entry::End { process, group } => {
            format!("end {} {} {}", process.id, process.started, u8::from(*group))
        }
        Entry::Thread { thread, facts: Scheduled { policy, priority, nice, cpus } } => {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            let cpus = cpus.join(",");
            format!("thread {} {} {policy} {priority} {nice} {cpus}", thread.id, thread.started)
        }
        Entry::Namespace { path } => format!("netns {}", escape_path(path)),
        Entry::Link { namespace, name } => {
            format!("link {} {}", escape_path(namespace), escape(name.as_bytes()))
        }
        Entry::WriteInside { namespace, path, value } => {
            format!("inside {} {} {}", escape_path(namespace), escape_path(path), escape(value))
        }
        Entry::WriteDevice { namespace, device, file, value } => {
            format!("device {namespace} {device} {} {}", escape(file.as_bytes()), escape(value))
        }
        Entry::Instance { mark } => format!("instance {mark}"),
        Entry::RemoveFolder { path } => format!("folder {}", escape_path(path)),
        Entry::EndMarked { mark } => format!("marked {mark}"),
        Entry::Leave { mark, process } => format!("leave {mark} {} {}", process.id, process.started),
    }
}

/// Parses a journal. A last line without its newline does not count.
pub(super) fn parse(text: &str) -> Found {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let Some(first) = lines.next() else { return Found::Unbegun };
    let Some(run) = parse_head(first) else { return Found::Strange };
    let mut contents = Contents { run, entries: Vec::new(), strange: Vec::new() };
    let Contents { entries, strange, .. } = &mut contents;
    for (at, line) in lines.enumerate() {
        match (parse_entry(line), entries.last()) {
            (Some(Entry::KeepDirectory { path: kept }), Some(Entry::RemoveDirectory { path }))
                if kept == *path =>
            {
                entries.pop();
            }
            (Some(Entry::KeepDirectory { .. }), _) => {}
            (Some(Entry::Leave { mark, process }), _) => entries.retain(|entry| match entry {
                Entry::EndMarked { mark: of } => *of != mark,
                Entry::End { process: of, .. } => *of != process,
                _ => true,
            }),
            (Some(entry), _) => entries.push(entry),
            // Its change may have been made: whoever undoes the rest must know.
            (None, _) => strange.push(at + 2),
        }
    }
    Found::Journal(contents)
}

fn parse_head(line: &str) -> Option<Life> {
    let [HEADER, id, started] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some(Life { id: id.parse().ok()?, started: started.parse().ok()? })
}

/// The run that a journal's name tells.
pub(super) fn run_in_name(path: &Path) -> Option<Life> {
    let mut words = path.file_stem()?.to_str()?.split('-');
    Some(Life { id: words.next()?.parse().ok()?, started: words.next()?.parse().ok()? })
}

fn parse_entry(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["write", path, value] => Some(Entry::Write { path: unescape_path(path)?, value: unescape(value)? }),
        ["rmdir", path] => Some(Entry::RemoveDirectory { path: unescape_path(path)? }),
        ["keep", path] => Some(Entry::KeepDirectory { path: unescape_path(path)? }),
        ["end", id, started, group] => {
            let process = Life { id: id.parse().ok()?, started: started.parse().ok()? };
            let group = match group {
                "0" => false,
                "1" => true,
                _ => return None,
            };
            Some(Entry::End { process, group })
        }
        ["thread", id, started, policy, priority, nice, cpus] => Some(Entry::Thread {
            thread: Life { id: id.parse().ok()?, started: started.parse().ok()? },
            facts: Scheduled {
                policy: policy.parse().ok()?,
                priority: priority.parse().ok()?,
                nice: nice.parse().ok()?,
                cpus: crate::cpu_list::parse_cpu_list(cpus)?,
            },
        }),
        ["netns", path] => Some(Entry::Namespace { path: unescape_path(path)? }),
        ["link", namespace, name] => {
            let name = String::from_utf8(unescape(name)?).ok()?;
            Some(Entry::Link { namespace: unescape_path(namespace)?, name })
        }
        ["inside", namespace, path, value] => Some(Entry::WriteInside {
            namespace: unescape_path(namespace)?,
            path: unescape_path(path)?,
            value: unescape(value)?,
        }),
        ["device", namespace, device, file, value] => Some(Entry::WriteDevice {
            namespace: namespace.parse().ok()?,
            device: device.parse().ok()?,
            file: String::from_utf8(unescape(file)?).ok()?,
            value: unescape(value)?,
        }),
        ["instance", mark] => Some(Entry::Instance { mark: Mark::parse(mark)? }),
        ["folder", path] => Some(Entry::RemoveFolder { path: unescape_path(path)? }),
        ["marked", mark] => Some(Entry::EndMarked { mark: Mark::parse(mark)? }),
        ["leave", mark, id, started] => Some(Entry::Leave {
            mark: Mark::parse(mark)?,
            process: Life { id: id.parse().ok()?, started: started.parse().ok()? },
        }),
        _ => None,
    }
}

fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

fn unescape_path(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(unescape(text)?)))
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if is_plain(*byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._-:,+".contains(&byte)
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else if is_plain(*first) {
            bytes.push(*first);
            rest = tail;
        } else {
            return None;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
