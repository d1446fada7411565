//! Attached processes: the programs of tasks whose body is a command.

use crate::task_shared::TaskShared;
use horolog_sys::clock;
use horolog_sys::process::Attached;
use horolog_trace::{Kind, NO_JOB};
use std::sync::Arc;

/// How long programs may take until they wait for the first time: their start-up, which is none of their jobs.
const STARTUP_NS: u64 = 2_000_000_000;
/// How often that is looked at.
const LOOK_NS: u64 = 1_000_000;
/// How long a program may take to end once it was asked to.
const PATIENCE_NS: u64 = 500_000_000;

/// One program.
struct Process {
    task: Arc<TaskShared>,
    attached: Attached,
    /// Its end is on record.
    has_ended: bool,
}

/// The programs of one run; dropping them ends them.
#[derive(Default)]
pub(crate) struct Processes(Vec<Process>);

impl Processes {
    pub(crate) fn add(&mut self, task: Arc<TaskShared>, attached: Attached) {
        self.0.push(Process { task, attached, has_ended: false });
    }

    /// Waits until every program has waited for the first time or has ended, at most 2 s, and while `goes_on`.
    pub(crate) fn wait_until_started(&mut self, goes_on: impl Fn() -> bool) {
        let limit = clock::monotonic_ns().saturating_add(STARTUP_NS);
        let mut starting = !self.0.is_empty();
        while starting && goes_on() && clock::monotonic_ns() < limit {
            let _ = clock::sleep_until(clock::monotonic_ns() + LOOK_NS);
            starting = self.0.iter_mut().any(|one| !one.attached.waits() && one.attached.status().is_none());
        }
    }

    /// Records the end of every program that has ended by `now`, ns since the start.
    pub(crate) fn look(&mut self, now: u64) {
        for one in self.0.iter_mut().filter(|one| !one.has_ended) {
            let Some(status) = one.attached.status() else {
                one.task.ring.promise(now);
                continue;
            };
            one.has_ended = true;
            one.task.record(Kind::Exit, now, NO_JOB, u64::from(status.cast_unsigned()), 0);
            one.task.ring.promise(u64::MAX);
        }
    }

    /// Ends the programs; says which had ended before by themselves.
    pub(crate) fn end(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        for one in &mut self.0 {
            one.task.ring.promise(u64::MAX);
            match one.attached.ended() {
                Some(how) => notes.push(format!("task {}: {how} before the run did", one.task.name)),
                None => one.attached.end(PATIENCE_NS),
            }
        }
        notes
    }
}
