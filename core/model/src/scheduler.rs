//! Trees of schedulers: what a `[[scheduler]]` adds to a server, and roots over several processors.
//!
//! A `[[server]]` is the short form of a scheduler: below the root of its processor, first in, first out. A scheduler
//! may stand below another one, orders its children by a policy of its own, and need not have a budget.

use crate::{CpuId, Policy};
use horolog_time::Span;

/// How a scheduler orders its children. Who matches on it names every order, so that the compiler names the places that a new one
/// touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// First in, first out over the jobs of all its tasks.
    #[default]
    Fifo,
    /// By fixed priority; equals first in, first out.
    FixedPriority,
    /// By absolute deadline.
    Edf,
    /// By a time table ([`TimeTable`]): the child whose window it is, and nobody else.
    Table,
}

/// When the children of a scheduler may run: windows in a cycle that begins again and again from the start on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeTable {
    /// How long a cycle is, above zero.
    pub cycle: Span,
    /// They do not overlap, and end by the end of the cycle.
    pub windows: Vec<Window>,
}

/// A window of a time table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// The name of the child, a task or scheduler, whose window it is.
    pub child: String,
    /// When it begins in each cycle.
    pub from: Span,
    /// How long it is, above zero.
    pub length: Span,
}

impl Order {
    /// The words of the system file.
    pub const WORDS: [&'static str; 4] = ["fifo", "fixed-priority", "edf", "table"];

    /// The words of a root over several processors.
    pub const CLUSTER_WORDS: [&'static str; 2] = ["fixed-priority", "edf"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::FixedPriority => "fixed-priority",
            Self::Edf => "edf",
            Self::Table => "table",
        }
    }

    /// The order that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Order> {
        [Self::Fifo, Self::FixedPriority, Self::Edf, Self::Table]
            .into_iter()
            .find(|order| order.word() == word)
    }

    /// The order of the root of a processor under a policy.
    #[must_use]
    pub const fn of_policy(policy: Policy) -> Order {
        match policy {
            Policy::FixedPriority => Order::FixedPriority,
            Policy::Edf => Order::Edf,
        }
    }
}

/// A root over several processors: its m most important ready jobs run, m being how many processors it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// Its name, unique among servers, schedulers and clusters.
    pub name: String,
    /// Its processors, ascending, at least two, each of one cluster alone.
    pub cpus: Vec<CpuId>,
    /// By fixed priority or by deadline.
    pub order: Order,
    /// The names of its tasks. Such a task's `cpu` is the first of the cluster.
    pub tasks: Vec<String>,
}
