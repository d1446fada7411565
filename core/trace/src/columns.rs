//! A small table as Apache Parquet: required columns of integers, doubles and texts, one row group.
//!
//! For result tables of some thousand rows; traces go through [`parquet::Exporter`](crate::parquet::Exporter), which has
//! optional columns and lists.

use crate::TraceError;
use crate::parquet::{Output, failed, next_column, write_numbers, write_texts};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

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

    /// Its place in the schema.
    fn element(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, converted) = match self {
            Column::Integers(_) => (Physical::INT64, ConvertedType::NONE),
            Column::Doubles(_) => (Physical::DOUBLE, ConvertedType::NONE),
            Column::Texts(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        builder.with_converted_type(converted).build().map(Arc::new)
    }
}

/// Writes columns of one length under these names; `metadata` are keys and values for the file's foot.
///
/// # Errors
/// Where the output fails, or the columns differ in length.
///
/// ```
/// use horolog_trace::columns::{Column, write};
/// let mut file = Vec::new();
/// write(&mut file, &[("policy", Column::Texts(vec!["sporadic".into()])), ("ratio", Column::Doubles(vec![0.5]))], &[])?;
/// assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
/// # Ok::<(), horolog_trace::TraceError>(())
/// ```
pub fn write(
    output: &mut (impl Write + Send),
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
    table(output, columns, metadata).map_err(failed)
}

fn table(
    output: Output<'_>,
    columns: &[(&str, Column)],
    metadata: &[(&str, &str)],
) -> Result<(), ParquetError> {
    let elements: Result<Vec<TypePtr>, _> =
        columns.iter().map(|(name, column)| column.element(name)).collect();
    let schema = Type::group_type_builder("rows").with_fields(elements?).build()?;
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_key_value_metadata(Some(pairs.collect()))
        .build();
    let mut writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        match column {
            Column::Integers(values) => write_numbers(&mut group, values, None)?,
            Column::Doubles(values) => {
                let mut column = next_column(&mut group)?;
                if let ColumnWriter::DoubleColumnWriter(writer) = column.untyped() {
                    writer.write_batch(values, None, None)?;
                }
                column.close()?;
            }
            Column::Texts(values) => {
                let texts: Vec<ByteArray> =
                    values.iter().map(|text| ByteArray::from(text.as_str())).collect();
                write_texts(&mut group, &texts, None)?;
            }
        }
    }
    group.close()?;
    writer.close().map(drop)
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
