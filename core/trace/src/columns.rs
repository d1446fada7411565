//! A small table as Apache Parquet, without the library for it: required columns of integers, doubles and texts, plain
//! encoding, uncompressed, one row group.
//!
//! For result tables of some thousand rows; traces go through `parquet::Exporter`, which has optional columns and
//! lists. The format: <https://parquet.apache.org/docs/file-format/>; its metadata is Thrift's compact protocol.

use crate::TraceError;
use std::io::Write;

/// One column.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Column {
    /// 64-bit integers.
    Integers(Vec<i64>),
    /// Doubles; NaN stands for what is not there.
    Doubles(Vec<f64>),
    /// UTF-8 texts.
    Texts(Vec<String>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Column::Integers(values) => values.len(),
            Column::Doubles(values) => values.len(),
            Column::Texts(values) => values.len(),
        }
    }

    /// The number of the physical type.
    fn physical(&self) -> i64 {
        match self {
            Column::Integers(_) => 2,
            Column::Doubles(_) => 5,
            Column::Texts(_) => 6,
        }
    }

    fn plain(&self) -> Vec<u8> {
        match self {
            Column::Integers(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::Doubles(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::Texts(values) => {
                let mut bytes = Vec::new();
                for text in values {
                    bytes.extend((text.len() as u32).to_le_bytes());
                    bytes.extend(text.as_bytes());
                }
                bytes
            }
        }
    }
}

/// Writes columns of one length under these names; `metadata` are keys and values for the file's foot.
///
/// # Errors
/// Where the output fails, the columns differ in length, or one is 2 GiB or more.
///
/// ```
/// use horolog_trace::columns::{Column, write};
/// let mut file = Vec::new();
/// write(&mut file, &[("policy", Column::Texts(vec!["sporadic".into()])), ("ratio", Column::Doubles(vec![0.5]))], &[])?;
/// assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
/// # Ok::<(), horolog_trace::TraceError>(())
/// ```
pub fn write(
    output: &mut impl Write,
    columns: &[(&str, Column)],
    metadata: &[(&str, &str)],
) -> Result<(), TraceError> {
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if columns.iter().any(|(_, column)| column.len() != rows) {
        return Err(TraceError::unsupported(
            "the columns of a table differ in length".to_owned(),
            "report it",
        ));
    }
    let mut file = b"PAR1".to_vec();
    let mut chunks = Vec::with_capacity(columns.len());
    for (_, column) in columns {
        let data = column.plain();
        if i32::try_from(data.len()).is_err() {
            return Err(TraceError::unsupported("a column is too large".to_owned(), "write fewer rows"));
        }
        let head = page_header(rows, data.len());
        chunks.push((file.len() as i64, (head.len() + data.len()) as i64));
        file.extend(head);
        file.extend(data);
    }
    let foot = footer(columns, rows, &chunks, metadata);
    file.extend(&foot);
    file.extend((foot.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    output.write_all(&file).map_err(|error| TraceError::io("writing the Parquet file", error))
}

/// Thrift's compact protocol, as far as it is needed here.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    /// The last field's number, of each structure that is open.
    fields: Vec<i16>,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCTURE: u8 = 12;

impl Thrift {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn field(&mut self, number: i16, kind: u8) {
        let last = self.fields.last_mut();
        let before = last.map_or(0, |last| std::mem::replace(last, number));
        // Numbers go up in steps of at most 15 in every structure of the format.
        self.bytes.push(((number - before) as u8) << 4 | kind);
    }

    fn integer(&mut self, number: i16, kind: u8, value: i64) {
        self.field(number, kind);
        self.zigzag(value);
    }

    fn text(&mut self, number: i16, text: &str) {
        self.field(number, BINARY);
        self.bare_text(text);
    }

    fn bare_text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn list(&mut self, number: i16, kind: u8, count: usize) {
        self.field(number, LIST);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.varint(count as u64);
        }
    }

    /// A structure that stands by itself or in a list.
    fn structure(&mut self, fill: impl FnOnce(&mut Thrift)) {
        self.fields.push(0);
        fill(self);
        self.fields.pop();
        self.bytes.push(0);
    }

    fn inner(&mut self, number: i16, fill: impl FnOnce(&mut Thrift)) {
        self.field(number, STRUCTURE);
        self.structure(fill);
    }
}

/// `PageHeader` of one data page that holds a whole column.
fn page_header(rows: usize, bytes: usize) -> Vec<u8> {
    let mut thrift = Thrift::default();
    thrift.structure(|page| {
        page.integer(1, I32, 0); // a data page
        page.integer(2, I32, bytes as i64);
        page.integer(3, I32, bytes as i64);
        page.inner(5, |data| {
            data.integer(1, I32, rows as i64);
            data.integer(2, I32, 0); // plain
            data.integer(3, I32, 3); // levels that no required column has: RLE
            data.integer(4, I32, 3);
        });
    });
    thrift.bytes
}

/// `FileMetaData`.
fn footer(
    columns: &[(&str, Column)],
    rows: usize,
    chunks: &[(i64, i64)],
    metadata: &[(&str, &str)],
) -> Vec<u8> {
    let mut thrift = Thrift::default();
    thrift.structure(|file| {
        file.integer(1, I32, 1);
        file.list(2, STRUCTURE, columns.len() + 1);
        file.structure(|root| {
            root.text(4, "rows");
            root.integer(5, I32, columns.len() as i64);
        });
        for (name, column) in columns {
            file.structure(|element| {
                element.integer(1, I32, column.physical());
                element.integer(3, I32, 0); // required
                element.text(4, name);
                if let Column::Texts(_) = column {
                    element.integer(6, I32, 0); // UTF-8
                }
            });
        }
        file.integer(3, I64, rows as i64);
        file.list(4, STRUCTURE, 1);
        file.structure(|group| row_group(group, columns, rows, chunks));
        if !metadata.is_empty() {
            file.list(5, STRUCTURE, metadata.len());
            for (key, value) in metadata {
                file.structure(|pair| {
                    pair.text(1, key);
                    pair.text(2, value);
                });
            }
        }
        file.text(6, concat!("horolog ", env!("CARGO_PKG_VERSION")));
    });
    thrift.bytes
}

fn row_group(group: &mut Thrift, columns: &[(&str, Column)], rows: usize, chunks: &[(i64, i64)]) {
    group.list(1, STRUCTURE, columns.len());
    for ((name, column), (offset, bytes)) in columns.iter().zip(chunks) {
        group.structure(|chunk| {
            chunk.integer(2, I64, *offset);
            chunk.inner(3, |data| {
                data.integer(1, I32, column.physical());
                data.list(2, I32, 1);
                data.zigzag(0); // plain
                data.list(3, BINARY, 1);
                data.bare_text(name);
                data.integer(4, I32, 0); // uncompressed
                data.integer(5, I64, rows as i64);
                data.integer(6, I64, *bytes);
                data.integer(7, I64, *bytes);
                data.integer(9, I64, *offset);
            });
        });
    }
    group.integer(2, I64, chunks.iter().map(|(_, bytes)| bytes).sum());
    group.integer(3, I64, rows as i64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let columns = [("a", Column::Integers(vec![1])), ("b", Column::Doubles(vec![]))];
        assert!(write(&mut Vec::new(), &columns, &[]).is_err());
    }

    #[test]
    fn the_library_reads_what_was_written() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::RowAccessor;
        for rows in [0_usize, 1, 3, 40_000] {
            let numbers: Vec<i64> = (0..rows as i64).map(|n| n * n - 7).collect();
            let doubles: Vec<f64> = (0..rows).map(|n| n as f64 / 3.0).collect();
            let texts: Vec<String> = (0..rows).map(|n| format!("tä{}", n % 11)).collect();
            let mut columns = vec![
                ("number", Column::Integers(numbers.clone())),
                ("ratio", Column::Doubles(doubles.clone())),
                ("text", Column::Texts(texts.clone())),
            ];
            // More columns than fit the short form of a list's head.
            let more: Vec<String> = (0..15).map(|n| format!("more{n}")).collect();
            columns.extend(more.iter().map(|name| (name.as_str(), Column::Integers(numbers.clone()))));
            let mut file = Vec::new();
            write(&mut file, &columns, &[("horolog.experiment", "{}")]).expect("memory");
            let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a Parquet file");
            let metadata = reader.metadata().file_metadata();
            assert_eq!(metadata.num_rows(), rows as i64);
            let pairs = metadata.key_value_metadata().expect("the pair");
            assert_eq!(
                (pairs[0].key.as_str(), pairs[0].value.as_deref()),
                ("horolog.experiment", Some("{}"))
            );
            let mut count = 0;
            for (place, row) in reader.get_row_iter(None).expect("rows").enumerate() {
                let row = row.expect("a row");
                assert_eq!(row.get_long(0).expect("a number"), numbers[place]);
                assert_eq!(row.get_double(1).expect("a double"), doubles[place]);
                assert_eq!(row.get_string(2).expect("a text"), &texts[place]);
                assert_eq!(row.get_long(17).expect("a number"), numbers[place]);
                count += 1;
            }
            assert_eq!(count, rows);
        }
    }
}
