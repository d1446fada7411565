//! Who holds a resource that jobs may read together, and who comes next (decision 0023). One that is exclusive has one holder.

use super::{Holder, Resource, Waiting};
use horolog_model::Protocol;

impl Resource {
    fn reads(&self, task: usize) -> bool {
        self.protocol.tells_readers() && self.readers.contains(&task)
    }

    /// Whether a job of the first task may go before one of the second that has waited longer.
    pub(super) fn passes(&self, task: usize, other: usize) -> bool {
        self.protocol == Protocol::PhaseFair && self.reads(task) && !self.reads(other)
    }

    /// A job has it from now on. Whoever held it and could not do so beside it: that one does not any more, by what is known.
    pub(super) fn take(&mut self, holder: Holder) -> Option<Holder> {
        let reads = self.reads(holder.task);
        let is_against = |other: &&Holder| !reads || !self.reads(other.task);
        let against = self.holders.iter().find(is_against).copied();
        if against.is_some() {
            self.holders.clear();
        }
        self.holders.push(holder);
        against
    }

    /// The job of a task holds it no more, where it did.
    pub(super) fn put_back(&mut self, task: usize, job: u64, now: u64) -> Option<Holder> {
        let place = self.holders.iter().position(|it| (it.task, it.job) == (task, job))?;
        let holder = self.holders.remove(place);
        if self.holders.is_empty() {
            self.free_since = now;
        }
        self.writes += u64::from(!self.reads(task));
        if self.holders.is_empty() && self.protocol.tells_readers() {
            self.grant(now);
        }
        Some(holder)
    }

    /// It is free: from now on it belongs to the next of those that wait, and where that one reads, to those that read with it.
    fn grant(&mut self, now: u64) {
        let Some(next) = self.next_waiting().map(|it| it.task) else { return };
        let reads = self.reads(next);
        let is_phase_fair = self.protocol == Protocol::PhaseFair;
        for place in 0..self.waiting.len() {
            let waiting = self.waiting[place];
            let goes_with_it =
                reads && self.reads(waiting.task) && (!is_phase_fair || waiting.writes < self.writes);
            if waiting.task == next || goes_with_it {
                // Who was late already stays so.
                self.waiting[place].granted.get_or_insert(now);
            } else if !is_phase_fair {
                break;
            }
        }
    }

    /// Whether the job of a task that asks has to wait: for who holds it, or for who waits already.
    pub(super) fn must_wait(&self, task: usize) -> bool {
        let reads = self.reads(task);
        let keeps = |holder: &Holder| holder.task != task && !(reads && self.reads(holder.task));
        let is_before = |waiting: &Waiting| {
            let is_reader = self.reads(waiting.task);
            waiting.task != task
                && self.protocol.tells_readers()
                && (self.protocol == Protocol::TaskFair || !is_reader)
        };
        self.holders.iter().any(keeps) || self.waiting.iter().any(is_before)
    }

    /// Of those that wait, who has it next. Where phases alternate: those that read and came before a writer left that has left; else
    /// the first of the writers.
    pub(super) fn next_waiting(&self) -> Option<&Waiting> {
        if self.protocol.has_tokens() {
            return self.first_joined();
        }
        if self.protocol != Protocol::PhaseFair {
            return self.waiting.front();
        }
        let has_come = |it: &&Waiting| self.reads(it.task) && it.writes < self.writes;
        let reader = self.waiting.iter().find(has_come);
        reader.or_else(|| self.waiting.iter().find(|it| !self.reads(it.task)))
    }
}
