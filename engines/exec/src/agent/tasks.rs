//! A task's thread under the agent: it sleeps on its gate, runs the job that it is given, and says when it is done.

use super::cpu::CpuAgent;
use super::driver::Cause;
use crate::body::TaskBody;
use crate::job::{Job, Runtime};
use crate::shared::{OVERRAN, SHOULD_YIELD, TaskShared, WATCHED};
use horolog_sys::{clock, futex};
use horolog_trace::Kind;
use std::sync::atomic::Ordering;

/// What a job's calls do under the agent.
struct Driven<'a> {
    agent: &'a CpuAgent,
    seat: usize,
}

/// The jobs of the task in `seat`, from the common start to the end of the run.
pub(crate) fn run_jobs(agent: &CpuAgent, task: &TaskShared, seat: usize, body: &mut dyn TaskBody) {
    let driven = Driven { agent, seat };
    let mut granted = wait_for_grant(agent, task);
    while granted {
        let Some(next) = run_job(&driven, task, body) else { break };
        granted = next || wait_for_grant(agent, task);
    }
    task.ring.promise(u64::MAX);
}

/// Sleeps on the gate; `false` where the run is over.
fn wait_for_grant(agent: &CpuAgent, task: &TaskShared) -> bool {
    while task.control.gate.swap(0, Ordering::AcqRel) == 0 {
        if agent.run.is_stopping() {
            return false;
        }
        let _ = futex::wait(&task.control.gate, 0, u64::MAX);
    }
    !agent.run.is_stopping()
}

/// One job. Whether the next one follows at once; `None` where the run is over.
fn run_job(driven: &Driven<'_>, task: &TaskShared, body: &mut dyn TaskBody) -> Option<bool> {
    let Driven { agent, seat } = *driven;
    let facts = task.assigned();
    let begun = clock::thread_cpu_ns();
    task.begin(facts.number, begun);
    let mut job = Job { facts, task, run: &agent.run, runtime: driven, next: None };
    let returned = body.job(&mut job);
    job.report_overrun_at_end();
    let executed = clock::thread_cpu_ns().saturating_sub(begun);
    task.control.job.store(0, Ordering::Release);
    loop {
        if agent.run.is_stopping() {
            return None;
        }
        let (told, parks) =
            agent.pass(seat, Cause::Other, |driver, now| driver.complete(seat, now, executed, returned));
        if told.is_ok() {
            return Some(!parks);
        }
        // Somebody else is meant to run: this thread got the processor because that one sleeps in its own code.
        if parks && !wait_for_grant(agent, task) {
            return None;
        }
    }
}

impl Runtime for Driven<'_> {
    fn point(&self, task: &TaskShared, job: u64, next: Option<u32>, willing: bool) -> bool {
        let attention = task.control.attention.load(Ordering::Acquire);
        let waiting = task.somebody_waits(attention);
        if attention & WATCHED != 0 {
            let segment = task.enter_segment(next);
            if let Some(progress) = segment {
                task.note_point(progress, self.agent.now(), job);
            }
            if task.record == crate::RecordLevel::All {
                let segment = segment.map_or(0, |progress| progress.entered);
                task.record(Kind::PreemptionPoint, self.agent.now(), job, segment as u64, u64::from(waiting));
            }
        }
        if waiting && willing {
            let seat = self.seat;
            let (_, parks) = self.agent.pass(seat, Cause::Point, |driver, now| driver.point(seat, now));
            if parks {
                let _ = wait_for_grant(self.agent, task);
            }
        }
        debug_assert!(attention & (SHOULD_YIELD | WATCHED | OVERRAN) != 0);
        waiting
    }

    fn set_preemptible(&self, task: &TaskShared, _job: u64, preemptible: bool) {
        let seat = self.seat;
        let (_, parks) = self
            .agent
            .pass(seat, Cause::Other, |driver, now| driver.set_preemptible(seat, now, preemptible));
        if parks {
            let _ = wait_for_grant(self.agent, task);
        }
    }
}
