//! Rows as Parquet: one row a cell, block and test.

use crate::SweepError;
use crate::block::{Counts, Head, Row};
use crate::plan::{BlockId, Plan};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
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
fn columns(plan: &Plan, id: BlockId, rows: &[Row]) -> Vec<(&'static str, Column)> {
    let cell = &plan.cells[id.cell];
    let recipe = &cell.recipe;
    let number = |value: u64| Column::Numbers(vec![value; rows.len()]);
    let share = |value: f64| Column::Shares(vec![value; rows.len()]);
    let text = |value: &str| Column::Texts(vec![value.to_owned(); rows.len()]);
    let count = |of: fn(&Counts) -> u64| Column::Numbers(rows.iter().map(|row| of(&row.counts)).collect());
    let sum = |of: fn(&Counts) -> f64| Column::Shares(rows.iter().map(|row| of(&row.counts)).collect());
    vec![
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
        ("seed", number(cell.seed)),
        ("block", number(id.block)),
        ("block_seed", number(plan.seed(id))),
        ("test", Column::Texts(rows.iter().map(|row| row.test.clone()).collect())),
        ("sets", count(|one| one.sets)),
        ("meets", count(|one| one.meets)),
        ("misses", count(|one| one.misses)),
        ("unknown", count(|one| one.unknown)),
        ("utilisation_sum", sum(|one| one.utilisation)),
        ("utilisation_met", sum(|one| one.utilisation_met)),
    ]
}

/// The file of a block.
pub(crate) fn encode(plan: &Plan, id: BlockId, rows: &[Row]) -> Result<Vec<u8>, SweepError> {
    let failed = |error: ParquetError| SweepError::Internal(format!("writing Parquet: {error}"));
    let head = serde_json::to_string(&Head::of(plan, id))
        .map_err(|error| SweepError::Internal(format!("no JSON for the head: {error}")))?;
    write(&columns(plan, id, rows), head).map_err(failed)
}

fn write(columns: &[(&'static str, Column)], head: String) -> Result<Vec<u8>, ParquetError> {
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
        .set_dictionary_enabled(false)
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

/// What a file says of itself, and its rows.
pub(crate) fn decode(file: &[u8]) -> Result<(Head, Vec<Row>), String> {
    let failed = |error: ParquetError| format!("it is not whole: {error}");
    let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(file)).map_err(failed)?;
    let metadata = reader.metadata().file_metadata();
    let head = metadata.key_value_metadata().and_then(|all| all.iter().find(|one| one.key == METADATA));
    let head = head.and_then(|one| one.value.as_deref()).ok_or("it is not of a sweep")?;
    let head = serde_json::from_str(head).map_err(|error| format!("its head: {error}"))?;
    let places = |name: &str| {
        let found = metadata.schema_descr().columns().iter().position(|column| column.name() == name);
        found.ok_or_else(|| format!("it has no column {name}"))
    };
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
