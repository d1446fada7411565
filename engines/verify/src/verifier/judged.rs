//! Which jobs were judged, and why the others were not.
//!
//! A job is *judged* where its release, every dispatch and its end are on record, no loss lies in its busy window, and its schedule is
//! the one that the system's rules give: neither the machine beside the processor nor the check of the order found otherwise. Where
//! no machine runs beside the processor the checks of the order decide alone, and in a tree of schedulers, where these do not
//! apply, nothing is judged.
//!
//! Released are the jobs whose releases are on record, those that the clock released and no record shows, and those whose
//! numbers a loss leaves out. A job that has not ended by the end and whose deadline lies behind it is not counted.

use crate::result::{Check, MissedJob, Unjudged};
use crate::state::job::{Reason, TaskState};
use crate::state::model::TaskModel;
use crate::verifier::Verifier;
use horolog_model::Arrival;
use horolog_time::Instant;

/// The numbers of released jobs, of judged ones, and of the others by reason.
pub(crate) struct Counts {
    pub(crate) released: u64,
    pub(crate) judged: u64,
    pub(crate) unjudged: Vec<Unjudged>,
}

/// Whether a finding of this check says that the schedule is another one, or that the job's records are not whole.
pub(crate) fn is_of_the_schedule(check: Check) -> bool {
    matches!(
        check,
        Check::EventOrder
            | Check::Processor
            | Check::PriorityInversion
            | Check::FirstInFirstOut
            | Check::EarliestDeadlineFirst
            | Check::WorkConservation
            | Check::NonPreemption
            | Check::ServerDecision
            | Check::Divergence
    )
}

impl Verifier {
    /// This job is not judged; the first reason stays.
    pub(crate) fn set_aside(&mut self, task: usize, job: u64, reason: Reason) {
        if let Some(state) = self.tasks.get_mut(task)
            && state.next_number.is_none_or(|next| job < next)
        {
            state.set_aside.entry(job).or_insert(reason);
        }
    }

    /// Whether a loss lies in this job's busy window.
    pub(crate) fn is_in_a_loss(&self, task: usize, job: u64) -> bool {
        self.tasks[task].set_aside.get(&job) == Some(&Reason::Lost)
    }

    /// Records of this processor were lost: what is pending there is not judged, nor is what comes before it is known to be without jobs.
    pub(crate) fn lose_sight(&mut self, cpu: usize) {
        self.cpus[cpu].in_doubt = true;
        self.cpus[cpu].seen.lose();
        for (task, job) in std::mem::take(&mut self.cpus[cpu].recent) {
            self.set_aside(task, job, Reason::Lost);
        }
        for place in 0..self.cpus[cpu].pending.len() {
            let (_, task) = self.cpus[cpu].pending[place];
            let numbers: Vec<u64> = self.tasks[task].pending.iter().map(|job| job.number).collect();
            numbers.into_iter().for_each(|job| self.set_aside(task, job, Reason::Lost));
        }
    }

    /// Ends the doubt on a processor without a pending job: none can be there that is not on record.
    pub(crate) fn see_again(&mut self, cpu: usize, is_idle: bool) {
        if self.cpus[cpu].in_doubt
            && self.cpus[cpu].pending.is_empty()
            && (is_idle || !self.may_have_unknown_jobs(cpu))
        {
            self.cpus[cpu].in_doubt = false;
        }
    }

    /// A job of this number is the first one seen after a loss: those between it and the last one before were released, too.
    pub(crate) fn count_lost_numbers(&mut self, task: usize, number: u64) {
        let state = &mut self.tasks[task];
        if let Some((next, _)) = state.before_loss.take() {
            let lost = number.saturating_sub(next);
            state.tally.lost = state.tally.lost.saturating_add(lost);
        }
    }

    /// No job has been seen since the loss: how many the clock released between the last one before it and `at`, from which on missing
    /// jobs are counted.
    pub(crate) fn count_lost_arrivals(&mut self, task: usize, at: u64) {
        let Arrival::Periodic { period } = &self.model.tasks[task].arrival else { return };
        let state = &mut self.tasks[task];
        let Some((_, Some(last))) = state.before_loss.take() else { return };
        let between = at.saturating_sub(last).saturating_sub(1) / period.as_ns().max(1);
        state.tally.lost = state.tally.lost.saturating_add(between);
    }

    /// A job that arrived at `arrival` has missed its deadline by now.
    pub(crate) fn note_missed(&mut self, task: usize, number: u64, arrival: u64) {
        const MOST: usize = 100;
        let to = self.now;
        let state = &mut self.tasks[task];
        state.tally.missed += 1;
        if state.tally.missed_jobs.len() < MOST {
            let from = state.busy.map_or(arrival, |busy| busy.since.min(arrival));
            state.tally.missed_jobs.push((number, from, to));
        }
    }

    /// Where to look for what made jobs late.
    pub(crate) fn missed_jobs(&self) -> Vec<MissedJob> {
        let of_task = |(state, model): (&TaskState, &TaskModel)| {
            let (name, cpu) = (model.name.clone(), self.model.cpus[model.cpu]);
            let job = move |&(job, from, to): &(u64, u64, u64)| MissedJob {
                task: name.clone(),
                job,
                cpu,
                from_ns: Instant::from_ns(from),
                to_ns: Instant::from_ns(to),
            };
            state.tally.missed_jobs.iter().map(job).collect::<Vec<_>>()
        };
        self.tasks.iter().zip(&self.model.tasks).flat_map(of_task).collect()
    }

    /// What became of a task's jobs.
    pub(crate) fn judged(&self, task: usize) -> Counts {
        let (state, tally) = (&self.tasks[task], &self.tasks[task].tally);
        let cpu = self.model.tasks[task].cpu;
        let seen = tally.jobs.saturating_sub(tally.not_due);
        let released = seen.saturating_add(tally.not_on_record).saturating_add(tally.lost);
        let of = |reason| state.set_aside.values().filter(|one| **one == reason).count() as u64;
        let aside = (state.set_aside.len() as u64).min(seen);
        let mut judged = seen - aside;
        let mut unjudged: Vec<(String, u64)> = vec![
            (Reason::Lost.words().to_owned(), of(Reason::Lost).saturating_add(tally.lost)),
            (Reason::NotDone.words().to_owned(), of(Reason::NotDone)),
            (Reason::Hidden.words().to_owned(), of(Reason::Hidden)),
            (Reason::Differs.words().to_owned(), of(Reason::Differs)),
            ("no record".to_owned(), tally.not_on_record),
        ];
        if self.model.is_tree(cpu)
            && let Some(reason) = &self.compared[cpu].undecided
        {
            unjudged.push((format!("who should run was not decided: {reason}"), judged));
            judged = 0;
        }
        let unjudged = unjudged.into_iter().filter(|(_, jobs)| *jobs > 0);
        Counts {
            released,
            judged,
            unjudged: unjudged.map(|(reason, jobs)| Unjudged { reason, jobs }).collect(),
        }
    }
}
