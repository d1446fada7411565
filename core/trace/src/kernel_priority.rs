//! The kernel's own priorities with which a thread was seen, and how often each: the less the number, the more important. -1 is
//! SCHED_DEADLINE, 0 to 98 are SCHED_FIFO and SCHED_RR, and from 100 on threads are ordinary ones.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// From here on threads are ordinary ones.
pub const FIRST_ORDINARY: i32 = 100;

/// Those of a thread.
pub type Seen = BTreeMap<i32, u64>;

/// So often may a thread be seen as an ordinary one when it ends: some programs put their threads back into that class before.
const AT_END: u64 = 4;

/// Priorities of a thread, taken in the order in which they are seen.
#[derive(Clone, Default, Debug)]
pub struct Noted {
    seen: Seen,
    /// Ordinary ones since the last real-time one.
    since: Seen,
}

impl Noted {
    /// Counts one more; of more than `most` different ones the first count. Returns whether it is another one than all before.
    pub fn note(&mut self, prio: i32, most: usize) -> bool {
        if prio < FIRST_ORDINARY {
            if !self.has_real_time() {
                self.seen.clear();
            }
            let since = std::mem::take(&mut self.since);
            since.into_iter().for_each(|(prio, times)| *self.seen.entry(prio).or_default() += times);
        }
        let is_full = self.seen.len() + self.since.len() >= most;
        let counts =
            if prio >= FIRST_ORDINARY && self.has_real_time() { &mut self.since } else { &mut self.seen };
        match counts.entry(prio) {
            Entry::Occupied(mut times) => *times.get_mut() += 1,
            Entry::Vacant(_) if is_full => return false,
            Entry::Vacant(first) => {
                first.insert(1);
                return true;
            }
        }
        false
    }

    fn has_real_time(&self) -> bool {
        self.seen.first_key_value().is_some_and(|(first, _)| *first < FIRST_ORDINARY)
    }

    /// Those that count: what a thread was before its first real-time priority does not, since most begin in an ordinary class, and neither does
    /// what it is at its end.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let mut all = self.seen.clone();
        if self.since.values().sum::<u64>() > AT_END {
            self.since.iter().for_each(|(prio, times)| *all.entry(*prio).or_default() += times);
        }
        all
    }
}

/// A thread's own priority: the lowest real-time one, since inheritance lends higher ones; of ordinary ones the most frequent.
#[must_use]
pub fn own(seen: &Seen) -> Option<i32> {
    let real_time = seen.keys().filter(|prio| **prio < FIRST_ORDINARY).max();
    let usual = seen.iter().max_by_key(|(prio, count)| (**count, std::cmp::Reverse(**prio)));
    real_time.or(usual.map(|(prio, _)| prio)).copied()
}

/// Whether it had several real-time priorities, or was an ordinary thread, too.
#[must_use]
pub fn is_changing(seen: &Seen) -> bool {
    seen.range(..FIRST_ORDINARY).count() > 1 || is_also_ordinary(seen)
}

/// Whether it was both a real-time thread and, after that, an ordinary one.
#[must_use]
pub fn is_also_ordinary(seen: &Seen) -> bool {
    let ends = seen.keys().next().zip(seen.keys().next_back());
    ends.is_some_and(|(first, last)| *first < FIRST_ORDINARY && *last >= FIRST_ORDINARY)
}

/// Class and priority in the words of the system calls.
#[must_use]
pub fn words(prio: i32) -> String {
    match prio {
        ..0 => "SCHED_DEADLINE".to_owned(),
        0..FIRST_ORDINARY => format!("a real-time priority of {}", FIRST_ORDINARY - 1 - prio),
        _ => "an ordinary class".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_own_priority_is_the_lowest_real_time_one() {
        for (all, own_one, changes, is_ordinary) in [
            (&[][..], None, false, false),
            (&[49, 49][..], Some(49), false, false),
            (&[120, 120], Some(120), false, false),
            // It begins as an ordinary thread.
            (&[120, 110, 49, 49], Some(49), false, false),
            // It becomes one for a time, or at its end, or for good.
            (&[120, 49, 120, 49], Some(49), true, true),
            (&[99, 100, 99], Some(99), true, true),
            (&[49, 120, 120, 110, 120], Some(49), false, false),
            (&[49, 120, 120, 110, 120, 120], Some(49), true, true),
            (&[49, 100, 100, 100, 100, 100], Some(49), true, true),
            // Inheritance lends it a higher one.
            (&[49, 19, 19, 49], Some(49), true, false),
            (&[-1, 99], Some(99), true, false),
            (&[100, 120, 120, 100], Some(100), false, false),
        ] {
            let mut noted = Noted::default();
            all.iter().for_each(|&prio| _ = noted.note(prio, 16));
            let seen = noted.seen();
            let found = (own(&seen), is_changing(&seen), is_also_ordinary(&seen));
            assert_eq!(found, (own_one, changes, is_ordinary), "{all:?}");
        }
    }

    #[test]
    fn the_kernels_numbers_run_the_other_way() {
        let told = [-1, 0, 98, 99, 100].map(words);
        let priority = |number: u8| format!("a real-time priority of {number}");
        let expected = [
            "SCHED_DEADLINE".to_owned(),
            priority(99),
            priority(1),
            priority(0),
            "an ordinary class".to_owned(),
        ];
        assert_eq!(told, expected);
    }
}
