//! A child of `fork` that runs on without `exec` has no part in its parent's session: it makes its own and hands it to the
//! same reader, before `fork` returns there.

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::path::{Path, PathBuf};
use std::sync::Once;

use super::budget::{self, Reason};
use super::handover::hand_over;
use super::{Options, Session, UNHEARD, prohibited};

/// What the present session was made with, and where it went.
struct Followed {
    options: Options,
    path: PathBuf,
}

/// Null: children have nothing to do with a reader. Values are never freed, since a fork may come at any time.
static FOLLOWED: AtomicPtr<Followed> = AtomicPtr::new(ptr::null_mut());

/// From now on children hand sessions over to the reader at `path`.
pub(super) fn follow(options: &Options, path: &Path) {
    static ONCE: Once = Once::new();
    let followed = Box::new(Followed { options: *options, path: path.to_owned() });
    FOLLOWED.swap(Box::into_raw(followed), AcqRel);
    ONCE.call_once(|| {
        // SAFETY: registers a function that stays loaded. It runs behind the one that takes the parent's session away,
        // which was registered when that session was made.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// The reader has gone.
pub(super) fn forget() {
    FOLLOWED.store(ptr::null_mut(), Relaxed);
}

/// Takes no lock and allocates nothing: the fork may have come from a signal handler. Whatever fails leaves the child
/// untraced.
extern "C" fn in_child() {
    // SAFETY: null, or a value that is never freed.
    let Some(followed) = (unsafe { FOLLOWED.load(Acquire).as_ref() }) else { return };
    if let Some(reason) = prohibited::in_child() {
        budget::of_this_process().count(reason);
        return;
    }
    // What the parent emitted in vain is the parent's.
    UNHEARD.store(0, Relaxed);
    match Session::create(&followed.options) {
        Ok(session) if session.hand_over(&followed.path).is_ok() => session.go_on(),
        _ => budget::of_this_process().count(Reason::NotHandedOver),
    }
}

impl Session {
    /// Hands the memory over to the reader at `path`. Nothing of it stays open here.
    pub(super) fn hand_over(&self, path: &Path) -> Result<(), horolog_sys::Error> {
        use std::os::fd::AsFd;
        if let Some(memory) = &self.memory {
            self.shared.read_by(hand_over(memory.as_fd(), path)?);
        }
        Ok(())
    }
}
