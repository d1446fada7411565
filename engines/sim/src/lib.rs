//! Discrete-event simulator that drives the scheduling machine.
//!
//! [`simulate`] runs a system in virtual time: it draws arrivals, jitter and execution times from the model and
//! lets [`horolog_sched::Machine`] decide who runs, the same code that decides in a run on Linux.

mod backlog;
mod drawn;
mod engine;
mod error;
mod horizon;
mod lane;
mod options;
mod path;
mod random;
mod simulate;
mod source;

pub use error::SimError;
pub use horizon::default_horizon;
pub use options::{DelayChoice, ExecutionChoice, Horizon, PathChoice, SimOptions};
pub use simulate::simulate;
