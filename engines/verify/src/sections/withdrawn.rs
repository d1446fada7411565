//! Jobs that are preempted while they spin, and ask anew (decision 0027): they have no place in the queue meanwhile.

use super::Spinning;
use crate::verifier::Verifier;
use horolog_trace::Record;

impl Verifier {
    /// A job is preempted: where it spins for a lock whose protocol says so, it leaves the queue. What it has spun is none of what it executes.
    pub(crate) fn leave_queue(&mut self, task: usize) {
        let Some(spinning) = self.resources.spinning.get_mut(task) else { return };
        let Some(Spinning { place, so_far, .. }) = *spinning else { return };
        let resource = &mut self.resources.all[place];
        if !resource.protocol.asks_anew() {
            return;
        }
        *spinning = None;
        resource.waiting.retain(|waiting| waiting.task != task);
        self.resources.withdrawn[task] = Some(place);
        if let Some(job) = self.tasks[task].pending.front_mut() {
            (job.executed, job.interrupted) = so_far;
        }
    }

    /// A job asks for a resource: whether it does so anew, for that one. Finds fault where it has left the queue of another one.
    pub(super) fn asks_anew(&mut self, record: &Record, task: usize, place: Option<usize>) -> bool {
        let before = self.resources.withdrawn[task];
        if before.is_none() || before == place {
            self.resources.withdrawn[task] = None;
            return before.is_some();
        }
        self.check_withdrawn(task, record.job);
        false
    }

    /// A job goes on or ends, and has not asked anew for what it spun for when it was preempted.
    pub(super) fn check_withdrawn(&mut self, task: usize, job: u64) {
        let Some(place) = self.resources.withdrawn[task].take() else { return };
        let message = format!(
            "{} job {job} was preempted while it spun for {}, and goes on without asking anew",
            self.name_of(task),
            self.resources.name(place)
        );
        self.resource_finding(task, job, message);
    }
}
