//! The sequence of mode changes of a system whose processors are driven apart.

use crate::machine::mode::ModeEffect;
use crate::mode_requests::{ModeRequest, ModeRequests};
use crate::{Event, EventKind, Machine, MachineBuilder};
use horolog_model::{ModelError, System, TaskId};
use horolog_time::Instant;

/// Which modes follow each other, and when, where each processor has a driver of its own: there is one sequence for all of them.
/// It goes by the rules that [`crate::Driver::run_all`] has for processors that are driven together.
#[derive(Clone, Debug)]
pub struct ModeSequence {
    /// It is told of mode changes alone, so it knows the frames of servers and tables, and nothing of jobs.
    machine: Machine,
    requests: ModeRequests,
    last: u64,
}

impl ModeSequence {
    /// With the requests of the file.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn new(system: &System) -> Result<ModeSequence, ModelError> {
        let machine = MachineBuilder::new(system).build()?;
        Ok(ModeSequence { machine, requests: ModeRequests::new(system), last: 0 })
    }

    /// Asks for a mode at an instant, or at that of the last change where that is later.
    pub fn request(&mut self, at: u64, mode: u32) {
        self.requests.add(at.max(self.last), mode);
    }

    /// Asks for a mode as [`ModeSequence::request`] does, since a job has used up its budget: for nothing where that mode waits
    /// already, or holds and none waits.
    pub fn request_by_overrun(&mut self, at: u64, mode: u32) {
        self.requests.add_by_overrun(at.max(self.last), mode);
    }

    /// When something must be done about requests at the latest; `u64::MAX`: not before a job ends.
    #[must_use]
    pub fn next_at(&self) -> u64 {
        self.requests.next_at()
    }

    /// Whether the first request that waits takes effect when jobs are done.
    #[must_use]
    pub fn waits_for_jobs(&self) -> bool {
        self.requests.waits_for_jobs()
    }

    /// How many requests were refused since another one waited.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.requests.refused()
    }

    /// The next change up to `now`: when, and by which request. `is_done` says whether no job of a task is left now.
    pub fn take(&mut self, now: u64, is_done: impl Fn(TaskId) -> bool) -> Option<(u64, ModeRequest)> {
        loop {
            let due = self.requests.next_at();
            let at = if due <= now { due.max(self.last) } else { now.max(self.last) };
            if due > now && !self.requests.waits_for_jobs() {
                return None;
            }
            let machine = &self.machine;
            let effect = |mode: u32| match &machine.modes[mode as usize].takes_effect {
                ModeEffect::WhenDone(tasks) => {
                    tasks.iter().all(|&task| is_done(task)).then_some(Instant::from_ns(at))
                }
                _ => machine.mode_effect(mode, Instant::from_ns(at)),
            };
            let current = machine.mode();
            let Some(request) = self.requests.take(at, current, effect, |mode| machine.refuses_second(mode))
            else {
                if self.requests.next_at() > now {
                    return None;
                }
                continue;
            };
            self.last = at;
            let told = self
                .machine
                .on(Event::at(Instant::from_ns(at), EventKind::ModeChange { mode: request.mode }));
            debug_assert_eq!(told, Ok(()));
            return Some((at, request));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn sequence() -> ModeSequence {
        let text = "[system]\nname = \"modes\"\n[[task]]\nname = \"a\"\nperiod = \"100 ns\"\nwcet = \"1 ns\"\npriority = 2\n\
                    [[task]]\nname = \"soft\"\narrivals = [\"0 ns\"]\nwcet = \"1 ns\"\n\
                    [[server]]\nname = \"s\"\nkind = \"deferrable\"\ntasks = [\"soft\"]\nbudget = \"2 ns\"\nperiod = \"10 ns\"\n\
                    priority = 5\n\
                    [[mode]]\nname = \"framed\"\nat = [\"13 ns\", \"20 ns\"]\ntakes_effect = { frame = \"s\" }\n\
                    [[mode.server]]\nname = \"s\"\nbudget = \"2 ns\"\nperiod = \"7 ns\"\n\
                    [[mode]]\nname = \"picky\"\nat = [\"14 ns\", \"21 ns\"]\nsecond_request = \"refuse\"\n\
                    [[mode]]\nname = \"done\"\nat = [\"30 ns\"]\ntakes_effect = { when_done = [\"a\"] }\n";
        let (system, _) = horolog_model::file::read(text, "modes.toml", &[]).expect("a valid file");
        ModeSequence::new(&system).expect("built")
    }

    #[test]
    fn changes_come_at_their_instants_whenever_they_are_asked_for() {
        // Asked for at 13, framed comes at 20, and again at 20; then periods are 7. Picky is refused at 14 and comes at 21.
        let expected = [(20, 1), (20, 1), (21, 2)];
        for step in [1, 4, 29] {
            let mut modes = sequence();
            let mut changes = Vec::new();
            for now in (0..=29).filter(|now| now % step == 0 || *now == 29) {
                while let Some(change) = modes.take(now, |_| false) {
                    changes.push((change.0, change.1.mode));
                }
                assert!(modes.next_at() > now);
            }
            assert_eq!((changes, modes.refused()), (expected.to_vec(), 1), "{step}");
        }
    }

    #[test]
    fn a_change_that_waits_for_jobs_comes_when_they_are_done() {
        let mut modes = sequence();
        let done = Cell::new(false);
        while modes.take(29, |_| done.get()).is_some() {}
        assert_eq!(
            (modes.take(33, |_| done.get()), modes.waits_for_jobs(), modes.next_at()),
            (None, true, u64::MAX)
        );
        // What is asked for meanwhile waits behind it.
        modes.request(35, 1);
        assert_eq!(modes.take(36, |_| done.get()), None);
        done.set(true);
        // Periods of the base mode began when the last one of 7 was over, at 27.
        let take = |modes: &mut ModeSequence, now| {
            modes.take(now, |_| done.get()).map(|(at, request)| (at, request.mode))
        };
        assert_eq!((take(&mut modes, 41), take(&mut modes, 41)), (Some((41, 3)), None));
        assert_eq!((modes.next_at(), take(&mut modes, 50)), (47, Some((47, 1))));
        // A late request comes with the last change at the earliest.
        modes.request(3, 2);
        assert_eq!(take(&mut modes, 60), Some((47, 2)));
        // One that is made after it comes at its own instant.
        modes.request(64, 2);
        assert_eq!((take(&mut modes, 63), take(&mut modes, 70)), (None, Some((64, 2))));
    }
}
