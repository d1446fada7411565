//! Where of each processor one job at a time has a place in the queues (decision 0029): who that is, and who is the next.
//!
//! Who has it follows from the records: a job that holds such a resource, or that waits and has a place in its queue. What was before a loss of records
//! is not known, so no turn is judged behind one.

use super::{Resource, Waiting};
use crate::verifier::Verifier;
use horolog_trace::Record;
use std::cmp::Reverse;

impl Resource {
    /// Of those that have a place in the queue the first one.
    pub(super) fn first_joined(&self) -> Option<&Waiting> {
        self.waiting.iter().filter(|it| it.joined.is_some()).min_by_key(|it| it.joined)
    }
}

impl Verifier {
    /// The task of the same processor, if another one, whose job holds a resource of these, or has a place in a queue.
    pub(super) fn token_of_another(&self, place: usize, task: usize) -> Option<usize> {
        if !self.resources.all[place].protocol.has_tokens() {
            return None;
        }
        let cpu = self.model.tasks[task].cpu;
        let all = self.resources.all.iter().filter(|it| it.protocol.has_tokens());
        let of = |resource: &Resource| {
            let holders = resource.holders.iter().map(|it| it.task);
            let joined = resource.waiting.iter().filter(|it| it.joined.is_some()).map(|it| it.task);
            holders.chain(joined).find(|&it| it != task && self.model.tasks[it].cpu == cpu)
        };
        all.filter_map(of).next()
    }

    /// Whether a job that asks may have to wait for another one of its processor.
    pub(super) fn may_wait_for_token(&self, place: usize, task: usize) -> bool {
        let has_tokens = self.resources.all[place].protocol.has_tokens();
        has_tokens && (self.resources.lost_at.is_some() || self.token_of_another(place, task).is_some())
    }

    /// A job waits for such a resource: it has a place in the queue where no other one of its processor has one.
    pub(super) fn asks_for_token(&mut self, place: usize, task: usize) {
        if !self.resources.all[place].protocol.has_tokens() {
            return;
        }
        self.resources.locks += 1;
        let order = self.resources.locks;
        let may_join = self.resources.lost_at.is_none() && self.token_of_another(place, task).is_none();
        let waiting = self.resources.all[place].waiting.iter_mut().filter(|it| it.task == task);
        for waiting in waiting {
            (waiting.order, waiting.joined) = (order, may_join.then_some(order));
        }
    }

    /// A job is handed such a resource that has no place in the queue: another one of its processor comes first.
    pub(super) fn check_token(&mut self, record: &Record, task: usize, place: usize) {
        if self.resources.lost_at.is_some() {
            return;
        }
        let Some(other) = self.token_of_another(place, task) else { return };
        let message = format!(
            "{} job {} is handed {}, and {} of the same CPU asks before it",
            self.model.tasks[task].name,
            record.job,
            self.resources.name(place),
            self.model.tasks[other].name
        );
        self.turn_finding(task, record.job, message);
    }

    /// A job has let go of such a resource: the most important one of its processor that waits, of equals the one that has waited longest, comes into the
    /// queue of what it waits for, and is the next one there where nobody has it.
    pub(super) fn pass_token(&mut self, place: usize, task: usize) {
        if self.resources.lost_at.is_some()
            || !self.resources.all[place].protocol.has_tokens()
            || self.token_of_another(place, task).is_some()
        {
            return;
        }
        let cpu = self.model.tasks[task].cpu;
        let mut next: Option<((i64, Reverse<u64>), usize, usize)> = None;
        for (place, resource) in self.resources.all.iter().enumerate() {
            for it in resource.waiting.iter().filter(|it| self.model.tasks[it.task].cpu == cpu) {
                let key = (self.model.tasks[it.task].priority, Reverse(it.order));
                if resource.protocol.has_tokens() && next.is_none_or(|next| key > next.0) {
                    next = Some((key, place, it.task));
                }
            }
        }
        let Some((_, place, task)) = next else { return };
        self.resources.locks += 1;
        let (order, now) = (self.resources.locks, self.now);
        let resource = &mut self.resources.all[place];
        let is_free = resource.holders.is_empty() && resource.handed.is_none();
        if let Some(waiting) = resource.waiting.iter_mut().find(|it| it.task == task) {
            waiting.joined = Some(order);
        }
        if is_free {
            (resource.handed, resource.free_since) = (Some(task), now);
        }
    }
}
