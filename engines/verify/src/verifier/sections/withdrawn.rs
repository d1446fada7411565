//! Jobs that are preempted while they spin, and ask anew (decision 0027): they have no place in the queue meanwhile.

use super::Spinning;
use crate::verifier::Verifier;
use horolog_trace::Record;

/// What a job asks for anew, and what it had executed when it asked first, with how often it had got the processor when it left the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Withdrawn {
    place: usize,
    executed: u64,
    switches: u64,
    since: u64,
}

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
        if let Some(job) = self.tasks[task].pending.front_mut() {
            (job.executed, job.interrupted) = so_far;
            let switches = job.switches;
            let (executed, since) = (so_far.0, self.now);
            self.resources.withdrawn[task] = Some(Withdrawn { place, executed, switches, since });
        }
    }

    /// The trace ends, and with it what jobs still spin: none of that is what they execute.
    pub(crate) fn end_spinning(&mut self) {
        for (task, spinning) in self.tasks.iter_mut().zip(&mut self.resources.spinning) {
            let Some(Spinning { so_far, .. }) = spinning.take() else { continue };
            if let Some(job) = task.pending.front_mut() {
                (job.executed, job.interrupted) = so_far;
            }
        }
    }

    /// A job asks for a resource: whether it does so anew, for that one. Finds fault where it has left the queue of another one, or a simulated one has gone on in between.
    pub(super) fn asks_anew(&mut self, record: &Record, task: usize, place: usize) -> bool {
        let Some(before) = self.resources.withdrawn[task] else { return false };
        let job = self.tasks[task].pending.front();
        let (executed, switches) = job.map_or((0, 0), |job| (job.executed, job.switches));
        let switches = switches.saturating_sub(before.switches);
        let again = job.filter(|_| switches <= 1).map_or(before.since, |job| job.runs_from);
        let cpu = self.model.tasks[task].cpu;
        // What the switch to it took, with the timer interrupts and loads that came meanwhile, is on record as its execution.
        let taken = match self.model.is_free_of_costs(cpu) {
            true => 0,
            false => self.part_slack(cpu, (again, self.now), switches),
        };
        let has_gone_on = executed > before.executed.saturating_add(taken);
        if before.place != place || self.model.simulated && has_gone_on {
            self.check_withdrawn(task, record.job);
            return before.place == place;
        }
        self.resources.withdrawn[task] = None;
        true
    }

    /// A job that spins for a resource already asks for it once more: it comes behind all others. In a run it may have been preempted between its request and
    /// the record of that.
    pub(super) fn asks_twice(&mut self, record: &Record, task: usize, place: usize) -> bool {
        let resource = &mut self.resources.all[place];
        let count = resource.waiting.len();
        resource.waiting.retain(|waiting| waiting.task != task);
        if count == resource.waiting.len() {
            return false;
        }
        let name = resource.name.clone();
        let message =
            format!("{} job {} asks for {name}, for which it spins already", self.name_of(task), record.job);
        self.waiting_finding(task, record.job, message);
        true
    }

    /// A job goes on or ends, and has not asked anew for what it spun for when it was preempted.
    pub(super) fn check_withdrawn(&mut self, task: usize, job: u64) {
        let Some(Withdrawn { place, .. }) = self.resources.withdrawn[task].take() else { return };
        let message = format!(
            "{} job {job} was preempted while it spun for {}, and goes on without asking anew",
            self.name_of(task),
            self.resources.name(place)
        );
        self.resource_finding(task, job, message);
    }
}
