//! Critical sections from a trace of lock events: how long, how deeply nested, how long waited for, by whom.
//!
//! Definitions (Brandenburg and Anderson 2007, "Feather-Trace"): a *critical section* lasts from the successful
//! acquisition of a lock to just before its release, the cost of acquiring excluded. The *nesting depth* of a request is
//! the number of locks that the requester already holds; outermost = 0. An enter without an exit, or the other way round,
//! is dropped and counted, and nests nothing.
//!
//! # Differences
//! The paper's samples bear no task, so that its requester is the *processor*. A holder that is preempted then lends its
//! depth to whoever runs next, and one that migrates breaks its pair. Here the requester is the thread;
//! [`Nesting::Processor`] gives the paper's definition.

mod event;
mod from_trace;
mod hash;
mod histogram;
mod modules;
mod sections;
mod statistics;
mod study;

pub use event::{LockAction, LockClass, LockEvent, cycles_to_span};
pub(crate) use from_trace::of_words;
pub use from_trace::{NamedStudy, from_trace};
pub use histogram::{BIN_NS, Histogram};
pub use modules::{Module, Modules, Naming};
pub use sections::{CriticalSections, Nesting, SectionOptions};
pub use statistics::{DEEPEST, Holder, Statistics, WorstSection, WorstWait};
pub use study::{Group, LockKey, SectionCounts, SiteKey, StillHeld, Study, ThreadKey};
