//! Waiting on a word of memory.

use crate::clock::timespec;
use std::sync::atomic::AtomicU32;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Waited {
    /// Somebody woke us, or the wait ended for no reason; look at the word again.
    Woken,
    /// The word did not hold the expected value any more.
    Changed,
    /// The instant was reached.
    TimedOut,
    /// A signal came first.
    Interrupted,
}

/// Sleeps while `word` holds `expected`, at most until `CLOCK_MONOTONIC` shows `until_ns` (`u64::MAX`: no limit).
#[inline]
pub fn wait(word: &AtomicU32, expected: u32, until_ns: u64) -> Waited {
    let limit = timespec(until_ns);
    let timeout = if until_ns == u64::MAX { std::ptr::null() } else { &raw const limit };
    // SAFETY: the word lives as long as the borrow; the timeout is null or a valid timespec; FUTEX_WAIT_BITSET
    // takes an absolute time on CLOCK_MONOTONIC and writes nothing.
    let status = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    if status == 0 {
        return Waited::Woken;
    }
    // SAFETY: errno of the calling thread is always readable.
    match unsafe { *libc::__errno_location() } {
        libc::EAGAIN => Waited::Changed,
        libc::ETIMEDOUT => Waited::TimedOut,
        _ => Waited::Interrupted,
    }
}

/// Wakes at most `count` threads that wait on `word`; returns how many. Allowed in a signal handler.
#[inline]
pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    // SAFETY: the word lives as long as the borrow and FUTEX_WAKE does not write to it.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count.min(i32::MAX as u32),
        )
    };
    u32::try_from(woken).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::sync::atomic::Ordering;

    #[test]
    fn waits_end_by_value_time_and_wake() {
        let word = AtomicU32::new(7);
        assert_eq!(wait(&word, 6, u64::MAX), Waited::Changed);
        assert_eq!(wait(&word, 7, monotonic_ns() + 1_000_000), Waited::TimedOut);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                while word.load(Ordering::Acquire) == 7 {
                    let _ = wait(&word, 7, u64::MAX);
                }
            });
            word.store(8, Ordering::Release);
            let _ = wake(&word, u32::MAX);
            waiter.join().expect("the waiter ends");
        });
    }
}
