//! Resources that are passed on: whose turn it is, who is woken for what, and what is waited for when a trace ends.

use super::{OF_RESOURCE, Resource};
use crate::result::{Check, Class};
use crate::verifier::Verifier;
use horolog_model::Protocol;
use horolog_time::Span;
use horolog_trace::Record;

impl Verifier {
    /// A job is ready to ask again for the resource that it waited for: nobody else holds it now.
    pub(crate) fn asks_again(&mut self, record: &Record, task: usize) {
        if let Some(place) = self.resource_of(record, task) {
            if self.resources.all[place].protocol.is_remote() {
                return self.comes_home(record, task, place);
            }
            let bar = self.bar_of(task).filter(|_| self.is_original(place));
            self.check_turn(record, task, place);
            let resource = &mut self.resources.all[place];
            let count = resource.waiting.len();
            resource.waiting.retain(|waiting| waiting.task != task);
            let has_waited = count > resource.waiting.len();
            if !has_waited && resource.is_known {
                let name = resource.name.clone();
                let message = format!(
                    "{} job {} is woken for {name}, for which it does not wait",
                    self.name_of(task),
                    record.job
                );
                self.waiting_finding(task, record.job, message);
            }
            let resource = &self.resources.all[place];
            let holder = resource.holders.iter().map(|holder| holder.task).find(|&holder| holder != task);
            let holder = holder.map(|holder| (place, holder)).or(bar);
            if let (Some((held, holder)), true) = (holder, resource.is_known && has_waited) {
                let message = format!(
                    "{} job {} is woken to lock {}, and {} holds {}",
                    self.name_of(task),
                    record.job,
                    self.resources.all[place].name,
                    self.name_of(holder),
                    self.resources.all[held].name
                );
                self.waiting_finding(task, record.job, message);
            }
        }
        self.awake(record, task);
    }

    /// A resource of several processors is free: it is the turn of one of those that wait, from now on, also where that one notices later.
    pub(super) fn hand_on(&mut self, place: usize) {
        let resource = &self.resources.all[place];
        let waiting = &resource.waiting;
        let priority = |it: &&super::Waiting| self.model.tasks[it.task].priority;
        let next = match resource.protocol {
            // Of equals the one that has waited longest.
            Protocol::Mpcp => waiting.iter().rev().max_by_key(priority),
            Protocol::FmlpPlus => waiting.front(),
            Protocol::Omlp => resource.first_joined(),
            _ => None,
        };
        self.resources.all[place].handed = next.map(|it| it.task);
    }

    /// A resource of several processors has gone to a job whose turn it was not. In a run its records have the order of the queue, so the schedule is
    /// not that of the protocol.
    pub(super) fn turn_finding(&mut self, task: usize, job: u64, message: String) {
        let class = if self.model.simulated { Class::ModelViolated } else { Class::ScheduleDiffers };
        self.job_finding(class, Check::Resource, task, job, message, None);
    }

    /// A job that is suspended is handed a resource of several processors: it is its turn, and no other job may lock it now.
    fn check_turn(&mut self, record: &Record, task: usize, place: usize) {
        let resource = &mut self.resources.all[place];
        if !resource.protocol.boosts() {
            return;
        }
        let waits_for_its_turn = |it: &super::Waiting| it.task == task && it.joined.is_none();
        if resource.protocol.has_tokens() && resource.waiting.iter().any(waits_for_its_turn) {
            return self.check_token(record, task, place);
        }
        let Some(next) = resource.handed.replace(task).filter(|&next| next != task) else { return };
        let message = format!(
            "{} job {} is handed {}, for which {} comes first",
            self.model.tasks[task].name, record.job, resource.name, self.model.tasks[next].name
        );
        self.turn_finding(task, record.job, message);
    }

    /// A job notices that it was handed a resource so long after it was free: as late as a release may be noticed.
    pub(super) fn check_notice(&mut self, record: &Record, task: usize, place: usize, late: u64) {
        let allowed = self.model.release_latency;
        if late <= allowed.saturating_add(self.model.stamping) {
            return;
        }
        let message = format!(
            "{} job {} noticed {} after the unlock that it was handed {}, {} are allowed",
            self.name_of(task),
            record.job,
            Span::from_ns(late),
            self.resources.name(place),
            Span::from_ns(allowed)
        );
        let numbers = Some((late, allowed));
        self.job_finding(Class::MachineDisturbed, Check::Release, task, record.job, message, numbers);
        let cpu = self.model.tasks[task].cpu;
        self.breach(cpu, self.now, late - allowed, false, "late hand-overs");
    }

    /// A simulation ends, of which nothing is cut off: whose turn it was before has been handed what it waited for.
    pub(crate) fn judge_handed(&mut self, is_whole: bool) {
        if !is_whole || !self.model.simulated {
            return;
        }
        for place in 0..self.resources.all.len() {
            let resource = &self.resources.all[place];
            let is_late = resource.free_since < self.now;
            let Some(task) = resource.handed.filter(|_| is_late) else { continue };
            let Some(job) = self.tasks[task].pending.front().map(|job| job.number) else { continue };
            let since = Span::from_ns(resource.free_since);
            let message = format!(
                "{} job {job} waits for {}, which was free since {since}, and is not handed it",
                self.name_of(task),
                resource.name
            );
            self.waiting_finding(task, job, message);
        }
    }

    /// A job asks for a resource of several processors and has to wait: it is the one that was chosen, and has not been handed it.
    pub(super) fn check_wait(&mut self, record: &Record, task: usize, place: usize) {
        let asks_for = self.tasks[task].pending.front().and_then(|job| job.asks_for);
        if asks_for != Some(place) {
            return self.check_choice_at_lock(task);
        }
        let message = format!(
            "{} job {} was woken to hold {}, and waits for it once more",
            self.name_of(task),
            record.job,
            self.resources.name(place)
        );
        self.waiting_finding(task, record.job, message);
    }

    /// A job is woken, and not for a resource: it does not wait for one.
    pub(crate) fn check_awake(&mut self, record: &Record, task: usize) {
        if record.extra == OF_RESOURCE {
            return;
        }
        let waits = |resource: &&Resource| resource.waiting.iter().any(|waiting| waiting.task == task);
        let Some(resource) = self.resources.all.iter().find(waits) else { return };
        let message = format!(
            "{} job {} is woken while it waits for {}, and not for that",
            self.name_of(task),
            record.job,
            resource.name
        );
        self.waiting_finding(task, record.job, message);
    }
}
