//! Attached processes: the programs of tasks whose body is a command.

use crate::task_shared::TaskShared;
use horolog_sys::clock;
use horolog_sys::process::Attached;
use horolog_sys::thread_facts;
use horolog_trace::{Kind, NO_JOB, exit_status};
use std::collections::BTreeMap;
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
    /// The time between two of its jobs, ns; `None` where nothing says when one comes.
    period: Option<u64>,
    /// Its first thread did not wait within the time for its start-up.
    is_late: bool,
    /// When the run began for it, ns, and how often each of its threads had waited by then.
    began: (u64, BTreeMap<u32, u64>),
}

/// How often a thread waited in the run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Waits {
    tid: u32,
    name: String,
    count: u64,
}

/// The programs of one run; dropping them ends them.
#[derive(Default)]
pub(crate) struct Processes(Vec<Process>);

impl Processes {
    pub(crate) fn add(&mut self, task: Arc<TaskShared>, attached: Attached, period: Option<u64>) {
        let began = (clock::monotonic_ns(), BTreeMap::new());
        self.0.push(Process { task, attached, has_ended: false, period, is_late: false, began });
    }

    /// Waits until every program has waited for the first time or has ended, at most 2 s, and while `goes_on`.
    pub(crate) fn wait_until_started(&mut self, goes_on: impl Fn() -> bool) {
        let limit = clock::monotonic_ns().saturating_add(STARTUP_NS);
        let mut starting = !self.0.is_empty();
        while starting && goes_on() && clock::monotonic_ns() < limit {
            let _ = clock::sleep_until(clock::monotonic_ns() + LOOK_NS);
            starting = self.0.iter_mut().any(Process::is_starting);
        }
        let is_over = goes_on() && starting;
        for one in &mut self.0 {
            one.is_late = is_over && one.is_starting();
            let waits = one.waits().into_iter().map(|thread| (thread.tid, thread.count));
            one.began = (clock::monotonic_ns(), waits.collect());
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
            let name = &one.task.name;
            match one.attached.status() {
                Some(status) => {
                    let how = exit_status(u64::from(status.cast_unsigned()));
                    notes.push(format!("task {name}: its program {how} before the run did"));
                }
                None => {
                    let why = one.without_jobs(clock::monotonic_ns());
                    notes.extend(why.map(|why| format!("task {name}: {why}")));
                    one.attached.ask_to_end();
                }
            }
        }
        let limit = clock::monotonic_ns().saturating_add(PATIENCE_NS);
        self.0.iter_mut().for_each(|one| one.attached.end_by(limit));
        notes
    }
}

impl Process {
    fn is_starting(&mut self) -> bool {
        !self.attached.waits() && self.attached.status().is_none()
    }

    /// How often each of its threads has waited since it began.
    fn waits(&self) -> Vec<Waits> {
        let threads = thread_facts::of_process(self.attached.id()).unwrap_or_default();
        let of = |tid| thread_facts::waits_of(tid).map(|(name, count)| Waits { tid, name, count });
        threads.into_iter().filter_map(of).collect()
    }

    /// Why no job of it ends, in words, where that is seen.
    fn without_jobs(&self, now: u64) -> Option<String> {
        let (since, before) = &self.began;
        let in_run = |thread: Waits| {
            let count = thread.count.saturating_sub(before.get(&thread.tid).copied().unwrap_or(0));
            Waits { count, ..thread }
        };
        let waits: Vec<Waits> = self.waits().into_iter().map(in_run).collect();
        let jobs = self.period.map_or(0, |period| now.saturating_sub(*since) / period.max(1));
        without_jobs(self.attached.id(), self.is_late, &waits, jobs)
    }
}

/// What is wrong with a program whose threads waited so often in the run, in which so many of its jobs came. The waits of the first
/// thread end jobs. One that does not wait has none that ends; where another thread waited meanwhile, the jobs are likely there.
fn without_jobs(first: u32, is_late: bool, waits: &[Waits], jobs: u64) -> Option<String> {
    let own = waits.iter().find(|thread| thread.tid == first)?.count;
    // Of a thread that was still at its start-up any wait is a job's end; of one that waited then, at least one of two jobs has to.
    if own > 0 || (!is_late && jobs < 2) {
        return None;
    }
    let what = match is_late {
        true => format!(
            "the first thread of its program (id {first}) did not wait within 2 s of its start, nor in the run"
        ),
        false => format!(
            "the first thread of its program (id {first}) waited before the run and did nothing in it"
        ),
    };
    let others = waits.iter().filter(|thread| thread.tid != first && thread.count > 0);
    match others.max_by_key(|thread| thread.count) {
        Some(other) => Some(format!(
            "{what}, while its thread `{}` (id {}) waited {}: likely the periodic work is in that thread, and the waits of the first \
             thread alone end jobs; let the first thread do it, or give it as a function (`body = {{ library = …, symbol = … }}`)",
            other.name,
            other.tid,
            match other.count {
                1 => "once".to_owned(),
                count => format!("{count} times"),
            }
        )),
        None if is_late => Some(format!(
            "{what}, so no job of it ended; let it wait for its next time at the end of each job"
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(of: &[(u32, &str, u64)]) -> Vec<Waits> {
        of.iter().map(|&(tid, name, count)| Waits { tid, name: name.into(), count }).collect()
    }

    /// Another thread is named where it waited, were it once, and the first did not; two jobs have to have come.
    #[test]
    fn another_thread_is_named_only_where_it_waited_and_the_first_did_not() {
        let named = |of: &[(u32, &str, u64)], is_late, jobs| {
            without_jobs(7, is_late, &waits(of), jobs)
                .map(|why| why.contains("thread `callback` (id 9) waited once"))
        };
        let one = [(7, "main", 0), (8, "idle", 0), (9, "callback", 1)];
        assert_eq!(named(&one, true, 0), Some(true));
        assert_eq!(named(&one, false, 2), Some(true));
        assert_eq!(named(&one, false, 1), None);
        assert_eq!(named(&[(7, "main", 1), (9, "callback", 1)], true, 2), None);
        assert_eq!(named(&[(7, "main", 1), (9, "callback", 1)], false, 2), None);
        // No evidence, no cause: what is seen is told, and of a thread that slept nothing.
        assert_eq!(named(&[(7, "main", 0), (9, "callback", 0)], true, 2), Some(false));
        assert_eq!(named(&[(7, "main", 0), (9, "callback", 0)], false, 2), None);
        // It has ended meanwhile.
        assert_eq!(named(&[(9, "callback", 1)], true, 2), None);
    }
}
