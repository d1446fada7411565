//! Rows as Parquet: one row a cell, block and test, or one a set and test.

use crate::SweepError;
use crate::block::{Counts, Found, Head, Row};
use crate::more::Value;
use crate::plan::{BlockId, Plan, RowsOf};
use crate::test::Test;
use horolog_analysis::Verdict;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RowAccessor;
use parquet::schema::types::Type;
use std::sync::Arc;

/// The key of the file's metadata.
const METADATA: &str = "horolog.sweep";

/// The values of a column, the same number in each.
enum Column {
    Numbers(Vec<u64>),
    Shares(Vec<f64>),
    Texts(Vec<String>),
}

/// Name and values of every column.
fn columns(plan: &Plan, id: BlockId, found: &Found) -> Vec<(&'static str, Column)> {
    let tests = plan.tests.len();
    let length = match plan.rows {
        RowsOf::Blocks => found.rows.len(),
        RowsOf::Sets => found.verdicts.len(),
    };
    let mut columns = columns_of_cell(plan, id, length);
    let rows = &found.rows;
    let count = |of: fn(&Counts) -> u64| Column::Numbers(rows.iter().map(|row| of(&row.counts)).collect());
    let sum = |of: fn(&Counts) -> f64| Column::Shares(rows.iter().map(|row| of(&row.counts)).collect());
    match plan.rows {
        RowsOf::Blocks => columns.extend([
            ("test", Column::Texts(rows.iter().map(|row| row.test.clone()).collect())),
            ("sets", count(|one| one.sets)),
            ("meets", count(|one| one.meets)),
            ("misses", count(|one| one.misses)),
            ("unknown", count(|one| one.unknown)),
            ("utilisation_sum", sum(|one| one.utilisation)),
            ("utilisation_met", sum(|one| one.utilisation_met)),
        ]),
        RowsOf::Sets => {
            let each = |place: usize| (place / tests, place % tests);
            columns.extend([
                ("set", Column::Numbers((0..length).map(|place| each(place).0 as u64).collect())),
                (
                    "set_utilisation",
                    Column::Shares((0..length).map(|place| found.shares[each(place).0]).collect()),
                ),
                (
                    "test",
                    Column::Texts(
                        (0..length).map(|place| plan.tests[each(place).1].word().to_owned()).collect(),
                    ),
                ),
                ("verdict", Column::Texts(found.verdicts.iter().map(|one| word(*one).to_owned()).collect())),
            ]);
        }
    }
    columns
}

/// The columns that say which block it is.
fn columns_of_cell(plan: &Plan, id: BlockId, length: usize) -> Vec<(&'static str, Column)> {
    let cell = &plan.cells[id.cell];
    let recipe = &cell.recipe;
    let number = |value: u64| Column::Numbers(vec![value; length]);
    let share = |value: f64| Column::Shares(vec![value; length]);
    let text = |value: &str| Column::Texts(vec![value.to_owned(); length]);
    let mut columns = vec![
        ("tasks", number(recipe.tasks as u64)),
        ("utilisation", share(recipe.utilisation)),
        ("method", text(&recipe.method)),
        ("periods", text(&recipe.periods)),
        ("shortest_period_ns", number(recipe.shortest_period_ns)),
        ("longest_period_ns", number(recipe.longest_period_ns)),
        ("granularity_ns", number(recipe.granularity_ns)),
        ("deadlines", text(&recipe.deadlines)),
        ("least", share(recipe.least)),
        ("factor", share(recipe.factor)),
    ];
    columns.extend(cell.more.each().map(|(key, value)| match value {
        Value::Number(value) => (key.column, number(value)),
        Value::Share(value) => (key.column, share(value)),
    }));
    columns.push(("seed", number(cell.seed)));
    columns.push(("block", number(id.block)));
    columns.push(("block_seed", number(plan.seed(id))));
    columns
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Meets => "meets",
        Verdict::Misses => "misses",
        Verdict::Unknown => "unknown",
    }
}

/// The file of a block.
pub(crate) fn encode(plan: &Plan, id: BlockId, found: &Found) -> Result<Vec<u8>, SweepError> {
    let failed = |error: ParquetError| SweepError::Internal(format!("writing Parquet: {error}"));
    let head = serde_json::to_string(&Head::of(plan, id))
        .map_err(|error| SweepError::Internal(format!("no JSON for the head: {error}")))?;
    write(&columns(plan, id, found), head, plan.rows).map_err(failed)
}

fn write(columns: &[(&'static str, Column)], head: String, of: RowsOf) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, column): &(&'static str, Column)| {
        let (physical, converted) = match column {
            Column::Numbers(_) => (Physical::INT64, ConvertedType::UINT_64),
            Column::Shares(_) => (Physical::DOUBLE, ConvertedType::NONE),
            Column::Texts(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let builder = Type::primitive_type_builder(name, physical).with_converted_type(converted);
        builder.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
    // Of a handful of rows a dictionary and an index are the greater part.
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(of == RowsOf::Sets)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![KeyValue::new(METADATA.to_owned(), head)]))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let missing = || ParquetError::General("the schema has no further column".to_owned());
        let mut place = group.next_column()?.ok_or_else(missing)?;
        match (place.untyped(), column) {
            (ColumnWriter::Int64ColumnWriter(place), Column::Numbers(values)) => {
                let values: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
                place.write_batch(&values, None, None)?;
            }
            (ColumnWriter::DoubleColumnWriter(place), Column::Shares(values)) => {
                place.write_batch(values, None, None)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(place), Column::Texts(values)) => {
                let values: Vec<ByteArray> =
                    values.iter().map(|value| ByteArray::from(value.as_str())).collect();
                place.write_batch(&values, None, None)?;
            }
            _ => return Err(ParquetError::General("a column has another type".to_owned())),
        }
        place.close()?;
    }
    group.close()?;
    writer.into_inner()
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
fn failed(error: ParquetError) -> String {
    format!("it is not whole: {error}")
}

/// Opens a file, and reads what it says of itself.
fn open(file: &[u8]) -> Result<(SerializedFileReader<bytes::Bytes>, Head), String> {
    let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(file)).map_err(failed)?;
    let metadata = reader.metadata().file_metadata();
    let head = metadata.key_value_metadata().and_then(|all| all.iter().find(|one| one.key == METADATA));
    let head = head.and_then(|one| one.value.as_deref()).ok_or("it is not of a sweep")?;
    let head = serde_json::from_str(head).map_err(|error| format!("its head: {error}"))?;
    Ok((reader, head))
}

/// Where a column is.
fn place_of(reader: &SerializedFileReader<bytes::Bytes>, name: &str) -> Result<usize, String> {
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let found = columns.iter().position(|column| column.name() == name);
    found.ok_or_else(|| format!("it has no column {name}"))
}

/// What a file of rows of sets says of itself, and what its rows come to: one a test.
pub(crate) fn decode_sets(file: &[u8], tests: &[Test]) -> Result<(Head, Vec<Row>), String> {
    let (reader, head) = open(file)?;
    let [set, share, test, verdict] =
        ["set", "set_utilisation", "test", "verdict"].map(|name| place_of(&reader, name));
    let (set, share, test, verdict) = (set?, share?, test?, verdict?);
    let mut counts = vec![Counts::default(); tests.len()];
    let mut row = 0;
    for place in 0..reader.num_row_groups() {
        let group = reader.get_row_group(place).map_err(failed)?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| "it has no rows".to_owned())?;
        let column = |place: usize| group.get_column_reader(place).map_err(failed);
        let (sets, shares) = (numbers(column(set)?, rows)?, shares(column(share)?, rows)?);
        let (words, verdicts) = (texts(column(test)?, rows)?, texts(column(verdict)?, rows)?);
        for at in 0..rows {
            let (number, of) = (row / tests.len(), row % tests.len());
            let verdict = match verdicts[at].data() {
                b"meets" => Verdict::Meets,
                b"misses" => Verdict::Misses,
                b"unknown" => Verdict::Unknown,
                _ => return Err(format!("row {row} has no verdict")),
            };
            if sets[at] != number as i64 || words[at].data() != tests[of].word().as_bytes() {
                return Err(format!("row {row} is not that of set {number} and `{}`", tests[of].word()));
            }
            counts[of].add(verdict, shares[at]);
            row += 1;
        }
    }
    Ok((head, Found::of(tests, counts).rows))
}

fn numbers(reader: ColumnReader, rows: usize) -> Result<Vec<i64>, String> {
    let mut values = Vec::new();
    match reader {
        ColumnReader::Int64ColumnReader(mut reader) => {
            reader.read_records(rows, None, None, &mut values).map_err(failed)?;
        }
        _ => return Err("a column has another type".to_owned()),
    }
    whole(values, rows)
}

fn shares(reader: ColumnReader, rows: usize) -> Result<Vec<f64>, String> {
    let mut values = Vec::new();
    match reader {
        ColumnReader::DoubleColumnReader(mut reader) => {
            reader.read_records(rows, None, None, &mut values).map_err(failed)?;
        }
        _ => return Err("a column has another type".to_owned()),
    }
    whole(values, rows)
}

fn texts(reader: ColumnReader, rows: usize) -> Result<Vec<ByteArray>, String> {
    let mut values = Vec::new();
    match reader {
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            reader.read_records(rows, None, None, &mut values).map_err(failed)?;
        }
        _ => return Err("a column has another type".to_owned()),
    }
    whole(values, rows)
}

/// The values, where there are as many as rows.
fn whole<T>(values: Vec<T>, rows: usize) -> Result<Vec<T>, String> {
    if values.len() == rows { Ok(values) } else { Err("a column is shorter than the others".to_owned()) }
}

/// What a file of rows of blocks says of itself, and its rows.
pub(crate) fn decode(file: &[u8]) -> Result<(Head, Vec<Row>), String> {
    let (reader, head) = open(file)?;
    let places = |name: &str| place_of(&reader, name);
    let [test, sets, meets, misses, unknown] = ["test", "sets", "meets", "misses", "unknown"].map(places);
    let [utilisation, met] = ["utilisation_sum", "utilisation_met"].map(places);
    let (test, utilisation, met) = (test?, utilisation?, met?);
    let (sets, meets, misses, unknown) = (sets?, meets?, misses?, unknown?);
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).map_err(failed)? {
        let row = row.map_err(failed)?;
        rows.push(Row {
            test: row.get_string(test).map_err(failed)?.clone(),
            counts: Counts {
                sets: row.get_ulong(sets).map_err(failed)?,
                meets: row.get_ulong(meets).map_err(failed)?,
                misses: row.get_ulong(misses).map_err(failed)?,
                unknown: row.get_ulong(unknown).map_err(failed)?,
                utilisation: row.get_double(utilisation).map_err(failed)?,
                utilisation_met: row.get_double(met).map_err(failed)?,
            },
        });
    }
    Ok((head, rows))
}
