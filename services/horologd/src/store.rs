//! The state on disk: written whole, before what it says is done.

use crate::host::{Binding, put_back};
use horolog_reserve::Snapshot;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Everything that a new daemon needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The version of this form.
    pub version: u32,
    /// The boot in which it was written: times and processes of another one mean nothing.
    pub boot: String,
    /// The reserves.
    pub kernel: Snapshot,
    /// Who was put under SCHED_DEADLINE, and how to undo that.
    pub bindings: Vec<Binding>,
}

const VERSION: u32 = 1;

/// The folder of the state, held by one daemon.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    _lock: File,
}

/// This boot.
#[must_use]
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn file(folder: &Path) -> PathBuf {
    folder.join("state.json")
}

/// Takes the folder, waiting `patience` for a daemon or a lease that is about to end.
fn lock(folder: &Path, patience: Duration) -> io::Result<Option<File>> {
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    let until = Instant::now() + patience;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(Some(lock)),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
        }
    }
}

impl Store {
    /// Takes the folder, which is made where it is not there.
    ///
    /// # Errors
    /// In words: another daemon has it, or the folder cannot be used.
    pub fn take(folder: &Path) -> Result<Store, String> {
        let unusable = |error: io::Error| format!("cannot use the folder {}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(unusable)?;
        match lock(folder, Duration::from_secs(1)).map_err(unusable)? {
            Some(lock) => Ok(Store { folder: folder.to_owned(), _lock: lock }),
            None => Err(format!("another horologd has the folder {}: stop it first", folder.display())),
        }
    }

    /// What was kept; the default where there is none of this boot.
    ///
    /// # Errors
    /// In words: it is there and cannot be read.
    pub fn load(&self) -> Result<State, String> {
        load(&self.folder)
    }

    /// Writes the state: the old or the new one is there at each instant.
    ///
    /// # Errors
    /// What the kernel says; the old one stands.
    pub fn save(&self, kernel: Snapshot, bindings: &[Binding]) -> io::Result<()> {
        let state = State { version: VERSION, boot: boot(), kernel, bindings: bindings.to_vec() };
        let path = file(&self.folder);
        let fresh = path.with_extension("new");
        let mut out = File::create(&fresh)?;
        out.write_all(&serde_json::to_vec(&state)?)?;
        out.sync_data()?;
        fs::rename(&fresh, &path)
    }
}

fn load(folder: &Path) -> Result<State, String> {
    let path = file(folder);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let state: State = serde_json::from_slice(&bytes).map_err(|error| {
        format!("{}: {error}; `horologd --put-back` cannot read it either: remove it by hand", path.display())
    })?;
    if state.version != VERSION {
        return Err(format!(
            "{}: version {}, and this daemon knows {VERSION}",
            path.display(),
            state.version
        ));
    }
    Ok(if state.boot == boot() { state } else { State::default() })
}

/// Gives every thread back what a daemon that is gone had changed; how many, and what could not be. `None`: a daemon has the
/// folder, and nothing was done.
///
/// # Errors
/// In words: the state cannot be read.
pub fn put_all_back(folder: &Path) -> Result<Option<(usize, Vec<String>)>, String> {
    let locked = lock(folder, Duration::ZERO).map_err(|error| error.to_string())?;
    let Some(_lock) = locked else { return Ok(None) };
    let (mut count, mut failures) = (0, Vec::new());
    for binding in load(folder)?.bindings {
        match put_back(&binding) {
            Ok(had) => count += usize::from(had),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Ok(Some((count, failures)))
}

/// The lease: waits until the daemon (its process) at the other end of standard input has died, leaves its grants for `grace` to a new one, and puts
/// them back where none has come. A daemon that ends in order says so by a byte.
pub fn hold_lease(folder: &Path, daemon: u32, grace: Duration) -> i32 {
    use std::io::Read as _;
    let mut word = [0];
    loop {
        match io::stdin().read(&mut word) {
            Ok(1) => return 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    // A process that dies closes its files one by one: its lock may outlive the pipe, and would be taken for that of a new daemon.
    while std::os::unix::process::parent_id() == daemon {
        std::thread::sleep(Duration::from_millis(5));
    }
    let until = Instant::now() + grace;
    while Instant::now() < until {
        match lock(folder, Duration::ZERO) {
            Ok(None) => return 0,
            Ok(Some(lock)) => drop(lock),
            Err(_) => break,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    match put_all_back(folder) {
        Ok(None) => 0,
        Ok(Some((count, failures))) => {
            eprintln!("horologd has died and no other came: {count} threads were put back");
            failures.iter().for_each(|failure| eprintln!("not put back: {failure}"));
            i32::from(!failures.is_empty())
        }
        Err(error) => {
            eprintln!("horologd has died, and nothing can be put back: {error}");
            1
        }
    }
}
