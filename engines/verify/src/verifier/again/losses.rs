//! Processors with budgets behind a loss of records: what they remember is not known until the machine beside them is believed again
//! ([`crate::verifier::decisions`]). From there on jobs are scheduled again by a copy of that machine, and what lies before the loss by the one before it.

use super::{Again, Broken, Kept, Late};
use crate::result::Class;
use crate::state::processor::Stolen;
use crate::verifier::Verifier;
use horolog_sched::Driver;

/// A stretch of time before a loss, from an instant at which all was known to one without jobs.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub(super) fresh: Driver,
    pub(super) kept: Kept,
    pub(super) from: u64,
    to: u64,
}

impl Again {
    /// The stretch behind the last loss in which `time` lies, or the one before.
    fn stretch_of(&mut self, time: u64) -> Option<&mut Kept> {
        if time >= self.answered {
            return Some(&mut self.kept);
        }
        let whole = self.before.iter_mut().rev().find(|whole| whole.from <= time)?;
        (time < whole.to).then_some(&mut whole.kept)
    }

    /// How many jobs are kept in all.
    pub(super) fn jobs(&self) -> usize {
        self.kept.jobs.len() + self.before.iter().map(|whole| whole.kept.jobs.len()).sum::<usize>()
    }

    /// A late job, where its stretch is kept; else it comes back.
    pub(super) fn ask(&mut self, late: Late) -> Option<Late> {
        match self.stretch_of(late.candidate.arrival) {
            Some(kept) => kept.late.push(late),
            None => return Some(late),
        }
        None
    }

    pub(crate) fn note_broken(&mut self, broken: Broken) {
        // What the loss made unknown is not asked.
        if let Some(kept) = self.stretch_of(broken.since) {
            kept.broken.push(broken);
        }
    }

    pub(crate) fn note_stolen(&mut self, stolen: Stolen) {
        self.kept.stolen.push(stolen);
        for whole in self.before.iter_mut().rev().take_while(|whole| whole.to > stolen.from) {
            whole.kept.stolen.push(stolen);
        }
    }

    /// All is known of the processor at `now`, as `driver` has it, and it has no job. What is asked about jobs between the loss and now comes back.
    pub(super) fn go_on_from(&mut self, driver: Driver, now: u64) -> Vec<Late> {
        let lost = self.lost.first().copied().unwrap_or(now);
        let whole = self.idle.partition_point(|(at, _)| *at < lost);
        if let Some(&(to, jobs)) = whole.checked_sub(1).and_then(|place| self.idle.get(place)) {
            let kept = self.kept.split(to, jobs.min(self.kept.jobs.len()));
            let (fresh, from) = (self.fresh.clone(), self.answered);
            self.before.push(Whole { fresh, kept, from, to });
        }
        let between = self.kept.split(now, self.kept.jobs.len());
        self.idle.clear();
        self.lost.clear();
        (self.fresh, self.answered) = (driver, now);
        between.late
    }
}

impl Verifier {
    /// Nothing is known of the budgets beside these late jobs.
    pub(super) fn leave_open(&mut self, all: Vec<Late>) {
        all.into_iter().for_each(|late| self.tell_late(late, Class::CannotTell, &[]));
    }

    /// The machine beside a processor with budgets is believed again: jobs from `now` on can be scheduled again.
    pub(crate) fn go_on_behind_a_loss(&mut self, cpu: usize, believed: impl FnOnce() -> Driver, now: u64) {
        let acts = |&task: &usize| self.model.tasks[task].acts;
        // Of jobs on threads that have budgets of their own it does not know how far they are.
        let is_the_same = self.model.simulated || !self.cpus[cpu].tasks.iter().any(acts);
        let Some(again) = self.again[cpu].as_mut().filter(|again| !again.begins_anew && is_the_same) else {
            return;
        };
        if again.lost.is_empty() {
            return;
        }
        let between = again.go_on_from(believed(), now);
        self.leave_open(between);
    }
}
