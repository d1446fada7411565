//! Which `SCHED_FIFO` priorities a run uses.
//!
//! `SCHED_FIFO` has 99 priorities for the whole machine; a system file has any integers. Horolog keeps the
//! bands apart:
//!
//! | FIFO priority | who |
//! |---|---|
//! | [`WATCHDOG`] | who looks for jobs without an end |
//! | [`AGENT`] | the release and enforcement agent of each processor |
//! | [`ABOVE_TASKS`] | a job that made itself non-preemptible where the kernel decides |
//! | [`TASKS_LEAST`] to [`TASKS_MOST`] | tasks that the kernel schedules (shadow), one band a distinct priority |
//! | [`RUN`] | the one task that the machine wants to run (authoritative) |
//! | [`WAIT`] | tasks that the machine preempted |
//! | [`TASKS_LEAST`] to below [`RUN`] | on a processor that executes sections alone: these, one band a distinct ceiling |
//! | [`DEMOTED`] | jobs that overran and were demoted |
//!
//! Kernel threads at FIFO 99 (migration, watchdog) stay above everything.

use horolog_model::Priority;

/// The watchdog's band, above the agents.
pub(crate) const WATCHDOG: u8 = 98;
/// The agents' band.
pub(crate) const AGENT: u8 = 97;
/// The band of the task that should run.
pub(crate) const RUN: u8 = 80;
/// The band of preempted tasks.
pub(crate) const WAIT: u8 = 40;
/// A job that excludes all tasks of its processor by priority.
pub(crate) const ABOVE_TASKS: u8 = 96;
/// The band of demoted jobs.
pub(crate) const DEMOTED: u8 = 1;
/// The least important band of kernel-scheduled tasks.
pub(crate) const TASKS_LEAST: u8 = 2;
/// The most important one.
pub(crate) const TASKS_MOST: u8 = 95;

/// The distinct priorities of one processor do not fit into the bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutOfBands {
    /// How many distinct priorities there are.
    pub(crate) wanted: usize,
    /// How many bands there are.
    pub(crate) available: usize,
}

/// Maps priorities onto the bands `least..=most`, keeping order and equality. Where all priorities lie inside
/// the range, each keeps its own number, so that `chrt` shows what the file says.
pub(crate) fn assign(priorities: &[Priority], least: u8, most: u8) -> Result<Vec<u8>, OutOfBands> {
    let range = i64::from(least)..=i64::from(most);
    if priorities.iter().all(|priority| range.contains(&priority.number())) {
        return Ok(priorities.iter().map(|priority| priority.number() as u8).collect());
    }
    let mut distinct: Vec<i64> = priorities.iter().map(|priority| priority.number()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let available = usize::from(most - least) + 1;
    if distinct.len() > available {
        return Err(OutOfBands { wanted: distinct.len(), available });
    }
    let band =
        |priority: &Priority| least + distinct.partition_point(|&other| other < priority.number()) as u8;
    Ok(priorities.iter().map(band).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priorities(numbers: impl IntoIterator<Item = i64>) -> Vec<Priority> {
        numbers.into_iter().map(Priority::new).collect()
    }

    #[test]
    fn numbers_that_fit_stay_as_they_are() {
        assert_eq!(assign(&priorities([90, 50, 50]), 2, 95), Ok(vec![90, 50, 50]));
    }

    #[test]
    fn order_and_equality_survive_the_mapping() {
        let mapped = assign(&priorities([1_000_000, -7, 0, -7, i64::MAX, i64::MIN]), 2, 95);
        assert_eq!(mapped, Ok(vec![5, 3, 4, 3, 6, 2]));
    }

    #[test]
    fn running_out_of_bands_is_an_error() {
        assert_eq!(assign(&priorities(0..95), 2, 95), Err(OutOfBands { wanted: 95, available: 94 }));
        assert_eq!(assign(&priorities(0..94), 2, 95).map(|bands| bands[93]), Ok(95));
    }
}
