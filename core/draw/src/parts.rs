//! What tasks of drawn sets have beside C, D and T: segments, sections that hold resources, and a second worst case.
//!
//! Each of these is drawn by a generator of its own, so C, D and T of a seed are the same with and without them, and so is each of
//! them beside the others.
//!
//! - *Segments*: from 1 to the most, every number as likely; their lengths uniform over all ways to share C, each at least 1 ns.
//! - *Sections* (as in the studies of `brandenburg11`): each task uses each resource with a chance of its own, and a job that uses it asks for it 1 to the most times, every
//!   number as likely; lengths uniform from the shortest to the longest. In random order they are taken as long as they fit into C, and
//!   what is left of C is shared among the places before, between and behind them, uniformly.
//! - *Nesting*: with a chance one section more lies in a section, and with the same chance one in that one, and so on, each of a resource that those around it do
//!   not hold, every such one as likely; shorter by 1 ns at least, every length as likely, and then every place.
//! - *Reading* (as in `brandenburg11`): each task reads each resource with a chance, in all its sections; else it writes.
//! - *Criticality* (as in `baruah11`): each task is of high criticality with a chance, and its second worst case is C times a factor, rounded down.

use crate::task_set::shares;
use crate::{Random, SplitMix64};

/// The series of a seed: no other seed has one of them.
const SEGMENTS: u64 = 0x5e63_3e27;
const SECTIONS: u64 = 0x5ec7_1025;
const CRITICALITY: u64 = 0xc217_1ca1;
const NESTING: u64 = 0x2e57_1269;
const READING: u64 = 0x2ead_1269;
/// Chances and factors count in parts per billion.
const BILLION: u64 = 1_000_000_000;

/// How sections are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// How many resources there are.
    pub resources: u64,
    /// The chance that a task uses a resource, in parts per billion.
    pub access_ppb: u64,
    /// How often a job asks for a resource that it uses, at the most.
    pub requests: u64,
    /// The shortest section, ns, at least 1.
    pub shortest_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
}

/// How criticality is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// The chance that a task is of high criticality, in parts per billion.
    pub high_ppb: u64,
    /// Its second worst case by its first, in parts per billion, at least 10^9.
    pub factor_ppb: u64,
}

/// A section of a drawn task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrawnSection {
    /// Which resource, from 0.
    pub resource: u64,
    /// What a job has executed when it begins, ns.
    pub from: u64,
    /// How much it executes inside, ns, above zero.
    pub length: u64,
}

/// The lengths of the segments of each task of set `number` of a seed, in ns.
///
/// ```
/// let segments = horolog_draw::parts::segments(1, 0, &[100, 7], 3);
/// assert!(segments[0].iter().sum::<u64>() == 100 && segments[1].len() <= 3);
/// ```
#[must_use]
pub fn segments(seed: u64, number: u64, wcets: &[u64], most: u64) -> Vec<Vec<u64>> {
    let mut random = of_series(seed, SEGMENTS, number);
    wcets.iter().map(|&wcet| cut(wcet, most, &mut random)).collect()
}

/// From 1 to `most` lengths of at least 1 ns with the sum `wcet`.
pub(crate) fn cut(wcet: u64, most: u64, random: &mut Random) -> Vec<u64> {
    let count = random.between(1, most.max(1).min(wcet));
    let lengths = shares(wcet - count, count as usize, random);
    lengths.into_iter().map(|length| length + 1).collect()
}

/// The sections of each task of set `number` of a seed, in the order in which a job comes to them.
#[must_use]
pub fn sections(seed: u64, number: u64, wcets: &[u64], sharing: Sharing) -> Vec<Vec<DrawnSection>> {
    let mut random = of_series(seed, SECTIONS, number);
    wcets.iter().map(|&wcet| sections_of(wcet, sharing, &mut random)).collect()
}

fn sections_of(wcet: u64, sharing: Sharing, random: &mut Random) -> Vec<DrawnSection> {
    let mut asked: Vec<(u64, u64)> = Vec::new();
    for resource in 0..sharing.resources {
        if random.below(BILLION) < sharing.access_ppb {
            for _ in 0..random.between(1, sharing.requests.max(1)) {
                asked.push((resource, random.between(sharing.shortest_ns, sharing.longest_ns)));
            }
        }
    }
    for last in (1..asked.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        asked.swap(last, other);
    }
    let mut left = wcet;
    asked.retain(|&(_, length)| {
        let fits = length <= left;
        left -= if fits { length } else { 0 };
        fits
    });
    let gaps = shares(left, asked.len() + 1, random);
    let mut at = 0;
    let place = |((resource, length), gap): ((u64, u64), u64)| {
        let from = at + gap;
        at = from + length;
        DrawnSection { resource, from, length }
    };
    asked.into_iter().zip(gaps).map(place).collect()
}

/// Puts sections into the sections of each task of set `number` of a seed, each behind the one around it.
pub fn nest(seed: u64, number: u64, tasks: &mut [Vec<DrawnSection>], resources: u64, chance_ppb: u64) {
    let mut random = of_series(seed, NESTING, number);
    for sections in tasks {
        let outer = std::mem::take(sections);
        for mut around in outer {
            sections.push(around);
            let mut free: Vec<u64> = (0..resources).filter(|&one| one != around.resource).collect();
            while random.below(BILLION) < chance_ppb && !free.is_empty() && around.length > 1 {
                let resource = free.swap_remove(random.below(free.len() as u64) as usize);
                let length = random.between(1, around.length - 1);
                let from = around.from + random.between(0, around.length - length);
                around = DrawnSection { resource, from, length };
                sections.push(around);
            }
        }
    }
}

/// Whether each of so many tasks of set `number` of a seed reads each of so many resources, where it uses it.
#[must_use]
pub fn reads(seed: u64, number: u64, (tasks, resources): (usize, u64), chance_ppb: u64) -> Vec<Vec<bool>> {
    let mut random = of_series(seed, READING, number);
    let mut of_task = || (0..resources).map(|_| random.below(BILLION) < chance_ppb).collect();
    (0..tasks).map(|_| of_task()).collect()
}

/// The second worst case of each task of set `number` of a seed, in ns; `None`: of low criticality.
#[must_use]
pub fn high_wcets(seed: u64, number: u64, wcets: &[u64], levels: Levels) -> Vec<Option<u64>> {
    let mut random = of_series(seed, CRITICALITY, number);
    let high = |&wcet: &u64| {
        let longer = u128::from(wcet) * u128::from(levels.factor_ppb) / u128::from(BILLION);
        (random.below(BILLION) < levels.high_ppb).then(|| u64::try_from(longer).unwrap_or(u64::MAX))
    };
    wcets.iter().map(high).collect()
}

fn of_series(seed: u64, what: u64, number: u64) -> Random {
    Random::of_item(SplitMix64::new(seed ^ what).next_u64(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARING: Sharing =
        Sharing { resources: 3, access_ppb: 400_000_000, requests: 2, shortest_ns: 5, longest_ns: 30 };

    #[test]
    fn segments_share_the_execution_time_and_every_number_is_as_likely() {
        let mut counts = [0; 5];
        for number in 0..4_000 {
            for (segments, wcet) in segments(3, number, &[1_000, 2], 4).iter().zip([1_000, 2]) {
                assert_eq!(segments.iter().sum::<u64>(), wcet);
                assert!(segments.iter().all(|&length| length > 0));
                if wcet == 1_000 {
                    counts[segments.len()] += 1;
                } else {
                    assert!(segments.len() <= 2);
                }
            }
        }
        assert!(
            counts[0] == 0 && counts[1..].iter().all(|&count| (850..1_150).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn sections_lie_apart_within_the_execution_time() {
        let (mut users, mut asked, mut lengths, mut begins_at_0) = (0, 0, [u64::MAX, 0], 0);
        for number in 0..4_000 {
            for (sections, wcet) in sections(4, number, &[1_000, 40], SHARING).iter().zip([1_000, 40]) {
                let mut end = 0;
                for section in sections {
                    assert!(section.from >= end && section.length >= 5 && section.length <= 30);
                    end = section.from + section.length;
                    lengths = [lengths[0].min(section.length), lengths[1].max(section.length)];
                }
                assert!(end <= wcet, "{sections:?}");
                begins_at_0 += u64::from(wcet == 40 && sections.first().is_some_and(|one| one.from == 0));
                if wcet == 1_000 {
                    users += (0..3).filter(|&one| sections.iter().any(|it| it.resource == one)).count();
                    asked += sections.len();
                }
            }
        }
        assert_eq!(lengths, [5, 30]);
        // 4,000 tasks and 3 resources by 0.4; 1.5 requests each. A task of 1,000 ns takes them all.
        assert!((4_600..5_000).contains(&users), "{users}");
        assert!((1.45..1.55).contains(&(asked as f64 / users as f64)), "{asked} of {users}");
        assert!(begins_at_0 > 100, "{begins_at_0}");
    }

    #[test]
    fn sections_nest_and_read_by_their_chances() {
        let (mut outer, mut inner, mut deep, mut read) = (0, 0, 0, 0);
        for number in 0..4_000 {
            let flat = sections(6, number, &[1_000], SHARING);
            let mut nested = flat.clone();
            nest(6, number, &mut nested, SHARING.resources, 300_000_000);
            let found = reads(6, number, (2, 3), 700_000_000);
            assert!(found.len() == 2 && found.iter().all(|of_task| of_task.len() == 3));
            read += found.concat().into_iter().filter(|&one| one).count();
            outer += flat[0].len();
            inner += nested[0].len() - flat[0].len();
            let mut held: Vec<DrawnSection> = Vec::new();
            let mut own = flat[0].iter();
            for section in &nested[0] {
                held.retain(|around| section.from < around.from + around.length);
                let Some(around) = held.last() else {
                    assert_eq!(Some(section), own.next(), "what is drawn without nesting stays");
                    held.push(*section);
                    continue;
                };
                assert!(section.from >= around.from && section.length < around.length);
                assert!(section.from + section.length <= around.from + around.length);
                assert!(held.iter().all(|one| one.resource != section.resource));
                deep = deep.max(held.len());
                held.push(*section);
            }
        }
        // One within another with 0.3, one more with 0.3 of that; three resources.
        let part = inner as f64 / outer as f64;
        assert!((0.36..0.42).contains(&part) && deep == 2, "{inner} of {outer}, {deep}");
        let part = f64::from(read as u32) / 24_000.0;
        assert!((0.69..0.71).contains(&part), "{part}");
        let mut none = sections(6, 1, &[1_000; 5], SHARING);
        let flat = none.clone();
        nest(6, 1, &mut none, SHARING.resources, 0);
        assert_eq!(none, flat);
        let mut only = sections(6, 1, &[1_000; 5], Sharing { resources: 1, ..SHARING });
        let count = only.concat().len();
        nest(6, 1, &mut only, 1, BILLION);
        assert_eq!(only.concat().len(), count, "there is no other resource");
    }

    #[test]
    fn high_tasks_have_their_factor_and_each_part_is_the_same_beside_others() {
        let levels = Levels { high_ppb: 250_000_000, factor_ppb: 2_500_000_000 };
        let mut count = 0;
        for number in 0..4_000 {
            for (high, wcet) in high_wcets(5, number, &[10, 3], levels).into_iter().zip([10, 3]) {
                assert!(high.is_none_or(|high| high == wcet * 5 / 2));
                count += usize::from(high.is_some());
            }
        }
        assert!((1_850..2_150).contains(&count), "{count} of 8000");
        let none = Levels { high_ppb: 0, factor_ppb: 1_000_000_000 };
        assert!((0..100).all(|number| high_wcets(5, number, &[10], none) == [None]));
        let all = Levels { high_ppb: 1_000_000_000, ..none };
        assert!((0..100).all(|number| high_wcets(5, number, &[10], all) == [Some(10)]));
        // Series of one seed do not repeat each other, nor those of the next.
        let first = |what| of_series(7, what, 0).next_u64();
        assert!(first(SEGMENTS) != first(SECTIONS) && first(SECTIONS) != first(CRITICALITY));
        assert_ne!(of_series(7, SEGMENTS, 1).next_u64(), of_series(8, SEGMENTS, 0).next_u64());
    }

    #[test]
    fn the_parts_of_a_seed_are_fixed_for_ever() {
        let expected = [
            vec![433_948, 127_933, 335_022, 103_097],
            vec![314_941, 476_676, 208_383],
            vec![439_889, 74_854, 485_257],
        ];
        assert_eq!(segments(42, 1, &[1_000_000; 3], 4), expected);
        let found = sections(42, 1, &[1_000_000; 2], SHARING);
        let found: Vec<_> = found.concat().iter().map(|one| (one.resource, one.from, one.length)).collect();
        assert_eq!(found, [(1, 324_394, 13), (0, 578_947, 29), (0, 679_910, 25)]);
        let mut nested = sections(42, 1, &[1_000_000; 2], SHARING);
        nest(42, 1, &mut nested, 3, 600_000_000);
        let found: Vec<_> = nested.concat().iter().map(|one| (one.resource, one.from, one.length)).collect();
        assert_eq!(
            found,
            [
                (1, 324_394, 13),
                (0, 578_947, 29),
                (2, 578_955, 9),
                (0, 679_910, 25),
                (1, 679_918, 14),
                (2, 679_930, 2)
            ]
        );
        assert_eq!(reads(42, 1, (2, 3), 500_000_000).concat(), [false, true, true, false, true, false]);
        let levels = Levels { high_ppb: 500_000_000, factor_ppb: 1_500_000_001 };
        let found = high_wcets(42, 0, &[1_000_000_000; 6], levels);
        assert_eq!(found, [None, None, None, Some(1_500_000_001), None, Some(1_500_000_001)]);
    }
}
