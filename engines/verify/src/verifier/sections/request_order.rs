//! Requests of one instant for one resource: who asks first (decision 0018).
//!
//! They come in rounds. In each round every processor chooses, and then, from the lowest processor up, each chosen job asks that had the processor
//! before this instant or was chosen in an earlier round. So a job that had its processor before asks before every job that has got its
//! processor at this instant, and of two that had theirs before the one of the lower processor asks first. Nothing is said here of jobs that
//! have done something else at the instant, and of two that both got their processor at it: in which round they ask the records do not tell.
//!
//! In a run the stamps of two processors tell no order, so only simulated traces are judged.

use crate::verifier::Verifier;
use horolog_model::System;
use horolog_trace::{Kind, Record};

/// When a task's job got its processor last, and when it did something else last, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Acts {
    got_at: Option<u64>,
    acted_at: Option<u64>,
}

/// A request at the present instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Request {
    task: usize,
    /// What is asked for: a resource, or the processor that executes its sections.
    queue: usize,
    cpu: u32,
    /// Its job got the processor at this instant, not before.
    is_chosen_now: bool,
}

/// The requests of the present instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    now: u64,
    acts: Vec<Acts>,
    asked: Vec<Request>,
    /// Of each resource of several processors: its queue. `None` of others, where one processor decides.
    queues: Vec<Option<usize>>,
}

impl Requests {
    pub(super) fn of(system: &System) -> Requests {
        let resources = system.resources();
        let queue = |place: usize| {
            let protocol = resources[place].protocol;
            // Sections on one processor begin by the order of the requests for all its resources.
            let same = |other: usize| protocol.is_remote() && resources[other].cpu == resources[place].cpu;
            let is_global = protocol.spins() || protocol.boosts() || protocol.is_remote();
            is_global.then(|| (0..place).find(|&other| same(other)).unwrap_or(place))
        };
        let queues = (0..resources.len()).map(queue).collect();
        Requests { acts: vec![Acts::default(); system.tasks().len()], queues, ..Requests::default() }
    }

    /// Records were lost: what asks and what is handed on cannot be told apart any more, so nothing is judged from here on.
    pub(super) fn lose(&mut self) {
        self.queues.fill(None);
    }

    /// It is this time now.
    fn at(&mut self, now: u64) {
        if self.now != now {
            self.now = now;
            self.asked.clear();
        }
    }

    /// A task's job does something.
    fn note(&mut self, record: &Record, task: usize) {
        let acts = &mut self.acts[task];
        match record.kind {
            Kind::Start | Kind::Resume => acts.got_at = Some(self.now),
            // What the clock does to it, or who else gets the processor.
            Kind::Release | Kind::Preempt | Kind::Miss => {}
            _ => acts.acted_at = Some(self.now),
        }
    }

    /// A task's job asks, on this processor: who has asked before it and should not have.
    fn ask(&mut self, task: usize, place: usize, cpu: u32) -> Option<usize> {
        let queue = self.queues.get(place).copied().flatten()?;
        let Acts { got_at, acted_at } = self.acts[task];
        let got_at = got_at.filter(|_| acted_at != Some(self.now))?;
        let request = Request { task, queue, cpu, is_chosen_now: got_at == self.now };
        let comes_after = |other: &&Request| {
            other.queue == queue && !request.is_chosen_now && (other.is_chosen_now || other.cpu > request.cpu)
        };
        let wrong = self.asked.iter().find(comes_after).map(|other| other.task);
        self.asked.push(request);
        wrong
    }
}

impl Verifier {
    /// A record of a task, before anything else is made of it: whether it asks for a resource in its turn.
    pub(crate) fn judge_request_order(&mut self, record: &Record, task: usize) {
        if !self.model.simulated || !self.resources.has_any() {
            return;
        }
        let place = usize::try_from(record.value).ok().filter(|&place| place < self.resources.all.len());
        let asks = place.filter(|_| self.is_request(record, task));
        let cpu = self.model.cpus[self.model.tasks[task].cpu];
        self.resources.requests.at(self.now);
        let wrong = asks.and_then(|place| self.resources.requests.ask(task, place, cpu));
        if let (Some(place), Some(other)) = (asks, wrong) {
            let message = format!(
                "{} job {} asks for {} after {} at the same instant, and its turn was before: requests come from the lowest CPU up, of jobs \
                 that had their processor before the instant first",
                self.name_of(task),
                record.job,
                self.resources.name(place),
                self.name_of(other)
            );
            self.resource_finding(task, record.job, message);
        }
        self.resources.requests.note(record, task);
    }

    /// Whether a record says that a job asks, and not that it gets what it has waited for.
    fn is_request(&self, record: &Record, task: usize) -> bool {
        let waits = |place: u64| {
            let resource = self.resources.all.get(place as usize);
            resource.is_some_and(|it| it.waiting.iter().any(|waiting| waiting.task == task))
        };
        match record.kind {
            Kind::Spin => true,
            Kind::Suspend => record.extra == super::OF_RESOURCE,
            Kind::Lock => {
                let is_woken = self.tasks[task].pending.front().is_some_and(|job| job.asks_for.is_some());
                !waits(record.value) && !is_woken
            }
            _ => false,
        }
    }
}
