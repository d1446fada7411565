//! One event schema for simulated and measured runs, its file format, statistics and exporters.
//!
//! A [`Record`] says what happened to one task's job, or on one processor, at one instant. The simulator and
//! the executive hand records to a [`Sink`]; `verify`, `trace show` and the report read them back.

pub mod columns;
pub mod ctf;
pub mod diff;
mod distribution;
mod ending;
mod error;
mod escape;
pub mod event;
mod exit_status;
pub mod file;
mod filter;
pub mod foreign;
mod glob;
pub mod kernel_jobs;
pub mod kernel_priority;
mod note;
mod outcome;
pub mod parquet;
pub mod perfetto;
mod record;
mod recorder;
pub mod show;
mod sink;
pub mod statistics;
pub mod user_statistics;

pub use distribution::{Bin, Distribution};
pub use ending::{EndCause, Ending};
pub use error::TraceError;
pub use escape::{escape, escaped};
pub use event::{EventDefinition, Text, UserEvent, Value};
pub use exit_status::exit_status;
pub use glob::Glob;
pub use outcome::{
    DeviceOutcome, Enforcement, InterruptOutcome, ModeOutcome, Outcome, Overhead, RequestOutcome,
    ResponseStatistics, ResponseSummary, ServerOutcome, TaskOutcome,
};
pub use record::{Kind, LEFT_LOCKED, LossCause, NO_JOB, NO_TASK, Record};
pub use recorder::ResponseRecorder;
pub use sink::{NullSink, Sink};
