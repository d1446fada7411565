//! Jobs out of the kernel's switches and wake-ups: the one builder of jobs of threads that do not tell of them.
//!
//! A wake-up releases a job, the first switch to the thread starts it, a switch away while it could run on preempts it,
//! and the switch with which it waits completes it. So a job is what a thread does between two waits.
//!
//! | the kernel's letter of the state in which a thread leaves | meaning |
//! |---|---|
//! | `R` | preempted |
//! | `S`, `I`, `P` and all others | it waits: its job has ended |
//! | `D` | it sleeps uninterruptibly (a page, a disk, a lock of the kernel): its job goes on when it wakes |
//! | `T`, `t` | it was stopped from outside (SIGSTOP, a debugger): its job goes on when it is continued |
//! | `X`, `Z` | it has ended, and its job with it: neither completed nor preempted |
//!
//! What a thread does between its birth and its first wait is start-up and no job, and neither is what was under way
//! when the record began.

use crate::{Kind, LossCause, NO_JOB, NO_TASK, Record};
use horolog_time::Instant;
use std::collections::HashMap;

/// When and on which processor something happened, ns on the record's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// When.
    pub time: u64,
    /// Where.
    pub cpu: u32,
}

/// How a thread left its processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It could have run on.
    Runnable,
    /// It waits.
    Waiting,
    /// It sleeps within its job (`D`), or was stopped (`T`, `t`).
    Paused,
    /// It has ended.
    Dead,
}

impl Left {
    /// What the kernel's letter of a thread's state says.
    #[must_use]
    pub fn of_letter(letter: u8) -> Left {
        match letter {
            b'R' => Left::Runnable,
            b'D' | b'T' | b't' => Left::Paused,
            b'X' | b'Z' => Left::Dead,
            _ => Left::Waiting,
        }
    }
}

/// The state of a followed thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not known: whether it is in the middle of a job the record does not tell.
    Unknown,
    /// Waits between two jobs.
    Asleep,
    /// Woken, and has not run.
    Released,
    /// Has this processor since; `woken`: when it was woken meanwhile, which means that it had slept unseen, or was
    /// about to sleep.
    Running { cpu: u32, since: u64, woken: Option<u64> },
    /// Lost it.
    Preempted,
    /// Lost it unseen: whether it was preempted or sleeps only a wake-up can tell.
    Vanished,
    /// Sleeps or is stopped within its job.
    Paused,
    /// The same, over: it has not run since.
    Unpaused,
}

/// A thread that serves a task.
#[derive(Clone, Copy, Debug)]
struct Followed {
    task: u32,
    state: State,
    /// Its job; `None`: none that counts (start-up, the beginning of the record, outside the window).
    job: Option<u64>,
    /// It was born on record and has not waited yet.
    is_starting: bool,
    /// What its job is on record to have executed: less than it did where a switch is missing.
    executed: u64,
}

/// Follows threads through the kernel's events, which come in the order of time.
///
/// For a switch: [`KernelJobs::chain`], [`KernelJobs::leave`] for who leaves, [`KernelJobs::enter`] for who comes. The
/// records of jobs go to `out`, their times counted from the origin.
///
/// ```
/// use horolog_trace::kernel_jobs::{At, KernelJobs};
/// use horolog_trace::{Kind, Record};
/// let mut jobs = KernelJobs::new(100, true);
/// jobs.follow(7, 0);
/// let mut records: Vec<Record> = Vec::new();
/// let mut out = |record| records.push(record);
/// let at = |time| At { time, cpu: 1 };
/// jobs.wake(at(110), 7, &mut out);
/// jobs.enter(at(112), 7, &mut out);
/// jobs.leave(at(150), 7, b'S', false, &mut out);
/// let kinds: Vec<Kind> = records.iter().map(|record| record.kind).collect();
/// assert_eq!(kinds, [Kind::Release, Kind::Start, Kind::Completion]);
/// assert_eq!((records[2].time.as_ns(), records[2].value), (50, 38));
/// ```
#[derive(Clone, Debug)]
pub struct KernelJobs {
    origin: u64,
    /// Jobs released from here on count, up to `until`.
    from: u64,
    until: u64,
    /// Whether the record tells of wake-ups at all.
    wakeups: bool,
    followed: HashMap<u32, Followed>,
    /// Per task, its next job number; several threads may serve one task one after the other.
    next_job: HashMap<u32, u64>,
    /// Who came last on each processor, and when: the next switch there must take the processor from the same thread.
    running: HashMap<u32, (u32, u64)>,
    /// Jobs (task, number) that ended with their thread.
    died: Vec<(u32, u64)>,
}

/// Where the records of jobs go.
pub trait Out: FnMut(Record) {}
impl<F: FnMut(Record)> Out for F {}

impl KernelJobs {
    /// Follows no thread yet. `origin`: from when times count; `wakeups`: whether the record holds wake-ups (else the
    /// switch to a thread that waited releases its job).
    #[must_use]
    pub fn new(origin: u64, wakeups: bool) -> KernelJobs {
        KernelJobs {
            origin,
            from: 0,
            until: u64::MAX,
            wakeups,
            followed: HashMap::new(),
            next_job: HashMap::new(),
            running: HashMap::new(),
            died: Vec::new(),
        }
    }

    /// Only jobs released within `from..until` count; the others leave no records.
    #[must_use]
    pub fn within(mut self, from: u64, until: u64) -> KernelJobs {
        (self.from, self.until) = (from, until);
        self
    }

    /// No job released from `until` on counts.
    pub fn end_at(&mut self, until: u64) {
        self.until = self.until.min(until);
    }

    /// This thread serves this task from now on.
    pub fn follow(&mut self, tid: u32, task: u32) {
        self.followed.entry(tid).or_insert(Followed {
            task,
            state: State::Unknown,
            job: None,
            is_starting: false,
            executed: 0,
        });
    }

    /// The thread begins to exist: what it does until it waits is its start-up.
    pub fn born(&mut self, tid: u32) {
        if let Some(thread) = self.followed.get_mut(&tid) {
            thread.is_starting = true;
        }
    }

    /// The job that a thread is at.
    #[must_use]
    pub fn job_of(&self, tid: u32) -> Option<u64> {
        self.followed.get(&tid)?.job
    }

    /// Jobs (task, number) that ended with their thread, so that they are neither completed nor preempted.
    #[must_use]
    pub fn died(&self) -> &[(u32, u64)] {
        &self.died
    }

    /// The thread has not waited since before the window began: what it does is a job from now on.
    pub fn adopt(&mut self, at: At, tid: u32, out: &mut impl Out) {
        let Some(mut thread) = self.followed.get(&tid).copied() else { return };
        let is_unknown = thread.state == State::Unknown && !thread.is_starting;
        if thread.job.is_some() || thread.state == State::Asleep || is_unknown || !self.counts(at.time) {
            return;
        }
        let was = thread.state;
        thread.is_starting = false;
        self.release(at, &mut thread, out);
        if let State::Running { cpu, .. } = was {
            thread.state = State::Running { cpu, since: at.time, woken: None };
            self.push(at, Kind::Start, &thread, 0, out);
        }
        self.followed.insert(tid, thread);
    }

    fn counts(&self, time: u64) -> bool {
        (self.from..self.until).contains(&time)
    }

    fn record(&self, at: At, kind: Kind, (task, job): (u32, u64), value: u64, extra: u64) -> Record {
        let time = Instant::from_ns(at.time.saturating_sub(self.origin));
        Record { time, kind, cpu: u16::try_from(at.cpu).unwrap_or(u16::MAX), task, job, value, extra }
    }

    /// A record of the thread's job, where it has one that counts.
    fn push(&self, at: At, kind: Kind, thread: &Followed, value: u64, out: &mut impl Out) {
        if let Some(job) = thread.job {
            out(self.record(at, kind, (thread.task, job), value, 0));
        }
    }

    fn lost(&self, at: At, cause: LossCause, out: &mut impl Out) {
        out(self.record(at, Kind::Lost, (NO_TASK, NO_JOB), 1, cause as u64));
    }

    /// A wake-up of a thread.
    pub fn wake(&mut self, at: At, tid: u32, out: &mut impl Out) {
        let Some(mut thread) = self.followed.get(&tid).copied() else { return };
        match thread.state {
            State::Asleep | State::Unknown => self.release(at, &mut thread, out),
            State::Vanished => {
                self.lose_job(at, &mut thread, out);
                self.release(at, &mut thread, out);
            }
            State::Running { ref mut woken, .. } => *woken = Some(at.time),
            State::Paused => thread.state = State::Unpaused,
            State::Released | State::Preempted | State::Unpaused => return,
        }
        self.followed.insert(tid, thread);
    }

    /// A job ended, and the switch with which it waited is not on record: when is not known, so its completion is lost.
    fn lose_job(&self, at: At, thread: &mut Followed, out: &mut impl Out) {
        if thread.job.is_some() {
            self.lost(at, LossCause::Kernel, out);
        }
        thread.job = None;
        thread.state = State::Asleep;
    }

    fn release(&mut self, at: At, thread: &mut Followed, out: &mut impl Out) {
        thread.state = State::Released;
        thread.executed = 0;
        thread.job = None;
        if thread.is_starting || !self.counts(at.time) {
            return;
        }
        let next = self.next_job.entry(thread.task).or_default();
        thread.job = Some(*next);
        *next += 1;
        self.push(at, Kind::Release, thread, at.time - self.origin.min(at.time), out);
    }

    /// Compares a switch with the one before it on its processor: since when a switch is missing, if one is. Whoever
    /// had come then has lost the processor unseen.
    pub fn chain(&mut self, at: At, prev: u32, next: u32, out: &mut impl Out) -> Option<u64> {
        let (who, since) = self.running.insert(at.cpu, (next, at.time)).filter(|(who, _)| *who != prev)?;
        self.vanish(who, (at.cpu, since), out);
        Some(since)
    }

    /// The thread lost its processor unseen: that stretch counts for no job.
    fn vanish(&mut self, tid: u32, stretch: (u32, u64), out: &mut impl Out) {
        let Some(mut thread) = self.followed.get(&tid).copied() else { return };
        let State::Running { cpu, since, woken } = thread.state else { return };
        if (cpu, since) != stretch {
            return;
        }
        thread.state = State::Vanished;
        if let Some(time) = woken {
            let at = At { time, cpu };
            self.lose_job(at, &mut thread, out);
            self.release(at, &mut thread, out);
        }
        self.followed.insert(tid, thread);
    }

    /// A stretch of which records of `cpu` (`None`: of every processor) are missing begins or ends at `at`: of no thread that
    /// may have run there is it known where it stands. A thread that waited is known again with its next wake-up.
    pub fn lose(&mut self, cpu: Option<u32>) {
        match cpu {
            Some(cpu) => drop(self.running.remove(&cpu)),
            None => self.running.clear(),
        }
        for thread in self.followed.values_mut() {
            thread.job = None;
            thread.state = State::Unknown;
        }
    }

    /// A thread leaves its processor in the state of this letter. `told`: the gap before it is on record already.
    pub fn leave(&mut self, at: At, tid: u32, letter: u8, told: bool, out: &mut impl Out) {
        let Some(mut thread) = self.followed.get(&tid).copied() else { return };
        if let State::Running { cpu, since, .. } = thread.state
            && cpu != at.cpu
        {
            // It left the other processor unseen, and reached this one unseen.
            self.vanish(tid, (cpu, since), out);
            thread = self.followed.get(&tid).copied().unwrap_or(thread);
        }
        // It loses a processor that nothing gave it: the kernel hid the switch, or it was lost.
        if matches!(
            thread.state,
            State::Released | State::Preempted | State::Vanished | State::Paused | State::Unpaused
        ) {
            if !told && thread.job.is_some() {
                self.lost(at, LossCause::HiddenSwitch, out);
            }
            self.take(at, tid, &mut thread, out);
        }
        let left = Left::of_letter(letter);
        if let State::Running { since, .. } = thread.state {
            thread.executed = thread.executed.saturating_add(at.time.saturating_sub(since));
            match left {
                Left::Runnable => {
                    thread.state = State::Preempted;
                    self.push(at, Kind::Preempt, &thread, 0, out);
                }
                Left::Paused => thread.state = State::Paused,
                Left::Waiting => self.push(at, Kind::Completion, &thread, thread.executed, out),
                Left::Dead => self.died.extend(thread.job.map(|job| (thread.task, job))),
            }
        }
        if matches!(left, Left::Waiting | Left::Dead) {
            thread.state = State::Asleep;
            thread.job = None;
            thread.is_starting = left == Left::Dead;
        }
        self.followed.insert(tid, thread);
    }

    /// A thread gets a processor.
    pub fn enter(&mut self, at: At, tid: u32, out: &mut impl Out) {
        let Some(mut thread) = self.followed.get(&tid).copied() else { return };
        self.take(at, tid, &mut thread, out);
        self.followed.insert(tid, thread);
    }

    fn take(&mut self, at: At, tid: u32, thread: &mut Followed, out: &mut impl Out) {
        if let State::Running { cpu, since, .. } = thread.state {
            // It left a processor unseen before it reached this one.
            self.vanish(tid, (cpu, since), out);
            *thread = self.followed.get(&tid).copied().unwrap_or(*thread);
        }
        if thread.state == State::Vanished && !self.wakeups {
            // Whether its job goes on or a new one begins cannot be known.
            self.lose_job(at, thread, out);
            thread.state = State::Unknown;
        }
        // Without wake-ups in the record the switch is the first that is seen of a job.
        if thread.state == State::Asleep {
            self.release(at, thread, out);
        }
        let kind = match thread.state {
            State::Released => Some(Kind::Start),
            State::Preempted | State::Vanished => Some(Kind::Resume),
            State::Paused | State::Unpaused => None,
            // A thread that has not waited yet may still be asked for as a job.
            State::Unknown if thread.is_starting => None,
            _ => return,
        };
        thread.state = State::Running { cpu: at.cpu, since: at.time, woken: None };
        if let Some(kind) = kind {
            self.push(at, kind, thread, 0, out);
        }
    }
}

#[cfg(test)]
mod tests;
