//! How an event stands in a buffer: a head of two words, then its arguments.
//!
//! | word | bits | what |
//! |---|---|---|
//! | 0 | 0-63 | time in ticks of the session's clock |
//! | 1 | 0-31 | number of the event |
//! | | 32-47 | processor |
//! | | 48-55 | number of arguments, at most ten; with [`TEXTS`] half the number of words that follow |
//! | | 56-63 | flags |
//! | 2.. | | one word an argument; of a text its length in bytes (the highest bit set where it was cut), then its bytes, the last word filled up with zeros; with [`TEXTS`] a zero word where the number would be odd |

use crate::{MAX_ARGUMENTS, MAX_TEXT};

/// Words of the head.
pub const HEAD_WORDS: usize = 2;
/// Words of the longest record without texts.
pub const MAX_WORDS: usize = HEAD_WORDS + MAX_ARGUMENTS;
/// Words of the arguments of the longest record with texts.
pub const MAX_TEXT_WORDS: usize = MAX_ARGUMENTS * (1 + MAX_TEXT / 8);
/// Of the word in front of a text's bytes: the text was longer.
pub const CUT: u64 = 1 << 63;
/// The record was emitted while the same thread was inside another emission (a signal handler on top of it).
pub const NESTED: u8 = 1;
/// The record came through a multi-writer buffer.
pub const SHARED: u8 = 2;
/// One of the arguments is a text.
pub const TEXTS: u8 = 4;

/// The second word.
#[inline(always)]
#[must_use]
pub fn pack(event: u32, cpu: u16, arguments: usize, flags: u8) -> u64 {
    event as u64 | (cpu as u64) << 32 | (arguments as u64) << 48 | (flags as u64) << 56
}

/// The head of a record as its two words say it; the number of arguments is not checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Ticks of the session's clock.
    pub ticks: u64,
    /// The event's number.
    pub event: u32,
    /// The processor.
    pub cpu: u16,
    /// How many arguments follow; with [`TEXTS`] half the number of words.
    pub arguments: u8,
    /// [`NESTED`], [`SHARED`], [`TEXTS`].
    pub flags: u8,
}

impl Head {
    /// Reads the two words.
    #[inline]
    #[must_use]
    pub fn unpack(ticks: u64, packed: u64) -> Head {
        Head {
            ticks,
            event: packed as u32,
            cpu: (packed >> 32) as u16,
            arguments: (packed >> 48) as u8,
            flags: (packed >> 56) as u8,
        }
    }

    /// How many words follow the head; `None` where no record has as many.
    #[inline]
    #[must_use]
    pub fn words(&self) -> Option<usize> {
        let count = usize::from(self.arguments);
        let (words, most) =
            if self.flags & TEXTS == 0 { (count, MAX_ARGUMENTS) } else { (2 * count, MAX_TEXT_WORDS) };
        (words <= most).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_keeps_its_fields() {
        let head = Head::unpack(9, pack(u32::MAX - 1, 65_535, 10, NESTED | SHARED));
        assert_eq!(head, Head { ticks: 9, event: u32::MAX - 1, cpu: 65_535, arguments: 10, flags: 3 });
        assert_eq!(head.words(), Some(10));
        assert_eq!(Head { arguments: 11, ..head }.words(), None);
        assert_eq!(Head { arguments: 165, flags: TEXTS, ..head }.words(), Some(MAX_TEXT_WORDS));
        assert_eq!(Head { arguments: 166, flags: TEXTS, ..head }.words(), None);
    }
}
