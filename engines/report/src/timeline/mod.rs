//! The zoomable timeline: trace records, simulated or measured, as compact lanes.
//!
//! Each task has a lane with the state of its oldest unfinished job (executing, ready, preempted, yielded), its
//! jobs (arrival, readiness, response, execution time) and marks (preemption points, misses, overruns, …); each
//! processor has a lane that says who has it, and one for what the kernel and foreign threads take. A server with a budget has
//! a lane with what is left of it, a device one with who waits for it. Where the
//! records hold the kernel's own switches, these decide who has a processor.

mod builder;
mod columns;
mod device;
mod kernel;
mod lane;
mod server;
#[cfg(test)]
mod tests;

pub use builder::{TimelineBuilder, TimelineOptions, TimelineThread};
pub use columns::Packed;
pub use lane::{Lane, LaneKind};
pub use server::{Refill, TimelineServer};

use serde::Serialize;

/// A finished timeline.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Nanoseconds from the run's start to the first record; negative where records come before it.
    pub from_ns: i64,
    /// Nanoseconds from the run's start to the last record kept.
    pub to_ns: i64,
    /// Records in the lanes.
    pub events_kept: u64,
    /// Records after the limit: counted in the statistics, not drawn; the page says so.
    pub events_dropped: u64,
    /// Names of threads, interrupts and softirqs; intervals of kernel and processor lanes point at them.
    pub labels: Vec<String>,
    /// The lanes: tasks, servers, devices, processors, then kernel lanes.
    pub lanes: Vec<Lane>,
}
