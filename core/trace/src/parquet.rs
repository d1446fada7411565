//! Export to Apache Parquet: one row a record, for data frames and databases.
//!
//! | column | type | what |
//! |---|---|---|
//! | `time_ns` | int64 (unsigned) | since the trace's origin |
//! | `kind` | string | [`Kind::name`](crate::Kind::name) |
//! | `cpu` | int32 | processor |
//! | `task` | string, null where none | the task's name |
//! | `job` | int64 (unsigned), null where none | job number |
//! | `value`, `extra` | int64 (unsigned) | as the kind says |
//! | `event` | string, null where no user event | its name |
//! | `thread`, `process` | int64 (unsigned), null where unknown | the kernel's numbers of the thread that met a user event, or that a kernel record is about (of a switch the next one) |
//! | `comm` | string, null where unknown | the kernel's name of that thread |
//! | `prev_thread`, `next_thread` | int64 (unsigned), null where no switch | the kernel's numbers of the threads that left and got the processor |
//! | `words` | list of int64, null where no user event | its arguments as they are: bools, integers, addresses, the bits of doubles; of a text its length |
//! | `values` | list of double, likewise | the same arguments as numbers (exact up to 2^53); of a text not a number |
//! | `texts` | list of string, likewise | the texts among them; of other arguments the empty text |
//! | `names` | list of string, likewise | what the arguments are called, with their units: `length [B]` |
//!
//! The file's key-value metadata holds the trace's header as JSON under `horolog.trace`, and the definitions of its user
//! events under `horolog.events`.

use crate::file::{Header, Thread};
use crate::filter::threads_of;
use crate::{EventDefinition, Kind, NO_JOB, Record, TraceError, UserEvent, Value};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Rows a row group: what is held in memory at once.
const ROWS: usize = 1 << 17;

/// Where the file goes: one type for all, so that Parquet's code is compiled once.
pub(crate) type Output<'w> = &'w mut (dyn Write + Send);

/// Writes a trace in Parquet; hand it every record, then [`Exporter::finish`].
pub struct Exporter<'w> {
    writer: SerializedFileWriter<Output<'w>>,
    tasks: Vec<ByteArray>,
    kinds: Vec<ByteArray>,
    rows: Vec<Record>,
    /// Per row, what stands beside its record.
    contexts: Vec<Context>,
    /// The names of the threads met so far, by their number in the trace.
    comms: BTreeMap<u64, ByteArray>,
    /// The arguments of all rows, one behind the other: as words, as numbers, as texts, and their names.
    words: Vec<i64>,
    values: Vec<f64>,
    texts: Vec<ByteArray>,
    names: Vec<ByteArray>,
    /// The events met so far, by their number.
    events: BTreeMap<u64, Met>,
}

/// An event, and its name and those of its arguments as columns hold them.
struct Met {
    definition: EventDefinition,
    name: ByteArray,
    arguments: Vec<ByteArray>,
}

/// What a row holds beside its record.
#[derive(Clone, Debug, Default)]
struct Context {
    thread: Option<u32>,
    process: Option<u32>,
    comm: Option<ByteArray>,
    /// Of a switch.
    prev_thread: Option<u32>,
    next_thread: Option<u32>,
    /// Of a user event.
    arguments: Option<usize>,
}

impl std::fmt::Debug for Exporter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<'w> Exporter<'w> {
    /// Writes the head.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn new(output: &'w mut (dyn Write + Send), header: &Header) -> Result<Exporter<'w>, TraceError> {
        let json = serde_json::to_string(header).map_err(|error| {
            TraceError::unsupported(format!("no JSON for the header: {error}"), "report it")
        })?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_key_value_metadata(Some(vec![KeyValue::new("horolog.trace".to_owned(), json)]))
            .build();
        let writer =
            SerializedFileWriter::new(output, Arc::new(schema().map_err(failed)?), Arc::new(properties));
        let kinds = (0..64)
            .map(|number| crate::Kind::from_number(number).map_or("", crate::Kind::name))
            .map(ByteArray::from)
            .collect();
        Ok(Exporter {
            writer: writer.map_err(failed)?,
            tasks: header.tasks.iter().map(|name| ByteArray::from(name.as_str())).collect(),
            kinds,
            rows: Vec::with_capacity(ROWS),
            contexts: Vec::with_capacity(ROWS),
            comms: BTreeMap::new(),
            words: Vec::new(),
            values: Vec::new(),
            texts: Vec::new(),
            names: Vec::new(),
            events: BTreeMap::new(),
        })
    }

    /// Takes the next record; `threads` are those that its trace has named so far.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn take(&mut self, record: &Record, threads: &[Thread]) -> Result<(), TraceError> {
        let [first, second] = threads_of(record)
            .map(|number| number.and_then(|number| threads.get(usize::try_from(number).ok()?)));
        let mut context = Context::default();
        if record.kind == Kind::KernelSwitch {
            context.prev_thread = first.map(|thread| thread.tid);
            context.next_thread = second.map(|thread| thread.tid);
            self.about(second, &mut context);
        } else {
            self.about(first, &mut context);
        }
        self.push(record, context)
    }

    /// Says which thread a row is about.
    fn about(&mut self, thread: Option<&Thread>, context: &mut Context) {
        let Some(thread) = thread else { return };
        let comm = self.comms.entry(thread.id).or_insert_with(|| ByteArray::from(thread.comm.as_str()));
        (context.thread, context.process, context.comm) =
            (Some(thread.tid), thread.process, Some(comm.clone()));
    }

    /// Takes the next record, which is a user event.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn take_user(&mut self, event: &UserEvent<'_>) -> Result<(), TraceError> {
        let met = self.events.entry(event.record.value).or_insert_with(|| {
            let label = |place| ByteArray::from(event.definition.label(place).as_str());
            Met {
                definition: event.definition.clone(),
                name: ByteArray::from(event.definition.name.as_str()),
                arguments: (0..event.definition.arguments()).map(label).collect(),
            }
        });
        let mut count = 0;
        for ((_, value), name) in event.arguments().zip(&met.arguments) {
            self.values.push(value.as_number());
            self.words.push(value.as_word());
            self.texts.push(match value {
                Value::Text(text) => ByteArray::from(text.to_string().as_str()),
                _ => ByteArray::from(""),
            });
            self.names.push(name.clone());
            count += 1;
        }
        let mut context = Context { arguments: Some(count), ..Context::default() };
        self.about(event.thread, &mut context);
        self.push(&event.record, context)
    }

    fn push(&mut self, record: &Record, context: Context) -> Result<(), TraceError> {
        self.rows.push(*record);
        self.contexts.push(context);
        if self.rows.len() == ROWS { self.write_rows().map_err(failed) } else { Ok(()) }
    }

    /// Writes the foot.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn finish(mut self) -> Result<(), TraceError> {
        if !self.rows.is_empty() {
            self.write_rows().map_err(failed)?;
        }
        let events: Vec<&EventDefinition> = self.events.values().map(|met| &met.definition).collect();
        let json = serde_json::to_string(&events).map_err(|error| {
            TraceError::unsupported(format!("no JSON for the events: {error}"), "report it")
        })?;
        self.writer.append_key_value_metadata(KeyValue::new("horolog.events".to_owned(), json));
        self.writer.into_inner().map(drop).map_err(failed)
    }

    fn write_rows(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.writer.next_row_group()?;
        let number =
            |of: fn(&Record) -> u64| rows.iter().map(|row| of(row).cast_signed()).collect::<Vec<i64>>();
        write_numbers(&mut group, &number(|row| row.time.as_ns()), None)?;
        let kinds: Vec<ByteArray> =
            rows.iter().map(|row| self.kinds[row.kind as usize & 63].clone()).collect();
        write_texts(&mut group, &kinds, None)?;
        let mut column = next_column(&mut group)?;
        if let ColumnWriter::Int32ColumnWriter(writer) = column.untyped() {
            let cpus: Vec<i32> = rows.iter().map(|row| i32::from(row.cpu)).collect();
            writer.write_batch(&cpus, None, None)?;
        }
        column.close()?;
        write_optional_texts(&mut group, rows.iter().map(|row| self.tasks.get(row.task as usize)))?;
        let present: Vec<i16> = rows.iter().map(|row| i16::from(row.job != NO_JOB)).collect();
        let jobs = rows.iter().map(|row| row.job).filter(|job| *job != NO_JOB);
        write_numbers(&mut group, &jobs.map(u64::cast_signed).collect::<Vec<i64>>(), Some(&present))?;
        write_numbers(&mut group, &number(|row| row.value), None)?;
        write_numbers(&mut group, &number(|row| row.extra), None)?;
        let events = rows.iter().zip(&self.contexts).map(|(row, context)| {
            context.arguments.and_then(|_| self.events.get(&row.value)).map(|met| &met.name)
        });
        write_optional_texts(&mut group, events)?;
        for number in [|context: &Context| context.thread, |context: &Context| context.process] {
            write_optional_numbers(&mut group, self.contexts.iter().map(number))?;
        }
        write_optional_texts(&mut group, self.contexts.iter().map(|context| context.comm.as_ref()))?;
        for number in [|context: &Context| context.prev_thread, |context: &Context| context.next_thread] {
            write_optional_numbers(&mut group, self.contexts.iter().map(number))?;
        }
        let (definitions, repetitions) = list_levels(&self.contexts);
        let mut column = next_column(&mut group)?;
        if let ColumnWriter::Int64ColumnWriter(writer) = column.untyped() {
            writer.write_batch(&self.words, Some(&definitions), Some(&repetitions))?;
        }
        column.close()?;
        let mut column = next_column(&mut group)?;
        if let ColumnWriter::DoubleColumnWriter(writer) = column.untyped() {
            writer.write_batch(&self.values, Some(&definitions), Some(&repetitions))?;
        }
        column.close()?;
        for texts in [&self.texts, &self.names] {
            let mut column = next_column(&mut group)?;
            if let ColumnWriter::ByteArrayColumnWriter(writer) = column.untyped() {
                writer.write_batch(texts, Some(&definitions), Some(&repetitions))?;
            }
            column.close()?;
        }
        group.close()?;
        self.rows = rows;
        self.rows.clear();
        self.contexts.clear();
        self.words.clear();
        self.values.clear();
        self.texts.clear();
        self.names.clear();
        Ok(())
    }
}

/// The levels of a list column: 0 no list, 1 an empty one, 2 an element; repetition 0 begins a row's list, 1 goes on.
fn list_levels(contexts: &[Context]) -> (Vec<i16>, Vec<i16>) {
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for context in contexts {
        let arguments = context.arguments.unwrap_or(0);
        definitions.push(i16::from(context.arguments.is_some()) + i16::from(arguments > 0));
        repetitions.push(0);
        for _ in 1..arguments {
            definitions.push(2);
            repetitions.push(1);
        }
    }
    (definitions, repetitions)
}

/// An optional list of required elements, in the form that the format's description asks for.
fn list(name: &str, physical: Physical, converted: ConvertedType) -> Result<Arc<Type>, ParquetError> {
    let element = Type::primitive_type_builder("element", physical)
        .with_converted_type(converted)
        .with_repetition(Repetition::REQUIRED);
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element.build()?)]);
    let list = Type::group_type_builder(name)
        .with_converted_type(ConvertedType::LIST)
        .with_repetition(Repetition::OPTIONAL)
        .with_fields(vec![Arc::new(repeated.build()?)]);
    Ok(Arc::new(list.build()?))
}

fn schema() -> Result<Type, ParquetError> {
    let column = |name: &str, physical: Physical, converted: ConvertedType, repetition: Repetition| {
        let builder = Type::primitive_type_builder(name, physical);
        builder.with_converted_type(converted).with_repetition(repetition).build().map(Arc::new)
    };
    let number = |name, repetition| column(name, Physical::INT64, ConvertedType::UINT_64, repetition);
    let text = |name, repetition| column(name, Physical::BYTE_ARRAY, ConvertedType::UTF8, repetition);
    let fields = vec![
        number("time_ns", Repetition::REQUIRED)?,
        text("kind", Repetition::REQUIRED)?,
        column("cpu", Physical::INT32, ConvertedType::NONE, Repetition::REQUIRED)?,
        text("task", Repetition::OPTIONAL)?,
        number("job", Repetition::OPTIONAL)?,
        number("value", Repetition::REQUIRED)?,
        number("extra", Repetition::REQUIRED)?,
        text("event", Repetition::OPTIONAL)?,
        number("thread", Repetition::OPTIONAL)?,
        number("process", Repetition::OPTIONAL)?,
        text("comm", Repetition::OPTIONAL)?,
        number("prev_thread", Repetition::OPTIONAL)?,
        number("next_thread", Repetition::OPTIONAL)?,
        list("words", Physical::INT64, ConvertedType::NONE)?,
        list("values", Physical::DOUBLE, ConvertedType::NONE)?,
        list("texts", Physical::BYTE_ARRAY, ConvertedType::UTF8)?,
        list("names", Physical::BYTE_ARRAY, ConvertedType::UTF8)?,
    ];
    Type::group_type_builder("records").with_fields(fields).build()
}

pub(crate) fn next_column<'a>(
    group: &'a mut SerializedRowGroupWriter<'_, Output<'_>>,
) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    group.next_column()?.ok_or_else(|| ParquetError::General("the schema has no further column".to_owned()))
}

pub(crate) fn write_numbers(
    group: &mut SerializedRowGroupWriter<'_, Output<'_>>,
    values: &[i64],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = next_column(group)?;
    if let ColumnWriter::Int64ColumnWriter(writer) = column.untyped() {
        writer.write_batch(values, present, None)?;
    }
    column.close()
}

pub(crate) fn write_texts(
    group: &mut SerializedRowGroupWriter<'_, Output<'_>>,
    values: &[ByteArray],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = next_column(group)?;
    if let ColumnWriter::ByteArrayColumnWriter(writer) = column.untyped() {
        writer.write_batch(values, present, None)?;
    }
    column.close()
}

/// A column of numbers that some rows do not have.
fn write_optional_numbers(
    group: &mut SerializedRowGroupWriter<'_, Output<'_>>,
    column: impl Iterator<Item = Option<u32>> + Clone,
) -> Result<(), ParquetError> {
    let present: Vec<i16> = column.clone().map(|number| i16::from(number.is_some())).collect();
    let numbers: Vec<i64> = column.flatten().map(i64::from).collect();
    write_numbers(group, &numbers, Some(&present))
}

/// A column of texts that some rows do not have.
fn write_optional_texts<'a>(
    group: &mut SerializedRowGroupWriter<'_, Output<'_>>,
    column: impl Iterator<Item = Option<&'a ByteArray>> + Clone,
) -> Result<(), ParquetError> {
    let present: Vec<i16> = column.clone().map(|text| i16::from(text.is_some())).collect();
    let texts: Vec<ByteArray> = column.flatten().cloned().collect();
    write_texts(group, &texts, Some(&present))
}

pub(crate) fn failed(error: ParquetError) -> TraceError {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => TraceError::io("writing the Parquet file", *error),
            Err(error) => TraceError::unsupported(format!("writing the Parquet file: {error}"), "report it"),
        },
        error => TraceError::io("writing the Parquet file", std::io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NO_TASK};
    use horolog_time::{Instant, Span};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn rows_read_back() {
        let header = Header::simulated(String::new(), vec!["control".to_owned()], 5, Span::ZERO);
        let mut file = Vec::new();
        let mut exporter = Exporter::new(&mut file, &header).expect("memory");
        let base = Record {
            time: Instant::from_ns(7),
            kind: Kind::Completion,
            cpu: 1,
            task: 0,
            job: 3,
            value: 9,
            extra: 0,
        };
        let count = ROWS as u64 + 10;
        for job in 0..count {
            exporter.take(&Record { job, ..base }, &[]).expect("memory");
        }
        let last = Record { task: NO_TASK, job: NO_JOB, kind: Kind::Lost, value: u64::MAX, extra: 1, ..base };
        exporter.take(&last, &[]).expect("memory");
        exporter.finish().expect("memory");

        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("what was written");
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.num_rows() as u64, count + 1);
        let stored = metadata.key_value_metadata().and_then(|all| all[0].value.clone()).expect("the header");
        assert_eq!(serde_json::from_str::<Header>(&stored).expect("a header"), header);
        let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        assert_eq!(rows[4].get_ulong(0).ok(), Some(7));
        assert_eq!(rows[4].get_string(1).map(String::as_str).ok(), Some("completion"));
        assert_eq!(rows[4].get_string(3).map(String::as_str).ok(), Some("control"));
        assert_eq!(rows[4].get_ulong(4).ok(), Some(4));
        let lost = &rows[count as usize];
        assert!(lost.get_string(3).is_err() && lost.get_ulong(4).is_err());
        assert_eq!((lost.get_ulong(5).ok(), lost.get_ulong(6).ok()), (Some(u64::MAX), Some(1)));
    }

    #[test]
    fn user_events_have_their_arguments_in_lists() {
        let definition = EventDefinition::new("net/packet", "uif", &["length", "delta", "load"]).unwrap();
        let empty = EventDefinition::new("tick", "", &[]).unwrap();
        let thread =
            crate::file::Thread { id: 4, tid: 77, comm: "w".to_owned(), task: None, process: Some(70) };
        let record = Record {
            time: Instant::from_ns(7),
            kind: Kind::User,
            cpu: 1,
            task: NO_TASK,
            job: NO_JOB,
            value: 0,
            extra: 4,
        };
        let mut file = Vec::new();
        let mut exporter = Exporter::new(&mut file, &Header::session(0)).expect("memory");
        let words = [1500, (-2_i64).cast_unsigned(), 0.5_f64.to_bits()];
        let event = UserEvent { record, definition: &definition, thread: Some(&thread), words: &words };
        let tick =
            UserEvent { record: Record { value: 1, ..record }, definition: &empty, thread: None, words: &[] };
        exporter.take_user(&event).expect("memory");
        exporter.take(&Record { kind: Kind::Start, ..record }, &[]).expect("memory");
        exporter.take_user(&tick).expect("memory");
        exporter.take_user(&event).expect("memory");
        exporter.finish().expect("memory");

        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("what was written");
        let stored = reader.metadata().file_metadata().key_value_metadata().expect("metadata");
        assert!(stored.iter().any(|pair| pair.key == "horolog.events"
            && pair.value.as_ref().is_some_and(|json| json.contains("net/packet"))));
        let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        for place in [0, 3] {
            assert_eq!(rows[place].get_string(7).map(String::as_str).ok(), Some("net/packet"));
            assert_eq!((rows[place].get_ulong(8).ok(), rows[place].get_ulong(9).ok()), (Some(77), Some(70)));
            assert_eq!(rows[place].get_string(10).map(String::as_str).ok(), Some("w"));
            let shown =
                |column: usize| rows[place].get_list(column).map(|list| format!("{:?}", list.elements()));
            assert_eq!(shown(13).ok().as_deref(), Some("[Long(1500), Long(-2), Long(4602678819172646912)]"));
            assert_eq!(shown(14).ok().as_deref(), Some("[Double(1500.0), Double(-2.0), Double(0.5)]"));
        }
        assert!(rows[1].get_string(7).is_err() && rows[1].get_list(13).is_err());
        assert_eq!(rows[2].get_string(7).map(String::as_str).ok(), Some("tick"));
        assert!(rows[2].get_list(13).is_ok_and(|list| list.elements().is_empty()));
    }
    #[test]
    fn kernel_records_name_their_threads() {
        let thread = |id: u64, tid: u32, comm: &str| crate::file::Thread {
            id,
            tid,
            comm: comm.to_owned(),
            task: None,
            process: (tid > 0).then_some(70),
        };
        let threads = [thread(0, 0, "swapper/1"), thread(1, 77, "worker")];
        let record = |kind: Kind, value: u64, extra: u64| Record {
            time: Instant::from_ns(7),
            kind,
            cpu: 1,
            task: NO_TASK,
            job: NO_JOB,
            value,
            extra,
        };
        let mut file = Vec::new();
        let mut exporter = Exporter::new(&mut file, &Header::session(0)).expect("memory");
        let records = [
            record(Kind::KernelWakeup, 1, 0),
            record(Kind::KernelSwitch, 0, 1),
            record(Kind::KernelBlock, 1, u64::from(b'S')),
            record(Kind::KernelStarve, 500, 1),
            record(Kind::KernelClass, 1, 1),
            // The other way round, and to a thread that the trace does not name.
            record(Kind::KernelSwitch, 1, 0),
            record(Kind::KernelSwitch, 1, 9),
            record(Kind::InterruptEntry, 1, 1),
        ];
        for record in &records {
            exporter.take(record, &threads).expect("memory");
        }
        exporter.finish().expect("memory");
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("what was written");
        let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        let told: Vec<_> = rows
            .iter()
            .map(|row| {
                let number = |column: usize| row.get_ulong(column).ok();
                (number(8), number(9), row.get_string(10).ok().map(String::as_str), number(11), number(12))
            })
            .collect();
        let worker = (Some(77), Some(70), Some("worker"), None, None);
        assert_eq!(told[0], worker);
        assert_eq!(told[1], (Some(77), Some(70), Some("worker"), Some(0), Some(77)));
        assert_eq!((told[2], told[3], told[4]), (worker, worker, worker));
        assert_eq!(told[5], (Some(0), None, Some("swapper/1"), Some(77), Some(0)));
        assert_eq!(told[6], (None, None, None, Some(77), None));
        assert_eq!(told[7], (None, None, None, None, None));
    }
}
