//! Task threads that the kernel schedules: each sleeps to its own releases (shadow mode).

use crate::arrivals::{self, Arrivals};
use crate::body::TaskBody;
use crate::job::{Job, Runtime};
use crate::shared::{RunShared, TaskShared};
use horolog_sys::clock::{self, Slept};
use horolog_trace::Kind;
use std::sync::atomic::Ordering;

/// The kernel schedules: preemption points only report.
pub(crate) struct Direct;

impl Runtime for Direct {
    fn point(&self, _task: &TaskShared, _job: u64, _next: Option<u32>, _willing: bool) -> bool {
        false
    }

    fn set_preemptible(&self, _task: &TaskShared, _job: u64, _preemptible: bool) {}
}

/// The jobs of one task from the common start to the end of the run.
pub(crate) fn run_jobs(
    task: &TaskShared,
    run: &RunShared,
    start: u64,
    arrivals: &mut Arrivals,
    body: &mut dyn TaskBody,
) {
    let mut waits = false;
    while let Some(job) = arrivals.next_job().filter(|job| job.arrival < run.horizon()) {
        task.ring.promise(job.ready);
        let Some(woken) = wait_for(task, run, start, &job, waits) else {
            count_backlog(task, run, start, job, arrivals);
            break;
        };
        waits = true;
        run_job(task, run, start, &job, woken, body);
    }
    task.ring.promise(u64::MAX);
}

/// Sleeps to the job's release; the time of waking, `None` where the run ended first. `waits` is whether an
/// earlier job precedes, so that a release in the past is a vain wait.
fn wait_for(task: &TaskShared, run: &RunShared, start: u64, job: &arrivals::Job, waits: bool) -> Option<u64> {
    let at = start + job.ready;
    if waits {
        let now = clock::monotonic_ns();
        if now >= at {
            if run.is_stopping() {
                return None;
            }
            task.tally().counts.vain_waits += 1;
            task.record(Kind::Release, job.ready, job.number, job.arrival, 0);
            task.record(Kind::VainWait, now - start, job.number, 0, 0);
            return Some(now);
        }
    }
    loop {
        let slept = clock::sleep_until(at);
        let now = clock::monotonic_ns();
        if slept == Slept::Reached {
            task.record(Kind::Release, job.ready, job.number, job.arrival, 0);
            return Some(now);
        }
        if run.is_stopping() {
            return None;
        }
    }
}

/// One job, from its start at `woken` to its completion.
fn run_job(
    task: &TaskShared,
    run: &RunShared,
    start: u64,
    job: &arrivals::Job,
    woken: u64,
    body: &mut dyn TaskBody,
) {
    let control = &task.control;
    let begun = clock::thread_cpu_ns();
    control.cpu_at_start.store(begun, Ordering::Relaxed);
    control.job.store(job.number + 1, Ordering::Release);
    task.record(Kind::Start, woken - start, job.number, 0, 0);
    let mut handle = Job { facts: *job, task, run, runtime: &Direct, next: None };
    let returned = body.job(&mut handle);
    let executed = clock::thread_cpu_ns().saturating_sub(begun);
    control.job.store(0, Ordering::Release);
    let finished = clock::monotonic_ns() - start;
    let mut tally = task.tally();
    tally.returned(returned);
    let missed = tally.finished(job, finished, run.horizon());
    task.record(Kind::Completion, finished, job.number, executed, 0);
    if missed {
        task.record(Kind::Miss, finished, job.number, job.deadline, 0);
    }
    if executed > task.wcet {
        tally.counts.overruns += 1;
        task.record(Kind::Overrun, finished, job.number, executed, 0);
    }
}

/// Counts the jobs that had arrived by the end of the run and did not run.
fn count_backlog(
    task: &TaskShared,
    run: &RunShared,
    start: u64,
    first: arrivals::Job,
    arrivals: &mut Arrivals,
) {
    let horizon = run.horizon();
    let mut next = Some(first);
    while let Some(job) = next.filter(|job| job.arrival < horizon) {
        task.record(Kind::Release, job.ready, job.number, job.arrival, 0);
        let mut tally = task.tally();
        tally.unfinished(&job, horizon);
        next = arrivals.next_job();
    }
    let _ = start;
}
