//! The sporadic server by the corrected rules: what it uses comes back one period after it began to use it, chunk by
//! chunk, and all chunks together are never more than its budget.
//!
//! The budget is a list of chunks, each with the time at which it may be used; the sum of their amounts is always the
//! budget C.
//!
//! - *Work arrives* and the first chunk may be used: it counts as used from now on (its time becomes now), together
//!   with every other chunk whose time has come.
//! - *The first chunk is used up*: it comes back, whole, one period T after its time. The server goes on with the next
//!   chunk if that one's time has come, else it is exhausted.
//! - *The queue runs out* while the first chunk is used in part: the used part comes back one period after the chunk's
//!   time, the rest stays. Where `max_replenishments` chunks exist already, the rest joins the next chunk and waits for
//!   that one's time; with a single chunk it waits with the used part.
//! - *More is used than was there* (a late executive): the excess is charged to the next chunk at once.
//!
//! Every chunk is used at most once in each period, so the server interferes with less important tasks at most as a
//! periodic task (C, T).
//!
//! Source: `stanovich10`. # Differences: work that arrives takes up only chunks whose time has come, not those whose time
//! comes while the first is used; an overrun is charged to the next chunk's amount instead of delaying that chunk. Both
//! keep amounts and times of chunks exact, so that the sum of the chunks is C at every instant.

use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};
use std::collections::VecDeque;

/// A part of the budget.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// From when on it may be used, or since when it counts as used.
    time: u64,
    amount: i64,
}

/// A corrected sporadic server; see the module.
#[derive(Clone, Debug)]
pub(crate) struct SporadicServer {
    period: u64,
    /// In the order of their times, never empty; room for one more than there may be.
    chunks: VecDeque<Chunk>,
    max_chunks: usize,
    /// What was used of the first chunk.
    used: i64,
    without: Place,
    backlogged: bool,
    /// Whether the first chunk may be used now.
    available: bool,
    /// Where its chunks are in doubt: when all have come back, if nothing is used from now on, and how long after its use a chunk does.
    doubt: Option<(u64, u64)>,
    tally: Tally,
}

impl SporadicServer {
    pub(crate) fn new(capacity: Capacity, max_replenishments: u32, without: Place) -> SporadicServer {
        let max_chunks = max_replenishments.max(1) as usize;
        let mut chunks = VecDeque::with_capacity(max_chunks + 1);
        chunks.push_back(Chunk { time: 0, amount: capacity.budget.as_ns() as i64 });
        SporadicServer {
            period: capacity.period.as_ns(),
            chunks,
            max_chunks,
            used: 0,
            without,
            backlogged: false,
            available: true,
            doubt: None,
            tally: Tally::default(),
        }
    }

    #[inline]
    fn first(&self) -> Chunk {
        self.chunks.front().copied().unwrap_or(Chunk { time: u64::MAX, amount: 0 })
    }

    fn come_back(&mut self, chunk: Chunk) {
        let time = chunk.time.saturating_add(self.period);
        // Chunks are used in the order of their times, so this one comes last, unless a mode has shortened the period.
        let place = self.chunks.iter().rposition(|other| other.time <= time).map_or(0, |before| before + 1);
        // Those of one time are one.
        match place.checked_sub(1).and_then(|before| self.chunks.get_mut(before)).filter(|it| it.time == time)
        {
            Some(other) => other.amount += chunk.amount,
            None => self.chunks.insert(place, Chunk { time, ..chunk }),
        }
    }

    /// Chunks that are used up come back; the next one is charged with what was used beyond them.
    fn check_budget(&mut self, now: u64) {
        while self.used >= self.first().amount {
            let Some(chunk) = self.chunks.pop_front() else { return };
            self.used -= chunk.amount;
            self.come_back(chunk);
        }
        // Without budget it is the timer that brings it back.
        self.available &= self.first().time <= now;
    }

    /// The used part of the first chunk parts from the rest.
    fn split(&mut self) {
        if self.used <= 0 {
            return;
        }
        let back_at = self.first().time.saturating_add(self.period);
        // It takes no room of its own where one comes back at that time already.
        let is_room =
            self.chunks.len() < self.max_chunks || self.chunks.iter().any(|other| other.time == back_at);
        let Some(first) = self.chunks.front_mut() else { return };
        let chunk = *first;
        let rest = chunk.amount - self.used;
        let used = Chunk { amount: self.used, ..chunk };
        self.used = 0;
        if is_room {
            first.amount = rest;
            self.come_back(used);
            return;
        }
        // What is left waits for the chunk that comes back next: after a mode with a shorter period that may be the used part.
        self.chunks.pop_front();
        self.come_back(used);
        if let Some(next) = self.chunks.front_mut() {
            next.amount += rest;
        }
    }

    /// From now on every chunk whose time has come counts as used.
    fn activate(&mut self, now: u64) {
        self.available = self.first().time <= now;
        if !self.available {
            return;
        }
        let mut amount = self.first().amount;
        while let Some(next) = self.chunks.get(1).filter(|chunk| chunk.time <= now) {
            amount += next.amount;
            self.chunks.pop_front();
        }
        if let Some(first) = self.chunks.front_mut() {
            *first = Chunk { time: now, amount };
        }
    }
}

impl Supply for SporadicServer {
    #[inline]
    fn place(&self) -> Place {
        if self.available { Place::High } else { self.without }
    }

    #[inline]
    fn budget(&self) -> Option<Span> {
        let is_told = self.available && self.doubt.is_none();
        is_told.then(|| Span::from_ns((self.first().amount - self.used).unsigned_abs()))
    }

    #[inline]
    fn timer(&self) -> Option<Instant> {
        (self.backlogged && !self.available).then(|| Instant::from_ns(self.first().time))
    }

    fn executed(&mut self, now: Instant, amount: Span) -> bool {
        if let Some((back_at, after)) = &mut self.doubt {
            *back_at = (*back_at).max(now.as_ns().saturating_add(*after));
            return false;
        }
        let was_available = self.available;
        self.tally.consume(amount);
        self.used = self.used.saturating_add_unsigned(amount.as_ns());
        self.check_budget(now.as_ns());
        self.tally.exhaustions += u64::from(was_available && !self.available);
        !self.available
    }

    fn timer_fired(&mut self, now: Instant) {
        if !self.available && self.first().time <= now.as_ns() {
            self.tally.replenishments += 1;
            if self.used > 0 {
                // The excess of an overrun is charged to a chunk that keeps its time.
                self.available = true;
            } else {
                self.activate(now.as_ns());
            }
        }
    }

    fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        self.backlogged = backlogged;
        if let Some((back_at, _)) = self.doubt {
            if !backlogged || now.as_ns() < back_at {
                return;
            }
            self.doubt = None;
        }
        if !backlogged {
            self.split();
            return;
        }
        let was_available = self.available;
        if self.used > 0 {
            self.available = self.first().time <= now.as_ns();
        } else {
            self.activate(now.as_ns());
        }
        self.tally.replenishments += u64::from(self.available && !was_available);
    }

    fn doubt(&mut self, now: Instant, doubt: Doubt) {
        let budget: i64 = self.chunks.iter().map(|chunk| chunk.amount).sum();
        let after = self.period.saturating_mul(doubt.periods(Span::from_ns(budget.unsigned_abs())));
        let (before, longest) = self.doubt.unwrap_or((0, 0));
        let after = after.max(longest);
        self.doubt = Some((before.max(now.as_ns().saturating_add(after)), after));
        self.chunks.clear();
        self.chunks.push_back(Chunk { time: 0, amount: budget });
        (self.used, self.available) = (0, true);
    }

    /// Without work, once every chunk must have come back: the next work takes up all of them at once.
    fn is_known(&self, now: Instant) -> bool {
        self.doubt.is_none_or(|(back_at, _)| !self.backlogged && now.as_ns() >= back_at)
    }

    /// With the whole budget nothing has still to come back.
    fn learn(&mut self, now: Instant, budget: Span) {
        if self.backlogged && budget.as_ns() as i64 == self.first().amount {
            self.doubt = None;
            self.activate(now.as_ns());
        }
    }

    /// A greater budget is added to what comes back last; a smaller one is cut from what comes back last.
    fn change_capacity(&mut self, now: Instant, capacity: Capacity) {
        self.period = capacity.period.as_ns();
        let all: i64 = self.chunks.iter().map(|chunk| chunk.amount).sum();
        let mut cut = all - capacity.budget.as_ns() as i64;
        while self.chunks.len() > 1 && self.chunks.back().is_some_and(|last| last.amount <= cut) {
            cut -= self.chunks.pop_back().map_or(0, |last| last.amount);
        }
        if let Some(last) = self.chunks.back_mut() {
            last.amount -= cut;
        }
        // What is used beyond the new budget is no debt.
        self.used = self.used.min(self.first().amount);
        self.check_budget(now.as_ns());
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(budget: u64, period: u64, max: u32) -> SporadicServer {
        let capacity = Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) };
        SporadicServer::new(capacity, max, Place::Out)
    }

    fn at(now: u64) -> Instant {
        Instant::from_ns(now)
    }

    fn chunks(server: &SporadicServer) -> Vec<(u64, i64)> {
        server.chunks.iter().map(|chunk| (chunk.time, chunk.amount)).collect()
    }

    #[test]
    fn chunks_come_back_one_period_after_their_time() {
        let mut server = server(5, 20, 8);
        server.demand_changed(at(3), true);
        server.executed(at(5), Span::from_ns(2));
        server.demand_changed(at(5), false);
        assert_eq!(chunks(&server), [(3, 3), (23, 2)]);
        server.demand_changed(at(10), true);
        server.executed(at(13), Span::from_ns(3));
        assert_eq!(chunks(&server), [(23, 2), (30, 3)]);
        assert_eq!((server.place(), server.timer()), (Place::Out, Some(at(23))));
        server.timer_fired(at(23));
        assert_eq!((server.place(), server.budget()), (Place::High, Some(Span::from_ns(2))));
        assert_eq!(server.tally(), Tally { consumed: Span::from_ns(5), exhaustions: 1, replenishments: 1 });
    }

    #[test]
    fn the_rest_waits_where_there_is_no_room_for_a_chunk() {
        let mut server = server(5, 20, 2);
        for (start, expected) in [(0, vec![(0, 4), (20, 1)]), (7, vec![(20, 4), (27, 1)])] {
            server.demand_changed(at(start), true);
            server.executed(at(start + 1), Span::from_ns(1));
            server.demand_changed(at(start + 1), false);
            assert_eq!(chunks(&server), expected);
        }
        let mut single = self::server(5, 20, 1);
        single.demand_changed(at(2), true);
        single.executed(at(3), Span::from_ns(1));
        single.demand_changed(at(3), false);
        assert_eq!(chunks(&single), [(22, 5)]);
    }

    #[test]
    fn the_rest_waits_for_what_comes_back_next_after_a_shorter_period() {
        let mut server = server(5, 20, 2);
        server.demand_changed(at(0), true);
        server.executed(at(1), Span::from_ns(1));
        server.demand_changed(at(1), false);
        assert_eq!(chunks(&server), [(0, 4), (20, 1)]);
        let capacity = Capacity { budget: Span::from_ns(5), period: Span::from_ns(8) };
        server.change_capacity(at(2), capacity);
        server.demand_changed(at(3), true);
        server.executed(at(5), Span::from_ns(2));
        server.demand_changed(at(5), false);
        assert_eq!(chunks(&server), [(11, 4), (20, 1)]);
    }

    #[test]
    fn an_overrun_is_charged_to_what_comes_next() {
        let mut server = server(4, 10, 4);
        server.demand_changed(at(0), true);
        server.executed(at(6), Span::from_ns(6));
        assert_eq!(chunks(&server), [(10, 4)]);
        server.timer_fired(at(10));
        assert_eq!(server.budget(), Some(Span::from_ns(2)));
        server.executed(at(12), Span::from_ns(2));
        assert_eq!(chunks(&server), [(20, 4)], "nothing was gained");
    }
}
