//! Stretches of time in the order of their ends, each with an amount that lies in it, and with sums, so that a window costs the logarithm of
//! their number and what ends behind it.

use std::collections::VecDeque;

/// A stretch, and the sum of all before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    from: u64,
    to: u64,
    amount: u64,
    before: u64,
}

/// All of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    all: VecDeque<Span>,
    /// The longest there ever was.
    longest: u64,
}

impl Spans {
    /// Somewhere in `from..to` lies this amount.
    pub(crate) fn add(&mut self, from: u64, to: u64, amount: u64) {
        self.longest = self.longest.max(to.saturating_sub(from));
        let place = self.all.len() - self.all.iter().rev().take_while(|span| span.to > to).count();
        let last = place.checked_sub(1).map(|last| self.all[last]);
        let before = last.map_or_else(
            || self.all.front().map_or(0, |first| first.before),
            |last| last.before.wrapping_add(last.amount),
        );
        self.all.insert(place, Span { from, to, amount, before });
        for span in self.all.range_mut(place + 1..) {
            span.before = span.before.wrapping_add(amount);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The places of those that end after `from`, and of those that end after `to`.
    fn places(&self, from: u64, to: u64) -> (usize, usize) {
        let after = |time: u64| self.all.partition_point(|span| span.to <= time);
        (after(from), after(to.max(from)))
    }

    /// The sum of those at these places.
    fn sum(&self, first: usize, until: usize) -> u64 {
        match until.checked_sub(1).and_then(|last| self.all.get(last)) {
            Some(last) if first < until => {
                last.before.wrapping_add(last.amount).wrapping_sub(self.all[first].before)
            }
            _ => 0,
        }
    }

    /// The amounts of those that meet a window.
    pub(crate) fn of_those_that_meet(&self, from: u64, to: u64) -> u64 {
        let (first, until) = self.places(from, to);
        let behind = self.all.range(until..).filter(|span| span.from < to);
        behind.fold(self.sum(first, until), |sum, span| sum.saturating_add(span.amount))
    }

    /// For how long they meet a window, each by itself; amounts are lengths.
    pub(crate) fn within(&self, from: u64, to: u64) -> u64 {
        let (first, until) = self.places(from, to);
        // What begins before the window ends no later than this.
        let edge = self.places(from.saturating_add(self.longest), to).0.min(until);
        let part = |span: &Span| span.to.min(to).saturating_sub(span.from.max(from));
        let at_the_edges = self.all.range(first..edge).chain(self.all.range(until..)).map(part);
        at_the_edges.fold(self.sum(edge, until), u64::saturating_add)
    }

    /// Forgets those that ended before `time`, and those beyond so many; the end of the last one that was too much.
    pub(crate) fn forget(&mut self, time: u64, most: usize) -> Option<u64> {
        crate::state::history::trim_front(&mut self.all, time, most, |span| span.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_testkit::Random;

    /// Every window, against sums over all of them; some come out of order, some are forgotten.
    #[test]
    fn sums_are_those_of_every_stretch() {
        for index in 0..300 {
            let mut random = Random::of_item(18, index);
            let (mut stolen, mut hidden, mut all) = (Spans::default(), Spans::default(), Vec::new());
            let mut now = 0;
            for _ in 0..random.below(12) {
                now += random.below(5);
                let to = now - random.below(now.min(3) + 1);
                let from = to - random.below(to.min(9) + 1);
                // An instant holds nothing.
                let amount = if from < to { random.below(7) } else { 0 };
                stolen.add(from, to, amount);
                hidden.add(from, to, to - from);
                all.push((from, to, amount));
                if random.below(8) == 0 {
                    let until = random.below(now + 1);
                    stolen.forget(until, 100);
                    hidden.forget(until, 100);
                    all.retain(|&(_, to, _)| to >= until);
                }
            }
            for from in 0..=now + 1 {
                for to in from..=now + 1 {
                    let meets = all.iter().filter(|(begin, end, _)| *end > from && *begin < to);
                    let (mut amounts, mut lengths) = (0, 0);
                    for (begin, end, amount) in meets {
                        amounts += amount;
                        lengths += (*end).min(to) - (*begin).max(from);
                    }
                    let found = (stolen.of_those_that_meet(from, to), hidden.within(from, to));
                    assert_eq!(found, (amounts, lengths), "{index}: {from}..{to} of {all:?}");
                }
            }
            let most = all.len() / 2;
            let ends = |spans: &Spans| spans.all.iter().map(|span| span.to).collect::<Vec<_>>();
            let before = ends(&stolen);
            let gone = stolen.forget(0, most);
            assert_eq!(ends(&stolen), before[before.len() - most..]);
            assert_eq!(gone, before.len().checked_sub(most + 1).map(|last| before[last]));
        }
    }
}
