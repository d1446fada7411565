//! Model extraction: from the record of a running, unmodified program to a proposed system file.
//!
//! [`Observer`] follows threads through events ([`Event`]) and keeps what each did between two sleeps ([`Stretch`]);
//! [`pattern::read`] decides which sleeps separate jobs and fits their arrivals; [`propose`] makes tasks of that, each
//! value with its evidence; [`Proposal::to_toml`] and [`Proposal::to_json`] write them. [`live`] records this machine,
//! [`from_trace`] reads a recorded file. `docs/concepts/model-extraction.md` explains each rule.
//!
//! The anchor is LiME (Brandenburg, Courtaud, Marković, Ye 2025; key brandenburg25).

pub mod arrivals;
pub mod cumulative;
mod event;
pub mod from_kernel;
pub mod from_trace;
pub mod jobs;
mod json;
pub mod live;
mod load;
pub mod pattern;
mod proposal;
pub mod replay;
mod resources;
mod statistics;
mod stretch;
mod task;
mod toml;

pub use event::{Event, EventKind, Left, LockKind, WaitKind};
pub use proposal::{
    Arrival, Background, Chosen, Observation, Options, Proposal, Values, propose, propose_jobs,
};
pub use resources::{LeftOut, Locks, ProposedSection, SharedLock};
pub use statistics::Distribution;
pub use stretch::{Doubt, Mark, Observer, Section, Stolen, Stretch, Thread};
pub use task::{
    Class, Confidence, CurveEntry, Description, Jitter, LockUse, SetAside, Suspensions, TaskProposal,
    Unclassified,
};
