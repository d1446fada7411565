//! Whether the switches of each CPU follow from one another.

use super::event::{KernelEvent, KernelEventKind};
use std::collections::BTreeMap;

/// Who runs on each CPU and since when, from the switches seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    running: BTreeMap<u32, (u32, u64)>,
}

impl Chain {
    /// Takes the next event of its CPU; where it does not follow from the last one, yields the gap, which begins with
    /// the last switch.
    pub(super) fn check(&mut self, event: &KernelEvent) -> Option<KernelEvent> {
        match event.kind {
            KernelEventKind::Switch { prev, next, .. } => {
                let before = self.running.insert(event.cpu, (next.tid, event.time_ns));
                let (_, since) = before.filter(|(tid, _)| *tid != prev.tid)?;
                Some(KernelEvent { time_ns: since, kind: KernelEventKind::MissedSwitch, ..*event })
            }
            KernelEventKind::Lost(_) => {
                // A loss that was reported needs no second report.
                self.running.remove(&event.cpu);
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Comm, State, Thread};
    use super::*;

    fn switch(time_ns: u64, cpu: u32, from: u32, to: u32) -> KernelEvent {
        let thread = |tid| Thread { tid, comm: Comm::default(), prio: 120 };
        let prev_state = State { letter: b'S', preempted: false };
        let kind = KernelEventKind::Switch { prev: thread(from), prev_state, next: thread(to) };
        KernelEvent { time_ns, cpu, kind }
    }

    #[test]
    fn a_hidden_thread_shows_as_a_missed_switch() {
        let mut chain = Chain::default();
        let lost = KernelEvent { kind: KernelEventKind::Lost(3), ..switch(5, 1, 0, 0) };
        let events = [
            switch(1, 1, 5, 6),
            switch(2, 1, 6, 7),
            switch(3, 2, 9, 8),
            switch(4, 1, 5, 6),
            lost,
            switch(6, 1, 1, 2),
        ];
        let breaks: Vec<Option<u64>> =
            events.iter().map(|event| chain.check(event).map(|gap| gap.time_ns)).collect();
        assert_eq!(breaks, [None, None, None, Some(2), None, None]);
    }
}
