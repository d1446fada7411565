//! Requests for modes that have not taken effect yet.

use horolog_model::System;
use horolog_time::Instant;
use std::collections::VecDeque;

/// Never.
const NEVER: u64 = u64::MAX;

/// The requests of one driver.
#[derive(Clone, Debug)]
pub(crate) struct ModeRequests {
    /// Those to come, when and for which mode, the next one last.
    to_come: Vec<(u64, u32)>,
    /// Those that wait to take effect, in their order.
    waiting: VecDeque<u32>,
    /// When the first of these takes effect; [`NEVER`]: that depends on jobs, or there is none.
    effect_at: u64,
    refused: u64,
}

impl ModeRequests {
    /// Those of the file.
    pub(crate) fn new(system: &System) -> ModeRequests {
        let to_come = system.mode_requests().into_iter().rev().map(|(at, mode)| (at.as_ns(), mode)).collect();
        ModeRequests { to_come, waiting: VecDeque::new(), effect_at: NEVER, refused: 0 }
    }

    /// One more that comes at an instant, behind those of the same instant.
    pub(crate) fn add(&mut self, at: u64, mode: u32) {
        let place = self.to_come.partition_point(|&(other, _)| other > at);
        self.to_come.insert(place, (at, mode));
    }

    /// When something must be done about them at the latest.
    pub(crate) fn next_at(&self) -> u64 {
        self.to_come.last().map_or(NEVER, |&(at, _)| at).min(self.effect_at)
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
    /// done or waiting. `effect` says when a mode takes effect that is asked for now, `refuses` whether it does not wait for another.
    pub(crate) fn take(
        &mut self,
        now: u64,
        effect: impl Fn(u32) -> Option<Instant>,
        refuses: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        loop {
            let effect = self.waiting.front().and_then(|&mode| effect(mode));
            self.effect_at = effect.map_or(NEVER, Instant::as_ns);
            if self.effect_at <= now {
                self.effect_at = NEVER;
                return self.waiting.pop_front();
            }
            let (_, mode) = self.to_come.pop_if(|&mut (at, _)| at <= now)?;
            if self.waiting.is_empty() || !refuses(mode) {
                self.waiting.push_back(mode);
            } else {
                self.refused += 1;
            }
        }
    }
}
