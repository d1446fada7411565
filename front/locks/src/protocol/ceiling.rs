//! Ceilings: a thread's priority is raised before it asks for a lock, and put back after the unlock.
//!
//! glibc's own `PTHREAD_PRIO_PROTECT` refuses threads that are not real-time and those above the ceiling with EINVAL, which
//! few programs expect. Here the mutex has inheritance, and the ceiling is this thread's own doing: who cannot have it
//! takes the lock all the same.

use core::cell::Cell;
use core::ffi::c_int;
use horolog_probe::lock_protocol::What;

/// Locks with ceilings that one thread may hold at a time.
const MOST: usize = 32;

#[derive(Clone, Copy)]
struct Entry {
    mutex: usize,
    ceiling: c_int,
    depth: u32,
}

#[derive(Clone, Copy)]
struct Held {
    count: usize,
    /// The priority before the first ceiling.
    base: c_int,
    /// The priority that this library set last.
    set: c_int,
    entries: [Entry; MOST],
}

thread_local! {
    static HELD: Cell<Held> = const {
        Cell::new(Held { count: 0, base: 0, set: 0, entries: [Entry { mutex: 0, ceiling: 0, depth: 0 }; MOST] })
    };
    /// How many locks with ceilings this thread holds: read at every unlock.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// This thread's priority where it is real-time by a fixed one.
fn priority() -> Option<c_int> {
    // SAFETY: integers, and a struct of this frame; 0 is the calling thread.
    unsafe {
        let policy = libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK;
        let mut parameters: libc::sched_param = core::mem::zeroed();
        let known = libc::sched_getparam(0, &raw mut parameters) == 0;
        let is_fixed = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&policy);
        (known && is_fixed).then_some(parameters.sched_priority)
    }
}

/// Only the priority changes: the policy and its flags stay.
fn set_priority(priority: c_int) -> bool {
    // SAFETY: as above; errno is this thread's own, and the program's call has not failed.
    unsafe {
        let errno = *libc::__errno_location();
        let mut parameters: libc::sched_param = core::mem::zeroed();
        parameters.sched_priority = priority;
        let is_set = libc::sched_setparam(0, &raw const parameters) == 0;
        *libc::__errno_location() = errno;
        is_set
    }
}

fn change<T>(act: impl FnOnce(&mut Held) -> T) -> T {
    HELD.with(|cell| {
        let mut held = cell.get();
        let result = act(&mut held);
        cell.set(held);
        COUNT.set(held.count);
        result
    })
}

/// Raises this thread to the ceiling of a lock that it is about to ask for; why not, where it cannot.
pub(super) fn raise(mutex: usize, ceiling: c_int) -> Result<(), What> {
    change(|held| {
        if let Some(entry) = held.entries[..held.count].iter_mut().find(|entry| entry.mutex == mutex) {
            entry.depth += 1;
            return Ok(());
        }
        if held.count == MOST {
            return Err(What::TooMany);
        }
        if held.count == 0 {
            held.base = priority().ok_or(What::NotRealTime)?;
            held.set = held.base;
        }
        if held.base > ceiling {
            return Err(What::AboveCeiling);
        }
        if ceiling > held.set {
            if !set_priority(ceiling) {
                return Err(What::NotAllowed);
            }
            held.set = ceiling;
        }
        held.entries[held.count] = Entry { mutex, ceiling, depth: 1 };
        held.count += 1;
        Ok(())
    })
}

/// Whether this thread holds any lock with its ceiling.
#[inline]
pub(super) fn holds_any() -> bool {
    COUNT.get() > 0
}

/// The lock is given up, or was not got: the priority is that of what remains.
pub(super) fn lower(mutex: usize) {
    change(|held| {
        let Some(place) = held.entries[..held.count].iter().position(|entry| entry.mutex == mutex) else {
            return;
        };
        held.entries[place].depth -= 1;
        if held.entries[place].depth == 0 {
            held.count -= 1;
            held.entries.copy_within(place + 1..held.count + 1, place);
            settle(held);
        }
    });
}

fn settle(held: &mut Held) {
    let wanted = held.entries[..held.count].iter().map(|entry| entry.ceiling).fold(held.base, c_int::max);
    if wanted == held.set {
        return;
    }
    // Where the program has set another priority meanwhile, that one stays.
    if priority() == Some(held.set) {
        set_priority(wanted);
    }
    held.set = wanted;
}

/// Before something is started that would begin with this thread's ceiling: the thread has its own priority. What to
/// go back to, where it had a ceiling.
pub(crate) fn step_down() -> Option<(c_int, c_int)> {
    if !holds_any() {
        return None;
    }
    let held = HELD.get();
    // Where the program has set another priority meanwhile, that one is handed down.
    let is_raised = held.set != held.base && priority() == Some(held.set);
    (is_raised && set_priority(held.base)).then_some((held.base, held.set))
}

/// After it.
pub(crate) fn step_up(left: Option<(c_int, c_int)>) {
    if let Some((base, ceiling)) = left
        && priority() == Some(base)
    {
        set_priority(ceiling);
    }
}

/// A wait on a condition variable gives the lock up: its ceiling, and how deep it was held.
pub(crate) fn suspend(mutex: usize) -> Option<(c_int, u32)> {
    if !holds_any() {
        return None;
    }
    change(|held| {
        let place = held.entries[..held.count].iter().position(|entry| entry.mutex == mutex)?;
        let entry = held.entries[place];
        held.count -= 1;
        held.entries.copy_within(place + 1..held.count + 1, place);
        settle(held);
        Some((entry.ceiling, entry.depth))
    })
}

/// The wait is over, and the lock is held again.
pub(crate) fn resume(mutex: usize, suspended: Option<(c_int, u32)>) {
    let Some((ceiling, depth)) = suspended else { return };
    if raise(mutex, ceiling).is_ok() {
        change(|held| {
            if let Some(entry) = held.entries[..held.count].iter_mut().find(|entry| entry.mutex == mutex) {
                entry.depth = depth;
            }
        });
    }
}
