//! Counts of one task during a run.

use crate::arrivals::Job;
use horolog_time::Span;
use horolog_trace::{ResponseRecorder, TaskOutcome};

/// Counts of one task. Kept behind a lock that only its own thread takes while the run lasts.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) counts: TaskOutcome,
    pub(crate) responses: ResponseRecorder,
    /// Jobs whose function returned something other than zero, and the first such value.
    pub(crate) failed: u64,
    pub(crate) first_failure: Option<i32>,
    /// What the reader should know in any case.
    pub(crate) note: Option<&'static str>,
    /// What its code has to say.
    pub(crate) remarks: Vec<String>,
    /// Preemption points that found their flag set and nobody waiting.
    pub(crate) vain_yields: u64,
    /// Segments that executed longer than their worst case.
    pub(crate) segment_overruns: u64,
    /// Segments that blocked more important tasks for longer than analysed.
    pub(crate) blocked_too_long: u64,
    /// Values that were latched and gone before a late job could take them.
    pub(crate) overwritten: u64,
    /// Resources that jobs still held when their code returned.
    pub(crate) left_locked: u64,
    /// Preemption points beyond the last segment.
    pub(crate) extra_points: u64,
    /// Preemption points at a branch where the job did not announce a legal way.
    pub(crate) unannounced: u64,
    /// Calls that named no resource, link, request or mode of the file, and the first such name.
    pub(crate) unknown_names: u64,
    pub(crate) first_unknown: Option<(String, &'static str)>,
    /// Locks of what the job held already, unlocks of what it did not hold, and the first resource of each.
    pub(crate) locked_twice: u64,
    pub(crate) unlocked_unheld: u64,
    pub(crate) first_misused: [Option<String>; 2],
    /// Page faults of the task's thread from the common start to its last job.
    pub(crate) page_faults: u64,
}

/// Counters of response times that need no memory later: values that differ by a factor of up to 64.
const ROOM: usize = 6 << 10;

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            counts: TaskOutcome::default(),
            responses: ResponseRecorder::with_room(ROOM),
            failed: 0,
            first_failure: None,
            note: None,
            remarks: Vec::new(),
            vain_yields: 0,
            segment_overruns: 0,
            blocked_too_long: 0,
            overwritten: 0,
            left_locked: 0,
            extra_points: 0,
            unannounced: 0,
            unknown_names: 0,
            first_unknown: None,
            locked_twice: 0,
            unlocked_unheld: 0,
            first_misused: [None, None],
            page_faults: 0,
        }
    }
}

impl Tally {
    /// Counts a job that finished at `finished` (ns since the start). Returns whether it missed its deadline.
    pub(crate) fn finished(&mut self, job: &Job, finished: u64) -> bool {
        self.counts.jobs += 1;
        let in_time = finished <= job.deadline;
        self.counts.completed += 1;
        self.counts.missed += u64::from(!in_time);
        self.responses.record(Span::from_ns(finished.saturating_sub(job.arrival)));
        !in_time
    }

    /// Counts a job that was released and had not finished when the run was over: a miss only if its deadline had passed.
    pub(crate) fn unfinished(&mut self, job: &Job, closed: u64) {
        self.counts.jobs += 1;
        self.counts.unfinished += 1;
        self.counts.missed += u64::from(job.deadline < closed);
    }

    /// Counts a call that named nothing of the file, or nothing that it could be made with: `but` says what the name is.
    pub(crate) fn named_nothing(&mut self, name: &str, what_it_is: &'static str) {
        self.unknown_names += 1;
        self.first_unknown.get_or_insert_with(|| (name.to_owned(), what_it_is));
    }

    /// Counts a lock of a resource that the job holds already.
    pub(crate) fn locked_twice(&mut self, resource: &str) {
        self.locked_twice += 1;
        self.first_misused[0].get_or_insert_with(|| resource.to_owned());
    }

    /// Counts an unlock of a resource that the job does not hold.
    pub(crate) fn unlocked_unheld(&mut self, resource: &str) {
        self.unlocked_unheld += 1;
        self.first_misused[1].get_or_insert_with(|| resource.to_owned());
    }

    /// Counts what the job's function returned.
    pub(crate) fn returned(&mut self, value: i32) {
        if value != 0 {
            self.failed += 1;
            self.first_failure.get_or_insert(value);
        }
    }

    /// What the reader should know about this task.
    pub(crate) fn notes(&self, task: &str, is_memory_locked: bool) -> Vec<String> {
        let mut notes: Vec<String> = self.note.iter().map(|note| format!("task {task}: {note}")).collect();
        notes.extend(self.remarks.iter().map(|remark| format!("task {task}: {remark}")));
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("task {task}: {count} {what}"));
            }
        };
        note(self.vain_yields, "preemption points found their flag set and nobody waiting");
        note(self.segment_overruns, "segments executed longer than their worst case");
        note(self.blocked_too_long, "segments blocked more important tasks for longer than analysed");
        note(self.overwritten, "values of links were overwritten before late jobs could take them");
        note(self.left_locked, "times a job ended with a resource locked; horolog unlocked it");
        note(self.extra_points, "preemption points lay beyond the last segment");
        note(self.unannounced, "branches were taken without announcing a legal one; the first was assumed");
        note(
            self.page_faults,
            match is_memory_locked {
                true => {
                    "page faults in its jobs: memory that was mapped after the start, or a stack deeper than --stack"
                }
                false => {
                    "page faults in its jobs: memory was not locked, which takes CAP_IPC_LOCK or a greater \
                     RLIMIT_MEMLOCK (`horolog doctor --for run`)"
                }
            },
        );
        if let Some((name, but)) = &self.first_unknown {
            let what = format!(
                "calls named no resource, link, request or mode that the file gives the task (the first: `{name}`{but})"
            );
            note(self.unknown_names, &format!("{what}; they did nothing"));
        }
        let [twice, unheld] = self.first_misused.each_ref().map(|name| name.as_deref().unwrap_or_default());
        note(
            self.locked_twice,
            &format!(
                "locks were of a resource that the job held already (the first: `{twice}`); the first unlock lets go of it: lock it once"
            ),
        );
        note(
            self.unlocked_unheld,
            &format!(
                "unlocks were of a resource that the job did not hold (the first: `{unheld}`); they did nothing: lock it before"
            ),
        );
        if let Some(value) = self.first_failure {
            note(self.failed, &format!("of {} jobs returned an error, the first {value}", self.counts.jobs));
        }
        notes
    }

    /// The task's outcome.
    pub(crate) fn outcome(&self) -> TaskOutcome {
        let mut outcome = self.counts.clone();
        (outcome.failed, outcome.unknown_names) = (self.failed, self.unknown_names);
        (outcome.locked_twice, outcome.unlocked_unheld) = (self.locked_twice, self.unlocked_unheld);
        self.responses.statistics().fill(&mut outcome);
        outcome
    }
}
