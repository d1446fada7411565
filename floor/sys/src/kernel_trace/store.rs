//! The reader's bounded memory.

use super::event::KernelEvent;
use std::collections::VecDeque;

/// What happens when the memory is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overflow {
    /// New records are dropped and counted as lost: a recording of a whole run.
    #[default]
    DropNewest,
    /// The oldest records make room and are counted as overwritten: a flight recorder.
    DropOldest,
}

/// Events between the reader and the consumer.
#[derive(Debug)]
pub(super) struct Store {
    events: VecDeque<KernelEvent>,
    limit: usize,
    overflow: Overflow,
    pub(super) dropped: u64,
    pub(super) overwritten: u64,
}

impl Store {
    pub(super) fn new(memory_bytes: usize, overflow: Overflow) -> Store {
        let limit = (memory_bytes / size_of::<KernelEvent>()).max(1);
        Store { events: VecDeque::new(), limit, overflow, dropped: 0, overwritten: 0 }
    }

    pub(super) fn push(&mut self, event: KernelEvent) {
        if self.events.len() >= self.limit {
            match self.overflow {
                Overflow::DropNewest => {
                    self.dropped += 1;
                    return;
                }
                Overflow::DropOldest => {
                    self.events.pop_front();
                    self.overwritten += 1;
                }
            }
        }
        self.events.push_back(event);
    }

    /// Takes all events up to and including `horizon_ns` in time order; later ones stay.
    pub(super) fn take_until(&mut self, horizon_ns: u64) -> Vec<KernelEvent> {
        // Almost sorted already, since each ring is: the standard sort merges runs.
        self.events.make_contiguous().sort_by_key(|event| event.time_ns);
        let ready = self.events.partition_point(|event| event.time_ns <= horizon_ns);
        self.events.drain(..ready).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::KernelEventKind;
    use super::*;

    fn event(time_ns: u64) -> KernelEvent {
        KernelEvent { time_ns, cpu: 0, kind: KernelEventKind::SoftirqEntry(1) }
    }

    fn times(events: &[KernelEvent]) -> Vec<u64> {
        events.iter().map(|event| event.time_ns).collect()
    }

    #[test]
    fn hands_over_in_time_order_up_to_the_horizon() {
        let mut store = Store::new(1 << 20, Overflow::DropNewest);
        [5, 1, 9, 3].into_iter().for_each(|time| store.push(event(time)));
        assert_eq!(times(&store.take_until(5)), [1, 3, 5]);
        store.push(event(7));
        assert_eq!(times(&store.take_until(u64::MAX)), [7, 9]);
    }

    #[test]
    fn full_memory_drops_by_policy_and_counts() {
        let room = 2 * size_of::<KernelEvent>();
        let mut newest = Store::new(room, Overflow::DropNewest);
        let mut oldest = Store::new(room, Overflow::DropOldest);
        for time in 1..=5 {
            newest.push(event(time));
            oldest.push(event(time));
        }
        assert_eq!((times(&newest.take_until(u64::MAX)), newest.dropped), (vec![1, 2], 3));
        assert_eq!((times(&oldest.take_until(u64::MAX)), oldest.overwritten), (vec![4, 5], 3));
    }
}
