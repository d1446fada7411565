//! The main job: one system file is checked, proved, simulated, run, traced and verified, and one page is written.
//!
//! The steps are usable by themselves, since `simulate`, `run` and `verify` of the command are the same code:
//! `prepare`, [`prove`], [`simulated_run`], `measured_run`, [`verify_trace`], `close`. Without the feature `run` those alone that run nothing.

#[cfg(feature = "run")]
mod close;
#[cfg(feature = "run")]
mod commands;
mod costs;
mod counterexample;
mod date;
mod documents;
mod error;
#[cfg(feature = "run")]
mod event_diff;
#[cfg(feature = "run")]
mod flight;
mod inputs;
#[cfg(feature = "run")]
mod installed;
mod kernel_order;
mod machine;
#[cfg(feature = "run")]
mod measured;
#[cfg(feature = "run")]
mod merge;
mod other_system;
mod pages;
mod proof;
#[cfg(feature = "run")]
mod report;
#[cfg(feature = "run")]
mod serve;
mod simulated;
mod told;
#[cfg(feature = "run")]
mod traces;
pub mod verdict;
mod verified;
#[cfg(feature = "run")]
mod whole_trace;

#[cfg(feature = "run")]
pub use close::{LoopDocument, LoopOptions, LoopResult, Stage, close, keep_loop_inputs, prepare};
pub use costs::{CostInUse, CostOrigin, CostRequest, CostSource, with_costs};
pub use counterexample::counterexample_beside;
pub use date::now;
pub use documents::{AnalysisDocument, Closed, closing_of_proof, closing_of_verification};
pub use error::LoopError;
#[cfg(feature = "run")]
pub use event_diff::{DistributionDiff, DurationDiff, EventDiff, LockDiff, LockProfile, Presence, TraceDiff};
pub use inputs::keep_input;
#[cfg(feature = "run")]
pub use installed::{CommandOutput, run_installed};
pub use machine::{MachineChoice, ProfilePlaces, SYSTEM_PROFILE, read_profile};
#[cfg(feature = "run")]
pub use machine::{MachineMeasured, measure_machine};
#[cfg(feature = "run")]
pub use measured::{Guard, MeasuredRun, measured_run, recorded_run};
pub use pages::{PageOf, page_of, simulated_with_timeline, timeline_of_trace};
pub use proof::{Proof, misfit, prove};
#[cfg(feature = "run")]
pub use serve::serve_thread;
pub use simulated::{replayed_run, simulated_run};
pub use told::{Told, ToldPlace, place_told, words_told};
#[cfg(feature = "run")]
pub use traces::{Converted, TraceCounts, TraceFormat, convert_trace, trace_diff, trace_statistics};
pub use verified::{bounds, is_own_trace, is_simulated, override_bounds, verify_foreign, verify_trace};
