//! Chance from a seed.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, passes the usual tests, and the same seed gives the
/// same run on every machine.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// The generator of whoever has this name, for this purpose: the seed is mixed with FNV-1a over the name, a byte that no
    /// name contains (255) and the purpose, as the simulator has it. So a place in a file changes nobody's draws.
    pub(crate) fn new(seed: u64, name: &str, purpose: &str) -> SplitMix {
        let bytes = name.bytes().chain([0xff]).chain(purpose.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut mixed = SplitMix { state: seed };
        mixed.state = mixed.next().wrapping_add(hash);
        mixed
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number from 0 to `most`, both included.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * (u128::from(most) + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_go_by_seed_name_and_purpose() {
        let first = |seed, name, purpose| SplitMix::new(seed, name, purpose).next();
        let all = [first(1, "a", "x"), first(2, "a", "x"), first(1, "b", "x"), first(1, "a", "y")];
        for (index, x) in all.iter().enumerate() {
            assert!(all[index + 1..].iter().all(|y| x != y), "{all:?}");
        }
        assert_eq!(first(1, "a", "x"), first(1, "a", "x"));
    }
}
