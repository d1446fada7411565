//! Sections that go on on another processor, in the place of a job that waits for the resource (decision 0024).
//!
//! The records of who has a processor carry its number: those of a helped job that of the helper's. For the order of a processor's own jobs the helper has it.

use super::Resource;
use crate::result::{Check, Class};
use crate::state::history::Occupant;
use crate::verifier::Verifier;
use horolog_trace::{Kind, Record};

impl Verifier {
    /// The most important of a resource's users on the processor of a task.
    pub(super) fn local_ceiling(&self, resource: &Resource, task: usize) -> i64 {
        let of = |task: usize| &self.model.tasks[task];
        let here = resource.users.iter().filter(|&&user| of(user).cpu == of(task).cpu);
        here.map(|&user| of(user).priority).max().unwrap_or(of(task).priority)
    }

    /// Whether sections of a resource may end on another processor than their job's.
    pub(crate) fn may_end_elsewhere(&self, place: usize) -> bool {
        let protocol = self.resources.all[place].protocol;
        protocol.helps() || protocol.is_remote()
    }

    /// What a job holds with which it may go on elsewhere.
    fn held_with_help(&self, task: usize) -> Option<&Resource> {
        let mut all = self.resources.all.iter();
        all.find(|resource| resource.protocol.helps() && self.resources.is_held_by(resource, task))
    }

    /// The task of a processor whose job waits for what the job of a task holds.
    fn helper_on(&self, cpu: usize, holder: usize) -> Option<usize> {
        let mut waiting = self.held_with_help(holder)?.waiting.iter().map(|waiting| waiting.task);
        waiting.find(|&task| self.model.tasks[task].cpu == cpu)
    }

    /// The processor that a record gives a job or takes from it, where that is one on which it is helped, and not its own.
    pub(crate) fn place_away(&self, record: &Record, task: usize) -> Option<usize> {
        if !matches!(record.kind, Kind::Resume | Kind::Preempt) || !self.resources.has_any() {
            return None;
        }
        let home = self.model.tasks.get(task)?.cpu;
        let place = self.model.cpus.iter().position(|&number| number == u32::from(record.cpu))?;
        let is_helped = match record.kind {
            Kind::Resume => self.helper_on(place, task).is_some(),
            _ => self.cpus[place].occupant == Occupant::Task(task),
        };
        (place != home && is_helped).then_some(place)
    }

    /// Whether a record tells of no choice: a job goes on elsewhere, its section executes on the processor of its resource, or one that waits gives its place to that one.
    pub(crate) fn is_of_help(&self, record: &Record) -> bool {
        let task = record.task as usize;
        let waits = || {
            let spinning = self.resources.spinning.get(task).copied().flatten();
            record.kind == Kind::Preempt
                && spinning.is_some_and(|spinning| self.resources.all[spinning.place].protocol.helps())
        };
        self.place_away(record, task).is_some() || waits() || self.is_of_agent(record, task)
    }

    /// Who has a processor by its own order: the job in whose place another one goes on.
    pub(crate) fn chosen_on(&self, cpu: usize) -> Occupant {
        match self.cpus[cpu].occupant {
            Occupant::Task(task) if self.model.tasks[task].cpu != cpu => {
                self.helper_on(cpu, task).map_or(Occupant::Task(task), Occupant::Task)
            }
            other => other,
        }
    }

    /// Before time passes until `until`: sections execute where they belong.
    pub(crate) fn check_places(&mut self, until: u64) {
        // What one instant leaves is looked at once it is over.
        if until <= self.now {
            return;
        }
        self.check_helping();
        self.pass_elsewhere(until);
    }

    /// Before time passes: whoever is kept from its own processor goes on in the place of the first that waits and has its own.
    fn check_helping(&mut self) {
        for place in 0..self.resources.all.len() {
            let resource = &self.resources.all[place];
            if !resource.protocol.helps() || resource.is_told || !self.model.simulated {
                continue;
            }
            let Some(holder) = resource.holders.first().copied() else { continue };
            let has = |cpu: usize, task: usize| self.cpus[cpu].occupant == Occupant::Task(task);
            let home = |task: usize| self.model.tasks[task].cpu;
            if has(home(holder.task), holder.task) {
                continue;
            }
            let mut waiting = resource.waiting.iter().map(|waiting| waiting.task);
            // Whose place it could have; the first one of them has it, or none has.
            let first = waiting.find(|&it| has(home(it), it) || has(home(it), holder.task));
            let Some(first) = first.filter(|&it| !has(home(it), holder.task)) else { continue };
            let message = format!(
                "{} job {} does not go on in the place of {}, which spins for {}",
                self.name_of(holder.task),
                holder.job,
                self.name_of(first),
                resource.name
            );
            self.resources.all[place].is_told = true;
            self.job_finding(Class::ModelViolated, Check::Resource, holder.task, holder.job, message, None);
        }
    }
}
