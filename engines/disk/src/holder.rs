//! A reserve that a client holds: what waits for its release, and when the last ones were released.

use crate::admission::Reserve;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of a reserve, never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReserveId(pub u64);

/// What became of the operations of a reserve.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Requests that are finished.
    pub requests: u64,
    /// Requests that were dropped before they were finished: their client or the service has ended.
    pub unanswered: u64,
    /// Of both, those that were not finished by what was promised.
    pub late: u64,
    /// Operations, those too that the disk failed at.
    pub operations: u64,
    /// Operations that took longer than the admission counts.
    pub overran: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
}

/// Whether a reserve takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Admitted, and its operations wait for an instant at which no reserved one is left.
    Joining,
    Present,
    /// Given back; it counts until such an instant.
    Leaving,
}

/// A part of a request that one operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) ticket: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) id: ReserveId,
    pub(crate) reserve: Reserve,
    pub(crate) life: Life,
    pub(crate) waiting: VecDeque<(Piece, u64)>,
    pub(crate) releases: Releases,
    pub(crate) tally: Tally,
}

/// When the last n operations were released, at most one period's worth.
///
/// Operation j is released at `r_j = max(a_j, r_{j−1}, r_{j−n} + T)`, a_j: when it was asked for. So any n + 1 of them lie a period or
/// more apart, and in an interval of length L at most `n (⌊(L − D) / T⌋ + 1)` have both release and deadline: what the admission counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases(VecDeque<u64>);

impl Releases {
    /// When an operation is released that is asked for at `asked_ns`.
    pub(crate) fn next(&self, reserve: &Reserve, asked_ns: u64) -> u64 {
        let mut release = asked_ns.max(reserve.start_ns).max(self.0.back().copied().unwrap_or(0));
        if self.0.len() as u64 >= reserve.operations {
            let first = self.0.front().copied().unwrap_or(0);
            release = release.max(first.saturating_add(reserve.period_ns));
        }
        release
    }

    pub(crate) fn push(&mut self, reserve: &Reserve, release: u64) {
        if self.0.len() as u64 >= reserve.operations {
            self.0.pop_front();
        }
        self.0.push_back(release);
    }
}

impl Holder {
    pub(crate) fn new(id: ReserveId, reserve: Reserve) -> Holder {
        Holder {
            id,
            reserve,
            life: Life::Joining,
            waiting: VecDeque::new(),
            releases: Releases::default(),
            tally: Tally::default(),
        }
    }

    /// When the first operation that waits is released; `None` where none waits or the reserve does not take part.
    pub(crate) fn next_release(&self) -> Option<u64> {
        let (_, asked) = self.waiting.front().filter(|_| self.life == Life::Present)?;
        Some(self.releases.next(&self.reserve, *asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_beyond_the_amount_wait_a_period() {
        let reserve = Reserve { operations: 2, longest_ns: 1, period_ns: 10, deadline_ns: 10, start_ns: 3 };
        let mut releases = Releases::default();
        let mut found = Vec::new();
        for asked in [0, 5, 5, 14, 40, 40, 40] {
            let release = releases.next(&reserve, asked);
            releases.push(&reserve, release);
            found.push(release);
        }
        assert_eq!(found, [3, 5, 13, 15, 40, 40, 50]);
        // Told in another order than asked for.
        let (reserve, mut releases) = (Reserve { operations: 3, ..reserve }, Releases::default());
        releases.push(&reserve, 5);
        assert_eq!(releases.next(&reserve, 4), 5);
    }
}
