//! Response bounds of the jobs of a first-in-first-out queue behind a server.

use super::above::share;
use super::supply::Serve;
use super::{NoAnswer, spend};
use crate::arrival_curve::ArrivalCurve;

/// One task whose jobs wait in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuedTask {
    /// When its jobs come.
    pub arrival: ArrivalCurve,
    /// How long they execute, ns.
    pub wcet: u64,
}

/// The job that waits longest, of one task of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorstJob {
    /// Its response time from the nominal arrival, ns.
    pub response: u64,
    /// When it comes, ns after the start of the backlog.
    pub ready: u128,
    /// How many jobs of its own task came up to then, itself included.
    pub own_jobs: u128,
    /// All work that came up to then, its own included, ns.
    pub work: u128,
    /// When that is done, ns after the start of the backlog.
    pub done: u128,
}

/// A bound on the response time of the task at `index`, from the nominal arrival, in ns: that of [`worst_job`].
///
/// # Errors
/// As [`worst_job`].
pub fn response(
    tasks: &[QueuedTask],
    index: usize,
    service: &dyn Serve,
    effort: &mut u64,
) -> Result<u64, NoAnswer> {
    worst_job(tasks, index, service, effort).map(|worst| worst.response)
}

/// The job of the task at `index` that waits longest.
///
/// A *backlog* starts when a job finds the queue empty. In it, the job that comes at time a after its start is done at
/// `finish(A(a))`, A(a) being all work that came in `[0, a]`, its own included, at its densest; ties count against it.
/// The worst has the largest `finish(A(a)) − a` over all instants of the longest backlog at which a job can come.
///
/// Sufficient; the least bound where `service` is and the arrivals can be as dense at the start of a backlog.
///
/// # Errors
/// [`NoAnswer::Overload`] where the tasks ask for more than the service gives in the long run.
pub fn worst_job(
    tasks: &[QueuedTask],
    index: usize,
    service: &dyn Serve,
    effort: &mut u64,
) -> Result<WorstJob, NoAnswer> {
    let asked: Vec<(u64, u64)> = tasks.iter().filter_map(|task| share(&task.arrival, task.wcet)).collect();
    if service.is_exceeded_by(&asked) {
        return Err(NoAnswer::Overload);
    }
    let end = backlog(tasks, service, effort)?;
    let own = tasks.get(index).ok_or(NoAnswer::TooLarge)?;
    let (mut worst, mut ready): (Option<WorstJob>, u128) = (None, 0);
    while ready < end {
        let own_jobs = own.arrival.own_up_to(ready);
        let mut work = own_jobs * u128::from(own.wcet);
        for (_, other) in tasks.iter().enumerate().filter(|(other, _)| *other != index) {
            spend(effort, other.arrival.effort())?;
            work += other.arrival.closed(ready) * u128::from(other.wcet);
        }
        let done = service.finish(work, effort)?;
        let response = (done + u128::from(own.arrival.jitter())).saturating_sub(ready);
        let response = u64::try_from(response).ok().filter(|&ns| ns < 1 << 63).ok_or(NoAnswer::TooLarge)?;
        if worst.is_none_or(|worst| response > worst.response) {
            worst = Some(WorstJob { response, ready, own_jobs, work, done });
        }
        let Some(next) = next_candidate(tasks, index, ready, effort)? else { break };
        ready = next;
    }
    worst.ok_or(NoAnswer::TooLarge)
}

/// The next instant at which a job of the queue can come in the densest pattern.
fn next_candidate(
    tasks: &[QueuedTask],
    index: usize,
    ready: u128,
    effort: &mut u64,
) -> Result<Option<u128>, NoAnswer> {
    let mut next: Option<u128> = None;
    for (other, task) in tasks.iter().enumerate() {
        spend(effort, task.arrival.effort())?;
        let step = if other == index { task.arrival.next_own(ready) } else { task.arrival.next_step(ready) };
        next = next.into_iter().chain(step).min();
    }
    Ok(next)
}

/// The length of the longest backlog: the least x > 0 by which all that came in `[0, x)` is settled.
fn backlog(tasks: &[QueuedTask], service: &dyn Serve, effort: &mut u64) -> Result<u128, NoAnswer> {
    let mut x = 1;
    loop {
        let mut work = 0;
        for task in tasks {
            spend(effort, task.arrival.effort())?;
            work += task.arrival.half_open(x) * u128::from(task.wcet);
        }
        let next = service.settled(work, effort)?;
        if next <= x {
            return Ok(x);
        }
        if next > 1 << 63 {
            return Err(NoAnswer::TooLarge);
        }
        x = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Above, Retention, Service, Supply};

    fn task(separation: u64, wcet: u64) -> QueuedTask {
        QueuedTask { arrival: ArrivalCurve::Periodic { separation, jitter: 0 }, wcet }
    }

    #[test]
    fn one_job_a_period_waits_once() {
        let above = Above::default();
        let effort = &mut 1_000_000;
        let supply = Supply::new(Service::Deferrable, 2, 10, &above, effort).unwrap();
        assert_eq!(response(&[task(10, 2)], 0, &supply, effort), Ok(10));
        // Two tasks of (10, 1): each may find the other ahead.
        assert_eq!(response(&[task(10, 1), task(10, 1)], 1, &supply, effort), Ok(10));
        assert_eq!(response(&[task(9, 2)], 0, &supply, effort), Err(NoAnswer::Overload));
    }

    #[test]
    fn a_constant_bandwidth_server_promises_its_share() {
        let above = Above::default();
        let effort = &mut 1_000_000;
        let supply = Supply::new(Service::ConstantBandwidth, 2, 10, &above, effort).unwrap();
        // A job of 5 needs three pieces; the next comes when the share has settled it.
        assert_eq!(response(&[task(25, 5)], 0, &supply, effort), Ok(30));
        // A denser one finds the deadline of the last piece ahead of it.
        assert_eq!(response(&[task(26, 5)], 0, &supply, effort), Ok(30));
    }

    #[test]
    fn in_the_background_it_is_the_least_important_task() {
        let above = Above { loads: vec![Retention::AsPeriodic.load(4, 8)], ..Above::default() };
        let effort = &mut 1_000_000;
        // R = 3 + ⌈R/8⌉·4 = 7; two of them ahead of each other: 6 + 8 = 14.
        assert_eq!(response(&[task(100, 3)], 0, &above, effort), Ok(7));
        assert_eq!(response(&[task(100, 3), task(100, 3)], 0, &above, effort), Ok(14));
    }

    /// Jobs that use up all that a server gives: it looks just after each of them, so that their backlog never ends, and is given up
    /// at 2^63 ns.
    #[test]
    fn a_backlog_without_end_is_too_long() {
        let above = Above::default();
        let effort = &mut 1_000_000;
        let supply = Supply::new(Service::Polling, 1 << 40, 1 << 50, &above, effort).unwrap();
        assert_eq!(response(&[task(1 << 50, 1 << 40)], 0, &supply, effort), Err(NoAnswer::TooLarge));
    }
}
