//! The total bandwidth server: under EDF, a deadline for each job when it is released.
//!
//! Budget Q, period T, wcet C of the job's task. Job k that is released at r gets `d_k = max(r, d_{k−1}) + ⌈C·T/Q⌉`, d_{k−1} being
//! that of the job before it, of whichever task of the server. Deadlines only grow, so that first in, first out is the
//! order of deadlines. Nothing is budgeted: a job that executes longer than C keeps its deadline and takes from others.
//!
//! Source: `spuri96b`.

use horolog_model::Capacity;
use horolog_time::Instant;

/// The deadlines of one server's jobs; see the module.
#[derive(Clone, Debug)]
pub(crate) struct TotalBandwidth {
    /// The server's node.
    pub(crate) node: u32,
    capacity: Capacity,
    /// The deadline of the job released last, ns.
    last: u64,
}

impl TotalBandwidth {
    pub(crate) fn new(node: u32, capacity: Capacity) -> TotalBandwidth {
        TotalBandwidth { node, capacity, last: 0 }
    }

    /// The deadline of a job that is released now. Where it would be beyond all instants, the last of them.
    pub(crate) fn deadline(&mut self, now: Instant, wcet: u64) -> u64 {
        let (budget, period) = (self.capacity.budget.as_ns(), self.capacity.period.as_ns());
        let length = (u128::from(wcet) * u128::from(period)).div_ceil(u128::from(budget));
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.last = self.last.max(now.as_ns()).saturating_add(length);
        self.last
    }

    /// Jobs released from now on have another share; the others keep their deadlines.
    pub(crate) fn change_capacity(&mut self, capacity: Capacity) {
        self.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Span;

    #[test]
    fn deadlines_queue_up_and_are_rounded_up() {
        let capacity =
            |budget, period| Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) };
        let mut server = TotalBandwidth::new(0, capacity(3, 10));
        let mut at = |now, wcet| server.deadline(Instant::from_ns(now), wcet);
        // 3·10/3 = 10; then ⌈1·10/3⌉ = 4 after the one before; at that deadline and one after it.
        assert_eq!([at(5, 3), at(5, 1), at(19, 3), at(30, 3)], [15, 19, 29, 40]);
        server.change_capacity(capacity(1, 2));
        assert_eq!(server.deadline(Instant::from_ns(39), 3), 46);
        assert_eq!(server.deadline(Instant::from_ns(39), u64::MAX), u64::MAX);
    }
}
