//! The resource kernel for stock Linux: the daemon `horologd`, its protocol and its client.
//!
//! [`horolog_reserve`] decides; this crate carries out: a Unix socket, SCHED_DEADLINE, a state file, and a lease process that puts back
//! what the daemon has changed where it dies. `docs/concepts/resource-kernel.md`.

pub mod alone;
pub mod client;
pub mod config;
pub mod disk;
pub mod frame;
pub mod host;
pub mod protocol;
pub mod server;
pub mod service;
pub mod store;
