//! The kernel's own priorities with which a thread was seen, and how often each: the less the number, the more important. -1 is
//! SCHED_DEADLINE, 0 to 98 are SCHED_FIFO and SCHED_RR, and from 100 on threads are ordinary ones.

use std::collections::BTreeMap;

/// From here on threads are ordinary ones.
pub const FIRST_ORDINARY: i32 = 100;

/// Those of a thread.
pub type Seen = BTreeMap<i32, u64>;

/// A thread's own priority: the lowest real-time one, since inheritance lends higher ones; of ordinary ones the most frequent. Many programs
/// begin, and some end, in an ordinary class.
#[must_use]
pub fn own(seen: &Seen) -> Option<i32> {
    let real_time = seen.keys().filter(|prio| **prio < FIRST_ORDINARY).max();
    let usual = seen.iter().max_by_key(|(prio, count)| (**count, std::cmp::Reverse(**prio)));
    real_time.or(usual.map(|(prio, _)| prio)).copied()
}

/// Whether it had several real-time priorities, or was an ordinary thread more often than a real-time one.
#[must_use]
pub fn is_changing(seen: &Seen) -> bool {
    let real_time = seen.range(..FIRST_ORDINARY);
    let ordinary: u64 = seen.range(FIRST_ORDINARY..).map(|(_, count)| count).sum();
    let (count, times) = real_time.fold((0, 0), |(count, times), (_, more)| (count + 1, times + more));
    count > 1 || count == 1 && ordinary > times
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
        for (seen, own_one, changes) in [
            (&[][..], None, false),
            (&[(49, 3)][..], Some(49), false),
            (&[(120, 3)], Some(120), false),
            // It begins as an ordinary thread.
            (&[(49, 3), (120, 3)], Some(49), false),
            (&[(49, 3), (120, 4)], Some(49), true),
            // Inheritance lends it a higher one.
            (&[(19, 9), (49, 3)], Some(49), true),
            (&[(-1, 9), (99, 1), (100, 1)], Some(99), true),
            (&[(100, 2), (120, 2)], Some(100), false),
        ] {
            let seen: Seen = seen.iter().copied().collect();
            assert_eq!((own(&seen), is_changing(&seen)), (own_one, changes), "{seen:?}");
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
