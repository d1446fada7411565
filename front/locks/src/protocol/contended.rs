//! Waiting for a mutex that this library gave inheritance, in place of the C library.
//!
//! glibc's own wait aborts the program where two threads cross-lock recursive or error-checking mutexes with time-outs,
//! and where an owner ended with a thread waiting; of other kinds it never asks again after the kernel has found a cycle,
//! which a time-out may resolve. Without inheritance all of these wait until the time-out. So they do here: what the
//! kernel refuses to queue is asked for again after a pause.

use super::word::Mutex;
use super::{this_thread, word};
use crate::real;
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The first and the longest pause, ns.
const SHORTEST_NS: i64 = 200_000;
const LONGEST_NS: i64 = 5_000_000;
const LOCK_PI: c_int = libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG;
/// With a clock other than that of the calendar: Linux 5.14.
const LOCK_PI2: c_int = 13 | libc::FUTEX_PRIVATE_FLAG;
const UNLOCK_PI: c_int = libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
const SECOND_NS: i64 = 1_000_000_000;

/// The holder's number in a lock word, and the word that it ended: `FUTEX_TID_MASK`, `FUTEX_OWNER_DIED`.
const HOLDER: c_int = 0x3fff_ffff;
const ENDED: c_int = 0x4000_0000;

/// Until when a lock call waits: a clock and its time; `None`: for ever.
pub(crate) type Until = Option<(c_int, libc::timespec)>;

/// A word that a child process finds zeroed, however it came to be, unless it shares the memory.
static ORIGINAL: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Prepares the word that tells a copy of the process from the process itself.
pub(super) fn start() {
    const PAGE: usize = 4_096;
    // SAFETY: a new private mapping, which stays to the end of the process.
    unsafe {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), PAGE, both, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return;
        }
        if libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, PAGE);
            return;
        }
        let word = page.cast::<AtomicU32>();
        (*word).store(1, Ordering::Relaxed);
        ORIGINAL.store(word, Ordering::Release);
    }
}

/// Whether the threads of this process are not those that the mutexes of its parent had.
fn is_copy() -> bool {
    let word = ORIGINAL.load(Ordering::Acquire);
    // SAFETY: a page of `start`, or none; atomic in all threads.
    !word.is_null() && unsafe { (*word).load(Ordering::Relaxed) } == 0
}

/// A system call whose error is its result; errno stays as it is.
fn system_call(call: impl FnOnce() -> libc::c_long) -> c_int {
    // SAFETY: errno is this thread's own.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let error = if call() < 0 { *place } else { 0 };
        *place = before;
        error
    }
}

fn futex(mutex: Mutex, operation: c_int, until: *const libc::timespec) -> c_int {
    // SAFETY: the lock word of a mutex that lives as long as the program's call, and a time of our caller's frame.
    system_call(|| unsafe { libc::syscall(libc::SYS_futex, mutex.lock_address(), operation, 0, until) })
}

fn nanoseconds(time: &libc::timespec) -> i64 {
    time.tv_sec.saturating_mul(SECOND_NS).saturating_add(time.tv_nsec)
}

fn timespec(ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: ns / SECOND_NS, tv_nsec: ns % SECOND_NS }
}

fn now(clock: c_int) -> i64 {
    let mut time = timespec(0);
    // SAFETY: a time of this frame.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanoseconds(&time)
}

/// Asks the kernel for it: 0, or its error.
fn ask(mutex: Mutex, until: &Until) -> c_int {
    match until {
        None => futex(mutex, LOCK_PI, ptr::null()),
        Some((libc::CLOCK_REALTIME, time)) => futex(mutex, LOCK_PI, time),
        Some((clock, time)) => match futex(mutex, LOCK_PI2, time) {
            libc::ENOSYS => {
                // What is left of the time, by the only clock that this kernel has for it. A clock that is set
                // meanwhile ends the wait too early, and it begins again.
                let left = nanoseconds(time).saturating_sub(now(*clock));
                if left <= 0 {
                    return futex(mutex, LOCK_PI, &timespec(1));
                }
                let error = futex(mutex, LOCK_PI, &timespec(now(libc::CLOCK_REALTIME).saturating_add(left)));
                let is_early = error == libc::ETIMEDOUT && now(*clock) < nanoseconds(time);
                if is_early { libc::EAGAIN } else { error }
            }
            error => error,
        },
    }
}

/// Sleeps; never a cancellation point, as lock calls are none.
fn pause(ns: i64, until: &Until) {
    let ns = match until {
        Some((clock, time)) => ns.min(nanoseconds(time).saturating_sub(now(*clock))).max(0),
        None => ns,
    };
    let time = timespec(ns);
    // SAFETY: a time of this frame. A signal ends the pause early, which is as well.
    system_call(|| unsafe {
        let none: *mut libc::timespec = ptr::null_mut();
        libc::syscall(libc::SYS_clock_nanosleep, libc::CLOCK_MONOTONIC, 0, &raw const time, none)
    });
}

fn is_over(until: &Until) -> bool {
    until.as_ref().is_some_and(|(clock, time)| now(*clock) >= nanoseconds(time))
}

/// Whether the holder is a thread of the process that this one is a copy of: it cannot unlock here, and must not inherit.
fn is_held_elsewhere(lock_word: c_int) -> bool {
    let holder = lock_word & HOLDER;
    // SAFETY: signal 0 only asks whether the thread is there.
    let there = || system_call(|| unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), holder, 0) });
    holder != 0 && is_copy() && there() == libc::ESRCH
}

/// What a lock call returns without waiting, or by the C library's own hand; `None`: somebody else has it.
fn at_once(mutex: Mutex) -> Option<c_int> {
    if word::is_abandoned(mutex.kind()) {
        return None;
    }
    let lock_word = mutex.lock_word();
    let is_own = || mutex.owner() == this_thread() && mutex.owner() == lock_word & HOLDER;
    // A normal mutex that its holder asks for again waits, as it does without inheritance.
    if lock_word != 0 && !(word::knows_its_owner(mutex.kind()) && is_own()) {
        return None;
    }
    let outcome = crate::wrapper::call!(real::MUTEX_TRYLOCK, mutex.0);
    if outcome == 0 && word::is_abandoned(mutex.kind()) {
        release_abandoned(mutex);
        return None;
    }
    (outcome != libc::EBUSY).then_some(outcome)
}

/// A mutex whose owner ended without an unlock stays locked, as it does without inheritance.
fn release_abandoned(mutex: Mutex) {
    let _ = crate::wrapper::call!(real::MUTEX_UNLOCK, mutex.0);
}

/// Locks a mutex under inheritance; 0, or the error of `pthread_mutex_lock` and its kin. `None` where the mutex is none
/// of those that this library gave a protocol, or the clock is none that it knows.
pub(super) fn lock(mutex: Mutex, clock: Option<(c_int, *const libc::timespec)>) -> Option<c_int> {
    if !word::is_given(mutex.kind()) {
        return None;
    }
    if clock.is_some_and(|(clock, _)| ![libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(&clock)) {
        return None;
    }
    if let Some(outcome) = at_once(mutex) {
        return Some(outcome);
    }
    // SAFETY: a lock call with a time-out is handed a time, which it reads where it has to wait.
    let until: Until = clock.map(|(clock, time)| (clock, unsafe { *time }));
    if let Some((_, time)) = &until {
        if time.tv_sec < 0 {
            return Some(libc::ETIMEDOUT);
        }
        if !(0..SECOND_NS).contains(&time.tv_nsec) {
            return Some(libc::EINVAL);
        }
    }
    wait(mutex, &until)
}

fn wait(mutex: Mutex, until: &Until) -> Option<c_int> {
    let mut length = SHORTEST_NS;
    loop {
        if !word::is_abandoned(mutex.kind()) && !is_held_elsewhere(mutex.lock_word()) {
            match ask(mutex, until) {
                0 if mutex.lock_word() & ENDED != 0 => {
                    // The kernel hands a dead owner's mutex to who waits. It must not be had, and nobody queues any more.
                    mutex.abandon();
                    futex(mutex, UNLOCK_PI, ptr::null());
                }
                0 if word::is_abandoned(mutex.kind()) => {
                    futex(mutex, UNLOCK_PI, ptr::null());
                }
                0 => {
                    mutex.take(this_thread());
                    return Some(0);
                }
                error @ (libc::ETIMEDOUT | libc::EINVAL) => return Some(error),
                libc::EAGAIN | libc::EINTR => continue,
                libc::ENOSYS => return None,
                // A cycle, or an owner that has ended or is none of this process.
                _ => {}
            }
        }
        if is_over(until) {
            return Some(libc::ETIMEDOUT);
        }
        pause(length, until);
        length = (length * 2).min(LONGEST_NS);
    }
}

/// A try: as the C library's, but of a mutex whose owner has ended, at which that one aborts.
pub(super) fn try_lock(mutex: Mutex) -> Option<c_int> {
    let kind = mutex.kind();
    if !word::is_given(kind) {
        return None;
    }
    let is_dead = word::is_abandoned(kind) || mutex.lock_word() & ENDED != 0;
    is_dead.then_some(libc::EBUSY)
}
