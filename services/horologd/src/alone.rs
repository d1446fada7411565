//! Reserves without a daemon: one command admits and enforces for itself.
//!
//! Such commands take turns by a lock, since what one has promised is seen by the others only once its thread has it. What a daemon has
//! promised is seen by itself alone, so no command does without one that listens.

use crate::client::Client;
use crate::config::Config;
use crate::server::Server;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A folder that every Linux has. A lock on it changes nothing, and ends with the process.
const LOCKED: &str = "/run";

/// So long one command waits for others that admit.
const PATIENCE: Duration = Duration::from_secs(5);

/// A daemon inside of this process.
#[derive(Debug)]
pub struct Alone {
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<Vec<String>>>,
    folder: PathBuf,
    turn: Option<File>,
}

/// Why there is none.
#[derive(Debug)]
pub enum NotAlone {
    /// A daemon listens here.
    Daemon(PathBuf),
    /// Another command has had its turn for too long.
    Busy,
    /// It was not tried: a file or folder cannot be opened, made or locked.
    File(PathBuf, io::Error),
    /// This machine does not allow it.
    Refused(String),
}

impl fmt::Display for NotAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAlone::Daemon(socket) => write!(
                f,
                "horologd listens at {}, and only it knows what it has promised: leave --no-daemon out",
                socket.display()
            ),
            NotAlone::Busy => write!(
                f,
                "another command has held the lock on {LOCKED} for {} s: `fuser -v {LOCKED}` names it",
                PATIENCE.as_secs()
            ),
            NotAlone::File(path, error) => write!(f, "{}: {error}", path.display()),
            NotAlone::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NotAlone {}

impl Alone {
    /// Waits for its turn and serves in `folder`, which is the caller's own and empty; `daemon` is where a daemon would listen.
    ///
    /// # Errors
    /// [`NotAlone`].
    pub fn start(folder: &Path, daemon: &Path) -> Result<Alone, NotAlone> {
        if Client::connect(daemon).is_ok() {
            return Err(NotAlone::Daemon(daemon.to_owned()));
        }
        let turn = take_turn()?;
        let config =
            Config { socket: folder.join("socket"), state: folder.join("state"), ..Config::default() };
        let (server, _) = Server::start(config, None, false).map_err(NotAlone::Refused)?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let serving = Some(std::thread::spawn(move || server.serve(&flag)));
        Ok(Alone { stop, serving, folder: folder.to_owned(), turn: Some(turn) })
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// The thread has its amount: the next command that admits sees it.
    pub fn has_admitted(&mut self) {
        self.turn = None;
    }

    /// Gives everything back; what could not be is the result, in words.
    pub fn end(&mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Release);
        self.serving.take().and_then(|serving| serving.join().ok()).unwrap_or_default()
    }
}

fn take_turn() -> Result<File, NotAlone> {
    let failed = |error| NotAlone::File(PathBuf::from(LOCKED), error);
    let folder = fs::File::open(LOCKED).map_err(failed)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(NotAlone::Busy),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}
