//! The executive's events as triggers, so that a recorder lays them beside a program's own events, its locks and the
//! kernel's switches: `horolog trace record --event 'executive/*' -- horolog run FILE`.
//!
//! The run's own trace is written from the executive's rings, whose promises let it be merged while the run goes on; a
//! trigger that nobody has enabled is one jump.

use horolog_probe::trigger;
use horolog_trace::Kind;

/// The event `executive/KIND` with task number, job, time (ns since the start; of a release the instant at which the job
/// was ready), value and extra as in a [`horolog_trace::Record`]. In line, so that of the arms only the kind's own is
/// left.
#[inline(always)]
pub(crate) fn announce(kind: Kind, task: u32, time: u64, job: u64, value: u64, extra: u64) {
    match kind {
        Kind::Release => trigger!("executive/release", task, job, time, value, extra),
        Kind::Start => trigger!("executive/start", task, job, time, value, extra),
        Kind::Preempt => trigger!("executive/preempt", task, job, time, value, extra),
        Kind::Resume => trigger!("executive/resume", task, job, time, value, extra),
        Kind::PreemptionPoint => trigger!("executive/preemption-point", task, job, time, value, extra),
        Kind::Yield => trigger!("executive/yield", task, job, time, value, extra),
        Kind::Completion => trigger!("executive/completion", task, job, time, value, extra),
        Kind::Miss => trigger!("executive/miss", task, job, time, value, extra),
        Kind::Overrun => trigger!("executive/overrun", task, job, time, value, extra),
        Kind::Enforcement => trigger!("executive/enforcement", task, job, time, value, extra),
        Kind::VainWait => trigger!("executive/vain-wait", task, job, time, value, extra),
        Kind::VainYield => trigger!("executive/vain-yield", task, job, time, value, extra),
        Kind::Skip => trigger!("executive/skip", task, job, time, value, extra),
        _ => {}
    }
}
