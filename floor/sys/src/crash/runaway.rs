//! Threads that execute one piece of work without an end.
//!
//! Whoever is scheduled above such a thread asks it what it executes ([`ask`]) and stops it for good ([`stop`]): a signal makes the
//! thread itself do both. Where the thread has the highest priority (`SCHED_FIFO` 99 on the only processor), no other thread would get to ask. The
//! kernel does then: at its timer interrupt it sends `SIGXCPU` to a real-time thread that has executed for longer than `RLIMIT_RTTIME`
//! without sleeping, and the handler, on that thread, notes what it executes and lowers it to normal scheduling.

use super::{Cell, IN_CODE, ORDERS, is_ordered, look_signal, own_cell, sleep_for_ever};
use crate::{Error, clock};
use std::sync::atomic::Ordering;

/// The thread must sleep for ever.
pub(super) const STOP: u64 = 1;
/// The thread has lowered itself.
const LOWERED: u64 = 2;

/// Asks the watched thread `tid` to note what it executes.
///
/// # Errors
/// `ESRCH` where the thread has ended.
pub fn ask(tid: u32) -> Result<(), Error> {
    // SAFETY: tgkill takes integers; the signal's handler is installed by `Guard::new`.
    let status = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as i32, look_signal()) };
    if status == 0 { Ok(()) } else { Err(Error::last_os(format!("tgkill of thread {tid}"), "")) }
}

/// Has the watched thread `tid`, whose cell this is, note what it executes and then sleep for ever: in user code at once, else as soon
/// as it comes back there.
///
/// # Errors
/// As [`ask`].
pub fn stop(tid: u32, cell: &Cell) -> Result<(), Error> {
    cell.words[ORDERS].fetch_or(STOP, Ordering::AcqRel);
    ask(tid)
}

/// Whether the thread has lowered itself to normal scheduling, having executed beyond its patience above everybody.
#[must_use]
pub fn has_lowered_itself(cell: &Cell) -> bool {
    is_ordered(&cell.words[ORDERS], LOWERED)
}

/// The handler of [`ask`] and [`stop`]. The interrupted code's errno is kept.
pub(super) extern "C" fn look(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(cell) = own_cell() else { return };
    // SAFETY: errno of the calling thread is always readable and writable.
    let before = unsafe { *libc::__errno_location() };
    cell.note_frames(context);
    let may_stop = cell.words[IN_CODE].load(Ordering::SeqCst) != 0;
    if may_stop && is_ordered(&cell.words[ORDERS], STOP) {
        sleep_for_ever();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
}

/// The handler of `SIGXCPU`. Work that is within its patience goes on: the kernel asks again a second later.
pub(super) extern "C" fn used_up(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(cell) = own_cell() else { return };
    let Some((begun, patience)) = cell.work() else { return };
    if clock::thread_cpu_ns().saturating_sub(begun) <= patience {
        return;
    }
    // SAFETY: errno of the calling thread is always readable and writable.
    let before = unsafe { *libc::__errno_location() };
    cell.note_frames(context);
    let normal = libc::sched_param { sched_priority: 0 };
    // SAFETY: a system call with integers and a parameter that lives during it; lowering oneself needs no right.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, &normal) };
    cell.words[ORDERS].fetch_or(LOWERED, Ordering::AcqRel);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
}

/// The limit on a real-time thread's execution without sleep; put back when this is dropped.
#[derive(Debug)]
pub struct Limit {
    before: libc::rlimit,
    seconds: u64,
}

impl Limit {
    /// The kernel tells real-time threads of this process that have executed so long without sleeping. A lower limit that is set already
    /// stays.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set(seconds: u64) -> Result<Limit, Error> {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `before` is writable.
        if unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &mut before) } != 0 {
            return Err(Error::last_os("getrlimit(RLIMIT_RTTIME)", ""));
        }
        let limit = Limit { before, seconds };
        limit.renew();
        Ok(limit)
    }

    /// The kernel raises the limit by a second each time that it tells a thread: takes that back.
    pub fn renew(&self) {
        let mut limit = self.before;
        limit.rlim_cur = limit.rlim_cur.min(self.seconds.saturating_mul(1_000_000));
        // SAFETY: `limit` is readable; a refusal leaves what was, which is no worse.
        unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limit) };
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // SAFETY: puts back what getrlimit handed out.
        unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &self.before) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::{Guard, watch};
    use crate::thread;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64};

    #[inline(never)]
    fn spin(count: &AtomicU64) {
        loop {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_thread_without_end_says_what_it_executes_and_stands_still() {
        let _guard = Guard::new().expect("installs");
        let cell = Arc::new(Cell::new().expect("memory"));
        let (tid, count) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
        let theirs = (cell.clone(), tid.clone(), count.clone());
        std::thread::spawn(move || {
            let _watch = watch(theirs.0.clone());
            theirs.0.begin(7, 0, u64::MAX);
            theirs.1.store(thread::id(), Ordering::Release);
            spin(&theirs.2);
        });
        while tid.load(Ordering::Acquire) == 0 || count.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        assert_eq!((cell.frames(), cell.piece()), (None, Some(7)));
        ask(tid.load(Ordering::Acquire)).expect("it lives");
        while cell.frames().is_none() {
            std::thread::yield_now();
        }
        // The handler's own frames are not among them: the function that spins, and who called it.
        let frames = cell.frames().expect("noted");
        assert!(frames.len() >= 3, "{frames:x?}");
        let at = spin as *const () as u64;
        assert!((at..at + 256).contains(&frames[0]), "{frames:x?} {at:x}");
        stop(tid.load(Ordering::Acquire), &cell).expect("it lives");
        let mut before = u64::MAX;
        while count.load(Ordering::Acquire) != before {
            before = count.load(Ordering::Acquire);
            let _ = clock::sleep_until(clock::monotonic_ns() + 50_000_000);
        }
    }
}
