//! What is known of one task and its pending jobs.

use crate::result::UnendedJob;
use crate::state::marks::Mark;
use std::collections::{BTreeMap, VecDeque};

/// Where a pending job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Released, not started.
    Ready,
    /// Has the processor, as far as the job's own records tell.
    Running,
    /// Lost the processor.
    Preempted,
    /// Gave the processor up at a preemption point.
    Yielded,
    /// Waits for a device.
    Suspended,
}

/// The scheduling class of a task's thread, beside the one that the run gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ThreadClass {
    /// The same, as far as known.
    #[default]
    AsGiven,
    /// An ordinary thread.
    Ordinary,
    /// A real-time thread with a lower priority.
    Lowered,
}

/// What broke the model where a task's own code has changed its thread's class, in words.
pub(crate) const OWN_PRIORITY: &str = "a priority of its own";

impl ThreadClass {
    /// What `extra` of a record of the kind `kernel-class` says.
    pub(crate) fn of(extra: u64) -> ThreadClass {
        match extra {
            1 => ThreadClass::Ordinary,
            2 => ThreadClass::Lowered,
            _ => ThreadClass::AsGiven,
        }
    }
}

/// What of a job the file gives a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Segment(usize),
    /// A section that holds this resource.
    Section(usize),
}

/// A part of a job that took longer than the file says, by the time for which the job had the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Excess {
    pub(crate) part: Part,
    pub(crate) executed: u64,
    pub(crate) interrupted: u64,
    pub(crate) wcet: u64,
    /// How often its job got the processor within it.
    pub(crate) switches: u64,
    /// When it began, as far as known, and when it ended.
    pub(crate) begin: u64,
    pub(crate) time: u64,
}

/// A pending job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) number: u64,
    pub(crate) arrival: u64,
    /// The earliest arrival that the model allows.
    pub(crate) legal_arrival: u64,
    pub(crate) ready: u64,
    /// When it was ready first.
    pub(crate) first_ready: u64,
    /// Since when it stands behind its equals.
    pub(crate) stands_since: u64,
    /// Since when it has the processor, by its own records.
    pub(crate) runs_from: u64,
    /// What it had executed then, without interrupts.
    pub(crate) executed_from: u64,
    /// Whether it has held a resource since it got the processor: it goes on before its equals.
    pub(crate) was_lifted: bool,
    /// How often it got the processor.
    pub(crate) switches: u64,
    /// Its absolute deadline, by the mode in which it was released.
    pub(crate) deadline: Option<u64>,
    /// Whether the machine has noticed the release: nobody can serve it before. A measured release is recorded with
    /// its nominal arrival, and the kernel's wake-up of the thread tells when it was noticed.
    pub(crate) noticed: bool,
    pub(crate) started: Option<u64>,
    pub(crate) state: State,
    /// The segment that it is in, for deferred tasks.
    pub(crate) segment: usize,
    /// Since when it cannot be preempted.
    pub(crate) stretch_from: Option<u64>,
    /// Execution by the records, in all and before the current segment, interrupts included.
    pub(crate) executed: u64,
    pub(crate) executed_before: u64,
    /// Interrupts during its execution, in all and before the current segment.
    pub(crate) interrupted: u64,
    pub(crate) interrupted_before: u64,
    /// How often it had got the processor when the present segment began.
    pub(crate) switches_before: u64,
    /// Time for which a less important job kept it waiting.
    pub(crate) blocked: u64,
    /// Whether a less important one kept the processor against the policy while it waited.
    pub(crate) is_kept_waiting: bool,
    /// What its level was kept waiting before it could be noticed, by the kernel's record.
    pub(crate) kept_before: u64,
    /// A miss was recorded.
    pub(crate) missed: bool,
    /// It was promoted above the soft jobs (dual priority).
    pub(crate) promoted: bool,
    /// The overrun policy put it below every task.
    pub(crate) demoted: bool,
    /// Whether a mode has dropped it: its thread goes on, and no deadline or bound is about that.
    pub(crate) given_up: bool,
    /// It has used up its budget and asked for a mode.
    pub(crate) has_asked: bool,
    /// Its thread got another processor than its task's.
    pub(crate) has_wandered: bool,
    /// The overrun policy ended it, so its path need not be whole.
    pub(crate) cut_short: bool,
    /// How many borders of its sections it has passed, and when it unlocked first without being at one: where it ends.
    pub(crate) border: usize,
    pub(crate) closes_at: Option<(u64, usize, u64)>,
    /// The resource that it has come to and waited for, and does not hold yet.
    pub(crate) asks_for: Option<usize>,
    /// Since when it sleeps, where a record of its own says so.
    pub(crate) slept_from: Option<u64>,
    /// Places in its execution, for scheduling its processor again.
    pub(crate) marks: Vec<Mark>,
    /// Segments that took too long, to be judged when the job is done.
    pub(crate) excesses: Vec<Excess>,
    /// Whether its segments are not all on record (idle points are not recorded, or records were lost).
    pub(crate) points_missing: bool,
}

impl Job {
    pub(crate) fn released(number: u64, arrival: u64, ready: u64) -> Job {
        Job {
            number,
            arrival,
            legal_arrival: arrival,
            ready,
            first_ready: ready,
            stands_since: ready,
            runs_from: 0,
            executed_from: 0,
            was_lifted: false,
            switches: 0,
            deadline: None,
            noticed: true,
            started: None,
            state: State::Ready,
            segment: 0,
            stretch_from: None,
            executed: 0,
            executed_before: 0,
            interrupted: 0,
            interrupted_before: 0,
            switches_before: 0,
            blocked: 0,
            is_kept_waiting: false,
            kept_before: 0,
            missed: false,
            promoted: false,
            demoted: false,
            given_up: false,
            has_asked: false,
            has_wandered: false,
            cut_short: false,
            border: 0,
            closes_at: None,
            asks_for: None,
            slept_from: None,
            marks: Vec::new(),
            excesses: Vec::new(),
            points_missing: false,
        }
    }
}

/// A task and its pending jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskState {
    /// Oldest first; only the first one may run.
    pub(crate) pending: VecDeque<Job>,
    /// Whether jobs may be pending whose releases are lost: until a job starts whose release was seen.
    pub(crate) has_unknown: bool,
    /// The number that the next job must have; `None` at the beginning and after a loss.
    pub(crate) next_number: Option<u64>,
    pub(crate) last_arrival: Option<u64>,
    /// The number that was next before a loss, and the last arrival, until a job is seen again.
    pub(crate) before_loss: Option<(u64, Option<u64>)>,
    /// Jobs whose release is on record and that are not judged.
    pub(crate) set_aside: BTreeMap<u64, Reason>,
    /// Where a mode change lets it begin anew, when its next job arrives.
    pub(crate) restarts_at: Option<u64>,
    /// Whether the present mode does not activate it.
    pub(crate) is_inactive: bool,
    /// Whether its jobs wait for a mode that activates it.
    pub(crate) is_suspended: bool,
    /// Jobs with a lower number are left over from a mode before.
    pub(crate) left_until: u64,
    /// When a mode last suspended its jobs: they have left the processor, also where another mode of that instant wakes them.
    pub(crate) suspended_at: Option<u64>,
    /// Whether the overrun policy has stopped the task.
    pub(crate) is_stopped: bool,
    /// In a run, the job at which it has, with its arrival and its deadline, until its end is on record: its code goes on below
    /// every task.
    pub(crate) stopped_job: Option<(u64, u64, Option<u64>)>,
    /// Arrivals that were skipped without a number.
    pub(crate) unnumbered: u64,
    /// When the kernel last woke the task's thread.
    pub(crate) woken: Option<u64>,
    /// Since when the task's thread is off the processor although its job runs, by the job's own records.
    pub(crate) off_since: Option<u64>,
    /// Whether the kernel says that the thread sleeps in the middle of its job.
    pub(crate) sleeps: bool,
    /// Whether another task's thread has got the processor since.
    pub(crate) is_passed_over: bool,
    /// Its thread's class at its last switch, by the kernel's record.
    pub(crate) class: ThreadClass,
    /// Whether the program that executes it has ended.
    pub(crate) has_ended: bool,
    /// An observed arrival that came too late: the rhythm may go on from there, or as if it had not.
    pub(crate) late_arrival: Option<u64>,
    /// Whether it was stopped there from outside.
    pub(crate) is_stopped_from_outside: bool,
    /// Since when it is stopped from outside between its jobs.
    pub(crate) stopped_since: Option<u64>,
    /// Since when jobs of this task's level are pending, and the stretch of a less important job that was under
    /// way then: task, begin, execution so far.
    pub(crate) busy: Option<Busy>,
    /// The last finished busy window.
    pub(crate) last_busy: Option<(u64, u64)>,
    /// The last jobs that their overrun policy or their own code put below others: nothing is promised of them.
    pub(crate) put_below: VecDeque<u64>,
    /// When its last job ended: its thread cannot have noticed another release before.
    pub(crate) done_at: u64,
    /// A late job that finished without a miss on record yet.
    pub(crate) late_unnoted: Option<(u64, Option<u64>)>,
    pub(crate) tally: Tally,
}

impl TaskState {
    /// Nothing is known of its jobs any more.
    pub(crate) fn lose(&mut self) {
        self.pending.clear();
        self.has_unknown = true;
        // What was lost before the first job seen counts, too.
        if self.before_loss.is_none() && (self.next_number.is_some() || self.tally.jobs == 0) {
            self.before_loss = Some((self.next_number.unwrap_or(0), self.last_arrival));
        }
        self.next_number = None;
        self.last_arrival = None;
        self.late_arrival = None;
        self.busy = None;
        self.off_since = None;
        self.stopped_since = None;
        self.late_unnoted = None;
        self.done_at = 0;
    }

    /// A job that has been put below others, by its overrun policy or its own code, is late by that. A few are kept until they are judged.
    pub(crate) fn note_put_below(&mut self, number: u64) {
        const KEPT: usize = 64;
        self.put_below.push_back(number);
        if self.put_below.len() > KEPT {
            self.put_below.pop_front();
        }
    }

    /// The place of a pending job: its numbers count up.
    fn place_of(&self, number: u64) -> Option<usize> {
        let (first, last) = (self.pending.front()?.number, self.pending.back()?.number);
        if last.checked_sub(first) != Some(self.pending.len() as u64 - 1) {
            // In a trace whose numbers are wrong they do not.
            return self.pending.iter().position(|job| job.number == number);
        }
        let place = number.checked_sub(first).and_then(|ahead| usize::try_from(ahead).ok())?;
        self.pending.get(place).filter(|job| job.number == number).map(|_| place)
    }

    pub(crate) fn pending_of(&self, number: u64) -> Option<&Job> {
        self.place_of(number).and_then(|place| self.pending.get(place))
    }

    pub(crate) fn pending_mut(&mut self, number: u64) -> Option<&mut Job> {
        self.place_of(number).and_then(|place| self.pending.get_mut(place))
    }
}

/// A busy window of one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Busy {
    pub(crate) since: u64,
    /// The less important job that could not be preempted when it began.
    pub(crate) blocker: Option<(usize, u64)>,
}

/// Counts for the result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) jobs: u64,
    pub(crate) completed: u64,
    pub(crate) missed: u64,
    /// The first of those that missed: number, begin of the busy window, end.
    pub(crate) missed_jobs: Vec<(u64, u64, u64)>,
    /// Jobs that the clock released and no record shows.
    pub(crate) not_on_record: u64,
    /// Jobs whose numbers a loss leaves out.
    pub(crate) lost: u64,
    /// Jobs that had not ended at the end, before their deadline.
    pub(crate) not_due: u64,
    pub(crate) response_max: Option<u64>,
    pub(crate) executed_max: Option<u64>,
    /// The last job that had executed more than its wcet, and so much, and had not ended.
    pub(crate) unended: Option<UnendedJob>,
    pub(crate) exceeded: u64,
    pub(crate) exceeded_by_model: u64,
    pub(crate) exceeded_by_disturbance: u64,
    pub(crate) below_bcet: u64,
    pub(crate) blocking_max: u64,
    pub(crate) lateness_max: Option<u64>,
    pub(crate) releases_noticed: u64,
    pub(crate) releases_late: u64,
    pub(crate) points_missing: u64,
}

impl Job {
    /// How often it got the processor again within the present segment, after a wait. That it gets it once is no more than it needs.
    pub(crate) fn switches_in_segment(&self) -> u64 {
        self.switches.saturating_sub(self.switches_before).saturating_sub(1)
    }
}

/// Why a job whose release is on record is not judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reason {
    /// A loss lies in its busy window.
    Lost,
    /// It had to be done by the end.
    NotDone,
    /// The kernel's record hides a switch in its busy window.
    Hidden,
    /// Another schedule is on record than the rules give.
    Differs,
}

impl Reason {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Reason::Lost => "records lost",
            Reason::NotDone => "not done at the end",
            Reason::Hidden => "hidden switch",
            Reason::Differs => "the schedule differs",
        }
    }
}

/// The time in which a job executed.
pub(crate) fn job_window(job: &Job) -> Option<Busy> {
    job.started.map(|since| Busy { since, blocker: None })
}
