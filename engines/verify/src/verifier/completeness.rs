//! Whether the trace shows every job that the clock released: periods, listed arrivals and mode changes say when jobs arrive, so one
//! that is not on record by the end is missing.
//!
//! When sporadic jobs arrive is not known, so none is missed. What a trace holds ends where its head and its foot say. The foot of a
//! run says when its releases ended. Without that, a run that was stopped ends with the last record of a job. Where records of jobs
//! were lost nothing is accused: the verdict is unknown.

use crate::report::Found;
use crate::result::{Check, Class};
use crate::state::model::TaskModel;
use crate::verifier::Verifier;
use horolog_model::{Arrival, TaskInMode};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Footer, Header};

use horolog_trace::{Ending, Kind, LossCause, Record, exit_status};

/// How many times [`crate::Tolerance::dispatch`] a thread may take to note that it was woken.
const NOTED: u64 = 10;

/// What is known of the trace as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Completeness {
    /// Until when jobs were released by the head; `None`: it does not say.
    horizon: Option<u64>,
    /// A pattern said what was released, so tasks may have no jobs and the end may come early.
    is_replay: bool,
    /// From when on no job was released any more in a run, where its foot tells.
    releases_end: Option<u64>,
    /// Who ended the run before its time, where its foot tells.
    pub(crate) ended_by: Option<String>,
    /// When records of jobs were lost last.
    lost_at: Option<u64>,
    /// The last record of a job.
    last: u64,
}

/// A job that the clock releases.
struct Due {
    at: u64,
    /// How far apart the next ones are.
    separation: Option<u64>,
    /// Whether that is its very arrival; else the latest one.
    is_exact: bool,
}

impl Completeness {
    pub(crate) fn new(header: &Header) -> Completeness {
        let horizon =
            (!header.horizon.is_zero()).then(|| header.start.as_ns().saturating_add(header.horizon.as_ns()));
        Completeness {
            horizon,
            is_replay: header.machine.get("releases").is_some_and(|by| by == "pattern"),
            releases_end: None,
            ended_by: None,
            lost_at: None,
            last: 0,
        }
    }
}

impl Completeness {
    /// Whether records of jobs were lost so far.
    pub(crate) fn has_lost_jobs(&self) -> bool {
        self.lost_at.is_some()
    }
}

impl Verifier {
    /// From when on no job of a run was released any more, as the foot of its trace tells.
    pub fn set_releases_end(&mut self, at: Instant) {
        self.completeness.releases_end = Some(at.as_ns());
    }

    /// Who ended the run before its time, as the foot of its trace tells: the model is not decided then.
    pub fn set_ended_by(&mut self, ending: &Ending) {
        self.completeness.ended_by = Some(ending.to_string());
    }

    /// Takes note of how far the record of jobs reaches, and of what is missing in it.
    pub(crate) fn note_reach(&mut self, record: &Record) {
        let time = record.time.as_ns();
        if record.kind == Kind::Lost {
            let is_of_jobs = match LossCause::from_number(record.extra) {
                Some(LossCause::Kernel | LossCause::HiddenSwitch) => {
                    self.model.tasks.iter().any(|task| task.is_observed)
                }
                _ => true,
            };
            if is_of_jobs {
                self.completeness.lost_at = Some(time);
            }
        } else if (record.task as usize) < self.tasks.len() && !is_of_kernel(record.kind) {
            self.completeness.last = self.completeness.last.max(time);
        }
    }

    /// A mode that ends the arrivals of a task, or lets them begin anew, takes effect now: what had to come before is on record.
    pub(crate) fn expect_arrivals_before(&mut self, task: usize, before: TaskInMode) {
        if before.is_active {
            self.expect_arrivals(task, self.now, "the mode changed");
        }
    }

    /// Recording ended at `end`, 0 where that is not known: every job that had to be there by then is.
    pub(crate) fn judge_completeness(&mut self, end: u64) {
        if self.model.foreign {
            self.count_silent_periods();
            return self.require_jobs();
        }
        let Completeness { horizon, is_replay, last, .. } = self.completeness;
        // Jobs that were under way complete behind the end of the releases, so the end of the recording does not tell it.
        let told = self.completeness.releases_end.filter(|_| !self.model.simulated);
        // What is on record was released, and nothing is known behind the end.
        let arrived = self.tasks.iter().filter_map(|task| task.last_arrival).max().unwrap_or(0);
        let told = told.map(|at| at.max(arrived).min(end));
        let released_until = told.or((end > 0).then_some(end));
        let is_early = released_until.zip(horizon).is_some_and(|(until, horizon)| until < horizon);
        let until = match horizon {
            _ if self.model.simulated && is_early => end,
            Some(horizon) if !is_early => horizon,
            None if self.model.simulated => end,
            // Records without a foot.
            None if end == 0 => return self.require_jobs(),
            // A run ends with what had arrived by then; of older traces only the records tell when that was.
            _ => told.unwrap_or(last),
        };
        for task in 0..self.tasks.len() {
            self.expect_arrivals(task, until, "the trace ends");
        }
        if let Some(ending) = &self.completeness.ended_by {
            self.unknown.push(format!("the run ended before its time: {ending}"));
        } else if is_early && !is_replay {
            let (end, horizon) =
                (Span::from_ns(released_until.unwrap_or(0)), Span::from_ns(horizon.unwrap_or(0)));
            self.unknown.push(match self.model.simulated {
                true => format!(
                    "the trace ends at {end}, and its head says that jobs are released until {horizon}: what came after is not in it"
                ),
                false => format!("the run was stopped at {end} of {horizon}: what came before is judged, and no more"),
            });
        }
        self.require_jobs();
    }

    /// What the trace itself counts must be there: records of each kind, and losses that were told at their places. What is missing may lie
    /// anywhere, so that nothing is concluded from the rest.
    pub(crate) fn differs_from_the_foot(&self, foot: &Footer, lost: u64, skipped: u64) -> Option<String> {
        let read = self.records.saturating_add(skipped);
        if foot.records != read {
            return Some(format!(
                "the trace's foot counts {} records and {read} are there: some were taken out, or added",
                foot.records
            ));
        }
        let counted = |kind: &Kind| foot.counts.get(kind.name()).copied().unwrap_or(0);
        let differs = |kind: &Kind| counted(kind) != self.counts[*kind as usize];
        // Older writers count no kinds.
        if let Some(kind) = Kind::ALL.iter().find(|kind| !foot.counts.is_empty() && differs(kind)) {
            return Some(format!(
                "the trace's foot counts {} records of the kind {} and {} are there: some were replaced",
                counted(kind),
                kind.name(),
                self.counts[*kind as usize]
            ));
        }
        let by_cause = foot.causes.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        self.differs_from_the_losses(foot.losses.total().max(by_cause).max(lost))
    }

    /// What a foot or the heads of blocks count as lost must be told at its places.
    pub(crate) fn differs_from_the_losses(&self, counted: u64) -> Option<String> {
        let told = self.losses.total();
        (counted > told).then(|| {
            format!("the trace says that {counted} records were lost and tells of {told} at their places")
        })
    }

    /// Jobs of commands are known from the kernel's record alone.
    fn require_the_kernels_record(&mut self) {
        let is_unseen = |task: &&TaskModel| task.is_command && !self.cpus[task.cpu].kernel;
        let unseen: Vec<String> = self.model.tasks.iter().filter(is_unseen).map(|t| t.name.clone()).collect();
        if !unseen.is_empty() {
            self.unknown.push(format!(
                "jobs of commands ({}) are known from the kernel's record alone, and the trace has none: `horolog doctor` says what \
                 recording it needs",
                unseen.join(", ")
            ));
        }
    }

    /// The program of a command ended while jobs of its task were still to come.
    pub(crate) fn program_ended(&mut self, record: &Record) {
        let Some(model) = self.model.tasks.get(record.task as usize) else { return };
        self.tasks[record.task as usize].has_ended = true;
        self.report.apply(Check::MissingJob);
        let (name, cpu) = (model.name.clone(), self.model.cpus[model.cpu]);
        let jobs = self.tasks[record.task as usize].tally.jobs;
        let message = format!(
            "the program of {name} {} by {}, after {jobs} jobs and before the end of the run",
            exit_status(record.value),
            Span::from_ns(record.time.as_ns())
        );
        self.report.add(Found {
            class: Class::ModelViolated,
            check: Check::MissingJob,
            time: record.time.as_ns(),
            during: None,
            cpu,
            task: Some(name.clone()),
            job: None,
            observed: None,
            allowed: None,
            evidence: Vec::new(),
            subject: name,
            message,
        });
    }

    /// In a tree the decisions alone say who should run: where these speak of less than nine tenths of the time in which jobs were
    /// ready, they have not shown enough.
    pub(crate) fn judge_extent(&mut self) {
        for cpu in (0..self.cpus.len()).filter(|&cpu| self.model.is_tree(cpu)) {
            let (compared, busy) = (&self.compared[cpu], self.cpus[cpu].busy);
            let not_judged = compared.not_judged.min(busy);
            // A wrong decision that was found ends them, and speaks for itself.
            if compared.undecided.is_none() && compared.divergences == 0 && not_judged > busy / 10 {
                self.unknown.push(format!(
                    "cpu {}: who should run in its tree of schedulers was not judged for {} of the {} in which jobs were ready",
                    self.model.cpus[cpu],
                    Span::from_ns(not_judged),
                    Span::from_ns(busy)
                ));
            }
        }
    }

    /// Another application may stop when it likes, and nobody knows why it did: the periods of a task without a job before the trace's end
    /// count as jobs of which there is no record.
    fn count_silent_periods(&mut self) {
        for task in 0..self.tasks.len() {
            let Arrival::Periodic { period } = &self.model.tasks[task].arrival else { continue };
            let period = period.as_ns().max(1);
            self.count_lost_arrivals(task, self.now);
            let state = &self.tasks[task];
            let Some(last) = state.last_arrival.filter(|_| state.busy.is_none()) else { continue };
            let due = last.saturating_add(period);
            let slack = self.model.allowed_lateness(task, due).saturating_add(self.model.stamping);
            let left = self.now.saturating_sub(due.saturating_add(slack));
            let not_on_record = &mut self.tasks[task].tally.not_on_record;
            *not_on_record = not_on_record.saturating_add(left.div_ceil(period));
        }
    }

    /// Where no job was released nothing was judged.
    fn require_jobs(&mut self) {
        if self.tasks.iter().all(|task| task.tally.jobs == 0) {
            self.unknown.push("the trace shows no job: nothing was judged".to_owned());
        }
        self.require_the_kernels_record();
    }

    /// Finds the jobs of a task that had to arrive before `until` and are not on record.
    fn expect_arrivals(&mut self, task: usize, until: u64, what: &str) {
        let Some(due) = self.next_due(task) else { return };
        self.report.apply(Check::MissingJob);
        // A thread that waits for the processor notes its releases later, and none while it is at a job.
        let busy = self.tasks[task].busy.filter(|_| !self.model.simulated).map(|busy| busy.since);
        let until = busy.map_or(until, |since| until.min(since));
        let lateness = self.model.allowed_lateness(task, due.at).saturating_add(self.model.stamping);
        let slack = lateness.saturating_add(self.model.dispatch.saturating_mul(NOTED));
        let Some(left) = until.checked_sub(due.at.saturating_add(slack)).filter(|&left| left > 0) else {
            return;
        };
        if !due.is_exact {
            self.count_lost_arrivals(task, due.at);
        }
        let more = due.separation.map_or(0, |separation| (left - 1) / separation.max(1));
        let not_on_record = &mut self.tasks[task].tally.not_on_record;
        *not_on_record = not_on_record.saturating_add(more.saturating_add(1));
        let model = &self.model.tasks[task];
        let (name, number) = (model.name.clone(), self.tasks[task].next_number.unwrap_or(0));
        let and = match more {
            0 => String::new(),
            1 => " nor the next one".to_owned(),
            more => format!(" nor the {more} after it"),
        };
        let when = if due.is_exact { "arrived at" } else { "arrived at the latest at" };
        let message = format!(
            "no record shows job {number} of {name}, which {when} {}{and}: {what} at {}",
            Span::from_ns(due.at),
            Span::from_ns(until)
        );
        if self.completeness.lost_at.is_some() || self.completeness.is_replay {
            let why = if self.completeness.is_replay {
                "a pattern said what is released"
            } else {
                "records of jobs were lost"
            };
            return self.unknown.push(format!("{message}; {why}"));
        }
        self.report.add(Found {
            class: Class::ModelViolated,
            check: Check::MissingJob,
            time: due.at,
            during: None,
            cpu: self.model.cpus[model.cpu],
            task: Some(name.clone()),
            job: Some(number),
            observed: None,
            allowed: None,
            evidence: Vec::new(),
            subject: name,
            message: format!("{message}; the task stopped, or its records are missing"),
        });
    }

    /// The next job that the clock releases.
    fn next_due(&self, task: usize) -> Option<Due> {
        let (model, state) = (&self.model.tasks[task], &self.tasks[task]);
        if model.thread.is_driver {
            return None;
        }
        // A run says nothing of what a task does not do any more.
        let is_off = state.is_stopped || state.is_inactive;
        if is_off && !self.model.simulated {
            return None;
        }
        let start = self.model.start;
        match &model.arrival {
            Arrival::Periodic { .. } | Arrival::Sporadic { .. } if state.is_inactive => None,
            Arrival::Periodic { period } => {
                let period = period.as_ns();
                let after = |at: u64| at.saturating_add(period);
                let known = state.restarts_at.or(state.last_arrival.map(after));
                let offset =
                    model.offset.filter(|_| self.completeness.lost_at.is_none() && !model.is_observed);
                let exact = known.or(offset.map(|offset| start.saturating_add(offset)));
                let latest = after(self.completeness.lost_at.unwrap_or(start));
                Some(Due { at: exact.unwrap_or(latest), separation: Some(period), is_exact: exact.is_some() })
            }
            Arrival::Sporadic { .. } => {
                state.restarts_at.map(|at| Due { at, separation: None, is_exact: true })
            }
            Arrival::Aperiodic { arrivals } => {
                let next = match state.next_number {
                    None if self.completeness.lost_at.is_some() => return None,
                    next => next.unwrap_or(0),
                };
                let place = usize::try_from(next.checked_add(state.unnumbered)?).ok()?;
                let at = start.saturating_add(arrivals.get(place)?.as_ns());
                Some(Due { at, separation: None, is_exact: true })
            }
            _ => None,
        }
    }
}

/// Whether the kernel wrote a record of this kind.
fn is_of_kernel(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::KernelSwitch
            | Kind::KernelWakeup
            | Kind::KernelBlock
            | Kind::KernelStarve
            | Kind::Exit
            | Kind::KernelClass
            | Kind::InterruptEntry
            | Kind::InterruptExit
            | Kind::SoftirqEntry
            | Kind::SoftirqExit
            | Kind::Steal
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Verdict};
    use horolog_trace::file::Losses;

    fn foot(records: u64) -> Footer {
        Footer {
            end: Instant::ZERO,
            releases_end: None,
            ended_by: None,
            records,
            counts: Default::default(),
            losses: Losses::default(),
            causes: Default::default(),
            clock_error_ns: None,
            events: Vec::new(),
            threads: Vec::new(),
            priorities: Default::default(),
            index: Vec::new(),
        }
    }

    /// Two records are there, one of which tells of three lost ones.
    #[test]
    fn a_trace_has_what_its_foot_counts() {
        let text = "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"5 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        let (system, _) = horolog_model::file::read(text, "s", &[]).expect("a valid file");
        let header = Header::simulated(String::new(), vec!["a".to_owned()], 0, Span::from_ns(1));
        let unknown = |records, losses, cause: Option<u64>, in_blocks, skipped| {
            let foot = Footer {
                losses: Losses { kernel: losses, ..Losses::default() },
                causes: cause.map(|count| ("kernel".to_owned(), count)).into_iter().collect(),
                ..foot(records)
            };
            let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("built");
            (verifier.records, verifier.losses.kernel) = (2, 3);
            verifier.differs_from_the_foot(&foot, in_blocks, skipped).is_some()
        };
        assert!(!unknown(2, 3, Some(3), 3, 0) && !unknown(4, 3, None, 0, 2) && !unknown(2, 2, Some(1), 0, 0));
        for (records, skipped) in [(1, 0), (3, 0), (2, 1)] {
            assert!(unknown(records, 3, None, 0, skipped), "{records} {skipped}");
        }
        assert!(unknown(2, 4, None, 0, 0) && unknown(2, 3, Some(4), 0, 0) && unknown(2, 3, None, 4, 0));
        let mut kinds = Footer { counts: [("start".to_owned(), 2)].into_iter().collect(), ..foot(2) };
        let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("built");
        (verifier.records, verifier.counts[Kind::Start as usize]) = (2, 2);
        assert_eq!(verifier.differs_from_the_foot(&kinds, 0, 0), None);
        for counts in [vec![("start", 1), ("release", 1)], vec![("start", 1)], vec![("release", 2)]] {
            kinds.counts = counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
            assert!(verifier.differs_from_the_foot(&kinds, 0, 0).is_some(), "{:?}", kinds.counts);
        }
        let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("built");
        verifier.unknown.push("something".to_owned());
        assert_eq!(verifier.finish(0, None, Vec::new()).verdict, Verdict::Unknown);
    }
}
