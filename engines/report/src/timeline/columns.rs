//! Tables of integers as deflated columns: small in the page, quick to decode.
//!
//! Each column is a sequence of LEB128 variable-length integers; signed values and differences are folded
//! ("zigzag": 0, -1, 1, -2, …) so that small ones of either sign stay short. A packed table is, per column, its
//! length in bytes (LEB128) and its bytes, all deflated (RFC 1951) and written as base64.

use base64::Engine;
use serde::{Serialize, Serializer};

/// One column under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    bytes: Vec<u8>,
    last: u64,
}

impl Column {
    /// Appends a value.
    pub(super) fn push(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends the difference to the last value appended so, the first time to zero. Two's complement: the
    /// difference of any two `u64` or `i64` fits, and the reader wraps the same way.
    pub(super) fn push_difference(&mut self, value: u64) {
        let difference = value.wrapping_sub(self.last) as i64;
        self.last = value;
        self.push(((difference << 1) ^ (difference >> 63)) as u64);
    }
}

/// A finished table: `rows` rows in deflated columns.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    rows: u64,
    deflated: Vec<u8>,
}

impl Packed {
    pub(super) fn new(rows: u64, columns: &[&Column]) -> Packed {
        let mut flat = Column::default();
        for column in columns {
            flat.push(column.bytes.len() as u64);
            flat.bytes.extend_from_slice(&column.bytes);
        }
        Packed { rows, deflated: miniz_oxide::deflate::compress_to_vec(&flat.bytes, 6) }
    }

    /// A text as one row, deflated alone.
    #[must_use]
    pub fn text(text: &str) -> Packed {
        Packed { rows: 1, deflated: miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6) }
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl Serialize for Packed {
    /// `[rows, base64]`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.rows, base64::engine::general_purpose::STANDARD.encode(&self.deflated)).serialize(serializer)
    }
}

/// The columns of a packed table, for tests: what the page decodes.
#[cfg(test)]
pub(super) fn unpack(packed: &Packed) -> Vec<Vec<u64>> {
    let flat = miniz_oxide::inflate::decompress_to_vec(&packed.deflated).unwrap();
    let mut at = 0;
    let mut columns = Vec::new();
    while at < flat.len() {
        let length = read(&flat, &mut at) as usize;
        let end = at + length;
        let mut column = Vec::new();
        while at < end {
            column.push(read(&flat, &mut at));
        }
        columns.push(column);
    }
    columns
}

#[cfg(test)]
fn read(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Undoes [`Column::push_difference`].
#[cfg(test)]
pub(super) fn undo_differences(column: &[u64]) -> Vec<i64> {
    let mut last = 0_i64;
    column
        .iter()
        .map(|&folded| {
            last = last.wrapping_add((folded >> 1) as i64 ^ -((folded & 1) as i64));
            last
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacks_to_what_was_packed(
            rows in proptest::collection::vec((any::<u64>(), any::<i64>()), 0..200)
        ) {
            let (mut plain, mut differences) = (Column::default(), Column::default());
            for &(value, moving) in &rows {
                plain.push(value);
                differences.push_difference(moving as u64);
            }
            let packed = Packed::new(rows.len() as u64, &[&plain, &differences]);
            let columns = unpack(&packed);
            prop_assert_eq!(&columns[0], &rows.iter().map(|r| r.0).collect::<Vec<_>>());
            prop_assert_eq!(undo_differences(&columns[1]), rows.iter().map(|r| r.1).collect::<Vec<_>>());
        }
    }
}
