//! Unsigned integers in one to nine bytes, the length in the first byte's trailing zeros.
//!
//! A value below 2^(7n) takes n bytes for n up to 8: the low n bits of the little-endian word are a one
//! followed by n - 1 zeros, the value stands above them. A first byte of zero announces eight more bytes that
//! hold the value whole. Compared with the continuation-bit form this needs no loop, hence no unpredictable
//! branch, which is most of the cost of writing a record.

/// The most bytes that one value takes.
pub(super) const MAX_LENGTH: usize = 9;

/// Writes `value` at `at` and returns the position behind it. `out` must have [`MAX_LENGTH`] bytes left.
#[inline(always)]
pub(super) fn put(out: &mut [u8], at: usize, value: u64) -> usize {
    if value < 1 << 56 {
        let bits = 64 - (value | 1).leading_zeros() as usize;
        // 7 bits a byte; (bits + 6) / 7 without a division.
        let length = (bits * 37 + 222) >> 8;
        let word = ((value << 1) | 1) << (length - 1);
        out[at..at + 8].copy_from_slice(&word.to_le_bytes());
        at + length
    } else {
        out[at] = 0;
        out[at + 1..at + 9].copy_from_slice(&value.to_le_bytes());
        at + 9
    }
}

/// Reads a value at `at`; `None` where fewer than [`MAX_LENGTH`] bytes are left (pad the buffer).
#[inline(always)]
pub(super) fn get(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let window: &[u8; MAX_LENGTH] = bytes.get(at..at.checked_add(MAX_LENGTH)?)?.try_into().ok()?;
    let low = u64::from_le_bytes([
        window[0], window[1], window[2], window[3], window[4], window[5], window[6], window[7],
    ]);
    if window[0] == 0 {
        return Some(((low >> 8) | (u64::from(window[8]) << 56), at + 9));
    }
    let length = low.trailing_zeros() + 1;
    let value = (low >> length) & (u64::MAX >> (64 - 7 * length));
    Some((value, at + length as usize))
}

/// Maps signed differences to unsigned numbers, small ones to small ones. The difference wraps, so that any two
/// values have one.
#[inline(always)]
pub(super) fn difference(value: u64, base: u64) -> u64 {
    let signed = value.wrapping_sub(base) as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The value that [`difference`] took from `base`.
#[inline(always)]
pub(super) fn add_difference(base: u64, coded: u64) -> u64 {
    let signed = ((coded >> 1) as i64) ^ -((coded & 1) as i64);
    base.wrapping_add(signed as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_reads_back_at_its_edges() {
        for bits in 0..=64_u32 {
            for nudge in [-1_i64, 0, 1] {
                let edge = if bits == 64 { 0 } else { 1_u64 << bits };
                let value = edge.wrapping_add_signed(nudge);
                let mut out = [0xaa_u8; 32];
                let end = put(&mut out, 3, value);
                let expected =
                    if value < 1 << 56 { (64 - (value | 1).leading_zeros()).div_ceil(7) } else { 9 };
                assert_eq!(end - 3, expected as usize, "{value}");
                assert_eq!(get(&out, 3), Some((value, end)), "{value}");
            }
        }
    }

    #[test]
    fn differences_wrap_and_come_back() {
        for (value, base) in [(0, 0), (5, 7), (u64::MAX, 0), (0, u64::MAX), (1 << 63, 3), (3, 1 << 63)] {
            assert_eq!(add_difference(base, difference(value, base)), value);
        }
        assert_eq!(difference(8, 7), 2);
        assert_eq!(difference(u64::MAX, 0), 1);
    }
}
