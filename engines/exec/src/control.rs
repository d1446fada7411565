//! The words that a job's own thread and the agent share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Somebody more important waits for the task's next preemption point.
pub(crate) const SHOULD_YIELD: u32 = 1;
/// Every preemption point reports: it is recorded, watched, or asks by a system call.
pub(crate) const WATCHED: u32 = 2;
/// The job was found to overrun; its callback has not been told.
pub(crate) const OVERRAN: u32 = 4;

/// The words of one task that its job reads at preemption points; cache lines of its own, so that no other task's
/// writes slow the idle preemption point down.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Zero while a preemption point has nothing to do: one load, one branch. Above the bits stands the generation
    /// of the flag, so that a trace of the word tells two flags in a row apart.
    pub(crate) attention: AtomicU32,
    /// The job should end at its next opportunity.
    pub(crate) must_end: AtomicBool,
    /// A grant to run: the thread sleeps on it while it has none.
    pub(crate) gate: AtomicU32,
    /// The job that runs, plus one; zero between jobs.
    pub(crate) job: AtomicU64,
    /// The job whose code has ended last, plus one, and what it had executed then.
    pub(crate) ended: AtomicU64,
    pub(crate) executed_at_end: AtomicU64,
    /// The thread's processor time at the job's start.
    pub(crate) cpu_at_start: AtomicU64,
    /// What the job had executed when its segment began.
    pub(crate) executed_before_segment: AtomicU64,
    /// The worst cases of the segments that the job has taken, before the present one.
    pub(crate) path_before_segment: AtomicU64,
    /// The segment that runs.
    pub(crate) segment: AtomicU32,
    /// The tightest bound on the job's execution time known so far; zero: the task's wcet.
    pub(crate) tighter_wcet: AtomicU64,
    /// The last job whose overrun was told to the callback, plus one.
    pub(crate) told: AtomicU64,
}

impl Control {
    /// Shows that somebody waits. Only inside the processor's monitor.
    pub(crate) fn raise_yield(&self, flag: u32) {
        self.clear_yield();
        self.attention.fetch_or(flag, Ordering::AcqRel);
    }

    /// Shows that nobody waits. Only inside the processor's monitor.
    pub(crate) fn clear_yield(&self) {
        self.attention.fetch_and(WATCHED | OVERRAN, Ordering::AcqRel);
    }

    /// The code of the present job has ended, having executed so much.
    pub(crate) fn end(&self, executed: u64) {
        let job = self.job.load(Ordering::Relaxed);
        self.executed_at_end.store(executed, Ordering::Relaxed);
        self.ended.store(job, Ordering::Release);
        self.job.store(0, Ordering::Release);
    }

    /// Takes the grant that lies there, if one does: the thread to go on, the agent to take it back. It has one taker.
    pub(crate) fn take_grant(&self) -> bool {
        self.gate.swap(0, Ordering::AcqRel) != 0
    }

    /// A job begins with the thread's processor time at `cpu`.
    pub(crate) fn begin(&self, job: u64, cpu: u64) {
        self.cpu_at_start.store(cpu, Ordering::Relaxed);
        self.executed_before_segment.store(0, Ordering::Relaxed);
        self.path_before_segment.store(0, Ordering::Relaxed);
        self.segment.store(0, Ordering::Relaxed);
        self.tighter_wcet.store(0, Ordering::Relaxed);
        self.attention.fetch_and(!OVERRAN, Ordering::Relaxed);
        self.job.store(job + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_has_one_taker() {
        let control = Control::default();
        assert!(!control.take_grant());
        control.gate.store(1, Ordering::Release);
        assert!(control.take_grant());
        assert!(!control.take_grant());
    }

    #[test]
    fn a_job_that_was_asked_to_end_before_it_began_is_asked_still() {
        let control = Control::default();
        control.must_end.store(true, Ordering::Relaxed);
        control.begin(3, 100);
        assert!(control.must_end.load(Ordering::Relaxed));
    }
}
