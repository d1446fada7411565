//! Random numbers whose algorithm is fixed for ever, so that a seed names one run: xoshiro256++ (Blackman and
//! Vigna, 2021), seeded with SplitMix64.
//!
//! Each task has streams of its own, named by the task's name, so that adding a task to a file does not change
//! what the others draw.

/// One stream of random numbers, the same for ever and on every machine; whoever draws task sets or executions for
/// simulations uses it.
///
/// ```
/// let mut stream = horolog_sim::Stream::new(7, "control", "periods");
/// assert!(stream.up_to(3) <= 3);
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// The stream with this seed and name, for this purpose.
    #[must_use]
    pub fn new(seed: u64, name: &str, purpose: &str) -> Stream {
        // FNV-1a over the name, a separator that no name contains, and the purpose.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes().chain([0xff]).chain(purpose.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut x = seed ^ hash;
        let mut split_mix = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Stream { state: [split_mix(), split_mix(), split_mix(), split_mix()] }
    }

    /// The next 64 bits.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `last`, ends included, by Lemire's multiplication; the bias is below 2^-64 · (last + 1).
    #[inline(always)]
    pub fn up_to(&mut self, last: u64) -> u64 {
        ((u128::from(self.next()) * (u128::from(last) + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_agrees_with_the_published_algorithm() {
        // Reference values of xoshiro256++ from the state 1, 2, 3, 4.
        let mut stream = Stream { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| stream.next()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_reach_both_ends_and_nothing_else() {
        let mut stream = Stream::new(1, "task", "execution");
        let mut seen = [0; 4];
        for _ in 0..4_000 {
            seen[stream.up_to(3) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 900), "{seen:?}");
        assert_eq!(stream.up_to(0), 0);
    }

    #[test]
    fn streams_differ_by_seed_name_and_purpose() {
        let first = |seed, name, purpose| Stream::new(seed, name, purpose).next();
        let all = [first(1, "a", "x"), first(2, "a", "x"), first(1, "b", "x"), first(1, "a", "y")];
        for (i, x) in all.iter().enumerate() {
            assert!(all.iter().skip(i + 1).all(|y| x != y));
        }
    }
}
