//! One module a verb.

pub(crate) mod analyze;
mod blocking;
pub(crate) mod certificate;
pub(crate) mod check;
pub(crate) mod close;
pub(crate) mod doctor;
pub(crate) mod experiment;
pub(crate) mod extract;
pub(crate) mod generate;
pub(crate) mod init;
mod interference;
mod machine;
pub(crate) mod measure;
mod partition;
pub(crate) mod qos;
mod qos_curve;
pub(crate) mod reserve;
pub(crate) mod run;
mod run_locks;
pub(crate) mod serve;
pub(crate) mod sets;
mod several;
pub(crate) mod simulate;
mod spin_priority;
pub(crate) mod sweep;
pub(crate) mod trace;
pub(crate) mod verify;
