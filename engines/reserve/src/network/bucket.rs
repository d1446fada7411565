//! The bytes of a period, counted as the kernel's program counts them.

use super::ByteAmount;

/// A period so many ahead of that of a packet is a later one, seen by another CPU; one further off lies long ago (the number of a period has
/// 32 bits and comes again).
pub const AHEAD: u32 = 16;

/// What a period has used: its number in the upper half, bytes in the lower one. It is one word, so that several CPUs can change it at once
/// (compare and exchange) without a lock.
///
/// Periods begin at S + k·T, and each begins with all of C; what is not used is lost. So in any interval of length t at most (⌈t/T⌉ + 1)·C bytes are taken.
///
/// ```
/// use horolog_reserve::network::{Bucket, ByteAmount};
/// let amount: ByteAmount = "100 B / 1 ms".parse()?;
/// let mut bucket = Bucket::default();
/// assert!(bucket.take(&amount, 0, 60) && bucket.take(&amount, 999_999, 40) && !bucket.take(&amount, 999_999, 1));
/// assert!(bucket.take(&amount, 1_000_000, 100));
/// # Ok::<(), horolog_reserve::network::ParseByteAmountError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bucket(u64);

impl Bucket {
    /// Takes `bytes` at this time, ns after the start S; says whether the period had room. Nothing is taken where it had not.
    #[must_use]
    pub fn take(&mut self, amount: &ByteAmount, since_start_ns: u64, bytes: u32) -> bool {
        let period = (since_start_ns / amount.period.as_ns().max(1)) as u32;
        let (last, used) = ((self.0 >> 32) as u32, self.0 as u32);
        let ahead = last.wrapping_sub(period);
        let (period, used) = if ahead <= AHEAD { (last, used) } else { (period, 0) };
        let total = u64::from(used) + u64::from(bytes);
        if total > amount.bytes {
            return false;
        }
        self.0 = u64::from(period) << 32 | total;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Span;

    const AMOUNT: ByteAmount = ByteAmount::implicit(1_000, Span::from_ns(1_000_000));

    #[test]
    fn one_byte_inside_and_outside_of_a_budget_one_tick_inside_and_outside_of_a_period() {
        let mut bucket = Bucket::default();
        assert!(bucket.take(&AMOUNT, 0, 1_000) && !bucket.take(&AMOUNT, 999_999, 1));
        assert!(!bucket.take(&AMOUNT, 1_000_000, 1_001) && bucket.take(&AMOUNT, 1_000_000, 999));
        assert!(!bucket.take(&AMOUNT, 1_999_999, 2) && bucket.take(&AMOUNT, 1_999_999, 1));
    }

    #[test]
    fn what_is_refused_takes_nothing() {
        let mut bucket = Bucket::default();
        assert!(!bucket.take(&AMOUNT, 0, 1_001) && bucket.take(&AMOUNT, 0, 1_000));
    }

    #[test]
    fn a_packet_of_the_period_before_counts_in_the_later_one() {
        let mut bucket = Bucket::default();
        assert!(bucket.take(&AMOUNT, 16_000_000, 999));
        assert!(!bucket.take(&AMOUNT, 0, 2) && bucket.take(&AMOUNT, 0, 1), "16 behind is a late one");
        let mut bucket = Bucket::default();
        assert!(bucket.take(&AMOUNT, 17_000_000, 999) && bucket.take(&AMOUNT, 0, 1_000), "17 behind is not");
    }

    #[test]
    fn numbers_of_periods_come_again() {
        let mut bucket = Bucket::default();
        let last = u64::from(u32::MAX) * 1_000_000;
        assert!(bucket.take(&AMOUNT, last / 2, 1_000) && bucket.take(&AMOUNT, last, 1_000));
        assert!(!bucket.take(&AMOUNT, last, 1) && bucket.take(&AMOUNT, last + 1_000_000, 1_000));
        assert!(!bucket.take(&AMOUNT, last, 1), "period 2^32 is ahead of the one before");
    }
}
