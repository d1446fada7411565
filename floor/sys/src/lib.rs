//! The only crate that makes system calls.
//!
//! Every wrapper refuses with an [`Error`] that names the call, its argument and the remedy. Nothing here
//! decides anything about scheduling; that is `sched`'s.
#![allow(unsafe_code)]

mod error;

pub use error::{Error, errno_name};
