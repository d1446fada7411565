//! Integer nanoseconds: [`Span`] is a length of time, [`Instant`] a point on one clock.
//!
//! Use `Span` for periods, execution times and response times; use `Instant` for when something happened,
//! counted from the origin of its clock (the start of a simulation, or the origin that a trace's header
//! names on `CLOCK_MONOTONIC`). Both hold a `u64`; arithmetic is checked, because a wrapped time would be
//! a wrong verdict. 2^64 ns are 584 years.

mod instant;
mod span;

pub use instant::Instant;
pub use span::{ParseSpanError, Span};
