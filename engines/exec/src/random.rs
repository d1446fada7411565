//! Chance from a seed.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, passes the usual tests, and the same seed gives the
/// same run on every machine.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// A generator of its own for stream `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> SplitMix {
        let mut mixed = SplitMix { state: seed };
        mixed.state = mixed.next().wrapping_add(stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
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
