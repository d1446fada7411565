//! The checked model of a system and the system file that describes it.
//!
//! [`System`] is what every other room reads: once one exists, every rule of the system file holds (names are
//! unique, every task has a processor, no deadline lies below its wcet, segment graphs are acyclic). Make one
//! by reading a file ([`mod@file`]) or from a [`Draft`] in code ([`System::new`]); both go through the same checks.
//!
//! ```
//! use horolog_model::file;
//! let text = "[system]\nname = \"one\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"12 ms\"\npriority = 1\n";
//! let errors = file::read(text, "one.toml", &[]).unwrap_err();
//! // Every broken rule comes with its place, the reason and the remedy.
//! let first = errors.messages().next().unwrap();
//! assert_eq!(first.reason, "the wcet 12 ms is above the deadline 10 ms, which is the period: every job would miss it");
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`task`], [`segments`], [`execution`] | one task: arrivals, deadlines, execution times, preemption points, bodies |
//! | [`platform`], [`interference`] | processors, costs, and loads above all tasks |
//! | [`driver`] | interrupts and devices, whose events are served |
//! | [`server`] | servers and slack policies, which serve soft tasks |
//! | [`scheduler`] | trees of schedulers, and roots over several processors |
//! | [`link`] | values that tasks hand to others |
//! | [`mode`] | what a system does differently from some instant on |
//! | [`priority`] | priorities, of which larger is more important, and where they come from |
//! | [`system`], [`draft`] | a checked system, and its unchecked parts |
//! | [`mod@file`] | the system file: reading, overrides, printing |
//! | [`pattern`] | a release pattern that a simulation replays |

mod check;
mod companion;
mod diagnostic;
pub mod draft;
pub mod driver;
pub mod execution;
pub mod file;
mod graph_check;
pub mod interference;
pub mod link;
pub mod mode;
mod path;
pub mod pattern;
pub mod platform;
pub mod priority;
pub mod request;
mod resource;
pub mod scheduler;
pub mod segments;
pub mod server;
mod source;
mod split_io;
pub mod system;
pub mod task;

pub use companion::{Companion, Role, is_emulated, priorities};
pub use diagnostic::{Diagnostics, Message};
pub use draft::Draft;
pub use driver::{
    Admission, Device, DeviceClass, DeviceService, Interrupt, PriorityRule, RequestOrder, Throttling,
};
pub use execution::{Body, ExecutionTimes, SpinTarget};
pub use graph_check::GraphError;
pub use interference::Interference;
pub use link::{Link, LinkKind, MAX_LINK_SIZE};
pub use mode::{LeftOver, Mode, SecondRequest, ServerChange, TakesEffect, TaskChange, TaskInMode};
pub use path::of as path_of;
pub use platform::{CpuId, Cpus, LockCosts, Platform, PlatformCosts};
pub use priority::{Priority, PriorityAssignment};
pub use request::{Request, RequestKind, RequestMode};
pub use resource::{Access, AtExhaustion, Border, Protocol, Resource, Section, SpinLevel, SpinPriority};
pub use scheduler::{Cluster, Order, TimeTable, Window};
pub use segments::{Segment, SegmentGraph, SegmentId};
pub use server::{
    Capacity, DEFAULT_REPLENISHMENTS, Enforcement, Gain, LowPriority, MAX_REPLENISHMENTS, Server, ServerId,
    ServerKind, SporadicRules,
};
pub use source::Source;
pub use split_io::split_io;
pub use system::{ModelError, Parent, Policy, System, TaskId};
pub use task::{Arrival, Criticality, OverrunPolicy, Preemption, Task};
