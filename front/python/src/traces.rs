//! Reading traces: heads, and records as batches of columns that cross by the buffer protocol and Arrow's C data interface.

use crate::columns::{Columns, Context, Names, Owned, Words, places_of_kinds, schema};
use crate::faults::{self, Fault};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int8Type, Int32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray, cast::AsArray};
use arrow_schema::{ArrowError, SchemaRef};
use horolog_closed_loop::LoopError;
use horolog_trace::Kind;
use horolog_trace::file::Reader;
use horolog_trace::show::threads_of;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyTuple};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The most rows of a batch.
const MOST_ROWS: usize = 1 << 24;

/// The head of a trace, and what its foot says, as JSON; null where it was cut off.
#[pyfunction]
fn open_trace(py: Python<'_>, path: PathBuf) -> PyResult<(String, Option<String>)> {
    let opened = py.detach(|| -> Result<(String, Option<String>), Fault> {
        let mut reader = open(&path)?;
        let head = serde_json::to_string(reader.header()).map_err(Fault::words)?;
        let foot = reader.load_footer().map_err(LoopError::from)?;
        Ok((head, foot.map(serde_json::to_string).transpose().map_err(Fault::words)?))
    });
    opened.map_err(|fault| fault.raise(py))
}

fn open(path: &PathBuf) -> Result<Reader<BufReader<File>>, Fault> {
    Ok(Reader::open(path).map_err(LoopError::from)?)
}

/// The records of a trace, from its beginning.
#[pyclass(frozen, module = "horolog._engine")]
pub(crate) struct NativeRecords {
    /// None once a stream has taken it.
    cursor: Mutex<Option<Cursor>>,
}

struct Cursor {
    reader: Reader<BufReader<File>>,
    rows: usize,
    keeps_damaged: bool,
    schema: SchemaRef,
    words: Words,
    names: Names,
    places: [i8; 64],
}

impl Cursor {
    fn batch(&mut self) -> Result<Option<(RecordBatch, Vec<Context>)>, Fault> {
        let mut columns = Columns::with_capacity(self.rows.min(1 << 16));
        let tasks = self.reader.header().tasks.len() as u32;
        while columns.rows() < self.rows {
            let Some(record) = self.reader.next_record() else { break };
            columns.push(&record, &self.places, tasks);
            if let Some(event) = self.reader.user_event(&record) {
                columns.user(&event, &mut self.names);
                continue;
            }
            let [first, second] = threads_of(&record);
            if first.is_some() || second.is_some() {
                let threads = self.reader.threads();
                let thread = |number: Option<u64>| threads.get(usize::try_from(number?).ok()?);
                columns.beside(record.kind, [thread(first), thread(second)], &mut self.names);
            }
        }
        if columns.rows() > 0 {
            // What is readable comes first; the next call tells of the damage.
            return columns.finish(&self.schema, &self.words).map(Some).map_err(Fault::words);
        }
        match self.reader.damage() {
            Some(damage) if !self.keeps_damaged => Err(Fault::words(format!(
                "the trace is damaged: {damage}\n  = help: `damaged=\"keep\"` reads what is there up to that"
            ))),
            _ => Ok(None),
        }
    }
}

impl Iterator for Cursor {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch().map_err(|fault| ArrowError::ExternalError(fault.text().into()));
        batch.map(|batch| batch.map(|(batch, _)| batch)).transpose()
    }
}

impl RecordBatchReader for Cursor {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

#[pymethods]
impl NativeRecords {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, rows: usize, keeps_damaged: bool) -> PyResult<NativeRecords> {
        let cursor = py.detach(|| -> Result<Cursor, Fault> {
            let reader = open(&path)?;
            let head = serde_json::to_string(reader.header()).map_err(Fault::words)?;
            Ok(Cursor {
                rows: rows.clamp(1, MOST_ROWS),
                keeps_damaged,
                schema: schema(&head),
                words: Words::of(&reader.header().tasks),
                names: Names::default(),
                places: places_of_kinds(),
                reader,
            })
        });
        Ok(NativeRecords { cursor: Mutex::new(Some(cursor.map_err(|fault| fault.raise(py))?)) })
    }

    /// The next records; None at the end.
    fn batch(&self, py: Python<'_>) -> PyResult<Option<NativeBatch>> {
        let found = py.detach(|| {
            let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
            cursor.as_mut().map_or(Ok(None), Cursor::batch)
        });
        let found = found.map_err(|fault| fault.raise(py))?;
        Ok(found.map(|(batch, contexts)| NativeBatch { batch, contexts }))
    }

    /// Where the trace stopped being readable, up to here.
    fn damage(&self) -> Option<String> {
        let cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        cursor.as_ref()?.reader.damage().map(ToString::to_string)
    }

    /// Records lost, up to here.
    fn lost(&self) -> u64 {
        let cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        cursor.as_ref().map_or(0, |cursor| cursor.reader.lost())
    }

    /// All of them as a stream, a capsule of Arrow's C stream interface.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cursor = cursor.ok_or_else(|| faults::internal(py, "the records were taken"))?;
        let stream = FFI_ArrowArrayStream::new(Box::new(cursor));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Some records.
#[pyclass(frozen, module = "horolog._engine")]
pub(crate) struct NativeBatch {
    batch: RecordBatch,
    contexts: Vec<Context>,
}

#[pymethods]
impl NativeBatch {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of one of the first seven columns as bytes; of a column of texts the numbers that stand for them.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let unknown = || Fault::words(format!("column: there is no column `{name}` of numbers")).raise(py);
        let column = self.batch.column_by_name(name).ok_or_else(unknown)?;
        let bytes = if let Some(numbers) = column.as_primitive_opt::<UInt64Type>() {
            numbers.values().inner().as_slice()
        } else if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
            numbers.values().inner().as_slice()
        } else if let Some(words) = column.as_dictionary_opt::<Int8Type>() {
            words.keys().values().inner().as_slice()
        } else if let Some(words) = column.as_dictionary_opt::<Int32Type>() {
            words.keys().values().inner().as_slice()
        } else {
            return Err(unknown());
        };
        Ok(PyBytes::new(py, bytes))
    }

    /// Contexts of records: row, thread, process, comm, prev_thread, next_thread, event, arguments.
    fn contexts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.contexts.iter().map(|one| {
            let event = one.event.as_ref();
            let arguments = match event {
                Some(event) => {
                    let each = event.arguments.iter().map(|one| pair(py, &one.name, &one.value));
                    Some(PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)?)
                }
                None => None,
            };
            let threads = (one.thread, one.process, one.comm.as_deref(), one.prev_thread, one.next_thread);
            (one.row, threads, event.map(|event| &*event.name), arguments).into_pyobject(py)
        });
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// Capsules of Arrow's C data interface: the schema and the array.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let failed = |error: ArrowError| faults::internal(py, &error.to_string());
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(failed)?;
        let array = FFI_ArrowArray::new(&StructArray::from(self.batch.clone()).to_data());
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

fn pair<'py>(py: Python<'py>, name: &str, value: &Owned) -> PyResult<Bound<'py, PyTuple>> {
    match value {
        Owned::Bool(value) => (name, value).into_pyobject(py),
        Owned::Unsigned(value) => (name, value).into_pyobject(py),
        Owned::Signed(value) => (name, value).into_pyobject(py),
        Owned::Float(value) => (name, value).into_pyobject(py),
        Owned::Text(value) => (name, value).into_pyobject(py),
    }
}

/// Adds all of it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("KINDS", Kind::ALL.map(Kind::name).to_vec())?;
    module.add_class::<NativeRecords>()?;
    module.add_class::<NativeBatch>()?;
    module.add_function(wrap_pyfunction!(open_trace, module)?)
}
