//! Condition variables: a wait gives its mutex up and takes it again.
//!
//! A wait is a cancellation point. A cancelled thread holds the mutex again while its clean-up handlers run, so that the
//! section reopens then too: a clean-up buffer on our frame emits `lock/woken` before any handler of the program runs.

use crate::events;
use crate::mutex::mutex_class;
use crate::protocol;
use crate::real::{CleanupBuffer, cleanup_pop, cleanup_push};
use crate::wrapper::{call, export};
use core::ffi::{c_int, c_void};
use horolog_probe::trigger_by_flag;

/// A wait in progress, as its clean-up sees it.
struct Wait {
    mutex: usize,
    condition: usize,
    site: usize,
    /// The ceiling that the wait gives up with the mutex.
    suspended: Option<(c_int, u32)>,
}

/// The C library unwinds a cancelled thread through our frame; it has taken the mutex again before.
unsafe extern "C" fn cancelled(wait: *mut c_void) {
    // SAFETY: `waiting!` registered the address of a wait on a frame that is only now being left.
    let wait = unsafe { &*wait.cast::<Wait>() };
    woken(wait, libc::ECANCELED);
}

fn woken(wait: &Wait, outcome: c_int) {
    protocol::resume(wait.mutex, wait.suspended);
    trigger_by_flag!(
        "lock/woken",
        wait.mutex as *const u8,
        mutex_class(wait.mutex),
        wait.site as *const u8,
        wait.condition as *const u8,
        outcome
    );
}

/// A body that waits. Its frame has no destructor, so that a cancellation may unwind it.
macro_rules! waiting {
    ($body:ident ($($more:ident),*), $real:expr) => {
        unsafe extern "C-unwind" fn $body(condition: usize, $($more: usize,)* site: usize) -> c_int {
            let mutex = waiting!(mutex: $($more),*);
            let mut wait = Wait { mutex, condition, site, suspended: protocol::suspend(mutex) };
            let mut buffer = CleanupBuffer::empty();
            events::wait(mutex, mutex_class, site, condition);
            // SAFETY: buffer and wait stand on this frame and are taken off the thread's list before it ends; when it is
            // unwound instead, the C library takes them off.
            unsafe { cleanup_push(&raw mut buffer, cancelled, (&raw mut wait).cast()) };
            let outcome = call!($real, condition, $($more),*);
            // SAFETY: the buffer of this frame, last registered.
            unsafe { cleanup_pop(&raw mut buffer, 0) };
            woken(&wait, outcome);
            outcome
        }
    };
    (mutex: $mutex:ident $(, $rest:ident)*) => {
        $mutex
    };
}

waiting!(clockwait(mutex, clock, until), crate::real::COND_CLOCKWAIT);
waiting!(c11_wait(mutex), crate::real::CND_WAIT);
waiting!(c11_timedwait(mutex, until), crate::real::CND_TIMEDWAIT);
export!(clockwait(4): pthread_cond_clockwait);
export!(c11_wait(2): cnd_wait);
export!(c11_timedwait(3): cnd_timedwait);

#[cfg(any(versioned_conditions, not(target_arch = "x86_64")))]
waiting!(wait(mutex), crate::real::COND_WAIT);
#[cfg(any(versioned_conditions, not(target_arch = "x86_64")))]
waiting!(timedwait(mutex, until), crate::real::COND_TIMEDWAIT);

#[cfg(not(target_arch = "x86_64"))]
mod exported {
    use super::{export, timedwait, wait};
    export!(wait(2): pthread_cond_wait);
    export!(timedwait(3): pthread_cond_timedwait);
}

/// Both versions of the two functions that glibc has twice: the frames and events are the same, the functions behind are
/// each version's own.
#[cfg(versioned_conditions)]
mod versions {
    use super::{
        CleanupBuffer, Wait, c_int, call, cancelled, cleanup_pop, cleanup_push, events, export, mutex_class,
        protocol,
    };
    use super::{timedwait, wait, woken};

    waiting!(old_wait(mutex), crate::real::OLD_COND_WAIT);
    waiting!(old_timedwait(mutex, until), crate::real::OLD_COND_TIMEDWAIT);
    export!(wait(2): horolog_pthread_cond_wait);
    export!(timedwait(3): horolog_pthread_cond_timedwait);
    export!(old_wait(2): horolog_pthread_cond_wait_2_2_5);
    export!(old_timedwait(3): horolog_pthread_cond_timedwait_2_2_5);

    core::arch::global_asm!(
        ".symver horolog_pthread_cond_wait, pthread_cond_wait@@GLIBC_2.3.2",
        ".symver horolog_pthread_cond_timedwait, pthread_cond_timedwait@@GLIBC_2.3.2",
        ".symver horolog_pthread_cond_wait_2_2_5, pthread_cond_wait@GLIBC_2.2.5",
        ".symver horolog_pthread_cond_timedwait_2_2_5, pthread_cond_timedwait@GLIBC_2.2.5",
    );
}
