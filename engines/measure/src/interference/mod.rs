//! How much of a processor something outside the model takes: the hourglass probe and the bound fitted to it.
//!
//! A real-time thread reads the clock as often as it can; a long gap between two reads is time that somebody else took.
//! First the machine is measured without the load in question, then with it. For each window length the largest share
//! taken, its 95th percentile and its median are found, and a hyperbolic load bound (utilisation, period) is fitted to
//! each, with and without the idle share subtracted: an `[[interference]]` entry of a system file.
//!
//! Source: `lewandowski07`, sections 3 and 4.
//!
//! # Differences
//! The paper takes one window a trial and the largest of many trials. Here a trial is a longer *stretch* whose gaps are
//! all kept, and the largest share is that over **every** window of the stretch, wherever it begins: never less than the
//! paper's, and nearer to the worst case after the same time. Percentiles and means are those of windows that begin at
//! random, as the paper's do. A window's share is counted inside the window; the printed probe divides by the length that
//! it came to when a gap ran over the window's end.

mod collect;
mod configuration;
mod error;
mod gaps;
mod held_back;
mod load;
mod probe;
mod statistics;
mod store;
mod summary;

pub use collect::{Progress, collect};
pub use configuration::{Configuration, Phase};
pub use error::InterferenceError;
pub use gaps::{Gap, Stretch};
pub use held_back::{HeldBackCounter, held_back_note};
pub use load::{LoadCommand, others};
pub use probe::{Hourglass, clock_cost_ns};
pub use statistics::{Row, Statistic};
pub use store::{Disturbance, Reading, Store, StoreError};
pub use summary::{Baseline, FittedBound, Measured, PhaseSummary, Unfitted, summarise};
