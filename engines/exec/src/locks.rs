//! Resources on real threads: a word each, which says whose job holds it.
//!
//! A lock or unlock that concerns nobody else writes the word and does no more. The release agent reads the words of its
//! processor before it tells its machine anything, and marks those that are held when it leaves: who unlocks a marked word, or
//! finds one taken, goes through the monitor.

use crate::queued_locks::QueuedLocks;
use crate::spin_locks::SpinLocks;
use crate::task_shared::TaskShared;
use horolog_model::{Protocol, System, Task, TaskId};
use std::sync::atomic::{AtomicU32, Ordering};

/// Whoever unlocks has to say so.
const MARKED: u32 = 1 << 31;

/// The resources of a system.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    names: Vec<String>,
    protocols: Vec<Protocol>,
    /// The task that holds each, plus one; zero: nobody.
    words: Vec<AtomicU32>,
    /// Of each resource under the original ceiling, the processor of its users.
    barring: Vec<Option<u32>>,
    /// Those that jobs of several processors share, and spin for.
    pub(crate) spin: SpinLocks,
    /// Those that processors hand to each other's suspended jobs.
    pub(crate) queued: QueuedLocks,
}

impl Locks {
    pub(crate) fn of(system: &System) -> Locks {
        let names: Vec<String> = system.resources().iter().map(|resource| resource.name.clone()).collect();
        let barring = system.resources().iter().map(|resource| {
            let uses = |task: &&Task| task.sections.iter().any(|it| it.resource == resource.name);
            let user = system.tasks().iter().find(uses);
            user.filter(|_| resource.protocol == Protocol::OriginalCeiling).map(|user| user.cpu.0)
        });
        Locks {
            words: names.iter().map(|_| AtomicU32::new(0)).collect(),
            barring: barring.collect(),
            names,
            protocols: system.resources().iter().map(|resource| resource.protocol).collect(),
            spin: SpinLocks::of(system),
            queued: QueuedLocks::of(system),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether jobs of one processor alone share a resource, and lock it by its word.
    pub(crate) fn is_local(&self, resource: usize) -> bool {
        !self.spin.is_one(resource) && !self.queued.is_one(resource)
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Whether another job holds a resource that may keep this one from it: the agent knows. Asked by a thread of its processor.
    pub(crate) fn may_be_barred(&self, resource: usize, task: TaskId) -> bool {
        let Some(cpu) = self.barring[resource] else { return false };
        let beside = (0..self.words.len()).filter(|&other| self.barring[other] == Some(cpu));
        beside.filter_map(|other| self.holder(other)).any(|holder| holder != task)
    }

    /// Takes a resource that nobody holds.
    pub(crate) fn try_lock(&self, resource: usize, task: TaskId) -> bool {
        self.words[resource].compare_exchange(0, task.0 + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Lets go of a resource where that concerns nobody else.
    pub(crate) fn try_unlock(&self, resource: usize, task: TaskId) -> bool {
        self.words[resource].compare_exchange(task.0 + 1, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Who holds a resource that is no spin lock.
    pub(crate) fn holder(&self, resource: usize) -> Option<TaskId> {
        (self.words[resource].load(Ordering::Acquire) & !MARKED).checked_sub(1).map(TaskId)
    }

    /// Whether the job of this task, on this processor, holds a resource. Asked by its own thread.
    pub(crate) fn is_held_by(&self, resource: usize, task: &TaskShared) -> bool {
        match self.spin.is_one(resource) {
            true => self.spin.is_held_by(resource, task.cpu, task.id),
            false => self.holder(resource) == Some(task.id),
        }
    }

    /// Whether a job may lock a resource beside what it holds: two of which one waits for the other could wait for ever. Asked by its own thread.
    pub(crate) fn nests_with_what_is_held(&self, resource: usize, task: &TaskShared) -> bool {
        let own = self.protocols[resource];
        let held = (0..self.words.len()).filter(|&other| other != resource && self.is_held_by(other, task));
        held.map(|other| self.protocols[other]).all(|other| own.nests_with(other))
    }

    /// Says who holds a resource from now on. Only inside the monitor of its processor.
    pub(crate) fn set(&self, resource: usize, holder: Option<TaskId>) {
        self.words[resource].store(holder.map_or(0, |task| (task.0 + 1) | MARKED), Ordering::Release);
    }

    /// Whoever holds the resource has to say so when it lets go. Only inside the monitor.
    pub(crate) fn mark(&self, resource: usize) {
        let word = self.words[resource].load(Ordering::Acquire);
        if word != 0 {
            // Where it has changed meanwhile, its holder has let go by itself.
            let _ = self.words[resource].compare_exchange(
                word,
                word | MARKED,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_word_is_not_unlocked_behind_the_agents_back() {
        let locks = Locks { names: vec!["bus".into()], words: vec![AtomicU32::new(0)], ..Locks::default() };
        let (first, second) = (TaskId(0), TaskId(7));
        assert!(locks.try_lock(0, first) && !locks.try_lock(0, second) && !locks.try_lock(0, first));
        assert_eq!(locks.holder(0), Some(first));
        assert!(!locks.try_unlock(0, second) && locks.try_unlock(0, first));
        locks.mark(0);
        assert_eq!(locks.holder(0), None);
        assert!(locks.try_lock(0, second));
        locks.mark(0);
        assert_eq!(locks.holder(0), Some(second));
        assert!(!locks.try_unlock(0, second));
        locks.set(0, Some(first));
        assert!(locks.holder(0) == Some(first) && !locks.try_unlock(0, first));
        locks.set(0, None);
        assert!(locks.holder(0).is_none() && locks.try_lock(0, first));
    }
}
