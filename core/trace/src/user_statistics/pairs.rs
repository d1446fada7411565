//! Durations between two events that belong together.

use crate::event::UserEvent;
use crate::user_statistics::distribution_of;
use crate::{Distribution, ResponseRecorder};
use horolog_time::Instant;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// How deep one pair may nest on one thread, and how many may be open at once.
const DEPTH: usize = 1024;
const OPEN: usize = 1 << 20;

/// What an event does to pairs.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Role {
    /// Which pair.
    pair: usize,
    opens: bool,
    /// Whether the first argument tells which of several open ones is meant.
    keyed: bool,
}

/// The conventions by which names make pairs. `S/begin` and `S/end` of one thread, the innermost first; a lock's events
/// by thread and the lock's address.
fn roles_of(name: &str) -> Vec<(String, bool, bool)> {
    match name {
        "lock/acquire" => vec![("lock waited".to_owned(), true, true)],
        "lock/acquired" => {
            vec![("lock waited".to_owned(), false, true), ("lock held".to_owned(), true, true)]
        }
        "lock/release" => vec![("lock held".to_owned(), false, true)],
        _ => match (name.strip_suffix("/begin"), name.strip_suffix("/end")) {
            (Some(subject), _) => vec![(subject.to_owned(), true, false)],
            (_, Some(subject)) => vec![(subject.to_owned(), false, false)],
            _ => Vec::new(),
        },
    }
}

#[derive(Clone, Debug, Default)]
struct Counts {
    name: String,
    durations: Box<ResponseRecorder>,
    unmatched_ends: u64,
    dropped: u64,
    /// By thread and key: when the open ones began.
    open: HashMap<(u64, u64), Vec<Instant>>,
}

/// All pairs of a trace, as its events come.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// The pairs of events that a user named, beside those of the conventions.
    asked: Vec<(String, String)>,
    /// By the event's number.
    roles: BTreeMap<u64, Vec<Role>>,
    counts: Vec<Counts>,
}

impl Pairs {
    /// Those that were named, too.
    pub(super) fn with(asked: &[(String, String)]) -> Pairs {
        Pairs { asked: asked.to_vec(), ..Pairs::default() }
    }

    pub(super) fn take(&mut self, event: &UserEvent<'_>) {
        if !self.roles.contains_key(&event.record.value) {
            let roles = self.learn(event.name());
            self.roles.insert(event.record.value, roles);
        }
        let Some(roles) = self.roles.get(&event.record.value) else { return };
        for role in roles {
            let key = if role.keyed { event.words.first().copied().unwrap_or(0) } else { 0 };
            self.counts[role.pair].take((event.record.extra, key), role.opens, event.record.time);
        }
    }

    fn learn(&mut self, name: &str) -> Vec<Role> {
        let mut roles = Vec::new();
        let mut all = roles_of(name);
        for (from, to) in self.asked.iter().filter(|(from, to)| name == from || name == to) {
            all.push((format!("{from} to {to}"), name == from, false));
        }
        for (pair_name, opens, keyed) in all {
            let known = self.counts.iter().position(|counts| counts.name == pair_name);
            let pair = known.unwrap_or_else(|| {
                self.counts.push(Counts { name: pair_name, ..Counts::default() });
                self.counts.len() - 1
            });
            roles.push(Role { pair, opens, keyed });
        }
        roles
    }

    /// The pairs of which a beginning or an end was seen.
    pub(super) fn summaries(&self) -> Vec<PairSummary> {
        let summary = |counts: &Counts| PairSummary {
            name: counts.name.clone(),
            duration: distribution_of(&counts.durations),
            unmatched_begins: counts.dropped
                + counts.open.values().map(|open| open.len() as u64).sum::<u64>(),
            unmatched_ends: counts.unmatched_ends,
        };
        self.counts.iter().map(summary).collect()
    }
}

impl Counts {
    fn take(&mut self, key: (u64, u64), opens: bool, time: Instant) {
        if opens {
            if self.open.len() >= OPEN && !self.open.contains_key(&key) {
                self.dropped += 1;
                return;
            }
            let open = self.open.entry(key).or_default();
            if open.len() < DEPTH {
                open.push(time);
            } else {
                self.dropped += 1;
            }
            return;
        }
        let Some(begun) = self.open.get_mut(&key).and_then(Vec::pop) else {
            self.unmatched_ends += 1;
            return;
        };
        if self.open.get(&key).is_some_and(Vec::is_empty) {
            self.open.remove(&key);
        }
        self.durations.record(time.saturating_since(begun));
    }
}

/// How long it took from one event to the one that belongs to it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairSummary {
    /// What lay between them: `x` for `x/begin` and `x/end`; `lock waited`, `lock held`; `a to b` of two events that were named.
    pub name: String,
    /// How long; null without a complete pair.
    pub duration: Option<Distribution>,
    /// Beginnings whose end was not seen.
    pub unmatched_begins: u64,
    /// Ends whose beginning was not seen.
    pub unmatched_ends: u64,
}
