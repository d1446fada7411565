//! Ctrl-C and `kill` as a flag, so that a run ends in order.

use crate::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGXFSZ};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Sets `stop` at the first SIGINT, SIGTERM, SIGQUIT or SIGHUP (where that is not ignored, as under `nohup`); a second one ends the process at once with exit status 130 (the
/// guardian then puts back what the run has changed).
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn set_on_interrupt(stop: &Arc<AtomicBool>) -> Result<(), Error> {
    for signal in ending() {
        // The order matters: the shutdown looks at the flag before the same signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .map_err(|error| {
                Error::io(format!("sigaction({signal})"), &error, "run without a sandbox that forbids it")
            })?;
    }
    Ok(())
}

/// Puts the number of the last SIGINT, SIGTERM, SIGQUIT or SIGHUP into the result; 0: there was none yet.
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn last_interrupt() -> Result<Arc<AtomicUsize>, Error> {
    let last = Arc::new(AtomicUsize::new(0));
    for signal in ending() {
        let number = usize::try_from(signal).unwrap_or(0);
        signal_hook::flag::register_usize(signal, Arc::clone(&last), number).map_err(|error| {
            Error::io(format!("sigaction({signal})"), &error, "run without a sandbox that forbids it")
        })?;
    }
    Ok(last)
}

/// Signals that ask for an end and that a process has sent, not the terminal: that one sends them to all programs of its
/// foreground, and so to those that this one has started.
#[derive(Debug)]
pub struct Sent(&'static AtomicUsize);

impl Sent {
    /// Those that came since the last look, in the order of their numbers; one that came twice is one.
    #[must_use]
    pub fn take(&self) -> Vec<i32> {
        let mask = self.0.swap(0, Ordering::Relaxed);
        (1..usize::BITS).filter(|bit| mask >> bit & 1 == 1).map(u32::cast_signed).collect()
    }
}

/// From now on the signals that end a run (SIGHUP not where it is ignored) are gathered instead.
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn sent_by_processes() -> Result<Sent, Error> {
    static PENDING: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn note(signal: libc::c_int, about: *const libc::siginfo_t, _: *const libc::c_void) {
        // SAFETY: the kernel hands a record to a handler with SA_SIGINFO. Codes above 0 are the kernel's own.
        if unsafe { (*about).si_code } <= 0 {
            PENDING.fetch_or(1 << signal, Ordering::Relaxed);
        }
    }
    for signal in ending() {
        // SAFETY: a record of this frame, and a handler that does one atomic operation.
        let outcome = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if outcome != 0 {
            let error = std::io::Error::last_os_error();
            let remedy = "run without a sandbox that forbids it";
            return Err(Error::io(format!("sigaction({signal})"), &error, remedy));
        }
    }
    Ok(Sent(&PENDING))
}

/// The name of a signal that ends a run.
#[must_use]
pub fn name(signal: usize) -> &'static str {
    match i32::try_from(signal) {
        Ok(SIGINT) => "SIGINT",
        Ok(SIGTERM) => "SIGTERM",
        Ok(SIGHUP) => "SIGHUP",
        Ok(SIGQUIT) => "SIGQUIT",
        _ => "a signal",
    }
}

/// At the first SIGINT, SIGTERM, SIGQUIT or SIGHUP (where that is not ignored) writes `text` to standard error and ends the process with `status`: for
/// work that leaves nothing behind.
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn end_with(text: &'static str, status: i32) -> Result<(), Error> {
    for signal in ending() {
        let end = move || {
            // SAFETY: the text lives for ever, and both calls may be made in a handler.
            unsafe {
                libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
                libc::_exit(status);
            }
        };
        // SAFETY: `end` calls nothing but these two.
        unsafe { signal_hook::low_level::register(signal, end) }.map(drop).map_err(|error| {
            Error::io(format!("sigaction({signal})"), &error, "run without a sandbox that forbids it")
        })?;
    }
    Ok(())
}

/// The signals that end what is done in order.
fn ending() -> impl Iterator<Item = i32> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM, SIGQUIT].into_iter().chain(hang_up)
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid, and the call only fills it.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Sets `asked` at every SIGUSR1.
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn set_on_user_signal(asked: &Arc<AtomicBool>) -> Result<(), Error> {
    signal_hook::flag::register(SIGUSR1, Arc::clone(asked))
        .map(drop)
        .map_err(|error| Error::io("sigaction(SIGUSR1)", &error, "run without a sandbox that forbids it"))
}

/// From now on a file that has reached its size limit (`ulimit -f`) is a failed write and not the end of the process.
/// Programs that are started keep the kernel's own answer, since a handler does not outlive `exec`.
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn survive_file_size_limit() -> Result<(), Error> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .map_err(|error| Error::io("sigaction(SIGXFSZ)", &error, "run without a sandbox that forbids it"))
}
