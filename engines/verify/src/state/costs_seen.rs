//! What of the machine's costs was seen on one processor.

use crate::result::CostSeen;
use horolog_time::Span;

/// One processor's.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostsSeen {
    pub(crate) timer_interrupts: CostSeen,
    pub(crate) context_switches: CostSeen,
    /// The interrupt that is under way has woken a thread.
    pub(crate) woke: bool,
    /// The task whose thread, waiting for its job, was the last that the kernel switched to, and when.
    pub(crate) got: Option<(usize, u64)>,
}

impl CostSeen {
    pub(crate) fn add(&mut self, length: u64, cost: u64) {
        self.seen += 1;
        self.longer += u64::from(length > cost);
        self.longest = self.longest.max(Span::from_ns(length));
    }
}

impl CostsSeen {
    /// An interrupt begins.
    pub(crate) fn enter(&mut self) {
        self.woke = false;
    }

    /// Records were lost.
    pub(crate) fn lose(&mut self) {
        (self.woke, self.got) = (true, None);
    }
}
