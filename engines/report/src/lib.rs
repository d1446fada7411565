//! One self-contained report page: the verdict first, then tasks, response-time distributions, a zoomable
//! timeline of simulated and measured runs, what disturbed the machine, and how to repeat it all.
//!
//! The caller fills [`ReportData`] with plain data and calls [`render`] or [`write()`]. A timeline comes from a
//! [`TimelineBuilder`], which takes trace records in order, simulated or measured, and keeps them in compact
//! columns; it also gathers the response times of every job. The page itself is the checked-in bundle
//! `assets/report.html`, built from `viewer/`; it opens without a network and runs no code but its own.
//!
//! ```
//! use horolog_report::{render, Proof, ReportData, Verdict};
//! let data = ReportData {
//!     system: "two loops".into(),
//!     verdict: Verdict { proof: Proof::Proved, ..Verdict::default() },
//!     ..ReportData::default()
//! };
//! let page = render(&data)?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), horolog_report::ReportError>(())
//! ```

mod closing;
mod data;
mod error;
mod escape;
mod finding;
pub mod line_chart;
mod parts;
mod render;
mod run;
pub mod timeline;
mod verdict;

pub use closing::{Cause, Closing, Missed, grouped};
pub use data::{Fact, FreeProof, Provenance, ReportData, TaskRow, TaskVerdict};
pub use error::ReportError;
pub use finding::{Finding, FindingClass, FindingGroup};
pub use parts::{DeviceRow, ServerRow};
pub use render::{render, write};
pub use run::{HistogramBucket, Judged, Run, RunKind, RunTask};
pub use timeline::{
    Packed, Refill, Timeline, TimelineBuilder, TimelineOptions, TimelineServer, TimelineThread,
};
pub use verdict::{Proof, Reached, RunVerdict, Verdict};
