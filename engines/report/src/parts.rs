//! Servers and devices: what they are, and what was proved of them.

use crate::TaskVerdict;
use horolog_time::Span;
use serde::Serialize;

/// One server or scheduler. What it did stands in [`crate::Run::servers`], by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerRow {
    /// Its name.
    pub name: String,
    /// Its kind, as in the system file.
    pub kind: String,
    /// The processor.
    pub cpu: u32,
    /// What it may use in each period; `None`: it has no budget.
    pub budget_ns: Option<Span>,
    /// Its period.
    pub period_ns: Option<Span>,
    /// The tasks and schedulers below it.
    pub serves: Vec<String>,
    /// Whether its whole budget is certain to be served in each period; `None`: that was not asked.
    pub guaranteed: Option<bool>,
}

/// One device. What it did stands in [`crate::Run::devices`] and [`crate::Run::requests`], by the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceRow {
    /// Its name.
    pub name: String,
    /// Where its events are worked off, in the word of the system file.
    pub service: String,
    /// The processor.
    pub cpu: u32,
    /// The names of the requests that tasks make of it.
    pub requests: Vec<String>,
    /// By when an event must be worked off.
    pub deadline_ns: Option<Span>,
    /// What is proved.
    pub verdict: TaskVerdict,
    /// The bound of the time until an event is worked off.
    pub bound_ns: Option<Span>,
}
