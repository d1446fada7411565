//! What is known of a trace while it is read: the model, each processor, each job. No rule lies here; those are in [`crate::verifier`].

pub(crate) mod candidate;
pub(crate) mod costs_seen;
pub(crate) mod hidden;
pub(crate) mod history;
pub(crate) mod job;
pub(crate) mod kept_waiting;
pub(crate) mod marks;
pub(crate) mod model;
pub(crate) mod ongoing;
pub(crate) mod processor;
pub(crate) mod spans;
pub(crate) mod stretches;
pub(crate) mod threads;
