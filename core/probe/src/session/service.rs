//! What the environment asks a traced process for.

use std::path::Path;

use super::budget::{self, Reason};
use super::{Options, Session};
use super::{fork, listen, prohibited};
use horolog_sys::Error;

/// The environment variable that names the reader's socket; `listen`: wait for a recorder to ask.
pub const SOCKET: &str = "HOROLOG_TRACE";
/// The environment variable that changes the session's sizes, as [`Options::apply`] reads it.
pub const OPTIONS: &str = "HOROLOG_TRACE_OPTIONS";

/// The environment variable that names a signal, by number: when it comes, a snapshot is asked for.
pub const SNAPSHOT_SIGNAL: &str = "HOROLOG_TRACE_SNAPSHOT_SIGNAL";

/// What answers commands: takes a line, returns the answer.
pub type Answer = fn(&str) -> String;

/// Starts the session that the environment variable [`SOCKET`] asks for and hands it to the reader there. Neither a thread
/// nor a descriptor stays behind. A child of `fork` hands a session of its own to the same reader. Where the variable says
/// `listen`, nothing is made until a recorder asks ([`listen::request`]); then `answer` carries out the commands `enable
/// PATTERN` and `disable PATTERN`. `Ok(false)`: there is no session: the environment asks for none, no recorder is there
/// that this process can reach, or the recorder was told why this process cannot be recorded. Meant for the constructor of
/// a runtime library.
///
/// # Errors
/// Where the environment asks for what no session can be; the program then runs on untraced.
pub fn start_from_environment(answer: Answer) -> Result<bool, Error> {
    let Some(path) = std::env::var_os(SOCKET).filter(|path| !path.is_empty()) else { return Ok(false) };
    if path == listen::LISTEN {
        listen::start(answer)?;
        return Ok(true);
    }
    let mut options = Options::recorded();
    if let Ok(text) = std::env::var(OPTIONS) {
        options.apply(&text)?;
    }
    let path = Path::new(&path);
    if !budget::join(path) {
        // The recorder is gone, or does not take this process: what it prints is its own, so nothing is said here.
        return Ok(false);
    }
    let recorder = budget::of_this_process();
    if prohibited::filters() > recorder.filters() {
        recorder.count(Reason::Filter);
        return Ok(false);
    }
    match begin(&options, path) {
        Ok(session) => session.go_on(),
        Err(error) if error.is_bad_input() => return Err(error),
        Err(_) => {
            recorder.count(Reason::NotHandedOver);
            return Ok(false);
        }
    }
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

/// Makes a session, this process's only one, and hands it to the reader at `path`, whose page is joined.
pub(super) fn begin(options: &Options, path: &Path) -> Result<Session, Error> {
    if prohibited::is_counter() {
        let what = "the session of a process that has forbidden itself the time-stamp counter";
        return Err(Error::unsupported(what, "record it from its start: then what comes before is recorded"));
    }
    let options = options.within_limits();
    let mut session = Session::create(&options)?;
    session.hand_over(path)?;
    session.memory = None;
    fork::follow(&options, path);
    Ok(session)
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
