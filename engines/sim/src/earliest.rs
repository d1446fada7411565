//! The earliest of many times, of which one changes at a time.

/// Never.
const NEVER: u64 = u64::MAX;
/// Times, or groups of them, in a group.
const WIDTH: usize = 16;

/// Times in groups of sixteen, of each group the earliest, of sixteen groups the earliest, and so on: a change looks at sixteen
/// a level.
#[derive(Clone, Debug)]
pub(crate) struct Earliest {
    times: Vec<u64>,
    /// The earliest of each group and where it stands; each level in groups again, the last with one entry.
    above: Vec<Vec<(u64, u32)>>,
    /// The earliest of all, [`NEVER`] where there is none.
    pub(crate) time: u64,
    /// Where it stands; the first of several.
    pub(crate) place: u32,
}

impl Earliest {
    /// So many times, all [`NEVER`].
    pub(crate) fn new(count: usize) -> Earliest {
        let mut above = Vec::new();
        let mut size = count;
        while size > WIDTH {
            size = size.div_ceil(WIDTH);
            above.push(vec![(NEVER, 0); size]);
        }
        Earliest { times: vec![NEVER; count], above, time: NEVER, place: 0 }
    }

    /// The time at `place` is another.
    #[inline(always)]
    pub(crate) fn set(&mut self, place: usize, time: u64) {
        self.times[place] = time;
        if self.above.is_empty() {
            (self.time, self.place) = first_of(&self.times, 0);
        } else {
            self.set_above(place);
        }
    }

    #[inline(never)]
    fn set_above(&mut self, place: usize) {
        let mut group = place / WIDTH;
        let times = &self.times[group * WIDTH..];
        let mut least = first_of(&times[..WIDTH.min(times.len())], (group * WIDTH) as u32);
        for level in &mut self.above {
            level[group] = least;
            group /= WIDTH;
            let entries = &level[group * WIDTH..];
            least = (NEVER, 0);
            for &entry in &entries[..WIDTH.min(entries.len())] {
                least = if entry.0 < least.0 { entry } else { least };
            }
        }
        (self.time, self.place) = least;
    }
}

/// The first of the least, and where it stands, counted from `from`.
#[inline(always)]
fn first_of(times: &[u64], from: u32) -> (u64, u32) {
    let (mut least, mut place) = (NEVER, 0);
    for (index, &time) in times.iter().enumerate() {
        place = if time < least { from + index as u32 } else { place };
        least = least.min(time);
    }
    (least, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_of_the_earliest_stands_on_top(
            count in prop_oneof![1_usize..40, Just(16), Just(17), 250..270_usize, 4_090..4_100_usize],
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u64..9), 1..60),
        ) {
            let mut earliest = Earliest::new(count);
            let mut plain = vec![NEVER; count];
            for (place, time) in changes {
                let (place, time) = (place.index(count), if time == 8 { NEVER } else { time });
                earliest.set(place, time);
                plain[place] = time;
                let least = plain.iter().copied().min().unwrap_or(NEVER);
                prop_assert_eq!(earliest.time, least);
                if least != NEVER {
                    prop_assert_eq!(Some(earliest.place as usize), plain.iter().position(|&it| it == least));
                }
            }
        }
    }
}
