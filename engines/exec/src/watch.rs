//! Looks at a job's execution on its own thread: at preemption points and at its end.

use crate::control::{OVERRAN, WATCHED};
use crate::task_shared::{Crossing, Overrun, TaskShared};
use horolog_sched::{Progress, Verdict};
use horolog_time::Span;
use horolog_trace::Kind;
use std::sync::atomic::Ordering;

/// At the point where a segment ended, `now` ns since the start. Whether the job's budget may be used up.
pub(crate) fn at_crossing(task: &TaskShared, crossing: Crossing, now: u64, job: u64) -> bool {
    let verdict = task.allowance.judge(crossing.left);
    note_segment(task, crossing.left, verdict, now, job);
    tell(task, crossing.left, verdict, job);
    verdict.demands_action()
}

/// At the end of the job's code, after `executed` ns in all.
pub(crate) fn at_end(task: &TaskShared, executed: u64, now: u64, job: u64) {
    let control = &task.control;
    let tighter = control.tighter_wcet.load(Ordering::Relaxed);
    let mut progress = Progress {
        segment: control.segment.load(Ordering::Relaxed) as usize,
        executed: Span::from_ns(executed),
        before_segment: Span::from_ns(control.executed_before_segment.load(Ordering::Relaxed)),
        tighter_wcet: (tighter != 0).then_some(Span::from_ns(tighter)),
    };
    let watched = control.attention.load(Ordering::Relaxed) & WATCHED != 0;
    if task.graph.is_some() && !watched {
        // Idle points did not report, so nobody knows when the last segment began: only the whole job is judged.
        progress.before_segment = progress.executed;
    }
    let verdict = task.allowance.judge(progress);
    if task.graph.is_some() && watched {
        note_segment(task, progress, verdict, now, job);
    }
    tell(task, progress, verdict, job);
}

fn note_segment(task: &TaskShared, progress: Progress, verdict: Verdict, now: u64, job: u64) {
    if verdict.segment_overrun {
        let own = progress.executed.saturating_sub(progress.before_segment);
        task.tally().segment_overruns += 1;
        task.record(Kind::Overrun, now, job, own.as_ns(), 1 + progress.segment as u64);
    }
    if verdict.harms_more_important {
        task.tally().blocked_too_long += 1;
    }
}

/// Tells the callback once a job, where the job overran or the agent saw that it would.
fn tell(task: &TaskShared, progress: Progress, verdict: Verdict, job: u64) {
    let control = &task.control;
    let seen = control.attention.fetch_and(!OVERRAN, Ordering::AcqRel) & OVERRAN != 0;
    if !seen && !verdict.demands_action() {
        return;
    }
    if control.told.swap(job + 1, Ordering::Relaxed) != job + 1 {
        task.call_back(Overrun { job, segment: progress.segment, executed: progress.executed, verdict });
    }
}
