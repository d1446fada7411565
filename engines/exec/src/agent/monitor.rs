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
            // A mark that already stands speaks for us too. It must be written anew all the same: only a write hands
            // the holder what we know (the model below finds the lost release where this is a mere load).
            if self.word.replace(HELD, PENDING) || self.word.replace(PENDING, PENDING) {
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
        /// Guarded: how many of them got the processor at a preemption point.
        served: la::AtomicU32,
        /// The flag that preemption points read.
        attention: la::AtomicU32,
        /// Points that found the flag set and nobody waiting.
        vain: la::AtomicU32,
    }

    impl Cpu {
        fn new() -> Arc<Cpu> {
            Arc::new(Cpu {
                monitor: Monitor::new(),
                inside: loom::cell::UnsafeCell::new(()),
                due: la::AtomicU32::new(0),
                told: la::AtomicU32::new(0),
                served: la::AtomicU32::new(0),
                attention: la::AtomicU32::new(0),
                vain: la::AtomicU32::new(0),
            })
        }

        /// Tells the machine what has come due and shows the flag where somebody waits; only inside.
        fn pass(&self) {
            self.inside.with_mut(|_| ());
            let due = self.due.load(Ordering::Acquire);
            self.told.store(due, Ordering::Release);
            let waits = due > self.served.load(Ordering::Acquire);
            self.attention.store(u32::from(waits), Ordering::Release);
        }

        fn enter(&self) {
            while !self.monitor.try_enter() {
                thread::yield_now();
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

        /// A preemption point of the running job: whoever waits is served there.
        fn point(&self) {
            if self.attention.load(Ordering::Acquire) == 0 {
                return;
            }
            self.enter();
            let due = self.due.load(Ordering::Acquire);
            if due == self.served.load(Ordering::Acquire) {
                self.vain.fetch_add(1, Ordering::AcqRel);
            }
            self.served.store(due, Ordering::Release);
            self.pass();
            self.leave();
        }

        /// The waiting job vanishes, as when its task is stopped, and nobody takes the flag back.
        fn withdraw(&self) {
            self.enter();
            self.inside.with_mut(|_| ());
            self.served.store(self.due.load(Ordering::Acquire), Ordering::Release);
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
            cpu.enter();
            cpu.pass();
            cpu.leave();
            agent.join().expect("the agent ends");
            // Whoever left last has told the machine everything, and nobody is inside.
            assert_eq!(cpu.told.load(Ordering::Acquire), 2);
            assert!(cpu.monitor.try_enter());
        });
    }

    #[test]
    fn a_flag_is_never_lost() {
        loom::model(|| {
            let cpu = Cpu::new();
            let agent = {
                let cpu = cpu.clone();
                thread::spawn(move || cpu.agent())
            };
            cpu.point();
            agent.join().expect("the agent ends");
            // Whatever the order was, the next point serves who still waits.
            cpu.point();
            assert_eq!(cpu.served.load(Ordering::Acquire), 1);
            assert_eq!(cpu.attention.load(Ordering::Acquire), 0);
            assert_eq!(cpu.vain.load(Ordering::Acquire), 0);
        });
    }

    #[test]
    fn a_stale_flag_costs_one_counted_vain_yield() {
        loom::model(|| {
            let cpu = Cpu::new();
            cpu.agent();
            let other = {
                let cpu = cpu.clone();
                thread::spawn(move || cpu.withdraw())
            };
            cpu.point();
            other.join().expect("the other ends");
            cpu.point();
            cpu.point();
            // Either the point served it before it vanished, or one point found it gone.
            assert!(cpu.vain.load(Ordering::Acquire) <= 1);
            assert_eq!(cpu.attention.load(Ordering::Acquire), 0);
        });
    }

    /// The kernel compares a futex word and goes to sleep in one step, so a sleeper that looks again is a fair model.
    #[test]
    fn a_grant_is_consumed_exactly_once() {
        loom::model(|| {
            let gate = Arc::new(la::AtomicU32::new(0));
            let task = {
                let gate = gate.clone();
                thread::spawn(move || {
                    while gate.load(Ordering::Acquire) == 0 {
                        thread::yield_now();
                    }
                    assert_eq!(la::AtomicU32::swap(&gate, 0, Ordering::AcqRel), 1);
                })
            };
            gate.store(1, Ordering::Release);
            task.join().expect("the task goes on");
            assert_eq!(gate.load(Ordering::Acquire), 0);
        });
    }
}
