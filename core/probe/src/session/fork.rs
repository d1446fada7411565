//! A child of `fork` that runs on without `exec` has no part in its parent's session: it makes its own and hands it to the
//! same reader.

use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::SeqCst;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock, TryLockError};

use super::handover::hand_over;
use super::service::SESSION;
use super::{Options, Session};

/// The socket of this process's session, which a child closes: its parent's end is to be seen when the parent ends.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

/// What the first session was made with.
static STARTED: OnceLock<(Options, PathBuf)> = OnceLock::new();

/// From now on children hand sessions over to the reader at `path`; this process's own goes over `socket`.
pub(super) fn follow(options: &Options, path: &Path, socket: i32) {
    static ONCE: Once = Once::new();
    let _ = STARTED.set((*options, path.to_owned()));
    SOCKET.store(socket, SeqCst);
    ONCE.call_once(|| {
        // SAFETY: registers a function that stays loaded. It runs behind the one that takes the parent's session away,
        // which was registered when that session was made.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// The socket is closed: children have nothing to do with it.
pub(super) fn forget() {
    SOCKET.store(-1, SeqCst);
}

/// Without a thread of its own, since the child may rely on having one: nobody answers commands in it, and its session
/// lasts as long as the child. Whatever fails leaves it untraced.
extern "C" fn in_child() {
    let socket = SOCKET.swap(-1, SeqCst);
    if socket < 0 {
        return;
    }
    // SAFETY: the copy of a descriptor that the parent keeps; no code of this process uses the number any more, since the
    // thread that does was not copied.
    unsafe { libc::close(socket) };
    let mut held = match SESSION.try_lock() {
        Ok(held) => held,
        Err(TryLockError::Poisoned(held)) => held.into_inner(),
        // A thread of the parent held it, and will never give it back here.
        Err(TryLockError::WouldBlock) => return,
    };
    // The parent's session is not ours to end.
    core::mem::forget(held.take());
    let Some((options, path)) = STARTED.get() else { return };
    let Ok(session) = Session::create(options) else { return };
    if let Ok(lines) = hand_over(&session, path) {
        SOCKET.store(lines.descriptor(), SeqCst);
        // Open until the child ends, by which the reader sees its end.
        core::mem::forget(lines);
        *held = Some(session);
    }
}
