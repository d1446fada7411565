//! Choices made by a seed or by given words: one drawing code for seeds, proptest and fuzzers.

use crate::Random;

/// Where uniform numbers come from.
pub trait Choices {
    /// Uniform from 0 to `bound` - 1; 0 where `bound` is zero.
    fn below(&mut self, bound: u64) -> u64;

    /// Uniform from `low` to `high`, both included; `low` where that is above `high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.below(u64::MAX),
        }
    }

    /// One of the items.
    ///
    /// # Panics
    /// Where there is none.
    fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// True once in `n`.
    fn once_in(&mut self, n: u64) -> bool {
        // The simple case is the one that zero words lead to.
        self.below(n) == n.saturating_sub(1)
    }
}

impl Choices for Random {
    fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { Random::below(self, bound) }
    }
}

/// Choices made by given words, then by zeros: fewer and smaller words make a simpler system.
#[derive(Clone, Debug)]
pub struct Words {
    words: std::vec::IntoIter<u64>,
}

impl Words {
    /// Choices made by these words.
    #[must_use]
    pub fn new(words: Vec<u64>) -> Words {
        Words { words: words.into_iter() }
    }
}

impl Choices for Words {
    fn below(&mut self, bound: u64) -> u64 {
        let word = self.words.next().unwrap_or(0);
        ((u128::from(word) * u128::from(bound)) >> 64) as u64
    }
}
