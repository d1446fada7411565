//! The events of locks, one descriptor each, whichever wrapper emits it: a descriptor in every wrapper would give each process
//! pages of addresses to fill in.

use horolog_probe::trigger_by_flag;

/// Before a lock is asked for.
#[inline(always)]
pub(crate) fn acquire(lock: usize, class: impl FnOnce(usize) -> u64, site: usize) {
    trigger_by_flag!("lock/acquire", lock = lock as *const u8, class = class(lock), site = site as *const u8);
}

/// When it was got.
#[inline(always)]
pub(crate) fn acquired(lock: usize, class: impl FnOnce(usize) -> u64, site: usize) {
    trigger_by_flag!(
        "lock/acquired",
        lock = lock as *const u8,
        class = class(lock),
        site = site as *const u8
    );
}

/// When it was not.
#[inline(always)]
pub(crate) fn refused(lock: usize, class: impl FnOnce(usize) -> u64, site: usize, error: i32) {
    trigger_by_flag!(
        "lock/refused",
        lock = lock as *const u8,
        class = class(lock),
        site = site as *const u8,
        error = error
    );
}

/// Before it is given up.
#[inline(always)]
pub(crate) fn release(lock: usize, class: impl FnOnce(usize) -> u64, site: usize) {
    trigger_by_flag!("lock/release", lock = lock as *const u8, class = class(lock), site = site as *const u8);
}

/// Before a wait on a condition variable gives the mutex up.
#[inline(always)]
pub(crate) fn wait(mutex: usize, class: impl FnOnce(usize) -> u64, site: usize, condition: usize) {
    trigger_by_flag!(
        "lock/wait",
        mutex = mutex as *const u8,
        class = class(mutex),
        site = site as *const u8,
        condition = condition as *const u8
    );
}
