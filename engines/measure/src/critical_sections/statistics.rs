//! What is counted of the sections of one lock, class, thread or call site.

use super::event::LockClass;
use super::hash::Table;
use super::histogram::Histogram;
use horolog_time::Instant;
use serde::Serialize;
use std::cmp::Reverse;
use std::hash::Hash;

/// Depths from this one on share the last place of [`Statistics::depths`].
pub const DEEPEST: usize = 16;
/// Linear bins of a lock's, a thread's or a site's histogram: up to 10 µs. A class has 10,000, up to 1 ms.
const FINE: u32 = 100;
pub(super) const FINEST: u32 = 10_000;

/// The longest section of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WorstSection {
    /// From the acquisition to just before the release, ns.
    pub length_ns: u64,
    /// The process.
    pub process: u32,
    /// The thread that held it.
    pub thread: u32,
    /// The lock.
    pub lock: u64,
    /// Its class.
    pub class: LockClass,
    /// The processor on which it was acquired.
    pub cpu: u16,
    /// When it was acquired.
    pub acquired: Instant,
    /// The call that acquired it.
    pub site: u64,
}

/// Who held a lock when another thread asked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Holder {
    /// The thread that held it.
    pub thread: u32,
    /// The call that had acquired it.
    pub site: u64,
    /// When that was.
    pub since: Instant,
}

/// The longest wait of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WorstWait {
    /// From the request to the acquisition, ns.
    pub wait_ns: u64,
    /// The process.
    pub process: u32,
    /// The thread that waited.
    pub thread: u32,
    /// The lock.
    pub lock: u64,
    /// The call that asked for it.
    pub site: u64,
    /// When it asked.
    pub requested: Instant,
    /// Who held it then, where the trace shows it.
    pub holder: Option<Holder>,
}

impl WorstSection {
    /// Less is worse: the longest; of equals the earliest, then by thread and lock, however the threads' events were merged.
    fn order(&self) -> impl Ord + use<> {
        (Reverse(self.length_ns), self.acquired, self.process, self.thread, self.lock)
    }
}

impl WorstWait {
    /// Less is worse, as for sections.
    fn order(&self) -> impl Ord + use<> {
        (Reverse(self.wait_ns), self.requested, self.process, self.thread, self.lock)
    }
}

/// The sections of one lock, class, thread or call site.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Lengths of complete sections.
    pub lengths: Histogram,
    /// Times from request to acquisition, uncontended ones included.
    pub waits: Histogram,
    /// Acquisitions that found the lock held by another thread, as far as the trace shows.
    pub contended: u64,
    /// Their waits in all, ns.
    pub contended_ns: u128,
    /// How many complete sections were requested with this many locks held; the last place takes all deeper ones.
    pub depths: [u64; DEEPEST + 1],
    /// Requests that came to nothing: busy, timed out, refused.
    pub refused: u64,
    /// Acquisitions of a recursive mutex, or of a read lock, by a thread that held it already; no sections of their own.
    pub repeated: u64,
    /// Waits on a condition variable that interrupted one of these sections; for a condition variable: waits on it.
    pub condition_waits: u64,
    /// The longest section.
    pub worst: Option<WorstSection>,
    /// The longest wait.
    pub worst_wait: Option<WorstWait>,
}

impl Statistics {
    pub(super) fn new(linear: u32) -> Statistics {
        Statistics {
            lengths: Histogram::new(linear),
            waits: Histogram::new(linear),
            contended: 0,
            contended_ns: 0,
            depths: [0; DEEPEST + 1],
            refused: 0,
            repeated: 0,
            condition_waits: 0,
            worst: None,
            worst_wait: None,
        }
    }

    pub(super) fn add_section(&mut self, section: &WorstSection) {
        self.lengths.add(section.length_ns);
        if self.worst.is_none_or(|worst| section.order() < worst.order()) {
            self.worst = Some(*section);
        }
    }

    pub(super) fn add_wait(&mut self, wait: &WorstWait) {
        self.waits.add(wait.wait_ns);
        if wait.holder.is_some() {
            self.contended += 1;
            self.contended_ns += u128::from(wait.wait_ns);
        }
        if self.worst_wait.is_none_or(|worst| wait.order() < worst.order()) {
            self.worst_wait = Some(*wait);
        }
    }

    pub(super) fn add_depth(&mut self, depth: u32, count: u64) {
        self.depths[(depth as usize).min(DEEPEST)] += count;
    }

    /// The share of sections that were requested with `depth` locks held; `None` without any.
    #[must_use]
    pub fn share_at_depth(&self, depth: usize) -> Option<f64> {
        let all: u64 = self.depths.iter().sum();
        (all > 0).then(|| self.depths.get(depth).copied().unwrap_or(0) as f64 / all as f64)
    }

    /// The greatest depth seen ([`DEEPEST`] stands for that or more); `None` without any section.
    #[must_use]
    pub fn deepest(&self) -> Option<usize> {
        self.depths.iter().rposition(|count| *count > 0)
    }
}

/// Statistics by key, at most `limit` of them; all further keys share one.
#[derive(Clone, Debug)]
pub(super) struct Groups<K> {
    index: Table<K, u32>,
    entries: Vec<(K, Statistics)>,
    others: Statistics,
    limit: usize,
}

/// The place of all keys beyond the limit.
const OTHERS: u32 = u32::MAX;

impl<K: Copy + Eq + Hash> Groups<K> {
    pub(super) fn new(limit: usize) -> Groups<K> {
        Groups { index: Table::default(), entries: Vec::new(), others: Statistics::new(FINE), limit }
    }

    /// The number of a key; it stays the same.
    pub(super) fn number(&mut self, key: K) -> u32 {
        if let Some(number) = self.index.get(&key) {
            return *number;
        }
        if self.entries.len() >= self.limit {
            return OTHERS;
        }
        let number = self.entries.len() as u32;
        self.index.insert(key, number);
        self.entries.push((key, Statistics::new(FINE)));
        number
    }

    pub(super) fn at(&mut self, number: u32) -> &mut Statistics {
        match self.entries.get_mut(number as usize) {
            Some((_, statistics)) => statistics,
            None => &mut self.others,
        }
    }

    /// All keys with their statistics in the order of first appearance, and those of all others together.
    pub(super) fn take(&mut self) -> (Vec<(K, Statistics)>, Statistics) {
        self.index.clear();
        (std::mem::take(&mut self.entries), std::mem::replace(&mut self.others, Statistics::new(FINE)))
    }
}
