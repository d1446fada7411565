//! Requests for modes that have not taken effect yet.

use horolog_model::System;
use horolog_time::{Instant, Span};
use std::collections::VecDeque;

/// Never.
const NEVER: u64 = u64::MAX;

/// A request for a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModeRequest {
    /// When it was made.
    pub at: u64,
    /// Which mode it asks for.
    pub mode: u32,
    /// Whether the end of a job's budget asks. It asks for nothing where that mode waits already, or holds and none waits.
    pub is_by_overrun: bool,
}

/// The requests of one driver.
#[derive(Clone, Debug)]
pub(crate) struct ModeRequests {
    /// Those to come, the next one last.
    to_come: Vec<ModeRequest>,
    /// Those that wait to take effect, in their order.
    waiting: VecDeque<ModeRequest>,
    /// When the first of these takes effect; [`NEVER`]: that depends on jobs, or there is none.
    effect_at: u64,
    refused: u64,
}

impl ModeRequests {
    /// Those of the file.
    pub(crate) fn new(system: &System) -> ModeRequests {
        let of_file = system.mode_requests();
        // So much room that no request of an overrun allocates: no mode waits twice by these.
        let most = of_file.len() + system.modes().len() + system.tasks().len();
        let mut to_come = Vec::with_capacity(most);
        let request = |(at, mode): (Span, u32)| ModeRequest { at: at.as_ns(), mode, is_by_overrun: false };
        to_come.extend(of_file.into_iter().rev().map(request));
        ModeRequests { to_come, waiting: VecDeque::with_capacity(most), effect_at: NEVER, refused: 0 }
    }

    /// One more that comes at an instant, behind those of the same instant.
    pub(crate) fn add(&mut self, at: u64, mode: u32) {
        self.insert(ModeRequest { at, mode, is_by_overrun: false });
    }

    /// The same, by the end of a job's budget.
    pub(crate) fn add_by_overrun(&mut self, at: u64, mode: u32) {
        self.insert(ModeRequest { at, mode, is_by_overrun: true });
    }

    fn insert(&mut self, request: ModeRequest) {
        let place = self.to_come.partition_point(|other| other.at > request.at);
        self.to_come.insert(place, request);
    }

    /// When something must be done about them at the latest.
    pub(crate) fn next_at(&self) -> u64 {
        self.to_come.last().map_or(NEVER, |request| request.at).min(self.effect_at)
    }

    /// Whether the first one that waits takes effect when jobs are done.
    pub(crate) fn waits_for_jobs(&self) -> bool {
        self.effect_at == NEVER && !self.waiting.is_empty()
    }

    /// How many were refused since one waited.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// The next mode that takes effect at `now`. Requests that have come are taken over one by one: each finds those before it
    /// done or waiting. `current` is the mode that holds; `effect` says when a mode takes effect that is asked for now, `refuses`
    /// whether it does not wait for another.
    pub(crate) fn take(
        &mut self,
        now: u64,
        current: u32,
        effect: impl Fn(u32) -> Option<Instant>,
        refuses: impl Fn(u32) -> bool,
    ) -> Option<ModeRequest> {
        loop {
            let effect = self.waiting.front().and_then(|request| effect(request.mode));
            self.effect_at = effect.map_or(NEVER, Instant::as_ns);
            if self.effect_at <= now {
                self.effect_at = NEVER;
                return self.waiting.pop_front();
            }
            let request = self.to_come.pop_if(|request| request.at <= now)?;
            let mode = request.mode;
            let waits = self.waiting.iter().any(|waiting| waiting.mode == mode);
            if request.is_by_overrun && (waits || (self.waiting.is_empty() && current == mode)) {
                continue;
            }
            if self.waiting.is_empty() || !refuses(mode) {
                self.waiting.push_back(request);
            } else {
                self.refused += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two modes that wait for jobs, and a third one that does not.
    fn requests() -> ModeRequests {
        let text = "[system]\nname = \"modes\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"1 ns\"\npriority = 1\n\
                    [[mode]]\nname = \"one\"\nat = [\"9 ns\"]\n[[mode]]\nname = \"two\"\n[[mode]]\nname = \"three\"\n";
        let (system, _) = horolog_model::file::read(text, "modes.toml", &[]).expect("a valid file");
        ModeRequests::new(&system)
    }

    fn waiting(requests: &ModeRequests) -> Vec<u32> {
        requests.waiting.iter().map(|request| request.mode).collect()
    }

    #[test]
    fn what_waits_already_is_not_asked_for_again_and_nothing_allocates() {
        let mut requests = requests();
        let room = (requests.to_come.capacity(), requests.waiting.capacity());
        let effect = |mode: u32| (mode == 3).then_some(Instant::from_ns(0));
        for now in 0..9 {
            for mode in [1, 2] {
                requests.add_by_overrun(now, mode);
                assert_eq!(requests.take(now, 0, effect, |_| false), None);
            }
        }
        assert_eq!(waiting(&requests), [1, 2]);
        // That of the file waits all the same.
        assert_eq!(requests.take(9, 0, effect, |_| false), None);
        assert_eq!(waiting(&requests), [1, 2, 1]);
        assert_eq!((requests.to_come.capacity(), requests.waiting.capacity()), room);
    }

    #[test]
    fn the_mode_that_holds_is_asked_for_where_another_one_waits() {
        let mut requests = requests();
        let never = |_| None;
        requests.add_by_overrun(3, 2);
        assert_eq!(requests.take(3, 2, never, |_| false), None);
        assert!(requests.waiting.is_empty());
        requests.add_by_overrun(4, 1);
        requests.add_by_overrun(4, 2);
        assert_eq!(requests.take(4, 2, never, |_| false), None);
        assert_eq!(waiting(&requests), [1, 2]);
        // One that waits for nobody is refused, and counted.
        requests.add_by_overrun(5, 3);
        assert_eq!(requests.take(5, 2, never, |mode| mode == 3), None);
        assert_eq!((requests.waiting.len(), requests.refused()), (2, 1));
    }
}
