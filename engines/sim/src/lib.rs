//! Discrete-event simulator that drives the scheduling machine.
//!
//! [`simulate`] runs a system in virtual time: it draws arrivals, jitter and execution times from the model and
//! lets [`horolog_sched::Machine`] decide who runs, the same code that decides in a run on Linux. [`replay`] runs it
//! under a release pattern instead, such as the witness of an analysis that says "misses".

mod backlog;
mod drawn;
mod drivers;
mod earliest;
mod engine;
mod error;
mod hand_on;
mod helping;
mod horizon;
mod in_segment;
mod lane;
mod limits;
mod locking;
mod options;
mod path;
mod patterned;
mod random;
mod replay;
mod sections;
mod simulate;
mod source;
mod world;

pub use drivers::traced;
pub use error::SimError;
pub use horizon::default_horizon;
pub use options::{DelayChoice, ExecutionChoice, Horizon, PathChoice, SimOptions};
pub use random::Stream;
pub use replay::{Replay, ReplayOptions, WitnessResult, replay};
pub use simulate::{simulate, simulate_machine};

/// Whether a system has anything that only the simulation of drivers knows.
pub(crate) fn concerns(system: &horolog_model::System) -> bool {
    system.first_driver().is_some()
}
