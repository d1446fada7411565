//! Tests of sporadic tasks on m identical processors below one root: global and clustered scheduling.
//!
//! Every test here is sufficient. It assumes independent preemptable sporadic tasks (the last two: tasks that cannot be
//! preempted at all), no costs, one job of a task at a time, and a scheduler that never leaves a processor idle while a job
//! waits: the rules of a cluster in `docs/decisions/0008-trees-clusters-modes.md`. Ties may be broken in any way.
//!
//! Deadlines are within the period (D ≤ T). Under fixed priorities a later deadline is judged as one at the end of the
//! period, since the order does not depend on deadlines. Under EDF it does, and such a set lies outside the tests.
//!
//! **Time.** Every bound holds in continuous time, and so for releases and executions in whole nanoseconds: where a paper counts
//! whole units (a cap of D − C + 1, rounding down), the test here has the form without the unit, which rounds up. An interval is
//! half open: a job released at r with response R executes within `[r, r + R)`.
//!
//! `docs/concepts/global-scheduling.md` has each formula, its assumptions and its source.

mod bar;
mod bcl;
mod density;
mod exact;
mod ff_dbf;
mod filling;
mod response;
pub(crate) mod verdict;
mod workload;

pub use bar::bar_holds;
pub use bcl::{bcl_edf_holds, bcl_fp_bounds, bcl_slack_edf_bounds, bcl_slack_fp_bounds};
pub use density::{bak_holds, density_holds, gfb_holds};
pub use exact::{By, Reached, Search, is_closed, search_sporadic, unit_of};
pub use ff_dbf::{ff_dbf_holds, ff_dbf_speed};
pub use response::{
    limited_carry_in_bounds, non_preemptive_edf_bounds, non_preemptive_fp_bounds, response_edf_bounds,
    response_fp_bounds,
};

/// The longest time that a test of `tasks` tasks takes, so that sums over all of them stay within 64 bits.
#[must_use]
pub const fn longest_ns(tasks: usize) -> u64 {
    let tasks = if tasks == 0 { 1 } else { tasks as u64 };
    (1 << 60) / tasks
}

/// A sporadic task of a cluster. Times in ns; C ≤ D ≤ T, C above zero, T at most [`longest_ns`] of the set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SporadicTask {
    /// C, the longest execution of a job.
    pub wcet: u64,
    /// T, the least time between two releases.
    pub period: u64,
    /// D, after the release.
    pub deadline: u64,
    /// Its place under fixed priorities: 0 is the most important, equals are first in, first out. A list of tasks is ascending
    /// by it. EDF does not look at it.
    pub rank: u32,
    /// Whether a job comes exactly T after the one before. Only the search over all runs looks at it; for every other test the task is sporadic.
    pub is_periodic: bool,
}

/// Room that the tests of many sets use again, so that none of them allocates once it is large enough.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Work of each other task in a window.
    work: Vec<u64>,
    /// The same where the task has a job from before the window.
    carried: Vec<(u64, u64)>,
    /// The same with how it grows.
    choices: Vec<filling::Choice>,
    /// Of each pair of tasks, what of one is due no later than the other: whole jobs, and how far into the next one.
    due: Vec<(u64, u64)>,
    /// What each task may leave between its last end and its deadline at the most.
    ceilings: Vec<u64>,
    /// A bound on the work of each other task that does not depend on the window.
    caps: Vec<u64>,
    /// What each task is known to leave between its last end and its deadline.
    slacks: Vec<u64>,
    /// Bounds on response times, one a task; `None` where there is none within the deadline.
    pub bounds: Vec<Option<u64>>,
}

impl Scratch {
    /// Whether every task has a bound.
    #[must_use]
    pub fn all_bounded(&self) -> bool {
        self.bounds.iter().all(Option::is_some)
    }

    /// Of each pair of tasks, what of one is due no later than the other; and the slacks where no job waits.
    fn compare_deadlines(&mut self, tasks: &[SporadicTask]) {
        self.due.clear();
        for own in tasks {
            self.due.extend(tasks.iter().map(|task| workload::due_parts(task, own.deadline)));
        }
        self.ceilings.clear();
        self.ceilings.extend(tasks.iter().map(|task| task.deadline - task.wcet));
    }

    fn reset(&mut self, tasks: usize) {
        self.bounds.clear();
        self.bounds.resize(tasks, None);
        self.slacks.clear();
        self.slacks.resize(tasks, 0);
    }
}

/// Why a test does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undecided {
    /// The effort ran out.
    Effort,
    /// Some number would leave its type.
    Range,
}
