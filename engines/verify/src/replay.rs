//! What a busy window would have looked like without what disturbed it.
//!
//! An exceeded bound is the analysis's fault only if it would have been exceeded without the disturbance, too.
//! So the jobs of the window are scheduled again on an undisturbed processor by the system's policy, each with
//! the execution that it really took. This scheduler is naive and its own: it shares no code with `sched`.

/// One job, or the stretch of a less important one that was under way when the window began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReplayJob {
    pub(crate) task: usize,
    /// When it is ready.
    pub(crate) ready: u64,
    /// Smaller is served first: the negated priority, or the absolute deadline.
    pub(crate) rank: i128,
    /// Execution between preemption points; a single entry with `preemptive` for preemptive jobs.
    pub(crate) stretches: Vec<u64>,
    pub(crate) preemptive: bool,
}

/// The most jobs that are scheduled again.
pub(crate) const MOST_JOBS: usize = 1 << 16;

/// How many jobs are scheduled again in one verification: thousands of late jobs in one busy window would take hours. Then the
/// amounts decide, and a note says so.
pub(crate) const MOST_JOBS_IN_ALL: usize = 1 << 21;

/// The jobs of one task, in the order in which they are served.
struct Queue<'a> {
    jobs: Vec<(usize, &'a ReplayJob)>,
    /// The first one that is not done.
    head: usize,
    stretch: usize,
    remaining: u64,
}

impl<'a> Queue<'a> {
    fn head(&self) -> Option<(usize, &'a ReplayJob)> {
        self.jobs.get(self.head).copied()
    }

    fn start_head(&mut self) {
        self.stretch = 0;
        self.remaining = self.head().and_then(|(_, job)| job.stretches.first().copied()).unwrap_or(0);
    }
}

/// When job `target` ends. Jobs of one task are served in the order in which they stand. `None` where time
/// overflows.
pub(crate) fn finish_of(jobs: &[ReplayJob], target: usize) -> Option<u64> {
    let mut queues: Vec<Queue<'_>> = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        match queues.iter_mut().find(|queue| queue.jobs[0].1.task == job.task) {
            Some(queue) => queue.jobs.push((index, job)),
            None => {
                queues.push(Queue { jobs: vec![(index, job)], head: 0, stretch: 0, remaining: 0 });
            }
        }
    }
    queues.iter_mut().for_each(Queue::start_head);
    let mut now = 0_u64;
    loop {
        let Some(next) = choose(&queues, now) else {
            // Idle until somebody is ready.
            now = queues.iter().filter_map(Queue::head).map(|(_, job)| job.ready).min()?;
            continue;
        };
        let (index, job) = queues[next].head()?;
        let end = now.checked_add(queues[next].remaining)?;
        let preempted = job.preemptive.then(|| next_more_important(&queues, job.rank, now)).flatten();
        let queue = &mut queues[next];
        match preempted.filter(|at| *at < end) {
            Some(at) => {
                queue.remaining -= at - now;
                now = at;
            }
            None => {
                now = end;
                queue.stretch += 1;
                match job.stretches.get(queue.stretch) {
                    Some(length) => queue.remaining = *length,
                    None if index == target => return Some(now),
                    None => {
                        queue.head += 1;
                        queue.start_head();
                    }
                }
            }
        }
    }
}

/// The queue to serve: most important, then earliest ready.
fn choose(queues: &[Queue<'_>], now: u64) -> Option<usize> {
    (0..queues.len())
        .filter_map(|at| queues[at].head().map(|(index, job)| ((job.rank, job.ready, index), at)))
        .filter(|((_, ready, _), _)| *ready <= now)
        .min()
        .map(|(_, at)| at)
}

/// When the next job arrives that is more important than `rank`. Only heads count: whoever stands behind a head
/// that waits is served after it.
fn next_more_important(queues: &[Queue<'_>], rank: i128, now: u64) -> Option<u64> {
    let heads = queues.iter().filter_map(Queue::head);
    heads.filter(|(_, job)| job.ready > now && job.rank < rank).map(|(_, job)| job.ready).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(task: usize, ready: u64, rank: i128, stretches: &[u64], preemptive: bool) -> ReplayJob {
        ReplayJob { task, ready, rank, stretches: stretches.to_vec(), preemptive }
    }

    #[test]
    fn preemption_happens_only_where_it_may() {
        // Less important: 5 from 0; more important: 2 from 3.
        let jobs = |preemptive: bool, stretches: &[u64]| {
            vec![job(1, 0, 2, stretches, preemptive), job(0, 3, 1, &[2], true)]
        };
        assert_eq!(finish_of(&jobs(true, &[5]), 0), Some(7));
        assert_eq!(finish_of(&jobs(true, &[5]), 1), Some(5));
        assert_eq!(finish_of(&jobs(false, &[5]), 0), Some(5));
        assert_eq!(finish_of(&jobs(false, &[5]), 1), Some(7));
        assert_eq!(finish_of(&jobs(false, &[4, 1]), 0), Some(7));
        assert_eq!(finish_of(&jobs(false, &[4, 1]), 1), Some(6));
    }

    #[test]
    fn jobs_of_one_task_and_equals_keep_their_order() {
        let jobs = [job(0, 5, 1, &[3], true), job(0, 6, 1, &[3], true), job(1, 4, 1, &[4], true)];
        assert_eq!(finish_of(&jobs, 0), Some(11));
        assert_eq!(finish_of(&jobs, 1), Some(14));
        assert_eq!(finish_of(&jobs, 2), Some(8));
    }
}
