//! What became of a queue's packets.

use serde::Serialize;

/// Packets and their bytes, as the device counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// Bytes, with the header of the link.
    pub bytes: u64,
}

/// The counters of one queue, since it was set up.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QueueCounters {
    /// What came for it; for the unreserved queue also what reserves passed on.
    pub arrived: Count,
    /// Of these, what its budget (or cap) had no room for.
    pub used_up: Count,
    /// Of these, packets that went on among the unreserved ones instead of being dropped.
    pub passed_on: u64,
    /// Packets dropped because its queue was full; null where the kernel does not tell.
    pub queue_full: Option<u64>,
    /// Packets that its thread took to the protocols.
    pub delivered: Option<u64>,
    /// Packets that its thread had no memory for.
    pub lost: Option<u64>,
    /// Processor time of its thread, ns.
    pub protocol_ns: Option<u64>,
}

impl QueueCounters {
    /// Packets dropped because the budget was used up.
    #[must_use]
    pub fn dropped_by_budget(&self) -> u64 {
        self.used_up.packets.saturating_sub(self.passed_on)
    }

    /// From what the programs counted: the words of its state, those that tracepoints told, and its thread's time.
    pub(crate) fn of(state: &[u64], told: Option<&[u64]>, protocol_ns: Option<u64>) -> QueueCounters {
        let at = |words: &[u64], at: usize| words.get(at).copied().unwrap_or_default();
        let delivered = told.map(|told| at(told, 2).saturating_sub(at(told, 3)));
        QueueCounters {
            arrived: Count { packets: at(state, 1), bytes: at(state, 2) },
            used_up: Count { packets: at(state, 3), bytes: at(state, 4) },
            passed_on: at(state, 5),
            queue_full: told.map(|told| at(told, 1)),
            delivered,
            lost: told.map(|told| at(told, 3)),
            protocol_ns,
        }
    }
}
