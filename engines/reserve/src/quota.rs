//! What one user may hold.

use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// What one user may hold in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Quota {
    /// Reserves.
    pub reserves: usize,
    /// Threads over all of them.
    pub threads: usize,
    /// Parts of a million of one processor, C / T over all threads: 500,000 is half a processor.
    pub share_ppm: u64,
    /// No budget of one thread is longer: others that share the processor wait so long at least.
    #[serde(rename = "longest_budget_ns")]
    pub longest_budget: Span,
}

impl Default for Quota {
    /// 4,096 reserves and threads, and no other limit.
    fn default() -> Quota {
        Quota { reserves: 4_096, threads: 4_096, share_ppm: u64::MAX, longest_budget: Span::MAX }
    }
}
