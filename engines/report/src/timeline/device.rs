//! A device's lane: when its handler executes, and when jobs wait for it.

use super::lane::{Lane, LaneBuilder, LaneKind, Served};

/// The lane of one device.
#[derive(Clone, Debug)]
pub(super) struct DeviceLane {
    name: String,
    lane: LaneBuilder,
    waiting: u64,
    handled: bool,
}

impl DeviceLane {
    pub(super) fn new(index: usize, name: String) -> DeviceLane {
        let lane = LaneBuilder::new(LaneKind::Device, index as u32, name.clone());
        DeviceLane { name, lane, waiting: 0, handled: false }
    }

    /// Whether this is the device's name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// One job more waits for the device, or one fewer.
    pub(super) fn awaited(&mut self, time: i64, more: bool) {
        self.waiting = if more { self.waiting.saturating_add(1) } else { self.waiting.saturating_sub(1) };
        self.show(time);
    }

    /// Its handler begins or ends.
    pub(super) fn handled(&mut self, time: i64, begins: bool) {
        self.handled = begins;
        self.show(time);
    }

    pub(super) fn finish(self, time: i64) -> Lane {
        self.lane.finish(time)
    }

    fn show(&mut self, time: i64) {
        match (self.handled, self.waiting) {
            (true, waiting) => self.lane.enter(time, Served::Handled as u64, waiting),
            (false, 0) => self.lane.leave(time),
            (false, waiting) => self.lane.enter(time, Served::Awaited as u64, waiting),
        }
    }
}
