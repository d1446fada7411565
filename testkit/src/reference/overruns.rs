//! Jobs that execute longer than the model says, by decision 0010.

use super::group::{Group, Pending};
use super::order::number;
use super::{Job, What};
use horolog_model::{ExecutionTimes, OverrunPolicy, Segment, Task};

/// How long the job of this number executes, where the file lists it.
pub(super) fn give_times(task: &Task, number: usize, job: &mut Job) {
    match &task.execution {
        ExecutionTimes::Jobs(times) => job.segments = vec![times[number % times.len()].as_ns()],
        ExecutionTimes::Segments(lists) => {
            job.path = longest_way(segments(task), 0);
            let time = |&segment: &usize| lists[segment][number % lists[segment].len()].as_ns();
            job.segments = job.path.iter().map(time).collect();
        }
        _ => {}
    }
}

fn segments(task: &Task) -> &[Segment] {
    task.segment_graph().map_or(&[][..], |graph| &graph.segments)
}

/// The way from a segment to an end whose wcets are the longest in all; of several, by the lower segments.
fn longest_way(segments: &[Segment], from: usize) -> Vec<usize> {
    let ways = segments[from].next.iter().map(|&next| longest_way(segments, next));
    let length = |way: &Vec<usize>| way.iter().map(|&at| segments[at].wcet.as_ns()).sum::<u64>();
    let best = ways.max_by_key(|way| (length(way), std::cmp::Reverse(way.clone())));
    std::iter::once(from).chain(best.into_iter().flatten()).collect()
}

/// The bcets of the shortest way behind a segment.
fn shortest_behind(segments: &[Segment], from: usize) -> u64 {
    let behind = |&next: &usize| segments[next].bcet.as_ns() + shortest_behind(segments, next);
    segments[from].next.iter().map(behind).min().unwrap_or(0)
}

/// The segments that a job has taken, the present one last.
fn taken(job: &Job, place: usize) -> Vec<usize> {
    (0..=place).map(|place| job.path.get(place).copied().unwrap_or(place)).collect()
}

impl Group<'_> {
    /// Whether a release of this task does not take place, since a job before has overrun.
    pub(super) fn skips_release(&mut self, task: usize) -> bool {
        self.stopped[task] || std::mem::take(&mut self.skips[task])
    }

    /// The segment that has just ended may have executed longer than its wcet.
    pub(super) fn note_overrun(&mut self, now: u64, slot: usize, at: usize, job: &Job) {
        let pending = &self.pending[at];
        let (id, executed) = (pending.id, pending.executed);
        let segments = segments(self.task(id.0));
        let Some(&present) = taken(job, pending.segment).last() else { return };
        if segments.get(present).is_some_and(|segment| executed > segment.wcet.as_ns()) {
            self.note(now, What::Overrun(1 + present as u64), slot, id);
        }
    }

    /// What a job has executed in all when its budget is used up.
    fn budget(&self, pending: &Pending, job: &Job) -> u64 {
        let task = self.task(pending.id.0);
        let segments = segments(task);
        if segments.is_empty() {
            return task.wcet.as_ns();
        }
        let taken = taken(job, pending.segment);
        let Some((&present, before)) = taken.split_last() else { return u64::MAX };
        let wcet = |&at: &usize| segments[at].wcet.as_ns();
        let way: u64 = before.iter().chain(&longest_way(segments, present)).map(wcet).sum();
        let begun = pending.total - pending.executed;
        let surely = way.saturating_sub(shortest_behind(segments, present));
        let blocking = self.longest_blocking(pending.id.0).map_or(u64::MAX, |longest| begun + longest);
        way.min(surely.max(begun + wcet(&present))).min(blocking)
    }

    /// The longest stretch without preemption that the more important tasks of this task's processor may wait for.
    fn longest_blocking(&self, index: usize) -> Option<u64> {
        let own = self.task(index);
        let own_priority = own.priority.map(number)?;
        let system = self.system;
        let has_schedulers = system.servers().iter().any(|one| one.cpu == own.cpu && one.is_scheduler());
        if has_schedulers || !system.modes().is_empty() {
            return None;
        }
        let here = || {
            let on_cpu = system.tasks().iter().filter(|task| task.cpu == own.cpu);
            on_cpu.filter_map(|task| Some((task, number(task.priority?))))
        };
        if !here().any(|(_, priority)| priority > own_priority) {
            return None;
        }
        let stretch = |task: &Task| match task.segment_graph() {
            Some(graph) => graph.segments.iter().map(|segment| segment.wcet.as_ns()).max(),
            None if task.is_non_preemptive_between_points() => Some(task.wcet.as_ns()),
            None => None,
        };
        here().filter(|&(_, priority)| priority <= own_priority).filter_map(|(task, _)| stretch(task)).max()
    }

    /// Who has the processor, has used up his budget and has not ended is acted upon, once.
    pub(super) fn act(&mut self, now: u64, slot: usize, jobs: &[Vec<Job>]) {
        let Some(id) = self.slots[slot].running else { return };
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else { return };
        let is_used_up = self.pending[at].total >= self.budget(&self.pending[at], &jobs[id.0][id.1]);
        if self.pending[at].acted || !is_used_up {
            return;
        }
        let goes_on = matches!(
            self.task(id.0).overrun,
            OverrunPolicy::Count | OverrunPolicy::Skip | OverrunPolicy::Mode(_)
        );
        if !goes_on && !self.pending[at].holds.is_empty() {
            return;
        }
        self.pending[at].acted = true;
        match self.task(id.0).overrun {
            OverrunPolicy::Skip => {
                self.skips[id.0] = true;
                self.note(now, What::Act(1), slot, id);
            }
            OverrunPolicy::Demote => {
                self.pending[at].lowered = true;
                self.note(now, What::Act(2), slot, id);
            }
            OverrunPolicy::Stop => {
                self.stopped[id.0] = true;
                self.pending.retain(|pending| pending.id.0 != id.0);
                self.slots[slot].running = None;
                self.note(now, What::Act(3), slot, id);
            }
            OverrunPolicy::Drop => {
                self.pending.retain(|pending| pending.id != id);
                self.slots[slot].running = None;
                self.note(now, What::Act(4), slot, id);
            }
            OverrunPolicy::Mode(_) => {
                self.asked.push(id.0);
                self.note(now, What::Act(5), slot, id);
            }
            _ => {}
        }
    }
}
