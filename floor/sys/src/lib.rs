//! The only crate that makes system calls.
