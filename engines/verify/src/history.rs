//! Who had a processor, and when it was in interrupts: stretches in the order of time, with sums, so that a window costs the
//! logarithm of their number however long it is.

use crate::processor::{Occupant, Slice, overlap};
use std::collections::VecDeque;

/// What was taken from the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Taken {
    /// By threads outside the model.
    pub(crate) foreign: u64,
    /// By horolog's own threads.
    pub(crate) own: u64,
    /// By interrupts while one of these had the processor.
    pub(crate) foreign_interrupted: u64,
    pub(crate) own_interrupted: u64,
}

impl Taken {
    fn plus(self, other: Taken) -> Taken {
        Taken {
            foreign: self.foreign.wrapping_add(other.foreign),
            own: self.own.wrapping_add(other.own),
            foreign_interrupted: self.foreign_interrupted.wrapping_add(other.foreign_interrupted),
            own_interrupted: self.own_interrupted.wrapping_add(other.own_interrupted),
        }
    }

    fn minus(self, other: Taken) -> Taken {
        Taken {
            foreign: self.foreign.wrapping_sub(other.foreign),
            own: self.own.wrapping_sub(other.own),
            foreign_interrupted: self.foreign_interrupted.wrapping_sub(other.foreign_interrupted),
            own_interrupted: self.own_interrupted.wrapping_sub(other.own_interrupted),
        }
    }
}

/// Interrupts that are over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts {
    /// Begin, end, and the sum of all before.
    spans: VecDeque<(u64, u64, u64)>,
}

impl Interrupts {
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        let from = from.min(to);
        let before = self.spans.back().map_or(0, |&(begin, end, before)| before.wrapping_add(end - begin));
        self.spans.push_back((from, to, before));
    }

    /// How much of a window they took.
    pub(crate) fn within(&self, from: u64, to: u64) -> u64 {
        let first = self.spans.partition_point(|&(_, end, _)| end <= from);
        let until = self.spans.partition_point(|&(begin, ..)| begin < to);
        if first >= until {
            return 0;
        }
        let (begin, end, before) = self.spans[first];
        let (last_begin, last_end, before_last) = self.spans[until - 1];
        let all = before_last.wrapping_add(last_end - last_begin).wrapping_sub(before);
        let outside = from.saturating_sub(begin).min(end - begin)
            + last_end.saturating_sub(to).min(last_end - last_begin);
        all - outside.min(all)
    }

    /// Forgets those that ended before `time`, and those beyond so many; the end of the last one that was too much.
    pub(crate) fn forget(&mut self, time: u64, most: usize) -> Option<u64> {
        trim_front(&mut self.spans, time, most, |(_, to, _)| *to)
    }
}

/// Who had the processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occupants {
    slices: VecDeque<Slice>,
    /// Of each slice the sum of all before.
    before: VecDeque<Taken>,
}

impl Occupants {
    pub(crate) fn len(&self) -> usize {
        self.slices.len()
    }

    /// The slices that end after an instant.
    pub(crate) fn after(&self, time: u64) -> impl Iterator<Item = &Slice> {
        self.slices.range(self.slices.partition_point(|slice| slice.to <= time)..)
    }

    /// The slices that meet a window.
    pub(crate) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = &Slice> {
        let (first, until) = self.places(from, to);
        self.slices.range(first..until.max(first))
    }

    /// Where the slices begin and end that meet a window.
    fn places(&self, from: u64, to: u64) -> (usize, usize) {
        let first = self.slices.partition_point(|slice| slice.to <= from);
        (first, self.slices.partition_point(|slice| slice.from < to))
    }

    /// `interrupted` says what interrupts took of a window.
    pub(crate) fn add(&mut self, slice: Slice, interrupted: impl Fn(u64, u64) -> u64) {
        if let Some(last) = self.slices.back_mut()
            && last.who == slice.who
            && last.to == slice.from
        {
            last.to = slice.to;
            return;
        }
        let before = self.all_before(self.slices.len(), &interrupted);
        self.slices.push_back(slice);
        self.before.push_back(before);
    }

    /// The sum of all slices before this place; the one directly before it is over.
    fn all_before(&self, place: usize, interrupted: &impl Fn(u64, u64) -> u64) -> Taken {
        let Some(last) = place.checked_sub(1) else { return Taken::default() };
        let slice = self.slices[last];
        self.before[last].plus(taken_of(slice, slice.from, slice.to, interrupted))
    }

    /// Nobody knows any more who had the processor in the slices that lie within `from..to`.
    pub(crate) fn doubt(&mut self, from: u64, to: u64, interrupted: impl Fn(u64, u64) -> u64) {
        let first = self.slices.partition_point(|slice| slice.from < from);
        for place in first..self.slices.len() {
            if place > 0 {
                self.before[place] = self.all_before(place, &interrupted);
            }
            if self.slices[place].to <= to {
                self.slices[place].who = Occupant::Unknown;
            }
        }
    }

    /// What was taken in a window.
    pub(crate) fn taken(&self, from: u64, to: u64, interrupted: impl Fn(u64, u64) -> u64) -> Taken {
        let (first, until) = self.places(from, to);
        let part = |place: usize| taken_of(self.slices[place], from, to, &interrupted);
        match until.saturating_sub(first) {
            0 => Taken::default(),
            1 => part(first),
            _ => {
                let between = self.before[until - 1].minus(self.before[first + 1]);
                part(first).plus(between).plus(part(until - 1))
            }
        }
    }

    /// Forgets the slices that ended before `time`, and those beyond so many; the end of the last one that was too much.
    pub(crate) fn forget(&mut self, time: u64, most: usize) -> Option<u64> {
        let gone = trim_front(&mut self.slices, time, most, |slice| slice.to);
        self.before.drain(..self.before.len() - self.slices.len());
        gone
    }
}

/// Removes from the front what ended before `time` or is too much; the end of the last one removed for the
/// second reason.
pub(crate) fn trim_front<T>(
    queue: &mut VecDeque<T>,
    time: u64,
    most: usize,
    end: impl Fn(&T) -> u64,
) -> Option<u64> {
    while queue.front().is_some_and(|first| end(first) < time) {
        queue.pop_front();
    }
    let mut gone = None;
    while queue.len() > most {
        gone = queue.pop_front().map(|first| end(&first));
    }
    gone
}

/// What a slice took of a window.
fn taken_of(slice: Slice, from: u64, to: u64, interrupted: &impl Fn(u64, u64) -> u64) -> Taken {
    let time = || overlap(slice.from, slice.to, from, to);
    let in_interrupts = || interrupted(slice.from.max(from), slice.to.min(to));
    match slice.who {
        Occupant::Foreign(_) => {
            Taken { foreign: time(), foreign_interrupted: in_interrupts(), ..Taken::default() }
        }
        Occupant::Own(_) => Taken { own: time(), own_interrupted: in_interrupts(), ..Taken::default() },
        _ => Taken::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_testkit::Random;

    /// Every window of short histories, against sums over all of it; slices of some length, some of them taken back, and forgotten ones.
    #[test]
    fn sums_are_those_of_every_slice() {
        for index in 0..300 {
            let mut random = Random::of_item(16, index);
            let mut interrupts = Interrupts::default();
            let (mut occupants, mut slices, mut spans) = (Occupants::default(), Vec::new(), Vec::new());
            let mut now = 0;
            for _ in 0..random.below(12) {
                let from = now;
                now += random.below(4);
                let mut inner = from;
                while inner < now && random.below(2) == 0 {
                    let begin = inner + random.below(now - inner + 1);
                    inner = begin + random.below(now - begin + 1);
                    interrupts.add(begin, inner);
                    spans.push((begin, inner));
                }
                let who = [Occupant::Idle, Occupant::Foreign(1), Occupant::Own(2), Occupant::Task(0)];
                let slice = Slice { from, to: now, who: who[random.below(4) as usize] };
                occupants.add(slice, |from, to| interrupts.within(from, to));
                slices.push(slice);
                if random.below(6) == 0 {
                    let (from, to) = (random.below(now + 1), now);
                    // As one that was extended, a slice is taken back whole or not at all.
                    let begins = |slice: &Slice| occupants.slices.iter().any(|own| own.from == slice.from);
                    if slices.iter().all(begins) {
                        occupants.doubt(from, to, |from, to| interrupts.within(from, to));
                        let is_in = |slice: &&mut Slice| slice.from >= from && slice.to <= to;
                        slices.iter_mut().filter(is_in).for_each(|slice| slice.who = Occupant::Unknown);
                    }
                }
                if random.below(8) == 0 {
                    let time = random.below(now + 1);
                    occupants.forget(time, 100);
                    let first = occupants.slices.front().map_or(now, |slice| slice.from);
                    slices.retain(|slice| slice.from >= first);
                }
            }
            for from in 0..=now + 1 {
                for to in from..=now + 1 {
                    let sum = |is_foreign: bool| {
                        let is_wanted = |slice: &&Slice| match slice.who {
                            Occupant::Foreign(_) => is_foreign,
                            Occupant::Own(_) => !is_foreign,
                            _ => false,
                        };
                        slices.iter().filter(is_wanted).fold((0, 0), |(time, stopped), slice| {
                            let (begin, end) = (slice.from.max(from), slice.to.min(to));
                            let cut = |&(a, b): &(u64, u64)| overlap(a, b, begin, end.max(begin));
                            (
                                time + overlap(slice.from, slice.to, from, to),
                                stopped + spans.iter().map(cut).sum::<u64>(),
                            )
                        })
                    };
                    let ((foreign, foreign_interrupted), (own, own_interrupted)) = (sum(true), sum(false));
                    let expected = Taken { foreign, own, foreign_interrupted, own_interrupted };
                    let found = occupants.taken(from, to, |from, to| interrupts.within(from, to));
                    assert_eq!(found, expected, "{index}: {from}..{to} of {slices:?}, {spans:?}");
                    let all: u64 = spans.iter().map(|&(a, b)| overlap(a, b, from, to)).sum();
                    assert_eq!(interrupts.within(from, to), all, "{index}: {from}..{to} of {spans:?}");
                }
            }
        }
    }
}
