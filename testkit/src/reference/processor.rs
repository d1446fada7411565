//! One processor, unit by unit.

use super::order::{Place, number};
use super::rules::{HardTask, Ran, Rules, rules_of};
use super::{Event, Job, Schedule, What};
use horolog_model::{CpuId, Policy, Server, System, Task};

/// A job that was released and has not ended.
#[derive(Clone, Debug)]
struct Pending {
    task: usize,
    job: usize,
    /// Its place in the order of all releases and changes of place.
    order: u64,
    released: u64,
    segment: usize,
    /// Units executed in the present segment.
    executed: u64,
    /// Units executed in all.
    total: u64,
    started: bool,
}

/// A server, its rules, and where it stands.
struct Node {
    /// Its place in the system.
    server: usize,
    rules: Box<dyn Rules>,
    place: Option<Place>,
    /// When it came to its place, in the order of all releases and changes of place.
    order: u64,
    /// When its queue was empty last.
    ready_since: u64,
    /// The units in which it used its budget.
    used: Vec<u64>,
}

/// One who may get the processor.
struct Candidate {
    place: Place,
    order: u64,
    released: u64,
    id: usize,
    /// Place in the list of pending jobs.
    pending: usize,
}

/// One processor of a system.
pub(super) struct Processor<'a> {
    system: &'a System,
    jobs: &'a [Vec<Job>],
    cpu: CpuId,
    pending: Vec<Pending>,
    nodes: Vec<Node>,
    /// Which node serves each task.
    served_by: Vec<Option<usize>>,
    /// The job that has the processor: (task, job).
    running: Option<(usize, usize)>,
    at_point: bool,
    /// Who had the processor last, for the costs of switches.
    last: Option<usize>,
    /// What the kernel has yet to do.
    owed: u64,
    counter: u64,
    completed_now: bool,
    schedule: Schedule,
}

impl<'a> Processor<'a> {
    pub(super) fn new(system: &'a System, jobs: &'a [Vec<Job>], cpu: CpuId) -> Processor<'a> {
        let here: Vec<(usize, &Server)> =
            system.servers().iter().enumerate().filter(|(_, server)| server.cpu == cpu).collect();
        let served_by: Vec<Option<usize>> = system
            .tasks()
            .iter()
            .map(|task| here.iter().position(|(_, server)| server.tasks.contains(&task.name)))
            .collect();
        let hard: Vec<HardTask> = system
            .tasks()
            .iter()
            .enumerate()
            .filter(|(index, task)| task.cpu == cpu && served_by[*index].is_none())
            .map(|(index, task)| HardTask::of(index, task))
            .collect();
        let nodes = here
            .iter()
            .map(|&(server, spec)| Node {
                server,
                rules: rules_of(spec, &hard),
                place: None,
                order: 0,
                ready_since: 0,
                used: Vec::new(),
            })
            .collect();
        let schedule = Schedule { used: vec![Vec::new(); system.servers().len()], ..Schedule::default() };
        Processor {
            system,
            jobs,
            cpu,
            pending: Vec::new(),
            nodes,
            served_by,
            running: None,
            at_point: false,
            last: None,
            owed: 0,
            counter: 0,
            completed_now: false,
            schedule,
        }
    }

    /// Every unit up to `end`.
    pub(super) fn run(mut self, end: u64) -> Schedule {
        for now in 0..=end {
            self.completed_now = false;
            self.end_segment(now);
            if now == end {
                break;
            }
            // A budget that has ended moves its server, even where it comes back at this instant.
            self.move_servers(now);
            let timed = self.timers(now);
            let released = self.releases(now);
            self.settle(now);
            self.schedule.coincidences += u64::from(self.completed_now && (timed || released));
            if self.owed == 0 {
                self.choose(now);
            }
            self.execute(now);
        }
        for node in &mut self.nodes {
            self.schedule.used[node.server] = std::mem::take(&mut node.used);
        }
        self.schedule
    }

    fn task(&self, index: usize) -> &'a Task {
        &self.system.tasks()[index]
    }

    fn next_order(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn note(&mut self, at: u64, what: What, (task, job): (usize, usize)) {
        self.schedule.events.push(Event { at, task, what, job });
    }

    fn has_work(&self, node: usize) -> bool {
        self.pending.iter().any(|job| self.served_by[job.task] == Some(node))
    }

    /// The running job ends a segment, or ends, when it has executed all of it.
    fn end_segment(&mut self, now: u64) {
        let Some((task, job)) = self.running else { return };
        let Some(at) = self.pending.iter().position(|p| (p.task, p.job) == (task, job)) else { return };
        let segments = &self.jobs[task][job].segments;
        let pending = &mut self.pending[at];
        if pending.executed < segments[pending.segment] {
            return;
        }
        if pending.segment + 1 < segments.len() {
            (pending.segment, pending.executed) = (pending.segment + 1, 0);
            self.at_point = true;
            return;
        }
        let total = pending.total;
        self.pending.remove(at);
        self.running = None;
        self.completed_now = true;
        self.note(now, What::Completion, (task, job));
        match self.served_by[task] {
            None => self.nodes.iter_mut().for_each(|node| node.rules.hard_ends(now, task, total)),
            Some(node) if !self.has_work(node) => {
                self.nodes[node].rules.empties(now);
                self.nodes[node].place = None;
            }
            Some(_) => {}
        }
    }

    /// Interrupts, then every timer that is due; whether a server's timer was.
    fn timers(&mut self, now: u64) -> bool {
        let platform = self.system.platform();
        let interrupt = platform.timer_interrupt.map_or(0, |cost| cost.as_ns());
        if platform.tick.is_some_and(|tick| now.is_multiple_of(tick.as_ns())) {
            self.owed += interrupt;
        }
        for load in self.system.interferences().iter().filter(|load| load.cpu == self.cpu) {
            let period = load.period.as_ns();
            if now.is_multiple_of(period) {
                self.owed += load.utilisation_ppb * period / 1_000_000_000;
            }
        }
        let mut timed = false;
        for index in 0..self.nodes.len() {
            let has_work = self.has_work(index);
            timed |= self.nodes[index].rules.timers(now, has_work);
        }
        if timed {
            self.schedule.timers.push(now);
        }
        self.move_servers(now);
        timed
    }

    /// Jobs arrive in the order of their tasks; whether any did.
    fn releases(&mut self, now: u64) -> bool {
        let mut any = false;
        for task in 0..self.jobs.len() {
            if self.task(task).cpu != self.cpu {
                continue;
            }
            let jobs = self.jobs;
            for (job, spec) in jobs[task].iter().enumerate().filter(|(_, spec)| spec.ready == now) {
                any = true;
                self.release(now, task, job, spec.arrival);
            }
        }
        any
    }

    fn release(&mut self, now: u64, task: usize, job: usize, arrival: u64) {
        if self.system.platform().tick.is_none() {
            self.owed += self.system.platform().timer_interrupt.map_or(0, |cost| cost.as_ns());
        }
        let order = self.next_order();
        let first = match self.served_by[task] {
            Some(node) => !self.has_work(node),
            None => false,
        };
        self.pending.push(Pending {
            task,
            job,
            order,
            released: now,
            segment: 0,
            executed: 0,
            total: 0,
            started: false,
        });
        match self.served_by[task] {
            None => self.nodes.iter_mut().for_each(|node| node.rules.hard_arrives(now, task, job, arrival)),
            Some(node) if first => {
                self.nodes[node].rules.arrives(now);
                self.nodes[node].ready_since = now;
                self.move_servers(now);
            }
            Some(_) => {}
        }
    }

    /// What is decided when all jobs of this instant are known.
    fn settle(&mut self, now: u64) {
        for index in 0..self.nodes.len() {
            let has_work = self.has_work(index);
            self.nodes[index].rules.settles(now, has_work);
        }
        self.move_servers(now);
    }

    /// Servers whose place is another one now stand at the end of it.
    fn move_servers(&mut self, now: u64) {
        for index in 0..self.nodes.len() {
            let has_work = self.has_work(index);
            let place = self.nodes[index].rules.place(now).filter(|_| has_work);
            if place != self.nodes[index].place {
                let order = self.next_order();
                self.nodes[index].order = order;
                self.nodes[index].place = place;
            }
        }
    }

    /// The oldest job of each hard task, and the first one in the queue of each server that has a place.
    fn candidates(&self, now: u64) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for task in (0..self.jobs.len()).filter(|&task| self.served_by[task].is_none()) {
            let oldest = (0..self.pending.len())
                .filter(|&at| self.pending[at].task == task)
                .min_by_key(|&at| self.pending[at].job);
            if let Some(pending) = oldest {
                let job = &self.pending[pending];
                let place = self.hard_place(now, task, job.job);
                candidates.push(Candidate {
                    place,
                    order: job.order,
                    released: job.released,
                    id: task,
                    pending,
                });
            }
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let first = (0..self.pending.len())
                .filter(|&at| self.served_by[self.pending[at].task] == Some(index))
                .min_by_key(|&at| self.pending[at].order);
            if let (Some(pending), Some(place)) = (first, node.place) {
                let id = self.jobs.len() + index;
                candidates.push(Candidate {
                    place,
                    order: node.order,
                    released: node.ready_since,
                    id,
                    pending,
                });
            }
        }
        candidates
    }

    fn hard_place(&self, now: u64, task: usize, job: usize) -> Place {
        let spec = self.task(task);
        if self.system.policy() == Policy::Edf {
            let arrival = self.jobs[task][job].arrival;
            return Place::deadline(spec.deadline.map(|deadline| arrival + deadline.as_ns()));
        }
        let priority = spec.priority.map_or(i64::MIN, number);
        let promoted = self.nodes.iter().any(|node| node.rules.is_promoted(now, task, job));
        if promoted { Place::promoted(priority) } else { Place::priority(priority) }
    }

    /// Gives the processor to the most important one.
    fn choose(&mut self, now: u64) {
        let committed = self
            .running
            .filter(|&(task, _)| self.task(task).is_non_preemptive_between_points() && !self.at_point);
        let chosen = committed.or_else(|| self.most_important(now));
        if chosen != self.running {
            if let Some(previous) = self.running {
                self.note(now, if self.at_point { What::Yield } else { What::Preempt }, previous);
            }
            if let Some(next) = chosen {
                self.take_up(now, next);
            }
        }
        (self.at_point, self.running) = (false, chosen);
        let task = chosen.map(|(task, _)| task);
        if task != self.last {
            if task.is_some() {
                self.owed += self.system.platform().context_switch.map_or(0, |cost| cost.as_ns());
            }
            self.last = task;
        }
    }

    fn take_up(&mut self, now: u64, next: (usize, usize)) {
        let mut what = What::Resume;
        for pending in self.pending.iter_mut().filter(|p| (p.task, p.job) == next && !p.started) {
            pending.started = true;
            what = What::Start;
        }
        self.note(now, what, next);
    }

    fn most_important(&self, now: u64) -> Option<(usize, usize)> {
        let candidates = self.candidates(now);
        let top = candidates.iter().map(|candidate| candidate.place).max()?;
        let equals = candidates.iter().filter(|candidate| candidate.place == top);
        let of = |candidate: &Candidate| {
            let pending = &self.pending[candidate.pending];
            (pending.task, pending.job)
        };
        let first = match self.system.policy() {
            Policy::Edf => equals.min_by_key(|c| (self.running != Some(of(c)), c.released, c.id)),
            _ => equals.min_by_key(|c| (self.running != Some(of(c)), c.order)),
        };
        first.map(of)
    }

    /// One unit for the kernel, for the running job, or for nobody.
    fn execute(&mut self, now: u64) {
        let mut ran = Ran::Nobody;
        let kernel = self.owed > 0;
        if kernel {
            self.owed -= 1;
        } else if let Some(running) = self.running {
            for pending in self.pending.iter_mut().filter(|p| (p.task, p.job) == running) {
                pending.executed += 1;
                pending.total += 1;
            }
            ran = match self.served_by[running.0] {
                Some(node) => Ran::Server(node),
                None => Ran::Hard(running.0, running.1),
            };
        }
        for index in 0..self.nodes.len() {
            let has_work = self.has_work(index);
            let is_others = matches!(ran, Ran::Server(other) if other != index);
            let node = &mut self.nodes[index];
            if !kernel && !is_others && node.rules.unit(now, ran, has_work) {
                node.used.push(now);
            }
        }
    }
}
