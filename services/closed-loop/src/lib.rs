//! The main job: one system file is checked, proved, simulated, run, traced and verified, and one page is written.
//!
//! The steps are usable by themselves, since `simulate`, `run` and `verify` of the command are the same code:
//! [`prepare`], [`prove`], [`simulated_run`], [`measured_run`], [`verify_trace`], [`close`].

mod close;
mod commands;
mod costs;
mod counterexample;
mod date;
mod documents;
mod error;
mod event_diff;
mod flight;
mod installed;
mod machine;
mod measured;
mod merge;
mod other_system;
mod proof;
mod report;
mod serve;
mod simulated;
mod told;
mod traces;
pub mod verdict;
mod verified;
mod whole_trace;

pub use close::{LoopDocument, LoopOptions, LoopResult, Stage, close, prepare};
pub use costs::{CostInUse, CostOrigin, CostRequest, CostSource, with_costs};
pub use counterexample::counterexample_beside;
pub use date::now;
pub use documents::{AnalysisDocument, Closed, closing_of_proof, closing_of_verification};
pub use error::LoopError;
pub use event_diff::{DistributionDiff, DurationDiff, EventDiff, LockDiff, LockProfile, Presence, TraceDiff};
pub use installed::{CommandOutput, run_installed};
pub use machine::{
    MachineChoice, MachineMeasured, ProfilePlaces, SYSTEM_PROFILE, measure_machine, read_profile,
};
pub use measured::{Guard, MeasuredRun, measured_run, recorded_run};
pub use proof::{Proof, misfit, prove};
pub use serve::serve_thread;
pub use simulated::{replayed_run, simulated_run};
pub use told::{Told, ToldPlace, place_told, words_told};
pub use traces::{Converted, TraceCounts, TraceFormat, convert_trace, trace_diff, trace_statistics};
pub use verified::{bounds, is_own_trace, is_simulated, override_bounds, verify_foreign, verify_trace};
