//! The rules of servers and slack policies: what each may execute, and when.
//!
//! A [`Supply`] gives a node of the tree budget and places ([`any_supply`] holds the ones that there are, without a call by
//! pointer); a [`Service`] watches hard tasks for the time that they leave ([`any_service`]). What is not known of a budget is a
//! [`Doubt`].

pub(crate) mod any_service;
pub(crate) mod any_supply;
pub(crate) mod constant_bandwidth_server;
pub(crate) mod deferrable_server;
pub(crate) mod doubt;
pub(crate) mod dual_priority;
pub(crate) mod hard_reservation;
pub(crate) mod overheads;
mod period;
pub(crate) mod polling_server;
pub(crate) mod posix_sporadic_server;
pub(crate) mod priority_exchange;
pub(crate) mod service;
pub(crate) mod slack_stealing;
pub(crate) mod sporadic_server;
pub(crate) mod supply;

pub use doubt::Doubt;
pub use service::{HardTask, Service};
pub use supply::{Place, Supply, Tally};
