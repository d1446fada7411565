//! From the ticks of sessions to the clock of the trace.

use horolog_probe::clock::{Anchor, ClockKind, Timeline};
use horolog_sys::clock::monotonic_ns;

/// How many anchors are kept: at one a pass, a second or two.
const ANCHORS: usize = 512;
/// Readings of both clocks for one anchor.
const TRIES: u32 = 8;
/// How far the first two are apart.
const LINE_NS: u64 = 1_000_000;

/// Converts ticks to `CLOCK_MONOTONIC`, with an anchor a pass: each record that is read in a pass lies between two anchors,
/// and the line between two anchors never changes, so that the order of records is kept.
#[derive(Debug)]
pub(crate) struct Clock {
    kind: ClockKind,
    timeline: Timeline,
    error_ns: u64,
}

impl Clock {
    pub(crate) fn new(kind: ClockKind) -> Clock {
        let mut clock = Clock { kind, timeline: Timeline::new(kind), error_ns: 0 };
        clock.anchor();
        clock
    }

    /// Two anchors make a line; a millisecond between them makes it a straight one. What is left of that is waited for.
    pub(crate) fn make_line(&mut self) {
        let since = self.timeline.anchors().last().map_or(0, |anchor| anchor.monotonic_ns);
        while monotonic_ns().saturating_sub(since) < LINE_NS {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        self.anchor();
    }

    /// Takes another anchor; call it before reading records.
    pub(crate) fn anchor(&mut self) {
        if self.timeline.add(Anchor::take(self.kind, TRIES)) {
            self.error_ns = self.error_ns.max(self.timeline.error_ns().unwrap_or(0));
            // What is older has long been converted.
            self.timeline.keep_last(ANCHORS);
        }
    }

    /// `CLOCK_MONOTONIC` in ns at `ticks`.
    pub(crate) fn to_ns(&self, ticks: u64) -> Option<u64> {
        self.timeline.to_ns(ticks)
    }

    /// How far a converted time may be from the kernel's clock, so far.
    pub(crate) fn error_ns(&self) -> u64 {
        self.error_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_out_as_the_kernels_time_also_after_old_anchors_went() {
        let kind = ClockKind::of_this_machine();
        let mut clock = Clock::new(kind);
        clock.make_line();
        for _ in 0..ANCHORS + 10 {
            let (before, ticks, after) = (monotonic_ns(), kind.ticks(), monotonic_ns());
            clock.anchor();
            let ns = clock.to_ns(ticks).expect("there are anchors");
            // rdtsc is no barrier: it may run some hundred cycles before or after its neighbours.
            let error = clock.error_ns() + 200;
            assert!(ns + error >= before && ns <= after + error, "{before} {ns} {after} error {error}");
        }
    }
}
