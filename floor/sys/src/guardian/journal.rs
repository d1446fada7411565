//! The journal: how to undo each change of the machine, on disk before the change is made.
//!
//! A text file, one line an entry, written and synchronised before the change. A last line without its newline was cut
//! off before its change, so it is ignored. Bytes other than letters, digits and `/._-:,+` stand as `%XX`.

use crate::Error;
use crate::affinity::allowed_cpus_of;
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
}

/// An open journal, appended to by the run.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// What a journal says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contents {
    pub(super) run: Life,
    pub(super) entries: Vec<Entry>,
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
    /// A fresh journal of this process in `directory`.
    pub(super) fn create(directory: &Path) -> Result<Journal, Error> {
        let run = Life::of(std::process::id())
            .ok_or_else(|| Error::unexpected("read(/proc/self/stat)", "not understood", "mount procfs"))?;
        prepare_directory(directory)?;
        let path = directory.join(format!("{}-{}-{}.journal", run.id, run.started, next_number()));
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| refused("open", &path, &error))?;
        let first = format!("{HEADER} {} {}\n", run.id, run.started);
        file.write_all(first.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|error| refused("write", &path, &error))?;
        Ok(Journal { file, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an entry and waits until it is on disk.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        let mut line = encode(entry);
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|error| refused("write", &self.path, &error))
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
    let user = rustix::process::geteuid();
    if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute()) {
        return PathBuf::from(runtime).join("horolog");
    }
    if user.is_root() && Path::new("/run").is_dir() {
        return PathBuf::from("/run/horolog");
    }
    PathBuf::from(format!("/tmp/horolog-{}", user.as_raw()))
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

    /// What it says now.
    pub(super) fn read(&mut self, path: &Path) -> Result<Contents, Error> {
        let mut text = String::new();
        std::io::Seek::rewind(&mut self.file).map_err(|error| refused("lseek", path, &error))?;
        self.file.read_to_string(&mut text).map_err(|error| refused("read", path, &error))?;
        parse(&text).ok_or_else(|| {
            Error::unexpected(path.display().to_string(), "no journal of this version", "remove it by hand")
        })
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
    }
}

/// Parses a journal; `None` where the first line is not ours. Stops at the first line that is not understood.
pub(super) fn parse(text: &str) -> Option<Contents> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mut head = lines.next()?.split(' ');
    if head.next()? != HEADER {
        return None;
    }
    let run = Life { id: head.next()?.parse().ok()?, started: head.next()?.parse().ok()? };
    let mut entries: Vec<Entry> = Vec::new();
    for entry in lines.map_while(parse_entry) {
        match (&entry, entries.last()) {
            (Entry::KeepDirectory { path: kept }, Some(Entry::RemoveDirectory { path })) if path == kept => {
                entries.pop();
            }
            (Entry::KeepDirectory { .. }, _) => {}
            _ => entries.push(entry),
        }
    }
    Some(Contents { run, entries })
}

fn parse_entry(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["write", path, value] => Some(Entry::Write { path: unescape_path(path)?, value: unescape(value)? }),
        ["rmdir", path] => Some(Entry::RemoveDirectory { path: unescape_path(path)? }),
        ["keep", path] => Some(Entry::KeepDirectory { path: unescape_path(path)? }),
        ["end", id, started, group] => {
            let process = Life { id: id.parse().ok()?, started: started.parse().ok()? };
            Some(Entry::End { process, group: group == "1" })
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
        _ => None,
    }
}

fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

fn unescape_path(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(std::ffi::OsString::from_vec(unescape(text)?)))
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/._-:,+".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::Write { path: PathBuf::from("/proc/sys/kernel/x y"), value: b"95\n%\xff".to_vec() },
            Entry::Write { path: PathBuf::from("/empty"), value: Vec::new() },
            Entry::RemoveDirectory { path: PathBuf::from("/sys/fs/cgroup/cpuset/horolog") },
            Entry::End { process: Life { id: 7, started: 99 }, group: true },
            Entry::Thread {
                thread: Life { id: 8, started: 3 },
                facts: Scheduled { policy: 1, priority: 50, nice: -5, cpus: vec![0, 2] },
            },
            Entry::Namespace { path: PathBuf::from("/run/horolog/7 a.netns") },
            Entry::Link { namespace: PathBuf::from("/run/a.netns"), name: "h7r".to_owned() },
            Entry::WriteInside {
                namespace: PathBuf::from("/run/a.netns"),
                path: PathBuf::from("/sys/class/net/h7r/threaded"),
                value: b"0\n".to_vec(),
            },
        ]
    }

    #[test]
    fn entries_read_back() {
        let mut text = format!("{HEADER} 7 99\n");
        for entry in entries() {
            text.push_str(&encode(&entry));
            text.push('\n');
        }
        let contents = parse(&text).unwrap();
        assert_eq!(contents.run, Life { id: 7, started: 99 });
        assert_eq!(contents.entries, entries());
    }

    #[test]
    fn a_directory_that_could_not_be_made_is_left_out_and_only_that_one() {
        let make = |path: &str| Entry::RemoveDirectory { path: PathBuf::from(path) };
        let keep = |path: &str| Entry::KeepDirectory { path: PathBuf::from(path) };
        let read = |entries: &[Entry]| {
            let lines: Vec<String> = entries.iter().map(encode).collect();
            parse(&format!("{HEADER} 7 99\n{}\n", lines.join("\n"))).unwrap().entries
        };
        assert_eq!(read(&[make("/a"), make("/b"), keep("/b")]), [make("/a")]);
        assert_eq!(read(&[make("/a"), keep("/b"), make("/c")]), [make("/a"), make("/c")]);
        assert_eq!(read(&[make("/a"), keep("/a"), make("/a")]), [make("/a")]);
    }

    #[test]
    fn a_cut_off_journal_holds_all_whole_lines_at_every_length() {
        let mut text = format!("{HEADER} 7 99\n");
        entries().iter().for_each(|entry| text.push_str(&format!("{}\n", encode(entry))));
        for length in 0..text.len() {
            let whole = text[..length].matches('\n').count();
            match parse(&text[..length]) {
                Some(contents) => assert_eq!(contents.entries, entries()[..whole - 1]),
                None => assert_eq!(whole, 0),
            }
        }
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("something else 7 99\n"), None);
        assert_eq!(parse(&format!("{HEADER} x 99\n")), None);
        assert_eq!(parse(&format!("{HEADER} 7 99\nwrite /a %zz\n")).unwrap().entries, []);
    }

    #[test]
    fn a_life_is_told_from_a_later_one_of_the_same_number() {
        let own = Life::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        assert!(!Life { started: own.started + 1, ..own }.is_alive());
        assert!(!Life { id: u32::MAX, started: 0 }.is_alive());
    }
}
