//! The processors among which the kernel moves reserved threads, and what it accepts there.

use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// Processors below one root, scheduled by one global EDF (a root domain of SCHED_DEADLINE).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Domain {
    /// The processors.
    pub cpus: Vec<u32>,
    /// By how much a thread may overdraw a budget before the kernel notices: one tick of the kernel. What is overdrawn is taken from
    /// the next budget.
    #[serde(rename = "tick_ns")]
    pub tick: Span,
    /// Of each processor the kernel gives reserves so many parts of a million at the most, by its own admission test.
    pub share_ppm: u64,
    /// The least budget that the kernel accepts.
    #[serde(rename = "least_budget_ns")]
    pub least_budget: Span,
    /// The shortest period that it accepts.
    #[serde(rename = "least_period_ns")]
    pub least_period: Span,
    /// The longest.
    #[serde(rename = "longest_period_ns")]
    pub longest_period: Span,
}

/// One whole, in parts of a million.
pub(crate) const WHOLE_PPM: u64 = 1_000_000;

impl Domain {
    /// These processors, without a tick and without limits of the kernel but the largest numbers of the test.
    #[must_use]
    pub fn new(cpus: Vec<u32>) -> Domain {
        Domain {
            cpus,
            tick: Span::ZERO,
            share_ppm: WHOLE_PPM,
            least_budget: Span::from_ns(1),
            least_period: Span::from_ns(1),
            longest_period: LONGEST_PERIOD,
        }
    }

    /// With this tick.
    #[must_use]
    pub fn with_tick_ns(mut self, tick_ns: u64) -> Domain {
        self.tick = Span::from_ns(tick_ns);
        self
    }

    /// How many processors it has.
    #[must_use]
    pub fn processors(&self) -> u32 {
        u32::try_from(self.cpus.len()).unwrap_or(u32::MAX)
    }
}

/// Longer periods are refused: 2^42 ns, 73 minutes. A thousand reserves then stay far below the 2^60 ns of the test.
pub(crate) const LONGEST_PERIOD: Span = Span::from_ns(1 << 42);
