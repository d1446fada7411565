//! Records of a trace as columns: those of `docs/trace-format.md`, "As Parquet", with texts that repeat as dictionaries.

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int32Array, ListArray, RecordBatch, StringArray,
    UInt64Array, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use horolog_trace::file::Thread;
use horolog_trace::{Kind, NO_JOB, Record, UserEvent, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// In columns of numbers that know no null: no task, no thread.
pub(crate) const NONE: i32 = -1;

/// What some records have beside their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    pub(crate) row: usize,
    pub(crate) thread: Option<u32>,
    pub(crate) process: Option<u32>,
    pub(crate) comm: Option<Arc<str>>,
    pub(crate) prev_thread: Option<u32>,
    pub(crate) next_thread: Option<u32>,
    pub(crate) event: Option<Happened>,
}

/// A user event.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) name: Arc<str>,
    pub(crate) arguments: Vec<Argument>,
}

/// One of its arguments: its name, its value, and what the columns of numbers have of it.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: Owned,
    word: i64,
    number: f64,
}

/// A [`Value`] of its own.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
}

impl Argument {
    fn of(name: String, value: Value<'_>) -> Argument {
        let (word, number) = (value.as_word(), value.as_number());
        let value = match value {
            Value::Bool(value) => Owned::Bool(value),
            Value::Unsigned(value) | Value::Address(value) => Owned::Unsigned(value),
            Value::Signed(value) => Owned::Signed(value),
            Value::Float(value) => Owned::Float(value),
            Value::Text(text) => Owned::Text(text.to_string()),
        };
        Argument { name, value, word, number }
    }
}

/// The columns of a trace with these tasks.
pub(crate) fn schema(header: &str) -> SchemaRef {
    let number = |name: &str, nullable| Field::new(name, DataType::UInt64, nullable);
    let word = |name: &str, key: DataType, nullable| {
        Field::new(name, DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8)), nullable)
    };
    let list = |name: &str, of: DataType| Field::new(name, DataType::List(element(of)), true);
    let fields = vec![
        number("time_ns", false),
        word("kind", DataType::Int8, false),
        Field::new("cpu", DataType::Int32, false),
        word("task", DataType::Int32, true),
        number("job", true),
        number("value", false),
        number("extra", false),
        word("event", DataType::Int32, true),
        number("thread", true),
        number("process", true),
        word("comm", DataType::Int32, true),
        number("prev_thread", true),
        number("next_thread", true),
        list("words", DataType::Int64),
        list("values", DataType::Float64),
        list("texts", DataType::Utf8),
        list("names", DataType::Utf8),
    ];
    let metadata = HashMap::from([("horolog.trace".to_owned(), header.to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

fn element(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", of, false))
}

/// The place of each kind in [`Kind::ALL`], by its number.
pub(crate) fn places_of_kinds() -> [i8; 64] {
    let mut places = [0; 64];
    for (place, kind) in (0..).zip(Kind::ALL) {
        places[kind as usize & 63] = place;
    }
    places
}

/// Columns under way.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    time: Vec<u64>,
    kind: Vec<i8>,
    cpu: Vec<i32>,
    task: Vec<i32>,
    job: Vec<u64>,
    value: Vec<u64>,
    extra: Vec<u64>,
    contexts: Vec<Context>,
}

impl Columns {
    pub(crate) fn with_capacity(rows: usize) -> Columns {
        Columns {
            time: Vec::with_capacity(rows),
            kind: Vec::with_capacity(rows),
            cpu: Vec::with_capacity(rows),
            task: Vec::with_capacity(rows),
            job: Vec::with_capacity(rows),
            value: Vec::with_capacity(rows),
            extra: Vec::with_capacity(rows),
            contexts: Vec::new(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.time.len()
    }

    /// Takes a record; `tasks` is how many its trace names.
    pub(crate) fn push(&mut self, record: &Record, places: &[i8; 64], tasks: u32) {
        self.time.push(record.time.as_ns());
        self.kind.push(places[record.kind as usize & 63]);
        self.cpu.push(i32::from(record.cpu));
        self.task.push(if record.task < tasks { record.task.cast_signed() } else { NONE });
        self.job.push(record.job);
        self.value.push(record.value);
        self.extra.push(record.extra);
    }

    /// Adds the threads that the record that was taken last concerns.
    pub(crate) fn beside(&mut self, kind: Kind, [first, second]: [Option<&Thread>; 2], names: &mut Names) {
        let is_switch = kind == Kind::KernelSwitch;
        let about = if is_switch { second } else { first };
        self.contexts.push(Context {
            row: self.rows() - 1,
            thread: about.map(|thread| thread.tid),
            process: about.and_then(|thread| thread.process),
            comm: about.map(|thread| names.of(&thread.comm)),
            prev_thread: first.filter(|_| is_switch).map(|thread| thread.tid),
            next_thread: second.filter(|_| is_switch).map(|thread| thread.tid),
            event: None,
        });
    }

    /// The same of a user event.
    pub(crate) fn user(&mut self, event: &UserEvent<'_>, names: &mut Names) {
        self.beside(Kind::User, [event.thread, None], names);
        let labels = (0..).map(|place| event.definition.label(place));
        let arguments = labels.zip(event.arguments()).map(|(label, (_, value))| Argument::of(label, value));
        let happened = Happened { name: names.of(event.name()), arguments: arguments.collect() };
        if let Some(context) = self.contexts.last_mut() {
            context.event = Some(happened);
        }
    }

    /// The batch, and the contexts of its rows.
    pub(crate) fn finish(
        self,
        schema: &SchemaRef,
        words: &Words,
    ) -> Result<(RecordBatch, Vec<Context>), ArrowError> {
        let rows = self.rows();
        let contexts = self.contexts;
        let known = self.task.iter().map(|&task| task != NONE).collect::<Vec<bool>>();
        let task = Int32Array::new(ScalarBuffer::from(self.task), Some(NullBuffer::from(known)));
        let known = self.job.iter().map(|&job| job != NO_JOB).collect::<Vec<bool>>();
        let job = UInt64Array::new(ScalarBuffer::from(self.job), Some(NullBuffer::from(known)));
        let kind = Int8Array::new(ScalarBuffer::from(self.kind), None);
        let plain = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as ArrayRef;
        let number = |of: fn(&Context) -> Option<u32>| -> ArrayRef {
            let mut column = vec![None; rows];
            contexts.iter().for_each(|context| column[context.row] = of(context).map(u64::from));
            Arc::new(UInt64Array::from(column))
        };
        let mut columns: Vec<ArrayRef> = vec![
            plain(self.time),
            Arc::new(DictionaryArray::<Int8Type>::try_new(kind, Arc::clone(&words.kinds))?),
            Arc::new(Int32Array::from(self.cpu)),
            Arc::new(DictionaryArray::<Int32Type>::try_new(task, Arc::clone(&words.tasks))?),
            Arc::new(job),
            plain(self.value),
            plain(self.extra),
        ];
        if contexts.is_empty() {
            let rest = schema.fields().iter().skip(columns.len());
            columns.extend(rest.map(|field| new_null_array(field.data_type(), rows)));
        } else {
            columns.push(dictionary(rows, &contexts, |context| context.event.as_ref().map(|one| &one.name))?);
            columns.push(number(|context| context.thread));
            columns.push(number(|context| context.process));
            columns.push(dictionary(rows, &contexts, |context| context.comm.as_ref())?);
            columns.push(number(|context| context.prev_thread));
            columns.push(number(|context| context.next_thread));
            columns.extend(lists(rows, &contexts)?);
        }
        Ok((RecordBatch::try_new(Arc::clone(schema), columns)?, contexts))
    }
}

/// The texts of every batch of a trace.
#[derive(Debug)]
pub(crate) struct Words {
    kinds: ArrayRef,
    tasks: ArrayRef,
}

impl Words {
    pub(crate) fn of(tasks: &[String]) -> Words {
        Words {
            kinds: Arc::new(StringArray::from_iter_values(Kind::ALL.map(Kind::name))),
            tasks: Arc::new(StringArray::from_iter_values(tasks)),
        }
    }
}

/// Names that repeat, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, Arc<str>>);

impl Names {
    fn of(&mut self, name: &str) -> Arc<str> {
        match self.0.get(name) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.0.entry(name.to_owned()).or_insert_with(|| Arc::from(name))),
        }
    }
}

fn dictionary(
    rows: usize,
    contexts: &[Context],
    of: impl Fn(&Context) -> Option<&Arc<str>>,
) -> Result<ArrayRef, ArrowError> {
    let (mut keys, mut places, mut texts) = (vec![None; rows], HashMap::new(), Vec::new());
    for context in contexts {
        let Some(text) = of(context) else { continue };
        let place = *places.entry(Arc::clone(text)).or_insert_with(|| {
            texts.push(Arc::clone(text));
            texts.len() as i32 - 1
        });
        keys[context.row] = Some(place);
    }
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), texts)?))
}

/// The arguments of user events: as words, as numbers, as texts, and their names.
fn lists(rows: usize, contexts: &[Context]) -> Result<[ArrayRef; 4], ArrowError> {
    let (mut words, mut values) = (Int64Builder::new(), Float64Builder::new());
    let (mut texts, mut names) = (StringBuilder::new(), StringBuilder::new());
    let (mut lengths, mut present) = (vec![0; rows], vec![false; rows]);
    for context in contexts {
        let Some(event) = &context.event else { continue };
        (lengths[context.row], present[context.row]) = (event.arguments.len(), true);
        for Argument { name, value, word, number } in &event.arguments {
            words.append_value(*word);
            values.append_value(*number);
            texts.append_value(if let Owned::Text(text) = value { text } else { "" });
            names.append_value(name);
        }
    }
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    let nulls = NullBuffer::from(present);
    let list = |array: ArrayRef| -> Result<ArrayRef, ArrowError> {
        let field = element(array.data_type().clone());
        Ok(Arc::new(ListArray::try_new(field, offsets.clone(), array, Some(nulls.clone()))?))
    };
    Ok([
        list(Arc::new(words.finish()))?,
        list(Arc::new(values.finish()))?,
        list(Arc::new(texts.finish()))?,
        list(Arc::new(names.finish()))?,
    ])
}
