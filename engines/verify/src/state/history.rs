//! Who had a processor, and when it was in interrupts: stretches in the order of time, with sums, so that a window costs the
//! logarithm of their number however long it is.

use std::collections::VecDeque;

/// Who has a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occupant {
    /// Not known: at the beginning of a measured trace, or after a loss.
    Unknown,
    /// Nobody.
    Idle,
    /// A task's thread.
    Task(usize),
    /// One of horolog's own threads (release agent, recorder).
    Own(u64),
    /// A thread outside the model, by its number in the trace.
    Foreign(u64),
}

/// A stretch of time with one occupant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slice {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) who: Occupant,
}

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

    /// The slices that meet a window.
    pub(crate) fn within(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = &Slice> {
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

/// What was found already and may explain what follows: amounts of several kinds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breaches {
    kinds: Vec<Kind>,
}

#[derive(Clone, Debug)]
struct Kind {
    what: &'static str,
    /// Whether the model was violated; else the machine was disturbed.
    by_model: bool,
    /// How many bits its amounts have: so all are about as large.
    bits: u32,
    /// Instant, amount, and the sum of all before; in the order of time.
    entries: VecDeque<(u64, u64, u64)>,
    /// The largest amount that ever was.
    largest: u64,
}

/// What breaches of one kind may explain in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Explained {
    pub(crate) what: &'static str,
    pub(crate) by_model: bool,
    pub(crate) amount: u64,
    /// When the first one was.
    first: u64,
}

impl Breaches {
    pub(crate) fn add(&mut self, time: u64, amount: u64, by_model: bool, what: &'static str) {
        let bits = u64::BITS - amount.leading_zeros();
        let is_it = |kind: &&mut Kind| (kind.what, kind.by_model, kind.bits) == (what, by_model, bits);
        match self.kinds.iter_mut().find(is_it) {
            Some(kind) => kind.add(time, amount),
            None => {
                let entries = VecDeque::from([(time, amount, 0)]);
                self.kinds.push(Kind { what, by_model, bits, entries, largest: amount });
            }
        }
    }

    /// What those in `from..=to` may explain, the kind that came first before the others. None explains more than the window is long.
    pub(crate) fn within(&self, from: u64, to: u64) -> Vec<Explained> {
        let mut explained: Vec<Explained> = Vec::new();
        for found in self.kinds.iter().filter_map(|kind| kind.within(from, to)) {
            let is_it = |one: &&mut Explained| (one.what, one.by_model) == (found.what, found.by_model);
            match explained.iter_mut().find(is_it) {
                Some(one) => {
                    one.amount = one.amount.saturating_add(found.amount);
                    one.first = one.first.min(found.first);
                }
                None => explained.push(found),
            }
        }
        explained.sort_by_key(|one| one.first);
        explained
    }

    /// Forgets those before `time`, and those of a kind beyond so many; the instant of the last one that was too much.
    pub(crate) fn forget(&mut self, time: u64, most: usize) -> Option<u64> {
        let kinds = self.kinds.iter_mut();
        kinds.filter_map(|kind| trim_front(&mut kind.entries, time, most, |(at, ..)| *at)).max()
    }
}

impl Kind {
    fn add(&mut self, time: u64, amount: u64) {
        self.largest = self.largest.max(amount);
        let later = self.entries.iter().rev().take_while(|(other, ..)| *other > time).count();
        let place = self.entries.len() - later;
        let before = place.checked_sub(1).map(|last| self.entries[last]);
        let before = before.map_or_else(
            || self.entries.front().map_or(0, |first| first.2),
            |(_, amount, before)| before.saturating_add(amount),
        );
        self.entries.insert(place, (time, amount, before));
        for (.., sum) in self.entries.range_mut(place + 1..) {
            *sum = sum.saturating_add(amount);
        }
    }

    fn within(&self, from: u64, to: u64) -> Option<Explained> {
        let first = self.entries.partition_point(|(time, ..)| *time < from);
        let until = self.entries.partition_point(|(time, ..)| *time <= to);
        if first >= until {
            return None;
        }
        let length = to.saturating_sub(from);
        let (begin, (_, last, before_last)) = (self.entries[first], self.entries[until - 1]);
        let all = before_last.saturating_add(last);
        let is_exact = self.largest <= length && all < u64::MAX;
        let least = self.bits.checked_sub(1).map_or(0, |bits| 1 << bits);
        let amount = if is_exact {
            all - begin.2
        } else if least >= length {
            length.saturating_mul((until - first) as u64)
        } else {
            let each = self.entries.range(first..until).map(|(_, amount, _)| (*amount).min(length));
            each.fold(0, u64::saturating_add)
        };
        Some(Explained { what: self.what, by_model: self.by_model, amount, first: begin.0 })
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

/// The length of the intersection of two stretches of time.
pub(crate) fn overlap(from: u64, to: u64, begin: u64, end: u64) -> u64 {
    to.min(end).saturating_sub(from.max(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_testkit::Random;

    /// Interrupts are forgotten before the slices in which they were: the sums keep what they took.
    #[test]
    fn sums_outlive_the_interrupts_that_were_in_them() {
        let (mut interrupts, mut occupants) = (Interrupts::default(), Occupants::default());
        interrupts.add(2, 5);
        for (from, who) in
            [(0, Occupant::Idle), (1, Occupant::Own(1)), (9, Occupant::Idle), (20, Occupant::Own(1))]
        {
            let slice = Slice { from, to: if from == 0 { 1 } else { from + 8 }, who };
            occupants.add(slice, |from, to| interrupts.within(from, to));
        }
        interrupts.forget(6, 100);
        let live = |from, to| interrupts.within(from, to);
        assert_eq!((live(0, 30), occupants.taken(0, 30, live).own_interrupted), (0, 3));
    }

    /// Every window, against sums over all of them; some come out of order, some are longer than the window, some are forgotten.
    #[test]
    fn breaches_are_summed_by_kind() {
        for index in 0..300 {
            let mut random = Random::of_item(17, index);
            let (mut breaches, mut all) = (Breaches::default(), Vec::new());
            let mut now = 0;
            for _ in 0..random.below(12) {
                now += random.below(4);
                let (time, by_model) = (now - random.below(now.min(3) + 1), random.below(2) == 0);
                let (amount, what) = (random.below(9), ["one", "two"][random.below(2) as usize]);
                breaches.add(time, amount, by_model, what);
                all.push((time, amount, by_model, what));
                if random.below(8) == 0 {
                    let until = random.below(now + 1);
                    breaches.forget(until, 100);
                    all.retain(|&(time, ..)| time >= until);
                }
            }
            for from in 0..=now + 1 {
                for to in from..=now + 1 {
                    let found = breaches.within(from, to);
                    assert!(found.is_sorted_by_key(|one| one.first), "{index}");
                    for (by_model, what) in [(false, "one"), (false, "two"), (true, "one"), (true, "two")] {
                        let is_one = |&&(time, _, model, kind): &&(u64, u64, bool, &str)| {
                            time >= from && time <= to && (model, kind) == (by_model, what)
                        };
                        let amounts: Vec<u64> = all
                            .iter()
                            .filter(is_one)
                            .map(|(_, amount, ..)| (*amount).min(to - from))
                            .collect();
                        let one = found.iter().find(|one| (one.by_model, one.what) == (by_model, what));
                        let expected = (!amounts.is_empty()).then(|| amounts.iter().sum::<u64>());
                        assert_eq!(one.map(|one| one.amount), expected, "{index}: {from}..{to} of {all:?}");
                    }
                }
            }
        }
    }

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

    /// Where the sum of all is beyond what a number holds, those of the window are added up alone.
    #[test]
    fn a_sum_that_is_too_great_is_not_taken_for_a_difference() {
        let half = 1 << 63;
        let mut breaches = Breaches::default();
        (0..3).for_each(|time| breaches.add(time, half, true, "one"));
        let amounts = |from, to| breaches.within(from, to).iter().map(|one| one.amount).collect::<Vec<_>>();
        assert_eq!(amounts(2, half + 2), [half]);
        assert_eq!(amounts(1, half + 2), [u64::MAX]);
    }
}
