//! `libhorolog_locks.so`: preloaded, it puts triggers around the POSIX and C11 locks of a program.
//!
//! | event | arguments | when |
//! |---|---|---|
//! | `lock/acquire` | lock, class, call site | before a lock is asked for |
//! | `lock/acquired` | lock, class, call site | when it was got, also from a dead owner (`EOWNERDEAD`) |
//! | `lock/refused` | lock, class, call site, error | when it was not: busy, timed out, an error |
//! | `lock/release` | lock, class, call site | just before it is given up |
//! | `lock/wait` | mutex, class, call site, condition | before a wait on a condition variable gives the mutex up |
//! | `lock/woken` | mutex, class, call site, condition, error | after the wait, however it ended; `ECANCELED` when the thread was cancelled |
//! | `lock/module` | bias, start, end, part, 48 bytes of its path | at the start and the end: what call sites lie in |
//!
//! The class is one of [`class`]'s numbers with flags; the call site is the address to which the call returns. Whatever
//! the real function returns is returned unchanged. With the triggers off, a call costs three tests of a flag, a load and an
//! indirect call more.
//!
//! Where the environment has rules (`HOROLOG_LOCK_RULES`), the mutexes that they are for get a protocol at their first use:
//! `protocol`.
//!
//! Every wrapper is a naked function that adds its return address to the arguments and jumps to a body: the stack stays
//! as the caller made it, so that a cancellation unwinds through it.
#![allow(unsafe_code)]

horolog_probe::runtime_library!();

mod condition;
mod events;
mod modules;
mod mutex;
mod protocol;
mod real;
mod rwlock;
mod spin;
mod start;
mod started;
mod wrapper;

/// Numbers in the second argument of every event.
pub mod class {
    /// Bits of the class itself.
    pub const MASK: u64 = 0xff;
    /// `pthread_mutex_t`, `mtx_t`.
    pub const MUTEX: u64 = 0;
    /// `pthread_rwlock_t` for reading.
    pub const READ: u64 = 1;
    /// `pthread_rwlock_t` for writing.
    pub const WRITE: u64 = 2;
    /// `pthread_spinlock_t`.
    pub const SPIN: u64 = 3;
    /// Its holder may acquire it again.
    pub const RECURSIVE: u64 = 0x100;
    /// It survives its owner's death.
    pub const ROBUST: u64 = 0x200;
    /// `PTHREAD_PRIO_INHERIT`.
    pub const PRIORITY_INHERITANCE: u64 = 0x400;
    /// `PTHREAD_PRIO_PROTECT`.
    pub const PRIORITY_CEILING: u64 = 0x800;
    /// Processes may share it.
    pub const PROCESS_SHARED: u64 = 0x1000;
}
