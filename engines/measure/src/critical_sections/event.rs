//! What the analysis of critical sections reads.

use horolog_time::{Instant, Span};
use serde::Serialize;

/// What kind of lock an event speaks of. The numbers are those in the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[non_exhaustive]
pub enum LockClass {
    /// `pthread_mutex_t`, `mtx_t`.
    Mutex = 0,
    /// `pthread_rwlock_t`, taken for reading.
    Read = 1,
    /// `pthread_rwlock_t`, taken for writing.
    Write = 2,
    /// `pthread_spinlock_t`.
    Spin = 3,
    /// `pthread_cond_t`, `cnd_t`: only waits, never sections.
    Condition = 4,
}

impl LockClass {
    /// Every class, in the order of its number.
    pub const ALL: [LockClass; 5] =
        [LockClass::Mutex, LockClass::Read, LockClass::Write, LockClass::Spin, LockClass::Condition];

    /// The class with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<LockClass> {
        LockClass::ALL.into_iter().find(|class| *class as u64 == number)
    }

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LockClass::Mutex => "mutex",
            LockClass::Read => "rwlock read",
            LockClass::Write => "rwlock write",
            LockClass::Spin => "spinlock",
            LockClass::Condition => "condition",
        }
    }

    /// Whether one thread alone may hold it.
    #[must_use]
    pub const fn is_exclusive(self) -> bool {
        matches!(self, LockClass::Mutex | LockClass::Write | LockClass::Spin)
    }
}

/// What happened to a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockAction {
    /// A thread asked for it.
    Request,
    /// The thread got it.
    Acquired,
    /// The request came to nothing: busy, timed out, an error.
    Refused,
    /// The thread is about to give it up.
    Release,
    /// The thread waits on a condition variable and gives up this mutex meanwhile. The event's lock is the mutex.
    Wait {
        /// The condition variable.
        condition: u64,
    },
    /// The wait is over, however it ended. The event's lock is the mutex.
    Woken {
        /// The condition variable.
        condition: u64,
        /// Whether the thread holds the mutex again (always, but for a robust mutex beyond recovery).
        holds: bool,
    },
}

/// One event of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockEvent {
    /// When.
    pub time: Instant,
    /// On which processor.
    pub cpu: u16,
    /// In which process.
    pub process: u32,
    /// By which thread.
    pub thread: u32,
    /// What.
    pub action: LockAction,
    /// The lock's address; for the events of a condition variable, that of the mutex.
    pub lock: u64,
    /// The lock's class. [`LockAction::Release`] of a read-write lock does not know which of the two it is, so that
    /// the acquisition's counts.
    pub class: LockClass,
    /// Whether its holder may acquire it again (recursive mutexes).
    pub recursive: bool,
    /// Where in the program: the address to which the call returns.
    pub site: u64,
}

/// How long `cycles` of a clock of `frequency_hz` take, rounded down to ns; `None` for a frequency of 0 or where it
/// overflows. The paper: µs = cycles / 2700 at 2.70 GHz.
///
/// ```
/// use horolog_measure::critical_sections::cycles_to_span;
/// assert_eq!(cycles_to_span(2_700, 2_700_000_000).unwrap().as_ns(), 1_000);
/// ```
#[must_use]
pub fn cycles_to_span(cycles: u64, frequency_hz: u64) -> Option<Span> {
    let ns = (u128::from(cycles) * 1_000_000_000).checked_div(u128::from(frequency_hz))?;
    u64::try_from(ns).ok().map(Span::from_ns)
}
