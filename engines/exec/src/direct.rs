//! Task threads that the kernel schedules: each sleeps to its own releases (shadow mode).

use crate::arrivals::{self, Arrivals};
use crate::bands;
use crate::body::TaskBody;
use crate::job::{Job, Runtime};
use crate::shared::RunShared;
use crate::task_shared::TaskShared;
use crate::watch;
use horolog_sched::OverrunAction;
use horolog_sys::clock::{self, Slept};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_trace::Kind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a job keeps more important tasks out where the kernel decides; for the comparison with the agent's flag.
pub(crate) enum Exclusion {
    /// Not at all: preemptive.
    None,
    /// Raise this thread above all tasks: two system calls a job.
    Raise,
    /// Lower each of these below this thread, and put them back: two system calls a job for each.
    Suspend(Vec<(Arc<TaskShared>, Class)>),
}

/// A task whose thread the kernel schedules.
pub(crate) struct Direct {
    pub(crate) class: Class,
    pub(crate) exclusion: Exclusion,
}

impl Direct {
    /// Puts a class on a thread. A refusal can only mean that the thread has ended, which is harmless here.
    fn put(tid: u32, class: Class) {
        if let Class::Fifo(_) = class {
            let _ = set_class(tid, class);
        }
    }

    fn keep_out(&self) {
        match &self.exclusion {
            Exclusion::None => {}
            Exclusion::Raise => Direct::put(0, Class::Fifo(bands::ABOVE_TASKS)),
            Exclusion::Suspend(others) => {
                for (other, _) in others {
                    Direct::put(other.tid.load(Ordering::Relaxed), Class::Fifo(bands::DEMOTED));
                }
            }
        }
    }

    fn let_in(&self) {
        match &self.exclusion {
            Exclusion::None => {}
            Exclusion::Raise => Direct::put(0, self.class),
            Exclusion::Suspend(others) => {
                for (other, class) in others {
                    Direct::put(other.tid.load(Ordering::Relaxed), *class);
                }
            }
        }
    }
}

impl Runtime for Direct {
    /// The kernel preempts where it likes; there is nobody to give way to.
    fn point(&self, _task: &TaskShared, _job: u64, _next: Option<u32>, _willing: bool) -> bool {
        false
    }

    /// Where a task waits for a device, the agent schedules its processor.
    fn ask(&self, _task: &TaskShared, _request: usize) {}

    /// Where there are modes, the agent schedules every processor.
    fn request_mode(&self, _task: &TaskShared, _mode: u32) {}

    /// Where tasks share resources, the agent schedules their processor.
    fn lock(&self, _task: &TaskShared, _job: u64, _resource: usize) -> u64 {
        0
    }

    fn unlock(&self, _task: &TaskShared, _job: u64, _resource: usize) {}

    fn set_preemptible(&self, _task: &TaskShared, _job: u64, preemptible: bool) {
        if let Class::Fifo(_) = self.class {
            Direct::put(0, if preemptible { self.class } else { Class::Fifo(bands::ABOVE_TASKS) });
        }
    }
}

/// A task's thread during the run.
struct Thread<'a> {
    task: &'a TaskShared,
    run: &'a RunShared,
    start: u64,
    direct: &'a Direct,
    /// The next release is dropped: the job before overran.
    skips: bool,
}

/// The jobs of one task from the common start to the end of the run.
pub(crate) fn run_jobs(
    direct: &Direct,
    task: &TaskShared,
    run: &RunShared,
    start: u64,
    arrivals: &mut Arrivals,
    body: &mut dyn TaskBody,
) {
    let mut thread = Thread { task, run, start, direct, skips: false };
    let mut waits = false;
    while let Some(job) = arrivals.next_job().filter(|job| job.arrival < run.horizon()) {
        task.ring.promise(job.ready);
        if std::mem::take(&mut thread.skips) {
            task.tally().counts.skipped += 1;
            task.record(Kind::Skip, job.ready, job.number, job.arrival, 0);
            continue;
        }
        let Some(woken) = thread.wait_for(&job, waits) else {
            thread.count_backlog(job, arrivals);
            break;
        };
        waits = true;
        thread.run_job(&job, woken, body);
    }
    task.ring.promise(u64::MAX);
}

impl Thread<'_> {
    /// Sleeps to the job's release; the time of waking, `None` where the run ended first. `waits` is whether an
    /// earlier job precedes, so that a release in the past is a vain wait.
    fn wait_for(&self, job: &arrivals::Job, waits: bool) -> Option<u64> {
        let at = self.start.checked_add(job.ready)?;
        if waits {
            let now = clock::monotonic_ns();
            if now >= at {
                if self.run.is_stopping() {
                    return None;
                }
                self.task.tally().counts.vain_waits += 1;
                self.task.record_release(job);
                self.task.record(Kind::VainWait, now - self.start, job.number, 0, 0);
                return Some(now);
            }
        }
        loop {
            let slept = clock::sleep_until(at);
            let now = clock::monotonic_ns();
            // The run may have ended meanwhile: earlier than was planned, or before this thread got the processor.
            if self.run.is_stopping() || job.arrival >= self.run.horizon() {
                return None;
            }
            if slept == Slept::Reached {
                self.task.record_release(job);
                return Some(now);
            }
        }
    }

    /// One job, from its start at `woken` to its completion.
    fn run_job(&mut self, job: &arrivals::Job, woken: u64, body: &mut dyn TaskBody) {
        let Thread { task, run, start, direct, .. } = *self;
        let begun = clock::thread_cpu_ns();
        task.begin(job.number, begun);
        task.record(Kind::Start, woken - start, job.number, 0, 0);
        task.latch(job, woken - start);
        let mut handle = Job { facts: *job, task, run, runtime: direct, next: None };
        direct.keep_out();
        let returned = body.job(&mut handle);
        task.crash.leave_code();
        task.put_values(job);
        let executed = clock::thread_cpu_ns().saturating_sub(begun);
        task.end(executed);
        let finished = clock::monotonic_ns() - start;
        let mut tally = task.tally();
        tally.returned(returned);
        if run.is_stopping() {
            // It was asked to end, so when it would have completed is not known.
            tally.unfinished(job, run.closed());
            drop(tally);
            return direct.let_in();
        }
        let missed = tally.finished(job, finished);
        let overran = executed > task.wcet;
        tally.counts.overruns += u64::from(overran);
        drop(tally);
        task.record(Kind::Completion, finished, job.number, executed, 0);
        task.publish_values(&task.ring, job, finished);
        if missed {
            // Where the program is traced as a flight recorder, what led here is worth keeping.
            horolog_probe::session::snapshot::request();
            task.record(Kind::Miss, finished, job.number, job.deadline, 0);
        }
        if overran {
            task.record(Kind::Overrun, finished, job.number, executed, 0);
            self.skips = task.overrun == OverrunAction::Skip;
        }
        if self.skips {
            task.record(Kind::Enforcement, finished, job.number, 0, 1);
        }
        watch::at_end(task, executed, finished, job.number);
        direct.let_in();
    }

    /// Counts the jobs that had arrived by the end of the run and did not run, unless that was done while this thread did not get the
    /// processor.
    fn count_backlog(&self, first: arrivals::Job, arrivals: &mut Arrivals) {
        if !self.task.may_count_backlog() {
            return;
        }
        let (horizon, closed) = (self.run.horizon(), self.run.closed());
        let mut next = Some(first);
        while let Some(job) = next.filter(|job| job.arrival < horizon) {
            self.task.record_release(&job);
            self.task.tally().unfinished(&job, closed);
            next = arrivals.next_job();
        }
    }
}
