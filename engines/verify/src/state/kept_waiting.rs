//! For how long each level of a processor was kept waiting: what less important tasks had the processor for where they cannot be
//! preempted anywhere. Sums by level, so that each stretch and each question costs the logarithm of the number of levels.

/// Time by level, in a binary indexed tree: the least important level comes first.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptWaiting {
    tree: Vec<u64>,
}

impl KeptWaiting {
    pub(crate) fn new(levels: usize) -> KeptWaiting {
        KeptWaiting { tree: vec![0; levels] }
    }

    /// A task of the level at `place`, the most important one being the first, had the processor.
    pub(crate) fn add(&mut self, place: usize, length: u64) {
        let mut at = self.tree.len().saturating_sub(place);
        while let Some(sum) = at.checked_sub(1).and_then(|place| self.tree.get_mut(place)) {
            *sum = sum.wrapping_add(length);
            at += at & at.wrapping_neg();
        }
    }

    /// For how long so far tasks of the levels from `place` on had it.
    pub(crate) fn from(&self, place: usize) -> u64 {
        let (mut at, mut all) = (self.tree.len().saturating_sub(place), 0_u64);
        while at > 0 {
            all = all.wrapping_add(self.tree[at - 1]);
            at &= at - 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_testkit::Random;

    #[test]
    fn sums_are_those_of_the_levels_behind() {
        for levels in 0..12 {
            let mut random = Random::of_item(19, levels);
            let (mut kept, mut all) = (KeptWaiting::new(levels as usize), vec![0; levels as usize]);
            for _ in 0..levels * 3 {
                let (place, length) = (random.below(levels) as usize, random.below(100));
                kept.add(place, length);
                all[place] += length;
                for from in 0..=levels as usize {
                    assert_eq!(kept.from(from), all[from..].iter().sum::<u64>());
                }
            }
        }
    }
}
