//! Requests for modes that have not taken effect yet.

use crate::machine::dispatcher::NONE;
use horolog_model::{Mode, System};
use horolog_time::{Instant, Span};
use std::collections::VecDeque;

/// Never.
const NEVER: u64 = u64::MAX;

/// Who asks for a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestBy {
    /// The file, or a program.
    Name,
    /// The end of a job's budget. It asks for nothing where that mode waits already, or holds and none waits but the one that
    /// follows it.
    Overrun,
    /// A mode that has taken effect, and is followed by this one.
    Mode,
}

/// A request for a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModeRequest {
    /// When it was made.
    pub at: u64,
    /// Which mode it asks for.
    pub mode: u32,
    /// Who asks.
    pub by: RequestBy,
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
    /// The mode that each one asks for as it takes effect, or [`NONE`].
    then: Vec<u32>,
}

impl ModeRequests {
    /// Those of the file.
    pub(crate) fn new(system: &System) -> ModeRequests {
        let of_file = system.mode_requests();
        // So much room that no request of an overrun allocates: no mode waits twice by these.
        let most = of_file.len() + 2 * system.modes().len() + system.tasks().len();
        let mut to_come = Vec::with_capacity(most);
        let request = |(at, mode): (Span, u32)| ModeRequest { at: at.as_ns(), mode, by: RequestBy::Name };
        to_come.extend(of_file.into_iter().rev().map(request));
        let follower = |mode: &Mode| mode.then.as_ref().and_then(|then| system.find_mode(then));
        let named = system.modes().iter().map(|mode| follower(mode).unwrap_or(NONE));
        let then = std::iter::once(NONE).chain(named).collect();
        ModeRequests { to_come, waiting: VecDeque::with_capacity(most), effect_at: NEVER, refused: 0, then }
    }

    /// One more that comes at an instant, behind those of the same instant.
    pub(crate) fn add(&mut self, at: u64, mode: u32) {
        self.insert(ModeRequest { at, mode, by: RequestBy::Name });
    }

    /// The same, by the end of a job's budget.
    pub(crate) fn add_by_overrun(&mut self, at: u64, mode: u32) {
        self.insert(ModeRequest { at, mode, by: RequestBy::Overrun });
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

    /// A mode takes effect: the one that follows it is asked for, where it does not wait already.
    fn follow(&mut self, now: u64, mode: u32) {
        let then = self.then.get(mode as usize).copied().unwrap_or(NONE);
        if then != NONE && self.waiting.iter().all(|waiting| waiting.mode != then) {
            self.waiting.push_back(ModeRequest { at: now, mode: then, by: RequestBy::Mode });
        }
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
                let request = self.waiting.pop_front();
                self.follow(now, request.map_or(NONE, |request| request.mode));
                return request;
            }
            let request = self.to_come.pop_if(|request| request.at <= now)?;
            let mode = request.mode;
            let waits = self.waiting.iter().any(|waiting| waiting.mode == mode);
            let others = self.waiting.iter().any(|waiting| waiting.by != RequestBy::Mode);
            if request.by == RequestBy::Overrun && (waits || (!others && current == mode)) {
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
    fn a_mode_that_follows_waits_at_once_and_is_no_reason_to_ask_again() {
        let text = "[system]\nname = \"modes\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"1 ns\"\npriority = 1\n\
                    [[mode]]\nname = \"one\"\nthen = \"two\"\n[[mode]]\nname = \"two\"\n";
        let (system, _) = horolog_model::file::read(text, "modes.toml", &[]).expect("a valid file");
        let mut requests = ModeRequests::new(&system);
        let busy = |mode: u32| (mode == 1).then_some(Instant::from_ns(0));
        requests.add_by_overrun(3, 1);
        let first = requests.take(3, 0, busy, |_| false);
        assert_eq!(first, Some(ModeRequest { at: 3, mode: 1, by: RequestBy::Overrun }));
        assert_eq!((requests.take(3, 1, busy, |_| false), waiting(&requests)), (None, vec![2]));
        assert!(requests.waits_for_jobs());
        // Another overrun in the same mode asks for nothing: only the mode that follows waits.
        requests.add_by_overrun(5, 1);
        assert_eq!((requests.take(5, 1, busy, |_| false), waiting(&requests)), (None, vec![2]));
        // What a program asks for waits behind it.
        requests.add(6, 1);
        assert_eq!((requests.take(6, 1, busy, |_| false), waiting(&requests)), (None, vec![2, 1]));
        let all = |_| Some(Instant::from_ns(0));
        let back = requests.take(9, 1, all, |_| false);
        assert_eq!(back, Some(ModeRequest { at: 3, mode: 2, by: RequestBy::Mode }));
        assert_eq!(requests.take(9, 2, all, |_| false).map(|request| request.mode), Some(1));
        assert_eq!(waiting(&requests), [2]);
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
