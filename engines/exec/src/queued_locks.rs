//! Resources whose jobs are suspended until another processor hands them one (decision 0020): the queues of all processors together, and what
//! waits to be noticed by each.
//!
//! A lock and an unlock go through the monitor of the job's own processor, and from within it to the queues, which are held for as long as it takes to
//! change one: who is inside a monitor is interrupted by its agent for a moment alone, and enters no other monitor. What is handed to a job of
//! another processor lies in that one's box until its agent, which is kicked, has told its machine.
//!
//! Each processor has read its clock before it comes here, so the queues could see two requests in another order than their records have. So
//! whoever comes with an instant that is not after the last one of a resource has to come again with a later one.

use crate::modes::kick;
use crate::remote_sections::RemoteSections;
use horolog_model::{System, TaskId};
use horolog_sched::{GlobalLocks, Grant};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What became of a request or an unlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came<T> {
    /// At an instant that is not after the last one of the resource: nothing is done.
    TooEarly,
    Done(T),
}

/// The resources of a run that processors hand to each other.
#[derive(Debug, Default)]
pub(crate) struct QueuedLocks {
    /// By resource.
    is_one: Vec<bool>,
    /// By task, the place of its processor among `boxes`.
    home: Vec<usize>,
    boxes: Vec<Mailbox>,
    state: Mutex<State>,
    /// Those whose sections execute on a processor of their own.
    pub(crate) remote: RemoteSections,
}

/// What other processors have for one.
#[derive(Debug)]
struct Mailbox {
    cpu: u32,
    is_full: AtomicBool,
    /// The word that its agent sleeps on. Told once.
    kick: OnceLock<Arc<AtomicU32>>,
}

#[derive(Debug, Default)]
struct State {
    queues: GlobalLocks,
    /// By resource, the place in `last` of what it shares its order of requests with: itself, all whose sections execute on the same processor, or all of which
    /// one job of each processor asks at a time.
    order_of: Vec<usize>,
    /// The last instant at which somebody came.
    last: Vec<u64>,
    /// By mailbox: what was handed over, and when.
    handed: Vec<Vec<(u64, Grant)>>,
}

impl QueuedLocks {
    pub(crate) fn of(system: &System) -> QueuedLocks {
        if system.first_boosting().is_none() {
            return QueuedLocks::default();
        }
        let mut boxes: Vec<Mailbox> = Vec::new();
        let mut home = Vec::new();
        for task in system.tasks() {
            let known = boxes.iter().position(|known| known.cpu == task.cpu.0);
            home.push(known.unwrap_or(boxes.len()));
            if known.is_none() {
                boxes.push(Mailbox {
                    cpu: task.cpu.0,
                    is_full: AtomicBool::new(false),
                    kick: OnceLock::new(),
                });
            }
        }
        // Of each task one job at a time waits.
        let handed = boxes.iter().map(|_| Vec::with_capacity(home.len())).collect();
        QueuedLocks {
            is_one: system.resources().iter().map(|resource| resource.protocol.boosts()).collect(),
            state: Mutex::new(State {
                queues: GlobalLocks::new(system),
                order_of: order_of(system),
                last: vec![0; system.resources().len()],
                handed,
            }),
            home,
            boxes,
            remote: RemoteSections::of(system),
        }
    }

    #[inline]
    pub(crate) fn is_one(&self, resource: usize) -> bool {
        self.is_one.get(resource).is_some_and(|&is_one| is_one)
    }

    /// The agents that are kicked. Told once.
    pub(crate) fn kick_these(&self, kicks: &[(u32, Arc<AtomicU32>)]) {
        for mailbox in &self.boxes {
            if let Some((_, word)) = kicks.iter().find(|(cpu, _)| *cpu == mailbox.cpu) {
                let _ = mailbox.kick.set(word.clone());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job of a task asks for a resource: whether it has it. Else it is in the queue. Only inside the monitor of its processor.
    pub(crate) fn request(&self, resource: usize, task: TaskId, now: u64) -> Came<bool> {
        let mut state = self.state();
        match state.comes(resource, now) {
            false => Came::TooEarly,
            true => Came::Done(state.queues.request(resource as u32, task)),
        }
    }

    /// The job of `by` lets go of a resource; who of the same processor has one now. Only inside the monitor of that processor.
    pub(crate) fn release(&self, resource: usize, by: TaskId, now: u64) -> Came<Option<Grant>> {
        let mut state = self.state();
        if !state.comes(resource, now) {
            return Came::TooEarly;
        }
        // To each processor one resource passes at most.
        let (here, mut next, mut remote) = (self.home[by.index()], None, None);
        state.queues.release(resource as u32, by, |grant| {
            let there = self.home[grant.task.index()];
            *(if there == here { &mut next } else { &mut remote }) = Some((there, grant));
        });
        if let Some((there, grant)) = remote {
            self.put_into_box(state, there, now, grant);
        }
        Came::Done(next.map(|(_, grant)| grant))
    }

    fn put_into_box(&self, mut state: MutexGuard<'_, State>, there: usize, now: u64, grant: Grant) {
        state.handed[there].push((now, grant));
        self.boxes[there].is_full.store(true, Ordering::Release);
        drop(state);
        if let Some(agent) = self.boxes[there].kick.get() {
            kick(agent);
        }
    }

    /// The section of a task's job has ended on the processor of its resource; the next one there may begin.
    pub(crate) fn end_section(&self, resource: usize, by: TaskId, now: u64) -> Came<()> {
        let mut state = self.state();
        if !state.comes(resource, now) {
            return Came::TooEarly;
        }
        state.queues.release(resource as u32, by, |grant| self.remote.begins(grant.task));
        Came::Done(())
    }

    /// Tells the own processor of a task that its section has ended elsewhere.
    pub(crate) fn send_home(&self, resource: usize, task: TaskId, now: u64) {
        let grant = Grant { task, resource: resource as u32 };
        self.put_into_box(self.state(), self.home[task.index()], now, grant);
    }

    /// What was handed to a job of a processor before `now`, one at a time.
    #[inline]
    pub(crate) fn next_handed(&self, cpu: u32, now: u64) -> Option<Grant> {
        let place = self.boxes.iter().position(|mailbox| mailbox.cpu == cpu)?;
        let mailbox = &self.boxes[place];
        if !mailbox.is_full.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        let handed = &mut state.handed[place];
        let grant = handed.iter().position(|(at, _)| *at < now).map(|first| handed.remove(first).1);
        mailbox.is_full.store(!handed.is_empty(), Ordering::Release);
        grant
    }
}

/// Resources whose sections execute on one processor share the order of their requests, and so do all of which one job of each processor asks at a time: an
/// unlock of one may bring a job into the queue of another.
fn order_of(system: &System) -> Vec<usize> {
    let all = system.resources();
    let first = |cpu| all.iter().position(|other| other.cpu == Some(cpu));
    let one_at_a_time = all.iter().position(|it| it.protocol.has_tokens());
    let of = |(place, it): (usize, &horolog_model::Resource)| {
        let shared = if it.protocol.has_tokens() { one_at_a_time } else { it.cpu.and_then(first) };
        shared.unwrap_or(place)
    };
    all.iter().enumerate().map(of).collect()
}

impl State {
    /// Somebody comes to a resource; whether after everybody before.
    fn comes(&mut self, resource: usize, now: u64) -> bool {
        let last = &mut self.last[self.order_of[resource]];
        let is_after = now > *last;
        *last = now.max(*last);
        is_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> QueuedLocks {
        let task = |name: &str, cpu: u32, priority: u32| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n\
                 [[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n"
            )
        };
        let text = format!(
            "[system]\nname = \"s\"\n[platform]\ncpus = [3, 5]\n[[resource]]\nname = \"own\"\n[[resource]]\nname = \"map\"\nprotocol = \"mpcp\"\n{}{}{}",
            task("a", 3, 5),
            task("b", 3, 9),
            task("c", 5, 7)
        );
        let (system, _) = horolog_model::file::read(&text, "s.toml", &[]).expect("a valid file");
        QueuedLocks::of(&system)
    }

    const MAP: usize = 1;
    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const C: TaskId = TaskId(2);

    #[test]
    fn what_is_handed_to_another_processor_lies_in_its_box_until_a_later_instant() {
        let locks = three();
        let word = Arc::new(AtomicU32::new(0));
        locks.kick_these(&[(5, word.clone())]);
        assert!(locks.is_one(MAP) && !locks.is_one(0) && !locks.is_one(2));
        assert_eq!(locks.request(MAP, A, 10), Came::Done(true));
        assert_eq!(locks.request(MAP, C, 11), Came::Done(false));
        assert_eq!((locks.next_handed(5, 100), word.load(Ordering::SeqCst)), (None, 0));
        assert_eq!(locks.release(MAP, A, 20), Came::Done(None));
        assert_eq!(word.load(Ordering::SeqCst), 1, "its agent is kicked");
        assert_eq!((locks.next_handed(3, 100), locks.next_handed(5, 20)), (None, None));
        assert_eq!(locks.next_handed(5, 21), Some(Grant { task: C, resource: MAP as u32 }));
        assert_eq!(locks.next_handed(5, 100), None);
    }

    #[test]
    fn a_job_of_the_same_processor_has_it_at_once() {
        let locks = three();
        assert_eq!(locks.request(MAP, C, 1), Came::Done(true));
        assert_eq!(locks.request(MAP, A, 2), Came::Done(false));
        assert_eq!(locks.request(MAP, B, 3), Came::Done(false));
        // By importance, not in the order of requests.
        assert_eq!(locks.release(MAP, C, 4), Came::Done(None));
        assert_eq!(locks.next_handed(3, 5), Some(Grant { task: B, resource: MAP as u32 }));
        assert_eq!(locks.release(MAP, B, 6), Came::Done(Some(Grant { task: A, resource: MAP as u32 })));
        assert_eq!(locks.next_handed(3, 7), None);
        assert_eq!(locks.release(MAP, A, 8), Came::Done(None));
    }

    #[test]
    fn who_comes_with_an_earlier_instant_comes_again() {
        let locks = three();
        assert_eq!(locks.request(MAP, C, 10), Came::Done(true));
        assert_eq!(locks.request(MAP, A, 10), Came::TooEarly);
        assert_eq!(locks.release(MAP, C, 9), Came::TooEarly);
        assert_eq!(locks.release(MAP, C, 11), Came::Done(None));
        assert_eq!(locks.request(MAP, A, 11), Came::TooEarly);
        assert_eq!(locks.request(MAP, A, 12), Came::Done(true), "the earlier request was not queued");
    }
}
