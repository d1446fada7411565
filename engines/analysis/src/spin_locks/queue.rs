//! How long a request waits in the queue of a spin lock, by what the other processors do with it (decisions 0018 and 0023).
//!
//! Of each other processor one request at most is in the queue. With w_m and r_m the longest hold of processor m that writes and that
//! reads (ns; a processor without such a section has none):
//!
//! ```text
//! first in, first out    sum over m of w_m
//! task-fair    read      max over disjoint sets W, R of processors with |R| <= |W|     of  sum of w_m over W + sum of r_m over R
//!              write     the same with |R| <= |W| + 1
//! phase-fair   read      max over m of  w_m + max { r_n : n ≠ m }
//!              write     sum over m of w_m + (1 + number of processors with w_m) max { r_m }
//! ```
//!
//! - Task-fair: readers that follow each other in the queue hold the lock together, and such a group lasts as long as its longest. Before a
//!   reader that waits each group is followed by a writer; before a writer one group more.
//! - Phase-fair: a reader waits for readers that hold the lock and the one writer that they keep waiting, or for a writer that holds it. Before each
//!   writer that is ahead of another, and before that one, lies one phase of readers; a processor may read in each of them.
//!
//! *Sufficient*, in continuous time. Source: `brandenburg11`, chapter 3, for both orders; the sums are our own.

use horolog_model::{Access, Protocol};

/// The longest holds of one processor, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Longest {
    pub(super) write: Option<u64>,
    pub(super) read: Option<u64>,
}

/// How long a request waits at most, ns, where the other processors hold the resource so long; `None` above 2^64 - 1 ns.
pub(super) fn longest_wait(protocol: Protocol, access: Access, others: &[Longest]) -> Option<u64> {
    let wait = match (protocol, access) {
        (Protocol::TaskFair, Access::Read) => task_fair(others, 0)?,
        (Protocol::TaskFair, Access::Write) => task_fair(others, 1)?,
        (Protocol::PhaseFair, Access::Read) => phase_fair_read(others)?,
        (Protocol::PhaseFair, Access::Write) => phase_fair_write(others)?,
        _ => sum(others.iter().filter_map(|other| other.write))?,
    };
    Some(wait)
}

fn sum(all: impl Iterator<Item = u64>) -> Option<u64> {
    all.into_iter().try_fold(0_u64, u64::checked_add)
}

/// The largest sum with at most `more` readers more than writers.
fn task_fair(others: &[Longest], more: usize) -> Option<u64> {
    // By how many more read than write, from -m up: the largest sum of the processors so far.
    let middle = others.len();
    let mut best: Vec<Option<u64>> = vec![None; 2 * middle + 1];
    best[middle] = Some(0);
    for other in others {
        let before = best.clone();
        for (place, &sum) in before.iter().enumerate() {
            let Some(sum) = sum else { continue };
            let mut raise = |place: usize, by: Option<u64>| -> Option<()> {
                if let Some(by) = by {
                    let sum = sum.checked_add(by)?;
                    best[place] = Some(best[place].map_or(sum, |known| known.max(sum)));
                }
                Some(())
            };
            // Only the middle ones are reached, so both neighbours are there.
            raise(place.saturating_sub(1), other.write)?;
            raise((place + 1).min(2 * middle), other.read)?;
        }
    }
    best.iter().take(middle + more + 1).flatten().max().copied()
}

fn phase_fair_read(others: &[Longest]) -> Option<u64> {
    let mut longest = 0;
    for (place, other) in others.iter().enumerate() {
        let Some(write) = other.write else { continue };
        let beside = others.iter().enumerate().filter(|&(beside, _)| beside != place);
        let read = beside.filter_map(|(_, other)| other.read).max().unwrap_or(0);
        longest = longest.max(write.checked_add(read)?);
    }
    Some(longest)
}

fn phase_fair_write(others: &[Longest]) -> Option<u64> {
    let writers = others.iter().filter_map(|other| other.write);
    let phases = 1 + writers.clone().count() as u64;
    let read = others.iter().filter_map(|other| other.read).max().unwrap_or(0);
    sum(writers)?.checked_add(phases.checked_mul(read)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(u64, u64)]) -> Vec<Longest> {
        let some = |ns: u64| (ns > 0).then_some(ns);
        all.iter().map(|&(write, read)| Longest { write: some(write), read: some(read) }).collect()
    }

    fn waits(protocol: Protocol, others: &[(u64, u64)]) -> (Option<u64>, Option<u64>) {
        let others = of(others);
        (longest_wait(protocol, Access::Read, &others), longest_wait(protocol, Access::Write, &others))
    }

    #[test]
    fn readers_wait_for_nobody_where_nobody_writes() {
        for protocol in [Protocol::TaskFair, Protocol::PhaseFair] {
            assert_eq!(waits(protocol, &[]), (Some(0), Some(0)));
            assert_eq!(waits(protocol, &[(0, 7), (0, 9)]), (Some(0), Some(9)), "{protocol:?}");
        }
    }

    #[test]
    fn writers_alone_are_first_in_first_out() {
        for protocol in [Protocol::Msrp, Protocol::TaskFair, Protocol::PhaseFair] {
            assert_eq!(
                waits(protocol, &[(3, 0), (4, 0), (9, 0)]),
                (if protocol == Protocol::PhaseFair { Some(9) } else { Some(16) }, Some(16))
            );
        }
    }

    #[test]
    fn phases_alternate() {
        // A writer of 5 on the one, readers of 3 on the other: a reader waits for both.
        assert_eq!(waits(Protocol::PhaseFair, &[(5, 0), (0, 3)]), (Some(8), Some(5 + 2 * 3)));
        // Its own processor does not read while its writer waits.
        assert_eq!(waits(Protocol::PhaseFair, &[(5, 4), (0, 3)]), (Some(8), Some(5 + 2 * 4)));
        assert_eq!(waits(Protocol::PhaseFair, &[(5, 4)]), (Some(5), Some(5 + 2 * 4)));
    }

    #[test]
    fn each_processor_is_once_in_a_queue_for_all() {
        assert_eq!(waits(Protocol::TaskFair, &[(5, 4)]), (Some(5), Some(5)));
        assert_eq!(waits(Protocol::TaskFair, &[(4, 5)]), (Some(4), Some(5)));
        assert_eq!(waits(Protocol::TaskFair, &[(5, 0), (0, 3)]), (Some(8), Some(8)));
        // Two groups of readers need two writers, or one where a writer asks.
        assert_eq!(waits(Protocol::TaskFair, &[(5, 0), (0, 3), (0, 2)]), (Some(8), Some(10)));
    }

    /// All that the processors may do, tried one by one: each is not there, writes or reads, in any order.
    #[test]
    fn task_fair_waits_are_the_longest_of_all_queues() {
        let mut state = 5_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..400 {
            let count = below(5) as usize;
            let others: Vec<(u64, u64)> = (0..count).map(|_| (below(6), below(6))).collect();
            let mut longest = [0; 2];
            let mut queue = Vec::new();
            try_queues(&others, 0, &mut queue, &mut longest);
            assert_eq!(
                waits(Protocol::TaskFair, &others),
                (Some(longest[0]), Some(longest[1])),
                "{others:?}"
            );
        }
    }

    /// How long a queue of (reads, length) lasts before a request behind it.
    fn lasts(queue: &[(bool, u64)], reads: bool) -> u64 {
        let mut groups: Vec<(bool, u64)> = Vec::new();
        for &(read, length) in queue {
            match groups.last_mut() {
                Some((true, longest)) if read => *longest = (*longest).max(length),
                _ => groups.push((read, length)),
            }
        }
        if reads && groups.last().is_some_and(|(read, _)| *read) {
            groups.pop();
        }
        groups.iter().map(|(_, length)| length).sum()
    }

    fn try_queues(others: &[(u64, u64)], used: u32, queue: &mut Vec<(bool, u64)>, longest: &mut [u64; 2]) {
        for (place, reads) in [true, false].into_iter().enumerate() {
            longest[place] = longest[place].max(lasts(queue, reads));
        }
        for (place, &(write, read)) in others.iter().enumerate().filter(|(place, _)| used & (1 << place) == 0)
        {
            for (reads, length) in
                [(false, write), (true, read)].into_iter().filter(|(_, length)| *length > 0)
            {
                queue.push((reads, length));
                try_queues(others, used | (1 << place), queue, longest);
                queue.pop();
            }
        }
    }
}
