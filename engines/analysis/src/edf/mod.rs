//! Earliest deadline first on one processor: the processor demand criterion (with QPA), exact response times,
//! witnesses of misses.
//!
//! The world of these tests: tasks on one processor, always the ready job with the earliest absolute
//! deadline, ties broken against the task under study. Each task is preemptive or non-preemptive; release jitter
//! and deadlines are arbitrary; phases are arbitrary too (an offset that a file gives is not used, which keeps
//! the tests sufficient but not exact for it). Loads above all tasks (interrupts, measured interference) take
//! their bound's share of every window.

mod breakdown;
pub(crate) mod constant_bandwidth;
mod cpu;
mod demand;
mod due_work;
mod evidence;
pub(crate) mod horizon;
mod pieces;
mod qpa;
mod response;
mod sections;
mod set;
mod together;
mod view;

pub(crate) use breakdown::explain_edf;
pub(crate) use cpu::{all_meet, analyze_cpu, task_meets};
pub use demand::DemandFunction;
pub(crate) use evidence::Prover;
pub use horizon::{Horizon, HorizonProof};
pub use qpa::{EdfSolver, EdfVerdict, Failure};
pub use response::{EdfResponse, ResponseAnalysis};
pub use set::{Arrivals, EdfSet, EdfTask, InvalidSet, NpTime, SectionBlocking, TopLoad};
pub(crate) use view::set_of;

/// Why a test gives no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// The numbers leave 64 bits.
    #[error("the windows to check leave 64 bits of nanoseconds")]
    TooLarge,
    /// The work allowed for one test is used up.
    #[error("the iteration budget is used up")]
    Budget,
    /// Utilisation is above 1: response times grow without bound.
    #[error("utilisation is above 1: response times grow without bound")]
    Overload,
    /// A job may be released after its own deadline.
    #[error("a job may be released after its own deadline: the release jitter exceeds the deadline")]
    LateRelease,
    /// Utilisation is exactly 1 and jitter, blocking or a measured load puts work on top: busy periods have no end.
    #[error("utilisation is exactly 1 with jitter, blocking or a measured load: busy periods have no end")]
    EndlessBusyPeriod,
    /// Utilisation is exactly 1 and neither the busy period nor the hyperperiod ends within 64 bits.
    #[error("utilisation is exactly 1 and no finite window to check fits into 64 bits")]
    NoHorizon,
}

/// How much work one test may do, in evaluations of one task's term; keeps hostile inputs from hanging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// At most this many evaluations of one task's term.
    #[must_use]
    pub const fn terms(terms: u64) -> Budget {
        Budget { left: terms }
    }

    /// How many evaluations are left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Takes `terms` off.
    ///
    /// # Errors
    /// [`Unresolved::Budget`] where fewer are left.
    #[inline(always)]
    pub fn spend(&mut self, terms: u64) -> Result<(), Unresolved> {
        match self.left.checked_sub(terms) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Unresolved::Budget)
            }
        }
    }
}

impl Default for Budget {
    /// About half a second of work.
    fn default() -> Budget {
        Budget::terms(100_000_000)
    }
}
