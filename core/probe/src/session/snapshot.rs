//! Asking for a snapshot of what overwriting rings hold: by a call, after a missed deadline, or by a signal.
//!
//! A request increases one word of the session's memory. Whoever reads the session sees it
//! ([`Reader::snapshots_requested`](super::Reader::snapshots_requested)) and takes the snapshot, in its own process and
//! its own time; the traced thread goes on at once.

use super::shared::take_live;
use core::sync::atomic::Ordering::Release;
use horolog_sys::Error;

/// Asks the reader of the live session for a snapshot; `false` where there is none. Three atomic operations; safe in a
/// signal handler.
pub fn request() -> bool {
    let Some(session) = take_live() else { return false };
    session.header().snapshot.fetch_add(1, Release);
    session.give_back();
    true
}

/// From now on `signal` asks for a snapshot.
///
/// # Errors
/// Bad input where the program has a handler for it already, or where there is no such signal.
pub fn on_signal(signal: i32) -> Result<(), Error> {
    extern "C" fn handler(_: i32) {
        request();
    }
    let refused =
        || Error::last_os(format!("sigaction of signal {signal}"), "name another signal, say SIGUSR2");
    // SAFETY: both structures are valid; the handler makes atomic operations alone and stays loaded with this module,
    // which a session has pinned.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(signal, core::ptr::null(), &mut before) != 0 {
            return Err(refused());
        }
        if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
            return Err(Error::bad_input(
                format!("signal {signal} for snapshots"),
                "the program handles it itself",
                "name another signal",
            ));
        }
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        if libc::sigaction(signal, &action, core::ptr::null_mut()) != 0 {
            return Err(refused());
        }
    }
    Ok(())
}
