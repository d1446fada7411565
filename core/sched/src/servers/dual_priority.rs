//! Dual priority: hard jobs stand below the soft ones until each is promoted at its latest safe time.
//!
//! Three bands. A hard job released at r stands in the lower band and is promoted to the upper one at `r + U_i`; soft jobs stand
//! between, first in, first out. U_i is data of the resolved system (`promotion` of its task); the latest safe one is
//! `D_i − R_i`, with its worst response time R_i among the hard tasks. Both hard bands have the order of the priorities. After its
//! promotion a job is as in a system without soft jobs that was released U_i later, so it ends by `r + U_i + R_i ≤ r + D_i`.
//!
//! *Self gain*: what a job executes in the lower band moves its promotion as much later, for with so much less to do it
//! needs so much less time. *Propagated gain*: when a job ends g before its wcet, the promotions of waiting less
//! important jobs may move g later. That is not always safe: their next promotions do not move, so they come closer
//! together than a period. So each move is tried on the worst schedule of the upper band from now on (every job takes its
//! wcet, nothing runs in the lower band), up to its first idle instant after all moved jobs: from there on all promotions
//! are a period apart again and the response times hold. The move is made if no deadline is missed there. The worst
//! schedule is known only where all hard tasks are periodic, without jitter and of distinct priorities.
//!
//! Source: `davis95`. # Differences: the literature gives no rule for when a gain may be propagated; ours is the one
//! above.

use crate::servers::overheads::Overheads;
use crate::{HardTask, Place, Service, Tally};
use horolog_model::{Gain, ModelError, System};
use horolog_time::{Instant, Span};

const NEVER: u64 = u64::MAX;

/// The longest look ahead, in changes of the upper band's schedule.
const MOST_STEPS: u32 = 1 << 12;

/// The oldest job of a hard task, and when its next one comes.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Jobs released and not done.
    pending: u32,
    is_low: bool,
    /// Whether a propagated gain has moved its promotion.
    is_moved: bool,
    remaining: u64,
    deadline: u64,
    /// Nominal arrival of the task's next job; [`NEVER`] before its first one.
    next: u64,
}

/// What does not change.
#[derive(Clone, Copy, Debug)]
struct Task {
    execution: u64,
    separation: u64,
    deadline: u64,
    /// The promotion's time after the arrival.
    offset: u64,
    /// What interrupts may take until the deadline.
    margin: u64,
}

/// The dual-priority policy of one processor; see the module.
#[derive(Clone, Debug)]
pub(crate) struct DualPriority {
    gain: Gain,
    tasks: Box<[Task]>,
    jobs: Box<[Job]>,
    /// When each is promoted; [`NEVER`] once it is, or where there is none.
    promotions: Box<[u64]>,
    /// The earliest of them.
    first: u64,
    /// Room to look ahead in.
    ahead: Box<[Job]>,
    ahead_promotions: Box<[u64]>,
    /// Who was promoted and has not been told; room for all.
    moved: Vec<usize>,
    tally: Tally,
}

impl DualPriority {
    /// # Errors
    /// Where a hard task has no promotion time.
    pub(crate) fn new(
        system: &System,
        hard: &[HardTask],
        overheads: &Overheads,
        gain: Gain,
    ) -> Result<DualPriority, ModelError> {
        let mut tasks = Vec::with_capacity(hard.len());
        for task in hard {
            let name = &system.task(task.task).name;
            let Some(offset) = system.task(task.task).promotion else {
                return Err(ModelError {
                    at: format!("task.{name}.promotion"),
                    reason: "dual priority has no time to promote this task: it may miss its deadline even without \
                             soft tasks, or the system is not resolved"
                        .to_owned(),
                    remedy: "make the hard tasks schedulable first (`horolog analyze` without the server), or give it; a program \
                             that reads a file by itself calls `horolog_analysis::resolve`"
                        .to_owned(),
                });
            };
            tasks.push(Task {
                execution: task.execution.as_ns(),
                separation: task.separation.as_ns(),
                deadline: task.deadline.as_ns(),
                offset: offset.as_ns(),
                margin: overheads.in_window(task.deadline.as_ns()).saturating_add(overheads.late),
            });
        }
        let job =
            Job { pending: 0, is_low: true, is_moved: false, remaining: 0, deadline: NEVER, next: NEVER };
        let jobs = vec![job; tasks.len()].into_boxed_slice();
        let promotions = vec![NEVER; tasks.len()].into_boxed_slice();
        Ok(DualPriority {
            gain,
            first: NEVER,
            ahead: jobs.clone(),
            ahead_promotions: promotions.clone(),
            promotions,
            jobs,
            moved: Vec::with_capacity(tasks.len()),
            tasks: tasks.into(),
            tally: Tally::default(),
        })
    }

    #[inline(never)]
    fn find_first(&mut self) {
        let mut first = NEVER;
        for &promotion in &self.promotions {
            first = std::hint::select_unpredictable(promotion < first, promotion, first);
        }
        self.first = first;
    }

    /// Tries to move the promotions of waiting jobs behind `rank` by what it left over.
    fn propagate(&mut self, now: u64, rank: usize, unused: u64) {
        for waiting in rank + 1..self.jobs.len() {
            let (job, before) = (self.jobs[waiting], self.promotions[waiting]);
            if before == NEVER {
                continue;
            }
            let latest = job.deadline.saturating_sub(job.remaining);
            let promotion = before.saturating_add(unused).min(latest);
            if promotion <= before {
                continue;
            }
            (self.jobs[waiting].is_moved, self.promotions[waiting]) = (true, promotion);
            if !self.is_safe(now) {
                (self.jobs[waiting], self.promotions[waiting]) = (job, before);
            }
        }
    }

    /// Whether the worst schedule of the upper band from now on meets every deadline, up to its first idle instant after
    /// all moved jobs.
    fn is_safe(&mut self, now: u64) -> bool {
        self.ahead.copy_from_slice(&self.jobs);
        self.ahead_promotions.copy_from_slice(&self.promotions);
        for (job, promotion) in self.ahead.iter().zip(&mut self.ahead_promotions) {
            if job.pending > 1 || job.next == NEVER {
                return false;
            }
            if job.pending == 1 && *promotion == NEVER {
                *promotion = now;
            }
        }
        let mut time = now;
        for _ in 0..MOST_STEPS {
            if !self.release_ahead(time) {
                return false;
            }
            let mut jobs = self.ahead.iter().zip(&self.ahead_promotions);
            let running = jobs.position(|(job, &promotion)| job.pending > 0 && promotion <= time);
            let next = self.next_change(time);
            let Some(rank) = running else {
                if self.ahead.iter().all(|job| job.pending == 0 || !job.is_moved) {
                    return true;
                }
                time = next;
                continue;
            };
            let job = &mut self.ahead[rank];
            let end = time.saturating_add(job.remaining);
            if end > next {
                job.remaining = end - next;
                time = next;
                continue;
            }
            if end.saturating_add(self.tasks[rank].margin) > job.deadline {
                return false;
            }
            (job.pending, job.is_moved) = (0, false);
            self.ahead_promotions[rank] = NEVER;
            time = end;
        }
        false
    }

    /// Releases what arrives by `time`; whether every job before is done.
    fn release_ahead(&mut self, time: u64) -> bool {
        let ahead = self.ahead.iter_mut().zip(&mut self.ahead_promotions);
        for ((job, promotion), task) in ahead.zip(&self.tasks) {
            while job.next <= time {
                if job.pending > 0 {
                    return false;
                }
                *promotion = job.next.saturating_add(task.offset);
                *job = Job {
                    pending: 1,
                    is_moved: false,
                    remaining: task.execution,
                    deadline: job.next.saturating_add(task.deadline),
                    next: job.next.saturating_add(task.separation),
                    ..*job
                };
                if job.next == NEVER {
                    return false;
                }
            }
        }
        true
    }

    /// The next arrival or promotion after `time`.
    fn next_change(&self, time: u64) -> u64 {
        let of = |(job, &promotion): (&Job, &u64)| {
            if promotion > time { job.next.min(promotion) } else { job.next }
        };
        self.ahead.iter().zip(&self.ahead_promotions).map(of).min().unwrap_or(NEVER)
    }
}

impl Service for DualPriority {
    #[inline]
    fn released(&mut self, now: Instant, rank: usize, arrival: Instant) {
        let (job, task) = (&mut self.jobs[rank], &self.tasks[rank]);
        let arrival = arrival.as_ns();
        job.pending += 1;
        job.next = arrival.saturating_add(task.separation);
        if job.pending == 1 {
            let promotion = arrival.saturating_add(task.offset);
            job.is_low = promotion > now.as_ns();
            job.deadline = arrival.saturating_add(task.deadline);
            job.remaining = task.execution;
            job.is_moved = false;
            let promotion = if job.is_low { promotion } else { NEVER };
            self.promotions[rank] = promotion;
            self.first = self.first.min(promotion);
        }
    }

    #[inline]
    fn completed(&mut self, now: Instant, rank: usize) {
        let job = &mut self.jobs[rank];
        let unused = job.remaining;
        job.pending = job.pending.saturating_sub(1);
        // A job that waited behind a late one is late itself.
        job.is_low = job.pending == 0;
        job.is_moved = false;
        job.remaining = self.tasks[rank].execution;
        let promotion = std::mem::replace(&mut self.promotions[rank], NEVER);
        let was_first = promotion == self.first && promotion != NEVER;
        let is_passed_on = self.gain.is_propagated() && unused > 0;
        if is_passed_on {
            self.propagate(now.as_ns(), rank, unused);
        }
        if is_passed_on || was_first {
            self.find_first();
        }
    }

    #[inline]
    fn executed(&mut self, _: Instant, rank: Option<usize>, amount: Span) {
        let Some(rank) = rank else {
            self.tally.consume(amount);
            return;
        };
        let job = &mut self.jobs[rank];
        // Beyond its wcet a job gains nothing.
        let amount = amount.as_ns().min(job.remaining);
        job.remaining -= amount;
        let promotion = self.promotions[rank];
        if job.is_low && promotion != NEVER && self.gain.is_self() {
            self.promotions[rank] = promotion.saturating_add(amount);
            if promotion == self.first {
                self.find_first();
            }
        }
    }

    fn soft_demand(&mut self, _: Instant, _: bool) {}

    fn timer(&self) -> Option<Instant> {
        (self.first != NEVER).then(|| Instant::from_ns(self.first))
    }

    fn timer_fired(&mut self, now: Instant) {
        for (rank, promotion) in self.promotions.iter_mut().enumerate() {
            if *promotion <= now.as_ns() {
                *promotion = NEVER;
                self.jobs[rank].is_low = false;
                self.moved.push(rank);
            }
        }
        self.find_first();
    }

    fn soft_place(&self) -> Place {
        Place::High
    }

    fn is_low(&self, rank: usize) -> bool {
        self.jobs[rank].is_low
    }

    fn moved(&mut self) -> Option<usize> {
        self.moved.pop()
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}
