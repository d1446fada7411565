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
        class = {
            wait_for_the_lock();
            class(lock)
        },
        site = site as *const u8
    );
}

/// The processor reads its clock ahead of an exchange that has not ended: the lock would seem to be taken before another processor's
/// thread gives it up.
#[inline(always)]
fn wait_for_the_lock() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier, which touches nothing.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
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
