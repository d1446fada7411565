//! The runtime's own thread in a traced process: hands the session over and carries out commands.

use std::path::Path;
use std::sync::Mutex;

use super::handover::{Lines, hand_over};
use super::{Options, Session};
use super::{fork, listen};
use horolog_sys::{Error, thread};

/// The environment variable that names the reader's socket; `listen`: wait for a recorder to ask.
pub const SOCKET: &str = "HOROLOG_TRACE";
/// The environment variable that changes the session's sizes, as [`Options::apply`] reads it.
pub const OPTIONS: &str = "HOROLOG_TRACE_OPTIONS";

/// The environment variable that names a signal, by number: when it comes, a snapshot is asked for.
pub const SNAPSHOT_SIGNAL: &str = "HOROLOG_TRACE_SNAPSHOT_SIGNAL";

/// What answers commands: takes a line, returns the answer.
pub type Answer = fn(&str) -> String;

/// The session that the environment asked for.
pub(super) static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Starts the session that the environment variable [`SOCKET`] asks for, hands it to the reader there, and starts the
/// thread `horolog-trace`, which gives each command that comes to `answer`; the command `snapshot` it carries out itself.
/// A child of `fork` hands a session of its own to the same reader. Where the variable says `listen`, nothing is made
/// until a recorder asks ([`listen::request`]). `Ok(false)`: the environment asks for nothing. Meant for the constructor of a runtime library.
///
/// # Errors
/// Where the session cannot be made or nobody listens; the program then runs on untraced.
pub fn start_from_environment(answer: Answer) -> Result<bool, Error> {
    let Some(path) = std::env::var_os(SOCKET).filter(|path| !path.is_empty()) else { return Ok(false) };
    if path == listen::LISTEN {
        listen::start(answer)?;
        return Ok(true);
    }
    let mut options = Options::default();
    if let Ok(text) = std::env::var(OPTIONS) {
        options.apply(&text)?;
    }
    start(&options, Path::new(&path), answer)?;
    if let Ok(number) = std::env::var(SNAPSHOT_SIGNAL) {
        let signal = number.trim().parse().map_err(|_| {
            Error::bad_input(
                format!("{SNAPSHOT_SIGNAL}=`{number}`"),
                "no number of a signal",
                "give, say, 12",
            )
        })?;
        super::snapshot::on_signal(signal)?;
    }
    Ok(true)
}

/// Starts a session with these options, hands it to the reader at `path`, and serves it.
///
/// # Errors
/// As for [`start_from_environment`].
pub fn start(options: &Options, path: &Path, answer: Answer) -> Result<(), Error> {
    let lines = begin(options, path)?;
    with_signals_blocked(|| {
        let built = std::thread::Builder::new().name("horolog-trace".to_owned());
        built.stack_size(256 << 10).spawn(move || serve(lines, answer))
    })
    .map_err(|error| Error::io("starting the thread horolog-trace", &error, ""))?;
    Ok(())
}

/// Makes a session, this process's only one, and hands it to the reader at `path`.
pub(super) fn begin(options: &Options, path: &Path) -> Result<Lines, Error> {
    let session = Session::create(options)?;
    let lines = hand_over(&session, path)?;
    fork::follow(options, path, lines.descriptor());
    *SESSION.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(session);
    Ok(lines)
}

/// Answers commands until the reader has gone; then the session ends, so that nobody fills buffers that nobody reads.
pub(super) fn serve(mut lines: Lines, answer: Answer) {
    thread::set_name("horolog-trace");
    while let Ok(command) = lines.read() {
        let reply = if command == "snapshot" {
            super::snapshot::request();
            "ok".to_owned()
        } else {
            answer(&command)
        };
        if lines.write(&reply).is_err() {
            break;
        }
    }
    fork::forget();
    lines.close();
    drop(SESSION.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
}

/// Runs `work` with every signal blocked, so that a thread it starts takes none of the program's.
pub(super) fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid and writable; the mask of the calling thread is put back.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, core::ptr::null_mut());
        result
    }
}
