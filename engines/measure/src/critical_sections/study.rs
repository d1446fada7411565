//! What the analysis of critical sections comes to.

use super::event::LockClass;
use super::statistics::Statistics;
use horolog_time::Instant;
use serde::Serialize;

/// One lock in one role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct LockKey {
    /// The process; addresses mean something only within it.
    pub process: u32,
    /// The lock's address.
    pub lock: u64,
    /// Its class; a read-write lock has two.
    pub class: LockClass,
}

/// One thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct ThreadKey {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
}

/// One call site that acquires locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct SiteKey {
    /// The process.
    pub process: u32,
    /// The address to which the call returns.
    pub site: u64,
    /// The class of the locks acquired there.
    pub class: LockClass,
}

/// Statistics by key, in the order of first appearance.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<K> {
    /// One entry a key.
    pub entries: Vec<(K, Statistics)>,
    /// All keys beyond the limit of memory, together.
    pub others: Statistics,
}

/// What was kept and what was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SectionCounts {
    /// Events read.
    pub events: u64,
    /// Complete sections.
    pub sections: u64,
    /// Releases of a lock whose acquisition is not in the trace; dropped.
    pub unmatched_releases: u64,
    /// Acquisitions whose release was not seen though the lock changed hands or events were lost; dropped.
    pub unmatched_acquisitions: u64,
    /// Acquisitions whose lock was still held when the trace ended; dropped.
    pub still_held: u64,
    /// Sections that another thread than the holder ended.
    pub released_by_another: u64,
    /// Requests whose outcome is not in the trace.
    pub abandoned_requests: u64,
    /// Sections dropped because one thread held more locks than the limit.
    pub too_deep: u64,
    /// Events of a thread that stand before an earlier one of it; dropped.
    pub out_of_order: u64,
    /// Events that the trace lost.
    pub lost: u64,
}

/// A lock that was still held when the trace ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct StillHeld {
    /// The lock.
    pub lock: LockKey,
    /// The thread.
    pub thread: u32,
    /// When it was acquired.
    pub since: Instant,
    /// The call that acquired it.
    pub site: u64,
}

/// The critical sections of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// By class, only classes that occur.
    pub classes: Vec<(LockClass, Statistics)>,
    /// By lock.
    pub locks: Group<LockKey>,
    /// By thread.
    pub threads: Group<ThreadKey>,
    /// By call site of the acquisition.
    pub sites: Group<SiteKey>,
    /// What was kept and dropped.
    pub counts: SectionCounts,
    /// Locks still held at the end, at most 64 of them.
    pub still_held: Vec<StillHeld>,
    /// Time of the first and of the last event; `None` without any.
    pub span: Option<(Instant, Instant)>,
}

impl Study {
    /// The statistics of a class, where it occurs.
    #[must_use]
    pub fn class(&self, class: LockClass) -> Option<&Statistics> {
        self.classes.iter().find(|(known, _)| *known == class).map(|(_, statistics)| statistics)
    }
}
