//! Tables whose keys are a few numbers: a cheap hash, since every event looks into several.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A table with a cheap hash.
pub(super) type Table<K, V> = HashMap<K, V, Seed>;

/// Begins each hash of one table with the same secret number, so that nobody can write a trace whose keys all collide.
#[derive(Clone, Debug)]
pub(super) struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0_u64))
    }
}

impl BuildHasher for Seed {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        Mix(self.0)
    }
}

/// Multiplies and rotates.
#[derive(Debug)]
pub(super) struct Mix(u64);

impl Mix {
    fn mix(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.mix(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_isize(&mut self, number: isize) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
