//! A random number generator whose numbers are the same for ever, on every machine.
//!
//! Published figures name a seed; a library's generator may change its algorithm between versions, so this one is
//! written down here: SplitMix64 (Steele, Lea and Flood 2014; key steele14) spreads the seed over the state of
//! xoshiro256++ (Blackman and Vigna 2021; key blackman21). Integers alone are used, and of floating point only
//! operations that IEEE 754 rounds correctly (`+ - * / sqrt`), never a platform's `exp` or `ln`.

/// SplitMix64: turns one seed into independent-looking words.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next word.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// xoshiro256++, seeded through [`SplitMix64`].
///
/// ```
/// use horolog_draw::Random;
/// let (mut one, mut two) = (Random::new(7), Random::new(7));
/// assert_eq!(one.next_u64(), two.next_u64());
/// assert!((3..=5).contains(&one.between(3, 5)));
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        let mut words = SplitMix64::new(seed);
        Random { state: std::array::from_fn(|_| words.next_u64()) }
    }

    /// The generator of item `index` of a series: any item can be drawn again without those before it.
    #[must_use]
    pub fn of_item(seed: u64, index: u64) -> Random {
        let mut words = SplitMix64::new(seed);
        Random::new(words.next_u64() ^ SplitMix64::new(index).next_u64())
    }

    /// The next word.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
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

    /// Uniform from 0 to `bound` - 1, without bias (Lemire's multiplication with rejection).
    ///
    /// # Panics
    /// Where `bound` is zero: there is no such number.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        // The low half of the product is uneven for the first 2^64 mod `bound` values; those are drawn again.
        let uneven = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= uneven {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform from `low` to `high`, both included.
    ///
    /// # Panics
    /// Where `low` is above `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "from {low} to {high} there is nothing");
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.next_u64(),
        }
    }

    /// Log-uniform from `low` to `high` (both above zero): every factor is as likely as every other of its size,
    /// `low · (high / low)^x` with x uniform in [0, 1), rounded down.
    ///
    /// The power is a product of repeated square roots of the ratio, one a binary digit of x: only operations
    /// that are rounded the same way everywhere.
    ///
    /// # Panics
    /// Where `low` is zero or above `high`.
    pub fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        assert!(0 < low && low <= high, "no log-uniform numbers from {low} to {high}");
        let digits = self.next_u64() >> 11;
        let mut root = high as f64 / low as f64;
        let mut power = 1.0_f64;
        for place in (0..53).rev() {
            root = root.sqrt();
            if digits >> place & 1 == 1 {
                power *= root;
            }
        }
        ((low as f64 * power) as u64).clamp(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_words() {
        let mut words = SplitMix64::new(1_234_567);
        let found: [u64; 3] = std::array::from_fn(|_| words.next_u64());
        assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn xoshiro256_plus_plus_gives_the_published_words() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let found: [u64; 5] = std::array::from_fn(|_| random.next_u64());
        let published =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        assert_eq!(found, published);
    }

    #[test]
    fn numbers_stay_in_range_and_reach_its_ends() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..2_000).map(|_| random.between(10, 14)).collect();
        for value in 10..=14 {
            let count = drawn.iter().filter(|&&d| d == value).count();
            assert!((300..500).contains(&count), "{value} came {count} times of 2000");
        }
        assert!(drawn.iter().all(|d| (10..=14).contains(d)));
        assert_eq!(random.between(u64::MAX, u64::MAX), u64::MAX);
        random.between(0, u64::MAX);
    }

    #[test]
    fn log_uniform_halves_at_the_geometric_mean() {
        let mut random = Random::new(2);
        let drawn: Vec<u64> = (0..4_000).map(|_| random.log_uniform(10_000, 1_000_000)).collect();
        assert!(drawn.iter().all(|d| (10_000..=1_000_000).contains(d)));
        let below = drawn.iter().filter(|&&d| d < 100_000).count();
        assert!((1_850..2_150).contains(&below), "{below} of 4000 below the geometric mean");
    }

    #[test]
    fn the_numbers_of_a_seed_are_fixed_for_ever() {
        let mut random = Random::new(42);
        let found = (random.next_u64(), random.below(1_000), random.log_uniform(10_000_000, 1_000_000_000));
        assert_eq!(found, (15_021_278_609_987_233_951, 318, 928_513_743));
        assert_eq!(Random::of_item(42, 3).next_u64(), Random::of_item(42, 3).next_u64());
        assert_ne!(Random::of_item(42, 3).next_u64(), Random::of_item(42, 4).next_u64());
    }
}
