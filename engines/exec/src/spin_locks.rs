//! Spin locks across processors on real threads (decision 0018): a queue for each lock, and a word for each processor that says what a
//! job there waits for or holds.
//!
//! A job claims its processor's word, joins the queue, and spins until it is its turn. Where another job of the processor has the word (it sleeps
//! in its section, or a thread was moved), it lets that one end first. The release agent of its processor reads the word before
//! it tells its machine anything, so that the machine lifts the job. Nobody waits in the kernel, and an uncontended lock and unlock make no
//! system call. The word's marks say that the agent has left something undone ([`MARKED`]: whoever unlocks goes through the monitor), and that the job
//! waits and is preempted ([`PREEMPTED`]: whoever hands it the lock kicks its agent).

use crate::modes::kick;
use crate::result::SpinLockCounts;
use crate::shared_queue::{Order, SharedQueue};
use crate::spin_queue::SpinQueue;
use crate::{shared_queue, spin_queue};
use horolog_model::{Protocol, Resource, System, TaskId};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// It holds the lock; else it waits.
const HOLDS: u64 = 1 << 61;
/// Whoever unlocks has to say so.
const MARKED: u64 = 1 << 62;
/// Whoever hands the lock to the job has to wake its agent.
const PREEMPTED: u64 = 1 << 63;
/// Where the resource stands in the word; the task, plus one, stands below.
const RESOURCE: u32 = 32;

/// What a job of a processor does with a spin lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asks {
    pub(crate) task: TaskId,
    pub(crate) resource: u32,
    /// Whether it has it.
    pub(crate) holds: bool,
}

/// What became of a job that asks for a spin lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Has,
    /// Until [`SpinLocks::has_turn`].
    Waits,
    /// Another job of the processor waits for a spin lock or holds one. Nothing was asked.
    IsBehind,
}

/// The spin locks of a run.
#[derive(Debug, Default)]
pub(crate) struct SpinLocks {
    /// By resource; `None`: it is none.
    queues: Vec<Option<Queue>>,
    /// One a processor that has users.
    processors: Vec<Processor>,
    /// How often a job has waited, and how often an agent was woken since the lock came to one that was preempted.
    waits: AtomicU64,
    kicks: AtomicU64,
}

#[derive(Debug)]
struct Queue {
    turns: Turns,
    /// The places of its processors; in the queue they count from 1.
    users: Vec<usize>,
    /// Whether who is preempted while it waits leaves the queue, and asks anew ([`SpinLocks::ask_if_free`]).
    asks_anew: bool,
}

/// What became of a job that waits for a lock whose protocol lets it lose its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Has,
    Waits,
    /// It was preempted meanwhile, and asks anew.
    IsLost,
}

/// Whose turn it is.
#[derive(Debug)]
enum Turns {
    OneByOne(SpinQueue),
    /// With whether the jobs of each task read.
    Shared(SharedQueue, Vec<bool>),
}

impl Turns {
    fn of(system: &System, resource: &Resource) -> Turns {
        let order = match resource.protocol {
            Protocol::TaskFair => Order::TaskFair,
            Protocol::PhaseFair => Order::PhaseFair,
            _ => return Turns::OneByOne(SpinQueue::new()),
        };
        let place = system.find_resource(&resource.name).unwrap_or(usize::MAX);
        let reads = system.task_ids().map(|task| system.only_reads(task, place)).collect();
        Turns::Shared(SharedQueue::new(order), reads)
    }

    /// A job of a task joins, by its processor's number; whether it holds the lock at once.
    #[inline]
    fn join(&self, number: u64, task: TaskId) -> bool {
        match self {
            Turns::OneByOne(queue) => queue.join(number),
            Turns::Shared(queue, reads) => queue.join(number, reads.get(task.index()) == Some(&true)),
        }
    }

    #[inline]
    fn has_turn(&self, number: u64) -> bool {
        match self {
            Turns::OneByOne(queue) => queue.first() == number,
            Turns::Shared(queue, _) => queue.has_turn(number),
        }
    }

    /// A job that holds the lock leaves; who has it since then, one bit for each number.
    #[inline]
    fn leave(&self, number: u64) -> u64 {
        match self {
            // No processor has the number 0.
            Turns::OneByOne(queue) => (1 << queue.leave()) & !1,
            Turns::Shared(queue, _) => queue.leave(number),
        }
    }
}

#[derive(Debug)]
struct Processor {
    cpu: u32,
    asks: AtomicU64,
    /// The word that its agent sleeps on. Told once.
    kick: OnceLock<Arc<AtomicU32>>,
}

impl SpinLocks {
    pub(crate) fn of(system: &System) -> SpinLocks {
        let mut processors: Vec<Processor> = Vec::new();
        let mut queues = Vec::new();
        for resource in system.resources() {
            if !resource.protocol.spins() {
                queues.push(None);
                continue;
            }
            let mut users = Vec::new();
            for cpu in users_of(system, &resource.name) {
                let place = processors.iter().position(|known| known.cpu == cpu);
                users.push(place.unwrap_or(processors.len()));
                if place.is_none() {
                    processors.push(Processor { cpu, asks: AtomicU64::new(0), kick: OnceLock::new() });
                }
            }
            let asks_anew = resource.protocol.asks_anew();
            queues.push(Some(Queue { turns: Turns::of(system, resource), users, asks_anew }));
        }
        SpinLocks { queues, processors, ..SpinLocks::default() }
    }

    /// How often jobs have waited, and agents were woken for that.
    pub(crate) fn counts(&self) -> SpinLockCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SpinLockCounts { waits: of(&self.waits), wake_ups: of(&self.kicks) }
    }

    /// The first resource that more processors share than a queue has places for: its name, how many they are, and how many may be.
    pub(crate) fn too_many(system: &System) -> Option<(&str, usize, usize)> {
        let most = |it: &Resource| match it.protocol.tells_readers() {
            true => shared_queue::MOST,
            false => spin_queue::MOST,
        };
        let global = system.resources().iter().filter(|resource| resource.protocol.spins());
        let mut users = global.map(|it| (it.name.as_str(), users_of(system, &it.name).len(), most(it)));
        users.find(|&(_, users, most)| users > most)
    }

    pub(crate) fn is_one(&self, resource: usize) -> bool {
        self.queues.get(resource).is_some_and(Option::is_some)
    }

    /// The agents that are kicked. Told once.
    pub(crate) fn kick_these(&self, kicks: &[(u32, Arc<AtomicU32>)]) {
        for processor in &self.processors {
            if let Some((_, word)) = kicks.iter().find(|(cpu, _)| *cpu == processor.cpu) {
                let _ = processor.kick.set(word.clone());
            }
        }
    }

    fn place_of(&self, cpu: u32) -> Option<usize> {
        self.processors.iter().position(|processor| processor.cpu == cpu)
    }

    /// The queue of a lock, and a processor's word and number in it.
    fn parts(&self, resource: usize, cpu: u32) -> Option<(&Queue, &Processor, u64)> {
        let queue = self.queues.get(resource)?.as_ref()?;
        let number = queue.users.iter().position(|&place| self.processors[place].cpu == cpu)?;
        Some((queue, &self.processors[queue.users[number]], number as u64 + 1))
    }

    /// A job of a processor asks for a lock.
    pub(crate) fn ask(&self, resource: usize, cpu: u32, task: TaskId) -> Asked {
        let Some((queue, processor, number)) = self.parts(resource, cpu) else { return Asked::Has };
        let own = word(task, resource);
        if processor.asks.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Asked::IsBehind;
        }
        if queue.turns.join(number, task) {
            processor.asks.fetch_or(HOLDS, Ordering::AcqRel);
            return Asked::Has;
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        Asked::Waits
    }

    /// Whether a job that is preempted while it waits for a lock leaves the queue.
    pub(crate) fn asks_anew(&self, resource: usize) -> bool {
        self.queues.get(resource).and_then(Option::as_ref).is_some_and(|queue| queue.asks_anew)
    }

    /// A job of a processor takes a lock that it may lose its place for, where it is free; whether it has it. Else it asks inside the monitor, where no agent takes a
    /// place away that has not been taken yet.
    pub(crate) fn ask_if_free(&self, resource: usize, cpu: u32, task: TaskId) -> bool {
        let Some((queue, processor, number)) = self.parts(resource, cpu) else { return true };
        let (Turns::OneByOne(turns), own) = (&queue.turns, word(task, resource)) else { return false };
        if processor.asks.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let joined = turns.join_if_free(number);
        let is_own = |asked: u64| asked & !(MARKED | PREEMPTED) == own;
        let keep = |asked: u64| is_own(asked).then_some(asked | HOLDS);
        if joined && processor.asks.fetch_update(Ordering::AcqRel, Ordering::Acquire, keep).is_ok() {
            return true;
        }
        if joined {
            // Its agent came in between and has taken the word back; no other job knows of this hold.
            self.leave(queue, number);
        } else {
            let _ = processor
                .asks
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |asked| is_own(asked).then_some(0));
        }
        false
    }

    /// How it is with a job that waits for a lock which it may lose its place for.
    pub(crate) fn turn(&self, resource: usize, cpu: u32, task: TaskId) -> Turn {
        let Some((queue, processor, number)) = self.parts(resource, cpu) else { return Turn::Has };
        // In this order: whose turn it is does not lose its word any more, and the number may be that of another job of the processor.
        let has_it = queue.turns.has_turn(number);
        let asked = processor.asks.load(Ordering::Acquire);
        match asked & !(MARKED | PREEMPTED | HOLDS) == word(task, resource) {
            true if has_it => {
                processor.asks.fetch_or(HOLDS, Ordering::AcqRel);
                Turn::Has
            }
            true => Turn::Waits,
            false => Turn::IsLost,
        }
    }

    /// The agent of a processor takes it from the job of a task, which waits for a lock: that one leaves the queue, where its protocol says so. `false`: it has its turn already. Only
    /// inside the processor's monitor.
    pub(crate) fn withdraw(&self, resource: usize, cpu: u32, task: TaskId) -> bool {
        let Some((queue, processor, number)) = self.parts(resource, cpu) else { return true };
        let Turns::OneByOne(turns) = &queue.turns else { return true };
        let asked = processor.asks.load(Ordering::Acquire);
        if asked & !(MARKED | PREEMPTED) != word(task, resource) {
            return asked & HOLDS == 0;
        }
        if !turns.withdraw(number) {
            return false;
        }
        // It has no place, so only the job itself may have changed the word meanwhile: taken it back, or not noticed yet.
        let _ = processor.asks.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Acquire);
        true
    }

    /// Whether it is the turn of the job that waits; then it holds the lock.
    pub(crate) fn has_turn(&self, resource: usize, cpu: u32) -> bool {
        let Some((queue, processor, number)) = self.parts(resource, cpu) else { return true };
        let has_it = queue.turns.has_turn(number);
        if has_it {
            processor.asks.fetch_or(HOLDS, Ordering::AcqRel);
        }
        has_it
    }

    /// A job lets go of a lock, and whoever comes next has it. Whether somebody of its own processor wants to know.
    pub(crate) fn let_go(&self, resource: usize, cpu: u32) -> bool {
        let Some((queue, processor, number)) = self.parts(resource, cpu) else { return false };
        self.leave(queue, number);
        processor.asks.swap(0, Ordering::AcqRel) & MARKED != 0
    }

    /// The job that comes next has the lock, and its agent knows of it where it is preempted.
    fn leave(&self, queue: &Queue, number: u64) {
        let mut next = queue.turns.leave(number);
        if next != 0 {
            fence(Ordering::SeqCst);
        }
        while next != 0 {
            let place = next.trailing_zeros() as usize;
            next &= next - 1;
            let Some(next) = queue.users.get(place - 1).map(|&place| &self.processors[place]) else {
                continue;
            };
            if next.asks.load(Ordering::Acquire) & PREEMPTED != 0
                && let Some(agent) = next.kick.get()
            {
                self.kicks.fetch_add(1, Ordering::Relaxed);
                kick(agent);
            }
        }
    }

    /// What a job of a processor waits for or holds.
    pub(crate) fn asks(&self, cpu: u32) -> Option<Asks> {
        let processor = &self.processors[self.place_of(cpu)?];
        let word = processor.asks.load(Ordering::Acquire);
        let task = TaskId((word as u32).checked_sub(1)?);
        let resource = (word & !(HOLDS | MARKED | PREEMPTED)) >> RESOURCE;
        let is_first = |(queue, _, number): (&Queue, &Processor, u64)| queue.turns.has_turn(number);
        let holds = word & HOLDS != 0 || self.parts(resource as usize, cpu).is_some_and(is_first);
        Some(Asks { task, resource: resource as u32, holds })
    }

    /// Whether the job of a task holds a lock, as far as it has noticed itself. The one that held it before may still have its own word for a moment.
    pub(crate) fn is_held_by(&self, resource: usize, cpu: u32, task: TaskId) -> bool {
        let Some((_, processor, _)) = self.parts(resource, cpu) else { return false };
        let asked = processor.asks.load(Ordering::Acquire);
        asked & !(MARKED | PREEMPTED) == word(task, resource) | HOLDS
    }

    /// The agent of a processor leaves, which knows of what `task` asks: whoever lets go there has to say so, and where the job that waits is
    /// preempted, whoever hands it the lock has to. Whether that has changed meanwhile, so that the agent has to look again. Only inside the
    /// processor's monitor.
    pub(crate) fn mark(&self, cpu: u32, task: TaskId, is_preempted: bool) -> bool {
        let Some(processor) = self.place_of(cpu).map(|place| &self.processors[place]) else { return false };
        // Where no thread was moved, only threads of this processor write the word but for marks, and none of them runs now.
        let before = processor.asks.load(Ordering::Acquire);
        if before as u32 != task.0 + 1 {
            return true;
        }
        let marks = if is_preempted { MARKED | PREEMPTED } else { MARKED };
        let after = (before & !PREEMPTED) | marks;
        let is_written =
            processor.asks.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire).is_ok();
        fence(Ordering::SeqCst);
        !is_written || is_preempted && self.asks(cpu).is_some_and(|asks| asks.holds)
    }
}

fn word(task: TaskId, resource: usize) -> u64 {
    (u64::from(task.0) + 1) | ((resource as u64) << RESOURCE)
}

/// The processors whose tasks use a resource, in their order.
fn users_of(system: &System, resource: &str) -> Vec<u32> {
    let uses = |task: &&horolog_model::Task| task.sections.iter().any(|section| section.resource == resource);
    let mut cpus: Vec<u32> = system.tasks().iter().filter(uses).map(|task| task.cpu.0).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[cfg(test)]
mod tests {
    use super::Asked::{Has, IsBehind, Waits};
    use super::*;

    fn two() -> SpinLocks {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"local\"\n\
            [[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n\
            [[task]]\nname = \"a\"\ncpu = 0\npriority = 5\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n\
            [[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
            [[task]]\nname = \"b\"\ncpu = 2\npriority = 5\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n\
            [[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n";
        let (system, _) = horolog_model::file::read(text, "s.toml", &[]).expect("a valid file");
        SpinLocks::of(&system)
    }

    #[test]
    fn a_lock_goes_from_one_processor_to_the_other() {
        let locks = two();
        let (a, b, map) = (TaskId(0), TaskId(1), 1);
        assert!(locks.is_one(map) && !locks.is_one(0) && !locks.is_one(2));
        assert_eq!((locks.asks(0), locks.asks(1), locks.is_held_by(map, 0, a)), (None, None, false));
        assert_eq!((locks.ask(map, 0, a), locks.ask(map, 2, b)), (Has, Waits));
        assert!(!locks.has_turn(map, 2));
        assert_eq!(locks.asks(0), Some(Asks { task: a, resource: 1, holds: true }));
        assert_eq!(locks.asks(2), Some(Asks { task: b, resource: 1, holds: false }));
        assert!(locks.is_held_by(map, 0, a) && !locks.is_held_by(map, 2, b) && !locks.is_held_by(map, 0, b));
        assert!(!locks.let_go(map, 0), "nobody wants to know");
        // Its agent sees the turn before the job itself does.
        assert_eq!(locks.asks(2), Some(Asks { task: b, resource: 1, holds: true }));
        let is_held = || locks.is_held_by(map, 2, b);
        assert_eq!((is_held(), locks.has_turn(map, 2), is_held()), (false, true, true));
        assert!(!locks.mark(2, b, false) && locks.let_go(map, 2));
        assert_eq!((locks.asks(2), is_held()), (None, false));
    }

    /// Who hands a lock on clears its own word last.
    #[test]
    fn a_job_holds_its_lock_while_the_one_before_still_clears_its_word() {
        let locks = two();
        let (a, b, map) = (TaskId(0), TaskId(1), 1);
        assert_eq!((locks.ask(map, 0, a), locks.ask(map, 2, b)), (Has, Waits));
        // The first half of `let_go`.
        let (queue, ..) = locks.parts(map, 0).expect("a user");
        assert_eq!(queue.turns.leave(1), 1 << 2);
        assert!(locks.has_turn(map, 2) && locks.is_held_by(map, 2, b));
    }

    #[test]
    fn who_is_preempted_while_he_waits_is_told() {
        let locks = two();
        let (a, b, map) = (TaskId(0), TaskId(1), 1);
        let word = Arc::new(AtomicU32::new(0));
        locks.kick_these(&[(2, word.clone())]);
        assert_eq!((locks.ask(map, 0, a), locks.ask(map, 2, b)), (Has, Waits));
        // He spins, and sees it himself.
        assert!(!locks.mark(2, b, false) && !locks.let_go(map, 0));
        assert_eq!(word.load(Ordering::SeqCst), 0);
        assert!(locks.has_turn(map, 2) && locks.let_go(map, 2));
        // He is preempted: his agent is kicked, once.
        assert_eq!((locks.ask(map, 0, a), locks.ask(map, 2, b)), (Has, Waits));
        assert!(!locks.mark(2, b, true));
        assert!(!locks.let_go(map, 0));
        assert_eq!(word.load(Ordering::SeqCst), 1);
        // Handed over before the mark: the agent sees it itself.
        assert!(locks.has_turn(map, 2) && locks.let_go(map, 2));
        assert_eq!((locks.ask(map, 0, a), locks.ask(map, 2, b)), (Has, Waits));
        assert!(!locks.let_go(map, 0));
        assert!(locks.mark(2, b, true));
        assert_eq!(word.load(Ordering::SeqCst), 1);
        // One who runs again is not preempted any more.
        assert!(!locks.mark(2, b, false) && locks.has_turn(map, 2) && locks.let_go(map, 2));
    }

    /// The first one sleeps in its section, or was moved to another processor.
    #[test]
    fn of_one_processor_one_job_asks_at_a_time() {
        let locks = two();
        let (a, other, b, map) = (TaskId(0), TaskId(7), TaskId(1), 1);
        assert_eq!((locks.ask(map, 0, a), locks.ask(map, 0, other)), (Has, IsBehind));
        assert_eq!((locks.ask(map, 2, b), locks.ask(map, 2, other)), (Waits, IsBehind));
        // Who is behind has no place in the queue, and takes nothing away.
        assert!(locks.is_held_by(map, 0, a) && !locks.is_held_by(map, 0, other));
        assert!(!locks.let_go(map, 0) && locks.has_turn(map, 2));
        assert_eq!((locks.ask(map, 0, other), locks.asks(0)), (Waits, locks.asks(0)));
        assert!(!locks.let_go(map, 2) && locks.has_turn(map, 0) && locks.is_held_by(map, 0, other));
        // The agent knew of somebody else, or that somebody asks at all: it looks again.
        assert!(locks.mark(0, a, false) && !locks.mark(0, other, false));
        assert!(locks.let_go(map, 0) && locks.mark(0, other, false));
    }
}
