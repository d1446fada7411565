//! Interrupts and devices of one processor.

use super::InterruptLoad;
use horolog_model::Priority;

/// The drivers of one processor.
#[derive(Clone, Debug, Default)]
pub struct Drivers {
    /// Loads above all tasks, each with its name, as if no NAPI poller were below anybody.
    pub above_all: Vec<(String, InterruptLoad)>,
    /// Which of these are interrupts that stay off while a poller waits.
    pub(crate) napi: Vec<NapiInterrupt>,
    /// Devices served by threads.
    pub threads: Vec<DriverThread>,
}

impl Drivers {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.above_all.is_empty() && self.threads.is_empty()
    }
}

/// A NAPI interrupt.
#[derive(Clone, Debug)]
pub(crate) struct NapiInterrupt {
    /// Its place in [`Drivers::above_all`].
    pub(crate) index: usize,
    pub(crate) poller: Poller,
}

/// Who polls for a NAPI interrupt.
#[derive(Clone, Debug)]
pub(crate) enum Poller {
    /// A thread of at most this priority; `None`: below all tasks.
    Thread(Option<Priority>),
    /// The server of this name.
    Server(String),
}

/// A device served by a thread.
#[derive(Clone, Debug)]
pub struct DriverThread {
    /// The device's name.
    pub name: String,
    /// Its events.
    pub load: InterruptLoad,
    /// Its events with a full ring that may come back at once.
    pub with_backlog: InterruptLoad,
    /// The part of an event's time that is its two context switches, ns.
    pub(crate) switching: u64,
    /// The greatest priority that it can have; `None`: below all tasks.
    pub high: Option<Priority>,
    /// The least priority that it can have while an event waits.
    pub low: Option<Priority>,
}

impl DriverThread {
    /// What it takes from work of a priority; `None` where it is below. Equals count as above.
    pub(crate) fn seen_from(&self, priority: Option<Priority>) -> Option<&InterruptLoad> {
        let above = |own: Option<Priority>| match (priority, own) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(priority), Some(own)) => !priority.is_more_important_than(own),
        };
        if above(self.low) { Some(&self.load) } else { above(self.high).then_some(&self.with_backlog) }
    }
}
