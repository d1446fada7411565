//! What the kernel's record of a run shows of the machine's costs, to be held against a profile of the machine.
//!
//! Two stretches are measurable, and both are parts of what the profile measures, so that one which is longer than the whole says something:
//!
//! - *Timer interrupt*: from the entry of the local timer's handler to its exit, where it woke nobody. The profile has the way into the
//!   kernel and back as well.
//! - *Context switch*: from the kernel's switch to a thread that waited for its job, to the stamp with which this thread starts the job,
//!   interrupts between left out. The profile has the wake-up and the sleep as well. The two stamps are of the kernel and of the
//!   thread, which may differ by the time stamps' tolerance.

use crate::state::history::Occupant;
use crate::verifier::Verifier;

impl Verifier {
    /// A thread was woken, in whichever interrupt that may have been.
    pub(crate) fn note_wakeup_in_interrupts(&mut self) {
        self.cpus.iter_mut().for_each(|cpu| cpu.seen.woke = true);
    }

    /// The handler of the local timer has ended, and nothing else was under way.
    pub(crate) fn note_timer_interrupt(&mut self, cpu: usize, length: u64) {
        if !self.model.simulated && !self.cpus[cpu].seen.woke {
            self.cpus[cpu].seen.timer_interrupts.add(length, self.model.timer_interrupt);
        }
    }

    /// The kernel has switched to another thread.
    pub(crate) fn note_who_got_it(&mut self, cpu: usize, next: Occupant) {
        let waits = |task: usize| self.tasks[task].pending.front().is_none_or(|job| job.started.is_none());
        let got = match next {
            Occupant::Task(task) if waits(task) && !self.model.tasks[task].is_command => {
                Some((task, self.now))
            }
            _ => None,
        };
        self.cpus[cpu].seen.got = got;
    }

    /// The thread of a task starts a job by its own stamp.
    pub(crate) fn note_start(&mut self, cpu: usize, task: usize) {
        let Some((of, since)) = self.cpus[cpu].seen.got.take() else { return };
        if of == task && !self.model.foreign {
            let interrupted = self.cpus[cpu].interrupted(since, self.now);
            let length = self.now.saturating_sub(since).saturating_sub(interrupted);
            let cost = self.model.context_switch.saturating_add(self.model.stamping);
            self.cpus[cpu].seen.context_switches.add(length, cost);
        }
    }
}
