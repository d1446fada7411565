//! Task sets and verdicts as streams of Arrow's C data interface; the times cross without a copy.

use crate::faults;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchIterator, UInt64Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Columns by their names.
type Named = (String, ArrayRef);

/// The numbers that these bytes hold, where they are; the stream keeps the Python object.
fn times(bytes: PyBackedBytes) -> ArrayRef {
    let values = bytes.len() / size_of::<u64>();
    let is_aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<u64>());
    let buffer =
        if is_aligned { Buffer::from(Bytes::from_owner(bytes)) } else { Buffer::from_slice_ref(&*bytes) };
    Arc::new(UInt64Array::new(ScalarBuffer::new(buffer, 0, values), None))
}

fn numbers(values: impl Iterator<Item = usize>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values.map(|value| value as u64)))
}

/// A stream of one batch.
fn stream(py: Python<'_>, columns: Vec<Named>) -> PyResult<Bound<'_, PyCapsule>> {
    let batch = RecordBatch::try_from_iter(columns);
    let batch = batch.map_err(|error: ArrowError| faults::internal(py, &error.to_string()))?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
}

/// One row a task: set, task, wcet_ns, deadline_ns, period_ns.
#[pyfunction]
fn sets_stream(
    py: Python<'_>,
    wcet: PyBackedBytes,
    deadline: PyBackedBytes,
    period: PyBackedBytes,
    tasks: usize,
) -> PyResult<Bound<'_, PyCapsule>> {
    let (rows, tasks) = (wcet.len() / size_of::<u64>(), tasks.max(1));
    let columns = vec![
        ("set".to_owned(), numbers((0..rows).map(|row| row / tasks))),
        ("task".to_owned(), numbers((0..rows).map(|row| row % tasks))),
        ("wcet_ns".to_owned(), times(wcet)),
        ("deadline_ns".to_owned(), times(deadline)),
        ("period_ns".to_owned(), times(period)),
    ];
    stream(py, columns)
}

/// One row a set: its number, and for each test whether it is met; null: unknown.
#[pyfunction]
fn verdicts_stream(
    py: Python<'_>,
    tests: Vec<String>,
    values: PyBackedBytes,
) -> PyResult<Bound<'_, PyCapsule>> {
    let width = tests.len().max(1);
    let mut columns = vec![("set".to_owned(), numbers(0..values.len() / width))];
    for (place, test) in tests.into_iter().enumerate() {
        let verdicts = values.iter().skip(place).step_by(width).map(|&verdict| match verdict {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        });
        columns.push((test, Arc::new(verdicts.collect::<BooleanArray>())));
    }
    stream(py, columns)
}

/// Adds all of it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sets_stream, module)?)?;
    module.add_function(wrap_pyfunction!(verdicts_stream, module)?)
}
