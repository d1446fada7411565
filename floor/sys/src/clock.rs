//! Clocks and absolute sleeps.

use crate::Error;

/// `CLOCK_MONOTONIC` now, in nanoseconds: about 30 ns through the vDSO.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME` now, in nanoseconds since 1970.
#[inline]
#[must_use]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Processor time that the calling thread has used, in nanoseconds: one system call.
#[inline]
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec; the clock ids given here exist on every Linux, so the call
    // cannot fail, and if it did the zero time would stand.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processor-time clock of one thread of this process, readable by its other threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock {
    id: libc::clockid_t,
}

impl ThreadClock {
    /// The clock of the calling thread.
    #[must_use]
    pub fn of_this_thread() -> ThreadClock {
        let mut id = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: pthread_self() is always a live thread while it runs, and `id` is writable.
        let status = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) };
        debug_assert_eq!(status, 0, "pthread_getcpuclockid of the calling thread cannot fail");
        ThreadClock { id }
    }

    /// Processor time that the thread has used, in nanoseconds; `None` once it has ended.
    #[inline]
    #[must_use]
    pub fn read_ns(self) -> Option<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is writable; a clock id of an ended thread makes the call fail with EINVAL.
        let status = unsafe { libc::clock_gettime(self.id, &mut time) };
        (status == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

/// Processor time that all threads of process `pid` have used, in nanoseconds; `None` once it is gone.
#[must_use]
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let (mut id, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both are writable; the number of a process that is gone makes the first call fail, or the second.
    let found = unsafe {
        libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &mut id) == 0
            && libc::clock_gettime(id, &mut time) == 0
    };
    found.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Slept {
    /// The instant was reached.
    Reached,
    /// A signal came first.
    Interrupted,
}

/// Sleeps until `CLOCK_MONOTONIC` shows `at_ns`; returns at once where that has passed.
#[inline]
pub fn sleep_until(at_ns: u64) -> Slept {
    let at = timespec(at_ns);
    // SAFETY: `at` is a valid timespec; with TIMER_ABSTIME the remaining time is not written, so null is allowed.
    let status = unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
    };
    if status == 0 { Slept::Reached } else { Slept::Interrupted }
}

/// The time as the kernel takes it.
#[inline]
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Makes the calling thread's sleeps end on time under normal scheduling too: the kernel adds up to 50 us of
/// slack there. Real-time threads have none.
///
/// # Errors
/// Where the kernel refuses.
pub fn remove_timer_slack() -> Result<(), Error> {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of ours.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) } == 0 {
        Ok(())
    } else {
        Err(Error::last_os("prctl(PR_SET_TIMERSLACK, 1)", ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_the_sleep_is_absolute() {
        let start = monotonic_ns();
        assert_eq!(sleep_until(start + 1_000_000), Slept::Reached);
        assert!(monotonic_ns() >= start + 1_000_000);
        assert_eq!(sleep_until(start), Slept::Reached);
    }

    #[test]
    fn a_thread_clock_counts_execution_and_not_sleep() {
        let clock = ThreadClock::of_this_thread();
        let before = clock.read_ns().expect("this thread lives");
        let _ = sleep_until(monotonic_ns() + 20_000_000);
        let slept = clock.read_ns().expect("this thread lives") - before;
        assert!(slept < 20_000_000, "{slept}");
        let before = thread_cpu_ns();
        while thread_cpu_ns() < before + 1_000_000 {}
        assert!(clock.read_ns().expect("this thread lives") >= before + 1_000_000);
    }
}
