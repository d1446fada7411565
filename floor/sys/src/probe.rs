//! Small calls that exist to be measured.

use crate::Error;
use crate::clock::timespec;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Enters the kernel and comes straight back: the cheapest system call that no library caches.
#[inline]
pub fn null_system_call() {
    // SAFETY: getppid takes nothing and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Gives the CPU to the next thread of equal priority.
#[inline]
pub fn yield_now() {
    // SAFETY: sched_yield takes nothing and touches no memory of ours.
    unsafe { libc::sched_yield() };
}

/// A timer that interrupts the CPU on which it was set, and wakes nobody.
#[derive(Debug)]
pub struct SilentTimer {
    fd: OwnedFd,
}

impl SilentTimer {
    /// A timer on `CLOCK_MONOTONIC`, not set.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn new() -> Result<SilentTimer, Error> {
        // SAFETY: timerfd_create takes two integers.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(Error::last_os(
                "timerfd_create(CLOCK_MONOTONIC)",
                "raise the limit on open files (`ulimit -n`)",
            ));
        }
        // SAFETY: the kernel just gave this descriptor to us, and nobody else owns it.
        Ok(SilentTimer { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Has it interrupt this CPU once, at `at_ns` of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set(&self, at_ns: u64) -> Result<(), Error> {
        let once = libc::itimerspec { it_interval: timespec(0), it_value: timespec(at_ns) };
        // SAFETY: `once` is readable for the call's duration and the old value is not asked for.
        let status = unsafe {
            libc::timerfd_settime(self.fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &once, std::ptr::null_mut())
        };
        if status == 0 { Ok(()) } else { Err(Error::last_os(format!("timerfd_settime({at_ns} ns)"), "")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;

    #[test]
    fn a_silent_timer_can_be_set_again_and_again() {
        let timer = SilentTimer::new().unwrap();
        for step in 1..10 {
            timer.set(monotonic_ns() + step * 10_000).unwrap();
            null_system_call();
            yield_now();
        }
    }
}
