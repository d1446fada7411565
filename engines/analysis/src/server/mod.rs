//! Servers of aperiodic work: what they may take from the tasks below them, how large they may be, and what they
//! promise to the jobs that they serve.
//!
//! A server holds a *capacity* C_s that it gets back every *period* T_s. To a task below it, it is:
//!
//! | server | most time in a window w that starts at a critical instant | |
//! |---|---|---|
//! | background | 0 | it stands below all tasks |
//! | polling, sporadic, priority exchange | ⌈w/T_s⌉ C_s | a periodic task ([`Retention::AsPeriodic`]) |
//! | deferrable | ⌈(w + T_s − C_s)/T_s⌉ C_s | it keeps its capacity and may execute twice in a row ([`Retention::Deferrable`]) |
//! | constant bandwidth | ⌊w/T_s⌋ C_s of demand | a task of an earliest-deadline-first set with deadline T_s |
//!
//! Dual priority and slack stealing are no servers of this kind: they take what the deadlines of the hard tasks leave
//! ([`promotion`], [`slack`]).
//!
//! - [`above`]: the time by which an amount of work is done below a set of loads;
//! - [`victim`]: the exact response time of a task below a server of a rational capacity;
//! - [`capacity`]: the largest safe capacity, as an exact ratio;
//! - [`sizing`]: the best capacity and period among candidates;
//! - [`supply`]: when a server has served an amount of work for certain;
//! - [`queue`]: response bounds of the jobs of a first-in-first-out queue.
//!
//! See `docs/concepts/server-analysis.md`. Sources: `lehoczky87`, `sprunt89`, `strosnider95`, `bernat99`, `davis05`,
//! `abeni98`, `davis95`, `burdalo07`.

pub mod above;
mod applied;
pub mod capacity;
pub(crate) mod devices;
pub(crate) mod explain;
pub(crate) mod largest;
pub(crate) mod place;
pub mod promotion;
pub mod queue;
mod server_verdict;
pub(crate) mod short_jobs;
pub mod size;
pub mod sizing;
pub mod slack;
pub mod supply;
pub(crate) mod verdict;
pub mod victim;

pub use above::Above;
pub use capacity::{Capacity, largest_capacity};
pub(crate) use server_verdict::server_verdict;
pub use supply::{Serve, Service, Supply};
pub(crate) use verdict::{Known, misses_without_are_misses, soft_verdicts};
pub use victim::{HardTask, Retention, Victim, victims};

pub use crate::answer::NoAnswer;
pub use crate::cpu_model::CpuServer;
use crate::fixed_priority::level::Stop;

impl From<Stop> for NoAnswer {
    fn from(stop: Stop) -> NoAnswer {
        match stop {
            Stop::Overload => NoAnswer::Overload,
            Stop::Effort => NoAnswer::Effort,
            Stop::TooLong => NoAnswer::TooLarge,
            Stop::PosixServer => NoAnswer::PosixServer,
            Stop::NoAnswer => NoAnswer::NotGuaranteed,
        }
    }
}

/// Takes `units` off the effort.
pub(crate) fn spend(effort: &mut u64, units: u64) -> Result<(), NoAnswer> {
    *effort = effort.checked_sub(units.max(1)).ok_or(NoAnswer::Effort)?;
    Ok(())
}
