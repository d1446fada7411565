//! Random numbers whose algorithm is fixed for ever, so that a seed names one run ([`horolog_draw::Random`]).
//!
//! Each task has streams of its own, named by the task's name, so that adding a task to a file does not change
//! what the others draw.

use horolog_draw::Random;

/// One stream of random numbers, the same for ever and on every machine; whoever draws task sets or executions for
/// simulations uses it.
///
/// ```
/// let mut stream = horolog_sim::Stream::new(7, "control", "periods");
/// assert!(stream.up_to(3) <= 3);
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Random);

impl Stream {
    /// The stream with this seed and name, for this purpose.
    #[must_use]
    pub fn new(seed: u64, name: &str, purpose: &str) -> Stream {
        // FNV-1a over the name, a separator that no name contains, and the purpose.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes().chain([0xff]).chain(purpose.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Stream(Random::new(seed ^ hash))
    }

    /// The next 64 bits.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
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
    fn the_numbers_of_a_stream_are_fixed_for_ever() {
        let mut stream = Stream::new(42, "control", "execution");
        assert_eq!([stream.next(), stream.next()], [2_191_952_451_817_561_945, 621_556_854_702_824_771]);
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
