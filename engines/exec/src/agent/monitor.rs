//! Who may run a processor's machine: one at a time, without ever waiting in the agent.
//!
//! Whoever causes an event enters the monitor and runs the machine: a task's thread that completes a job or gives
//! way at a preemption point, or the release agent. The agent stands above every task, so it may find the
//! monitor taken by the very thread that it preempted. It must not wait then; it leaves a mark, and the holder
//! does the agent's work before it leaves. The protocol is one word; its proof is the loom model below.

use std::sync::atomic::{AtomicU32, Ordering};

/// The operations that the protocol needs of a word of memory; loom's words have the same.
pub(crate) trait Word {
    /// A word that holds `value`.
    fn new(value: u32) -> Self;
    /// Stores `new` where the word holds `current`; whether it did.
    fn replace(&self, current: u32, new: u32) -> bool;
    /// Stores `new` and returns what the word held.
    fn swap(&self, new: u32) -> u32;
    /// What the word holds.
    fn load(&self) -> u32;
}

impl Word for AtomicU32 {
    fn new(value: u32) -> AtomicU32 {
        AtomicU32::new(value)
    }

    #[inline]
    fn replace(&self, current: u32, new: u32) -> bool {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[inline]
    fn swap(&self, new: u32) -> u32 {
        AtomicU32::swap(self, new, Ordering::AcqRel)
    }

    #[inline]
    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::Acquire)
    }
}

/// Nobody is inside.
const FREE: u32 = 0;
/// Somebody is inside.
const HELD: u32 = 1;
/// Somebody is inside and must do the agent's work before leaving.
const PENDING: u32 = 2;

/// The entry of one processor's machine.
#[derive(Debug)]
pub(crate) struct Monitor<W = AtomicU32> {
    word: W,
}

impl<W: Word> Monitor<W> {
    pub(crate) fn new() -> Monitor<W> {
        Monitor { word: W::new(FREE) }
    }

    /// Enters where nobody is inside.
    #[inline]
    #[must_use]
    pub(crate) fn try_enter(&self) -> bool {
        self.word.replace(FREE, HELD)
    }

    /// Enters, or leaves a mark that the holder will find before it leaves. Never waits.
    #[must_use]
    pub(crate) fn enter_or_mark(&self) -> bool {
        loop {
            if self.word.replace(FREE, HELD) {
                return true;
            }
            // A mark that already stands is found by the holder later than now, so it speaks for us too.
            if self.word.replace(HELD, PENDING) || self.word.load() == PENDING {
                return false;
            }
        }
    }

    /// Leaves; `false` where a mark was found: the caller is still inside, must do the agent's work, and leave
    /// again.
    #[must_use]
    #[inline]
    pub(crate) fn try_leave(&self) -> bool {
        if self.word.replace(HELD, FREE) {
            return true;
        }
        let found = self.word.swap(HELD);
        debug_assert_eq!(found, PENDING, "only a holder leaves");
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic as la;
    use loom::thread;

    impl Word for la::AtomicU32 {
        fn new(value: u32) -> la::AtomicU32 {
            la::AtomicU32::new(value)
        }

        fn replace(&self, current: u32, new: u32) -> bool {
            self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }

        fn swap(&self, new: u32) -> u32 {
            la::AtomicU32::swap(self, new, Ordering::AcqRel)
        }

        fn load(&self) -> u32 {
            la::AtomicU32::load(self, Ordering::Acquire)
        }
    }

    /// What the monitor guards, and what the threads outside may read.
    struct Cpu {
        monitor: Monitor<la::AtomicU32>,
        /// Guarded: loom reports two threads inside at once.
        inside: loom::cell::UnsafeCell<()>,
        /// The clock of the model: how many releases have come due.
        due: la::AtomicU32,
        /// Guarded: how many of them the machine was told.
        told: la::AtomicU32,
        /// The flag that preemption points read.
        attention: la::AtomicU32,
        /// The grant that the parked thread waits for.
        gate: la::AtomicU32,
        vain: la::AtomicU32,
    }

    impl Cpu {
        fn new() -> Arc<Cpu> {
            Arc::new(Cpu {
                monitor: Monitor::new(),
                inside: loom::cell::UnsafeCell::new(()),
                due: la::AtomicU32::new(0),
                told: la::AtomicU32::new(0),
                attention: la::AtomicU32::new(0),
                gate: la::AtomicU32::new(0),
                vain: la::AtomicU32::new(0),
            })
        }

        /// Tells the machine what has come due and sets the flag accordingly; only inside. `waits` says whether
        /// the told releases still wait for the running job.
        fn pass(&self) {
            self.inside.with_mut(|_| ());
            let due = self.due.load(Ordering::Acquire);
            if self.told.swap(due, Ordering::AcqRel) != due {
                self.attention.store(1, Ordering::Release);
            }
        }

        fn leave(&self) {
            while !self.monitor.try_leave() {
                self.pass();
            }
        }

        /// The agent's wake-up: one release has come due.
        fn agent(&self) {
            self.due.fetch_add(1, Ordering::AcqRel);
            if self.monitor.enter_or_mark() {
                self.pass();
                self.leave();
            }
        }

        /// A preemption point of the running job.
        fn point(&self) {
            if self.attention.load(Ordering::Acquire) == 0 {
                return;
            }
            while !self.monitor.try_enter() {
                thread::yield_now();
            }
            let before = self.told.load(Ordering::Acquire);
            self.pass();
            if before == 0 && self.told.load(Ordering::Acquire) == 0 {
                self.vain.fetch_add(1, Ordering::AcqRel);
            }
            // The waiting job ran; the flag is answered.
            self.attention.store(0, Ordering::Release);
            self.leave();
        }

        /// The running job's completion.
        fn complete(&self) {
            while !self.monitor.try_enter() {
                thread::yield_now();
            }
            self.pass();
            self.leave();
        }
    }

    #[test]
    fn a_mark_left_at_a_busy_monitor_is_never_lost() {
        loom::model(|| {
            let cpu = Cpu::new();
            let agent = {
                let cpu = cpu.clone();
                thread::spawn(move || {
                    cpu.agent();
                    cpu.agent();
                })
            };
            cpu.complete();
            agent.join().expect("the agent ends");
            // Whoever left last has told the machine everything, and nobody is inside.
            assert_eq!(cpu.told.load(Ordering::Acquire), 2);
            assert!(cpu.monitor.try_enter());
        });
    }

    #[test]
    fn a_flag_is_answered_by_a_point_or_by_the_completion() {
        loom::model(|| {
            let cpu = Cpu::new();
            let agent = {
                let cpu = cpu.clone();
                thread::spawn(move || cpu.agent())
            };
            cpu.point();
            cpu.point();
            cpu.complete();
            agent.join().expect("the agent ends");
            // The release is known to the machine: it was answered at a point, or waits with its flag set for the
            // job that runs next; a point never answered a flag that was not set.
            assert_eq!(cpu.told.load(Ordering::Acquire), 1);
            assert_eq!(cpu.vain.load(Ordering::Acquire), 0);
        });
    }

    #[test]
    fn a_grant_is_never_lost() {
        loom::model(|| {
            let cpu = Cpu::new();
            let task = {
                let cpu = cpu.clone();
                thread::spawn(move || {
                    // Park: consume the grant, else sleep while the word is still zero (a futex wait).
                    while la::AtomicU32::swap(&cpu.gate, 0, Ordering::AcqRel) == 0 {
                        thread::yield_now();
                    }
                })
            };
            cpu.agent();
            cpu.gate.store(1, Ordering::Release);
            task.join().expect("the task goes on");
            assert_eq!(cpu.gate.load(Ordering::Acquire), 0);
        });
    }
}
