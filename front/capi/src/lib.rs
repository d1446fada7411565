//! The C interface for task code.
//!
//! `include/horolog.h` is all that a library needs: it links against nothing, because the handle carries a table of
//! functions. The layout is that of [`horolog_sys::job_abi`]; a test compiles the header and compares every offset.
//!
//! The header is written by hand, not generated: its inline functions (the idle preemption point is three loads and two
//! branches) are the point of it, and generators write none. The comparison in `tests/header.rs` is what keeps it true.

pub use horolog_sys::job_abi;

/// The header's text, for tools that hand it out.
pub const HEADER: &str = include_str!("../include/horolog.h");
